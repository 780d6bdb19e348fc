use std::sync::Arc;

use object_store::ObjectStoreExt as _;
use object_store::memory::InMemory;
use object_store::path::Path;
use serde_json::{Value, json};

use super::super::test_log::{add, metadata, parquet, protocol, txn};
use super::*;
use crate::delta::test_store::RecordingStore;

async fn stored(files: &[Vec<u8>]) -> (Arc<InMemory>, Checkpoint) {
    let store = Arc::new(InMemory::new());
    let mut metas = Vec::new();
    for (at, bytes) in files.iter().enumerate() {
        let path = Path::from(format!("part-{at}"));
        store.put(&path, bytes.clone().into()).await.unwrap();
        metas.push(store.head(&path).await.unwrap());
    }
    (store, Checkpoint { version: 1, format: Format::Parquet, files: metas })
}

async fn actions(bytes: Vec<u8>) -> Result<Actions, Fault> {
    let (store, checkpoint) = stored(&[bytes]).await;
    Reader::new(store.as_ref(), &checkpoint, None).actions(true, true).await
}

fn parsed(raw: Option<Raw>) -> Value {
    serde_json::from_str(&raw.unwrap().text).unwrap()
}

#[tokio::test]
async fn rows_become_the_json_of_a_commit() {
    let mut action = metadata("a", json!({"z": "1", "a": null, "m": ""}));
    let change = action["metaData"].as_object_mut().unwrap();
    change.insert("description".to_owned(), json!("é \"quoted\"\n"));
    change.insert("partitionColumns".to_owned(), json!(["p", "q"]));
    change.insert("fromTheFuture".to_owned(), json!(9_007_199_254_740_993_i64));
    change["format"]["options"] = json!({"k": "v"});
    let features = json!({"protocol": {"minReaderVersion": 3, "minWriterVersion": 7,
        "readerFeatures": [], "writerFeatures": ["x"]}});
    let found = actions(parquet(&[add(1), features.clone(), action.clone()], 9, true)).await.unwrap();
    assert_eq!(parsed(found.protocol), features["protocol"]);
    let text = found.metadata.as_ref().unwrap().text.clone();
    assert_eq!(parsed(found.metadata), action["metaData"]);
    // A null value is not dropped, and the order of properties is kept.
    assert!(text.contains(r#""configuration":{"z":"1","a":null,"m":""}"#), "{text}");
    assert!(!text.contains("\"name\""), "{text}");
}

#[tokio::test]
async fn absent_fields_stay_absent_and_a_format_has_options() {
    let bare = json!({"metaData": {"id": "a", "format": {"provider": "parquet"}}});
    let found =
        actions(parquet(&[bare, json!({"protocol": {"minReaderVersion": 1}})], 9, true)).await.unwrap();
    let wanted = json!({"id": "a", "format": {"provider": "parquet", "options": {}}});
    assert_eq!(parsed(found.metadata), wanted);
    assert_eq!(parsed(found.protocol), json!({"minReaderVersion": 1}));
    let without = actions(parquet(&[json!({"metaData": {"id": "a"}})], 9, true)).await.unwrap();
    assert_eq!(parsed(without.metadata), json!({"id": "a"}));
    assert!(without.protocol.is_none());
}

#[tokio::test]
async fn row_groups_without_the_action_are_passed_over() {
    let rows = [add(1), protocol(1, 2), add(2), metadata("a", json!({})), txn("x", 1), add(3)];
    let groups = |statistics| {
        let bytes = parquet(&rows, 1, statistics);
        async move {
            let (store, checkpoint) = stored(&[bytes]).await;
            let part = open(store.as_ref(), &checkpoint.files[0]).await.unwrap();
            let holding = |sought: Sought| -> Vec<usize> {
                let groups = part.footer.metadata().row_groups().iter().enumerate();
                groups.filter(|(_, g)| can_hold(g, &sought.roots())).map(|(at, _)| at).collect()
            };
            [
                holding(Sought::Actions { protocol: true, metadata: true }),
                holding(Sought::Actions { protocol: false, metadata: true }),
                holding(Sought::Txn("x".to_owned())),
            ]
        }
    };
    assert_eq!(groups(true).await, [vec![1, 3], vec![3], vec![4]]);
    let all = vec![0, 1, 2, 3, 4, 5];
    assert_eq!(groups(false).await, [all.clone(), all.clone(), all]);
}

#[tokio::test]
async fn a_large_checkpoint_costs_its_end_and_the_columns() {
    // Names that compress badly, so that the file is larger than what is asked for at once.
    let names = (0..40_000_u64).map(|n| add(n.wrapping_mul(0x9E37_79B9_7F4A_7C15)));
    let mut rows = vec![protocol(1, 2), metadata("a", json!({})), txn("x", 5)];
    rows.extend(names);
    let bytes = parquet(&rows, rows.len(), true);
    assert!(bytes.len() as u64 > 2 * TAIL, "{}", bytes.len());
    let (store, checkpoint) = stored(&[bytes]).await;
    let store = RecordingStore::new(store);
    let mut reader = Reader::new(&store, &checkpoint, Some("x"));
    let found = reader.actions(true, true).await.unwrap();
    assert_eq!(parsed(found.metadata)["id"], "a");
    assert!(found.protocol.is_some());
    // The metadata columns stand in the tail already.
    assert_eq!(store.take(), ["get-range part-0"]);
    assert_eq!(reader.evidence().await.unwrap(), Some(SchemaVersion::new(5)));
    assert_eq!(store.take(), ["get-ranges part-0"]);
}

#[tokio::test]
async fn parts_are_opened_only_until_all_is_found() {
    let part = |rows: &[Value]| parquet(rows, 9, true);
    let (store, checkpoint) = stored(&[
        part(&[add(1), protocol(1, 2)]),
        part(&[metadata("a", json!({})), txn("y", 4)]),
        part(&[txn("x", 3)]),
    ])
    .await;
    let store = RecordingStore::new(store);
    let mut reader = Reader::new(&store, &checkpoint, Some("x"));
    let found = reader.actions(true, true).await.unwrap();
    assert!(found.protocol.is_some() && found.metadata.is_some());
    assert_eq!(store.take(), ["get-range part-0", "get-range part-1"]);
    assert_eq!(reader.evidence().await.unwrap(), Some(SchemaVersion::new(3)));
    assert_eq!(store.take(), ["get-range part-2"]);
}

#[tokio::test]
async fn bytes_that_make_no_sense_end_as_an_error() {
    let rows = [add(1), protocol(1, 2), metadata("a", json!({"k": "v"})), txn("x", 1)];
    let good = parquet(&rows, 2, true);
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut random = |n: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % n as u64) as usize
    };
    let (mut read, mut refused) = (0, 0);
    for round in 0..400 {
        let mut bytes = good.clone();
        match round % 3 {
            0 => bytes.truncate(random(good.len())),
            _ => (0..=random(4)).for_each(|_| {
                let at = random(good.len());
                bytes[at] = random(256) as u8;
            }),
        }
        let (store, checkpoint) = stored(&[bytes]).await;
        let mut reader = Reader::new(store.as_ref(), &checkpoint, Some("x"));
        let result = match reader.actions(true, true).await {
            Ok(_) => reader.evidence().await.map(drop),
            Err(fault) => Err(fault),
        };
        match result {
            Ok(()) => read += 1,
            Err(Fault::Unreadable(_)) => refused += 1,
            Err(other) => panic!("round {round}: {other:?}"),
        }
    }
    assert!(read > 20 && refused > 150, "{read} read, {refused} refused");
}

