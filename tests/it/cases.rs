//! Faults that users of other tools reported, by their number in the list of cases.

use std::sync::Arc;

use delta_migrate::{IfMissing, Target};
use serde_json::{Value, json};

use crate::support::kinds::row;
use crate::support::rows::{append, read};
use crate::support::{
    FACTS, Log, Table, apply, column, facts, migrator, refused_everywhere, required, struct_type,
};

/// The table's kind with one migration more than its base shape.
fn kind(columns: &str, migration: &str) -> String {
    format!("kind = \"facts\"\n[columns]\n{columns}\n[[migrations]]\ndescription = \"one\"\n{migration}\n")
}

fn migrated(table: &Table, kind: &str) {
    let ran = apply(table, kind);
    assert_eq!((ran.code, &ran.table()["outcome"]), (0, &json!("migrated")), "{ran:?}");
}

#[test]
fn case_01_adding_a_column_keeps_the_generation_expression_of_another() {
    let mut day = column("day", "date");
    day["metadata"] = json!({ "delta.generationExpression": "CAST(at AS DATE)", "comment": "\"quoted\"" });
    let fields = vec![column("at", "timestamp"), day.clone()];
    let table = Log::new(fields.clone()).versions(1, 4).table();
    let text = |table: &Table| table.metadata()["schemaString"].as_str().unwrap().to_owned();
    let before = text(&table);
    migrated(&table, &kind("at = \"timestamp\"", "[migrations.add_columns]\nmore = \"string\""));
    assert_eq!(table.schema()["fields"], json!([fields[0], day, column("more", "string")]));
    let old = before.strip_suffix("]}").unwrap();
    assert!(text(&table).starts_with(old), "the old fields stand there byte for byte");
}

#[test]
fn case_02_a_comment_on_a_mixed_case_column_keeps_its_other_metadata() {
    let mut field = column("eventDate", "date");
    field["metadata"] = json!({ "delta.generationExpression": "CAST(eventTime AS DATE)", "comment": "old", "x.y": [1, { "z": null }] });
    let table = Log::new(vec![column("eventTime", "timestamp"), field]).versions(1, 4).table();
    let columns = "eventTime = \"timestamp\"\neventDate = \"date\"";
    migrated(&table, &kind(columns, "[migrations.comments]\neventDate = \"new\""));
    let wanted = json!({
        "delta.generationExpression": "CAST(eventTime AS DATE)", "comment": "new", "x.y": [1, { "z": null }],
    });
    assert_eq!(table.field("eventDate")["metadata"], wanted);
    assert_eq!(table.field("eventDate")["name"], "eventDate");
}

#[test]
fn case_03_adding_a_column_keeps_the_configuration() {
    let properties = [
        ("delta.appendOnly", "true"),
        ("delta.deletedFileRetentionDuration", "interval 3 days"),
        ("delta.constraints.positive", "id > 0"),
        ("spark.x", ""),
        ("app.note", "ours in name, not a stamp"),
        ("other.schema_version", "abc"),
    ];
    let mut log = facts().versions(1, 3);
    for (key, value) in properties {
        log = log.property(key, value);
    }
    let table = log.table();
    migrated(&table, FACTS);
    for (key, value) in properties {
        assert_eq!(table.property(key).as_deref(), Some(value), "{key}");
    }
}

#[test]
fn case_04_the_created_time_is_unchanged_whatever_it_is() {
    for created in [json!(0), json!(1_700_000_000_123_u64), Value::Null] {
        let table = facts().metadata("createdTime", created.clone()).table();
        migrated(&table, FACTS);
        assert_eq!(table.metadata()["createdTime"], created);
    }
    let mut log = facts();
    log.metadata.as_object_mut().unwrap().remove("createdTime");
    let table = log.table();
    migrated(&table, FACTS);
    assert!(table.metadata().get("createdTime").is_none());
}

#[tokio::test]
async fn case_05_a_custom_property_is_stamped_and_delta_rs_reads_it() {
    let table = facts().table();
    migrated(&table, FACTS);
    let loaded = table.load().await;
    let configuration = loaded.snapshot().unwrap().metadata().configuration().clone();
    assert_eq!(configuration["app.schema_version"], "10");
}

#[test]
fn case_06_a_name_beside_one_that_differs_in_case_alone_is_refused() {
    for (there, added) in [("ID", "id"), ("id", "ID"), ("straße", "STRAßE"), ("é", "É")] {
        for (found, wanted) in [("long", "long"), ("long", "string")] {
            let table = Log::new(vec![column("x", "long"), column(there, found)]).table();
            let kind = kind("x = \"long\"", &format!("[migrations.add_columns]\n\"{added}\" = \"{wanted}\""));
            refused_everywhere(&table, &kind, "invalid_name");
        }
    }
    let inner = struct_type(vec![column("ID", "long")]);
    let table = Log::new(vec![column("s", inner)]).table();
    let kind = kind("s = \"struct<ID: long>\"", "[migrations.add_columns]\n\"s.more\" = \"long\"");
    migrated(&table, &kind);
}

#[test]
fn case_08_names_that_parquet_can_not_hold_are_refused_at_any_depth() {
    for name in ["a b", "a,b", "a=b"] {
        let table = Log::new(vec![column("x", "long"), column("s", struct_type(vec![column("y", "long")]))]);
        let columns = "x = \"long\"\ns = \"struct<y: long>\"";
        for path in [name.to_owned(), format!("s.{name}")] {
            let kind = kind(columns, &format!("[migrations.add_columns]\n\"{path}\" = \"long\""));
            refused_everywhere(&table.table(), &kind, "invalid_name");
        }
        // A table can't be born with such a name either.
        let kind = format!("kind = \"facts\"\n[columns]\n\"{name}\" = \"long\"\n");
        refused_everywhere(&Table::missing(), &kind, "invalid_name");
    }
}

