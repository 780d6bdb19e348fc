//! What one migrating commit leaves, and what it leaves alone.

use delta_migrate::{IfMissing, TableReport, Target};
use serde_json::{Value, json};

use crate::support::kinds::row;
use crate::support::rows::{append, read};
use crate::support::{FACTS, Log, Table, apply, column, facts, kind_file, migrator, required, struct_type};

async fn migrate(table: &Table, kind: &str) -> TableReport {
    let migrator = migrator(kind);
    migrator.migrate("facts", &table.location(), Target::Newest, IfMissing::Refuse).await.unwrap()
}

/// Runs the command and asserts that the only new file is one log entry of these three actions.
fn one_new_entry(table: &Table, kind: &str) -> u64 {
    let before = table.files();
    let newest = *table.versions().last().unwrap();
    let ran = apply(table, kind);
    assert_eq!((ran.code, ran.table()["outcome"].as_str()), (0, Some("migrated")), "{ran:?}");
    let mut after = table.files();
    let entry = newest + 1;
    assert!(after.remove(&table.log_file(entry)).is_some(), "{:?}", table.versions());
    assert!(after == before, "another file came, went or changed");
    let names: Vec<String> =
        table.commit(entry).iter().map(|a| a.as_object().unwrap().keys().next().unwrap().clone()).collect();
    assert_eq!(names, ["commitInfo", "metaData", "txn"]);
    assert_eq!(ran.table()["log_version"], entry);
    assert_eq!(ran.table()["commits"], 1);
    entry
}

#[tokio::test]
async fn ten_migrations_behind_is_one_new_entry_and_nothing_else() {
    let table = facts().property("legacy", "x").table();
    append(&table, &[row(1), row(2)]).await;
    let rows = read(&table).await;
    let entry = one_new_entry(&table, FACTS);

    let names = ["id", "code", "payload", "detail", "tenant", "tags", "score"];
    assert_eq!(table.column_names(), names);
    let warnings = json!({ "type": "array", "elementType": "string", "containsNull": true });
    let comment = json!({ "comment": "log sequence number" });
    let lsn = json!({ "name": "lsn", "type": "long", "nullable": true, "metadata": comment });
    assert_eq!(table.field("payload")["type"], struct_type(vec![lsn, column("warnings", warnings)]));
    assert_eq!(table.field("detail")["metadata"], json!({ "comment": "JSON; text before 1.0" }));
    assert_eq!(table.field("code")["nullable"], true);
    assert_eq!(table.field("id")["nullable"], false);
    assert_eq!(table.field("score")["type"], "decimal(9,2)");
    let value = &table.field("tags")["type"]["valueType"];
    let names: Vec<&Value> = value["fields"].as_array().unwrap().iter().map(|f| &f["name"]).collect();
    assert_eq!(names, ["since", "by", "why"]);
    assert_eq!(value["fields"][2]["metadata"], json!({ "comment": "free text" }));

    assert_eq!(table.metadata()["description"], "All facts, with \"quotes\" and ü");
    let property = |key: &str| table.property(key);
    assert_eq!(property("delta.logRetentionDuration").as_deref(), Some("interval 90 days"));
    assert_eq!(property("owner").as_deref(), Some("team b"));
    assert_eq!(property("legacy"), None);
    assert_eq!(property("app.schema_version").as_deref(), Some("10"));
    assert_eq!(property("app.min_version").as_deref(), Some("8"));
    assert_eq!(property("app.kind").as_deref(), Some("facts"));
    assert_eq!(property("app.schema_digest").unwrap().split(',').count(), 11);
    let history = table.history();
    assert_eq!((history.len(), &history[0]["how"], &history[0]["floor"]), (1, &json!("adopted"), &json!(8)));

    let txn = table.action(entry, "txn");
    assert_eq!((&txn["appId"], &txn["version"]), (&json!("app/facts"), &json!(10)));
    let info = table.action(entry, "commitInfo");
    assert_eq!(info["operation"], "MIGRATE");
    assert_eq!(info["operationParameters"]["to"], "10");
    assert!(info.get("userMetadata").is_none(), "userMetadata stays the user's");

    let wanted: Vec<Value> = rows
        .into_iter()
        .map(|mut row| {
            for name in ["detail", "tenant", "tags", "score"] {
                row[name] = Value::Null;
            }
            row
        })
        .collect();
    assert_eq!(read(&table).await, wanted);
}

#[test]
fn a_second_run_writes_nothing() {
    let table = facts().table();
    assert_eq!(apply(&table, FACTS).table()["outcome"], "migrated");
    let before = table.files();
    let again = apply(&table, FACTS);
    assert_eq!((again.code, again.table()["outcome"].as_str()), (0, Some("current")));
    assert!(table.files() == before);
}

