//! Tables whose log was damaged, one file at a time.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use delta_migrate::{IfMissing, Location, Migrator, StartupPolicy, Target};
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::json;

use super::mutate::{Mutation, cases, mutated, mutations, watched};
use crate::support::checkpoint::write_checkpoint;
use crate::support::table::files_below;
use crate::support::{FACTS, Table, facts, kind_file, migrator_of};

pub(super) type Files = BTreeMap<PathBuf, Vec<u8>>;

pub(super) fn newest() -> Migrator {
    migrator_of(FACTS, StartupPolicy::default(), Duration::from_millis(300))
}

pub(super) fn wait<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

/// A table at version 3 with commits before and after a checkpoint, and a checksum file.
pub(super) fn table() -> Table {
    let table = facts().txn("sink", 7).table();
    let older = migrator_of(&kind_file(3), StartupPolicy::default(), Duration::from_secs(60));
    wait(older.migrate("facts", &table.location(), Target::Newest, IfMissing::Refuse)).unwrap();
    table.commit_nothing();
    let (protocol, metadata) = (table.action(0, "protocol"), table.metadata());
    let txn = json!({ "txn": { "appId": "sink", "version": 7 } });
    let actions = [json!({ "protocol": protocol }), json!({ "metaData": metadata }), txn];
    write_checkpoint(&table, "00000000000000000001.checkpoint.parquet", &actions);
    let hint = json!({ "version": 1, "size": 3 });
    std::fs::write(table.path().join("_delta_log/_last_checkpoint"), hint.to_string()).unwrap();
    table.commit_nothing();
    let checksum = json!({
        "tableSizeBytes": 0, "numFiles": 0, "numMetadata": 1, "numProtocol": 1,
        "metadata": metadata, "protocol": protocol, "setTransactions": [{ "appId": "sink", "version": 7 }],
    });
    std::fs::write(table.path().join("_delta_log/00000000000000000003.crc"), checksum.to_string()).unwrap();
    table
}

/// The same table with one file changed, elsewhere.
fn damaged(files: &Files, root: &Path, which: &Path, changes: &[Mutation]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (path, bytes) in
        files.iter().filter(|(path, _)| !path.as_os_str().is_empty() && root.join(path).is_file())
    {
        let to = folder.path().join(path);
        std::fs::create_dir_all(to.parent().unwrap()).unwrap();
        let bytes = if path == which { mutated(bytes, changes) } else { bytes.clone() };
        std::fs::write(to, bytes).unwrap();
    }
    folder
}

fn relative(root: &Path) -> Files {
    let inside = |path: PathBuf| path.strip_prefix(root).unwrap().to_owned();
    files_below(root).into_iter().map(|(path, bytes)| (inside(path), bytes)).collect()
}

/// Everything that may be asked of a table; what it may have written is compared each time.
pub(super) fn stands(folder: &Path) -> Result<String, TestCaseError> {
    let at = folder.to_owned();
    let before = files_below(folder);
    let said = watched(move || {
        wait(async {
            let location = Location::new(at.to_str().unwrap(), Default::default()).unwrap();
            let migrator = newest();
            let status = migrator.status("facts", &location).await;
            drop(migrator.history(&location).await);
            drop(migrator.plan("facts", &location, Target::Newest).await);
            match status {
                Ok(report) => format!("{} {:?} {:?}", report.outcome.as_str(), report.from, report.to),
                Err(error) => error.code().as_str().to_owned(),
            }
        })
    })?;
    prop_assert!(files_below(folder) == before, "looking wrote something: {said}");
    let at = folder.to_owned();
    let applied = watched(move || {
        let location = Location::new(at.to_str().unwrap(), Default::default()).unwrap();
        let apply = || wait(newest().migrate("facts", &location, Target::Newest, IfMissing::Refuse));
        let first = apply();
        let again = if first.as_ref().is_ok_and(|r| r.commits > 0) { Some(apply()) } else { None };
        (first.map_err(|e| (e.code(), e.to_string())), again.map(|r| r.map(|r| r.commits)))
    })?;
    let after = files_below(folder);
    let written: Vec<&PathBuf> = after.keys().filter(|path| !before.contains_key(*path)).collect();
    prop_assert!(before.iter().all(|(path, bytes)| after.get(path) == Some(bytes)), "a file was changed");
    match applied {
        (Ok(report), again) if report.commits > 0 => {
            let entries = written.iter().filter(|p| p.extension().is_some_and(|e| e == "json")).count();
            prop_assert_eq!((report.commits, entries), (1, 1), "{:?}", written);
            prop_assert!(matches!(again, Some(Ok(0))), "not converged: {:?}", again);
        }
        (other, _) => prop_assert!(written.is_empty(), "{:?} wrote {:?}", other, written),
    }
    Ok(said)
}

proptest! {
    #![proptest_config(cases(250))]

    #[test]
    fn a_file_of_the_log(which in any::<Index>(), changes in mutations()) {
        let whole = table();
        let files = relative(whole.path());
        let names: Vec<&PathBuf> = files.keys().filter(|p| whole.path().join(p).is_file()).collect();
        prop_assert!(names.len() >= 7, "{:?}", names);
        let name = names[which.index(names.len())];
        let folder = damaged(&files, whole.path(), name, &changes);
        stands(folder.path())?;
    }

    #[test]
    fn the_last_checkpoint_is_a_hint(changes in mutations()) {
        let whole = table();
        let files = relative(whole.path());
        let hint = Path::new("_delta_log/_last_checkpoint");
        let folder = damaged(&files, whole.path(), hint, &changes);
        prop_assert_eq!(stands(folder.path())?, "planned Some(SchemaVersion(3)) Some(SchemaVersion(10))");
    }

    #[test]
    fn a_property(which in any::<Index>(), changes in mutations()) {
        let whole = table();
        let known = [
            ("delta.columnMapping.mode", "name"),
            ("delta.columnMapping.maxColumnId", "17"),
            ("delta.enableInCommitTimestamps", "true"),
            ("delta.inCommitTimestampEnablementVersion", "1"),
            ("delta.minWriterVersion", "7"),
            ("delta.constraints.positive", "id > 0"),
            ("delta.logRetentionDuration", "interval 30 days"),
            ("delta.checkpointInterval", "10"),
            ("app.min_version", "3"),
        ];
        let stamps = whole.metadata()["configuration"].as_object().unwrap().clone();
        let stamps = stamps.into_iter().map(|(k, v)| (k, v.as_str().unwrap().to_owned()));
        let all: Vec<(String, String)> =
            stamps.chain(known.map(|(k, v)| (k.to_owned(), v.to_owned()))).collect();
        let (key, value) = which.get(&all);
        whole.set_property(key, &String::from_utf8_lossy(&mutated(value.as_bytes(), &changes)));
        stands(whole.path())?;
    }
}
