//! `diff` and `reconcile`: what is listed is done, once, and nothing else is.

mod command;
mod kinds;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use delta_migrate::deltalake::arrow::datatypes::{DataType, Field, Fields, Schema};
use delta_migrate::{
    Change, Desired, Error, ErrorCode, Kind, Migrator, Namespace, Reconciled, StartupPolicy,
};
use serde_json::{Value, json};

use crate::support::kinds::row;
use crate::support::rows::{append, read};
use crate::support::store::{Trick, TrickStore, exists, unavailable};
use crate::support::{FACTS, Log, Table, column, facts, migrator};

/// The columns of [`facts`] with a column more, and a field more inside the payload.
fn schema() -> Schema {
    let payload = Fields::from(vec![
        Field::new("lsn", DataType::Int64, true),
        Field::new("rows", DataType::Int32, true),
    ]);
    let comment = BTreeMap::from([("comment".to_owned(), "who".to_owned())]);
    Schema::new(vec![
        Field::new("id", DataType::Int64, false),
        Field::new("code", DataType::Utf8, false),
        Field::new("payload", DataType::Struct(payload), true),
        Field::new("tenant", DataType::Utf8View, true).with_metadata(comment.into_iter().collect()),
    ])
}

fn desired() -> Desired {
    Desired::schema(&schema()).unwrap()
}

fn without_kinds() -> Migrator {
    Migrator::builder(Namespace::new("app").unwrap()).release("test 1.0").build().unwrap()
}

fn path(change: &Change) -> &str {
    match change {
        Change::AddColumn { path, .. } => path,
        other => panic!("{other:?}"),
    }
}

fn paths(changes: &[Change]) -> Vec<&str> {
    changes.iter().map(path).collect()
}

async fn reconcile(table: &Table, store: &Arc<TrickStore>) -> Result<Reconciled, Error> {
    without_kinds().reconcile(&desired(), &table.location_in(store)).await
}

/// How many objects were put since the last look.
fn puts(store: &TrickStore) -> usize {
    let requests = store.take();
    assert!(!requests.is_empty(), "the table was read through this store");
    requests.iter().filter(|request| request.starts_with("put ")).count()
}

/// One reconciling commit, at `version`, and a second run finds nothing to do.
async fn done_once(table: &Table, done: &Reconciled, version: u64) {
    assert_eq!(paths(done.changes()), ["payload.rows", "tenant"]);
    let report = done.report();
    assert_eq!((report.outcome.as_str(), report.commits), ("reconciled", 1));
    assert_eq!(report.log_version.unwrap().get(), version);
    assert_eq!(table.versions(), (0..=version).collect::<Vec<_>>());
    let names: Vec<String> =
        table.commit(version).iter().flat_map(|a| a.as_object().unwrap().keys().cloned()).collect();
    assert_eq!(names, ["commitInfo", "metaData"]);
    assert_eq!(table.action(version, "commitInfo")["operation"], "RECONCILE");
    let before = table.files();
    let store = TrickStore::counting();
    let second = reconcile(table, &store).await.unwrap();
    assert!(second.changes().is_empty());
    let report = second.report();
    assert_eq!((report.outcome.as_str(), report.commits, puts(&store)), ("current", 0, 0));
    assert!(table.files() == before, "the second run changes no byte");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_run_returns_an_empty_list_and_writes_nothing() {
    let table = facts().table();
    append(&table, &[row(1)]).await;
    let store = TrickStore::counting();
    let done = reconcile(&table, &store).await.unwrap();
    done_once(&table, &done, 2).await;
    assert_eq!(puts(&store), 1);
    assert_eq!(table.field("tenant")["metadata"], json!({ "comment": "who" }));
    assert_eq!(table.field("payload")["type"]["fields"][1], column("rows", "integer"));
    // Other engines read it, and new rows have the columns.
    append(&table, &[json!({ "id": 2, "code": "c", "payload": { "lsn": 1, "rows": 3 }, "tenant": "t" })])
        .await;
    let rows = read(&table).await;
    assert_eq!(rows.len(), 2);
    assert!(rows.iter().any(|r| r["tenant"] == "t" && r["payload"]["rows"] == 3));
    assert!(rows.iter().any(|r| r["id"] == 1 && r.get("tenant").is_none_or(Value::is_null)));
}

#[tokio::test]
async fn what_the_commit_says_of_itself_is_all_that_it_adds() {
    let table = facts().property("their.key", "1").metadata("description", "d").table();
    let before = table.metadata();
    reconcile(&table, &TrickStore::counting()).await.unwrap();
    let mut wanted = before.clone();
    wanted["schemaString"] = table.metadata()["schemaString"].clone();
    assert_eq!(table.metadata(), wanted);
    let info = table.action(1, "commitInfo");
    assert_eq!(
        info["operationParameters"],
        json!({
            "namespace": "app", "release": "test 1.0",
            "columns": r#"[{"path":"payload.rows","type":"integer"},{"path":"tenant","type":"string"}]"#,
        })
    );
    assert_eq!((&info["isBlindAppend"], &info["readVersion"]), (&json!(false), &json!(0)));
    let history = without_kinds().history(&table.location()).await.unwrap();
    let logged = &history.log[0];
    assert_eq!(
        (logged.how.as_str(), logged.columns.as_slice()),
        ("reconciled", &["payload.rows integer".to_owned(), "tenant string".to_owned()][..])
    );
    assert!(history.record.is_empty());
    let told = history.to_string();
    assert!(
        told.contains("log version 1: reconciled, by test 1.0\n      + payload.rows integer\n"),
        "{told}"
    );
}

#[tokio::test]
async fn an_append_that_wins_costs_one_more_attempt() {
    let table = Arc::new(facts().table());
    let other = table.clone();
    let store = TrickStore::on_put(move |n| {
        if n < 2 {
            other.commit_nothing();
        }
        Trick::Pass
    });
    let done = reconcile(&table, &store).await.unwrap();
    assert_eq!(done.report().attempts, 3);
    done_once(&table, &done, 3).await;
}

#[tokio::test]
async fn another_metadata_that_wins_is_built_upon() {
    let table = Arc::new(facts().table());
    let other = table.clone();
    let store = TrickStore::on_put(move |n| {
        if n == 0 {
            let mut fields = other.schema()["fields"].as_array().unwrap().clone();
            fields.push(column("theirs", "date"));
            fields.push(column("tenant", "string"));
            other.set_fields(fields);
            other.set_property("their", "property");
        }
        Trick::Pass
    });
    let done = reconcile(&table, &store).await.unwrap();
    // What the winner added is not added, and not listed.
    assert_eq!(paths(done.changes()), ["payload.rows"]);
    assert_eq!(table.property("their").as_deref(), Some("property"));
    assert_eq!(table.column_names(), ["id", "code", "payload", "theirs", "tenant"]);
    assert_eq!((table.versions(), done.report().attempts), (vec![0, 1, 2, 3], 2));
}

#[tokio::test]
async fn another_reconciliation_that_wins_leaves_nothing_to_do() {
    let table = Arc::new(facts().table());
    let other = table.clone();
    let store = TrickStore::on_put(move |_| {
        let location = other.location();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Runtime::new().unwrap();
            let done = runtime.block_on(without_kinds().reconcile(&desired(), &location)).unwrap();
            assert_eq!(done.changes().len(), 2);
        })
        .join()
        .unwrap();
        Trick::Pass
    });
    let done = reconcile(&table, &store).await.unwrap();
    assert!(done.changes().is_empty());
    assert_eq!((done.report().outcome.as_str(), done.report().commits), ("current", 0));
    assert_eq!(table.versions(), [0, 1]);
}

