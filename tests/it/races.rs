//! Lost races, unclear answers, and tables that are swapped under the migrator.

mod found;
mod processes;
mod writers;

pub(crate) use found::clean_up;
use std::sync::Arc;
use std::time::Duration;

use delta_migrate::{Error, ErrorCode, IfMissing, StartupPolicy, TableReport, Target};
use object_store::GetOptions;

use crate::support::kinds::row;
use crate::support::rows::{append, read};
use crate::support::store::{Trick, TrickStore, exists, forbidden, unavailable};
use crate::support::{FACTS, Log, Table, facts, kind_file, migrator, migrator_of};

async fn migrate(table: &Table, store: &Arc<TrickStore>) -> Result<TableReport, Error> {
    let location = table.location_in(store);
    migrator(FACTS).migrate("facts", &location, Target::Newest, IfMissing::Create).await
}

/// The same with next to no time.
async fn migrate_briefly(table: &Table, store: &Arc<TrickStore>) -> Error {
    let location = table.location_in(store);
    let migrator = migrator_of(FACTS, StartupPolicy::default(), Duration::from_millis(1));
    migrator.migrate("facts", &location, Target::Newest, IfMissing::Create).await.unwrap_err()
}

/// One migrating commit, at `version`, and the log ends there.
fn migrated_once(table: &Table, report: &TableReport, version: u64) {
    assert_eq!(report.outcome.as_str(), "migrated");
    assert_eq!((report.commits, report.log_version.unwrap().get()), (1, version));
    assert_eq!(table.versions(), (0..=version).collect::<Vec<_>>());
    assert_eq!(table.action(version, "commitInfo")["operation"], "MIGRATE");
    assert_eq!(table.property("app.schema_version").as_deref(), Some("10"));
    assert_eq!(table.history().len(), 1);
}

#[tokio::test]
async fn an_already_exists_although_nothing_landed_is_sent_again() {
    let table = facts().table();
    let store = TrickStore::on_put(|n| if n < 2 { Trick::Instead(exists()) } else { Trick::Pass });
    let report = migrate(&table, &store).await.unwrap();
    migrated_once(&table, &report, 1);
    assert_eq!(store.puts(), 3);
}

#[tokio::test]
async fn an_already_exists_that_never_ends_is_a_failure_of_the_store() {
    let table = facts().table();
    let before = table.files();
    let store = TrickStore::on_put(|_| Trick::Instead(exists()));
    let error = migrate(&table, &store).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::Storage);
    assert!(error.message().contains("exists, but there is none"), "{error}");
    assert!(error.committed().is_empty() && !error.is_refusal());
    assert!(table.files() == before);
}

#[tokio::test]
async fn an_answer_that_was_lost_after_the_commit_landed_is_success() {
    for answer in [exists, unavailable, forbidden] {
        let table = facts().table();
        let store = TrickStore::on_put(move |_| Trick::Afterwards(answer()));
        let report = migrate(&table, &store).await.unwrap();
        migrated_once(&table, &report, 1);
        assert_eq!(store.puts(), 1);
    }
}

#[tokio::test]
async fn an_answer_lost_while_creating_is_success_too() {
    let table = Table::missing();
    let store = TrickStore::on_put(|_| Trick::Afterwards(exists()));
    let report = migrate(&table, &store).await.unwrap();
    assert_eq!((report.outcome.as_str(), table.versions()), ("created", vec![0]));
}

#[tokio::test]
async fn an_error_before_the_act_is_tried_again() {
    let table = facts().table();
    let store = TrickStore::on_put(|n| if n == 0 { Trick::Instead(unavailable()) } else { Trick::Pass });
    let report = migrate(&table, &store).await.unwrap();
    migrated_once(&table, &report, 1);
    assert_eq!(store.puts(), 2);
}

#[tokio::test]
async fn a_store_that_forbids_writing_fails_at_once_and_says_that_nothing_was_written() {
    let table = facts().table();
    let before = table.files();
    let store = TrickStore::on_put(|_| Trick::Instead(forbidden()));
    let error = migrate(&table, &store).await.unwrap_err();
    assert_eq!((error.code(), store.puts()), (ErrorCode::Storage, 1));
    assert!(error.hint().unwrap().contains("nothing was written"), "{error:?}");
    assert!(error.causes().iter().any(|c| c.contains("403")), "{:?}", error.causes());
    assert!(table.files() == before);
}

#[tokio::test]
async fn a_put_that_never_answers_leaves_the_outcome_unknown() {
    let table = facts().table();
    let store = TrickStore::on_put(|_| Trick::Never);
    let error = migrate_briefly(&table, &store).await;
    assert_eq!(error.code(), ErrorCode::OutcomeUnknown);
    assert!(error.is_retryable() && !error.is_refusal());
    assert!(error.hint().unwrap().contains("run it again"), "{error:?}");
    // Running it again, as the hint says, finds out and does it.
    migrated_once(&table, &migrate(&table, &TrickStore::counting()).await.unwrap(), 1);
}

