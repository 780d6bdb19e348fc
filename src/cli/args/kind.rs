//! The arguments of `kind`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum KindCommand {
    /// Write the kind file that recreates a table
    #[command(after_help = "Examples:
  delta-migrate kind from-table data/facts                            to stdout
  delta-migrate kind from-table data/facts --name facts -o kinds/facts.toml
  delta-migrate kind from-table s3://lake/facts --storage-option aws_region=eu-central-1

Columns in their order with type, nullability and comment (nested ones too), partitioning,
description, and the properties that a table can be born with. What a kind file can't hold stands in
it as a comment, and on stderr: generation expressions, defaults, identity, constraints, row tracking.
Stamps are never taken over. It needs no configuration file; where there is one, its [storage] is used.

The table itself is not touched. To take it over, run `delta-migrate apply` with the new kind.")]
    FromTable(FromTableArgs),

    /// Append the next migration to a kind file: what a table or schema has beyond the newest shape
    #[command(
        group = clap::ArgGroup::new("source").required(true).args(["from_table", "from_arrow"]),
        after_help = "Examples:
  delta-migrate kind add-migration kinds/facts.toml --from-table data/facts_next
  delta-migrate kind add-migration kinds/facts.toml --from-arrow batch.parquet --description 'tenant'
  delta-migrate kind add-migration kinds/facts.toml --from-arrow schema.arrow --dry-run

The block only adds: new nullable columns at any depth, changed comments, nullability relaxed.
What else differs is told on stderr and not written: columns that are gone, other types, required
columns, narrowed nullability, what looks like a rename. Where nothing is to be added, nothing is
written. What stands in the file stays as it is, byte for byte; the block goes to its end, once it is
sure that the file can be read afterwards and that no earlier migration's digest changes.

From Parquet and Arrow files (IPC, file or stream) only the schema is read. A comment is taken from the
field's metadata `comment`."
    )]
    AddMigration(AddMigrationArgs),
}

#[derive(Debug, Args)]
pub(crate) struct FromTableArgs {
    /// Table by path or URL
    #[arg(value_name = "URI")]
    pub(crate) uri: String,

    /// Name of the kind; by default the last part of the URI
    #[arg(long, value_name = "KIND")]
    pub(crate) name: Option<String>,

    /// Write to a file, which must not be there yet
    #[arg(short, long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,

    /// Replace the file if it is there
    #[arg(long, requires = "out")]
    pub(crate) force: bool,
}

#[derive(Debug, Args)]
pub(crate) struct AddMigrationArgs {
    /// Kind file to append to
    #[arg(value_name = "KIND_FILE")]
    pub(crate) file: PathBuf,

    /// Table by path or URL that has what the kind is to get
    #[arg(long, value_name = "URI")]
    pub(crate) from_table: Option<String>,

    /// Arrow IPC file, Arrow IPC stream or Parquet file whose schema has what the kind is to get
    #[arg(long, value_name = "FILE")]
    pub(crate) from_arrow: Option<PathBuf>,

    /// What the migration is for; by default what it does
    #[arg(long, value_name = "TEXT")]
    pub(crate) description: Option<String>,

    /// Print the block, and write nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}
