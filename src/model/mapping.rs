//! Column mapping: ids and physical names for new fields (PROTOCOL.md, Column Mapping; Writer
//! Requirements for IcebergCompatV2).

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::state::TableState;
use super::text::shorten;
use super::types::{DataType, Field, type_json};

/// The property that holds the highest id ever given.
pub(crate) const MAX_COLUMN_ID: &str = "delta.columnMapping.maxColumnId";
const ID: &str = "delta.columnMapping.id";
const PHYSICAL_NAME: &str = "delta.columnMapping.physicalName";
const NESTED_IDS: &str = "delta.columnMapping.nested.ids";
/// The name in PROTOCOL.md's text; Spark and the kernel write the other one.
const PARQUET_NESTED_IDS: &str = "parquet.field.nested.ids";

/// Gives out ids above every one that the table has.
#[derive(Debug, Clone)]
pub(crate) struct Mapping {
    highest: i64,
    /// An id of the table that is no 32-bit number.
    trouble: Option<String>,
    /// Makes physical names unique to this commit, without randomness in the pure core.
    seed: String,
    /// Whether the elements of arrays and maps get ids as well.
    nested: bool,
}

impl Mapping {
    /// The mapping of a table whose column mapping is on.
    pub(crate) fn of(state: &TableState, nested: bool) -> Self {
        let mut ids = Ids::default();
        if let Some(text) = state.metadata.configuration.get(MAX_COLUMN_ID) {
            match text.parse::<i32>() {
                Ok(id) => ids.highest = i64::from(id),
                Err(_) => ids.trouble = Some(format!("`{MAX_COLUMN_ID}` is `{}`", shorten(text, 60))),
            }
        }
        ids.walk(&parse(&state.metadata.schema_text));
        let Ids { highest, trouble } = ids;
        let seed = format!("{}\n{}", state.metadata.id, state.log_version);
        Self { highest, trouble, seed, nested }
    }

    /// The mapping of a table that is created.
    pub(crate) fn of_new_table(table_id: &str) -> Self {
        Self { highest: 0, trouble: None, seed: table_id.to_owned(), nested: false }
    }

    /// The highest id given so far.
    pub(crate) fn highest(&self) -> i64 {
        self.highest
    }

    /// Why no id can be given; ids are 32-bit numbers.
    pub(crate) fn trouble(&self) -> Option<String> {
        let spent = self.highest > i64::from(i32::MAX);
        self.trouble.clone().or_else(|| spent.then(|| "the table's column ids are spent".to_owned()))
    }

    /// The JSON of a new field, with an id and a physical name for it and for every field inside.
    pub(crate) fn field_json(&mut self, field: &Field) -> Value {
        let Field { name, data_type, nullable, comment } = field;
        let id = self.next();
        let physical = self.physical_name(id);
        let mut metadata = Map::new();
        if let Some(comment) = comment {
            metadata.insert("comment".to_owned(), Value::from(comment.clone()));
        }
        metadata.insert(ID.to_owned(), Value::from(id));
        metadata.insert(PHYSICAL_NAME.to_owned(), Value::from(physical.clone()));
        let mut nested = Map::new();
        let data_type = self.type_json(data_type, &physical, &mut nested);
        if !nested.is_empty() {
            metadata.insert(NESTED_IDS.to_owned(), Value::Object(nested));
        }
        json!({ "name": name, "type": data_type, "nullable": nullable, "metadata": metadata })
    }

    fn type_json(&mut self, data_type: &DataType, at: &str, nested: &mut Map<String, Value>) -> Value {
        match data_type {
            DataType::Primitive(_) => type_json(data_type),
            DataType::Array { element, contains_null } => {
                let element = self.part(element, at, "element", nested);
                json!({ "type": "array", "elementType": element, "containsNull": contains_null })
            }
            DataType::Map { key, value, value_contains_null } => {
                let key = self.part(key, at, "key", nested);
                let value = self.part(value, at, "value", nested);
                json!({
                    "type": "map",
                    "keyType": key,
                    "valueType": value,
                    "valueContainsNull": value_contains_null,
                })
            }
            DataType::Struct(fields) => {
                let fields: Vec<Value> = fields.iter().map(|f| self.field_json(f)).collect();
                json!({ "type": "struct", "fields": fields })
            }
        }
    }

    /// An element, key or value; its id stands in the metadata of the nearest field above it.
    fn part(&mut self, data_type: &DataType, at: &str, step: &str, nested: &mut Map<String, Value>) -> Value {
        let at = format!("{at}.{step}");
        if self.nested {
            let id = self.next();
            nested.insert(at.clone(), Value::from(id));
        }
        self.type_json(data_type, &at, nested)
    }

    fn next(&mut self) -> i64 {
        self.highest += 1;
        self.highest
    }

    /// `col-<uuid>`, the same for the same table, log version and id.
    fn physical_name(&self, id: i64) -> String {
        let hash = Sha256::digest(format!("{}\n{id}", self.seed).as_bytes());
        let mut bytes = [0u8; 16];
        bytes.iter_mut().zip(hash.iter()).for_each(|(b, h)| *b = *h);
        // RFC 9562: version 8 is for hashes of one's own.
        bytes[6] = (bytes[6] & 0x0f) | 0x80;
        bytes[8] = (bytes[8] & 0x3f) | 0x80;
        let hex: String = bytes.iter().map(|b| format!("{b:02x}")).collect();
        format!("col-{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
    }
}

/// The JSON of a schema that was read before.
pub(crate) fn parse(text: &str) -> Value {
    let mut de = serde_json::Deserializer::from_str(text);
    // The depth was measured when the schema was read.
    de.disable_recursion_limit();
    serde::Deserialize::deserialize(&mut de).unwrap_or_default()
}

/// The ids of a schema, those of array and map parts included.
#[derive(Default)]
struct Ids {
    highest: i64,
    /// An id that is no 32-bit number.
    trouble: Option<String>,
}

impl Ids {
    fn see(&mut self, key: &str, id: &Value) {
        match id.as_i64().and_then(|id| i32::try_from(id).ok()) {
            Some(id) => self.highest = self.highest.max(i64::from(id)),
            None => self.trouble = Some(format!("a `{key}` is `{}`", shorten(&id.to_string(), 60))),
        }
    }

    fn walk(&mut self, value: &Value) {
        match value {
            Value::Object(map) => {
                for (key, value) in map {
                    match (key.as_str(), value) {
                        (ID, id) => self.see(ID, id),
                        (NESTED_IDS | PARQUET_NESTED_IDS, Value::Object(ids)) => {
                            ids.values().for_each(|id| self.see(key, id));
                        }
                        (_, value) => self.walk(value),
                    }
                }
            }
            Value::Array(items) => items.iter().for_each(|item| self.walk(item)),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
