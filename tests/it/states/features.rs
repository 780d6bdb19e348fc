//! Refusals for what the table's protocol or names ask, and tables that a newer release migrated.

use delta_migrate::{ErrorCode, IfMissing, Target};
use serde_json::{Value, json};

use super::message;
use crate::support::warnings::Warnings;
use crate::support::{FACTS, Log, apply, column, facts, migrator, refused_everywhere, required};

#[test]
fn a_table_with_a_feature_that_is_not_handled_is_refused_by_its_name() {
    let both = |name: &'static str| ([name], [name]);
    for (reader, writer) in [both("catalogOwned"), both("catalogManaged"), both("fancyFeature")] {
        let table = facts().stamped(0).features(&reader, &writer).table();
        let error = refused_everywhere(&table, FACTS, "unsupported_feature");
        assert!(message(&error).contains(writer[0]), "{error}");
    }
    for writer in ["icebergWriterCompatV1", "geospatial", "fancyFeature"] {
        let table = facts().features(&[], &["appendOnly", writer]).table();
        let error = refused_everywhere(&table, FACTS, "unsupported_feature");
        assert!(message(&error).contains(writer) && !message(&error).contains("appendOnly"), "{error}");
    }
    for (reader, writer) in [(1, 8), (4, 7)] {
        let table = facts().versions(reader, writer).table();
        refused_everywhere(&table, FACTS, "unsupported_feature");
    }
}

#[test]
fn every_feature_that_asks_nothing_of_a_metadata_commit_is_migrated() {
    let writer = [
        "appendOnly",
        "invariants",
        "checkConstraints",
        "changeDataFeed",
        "generatedColumns",
        "deletionVectors",
        "v2Checkpoint",
        "timestampNtz",
    ];
    let table = facts().features(&["deletionVectors", "v2Checkpoint", "timestampNtz"], &writer).table();
    let protocol = table.action(0, "protocol");
    assert_eq!(apply(&table, FACTS).table()["outcome"], "migrated");
    assert_eq!(table.action(0, "protocol"), protocol);
    assert!(table.commit(1).iter().all(|a| a.get("protocol").is_none()), "no protocol action");
    for writer in 2..=4 {
        let table = facts().versions(1, writer).table();
        assert_eq!(apply(&table, FACTS).table()["outcome"], "migrated", "{writer}");
    }
}

#[test]
fn a_feature_does_not_matter_where_nothing_is_to_be_written() {
    let table = facts().table();
    assert_eq!(apply(&table, FACTS).code, 0);
    table.commit_raw(&[json!({ "protocol": {
        "minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["rowTracking", "domainMetadata"],
    } })]);
    let before = table.files();
    assert_eq!(apply(&table, FACTS).table()["outcome"], "current");
    assert!(table.files() == before);
}

/// A kind with one migration that holds a step which this version does not take.
fn with_step(step: &str) -> String {
    format!(
        "kind = \"facts\"\n[columns]\nid = \"long\"\ncode = \"string\"\nn = \"integer\"\n\
         [[migrations]]\ndescription = \"first\"\n[migrations.add_columns]\nmore = \"string\"\n\
         [[migrations]]\ndescription = \"the step\"\n{step}\n"
    )
}

#[test]
fn every_step_that_this_build_does_not_take_is_refused_by_name_before_any_write() {
    // With DataFusion there is none.
    if cfg!(feature = "datafusion") {
        return;
    }
    for (name, step) in [
        ("update", "update = { set = { more = \"upper(code)\" }, where = \"more IS NULL\" }"),
        ("retype_columns", "destructive = true\nretype_columns = { code = \"long\" }"),
        ("add_constraints", "add_constraints = { positive = \"n > 0\" }"),
    ] {
        let fields = vec![column("id", "long"), column("code", "string"), column("n", "integer")];
        let kind = with_step(step);
        let table = Log::new(fields).stamped(0).table();
        let error = refused_everywhere(&table, &kind, "unsupported_step");
        let text = message(&error);
        assert!(text.contains(&format!("`{name}`")) && text.contains("migration 2 (`the step`)"), "{error}");
        // A new table would be born without what the step does, so it is not born.
        refused_everywhere(&crate::support::Table::missing(), &kind, "unsupported_step");
    }
}

fn adding(column: &str) -> String {
    format!(
        "kind = \"facts\"\n[columns]\nid = \"long\"\n[[migrations]]\ndescription = \"one\"\n\
         [migrations.add_columns]\n{column}\n"
    )
}

