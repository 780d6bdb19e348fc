//! What a release said, against what today's code reads and says.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value;

use super::files::{self, Scratch};
use super::manifest::{Manifest, PlanEnd};
use super::said::{PLAN_FILE, SAID};
use super::table::Table;
use super::{Finding, Options, generate};
use crate::error::{Error, ErrorCode};
use crate::migrator::Migrator;
use crate::model::kind::Kind;
use crate::model::report::TableReport;
use crate::model::saved_plan::{PlanFile, SavedPlan};
use crate::model::state::keys;
use crate::model::version::{Namespace, SchemaVersion};

/// The documents of one corpus.
pub(super) struct Documents<'a> {
    pub(super) folder: &'a Path,
    pub(super) label: &'a str,
    pub(super) namespace: &'a Namespace,
    pub(super) manifest: &'a Manifest,
}

impl Documents<'_> {
    pub(super) async fn check(&self, kinds: &[&Kind]) -> Result<Vec<Finding>, Error> {
        let mut findings = self.plans(kinds).await?;
        // Without a kind, what was said of its tables can't be said again; that it is gone was told.
        if kinds.len() < self.manifest.kinds.len() {
            return Ok(findings);
        }
        // Today's code says the same of the same chains, and that has every key.
        let as_then: Vec<Kind> = kinds.iter().map(|kind| self.as_shipped(kind)).collect();
        let scratch = Scratch::new()?;
        let today = scratch.path().join("today");
        let options = Options::new(self.manifest.release.clone());
        if let Err(error) = generate::generate(&as_then, self.namespace, &today, &options).await {
            let wanted = "today's code to write a corpus of the same chains";
            findings.push(Finding::of_error(self.label, wanted, &error));
            return Ok(findings);
        }
        for (name, path) in files::below(&self.folder.join(SAID))? {
            let place = format!("{}/{SAID}/{name}", self.label);
            let now = today.join(SAID).join(&name);
            let (old, new) = (documents(&path)?, if now.is_file() { documents(&now)? } else { Vec::new() });
            findings.extend(vanished(&place, &keys_of(&old), &keys_of(&new)));
            findings.extend(other_words(&place, &old, &new));
        }
        let (old, new) = (self.commits(self.folder)?, self.commits(&today)?);
        findings.extend(vanished(&format!("{}/tables", self.label), &keys_of(&old), &keys_of(&new)));
        Ok(findings)
    }

    fn as_shipped(&self, kind: &Kind) -> Kind {
        let entry = self.manifest.kinds.iter().find(|entry| entry.name == kind.name());
        kind.clone().cut_at(entry.map_or(kind.newest(), |entry| SchemaVersion::new(entry.newest)))
    }

    /// Carries out the saved plans, each on a copy of its table.
    async fn plans(&self, kinds: &[&Kind]) -> Result<Vec<Finding>, Error> {
        let place = format!("{}/{PLAN_FILE}", self.label);
        let text = files::read_text(&self.folder.join(PLAN_FILE))?;
        let file = match PlanFile::from_json(&text) {
            Ok(file) => file,
            Err(error) => return Ok(vec![Finding::of_error(place, "a plan file that can be read", &error)]),
        };
        // A key that is not read is not written again.
        let parse = |text: &str| serde_json::from_str::<Value>(text).unwrap_or_default();
        let mut findings = vanished(&place, &keys_of(&[parse(&text)]), &keys_of(&[parse(&file.to_json())]));
        let mut left: BTreeMap<&str, PlanEnd> =
            self.manifest.plans.iter().map(|p| (p.table.as_str(), p.ends)).collect();
        for saved in &file.tables {
            let ends = left.remove(saved.uri.as_str());
            if let (Some(kind), Some(ends)) = (kinds.iter().find(|k| k.name() == saved.kind), ends) {
                findings.extend(self.plan(kind, saved, ends).await?);
            }
        }
        for table in left.keys() {
            let hint = "a plan that a release saved is read by every later one";
            findings.push(Finding::new(&place, format!("no plan for `{table}`"), "one", hint));
        }
        Ok(findings)
    }

    async fn plan(&self, kind: &Kind, saved: &SavedPlan, ends: PlanEnd) -> Result<Option<Finding>, Error> {
        let scratch = Scratch::new()?;
        let table = Table::new(scratch.path(), &saved.uri);
        let folder = self.folder.join(&saved.uri);
        if folder.exists() {
            files::copy(&folder, &table.folder)?;
        }
        let migrator = Migrator::builder(self.namespace.clone()).kind(kind.clone()).build()?.for_a_test();
        let done = migrator.apply_saved(saved, &table.location()?).await;
        let commits = u32::try_from(saved.commits()).unwrap_or_default().max(1);
        let carried = |report: &TableReport| report.commits == commits && report.to == Some(saved.to);
        let (is_fine, wanted) = match ends {
            PlanEnd::Applies => (done.as_ref().is_ok_and(carried), "to be carried out"),
            PlanEnd::Done => (done.as_ref().is_ok_and(|r| r.commits == 0), "nothing left to do"),
            PlanEnd::Stale => (
                done.as_ref().is_err_and(|e| e.code() == ErrorCode::StalePlan),
                "to be refused as `stale_plan`",
            ),
        };
        if is_fine {
            return Ok(None);
        }
        let place = format!("{}/{PLAN_FILE}: {}", self.label, saved.uri);
        Ok(Some(match done {
            Err(error) => Finding::of_error(place, wanted, &error),
            Ok(report) => {
                let found = format!("{}, {} commits", report.outcome.as_str(), report.commits);
                Finding::new(
                    place,
                    found,
                    wanted,
                    "a plan that a release saved means the same to every later one",
                )
            }
        }))
    }

    /// What the release wrote into logs: its commits, the stamps, and the table's own record.
    fn commits(&self, root: &Path) -> Result<Vec<Value>, Error> {
        let mut out = Vec::new();
        let is_entry = |name: &str| name.contains("/_delta_log/") && name.ends_with(".json");
        let history = self.namespace.property(keys::HISTORY);
        let entries = files::below(&root.join("tables"))?.into_iter().filter(|(name, _)| is_entry(name));
        for (_, path) in entries {
            let actions = documents_of_lines(&files::read_text(&path)?);
            let ours =
                |a: &Value| a.pointer("/commitInfo/operation").and_then(Value::as_str) == Some("MIGRATE");
            if !actions.iter().any(ours) {
                continue;
            }
            for action in actions {
                let record =
                    action.pointer("/metaData/configuration").and_then(|c| c.get(&history)?.as_str());
                let record = record.and_then(|text| serde_json::from_str::<Value>(text).ok());
                out.extend(record.map(|entries| serde_json::json!({ "schema_history": entries })));
                out.push(action);
            }
        }
        Ok(out)
    }
}

