//! The table that is measured, and what is done with it.

use std::collections::HashMap;
use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use delta_migrate::{IfMissing, Kind, Location, Migrator, Namespace, SchemaVersion, TableReport, Target};
use deltalake::kernel::Snapshot;
use deltalake::logstore::LogStoreRef;
use deltalake::{DeltaTable, DeltaTableBuilder};

pub(crate) type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// Files of the measured table. `DELTA_MIGRATE_BENCH_FILES` says how many, for a quick look.
pub(crate) fn files() -> u64 {
    std::env::var("DELTA_MIGRATE_BENCH_FILES").ok().and_then(|n| n.parse().ok()).unwrap_or(100_000)
}

const FILES_A_COMMIT: u64 = 1_000;

/// Commits of one file each after the checkpoint, as a sink leaves them.
pub(crate) const COMMITS_AFTER: u64 = 5;

const KIND: &str = r#"
kind = "facts"
partition_by = ["day"]
identified_by = ["app_id", "batch_id"]
[columns]
day = "date"
app_id = { type = "string", nullable = false, comment = "Stream that wrote the row" }
batch_id = "long"
rows = "long"
started_at = "timestamp"
ended_at = "timestamp"
amount = "decimal(38,18)"
payload = "struct<lsn: binary, rows: long>"
[[migrations]]
description = "detail of an event row"
[migrations.add_columns]
detail = { type = "string", comment = "JSON" }
[[migrations]]
description = "tenant"
[migrations.add_columns]
tenant = "string"
[migrations.set_properties]
"team.owner" = "sink"
"#;

pub(crate) fn migrator(kind: Kind, newest: u32) -> Result<Migrator> {
    let kind = kind.cut_at(SchemaVersion::new(newest));
    Ok(Migrator::builder(Namespace::new("my_sink")?).kind(kind).release("my-sink 1.0.0").build()?)
}

/// What the measured table is made by; `more` is appended to its file.
pub(crate) fn kind(more: &str) -> Result<Kind> {
    Ok(Kind::from_toml(&format!("{KIND}{more}"))?)
}

/// A release that knows what the table has.
pub(crate) fn current() -> Result<Migrator> {
    migrator(kind("")?, 1)
}

/// Makes the log of a table at version 1 of its kind by raw commits, without the data files, which nobody
/// here opens, and without a checkpoint; says its version.
pub(crate) async fn begin(folder: &Path, files: u64) -> Result<u64> {
    let location = Location::new(text(folder)?, HashMap::new())?;
    current()?.migrate("facts", &location, Target::Newest, IfMissing::Create).await?;
    let (mut version, mut file) = (0, 0);
    while file < files {
        let upto = files.min(file + FILES_A_COMMIT);
        version += 1;
        commit(folder, version, file..upto)?;
        file = upto;
    }
    Ok(version)
}

pub(crate) async fn checkpoint(folder: &Path) -> Result<()> {
    Ok(deltalake::checkpoints::create_checkpoint(&load(folder).await?, None).await?)
}

/// Commits of one file each, after `version`, to a table that has `files`.
pub(crate) fn append(folder: &Path, version: u64, files: u64, commits: u64) -> Result<()> {
    (0..commits).try_for_each(|n| commit(folder, version + 1 + n, files + n..files + n + 1))
}

/// Of a file, in bytes.
pub(crate) fn size(file: u64) -> u64 {
    40_000 + file
}

fn commit(folder: &Path, version: u64, files: std::ops::Range<u64>) -> Result<()> {
    let mut lines = String::from(
        r#"{"commitInfo":{"timestamp":1764547200000,"operation":"WRITE","operationParameters":{"mode":"Append"}}}"#,
    );
    for file in files {
        let day = format!("2026-{:02}-{:02}", 1 + file / 28 % 12, 1 + file % 28);
        let path =
            format!("day={day}/part-{file:05}-7d1ce0b4-3c1c-4b4e-9d5e-{file:012x}.c000.snappy.parquet");
        let (low, high) = (file * 1000, file * 1000 + 999);
        let stats = format!(
            r#"{{\"numRecords\":1000,\"minValues\":{{\"app_id\":\"stream-{low:09}\",\"batch_id\":{low},\"rows\":1,\"started_at\":\"{day}T00:00:00.000Z\",\"ended_at\":\"{day}T00:00:01.000Z\"}},\"maxValues\":{{\"app_id\":\"stream-{high:09}\",\"batch_id\":{high},\"rows\":5000,\"started_at\":\"{day}T23:00:00.000Z\",\"ended_at\":\"{day}T23:00:01.000Z\"}},\"nullCount\":{{\"app_id\":0,\"batch_id\":0,\"rows\":0,\"started_at\":0,\"ended_at\":3,\"amount\":0}}}}"#
        );
        write!(
            lines,
            "\n{{\"add\":{{\"path\":\"{path}\",\"partitionValues\":{{\"day\":\"{day}\"}},\"size\":{},\
             \"modificationTime\":1764547200000,\"dataChange\":true,\"stats\":\"{stats}\"}}}}",
            size(file)
        )?;
    }
    lines.push('\n');
    Ok(fs::write(folder.join(format!("_delta_log/{version:020}.json")), lines)?)
}

/// A copy of the table whose files are those of the original: log files are never changed, only added.
pub(crate) fn copy(from: &Path, to: &Path) -> Result<()> {
    link(&from.join("_delta_log"), &to.join("_delta_log"))
}

fn link(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            link(&entry.path(), &to.join(entry.file_name()))?;
        } else {
            fs::hard_link(entry.path(), to.join(entry.file_name()))?;
        }
    }
    Ok(())
}

pub(crate) fn text(folder: &Path) -> Result<&str> {
    Ok(folder.to_str().ok_or("the folder's name is not UTF-8")?)
}

pub(crate) async fn load(folder: &Path) -> Result<DeltaTable> {
    Ok(DeltaTableBuilder::from_url(deltalake::ensure_table_uri(text(folder)?)?)?.load().await?)
}

pub(crate) async fn run(migrator: &Migrator, folder: &Path) -> Result<TableReport> {
    let location = Location::new(text(folder)?, HashMap::new())?;
    Ok(migrator.migrate("facts", &location, Target::Newest, IfMissing::Refuse).await?)
}

pub(crate) fn expect(wanted: &str, outcome: &str) -> Result<()> {
    if wanted == outcome { Ok(()) } else { Err(format!("{outcome}, not {wanted}").into()) }
}

/// delta-rs: protocol and metadata without the list of files.
pub(crate) async fn snapshot(folder: &Path) -> Result<(LogStoreRef, Snapshot)> {
    let url = deltalake::ensure_table_uri(text(folder)?)?;
    let log_store = DeltaTableBuilder::from_url(url)?.build_storage()?;
    let snapshot = Snapshot::try_new(log_store.as_ref(), None).await?;
    Ok((log_store, snapshot))
}
