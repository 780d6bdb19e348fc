mod appended;
mod round_trip;

use super::*;
use crate::model::kind::Kind;
use crate::model::testing::{self, features, of};
use crate::model::types::{DataType, Field, parse_type};
use crate::model::version::Namespace;
use serde_json::json;

fn columns(text: &str) -> Vec<Field> {
    match parse_type(&format!("struct<{text}>")) {
        Ok(DataType::Struct(fields)) => fields,
        other => panic!("{text}: {other:?}"),
    }
}

fn field(name: &str, data_type: serde_json::Value, metadata: serde_json::Value) -> serde_json::Value {
    json!({ "name": name, "type": data_type, "nullable": true, "metadata": metadata })
}

/// A table with a bit of everything that a kind file can and can't hold.
fn rich() -> String {
    let nested = json!({ "type": "struct", "fields": [
        field("a.b", json!("long"), json!({ "comment": "it's \"nested\"" })),
        field("nothing", json!("void"), json!({})),
        { "name": "sure", "type": { "type": "array", "elementType": "decimal(38,18)", "containsNull": false },
          "nullable": false, "metadata": {} },
    ]});
    let schema = json!({ "type": "struct", "fields": [
        { "name": "id", "type": "long", "nullable": false,
          "metadata": { "comment": "who", "delta.identity.start": 1, "delta.identity.step": 1, "delta.columnMapping.id": 1 } },
        field("day", json!("date"), json!({ "delta.generationExpression": "CAST(at AS DATE)" })),
        field("at", json!("timestamp_ntz"), json!({})),
        field("code", json!("string"), json!({ "__CHAR_VARCHAR_TYPE_STRING": "varchar(10)", "CURRENT_DEFAULT": "'x'\n[evil]" })),
        field("wide", json!("long"), json!({ "delta.typeChanges": [{ "fromType": "integer", "toType": "long" }] })),
        field("payload", nested, json!({ "x.own": 1 })),
        field("span", json!("interval day"), json!({})),
        field("v", json!("variant"), json!({})),
        field("x\ny = 1", json!({ "type": "map", "keyType": "string", "valueType": "double", "valueContainsNull": true }), json!({})),
    ]});
    let configuration = json!({
        "owner": "team \"b\"", "delta.enableChangeDataFeed": "true", "delta.appendOnly": "false",
        "delta.enableRowTracking": "true", "delta.rowTracking.materializedRowIdColumnName": "_row",
        "delta.constraints.positive": "id > 0", "delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "9",
        "delta.feature.rowTracking": "supported", "delta.inCommitTimestampEnablementVersion": "3",
        "delta.logRetentionDuration": "interval 90 days", "shop.schema_version": "3", "shop.kind": "orders",
        "shop.extra": "1", "mine.note": "1", "team.kind": "blue",
    });
    json!({
        "id": "i", "format": { "provider": "parquet", "options": {} }, "description": "Facts, \"all\" of them\nand more",
        "schemaString": schema.to_string(), "partitionColumns": ["day"], "configuration": configuration,
    })
    .to_string()
}

#[test]
fn a_table_becomes_a_kind_file_with_what_was_left_out_as_comments() {
    let state = of(&rich(), features(&["columnMapping", "rowTracking", "timestampNtz", "variantType"]));
    let own = Namespace::new("mine").unwrap();
    let made = kind_text(&state, "facts", Some(&own)).unwrap();
    insta::assert_snapshot!("kind_text", made.text);
    for note in &made.notes {
        assert!(made.text.contains(&format!("\n# {note}\n")), "{note}");
    }
    assert_eq!(
        made.text.lines().filter(|l| l.starts_with("# ")).count(),
        made.notes.len() + 3,
        "{}",
        made.text
    );
    let kind = Kind::from_toml(&made.text).unwrap();
    assert_eq!(kind.description(), Some("Facts, \"all\" of them\nand more"));
    // The namespace is only left out where it is known to be one.
    let made = kind_text(&state, "facts", None).unwrap();
    assert!(made.text.contains("\"mine.note\" = \"1\"") && made.text.contains("\"team.kind\" = \"blue\""));
}

#[test]
fn partitioning_that_a_kind_cant_have_is_left_out_with_a_note() {
    let mut state = testing::table("a: long, Day: date", &[]);
    state.metadata.partition_columns = vec!["day".to_owned()];
    let made = kind_text(&state, "k", None).unwrap();
    assert!(made.text.contains("partition_by = [\"Day\"]") && made.notes.is_empty(), "{made:?}");
    state.metadata.partition_columns = vec!["Day".to_owned(), "a".to_owned()];
    let made = kind_text(&state, "k", None).unwrap();
    assert!(!made.text.contains("\npartition_by"), "{made:?}");
    assert!(made.notes[0].starts_with("the partitioning by `Day`, `a` is left out"), "{made:?}");
}

