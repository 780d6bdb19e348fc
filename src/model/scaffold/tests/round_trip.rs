//! Random shapes to text and back.

use proptest::prelude::*;

use super::*;
use crate::model::testing::schemas::{data_type, fields, shape};
use crate::model::types::{Primitive, same_name, schema_json};

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
