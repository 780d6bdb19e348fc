//! The command line.

mod compat;
mod kind;
mod reconcile;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

pub(crate) use compat::{CheckArgs, CompatCommand, GenerateArgs};
pub(crate) use kind::{AddMigrationArgs, FromTableArgs, KindCommand};
pub(crate) use reconcile::{Comparison, DiffArgs, ReconcileArgs};

/// Carries Delta tables through append-only chains of schema migrations, each in one atomic
/// metadata commit, while others keep writing.
#[derive(Debug, Parser)]
#[command(
    name = "delta-migrate",
    version,
    max_term_width = 100,
    after_help = "Examples:
  delta-migrate status                           what is pending, from delta-migrate.toml
  delta-migrate plan                             what would change, and what that means for others
  delta-migrate apply                            do it
  delta-migrate apply --namespace app --kind-file kinds/facts.toml data/facts
                                                 one table, without a configuration file
  delta-migrate history data/facts               who migrated it, when
  delta-migrate diff data/facts --schema batch.parquet
                                                 which columns it lacks; `reconcile` adds them
  delta-migrate new facts                        a kind file to begin with
  delta-migrate kind from-table data/facts       the kind file that recreates a table
  delta-migrate lock                             freeze the migrations that ship
  delta-migrate validate                         the CI step: what has shipped is as it was
  delta-migrate doctor s3://lake/bronze          can tables be migrated there?

Exit codes:
  0  all fine (a table that a newer release migrated is fine)
  1  a table was refused or failed, or a check found something
  2  usage, configuration, or kind files that can't be used
  3  `status --check` or `diff --check` found something pending, and nothing worse"
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Options that every command takes.
#[derive(Debug, Args)]
pub(crate) struct Global {
    /// Configuration file; not needed with --namespace and --kind-file
    #[arg(
        short,
        long,
        global = true,
        help_heading = "Global options",
        value_name = "FILE",
        env = "DELTA_MIGRATE_CONFIG"
    )]
    pub(crate) config: Option<PathBuf>,

    /// What stdout holds: text for people, or one JSON document
    #[arg(long, global = true, help_heading = "Global options", value_enum, default_value_t = Format::Human)]
    pub(crate) format: Format,

    /// Option for the object store, KEY and VALUE as the store knows them; may be given several times
    #[arg(
        long,
        global = true,
        help_heading = "Global options",
        value_name = "KEY=VALUE",
        hide_env_values = true
    )]
    pub(crate) storage_option: Vec<String>,

    /// Property prefix of the stamps, in place of the configuration's
    #[arg(long, global = true, help_heading = "Global options", value_name = "NAME")]
    pub(crate) namespace: Option<String>,

    /// Kind file to use, in place of the configuration's folder; may be given several times
    #[arg(long, global = true, help_heading = "Global options", value_name = "FILE")]
    pub(crate) kind_file: Vec<PathBuf>,

    /// Lock file, in place of migrations.lock beside the configuration (or here, if there is none)
    #[arg(long, global = true, help_heading = "Global options", value_name = "FILE")]
    pub(crate) lock_file: Option<PathBuf>,

    /// Kind of the tables on the command line, where it can't be told otherwise
    #[arg(long, global = true, help_heading = "Global options", value_name = "KIND")]
    pub(crate) kind: Option<String>,

    /// Say more on stderr; DELTA_MIGRATE_LOG takes a filter such as delta_migrate=trace
    #[arg(short, long, global = true, help_heading = "Global options", action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    Human,
    Json,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show how each table stands to its kind; writes nothing
    #[command(
        alias = "info",
        after_help = "Examples:
  delta-migrate status
  delta-migrate status --check && echo 'nothing pending'
  delta-migrate status --format json | jq '.tables[] | select(.outcome == \"planned\")'"
    )]
    Status(StatusArgs),

    /// Show what `apply` would do, and what that means for readers and writers; writes nothing
    #[command(after_help = "Examples:
  delta-migrate plan
  delta-migrate plan -o plan.json     look at it, then: delta-migrate apply --plan plan.json")]
    Plan(PlanArgs),

    /// Bring tables up to date; a table that is up to date is left alone
    #[command(after_help = "Examples:
  delta-migrate apply                            every table of delta-migrate.toml
  delta-migrate apply --dry-run                  the same as `plan`
  delta-migrate apply --max-changed 50           nothing at all if it would change more tables
  delta-migrate apply --shard 2/4 --events log   one of four parallel jobs, with a line a table
  delta-migrate apply --target 3 data/facts      no further than version 3
  delta-migrate apply --plan plan.json           just what was planned, or `stale_plan`

