//! The newest checksum file stands for the log where it says that nothing is to be done.

use serde_json::Value;

use super::*;

/// Says yes to a table whose metadata has this id.
fn settled(id: &'static str) -> impl Fn(&TableState) -> bool + Send + Sync {
    move |state| state.metadata.id == id
}

async fn quickly(store: &dyn ObjectStore, id: &'static str) -> LogRead {
    match read(store, Some(ID), &is_stamped, Some(&settled(id))).await.unwrap() {
        Found::Table(table) => table,
        Found::Nothing => panic!("there is a table"),
    }
}

fn checksum(protocol: &Value, metadata: &Value) -> Value {
    json!({
        "txnId": "t", "tableSizeBytes": 9, "numFiles": 9, "numMetadata": 1, "numProtocol": 1,
        "protocol": protocol["protocol"], "metadata": metadata["metaData"],
    })
}

fn crc(version: u64) -> String {
    format!("{version:020}.crc")
}

/// Seven versions, a checkpoint of the third, and a checksum file for `version`, which says `id`.
async fn log(version: u64, id: &str) -> Log {
    let log = Log::with(&[&[protocol(1, 2), stamped_metadata("a")]]).await;
    for version in 1..7 {
        log.commit(version, &[add(version)]).await;
    }
    log.checkpoint(2, &[protocol(1, 2), stamped_metadata("a")]).await;
    log.hint(2).await;
    log.put(&crc(version), checksum(&protocol(1, 2), &stamped_metadata(id)).to_string()).await;
    log
}

#[tokio::test]
async fn a_settled_table_costs_its_newest_commit_and_checksum_file() {
    let log = log(6, "a").await;
    let store = RecordingStore::new(log.store.clone());
    let read = quickly(&store, "a").await;
    assert_eq!((facts(&read), read.is_shortcut, read.checksum), ((6, "a", 2), true, true));
    assert_eq!(read.checkpoint, Some(LogVersion::new(2)));
    let mut requests = store.take();
    requests.sort();
    assert_eq!(
        requests,
        [
            "get _delta_log/00000000000000000006.crc",
            "get _delta_log/00000000000000000006.json",
            "get _delta_log/_last_checkpoint",
            "list _delta_log",
        ]
    );
    assert!(is_still(&store, &read.tip).await.unwrap());
}

#[tokio::test]
async fn commits_above_the_checksum_file_are_read_and_count() {
    let log = log(4, "a").await;
    let store = RecordingStore::new(log.store.clone());
    assert!(quickly(&store, "a").await.is_shortcut);
    assert_eq!((store.count(Verb::Get), store.count(Verb::GetRange)), (5, 0));
    log.commit(6, &[protocol(1, 4), stamped_metadata("b")]).await;
    let read = quickly(log.store.as_ref(), "b").await;
    assert_eq!((facts(&read), read.is_shortcut), ((6, "b", 4), true));
}

#[tokio::test]
async fn what_is_not_settled_is_read_from_the_log() {
    // A file that says something else than the log: nothing is done on its word.
    let log = log(6, "b").await;
    let read = quickly(log.store.as_ref(), "a").await;
    assert_eq!((facts(&read), read.is_shortcut), ((6, "a", 2), false));
    assert!(read.state.metadata.raw.is_some());
}

#[tokio::test]
async fn a_file_that_cannot_be_used_is_passed_over() {
    let good = checksum(&protocol(1, 2), &stamped_metadata("a"));
    let without = |key: &str| {
        let mut cut = good.clone();
        cut.as_object_mut().unwrap().remove(key);
        cut.to_string()
    };
    let unstamped = checksum(&protocol(1, 2), &metadata("a", json!({})));
    let two = json!({"numMetadata": 2});
    let mut several = good.clone();
    several["numMetadata"] = two["numMetadata"].clone();
    let texts = [
        String::new(),
        "{".to_owned(),
        good.to_string()[..80].to_owned(),
        without("protocol"),
        without("metadata"),
        several.to_string(),
        // Its evidence would have to be looked for.
        unstamped.to_string(),
        good.to_string().replace("\"id\":\"a\"", "\"id\":7"),
    ];
    for text in texts {
        let log = log(6, "a").await;
        log.put(&crc(6), text.clone()).await;
        let read = quickly(log.store.as_ref(), "a").await;
        assert_eq!((facts(&read), read.is_shortcut), ((6, "a", 2), false), "{text}");
    }
    let log = log(6, "a").await;
    log.put(&crc(6), good.to_string()).await;
    assert!(quickly(log.store.as_ref(), "a").await.is_shortcut);
}

#[tokio::test]
async fn a_file_that_is_older_than_its_commit_was_left_by_another_one() {
    let log = log(6, "a").await;
    // Entry 6 was taken away by hand, and somebody else's took its place.
    log.commit(6, &[add(6)]).await;
    let read = quickly(log.store.as_ref(), "a").await;
    assert!(!read.is_shortcut);
}

#[tokio::test]
async fn a_file_that_spares_nothing_is_not_read() {
    let log = Log::with(&[&[protocol(1, 2), stamped_metadata("a")], &[add(1)]]).await;
    log.put(&crc(1), checksum(&protocol(1, 2), &stamped_metadata("a")).to_string()).await;
    let store = RecordingStore::new(log.store.clone());
    assert!(!quickly(&store, "a").await.is_shortcut);
    assert_eq!((store.count(Verb::List), store.count(Verb::Get)), (1, 3));
}

#[tokio::test]
async fn files_far_below_the_newest_commit_or_without_one_are_passed_over() {
    let log = log(6, "a").await;
    for version in 7..7 + NEAR as u64 {
        log.commit(version, &[add(version)]).await;
    }
    assert!(!quickly(log.store.as_ref(), "a").await.is_shortcut);
    // For the checkpoint's own version, whose entry was cleaned up.
    let log = self::log(2, "a").await;
    for version in 0..=2 {
        log.remove(&commit_name(version)).await;
    }
    assert!(!quickly(log.store.as_ref(), "a").await.is_shortcut);
}

#[tokio::test]
async fn ten_thousand_commits_cost_no_more_than_two() {
    let log = Log::with(&[&[protocol(1, 2), stamped_metadata("a")]]).await;
    for version in 1..10_000 {
        log.commit(version, &[add(version)]).await;
    }
    log.put(&crc(9_999), checksum(&protocol(1, 2), &stamped_metadata("a")).to_string()).await;
    let store = RecordingStore::new(log.store.clone());
    let read = quickly(&store, "a").await;
    assert_eq!((facts(&read), read.is_shortcut), ((9_999, "a", 2), true));
    assert_eq!((store.count(Verb::List), store.count(Verb::Get)), (1, 3));
}
