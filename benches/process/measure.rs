//! Processes by turns, each on a fresh copy of one log, and the table of their figures.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use super::operations::{KIND, Operation};
use crate::table::{self, Result};

/// Tells a child what to do.
pub(crate) const OPERATION: &str = "DELTA_MIGRATE_BENCH_OPERATION";

/// Another build of this bench, to compare with.
const OLD: &str = "DELTA_MIGRATE_BENCH_OLD";

/// An interpreter that has deltalake.
pub(crate) const PYTHON: &str = "DELTA_MIGRATE_BENCH_PYTHON";

/// One process, or some figure of several.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Run {
    pub(crate) whole: Duration,
    /// The operation alone, by the process's own clock.
    pub(crate) inside: Duration,
    /// In KiB.
    pub(crate) peak: u64,
}

/// An operation, by this build or by the other one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Who {
    pub(crate) operation: Operation,
    pub(crate) old: bool,
}

/// What was measured of one.
#[derive(Debug)]
pub(crate) struct Measured {
    pub(crate) who: Who,
    runs: Vec<Run>,
    /// Why it could not be measured.
    failed: Option<String>,
}

/// All of one table.
#[derive(Debug)]
pub(crate) struct Figures(Vec<Measured>);

fn number(name: &str, default: usize) -> usize {
    std::env::var(name).ok().and_then(|n| n.parse().ok()).unwrap_or(default)
}

/// How often each is run, and what reads the list of files.
fn runs(operation: Operation) -> usize {
    let runs = number("DELTA_MIGRATE_BENCH_RUNS", 9);
    if operation.is_slow() { runs.min(number("DELTA_MIGRATE_BENCH_SLOW_RUNS", 3)) } else { runs }
}

/// Runs the operations by turns. `kind` is that of a table which was made elsewhere.
pub(crate) fn by_turns(
    original: &Path,
    folder: &Path,
    operations: &[Operation],
    kind: Option<&str>,
) -> Result<Figures> {
    let old = std::env::var_os(OLD).is_some();
    let mut all = Vec::new();
    for &operation in operations {
        if operation.is_python() && std::env::var_os(PYTHON).is_none() {
            continue;
        }
        for old in [false, true].into_iter().take(if old && operation.is_ours() { 2 } else { 1 }) {
            all.push(Measured { who: Who { operation, old }, runs: Vec::new(), failed: None });
        }
    }
    let most = all.iter().map(|measured| runs(measured.who.operation)).max().unwrap_or_default();
    for round in 0..=most {
        for Measured { who, runs: measured, failed } in &mut all {
            // The first round warms the page cache, which needs no slow ones.
            let left_out = failed.is_some() || (round == 0 && who.operation.is_slow());
            if left_out || round > runs(who.operation) {
                continue;
            }
            let copy = folder.join("copy");
            table::copy(original, &copy)?;
            let run = child(*who, &copy, kind);
            fs::remove_dir_all(&copy)?;
            match run {
                Ok(run) if round > 0 => measured.push(run),
                Ok(_) => {}
                Err(error) if who.operation.is_ours() && !who.old => return Err(error),
                Err(error) => *failed = Some(error.to_string()),
            }
        }
    }
    Ok(Figures(all))
}

fn child(who: Who, folder: &Path, kind: Option<&str>) -> Result<Run> {
    let mut command = if who.operation.is_python() {
        let mut command = Command::new(std::env::var_os(PYTHON).ok_or("no interpreter")?);
        command.args(["-c", include_str!("by_hand.py"), who.operation.name()]);
        command
    } else if who.old {
        Command::new(std::env::var_os(OLD).ok_or("no other build")?)
    } else {
        Command::new(std::env::current_exe()?)
    };
    command.arg(folder).env(OPERATION, who.operation.name());
    if let Some(kind) = kind {
        command.env(KIND, kind);
    }
    let started = Instant::now();
    let output = command.output()?;
    let whole = started.elapsed();
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr);
        let why: String = text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(200).collect();
        return Err(format!("{}: {why}", who.operation.label()).into());
    }
    let text = String::from_utf8(output.stdout)?;
    let (inside, peak) = text.trim().split_once(' ').ok_or("a child said nothing")?;
    Ok(Run { whole, inside: Duration::from_nanos(inside.parse()?), peak: peak.parse()? })
}