#[test]
fn case_15_a_column_that_an_overwrite_removed_is_drift_and_never_current() {
    let table = facts().table();
    migrated(&table, FACTS);
    let without: Vec<Value> = table.schema()["fields"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|f| f["name"] != "detail")
        .cloned()
        .collect();
    table.set_fields(without);
    refused_everywhere(&table, FACTS, "drifted");
    // Also where it is gone from inside a struct.
    let table = facts().table();
    migrated(&table, FACTS);
    let mut fields = table.schema()["fields"].as_array().unwrap().clone();
    fields[2]["type"]["fields"].as_array_mut().unwrap().pop();
    table.set_fields(fields);
    let error = refused_everywhere(&table, FACTS, "drifted");
    assert!(error["message"].as_str().unwrap().contains("`payload.warnings`"), "{error}");
}

#[tokio::test]
async fn case_16_a_table_without_files_is_migrated() {
    let table = facts().table();
    migrated(&table, FACTS);
    assert_eq!(table.load().await.snapshot().unwrap().log_data().num_files(), 0);
    assert_eq!(read(&table).await, Vec::<Value>::new());
    assert_eq!(table.column_names().len(), 7);
}

#[tokio::test]
async fn case_19_nothing_is_ever_deleted_and_no_checkpoint_is_written() {
    let log = facts()
        .property("delta.checkpointInterval", "1")
        .property("delta.logRetentionDuration", "interval 0 days")
        .property("delta.enableExpiredLogCleanup", "true");
    let table = log.table();
    for id in 0..3 {
        table.commit_nothing();
        append(&table, &[row(id)]).await;
    }
    deltalake::checkpoints::create_checkpoint(&table.load().await, None).await.unwrap();
    while table.newest() < 9 {
        table.commit_nothing();
    }
    std::fs::write(table.path().join("_delta_log/00000000000000000003.crc"), "{}").unwrap();
    std::fs::write(table.path().join("_delta_log/00000000000000000004.json.tmp"), "x").unwrap();
    let before = table.files();
    migrated(&table, FACTS);
    let mut after = table.files();
    assert!(after.remove(&table.log_file(10)).is_some());
    assert!(after == before, "something came, went or changed");
}

#[tokio::test]
async fn case_20_a_hint_that_is_empty_or_points_nowhere_does_not_matter() {
    let far = r#"{"version":7,"size":3}"#;
    for hint in
        ["", "{", "{}", "null", far, r#"{"version":-1,"size":1}"#, r#"{"version":0,"size":1,"parts":3}"#]
    {
        let table = facts().table();
        append(&table, &[row(1)]).await;
        let file = table.path().join("_delta_log/_last_checkpoint");
        std::fs::write(&file, hint).unwrap();
        migrated(&table, FACTS);
        assert_eq!(table.versions(), [0, 1, 2], "{hint}");
        assert_eq!(std::fs::read_to_string(file).unwrap(), hint, "the hint is not ours");
    }
}

#[tokio::test]
async fn case_22_two_migrators_race_and_both_succeed() {
    let table = facts().table();
    let migrator = migrator(FACTS);
    let location = table.location();
    let one = || migrator.migrate("facts", &location, Target::Newest, IfMissing::Refuse);
    let (a, b) = tokio::join!(one(), one());
    let mut outcomes = [a.unwrap().outcome.as_str(), b.unwrap().outcome.as_str()];
    outcomes.sort_unstable();
    assert_eq!(outcomes, ["current", "migrated"]);
    assert_eq!(table.versions(), [0, 1]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn case_23_sinks_that_start_together_end_with_one_commit_and_a_table_each() {
    for table in [Table::missing(), facts().table()] {
        let uri = table.arg().to_owned();
        let migrator = Arc::new(migrator(FACTS));
        let sinks: Vec<_> = (0..8)
            .map(|_| {
                let (migrator, uri) = (migrator.clone(), uri.clone());
                tokio::spawn(async move { migrator.open_or_create("facts", uri, Default::default()).await })
            })
            .collect();
        let mut wrote = 0;
        for sink in sinks {
            let opened = sink.await.unwrap().unwrap();
            wrote += opened.report().commits;
            assert!(migrator.check("facts", opened.table()).is_ok());
            assert_eq!(opened.table().version(), Some(table.newest()));
        }
        assert_eq!((wrote, table.history().len()), (1, 1));
    }
}

#[test]
fn case_24_a_second_run_writes_nothing_even_where_others_changed_what_a_migration_set() {
    let table = facts().table();
    migrated(&table, FACTS);
    table.set_property("owner", "somebody else");
    table.change_metadata(|m| m["description"] = "theirs".into());
    let before = table.files();
    for _ in 0..2 {
        assert_eq!(apply(&table, FACTS).table()["outcome"], "current");
    }
    assert!(table.files() == before);
}

#[test]
fn case_24_stamps_of_two_programs_on_one_table_do_not_touch_each_other() {
    let table = Log::new(vec![required("id", "long"), column("name", "string")]).table();
    let kind = kind("id = \"long\"", "[migrations.add_columns]\nmore = \"string\"");
    migrated(&table, &kind);
    let ours = table.property("app.schema_history");
    let file = table.beside("kind.toml");
    let args = ["apply", "--namespace", "theirs", "--kind-file", file.to_str().unwrap(), table.arg()];
    assert_eq!(crate::support::run(&table.beside(""), &args).code, 0);
    assert_eq!(table.property("theirs.schema_version").as_deref(), Some("1"));
    assert_eq!(table.property("app.schema_history"), ours);
    let before = table.files();
    assert_eq!(apply(&table, &kind).table()["outcome"], "current");
    assert!(table.files() == before);
}
