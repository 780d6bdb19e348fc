//! What the features of a table ask of the commit.

use serde_json::Value;

use super::{lines, namespace};
use crate::error::ErrorCode;
use crate::model::features::Protocol;
use crate::model::kind::Kind;
use crate::model::migration::{Migration, MigrationBuilder};
use crate::model::plan::{Plan, Target, plan};
use crate::model::refusal::Refusal;
use crate::model::state::TableState;
use crate::model::testing::{features, of, table};

fn with(protocol: Protocol, properties: &[(&str, &str)]) -> TableState {
    TableState { protocol, ..table("id: long", properties) }
}

fn migrated(state: &TableState, migration: MigrationBuilder) -> Result<Plan, Refusal> {
    let kind = Kind::builder("k").migration(migration).build().unwrap();
    plan(&namespace(), &kind, Some(state), Target::Newest)
}

fn add(path: &str, type_text: &str) -> MigrationBuilder {
    Migration::builder("m").add_column(path, type_text)
}

fn actions(state: &TableState, migration: MigrationBuilder) -> Vec<Value> {
    let made = migrated(state, migration).unwrap();
    lines(&made, Some(state)).lines().map(|l| serde_json::from_str(l).unwrap()).collect()
}

fn action<'a>(actions: &'a [Value], name: &str) -> Option<&'a Value> {
    actions.iter().find_map(|a| a.get(name))
}

fn code(state: &TableState, migration: MigrationBuilder) -> ErrorCode {
    migrated(state, migration).unwrap_err().code
}

#[test]
fn mapped_tables_get_ids_and_the_highest_one_in_the_same_commit() {
    let mapped = [("delta.columnMapping.mode", "name"), ("delta.columnMapping.maxColumnId", "4")];
    let state = with(features(&["columnMapping"]), &mapped);
    let made = actions(&state, add("a b,c=d", "struct<x: array<struct<y: long>>>"));
    let metadata = action(&made, "metaData").unwrap();
    assert_eq!(metadata["configuration"]["delta.columnMapping.maxColumnId"], "7");
    let schema: Value = serde_json::from_str(metadata["schemaString"].as_str().unwrap()).unwrap();
    assert_eq!(schema["fields"][1]["metadata"]["delta.columnMapping.id"], 5);
    let unmapped = with(features(&["columnMapping"]), &[("delta.columnMapping.mode", "none")]);
    let made = actions(&unmapped, add("a", "long"));
    assert!(!action(&made, "metaData").unwrap()["schemaString"].as_str().unwrap().contains("columnMapping"));
    assert_eq!(code(&state, add("a\nb", "long")), ErrorCode::InvalidName, "no line break even so");
    let huge =
        [("delta.columnMapping.mode", "id"), ("delta.columnMapping.maxColumnId", "9223372036854775807")];
    assert_eq!(
        code(&with(features(&["columnMapping"]), &huge), add("a", "long")),
        ErrorCode::UnsupportedFeature
    );
    let spent = [("delta.columnMapping.mode", "id"), ("delta.columnMapping.maxColumnId", "2147483647")];
    assert_eq!(
        code(&with(features(&["columnMapping"]), &spent), add("a", "long")),
        ErrorCode::UnsupportedFeature
    );
}

