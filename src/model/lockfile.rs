//! The lock file: what has shipped, one line a migration, so that a shipped migration stays as it is.
//!
//! ```text
//! # scheme: 1 (kind, version, digest, description)
//! facts base ce7f451b One row per micro-batch
//! facts 1 60628a05 detail of an event row
//! ```
//!
//! The digest is the part of the chain digest that tables are stamped with, so a lock says just what a
//! stamp says: comments, descriptions and spellings may be mended, effects may not. Single spaces and
//! one line a migration keep every change a change of one line; the empty line between kinds lets two
//! branches append to two kinds without a conflict.

mod read;
mod verify;

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

pub(crate) use verify::{Kinds, Unlocked};

use super::digest::{ChainDigest, SCHEME};
use super::finding::{Finding, Frozen};
use super::kind::Kind;
use super::text;
use super::version::SchemaVersion;
use crate::error::Error;

/// The name of the file, beside the configuration.
pub(crate) const LOCK_FILE: &str = "migrations.lock";

/// The comment that says the scheme; the only one that is read.
const SCHEME_LINE: &str = "# scheme:";

const HEADER: &str = "\
# What has shipped: each kind's base shape and migrations. `delta-migrate lock` writes this file and only
# ever extends it; `validate` and `apply` hold the kind files against it. Commit it together with them.
";

/// What a lock file holds, and what is wrong with it by itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Lockfile {
    /// The file as messages call it.
    file: String,
    kinds: BTreeMap<String, BTreeMap<SchemaVersion, Line>>,
    findings: Vec<Finding>,
}

/// One line of a lock file.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Line {
    digest: String,
    /// On one line.
    description: String,
    number: usize,
    /// What else the file says of the same version.
    rivals: Vec<(String, usize)>,
}

/// What is compared of a lock and a kind.
pub(crate) struct Verified {
    /// Why the lock is no prefix of the kinds; none if it is.
    pub(crate) findings: Vec<Finding>,
    /// What the lock does not hold yet.
    pub(crate) unlocked: Vec<Unlocked>,
    /// Whether the lock's descriptions differ from the kinds' without any other difference.
    pub(crate) mended: bool,
}

/// How many findings an error repeats; `validate` shows them all.
const SHOWN: usize = 3;

impl Verified {
    /// The first findings as one error.
    ///
    /// # Errors
    /// `Usage`: the lock is no prefix of the kinds.
    pub(crate) fn into_result(self) -> Result<(), Error> {
        let lines: Vec<String> = self.findings.iter().take(SHOWN).map(ToString::to_string).collect();
        if lines.is_empty() {
            return Ok(());
        }
        let more = match self.findings.len().saturating_sub(SHOWN) {
            0 => String::new(),
            more => format!("\nand {more} more"),
        };
        Err(Error::usage(format!("the kinds do not fit what has shipped:\n{}{more}", lines.join("\n")))
            .with_hint(
                "put them back as they were; `delta-migrate validate` shows was and is, and the way out",
            ))
    }
}

impl Lockfile {
    /// Reads a lock file's text; `file` is what messages call it. What can't be read becomes a finding
    /// of [`Lockfile::verify`].
    pub(crate) fn parse(text: &str, file: &str) -> Self {
        read::parse(text, file)
    }

    /// A lock that holds nothing yet.
    pub(crate) fn empty(file: &str) -> Self {
        Self { file: file.to_owned(), ..Self::default() }
    }

    /// Compares the lock with kinds: whether it is a prefix of each, and what it does not hold yet.
    pub(crate) fn verify<'a>(&self, kinds: impl IntoIterator<Item = &'a Kind>, which: Kinds) -> Verified {
        verify::verify(self, kinds.into_iter().collect(), which)
    }

    /// The lock with everything in it that the kinds hold; only for kinds of which it is a prefix.
    pub(crate) fn extended<'a>(&self, kinds: impl IntoIterator<Item = &'a Kind>) -> Self {
        let mut lock = self.clone();
        for kind in kinds {
            let lines = lock.kinds.entry(kind.name().to_owned()).or_default();
            for Frozen { version, digest, description } in chain(kind) {
                lines.insert(version, Line { digest, description, number: 0, rivals: Vec::new() });
            }
        }
        lock
    }
}

/// The whole file.
impl fmt::Display for Lockfile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file: _, kinds, findings: _ } = self;
        writeln!(f, "{HEADER}{SCHEME_LINE} {SCHEME} (kind, version, digest, description)")?;
        for (kind, lines) in kinds {
            f.write_char('\n')?;
            for (version, Line { digest, description, number: _, rivals: _ }) in lines {
                let (digest, description) = (digest.clone(), description.clone());
                writeln!(f, "{kind} {}", Frozen { version: *version, digest, description })?;
            }
        }
        Ok(())
    }
}

/// A kind's base shape and migrations as a lock holds them.
fn chain(kind: &Kind) -> Vec<Frozen> {
    let digest = ChainDigest::of(kind, kind.newest());
    let base = kind.description().unwrap_or_default();
    let descriptions = [base].into_iter().chain(kind.migrations().iter().map(|m| m.description()));
    let versions = (0..).map(SchemaVersion::new);
    versions
        .zip(digest.parts().iter().zip(descriptions))
        .map(|(version, (digest, text))| Frozen {
            version,
            digest: digest.clone(),
            description: one_line(text),
        })
        .collect()
}

/// A description as it stands in a lock file.
fn one_line(description: &str) -> String {
    // What some editors take for the end of a line is no control character.
    let text = description.replace('\u{2028}', "\\u{2028}").replace('\u{2029}', "\\u{2029}");
    text::clean(text.trim())
}

#[cfg(all(test, feature = "cli"))]
mod tests;
