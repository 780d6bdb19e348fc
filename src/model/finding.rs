//! What is found wrong with a chain or its lock file: where, what it was and is, and the way out.

use std::fmt;

use serde::Serialize;

use super::version::SchemaVersion;

/// What was found; the names are stable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FindingCode {
    /// A line of the lock file that can't be read, or that contradicts the others.
    BrokenLock,
    /// Two branches extended the lock differently.
    ForkedLock,
    /// The lock was written by a later release.
    LaterLock,
    /// There is no lock file, and there had to be one.
    #[cfg(feature = "cli")]
    MissingLock,
    VanishedKind,
    ChangedBase,
    EditedMigration,
    MovedMigration,
    RemovedMigration,
    InsertedMigration,
    /// A migration is not in the lock, and had to be.
    #[cfg(feature = "cli")]
    UnlockedMigration,
    /// Older releases would do harm, or fail in the middle, and the floor does not stop them.
    #[cfg(feature = "cli")]
    FloorNotRaised,
}

impl FindingCode {
    /// The stable, snake_case name.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::BrokenLock => "broken_lock",
            Self::ForkedLock => "forked_lock",
            Self::LaterLock => "later_lock",
            #[cfg(feature = "cli")]
            Self::MissingLock => "missing_lock",
            Self::VanishedKind => "vanished_kind",
            Self::ChangedBase => "changed_base",
            Self::EditedMigration => "edited_migration",
            Self::MovedMigration => "moved_migration",
            Self::RemovedMigration => "removed_migration",
            Self::InsertedMigration => "inserted_migration",
            #[cfg(feature = "cli")]
            Self::UnlockedMigration => "unlocked_migration",
            #[cfg(feature = "cli")]
            Self::FloorNotRaised => "floor_not_raised",
        }
    }
}

/// A migration, or the base shape as version 0, as a lock or a kind file has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Frozen {
    pub(crate) version: SchemaVersion,
    pub(crate) digest: String,
    pub(crate) description: String,
}

impl fmt::Display for Frozen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { version, digest, description } = self;
        let text = match *version {
            SchemaVersion::ZERO => format!("base {digest} {description}"),
            version => format!("{version} {digest} {description}"),
        };
        f.write_str(text.trim_end())
    }
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Finding {
    pub(crate) code: FindingCode,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) kind: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) version: Option<SchemaVersion>,
    /// The kind file, where the kind was read from one; the lock file where that is what is wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) line: Option<usize>,
    /// Where the lock file says otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) lock_line: Option<usize>,
    pub(crate) message: String,
    /// As it was frozen; none if it was not there.
    pub(crate) was: Option<Frozen>,
    /// As it is; none if it is gone.
    pub(crate) is: Option<Frozen>,
    pub(crate) hint: String,
}

impl Finding {
    pub(crate) fn new(code: FindingCode, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            code,
            kind: None,
            version: None,
            file: None,
            line: None,
            lock_line: None,
            message: message.into(),
            was: None,
            is: None,
            hint: hint.into(),
        }
    }

    /// `file:line`, as far as they are known; else what it is about.
    pub(crate) fn place(&self) -> String {
        match (&self.file, self.line, &self.kind) {
            (Some(file), Some(line), _) => format!("{file}:{line}"),
            (Some(file), None, _) => file.clone(),
            (None, _, Some(kind)) => format!("kind `{kind}`"),
            (None, _, None) => "lock".to_owned(),
        }
    }
}

/// One line: place, code and message.
impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.place(), self.code.as_str(), self.message)
    }
}
