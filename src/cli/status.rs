//! `status`: how each table stands to its kind.

use super::Exit;
use super::args::{Global, StatusArgs};
use super::context::{Context, each};
use super::output::Output;
use crate::error::Error;
use crate::migrator::Migrator;
use crate::model::plan::Target;
use crate::model::report::TableReport;

pub(crate) async fn run(
    global: &Global,
    args: &StatusArgs,
    own: Option<Migrator>,
    output: &Output,
) -> Result<Exit, Error> {
    let context = Context::load(global, own, None)?;
    let jobs = context.jobs(&args.tables)?;
    let report = each("status", jobs, args.tables.concurrency, output, |job| async move {
        let plan = job.plan(Target::Newest).await?;
        Ok(TableReport::of_plan(job.location.uri(), &plan, job.migrator.kind(&job.kind)?.newest()))
    })
    .await;
    let exit = output.batch(&report);
    let pending = report.summary.planned > 0;
    if pending && !output.is_json() {
        output.note("→ `delta-migrate plan` shows what would change, `delta-migrate apply` does it");
    }
    Ok(if args.check && pending && exit == Exit::Fine { Exit::Pending } else { exit })
}
