//! Rivals between the look and the put.

mod stress;

use std::sync::atomic::{AtomicUsize, Ordering};

use delta_migrate::ErrorCode;
use deltalake::operations::optimize::OptimizeType;

use super::*;
use crate::support::store::{Trick, TrickStore};

/// Migrates while `rival` acts before puts of log entries, which are counted from 0.
async fn against(
    table: &Arc<Table>,
    kind: &str,
    most: u64,
    rival: impl Fn(usize, Arc<Table>) + Send + Sync + 'static,
) -> Result<TableReport, Error> {
    let theirs = table.clone();
    let store = TrickStore::on_put(move |n| {
        rival(n, theirs.clone());
        Trick::Pass
    });
    migrate_at(&table.location_in(&store), kind, most).await
}

fn data_files(table: &Table) -> usize {
    let names = table.files().into_keys().filter_map(|p| Some(p.file_name()?.to_str()?.to_owned()));
    names.filter(|n| n.ends_with(".parquet")).count()
}

#[tokio::test]
async fn appends_that_win_are_filled_too_and_nothing_is_done_twice() {
    for most in [1 << 30, ONE_FILE] {
        let table = Arc::new(table_of(base(), 2).await);
        let report = against(&table, FILL, most, |n, table| {
            if (1..=4).contains(&n) {
                let id = 99 + i64::try_from(n).unwrap();
                meanwhile(async move { append(&table, &[row(id)]).await });
            }
        })
        .await
        .unwrap();
        is_filled(&table, (0..4).chain(100..104)).await;
        assert!(report.attempts > report.commits, "{report:?}");
        // Six files of old rows, and each was written anew once; the first two together.
        assert_eq!(data_files(&table), if most == ONE_FILE { 12 } else { 11 });
        assert_eq!(report.rewrite.unwrap().files, 6);
    }
}

/// Rows of a writer that knows the column need no rewrite, and their file stays.
#[tokio::test]
async fn an_append_that_is_filled_already_is_looked_at_and_left() {
    let table = Arc::new(table_of(base(), 2).await);
    against(&table, FILL, 1 << 30, |n, table| {
        if n == 1 {
            meanwhile(async move {
                append(&table, &[json!({ "id": 100, "code": "x", "tenant": "theirs" })]).await;
            });
        }
    })
    .await
    .unwrap();
    let found = rows(&table).await;
    assert_eq!(found.iter().filter(|r| r["tenant"] == "theirs").count(), 1);
    assert_eq!(found.len(), 5);
    // Two old files, one made of them, and theirs.
    assert_eq!(data_files(&table), 4);
    sound(&table);
}

#[tokio::test]
async fn rows_that_a_rival_deleted_stay_deleted() {
    for at in 1..=3 {
        let table = Arc::new(table_of(base(), 3).await);
        against(&table, FILL, ONE_FILE, move |n, table| {
            if n == at {
                meanwhile(async move {
                    // Half of each file, and a file as a whole.
                    let delete = table.load().await.delete();
                    delete.with_predicate("id = 0 or id = 2 or id = 3 or id = 4").await.unwrap();
                });
            }
        })
        .await
        .unwrap();
        is_filled(&table, [1, 5]).await;
    }
}

#[tokio::test]
async fn an_overwrite_that_wins_is_what_the_table_has() {
    let table = Arc::new(table_of(base(), 3).await);
    against(&table, FILL, 1 << 30, |n, table| {
        if n == 1 {
            meanwhile(async move {
                let gone = active(&table).into_values().map(|add| {
                    json!({ "remove": { "path": add["path"], "dataChange": true, "deletionTimestamp": 0 } })
                });
                // White space is allowed in a log.
                let lines: Vec<String> =
                    gone.map(|a| format!(" {}", a.to_string().replace("\":", "\" : "))).collect();
                let version = table.newest() + 1;
                std::fs::write(table.log_file(version), lines.join("\n") + "\n").unwrap();
                append(&table, &[row(50), row(51)]).await;
            });
        }
    })
    .await
    .unwrap();
    is_filled(&table, [50, 51]).await;
}

/// As another engine writes its JSON.
#[tokio::test]
async fn an_append_in_a_log_entry_with_white_space_is_seen() {
    let table = Arc::new(table_of(base(), 2).await);
    against(&table, FILL, 1 << 30, |n, table| {
        if n == 1 {
            meanwhile(async move {
                append(&table, &[row(50)]).await;
                let entry = table.log_file(table.newest());
                let text = std::fs::read_to_string(&entry).unwrap().replace("{\"add\":{", "{ \"add\" : { ");
                assert!(text.contains("{ \"add\" : { "));
                std::fs::write(entry, text).unwrap();
            });
        }
    })
    .await
    .unwrap();
    is_filled(&table, [0, 1, 2, 3, 50]).await;
}

