//! `apply`: bring tables up to date.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::BoxStream;

use super::args::{ApplyArgs, Global};
use super::context::Context;
use super::output::Output;
use super::running::{Running, stores};
use super::{Exit, frozen, plan};
use crate::batch::{Batch, Job};
use crate::catalog::{Found, Source, TableList, Trust};
use crate::delta::location;
use crate::error::{Error, ErrorCode, Stage};
use crate::migrator::Migrator;
use crate::model::report::{BatchReport, ErrorReport, TableReport};
use crate::model::saved_plan::{PlanFile, SavedPlan};

pub(crate) async fn run(
    global: &Global,
    args: &ApplyArgs,
    own: Option<Migrator>,
    output: &Output,
) -> Result<Exit, Error> {
    let has_own = own.is_some();
    let context = Context::load(global, own, Some(Duration::from_secs(args.timeout)))?;
    let context = if args.allow_rewrite { context.allowed_to_rewrite(args.show_values) } else { context };
    frozen::check(global, has_own, &context)?;
    if let Some(file) = &args.plan {
        return saved(&context, file, args, output).await;
    }
    let target = plan::target(args.target);
    if args.dry_run {
        return Ok(plan::show("apply", &context, &args.tables, target, None, output).await?.0);
    }
    let stores = stores(&args.tables);
    let sources = context.sources(&args.tables, &stores)?;
    context.check_target(target, &args.tables)?;
    let mut running = Running::new("apply", context.migrator(), stores, sources, &args.tables, output)?;
    if let Some(most) = args.max_changed {
        running.batch = running.batch.max_changed(most);
    }
    let report = running.run(running.batch.carry("apply", target)).await;
    Ok(running.print(&report))
}

async fn saved(context: &Context, file: &Path, args: &ApplyArgs, output: &Output) -> Result<Exit, Error> {
    let text = std::fs::read_to_string(file)
        .map_err(|e| Error::usage(format!("`{}` can't be read", file.display())).with_source(e))?;
    let file = PlanFile::from_json(&text)?;
    let by_uri = chosen(context, file, args)?;
    let mut refused = Vec::new();
    let mut known = Vec::new();
    let mut sought = BTreeMap::new();
    for (uri, plan) in &by_uri {
        if let Err(e) = context.migrator().kind(&plan.kind) {
            let error = Error::new(ErrorCode::StalePlan, Stage::Setup, e.message().to_owned())
                .with_hint("make the plan anew with `delta-migrate plan -o FILE`, or bring the kind back");
            refused.push(TableReport::of_error(&plan.uri, &plan.kind, None, &error));
        } else if context.knows_store_of(&plan.uri) {
            known.push(context.planned(&plan.uri, &plan.kind));
        } else {
            sought.insert(uri.clone(), plan.kind.clone());
        }
    }
    let sources = || -> Result<Vec<Box<dyn Source>>, Error> {
        let mut sources: Vec<Box<dyn Source>> = Vec::new();
        if !known.is_empty() {
            sources.push(Box::new(TableList::new(known.clone())));
        }
        if !sought.is_empty() {
            // Only the catalog knows the way to these tables' stores.
            for catalog in context.catalogs()? {
                sources.push(Box::new(Chosen { catalog, kinds: sought.clone() }));
            }
        }
        Ok(sources)
    };
    let running =
        Running::new("apply", context.migrator(), stores(&args.tables), sources()?, &args.tables, output)?;
    let (by_uri, dry_run) = (&by_uri, args.dry_run);
    let plan_of = |job: &Job| {
        let plan = by_uri.get(job.location.uri());
        plan.ok_or_else(|| Error::usage("the plan says nothing of the table"))
    };
    if let Some(most) = args.max_changed {
        // Looked at without being told of: a table has one last word.
        let mut look = Batch::new(context.migrator().clone(), stores(&args.tables))
            .sources(sources()?)
            .concurrency(args.tables.concurrency);
        if let Some((index, count)) = args.tables.shard {
            look = look.shard(index, count)?;
        }
        let looked = look.each("apply", |job| async move {
            job.migrator.check_saved_for(&job.kind, plan_of(&job)?, &job.location).await
        });
        let mut report = looked.await;
        if report.summary.planned > most {
            let pending = usize::try_from(report.summary.planned).unwrap_or(usize::MAX);
            report.tables.iter().for_each(|table| running.batch.tell(table));
            report.error = Some(ErrorReport::of(&crate::batch::too_many(pending, most)));
            return Ok(running.print(&report));
        }
    }
    let work = running.batch.each("apply", |job| async move {
        let plan = plan_of(&job)?;
        if dry_run {
            return job.migrator.check_saved_for(&job.kind, plan, &job.location).await;
        }
        job.migrator.apply_saved_to(&job.kind, plan, &job.location).await
    });
    let report = running.run(work).await;
    let told: BTreeSet<&str> = report.tables.iter().map(|t| t.uri.as_str()).collect();
    for (uri, kind) in sought.iter().filter(|(uri, _)| !told.contains(uri.as_str())) {
        let error = Error::new(ErrorCode::StalePlan, Stage::Setup, "no catalog of the configuration has it")
            .with_hint("make the plan anew with `delta-migrate plan -o FILE`");
        refused.push(TableReport::of_error(uri, kind, None, &error));
    }
    let mut whole = BatchReport::new("apply", refused.into_iter().chain(report.tables).collect());
    whole.sources = report.sources;
    Ok(running.print(&whole))
}

/// The plans of the file that the command line asks for, by location.
fn chosen(context: &Context, file: PlanFile, args: &ApplyArgs) -> Result<BTreeMap<String, SavedPlan>, Error> {
    let mut by_uri = BTreeMap::new();
    for plan in file.tables {
        let uri = uri_of(context, &plan.uri);
        if let Some(twice) = by_uri.insert(uri, plan) {
            return Err(Error::usage(format!("the plan names table `{}` twice", twice.uri)));
        }
    }
    if args.tables.tables.is_empty() {
        return Ok(by_uri);
    }
    let mut wanted = BTreeSet::new();
    for table in &args.tables.tables {
        let uri = context.location_of(table)?.uri().to_owned();
        if !by_uri.contains_key(&uri) {
            return Err(Error::usage(format!("the plan says nothing of table `{uri}`"))
                .with_hint("name tables of the plan, or none to carry out all of it"));
        }
        wanted.insert(uri);
    }
    by_uri.retain(|uri, _| wanted.contains(uri));
    Ok(by_uri)
}

/// A table's location in the one spelling that all of its spellings have.
fn uri_of(context: &Context, table: &str) -> String {
    context.location_of(table).map_or_else(|_| table.to_owned(), |l| l.uri().to_owned())
}

/// The tables of a catalog that a plan is for, under the plan's kinds.
struct Chosen {
    catalog: Box<dyn Source>,
    kinds: BTreeMap<String, String>,
}

impl Source for Chosen {
    fn name(&self) -> String {
        self.catalog.name()
    }

    fn tables(&self) -> BoxStream<'_, Result<Found, Error>> {
        let chosen = |item: Result<Found, Error>| {
            let Ok(mut found) = item else { return Some(item) };
            let uri = location::named(&found.uri).ok()?;
            found.kind = Some(self.kinds.get(&uri)?.clone());
            found.trust = Trust::Named;
            Some(Ok(found))
        };
        self.catalog.tables().filter_map(move |item| std::future::ready(chosen(item))).boxed()
    }
}
