//! In-commit timestamps: above the one before, whatever the clock says, on each attempt anew.

use std::sync::Arc;

use delta_migrate::{IfMissing, Target};
use serde_json::{Value, json};

use super::{adding, part, sound, sound_after};
use crate::support::checkpoint::write_checkpoint;
use crate::support::judge::Before;
use crate::support::store::{Trick, TrickStore};
use crate::support::{Log, Table, apply, column, migrator, refused_everywhere};

/// The year 2100.
const FUTURE: i64 = 4_102_444_800_000;

/// A table with in-commit timestamps; that of version 0 is given.
pub(crate) fn stamped(log: Log, at: Option<i64>) -> Table {
    let table = log.property("delta.enableInCommitTimestamps", "true").table();
    let mut actions = table.commit(0);
    if let Some(at) = at {
        part(&mut actions, "commitInfo")["inCommitTimestamp"] = at.into();
    }
    let text: String = actions.iter().map(|a| format!("{a}\n")).collect();
    std::fs::write(table.log_file(0), text).unwrap();
    table
}

fn log() -> Log {
    Log::new(vec![column("id", "long")]).features(&[], &["inCommitTimestamp"])
}

fn kind() -> String {
    adding("more = \"string\"")
}

fn ours(table: &Table) -> i64 {
    table.action(table.newest(), "commitInfo")["inCommitTimestamp"].as_i64().unwrap()
}

#[tokio::test]
async fn a_timestamp_in_the_past_gives_now_and_one_in_the_future_the_next() {
    let table = stamped(log(), Some(5));
    let start = chrono::Utc::now().timestamp_millis();
    let done = sound(&table, &kind(), &[]);
    assert!((start..=chrono::Utc::now().timestamp_millis()).contains(&ours(&table)));
    done.caught("is not above 5", |a| part(a, "commitInfo")["inCommitTimestamp"] = 5.into());
    done.caught("none where it is", |a| {
        part(a, "commitInfo").as_object_mut().unwrap().remove("inCommitTimestamp");
    });
    done.caught("commitInfo is not first", |a| a.swap(0, 2));
    done.caught_in_metadata("property delta.enableInCommitTimestamps changed", |m| {
        m["configuration"].as_object_mut().unwrap().remove("delta.enableInCommitTimestamps");
    });

    let table = stamped(log().property("delta.inCommitTimestampEnablementVersion", "0"), Some(FUTURE));
    sound(&table, &kind(), &[]);
    assert_eq!(ours(&table), FUTURE + 1);
    assert_eq!(table.property("delta.inCommitTimestampEnablementVersion").as_deref(), Some("0"));
    assert_eq!(table.load().await.version(), Some(1));
}

#[test]
fn the_timestamp_before_is_found_behind_a_long_first_line() {
    let table = stamped(log(), Some(5));
    let parameters = json!({ "predicate": "x".repeat(200_000) });
    table.commit_raw(&[json!({ "commitInfo": {
        "operation": "WRITE", "operationParameters": parameters, "inCommitTimestamp": FUTURE,
    } })]);
    sound(&table, &kind(), &[]);
    assert_eq!(ours(&table), FUTURE + 1);
}

#[test]
fn a_feature_that_is_not_turned_on_asks_for_none() {
    let table = log().table();
    let done = sound(&table, &kind(), &[]);
    assert_eq!(table.action(1, "commitInfo").get("inCommitTimestamp"), None);
    done.caught("where it is not due", |a| part(a, "commitInfo")["inCommitTimestamp"] = FUTURE.into());
}

#[test]
fn a_newest_entry_without_its_timestamp_is_corrupt_and_nothing_is_written() {
    let unstamped = stamped(log(), None);
    let later = stamped(log(), Some(5));
    later.commit_nothing();
    let second = stamped(log(), Some(5));
    let info = json!({ "commitInfo": { "operation": "WRITE", "inCommitTimestamp": 6 } });
    second.commit_raw(&[json!({ "txn": { "appId": "x", "version": 1 } }), info]);
    // As a loss of power may leave it.
    let empty = stamped(log(), Some(5));
    std::fs::write(empty.log_file(1), "").unwrap();
    for table in [unstamped, later, second, empty] {
        let error = refused_everywhere(&table, &kind(), "corrupt_log");
        assert!(error["message"].as_str().unwrap().contains("in-commit timestamps"), "{error}");
        assert!(error["hint"].as_str().unwrap().contains("nothing was changed"), "{error}");
    }
}

