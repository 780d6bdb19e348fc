//! What of a type can be said in a kind file.

use crate::model::path::ColumnPath;
use crate::model::text::clean;
use crate::model::types::{DataType, Field, Primitive};

/// The type as far as kind files have words for it; none where nothing is left. What is left out is
/// noted.
pub(super) fn describable(
    data_type: &DataType,
    at: &ColumnPath,
    notes: &mut Vec<String>,
) -> Option<DataType> {
    match data_type {
        DataType::Primitive(Primitive::Void) => {
            notes.push(left_out(at, "it is of type void, for which kind files have no word"));
            None
        }
        DataType::Primitive(Primitive::Other(name)) => {
            let why = format!("it is of type {}, for which kind files have no word", clean(name));
            notes.push(left_out(at, &why));
            None
        }
        DataType::Primitive(_) => Some(data_type.clone()),
        DataType::Array { element, contains_null } => {
            let element = describable(element, &at.child("element"), notes)?;
            Some(DataType::Array { element: Box::new(element), contains_null: *contains_null })
        }
        DataType::Map { key, value, value_contains_null } => {
            let key = describable(key, &at.child("key"), notes)?;
            let value = describable(value, &at.child("value"), notes)?;
            Some(DataType::Map {
                key: Box::new(key),
                value: Box::new(value),
                value_contains_null: *value_contains_null,
            })
        }
        DataType::Struct(fields) => {
            let kept: Vec<Field> = fields
                .iter()
                .filter_map(|field| {
                    let data_type = describable(&field.data_type, &at.child(&field.name), notes)?;
                    Some(Field { data_type, ..field.clone() })
                })
                .collect();
            if kept.is_empty() {
                notes.push(left_out(at, "no field of the struct is left, and kind files know no empty one"));
                return None;
            }
            Some(DataType::Struct(kept))
        }
    }
}

/// Something that is not in the text, and why.
pub(super) fn left_out(at: &ColumnPath, why: &str) -> String {
    format!("`{}` is left out: {why}", clean(&at.to_string()))
}
