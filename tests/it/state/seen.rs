//! The keys of documents, by the section of STATE.md that lists them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::Release;
use super::page::{row, rows};

pub(super) const MANY: &str = "Reports of many tables";
pub(super) const ONE: &str = "The report of one table";
pub(super) const ERROR: &str = "Errors";
pub(super) const SETUP: &str = "Errors before any table";
pub(super) const ASSESSMENT: &str = "Assessments";
pub(super) const EVENTS: &str = "The events file";
pub(super) const PLANS: &str = "Saved plans";
pub(super) const PLAN: &str = "The plan of one table";
pub(super) const HISTORY: &str = "`history`";
pub(super) const ENTRY: &str = "Entries of the history";
pub(super) const LOCK: &str = "`lock`";
pub(super) const VALIDATE: &str = "`validate`";
pub(super) const FINDING: &str = "Findings";
pub(super) const UNLOCKED: &str = "What is not locked";
pub(super) const MANIFEST: &str = "The manifest of a corpus";
pub(super) const GENERATE: &str = "`compat generate`";
pub(super) const COMMIT: &str = "Commit information";
pub(super) const RECONCILE: &str = "Commit information of `reconcile`";
pub(super) const DIFF: &str = "Differences from a schema";
pub(super) const TXN: &str = "Application ids";
pub(super) const PROPERTIES: &str = "Table properties";

/// Where a document holds something that has a section of its own.
const PARTS: [(&str, &str, &str); 15] = [
    (MANY, "tables[]", ONE),
    (MANY, "sources[].errors[]", ERROR),
    (MANY, "error", ERROR),
    (MANY, "plans[]", PLAN),
    (ONE, "error", ERROR),
    (ONE, "assessment", ASSESSMENT),
    (ONE, "diff", DIFF),
    (SETUP, "error", ERROR),
    (PLANS, "tables[]", PLAN),
    (HISTORY, "record[]", ENTRY),
    (LOCK, "added[]", UNLOCKED),
    (LOCK, "findings[]", FINDING),
    (VALIDATE, "findings[]", FINDING),
    (VALIDATE, "unlocked[]", UNLOCKED),
    (GENERATE, "manifest", MANIFEST),
];

