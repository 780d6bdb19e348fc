//! The numbers and names that must never be mixed up, each a type of its own.

use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! number {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, Default)]
        #[serde(transparent)]
        pub struct $name($inner);

        impl $name {
            /// Wraps the number.
            pub const fn new(number: $inner) -> Self {
                Self(number)
            }

            /// The number.
            pub const fn get(self) -> $inner {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

number! {
    /// How many migrations of its kind a table has had (`<ns>.schema_version`); 0 is the base shape.
    SchemaVersion(u32)
}
number! {
    /// The floor (`<ns>.min_version`): a release that knows fewer migrations must not write.
    MinVersion(u32)
}
number! {
    /// Delta's commit number.
    LogVersion(u64)
}

impl SchemaVersion {
    /// The base shape's version.
    pub const ZERO: Self = Self(0);

    /// Reads the text of a stamp: decimal digits alone, at most `u32::MAX`.
    pub(crate) fn from_stamp(text: &str) -> Option<Self> {
        stamp_number(text).map(Self)
    }

    /// As a position in a slice of migrations.
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

impl MinVersion {
    /// Reads the text of a stamp: decimal digits alone, at most `u32::MAX`.
    pub(crate) fn from_stamp(text: &str) -> Option<Self> {
        stamp_number(text).map(Self)
    }
}

impl LogVersion {
    /// The next commit's number.
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

fn stamp_number(text: &str) -> Option<u32> {
    let canonical = !text.is_empty()
        && text.bytes().all(|b| b.is_ascii_digit())
        && (text.len() == 1 || !text.starts_with('0'));
    canonical.then(|| text.parse().ok()).flatten()
}

/// A property prefix that keeps one program's stamps apart from another's, for example `mssql_cdc`.
///
/// # Examples
/// ```
/// use delta_migrate::Namespace;
///
/// assert!(Namespace::new("mssql_cdc").is_ok());
/// assert!(Namespace::new("delta").is_err());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct Namespace(String);

/// A namespace that can't be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("namespace `{found}`: {wanted}")]
pub struct InvalidNamespace {
    found: String,
    pub(crate) wanted: &'static str,
}

impl Namespace {
    /// Checks and wraps a namespace.
    ///
    /// Letters, digits, `_`, `-` and inner dots; never `delta` or `delta.…` in any letter case,
    /// because Delta owns those properties (Spark refuses unknown ones).
    ///
    /// # Errors
    /// [`InvalidNamespace`] says what was found and what is allowed.
    pub fn new(name: impl Into<String>) -> Result<Self, InvalidNamespace> {
        let name = name.into();
        let lower = name.to_ascii_lowercase();
        let wanted = if name.is_empty() {
            "must not be empty"
        } else if name.len() > 64 {
            "must be at most 64 characters"
        } else if lower == "delta" || lower.starts_with("delta.") {
            "`delta` and `delta.…` belong to Delta itself; use your program's name"
        } else if !name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.')) {
            "may hold ASCII letters, digits, `_`, `-` and inner dots only"
        } else if name.split('.').any(str::is_empty) {
            "must not begin or end with a dot or hold two in a row"
        } else {
            return Ok(Self(name));
        };
        Err(InvalidNamespace { found: name, wanted })
    }

    /// The prefix itself.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name of one of this namespace's properties.
    pub(crate) fn property(&self, key: &str) -> String {
        format!("{}.{key}", self.0)
    }

    /// Whether a property belongs to this namespace.
    pub(crate) fn owns(&self, property: &str) -> bool {
        property.strip_prefix(&self.0).is_some_and(|rest| rest.starts_with('.'))
    }

    /// The `txn` application id that keeps the evidence of a stamp.
    pub(crate) fn evidence_id(&self, kind: &str) -> String {
        format!("{}/{kind}", self.0)
    }
}

impl fmt::Display for Namespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_are_plain_decimal_numbers() {
        for good in ["0", "7", "10", "4294967295"] {
            assert_eq!(SchemaVersion::from_stamp(good).map(|v| v.to_string()).as_deref(), Some(good));
        }
        for bad in
            ["", " 1", "1 ", "-1", "+1", "3.0", "abc", "01", "4294967296", "12345678901234567890", "１"]
        {
            assert_eq!(SchemaVersion::from_stamp(bad), None, "{bad}");
            assert_eq!(MinVersion::from_stamp(bad), None, "{bad}");
        }
    }

    #[test]
    fn delta_owns_its_namespace_in_any_letter_case() {
        for bad in ["", "delta", "Delta", "DELTA.x", "a b", ".a", "a.", "a..b", "ä"] {
            assert!(Namespace::new(bad).is_err(), "{bad}");
        }
        for good in ["app", "mssql_cdc", "a.b", "delta_x", "x-1"] {
            assert!(Namespace::new(good).is_ok(), "{good}");
        }
    }

    #[test]
    fn a_namespace_owns_its_properties_alone() {
        let app = Namespace::new("app").unwrap();
        assert!(app.owns("app.kind"));
        assert!(!app.owns("app"));
        assert!(!app.owns("apple.kind"));
    }
}