#[test]
fn a_name_that_no_new_table_can_have_is_told() {
    let made = kind_text(&testing::table("`a b`: long", &[]), "k", None).unwrap();
    assert!(made.notes[0].starts_with("no table can be created with it: column name `a b`"), "{made:?}");
    let error = kind_text(&testing::table("a: long", &[]), "k k", None).unwrap_err();
    assert!(error.to_string().contains("`k k` is no name of a kind"), "{error}");
}

const KIND: &str = r#"kind = "facts"
[columns]
id      = { type = "long", nullable = false, comment = "who" }
code    = { type = "string", nullable = false }
payload = "struct<lsn: binary, items: array<struct<sku: string not null> not null>, m: map<string, long not null>>"
amount  = "integer"
old     = "string"
[[migrations]]
description = "detail"
add_columns = { detail = "string" }
"#;

#[test]
fn the_next_migration_only_adds() {
    let kind = Kind::from_toml(KIND).unwrap();
    let wanted = columns(
        "id: long not null comment 'who it is', code: string, \
         payload: struct<lsn: binary comment 'log', items: array<struct<sku: string, price: double>>, \
         m: map<string, long>, `a.b`: array<string not null>>, amount: integer, old: string, detail: string, \
         tenant: string comment 'it\\'s new', at: timestamp_ntz",
    );
    let next = next_migration(&kind, &wanted);
    insta::assert_snapshot!("block", format!("{}\n{}", next.to_toml(None), next.notes().join("\n")));
    let text = format!("{KIND}{}", append(&kind, KIND, "k.toml", &next, &next.to_toml(Some("x"))).unwrap());
    let longer = Kind::from_toml(&text).unwrap();
    let again = next_migration(&longer, &wanted);
    assert!(again.is_empty() && again.to_toml(None).is_empty(), "{again:?}");
}

#[test]
fn what_is_in_the_way_is_noted_and_not_written() {
    let kind = Kind::from_toml(KIND).unwrap();
    let wanted = columns(
        "id: long not null, code: string not null, \
         payload: struct<lsn: string not null, items: array<struct<sku: string not null> not null>, \
         m: map<string, long not null>>, amount: long, details: string, must: long not null, \
         deep: struct<x: long not null>",
    );
    let next = next_migration(&kind, &wanted);
    insta::assert_snapshot!("in_the_way", format!("{}\n{}", next.to_toml(None), next.notes().join("\n")));
    // Nulls alone, a narrower type and another key of a map.
    let kind = Kind::from_toml(
        "kind = \"k\"\n[columns]\na = \"long\"\nb = \"long\"\nm = \"map<struct<x: long>, long>\"",
    );
    let wanted = columns("a: integer, m: map<struct<x: long, y: long>, long>");
    let mut wanted: Vec<Field> = wanted;
    wanted.push(Field::nullable("b", DataType::Primitive(crate::model::types::Primitive::Void)));
    wanted.push(Field::nullable("c", DataType::Primitive(crate::model::types::Primitive::Void)));
    let next = next_migration(&kind.unwrap(), &wanted);
    assert!(next.is_empty());
    insta::assert_snapshot!("nothing_to_write", next.notes().join("\n"));
}

#[test]
fn an_identical_shape_has_nothing_to_add_and_nothing_to_say() {
    let kind = Kind::from_toml(KIND).unwrap();
    let next = next_migration(&kind, &kind.shape_at(kind.newest()).columns);
    assert!(next.is_empty() && next.notes().is_empty(), "{next:?}");
    assert_eq!(next.version().get(), 2);
}

#[test]
fn a_feature_that_the_kind_has_already_is_not_asked_for() {
    let kind =
        |more: &str| Kind::from_toml(&format!("kind = \"k\"\n[columns]\na = \"long\"\n{more}")).unwrap();
    let wanted = columns("a: long, b: timestamp_ntz, c: timestamp_ntz");
    let without = next_migration(&kind(""), &wanted);
    assert!(without.to_toml(None).contains("\n# enable_features = [\"timestampNtz\"]\n"));
    let born = next_migration(&kind("b = \"timestamp_ntz\""), &wanted);
    assert!(!born.to_toml(None).contains("enable_features") && born.notes().is_empty(), "{born:?}");
    let step = "[[migrations]]\ndescription = \"f\"\nenable_features = [\"timestampNtz\"]";
    assert!(!next_migration(&kind(step), &wanted).to_toml(None).contains("enable_features"));
}
