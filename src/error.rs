//! The one error type of the public API: a code, a message, a hint, and what was already committed.

use std::fmt;

/// Why a table was refused, or why the work on it failed.
///
/// The text of a code ([`ErrorCode::as_str`]) is stable; new codes may come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum ErrorCode {
    /// There is no table, and nobody asked to create one.
    Missing,
    /// A stamp of the namespace can't be read.
    InvalidStamp,
    /// The table is of another kind.
    NotThisKind,
    /// The table's floor shuts this release out.
    TooNew,
    /// The table was migrated by another chain.
    Diverged,
    /// The table has no stamp and must not be adopted automatically.
    Unversioned,
    /// The table has no stamp and its columns fit no version that adoption may take.
    UnknownShape,
    /// The stamp vanished, but the evidence of it is still there.
    StampLost,
    /// A column that the stamp promises is missing or has an incompatible type.
    Drifted,
    /// The table's protocol asks for something that is not handled here.
    UnsupportedFeature,
    /// A migration holds a step that is not handled here.
    UnsupportedStep,
    /// A column name that the table can't take.
    InvalidName,
    /// A column that is to be added is there with another type.
    TypeConflict,
    /// A column that the table lacks is required: rows that are there would have no value for it.
    RequiredColumn,
    /// Something else in the table stands against a change of the column.
    ColumnInUse,
    /// The work moves data and the policy does not allow it.
    RewriteRequired,
    /// Migrations are pending, and the policy is to write nothing.
    Behind,
    /// The plan was made for another state of the table.
    StalePlan,
    /// The location holds something that is no Delta table.
    NotATable,
    /// The log can't be read as PROTOCOL.md says.
    CorruptLog,
    /// The store failed.
    Storage,
    /// The time budget was spent on lost races.
    Conflict,
    /// It is not known whether the commit landed.
    OutcomeUnknown,
    /// Another table stands where the one that was read stood.
    IdentityChanged,
    /// A data step failed.
    DataStep,
    /// The work was interrupted.
    Interrupted,
    /// More tables would be changed than the run may change.
    TooManyChanges,
    /// Kind files, configuration or arguments that can't be used.
    Usage,
}

