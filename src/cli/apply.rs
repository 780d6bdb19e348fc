//! `apply`: bring tables up to date.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use super::args::{ApplyArgs, Global};
use super::context::{Context, each, job_of_plan};
use super::output::Output;
use super::{Exit, plan};
use crate::error::{Error, ErrorCode};
use crate::migrator::Migrator;
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
        return Ok(plan::show("apply", &context, &args.tables, target, None, output).await?.0);
    }
    let jobs = context.jobs(&args.tables)?;
    plan::check_target(&jobs, target)?;
    let report = each("apply", jobs, args.tables.concurrency, output, |job| async move {
        job.migrator.migrate(&job.kind, &job.location, target, job.if_missing).await
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
            || args.tables.tables.iter().any(|t| uri_of(context, t) == uri_of(context, uri))
    };
    for table in &args.tables.tables {
        let uri = context.location_of(table)?.uri().to_owned();
        if !file.tables.iter().any(|p| uri_of(context, &p.uri) == uri) {
            return Err(Error::usage(format!("the plan says nothing of table `{uri}`"))
                .with_hint("name tables of the plan, or none to carry out all of it"));
        }
    }
    let plans: Vec<_> = file.tables.into_iter().filter(|p| wanted(&p.uri)).collect();
    let (mut jobs, mut refused) = (Vec::new(), Vec::new());
    let mut by_uri = BTreeMap::new();
    for plan in &plans {
        if by_uri.insert(uri_of(context, &plan.uri), plan).is_some() {
            return Err(Error::usage(format!("the plan names table `{}` twice", plan.uri)));
        }
        match job_of_plan(context, &plan.uri, &plan.kind) {
            Ok(job) => jobs.push(job),
            Err(error) if error.code() == ErrorCode::StalePlan => {
                refused.push(TableReport::of_error(&plan.uri, &plan.kind, None, &error));
            }
            Err(error) => return Err(error),
        }
    }
    let by_uri = &by_uri;
    let report = each("apply", jobs, args.tables.concurrency, output, |job| async move {
        let plan = by_uri.get(job.location.uri());
        let plan = plan.ok_or_else(|| Error::usage("the plan says nothing of the table"))?;
        if args.dry_run {
            return job.migrator.check_saved(plan, &job.location).await;
        }
        job.migrator.apply_saved(plan, &job.location).await
    })
    .await;
    refused.extend(report.tables);
    Ok(output.batch(&BatchReport::new("apply", refused)))
}

/// A table's location in the one spelling that all of its spellings have.
fn uri_of(context: &Context, table: &str) -> String {
    context.location_of(table).map_or_else(|_| table.to_owned(), |l| l.uri().to_owned())
}
