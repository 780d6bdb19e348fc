//! `diff` and `reconcile`: tables get the columns that a schema, or their kind's newest shape, has.

use std::time::Duration;

use super::args::{Comparison, DiffArgs, Global, ReconcileArgs};
use super::context::Context;
use super::output::{Output, exit_of};
use super::signals::hearing;
use super::{Exit, frozen};
use crate::batch::Stop;
use crate::delta::arrow_file::schema_of_file;
use crate::delta::location::Location;
use crate::error::Error;
use crate::migrator::Migrator;
use crate::model::kind::Kind;
use crate::model::reconcile::Desired;
use crate::model::render;
use crate::model::report::{BatchReport, Outcome, TableReport, tells_of_a_fault};
use crate::model::version::SchemaVersion;

pub(crate) async fn diff(
    global: &Global,
    args: &DiffArgs,
    own: Option<Migrator>,
    output: &Output,
) -> Result<Exit, Error> {
    let has_own = own.is_some();
    let (context, tables) = open(global, &args.comparison, own, None).await?;
    if args.comparison.schema.is_none() {
        frozen::warn(global, has_own, &context, output);
    }
    let report = compared("diff", context.migrator(), &tables).await;
    let pending = report.summary.planned > 0;
    let exit = print(&report, output);
    if exit != Exit::Fine || !pending {
        return Ok(exit);
    }
    if !output.is_json() {
        output.note("→ `delta-migrate reconcile` adds the columns");
    }
    Ok(if args.check { Exit::Pending } else { Exit::Fine })
}

pub(crate) async fn run(
    global: &Global,
    args: &ReconcileArgs,
    own: Option<Migrator>,
    output: &Output,
) -> Result<Exit, Error> {
    let has_own = own.is_some();
    let budget = Some(Duration::from_secs(args.timeout));
    let (context, tables) = open(global, &args.comparison, own, budget).await?;
    if args.comparison.schema.is_none() {
        frozen::check(global, has_own, &context)?;
    }
    if args.dry_run {
        let report = compared("reconcile", context.migrator(), &tables).await;
        let exit = print(&report, output);
        if report.summary.planned > 0 && !output.is_json() {
            output.note("→ nothing was written; without --dry-run it is carried out");
        }
        return Ok(exit);
    }
    let stop = Stop::new();
    let heard = stop.clone();
    let work = async {
        let mut done = Vec::new();
        for table in &tables {
            done.push(match stop.error() {
                Some(error) => table.skipped(&error),
                None => table.reconcile(context.migrator()).await,
            });
        }
        done
    };
    let report = BatchReport::new("reconcile", hearing(move || heard.now(), work).await);
    Ok(print(&report, output))
}

/// A table, and what it should be like.
struct Wanted {
    location: Location,
    desired: Desired,
}

/// Everything that can be wrong with arguments and files is told before the first table.
async fn open(
    global: &Global,
    comparison: &Comparison,
    own: Option<Migrator>,
    budget: Option<Duration>,
) -> Result<(Context, Vec<Wanted>), Error> {
    let Comparison { tables, schema, add } = comparison;
    let with = |mut desired: Desired| {
        for column in add {
            desired = desired.adding(column)?;
        }
        Ok::<Desired, Error>(desired)
    };
    let mut wanted = Vec::new();
    let Some(file) = schema else {
        let context = Context::load(global, own, budget)?;
        for table in tables {
            let one = context.one(table).await?;
            let desired = with(Desired::of_kind(context.migrator().kind(&one.kind)?))?;
            wanted.push(Wanted { location: one.location, desired });
        }
        return Ok((context, wanted));
    };
    let desired = with(Desired::schema(&schema_of_file(file)?)?)?;
    let context = Context::load_without_kinds(global, own, budget)?;
    for table in tables {
        wanted.push(Wanted { location: context.location_of(table)?, desired: desired.clone() });
    }
    Ok((context, wanted))
}

async fn compared(command: &'static str, migrator: &Migrator, tables: &[Wanted]) -> BatchReport {
    let mut reports = Vec::new();
    for table in tables {
        reports.push(table.compare(migrator).await);
    }
    BatchReport::new(command, reports)
}

impl Wanted {
    /// How the table differs; a table that would be refused tells its differences all the same.
    async fn compare(&self, migrator: &Migrator) -> TableReport {
        let Self { location, desired } = self;
        match migrator.plan_reconcile(desired, location).await {
            Ok(plan) => TableReport::of_plan(location.uri(), &plan, self.newest()),
            Err(error) => self.with_diff(self.failed(&error), migrator).await,
        }
    }

    async fn reconcile(&self, migrator: &Migrator) -> TableReport {
        match migrator.reconcile_reported(&self.desired, &self.location).await {
            Ok(report) => report,
            Err(error) if error.is_refusal() => self.with_diff(self.failed(&error), migrator).await,
            Err(error) => self.failed(&error),
        }
    }

    async fn with_diff(&self, report: TableReport, migrator: &Migrator) -> TableReport {
        let diff = migrator.diff(&self.desired, &self.location).await.ok();
        TableReport { diff, ..report }
    }

    fn failed(&self, error: &Error) -> TableReport {
        TableReport::of_error(self.location.uri(), self.kind(), self.newest(), error)
    }

    fn skipped(&self, error: &Error) -> TableReport {
        TableReport::skipped(self.location.uri(), self.kind(), self.newest(), error)
    }

    fn kind(&self) -> &str {
        self.desired.kind().map_or("", |kind| kind.name())
    }

    fn newest(&self) -> Option<SchemaVersion> {
        self.desired.kind().map(Kind::newest)
    }
}

fn print(report: &BatchReport, output: &Output) -> Exit {
    if output.is_json() {
        return output.batch(report);
    }
    for table in &report.tables {
        output.text(&render::diff(table, output.palette()));
    }
    let mut short = report.clone();
    for table in &mut short.tables {
        // What is above is not said again.
        table.warnings.retain(|w| tells_of_a_fault(w));
        table.migrations.clear();
    }
    short.tables.retain(|t| t.outcome != Outcome::Planned);
    output.text(&render::batch(&short, output.palette()));
    exit_of(report)
}