#[tokio::test]
async fn an_append_that_wins_costs_one_more_attempt() {
    let table = Arc::new(facts().table());
    append(&table, &[row(1)]).await;
    let other = table.clone();
    let store = TrickStore::on_put(move |n| {
        if n < 3 {
            other.commit_nothing();
        }
        Trick::Pass
    });
    let report = migrate(&table, &store).await.unwrap();
    migrated_once(&table, &report, 5);
    assert_eq!(report.attempts, 4);
    assert_eq!(read(&table).await.len(), 1);
    let lists = store.take().iter().filter(|r| r.starts_with("list")).count();
    assert_eq!(lists, 1, "the log is read on, not anew");
}

#[tokio::test]
async fn another_writers_metadata_that_wins_is_built_upon() {
    let table = Arc::new(facts().table());
    let other = table.clone();
    let store = TrickStore::on_put(move |n| {
        if n == 0 {
            let mut fields = other.schema()["fields"].as_array().unwrap().clone();
            fields.push(crate::support::column("theirs", "string"));
            let schema = crate::support::struct_type(fields).to_string();
            other.change_metadata(|m| {
                m["schemaString"] = schema.into();
                m["configuration"]["their"] = "property".into();
            });
        }
        Trick::Pass
    });
    let report = migrate(&table, &store).await.unwrap();
    migrated_once(&table, &report, 2);
    assert_eq!(table.property("their").as_deref(), Some("property"));
    assert!(table.column_names().contains(&"theirs".to_owned()) && table.column_names().len() == 8);
}

#[tokio::test]
async fn another_migrator_that_wins_leaves_nothing_to_do() {
    let table = Arc::new(facts().table());
    let other = table.clone();
    let store = TrickStore::on_put(move |_| {
        assert_eq!(crate::support::apply(&other, FACTS).table()["outcome"], "migrated");
        Trick::Pass
    });
    let report = migrate(&table, &store).await.unwrap();
    assert_eq!((report.outcome.as_str(), report.commits, report.attempts), ("current", 0, 1));
    assert_eq!(table.versions(), [0, 1]);
}

#[tokio::test]
async fn an_older_migrator_that_wins_is_carried_on() {
    let table = Arc::new(facts().table());
    let other = table.clone();
    let store = TrickStore::on_put(move |n| {
        if n == 0 {
            assert_eq!(crate::support::apply(&other, &kind_file(4)).code, 0);
        }
        Trick::Pass
    });
    let report = migrate(&table, &store).await.unwrap();
    assert_eq!((report.from.unwrap().get(), report.to.unwrap().get()), (4, 10));
    assert_eq!((table.versions(), table.history().len()), (vec![0, 1, 2], 2));
}

#[tokio::test]
async fn a_newer_migrator_that_wins_and_raises_the_floor_stops_the_loser() {
    let table = Arc::new(facts().table());
    let other = table.clone();
    let store = TrickStore::on_put(move |_| {
        other.set_property("app.min_version", "11");
        Trick::Pass
    });
    let error = migrate(&table, &store).await.unwrap_err();
    assert_eq!((error.code(), table.versions()), (ErrorCode::TooNew, vec![0, 1]));
}

/// The writer is shut out, and is told all the same that the table was changed by its own call.
#[tokio::test]
async fn a_floor_that_is_raised_right_after_the_commit_is_told_with_what_was_committed() {
    let table = Arc::new(facts().table());
    let other = table.clone();
    let store = TrickStore::on_put(move |_| {
        let other = other.clone();
        Trick::Then(Box::new(move || {
            other.set_property("app.min_version", "11");
        }))
    });
    let error = migrator(FACTS).open_at("facts", &table.location_in(&store)).await.unwrap_err();
    assert_eq!((error.code(), error.committed()), (ErrorCode::TooNew, &[1][..]));
    assert_eq!(
        (table.versions(), table.property("app.schema_version").as_deref()),
        (vec![0, 1, 2], Some("10"))
    );
    // Nothing was committed by a call that met the floor at once.
    let error = migrator(FACTS).open_at("facts", &table.location()).await.unwrap_err();
    assert_eq!((error.code(), error.committed()), (ErrorCode::TooNew, &[][..]));
}

#[tokio::test]
async fn writers_that_always_win_end_in_a_conflict_that_names_them() {
    let table = Arc::new(facts().table());
    let other = table.clone();
    let store = TrickStore::on_put(move |_| {
        other.commit_nothing();
        Trick::Pass
    });
    let error = migrate_briefly(&table, &store).await;
    assert_eq!(error.code(), ErrorCode::Conflict);
    assert!(error.message().contains("WRITE by somebody"), "{error}");
    assert!(error.is_retryable() && error.committed().is_empty());
    assert!(table.property("app.schema_version").is_none());
}

#[tokio::test]
async fn the_loser_of_a_creation_takes_the_winners_table() {
    let table = Arc::new(Table::missing());
    let other = table.clone();
    let store = TrickStore::on_put(move |n| {
        if n == 0 {
            facts().write(other.path());
        }
        Trick::Pass
    });
    let report = migrate(&table, &store).await.unwrap();
    migrated_once(&table, &report, 1);
    assert_eq!(table.metadata()["id"], crate::support::log::TABLE_ID);
}