/// The document of a file, or its documents, one a line.
fn documents(path: &Path) -> Result<Vec<Value>, Error> {
    let text = files::read_text(path)?;
    Ok(serde_json::from_str(&text).map_or_else(|_| documents_of_lines(&text), |document| vec![document]))
}

fn documents_of_lines(text: &str) -> Vec<Value> {
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// Every key as its path, whatever the values.
fn keys_of(documents: &[Value]) -> BTreeSet<String> {
    let mut out = BTreeSet::new();
    documents.iter().for_each(|document| collect(document, "", &mut out));
    out
}

fn collect(value: &Value, at: &str, out: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                let path = if at.is_empty() { key.clone() } else { format!("{at}.{key}") };
                collect(value, &path, out);
                out.insert(path);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, &format!("{at}[]"), out)),
        _ => {}
    }
}

fn vanished(place: &str, old: &BTreeSet<String>, new: &BTreeSet<String>) -> Vec<Finding> {
    let hint = "keys are only ever added: programs and older releases read those that were there";
    let gone = old.difference(new).map(|key| Finding::new(place, format!("no key `{key}`"), "the key", hint));
    gone.collect()
}

/// Words that programs decide by, of tables that are made today as they were then.
fn other_words(place: &str, old: &[Value], new: &[Value]) -> Vec<Finding> {
    const WORDS: [&str; 4] = ["/outcome", "/mode", "/error/code", "/assessment/state"];
    let words = |documents: &[Value]| {
        let nested = |d: &Value| d.get("tables").and_then(Value::as_array).cloned();
        let tables = documents.iter().flat_map(move |d| nested(d).unwrap_or_else(|| vec![d.clone()]));
        let told = |t: Value| {
            let word = |at: &&'static str| Some((*at, t.pointer(at)?.as_str()?.to_owned()));
            Some((
                t.get("uri")?.as_str()?.to_owned(),
                WORDS.iter().filter_map(word).collect::<BTreeMap<_, _>>(),
            ))
        };
        tables.filter_map(told).collect::<BTreeMap<_, _>>()
    };
    let (old, new) = (words(old), words(new));
    let hint = "words that programs decide by keep their meaning: see what changed in the code since";
    let differ = old
        .iter()
        .filter_map(|(uri, was)| Some((uri, was, new.get(uri)?)))
        .filter(|(_, was, now)| was != now);
    differ
        .map(|(uri, was, now)| {
            Finding::new(format!("{place}: {uri}"), format!("{now:?}"), format!("{was:?}"), hint)
        })
        .collect()
}