/// A metaData line with everything that a program might lose, as another writer's bytes.
const SCHEMA: &str = concat!(
    r#"{ "type":"struct", "future":[1,2.50], "fields":[{"metadata":{"delta.generationExpression":"CAST(x AS"#,
    r#" DATE)","n":1.10,"nested":{"b":1,"a":2}},"name":"id","nullable":false,"type":"long","extra":null},"#,
    r#"{"name":"code","type":"string","nullable":false,"metadata":{"comment":"gr\u00fc\u00df \/ dich"}},"#,
    r#"{"name":"payload","type":{"type":"struct","fields":[{"name":"lsn","type":"long","nullable":true,"#,
    r#""metadata":{}}]},"nullable":true,"metadata":{}}]}"#
);

fn odd_metadata() -> String {
    let head = r#"{"metaData":{"future":{"z":1,"a":[1e3,"\u00fc"]},"name":"a \/ b","id":"odd-id","#;
    let format = r#""format":{"provider":"parquet","options":{"compression":"zstd"}},"createdTime":null,"#;
    let configuration = r#""configuration":{"zebra":"1","app.other":"\u00e9\n","ant":"\/","legacy":"x"},"#;
    let schema = serde_json::to_string(SCHEMA).unwrap();
    format!("{head}{format}{configuration}\"partitionColumns\":[],\"schemaString\":{schema}}}}}\n")
}

#[test]
fn everything_of_the_old_metadata_is_carried_over() {
    let table = facts().table();
    let lines: Vec<String> = facts().actions();
    std::fs::write(table.log_file(0), format!("{}\n{}\n{}", lines[0], lines[1], odd_metadata())).unwrap();
    let entry = one_new_entry(&table, FACTS);

    let text = std::fs::read_to_string(table.log_file(entry)).unwrap();
    let line = text.lines().nth(1).unwrap();
    for kept in [
        r#""future":{"z":1,"a":[1e3,"\u00fc"]}"#,
        r#""name":"a \/ b""#,
        r#""id":"odd-id""#,
        r#""format":{"provider":"parquet","options":{"compression":"zstd"}}"#,
        r#""createdTime":null"#,
    ] {
        assert!(line.contains(kept), "{kept} is not in {line}");
    }
    let metadata = table.metadata();
    let schema = metadata["schemaString"].as_str().unwrap();
    for kept in [
        r#""future":[1,2.50]"#,
        r#""delta.generationExpression":"CAST(x AS DATE)","n":1.10,"nested":{"b":1,"a":2}"#,
        r#""name":"id","nullable":false,"type":"long","extra":null}"#,
        r#"{"comment":"gr\u00fc\u00df \/ dich"}"#,
    ] {
        assert!(schema.contains(kept), "{kept} is not in {schema}");
    }
    let keys: Vec<&String> = metadata["configuration"].as_object().unwrap().keys().collect();
    assert_eq!(keys[..3], ["zebra", "app.other", "ant"], "{keys:?}");
    assert_eq!(metadata["configuration"]["app.other"], "é\n");
    assert_eq!(metadata["configuration"]["ant"], "/");
}

#[test]
fn a_created_time_stays_what_it_was() {
    let table = facts().table();
    one_new_entry(&table, FACTS);
    assert_eq!(table.metadata()["createdTime"], crate::support::log::CREATED);
    assert_eq!(table.metadata()["id"], crate::support::log::TABLE_ID);
}

#[tokio::test]
async fn a_target_stops_the_chain_and_a_later_run_goes_on() {
    let table = facts().table();
    let migrator = migrator(FACTS);
    let three = Target::Version(delta_migrate::SchemaVersion::new(3));
    let report = migrator.migrate("facts", &table.location(), three, IfMissing::Refuse).await.unwrap();
    assert_eq!((report.to.unwrap().get(), table.newest()), (3, 1));
    assert_eq!(table.property("app.schema_version").as_deref(), Some("3"));
    assert_eq!(table.property("app.min_version"), None, "the floor rises at 8 only");
    assert_eq!(table.field("code")["nullable"], false);
    let report = migrate(&table, FACTS).await;
    assert_eq!((report.from.unwrap().get(), report.to.unwrap().get()), (3, 10));
    assert_eq!(table.history().len(), 2);
    assert_eq!(table.history()[0]["how"], "adopted");
    assert_eq!(table.history()[1]["how"], "migrated");
}

