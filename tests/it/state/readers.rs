//! Readers default what they don't find, and tolerate what they don't know.

use std::path::Path;

use delta_migrate::compat::Manifest;
use delta_migrate::{IfMissing, PlanFile, Target};
use serde_json::{Value, json};

use super::assert_none;
use super::page::{Row, rows};
use super::seen::{ENTRY, MANIFEST, PLAN, PLANS, PROPERTIES};
use super::sources::text;
use crate::support::command::on;
use crate::support::{FACTS, Table, column, facts, migrator};

/// Every object below a place gets this done to it.
fn each_object(value: &mut Value, act: &dyn Fn(&mut serde_json::Map<String, Value>)) {
    match value {
        Value::Object(map) => {
            map.values_mut().for_each(|value| each_object(value, act));
            act(map);
        }
        Value::Array(items) => items.iter_mut().for_each(|item| each_object(item, act)),
        _ => {}
    }
}

/// Takes a key out, wherever its path leads.
fn remove(value: &mut Value, path: &str) -> usize {
    let (head, rest) = path.split_once('.').unwrap_or((path, ""));
    match (head.strip_suffix("[]"), rest) {
        (_, "") => usize::from(value.as_object_mut().unwrap().shift_remove(head).is_some()),
        (Some(list), rest) => {
            let items = value.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten();
            items.map(|item| remove(item, rest)).sum()
        }
        (None, rest) => value.get_mut(head).map_or(0, |inner| remove(inner, rest)),
    }
}

/// Leaves out each key in turn; it must be refused where the page says so, and there only.
fn absences(section: &str, lead: &str, document: &Value, read: &dyn Fn(&Value) -> bool) -> Vec<String> {
    assert!(read(document), "{document}");
    let told = |row: &Row| {
        let mut without = document.clone();
        let gone = remove(&mut without, &format!("{lead}{}", row.key));
        let (is_refused, asked) = (!read(&without), row.is_asked_for());
        let fault = format!("{section}: refused without `{}`: {is_refused}; the page says {asked}", row.key);
        // What this document did not have is another's.
        (gone > 0 && is_refused != asked || gone == 0 && asked).then_some(fault)
    };
    rows(section).iter().filter_map(told).collect()
}

fn with_unknown_keys(document: &Value) -> Value {
    let mut later = document.clone();
    each_object(&mut later, &|map| drop(map.insert("of_a_later_release".to_owned(), json!({ "x": [1] }))));
    later
}

async fn plan_file(table: &Table) -> Value {
    let plan = migrator(FACTS).plan("facts", &table.location(), Target::Newest).await.unwrap();
    let file = PlanFile::new(vec![delta_migrate::SavedPlan::of(&plan, table.arg())]);
    serde_json::from_str(&file.to_json()).unwrap()
}