#[tokio::test]
async fn other_types_than_expected_are_unreadable() {
    use deltalake::arrow::array::{Int64Array, RecordBatch};
    use deltalake::parquet::arrow::ArrowWriter;
    let column = Arc::new(Int64Array::from(vec![1])) as _;
    let batch = RecordBatch::try_from_iter([("metaData", column)]).unwrap();
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    assert!(matches!(actions(bytes).await, Err(Fault::Unreadable(_))));
}

/// Of a million rows two are sought; whatever is decoded beside them is time that grows with the table.
#[tokio::test]
async fn the_rows_are_found_wherever_they_stand_and_only_they_are_decoded() {
    let mut rows: Vec<Value> = (0..20_000).map(add).collect();
    rows.insert(15_000, protocol(1, 4));
    rows.insert(12_345, metadata("a", json!({"k": "v"})));
    rows.push(txn("app/orders", 7));
    for (group, statistics) in [(50_000, true), (50_000, false), (7_000, true), (7_000, false)] {
        let (store, checkpoint) = stored(&[parquet(&rows, group, statistics)]).await;
        let file = &checkpoint.files[0];
        let part = open(store.as_ref(), file).await.unwrap();
        let count = async |sought: Sought| {
            let chunks = part.chunks(store.as_ref(), file, &sought).await.unwrap().unwrap();
            place::selection(part.footer.metadata(), &chunks, &sought.roots()).unwrap().row_count()
        };
        assert_eq!(count(Sought::Actions { protocol: true, metadata: true }).await, 2);
        assert_eq!(count(Sought::Actions { protocol: false, metadata: true }).await, 1);
        assert_eq!(count(Sought::Txn("app/orders".to_owned())).await, 1);
        let mut reader = Reader::new(store.as_ref(), &checkpoint, Some("app/orders"));
        let found = reader.actions(true, true).await.unwrap();
        assert_eq!(parsed(found.protocol)["minWriterVersion"], 4);
        assert_eq!(parsed(found.metadata)["configuration"], json!({"k": "v"}));
        assert_eq!(reader.evidence().await.unwrap(), Some(SchemaVersion::new(7)));
    }
}
