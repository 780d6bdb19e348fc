//! The tables that are measured, and with what.

use std::path::{Path, PathBuf};

use serde_json::Value;
use tokio::runtime::Runtime;

use super::forms::{self, Form, Log};
use super::measure::{self, Figures, PYTHON, millis};
use super::operations::{self, Operation};
use super::startup;
use crate::table::{self, Result};

/// A table that was made elsewhere.
const OUTSIDE: &str = "DELTA_MIGRATE_BENCH_TABLE";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scenario {
    Startup,
    Small,
    Checkpoint,
    ThreeTimes,
    TenTimes,
    Json,
    Parts,
    V2Json,
    V2Parquet,
    Checksums,
    Commits,
    CommitsChecksum,
    Outside,
}

impl Scenario {
    pub(crate) const ALL: [Self; 13] = [
        Self::Startup,
        Self::Small,
        Self::Checkpoint,
        Self::ThreeTimes,
        Self::TenTimes,
        Self::Json,
        Self::Parts,
        Self::V2Json,
        Self::V2Parquet,
        Self::Checksums,
        Self::Commits,
        Self::CommitsChecksum,
        Self::Outside,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Startup => "startup",
            Self::Small => "small",
            Self::Checkpoint => "checkpoint",
            Self::ThreeTimes => "300k",
            Self::TenTimes => "1m",
            Self::Json => "json",
            Self::Parts => "parts",
            Self::V2Json => "v2-json",
            Self::V2Parquet => "v2-parquet",
            Self::Checksums => "checksums",
            Self::Commits => "commits",
            Self::CommitsChecksum => "commits-checksum",
            Self::Outside => "outside",
        }
    }

    pub(crate) fn about(self) -> String {
        let files = table::files();
        let thousands = |files: u64| format!("{files} files");
        match self {
            Self::Startup => "the command's own start, against `true`".to_owned(),
            Self::Small => "10 files, no checkpoint".to_owned(),
            Self::Checkpoint => format!("{} with a classic checkpoint", thousands(files)),
            Self::ThreeTimes => format!("{} with a classic checkpoint", thousands(3 * files)),
            Self::TenTimes => format!("{} with a classic checkpoint", thousands(10 * files)),
            Self::Json => format!("{}, commits alone", thousands(files)),
            Self::Parts => format!("{} with a checkpoint in four parts", thousands(files)),
            Self::V2Json => format!("{} with a v2 checkpoint, its top in JSON", thousands(files)),
            Self::V2Parquet => format!("{} with a v2 checkpoint, its top in Parquet", thousands(files)),
            Self::Checksums => format!("{}, a classic checkpoint, checksum files", thousands(files)),
            Self::Commits => format!("{} commits since the checkpoint", files / 10),
            Self::CommitsChecksum => {
                format!("{} commits since the checkpoint, a checksum file for the newest", files / 10)
            }
            Self::Outside => format!("the table that {OUTSIDE} names"),
        }
    }

    fn log(self) -> Option<Log> {
        let files = table::files();
        let log = |files, form| Log { files, form, after: table::COMMITS_AFTER, checksums: 0 };
        let commits = Log { after: files / 10, ..log(files, Form::Classic) };
        Some(match self {
            Self::Startup | Self::Outside => return None,
            Self::Small => log(10, Form::Json),
            Self::Checkpoint => log(files, Form::Classic),
            Self::ThreeTimes => log(3 * files, Form::Classic),
            Self::TenTimes => log(10 * files, Form::Classic),
            Self::Json => log(files, Form::Json),
            Self::Parts => log(files, Form::Parts),
            Self::V2Json => log(files, Form::V2Json),
            Self::V2Parquet => log(files, Form::V2Parquet),
            Self::Checksums => Log { checksums: table::COMMITS_AFTER, ..log(files, Form::Classic) },
            Self::Commits => commits,
            Self::CommitsChecksum => Log { checksums: 1, ..commits },
        })
    }

    /// Twenty commits by hand take long: only where they say something.
    fn operations(self) -> Vec<Operation> {
        let ten_by_hand = matches!(self, Self::Small | Self::Checkpoint | Self::Outside);
        let left_out = |operation: &Operation| match operation {
            Operation::TenByHand | Operation::PythonTenByHand => !ten_by_hand,
            // A table without a stamp is never current, and a release cannot be older than none.
            Operation::NoOp => self == Self::Outside,
            Operation::Status => self != Self::Outside,
            _ => false,
        };
        Operation::ALL.into_iter().filter(|operation| !left_out(operation)).collect()
    }
}

