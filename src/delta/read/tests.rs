mod faults;
mod generated;
mod on;
mod shortcut;
mod tables;

use std::sync::Arc;

use serde_json::json;

use super::test_log::{Log, SCHEMA, add, commit_name, metadata, parquet, protocol, txn};
use super::*;
use crate::delta::test_store::{RecordingStore, Verb, now, unavailable};

const ID: &str = "app/orders";

fn is_stamped(configuration: &IndexMap<String, String>) -> bool {
    configuration.contains_key("app.schema_version")
}

async fn read_it(store: &dyn ObjectStore) -> Result<Found, Error> {
    read(store, Some(ID), &is_stamped, None).await
}

async fn table(store: &dyn ObjectStore) -> LogRead {
    match read_it(store).await.unwrap() {
        Found::Table(table) => table,
        Found::Nothing => panic!("there is a table"),
    }
}

async fn error(store: &dyn ObjectStore) -> Error {
    read_it(store).await.unwrap_err()
}

/// Log version, id of the metadata, writer version.
fn facts(table: &LogRead) -> (u64, &str, i64) {
    let TableState { log_version, metadata, protocol, .. } = &table.state;
    assert_eq!(*log_version, table.tip.log_version);
    (log_version.get(), &metadata.id, protocol.min_writer)
}

fn stamped_metadata(id: &str) -> serde_json::Value {
    metadata(id, json!({"app.schema_version": "1"}))
}

#[tokio::test]
async fn three_commits_cost_a_hint_a_list_and_three_gets() {
    let log = Log::with(&[&[protocol(1, 2), stamped_metadata("a")], &[add(1)], &[add(2)]]).await;
    let store = RecordingStore::new(log.store.clone());
    assert_eq!(facts(&table(&store).await), (2, "a", 2));
    assert_eq!(
        store.take(),
        [
            "get _delta_log/_last_checkpoint",
            "list _delta_log",
            "get _delta_log/00000000000000000002.json",
            "get _delta_log/00000000000000000001.json",
            "get _delta_log/00000000000000000000.json",
        ]
    );
}

#[tokio::test]
async fn a_checkpoint_and_two_commits_cost_one_request_more() {
    let log = Log::with(&[&[protocol(1, 2), stamped_metadata("a")], &[add(1)], &[add(2)], &[add(3)]]).await;
    log.checkpoint(1, &[protocol(1, 2), stamped_metadata("a"), add(1)]).await;
    log.hint(1).await;
    let store = RecordingStore::new(log.store.clone());
    assert_eq!(facts(&table(&store).await), (3, "a", 2));
    assert_eq!(
        store.take(),
        [
            "get _delta_log/_last_checkpoint",
            "list _delta_log",
            "get _delta_log/00000000000000000003.json",
            "get _delta_log/00000000000000000002.json",
            "get-range _delta_log/00000000000000000001.checkpoint.parquet",
        ]
    );
}

#[tokio::test]
async fn the_checkpoint_is_left_alone_if_the_commits_say_all() {
    let log = Log::new();
    log.checkpoint(5, &[protocol(1, 2), metadata("old", json!({}))]).await;
    log.commit(6, &[protocol(1, 4), stamped_metadata("new")]).await;
    log.commit(7, &[add(1)]).await;
    let store = RecordingStore::new(log.store.clone());
    assert_eq!(facts(&table(&store).await), (7, "new", 4));
    assert_eq!(store.count(Verb::GetRange), 0);
    assert_eq!((store.count(Verb::List), store.count(Verb::Get), store.count(Verb::Head)), (1, 3, 0));
}

#[tokio::test]
async fn a_long_log_is_read_no_further_than_needed() {
    let log = Log::with(&[&[protocol(1, 2), metadata("a", json!({}))]]).await;
    for version in 1..100 {
        log.commit(version, &[add(version)]).await;
    }
    log.commit(60, &[stamped_metadata("b"), protocol(1, 3)]).await;
    let store = RecordingStore::new(log.store.clone());
    assert_eq!(facts(&table(&store).await), (99, "b", 3));
    let gets = store.count(Verb::Get);
    assert!((41..=1 + 40 + FAR_IN_FLIGHT).contains(&gets), "{gets}");
}

