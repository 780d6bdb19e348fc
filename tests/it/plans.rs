//! Plans that are saved and carried out later.

use serde_json::{Value, json};

use crate::support::command::{Ran, on};
use crate::support::kinds::row;
use crate::support::rows::{append, read};
use crate::support::{FACTS, Table, apply, facts, kind_file};

fn saved(table: &Table, kind: &str) -> String {
    let file = table.beside("plan.json").to_str().unwrap().to_owned();
    let before = table.files();
    let ran = on(table, kind, &["plan", "-o", &file, table.arg()]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(table.files() == before, "a plan writes nothing to the table");
    file
}

fn apply_plan(table: &Table, kind: &str, file: &str) -> Ran {
    on(table, kind, &["apply", "--plan", file])
}

fn stale(table: &Table, kind: &str, file: &str) -> Value {
    let before = table.files();
    let ran = apply_plan(table, kind, file);
    assert_eq!((ran.code, &ran.table()["outcome"]), (1, &json!("refused")), "{ran:?}");
    assert_eq!(ran.table()["error"]["code"], "stale_plan");
    assert!(ran.table()["error"]["hint"].as_str().unwrap().contains("plan -o"));
    let shown = on(table, kind, &["apply", "--plan", file, "--dry-run"]);
    assert_eq!((shown.code, &shown.table()["error"]["code"]), (1, &json!("stale_plan")), "{shown:?}");
    assert!(table.files() == before);
    ran.table()["error"]["message"].clone()
}

#[test]
fn a_saved_plan_can_be_looked_at_again_without_carrying_it_out() {
    let table = facts().table();
    let file = saved(&table, FACTS);
    let before = table.files();
    let shown = on(&table, FACTS, &["apply", "--plan", &file, "--dry-run"]);
    assert_eq!((shown.code, &shown.table()["outcome"]), (0, &json!("planned")), "{shown:?}");
    assert!(table.files() == before);
}

#[test]
fn a_plan_for_a_kind_that_is_gone_is_stale() {
    let table = facts().table();
    let file = saved(&table, FACTS);
    stale(&table, &FACTS.replace("kind = \"facts\"", "kind = \"renamed\""), &file);
}

#[tokio::test]
async fn a_plan_is_carried_out_after_rows_were_appended() {
    let table = facts().table();
    let file = saved(&table, FACTS);
    append(&table, &[row(1)]).await;
    let ran = apply_plan(&table, FACTS, &file);
    assert_eq!((ran.code, &ran.table()["outcome"]), (0, &json!("migrated")), "{ran:?}");
    assert_eq!(table.versions(), [0, 1, 2]);
    assert_eq!(table.property("app.schema_version").as_deref(), Some("10"));
    assert_eq!(read(&table).await.len(), 1);
}

#[test]
fn a_plan_that_was_carried_out_finds_nothing_to_do() {
    let table = facts().table();
    let file = saved(&table, FACTS);
    assert_eq!(apply_plan(&table, FACTS, &file).table()["outcome"], "migrated");
    let before = table.files();
    let again = apply_plan(&table, FACTS, &file);
    assert_eq!((again.code, &again.table()["outcome"]), (0, &json!("current")), "{again:?}");
    assert!(table.files() == before);
}

#[test]
fn a_plan_is_stale_once_a_property_changed() {
    let table = facts().table();
    let file = saved(&table, FACTS);
    table.set_property("somebody", "was here");
    let why = stale(&table, FACTS, &file);
    assert!(why.as_str().unwrap().contains("configuration"), "{why}");
}

#[test]
fn a_plan_is_stale_once_the_schema_changed() {
    let table = facts().table();
    let file = saved(&table, FACTS);
    let mut fields = table.schema()["fields"].as_array().unwrap().clone();
    fields.push(crate::support::column("theirs", "string"));
    table.set_fields(fields);
    stale(&table, FACTS, &file);
}

#[test]
fn a_plan_is_stale_once_the_protocol_changed() {
    let table = facts().table();
    let file = saved(&table, FACTS);
    table.commit_raw(&[json!({ "protocol": { "minReaderVersion": 1, "minWriterVersion": 3 } })]);
    stale(&table, FACTS, &file);
}

#[test]
fn a_plan_is_stale_once_the_table_is_another_one() {
    let table = facts().table();
    let file = saved(&table, FACTS);
    table.recreate_as(&facts());
    let why = stale(&table, FACTS, &file);
    assert!(why.as_str().unwrap().contains("id"), "{why}");
    std::fs::remove_dir_all(table.path()).unwrap();
    stale(&table, FACTS, &file);
    assert!(table.files().is_empty(), "a plan to migrate creates nothing");
}

#[test]
fn a_plan_is_stale_once_the_chain_is_another_one() {
    let table = facts().table();
    let file = saved(&table, FACTS);
    let edited = FACTS.replacen("score = \"decimal(9,2)\"", "score = \"decimal(9,3)\"", 1);
    let why = stale(&table, &edited, &file);
    assert!(why.as_str().unwrap().contains("chain"), "{why}");
    // A chain that lost its end is another one as well.
    stale(&table, &kind_file(9), &file);
}

#[test]
fn a_plan_goes_no_further_than_it_says() {
    let table = facts().table();
    let file = saved(&table, &kind_file(4));
    let ran = apply_plan(&table, FACTS, &file);
    assert_eq!((ran.code, &ran.table()["to"]), (0, &json!(4)), "{ran:?}");
    assert_eq!(table.property("app.schema_version").as_deref(), Some("4"));
}

#[test]
fn the_commits_are_worked_out_anew_and_never_taken_from_the_file() {
    let table = facts().table();
    let file = saved(&table, FACTS);
    let mut text: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    assert_eq!(text["tables"][0]["commits"][0]["migrations"].as_array().unwrap().len(), 10);
    text["tables"][0]["commits"] = json!([{ "migrations": [], "evil": "drop everything" }]);
    text["tables"][0]["a key of tomorrow"] = json!(1);
    std::fs::write(&file, text.to_string()).unwrap();
    assert_eq!(apply_plan(&table, FACTS, &file).table()["outcome"], "migrated");
    assert_eq!(table.column_names().len(), 7);
}

#[test]
fn a_plan_to_create_creates_and_gives_way_to_whoever_was_first() {
    let table = Table::missing();
    let file = saved(&table, FACTS);
    let ran = apply_plan(&table, FACTS, &file);
    assert_eq!((ran.code, &ran.table()["outcome"]), (0, &json!("created")), "{ran:?}");
    let before = table.files();
    assert_eq!(apply_plan(&table, FACTS, &file).table()["outcome"], "current");
    assert!(table.files() == before);

    let table = Table::missing();
    let file = saved(&table, FACTS);
    facts().write(table.path());
    stale(&table, FACTS, &file);
}

#[test]
fn a_plan_of_a_table_that_is_ahead_or_current_is_carried_out_as_nothing() {
    let table = facts().table();
    assert_eq!(apply(&table, FACTS).code, 0);
    let file = saved(&table, FACTS);
    let before = table.files();
    let ran = apply_plan(&table, FACTS, &file);
    assert_eq!((ran.code, &ran.table()["outcome"]), (0, &json!("current")));
    assert!(table.files() == before);
}

#[test]
fn a_file_that_is_no_plan_is_a_mistake_of_usage() {
    let table = facts().table();
    let before = table.files();
    let file = saved(&table, FACTS);
    let later = std::fs::read_to_string(&file).unwrap().replacen("\"format\": 1", "\"format\": 2", 1);
    let texts = ["", "garbage", "{}", "[]", "{\"format\":1}", "{\"format\":1,\"tables\":[{}]}", &later];
    for text in texts {
        std::fs::write(&file, text).unwrap();
        let ran = apply_plan(&table, FACTS, &file);
        assert_eq!(ran.code, 2, "{text}: {ran:?}");
        assert!(ran.json()["error"]["hint"].as_str().unwrap().contains("plan -o"), "{text}");
    }
    assert_eq!(apply_plan(&table, FACTS, "no-such-plan.json").code, 2);
    assert!(table.files() == before);
}