/// A store that lets `act` happen once, right before the newest entry is looked at again.
fn before_the_look(act: impl Fn() + Send + Sync + 'static) -> Arc<TrickStore> {
    let once = std::sync::Once::new();
    TrickStore::on_get(move |_, options: &GetOptions| {
        if options.range.is_some() {
            once.call_once(&act);
        }
    })
}

#[tokio::test]
async fn a_table_that_is_swapped_between_the_read_and_the_put_is_left_alone() {
    for commits in [0, 3] {
        let table = Arc::new(facts().table());
        table.commit_nothing();
        let other = table.clone();
        let store = before_the_look(move || {
            other.recreate_as(&facts());
            for _ in 0..commits {
                other.commit_nothing();
            }
        });
        let error = migrate(&table, &store).await.unwrap_err();
        assert_eq!(error.code(), ErrorCode::IdentityChanged, "{commits}");
        assert!(error.committed().is_empty() && !error.is_refusal());
        assert!(!error.hint().unwrap().is_empty());
        assert_eq!(table.newest(), commits, "nothing was written into the other table");
    }
}

#[tokio::test]
async fn a_table_that_is_swapped_right_before_the_put_for_a_longer_one_is_left_alone() {
    let table = Arc::new(facts().table());
    table.commit_nothing();
    let other = table.clone();
    let store = TrickStore::on_put(move |n| {
        if n == 0 {
            other.recreate_as(&facts());
            for _ in 0..3 {
                other.commit_nothing();
            }
        }
        Trick::Pass
    });
    let error = migrate(&table, &store).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::IdentityChanged);
    assert_eq!(table.versions(), [0, 1, 2, 3], "nothing was written into the other table");
    assert!(table.property("app.schema_version").is_none());
}

/// Delta has no compare-and-swap on a table's id: the commit lands, but it is told.
#[tokio::test]
async fn a_table_that_is_swapped_right_before_the_put_for_a_shorter_one_is_told() {
    for commits in [0, 1] {
        let table = Arc::new(facts().table());
        table.commit_nothing();
        let other = table.clone();
        let store = TrickStore::on_put(move |n| {
            if n == 0 {
                other.recreate_as(&facts());
                for _ in 0..commits {
                    other.commit_nothing();
                }
            }
            Trick::Pass
        });
        let error = migrate(&table, &store).await.unwrap_err();
        assert_eq!((error.code(), error.committed()), (ErrorCode::IdentityChanged, &[2][..]), "{commits}");
    }
}

#[tokio::test]
async fn an_entry_that_is_cleaned_up_right_after_the_put_is_no_other_table() {
    let table = Arc::new(facts().table());
    append(&table, &[row(1)]).await;
    deltalake::checkpoints::create_checkpoint(&table.load().await, None).await.unwrap();
    let other = table.clone();
    let store = TrickStore::on_put(move |_| {
        let other = other.clone();
        Trick::Then(Box::new(move || {
            std::fs::remove_file(other.log_file(0)).unwrap();
            std::fs::remove_file(other.log_file(1)).unwrap();
        }))
    });
    let report = migrate(&table, &store).await.unwrap();
    assert_eq!((report.outcome.as_str(), table.versions()), ("migrated", vec![2]));
}

#[tokio::test]
async fn a_table_that_is_swapped_after_the_put_is_told_with_what_was_committed() {
    let table = Arc::new(facts().table());
    let other = table.clone();
    let store = TrickStore::on_put(move |_| {
        let other = other.clone();
        Trick::Then(Box::new(move || other.recreate_as(&Log::new(vec![crate::support::column("x", "long")]))))
    });
    let error = migrate(&table, &store).await.unwrap_err();
    assert_eq!((error.code(), error.committed()), (ErrorCode::IdentityChanged, &[1][..]));
    assert_eq!(table.column_names(), ["x"]);
}

#[tokio::test]
async fn a_handle_whose_table_was_recreated_is_not_brought_up_to_date() {
    let table = facts().table();
    let held = table.load().await;
    table.recreate_as(&facts());
    let before = table.files();
    let error = migrator(FACTS).bring_up_to_date("facts", held).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::IdentityChanged);
    assert!(table.files() == before);
    // Without a table it is neither created nor another's.
    let held = table.load().await;
    std::fs::remove_dir_all(table.path()).unwrap();
    let error = migrator(FACTS).bring_up_to_date("facts", held).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::IdentityChanged);
    assert!(table.files().is_empty());
}

#[tokio::test]
async fn an_entry_that_was_cleaned_up_meanwhile_is_read_around() {
    let table = Arc::new(facts().table());
    append(&table, &[row(1)]).await;
    deltalake::checkpoints::create_checkpoint(&table.load().await, None).await.unwrap();
    let other = table.clone();
    let store = before_the_look(move || {
        std::fs::remove_file(other.log_file(0)).unwrap();
        std::fs::remove_file(other.log_file(1)).unwrap();
    });
    let report = migrate(&table, &store).await.unwrap();
    assert_eq!((report.outcome.as_str(), table.versions()), ("migrated", vec![2]));
    assert_eq!(read(&table).await.len(), 1);
}