#[tokio::test]
async fn the_newest_metadata_and_protocol_win() {
    let log = Log::with(&[
        &[protocol(1, 2), stamped_metadata("a")],
        &[stamped_metadata("b"), stamped_metadata("c")],
        &[protocol(1, 4), protocol(1, 3)],
        &[add(1)],
    ])
    .await;
    assert_eq!(facts(&table(log.store.as_ref()).await), (3, "c", 3));
}

#[tokio::test]
async fn the_raw_metadata_is_kept_byte_for_byte() {
    let raw = format!(
        r#"{{ "schemaString":{},"id":"a", "new": [1.50, null] ,"format":{{"provider":"parquet","options":{{"x":"y"}}}}}}"#,
        json!(SCHEMA)
    );
    let log = Log::new();
    let text = format!(
        "{{\"protocol\":{{\"minReaderVersion\":1,\"minWriterVersion\":2}}}}\n{{\"metaData\": {raw} }}"
    );
    log.put(&commit_name(0), text).await;
    assert_eq!(table(log.store.as_ref()).await.state.metadata.raw.as_deref(), Some(raw.as_str()));
}

#[tokio::test]
async fn any_checkpoint_will_do_and_the_newest_complete_one_is_taken() {
    let rows = |id: &str| vec![protocol(1, 2), stamped_metadata(id), add(1)];
    let lines = |id: &str| rows(id).iter().map(|r| format!("{r}\n")).collect::<String>();
    let v = "00000000000000000009";
    let uuid = "016ae953-37a9-438e-8683-9a9a4a79a395";
    for (name, bytes) in [
        (format!("{v}.checkpoint.parquet"), parquet(&rows("x"), 9, true)),
        (format!("{v}.checkpoint.{uuid}.parquet"), parquet(&rows("x"), 9, false)),
        (format!("{v}.checkpoint.{uuid}.json"), lines("x").into_bytes()),
        (format!("{v}.checkpoint.0000000001.0000000001.parquet"), parquet(&rows("x"), 1, true)),
    ] {
        let log = Log::new();
        log.checkpoint(4, &rows("old")).await;
        for version in 5..12 {
            log.commit(version, &[add(version)]).await;
        }
        assert_eq!(facts(&table(log.store.as_ref()).await), (11, "old", 2));
        log.put(&name, bytes).await;
        // A hint may be older than the newest checkpoint.
        log.hint(4).await;
        assert_eq!(facts(&table(log.store.as_ref()).await), (11, "x", 2), "{name}");
    }
}

#[tokio::test]
async fn all_parts_are_looked_at_and_incomplete_checkpoints_are_none() {
    let log = Log::with(&[&[protocol(1, 2), stamped_metadata("old")], &[], &[]]).await;
    let part = |n| format!("00000000000000000001.checkpoint.{n:010}.0000000003.parquet");
    log.put(&part(1), parquet(&[add(1)], 9, true)).await;
    log.put(&part(3), parquet(&[protocol(1, 3)], 9, true)).await;
    assert_eq!(facts(&table(log.store.as_ref()).await), (2, "old", 2));
    log.put(&part(2), parquet(&[add(2), stamped_metadata("x")], 9, true)).await;
    assert_eq!(facts(&table(log.store.as_ref()).await), (2, "x", 3));
}

#[tokio::test]
async fn a_checkpoint_without_commits_is_a_log() {
    let log = Log::new();
    log.checkpoint(8, &[protocol(1, 2), stamped_metadata("a")]).await;
    let read = table(log.store.as_ref()).await;
    assert_eq!(facts(&read), (8, "a", 2));
    assert!(is_still(log.store.as_ref(), &read.tip).await.unwrap());
    log.commit(7, &[add(1)]).await;
    assert_eq!(facts(&table(log.store.as_ref()).await), (8, "a", 2));
}

#[tokio::test]
async fn hints_only_ever_save_work() {
    let log = Log::with(&[&[protocol(1, 2), stamped_metadata("a")], &[add(1)], &[add(2)]]).await;
    log.checkpoint(1, &[protocol(1, 2), stamped_metadata("a")]).await;
    for hint in ["", "{", "[]", "null", "{\"version\":-1}", "{\"version\":99999999999999999999}"] {
        log.put("_last_checkpoint", hint).await;
        let store = RecordingStore::new(log.store.clone());
        assert_eq!(facts(&table(&store).await), (2, "a", 2), "{hint}");
        assert_eq!(store.count(Verb::List), 1, "{hint}");
    }
    // One that names what is gone, inside the log and beyond its end.
    for version in [2, 50] {
        log.hint(version).await;
        let store = RecordingStore::new(log.store.clone());
        assert_eq!(facts(&table(&store).await), (2, "a", 2), "{version}");
        assert_eq!(store.count(Verb::List), 2, "{version}");
    }
}

