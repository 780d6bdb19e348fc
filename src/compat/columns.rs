//! A table's columns as a writer of Parquet files needs them: with the names and ids that the files
//! have under column mapping.

use serde_json::Value;

use super::unreadable;
use crate::error::Error;
use crate::model::types::{DataType, Field, Primitive, find, parse_type};

/// A column or a field of a struct.
#[derive(Debug, Clone)]
pub(super) struct Column {
    pub(super) name: String,
    /// Its name in data files; the same but for column mapping.
    pub(super) physical: String,
    pub(super) id: Option<String>,
    pub(super) nullable: bool,
    pub(super) data_type: Type,
}

#[derive(Debug, Clone)]
pub(super) enum Type {
    Primitive(Primitive),
    Array(Box<Column>),
    Map(Box<Column>, Box<Column>),
    Struct(Vec<Column>),
}

/// The columns of a `schemaString`.
pub(super) fn columns(schema: &str, is_mapped: bool) -> Result<Vec<Column>, Error> {
    let wrong = |what: &str| unreadable(format!("the schema can't be read: {what}"));
    let json: Value = serde_json::from_str(schema).map_err(|e| wrong(&e.to_string()))?;
    match read_type(&json, is_mapped) {
        Some(Type::Struct(columns)) => Ok(columns),
        _ => Err(wrong("it is no struct of known types")),
    }
}

fn read_type(json: &Value, is_mapped: bool) -> Option<Type> {
    if let Value::String(name) = json {
        return match parse_type(name) {
            Ok(DataType::Primitive(primitive)) => Some(Type::Primitive(primitive)),
            Ok(_) => None,
            // A type of another program, whose values are not written here.
            Err(_) => Some(Type::Primitive(Primitive::Other(name.clone()))),
        };
    }
    let part = |name: &str, key: &str, nullable: bool| {
        let data_type = read_type(json.get(key)?, is_mapped)?;
        Some(Box::new(Column { name: name.into(), physical: name.into(), id: None, nullable, data_type }))
    };
    let flag = |key: &str| json.get(key).and_then(Value::as_bool).unwrap_or(true);
    match json.get("type")?.as_str()? {
        "array" => Some(Type::Array(part("element", "elementType", flag("containsNull"))?)),
        "map" => Some(Type::Map(
            part("key", "keyType", false)?,
            part("value", "valueType", flag("valueContainsNull"))?,
        )),
        "struct" => {
            let fields = json.get("fields")?.as_array()?;
            fields.iter().map(|f| read_field(f, is_mapped)).collect::<Option<_>>().map(Type::Struct)
        }
        _ => None,
    }
}

fn read_field(json: &Value, is_mapped: bool) -> Option<Column> {
    let name = json.get("name")?.as_str()?.to_owned();
    let metadata = |key: &str| json.get("metadata")?.get(format!("delta.columnMapping.{key}"));
    let physical = metadata("physicalName").and_then(Value::as_str).filter(|_| is_mapped);
    Some(Column {
        physical: physical.unwrap_or(&name).to_owned(),
        id: metadata("id").filter(|_| is_mapped).map(Value::to_string),
        nullable: json.get("nullable")?.as_bool()?,
        data_type: read_type(json.get("type")?, is_mapped)?,
        name,
    })
}

impl Column {
    /// Whether a value can be written here; a column without leaves is left out of data files, where
    /// it reads NULL.
    pub(super) fn is_writable(&self) -> bool {
        self.data_type.is_writable()
    }
}

impl Type {
    fn is_writable(&self) -> bool {
        match self {
            Self::Primitive(Primitive::Variant | Primitive::Void | Primitive::Other(_)) => false,
            Self::Primitive(_) => true,
            Self::Array(element) => element.is_writable(),
            Self::Map(key, value) => key.is_writable() && value.is_writable(),
            Self::Struct(fields) => fields.iter().any(Column::is_writable),
        }
    }
}

/// A row under other names: every column of the schema, NULL where the row has none. What the row
/// has beside them is left out.
pub(super) fn renamed(
    columns: &[Column],
    row: &Value,
    from: fn(&Column) -> &String,
    to: fn(&Column) -> &String,
) -> Value {
    let cell = |c: &Column| rename(&c.data_type, row.get(from(c)).unwrap_or(&Value::Null), from, to);
    Value::Object(columns.iter().map(|c| (to(c).clone(), cell(c))).collect())
}

fn rename(data_type: &Type, cell: &Value, from: fn(&Column) -> &String, to: fn(&Column) -> &String) -> Value {
    match (data_type, cell) {
        (Type::Struct(fields), Value::Object(_)) => renamed(fields, cell, from, to),
        (Type::Array(element), Value::Array(items)) => {
            items.iter().map(|item| rename(&element.data_type, item, from, to)).collect()
        }
        // A map is a list of pairs: its keys need not be texts.
        (Type::Map(key, value), Value::Array(pairs)) => pairs
            .iter()
            .map(|pair| {
                let part = |at: usize| pair.get(at).unwrap_or(&Value::Null);
                let key = rename(&key.data_type, part(0), from, to);
                Value::Array(vec![key, rename(&value.data_type, part(1), from, to)])
            })
            .collect(),
        _ => cell.clone(),
    }
}

/// What a row of an older schema reads as under this one.
pub(super) fn grown(columns: &[Column], row: &Value) -> Value {
    renamed(columns, row, |c| &c.name, |c| &c.name)
}

/// A row of a data file as the table shows it.
pub(super) fn shown(columns: &[Column], stored: &Value) -> Value {
    renamed(columns, stored, |c| &c.physical, |c| &c.name)
}

/// What an older release knows of a table: all columns but those that came later.
#[derive(Debug, Clone)]
pub(super) struct Known {
    old: Vec<Field>,
    new: Vec<Field>,
}

impl Known {
    /// The columns of an older and of the newest shape of a kind.
    pub(super) fn new(old: Vec<Field>, new: Vec<Field>) -> Self {
        Self { old, new }
    }

    /// The columns that such a release writes.
    pub(super) fn of(&self, columns: &[Column]) -> Vec<Column> {
        pruned(columns, &self.old, &self.new)
    }
}

fn pruned(columns: &[Column], old: &[Field], new: &[Field]) -> Vec<Column> {
    let prune = |column: &Column| match (find(old, &column.name), find(new, &column.name)) {
        (Some(old), Some(new)) => {
            let data_type = pruned_type(&column.data_type, &old.data_type, &new.data_type);
            Some(Column { data_type, ..column.clone() })
        }
        (None, Some(_)) => None,
        // A column of no release of the kind: who appends to the table knows it.
        (_, None) => Some(column.clone()),
    };
    columns.iter().filter_map(prune).collect()
}

fn pruned_type(data_type: &Type, old: &DataType, new: &DataType) -> Type {
    let part = |column: &Column, old: &DataType, new: &DataType| {
        Box::new(Column { data_type: pruned_type(&column.data_type, old, new), ..column.clone() })
    };
    match (data_type, old, new) {
        (Type::Struct(fields), DataType::Struct(old), DataType::Struct(new)) => {
            Type::Struct(pruned(fields, old, new))
        }
        (
            Type::Array(element),
            DataType::Array { element: old, .. },
            DataType::Array { element: new, .. },
        ) => Type::Array(part(element, old, new)),
        (
            Type::Map(key, value),
            DataType::Map { key: old_key, value: old, .. },
            DataType::Map { key: new_key, value: new, .. },
        ) => Type::Map(part(key, old_key, new_key), part(value, old, new)),
        _ => data_type.clone(),
    }
}
