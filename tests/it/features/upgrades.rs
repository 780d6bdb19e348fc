//! `enable_features`: the new protocol lists everything that the old one stood for.

use std::sync::Arc;

use delta_migrate::{ErrorCode, IfMissing, Target};
use deltalake::arrow::datatypes::DataType;
use serde_json::{Value, json};

use super::{Sound, kind, part, sound};
use crate::support::checkpoint::write_rows;
use crate::support::rows::read;
use crate::support::store::{Trick, TrickStore};
use crate::support::{Log, Table, column, migrator, refused_everywhere, required};

fn log() -> Log {
    Log::new(vec![required("id", "long"), column("code", "string")])
}

fn enabling(feature: &str, columns: &str) -> String {
    kind(&format!("enable_features = [\"{feature}\"]\n[migrations.add_columns]\n{columns}"))
}

/// Rows, in a file; deltalake itself writes to few of these tables.
fn fill(table: &Table, rows: &[Value]) {
    let columns = vec![("id", DataType::Int64), ("code", DataType::Utf8)];
    let add = write_rows(table, "part-0.parquet", columns, rows);
    table.commit_raw(&[add]);
}

const NTZ: &str = "seen = \"map<string, timestamp_ntz>\"";

fn sorted(protocol: &Value, key: &str) -> Vec<String> {
    let mut names: Vec<String> =
        protocol[key].as_array().unwrap().iter().map(|n| n.as_str().unwrap().to_owned()).collect();
    names.sort();
    names
}

/// Upgrades a table with two rows; the protocol lists exactly this, deltalake reads the rows.
async fn upgrade(table: &Table, readers: &[&str], writers: &[&str]) -> Sound {
    fill(table, &[json!({ "id": 1, "code": "a" }), json!({ "id": 2, "code": null })]);
    let done = sound(table, &enabling("timestampNtz", NTZ), &["protocol"]);
    let protocol = table.action(done.entry, "protocol");
    assert_eq!((&protocol["minReaderVersion"], &protocol["minWriterVersion"]), (&json!(3), &json!(7)));
    assert_eq!(sorted(&protocol, "readerFeatures"), readers);
    assert_eq!(sorted(&protocol, "writerFeatures"), writers);
    let rows = read(table).await;
    assert_eq!(rows.len(), 2);
    assert_eq!(rows[0], json!({ "id": 1, "code": "a", "seen": null }));
    let loaded = table.load().await;
    assert!(format!("{:?}", loaded.snapshot().unwrap().schema()).contains("TimestampNtz"));
    done
}

fn broken(done: &Sound, implied: &[&str]) {
    for feature in implied.iter().filter(|f| **f != "columnMapping") {
        done.caught(&format!("the protocol lost {feature}"), |a| {
            let list = part(a, "protocol")["writerFeatures"].as_array_mut().unwrap();
            list.retain(|f| f != feature);
        });
    }
    done.caught("timestampNtz is not in readerFeatures", |a| {
        part(a, "protocol")["readerFeatures"] = json!([])
    });
    done.caught("reader feature timestampNtz is not in writerFeatures", |a| {
        part(a, "protocol")["writerFeatures"].as_array_mut().unwrap().retain(|f| f != "timestampNtz");
    });
    done.caught("needs timestampNtz", |a| a.retain(|a| a.get("protocol").is_none()));
    done.caught("minReaderVersion went down", |a| part(a, "protocol")["minReaderVersion"] = 0.into());
    done.caught("a feature is listed twice", |a| {
        part(a, "protocol")["writerFeatures"].as_array_mut().unwrap().push("timestampNtz".into());
    });
}

#[tokio::test]
async fn from_1_2_with_a_required_column() {
    let writers = ["appendOnly", "invariants", "timestampNtz"];
    let done = upgrade(&log().versions(1, 2).table(), &["timestampNtz"], &writers).await;
    broken(&done, &writers[..2]);
}

#[tokio::test]
async fn from_1_4_with_a_change_data_feed() {
    let table = log().versions(1, 4).property("delta.enableChangeDataFeed", "true").table();
    let writers = [
        "appendOnly",
        "changeDataFeed",
        "checkConstraints",
        "generatedColumns",
        "invariants",
        "timestampNtz",
    ];
    let done = upgrade(&table, &["timestampNtz"], &writers).await;
    broken(&done, &writers[..5]);
    assert_eq!(table.property("delta.enableChangeDataFeed").as_deref(), Some("true"));
}

