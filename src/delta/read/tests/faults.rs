//! Logs that are broken, and stores that fail or change while they are read.

use futures::FutureExt as _;
use object_store::ObjectStoreExt as _;
use object_store::path::Path;

use super::*;

async fn refusal(log: &Log) -> (ErrorCode, String) {
    let error = error(log.store.as_ref()).await;
    assert!(error.hint().is_some(), "{error}");
    (error.code(), error.message().to_owned())
}

fn corrupt_log(message: &str) -> (ErrorCode, String) {
    (ErrorCode::CorruptLog, message.to_owned())
}

#[tokio::test]
async fn missing_versions_are_named() {
    let log = Log::with(&[&[protocol(1, 2), stamped_metadata("a")], &[], &[], &[]]).await;
    log.remove(&commit_name(2)).await;
    assert_eq!(
        refusal(&log).await,
        corrupt_log("log version `2` is missing below version `3` and there is no complete checkpoint")
    );
    log.remove(&commit_name(0)).await;
    assert_eq!(
        refusal(&log).await.1,
        "log version `0` is missing below version `3` and there is no complete checkpoint"
    );
    log.checkpoint(1, &[protocol(1, 2), stamped_metadata("a")]).await;
    assert_eq!(refusal(&log).await, corrupt_log("log version `2` is missing below version `3`"));
    log.hint(1).await;
    assert_eq!(refusal(&log).await, corrupt_log("log version `2` is missing below version `3`"));
}

/// Reading a local folder while others write can pass over a file and show a later one.
#[tokio::test]
async fn a_version_that_only_the_listing_lacks_is_no_gap() {
    let log = Log::with(&[&[protocol(1, 2), stamped_metadata("a")], &[add(1)], &[add(2)], &[add(3)]]).await;
    for hidden in [0, 2] {
        let path = format!("_delta_log/{hidden:020}.json");
        let store = RecordingStore::new(log.store.clone()).hide(&path);
        let found = read(&store, None, &|_| true, None).await.unwrap();
        let Found::Table(found) = found else { panic!("{found:?}") };
        assert_eq!(found.state.log_version.get(), 3);
        assert_eq!(store.count(Verb::List), 1, "one listing is enough");
    }
}

#[tokio::test]
async fn missing_actions_are_named() {
    let log = Log::with(&[&[metadata("a", json!({}))], &[add(1)]]).await;
    assert_eq!(refusal(&log).await, corrupt_log("the log up to version `1` has no protocol action"));
    let log = Log::with(&[&[protocol(1, 2)]]).await;
    assert_eq!(refusal(&log).await, corrupt_log("the log up to version `0` has no metaData action"));
    let log = Log::with(&[&[protocol(1, 2), metadata("a", json!({}))], &[], &[add(1)]]).await;
    log.checkpoint(1, &[metadata("a", json!({})), add(1)]).await;
    assert_eq!(refusal(&log).await, corrupt_log("the log up to version `2` has no protocol action"));
}

