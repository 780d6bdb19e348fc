//! `baseline` and `repair`: what a person decides about one table.

use super::Exit;
use super::args::{BaselineArgs, Global, RepairArgs};
use super::context::{Context, One};
use super::output::Output;
use super::signals::to_the_end;
use crate::error::{Error, ErrorCode};
use crate::migrator::Migrator;
use crate::model::plan::{Plan, Repair};
use crate::model::render;
use crate::model::report::{BatchReport, TableReport, tells_of_a_fault};
use crate::model::version::{MinVersion, SchemaVersion};

pub(crate) async fn baseline(
    global: &Global,
    args: &BaselineArgs,
    own: Option<Migrator>,
    output: &Output,
) -> Result<Exit, Error> {
    let context = Context::load(global, own, None)?;
    let (migrator, job) = (context.migrator(), context.one(&args.table).await?);
    let at = SchemaVersion::new(args.at);
    let plan = migrator.plan_baseline(&job.kind, &job.location, at).await;
    let job = &job;
    carry_out("baseline", migrator, job, plan, args.dry_run, output, || async move {
        migrator.baseline(&job.kind, &job.location, at).await
    })
    .await
}

pub(crate) async fn repair(
    global: &Global,
    args: &RepairArgs,
    own: Option<Migrator>,
    output: &Output,
) -> Result<Exit, Error> {
    let context = Context::load(global, own, None)?;
    let (migrator, job) = (context.migrator(), context.one(&args.table).await?);
    let repair = match (args.restamp, args.lower_floor) {
        (Some(version), _) => Repair::Restamp(SchemaVersion::new(version)),
        (None, Some(floor)) => Repair::LowerFloor(MinVersion::new(floor)),
        (None, None) => Repair::ReaddColumns,
    };
    let plan = migrator.plan_repair(&job.kind, &job.location, repair, &args.why).await;
    let (job, why) = (&job, &args.why);
    carry_out("repair", migrator, job, plan, args.dry_run, output, || async move {
        migrator.repair(&job.kind, &job.location, repair, why).await
    })
    .await
}

/// Shows the plan, then does it, unless it is only to be shown.
async fn carry_out<F, Fut>(
    command: &'static str,
    migrator: &Migrator,
    job: &One,
    plan: Result<Plan, Error>,
    dry_run: bool,
    output: &Output,
    work: F,
) -> Result<Exit, Error>
where
    F: FnOnce() -> Fut,
    Fut: Future<Output = Result<TableReport, Error>>,
{
    let newest = migrator.kind(&job.kind)?.newest();
    let uri = job.location.uri();
    let done = match plan {
        Ok(plan) => {
            if !output.is_json() && !plan.is_empty() {
                output.text(&render::plan(uri, &plan, output.palette()));
                output.text("\n");
            }
            let shown = TableReport::of_plan(uri, &plan, newest);
            if dry_run && !plan.is_empty() && !output.is_json() {
                output.note("→ nothing was written; without --dry-run it is carried out");
                return Ok(Exit::Fine);
            }
            if dry_run || plan.is_empty() { Ok(shown) } else { to_the_end(work()).await }
        }
        Err(error) => Err(error),
    };
    if matches!(&done, Err(error) if error.code() == ErrorCode::Usage) {
        return done.map(|_| Exit::Usage);
    }
    let table = done.unwrap_or_else(|e| TableReport::of_error(uri, &job.kind, Some(newest), &e));
    let mut report = BatchReport::new(command, vec![table]);
    if !output.is_json() {
        // The plan above has said it all.
        report.tables.iter_mut().for_each(|t| {
            t.migrations.clear();
            t.warnings.retain(|w| tells_of_a_fault(w));
        });
    }
    let pending = report.tables.iter().any(|t| t.error.is_none() && t.to < t.newest);
    let exit = output.batch(&report);
    if pending && !dry_run && !output.is_json() {
        output.note("→ migrations are still pending: `delta-migrate apply` carries them out");
    }
    Ok(exit)
}
