//! Wider types (PROTOCOL.md, Type Widening).

use super::{DataType, Field, Primitive, find};

impl DataType {
    /// Whether `wide` is this type with wider parts and nothing else: the same fields, the same
    /// nesting. Nullability and comments inside are not looked at.
    pub(crate) fn widens_to(&self, wide: &DataType) -> bool {
        match (self, wide) {
            (Self::Primitive(a), Self::Primitive(b)) => a.widens_to(b),
            (Self::Array { element: a, .. }, Self::Array { element: b, .. }) => a.widens_to(b),
            (Self::Map { key: k, value: v, .. }, Self::Map { key: k2, value: v2, .. }) => {
                k.widens_to(k2) && v.widens_to(v2)
            }
            (Self::Struct(a), Self::Struct(b)) => {
                let widens =
                    |f: &Field| find(b, &f.name).is_some_and(|g| f.data_type.widens_to(&g.data_type));
                a.len() == b.len() && a.iter().all(widens)
            }
            _ => false,
        }
    }

    /// This type with the parts of `wide`; names, nullability and comments stay as they are.
    pub(crate) fn widened(&self, wide: &DataType) -> DataType {
        match (self, wide) {
            (Self::Array { element, contains_null }, Self::Array { element: wide, .. }) => {
                Self::Array { element: Box::new(element.widened(wide)), contains_null: *contains_null }
            }
            (Self::Map { key, value, value_contains_null }, Self::Map { key: k, value: v, .. }) => {
                Self::Map {
                    key: Box::new(key.widened(k)),
                    value: Box::new(value.widened(v)),
                    value_contains_null: *value_contains_null,
                }
            }
            (Self::Struct(fields), Self::Struct(wide)) => {
                let widened = |f: &Field| match find(wide, &f.name) {
                    Some(g) => Field { data_type: f.data_type.widened(&g.data_type), ..f.clone() },
                    None => f.clone(),
                };
                Self::Struct(fields.iter().map(widened).collect())
            }
            _ => wide.clone(),
        }
    }
}

/// Every primitive inside a type with the way to it below `at`, depth first.
pub(crate) fn leaves<'a>(data_type: &'a DataType, at: &[String]) -> Vec<(Vec<String>, &'a Primitive)> {
    let below = |step: &str| [at, &[step.to_owned()]].concat();
    match data_type {
        DataType::Primitive(primitive) => vec![(at.to_vec(), primitive)],
        DataType::Array { element, .. } => leaves(element, &below("element")),
        DataType::Map { key, value, .. } => {
            [leaves(key, &below("key")), leaves(value, &below("value"))].concat()
        }
        DataType::Struct(fields) => {
            fields.iter().flat_map(|f| leaves(&f.data_type, &below(&f.name))).collect()
        }
    }
}