#[test]
fn a_table_is_born_with_ids_for_every_field() {
    let kind = Kind::builder("k")
        .required_column("a b", "long")
        .column("s", "array<struct<x: long>>")
        .property("delta.columnMapping.mode", "name");
    let made = plan(&namespace(), &kind.build().unwrap(), None, Target::Newest).unwrap();
    let text = lines(&made, None);
    assert!(text.contains(r#""delta.columnMapping.maxColumnId":"3""#), "{text}");
    assert_eq!(text.matches("delta.columnMapping.physicalName").count(), 3, "{text}");
}

#[test]
fn a_comment_alone_gives_out_no_ids() {
    let mapped = [("delta.columnMapping.mode", "name"), ("delta.columnMapping.maxColumnId", "4")];
    let state = with(features(&["columnMapping"]), &mapped);
    let kind = Kind::builder("k").column("id", "long").migration(Migration::builder("m").comment("id", "x"));
    let made = plan(&namespace(), &kind.build().unwrap(), Some(&state), Target::Newest).unwrap();
    assert!(lines(&made, Some(&state)).contains(r#""delta.columnMapping.maxColumnId":"4""#));
}

#[test]
fn in_commit_timestamps_and_the_row_tracking_tag_are_written_where_asked_for() {
    let info = |state: &TableState| actions(state, add("a", "long"))[0]["commitInfo"].clone();
    let on = with(features(&["inCommitTimestamp"]), &[("delta.enableInCommitTimestamps", "true")]);
    assert_eq!(info(&on)["inCommitTimestamp"], 1_764_543_600_001i64);
    let off = with(features(&["inCommitTimestamp"]), &[]);
    assert_eq!(info(&off).get("inCommitTimestamp"), None);
    assert_eq!(info(&off).get("tags"), None);
    let rows = with(features(&["rowTracking", "domainMetadata"]), &[]);
    assert_eq!(info(&rows)["tags"]["delta.rowTracking.preserved"], "true");
}

#[test]
fn names_of_hidden_columns_are_kept_free() {
    let name = [("delta.rowTracking.materializedRowIdColumnName", "_row-id-1")];
    let state = with(features(&["rowTracking"]), &name);
    assert_eq!(code(&state, add("_ROW-id-1", "long")), ErrorCode::InvalidName);
    assert!(migrated(&state, add("other", "long")).is_ok());
}

#[test]
fn iceberg_tables_take_what_iceberg_knows() {
    let compat = |version: &str, more: &[(&'static str, &'static str)]| {
        let name = format!("delta.enableIcebergCompat{version}");
        let mut properties = vec![(name.as_str(), "true"), ("delta.columnMapping.mode", "name")];
        properties.extend(more);
        let feature = format!("icebergCompat{version}");
        with(features(&["columnMapping", "variantType", "rowTracking", &feature]), &properties)
    };
    let unsupported = ErrorCode::UnsupportedFeature;
    for wrong in ["array<long>", "map<string, long>", "struct<a: array<long>>", "variant"] {
        assert_eq!(code(&compat("V1", &[]), add("a", wrong)), unsupported, "{wrong}");
    }
    assert!(migrated(&compat("V1", &[]), add("a", "struct<x: long>")).is_ok());
    assert_eq!(code(&compat("V2", &[]), add("a", "variant")), unsupported);
    let made = actions(&compat("V2", &[]), add("a", "array<long>"));
    assert!(made[1]["metaData"]["schemaString"].as_str().unwrap().contains("columnMapping.nested.ids"));
    assert_eq!(code(&compat("V3", &[]), add("a", "long")), unsupported, "V3 needs row tracking");
    assert!(migrated(&compat("V3", &[("delta.enableRowTracking", "true")]), add("a", "long")).is_ok());
}

#[test]
fn a_protocol_is_upgraded_only_where_the_migration_says_so() {
    let legacy = Protocol { min_writer: 4, ..table("id: long", &[]).protocol };
    let state = with(legacy, &[("delta.enableChangeDataFeed", "true")]);
    assert_eq!(code(&state, add("t", "array<timestamp_ntz>")), ErrorCode::UnsupportedFeature);
    let made = migrated(&state, add("t", "array<timestamp_ntz>").enable_feature("timestampNtz")).unwrap();
    assert!(made.warnings.iter().any(|w| w.contains("upgrades the protocol")), "{:?}", made.warnings);
    let made = actions(&state, add("t", "array<timestamp_ntz>").enable_feature("timestampNtz"));
    let protocol = action(&made, "protocol").unwrap();
    assert_eq!((&protocol["minReaderVersion"], &protocol["minWriterVersion"]), (&3.into(), &7.into()));
    let writers = protocol["writerFeatures"].as_array().unwrap();
    for feature in
        ["appendOnly", "invariants", "checkConstraints", "changeDataFeed", "generatedColumns", "timestampNtz"]
    {
        assert!(writers.contains(&feature.into()), "{feature} in {writers:?}");
    }
    assert_eq!(
        code(&state, Migration::builder("m").enable_feature("rowTracking")),
        ErrorCode::UnsupportedFeature
    );
    let known = with(features(&["timestampNtz"]), &[]);
    let made = actions(&known, Migration::builder("m").enable_feature("timestampNtz"));
    assert_eq!(action(&made, "protocol"), None, "a feature that is there needs no upgrade");
}

#[test]
fn a_table_is_born_with_what_its_chain_enables() {
    let kind = Kind::builder("k")
        .column("id", "long")
        .migration(Migration::builder("m").enable_feature("deletionVectors"));
    let made = plan(&namespace(), &kind.build().unwrap(), None, Target::Newest).unwrap();
    let text = lines(&made, None);
    assert!(text.contains(r#""readerFeatures":["deletionVectors"]"#), "{text}");
    assert!(text.contains(r#""delta.enableDeletionVectors":"true""#), "{text}");
}

#[test]
fn enabling_change_data_feed_checks_the_names_that_it_reserves() {
    let taken = table("id: long, _change_type: string", &[]);
    let enable = || Migration::builder("m").enable_feature("changeDataFeed");
    assert_eq!(code(&taken, enable()), ErrorCode::InvalidName);
    let made = actions(&table("id: long", &[]), enable());
    assert_eq!(action(&made, "metaData").unwrap()["configuration"]["delta.enableChangeDataFeed"], "true");
    assert_eq!(
        code(&table("id: long", &[]), enable().add_column("_commit_version", "long")),
        ErrorCode::InvalidName
    );
}

#[test]
fn unknown_field_metadata_survives_beside_new_fields() {
    let schema = r#"{"type":"struct","fields":[{"name":"c","type":"string","nullable":true,"metadata":{"__COLLATIONS":{"c":"icu.de"},"delta.identity.highWaterMark":9223372036854775807,"delta.typeChanges":[{"fromType":"short"}],"CURRENT_DEFAULT":"'x'"}},{"name":"n","type":"void","nullable":true,"metadata":{}}]}"#;
    let raw = serde_json::json!({ "id": "t", "schemaString": schema, "configuration": {} }).to_string();
    let state = of(&raw, features(&["collations", "identityColumns", "typeWidening", "allowColumnDefaults"]));
    let made = actions(&state, add("x", "long"));
    let new = action(&made, "metaData").unwrap()["schemaString"].as_str().unwrap().to_owned();
    let piece = r#",{"name":"x","type":"long","nullable":true,"metadata":{}}"#;
    assert_eq!(new.replacen(piece, "", 1), schema);
}
