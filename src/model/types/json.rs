//! Schema JSON: read into [`Field`]s, and written for new columns and new tables.

use serde_json::{Map, Value, json};

use super::{DataType, Field, Primitive};

/// Why a schema string can't be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SchemaError {
    #[error("the schema is not JSON of PROTOCOL.md's schema format: {0}")]
    Malformed(String),
    #[error("column `{column}` has the type `{found}`, which no Delta reader knows")]
    UnknownType { column: String, found: String },
    #[error("`{first}` and `{second}` differ only in letter case")]
    SameName { first: String, second: String },
}

/// Reads the `schemaString` of a metaData action.
pub(crate) fn schema_from_json(text: &str) -> Result<Vec<Field>, SchemaError> {
    // serde_json's own limit of 128 is reached at 42 nested structs; without one, a hostile schema
    // would exhaust the stack, so the depth is measured first.
    if json_depth(text) > MAX_DEPTH * 3 {
        return Err(SchemaError::Malformed(format!("it is nested deeper than {MAX_DEPTH} levels")));
    }
    let mut de = serde_json::Deserializer::from_str(text);
    de.disable_recursion_limit();
    let value: Value =
        serde::Deserialize::deserialize(&mut de).map_err(|e| SchemaError::Malformed(e.to_string()))?;
    match read_type(&value, "", 0)? {
        DataType::Struct(fields) => Ok(fields),
        _ => Err(SchemaError::Malformed("the top level is not a struct".into())),
    }
}

/// Deeper schemas than this are not read: the walk would exhaust a small thread's stack.
pub(crate) const MAX_DEPTH: usize = 100;

