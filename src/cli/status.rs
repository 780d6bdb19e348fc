//! `status`: how each table stands to its kind.

use super::Exit;
use super::args::{Global, StatusArgs};
use super::context::Context;
use super::frozen;
use super::output::Output;
use super::running::{Running, stores};
use crate::error::Error;
use crate::migrator::Migrator;

pub(crate) async fn run(
    global: &Global,
    args: &StatusArgs,
    own: Option<Migrator>,
    output: &Output,
) -> Result<Exit, Error> {
    let has_own = own.is_some();
    let context = Context::load(global, own, None)?;
    frozen::warn(global, has_own, &context, output);
    let stores = stores(&args.tables);
    let sources = context.sources(&args.tables, &stores)?;
    let running = Running::new("status", context.migrator(), stores, sources, &args.tables, output)?;
    let report = running.run(running.batch.status()).await;
    let exit = running.print(&report);
    let pending = report.summary.planned > 0;
    if pending && !output.is_json() {
        output.note("→ `delta-migrate plan` shows what would change, `delta-migrate apply` does it");
    }
    Ok(if args.check && pending && exit == Exit::Fine { Exit::Pending } else { exit })
}
