//! `plan`: what `apply` would do.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;

use super::Exit;
use super::args::{Global, PlanArgs, Tables};
use super::context::Context;
use super::frozen;
use super::output::Output;
use super::running::{Running, stores};
use crate::error::Error;
use crate::migrator::Migrator;
use crate::model::plan::{Plan, Target};
use crate::model::render;
use crate::model::report::{BatchReport, Outcome, TableReport};
use crate::model::saved_plan::{PlanFile, SavedPlan, WithPlans};
use crate::model::version::SchemaVersion;

pub(crate) async fn run(
    global: &Global,
    args: &PlanArgs,
    own: Option<Migrator>,
    output: &Output,
) -> Result<Exit, Error> {
    let has_own = own.is_some();
    let context = Context::load(global, own, None)?;
    frozen::warn(global, has_own, &context, output);
    let out = args.out.as_deref();
    let (exit, plans) = show("plan", &context, &args.tables, target(args.target), out, output).await?;
    if let Some(file) = out {
        if exit == Exit::Errors {
            output.note("! the refused tables are not in the plan");
        }
        if plans.iter().all(SavedPlan::is_noop) {
            output.note("→ nothing is pending in these tables");
        } else {
            let file = file.display();
            output.note(&format!("→ carry it out with `delta-migrate apply{} --plan {file}`", leave(&plans)));
        }
    } else if exit == Exit::Fine && plans.iter().any(|p| !p.is_noop()) && !output.is_json() {
        output.note(&format!("→ `delta-migrate apply{}` does it", leave(&plans)));
    }
    Ok(exit)
}

/// What `apply` must be told to carry the plans out.
fn leave(plans: &[SavedPlan]) -> &'static str {
    if plans.iter().any(SavedPlan::moves_data) { " --allow-rewrite" } else { "" }
}

pub(crate) fn target(version: Option<u32>) -> Target {
    version.map_or(Target::Newest, |v| Target::Version(SchemaVersion::new(v)))
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
    let stores = stores(tables);
    let sources = context.sources(tables, &stores)?;
    context.check_target(target, tables)?;
    let running = Running::new(command, context.migrator(), stores, sources, tables, output)?;
    let made: Mutex<BTreeMap<String, Plan>> = Mutex::default();
    let work = running.batch.each(command, |job| {
        let made = &made;
        async move {
            let (uri, newest) = (job.location.uri().to_owned(), job.kind.newest());
            let (migrator, location) = (job.migrator.clone(), job.location.clone());
            let plan = migrator.estimated(job.plan(target).await?, &location).await?;
            let report = TableReport::of_plan(&uri, &plan, newest);
            if let Ok(mut made) = made.lock() {
                made.insert(uri, plan);
            }
            Ok(report)
        }
    });
    let report = running.run(work).await;
    let made = made.into_inner().unwrap_or_default();
    let in_order = report.tables.iter().filter_map(|t| Some((t.uri.as_str(), made.get(&t.uri)?)));
    let made: Vec<(&str, &Plan)> = in_order.collect();
    let saved: Vec<SavedPlan> = made.iter().map(|(uri, plan)| SavedPlan::of(plan, uri)).collect();
    // Before anything is printed, so that what is printed is one document, whatever happens.
    if let Some(file) = out {
        save(file, saved.clone())?;
    }
    let exit = running.print_as(&WithPlans { report: &report, plans: &saved }, &report, || {
        for (uri, plan) in made.iter().filter(|(_, p)| !p.is_empty()) {
            output.text(&render::plan(uri, plan, output.palette()));
            output.text("\n");
        }
        output.text(&render::batch(&without_pending(&report), output.palette()));
    });
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
