//! Tables of a Unity catalog.

use std::collections::BTreeMap;
use std::fmt;

use futures::stream::BoxStream;

use super::names::NamePattern;
use super::{Found, Source};
use crate::error::Error;

/// Which catalog, and which of its tables.
#[derive(Clone, Default)]
pub struct UnityOptions {
    /// Patterns for tables, each of 3 parts.
    pub tables: Vec<String>,
    /// Patterns for tables to leave out.
    pub exclude: Vec<String>,
    /// The kind of every table that is found; none: the table's own stamp says it.
    pub kind: Option<String>,
    /// Storage options of every table; secret.
    pub storage: BTreeMap<String, String>,
    /// The server's URL.
    pub endpoint: String,
    /// The token to send; secret.
    pub token: Option<String>,
}

/// Tables of a Unity catalog.
#[derive(Debug)]
pub struct UnityCatalog {
    options: UnityOptions,
    tables: Vec<NamePattern>,
    exclude: Vec<NamePattern>,
}

impl UnityCatalog {
    /// A catalog; nothing is asked yet.
    ///
    /// # Errors
    /// [`ErrorCode::Usage`](crate::ErrorCode::Usage): a pattern or the endpoint can't be used.
    pub fn new(options: UnityOptions) -> Result<Self, Error> {
        let patterns =
            |texts: &[String]| texts.iter().map(|t| NamePattern::parse(t, 3)).collect::<Result<_, _>>();
        Ok(Self { tables: patterns(&options.tables)?, exclude: patterns(&options.exclude)?, options })
    }
}

impl Source for UnityCatalog {
    fn name(&self) -> String {
        "Unity".to_owned()
    }

    fn tables(&self) -> BoxStream<'_, Result<Found, Error>> {
        let _ = (&self.options, &self.tables, &self.exclude);
        Box::pin(futures::stream::empty())
    }
}

impl fmt::Debug for UnityOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnityOptions").finish_non_exhaustive()
    }
}