A table that was named here or under [[tables]] and does not exist is created at its kind's
newest shape. A refused table is exactly as it was.")]
    Apply(ApplyArgs),

    /// Show who migrated a table and when, from its log and from its own record; writes nothing
    #[command(after_help = "Example:
  delta-migrate history data/facts")]
    History(HistoryArgs),

    /// Compare tables with a schema, or with their kind's newest shape; writes nothing
    #[command(after_help = "Examples:
  delta-migrate diff data/facts                              with the newest shape of its kind
  delta-migrate diff data/facts --schema batch.parquet       with the schema of a file
  delta-migrate diff data/* --schema batch.arrow --check     exit 3 if a column is missing

A column is missing or the table has one more; all else is the same column by its name, whatever
letter case it is written in. With --schema no kind is needed, only a namespace.")]
    Diff(DiffArgs),

    /// Add the nullable columns that tables lack of a schema or kind, and nothing else, ever
    #[command(after_help = "Examples:
  delta-migrate reconcile data/facts --schema batch.parquet --namespace my_sink
  delta-migrate reconcile data/facts --kind facts --dry-run  the same as `diff`

For those who have a schema and no versions. Further columns stay; other types, required columns,
likely renames, comments, partitioning, properties and constraints are told, not changed. A required
column that is missing is refused (`required_column`) before anything is written. Stamps are never
touched: a table that has them keeps them as they are, and one of another kind is refused. A table
that lacks nothing is not written to.")]
    Reconcile(ReconcileArgs),

    /// Stamp a table that has no stamp, once its columns are known to fit that version
    #[command(
        alias = "stamp",
        after_help = "Example:
  delta-migrate baseline data/facts --at 3

The columns must fit version 3 of the kind; otherwise nothing is written."
    )]
    Baseline(BaselineArgs),

    /// The way out of drifted, stamp_lost, diverged, or a floor raised by mistake
    #[command(after_help = "Examples:
  delta-migrate repair data/facts --readd-columns --why 'overwritten by the old job'
  delta-migrate repair data/facts --restamp 3 --why 'REPLACE by the notebook of Nov 3'
  delta-migrate repair data/facts --lower-floor 2 --why 'raised by the canary'

The plan is shown before it is carried out; with --dry-run it is only shown.")]
    Repair(RepairArgs),

    /// Find out whether a store does what commits need, by means of scratch objects
    #[command(after_help = "Examples:
  delta-migrate doctor s3://lake/bronze
  delta-migrate doctor az://container/t --storage-option azure_storage_use_emulator=true
  delta-migrate doctor /mnt/share/lake --format json | jq .ok

It needs no configuration file; where there is one, its [storage] is used. Credentials come from
there, from --storage-option, or from the environment:
  s3://, s3a://, s3n://   AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, AWS_PROFILE,
                          AWS_REGION; for another server than S3 itself AWS_ENDPOINT_URL, and
                          AWS_ALLOW_HTTP=true where it has no https
  az://, abfss://         AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY or
                          AZURE_STORAGE_SAS_KEY; AZURE_STORAGE_USE_EMULATOR=true for Azurite
  gs://                   GOOGLE_APPLICATION_CREDENTIALS

Every commit rests on one thing: the store creates an object only where there is none. It is asked
for that with two writes in a row, then in 50 rounds of 20 writers at the same time, of which
exactly one must win. The scratch objects lie at URI/_delta_migrate_doctor/, which readers of
Delta tables and VACUUM pass over, and are removed again, after a failure and Ctrl-C too.

Exit codes: 0 all fine, 1 the store failed a check, 2 URI, options or configuration can't be used.")]
    Doctor(DoctorArgs),

    /// Freeze what ships: append every migration that is not in migrations.lock yet
    #[command(after_help = "Examples:
  delta-migrate lock                  with each release, before it ships; commit the file
  delta-migrate lock --check          exit 1 if there is something to append

The file only grows. If what is in it differs from the kind files, nothing is written, and the
findings are those of `validate`. A migration that no release and no table ever had is taken back
by deleting its line by hand.")]
    Lock(LockArgs),

    /// Check that what has shipped is as it was, and what older releases would do; needs no table
    #[command(after_help = "Examples:
  delta-migrate validate              for every change; migrations that are not locked yet are fine
  delta-migrate validate --locked     for a release: everything must be locked
  delta-migrate validate --explain    with what an older release would do after each migration
  delta-migrate validate --format json | jq '.findings[] | {code, file, line}'

It needs no table, no network and no credentials.

Exit codes: 0 all fine, 1 something was found, 2 the kind files or the configuration can't be used.")]
    Validate(ValidateArgs),

    /// Write a kind file to begin with
    #[command(after_help = "Example:
  delta-migrate new facts             writes kinds/facts.toml (or into the configuration's folder)")]
    New(NewArgs),

    /// Keep what each release wrote, and check that today's code still carries it
    #[command(subcommand_required = true, arg_required_else_help = true)]
    Compat {
        #[command(subcommand)]
        command: CompatCommand,
    },

    /// Write kind files, and migrations for them, from tables and schemas that exist
    #[command(
        subcommand_required = true,
        arg_required_else_help = true,
        after_help = "Examples:
  delta-migrate kind from-table data/facts -o kinds/facts.toml
                                     the kind file that recreates a table
  delta-migrate kind add-migration kinds/facts.toml --from-table data/facts_next
                                     the next [[migrations]] block: what a table has beyond the kind
  delta-migrate kind add-migration kinds/facts.toml --from-arrow batch.parquet --dry-run
                                     the same from the schema of a file, to look at first

For a table that somebody changed by hand (a column more), `add-migration --from-table` on that very
table brings the kind up to it; `apply` then leaves the column alone and stamps the table."
    )]
    Kind {
        #[command(subcommand)]
        command: KindCommand,
    },

    /// Print a completion script for a shell
    #[command(after_help = "Example:
  delta-migrate completions bash > /etc/bash_completion.d/delta-migrate")]
    Completions {
        /// The shell
        shell: Shell,
    },
}

/// Tables by path or URL; without any, those that the configuration lists or finds.
#[derive(Debug, Args)]
pub(crate) struct Tables {
    /// Table by path, URL, or name in the configuration; all that it lists or finds if there is none
    #[arg(value_name = "TABLE")]
    pub(crate) tables: Vec<String>,

    /// How many tables are worked on at the same time, and how many requests a store gets at once
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) concurrency: u16,

    /// Take only one part of the tables, for parallel jobs: 1/4, 2/4, 3/4 and 4/4 make the whole
    #[arg(long, value_name = "I/N", value_parser = shard)]
    pub(crate) shard: Option<(u32, u32)>,

    /// Begin no other table once one was refused or failed
    #[arg(long)]
    pub(crate) fail_fast: bool,

    /// Write the JSON report to a file as well
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,

    /// Append one line of JSON to a file as each table ends, for a job that may be killed
    #[arg(long, value_name = "FILE")]
    pub(crate) events: Option<PathBuf>,
}

fn shard(text: &str) -> Result<(u32, u32), String> {
    let wrong = || "wanted I/N with I from 1 to N, such as 2/4".to_owned();
    let (index, count) = text.split_once('/').ok_or_else(wrong)?;
    match (index.parse(), count.parse()) {
        (Ok(index), Ok(count)) if (1..=count).contains(&index) => Ok((index, count)),
        _ => Err(wrong()),
    }
}

#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    #[command(flatten)]
    pub(crate) tables: Tables,

    /// Exit with 3 if anything is pending
    #[arg(long)]
    pub(crate) check: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PlanArgs {
    #[command(flatten)]
    pub(crate) tables: Tables,

    /// Go no further than this version
    #[arg(long, value_name = "N")]
    pub(crate) target: Option<u32>,

    /// Write the plan to a file, for `apply --plan`
    #[arg(short, long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct ApplyArgs {
    #[command(flatten)]
    pub(crate) tables: Tables,

    /// Go no further than this version
    #[arg(long, value_name = "N", conflicts_with = "plan")]
    pub(crate) target: Option<u32>,

    /// Carry out a saved plan; refused as `stale_plan` if the tables changed meanwhile
    #[arg(long, value_name = "FILE")]
    pub(crate) plan: Option<PathBuf>,

    /// Show what would be done, and write nothing
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Carry out data steps too: `update`, `retype_columns`, `add_constraints`, which read or rewrite files
    #[arg(long)]
    pub(crate) allow_rewrite: bool,

    /// Let refusals show values out of the table's rows
    #[arg(long)]
    pub(crate) show_values: bool,

    /// Refuse the whole run, before the first write, if more tables than this would be changed
    #[arg(long, value_name = "N")]
    pub(crate) max_changed: Option<u32>,

    /// Seconds for which a table's lost races are tried again
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    pub(crate) timeout: u64,
}

#[derive(Debug, Args)]
pub(crate) struct HistoryArgs {
    /// Table by path, URL, or name in the configuration
    #[arg(value_name = "TABLE")]
    pub(crate) table: String,
}

#[derive(Debug, Args)]
pub(crate) struct BaselineArgs {
    /// Table by path, URL, or name in the configuration
    #[arg(value_name = "TABLE")]
    pub(crate) table: String,

    /// The version that the table's columns are at
    #[arg(long, value_name = "N")]
    pub(crate) at: u32,

    /// Show what would be done, and write nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("way").required(true).args(["readd_columns", "restamp", "lower_floor"]))]
pub(crate) struct RepairArgs {
    /// Table by path, URL, or name in the configuration
    #[arg(value_name = "TABLE")]
    pub(crate) table: String,

    /// Add the columns that the stamp promises and the table lacks (for `drifted`)
    #[arg(long)]
    pub(crate) readd_columns: bool,

    /// Stamp this version, once the columns are known to fit it (for `stamp_lost`, `diverged`, `invalid_stamp`)
    #[arg(long, value_name = "N")]
    pub(crate) restamp: Option<u32>,

    /// Lower the floor to this (for a min version raised by mistake)
    #[arg(long, value_name = "N")]
    pub(crate) lower_floor: Option<u32>,

    /// Why, for the table's history
    #[arg(long, value_name = "TEXT")]
    pub(crate) why: String,

    /// Show what would be done, and write nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// A table, or a folder or prefix that tables will lie in; a local folder must exist
    #[arg(value_name = "URI")]
    pub(crate) uri: String,
}

#[derive(Debug, Args)]
pub(crate) struct NewArgs {
    /// Name of the kind
    #[arg(value_name = "KIND")]
    pub(crate) name: String,
}

#[derive(Debug, Args)]
pub(crate) struct LockArgs {
    /// Write nothing; exit with 1 if the lock file is not up to date
    #[arg(long)]
    pub(crate) check: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ValidateArgs {
    /// Everything must be locked: a missing lock file, or a migration that it lacks, is a finding too
    #[arg(long)]
    pub(crate) locked: bool,

    /// Show what an older release would do after each migration
    #[arg(long)]
    pub(crate) explain: bool,
}
