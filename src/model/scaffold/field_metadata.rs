//! What a table's fields say of themselves beyond name, type, nullability and comment.

use serde_json::{Map, Value};

use crate::model::path::ColumnPath;
use crate::model::text::{clean, shorten};

/// Metadata that no kind file can express.
#[derive(Debug, Default)]
pub(super) struct FieldMetadata {
    /// Top-level column and what is left out of it, in the schema's order.
    pub(super) of_columns: Vec<(String, String)>,
    /// Whether fields have ids and physical names of column mapping.
    pub(super) mapped: bool,
}

impl FieldMetadata {
    /// Looks through the schema string of a table that was read before.
    pub(super) fn of(schema_text: &str) -> Self {
        let mut de = serde_json::Deserializer::from_str(schema_text);
        // The depth was measured when the schema was read.
        de.disable_recursion_limit();
        let schema: Value = serde::Deserialize::deserialize(&mut de).unwrap_or_default();
        let mut found = Self::default();
        found.walk(&schema, None);
        found
    }

    fn walk(&mut self, data_type: &Value, at: Option<&ColumnPath>) {
        let below = |name: &str| at.map_or_else(|| ColumnPath::of([name]), |at| at.child(name));
        for field in data_type.get("fields").and_then(Value::as_array).into_iter().flatten() {
            let path = below(field.get("name").and_then(Value::as_str).unwrap_or_default());
            if let Some(metadata) = field.get("metadata").and_then(Value::as_object) {
                self.field(&path, metadata);
            }
            self.walk(field.get("type").unwrap_or(&Value::Null), Some(&path));
        }
        for (key, step) in [("elementType", "element"), ("keyType", "key"), ("valueType", "value")] {
            if let Some(part) = data_type.get(key) {
                self.walk(part, Some(&below(step)));
            }
        }
    }

    fn field(&mut self, path: &ColumnPath, metadata: &Map<String, Value>) {
        let mut identity = false;
        for (key, value) in metadata {
            let what = match key.as_str() {
                "comment" if value.is_string() => continue,
                _ if key.starts_with("delta.columnMapping.") || key.starts_with("parquet.field.") => {
                    self.mapped = true;
                    continue;
                }
                // One property each for start, step and high-water mark.
                _ if key.starts_with("delta.identity.") && identity => continue,
                _ if key.starts_with("delta.identity.") => {
                    identity = true;
                    "its identity (numbers that the engine gives)".to_owned()
                }
                "delta.generationExpression" => format!("its generation expression {}", shown(value)),
                "delta.invariants" => format!("its invariant {}", shown(value)),
                "delta.typeChanges" => "what it was widened from".to_owned(),
                "CURRENT_DEFAULT" => format!("its default {}", shown(value)),
                // What rows from before a default was set read; a new table has none.
                "EXISTS_DEFAULT" => continue,
                "__CHAR_VARCHAR_TYPE_STRING" => format!("its type {} of Spark's", shown(value)),
                "__COLLATIONS" => format!("its collation {}", shown(value)),
                other => format!("its metadata `{}`", shorten(other, 60)),
            };
            let column = path.segments().first().cloned().unwrap_or_default();
            let note = format!("`{}`: {what} is left out: kind files can't say it", clean(&path.to_string()));
            self.of_columns.push((column, note));
        }
    }
}

/// A value in backticks, on one line.
fn shown(value: &Value) -> String {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    format!("`{}`", shorten(&text, 100))
}