/// Measures them one after the other and prints what it found.
pub(crate) fn run(runtime: &Runtime, scenarios: &[Scenario]) -> Result<()> {
    if std::env::var_os(PYTHON).is_none() {
        println!("left out: deltalake in Python, because {PYTHON} names no interpreter that has it\n");
    }
    let mut done: Vec<(Scenario, Figures)> = Vec::new();
    for &scenario in scenarios {
        let folder = tempfile::tempdir()?;
        if scenario == Scenario::Startup {
            startup::measure(folder.path())?;
            println!();
            continue;
        }
        let made = folder.path().join("original");
        let (original, kind) = if let Some(log) = scenario.log() {
            runtime.block_on(forms::make(&made, log))?;
            (made, None)
        } else {
            let Some(outside) = std::env::var_os(OUTSIDE).map(PathBuf::from) else {
                println!("left out: {OUTSIDE} names no table\n");
                continue;
            };
            let kind = runtime.block_on(kind(&outside))?;
            // Hard links need the same file system.
            copy_log(&outside, &made)?;
            (made, Some(kind))
        };
        let figures = measure::by_turns(&original, folder.path(), &scenario.operations(), kind.as_deref())?;
        println!(
            "## {}: {}\n\n{}\n{}",
            scenario.name(),
            scenario.about(),
            figures.table()?,
            figures.ratios()?
        );
        done.push((scenario, figures));
    }
    growth(&done);
    Ok(())
}

/// Whether ten times the files take longer.
fn growth(done: &[(Scenario, Figures)]) {
    let of = |scenario| done.iter().find(|(s, _)| *s == scenario).map(|(_, figures)| figures);
    let Some(base) = of(Scenario::Checkpoint) else { return };
    for scenario in [Scenario::ThreeTimes, Scenario::TenTimes] {
        let Some(figures) = of(scenario) else { continue };
        for operation in Operation::ALL.into_iter().filter(|o| o.is_ours()) {
            let (Some(large), Some(base)) = (figures.of(operation, false), base.of(operation, false)) else {
                continue;
            };
            println!(
                "{}, {}: {:.2} times as long as on {} (the fastest of each: {:.2}), {:.2} in the operation alone",
                operation.name(),
                scenario.name(),
                millis(large.median().whole) / millis(base.median().whole),
                Scenario::Checkpoint.name(),
                millis(large.least().whole) / millis(base.least().whole),
                millis(large.median().inside) / millis(base.median().inside),
            );
        }
    }
}

/// A kind whose base is the table's partition columns and the first of the others, and that adds what
/// ours does.
async fn kind(folder: &Path) -> Result<String> {
    let (_, snapshot) = table::snapshot(folder).await?;
    let metadata = serde_json::to_value(snapshot.metadata())?;
    let schema = metadata.get("schemaString").and_then(Value::as_str).ok_or("no schema")?;
    let schema: Value = serde_json::from_str(schema)?;
    let fields = schema.get("fields").and_then(Value::as_array).ok_or("no fields")?;
    let partitions: Vec<&str> = metadata
        .get("partitionColumns")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let (mut columns, mut others) = (String::new(), 0);
    for field in fields {
        let (Some(name), Some(kind)) =
            (field.get("name").and_then(Value::as_str), field.get("type").and_then(Value::as_str))
        else {
            continue;
        };
        if !partitions.contains(&name) {
            others += 1;
            if others > 1 {
                continue;
            }
        }
        let nullable = field.get("nullable").and_then(Value::as_bool).unwrap_or(true);
        columns.push_str(&format!("{name:?} = {{ type = {kind:?}, nullable = {nullable} }}\n"));
    }
    Ok(format!(
        "kind = \"facts\"\npartition_by = {partitions:?}\n[columns]\n{columns}[[migrations]]\n\
         description = \"tenant\"\n[migrations.add_columns]\ntenant = \"string\"\n\
         [migrations.set_properties]\n\"team.owner\" = \"sink\"\n{}",
        operations::later_migrations()
    ))
}

fn copy_log(from: &Path, to: &Path) -> Result<()> {
    let (from, to) = (from.join("_delta_log"), to.join("_delta_log"));
    std::fs::create_dir_all(&to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            std::fs::copy(entry.path(), to.join(entry.file_name()))?;
        }
    }
    Ok(())
}