#[test]
fn a_table_without_its_timestamp_that_has_nothing_to_do_is_left_in_peace() {
    let table = stamped(log(), Some(5));
    sound(&table, &kind(), &[]);
    table.commit_nothing();
    assert_eq!(apply(&table, &kind()).table()["outcome"], "current");
}

/// Leaves nothing of the log but a checkpoint at version 0.
fn only_a_checkpoint(table: &Table, checksum: Option<Value>) -> Before {
    let before = Before::of(table);
    write_checkpoint(table, "00000000000000000000.checkpoint.parquet", &table.commit(0)[1..]);
    std::fs::remove_file(table.log_file(0)).unwrap();
    if let Some(checksum) = checksum {
        std::fs::write(table.log_file(0).with_extension("crc"), checksum.to_string()).unwrap();
    }
    before
}

#[test]
fn a_tip_that_is_only_a_checkpoint_takes_the_timestamp_from_its_checksum_file() {
    let table = stamped(log(), Some(FUTURE));
    let before = only_a_checkpoint(&table, Some(json!({ "inCommitTimestampOpt": FUTURE })));
    sound_after(&table, &kind(), &[], before);
    assert_eq!((ours(&table), table.versions()), (FUTURE + 1, vec![1]));
}

#[test]
fn a_tip_that_is_only_a_checkpoint_and_says_no_timestamp_is_corrupt() {
    for checksum in [None, Some(json!({})), Some(json!({ "inCommitTimestampOpt": null })), Some(json!("x"))] {
        let table = stamped(log(), Some(FUTURE));
        only_a_checkpoint(&table, checksum);
        refused_everywhere(&table, &kind(), "corrupt_log");
    }
}

#[tokio::test]
async fn the_timestamp_is_made_anew_after_a_lost_race() {
    let table = Arc::new(stamped(log(), Some(5)));
    let other = table.clone();
    let store = TrickStore::on_put(move |n| {
        if n < 2 {
            let info = json!({ "operation": "WRITE", "inCommitTimestamp": FUTURE + n as i64 * 1000 });
            other.commit_raw(&[json!({ "commitInfo": info })]);
        }
        Trick::Pass
    });
    let location = table.location_in(&store);
    let migrator = migrator(&kind());
    let report = migrator.migrate("facts", &location, Target::Newest, IfMissing::Refuse).await.unwrap();
    assert_eq!((report.attempts, table.newest()), (3, 3));
    assert_eq!(ours(&table), FUTURE + 1001);
}

#[tokio::test]
async fn timestamps_that_are_turned_on_in_a_lost_race_are_written_by_the_next_attempt() {
    let table = Arc::new(Log::new(vec![column("id", "long")]).table());
    let other = table.clone();
    let store = TrickStore::on_put(move |n| {
        if n == 0 {
            let mut metadata = other.metadata();
            metadata["configuration"]["delta.enableInCommitTimestamps"] = "true".into();
            let protocol = json!({ "minReaderVersion": 1, "minWriterVersion": 7,
                "writerFeatures": ["appendOnly", "invariants", "inCommitTimestamp"] });
            other.commit_raw(&[
                json!({ "commitInfo": { "operation": "SET", "inCommitTimestamp": FUTURE } }),
                json!({ "protocol": protocol }),
                json!({ "metaData": metadata }),
            ]);
        }
        Trick::Pass
    });
    let location = table.location_in(&store);
    let migrator = migrator(&kind());
    let report = migrator.migrate("facts", &location, Target::Newest, IfMissing::Refuse).await.unwrap();
    assert_eq!((report.attempts, ours(&table)), (2, FUTURE + 1));
    assert_eq!(table.property("delta.enableInCommitTimestamps").as_deref(), Some("true"));
}

#[tokio::test]
async fn a_new_table_with_timestamps_begins_with_one() {
    let table = Table::missing();
    let kind = "kind = \"facts\"\n[columns]\nid = \"long\"\n[properties]\n\"delta.enableInCommitTimestamps\" = \"true\"\n";
    assert_eq!(apply(&table, kind).table()["outcome"], "created");
    assert!(ours(&table) > 1_700_000_000_000);
    assert!(table.commit(0)[0].get("commitInfo").is_some());
    let more =
        format!("{kind}[[migrations]]\ndescription = \"one\"\n[migrations.add_columns]\nx = \"long\"\n");
    sound(&table, &more, &[]);
    assert_eq!(table.load().await.version(), Some(1));
}