impl ErrorCode {
    /// The stable, snake_case name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::InvalidStamp => "invalid_stamp",
            Self::NotThisKind => "not_this_kind",
            Self::TooNew => "too_new",
            Self::Diverged => "diverged",
            Self::Unversioned => "unversioned",
            Self::UnknownShape => "unknown_shape",
            Self::StampLost => "stamp_lost",
            Self::Drifted => "drifted",
            Self::UnsupportedFeature => "unsupported_feature",
            Self::UnsupportedStep => "unsupported_step",
            Self::InvalidName => "invalid_name",
            Self::TypeConflict => "type_conflict",
            Self::RequiredColumn => "required_column",
            Self::ColumnInUse => "column_in_use",
            Self::RewriteRequired => "rewrite_required",
            Self::Behind => "behind",
            Self::StalePlan => "stale_plan",
            Self::NotATable => "not_a_table",
            Self::CorruptLog => "corrupt_log",
            Self::Storage => "storage",
            Self::Conflict => "conflict",
            Self::OutcomeUnknown => "outcome_unknown",
            Self::IdentityChanged => "identity_changed",
            Self::DataStep => "data_step",
            Self::Interrupted => "interrupted",
            Self::TooManyChanges => "too_many_changes",
            Self::Usage => "usage",
        }
    }

    /// Whether the table was refused (a decision, the same on every run) rather than failed.
    pub fn is_refusal(self) -> bool {
        !matches!(
            self,
            Self::Storage
                | Self::Conflict
                | Self::OutcomeUnknown
                | Self::IdentityChanged
                | Self::DataStep
                | Self::Interrupted
        )
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Where in read → assess → plan → commit an error arose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Stage {
    /// Kinds, configuration and arguments, before any table.
    Setup,
    /// Reading the table's log.
    Read,
    /// Comparing the table with its kind.
    Assess,
    /// Working out what would be done.
    Plan,
    /// Writing the log entry.
    Commit,
}

type Source = Box<dyn std::error::Error + Send + Sync + 'static>;

/// What went wrong with which table, what to do about it, and what was committed before.
///
/// `Display` gives the table and one fact; the cause is behind
/// [`source`](std::error::Error::source), the next step behind [`Error::hint`].
///
/// # Examples
/// ```
/// use delta_migrate::{ErrorCode, Kind};
///
/// let error = Kind::from_toml("kind = 1").unwrap_err();
/// assert_eq!(error.code(), ErrorCode::Usage);
/// ```
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct Error(Box<Inner>);

#[derive(Debug, thiserror::Error)]
#[error("{}{message}", prefix(.table))]
struct Inner {
    code: ErrorCode,
    stage: Stage,
    table: Option<String>,
    message: String,
    hint: Option<String>,
    source: Option<Source>,
    committed: Vec<u64>,
}

fn prefix(table: &Option<String>) -> String {
    table.as_ref().map(|t| format!("table `{t}`: ")).unwrap_or_default()
}

impl Error {
    pub(crate) fn new(code: ErrorCode, stage: Stage, message: impl Into<String>) -> Self {
        Self(Box::new(Inner {
            code,
            stage,
            table: None,
            message: message.into(),
            hint: None,
            source: None,
            committed: Vec::new(),
        }))
    }

    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::Usage, Stage::Setup, message)
    }

    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.0.hint = Some(hint.into());
        self
    }

    pub(crate) fn with_table(mut self, table: impl Into<String>) -> Self {
        self.0.table.get_or_insert_with(|| table.into());
        self
    }

    pub(crate) fn with_source(
        mut self,
        source: impl Into<Box<dyn std::error::Error + Send + Sync + 'static>>,
    ) -> Self {
        self.0.source = Some(source.into());
        self
    }

    pub(crate) fn with_committed(mut self, log_version: u64) -> Self {
        self.0.committed.push(log_version);
        self
    }

    /// The stable code.
    pub fn code(&self) -> ErrorCode {
        self.0.code
    }

    /// Where it arose.
    pub fn stage(&self) -> Stage {
        self.0.stage
    }

    /// The table's location, without credentials.
    pub fn table(&self) -> Option<&str> {
        self.0.table.as_deref()
    }

    /// The fact alone, without the table.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// What to do next.
    pub fn hint(&self) -> Option<&str> {
        self.0.hint.as_deref()
    }

    /// Log versions that this call committed before it failed. Empty for a refusal, but for one: a
    /// table that this call brought up to date, and whose floor another release raised right afterwards,
    /// is not handed out (`too_new`).
    pub fn committed(&self) -> &[u64] {
        &self.0.committed
    }

    /// Whether running the same call again may succeed without anybody changing anything.
    pub fn is_retryable(&self) -> bool {
        matches!(
            self.0.code,
            ErrorCode::Storage
                | ErrorCode::Conflict
                | ErrorCode::OutcomeUnknown
                | ErrorCode::IdentityChanged
                | ErrorCode::Interrupted
        )
    }

    /// Whether the table was refused: not one byte of it was changed, but for what
    /// [`Error::committed`] says.
    pub fn is_refusal(&self) -> bool {
        self.0.code.is_refusal()
    }

    /// The first line of each cause, outermost first, cut to a readable length.
    ///
    /// Errors of the Delta kernel can carry a whole backtrace in their text; of a store's answer in XML
    /// only its code and message are kept.
    pub fn causes(&self) -> Vec<String> {
        let mut out = Vec::new();
        let mut next = std::error::Error::source(&*self.0);
        while let Some(cause) = next {
            // An answer of S3 or Azure may repeat the token that it was sent.
            let text = crate::model::text::without_markup(&cause.to_string());
            let line = crate::model::text::shorten(text.lines().next().unwrap_or_default(), 300);
            if !line.is_empty() && !out.iter().any(|said: &String| said.contains(&line)) {
                out.push(line);
            }
            next = cause.source();
        }
        out
    }
}