#[tokio::test]
async fn a_winner_that_stamps_the_table_or_takes_it_away_stops_the_loser() {
    let table = Arc::new(facts().table());
    let other = table.clone();
    let store = TrickStore::on_put(move |_| {
        other.set_property("app.kind", "events");
        Trick::Pass
    });
    let error = reconcile(&table, &store).await.unwrap_err();
    assert_eq!((error.code(), error.committed()), (ErrorCode::NotThisKind, &[][..]), "{error}");
    assert_eq!(table.versions(), [0, 1]);
    let table = Arc::new(facts().table());
    table.commit_nothing();
    let other = table.clone();
    let store = TrickStore::on_put(move |_| {
        other.recreate_as(&Log::new(vec![column("x", "long")]));
        other.commit_nothing();
        other.commit_nothing();
        Trick::Pass
    });
    let error = reconcile(&table, &store).await.unwrap_err();
    assert_eq!((error.code(), error.committed()), (ErrorCode::IdentityChanged, &[][..]), "{error}");
    assert_eq!((table.versions(), table.column_names()), (vec![0, 1, 2], vec!["x".to_owned()]));
}

#[tokio::test]
async fn lost_answers_are_looked_after_as_everywhere() {
    for answer in [exists, unavailable] {
        let table = facts().table();
        let store = TrickStore::on_put(move |_| Trick::Afterwards(answer()));
        let done = reconcile(&table, &store).await.unwrap();
        assert_eq!(store.puts(), 1);
        done_once(&table, &done, 1).await;
    }
    let table = facts().table();
    let store = TrickStore::on_put(|_| Trick::Instead(exists()));
    let before = table.files();
    assert_eq!(reconcile(&table, &store).await.unwrap_err().code(), ErrorCode::Storage);
    assert!(table.files() == before);
}

