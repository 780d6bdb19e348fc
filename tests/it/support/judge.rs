//! Judges one migrating commit from its bytes alone. Shares no code with what wrote it.

mod mapping;
mod schema;

use std::collections::BTreeSet;

use serde_json::Value;

use super::Table;

/// What the table was before the commit.
#[derive(Clone, Debug)]
pub(crate) struct Before {
    pub(crate) protocol: Value,
    pub(crate) metadata: Value,
    /// The in-commit timestamp of the newest entry.
    pub(crate) timestamp: Option<i64>,
}

impl Before {
    /// From the commits of a log; a table whose commits are gone is told by hand.
    pub(crate) fn of(table: &Table) -> Self {
        let newest = |name: &str| {
            let commits = table.versions().into_iter().rev().flat_map(|v| table.commit(v));
            commits.into_iter().find_map(|mut a| a.get_mut(name).map(Value::take)).unwrap()
        };
        let last = table.commit(table.newest());
        Self {
            protocol: newest("protocol"),
            metadata: newest("metaData"),
            timestamp: last[0]["commitInfo"]["inCommitTimestamp"].as_i64(),
        }
    }
}

/// What legacy writer versions stand for (PROTOCOL.md, Table Features for New and Existing Tables).
const LEGACY: [(i64, &str); 7] = [
    (2, "appendOnly"),
    (2, "invariants"),
    (3, "checkConstraints"),
    (4, "changeDataFeed"),
    (4, "generatedColumns"),
    (5, "columnMapping"),
    (6, "identityColumns"),
];

/// Features that readers must know as well.
const FOR_READERS: [&str; 7] = [
    "columnMapping",
    "deletionVectors",
    "timestampNtz",
    "typeWidening",
    "v2Checkpoint",
    "vacuumProtocolCheck",
    "variantType",
];

fn list(protocol: &Value, key: &str) -> Vec<String> {
    let names = protocol[key].as_array().into_iter().flatten();
    names.map(|n| n.as_str().unwrap().to_owned()).collect()
}

/// Every feature of a protocol, listed or implied.
pub(crate) fn features(protocol: &Value) -> BTreeSet<String> {
    let (reader, writer) = (version(protocol, "minReaderVersion"), version(protocol, "minWriterVersion"));
    let mut out: BTreeSet<String> = list(protocol, "readerFeatures").into_iter().collect();
    out.extend(list(protocol, "writerFeatures"));
    if writer < 7 {
        // A reader of version 1 knows nothing of column mapping, whatever the writer's version.
        let implied = LEGACY.iter().filter(|(v, f)| *v <= writer && (*f != "columnMapping" || reader >= 2));
        out.extend(implied.map(|(_, f)| (*f).to_owned()));
    }
    out
}

fn version(protocol: &Value, key: &str) -> i64 {
    protocol[key].as_i64().unwrap_or(-1)
}

/// JSON however deep it is.
pub(crate) fn parse(text: &str) -> Value {
    let mut de = serde_json::Deserializer::from_str(text);
    de.disable_recursion_limit();
    serde::Deserialize::deserialize(&mut de).unwrap()
}

/// Everything that is wrong with a commit; empty for a sound one.
///
/// `may` lists what the migration asked for besides new columns: `comment:PATH`, `nullable:PATH`,
/// `property:KEY`, `protocol`, `description`, `rename:PATH=NAME`, `drop:PATH`, `widen:PATH=TYPE`,
/// `default:PATH`. Paths are those before the commit.
pub(crate) fn judge(before: &Before, entry: &str, may: &[&str]) -> Vec<String> {
    let mut judge = Judge { before, may, wrong: Vec::new() };
    let actions = judge.actions(entry);
    let get = |name: &str| actions.iter().find(|(n, _)| n == name).map(|(_, v)| v);
    let protocol = get("protocol");
    if let Some(protocol) = protocol {
        judge.protocol(protocol);
    }
    let protocol = protocol.unwrap_or(&before.protocol);
    let features = features(protocol);
    if let Some(metadata) = get("metaData") {
        judge.metadata(metadata);
        let on = |key: &str| metadata["configuration"][key] == "true";
        if let Some(info) = get("commitInfo") {
            let stamped = features.contains("inCommitTimestamp") && on("delta.enableInCommitTimestamps");
            judge.commit_info(info, stamped, features.contains("rowTracking"));
        }
        if let Some(txn) = get("txn") {
            let stamp = metadata["configuration"]["app.schema_version"].as_str();
            judge.check(stamp == Some(&txn["version"].to_string()), "txn and stamp name different versions");
        }
        schema::judge(&mut judge, metadata, &features);
    }
    judge.wrong
}

struct Judge<'a> {
    before: &'a Before,
    may: &'a [&'a str],
    wrong: Vec<String>,
}

