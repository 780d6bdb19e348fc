//! The version checksum: derived where the one before is right, left out otherwise.

use std::sync::Arc;

use delta_migrate::{IfMissing, TableReport, Target};
use serde_json::{Value, json};

use super::{adding, kind, sound};
use crate::support::rows::{append, read};
use crate::support::store::{Trick, TrickStore, forbidden, unavailable};
use crate::support::warnings::Warnings;
use crate::support::{FACTS, Log, Table, column, facts, migrator};

fn crc(table: &Table, version: u64) -> std::path::PathBuf {
    table.log_file(version).with_extension("crc")
}

/// The checksum of the newest version, as another writer leaves it.
fn write_checksum(table: &Table, change: impl FnOnce(&mut Value)) -> Value {
    let version = table.newest();
    let protocol = (0..=version)
        .rev()
        .flat_map(|v| table.commit(v))
        .find_map(|mut a| a.get_mut("protocol").map(Value::take));
    let adds = (0..=version).flat_map(|v| table.commit(v)).filter(|a| a.get("add").is_some());
    let sizes: Vec<u64> = adds.map(|a| a["add"]["size"].as_u64().unwrap()).collect();
    let mut checksum = json!({
        "txnId": "before", "tableSizeBytes": sizes.iter().sum::<u64>(), "numFiles": sizes.len(),
        "numDeletedRecordsOpt": 3, "numMetadata": 1, "numProtocol": 1,
        "setTransactions": [{ "appId": "sink", "version": 7, "lastUpdated": 1 }],
        "domainMetadata": [{ "domain": "app", "configuration": "{}", "removed": false }],
        "metadata": table.metadata(), "protocol": protocol.unwrap(),
        "histogramOpt": { "sortedBinBoundaries": [0, 8192], "fileCounts": [sizes.len(), 0], "totalBytes": [1, 0] },
        "future": [1, "x"],
    });
    change(&mut checksum);
    std::fs::write(crc(table, version), checksum.to_string()).unwrap();
    checksum
}

fn found(table: &Table, version: u64) -> Option<Value> {
    let text = std::fs::read_to_string(crc(table, version)).ok()?;
    Some(serde_json::from_str(&text).unwrap())
}

async fn migrate(table: &Table, store: &Arc<TrickStore>) -> TableReport {
    let migrator = migrator(FACTS);
    migrator.migrate("facts", &table.location_in(store), Target::Newest, IfMissing::Refuse).await.unwrap()
}

#[tokio::test]
async fn it_is_derived_from_the_one_before_and_deltalake_believes_it() {
    let table = facts().table();
    append(&table, &[crate::support::kinds::row(1)]).await;
    let before = write_checksum(&table, |_| ());
    let entry = sound(
        &table,
        FACTS,
        &[
            "comment:payload.lsn",
            "nullable:code",
            "description",
            "property:delta.logRetentionDuration",
            "property:owner",
        ],
    )
    .entry;
    let mut wanted = before;
    let txn = table.action(entry, "txn");
    wanted["txnId"] = table.action(entry, "commitInfo")["txnId"].clone();
    wanted["metadata"] = table.metadata();
    wanted["setTransactions"].as_array_mut().unwrap().push(txn);
    assert_eq!(found(&table, entry), Some(wanted));
    // Readers take protocol and metadata from it without a look at the entry.
    let text = std::fs::read_to_string(table.log_file(entry)).unwrap();
    std::fs::write(table.log_file(entry), text.replace("\"metaData\":", "\"unread\":")).unwrap();
    let store = TrickStore::counting();
    let loaded = table.load_in(&store).await;
    let names: Vec<String> = loaded.snapshot().unwrap().schema().fields().map(|f| f.name().clone()).collect();
    assert!(names.contains(&"tenant".to_owned()), "{names:?} {:?}", store.take());
    std::fs::write(table.log_file(entry), text).unwrap();
    let rows = read(&table).await;
    assert_eq!((rows.len(), &rows[0]["id"], &rows[0]["tenant"]), (1, &json!(1), &Value::Null));
}

#[test]
fn protocol_and_timestamp_are_those_of_the_commit() {
    let log = Log::new(vec![column("id", "long")]).features(&[], &["inCommitTimestamp"]);
    let table = super::timestamps::stamped(log, Some(5));
    write_checksum(&table, |c| c["inCommitTimestampOpt"] = 5.into());
    let kind = kind("enable_features = [\"timestampNtz\"]\n[migrations.add_columns]\nt = \"timestamp_ntz\"");
    sound(&table, &kind, &["protocol"]);
    let found = found(&table, 1).unwrap();
    assert_eq!(found["protocol"], table.action(1, "protocol"));
    assert_eq!(found["inCommitTimestampOpt"], table.action(1, "commitInfo")["inCommitTimestamp"]);
    assert!(found["inCommitTimestampOpt"].as_i64().unwrap() > 5);
    // Where timestamps are off, none is said, whatever the one before says.
    let table = Log::new(vec![column("id", "long")]).table();
    write_checksum(&table, |c| c["inCommitTimestampOpt"] = 5.into());
    sound(&table, &adding("more = \"long\""), &[]);
    assert_eq!(self::found(&table, 1).unwrap().get("inCommitTimestampOpt"), None);
}