#[tokio::test]
async fn evidence_is_looked_up_without_a_stamp_only() {
    let old = [protocol(1, 2), metadata("a", json!({})), txn(ID, 3), txn("other", 9)];
    let log = Log::new();
    log.checkpoint(3, &old).await;
    log.commit(4, &[add(1)]).await;
    let evidence = |read: LogRead| read.state.evidence.map(SchemaVersion::get);
    assert_eq!(evidence(table(log.store.as_ref()).await), Some(3));
    // Nobody asked.
    let Found::Table(read) = read(log.store.as_ref(), None, &is_stamped, None).await.unwrap() else {
        panic!()
    };
    assert_eq!(evidence(read), None);

    log.commit(5, &[metadata("b", json!({})), protocol(1, 2)]).await;
    assert_eq!(evidence(table(log.store.as_ref()).await), Some(3));
    log.commit(6, &[txn(ID, 5)]).await;
    log.commit(7, &[txn("other", 6)]).await;
    let store = RecordingStore::new(log.store.clone());
    assert_eq!(evidence(table(&store).await), Some(5));
    assert_eq!(store.count(Verb::GetRange), 0);

    // With a stamp, evidence says nothing, wherever the read ended.
    log.commit(8, &[stamped_metadata("c"), txn(ID, 6)]).await;
    assert_eq!(evidence(table(log.store.as_ref()).await), None);
}

#[tokio::test]
async fn evidence_is_found_in_every_form_of_checkpoint() {
    let rows = [add(1), txn("other", 1), protocol(1, 2), metadata("a", json!({})), add(2), txn(ID, 1 << 40)];
    let lines: String = rows.iter().map(|r| format!("{r}\n")).collect();
    let uuid = "016ae953-37a9-438e-8683-9a9a4a79a395";
    for (name, bytes) in [
        ("00000000000000000009.checkpoint.parquet".to_owned(), parquet(&rows, 1, true)),
        ("00000000000000000009.checkpoint.parquet".to_owned(), parquet(&rows, 2, false)),
        (format!("00000000000000000009.checkpoint.{uuid}.json"), lines.into_bytes()),
    ] {
        for newer in [vec![add(3)], vec![protocol(1, 2), metadata("b", json!({}))]] {
            let log = Log::new();
            log.put(&name, bytes.clone()).await;
            log.commit(10, &newer).await;
            let evidence = table(log.store.as_ref()).await.state.evidence;
            assert_eq!(evidence, Some(SchemaVersion::new(u32::MAX)), "{name}");
        }
    }
}

#[tokio::test]
async fn local_files_are_read_on_a_single_thread() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("_delta_log");
    std::fs::create_dir(&log).unwrap();
    let mut text = String::new();
    for file in 0..30_000 {
        text.push_str(&format!("{}\n", add(file)));
    }
    text.push_str(&format!("{}\n{}", protocol(1, 2), stamped_metadata("a")));
    assert!(text.len() > 3 << 20);
    std::fs::write(log.join(commit_name(0)), &text).unwrap();
    // Leftovers of unfinished writes.
    std::fs::write(log.join(format!("{}#1", commit_name(1))), "{").unwrap();
    std::fs::write(log.join(format!(".{}.crc", commit_name(0))), "x").unwrap();
    let store = object_store::local::LocalFileSystem::new_with_prefix(dir.path()).unwrap();
    let read = table(&store).await;
    assert_eq!(facts(&read), (0, "a", 2));
    assert!(is_still(&store, &read.tip).await.unwrap());
}

#[test]
fn a_read_can_move_between_threads() {
    fn is_send<T: Send>(_: &T) {}
    let log = Log::new();
    let store: &dyn ObjectStore = log.store.as_ref();
    is_send(&read(store, None, &|_| true, None));
    let meta = ObjectMeta {
        location: listing::commit_path(0),
        last_modified: chrono::DateTime::UNIX_EPOCH,
        size: 0,
        e_tag: None,
        version: None,
    };
    is_send(&is_still(store, &Tip { log_version: LogVersion::new(0), meta, seen: Seen::Got }));
}
