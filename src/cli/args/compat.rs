//! The arguments of `compat`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum CompatCommand {
    /// Write the corpus of a release: tables as it writes them, and what it says of them
    #[command(after_help = "Examples:
  delta-migrate compat generate compat/1.4.0 --release 'my-sink 1.4.0'
  git add compat/1.4.0 && git commit           the bytes are never touched again

Run it with the program that is released, once a release, for the kinds of the configuration. For
each kind the folder holds tables born at each version of its chain, migrated to it, taken over from
another program, repaired, and some that every release must refuse; each with rows. Beside them stand
reports, events, a saved plan, the kind files, and a manifest with the hash of every file.

The same build writes the same bytes each time: ids, names and times are fixed.

--commit, --binary-sha256 and --rustc are for the manifest, which tells how to build this release
again; a script fills them in:
  --commit \"$(git rev-parse HEAD)\" --binary-sha256 \"$(sha256sum my-command | cut -c1-64)\"")]
    Generate(GenerateArgs),

    /// Check that today's kinds and code carry what earlier releases left
    #[command(after_help = "Examples:
  delta-migrate compat check compat/1.3.0 compat/1.4.0
  delta-migrate compat check compat/1.4.0 --format json | jq '.corpora[].findings'

No byte of the folders is changed; the work is done on copies. Each file is compared with its hash.
Each table is carried to the newest version of today's chain in one commit, its rows are read,
appended to and read again; the chain cut at each length goes on writing it, as releases do that were
not upgraded yet, and is refused where the floor says so, and only there. Saved plans, reports,
events, histories and kind files of the release must still be understood.

Exit codes: 0 all as it was, 1 something was found, 2 folder, options or configuration can't be used.")]
    Check(CheckArgs),
}

#[derive(Debug, Args)]
pub(crate) struct GenerateArgs {
    /// A new or empty folder
    #[arg(value_name = "FOLDER")]
    pub(crate) folder: PathBuf,

    /// The release: the program and its version, as it stands in the tables' histories
    /// [default: this program and its version]
    #[arg(long, value_name = "NAME")]
    pub(crate) release: Option<String>,

    /// The commit that the program was built from
    #[arg(long, value_name = "ID")]
    pub(crate) commit: Option<String>,

    /// The SHA-256 of the program
    #[arg(long, value_name = "HEX")]
    pub(crate) binary_sha256: Option<String>,

    /// The compiler that built it, as `rustc --version` says
    #[arg(long, value_name = "TEXT")]
    pub(crate) rustc: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// The folder of a release's corpus
    #[arg(value_name = "FOLDER", required = true)]
    pub(crate) folders: Vec<PathBuf>,
}