#[tokio::test]
async fn actions_that_cannot_be_used_are_refused_where_they_stand() {
    let broken = |change: serde_json::Value| {
        let mut action = metadata("a", json!({}));
        for (key, value) in change.as_object().unwrap() {
            action["metaData"][key] = value.clone();
        }
        action
    };
    let schema = |types: &str| json!({"schemaString": format!(r#"{{"type":"struct","fields":[{types}]}}"#)});
    let column = |name: &str, data_type: &str| {
        format!(r#"{{"name":"{name}","type":"{data_type}","nullable":true,"metadata":{{}}}}"#)
    };
    let twins = format!("{},{}", column("a", "long"), column("A", "long"));
    for (change, code) in [
        (json!({"schemaString": null}), ErrorCode::CorruptLog),
        (json!({"schemaString": "no JSON"}), ErrorCode::CorruptLog),
        (json!({"id": 3}), ErrorCode::CorruptLog),
        (json!({"configuration": {"a": null}}), ErrorCode::CorruptLog),
        (schema(&column("a", "char(10)")), ErrorCode::UnsupportedFeature),
        (schema(&twins), ErrorCode::InvalidName),
    ] {
        let log = Log::with(&[&[protocol(1, 2), broken(change.clone())]]).await;
        let (found, message) = refusal(&log).await;
        assert_eq!(found, code, "{change}: {message}");
        assert!(message.starts_with("`_delta_log/00000000000000000000.json`, line 2: "), "{message}");

        // In a checkpoint, where absent and null are the same.
        if change["id"].is_null() {
            let log = Log::new();
            log.checkpoint(3, &[protocol(1, 2), broken(change.clone())]).await;
            let (found, message) = refusal(&log).await;
            assert_eq!(found, code, "{change}: {message}");
            assert!(
                message.starts_with("`_delta_log/00000000000000000003.checkpoint.parquet`: "),
                "{message}"
            );
        }
    }
}

#[tokio::test]
async fn a_garbage_line_is_corrupt_only_where_it_matters() {
    let log = Log::with(&[&[protocol(1, 2), stamped_metadata("a")]]).await;
    log.put(&commit_name(1), "{\"add\":{broken\n\n").await;
    assert_eq!(facts(&table(log.store.as_ref()).await), (1, "a", 2));
    log.put(&commit_name(1), "\n{\"protocol\":{\"minReaderVersion\"").await;
    let (code, message) = refusal(&log).await;
    assert_eq!(code, ErrorCode::CorruptLog);
    assert!(message.starts_with("`_delta_log/00000000000000000001.json`, line 2: "), "{message}");
}

#[tokio::test]
async fn an_unreadable_checkpoint_sends_further_back() {
    let rows = [protocol(1, 2), stamped_metadata("a"), add(1)];
    let good = parquet(&rows, 9, true);
    let garbage: [Vec<u8>; 5] = [
        vec![],
        b"short".to_vec(),
        b"no Parquet, but long enough".to_vec(),
        good[..good.len() - 5].to_vec(),
        // The data is gone, the footer is not.
        [vec![0; 200], good[200..].to_vec()].concat(),
    ];
    for bytes in garbage {
        let log = Log::with(&[&[protocol(1, 2), stamped_metadata("a")], &[], &[], &[], &[]]).await;
        log.put("00000000000000000003.checkpoint.parquet", bytes.clone()).await;
        log.hint(3).await;
        assert_eq!(facts(&table(log.store.as_ref()).await), (4, "a", 2), "{bytes:?}");
        log.remove(&commit_name(0)).await;
        assert_eq!(
            refusal(&log).await,
            corrupt_log("checkpoint `_delta_log/00000000000000000003.checkpoint.parquet` can't be read")
        );
        log.checkpoint(1, &rows).await;
        assert_eq!(facts(&table(log.store.as_ref()).await), (4, "a", 2));
        log.remove(&commit_name(2)).await;
        assert_eq!(refusal(&log).await.0, ErrorCode::CorruptLog);
    }
}

#[tokio::test]
async fn no_table_is_nothing_or_something_else() {
    let log = Log::new();
    let store = RecordingStore::new(log.store.clone());
    assert!(matches!(read_it(&store).await.unwrap(), Found::Nothing));
    assert_eq!(store.take(), ["get _delta_log/_last_checkpoint", "list _delta_log", "list-with-delimiter "]);
    for staged in ["00000000000000000000.json#1", ".tmp/x", "_tmp_path", "_commit_1.json.tmp"] {
        log.put(staged, "x").await;
        assert!(matches!(read_it(log.store.as_ref()).await.unwrap(), Found::Nothing), "{staged}");
    }
    for path in ["part-0.parquet", "year=2020/part-1.parquet", "_change_data/a"] {
        log.store.put(&Path::from(path), "x".into()).await.unwrap();
    }
    assert_eq!(
        refusal(&log).await,
        (ErrorCode::NotATable, "there is no Delta log, but 1 object and 2 folders".to_owned())
    );
    for other in ["00000000000000000000.crc", "_sidecars/a.parquet", "readme"] {
        log.put(other, "x").await;
        let wanted = "`_delta_log` holds 1 file but neither a commit nor a complete checkpoint";
        assert_eq!(refusal(&log).await, corrupt_log(wanted), "{other}");
        log.remove(other).await;
    }
    log.hint(3).await;
    assert_eq!(refusal(&log).await.0, ErrorCode::CorruptLog);
    log.remove("_last_checkpoint").await;
    log.put("00000000000000000003.checkpoint.0000000001.0000000002.parquet", "x").await;
    assert_eq!(refusal(&log).await.0, ErrorCode::CorruptLog);
}

/// Between the listing of the log and the one of the folder another writer creates the table, and writes.
#[tokio::test]
async fn a_table_that_is_created_during_the_read_is_a_table() {
    let made = Log::new();
    made.commit(0, &[protocol(1, 2), metadata("a", json!({}))]).await;
    let log = Log::new();
    let (from, to) = (made.store.clone(), log.store.clone());
    let once = std::sync::Once::new();
    let store = RecordingStore::new(log.store.clone()).before(move |request| {
        if request.verb == Verb::ListWithDelimiter {
            once.call_once(|| {
                let path = Path::from(format!("_delta_log/{}", commit_name(0)));
                let bytes = from.get(&path).now_or_never().unwrap().unwrap().bytes().now_or_never().unwrap();
                to.put(&path, bytes.unwrap().into()).now_or_never().unwrap().unwrap();
                to.put(&Path::from("part-0.parquet"), "x".into()).now_or_never().unwrap().unwrap();
            });
        }
        None
    });
    assert_eq!(facts(&table(&store).await), (0, "a", 2));
}

#[tokio::test]
async fn a_file_is_no_table_and_a_missing_folder_is_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let root = object_store::local::LocalFileSystem::new_with_prefix(dir.path()).unwrap();
    std::fs::write(dir.path().join("file"), "x").unwrap();
    let below = |name: &str| object_store::prefix::PrefixStore::new(root.clone(), name);
    assert_eq!(error(&below("file")).await.code(), ErrorCode::NotATable);
    assert!(matches!(read_it(&below("none")).await.unwrap(), Found::Nothing));
    std::fs::create_dir_all(dir.path().join("empty/_delta_log")).unwrap();
    assert!(matches!(read_it(&below("empty")).await.unwrap(), Found::Nothing));
}

#[tokio::test]
async fn a_failing_store_is_named_as_such() {
    let log = Log::with(&[&[protocol(1, 2), stamped_metadata("a")], &[add(1)]]).await;
    log.checkpoint(0, &[protocol(1, 2), stamped_metadata("a")]).await;
    for part in ["_last_checkpoint", "list ", "1.json", "checkpoint.parquet"] {
        let store = RecordingStore::new(log.store.clone())
            .before(move |request| request.to_string().contains(part).then(unavailable));
        let error = error(&store).await;
        assert_eq!((error.code(), error.stage()), (ErrorCode::Storage, Stage::Read), "{part}");
        assert!(error.is_retryable());
        assert!(error.causes().iter().any(|c| c.contains("503")), "{:?}", error.causes());
    }
    let store = RecordingStore::new(Log::new().store)
        .before(|request| (request.verb == Verb::ListWithDelimiter).then(unavailable));
    assert_eq!(error(&store).await.code(), ErrorCode::Storage);
}

/// A log of five commits with a checkpoint at 1; the newest commit needs all of it.
async fn checkpointed() -> Log {
    let log = Log::with(&[&[protocol(1, 2), stamped_metadata("a")], &[], &[], &[], &[]]).await;
    log.checkpoint(1, &[protocol(1, 2), stamped_metadata("a")]).await;
    log
}

#[tokio::test]
async fn a_log_that_is_cleaned_up_meanwhile_is_read_again() {
    let log = checkpointed().await;
    log.hint(1).await;
    let inner = log.store.clone();
    // Right before the first get of a commit, a newer checkpoint is written and old files go.
    let newer = parquet(&[protocol(1, 2), stamped_metadata("b")], 9, true);
    let store = RecordingStore::new(log.store.clone()).before(move |request| {
        if request.path.ends_with("2.json") {
            let path = Path::from("_delta_log/00000000000000000003.checkpoint.parquet");
            now(inner.put(&path, newer.clone().into())).unwrap();
            for version in 0..4 {
                drop(now(inner.delete(&listing::commit_path(version))));
            }
        }
        None
    });
    assert_eq!(facts(&table(&store).await), (4, "b", 2));
    assert_eq!(store.count(Verb::List), 2);
}

#[tokio::test]
async fn a_checkpoint_that_is_gone_or_written_anew_is_listed_again() {
    let path = Path::from("_delta_log/00000000000000000001.checkpoint.parquet");
    for anew in [None, Some(parquet(&[protocol(1, 2), stamped_metadata("another")], 1, false))] {
        let log = checkpointed().await;
        let (inner, path, done) = (log.store.clone(), path.clone(), std::sync::Once::new());
        let wanted = if anew.is_some() { "another" } else { "a" };
        let store = RecordingStore::new(log.store.clone()).before(move |request| {
            if request.path.ends_with("checkpoint.parquet") {
                done.call_once(|| match &anew {
                    Some(bytes) => drop(now(inner.put(&path, bytes.clone().into())).unwrap()),
                    None => now(inner.delete(&path)).unwrap(),
                });
            }
            None
        });
        assert_eq!(facts(&table(&store).await), (4, wanted, 2));
        assert_eq!(store.count(Verb::List), 2);
    }
}

#[tokio::test]
async fn files_that_keep_vanishing_are_the_stores_fault() {
    let log = checkpointed().await;
    let store = RecordingStore::new(log.store.clone()).before(|request| {
        let gone = object_store::Error::NotFound { path: request.path.clone(), source: "gone".into() };
        request.path.ends_with("3.json").then_some(gone)
    });
    let error = error(&store).await;
    assert_eq!((error.code(), error.is_retryable()), (ErrorCode::Storage, true));
    assert_eq!(
        error.message(),
        "`_delta_log/00000000000000000003.json` was listed but is gone, 4 times in a row"
    );
    assert_eq!(store.count(Verb::List), RESTARTS + 1);
}

#[tokio::test]
async fn a_gap_that_only_one_listing_shows_is_none() {
    let log = checkpointed().await;
    log.remove(&commit_name(3)).await;
    let (inner, lists) = (log.store.clone(), std::sync::atomic::AtomicUsize::new(0));
    let store = RecordingStore::new(log.store.clone()).before(move |request| {
        let nth = if request.verb == Verb::List {
            lists.fetch_add(1, std::sync::atomic::Ordering::SeqCst)
        } else {
            0
        };
        if nth == 1 {
            now(inner.put(&listing::commit_path(3), "\n".into())).unwrap();
        }
        None
    });
    assert_eq!(facts(&table(&store).await), (4, "a", 2));
}

#[tokio::test]
async fn what_was_put_into_the_place_of_an_entry_that_was_cleaned_up_is_not_taken_for_it() {
    let log = Log::with(&[&[protocol(1, 2), stamped_metadata("a")], &[add(1)], &[add(2)]]).await;
    let (inner, done) = (log.store.clone(), std::sync::Once::new());
    let checkpoint = parquet(&[protocol(1, 2), stamped_metadata("a")], 9, true);
    let late = format!("{}\n{}\n", protocol(1, 2), stamped_metadata("late"));
    // After the listing, the log is cleaned up behind a checkpoint at 2, and a release that found no table
    // creates one. The newest entry stays as it was.
    let store = RecordingStore::new(log.store.clone()).before(move |request| {
        if request.path.ends_with("2.json") {
            done.call_once(|| {
                let path = Path::from("_delta_log/00000000000000000002.checkpoint.parquet");
                now(inner.put(&path, checkpoint.clone().into())).unwrap();
                now(inner.delete(&listing::commit_path(1))).unwrap();
                now(inner.put(&listing::commit_path(1), "\n".into())).unwrap();
                now(inner.put(&listing::commit_path(0), late.clone().into())).unwrap();
            });
        }
        None
    });
    assert_eq!(facts(&table(&store).await), (2, "a", 2));
    assert_eq!(store.count(Verb::List), 2);
}

#[test]
fn a_store_that_describes_one_object_in_two_ways_is_believed() {
    let meta = |version, tag: &str| ObjectMeta {
        location: listing::commit_path(version),
        last_modified: chrono::DateTime::UNIX_EPOCH,
        size: 1,
        e_tag: Some(tag.to_owned()),
        version: None,
    };
    let mut unlike = Unlike::default();
    assert!(!unlike.differs(&meta(3, "a"), &meta(3, "a")));
    assert!(unlike.differs(&meta(3, "a"), &meta(3, "b")));
    // Another answer is another object; the same one says that nothing was exchanged, nor anything else.
    assert!(unlike.differs(&meta(3, "a"), &meta(3, "c")));
    assert!(!unlike.differs(&meta(3, "a"), &meta(3, "c")));
    assert!(!unlike.differs(&meta(2, "a"), &meta(2, "b")));
}
