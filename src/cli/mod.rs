//! The command: arguments, printing, progress, exit codes. The only part that prints.
//!
//! A project whose chains hold code of its own builds its own command with [`run`].

mod apply;
mod args;
mod by_hand;
mod compat;
mod config;
mod context;
mod doctor;
mod frozen;
mod history;
mod kind;
mod kinds;
mod lock;
mod log;
mod new;
mod output;
mod plan;
mod progress;
mod reconcile;
mod running;
mod signals;
mod sources;
mod status;
mod validate;

use std::process::ExitCode;

use clap::{CommandFactory as _, Parser as _};

use crate::error::Error;
use crate::migrator::Migrator;
use args::{Cli, Command, Format, Global};
use output::Output;

/// How a command ended; the numbers are a contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Exit {
    Fine = 0,
    Errors = 1,
    Usage = 2,
    Pending = 3,
}

/// The stock command: kinds come from kind files.
pub fn main() -> ExitCode {
    start(None)
}

/// The command with kinds that the program brings along; a configuration file may still list tables.
///
/// # Examples
/// ```no_run
/// use delta_migrate::{Kind, Migrator, Namespace};
///
/// fn main() -> std::process::ExitCode {
///     let facts = Kind::from_toml("kind = \"facts\"\n[columns]\napp_id = \"string\"").unwrap();
///     let migrator = Migrator::builder(Namespace::new("my_sink").unwrap()).kind(facts).build().unwrap();
///     delta_migrate::cli::run(migrator)
/// }
/// ```
pub fn run(migrator: Migrator) -> ExitCode {
    start(Some(migrator))
}

fn start(own: Option<Migrator>) -> ExitCode {
    let cli = Cli::parse();
    let Cli { global, command } = cli;
    log::to_stderr(&global);
    let output = Output::new(global.format);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let ended = match runtime {
        Ok(runtime) => {
            let ended = runtime.block_on(dispatch(&global, command, own, &output));
            // A read of a file system that never answers must not hold up the exit.
            runtime.shutdown_background();
            ended
        }
        Err(error) => Err(Error::usage("the runtime can't be started").with_source(error)),
    };
    let exit = ended.unwrap_or_else(|error| {
        output.setup_error(&error);
        Exit::Usage
    });
    let exit = if exit == Exit::Fine && output.has_failed() { Exit::Errors } else { exit };
    ExitCode::from(exit as u8)
}

async fn dispatch(
    global: &Global,
    command: Command,
    own: Option<Migrator>,
    output: &Output,
) -> Result<Exit, Error> {
    match command {
        Command::Status(args) => status::run(global, &args, own, output).await,
        Command::Plan(args) => plan::run(global, &args, own, output).await,
        Command::Apply(args) => apply::run(global, &args, own, output).await,
        Command::History(args) => history::run(global, &args, own, output).await,
        Command::Diff(args) => reconcile::diff(global, &args, own, output).await,
        Command::Reconcile(args) => reconcile::run(global, &args, own, output).await,
        Command::Baseline(args) => by_hand::baseline(global, &args, own, output).await,
        Command::Repair(args) => by_hand::repair(global, &args, own, output).await,
        Command::Doctor(args) => doctor::run(global, &args, output).await,
        Command::Lock(args) => lock::run(global, &args, own, output),
        Command::Validate(args) => validate::run(global, &args, own, output),
        Command::New(args) => new::run(global, &args, output),
        Command::Compat { command } => compat::run(global, command, own, output).await,
        Command::Kind { command } => kind::run(global, &command, output).await,
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "delta-migrate", &mut script);
            output.text(&String::from_utf8_lossy(&script));
            Ok(Exit::Fine)
        }
    }
}

impl Format {
    fn is_json(self) -> bool {
        self == Self::Json
    }
}
