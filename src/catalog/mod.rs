//! Where tables come from: a list, a walk below a prefix, a Glue or a Unity catalog.

#[cfg(feature = "glue")]
mod glue;
mod list;
#[cfg(any(feature = "cli", feature = "glue", feature = "unity"))]
mod names;
#[cfg(feature = "unity")]
mod unity;
mod walk;

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use futures::stream::BoxStream;

use crate::error::Error;
use crate::model::kind::Adopt;
#[cfg(feature = "glue")]
pub use glue::{GlueCatalog, GlueOptions};
pub use list::TableList;
#[cfg(feature = "cli")]
pub(crate) use names::NamePattern;
#[cfg(feature = "unity")]
pub use unity::{UnityCatalog, UnityOptions};
pub use walk::Walk;

/// A place that tables are found in.
///
/// What every source owes is a contract that each of them is tested against: a table is given once
/// for each place that names it; nothing is written; the stream goes on after an error that concerns
/// one table or one folder alone; tables are given as they are found, before the last one is known;
/// dropping the stream ends the work.
pub trait Source: Send + Sync {
    /// What messages and reports call it, such as `walk of s3://lake/bronze`; never with credentials.
    fn name(&self) -> String;

    /// The tables, as they are found.
    ///
    /// # Errors
    /// An item is an error where a folder, a page or a table can't be read: `storage` where running
    /// again may help, `usage` where the source is set up wrongly. An error that names a table is
    /// that table's failure; any other is the source's own.
    fn tables(&self) -> BoxStream<'_, Result<Found, Error>>;
}

/// A table that a source found.
#[derive(Clone)]
#[non_exhaustive]
pub struct Found {
    /// Its location: a path, or a URL.
    pub uri: String,
    /// Its kind, where the source's rule says so; else the table's own stamp decides.
    pub kind: Option<String>,
    /// How it is taken over if it has no stamp, where that differs from its kind's way.
    pub adopt: Option<Adopt>,
    /// How sure it is that the table is ours.
    pub trust: Trust,
    /// The way to its store.
    pub access: Access,
    /// The names of its columns as the catalog keeps them, partition columns included; none where
    /// the source keeps no copy.
    pub columns: Option<Vec<String>>,
}

/// How sure it is that a table that was found is of the kind that the rule says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Trust {
    /// Somebody named this very table with its kind: it is created where it is missing.
    Named,
    /// Somebody named this very table, but not its kind: never created, adopted as its kind says.
    Asked,
    /// It was found by a rule: never created, and adopted only where its kind has `identified_by`.
    Found,
}

/// The way to a table's store. Its `Debug` shows no value.
#[derive(Clone)]
#[non_exhaustive]
pub enum Access {
    /// Storage options.
    Options(BTreeMap<String, String>),
    /// Credentials that are asked for when the table's turn comes, because they do not last.
    Lent(Arc<dyn Lender>),
}

/// Somebody who lends credentials for one table.
#[async_trait]
pub trait Lender: Send + Sync {
    /// Storage options with credentials that are good for now.
    ///
    /// # Errors
    /// `storage`: they could not be had.
    async fn lend(&self) -> Result<HashMap<String, String>, Error>;
}

impl Found {
    /// A table that was found at a location, in a store that needs these options.
    pub fn at(uri: impl Into<String>, options: BTreeMap<String, String>) -> Self {
        Self {
            uri: uri.into(),
            kind: None,
            adopt: None,
            trust: Trust::Found,
            access: Access::Options(options),
            columns: None,
        }
    }
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Options(options) => {
                f.debug_tuple("Options").field(&options.keys().collect::<Vec<_>>()).finish()
            }
            Self::Lent(_) => f.write_str("Lent"),
        }
    }
}

impl fmt::Debug for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { uri, kind, adopt, trust, access, columns } = self;
        f.debug_struct("Found")
            .field("uri", &crate::delta::location::shown(uri))
            .field("kind", kind)
            .field("adopt", adopt)
            .field("trust", trust)
            .field("access", access)
            .field("columns", columns)
            .finish()
    }
}
