//! Tables that a person decides about, what the library says of them, and their histories.

use std::sync::Arc;

use delta_migrate::{
    Assessment, ErrorReport, FoundKind, IfMissing, Repair, SavedPlan, SchemaVersion, Target,
};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use super::entries;
use crate::state::seen::{ASSESSMENT, ERROR, HISTORY, MANY, PLAN, Seen};
use crate::support::command::on;
use crate::support::store::{Trick, TrickStore};
use crate::support::{FACTS, Log, Table, column, facts, migrator};

pub(super) fn see(seen: &mut Seen, runtime: &Runtime) {
    stamps(seen);
    repairs(seen);
    commits(seen);
    #[cfg(feature = "datafusion")]
    data(seen, runtime);
    runtime.block_on(library(seen));
}

/// A command on one table, with its report and what it left in the log.
fn done(seen: &mut Seen, table: &Table, args: &[&str]) -> Value {
    let ran = on(table, FACTS, &[args, &[table.arg()]].concat());
    let document = ran.json();
    seen.add(MANY, &document);
    seen.add_log(&entries(table.path()), "app");
    document["tables"][0].clone()
}

/// What `repair` says of a table in this state.
fn repaired(seen: &mut Seen, table: &Table, way: &[&str], state: &str) {
    let report = done(seen, table, &[&["repair", "--why", "a reason"], way].concat());
    assert_eq!(report["assessment"]["state"], state, "{report}");
    assert_eq!(report["outcome"], "repaired", "{report}");
}

fn stamps(seen: &mut Seen) {
    let table = facts().table();
    assert_eq!(done(seen, &table, &["baseline", "--at", "0"])["outcome"], "migrated");
    repaired(
        seen,
        &facts().property("app.schema_version", "abc").table(),
        &["--restamp", "0"],
        "invalid_stamp",
    );
    repaired(seen, &facts().txn("app/facts", 3).table(), &["--restamp", "0"], "stamp_lost");
    // The base shape is another one, and a migration is.
    let other_base = facts().stamped(0).property("app.schema_digest", "1:00000000").table();
    repaired(seen, &other_base, &["--restamp", "0"], "diverged");
    let table = facts().table();
    done(seen, &table, &["apply", "--target", "1"]);
    let digest = table.property("app.schema_digest").unwrap();
    let base = digest.split(',').next().unwrap();
    table.set_property("app.schema_digest", &format!("{base},00000000"));
    repaired(seen, &table, &["--restamp", "1"], "diverged");
}

fn repairs(seen: &mut Seen) {
    let lost = facts().stamped(1).table();
    repaired(seen, &lost, &["--readd-columns"], "drifted");
    let mut other_type = facts().stamped(1);
    other_type.schema["fields"].as_array_mut().unwrap().push(column("detail", "long"));
    repaired(seen, &other_type.table(), &["--restamp", "0"], "drifted");

    let raised = |log: Log| log.property("app.min_version", "98").table();
    repaired(seen, &raised(facts().stamped(0)), &["--lower-floor", "0"], "too_new");
    let by = json!([{ "from": 0, "to": 0, "at": "2026-01-01T00:00:00Z", "by": "later 9", "how": "migrated", "floor": 98 }]);
    let table = raised(facts().stamped(0).property("app.schema_history", &by.to_string()));
    repaired(seen, &table, &["--lower-floor", "0"], "too_new");

    let history = |table: &Table| on(table, FACTS, &["history", table.arg()]).json();
    let told = history(&table);
    assert_eq!(told["log"][0]["why"], "a reason", "{told}");
    seen.add(HISTORY, &told);
    let broken = facts().property("app.schema_history", "[1").table();
    assert_eq!(history(&broken)["unreadable"], "[1");
    seen.add(HISTORY, &history(&broken));
    let migrated = facts().table();
    done(seen, &migrated, &["apply"]);
    seen.add(HISTORY, &history(&migrated));
}

/// What some tables ask of a commit.
fn commits(seen: &mut Seen) {
    let log = |features: &[&str]| {
        let mut log = facts().features(&[], features);
        log.protocol["minReaderVersion"] = 1.into();
        log.protocol.as_object_mut().unwrap().remove("readerFeatures");
        log
    };
    let tracked = log(&["rowTracking", "domainMetadata"])
        .property("delta.rowTracking.materializedRowIdColumnName", "_row-id")
        .property("delta.rowTracking.materializedRowCommitVersionColumnName", "_row-version");
    let timed = Table::missing();
    let kind = "kind = \"facts\"\n[columns]\nid = \"long\"\n[properties]\n\"delta.enableInCommitTimestamps\" = \"true\"\n";
    assert_eq!(on(&timed, kind, &["apply", timed.arg()]).table()["outcome"], "created");
    seen.add_log(&entries(timed.path()), "app");
    assert_eq!(done(seen, &tracked.table(), &["apply"])["outcome"], "migrated");
}

