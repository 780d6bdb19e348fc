//! The three ways of `repair`; after each, `apply` works again.

use serde_json::{Value, json};

use super::{at_two, last};
use crate::support::command::{Ran, on};
use crate::support::kinds::row;
use crate::support::rows::{append, read};
use crate::support::{FACTS, Table, apply, facts, kind_file, refused_everywhere};

fn repair(table: &Table, kind: &str, way: &[&str]) -> Ran {
    on(table, kind, &[&["repair", table.arg(), "--why", "the night of Nov 3"], way].concat())
}

fn repaired(table: &Table, kind: &str, way: &[&str]) {
    let before = table.files();
    let dry = repair(table, kind, &[way, &["--dry-run"]].concat());
    assert_eq!((dry.code, &dry.table()["outcome"]), (0, &json!("planned")), "{dry:?}");
    assert!(table.files() == before, "a dry run writes nothing");
    let ran = repair(table, kind, way);
    assert_eq!((ran.code, &ran.table()["outcome"]), (0, &json!("repaired")), "{ran:?}");
    assert_eq!(table.files().len(), before.len() + 1, "one new log entry");
    let entry = table.history().pop().unwrap();
    assert_eq!((&entry["how"], &entry["why"]), (&json!("repaired"), &json!("the night of Nov 3")));
    let info = table.action(table.newest(), "commitInfo");
    assert_eq!(info["operationParameters"]["why"], "the night of Nov 3");
}

fn refused(table: &Table, kind: &str, way: &[&str], code: &str) {
    let before = table.files();
    let ran = repair(table, kind, way);
    assert_eq!((ran.code, &ran.table()["error"]["code"]), (1, &json!(code)), "{ran:?}");
    assert!(!ran.table()["error"]["hint"].as_str().unwrap().is_empty());
    assert!(table.files() == before);
}

fn current(table: &Table, kind: &str) {
    let ran = apply(table, kind);
    assert_eq!((ran.code, &ran.table()["outcome"]), (0, &json!("current")), "{ran:?}");
}

#[tokio::test]
async fn lost_columns_are_added_again_with_their_comments() {
    let table = facts().table();
    append(&table, &[row(1)]).await;
    assert_eq!(apply(&table, FACTS).code, 0);
    let properties = table.metadata()["configuration"].clone();
    let tenant = table.field("tenant");
    let detail = table.field("detail");
    let kept: Vec<Value> = table.schema()["fields"].as_array().unwrap()[..3].to_vec();
    table.set_fields(kept);
    refused_everywhere(&table, FACTS, "drifted");
    repaired(&table, FACTS, &["--readd-columns"]);
    assert_eq!((table.field("tenant"), table.field("detail")), (tenant, detail));
    for key in ["app.schema_version", "app.min_version", "app.schema_digest", "owner"] {
        assert_eq!(table.property(key).as_deref(), properties[key].as_str(), "{key}");
    }
    let rows = read(&table).await;
    assert_eq!((rows.len(), &rows[0]["id"], &rows[0]["tenant"]), (1, &json!(1), &Value::Null));
    current(&table, FACTS);
}

#[test]
fn a_lost_required_column_comes_back_nullable() {
    let table = facts().table();
    assert_eq!(apply(&table, FACTS).code, 0);
    let kept: Vec<Value> = table.schema()["fields"].as_array().unwrap()[1..].to_vec();
    table.set_fields(kept);
    repaired(&table, FACTS, &["--readd-columns"]);
    assert_eq!(table.field("id")["nullable"], true);
    current(&table, FACTS);
}

#[test]
fn readding_is_refused_where_a_column_has_another_type() {
    let mut log = facts().stamped(1);
    log.schema["fields"].as_array_mut().unwrap().push(crate::support::column("detail", "long"));
    refused(&log.table(), FACTS, &["--readd-columns"], "drifted");
}

/// A release that knows less can't tell a column that is lost from one that was renamed or dropped.
#[test]
fn readding_is_refused_to_a_release_that_knows_less() {
    let base = "kind = \"facts\"\n[columns]\nid = \"long\"\ncode = \"string\"\n\
        [properties]\n\"delta.columnMapping.mode\" = \"name\"\n";
    let newer = format!(
        "{base}[[migrations]]\ndescription = \"d\"\ndestructive = true\nrename_columns = {{ code = \"c\" }}\n"
    );
    let table = Table::missing();
    assert_eq!(apply(&table, base).table()["outcome"], "created");
    assert_eq!(apply(&table, &newer).table()["outcome"], "migrated");
    let before = table.files();
    let ran = repair(&table, base, &["--readd-columns"]);
    let error = ran.table()["error"].clone();
    assert_eq!(error["code"], "drifted", "{error}");
    assert!(error["message"].as_str().unwrap().contains("at version 1, and 0 is known here"), "{error}");
    assert!(table.files() == before);
}

#[test]
fn readding_where_nothing_is_lost_writes_nothing() {
    let table = facts().table();
    assert_eq!(apply(&table, FACTS).code, 0);
    let before = table.files();
    let ran = repair(&table, FACTS, &["--readd-columns"]);
    assert_eq!((ran.code, &ran.table()["outcome"]), (0, &json!("current")), "{ran:?}");
    assert!(table.files() == before);
}

