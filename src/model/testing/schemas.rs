//! Random schemas.

use proptest::prelude::*;

use crate::model::types::{DataType, Field, Primitive, same_name};

fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[A-Za-z_][a-z0-9_]{0,5}",
        1 => any::<String>().prop_filter("a name", |s| !s.is_empty()),
        1 => prop::sample::select(vec![
            "a.b", "`", "a`b", "\"q\"", "it's", "\\", "x\ny", "a b", "not null", "comment", "element", "key", "value",
            "kind", "columns", "migrations", "type", "description", "1", "ü", "\u{7f}", "#", "[x]",
        ])
        .prop_map(str::to_owned),
    ]
}

fn comment() -> impl Strategy<Value = Option<String>> {
    prop::option::of(prop_oneof![
        any::<String>(),
        Just("it's \\ \"quoted\"\r\n''".to_owned()),
        Just(String::new())
    ])
}

fn primitive() -> impl Strategy<Value = DataType> {
    let decimal = (1..=38u8).prop_flat_map(|p| (Just(p), 0..=p)).prop_map(|(p, s)| Primitive::Decimal(p, s));
    let plain = prop::sample::select(vec![
        Primitive::String,
        Primitive::Long,
        Primitive::Integer,
        Primitive::Short,
        Primitive::Byte,
        Primitive::Float,
        Primitive::Double,
        Primitive::Boolean,
        Primitive::Binary,
        Primitive::Date,
        Primitive::Timestamp,
        Primitive::TimestampNtz,
        Primitive::Variant,
    ]);
    prop_oneof![plain, decimal].prop_map(DataType::Primitive)
}

pub(crate) fn fields(
    inner: impl Strategy<Value = DataType>,
    most: usize,
) -> impl Strategy<Value = Vec<Field>> {
    let field = (name(), inner, any::<bool>(), comment())
        .prop_map(|(name, data_type, nullable, comment)| Field { name, data_type, nullable, comment });
    prop::collection::vec(field, 1..most).prop_map(|fields| {
        let mut unique: Vec<Field> = Vec::new();
        for field in fields {
            if !unique.iter().any(|f| same_name(&f.name, &field.name)) {
                unique.push(field);
            }
        }
        unique
    })
}

pub(crate) fn data_type() -> impl Strategy<Value = DataType> {
    primitive().prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            (inner.clone(), any::<bool>()).prop_map(|(element, contains_null)| DataType::Array {
                element: Box::new(element),
                contains_null
            }),
            (primitive(), inner.clone(), any::<bool>()).prop_map(|(key, value, value_contains_null)| {
                DataType::Map { key: Box::new(key), value: Box::new(value), value_contains_null }
            }),
            fields(inner, 4).prop_map(DataType::Struct),
        ]
    })
}

pub(crate) fn shape() -> impl Strategy<Value = Vec<Field>> {
    fields(data_type(), 6)
}
