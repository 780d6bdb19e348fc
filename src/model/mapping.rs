//! Column mapping: ids and physical names for new fields (PROTOCOL.md, Column Mapping; Writer
//! Requirements for IcebergCompatV2).

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::state::TableState;
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
    /// Makes physical names unique to this commit, without randomness in the pure core.
    seed: String,
    /// Whether the elements of arrays and maps get ids as well.
    nested: bool,
}

impl Mapping {
    /// The mapping of a table whose column mapping is on; none where the ids are spent.
    pub(crate) fn of(state: &TableState, nested: bool) -> Self {
        let property = state.metadata.configuration.get(MAX_COLUMN_ID).and_then(|v| v.parse::<i64>().ok());
        let schema: Value = parse(&state.metadata.schema_text);
        let mut highest = property.unwrap_or(0);
        highest_id(&schema, &mut highest);
        let seed = format!("{}\n{}", state.metadata.id, state.log_version);
        Self { highest, seed, nested }
    }

    /// The mapping of a table that is created.
    pub(crate) fn of_new_table(table_id: &str) -> Self {
        Self { highest: 0, seed: table_id.to_owned(), nested: false }
    }

    /// The highest id given so far.
    pub(crate) fn highest(&self) -> i64 {
        self.highest
    }

    /// Ids are 32-bit numbers.
    pub(crate) fn is_spent(&self) -> bool {
        self.highest > i64::from(i32::MAX)
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

fn parse(text: &str) -> Value {
    let mut de = serde_json::Deserializer::from_str(text);
    // The depth was measured when the schema was read.
    de.disable_recursion_limit();
    serde::Deserialize::deserialize(&mut de).unwrap_or_default()
}

/// Looks at every id in a schema, those of array and map parts included.
fn highest_id(value: &Value, highest: &mut i64) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                match (key.as_str(), value) {
                    (ID, id) => *highest = (*highest).max(id.as_i64().unwrap_or(0)),
                    (NESTED_IDS | PARQUET_NESTED_IDS, Value::Object(ids)) => {
                        let ids = ids.values().filter_map(Value::as_i64);
                        *highest = ids.fold(*highest, i64::max);
                    }
                    (_, value) => highest_id(value, highest),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| highest_id(item, highest)),
        _ => {}
    }
}

#[cfg(test)]
mod tests;