#[tokio::test]
async fn a_compaction_that_wins_costs_work_and_no_row() {
    for (at, most) in [(1, 1 << 30), (1, ONE_FILE), (2, ONE_FILE)] {
        let table = Arc::new(table_of(base(), 3).await);
        against(&table, FILL, most, move |n, table| {
            if n == at {
                meanwhile(async move {
                    table.load().await.optimize().with_type(OptimizeType::Compact).await.unwrap();
                });
            }
        })
        .await
        .unwrap();
        is_filled(&table, 0..6).await;
    }
}

/// What was worked out for the old properties is not committed under the new ones.
#[tokio::test]
async fn a_rivals_change_of_the_metadata_is_respected() {
    // A change data feed from then on: the fill has to write it.
    let table = Arc::new(table_of(base().versions(1, 4), 2).await);
    against(&table, FILL, 1 << 30, |n, table| {
        if n == 1 {
            table.set_property("delta.enableChangeDataFeed", "true");
        }
    })
    .await
    .unwrap();
    is_filled(&table, 0..4).await;
    let last = table.commit(table.newest());
    assert_eq!(last.iter().filter(|a| a.get("cdc").is_some()).count(), 1, "{last:#?}");

    // A constraint that the values break.
    let table = Arc::new(table_of(base().versions(1, 3), 2).await);
    let error = against(&table, FILL, 1 << 30, |n, table| {
        if n == 1 {
            table.set_property("delta.constraints.theirs", "tenant is null or tenant = 'x'");
        }
    })
    .await
    .unwrap_err();
    assert_eq!(error.code(), ErrorCode::DataStep, "{error:?}");
    assert_eq!(table.property("app.schema_version"), Some("0".into()));
    assert_eq!(ours(&table).len(), 1);
    assert!(rows(&table).await.iter().all(|r| r["tenant"].is_null()));

    // The same before the first commit of ours: then there is none.
    let table = Arc::new(table_of(base().versions(1, 3), 2).await);
    let error = against(&table, FILL, 1 << 30, |n, table| {
        if n == 0 {
            table.set_property("delta.constraints.theirs", "code is null or code = 'x'");
        }
    })
    .await
    .unwrap_err();
    assert_eq!(error.code(), ErrorCode::DataStep, "{error:?}");
    assert!(error.committed().is_empty() && ours(&table).is_empty(), "{error:?}");

    // No rewriting any more.
    let table = Arc::new(table_of(base(), 2).await);
    let error = against(&table, FILL, 1 << 30, |n, table| {
        if n == 1 {
            table.set_property("delta.appendOnly", "true");
        }
    })
    .await
    .unwrap_err();
    assert_eq!(error.code(), ErrorCode::UnsupportedFeature, "{error:?}");
    assert_eq!(error.committed(), [3]);
    assert_eq!(ours(&table).len(), 1);
}

#[tokio::test]
async fn a_rivals_new_column_stays_and_the_fill_goes_on() {
    let table = Arc::new(table_of(base(), 2).await);
    against(&table, FILL, 1 << 30, |n, table| {
        if n == 1 {
            let mut fields = table.schema()["fields"].as_array().unwrap().clone();
            fields.push(column("theirs", "string"));
            table.set_fields(fields);
            meanwhile(async move {
                append(&table, &[json!({ "id": 100, "code": "x", "theirs": "kept" })]).await;
            });
        }
    })
    .await
    .unwrap();
    let found = rows(&table).await;
    assert_eq!(found.len(), 5);
    let theirs = found.iter().find(|r| r["id"] == 100).unwrap();
    assert_eq!((&theirs["theirs"], &theirs["tenant"]), (&json!("kept"), &json!("of x")));
    assert!(found.iter().all(|r| r["tenant"].is_string()));
    sound(&table);
}

