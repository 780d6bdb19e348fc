//! Arguments of `diff` and `reconcile`.

use std::path::PathBuf;

use clap::Args;

/// Tables, and what they should be like.
#[derive(Debug, Args)]
pub(crate) struct Comparison {
    /// Table by path, URL, or name in the configuration
    #[arg(value_name = "TABLE", required = true)]
    pub(crate) tables: Vec<String>,

    /// Arrow IPC file, Arrow IPC stream or Parquet file whose schema the tables should have; without it,
    /// the newest shape of their kind
    #[arg(long, value_name = "FILE", conflicts_with = "kind")]
    pub(crate) schema: Option<PathBuf>,

    /// A column that is new indeed, although a table has one of a similar name; may be given several times
    #[arg(long, value_name = "COLUMN")]
    pub(crate) add: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct DiffArgs {
    #[command(flatten)]
    pub(crate) comparison: Comparison,

    /// Exit with 3 if a column is missing that `reconcile` would add
    #[arg(long)]
    pub(crate) check: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ReconcileArgs {
    #[command(flatten)]
    pub(crate) comparison: Comparison,

    /// Show what would be done, and write nothing
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Seconds for which a table's lost races are tried again
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    pub(crate) timeout: u64,
}
