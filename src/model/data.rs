//! What data steps did with a table's files, as far as a commit and a report say it.

/// The files' part of a commit.
#[derive(Debug, Default, Clone)]
pub(crate) struct Actions {
    /// Actions, one line each.
    pub(crate) lines: Vec<String>,
    /// Whether nothing is left to do for the step: the commit may stamp.
    pub(crate) last: bool,
    pub(crate) counts: Counts,
}

/// What comes next of a data step.
#[derive(Debug)]
pub(crate) enum Next {
    /// This part of a commit.
    #[cfg_attr(not(feature = "datafusion"), allow(dead_code))]
    Commit(Actions),
    /// The table was written to otherwise: it is to be read anew.
    #[cfg(feature = "datafusion")]
    Again,
}

/// What was done with files and rows.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) files_removed: u64,
    pub(crate) files_added: u64,
    pub(crate) rows_updated: u64,
    pub(crate) rows_copied: u64,
    pub(crate) bytes_removed: u64,
}

impl Counts {
    #[cfg(feature = "datafusion")]
    pub(crate) fn add(&mut self, other: &Self) {
        let Self { files_removed, files_added, rows_updated, rows_copied, bytes_removed } = other;
        self.files_removed += files_removed;
        self.files_added += files_added;
        self.rows_updated += rows_updated;
        self.rows_copied += rows_copied;
        self.bytes_removed += bytes_removed;
    }
}

/// How data steps are done.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Settings {
    #[cfg_attr(not(feature = "datafusion"), allow(dead_code))]
    pub(crate) values: Values,
    /// How many bytes of files are rewritten in one commit: what a crash can cost.
    pub(crate) most_in_a_commit: u64,
    /// How often each function is run: twice where that is tested.
    pub(crate) times: usize,
    /// In how many streams rows are read and written; none leaves that to the computer.
    pub(crate) streams: Option<usize>,
    /// Whether a run is interrupted once it comes to a data step.
    pub(crate) stop_before: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            values: Values::default(),
            most_in_a_commit: 1 << 30,
            times: 1,
            streams: None,
            stop_before: false,
        }
    }
}

/// Whether messages may show values out of the table's rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Values {
    #[default]
    Hidden,
    #[cfg(feature = "cli")]
    Shown,
}