#[test]
fn none_is_derived_from_one_that_is_garbage_or_disagrees() {
    let features = ["deletionVectors"];
    let log = || {
        let log =
            Log::new(vec![column("id", "long")]).features(&features, &["deletionVectors", "appendOnly"]);
        log.property("owner", "a")
    };
    type Change = fn(&mut Value);
    let changes: [(&str, Change); 11] = [
        ("id", |c| c["metadata"]["id"] = "other".into()),
        ("schema", |c| c["metadata"]["schemaString"] = "{\"type\":\"struct\",\"fields\":[]}".into()),
        ("property", |c| c["metadata"]["configuration"]["owner"] = "b".into()),
        ("more properties", |c| c["metadata"]["configuration"]["other"] = "b".into()),
        ("no metadata", |c| drop(c.as_object_mut().unwrap().remove("metadata"))),
        ("writer version", |c| c["protocol"]["minWriterVersion"] = 2.into()),
        ("a feature too few", |c| c["protocol"]["writerFeatures"] = json!(["deletionVectors"])),
        ("a feature too many", |c| {
            c["protocol"]["writerFeatures"].as_array_mut().unwrap().push("rowTracking".into());
        }),
        ("reader features", |c| c["protocol"]["readerFeatures"] = json!([])),
        ("two metadata", |c| c["numMetadata"] = 2.into()),
        ("no count", |c| drop(c.as_object_mut().unwrap().remove("numFiles"))),
    ];
    for (what, change) in changes {
        let table = log().table();
        write_checksum(&table, change);
        sound(&table, &adding("more = \"long\""), &[]);
        assert_eq!(found(&table, 1), None, "{what}");
    }
    for garbage in [&b""[..], b"{", b"null", b"[1]", b"\xff\xfe\x00"] {
        let table = log().table();
        std::fs::write(crc(&table, 0), garbage).unwrap();
        sound(&table, &adding("more = \"long\""), &[]);
        assert!(!crc(&table, 1).exists(), "{garbage:?}");
    }
    // Lists say the same in any order.
    let table = log().table();
    write_checksum(&table, |c| c["protocol"]["writerFeatures"] = json!(["appendOnly", "deletionVectors"]));
    sound(&table, &adding("more = \"long\""), &[]);
    assert!(found(&table, 1).is_some());
}

#[test]
fn none_is_made_without_one_at_the_version_that_was_read() {
    let table = Log::new(vec![column("id", "long")]).table();
    write_checksum(&table, |_| ());
    table.commit_nothing();
    sound(&table, &adding("more = \"long\""), &[]);
    assert_eq!((found(&table, 1), found(&table, 2)), (None, None));
}

#[tokio::test]
async fn one_that_is_there_is_never_replaced() {
    let table = Arc::new(facts().table());
    write_checksum(&table, |_| ());
    let other = table.clone();
    let store = TrickStore::on_put(move |n| {
        if n == 1 {
            std::fs::write(crc(&other, 1), "somebody's").unwrap();
        }
        Trick::Pass
    });
    let warnings = Warnings::listen();
    assert_eq!(migrate(&table, &store).await.outcome.as_str(), "migrated");
    assert_eq!(std::fs::read_to_string(crc(&table, 1)).unwrap(), "somebody's");
    assert_eq!((store.puts(), warnings.lines()), (2, Vec::new()));
}

#[tokio::test]
async fn one_that_can_not_be_written_is_a_warning() {
    for error in [forbidden, unavailable] {
        let table = facts().table();
        write_checksum(&table, |_| ());
        let store = TrickStore::on_put(move |n| if n == 1 { Trick::Instead(error()) } else { Trick::Pass });
        let warnings = Warnings::listen();
        let report = migrate(&table, &store).await;
        assert_eq!((report.outcome.as_str(), report.commits, store.puts()), ("migrated", 1, 2));
        assert_eq!((table.newest(), found(&table, 1)), (1, None));
        let lines = warnings.lines();
        assert!(lines.len() == 1 && lines[0].contains("checksum"), "{lines:?}");
        assert_eq!(table.load().await.version(), Some(1));
    }
}

#[tokio::test]
async fn a_lost_race_leaves_none_that_speaks_of_the_wrong_version() {
    let table = Arc::new(facts().table());
    write_checksum(&table, |_| ());
    let other = table.clone();
    let store = TrickStore::on_put(move |n| {
        if n == 0 {
            other.commit_nothing();
        }
        Trick::Pass
    });
    assert_eq!(migrate(&table, &store).await.log_version.unwrap().get(), 2);
    assert_eq!((found(&table, 1), found(&table, 2)), (None, None));
}
