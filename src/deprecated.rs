//! What goes in the next minor. It works as it did, and nothing here uses it.

use serde::{Deserialize, Serialize};

/// How a version came to a table.
#[deprecated(since = "0.2.0", note = "nothing gives one; `LoggedMigration::how` has the word")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum How {
    /// Born at that version.
    Created,
    /// Carried there by its chain.
    Migrated,
    /// Taken over without a stamp.
    Adopted,
    /// Put right by hand.
    Repaired,
}

/// A stamp that can't be read.
#[deprecated(
    since = "0.2.0",
    note = "nothing gives one; `Assessment::InvalidStamp` has the same three fields"
)]
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs)] // as 0.1.0 had it
pub struct InvalidStamp {
    /// The property.
    pub property: String,
    /// Its value.
    pub value: String,
    /// What would be right.
    pub wanted: &'static str,
}
