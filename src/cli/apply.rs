//! `apply`: bring tables up to date.

use std::path::Path;
use std::time::Duration;

use super::args::{ApplyArgs, Global};
use super::context::{Context, each, job_of_plan};
use super::output::Output;
use super::{Exit, plan};
use crate::error::{Error, ErrorCode};
use crate::migrator::{IfMissing, Migrator};
use crate::model::report::{BatchReport, TableReport};
use crate::model::saved_plan::PlanFile;

pub(crate) async fn run(
    global: &Global,
    args: &ApplyArgs,
    own: Option<Migrator>,
    output: &Output,
) -> Result<Exit, Error> {
    let context = Context::load(global, own, Some(Duration::from_secs(args.timeout)))?;
    if let Some(file) = &args.plan {
        return saved(&context, file, args, output).await;
    }
    let target = plan::target(args.target);
    if args.dry_run {
        return Ok(plan::show("apply", &context, &args.tables, target, output).await?.0);
    }
    let jobs = context.jobs(&args.tables)?;
    plan::check_target(&jobs, target)?;
    let report = each("apply", jobs, args.tables.concurrency, output, |job| async move {
        // Every table here was named with its kind, by the command line or under [[tables]].
        job.migrator.migrate(&job.kind, &job.location, target, IfMissing::Create).await
    })
    .await;
    Ok(output.batch(&report))
}

async fn saved(context: &Context, file: &Path, args: &ApplyArgs, output: &Output) -> Result<Exit, Error> {
    let text = std::fs::read_to_string(file)
        .map_err(|e| Error::usage(format!("`{}` can't be read", file.display())).with_source(e))?;
    let file = PlanFile::from_json(&text)?;
    let wanted = |uri: &str| {
        args.tables.tables.is_empty()
            || args.tables.tables.iter().any(|t| context.location_of(t).is_ok_and(|l| l.uri() == uri))
    };
    let plans: Vec<_> = file.tables.into_iter().filter(|p| wanted(&p.uri)).collect();
    let (mut jobs, mut refused) = (Vec::new(), Vec::new());
    for plan in &plans {
        match job_of_plan(context, &plan.uri, &plan.kind) {
            Ok(job) => jobs.push(job),
            Err(error) if error.code() == ErrorCode::StalePlan => {
                refused.push(TableReport::of_error(&plan.uri, &plan.kind, None, &error));
            }
            Err(error) => return Err(error),
        }
    }
    let plans = &plans;
    let report = each("apply", jobs, args.tables.concurrency, output, |job| async move {
        let plan = plans.iter().find(|p| p.uri == job.location.uri());
        let plan = plan.ok_or_else(|| Error::usage("the plan names a table twice"))?;
        if args.dry_run {
            return job.migrator.check_saved(plan, &job.location).await;
        }
        job.migrator.apply_saved(plan, &job.location).await
    })
    .await;
    refused.extend(report.tables);
    Ok(output.batch(&BatchReport::new("apply", refused)))
}
