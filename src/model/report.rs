//! What was done with tables, for programs: the JSON of `status`, `plan` and `apply`.

use std::fmt;
use std::time::Duration;

use serde::Serialize;

use super::assess::Assessment;
use super::plan::{Mode, Plan, Rewrite};
use super::reconcile::{SchemaDiff, stamped};
use super::text;
use super::version::{LogVersion, MinVersion, SchemaVersion};
use crate::error::Error;

/// How a warning begins that says the catalog's copy of the columns is old.
pub(crate) const CATALOG_STALE: &str = "catalog_stale";

/// How a warning begins that says the disk did not confirm a commit.
pub(crate) const NOT_SYNCED: &str = "not_synced";

/// Whether a warning tells of a fault that was found, not of what planned work means.
#[cfg(feature = "cli")]
pub(crate) fn tells_of_a_fault(warning: &str) -> bool {
    [CATALOG_STALE, NOT_SYNCED].iter().any(|begin| warning.starts_with(begin))
}

/// How the work on one table ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Outcome {
    /// It was created.
    Created,
    /// A migrating commit landed.
    Migrated,
    /// A repair landed.
    Repaired,
    /// Columns that it lacked of a schema were added.
    Reconciled,
    /// Nothing was to be done.
    Current,
    /// A newer release migrated it; nothing was to be done.
    Ahead,
    /// Work is pending; nothing was written.
    Planned,
    /// It was left out.
    Skipped,
    /// It was refused and is exactly as it was.
    Refused,
    /// The work failed.
    Failed,
}

impl Outcome {
    /// The word in reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Migrated => "migrated",
            Self::Repaired => "repaired",
            Self::Reconciled => "reconciled",
            Self::Current => "current",
            Self::Ahead => "ahead",
            Self::Planned => "planned",
            Self::Skipped => "skipped",
            Self::Refused => "refused",
            Self::Failed => "failed",
        }
    }
}

/// What was done with one table.
///
/// `Display` gives one line for a log.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct TableReport {
    /// The table's location, without credentials.
    pub uri: String,
    /// Its kind; empty, and left out of the JSON, where it is not known.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// How it ended.
    pub outcome: Outcome,
    /// The version before; none where it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<SchemaVersion>,
    /// The version afterwards, or the one that pending work leads to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<SchemaVersion>,
    /// The floor that the work raises or lowers; none where it stays.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub floor: Option<MinVersion>,
    /// The floor that the table has, or will have once pending work is done; none where it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_version: Option<MinVersion>,
    /// The kind's newest version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub newest: Option<SchemaVersion>,
    /// The log version of the commit that landed, or at which the table was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_version: Option<LogVersion>,
    /// How many commits landed.
    pub commits: u32,
    /// How many commits were tried.
    pub attempts: u32,
    /// What the work costs.
    pub mode: Mode,
    /// What data steps will read and rewrite, or what they did; none where the log only is changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rewrite: Option<Rewrite>,
    /// How the table stands to its kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub assessment: Option<Assessment>,
    /// The migrations that were, or would be, carried out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub migrations: Vec<MigrationReport>,
    /// What the work means for readers and other writers.
    pub warnings: Vec<String>,
    /// How long it took, in milliseconds.
    pub elapsed_ms: u64,
    /// Why it was refused or failed, or why nobody got to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorReport>,
    /// Why it was left out on purpose.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What it lacked of a schema, and where they differ otherwise; where it was compared with one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diff: Option<SchemaDiff>,
    /// The names of its columns, as far as they are known.
    #[serde(skip)]
    pub(crate) columns: Vec<String>,
}

/// A line of the events file.
#[derive(Serialize)]
pub(crate) struct Event<'a> {
    pub(crate) at: String,
    pub(crate) command: &'static str,
    #[serde(flatten)]
    pub(crate) report: &'a TableReport,
}

/// A migration by its version and what it is for.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct MigrationReport {
    /// Its position in the chain, from 1.
    pub version: SchemaVersion,
    /// What it is for.
    pub description: String,
}

/// An error as programs read it.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct ErrorReport {
    /// The stable code.
    pub code: &'static str,
    /// One fact.
    pub message: String,
    /// What to do next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The first line of each cause, outermost first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<String>,
    /// Log versions that were committed before the error.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub committed: Vec<u64>,
}

