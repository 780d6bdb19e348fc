//! The compat corpus: tables as a release wrote them, kept for ever, and the check that today's code
//! still carries them.
//!
//! A project that ships a chain of migrations keeps one folder a release: [`generate`] writes it when
//! the release is cut, the folder is committed, and its bytes are never touched again. A test runs
//! [`check`] on every folder, so that no later change of a kind, of the project or of this crate
//! breaks a table that is out there already.
//!
//! # What a corpus holds
//!
//! | path | |
//! |---|---|
//! | `manifest.json` | release, versions, every table with what the release said of it, every file with its hash |
//! | `manifest.json.sha256` | the manifest's own hash |
//! | `kinds/` | the kind files |
//! | `tables/<kind>/<table>/` | tables born at each version, migrated to each from the first one and from the one before, step by step, taken over from another program, repaired, interrupted before rows were filled in; and tables that are to be refused: with a floor beyond every chain, drifted, without their stamp |
//! | `rows/<kind>/<table>.json` | their rows, a row for each stage of their lives |
//! | `said/` | what the release said: reports of `status`, `plan`, `apply`, `history`, an events file, a saved plan |
//! | `migrations.lock` | the lock file: what of each chain the release shipped |
//!
//! The same build writes the same bytes each time: times, ids and file names follow from the tables'
//! names, rows from their columns, and no path of the computer is written anywhere. Rows of
//! change data, which two streams write, are put in one order. Functions of a project's own write what
//! they like.
//!
//! # What the check does
//!
//! It compares every file with its hash, and then works on copies. Each table is looked at, carried to
//! the newest version of today's chain in one commit (in those that were planned, where a step moves
//! data), read row by row, appended to and read again;
//! older releases (the chain cut at each length) go on writing it, warn once, and are refused where
//! the floor says so, and there only. Saved plans are carried out, or refused as stale, as they must
//! be; the lock file is held against today's chains; no key of a report, plan, event, history or commit
//! that the release wrote may be gone; kind files still read, and are the beginning of today's.
//!
//! Each function of a migration runs twice. A build without the feature `datafusion` moves no data: it
//! leaves out the tables of kinds whose chains do, and says so in a finding a kind, for then less was
//! checked than is there. In a project that goes without the feature, `[dev-dependencies]` turn it on for
//! the test alone.
//!
//! Columns of type `variant` and `void` get no values, for no Parquet writer for them is at hand here.
//!
//! # Examples
//! A sink project's test. The first part stands for the day on which 1.0 was cut: there it is the
//! command `delta-migrate compat generate compat/1.0`.
//! ```
//! use delta_migrate::{Kind, Namespace, compat};
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = std::env::temp_dir().join(format!("delta-migrate-doc-{}", std::process::id()));
//! # let corpus = folder.join("compat/1.0");
//! let chain = "kind = \"facts\"\n[columns]\napp_id = \"string\"\nrows = \"long\"\n";
//! let namespace = Namespace::new("my_sink")?;
//! let shipped = Kind::from_toml(chain)?;
//! compat::generate(&[shipped], &namespace, &corpus, &compat::Options::new("my-sink 1.0")).await?;
//!
//! // Today's chain is longer. This is the test:
//! let today = Kind::from_toml(&format!(
//!     "{chain}[[migrations]]\ndescription = \"tenant\"\nadd_columns = {{ tenant = \"string\" }}\n"
//! ))?;
//! let checked = compat::check(&corpus, &[today], &namespace).await?;
//! assert!(checked.findings.is_empty(), "{checked}");
//!
//! // A chain that was changed after it was shipped is found.
//! let edited = Kind::from_toml(&chain.replace("long", "double"))?;
//! let checked = compat::check(&corpus, &[edited], &namespace).await?;
//! assert!(!checked.findings.is_empty());
//! # std::fs::remove_dir_all(&folder)?;
//! # Ok(())
//! # }
//! # tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap().block_on(example()).unwrap();
//! ```

mod carry;
mod check;
mod columns;
mod documents;
mod files;
mod finding;
mod generate;
mod lock;
mod manifest;
mod moments;
mod parquet;
mod releases;
mod rows;
mod said;
mod settled;
mod steps;
mod table;

use std::collections::BTreeMap;

pub use check::check;
pub use finding::{Checked, Finding};
pub use generate::generate;
pub use manifest::{Manifest, TableEntry};

use crate::error::{Error, ErrorCode, Stage};

/// What [`generate`] writes down beside the tables.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Options {
    /// The release whose tables these are: the program and its version, at most 64 characters. It
    /// stands in the tables' histories.
    pub release: String,
    /// The texts of the kind files by their names.
    pub kind_files: BTreeMap<String, String>,
    /// The text of the lock file; without one, what `delta-migrate lock` would write for the kinds.
    pub lock: Option<String>,
    /// The command that is run.
    pub command: Option<String>,
    /// The commit that the program was built from.
    pub commit: Option<String>,
    /// The SHA-256 of the program.
    pub binary_sha256: Option<String>,
    /// The compiler that built it.
    pub rustc: Option<String>,
}

impl Options {
    /// For a release, with nothing else known.
    pub fn new(release: impl Into<String>) -> Self {
        Self { release: release.into(), ..Self::default() }
    }
}

fn unreadable(message: impl Into<String>) -> Error {
    Error::new(ErrorCode::CorruptLog, Stage::Read, message)
        .with_hint("see which of the two changed: the corpus's bytes, or the code that reads them")
}