#[tokio::test]
async fn duties_of_features_are_met() {
    let table = facts()
        .versions(1, 7)
        .features(&[], &["inCommitTimestamp", "rowTracking", "domainMetadata"])
        .property("delta.enableInCommitTimestamps", "true")
        .property("delta.rowTracking.materializedRowIdColumnName", "_row-id")
        .property("delta.rowTracking.materializedRowCommitVersionColumnName", "_row-version");
    let table = table.table();
    let mut first = table.commit(0);
    let late = 4_102_444_800_000_i64;
    first[0]["commitInfo"]["inCommitTimestamp"] = late.into();
    let text: String = first.iter().map(|a| format!("{a}\n")).collect();
    std::fs::write(table.log_file(0), text).unwrap();
    reconcile(&table, &TrickStore::counting()).await.unwrap();
    let info = table.action(1, "commitInfo");
    assert_eq!(info["inCommitTimestamp"], late + 1);
    assert_eq!(info["tags"], json!({ "delta.rowTracking.preserved": "true" }));
}

#[tokio::test]
async fn a_program_that_may_only_verify_writes_nothing() {
    let table = facts().table();
    let before = table.files();
    let verifying = Migrator::builder(Namespace::new("app").unwrap())
        .policy(StartupPolicy::VerifyOnly)
        .budget(Duration::from_secs(5))
        .build()
        .unwrap();
    let error = verifying.reconcile(&desired(), &table.location()).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::Behind);
    assert!(error.message().contains("lacks 2 columns"), "{error}");
    let diff = verifying.diff(&desired(), &table.location()).await.unwrap();
    assert!((diff.adds.len(), diff.refusal.is_none()) == (2, true) && table.files() == before);
    reconcile(&table, &TrickStore::counting()).await.unwrap();
    let done = verifying.reconcile(&desired(), &table.location()).await.unwrap();
    assert!(done.changes().is_empty());
}

#[tokio::test]
async fn a_table_that_is_missing_is_not_made() {
    let table = Table::missing();
    for error in [
        without_kinds().reconcile(&desired(), &table.location()).await.unwrap_err(),
        without_kinds().diff(&desired(), &table.location()).await.unwrap_err(),
    ] {
        assert_eq!(error.code(), ErrorCode::Missing);
        assert_eq!(error.table(), Some(table.location().uri()));
    }
    assert!(!table.path().exists());
}

/// The tables that other programs wrote, if they are at hand.
fn real_tables() -> Vec<std::path::PathBuf> {
    let folder = std::env::var("DELTA_MIGRATE_REAL_TABLES").unwrap_or_else(|_| "../shared/tables".to_owned());
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let Ok(entries) = std::fs::read_dir(&folder) else { return Vec::new() };
    let mut tables: Vec<_> =
        entries.map(|e| e.unwrap().path()).filter(|p| p.join("_delta_log").is_dir()).collect();
    tables.sort();
    tables
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        match path.is_dir() {
            true => copy(&path, &target),
            false => drop(std::fs::copy(&path, &target).unwrap()),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
#[allow(clippy::print_stderr)]
async fn tables_of_other_programs_get_a_column_once_or_stay_as_they_are() {
    let tables = real_tables();
    if tables.is_empty() {
        eprintln!("SKIPPED: no tables of other programs; name a folder of them in DELTA_MIGRATE_REAL_TABLES");
        return;
    }
    let field = Field::new("reconciled_inside", DataType::Float64, true);
    let schema = Schema::new(vec![
        Field::new("reconciled_column", DataType::Int16, true),
        Field::new("reconciled_struct", DataType::Struct(Fields::from(vec![field])), true),
    ]);
    let desired = Desired::schema(&schema).unwrap();
    let (mut done, mut refused, mut mapped) = (0, BTreeMap::<&str, u32>::new(), 0);
    for from in &tables {
        let table = Table::missing();
        copy(from, table.path());
        let before = table.files();
        match without_kinds().reconcile(&desired, &table.location()).await {
            Err(error) => {
                assert!(error.is_refusal(), "{}: {error}", from.display());
                assert!(table.files() == before, "{}", from.display());
                *refused.entry(error.code().as_str()).or_default() += 1;
                continue;
            }
            Ok(first) => assert_eq!(
                paths(first.changes()),
                ["reconciled_column", "reconciled_struct"],
                "{}",
                from.display()
            ),
        }
        let after = table.files();
        assert!(before.iter().all(|(path, bytes)| after.get(path) == Some(bytes)), "{}", from.display());
        let second = without_kinds().reconcile(&desired, &table.location()).await.unwrap();
        assert!(second.changes().is_empty() && table.files() == after, "{}", from.display());
        done += 1;
        mapped +=
            u32::from(table.metadata()["configuration"].get("delta.columnMapping.maxColumnId").is_some());
        // What deltalake could open before it opens now, with the columns.
        let url = url::Url::from_directory_path(from.canonicalize().unwrap()).unwrap();
        if deltalake::open_table(url).await.is_ok() {
            let loaded = table.load().await;
            assert!(
                loaded.snapshot().unwrap().schema().field("reconciled_struct").is_some(),
                "{}",
                from.display()
            );
        }
    }
    eprintln!("{done} tables reconciled, {mapped} of them with column mapping; refused: {refused:?}");
    assert!(done > 60 && mapped > 2, "{done} done, {mapped} mapped, {refused:?}");
}