/// What a program that uses the library may write down.
async fn library(seen: &mut Seen) {
    let table = Arc::new(facts().table());
    let other = table.clone();
    let store = TrickStore::on_put(move |_| {
        let other = other.clone();
        Trick::Then(Box::new(move || other.recreate_as(&Log::new(vec![column("x", "long")]))))
    });
    let location = table.location_in(&store);
    let swapped =
        migrator(FACTS).migrate("facts", &location, Target::Newest, IfMissing::Refuse).await.unwrap_err();
    let error = as_json(&ErrorReport::of(&swapped));
    assert_eq!(error["committed"], json!([1]));
    seen.add(ERROR, &error);

    let table = facts().stamped(3).table();
    let repair = Repair::Restamp(SchemaVersion::new(0));
    let plan = migrator(FACTS).plan_repair("facts", &table.location(), repair, "a reason").await.unwrap();
    let plan = as_json(&SavedPlan::of(&plan, table.arg()));
    assert_eq!(plan["commits"][0]["why"], "a reason");
    seen.add(PLAN, &plan);

    let found = [FoundKind::Stamp("other".into()), FoundKind::WithoutColumns(vec!["id".into()])];
    for found in found {
        seen.add(ASSESSMENT, &as_json(&Assessment::NotThisKind { expected: "facts".into(), found }));
    }
    seen.add(ASSESSMENT, &as_json(&Assessment::Unsupported { features: vec!["geospatial".into()] }));
}

fn as_json(value: &impl serde::Serialize) -> Value {
    serde_json::to_value(value).unwrap()
}

/// Data steps of every sort: planned, refused, carried out.
#[cfg(feature = "datafusion")]
fn data(seen: &mut Seen, runtime: &Runtime) {
    const KIND: &str = "kind = \"facts\"\n[columns]\nid = \"long\"\ncode = \"string\"\n\
        [[migrations]]\ndescription = \"fill\"\n[migrations.update]\nset = { code = \"'x'\" }\nwhere = \"code IS NULL\"\n\
        [migrations.add_constraints]\ncoded = \"code IS NOT NULL\"\n\
        [[migrations]]\ndescription = \"type\"\ndestructive = true\n[migrations.retype_columns]\nid = \"string\"\n";
    let table = Log::new(vec![column("id", "long"), column("code", "string")]).versions(1, 3).table();
    let rows = [json!({ "id": 1, "code": null }), json!({ "id": 2, "code": "y" })];
    runtime.block_on(crate::support::rows::append(&table, &rows));
    let mut outcomes = Vec::new();
    for args in [&["plan"][..], &["apply"], &["apply", "--allow-rewrite"]] {
        let document = on(&table, KIND, &[args, &[table.arg()]].concat()).json();
        seen.add(MANY, &document);
        outcomes.push(document["tables"][0]["outcome"].clone());
    }
    assert_eq!(outcomes, ["planned", "refused", "migrated"]);
    seen.add_log(&entries(table.path()), "app");

    // A file that does not say how many rows it has.
    let table = Log::new(vec![column("id", "long"), column("code", "string")]).versions(1, 3).table();
    runtime.block_on(crate::support::rows::append(&table, &rows));
    let mut actions = table.commit(1);
    for add in actions.iter_mut().filter_map(|a| a.get_mut("add")) {
        add.as_object_mut().unwrap().remove("stats");
    }
    std::fs::remove_file(table.log_file(1)).unwrap();
    table.commit_raw(&actions);
    let document = on(&table, KIND, &["plan", table.arg()]).json();
    assert_eq!(document["tables"][0]["rewrite"].get("rows"), None, "{document}");
    seen.add(MANY, &document);

    // What a kind file can't say.
    use delta_migrate::{Kind, Migration, Migrator, Namespace};
    let step = Migration::builder("by hand").run("nothing", async |_, _| Ok(()));
    let kind = Kind::builder("facts").column("id", "long").migration(step).build().unwrap();
    let migrator = Migrator::builder(Namespace::new("app").unwrap()).kind(kind).build().unwrap();
    let plan = runtime.block_on(migrator.plan("facts", &table.location(), Target::Newest)).unwrap();
    let plan = as_json(&SavedPlan::of(&plan, table.arg()));
    assert!(plan.to_string().contains(r#"{"change":"run","name":"nothing"}"#), "{plan}");
    seen.add(PLAN, &plan);
}