impl ErrorReport {
    /// An error's code, message, hint and causes.
    pub fn of(error: &Error) -> Self {
        Self {
            code: error.code().as_str(),
            message: error.message().to_owned(),
            hint: error.hint().map(str::to_owned),
            causes: error.causes(),
            committed: error.committed().to_vec(),
        }
    }
}

impl TableReport {
    /// The report of a plan that was not carried out.
    pub(crate) fn of_plan(uri: &str, plan: &Plan, newest: impl Into<Option<SchemaVersion>>) -> Self {
        let outcome = match (&plan.assessment, plan.is_empty()) {
            (Assessment::Ahead { .. }, _) if plan.diff.is_none() => Outcome::Ahead,
            (_, true) => Outcome::Current,
            (_, false) => Outcome::Planned,
        };
        // No version is changed by columns alone, and a table without a stamp has none.
        let (from, to) = match &plan.diff {
            Some(_) => (stamped(&plan.assessment), stamped(&plan.assessment)),
            None => (Some(plan.from), Some(plan.to)),
        };
        Self {
            uri: uri.to_owned(),
            kind: plan.kind.clone(),
            outcome,
            from,
            to,
            floor: plan.commits.iter().rev().filter(|c| c.floor_changes).find_map(|c| c.floor),
            min_version: plan.commits.iter().rev().find_map(|c| c.floor).or(plan.floor),
            newest: newest.into(),
            log_version: plan.log_version(),
            commits: 0,
            attempts: 0,
            mode: plan.mode,
            rewrite: plan.rewrite,
            assessment: Some(plan.assessment.clone()).filter(|_| !plan.kind.is_empty()),
            migrations: if plan.diff.is_none() { migrations(plan) } else { Vec::new() },
            warnings: plan.warnings.clone(),
            elapsed_ms: 0,
            error: None,
            reason: None,
            diff: plan.diff.clone(),
            columns: plan.columns.clone(),
        }
    }

    /// The report of a table that was refused or that failed.
    pub(crate) fn of_error(uri: &str, kind: &str, newest: Option<SchemaVersion>, error: &Error) -> Self {
        Self {
            outcome: if error.is_refusal() { Outcome::Refused } else { Outcome::Failed },
            newest,
            log_version: error.committed().last().map(|v| LogVersion::new(*v)),
            commits: u32::try_from(error.committed().len()).unwrap_or(u32::MAX),
            error: Some(ErrorReport::of(error)),
            reason: None,
            ..Self::left_out(uri, kind, "")
        }
    }

    /// The report of a table that is left out on purpose.
    pub(crate) fn left_out(uri: &str, kind: &str, reason: impl Into<String>) -> Self {
        Self {
            uri: uri.to_owned(),
            kind: kind.to_owned(),
            outcome: Outcome::Skipped,
            from: None,
            to: None,
            floor: None,
            min_version: None,
            newest: None,
            log_version: None,
            commits: 0,
            attempts: 0,
            mode: Mode::NoChange,
            rewrite: None,
            assessment: None,
            migrations: Vec::new(),
            warnings: Vec::new(),
            elapsed_ms: 0,
            error: None,
            reason: Some(reason.into()),
            diff: None,
            columns: Vec::new(),
        }
    }

    /// The report of a table that nobody got to.
    pub(crate) fn skipped(uri: &str, kind: &str, newest: Option<SchemaVersion>, why: &Error) -> Self {
        Self { outcome: Outcome::Skipped, ..Self::of_error(uri, kind, newest, why) }
    }

    /// The report of a table that stands as it did then, but for its log version and perhaps its place.
    pub(crate) fn again(self, uri: &str, log_version: Option<LogVersion>) -> Self {
        Self { uri: uri.to_owned(), log_version, ..self }
    }

    pub(crate) fn took(mut self, elapsed: Duration) -> Self {
        self.elapsed_ms = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
        self
    }
}

/// Each migration once: one with a data step is a part of several commits.
fn migrations(plan: &Plan) -> Vec<MigrationReport> {
    let all = plan.commits.iter().flat_map(|c| &c.migrations);
    let mut out: Vec<MigrationReport> =
        all.map(|m| MigrationReport { version: m.version, description: m.description.clone() }).collect();
    out.dedup_by_key(|m| m.version);
    out
}