#[tokio::test]
async fn a_saved_plan() {
    let mut log = facts().property("owner", "team a");
    log.schema["fields"].as_array_mut().unwrap().push(column("detail", "string"));
    let table = log.table();
    let file = plan_file(&table).await;
    let read = |file: &Value| PlanFile::from_json(&file.to_string()).is_ok();
    assert_none([absences(PLANS, "", &file, &read), absences(PLAN, "tables[].", &file, &read)].concat());
    let later = with_unknown_keys(&file);
    assert!(later["tables"][0]["commits"][0]["of_a_later_release"].is_object());
    let saved = PlanFile::from_json(&later.to_string()).unwrap().tables.remove(0);
    let report = migrator(FACTS).apply_saved(&saved, &table.location()).await.unwrap();
    assert_eq!(report.outcome.as_str(), "migrated");
    assert!(PlanFile::from_json(&file.to_string().replace("\"format\":1", "\"format\":2")).is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_manifest_of_a_corpus() {
    let folder = tempfile::tempdir().unwrap();
    let kind = delta_migrate::Kind::from_toml(&text("compat/kinds/changes.toml")).unwrap();
    let namespace = delta_migrate::Namespace::new("compat").unwrap();
    let options = delta_migrate::compat::Options::new("today");
    delta_migrate::compat::generate(&[kind], &namespace, folder.path().join("1"), &options).await.unwrap();
    let file = folder.path().join("1/manifest.json");
    let manifest: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    let read = |manifest: &Value| {
        std::fs::write(&file, manifest.to_string()).unwrap();
        Manifest::read(file.parent().unwrap_or(Path::new(""))).is_ok()
    };
    assert_none(absences(MANIFEST, "", &manifest, &read));
    assert!(read(&with_unknown_keys(&manifest)));
    let mut later = manifest.clone();
    later["format"] = 2.into();
    assert!(!read(&later));
}

/// What `status` says of a current table once a property is gone or another.
fn said(change: impl FnOnce(&mut serde_json::Map<String, Value>)) -> Value {
    let table = facts().table();
    assert_eq!(on(&table, FACTS, &["apply", table.arg()]).table()["outcome"], "migrated");
    table.change_metadata(|m| change(m["configuration"].as_object_mut().unwrap()));
    on(&table, FACTS, &["status", table.arg()]).table()
}

#[test]
fn the_properties_of_a_table() {
    for row in rows(PROPERTIES) {
        let key = row.key.replace("<ns>", "app");
        let report = said(|properties| drop(properties.shift_remove(&key).unwrap()));
        match row.key.as_str() {
            "<ns>.schema_version" => {
                assert_eq!(report["error"]["code"], "stamp_lost", "{report}");
                assert!(row.absent().contains("`stamp_lost`"));
            }
            _ => assert_eq!(report["outcome"], "current", "{key}: {report}"),
        }
    }
    assert_eq!(facts().table().versions(), [0]);
    let unstamped = facts().table();
    assert_eq!(
        on(&unstamped, FACTS, &["status", unstamped.arg()]).table()["assessment"]["state"],
        "unversioned"
    );
    let later = said(|properties| {
        properties.insert("app.of_a_later_release".to_owned(), "x".into());
        properties.insert("app.schema_digest".to_owned(), "2:anything at all".into());
    });
    assert_eq!(later["outcome"], "current", "{later}");
}

#[tokio::test]
async fn the_record_of_a_table() {
    let full = json!({ "from": 0, "to": 0, "at": "2026-01-01T00:00:00Z", "by": "old 1", "how": "repaired", "why": "w", "floor": 0 });
    for row in rows(ENTRY) {
        let mut entry = full.clone();
        entry.as_object_mut().unwrap().shift_remove(&row.key).unwrap();
        entry["of_a_later_release"] = json!({ "x": 1 });
        let record = Value::from(vec![entry.clone()]).to_string();
        let table = facts().stamped(0).property("app.schema_history", &record).table();
        let done =
            migrator(FACTS).migrate("facts", &table.location(), Target::Newest, IfMissing::Refuse).await;
        assert_eq!(done.unwrap().commits, 1);
        assert_eq!(table.history()[0], entry, "an entry is carried over as it is");
        let history = on(&table, FACTS, &["history", table.arg()]).json();
        assert_eq!(history["record"][0], entry, "{history}");
        let shown = crate::support::run(
            &table.beside(""),
            &["history", "--namespace", "app", "--kind-file", "kind.toml", table.arg()],
        );
        let line = shown.stdout.lines().find(|line| line.contains("  ")).unwrap();
        assert_eq!(line.contains('?'), row.absent().contains("`?`"), "{}: {line}", row.key);
    }
}

#[test]
fn a_commit_of_another_program_s_making() {
    let table = facts().table();
    let info = |parameters: Value| json!({ "commitInfo": { "operation": "MIGRATE", "operationParameters": parameters, "later": 1 } });
    table.commit_raw(&[info(json!({ "namespace": "app", "of_a_later_release": "x" }))]);
    table.commit_raw(&[info(json!({ "namespace": "other" }))]);
    table.commit_raw(&[
        json!({ "commitInfo": { "operation": "WRITE", "operationParameters": { "namespace": "app" } } }),
    ]);
    let history = on(&table, FACTS, &["history", table.arg()]).json();
    let wanted = json!([{
        "log_version": 1, "timestamp": null, "kind": "", "how": "", "from": "", "to": "", "release": "", "migrations": [],
    }]);
    assert_eq!(history["log"], wanted);
}