#[test]
fn a_higher_floor_of_the_table_is_never_lowered() {
    let table = facts().stamped(0).property("app.min_version", "9").table();
    one_new_entry(&table, FACTS);
    assert_eq!(table.property("app.min_version").as_deref(), Some("9"));
    assert!(table.history()[0].get("floor").is_none(), "the floor did not change");
}

#[tokio::test]
async fn a_table_whose_old_commits_are_only_in_a_checkpoint_is_migrated() {
    let table = facts().metadata("format", json!({ "provider": "parquet", "options": { "k": "v" } })).table();
    append(&table, &[row(1)]).await;
    append(&table, &[row(2)]).await;
    deltalake::checkpoints::create_checkpoint(&table.load().await, None).await.unwrap();
    append(&table, &[row(3)]).await;
    for version in 0..=2 {
        std::fs::remove_file(table.log_file(version)).unwrap();
    }
    assert_eq!(table.versions(), [3]);
    let id = crate::support::log::TABLE_ID;
    one_new_entry(&table, FACTS);
    let metadata = table.metadata();
    assert_eq!(
        (&metadata["id"], &metadata["createdTime"]),
        (&json!(id), &json!(crate::support::log::CREATED))
    );
    let rows = read(&table).await;
    assert_eq!(rows.len(), 3);
    assert!(rows.iter().all(|r| r["tenant"].is_null() && r["id"].is_i64()), "{rows:?}");
}

#[tokio::test]
async fn a_table_with_a_v2_checkpoint_is_migrated() {
    let features = ["v2Checkpoint"];
    let log = facts().features(&features, &features).property("delta.checkpointPolicy", "v2");
    let table = log.table();
    let mut actions = vec![json!({ "checkpointMetadata": { "version": 0 } }).to_string()];
    actions.extend(log.actions().into_iter().skip(1));
    let name = "00000000000000000000.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json";
    std::fs::write(table.path().join("_delta_log").join(name), actions.join("\n") + "\n").unwrap();
    table.commit_nothing();
    std::fs::remove_file(table.log_file(0)).unwrap();
    let ran = apply(&table, FACTS);
    assert_eq!(ran.table()["outcome"], "migrated", "{ran:?}");
    assert_eq!(table.versions(), [1, 2]);
    assert_eq!(table.property("delta.checkpointPolicy").as_deref(), Some("v2"));
    assert_eq!(read(&table).await, Vec::<Value>::new());
}

#[tokio::test]
async fn columns_that_are_there_already_are_left_alone() {
    let mut log = facts();
    let detail = json!({ "name": "detail", "type": "string", "nullable": true, "metadata": { "x": 1 } });
    log.schema["fields"].as_array_mut().unwrap().insert(0, detail.clone());
    let table = log.table();
    migrate(&table, &kind_file(1)).await;
    assert_eq!(table.field("detail"), detail);
    assert_eq!(table.column_names(), ["detail", "id", "code", "payload"]);
}

#[tokio::test]
async fn a_partitioned_table_keeps_its_partitioning_and_rows() {
    let table = Log::new(vec![
        required("id", "long"),
        required("code", "string"),
        column("payload", struct_type(vec![column("lsn", "long")])),
        column("day", "string"),
    ])
    .partitioned(&["day"])
    .table();
    append(&table, &[json!({ "id": 1, "code": "c", "payload": null, "day": "2026-11-30" })]).await;
    migrate(&table, FACTS).await;
    assert_eq!(table.metadata()["partitionColumns"], json!(["day"]));
    let rows = read(&table).await;
    assert_eq!((rows.len(), &rows[0]["id"], &rows[0]["tenant"]), (1, &json!(1), &Value::Null));
}

#[tokio::test]
async fn a_missing_table_is_born_at_the_newest_shape() {
    let table = Table::missing();
    let ran = apply(&table, FACTS);
    assert_eq!((ran.code, ran.table()["outcome"].as_str()), (0, Some("created")), "{ran:?}");
    assert_eq!(table.versions(), [0]);
    assert_eq!(table.files().keys().filter(|p| p.is_file()).count(), 1, "the log entry and nothing else");
    assert_eq!(table.column_names(), ["id", "code", "payload", "detail", "tenant", "tags", "score"]);
    assert_eq!(table.property("app.min_version").as_deref(), Some("8"));
    assert_eq!(table.property("owner").as_deref(), Some("team b"));
    assert_eq!(table.history()[0]["how"], "created");
    let protocol = table.action(0, "protocol");
    assert_eq!(protocol, json!({ "minReaderVersion": 1, "minWriterVersion": 2 }));
    append(&table, &[row(1)]).await;
    assert_eq!(read(&table).await.len(), 1);
    assert_eq!(apply(&table, FACTS).table()["outcome"], "current");
}