#[test]
fn a_name_that_the_table_can_not_take_is_invalid() {
    let table = || Log::new(vec![column("id", "long"), column("Detail", "string")]);
    let error = refused_everywhere(&table().table(), &adding("detail = \"string\""), "invalid_name");
    assert!(message(&error).contains("`detail`") && message(&error).contains("`Detail`"), "{error}");
    for name in ["a b", "a,b", "a=b", "a;b", "a{b", "a(b", "a\\tb"] {
        refused_everywhere(&table().table(), &adding(&format!("\"{name}\" = \"string\"")), "invalid_name");
        let inside = adding(&format!("s = \"struct<`{name}`: long>\""));
        refused_everywhere(&table().table(), &inside, "invalid_name");
    }
    let feed = || table().versions(1, 4).property("delta.enableChangeDataFeed", "true");
    for name in ["_change_type", "_Commit_Version", "_commit_timestamp"] {
        let kind = adding(&format!("{name} = \"string\""));
        refused_everywhere(&feed().table(), &kind, "invalid_name");
        assert_eq!(apply(&table().table(), &kind).table()["outcome"], "migrated", "{name} without the feed");
    }
}

#[test]
fn a_table_with_two_names_that_differ_in_case_alone_is_refused() {
    let table = Log::new(vec![column("id", "long"), column("sf_gsp", "string"), column("SF_GSP", "string")]);
    refused_everywhere(&table.table(), &adding("x = \"string\""), "invalid_name");
}

#[test]
fn a_timestamp_without_zone_is_refused_where_the_table_lacks_the_feature() {
    for (wanted, depth) in
        [("timestamp_ntz", 0), ("map<string, timestamp_ntz>", 1), ("array<struct<t: timestamp_ntz>>", 2)]
    {
        let kind = adding(&format!("seen = \"{wanted}\""));
        let table = Log::new(vec![required("id", "long")]);
        let error = refused_everywhere(&table.clone().table(), &kind, "unsupported_feature");
        assert!(message(&error).contains("timestampNtz"), "{depth}: {error}");
        let able = table.features(&["timestampNtz"], &["timestampNtz"]).table();
        assert_eq!(apply(&able, &kind).table()["outcome"], "migrated", "{wanted}");
        assert!(able.field("seen").to_string().contains("timestamp_ntz"));
    }
}

fn ahead() -> Log {
    let mut log = facts().stamped(12).property("app.min_version", "8");
    let fields: Vec<Value> = {
        let table = facts().table();
        assert_eq!(apply(&table, FACTS).code, 0);
        table.schema()["fields"].as_array().unwrap().clone()
    };
    log.schema["fields"] = fields.into();
    log
}

#[test]
fn a_table_that_a_newer_release_migrated_is_written_on_as_it_is() {
    let table = ahead().table();
    let before = table.files();
    for command in ["status", "plan", "apply"] {
        let ran = crate::support::command::on(&table, FACTS, &[command, table.arg()]);
        assert_eq!((ran.code, &ran.table()["outcome"]), (0, &json!("ahead")), "{ran:?}");
        assert_eq!(ran.table()["to"], 12);
        assert_eq!(ran.table()["newest"], 10);
    }
    let check = crate::support::command::on(&table, FACTS, &["status", "--check", table.arg()]);
    assert_eq!(check.code, 0, "ahead is fine");
    assert!(table.files() == before);
}

#[tokio::test]
async fn ahead_is_said_once_a_table_and_version_at_warn() {
    let table = ahead().table();
    let migrator = migrator(FACTS);
    let warnings = Warnings::listen();
    let mut loaded =
        migrator.open_or_create("facts", table.arg(), Default::default()).await.unwrap().into_table();
    for _ in 0..3 {
        migrator.check("facts", &loaded).unwrap();
    }
    let lines = warnings.lines();
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(
        lines[0].contains("WARN") && lines[0].contains("version 12") && lines[0].contains("10"),
        "{lines:?}"
    );
    assert!(lines[0].contains(table.arg()), "{lines:?}");
    table.set_property("app.schema_version", "13");
    loaded.update_state().await.unwrap();
    migrator.check("facts", &loaded).unwrap();
    migrator.check("facts", &loaded).unwrap();
    assert_eq!(warnings.lines().len(), 2, "another version is said again");
}

#[tokio::test]
async fn a_table_ahead_that_lost_a_known_column_is_drifted() {
    let mut log = ahead();
    log.schema["fields"].as_array_mut().unwrap().retain(|f| f["name"] != "tenant");
    let table = log.table();
    refused_everywhere(&table, FACTS, "drifted");
    let done = migrator(FACTS).migrate("facts", &table.location(), Target::Newest, IfMissing::Refuse).await;
    assert_eq!(done.unwrap_err().code(), ErrorCode::Drifted);
}
