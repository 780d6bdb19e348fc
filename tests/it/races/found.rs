//! What simulation found: each once more, by hand.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use delta_migrate::{ErrorCode, Target};
use serde_json::{Value, json};

use super::{migrate, migrate_briefly};
use crate::support::checkpoint::write_checkpoint;
use crate::support::store::{Trick, TrickStore, exists, unavailable};
use crate::support::{FACTS, Table, facts, migrator};

/// The year 2255.
const FUTURE: i64 = 9_000_000_000_000;

/// Writes a checkpoint of the newest version and takes away every entry up to it; gives its file.
pub(crate) fn clean_up(table: &Table) -> PathBuf {
    let all: Vec<Value> = table.versions().into_iter().flat_map(|v| table.commit(v)).collect();
    let last = |name: &str| all.iter().rev().find(|a| a.get(name).is_some()).unwrap().clone();
    let name = format!("{:020}.checkpoint.parquet", table.newest());
    write_checkpoint(table, &name, &[last("protocol"), last("metaData")]);
    table.versions().into_iter().for_each(|v| std::fs::remove_file(table.log_file(v)).unwrap());
    table.path().join("_delta_log").join(name)
}

/// Several engines may write the checkpoint of one version.
#[tokio::test]
async fn a_checkpoint_that_is_written_again_is_no_other_table() {
    let table = Arc::new(facts().table());
    table.commit_nothing();
    let checkpoint = clean_up(&table);
    let store = TrickStore::on_put(move |_| {
        let bytes = std::fs::read(&checkpoint).unwrap();
        std::fs::remove_file(&checkpoint).unwrap();
        std::fs::write(&checkpoint, bytes).unwrap();
        Trick::Pass
    });
    let report = migrate(&table, &store).await.unwrap();
    assert_eq!((report.outcome.as_str(), table.versions()), ("migrated", vec![2]));
}

#[tokio::test]
async fn a_commit_is_not_sent_again_into_another_table() {
    // Where the entry below is gone, the log may have been cleaned up, and our entry with it.
    for (commits, code) in [(3, ErrorCode::IdentityChanged), (0, ErrorCode::OutcomeUnknown)] {
        let table = Arc::new(facts().table());
        (0..3).for_each(|_| assert!(table.commit_nothing() > 0));
        let other = table.clone();
        let store = TrickStore::on_put(move |n| {
            if n == 0 {
                other.recreate_as(&facts());
                (0..commits).for_each(|_| assert!(other.commit_nothing() > 0));
                return Trick::Instead(exists());
            }
            Trick::Pass
        });
        let error = migrate(&table, &store).await.unwrap_err();
        assert_eq!((error.code(), error.committed()), (code, &[][..]));
        assert_eq!((store.puts(), table.newest()), (1, commits), "nothing was written into the other table");
    }
}

#[tokio::test]
async fn a_commit_is_not_sent_again_into_another_table_while_the_first_may_be_under_way() {
    let table = Arc::new(facts().table());
    (0..3).for_each(|_| assert!(table.commit_nothing() > 0));
    let other = table.clone();
    let store = TrickStore::on_put(move |_| {
        other.recreate_as(&facts());
        Trick::Instead(unavailable())
    });
    let error = migrate(&table, &store).await.unwrap_err();
    assert_eq!((error.code(), store.puts()), (ErrorCode::OutcomeUnknown, 1));
    assert_eq!(table.versions(), [0]);
}

/// The store says "exists" to the second of its own attempts; then the entry is cleaned up.
#[tokio::test]
async fn a_commit_that_was_cleaned_up_before_it_was_looked_at_is_not_told_as_nothing() {
    let table = Arc::new(facts().table());
    let other = table.clone();
    let store = TrickStore::on_put(move |_| {
        let other = other.clone();
        Trick::AfterwardsThen(exists(), Box::new(move || drop(clean_up(&other))))
    });
    let error = migrate(&table, &store).await.unwrap_err();
    assert_eq!((error.code(), store.puts()), (ErrorCode::OutcomeUnknown, 1));
    let report = migrate(&table, &TrickStore::counting()).await.unwrap();
    assert_eq!((report.outcome.as_str(), report.commits), ("current", 0));
}