#[tokio::test]
async fn from_2_5_readers_are_told_of_column_mapping_as_well() {
    let table = log().versions(2, 5).table();
    let writers = [
        "appendOnly",
        "changeDataFeed",
        "checkConstraints",
        "columnMapping",
        "generatedColumns",
        "invariants",
        "timestampNtz",
    ];
    let done = upgrade(&table, &["columnMapping", "timestampNtz"], &writers).await;
    broken(&done, &writers[..6]);
    done.caught("columnMapping is not in readerFeatures", |a| {
        part(a, "protocol")["readerFeatures"] = json!(["timestampNtz"]);
    });
}

/// Lists that speak of column mapping to writers alone are taken by no reader.
#[tokio::test]
async fn from_1_5_and_1_6_column_mapping_is_told_to_readers_and_writers() {
    let mut writers = vec![
        "appendOnly",
        "changeDataFeed",
        "checkConstraints",
        "columnMapping",
        "generatedColumns",
        "invariants",
        "timestampNtz",
    ];
    upgrade(&log().versions(1, 5).table(), &["columnMapping", "timestampNtz"], &writers).await;
    writers.insert(5, "identityColumns");
    upgrade(&log().versions(1, 6).table(), &["columnMapping", "timestampNtz"], &writers).await;
    for writer in [5, 6] {
        let table = log().versions(1, writer).table();
        let done = sound(&table, &enabling("domainMetadata", "x = \"long\""), &["protocol"]);
        let protocol = table.action(done.entry, "protocol");
        assert_eq!((&protocol["minReaderVersion"], protocol.get("readerFeatures")), (&json!(2), None));
        assert!(protocol["writerFeatures"].to_string().contains("columnMapping"), "{protocol}");
        assert_eq!(table.load().await.version(), Some(1));
    }
}

#[tokio::test]
async fn from_3_7_what_is_listed_stays_in_its_place() {
    let table = log().features(&["deletionVectors"], &["deletionVectors", "appendOnly"]).table();
    let done = upgrade(
        &table,
        &["deletionVectors", "timestampNtz"],
        &["appendOnly", "deletionVectors", "timestampNtz"],
    )
    .await;
    let protocol = table.action(done.entry, "protocol");
    assert_eq!(protocol["writerFeatures"], json!(["deletionVectors", "appendOnly", "timestampNtz"]));
    // Readers of version 1 stay as they are when only writers must know.
    let table = log().versions(1, 2).table();
    let done = sound(&table, &enabling("domainMetadata", "x = \"long\""), &["protocol"]);
    let protocol = table.action(done.entry, "protocol");
    assert_eq!((&protocol["minReaderVersion"], protocol.get("readerFeatures")), (&json!(1), None));
    assert_eq!(table.load().await.version(), Some(1));
    let table = log().versions(2, 5).table();
    let done = sound(&table, &enabling("domainMetadata", "x = \"long\""), &["protocol"]);
    assert_eq!(table.action(done.entry, "protocol")["minReaderVersion"], 2);
    assert_eq!(table.load().await.version(), Some(1));
}

#[tokio::test]
async fn a_feature_that_a_property_turns_on_gets_it_and_the_table_opens() {
    for (feature, property, value) in [
        ("changeDataFeed", "delta.enableChangeDataFeed", "true"),
        ("deletionVectors", "delta.enableDeletionVectors", "true"),
        ("v2Checkpoint", "delta.checkpointPolicy", "v2"),
        ("appendOnly", "delta.appendOnly", "true"),
    ] {
        for (reader, writer) in [(1, 2), (1, 4), (2, 5)] {
            let table = log().versions(reader, writer).table();
            let may = [&format!("property:{property}"), "protocol"];
            sound(&table, &enabling(feature, "x = \"long\""), &may);
            assert_eq!(table.property(property).as_deref(), Some(value));
            fill(&table, &[json!({ "id": 1 })]);
            assert_eq!(
                read(&table).await,
                [json!({ "id": 1, "code": null, "x": null })],
                "{feature} {writer}"
            );
        }
    }
}

#[test]
fn a_feature_that_is_there_already_asks_for_no_protocol_action() {
    let table = log().versions(1, 4).table();
    sound(&table, &enabling("changeDataFeed", "x = \"long\""), &["property:delta.enableChangeDataFeed"]);
    let table = log().features(&["timestampNtz"], &["timestampNtz"]).table();
    sound(&table, &enabling("timestampNtz", NTZ), &[]);
}