/// The most memory that this process has had, in KiB.
pub(crate) fn peak() -> Result<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line =
        status.lines().find_map(|l| l.strip_prefix("VmHWM:")).ok_or("no VmHWM in /proc/self/status")?;
    Ok(line.trim().trim_end_matches(" kB").parse()?)
}

pub(crate) fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

impl Measured {
    /// Of each figure by itself, the lower one of two in the middle.
    pub(crate) fn median(&self) -> Run {
        fn middle<T: Ord + Copy + Default>(values: impl Iterator<Item = T>) -> T {
            let mut values: Vec<T> = values.collect();
            values.sort();
            values.get(values.len().saturating_sub(1) / 2).copied().unwrap_or_default()
        }
        Run {
            whole: middle(self.runs.iter().map(|r| r.whole)),
            inside: middle(self.runs.iter().map(|r| r.inside)),
            peak: middle(self.runs.iter().map(|r| r.peak)),
        }
    }

    /// Of each figure by itself; what other work on the machine distorts least.
    pub(crate) fn least(&self) -> Run {
        Run {
            whole: self.runs.iter().map(|r| r.whole).min().unwrap_or_default(),
            inside: self.runs.iter().map(|r| r.inside).min().unwrap_or_default(),
            peak: self.runs.iter().map(|r| r.peak).min().unwrap_or_default(),
        }
    }
}

impl Figures {
    pub(crate) fn of(&self, operation: Operation, old: bool) -> Option<&Measured> {
        self.0.iter().find(|m| m.who == Who { operation, old } && !m.runs.is_empty())
    }

    pub(crate) fn table(&self) -> Result<String> {
        let mut out = String::from(
            "| operation | runs | process, ms | fastest | operation alone, ms | fastest | peak, MB |\n\
             |---|--:|--:|--:|--:|--:|--:|\n",
        );
        for measured in self.0.iter().filter(|m| !m.runs.is_empty()) {
            let (median, least) = (measured.median(), measured.least());
            let label = measured.who.operation.label();
            writeln!(
                out,
                "| {}{label} | {} | {:.1} | {:.1} | {:.1} | {:.1} | {:.1} |",
                if measured.who.old { "the other build, " } else { "" },
                measured.runs.len(),
                millis(median.whole),
                millis(least.whole),
                millis(median.inside),
                millis(least.inside),
                median.peak as f64 * 1024.0 / 1e6
            )?;
        }
        for measured in &self.0 {
            if let Some(failed) = &measured.failed {
                writeln!(out, "\nleft out: {failed}")?;
            }
        }
        Ok(out)
    }

    /// Ours against each other way.
    pub(crate) fn ratios(&self) -> Result<String> {
        use Operation::{
            ByHand, Lazy, Migrate, NoOp, PythonByHand, PythonTenByHand, RawCommit, Status, Ten, TenByHand,
        };
        let pairs = [
            (NoOp, Lazy),
            (Status, Lazy),
            (Migrate, RawCommit),
            (Migrate, ByHand),
            (Migrate, PythonByHand),
            (Ten, TenByHand),
            (Ten, PythonTenByHand),
        ];
        let mut out = String::from(
            "| so many times as fast | process | fastest of each | operation alone | fastest of each | \
             memory of ours |\n|---|--:|--:|--:|--:|--:|\n",
        );
        for (ours, theirs) in pairs {
            let (Some(our), Some(their)) = (self.of(ours, false), self.of(theirs, false)) else { continue };
            row(&mut out, &format!("{}, against {}", ours.name(), theirs.label()), our, their)?;
        }
        for our in self.0.iter().filter(|m| m.who.operation.is_ours() && !m.who.old) {
            let Some(old) = self.of(our.who.operation, true) else { continue };
            row(&mut out, &format!("{}, against the other build", our.who.operation.name()), our, old)?;
        }
        Ok(out)
    }
}

fn row(out: &mut String, name: &str, our: &Measured, their: &Measured) -> Result<()> {
    let ratio = |their: Duration, our: Duration| their.as_secs_f64() / our.as_secs_f64();
    let (median, least, our_median, our_least) = (their.median(), their.least(), our.median(), our.least());
    writeln!(
        out,
        "| {name} | {:.2} | {:.2} | {:.2} | {:.2} | {:.2} |",
        ratio(median.whole, our_median.whole),
        ratio(least.whole, our_least.whole),
        ratio(median.inside, our_median.inside),
        ratio(least.inside, our_least.inside),
        our_median.peak as f64 / median.peak as f64
    )?;
    Ok(())
}
