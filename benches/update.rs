//! Rows filled in: a migration with an `update`, against delta-rs's own update of the same rows, each in a
//! process of its own, by turns.
//!
//! ```text
//! cargo bench --bench update
//! ```
//! `DELTA_MIGRATE_BENCH_ROWS` (10000000), `DELTA_MIGRATE_BENCH_FILES` (100), `DELTA_MIGRATE_BENCH_RUNS` (3) and
//! `DELTA_MIGRATE_BENCH_CDF` (with change data feed if it is set).
#![allow(clippy::print_stdout)] // figures are its purpose

use std::error::Error;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use delta_migrate::{IfMissing, Kind, Location, Migrator, Namespace, StartupPolicy, Target};
use deltalake::DeltaTable;
use deltalake::arrow::array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use deltalake::arrow::datatypes::{DataType, Field, Schema};
use deltalake::kernel::transaction::CommitProperties;

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// Tells a child what to do.
const OPERATION: &str = "DELTA_MIGRATE_BENCH_OPERATION";

const OPERATIONS: [&str; 3] = ["load alone", "delta-rs's update", "a migration with an update"];

const KIND: &str = r#"
kind = "facts"
[columns]
app_id = "string"
id = "long"
v = "double"
tenant = "string"
[[migrations]]
description = "tenant"
[migrations.update]
set = { tenant = "split_part(app_id, '.', 1)" }
where = "tenant IS NULL"
"#;

fn number(name: &str, default: usize) -> usize {
    std::env::var(name).ok().and_then(|n| n.parse().ok()).unwrap_or(default)
}

fn main() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    if let Ok(operation) = std::env::var(OPERATION) {
        let folder = std::env::args_os().nth(1).ok_or("no folder")?;
        let started = Instant::now();
        runtime.block_on(run(&operation, Path::new(&folder)))?;
        println!("{} {}", started.elapsed().as_nanos(), peak()?);
        return Ok(());
    }
    let (rows, files) =
        (number("DELTA_MIGRATE_BENCH_ROWS", 10_000_000), number("DELTA_MIGRATE_BENCH_FILES", 100));
    let folder = tempfile::tempdir()?;
    let original = folder.path().join("original");
    std::fs::create_dir_all(&original)?;
    runtime.block_on(make(&original, rows, files))?;
    let runs = number("DELTA_MIGRATE_BENCH_RUNS", 3);
    let mut best = [(Duration::MAX, u64::MAX); OPERATIONS.len()];
    for _ in 0..runs {
        for (operation, best) in OPERATIONS.iter().zip(&mut best) {
            let copy = folder.path().join("copy");
            // Files are never changed, so that links do.
            let made = Command::new("cp").arg("-rl").arg(&original).arg(&copy).status()?;
            if !made.success() {
                return Err("the table can't be copied".into());
            }
            let (time, peak) = child(operation, &copy)?;
            std::fs::remove_dir_all(&copy)?;
            *best = (best.0.min(time), best.1.min(peak));
        }
    }
    println!(
        "{rows} rows in {files} files, every row filled; the least of {runs} processes each, by turns\n"
    );
    println!("| operation | ms | peak, MB |\n|---|--:|--:|");
    for (operation, (time, peak)) in OPERATIONS.iter().zip(&best) {
        println!("| {operation} | {:.0} | {:.0} |", time.as_secs_f64() * 1e3, *peak as f64 * 1024.0 / 1e6);
    }
    let [_, theirs, ours] = best;
    println!(
        "\na migration takes {:.2} of the time and {:.2} of the memory",
        ours.0.as_secs_f64() / theirs.0.as_secs_f64(),
        ours.1 as f64 / theirs.1 as f64
    );
    Ok(())
}

async fn run(operation: &str, folder: &Path) -> Result<()> {
    let uri = folder.to_str().ok_or("the folder's name is not UTF-8")?;
    let location = Location::new(uri, Default::default())?;
    if operation == OPERATIONS[2] {
        let migrator = Migrator::builder(Namespace::new("bench")?)
            .kind(Kind::from_toml(KIND)?)
            .policy(StartupPolicy::ApplyAll)
            .build()?;
        let report = migrator.migrate("facts", &location, Target::Newest, IfMissing::Refuse).await?;
        return if report.rewrite.is_some() { Ok(()) } else { Err("no file was rewritten".into()) };
    }
    let mut table = deltalake::open_table(deltalake::ensure_table_uri(uri)?).await?;
    if operation == OPERATIONS[0] {
        return Ok(());
    }
    let properties =
        CommitProperties::default().with_create_checkpoint(false).with_cleanup_expired_logs(Some(false));
    table = table
        .update()
        .with_predicate("tenant IS NULL")
        .with_update("tenant", "split_part(app_id, '.', 1)")
        .with_commit_properties(properties)
        .await?
        .0;
    drop(table);
    Ok(())
}

/// A table of so many rows; made by delta-rs, a file a commit.
async fn make(folder: &Path, rows: usize, files: usize) -> Result<()> {
    let schema = Arc::new(Schema::new(vec![
        Field::new("app_id", DataType::Utf8, true),
        Field::new("id", DataType::Int64, true),
        Field::new("v", DataType::Float64, true),
        Field::new("tenant", DataType::Utf8, true),
    ]));
    let uri = deltalake::ensure_table_uri(folder.to_str().ok_or("the folder's name is not UTF-8")?)?;
    let mut table = DeltaTable::try_from_url(uri).await?;
    let each = (rows / files.max(1)).max(1);
    for file in 0..files {
        let ids = (file * each..(file + 1) * each).map(|n| n as i64);
        let columns: Vec<ArrayRef> = vec![
            Arc::new(StringArray::from_iter_values(ids.clone().map(|n| format!("app{}.x", n * 7919 % 53)))),
            Arc::new(Int64Array::from_iter_values(ids.clone())),
            Arc::new(Float64Array::from_iter_values(
                ids.clone().map(|n| ((n * 2_654_435_761) % 1_000_003) as f64),
            )),
            Arc::new(StringArray::from_iter(ids.map(|_| None::<&str>))),
        ];
        let batch = RecordBatch::try_new(schema.clone(), columns)?;
        let mut write = table.write([batch]);
        if file == 0 && std::env::var_os("DELTA_MIGRATE_BENCH_CDF").is_some() {
            write = write.with_configuration([("delta.enableChangeDataFeed", Some("true"))]);
        }
        table = write.await?;
    }
    Ok(())
}

fn child(operation: &str, folder: &Path) -> Result<(Duration, u64)> {
    let output = Command::new(std::env::current_exe()?).arg(folder).env(OPERATION, operation).output()?;
    if !output.status.success() {
        return Err(format!("{operation}: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    let text = String::from_utf8(output.stdout)?;
    let (time, peak) = text.trim().split_once(' ').ok_or("a child said nothing")?;
    Ok((Duration::from_nanos(time.parse()?), peak.parse()?))
}

/// The most memory that this process has had, in KiB.
fn peak() -> Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line =
        status.lines().find_map(|l| l.strip_prefix("VmHWM:")).ok_or("no VmHWM in /proc/self/status")?;
    Ok(line.trim().trim_end_matches(" kB").parse()?)
}