#[test]
fn without_the_step_nothing_is_written() {
    for (wanted, feature) in [
        ("timestamp_ntz", "timestampNtz"),
        ("map<string, timestamp_ntz>", "timestampNtz"),
        ("array<map<string, struct<a: timestamp_ntz>>>", "timestampNtz"),
        ("variant", "variantType"),
        ("struct<a: array<variant>>", "variantType"),
    ] {
        let plain = kind(&format!("[migrations.add_columns]\nseen = \"{wanted}\""));
        let upgraded = enabling(feature, &format!("seen = \"{wanted}\""));
        for (reader, writer) in [(1, 2), (1, 4), (2, 5)] {
            let log = log().versions(reader, writer);
            let error = refused_everywhere(&log.clone().table(), &plain, "unsupported_feature");
            assert!(error["message"].as_str().unwrap().contains(feature), "{error}");
            assert!(error["hint"].as_str().unwrap().contains("enable_features"), "{error}");
            sound(&log.table(), &upgraded, &["protocol"]);
        }
        // A step for another feature does not help.
        let other = enabling("domainMetadata", &format!("seen = \"{wanted}\""));
        refused_everywhere(&log().table(), &other, "unsupported_feature");
    }
}

#[test]
fn a_feed_is_not_turned_on_over_its_own_names() {
    let table = Log::new(vec![required("id", "long"), column("_Change_Type", "string")]).table();
    refused_everywhere(&table, &enabling("changeDataFeed", "x = \"long\""), "invalid_name");
}

#[tokio::test]
async fn a_second_run_asks_for_nothing_more() {
    let table = log().table();
    let kind = enabling("timestampNtz", NTZ);
    sound(&table, &kind, &["protocol"]);
    let before = table.files();
    let migrator = migrator(&kind);
    let report =
        migrator.migrate("facts", &table.location(), Target::Newest, IfMissing::Refuse).await.unwrap();
    assert_eq!(report.outcome.as_str(), "current");
    assert!(table.files() == before);
}

#[tokio::test]
async fn a_protocol_that_another_writer_upgrades_meanwhile_is_built_upon() {
    let table = Arc::new(log().table());
    let other = table.clone();
    let store = TrickStore::on_put(move |n| {
        if n == 0 {
            let theirs = json!({ "minReaderVersion": 3, "minWriterVersion": 7,
                "readerFeatures": ["deletionVectors"], "writerFeatures": ["deletionVectors", "invariants", "appendOnly"] });
            other.commit_raw(&[json!({ "commitInfo": {} }), json!({ "protocol": theirs })]);
        }
        Trick::Pass
    });
    let migrator = migrator(&enabling("timestampNtz", NTZ));
    let location = table.location_in(&store);
    let report = migrator.migrate("facts", &location, Target::Newest, IfMissing::Refuse).await.unwrap();
    assert_eq!(report.log_version.unwrap().get(), 2);
    let protocol = table.action(2, "protocol");
    assert_eq!(protocol["readerFeatures"], json!(["deletionVectors", "timestampNtz"]));
    assert_eq!(
        protocol["writerFeatures"],
        json!(["deletionVectors", "invariants", "appendOnly", "timestampNtz"])
    );
    assert_eq!(table.load().await.version(), Some(2));
}

/// The gate is asked again: what won may forbid our commit.
#[tokio::test]
async fn a_feature_that_comes_meanwhile_and_is_not_handled_stops_the_commit() {
    let table = Arc::new(log().table());
    let other = table.clone();
    let store = TrickStore::on_put(move |_| {
        let theirs = json!({ "minReaderVersion": 3, "minWriterVersion": 7,
            "readerFeatures": ["catalogManaged"], "writerFeatures": ["catalogManaged"] });
        other.commit_raw(&[json!({ "commitInfo": {} }), json!({ "protocol": theirs })]);
        Trick::Pass
    });
    let migrator = migrator(&enabling("timestampNtz", NTZ));
    let location = table.location_in(&store);
    let error = migrator.migrate("facts", &location, Target::Newest, IfMissing::Refuse).await.unwrap_err();
    assert_eq!((error.code(), table.versions()), (ErrorCode::UnsupportedFeature, vec![0, 1]));
    assert!(error.message().contains("catalogManaged"), "{error}");
}
