//! Judges the commits of data steps from the bytes of the log. Shares no code with what wrote them.

use std::collections::HashMap;

use serde_json::Value;

use crate::support::Table;

type Files = HashMap<(String, String), Value>;

fn key(action: &Value) -> (String, String) {
    let vector = &action["deletionVector"];
    let vector = if vector.is_object() {
        format!("{}{}@{}", vector["storageType"], vector["pathOrInlineDv"], vector["offset"])
    } else {
        String::new()
    };
    (action["path"].as_str().unwrap().to_owned(), vector)
}

/// Replays the log's commits; `look` sees each commit with the files before it.
pub(super) fn replay(table: &Table, mut look: impl FnMut(u64, &Files, &[Value])) -> Files {
    let mut files = Files::new();
    for version in table.versions() {
        let actions = table.commit(version);
        look(version, &files, &actions);
        for remove in actions.iter().filter_map(|a| a.get("remove")) {
            files.remove(&key(remove));
        }
        for add in actions.iter().filter_map(|a| a.get("add")) {
            files.insert(key(add), add.clone());
        }
    }
    files
}

fn records(add: &Value) -> Option<u64> {
    let statistics: Value = serde_json::from_str(add["stats"].as_str()?).ok()?;
    let deleted = add["deletionVector"]["cardinality"].as_u64().unwrap_or(0);
    Some(statistics["numRecords"].as_u64()? - deleted)
}

/// Every commit of ours takes away what is there by the path that the log has, brings back as many rows,
/// and stamps all or nothing.
pub(super) fn sound(table: &Table) {
    replay(table, |version, before, actions| sound_commit(table, version, before, actions));
}

fn sound_commit(table: &Table, version: u64, before: &Files, actions: &[Value]) {
    let get = |name: &str| -> Vec<&Value> { actions.iter().filter_map(|a| a.get(name)).collect() };
    let Some(info) = get("commitInfo").first().copied().filter(|i| i["operation"] == "MIGRATE") else {
        return;
    };
    let say = |what: &str| format!("{what} in {version}: {actions:#?}");
    assert!(actions[0].get("commitInfo").is_some(), "{}", say("commitInfo is not first"));
    assert!(actions.iter().all(|a| a.as_object().unwrap().len() == 1), "{}", say("not one action a line"));
    let (adds, removes) = (get("add"), get("remove"));
    let stamps = info["operationParameters"]["how"] != "filled";
    for name in ["metaData", "txn"] {
        assert_eq!(get(name).len(), usize::from(stamps), "{}", say(name));
    }
    assert!(stamps || !adds.is_empty(), "{}", say("a fill without files"));
    let mut gone = Vec::new();
    for remove in &removes {
        let file = before.get(&key(remove));
        let file = file.unwrap_or_else(|| panic!("{}", say("what is taken away is not there")));
        assert!(!gone.contains(&key(remove)), "{}", say("taken away twice"));
        assert_eq!(remove["partitionValues"], file["partitionValues"], "{}", say("partition values"));
        assert_eq!(remove["size"], file["size"], "{}", say("size"));
        assert_eq!(remove["dataChange"], true, "{}", say("dataChange"));
        assert!(remove["deletionTimestamp"].as_i64().is_some(), "{}", say("deletionTimestamp"));
        gone.push(key(remove));
    }
    for add in &adds {
        assert!(!before.contains_key(&key(add)), "{}", say("added twice"));
        assert_eq!(add["dataChange"], true, "{}", say("dataChange"));
        let path = percent_encoding_decoded(add["path"].as_str().unwrap());
        let size =
            std::fs::metadata(table.path().join(&path)).unwrap_or_else(|e| panic!("{path}: {e}")).len();
        assert_eq!(add["size"], size, "{}", say("size"));
    }
    let rows = |files: Vec<Option<u64>>| files.into_iter().sum::<Option<u64>>();
    let before_rows = rows(gone.iter().map(|k| records(&before[k])).collect());
    let after_rows = rows(adds.iter().map(|add| records(add)).collect());
    if let (Some(before), Some(after)) = (before_rows, after_rows) {
        assert_eq!(before, after, "{}", say("rows"));
    }
    if adds.is_empty() && removes.is_empty() {
        assert!(info.get("operationMetrics").is_none(), "{}", say("metrics of nothing"));
        return;
    }
    let metrics = &info["operationMetrics"];
    let number = |name: &str| metrics[name].as_str().unwrap().parse::<u64>().unwrap();
    assert_eq!(number("numRemovedFiles"), removes.len() as u64, "{}", say("numRemovedFiles"));
    assert_eq!(number("numAddedFiles"), adds.len() as u64, "{}", say("numAddedFiles"));
    let handled = number("numUpdatedRows") + number("numCopiedRows");
    assert!(after_rows.is_none_or(|n| n == handled), "{}", say("numUpdatedRows"));
}

/// A path of the log as the file system has it.
fn percent_encoding_decoded(path: &str) -> String {
    let mut out = Vec::new();
    let mut bytes = path.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        let digits = [bytes.next().unwrap(), bytes.next().unwrap()];
        out.push(u8::from_str_radix(std::str::from_utf8(&digits).unwrap(), 16).unwrap());
    }
    String::from_utf8(out).unwrap()
}
