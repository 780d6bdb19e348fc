//! `plan`: what `apply` would do.

use std::path::Path;
use std::sync::Mutex;

use serde::Serialize;

use super::Exit;
use super::args::{Global, PlanArgs, Tables};
use super::context::{Context, Job, each};
use super::output::Output;
use crate::error::Error;
use crate::migrator::Migrator;
use crate::model::plan::{Plan, Target};
use crate::model::render;
use crate::model::report::{BatchReport, Outcome, TableReport};
use crate::model::saved_plan::{PlanFile, SavedPlan};
use crate::model::version::SchemaVersion;

pub(crate) async fn run(
    global: &Global,
    args: &PlanArgs,
    own: Option<Migrator>,
    output: &Output,
) -> Result<Exit, Error> {
    let context = Context::load(global, own, None)?;
    let out = args.out.as_deref();
    let (exit, plans) = show("plan", &context, &args.tables, target(args.target), out, output).await?;
    if let Some(file) = out {
        if exit == Exit::Errors {
            output.note("! the refused tables are not in the plan");
        }
        if plans.iter().all(SavedPlan::is_noop) {
            output.note("→ nothing is pending in these tables");
        } else {
            output.note(&format!("→ carry it out with `delta-migrate apply --plan {}`", file.display()));
        }
    } else if exit == Exit::Fine && plans.iter().any(|p| !p.is_noop()) && !output.is_json() {
        output.note("→ `delta-migrate apply` does it");
    }
    Ok(exit)
}

pub(crate) fn target(version: Option<u32>) -> Target {
    version.map_or(Target::Newest, |v| Target::Version(SchemaVersion::new(v)))
}

/// A version beyond a kind's chain is a mistake of the command line, not of any table.
pub(crate) fn check_target(jobs: &[Job], target: Target) -> Result<(), Error> {
    let Target::Version(version) = target else { return Ok(()) };
    for job in jobs {
        let newest = job.migrator.kind(&job.kind)?.newest();
        if version > newest {
            let message =
                format!("--target {version} is beyond kind `{}`, whose newest version is {newest}", job.kind);
            return Err(Error::usage(message).with_hint("name a version that the kind's chain has"));
        }
    }
    Ok(())
}

/// A report with the plans beside it, in the order of the tables.
#[derive(Serialize)]
struct WithPlans<'a> {
    #[serde(flatten)]
    report: &'a BatchReport,
    plans: &'a [SavedPlan],
}

/// Plans every table, shows what came out, and gives the plans for a file.
pub(crate) async fn show(
    command: &'static str,
    context: &Context,
    tables: &Tables,
    target: Target,
    out: Option<&Path>,
    output: &Output,
) -> Result<(Exit, Vec<SavedPlan>), Error> {
    let jobs = context.jobs(tables)?;
    check_target(&jobs, target)?;
    let order: Vec<String> = jobs.iter().map(|j| j.location.uri().to_owned()).collect();
    let made: Mutex<Vec<(String, Plan)>> = Mutex::default();
    let report = each(command, jobs, tables.concurrency, output, |job| {
        let made = &made;
        async move {
            let plan = job.plan(target).await?;
            let newest = job.migrator.kind(&job.kind)?.newest();
            let report = TableReport::of_plan(job.location.uri(), &plan, newest);
            if let Ok(mut made) = made.lock() {
                made.push((job.location.uri().to_owned(), plan));
            }
            Ok(report)
        }
    })
    .await;
    let mut made = made.into_inner().unwrap_or_default();
    made.sort_by_key(|(uri, _)| order.iter().position(|o| o == uri));
    let saved: Vec<SavedPlan> = made.iter().map(|(uri, plan)| SavedPlan::of(plan, uri)).collect();
    // Before anything is printed, so that what is printed is one document, whatever happens.
    if let Some(file) = out {
        save(file, saved.clone())?;
    }
    if output.is_json() {
        output.json(&WithPlans { report: &report, plans: &saved });
        return Ok((if report.has_errors() { Exit::Errors } else { Exit::Fine }, saved));
    }
    for (uri, plan) in made.iter().filter(|(_, p)| !p.is_empty()) {
        output.text(&render::plan(uri, plan, output.palette()));
        output.text("\n");
    }
    output.text(&render::batch(&without_pending(&report), output.palette()));
    let exit = if report.has_errors() { Exit::Errors } else { Exit::Fine };
    Ok((exit, saved))
}

/// The pending tables have just been shown in full; they still count.
fn without_pending(report: &BatchReport) -> BatchReport {
    let mut shown = report.clone();
    shown.tables.retain(|t| t.outcome != Outcome::Planned);
    shown
}

fn save(file: &Path, plans: Vec<SavedPlan>) -> Result<(), Error> {
    std::fs::write(file, PlanFile::new(plans).to_json() + "\n")
        .map_err(|e| Error::usage(format!("`{}` can't be written", file.display())).with_source(e))
}
