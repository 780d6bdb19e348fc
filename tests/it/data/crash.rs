//! Killed at every write, then run again.

use super::store::{Fault, FaultyStore};
use super::*;

/// Two fills: one that lands in several commits, and one behind it.
const TWICE: &str = r#"
kind = "facts"
[columns]
id = "long"
code = "string"

[[migrations]]
description = "tenant"
raises_min_version = true
[migrations.add_columns]
tenant = "string"
[migrations.update]
set = { tenant = "concat('of ', coalesce(code, 'nobody'))" }
where = "tenant IS NULL"

[[migrations]]
description = "nobody is somebody"
[migrations.update]
set = { code = "'nobody'" }
where = "code IS NULL"
[migrations.add_constraints]
has_code = "code IS NOT NULL"
"#;

fn filled_twice(ids: impl IntoIterator<Item = i64>) -> Vec<Value> {
    let mut all: Vec<Value> = ids.into_iter().map(filled).collect();
    for row in &mut all {
        if row["code"].is_null() {
            row["code"] = "nobody".into();
        }
    }
    all.sort_by_key(ToString::to_string);
    all
}

async fn crashed(at: &Table, kind: &str, fault: Fault) -> (Result<TableReport, Error>, usize) {
    let store = FaultyStore::new(fault);
    let done = migrate_at(&location_in(at, store.clone()), kind, ONE_FILE).await;
    (done, store.writes())
}

/// What an error says of commits that landed is true.
fn says_what_landed(table: &Table, first: u64, error: &Error) {
    let mut landed: Vec<u64> = ours(table).into_keys().filter(|v| *v > first).collect();
    let mut told = error.committed().to_vec();
    landed.sort_unstable();
    told.sort_unstable();
    assert_eq!(told, landed, "{error:?}");
    let hint = error.hint().unwrap_or_default();
    assert!(landed.is_empty() || !hint.contains("nothing was written;"), "{hint}");
}

/// The command itself, killed later and later until it comes to its end.
#[tokio::test]
async fn the_command_killed_at_any_time_goes_on_with_the_next_run() {
    let base = table_of(base(), 6).await;
    let kind = base.beside("facts.toml");
    std::fs::write(&kind, FILL).unwrap();
    let command = |table: &Table| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_delta-migrate"));
        command.args(["apply", "--allow-rewrite", "--namespace", "app", "--kind-file"]).arg(&kind);
        command.arg(table.path()).stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
        command
    };
    let (mut killed, mut ended) = (0, false);
    for pause in (0..).map(|n| Duration::from_millis(15 * n)) {
        let table = copy_of(&base);
        let mut child = command(&table).spawn().unwrap();
        tokio::time::sleep(pause).await;
        // Nothing is asked of the process: SIGKILL.
        child.kill().unwrap();
        ended = child.wait().unwrap().success();
        killed += u32::from(!ended);
        sound(&table);
        assert!(command(&table).status().unwrap().success(), "after {pause:?}");
        is_filled(&table, 0..12).await;
        if ended {
            break;
        }
    }
    assert!(ended && killed > 0, "{killed}");
}

/// Carries the chain out with every fault at every write, runs it again, and looks at the rows.
async fn every_point(base: &Table, kind: &str, stamp: &str, wanted: &[Value], fault: fn(usize) -> Fault) {
    let first = base.newest();
    let (done, writes) = crashed(&copy_of(base), kind, fault(usize::MAX)).await;
    assert!(done.is_ok(), "{done:?}");
    assert!(writes >= 6, "only {writes} writes");
    for n in 0..writes {
        let table = copy_of(base);
        let (done, _) = crashed(&table, kind, fault(n)).await;
        sound(&table);
        match &done {
            Err(error) => says_what_landed(&table, first, error),
            Ok(report) => assert_eq!(report.commits as usize, ours(&table).len(), "{n}"),
        }
        let again =
            migrate_at(&table.location(), kind, ONE_FILE).await.unwrap_or_else(|e| panic!("{n}: {e:?}"));
        assert_eq!(again.outcome.as_str(), if done.is_ok() { "current" } else { "migrated" }, "{n}");
        assert_eq!(rows(&table).await, wanted, "{n}");
        is_stamped(&table, stamp);
        sound(&table);
        // And there it ends.
        let files = table.files();
        assert_eq!(migrate(&table, kind).await.unwrap().outcome.as_str(), "current");
        assert!(table.files() == files, "{n}");
    }
}

#[tokio::test]
async fn a_fill_that_is_stopped_at_any_write_goes_on_from_there() {
    let base = table_of(base(), 3).await;
    every_point(&base, FILL, "1", &filled_all(0..6), Fault::Stop).await;
}

#[tokio::test]
async fn a_fill_whose_answers_are_lost_is_done_once() {
    let base = table_of(base(), 3).await;
    every_point(&base, FILL, "1", &filled_all(0..6), Fault::Lost).await;
}

#[tokio::test]
async fn two_fills_and_a_constraint_go_on_from_wherever_they_were_stopped() {
    let base = table_of(base().versions(1, 3), 2).await;
    every_point(&base, TWICE, "2", &filled_twice(0..4), Fault::Stop).await;
}

/// A rerun after the columns landed and before the stamp finds old rows that a RESTORE brought back.
#[tokio::test]
async fn a_crash_then_a_restore_then_a_rerun_fills_again() {
    let base = table_of(base().stamped(0), 3).await;
    for n in [3, 5] {
        let table = copy_of(&base);
        crashed(&table, FILL, Fault::Stop(n)).await.0.unwrap_err();
        let loaded = table.load().await;
        loaded.restore().with_version_to_restore(base.newest()).await.unwrap();
        migrate_at(&table.location(), FILL, ONE_FILE).await.unwrap();
        is_filled(&table, 0..6).await;
    }
}
