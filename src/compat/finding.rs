//! What a check found.

use std::fmt;

use serde::Serialize;

use crate::error::Error;
use crate::model::text;

/// Something that a release left and that today's code does not live up to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Finding {
    /// The file or table, from the folder above the corpus.
    pub place: String,
    /// What is there now.
    pub found: String,
    /// What should be there.
    pub wanted: String,
    /// The way out.
    pub hint: String,
}

impl Finding {
    pub(super) fn new(
        place: impl Into<String>,
        found: impl Into<String>,
        wanted: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        let (place, found) = (place.into(), found.into());
        Self { place, found, wanted: wanted.into(), hint: hint.into() }
    }

    /// An error where there should have been none.
    pub(super) fn of_error(place: impl Into<String>, wanted: impl Into<String>, error: &Error) -> Self {
        let causes = error.causes().iter().map(|c| format!("; because: {c}")).collect::<String>();
        let found = format!("{}: {}{causes}", error.code(), error.message());
        let hint = error.hint().unwrap_or("see what changed in the code since that release");
        Self::new(place, found, wanted, hint)
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { place, found, wanted, hint } = self;
        write!(f, "{place}: found {found}; wanted {wanted}\n  → {hint}")
    }
}

/// What the check of one corpus came to; `Display` gives a line a finding and a summary.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Checked {
    /// The release whose corpus it is.
    pub release: String,
    /// How many files were compared with their hashes.
    pub files: usize,
    /// How many tables were carried, read and written.
    pub tables: usize,
    /// How many times an older release wrote, or was refused.
    pub older_releases: usize,
    /// What is wrong; empty if all is well.
    pub findings: Vec<Finding>,
}

impl fmt::Display for Checked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { release, files, tables, older_releases, findings } = self;
        for finding in findings {
            writeln!(f, "{finding}")?;
        }
        let ended = match findings.len() {
            0 => "all as it was".to_owned(),
            n => text::count(n, "finding"),
        };
        write!(
            f,
            "{release}: {}, {}, {}: {ended}",
            text::count(*files, "file"),
            text::count(*tables, "table"),
            text::count(*older_releases, "older writer"),
        )
    }
}
