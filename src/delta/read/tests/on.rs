//! Going on from an earlier read, and knowing that it still holds.

use super::*;

async fn on(store: &dyn ObjectStore, read: &LogRead) -> (LogRead, Since) {
    read_on(store, read.clone(), Some(ID), &is_stamped).await.unwrap()
}

#[tokio::test]
async fn nothing_new_costs_one_get() {
    let log = Log::with(&[&[protocol(1, 2), stamped_metadata("a")]]).await;
    let first = table(log.store.as_ref()).await;
    let store = RecordingStore::new(log.store.clone());
    let (read, since) = on(&store, &first).await;
    assert_eq!((facts(&read), since), ((0, "a", 2), Since::default()));
    assert_eq!(store.take(), ["get _delta_log/00000000000000000001.json"]);
    assert!(is_still(&store, &read.tip).await.unwrap());
    assert_eq!(store.take(), ["get-range _delta_log/00000000000000000000.json"]);
}

#[tokio::test]
async fn new_commits_are_added_and_counted() {
    let log = Log::with(&[&[protocol(1, 2), stamped_metadata("a")]]).await;
    let first = table(log.store.as_ref()).await;
    log.commit(1, &[add(1)]).await;
    let (second, since) = on(log.store.as_ref(), &first).await;
    assert_eq!(facts(&second), (1, "a", 2));
    assert_eq!(since, Since { commits: 1, metadata: false, protocol: false });
    log.commit(2, &[stamped_metadata("b")]).await;
    log.commit(3, &[protocol(1, 3)]).await;
    log.commit(4, &[protocol(1, 4), stamped_metadata("c")]).await;
    let (third, since) = on(log.store.as_ref(), &second).await;
    assert_eq!(facts(&third), (4, "c", 4));
    assert_eq!(since, Since { commits: 3, metadata: true, protocol: true });
    assert!(is_still(log.store.as_ref(), &third.tip).await.unwrap());
}

#[tokio::test]
async fn evidence_is_carried_on() {
    let log = Log::with(&[&[protocol(1, 2), metadata("a", json!({})), txn(ID, 1)]]).await;
    let evidence = |read: &LogRead| read.state.evidence.map(SchemaVersion::get);
    let first = table(log.store.as_ref()).await;
    log.commit(1, &[add(1)]).await;
    let (second, _) = on(log.store.as_ref(), &first).await;
    assert_eq!(evidence(&second), Some(1));
    log.commit(2, &[txn(ID, 2)]).await;
    let (third, _) = on(log.store.as_ref(), &second).await;
    assert_eq!(evidence(&third), Some(2));
    log.commit(3, &[stamped_metadata("b")]).await;
    let (fourth, _) = on(log.store.as_ref(), &third).await;
    assert_eq!(evidence(&fourth), None);

    // The stamp vanishes: only the log before the first read has the evidence.
    log.commit(4, &[metadata("c", json!({})), protocol(1, 3)]).await;
    let (fifth, since) = on(log.store.as_ref(), &fourth).await;
    assert_eq!((evidence(&fifth), facts(&fifth)), (Some(2), (4, "c", 3)));
    assert_eq!(since, Since { commits: 1, metadata: true, protocol: true });
}

#[tokio::test]
async fn a_replaced_or_vanished_tip_is_noticed() {
    let log = Log::with(&[&[protocol(1, 2), stamped_metadata("a")], &[add(1)]]).await;
    let read = table(log.store.as_ref()).await;
    // The same size and the same bytes, but another object.
    log.commit(1, &[add(1)]).await;
    assert!(!is_still(log.store.as_ref(), &read.tip).await.unwrap());
    let read = table(log.store.as_ref()).await;
    assert!(is_still(log.store.as_ref(), &read.tip).await.unwrap());
    log.remove(&commit_name(1)).await;
    assert!(!is_still(log.store.as_ref(), &read.tip).await.unwrap());
}

#[tokio::test]
async fn an_empty_tip_and_one_from_a_listing_are_recognised() {
    let log = Log::with(&[&[protocol(1, 2), stamped_metadata("a")], &[]]).await;
    let read = table(log.store.as_ref()).await;
    assert!(is_still(log.store.as_ref(), &read.tip).await.unwrap());
    // The newest commit is in the checkpoint and therefore not read.
    log.checkpoint(1, &[protocol(1, 2), stamped_metadata("a")]).await;
    let read = table(log.store.as_ref()).await;
    assert_eq!(read.tip.seen, Seen::Listed);
    assert_eq!(read.tip.meta.location.filename(), Some(commit_name(1).as_str()));
    assert!(is_still(log.store.as_ref(), &read.tip).await.unwrap());
    log.commit(1, &[]).await;
    assert!(!is_still(log.store.as_ref(), &read.tip).await.unwrap());
}

#[test]
fn tips_are_compared_as_stores_describe_them() {
    let time = |millis| chrono::DateTime::from_timestamp_millis(millis).unwrap();
    let meta = |millis, size, tag: Option<&str>| ObjectMeta {
        location: listing::commit_path(0),
        last_modified: time(millis),
        size,
        e_tag: tag.map(str::to_owned),
        version: None,
    };
    let tip = |seen, meta| Tip { log_version: LogVersion::new(0), meta, seen };
    let same = |seen, then, now| tip(seen, then).is(&now);
    let (listed, got) = (Seen::Listed, Seen::Got);
    // MinIO lists milliseconds and answers in seconds; Azure lists tags without quotes.
    assert!(same(listed, meta(1500, 1, Some("a")), meta(1000, 1, Some("\"a\""))));
    assert!(same(listed, meta(1500, 1, None), meta(1000, 1, Some("a"))));
    assert!(!same(listed, meta(1500, 1, None), meta(2000, 1, None)));
    assert!(!same(listed, meta(1000, 1, Some("a")), meta(1000, 1, Some("b"))));
    assert!(!same(got, meta(1000, 1, Some("a")), meta(2000, 1, Some("a"))));
    assert!(same(got, meta(1000, 1, None), meta(1000, 1, None)));
    assert!(!same(got, meta(1000, 1, None), meta(1000, 2, None)));
}

#[tokio::test]
async fn a_failing_store_is_no_answer() {
    let log = Log::with(&[&[protocol(1, 2), stamped_metadata("a")]]).await;
    let read = table(log.store.as_ref()).await;
    let store = RecordingStore::new(log.store.clone()).before(|_| Some(unavailable()));
    assert_eq!(is_still(&store, &read.tip).await.unwrap_err().code(), ErrorCode::Storage);
    let error = read_on(&store, read, Some(ID), &is_stamped).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::Storage);
}

#[tokio::test]
async fn a_bad_new_commit_is_corrupt_and_a_vanished_table_is_missing() {
    let log = Log::with(&[&[protocol(1, 2), stamped_metadata("a")]]).await;
    let read = table(log.store.as_ref()).await;
    log.put(&commit_name(1), "{\"metaData\":").await;
    let error = read_on(log.store.as_ref(), read.clone(), Some(ID), &is_stamped).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::CorruptLog);
    log.commit(1, &[metadata("b", json!({}))]).await;
    let inner: Arc<object_store::memory::InMemory> = log.store.clone();
    let store = RecordingStore::new(log.store.clone()).before(move |request| {
        if request.path.ends_with("_last_checkpoint") {
            for version in 0..2 {
                now(object_store::ObjectStoreExt::delete(inner.as_ref(), &listing::commit_path(version)))
                    .unwrap();
            }
        }
        None
    });
    let error = read_on(&store, read, Some(ID), &is_stamped).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::Missing);
}
