//! Random shapes to text and back.

use proptest::prelude::*;

use super::*;
use crate::model::types::{Primitive, same_name, schema_json};

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

fn fields(inner: impl Strategy<Value = DataType>, most: usize) -> impl Strategy<Value = Vec<Field>> {
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

fn data_type() -> impl Strategy<Value = DataType> {
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

fn shape() -> impl Strategy<Value = Vec<Field>> {
    fields(data_type(), 6)
}

/// What a schema may become by additions alone: everything nullable, fields more, other comments.
fn grown(columns: &[Field], extra: &[Field], nested: bool) -> Vec<Field> {
    let mut out: Vec<Field> = columns
        .iter()
        .map(|f| Field {
            nullable: true,
            data_type: grown_type(&f.data_type, extra),
            comment: Some(format!("new {}", f.comment.clone().unwrap_or_default())),
            ..f.clone()
        })
        .collect();
    for field in extra.iter().filter(|_| !nested || columns.len() < 3) {
        if !out.iter().any(|f| same_name(&f.name, &field.name)) {
            out.push(Field { nullable: true, data_type: field.data_type.loosened(), ..field.clone() });
        }
    }
    out
}

fn grown_type(data_type: &DataType, extra: &[Field]) -> DataType {
    match data_type {
        DataType::Primitive(_) => data_type.clone(),
        DataType::Array { element, .. } => {
            DataType::Array { element: Box::new(grown_type(element, extra)), contains_null: true }
        }
        DataType::Map { key, value, .. } => DataType::Map {
            key: key.clone(),
            value: Box::new(grown_type(value, extra)),
            value_contains_null: true,
        },
        DataType::Struct(fields) => DataType::Struct(grown(fields, extra, true)),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_shape_is_read_back_from_its_kind_file(
        columns in shape(),
        partitioned in any::<prop::sample::Index>(),
        description in prop::option::of(any::<String>()),
        properties in prop::collection::btree_map(any::<String>(), any::<String>(), 0..4),
    ) {
        let by = &columns[partitioned.index(columns.len())];
        let can = matches!(&by.data_type, DataType::Primitive(p) if *p != Primitive::Variant) && columns.len() > 1;
        let by: Vec<String> = can.then(|| by.name.clone()).into_iter().collect();
        let properties: std::collections::BTreeMap<String, String> =
            properties.into_iter().map(|(k, v)| (format!("own{k}"), v)).collect();
        let raw = json!({
            "id": "i", "format": { "provider": "parquet", "options": {} }, "description": description,
            "schemaString": schema_json(&columns).to_string(), "partitionColumns": by, "configuration": properties,
        });
        let made = kind_text(&of(&raw.to_string(), features(&[])), "facts", None).unwrap();
        let kind = Kind::from_toml(&made.text).unwrap();
        prop_assert_eq!(kind.columns(), columns.as_slice());
        prop_assert_eq!(kind.partition_by(), by.as_slice());
        prop_assert_eq!(kind.description(), description.as_deref());
        prop_assert!(kind.properties().iter().eq(properties.iter()), "{}", made.text);
        prop_assert!(made.notes.iter().all(|n| n.starts_with("no table can be created with it")), "{:?}", made.notes);
    }

    #[test]
    fn a_kind_grows_into_a_shape_that_only_adds(columns in shape(), extra in fields(data_type(), 3)) {
        let raw = json!({
            "id": "i", "format": { "provider": "parquet", "options": {} },
            "schemaString": schema_json(&columns).to_string(),
        });
        let text = kind_text(&of(&raw.to_string(), features(&[])), "facts", None).unwrap().text;
        let kind = Kind::from_toml(&text).unwrap();
        let wanted = grown(&columns, &extra, false);
        let next = next_migration(&kind, &wanted);
        let tail = append(&kind, &text, "k.toml", &next, &next.to_toml(None)).unwrap();
        let longer = Kind::from_toml(&format!("{text}{tail}")).unwrap();
        prop_assert_eq!(&longer.shape_at(longer.newest()).columns, &wanted);
        prop_assert!(next_migration(&longer, &wanted).is_empty());
    }
}