#[test]
fn a_lost_stamp_is_written_again() {
    let table = at_two().txn("app/facts", 2).table();
    refused_everywhere(&table, FACTS, "stamp_lost");
    repaired(&table, FACTS, &["--restamp", "2"]);
    assert_eq!(table.property("app.schema_version").as_deref(), Some("2"));
    assert_eq!(table.property("app.kind").as_deref(), Some("facts"));
    let ran = apply(&table, FACTS);
    assert_eq!((ran.code, &ran.table()["from"], &ran.table()["to"]), (0, &json!(2), &json!(10)));
}

#[test]
fn a_stamp_is_not_written_where_the_columns_do_not_fit_it() {
    refused(&at_two().txn("app/facts", 8).table(), FACTS, &["--restamp", "8"], "unknown_shape");
}

#[test]
fn a_diverged_table_that_is_the_same_in_effect_is_restamped() {
    let table = facts().table();
    assert_eq!(apply(&table, FACTS).code, 0);
    let edited = FACTS.replacen("interval 90 days", "interval 30 days", 1);
    refused_everywhere(&table, &edited, "diverged");
    repaired(&table, &edited, &["--restamp", "10"]);
    current(&table, &edited);
    refused_everywhere(&table, FACTS, "diverged");
}

#[test]
fn an_unreadable_stamp_is_replaced_and_no_floor_is_lowered() {
    let table =
        at_two().stamped(2).property("app.schema_version", "3.0").property("app.min_version", "9").table();
    refused_everywhere(&table, FACTS, "invalid_stamp");
    repaired(&table, FACTS, &["--restamp", "2"]);
    assert_eq!(table.property("app.min_version").as_deref(), Some("9"));
    assert_eq!(apply(&table, FACTS).table()["outcome"], "migrated");
    assert_eq!(table.property("app.min_version").as_deref(), Some("9"));
}

#[test]
fn a_floor_raised_by_mistake_is_lowered_and_stays_lowered() {
    let table = facts().table();
    assert_eq!(apply(&table, FACTS).code, 0);
    table.set_property("app.min_version", "12");
    refused_everywhere(&table, FACTS, "too_new");
    // Neither of the other ways gets around the floor.
    refused(&table, FACTS, &["--restamp", "10"], "too_new");
    refused(&table, FACTS, &["--readd-columns"], "too_new");
    let digest = table.property("app.schema_digest");
    repaired(&table, FACTS, &["--lower-floor", "8"]);
    assert_eq!(table.property("app.min_version").as_deref(), Some("8"));
    assert_eq!(table.property("app.schema_version").as_deref(), Some("10"));
    assert_eq!(table.property("app.schema_digest"), digest);
    assert_eq!(table.history().pop().unwrap()["floor"], 8);
    current(&table, FACTS);
}

#[test]
fn a_floor_is_never_raised_by_lowering_it() {
    let table = facts().table();
    assert_eq!(apply(&table, FACTS).code, 0);
    let before = table.files();
    for floor in ["8", "9"] {
        let ran = repair(&table, FACTS, &["--lower-floor", floor]);
        assert_eq!((ran.code, &ran.json()["error"]["code"]), (2, &json!("usage")), "{ran:?}");
    }
    assert!(table.files() == before);
    repaired(&table, FACTS, &["--lower-floor", "0"]);
    assert_eq!(table.property("app.min_version").as_deref(), Some("0"));
}

#[test]
fn a_repair_can_not_make_another_kind_of_a_table() {
    let table = at_two().stamped(2).property("app.kind", "other").table();
    for way in [&["--restamp", "2"][..], &["--readd-columns"], &["--lower-floor", "0"]] {
        refused(&table, FACTS, way, "not_this_kind");
    }
}

#[test]
fn a_repair_wants_one_way_and_a_reason() {
    let table = at_two().txn("app/facts", 2).table();
    let before = table.files();
    for args in [
        &["--restamp", "2"][..],
        &["--restamp", "2", "--why", ""],
        &["--restamp", "2", "--why", "  "],
        &["--restamp", "2", "--why", "a\nb"],
        &["--why", "x"],
        &["--restamp", "2", "--lower-floor", "1", "--why", "x"],
    ] {
        let ran = on(&table, FACTS, &[&["repair", table.arg()], args].concat());
        assert_eq!(ran.code, 2, "{args:?}: {ran:?}");
    }
    assert!(table.files() == before);
}

#[test]
fn the_record_keeps_what_was_there_before() {
    let table = facts().table();
    assert_eq!(apply(&table, &kind_file(2)).code, 0);
    table.change_metadata(|m| {
        m["configuration"].as_object_mut().unwrap().remove("app.schema_version");
    });
    repaired(&table, &kind_file(2), &["--restamp", "2"]);
    assert_eq!(table.history().len(), 2);
    assert_eq!(last(&table), ("repaired".to_owned(), 2, 2));
}
