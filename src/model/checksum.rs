//! What the checksum file after a metadata-only commit says, given the one before.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::entry::COMMIT_ID;
use super::state::TableState;

/// The checksum file after `entry`; none where `before` does not agree with the state that was read.
///
/// Counts, sizes, histograms and domains carry over: a commit here adds and removes no file.
pub(crate) fn derive(before: &[u8], state: &TableState, entry: &[u8]) -> Option<Vec<u8>> {
    let mut checksum: Map<String, Value> = serde_json::from_slice(before).ok()?;
    agrees(&checksum, state).then_some(())?;
    let mut metadata = None;
    for line in entry.split(|b| *b == b'\n').filter(|l| !l.is_empty()) {
        let action: Map<String, Value> = serde_json::from_slice(line).ok()?;
        for (name, action) in action {
            match name.as_str() {
                "metaData" => metadata = Some(action),
                "protocol" => drop(checksum.insert("protocol".to_owned(), action)),
                "txn" => note_transaction(&mut checksum, action),
                "commitInfo" => note_commit(&mut checksum, &action),
                _ => return None,
            }
        }
    }
    checksum.insert("metadata".to_owned(), metadata?);
    serde_json::to_vec(&checksum).ok()
}

/// The file speaks of this table at this version: same id, schema and protocol.
fn agrees(checksum: &Map<String, Value>, state: &TableState) -> bool {
    let one = |key: &str| checksum.get(key).and_then(Value::as_u64) == Some(1);
    let metadata = |key: &str| checksum.get("metadata").and_then(|m| m.get(key)).and_then(Value::as_str);
    let protocol = |key: &str| checksum.get("protocol").and_then(|p| p.get(key)).and_then(Value::as_i64);
    let list = |key: &str| -> BTreeSet<&str> {
        let list = checksum.get("protocol").and_then(|p| p.get(key)).and_then(Value::as_array);
        list.into_iter().flatten().map(|f| f.as_str().unwrap_or_default()).collect()
    };
    let configuration =
        checksum.get("metadata").and_then(|m| m.get("configuration")).and_then(Value::as_object);
    let same_configuration = configuration.is_some_and(|c| {
        let table = &state.metadata.configuration;
        c.len() == table.len() && table.iter().all(|(k, v)| c.get(k).and_then(Value::as_str) == Some(v))
    });
    one("numMetadata")
        && one("numProtocol")
        && metadata("id") == Some(&state.metadata.id)
        && metadata("schemaString") == Some(&state.metadata.schema_text)
        && same_configuration
        && protocol("minReaderVersion") == Some(state.protocol.min_reader)
        && protocol("minWriterVersion") == Some(state.protocol.min_writer)
        && list("readerFeatures") == set(state.protocol.reader_features.as_deref())
        && list("writerFeatures") == set(state.protocol.writer_features.as_deref())
        && checksum.get("tableSizeBytes").is_some_and(Value::is_number)
        && checksum.get("numFiles").is_some_and(Value::is_number)
}

fn set(features: Option<&[String]>) -> BTreeSet<&str> {
    features.unwrap_or_default().iter().map(String::as_str).collect()
}

/// The list of transactions, where the file keeps one, holds each application once.
fn note_transaction(checksum: &mut Map<String, Value>, txn: Value) {
    if let Some(Value::Array(all)) = checksum.get_mut("setTransactions") {
        all.retain(|t| t.get("appId") != txn.get("appId"));
        all.push(txn);
    }
}

fn note_commit(checksum: &mut Map<String, Value>, info: &Value) {
    checksum.shift_remove("inCommitTimestampOpt");
    if let Some(at) = info.get("inCommitTimestamp") {
        checksum.insert("inCommitTimestampOpt".to_owned(), at.clone());
    }
    if let Some(id) = info.get(COMMIT_ID) {
        checksum.insert("txnId".to_owned(), id.clone());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::model::testing::table;

    fn before(state: &TableState) -> Value {
        let metadata: Value = serde_json::from_str(state.metadata.raw.as_deref().unwrap()).unwrap();
        json!({
            "txnId": "old", "tableSizeBytes": 7, "numFiles": 2, "numMetadata": 1, "numProtocol": 1,
            "inCommitTimestampOpt": 3, "domainMetadata": [{"domain": "d"}], "histogramOpt": {"x": [1]},
            "setTransactions": [{"appId": "a", "version": 1}, {"appId": "app/k", "version": 1}],
            "metadata": metadata, "protocol": {"minReaderVersion": 1, "minWriterVersion": 2},
        })
    }

    const ENTRY: &str = "{\"commitInfo\":{\"txnId\":\"new\",\"inCommitTimestamp\":9}}\n\
                         {\"metaData\":{\"id\":\"table-id\",\"new\":1}}\n{\"txn\":{\"appId\":\"app/k\",\"version\":2}}\n";

    #[test]
    fn counts_carry_over_and_metadata_is_the_new_one() {
        let state = table("id: long", &[("p", "q")]);
        let after = derive(before(&state).to_string().as_bytes(), &state, ENTRY.as_bytes()).unwrap();
        let after: Value = serde_json::from_slice(&after).unwrap();
        let mut wanted = before(&state);
        wanted["txnId"] = "new".into();
        wanted["inCommitTimestampOpt"] = 9.into();
        wanted["metadata"] = json!({"id": "table-id", "new": 1});
        wanted["setTransactions"][1]["version"] = 2.into();
        assert_eq!(after, wanted);
    }

    #[test]
    fn a_file_that_does_not_agree_is_not_built_upon() {
        let state = table("id: long", &[("p", "q")]);
        let wrong = |change: &dyn Fn(&mut Value)| {
            let mut before = before(&state);
            change(&mut before);
            derive(before.to_string().as_bytes(), &state, ENTRY.as_bytes())
        };
        assert!(wrong(&|_| ()).is_some());
        assert_eq!(wrong(&|b| b["metadata"]["id"] = "other".into()), None);
        assert_eq!(wrong(&|b| b["metadata"]["schemaString"] = "{}".into()), None);
        assert_eq!(wrong(&|b| b["metadata"]["configuration"] = json!({})), None);
        assert_eq!(wrong(&|b| b["protocol"]["minWriterVersion"] = 7.into()), None);
        assert_eq!(wrong(&|b| b["protocol"]["writerFeatures"] = json!(["appendOnly"])), None);
        assert_eq!(wrong(&|b| b["protocol"]["readerFeatures"] = json!(["deletionVectors"])), None);
        assert_eq!(wrong(&|b| b["numMetadata"] = 2.into()), None);
        assert_eq!(wrong(&|b| b["numFiles"] = Value::Null), None);
        assert_eq!(derive(b"not json", &state, ENTRY.as_bytes()), None);
        let with_file = format!("{ENTRY}{{\"add\":{{\"path\":\"x\"}}}}\n");
        assert_eq!(derive(before(&state).to_string().as_bytes(), &state, with_file.as_bytes()), None);
    }
}