/// Section and path.
type Place = (&'static str, String);

/// What documents held.
#[derive(Default)]
pub(super) struct Seen {
    /// How often a key stood there.
    keys: BTreeMap<Place, usize>,
    /// How many objects stood there, each of which could have had every key of its own.
    objects: BTreeMap<Place, usize>,
    texts: BTreeMap<Place, BTreeSet<String>>,
}

impl Seen {
    pub(super) fn add(&mut self, section: &'static str, document: &Value) {
        assert!(document.is_object(), "{section}: {document}");
        self.walk(section, "", document);
    }

    /// A line of the events file: two keys, and beside them those of a report.
    pub(super) fn add_event(&mut self, line: &Value) {
        let (mut event, mut report) = (line.clone(), line.clone());
        event.as_object_mut().unwrap().retain(|key, _| row(EVENTS, key).is_some());
        report.as_object_mut().unwrap().retain(|key, _| row(EVENTS, key).is_none());
        self.add(EVENTS, &event);
        self.add(ONE, &report);
    }

    /// What the commits of a log left that are ours: the record of them, and of the table.
    pub(super) fn add_log(&mut self, entries: &[Vec<Value>], namespace: &str) {
        let is = |a: &Value, operation: &str| {
            a.pointer("/commitInfo/operation").is_some_and(|found| found == operation)
        };
        for action in entries.iter().flatten().filter(|a| is(a, "RECONCILE")) {
            let mut info = action["commitInfo"].clone();
            let columns = &mut info["operationParameters"]["columns"];
            *columns = serde_json::from_str(columns.as_str().unwrap()).unwrap();
            self.add(RECONCILE, &info);
        }
        let ours = |a: &Value| is(a, "MIGRATE");
        for actions in entries.iter().filter(|actions| actions.iter().any(ours)) {
            for action in actions {
                if let Some(info) = action.get("commitInfo") {
                    let mut info = info.clone();
                    // Nested values are JSON in a text, for Spark's sake.
                    let migrations = &mut info["operationParameters"]["migrations"];
                    *migrations = serde_json::from_str(migrations.as_str().unwrap()).unwrap();
                    self.add(COMMIT, &info);
                }
                if let Some(txn) = action.get("txn") {
                    self.add(TXN, txn);
                }
                if let Some(properties) = action.pointer("/metaData/configuration") {
                    self.add_properties(properties, namespace);
                }
            }
        }
    }

    fn add_properties(&mut self, properties: &Value, namespace: &str) {
        let mut found = serde_json::Map::new();
        for (key, value) in properties.as_object().unwrap() {
            if let Some(key) = key.strip_prefix(&format!("{namespace}.")) {
                found.insert(format!("<ns>.{key}"), value.clone());
            }
        }
        let record = found["<ns>.schema_history"].as_str().unwrap();
        for entry in serde_json::from_str::<Vec<Value>>(record).unwrap() {
            self.add(ENTRY, &entry);
        }
        self.add(PROPERTIES, &Value::Object(found));
    }

    fn walk(&mut self, section: &'static str, at: &str, value: &Value) {
        let part = PARTS.iter().find(|(whole, place, _)| *whole == section && *place == at);
        let (section, at) = part.map_or((section, at), |(_, _, part)| (*part, ""));
        match value {
            Value::Object(map) => {
                *self.objects.entry((section, at.to_owned())).or_default() += 1;
                for (key, value) in map {
                    // Columns are the author's.
                    let key = if at.ends_with("changes[].set") { "*" } else { key };
                    let path = if at.is_empty() { key.to_owned() } else { format!("{at}.{key}") };
                    *self.keys.entry((section, path.clone())).or_default() += 1;
                    self.walk(section, &path, value);
                }
            }
            Value::Array(items) => items.iter().for_each(|i| self.walk(section, &format!("{at}[]"), i)),
            Value::Null => {}
            scalar => {
                let text = scalar.as_str().map_or_else(|| scalar.to_string(), str::to_owned);
                self.texts.entry((section, at.to_owned())).or_default().insert(text);
            }
        }
    }

    /// The texts and numbers that stood under a key.
    pub(super) fn texts(&self, section: &'static str, path: &str) -> BTreeSet<String> {
        self.texts.get(&(section, path.to_owned())).cloned().unwrap_or_default()
    }

    /// In how many objects the key was missing.
    fn lacking(&self, section: &'static str, key: &str) -> usize {
        // Keys with dots of their own are at the ends of paths.
        let parents = key.match_indices('.').map(|(i, _)| &key[..i]).chain([""]);
        let counts =
            parents.filter_map(|p| self.objects.get(&(section, p.to_owned())).map(|n| (p.len(), *n)));
        let (_, objects) = counts.max().unwrap_or_default();
        objects - self.keys.get(&(section, key.to_owned())).copied().unwrap_or_default()
    }

    /// What is listed and was never seen, and what was seen and is not listed.
    pub(super) fn differences(&self, section: &'static str) -> Vec<String> {
        let seen: BTreeSet<&str> =
            self.keys.keys().filter(|(s, _)| *s == section).map(|(_, key)| key.as_str()).collect();
        let written = rows(section).iter().filter(|row| !row.is_of_another_build());
        let listed: BTreeSet<&str> = written.map(|row| row.key.as_str()).collect();
        let missing =
            seen.difference(&listed).map(|k| format!("{section}: the code writes `{k}`, the page lacks it"));
        let idle =
            listed.difference(&seen).map(|k| format!("{section}: nothing wrote `{k}`, which the page lists"));
        missing.chain(idle).collect()
    }

    /// Where the page says `always` and a document lacks the key, or says what its absence means and
    /// no document lacks it.
    pub(super) fn absences(&self, section: &'static str) -> Vec<String> {
        let told = |row: &super::page::Row| {
            let lacking = self.lacking(section, &row.key);
            let key = &row.key;
            match (row.is_always(), lacking) {
                (true, 1..) => Some(format!("{section}: `{key}` is not always there: {lacking} lack it")),
                (false, 0) => {
                    Some(format!("{section}: `{key}` was always there, and the page says it may be absent"))
                }
                _ => None,
            }
        };
        rows(section).iter().filter(|row| !row.is_of_another_build()).filter_map(told).collect()
    }

    /// What the page asks for and a document lacks.
    pub(super) fn gaps(&self, section: &'static str) -> Vec<String> {
        let lacking = |row: &&super::page::Row| row.is_asked_for() && self.lacking(section, &row.key) > 0;
        let told = |row: &super::page::Row| {
            format!("{section}: readers ask for `{}`, and it is not always there", row.key)
        };
        rows(section).iter().filter(lacking).map(told).collect()
    }

    /// Keys that the page does not list, or only for releases after this one.
    pub(super) fn unlisted(&self, release: Release) -> Vec<String> {
        let told = |(section, key): &Place| match row(section, key) {
            None => Some(format!("{section}: `{key}` is not listed")),
            Some(row) if row.since > release => {
                Some(format!("{section}: `{key}` is listed since {:?}, and {release:?} wrote it", row.since))
            }
            Some(_) => None,
        };
        self.keys.keys().filter_map(told).collect()
    }
}

#[test]
fn keys_are_counted_where_they_can_stand() {
    let mut seen = Seen::default();
    seen.add(
        HISTORY,
        &serde_json::json!({ "log": [{ "to": "1", "why": "x" }, { "to": "2" }], "record": [{ "by": "a" }] }),
    );
    assert_eq!((seen.lacking(HISTORY, "log[].why"), seen.lacking(HISTORY, "log[].to")), (1, 0));
    assert_eq!((seen.lacking(HISTORY, "uri"), seen.lacking(ENTRY, "by")), (1, 0));
    assert_eq!(seen.texts(HISTORY, "log[].to"), BTreeSet::from(["1".to_owned(), "2".to_owned()]));
    let wrong = seen.unlisted(Release(0, 0, 9));
    assert!(wrong.iter().any(|w| w.contains("`log[].to` is listed since")), "{wrong:?}");
}
