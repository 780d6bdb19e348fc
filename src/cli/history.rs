//! `history`: who migrated a table, when.

use super::Exit;
use super::args::{Global, HistoryArgs};
use super::context::Context;
use super::output::Output;
use crate::delta::history::WithCommand;
use crate::error::Error;
use crate::migrator::Migrator;
use crate::model::report::{BatchReport, TableReport};

pub(crate) async fn run(
    global: &Global,
    args: &HistoryArgs,
    own: Option<Migrator>,
    output: &Output,
) -> Result<Exit, Error> {
    let context = Context::load(global, own, None)?;
    let location = context.location_of(&args.table)?;
    match context.migrator().history(&location).await {
        Ok(history) if output.is_json() => output.json(&WithCommand { command: "history", history }),
        Ok(history) => output.text(&history.to_string()),
        Err(error) => {
            let table = TableReport::of_error(location.uri(), "", None, &error);
            return Ok(output.batch(&BatchReport::new("history", vec![table])));
        }
    }
    Ok(Exit::Fine)
}
