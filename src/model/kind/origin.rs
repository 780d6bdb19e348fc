//! Where a kind was read from, for messages about kinds that were read without a mistake.

use crate::model::version::SchemaVersion;

/// A kind file's name and the lines at which its parts begin; empty for a kind built in Rust.
#[derive(Debug, Clone, Default)]
pub(crate) struct Origin {
    /// The file as messages call it.
    pub(crate) file: Option<String>,
    /// The line of the base shape's columns, else of the kind's name.
    pub(crate) base: Option<usize>,
    /// The line of each migration.
    pub(crate) migrations: Vec<usize>,
}

impl Origin {
    /// The line at which a migration begins, or the base shape for version 0.
    pub(crate) fn line(&self, version: SchemaVersion) -> Option<usize> {
        match version.index().checked_sub(1) {
            Some(index) => self.migrations.get(index).copied(),
            None => self.base,
        }
    }
}