impl fmt::Display for TableReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { uri, kind, outcome, from, to, log_version, error, .. } = self;
        write!(f, "{uri} ({kind}): {}", outcome.as_str())?;
        match (from, to) {
            (Some(from), Some(to)) if from != to => write!(f, ", version {from} to {to}")?,
            (_, Some(to)) => write!(f, ", version {to}")?,
            _ => {}
        }
        if let Some(log_version) = log_version.filter(|_| self.commits > 0) {
            write!(f, ", log version {log_version}")?;
        }
        match error {
            Some(error) => write!(f, ": {} ({})", error.message, error.code),
            None => Ok(()),
        }
    }
}

/// What was done with many tables.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct BatchReport {
    /// The command that ran.
    pub command: &'static str,
    /// One report a table: those that were named in their order, those that were found by location.
    pub tables: Vec<TableReport>,
    /// How many tables ended how.
    pub summary: Summary,
    /// What each source gave; empty where every table was named.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<SourceReport>,
    /// Why the run as a whole was refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorReport>,
}

/// What one source gave.
#[derive(Debug, Clone, Default, Serialize)]
#[non_exhaustive]
pub struct SourceReport {
    /// The source's name.
    pub source: String,
    /// How many tables it gave.
    pub tables: u32,
    /// How many of them somebody named.
    #[serde(skip)]
    pub(crate) named: u32,
    /// How many of them another source, or the same one, had given before.
    pub duplicates: u32,
    /// How many of them are other shards' work.
    pub other_shards: u32,
    /// Whether it came to its end; not where the run was interrupted.
    pub complete: bool,
    /// How many parts of it could not be read.
    pub failures: u32,
    /// Why, for the first of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<ErrorReport>,
}

/// How many tables ended how.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
#[allow(missing_docs)]
pub struct Summary {
    pub migrated: u32,
    pub created: u32,
    pub repaired: u32,
    pub reconciled: u32,
    pub current: u32,
    pub ahead: u32,
    pub planned: u32,
    pub skipped: u32,
    pub refused: u32,
    pub failed: u32,
}

impl BatchReport {
    /// Counts the tables' outcomes.
    pub fn new(command: &'static str, tables: Vec<TableReport>) -> Self {
        let mut summary = Summary::default();
        for table in &tables {
            *match table.outcome {
                Outcome::Created => &mut summary.created,
                Outcome::Migrated => &mut summary.migrated,
                Outcome::Repaired => &mut summary.repaired,
                Outcome::Reconciled => &mut summary.reconciled,
                Outcome::Current => &mut summary.current,
                Outcome::Ahead => &mut summary.ahead,
                Outcome::Planned => &mut summary.planned,
                Outcome::Skipped => &mut summary.skipped,
                Outcome::Refused => &mut summary.refused,
                Outcome::Failed => &mut summary.failed,
            } += 1;
        }
        Self { command, tables, summary, sources: Vec::new(), error: None }
    }

    /// Whether a table was refused, failed, or was not got to; whether a source could not be read in
    /// full; whether the run was refused.
    pub fn has_errors(&self) -> bool {
        if self.error.is_some() || self.sources.iter().any(|s| s.failures > 0 || !s.complete) {
            return true;
        }
        let left_out = self.tables.iter().any(|t| t.outcome == Outcome::Skipped && t.error.is_some());
        self.summary.refused + self.summary.failed > 0 || left_out
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            migrated,
            created,
            repaired,
            reconciled,
            current,
            ahead,
            planned,
            skipped,
            refused,
            failed,
        } = *self;
        let parts = [
            (created, "created"),
            (migrated, "migrated"),
            (repaired, "repaired"),
            (reconciled, "reconciled"),
            (planned, "pending"),
            (current, "current"),
            (ahead, "ahead"),
            (skipped, "skipped"),
            (refused, "refused"),
            (failed, "failed"),
        ];
        let all: u32 = parts.iter().map(|(n, _)| n).sum();
        let shown: Vec<String> =
            parts.iter().filter(|(n, _)| *n > 0).map(|(n, word)| format!("{n} {word}")).collect();
        write!(
            f,
            "{}: {}",
            text::count(all as usize, "table"),
            if shown.is_empty() { "nothing to do".into() } else { shown.join(", ") }
        )
    }
}