impl Judge<'_> {
    fn check(&mut self, right: bool, wrong: impl Into<String>) {
        if !right {
            self.wrong.push(wrong.into());
        }
    }

    fn may(&self, what: &str) -> bool {
        self.may.contains(&what)
    }

    /// What was asked for of a path: `what:PATH=…`.
    fn asked(&self, what: &str, path: &str) -> Option<String> {
        let lead = format!("{what}:{path}=");
        self.may.iter().find_map(|m| m.strip_prefix(&lead)).map(str::to_owned)
    }

    fn actions(&mut self, entry: &str) -> Vec<(String, Value)> {
        self.check(entry.ends_with('\n'), "the last line has no end");
        let mut found: Vec<(String, Value)> = Vec::new();
        for (i, line) in entry.lines().enumerate() {
            let Ok(Value::Object(action)) = serde_json::from_str(line) else {
                self.check(false, format!("line {i} is no JSON object"));
                continue;
            };
            self.check(action.len() == 1, format!("line {i} is not one action"));
            for (name, value) in action {
                let known = ["commitInfo", "protocol", "metaData", "txn"].contains(&name.as_str());
                self.check(known, format!("`{name}` in a metadata-only commit"));
                self.check(i > 0 || name == "commitInfo", "commitInfo is not first");
                self.check(found.iter().all(|(n, _)| *n != name), format!("`{name}` twice"));
                found.push((name, value));
            }
        }
        for name in ["commitInfo", "metaData", "txn"] {
            self.check(found.iter().any(|(n, _)| n == name), format!("no `{name}`"));
        }
        found
    }

    fn protocol(&mut self, new: &Value) {
        self.check(self.may("protocol"), "a protocol action that nobody asked for");
        let old = &self.before.protocol;
        for key in ["minReaderVersion", "minWriterVersion"] {
            self.check(version(new, key) >= version(old, key), format!("{key} went down"));
        }
        let has = features(new);
        for lost in features(old).difference(&has) {
            self.check(false, format!("the protocol lost {lost}"));
        }
        let (readers, writers) = (list(new, "readerFeatures"), list(new, "writerFeatures"));
        let unique = |names: &[String]| names.iter().collect::<BTreeSet<_>>().len() == names.len();
        self.check(unique(&readers) && unique(&writers), "a feature is listed twice");
        let reader = version(new, "minReaderVersion");
        let listed = (version(new, "minWriterVersion") == 7) == new.get("writerFeatures").is_some();
        self.check(listed, "writerFeatures and writer version 7 go together");
        self.check((reader == 3) == new.get("readerFeatures").is_some(), "readerFeatures without version 3");
        for name in &readers {
            self.check(writers.contains(name), format!("reader feature {name} is not in writerFeatures"));
        }
        for name in writers.iter().filter(|n| FOR_READERS.contains(&n.as_str())) {
            let known = readers.contains(name) || (name == "columnMapping" && reader == 2);
            self.check(known, format!("{name} is not in readerFeatures"));
        }
    }

    fn metadata(&mut self, new: &Value) {
        let before = self.before;
        let old = &before.metadata;
        let keys: BTreeSet<&String> = [old, new].iter().flat_map(|m| m.as_object().unwrap().keys()).collect();
        for key in keys.into_iter().filter(|k| *k != "schemaString" && *k != "configuration") {
            let same = old.get(key) == new.get(key) || (key == "description" && self.may("description"));
            self.check(same, format!("metaData.{key} changed"));
        }
        let none = serde_json::Map::new();
        let of = |m: &'_ Value| m["configuration"].as_object().unwrap_or(&none).clone();
        let (old, new) = (of(old), of(new));
        let free = |key: &str| key.starts_with("app.") || key == mapping::MAX;
        for (key, value) in &old {
            let same = free(key) || new.get(key) == Some(value) || self.may(&format!("property:{key}"));
            self.check(same, format!("property {key} changed"));
        }
        for key in new.keys().filter(|k| !old.contains_key(*k)) {
            let asked = free(key) || self.may(&format!("property:{key}"));
            self.check(asked, format!("property {key} came"));
        }
    }

    fn commit_info(&mut self, info: &Value, stamped: bool, rows: bool) {
        let now = info["inCommitTimestamp"].as_i64();
        self.check(now.is_some() == stamped, "inCommitTimestamp where it is not due, or none where it is");
        if let (Some(now), Some(before)) = (now, self.before.timestamp) {
            self.check(now > before, format!("inCommitTimestamp {now} is not above {before}"));
        }
        let preserved = info["tags"]["delta.rowTracking.preserved"] == "true";
        self.check(preserved == rows, "the tag of row tracking");
    }
}
