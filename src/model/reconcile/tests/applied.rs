//! Random tables and schemas: what is planned is done once.

use proptest::prelude::*;

use super::*;
use crate::model::testing::schemas::shape;

/// A schema that shares much with the table's: some of its fields, some otherwise, and others.
fn mixed(have: &[Field], other: &[Field], choice: u64) -> Vec<Field> {
    let mut out: Vec<Field> = Vec::new();
    for (n, field) in have.iter().enumerate() {
        let bits = choice.rotate_right(u32::try_from(n * 3 % 64).unwrap());
        let data_type = mixed_type(&field.data_type, other, bits.rotate_right(7));
        match bits % 8 {
            0 => {}
            1 => out.push(Field { name: field.name.to_uppercase(), data_type, ..field.clone() }),
            2 => out.push(Field { nullable: !field.nullable, data_type, ..field.clone() }),
            3 => out.push(Field { name: format!("{}_2", field.name), data_type, ..field.clone() }),
            _ => out.push(Field { data_type, ..field.clone() }),
        }
    }
    for field in other {
        out.push(Field { nullable: field.nullable || !choice.is_multiple_of(5), ..field.clone() });
    }
    let mut unique: Vec<Field> = Vec::new();
    for field in out {
        if !unique.iter().any(|f| same_name(&f.name, &field.name)) {
            unique.push(field);
        }
    }
    unique
}

fn mixed_type(data_type: &DataType, other: &[Field], choice: u64) -> DataType {
    match data_type {
        DataType::Struct(fields) => match mixed(fields, other.get(1..).unwrap_or_default(), choice) {
            fields if fields.is_empty() => data_type.clone(),
            fields => DataType::Struct(fields),
        },
        DataType::Array { element, contains_null } => DataType::Array {
            element: Box::new(mixed_type(element, other, choice)),
            contains_null: *contains_null,
        },
        DataType::Map { key, value, value_contains_null } => DataType::Map {
            key: key.clone(),
            value: Box::new(mixed_type(value, other, choice)),
            value_contains_null: *value_contains_null,
        },
        DataType::Primitive(_) => data_type.clone(),
    }
}

/// A table with column mapping, so that names can be nearly anything.
fn mapped(columns: &[Field]) -> TableState {
    let raw = serde_json::json!({
        "id": "i", "format": { "provider": "parquet", "options": {} }, "partitionColumns": [],
        "schemaString": crate::model::types::schema_json(columns).to_string(),
        "configuration": { "delta.columnMapping.mode": "name", "app.kind": "facts", "app.more": "1" },
    });
    of(&raw.to_string(), features(&["columnMapping", "timestampNtz", "variantType"]))
}

#[test]
fn what_is_planned_is_done_once_and_nothing_else_is() {
    let seen = std::cell::Cell::new((0, 0, 0));
    let config = ProptestConfig { cases: 400, ..ProptestConfig::default() };
    proptest!(config, |(have in shape(), other in shape(), choice in any::<u64>())| {
        let wanted = mixed(&have, &other, choice);
        let state = mapped(&have);
        let kind = Kind::builder("facts").build().unwrap();
        let desired = Desired { kind: Some(kind), ..Desired::of_columns(wanted) };
        let (mut refused, mut empty, mut done) = seen.get();
        match reconcile_plan(&namespace(), &desired, Some(&state)) {
            Err(refusal) => {
                refused += 1;
                let told = schema_diff(&namespace(), &desired, &state).refusal.unwrap();
                prop_assert_eq!(told.code, refusal.code.as_str());
            }
            Ok(first) if first.is_empty() => {
                empty += 1;
                prop_assert!(added_by(&first).is_empty());
            }
            Ok(first) => {
                done += 1;
                let now = after(&first, &state);
                let second = reconcile_plan(&namespace(), &desired, Some(&now)).unwrap();
                prop_assert!(second.is_empty(), "{:?}", added_by(&second));
                prop_assert_eq!(&second.diff.as_ref().unwrap().left, &first.diff.as_ref().unwrap().left);
                // Seen from the table, fields came, each nullable, and nothing else happened.
                let came: Vec<String> = walk(&state.columns, &now.columns).iter().map(|walked| match &walked.differs {
                    Differs::New(field) if field.nullable => format!("{} {}", walked.at, field.data_type),
                    other => panic!("{other:?}"),
                }).collect();
                let mut listed = added_by(&first);
                let mut came = came;
                listed.sort();
                came.sort();
                prop_assert_eq!(came, listed);
                let stamps = |s: &TableState| s.metadata.configuration.get("app.kind").cloned();
                prop_assert_eq!(stamps(&now), stamps(&state));
                prop_assert!(!now.metadata.configuration.contains_key("app.schema_version"));
            }
        }
        seen.set((refused, empty, done));
    });
    let (refused, empty, done) = seen.get();
    assert!(done > 50 && refused > 20, "{refused} refused, {empty} empty, {done} done");
}
