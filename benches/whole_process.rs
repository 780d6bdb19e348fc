//! Whole processes, each on a fresh copy of one log: how long they take and how much memory they need
//! at most, ours and delta-rs by turns.
//!
//! ```text
//! cargo bench --bench whole_process
//! ```
//! `DELTA_MIGRATE_BENCH_FILES` (100000) and `DELTA_MIGRATE_BENCH_RUNS` (9) make it smaller or larger.
#![allow(clippy::print_stdout)] // figures are its purpose

mod table;

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use table::Result;

/// Tells a child what to do.
const OPERATION: &str = "DELTA_MIGRATE_BENCH_OPERATION";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    /// A process that starts a runtime and does nothing.
    Nothing,
    Migrate,
    ByHand,
    NoOp,
    Lazy,
}

impl Operation {
    const ALL: [Self; 5] = [Self::Nothing, Self::Migrate, Self::ByHand, Self::NoOp, Self::Lazy];

    fn name(self) -> &'static str {
        match self {
            Self::Nothing => "an empty process",
            Self::Migrate => "one migration: Migrator::migrate",
            Self::ByHand => "the same by hand: load, add_columns, set_tbl_properties",
            Self::NoOp => "nothing to do: Migrator::migrate",
            Self::Lazy => "delta-rs, lazily: kernel::Snapshot::try_new",
        }
    }

    async fn run(self, folder: &Path) -> Result<()> {
        match self {
            Self::Nothing => Ok(()),
            Self::Migrate => table::migrate(folder).await,
            Self::ByHand => table::by_hand(folder).await,
            Self::NoOp => table::no_op(folder).await,
            Self::Lazy => table::lazy(folder).await,
        }
    }
}

/// One process.
#[derive(Debug, Clone, Copy)]
struct Run {
    whole: Duration,
    /// The operation alone, by the process's own clock.
    inside: Duration,
    /// In KiB.
    peak: u64,
}

fn main() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    if let Some(name) = std::env::var_os(OPERATION) {
        let operation = Operation::ALL.into_iter().find(|o| name == o.name()).ok_or("no such operation")?;
        let folder = std::env::args_os().nth(1).ok_or("no folder")?;
        let started = Instant::now();
        runtime.block_on(operation.run(Path::new(&folder)))?;
        println!("{} {}", started.elapsed().as_nanos(), peak()?);
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    let original = folder.path().join("original");
    runtime.block_on(table::make(&original, table::files()))?;

    let runs = std::env::var("DELTA_MIGRATE_BENCH_RUNS").ok().and_then(|n| n.parse().ok()).unwrap_or(9);
    let mut measured: Vec<Vec<Run>> = vec![Vec::new(); Operation::ALL.len()];
    for round in 0..=runs {
        for (operation, measured) in Operation::ALL.into_iter().zip(&mut measured) {
            let copy = folder.path().join("copy");
            table::copy(&original, &copy)?;
            let run = child(operation, &copy)?;
            std::fs::remove_dir_all(&copy)?;
            // The first round warms the page cache.
            if round > 0 {
                measured.push(run);
            }
        }
    }
    println!("{} files with a checkpoint; {runs} processes each, by turns\n", table::files());
    println!("| operation | process, ms | fastest | operation alone, ms | fastest | peak, MB |");
    println!("|---|--:|--:|--:|--:|--:|");
    let figures: Vec<(Run, Run)> = measured.iter().map(|runs| (median(runs), least(runs))).collect();
    for (operation, (median, least)) in Operation::ALL.into_iter().zip(&figures) {
        println!(
            "| {} | {:.1} | {:.1} | {:.1} | {:.1} | {:.1} |",
            operation.name(),
            millis(median.whole),
            millis(least.whole),
            millis(median.inside),
            millis(least.inside),
            median.peak as f64 * 1024.0 / 1e6
        );
    }
    let of = |operation| {
        let at = Operation::ALL.into_iter().position(|o| o == operation);
        at.and_then(|at| figures.get(at).copied()).ok_or("no such run")
    };
    println!();
    for (ours, theirs) in [(Operation::Migrate, Operation::ByHand), (Operation::NoOp, Operation::Lazy)] {
        let ((our_median, our_least), (median, least)) = (of(ours)?, of(theirs)?);
        println!(
            "{}: {:.1} times as fast as a process (the fastest of each: {:.1}), {:.1} times in the operation \
             alone ({:.1}), {:.1} times less memory",
            ours.name(),
            millis(median.whole) / millis(our_median.whole),
            millis(least.whole) / millis(our_least.whole),
            millis(median.inside) / millis(our_median.inside),
            millis(least.inside) / millis(our_least.inside),
            median.peak as f64 / our_median.peak as f64
        );
    }
    Ok(())
}

fn child(operation: Operation, folder: &Path) -> Result<Run> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg(folder).env(OPERATION, operation.name());
    let started = Instant::now();
    let output = command.output()?;
    let whole = started.elapsed();
    if !output.status.success() {
        return Err(format!("{}: {}", operation.name(), String::from_utf8_lossy(&output.stderr)).into());
    }
    let text = String::from_utf8(output.stdout)?;
    let (inside, peak) = text.trim().split_once(' ').ok_or("a child said nothing")?;
    Ok(Run { whole, inside: Duration::from_nanos(inside.parse()?), peak: peak.parse()? })
}

/// The most memory that this process has had, in KiB.
fn peak() -> Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line =
        status.lines().find_map(|l| l.strip_prefix("VmHWM:")).ok_or("no VmHWM in /proc/self/status")?;
    Ok(line.trim().trim_end_matches(" kB").parse()?)
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// Of each figure by itself.
fn median(runs: &[Run]) -> Run {
    fn middle<T: Ord + Copy + Default>(values: impl Iterator<Item = T>) -> T {
        let mut values: Vec<T> = values.collect();
        values.sort();
        values.get(values.len() / 2).copied().unwrap_or_default()
    }
    Run {
        whole: middle(runs.iter().map(|r| r.whole)),
        inside: middle(runs.iter().map(|r| r.inside)),
        peak: middle(runs.iter().map(|r| r.peak)),
    }
}

/// Of each figure by itself; what other work on the machine distorts least.
fn least(runs: &[Run]) -> Run {
    Run {
        whole: runs.iter().map(|r| r.whole).min().unwrap_or_default(),
        inside: runs.iter().map(|r| r.inside).min().unwrap_or_default(),
        peak: runs.iter().map(|r| r.peak).min().unwrap_or_default(),
    }
}