/// Its place is free again, because the log was cleaned up behind a checkpoint: nobody reads it.
#[tokio::test]
async fn a_commit_behind_a_checkpoint_is_no_success() {
    let table = Arc::new(facts().table());
    let other = table.clone();
    let store = TrickStore::on_put(move |n| {
        if n == 0 {
            other.commit_nothing();
            clean_up(&other);
        }
        Trick::Pass
    });
    let error = migrate(&table, &store).await.unwrap_err();
    assert_eq!((error.code(), error.committed()), (ErrorCode::OutcomeUnknown, &[1][..]));
    assert!(error.message().contains("log entry 1 was written, but"), "{error}");
    assert!(error.hint().unwrap().contains("run it again"), "{error:?}");
    // As the hint says.
    let report = migrate(&table, &TrickStore::counting()).await.unwrap();
    assert_eq!((report.outcome.as_str(), report.log_version.unwrap().get()), ("migrated", 2));
    let loaded = table.load().await;
    assert_eq!(loaded.snapshot().unwrap().metadata().configuration()["app.schema_version"], "10");
}

#[tokio::test]
async fn a_creation_behind_a_checkpoint_is_no_success() {
    let table = Arc::new(Table::missing());
    let other = table.clone();
    let store = TrickStore::on_put(move |n| {
        if n == 0 {
            facts().write(other.path());
            other.commit_nothing();
            clean_up(&other);
        }
        Trick::Pass
    });
    let error = migrate(&table, &store).await.unwrap_err();
    assert_eq!((error.code(), error.committed()), (ErrorCode::OutcomeUnknown, &[0][..]));
    let report = migrate(&table, &TrickStore::counting()).await.unwrap();
    assert_eq!((report.outcome.as_str(), report.log_version.unwrap().get()), ("migrated", 2));
}

/// A later answer proves nothing about the first request, which may be under way still.
#[tokio::test]
async fn that_nothing_was_written_is_not_said_after_an_unclear_answer() {
    let table = facts().table();
    let store = TrickStore::on_put(|n| Trick::Instead(if n == 0 { unavailable() } else { exists() }));
    let error = migrate(&table, &store).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::OutcomeUnknown);
    assert!(error.message().contains("no clear answer of the store to 6 attempts in "), "{error}");
    let hint = error.hint().unwrap();
    assert!(hint.contains("run it again") && !hint.contains("nothing was written"), "{hint}");
}

#[tokio::test]
async fn a_conflict_says_how_long_how_often_and_who_won() {
    let table = Arc::new(facts().table());
    let other = table.clone();
    let store = TrickStore::on_put(move |_| {
        other.commit_nothing();
        Trick::Pass
    });
    let error = migrate_briefly(&table, &store).await;
    assert!(error.message().starts_with("every race was lost: 1 attempt in 0."), "{error}");
    assert!(error.message().ends_with(" s; won by WRITE by somebody"), "{error}");
    assert!(error.hint().unwrap().starts_with("nothing was written"), "{error:?}");
}

#[tokio::test]
async fn a_plan_is_made_anew_where_the_timestamp_was_cleaned_up_meanwhile() {
    let table = Arc::new(timestamped());
    let other = table.clone();
    let once = std::sync::Once::new();
    let store = TrickStore::on_get(move |_, options| {
        if options.range.is_some() {
            once.call_once(|| go_on(&other));
        }
    });
    let location = table.location_in(&store);
    let plan = migrator(FACTS).plan("facts", &location, Target::Newest).await.unwrap();
    assert_eq!(plan.log_version().unwrap().get(), 2);
}

/// A table with in-commit timestamps at version 1.
fn timestamped() -> Table {
    let log =
        facts().features(&[], &["inCommitTimestamp"]).property("delta.enableInCommitTimestamps", "true");
    let table = log.table();
    table.commit_raw(&[stamped(5)]);
    table
}

fn stamped(at: i64) -> Value {
    json!({ "commitInfo": { "inCommitTimestamp": at, "operation": "WRITE" } })
}

/// Cleans up the log behind a checkpoint, and commits once more.
fn go_on(table: &Table) {
    clean_up(table);
    std::fs::write(table.log_file(2), format!("{}\n", stamped(FUTURE))).unwrap();
}

/// The entry with the timestamp is cleaned up between the look at it and the read of it.
#[tokio::test]
async fn an_in_commit_timestamp_that_is_cleaned_up_meanwhile_is_no_corruption() {
    let table = Arc::new(timestamped());
    let other = table.clone();
    let looks = AtomicUsize::new(0);
    let store = TrickStore::on_get(move |_, options| {
        // The first is the look, the second the read.
        if options.range.is_some() && looks.fetch_add(1, Ordering::Relaxed) == 1 {
            go_on(&other);
        }
    });
    let report = migrate(&table, &store).await.unwrap();
    assert_eq!((report.outcome.as_str(), report.attempts, table.versions()), ("migrated", 2, vec![2, 3]));
    assert_eq!(table.action(3, "commitInfo")["inCommitTimestamp"], FUTURE + 1);
}
