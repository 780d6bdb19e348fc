//! What a streaming sink does with the library.

use std::collections::HashMap;
use std::time::Duration;

use delta_migrate::{Assessment, Error, ErrorCode, Opened, StartupPolicy};
use serde_json::{Value, json};

use crate::support::kinds::row;
use crate::support::rows::{append, append_as, arrow_schema, known_columns, read};
use crate::support::store::TrickStore;
use crate::support::{FACTS, Table, apply, facts, kind_file, migrator, migrator_of};

async fn open(table: &Table, kind: &str, policy: StartupPolicy) -> Result<Opened, Error> {
    let migrator = migrator_of(kind, policy, Duration::from_secs(60));
    migrator.open_or_create("facts", table.arg(), HashMap::new()).await
}

async fn opened(table: &Table, kind: &str) -> Opened {
    open(table, kind, StartupPolicy::default()).await.unwrap()
}

/// A row as a release writes it that knows everything.
fn full_row(id: i64) -> Value {
    json!({
        "id": id, "code": null, "payload": { "lsn": 1, "warnings": ["w"] }, "detail": "d", "tenant": "t",
        "tags": { "k": { "since": null, "by": "b", "why": "y" } }, "score": 1.5,
    })
}

#[tokio::test]
async fn opening_creates_then_migrates_then_finds_nothing_to_do() {
    let table = Table::missing();
    let first = opened(&table, &kind_file(4)).await;
    assert_eq!((first.report().outcome.as_str(), table.versions()), ("created", vec![0]));
    let mut loaded = first.into_table();
    let schema = arrow_schema(&loaded);
    append_as(&mut loaded, schema, &[row(1)]).await.unwrap();

    let second = opened(&table, FACTS).await;
    assert_eq!((second.report().outcome.as_str(), table.versions()), ("migrated", vec![0, 1, 2]));
    assert_eq!(second.table().version(), Some(2), "the table is handed over as it is now");
    let mut loaded = second.into_table();
    let schema = arrow_schema(&loaded);
    append_as(&mut loaded, schema, &[full_row(2)]).await.unwrap();

    let before = table.files();
    let third = opened(&table, FACTS).await;
    assert_eq!((third.report().outcome.as_str(), third.report().commits), ("current", 0));
    assert!(table.files() == before);

    let rows = read(&table).await;
    assert_eq!(rows.len(), 2);
    let by_id = |id: i64| rows.iter().find(|r| r["id"] == id).unwrap();
    assert_eq!(by_id(1)["code"], "c1");
    assert!(by_id(1)["tenant"].is_null() && by_id(1)["score"].is_null());
    assert_eq!(by_id(2)["tenant"], "t");
    assert_eq!(by_id(2)["payload"]["warnings"], json!(["w"]));
    assert_eq!(by_id(2)["tags"]["k"]["why"], "y");
}

#[tokio::test]
async fn an_open_table_is_brought_up_to_date() {
    let table = facts().table();
    append(&table, &[row(1)]).await;
    let held = table.load().await;
    let opened = migrator(FACTS).bring_up_to_date("facts", held).await.unwrap();
    assert_eq!(opened.report().outcome.as_str(), "migrated");
    assert_eq!(opened.table().version(), Some(2));
    assert!(arrow_schema(opened.table()).field_with_name("tenant").is_ok());
    assert_eq!(read(&table).await.len(), 1);
}

#[tokio::test]
async fn a_handle_that_others_wrote_behind_is_brought_up_to_date_too() {
    let table = facts().table();
    let held = table.load().await;
    append(&table, &[row(1)]).await;
    assert_eq!(apply(&table, &kind_file(3)).code, 0);
    let opened = migrator(FACTS).bring_up_to_date("facts", held).await.unwrap();
    assert_eq!((opened.report().from.unwrap().get(), opened.table().version()), (3, Some(3)));
}

#[tokio::test]
async fn a_check_asks_the_store_for_nothing_and_stops_an_old_release_once_the_floor_rises() {
    let table = facts().table();
    let old = migrator(&kind_file(7));
    let store = TrickStore::counting();
    let location = table.location_in(&store);
    let mut held = old.open_at("facts", &location).await.unwrap().into_table();
    store.take();
    for _ in 0..100 {
        assert!(matches!(old.check("facts", &held), Ok(Assessment::Current { .. })));
    }
    assert_eq!(store.take(), Vec::<String>::new());

    // The newer release takes the table on, past the floor at 8.
    assert_eq!(apply(&table, FACTS).table()["outcome"], "migrated");
    assert!(old.check("facts", &held).is_ok(), "a snapshot that is not refreshed knows nothing of it");
    held.update_state().await.unwrap();
    store.take();
    let error = old.check("facts", &held).unwrap_err();
    assert_eq!(store.take(), Vec::<String>::new());
    assert_eq!(error.code(), ErrorCode::TooNew);
    assert!(error.message().contains("delta-migrate"), "who raised it: {error}");
    assert!(error.is_refusal());
    let error = old.bring_up_to_date("facts", held).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::TooNew, "nor is the table handed out anew");
}