/// How deep objects and arrays are nested.
fn json_depth(text: &str) -> usize {
    let (mut depth, mut deepest, mut quoted, mut escaped) = (0usize, 0, false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b'{' | b'[' if !quoted => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' if !quoted => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

fn read_type(value: &Value, at: &str, depth: usize) -> Result<DataType, SchemaError> {
    if depth > MAX_DEPTH {
        return Err(SchemaError::Malformed(format!("`{at}` is nested deeper than {MAX_DEPTH} levels")));
    }
    match value {
        Value::String(name) => read_primitive(name)
            .map(DataType::Primitive)
            .ok_or_else(|| SchemaError::UnknownType { column: at.to_owned(), found: name.clone() }),
        Value::Object(map) => read_nested(map, at, depth),
        other => Err(SchemaError::Malformed(format!("the type of `{at}` is `{other}`"))),
    }
}

fn read_nested(map: &Map<String, Value>, at: &str, depth: usize) -> Result<DataType, SchemaError> {
    let part = |key: &str, step: &str| {
        let value = map.get(key).ok_or_else(|| SchemaError::Malformed(format!("`{at}` has no `{key}`")))?;
        read_type(value, &format!("{at}.{step}"), depth + 1).map(Box::new)
    };
    let flag = |key: &str| map.get(key).and_then(Value::as_bool).unwrap_or(true);
    match map.get("type").and_then(Value::as_str) {
        Some("struct") => {
            let fields = map.get("fields").and_then(Value::as_array);
            let fields = fields.ok_or_else(|| SchemaError::Malformed(format!("`{at}` has no `fields`")))?;
            let fields: Result<Vec<_>, _> = fields.iter().map(|f| read_field(f, at, depth + 1)).collect();
            let fields = fields?;
            unique(&fields)?;
            Ok(DataType::Struct(fields))
        }
        Some("array") => Ok(DataType::Array {
            element: part("elementType", "element")?,
            contains_null: flag("containsNull"),
        }),
        Some("map") => Ok(DataType::Map {
            key: part("keyType", "key")?,
            value: part("valueType", "value")?,
            value_contains_null: flag("valueContainsNull"),
        }),
        other => {
            Err(SchemaError::Malformed(format!("the type of `{at}` is `{}`", other.unwrap_or("missing"))))
        }
    }
}

fn read_field(value: &Value, at: &str, depth: usize) -> Result<Field, SchemaError> {
    let name = value.get("name").and_then(Value::as_str);
    let name = name.ok_or_else(|| SchemaError::Malformed(format!("a field below `{at}` has no name")))?;
    let path = if at.is_empty() { name.to_owned() } else { format!("{at}.{name}") };
    let data_type = value.get("type").unwrap_or(&Value::Null);
    let nullable = value.get("nullable").and_then(Value::as_bool);
    let comment = value.get("metadata").and_then(|m| m.get("comment")).and_then(Value::as_str);
    Ok(Field {
        name: name.to_owned(),
        data_type: read_type(data_type, &path, depth)?,
        nullable: nullable
            .ok_or_else(|| SchemaError::Malformed(format!("`{path}` does not say `nullable`")))?,
        comment: comment.map(str::to_owned),
    })
}

fn unique(fields: &[Field]) -> Result<(), SchemaError> {
    let mut seen = std::collections::BTreeMap::new();
    for field in fields {
        if let Some(first) = seen.insert(field.name.to_lowercase(), &field.name) {
            return Err(SchemaError::SameName { first: first.clone(), second: field.name.clone() });
        }
    }
    Ok(())
}

fn read_primitive(name: &str) -> Option<Primitive> {
    Some(match name {
        "string" => Primitive::String,
        "long" => Primitive::Long,
        "integer" => Primitive::Integer,
        "short" => Primitive::Short,
        "byte" => Primitive::Byte,
        "float" => Primitive::Float,
        "double" => Primitive::Double,
        "boolean" => Primitive::Boolean,
        "binary" => Primitive::Binary,
        "date" => Primitive::Date,
        "timestamp" => Primitive::Timestamp,
        "timestamp_ntz" => Primitive::TimestampNtz,
        "variant" => Primitive::Variant,
        "void" => Primitive::Void,
        other if other.starts_with("decimal(") => return read_decimal(other),
        // Spark writes intervals although PROTOCOL.md does not list them; the kernel reads them.
        other if other.starts_with("interval ") || is_geospatial(other) => Primitive::Other(other.to_owned()),
        _ => return None,
    })
}

/// `geometry(…)` and `geography(…)`: known by name so that their table feature can be refused.
fn is_geospatial(name: &str) -> bool {
    name.starts_with("geometry") || name.starts_with("geography") || name == "timestamp_nanos"
}

fn read_decimal(name: &str) -> Option<Primitive> {
    let inner = name.strip_prefix("decimal(")?.strip_suffix(')')?;
    let (precision, scale) = inner.split_once(',')?;
    let (precision, scale) = (precision.trim().parse().ok()?, scale.trim().parse().ok()?);
    (1..=38u8).contains(&precision).then_some(())?;
    (scale <= precision).then_some(Primitive::Decimal(precision, scale))
}

/// The schema JSON of a new table.
pub(crate) fn schema_json(columns: &[Field]) -> Value {
    json!({ "type": "struct", "fields": columns.iter().map(field_json).collect::<Vec<_>>() })
}

/// The JSON of one new field.
pub(crate) fn field_json(field: &Field) -> Value {
    let Field { name, data_type, nullable, comment } = field;
    let mut metadata = Map::new();
    if let Some(comment) = comment {
        metadata.insert("comment".into(), Value::String(comment.clone()));
    }
    json!({ "name": name, "type": type_json(data_type), "nullable": nullable, "metadata": metadata })
}

pub(crate) fn type_json(data_type: &DataType) -> Value {
    match data_type {
        DataType::Primitive(p) => Value::String(p.name()),
        DataType::Array { element, contains_null } => {
            json!({ "type": "array", "elementType": type_json(element), "containsNull": contains_null })
        }
        DataType::Map { key, value, value_contains_null } => json!({
            "type": "map",
            "keyType": type_json(key),
            "valueType": type_json(value),
            "valueContainsNull": value_contains_null,
        }),
        DataType::Struct(fields) => schema_json(fields),
    }
}