/// A row that the next migration would refuse arrives while the first is filled in.
#[tokio::test]
async fn what_arrives_during_one_fill_is_looked_at_for_the_next_migration_too() {
    let kind = r#"
kind = "facts"
[columns]
id = "long"
code = "string"

[[migrations]]
description = "nobody"
[migrations.update]
set = { code = "'nobody'" }
where = "code IS NULL"

[[migrations]]
description = "few"
[migrations.update]
set = { code = "'zero'" }
where = "id = 0 AND code <> 'zero'"
[migrations.add_constraints]
small = "id < 10"
"#;
    let table = Arc::new(table_of(base().versions(1, 3), 2).await);
    let error = against(&table, kind, 1 << 30, |n, table| {
        if n == 0 {
            meanwhile(async move { append(&table, &[row(11)]).await });
        }
    })
    .await
    .unwrap_err();
    assert_eq!(error.code(), ErrorCode::DataStep, "{error:?}");
    assert!(error.message().contains("`small`") && error.message().contains("1 row"), "{error:?}");
    assert_eq!(table.property("app.schema_version").as_deref(), Some("1"));
    assert_eq!(table.property("delta.constraints.small"), None);
    sound(&table);
}

#[tokio::test]
async fn an_append_that_breaks_a_new_constraint_meanwhile_is_noticed() {
    let kind = r#"
kind = "facts"
[columns]
id = "long"
code = "string"
[[migrations]]
description = "small"
[migrations.add_constraints]
small = "id < 10"
"#;
    let table = Arc::new(table_of(base().versions(1, 3), 2).await);
    let error = against(&table, kind, 1 << 30, |n, table| {
        if n == 0 {
            meanwhile(async move { append(&table, &[row(11)]).await });
        }
    })
    .await
    .unwrap_err();
    assert_eq!(error.code(), ErrorCode::DataStep, "{error:?}");
    assert!(error.committed().is_empty() && ours(&table).is_empty(), "{error:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_of_us_at_once_stamp_once_and_double_nothing() {
    for most in [1 << 30, ONE_FILE] {
        let table = Arc::new(table_of(base(), 4).await);
        let of = |table: &Arc<Table>| {
            let table = table.clone();
            tokio::spawn(async move { migrate_at(&table.location(), FILL, most).await })
        };
        let (a, b, c) = (of(&table), of(&table), of(&table));
        for done in [a, b, c] {
            let report = done.await.unwrap().unwrap();
            assert!(["migrated", "current"].contains(&report.outcome.as_str()), "{report:?}");
        }
        is_filled(&table, 0..8).await;
        let stamped = table.versions().into_iter().flat_map(|v| table.commit(v)).filter_map(|a| {
            let stamp = a.get("metaData")?["configuration"]["app.schema_version"].as_str()?.to_owned();
            Some(stamp)
        });
        assert_eq!(stamped.collect::<Vec<_>>(), ["0", "1"], "columns once, stamp once");
    }
}

/// A rival that lands its fill and its stamp while ours waits.
#[tokio::test]
async fn the_same_chain_carried_out_by_somebody_else_meanwhile_is_current() {
    let table = Arc::new(table_of(base(), 3).await);
    let report = against(&table, FILL, 1 << 30, |n, table| {
        if n == 1 {
            meanwhile(async move {
                migrate_at(&table.location(), FILL, ONE_FILE).await.unwrap();
            });
        }
    })
    .await
    .unwrap();
    assert_eq!((report.outcome.as_str(), report.commits), ("migrated", 1));
    is_filled(&table, 0..6).await;
}

#[tokio::test]
async fn a_table_that_never_rests_is_told_so() {
    let table = Arc::new(table_of(base(), 1).await);
    let next = Arc::new(AtomicUsize::new(100));
    let theirs = table.clone();
    let store = TrickStore::on_put(move |n| {
        if n > 0 {
            let (table, id) = (theirs.clone(), next.fetch_add(1, Ordering::SeqCst));
            meanwhile(async move { append(&table, &[row(id.try_into().unwrap())]).await });
        }
        Trick::Pass
    });
    let migrator = Migrator::builder(Namespace::new("app").unwrap())
        .kind(Kind::from_toml(FILL).unwrap())
        .policy(StartupPolicy::ApplyAll)
        .budget(Duration::from_millis(400))
        .build()
        .unwrap();
    let location = table.location_in(&store);
    let error = migrator.migrate("facts", &location, Target::Newest, IfMissing::Refuse).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::Conflict, "{error:?}");
    assert!(error.message().contains("the table never rests"), "{error}");
    assert_eq!(error.committed().len(), 1, "{error:?}");
    assert!(error.hint().unwrap().contains("nothing more was written"), "{error:?}");
    sound(&table);
    migrate(&table, FILL).await.unwrap();
    let found = rows(&table).await;
    assert!(found.iter().all(|r| r["tenant"].is_string()));
}