#[tokio::test]
async fn a_check_lets_an_old_release_go_on_where_no_floor_was_raised() {
    let table = facts().table();
    let old = migrator(&kind_file(3));
    let mut held = old.open_or_create("facts", table.arg(), HashMap::new()).await.unwrap().into_table();
    assert_eq!(apply(&table, &kind_file(7)).code, 0);
    held.update_state().await.unwrap();
    let Assessment::Ahead { table: version, known } = old.check("facts", &held).unwrap() else { panic!() };
    assert_eq!((version.get(), known.get()), (7, 3));
    let before = table.versions();
    let reopened = old.open_or_create("facts", table.arg(), HashMap::new()).await.unwrap();
    assert_eq!((reopened.report().outcome.as_str(), table.versions()), ("ahead", before));
    let mut held = reopened.into_table();
    let schema = known_columns(&held, &["id", "code", "detail"]);
    append_as(&mut held, schema, &[json!({ "id": 1, "code": "c", "detail": "d" })]).await.unwrap();
    assert_eq!(table.property("app.schema_version").as_deref(), Some("7"), "no stamp was lowered");
}

#[tokio::test]
async fn stop_at_floor_goes_as_far_as_no_older_release_is_shut_out() {
    let table = facts().table();
    let report = open(&table, FACTS, StartupPolicy::StopAtFloor).await.unwrap();
    assert_eq!((report.report().to.unwrap().get(), table.versions()), (7, vec![0, 1]));
    assert_eq!(table.property("app.schema_version").as_deref(), Some("7"));
    assert_eq!(table.property("app.min_version"), None);
    assert!(!table.column_names().contains(&"tenant".to_owned()));
    let before = table.files();
    open(&table, FACTS, StartupPolicy::StopAtFloor).await.unwrap();
    assert!(table.files() == before);
    opened(&table, FACTS).await;
    assert_eq!(table.property("app.schema_version").as_deref(), Some("10"));
}

#[tokio::test]
async fn verify_only_writes_nothing_and_fails_unless_the_table_fits() {
    let verify = async |table: &Table| {
        let before = table.files();
        let opened = open(table, FACTS, StartupPolicy::VerifyOnly).await;
        assert!(table.files() == before);
        opened
    };
    let code = |opened: Result<Opened, Error>| {
        let error = opened.unwrap_err();
        assert!(error.is_refusal() && error.hint().unwrap().contains("delta-migrate apply"), "{error:?}");
        error.code()
    };
    assert_eq!(code(verify(&Table::missing()).await), ErrorCode::Missing);
    assert_eq!(code(verify(&facts().table()).await), ErrorCode::Unversioned);
    assert_eq!(code(verify(&facts().stamped(0).table()).await), ErrorCode::Behind);
    let table = facts().table();
    assert_eq!(apply(&table, FACTS).code, 0);
    assert_eq!(verify(&table).await.unwrap().report().outcome.as_str(), "current");
}

#[tokio::test]
async fn a_stale_writers_append_after_the_migration_is_accepted_and_reads_null() {
    let table = facts().table();
    append(&table, &[row(1)]).await;
    let mut stale = table.load().await;
    let old_schema = arrow_schema(&stale);
    assert_eq!(apply(&table, FACTS).code, 0);
    // A transaction that is in flight while the commit lands fails, as the plan's warning says …
    let lost = append_as(&mut stale, old_schema.clone(), &[row(2)]).await.unwrap_err();
    assert!(lost.to_lowercase().contains("metadata"), "{lost}");
    // … and is accepted when it is run again, by a program that knows nothing of the new columns.
    stale.update_state().await.unwrap();
    append_as(&mut stale, old_schema, &[row(2)]).await.unwrap();
    let rows = read(&table).await;
    assert_eq!(rows.len(), 2, "no row of the lost transaction is there: {rows:?}");
    for row in &rows {
        assert!(row["code"].is_string() && row["payload"]["lsn"].is_i64(), "{row}");
        for name in ["detail", "tenant", "tags", "score"] {
            assert!(row[name].is_null(), "{row}");
        }
    }
    assert_eq!(apply(&table, FACTS).table()["outcome"], "current");
}

#[tokio::test]
async fn a_table_that_is_refused_is_not_handed_out() {
    let table = facts().stamped(0).property("app.kind", "control").table();
    let before = table.files();
    for policy in [StartupPolicy::ApplyMetadata, StartupPolicy::StopAtFloor, StartupPolicy::ApplyAll] {
        assert_eq!(open(&table, FACTS, policy).await.unwrap_err().code(), ErrorCode::NotThisKind);
    }
    let held = table.load().await;
    assert_eq!(migrator(FACTS).check("facts", &held).unwrap_err().code(), ErrorCode::NotThisKind);
    assert!(table.files() == before);
}

#[tokio::test]
async fn a_folder_that_is_no_table_is_not_taken_for_a_missing_one() {
    let table = Table::missing();
    std::fs::create_dir_all(table.path()).unwrap();
    std::fs::write(table.path().join("rows.csv"), "1\n").unwrap();
    let error = open(&table, FACTS, StartupPolicy::default()).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::NotATable);
    assert!(!table.path().join("_delta_log").exists());
}
