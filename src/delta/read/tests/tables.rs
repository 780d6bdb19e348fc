//! The same answer as the kernel's on every table of a corpus.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::PathBuf;

use deltalake::kernel::Snapshot;
use deltalake::logstore::{LogStoreRef, StorageConfig, logstore_for};

use super::*;

/// What both readers must agree on.
#[derive(Debug, PartialEq)]
pub(super) struct Answer {
    log_version: u64,
    id: String,
    description: Option<String>,
    schema_text: String,
    partition_columns: Vec<String>,
    configuration: BTreeMap<String, String>,
    versions: (i64, i64),
    features: [Option<Vec<String>>; 2],
}

pub(super) fn our_answer(read: &LogRead) -> Answer {
    let TableState { log_version, protocol, metadata, .. } = &read.state;
    Answer {
        log_version: log_version.get(),
        id: metadata.id.clone(),
        description: metadata.description.clone(),
        schema_text: metadata.schema_text.clone(),
        partition_columns: metadata.partition_columns.clone(),
        configuration: metadata.configuration.clone().into_iter().collect(),
        versions: (protocol.min_reader, protocol.min_writer),
        features: [protocol.reader_features.clone(), protocol.writer_features.clone()],
    }
}

pub(super) async fn kernels_answer(log_store: &LogStoreRef) -> Result<Answer, String> {
    let snapshot = Snapshot::try_new(log_store.as_ref(), None).await.map_err(|e| e.to_string())?;
    let (metadata, protocol) = (snapshot.metadata(), snapshot.protocol());
    Ok(Answer {
        log_version: snapshot.version(),
        id: metadata.id().to_owned(),
        description: metadata.description().map(str::to_owned),
        schema_text: metadata.schema_string().clone(),
        partition_columns: metadata.partition_columns().to_vec(),
        configuration: metadata.configuration().clone().into_iter().collect(),
        versions: (protocol.min_reader_version().into(), protocol.min_writer_version().into()),
        features: [
            protocol.reader_features().map(|list| list.iter().map(ToString::to_string).collect()),
            protocol.writer_features().map(|list| list.iter().map(ToString::to_string).collect()),
        ],
    })
}

/// Tables that the kernel does not open, with what is said here: a log version, or an error.
const UNOPENED: &[(&str, &str)] = &[
    ("delta--canonicalized-paths-normal-a", "corrupt_log"),
    ("delta--canonicalized-paths-special-a", "corrupt_log"),
    // The checks of features come later here.
    ("delta--catalog-owned-preview", "version 0"),
    ("delta--deltalog-invalid-protocol-version", "version 0"),
    ("delta--deltalog-state-reconstruction-from-checkpoint-missing-protocol", "corrupt_log"),
    ("delta--deltalog-state-reconstruction-without-protocol", "corrupt_log"),
    ("delta--versions-not-contiguous", "corrupt_log"),
    ("delta-rs--simple_table_features", "version 4"),
    ("delta-rs--table_c", "corrupt_log"),
];

fn corpus() -> PathBuf {
    let default = || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../shared/tables");
    let folder = std::env::var_os("DELTA_MIGRATE_TABLES").map_or_else(default, PathBuf::from);
    folder.canonicalize().unwrap_or(folder)
}

fn say(line: &str) {
    // Not captured, unlike the macros.
    writeln!(std::io::stderr(), "{line}").unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn agrees_with_the_kernel_on_every_table_of_the_corpus() {
    let corpus = corpus();
    let Ok(entries) = std::fs::read_dir(&corpus) else {
        say(&format!("skipped: there are no tables at {}", corpus.display()));
        return;
    };
    let mut tables: Vec<PathBuf> = entries.map(|e| e.unwrap().path()).filter(|p| p.is_dir()).collect();
    tables.sort();
    assert!(!tables.is_empty(), "{} holds no table", corpus.display());
    let (mut wrong, mut shortcuts) = (Vec::new(), 0);
    for path in tables {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let url = url::Url::from_directory_path(&path).unwrap();
        let log_store = logstore_for(&url, StorageConfig::default()).unwrap();
        let ours = read_it(log_store.object_store(None).as_ref()).await;
        let theirs = kernels_answer(&log_store).await;
        match (ours, theirs) {
            (Ok(Found::Table(ours)), Ok(theirs)) if our_answer(&ours) == theirs => {
                assert!(ours.state.metadata.raw.is_some(), "{name}");
                let (right, bad) = by_checksums(&path).await;
                shortcuts += right;
                wrong.extend(bad.into_iter().map(|bad| format!("{name}: {bad}")));
            }
            (ours, Ok(theirs)) => wrong.push(format!("{name}: {ours:?} instead of {theirs:?}")),
            (ours, Err(theirs)) => {
                let ours = match ours {
                    Ok(Found::Table(ours)) => format!("version {}", ours.state.log_version),
                    Ok(Found::Nothing) => "nothing".to_owned(),
                    Err(e) => format!("{}: {e}", e.code()),
                };
                let wanted = UNOPENED.iter().find(|(table, _)| *table == name).map(|(_, wanted)| *wanted);
                if !wanted.is_some_and(|wanted| ours.starts_with(wanted)) {
                    wrong.push(format!("{name}: {ours}, wanted {wanted:?}; kernel: {theirs:.150}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(shortcuts >= 10, "{shortcuts} states were read by their checksum files");
}

/// The states of a table that have a checksum file, each read with it and without: how many times it was
/// enough, and where it says something else.
async fn by_checksums(table: &std::path::Path) -> (usize, Vec<String>) {
    let files = std::fs::read_dir(table.join("_delta_log")).unwrap().map(|e| e.unwrap().path());
    let files: Vec<(String, PathBuf)> = files
        .filter(|path| path.is_file())
        .map(|path| (path.file_name().unwrap().to_string_lossy().into_owned(), path))
        .collect();
    let (mut right, mut wrong) = (0, Vec::new());
    let versions = files.iter().filter_map(|(name, _)| name.strip_suffix(".crc")?.parse::<u64>().ok());
    for version in versions {
        // As it stood right after that commit. The checksum file comes last: copies keep no order of their own.
        let log = Log::new();
        let before = |name: &str| name.get(..20).is_some_and(|v| v.parse().is_ok_and(|v: u64| v < version));
        let newest = [commit_name(version), format!("{version:020}.crc")];
        let older = files.iter().filter(|(name, _)| before(name));
        let newest = newest.iter().filter_map(|name| files.iter().find(|(n, _)| n == name));
        for (name, path) in older.chain(newest) {
            log.put(name, std::fs::read(path).unwrap()).await;
        }
        let quick = read(log.store.as_ref(), Some(ID), &|_| true, Some(&|_| true)).await;
        let (Ok(Found::Table(quick)), Ok(Found::Table(whole))) = (quick, read_it(log.store.as_ref()).await)
        else {
            continue;
        };
        right += usize::from(quick.is_shortcut);
        let (quick, whole) = (our_answer(&quick), our_answer(&whole));
        if quick != whole {
            wrong.push(format!("version {version}: {quick:?} by the checksum file instead of {whole:?}"));
        }
    }
    (right, wrong)
}
