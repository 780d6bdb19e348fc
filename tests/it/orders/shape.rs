//! What a table of a release has: columns at any depth, properties, a description. Written down
//! apart from the crate under test, so that it can be wrong about them.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::support::log::struct_type;
use crate::support::random::Random;

#[derive(Debug, Clone)]
pub(super) enum Type {
    Plain(&'static str),
    Struct(Vec<Column>),
    List(Box<Type>),
    /// From texts to something.
    Map(Box<Type>),
}

#[derive(Debug, Clone)]
pub(super) struct Column {
    pub(super) name: String,
    pub(super) data_type: Type,
    pub(super) is_nullable: bool,
    pub(super) comment: Option<String>,
}

/// A table at one version of a chain.
#[derive(Debug, Clone)]
pub(super) struct Shape {
    pub(super) columns: Vec<Column>,
    pub(super) properties: BTreeMap<String, String>,
    pub(super) description: Option<String>,
}

pub(super) fn column(name: impl Into<String>, data_type: Type) -> Column {
    Column { name: name.into(), data_type, is_nullable: true, comment: None }
}

pub(super) const fn plain(name: &'static str) -> Type {
    Type::Plain(name)
}

pub(super) fn list(of: Type) -> Type {
    Type::List(Box::new(of))
}

pub(super) fn map(to: Type) -> Type {
    Type::Map(Box::new(to))
}

impl Type {
    /// As a kind file has it.
    pub(super) fn text(&self) -> String {
        match self {
            Self::Plain(name) => (*name).to_owned(),
            Self::Struct(fields) => {
                let of = |f: &Column| format!("{}: {}", f.name, f.data_type.text());
                format!("struct<{}>", fields.iter().map(of).collect::<Vec<_>>().join(", "))
            }
            Self::List(of) => format!("array<{}>", of.text()),
            Self::Map(to) => format!("map<string, {}>", to.text()),
        }
    }

    /// As a log has it.
    fn json(&self) -> Value {
        match self {
            Self::Plain(name) => (*name).into(),
            Self::Struct(fields) => schema(fields),
            Self::List(of) => json!({ "type": "array", "elementType": of.json(), "containsNull": true }),
            Self::Map(to) => json!({
                "type": "map", "keyType": "string", "valueType": to.json(), "valueContainsNull": true,
            }),
        }
    }

    /// Some value.
    fn value(&self, random: &mut Random) -> Value {
        match self {
            Self::Plain("string") => format!("s{}", random.below(1000)).into(),
            Self::Plain("boolean") => random.one_in(2).into(),
            Self::Plain("double") => (f64::from(u8::try_from(random.below(256)).unwrap()) / 4.0).into(),
            Self::Plain("date") => format!("2024-02-{:02}", random.between(1, 29)).into(),
            Self::Plain("integer" | "long") => random.below(100_000).into(),
            Self::Plain(other) => panic!("no values of {other}"),
            Self::Struct(fields) => Value::Object(row(fields, random)),
            Self::List(of) => (0..random.below(3)).map(|_| of.value(random)).collect(),
            Self::Map(to) => {
                Value::Object((0..random.below(3)).map(|i| (format!("k{i}"), to.value(random))).collect())
            }
        }
    }

    /// Whether rows may lack it. The reader that judges them (buoyant_kernel 0.28.1, `reorder_map`) can't
    /// read a NULL where a map's values have gained a field.
    fn may_be_null(&self) -> bool {
        !matches!(self, Self::Map(to) if matches!(**to, Self::Struct(_)))
    }

    /// A value of an older release as a reader finds it that knows more: NULL where it had nothing.
    fn widened(&self, value: &Value) -> Value {
        match (self, value) {
            (Self::Struct(fields), Value::Object(has)) => Value::Object(widened(fields, has)),
            (Self::List(of), Value::Array(has)) => has.iter().map(|v| of.widened(v)).collect(),
            (Self::Map(to), Value::Object(has)) => {
                Value::Object(has.iter().map(|(k, v)| (k.clone(), to.widened(v))).collect())
            }
            _ => value.clone(),
        }
    }

    /// The fields of the struct that a path leads to.
    fn fields(&mut self, path: &[&str]) -> &mut Vec<Column> {
        match (self, path) {
            (Self::Struct(fields), []) => fields,
            (Self::Struct(fields), [name, rest @ ..]) => {
                fields.iter_mut().find(|f| f.name == *name).unwrap().data_type.fields(rest)
            }
            (Self::List(of), ["element", rest @ ..]) => of.fields(rest),
            (Self::Map(to), ["value", rest @ ..]) => to.fields(rest),
            (other, _) => panic!("{other:?} has no {path:?}"),
        }
    }
}

/// The columns as a log has them.
pub(super) fn schema(columns: &[Column]) -> Value {
    let field = |c: &Column| {
        let metadata = c.comment.as_ref().map_or_else(|| json!({}), |text| json!({ "comment": text }));
        json!({ "name": c.name, "type": c.data_type.json(), "nullable": c.is_nullable, "metadata": metadata })
    };
    struct_type(columns.iter().map(field).collect())
}

/// A row with a value in every column, but for a NULL here and there.
pub(super) fn row(columns: &[Column], random: &mut Random) -> Map<String, Value> {
    let value = |c: &Column, random: &mut Random| match c.is_nullable
        && c.data_type.may_be_null()
        && random.one_in(8)
    {
        true => Value::Null,
        false => c.data_type.value(random),
    };
    columns.iter().map(|c| (c.name.clone(), value(c, random))).collect()
}

/// A row of an older release as the newest finds it.
pub(super) fn widened(columns: &[Column], row: &Map<String, Value>) -> Map<String, Value> {
    let value = |c: &Column| row.get(&c.name).map_or(Value::Null, |v| c.data_type.widened(v));
    columns.iter().map(|c| (c.name.clone(), value(c))).collect()
}

impl Shape {
    /// The column that a dotted path names, and its siblings.
    pub(super) fn siblings(&mut self, path: &str) -> &mut Vec<Column> {
        let mut parts: Vec<&str> = path.split('.').collect();
        parts.pop();
        match parts.as_slice() {
            [] => &mut self.columns,
            [name, rest @ ..] => {
                self.columns.iter_mut().find(|c| c.name == *name).unwrap().data_type.fields(rest)
            }
        }
    }

    pub(super) fn at(&mut self, path: &str) -> &mut Column {
        let name = path.rsplit('.').next().unwrap();
        self.siblings(path).iter_mut().find(|c| c.name == name).unwrap()
    }
}
