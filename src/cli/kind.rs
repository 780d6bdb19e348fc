//! `kind`: kind files, and migrations for them, from tables and schemas that exist.

mod add_migration;
mod from_table;

use std::time::Duration;

use super::Exit;
use super::args::{Global, KindCommand};
use super::context::{read_config, storage_of};
use super::output::Output;
use crate::delta::location::Location;
use crate::delta::read::{Found, read};
use crate::error::{Error, ErrorCode, Stage};
use crate::model::state::TableState;
use crate::model::version::Namespace;

/// A store that never answers must not hold up the command.
const LONGEST_READ: Duration = Duration::from_secs(60);

pub(super) async fn run(global: &Global, command: &KindCommand, output: &Output) -> Result<Exit, Error> {
    let done = match command {
        KindCommand::FromTable(args) => from_table::run(global, args, output).await,
        KindCommand::AddMigration(args) => add_migration::run(global, args, output).await,
    };
    match done {
        // stdout may be the kind file to be: a refused table is told beside it.
        Err(error) if error.code() != ErrorCode::Usage => {
            output.setup_error(&error);
            Ok(Exit::Errors)
        }
        done => done,
    }
}

/// A table that a person named, read with the configuration's storage options where there are any.
struct Read {
    uri: String,
    state: TableState,
    /// The namespace of the command line or the configuration.
    namespace: Option<Namespace>,
}

async fn read_table(global: &Global, uri: &str) -> Result<Read, Error> {
    let config = read_config(global, true)?;
    let storage = storage_of(global, config.as_ref())?;
    let namespace = match &global.namespace {
        Some(name) => Some(Namespace::new(name).map_err(|e| Error::usage(e.to_string()))?),
        None => config.map(|c| c.namespace),
    };
    let location = Location::new(uri, storage.into_iter().collect())?;
    location.check_is_folder()?;
    let store = location.store();
    // No evidence of a stamp is looked for.
    let found = tokio::time::timeout(LONGEST_READ, read(store.as_ref(), None, &|_| true, None)).await;
    let found = found.unwrap_or_else(|_| {
        Err(Error::new(ErrorCode::Storage, Stage::Read, "the store did not answer in time")
            .with_hint("run it again"))
    });
    let shown = location.uri().to_owned();
    match found.map_err(|e| e.with_table(&shown))? {
        Found::Table(read) => Ok(Read { uri: shown, state: read.state, namespace }),
        Found::Nothing => Err(Error::new(ErrorCode::Missing, Stage::Read, "there is no table")
            .with_table(&shown)
            .with_hint("check the location")),
    }
}

/// Remarks on what was left out, on stderr.
fn tell(output: &Output, notes: &[String]) {
    notes.iter().for_each(|note| output.note(&format!("note: {note}")));
}
