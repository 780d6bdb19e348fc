//! A walk below a prefix of a store.

mod crawl;
mod local;
mod remote;
mod rules;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use futures::stream::BoxStream;
use object_store::path::Path as StorePath;

use self::rules::Rules;
use super::{Access, Found, Source};
use crate::Stores;
use crate::delta::location;
use crate::delta::stores::Folder;
use crate::error::Error;

/// Finds the tables below a folder of any store.
///
/// A folder is a table if its `_delta_log` holds a log file. Nothing below a table is looked at; the
/// root may itself be the table. A `_delta_log` without a log file makes no table, and hides nothing
/// that lies beside it. Folders whose name begins with `_` or `.` are skipped, below the root.
///
/// A table costs one listing, any other folder two, however many files they hold. At most 16 are under
/// way at once, in tasks of their own: a caller that is slow to take the next table holds up the walk,
/// but no request. Tables come as they are found, in no certain order.
///
/// In the local file system links are followed, and each folder is walked once: by its own name where
/// that lies below the root, else by the first link to it, in the order of their names. Globs see that
/// name.
///
/// # Errors
/// An item of the stream is an error, and the walk goes on, for a folder that can't be listed or a
/// broken link (`storage`), or one with a name that no location can have (`usage`). The only item is
/// an error where the root is no folder of the local file system (`usage`) or can't be listed
/// (`storage`). A prefix of an object store below which nothing lies holds no table, and is no error.
pub struct Walk {
    root: String,
    folder: Folder,
    options: BTreeMap<String, String>,
    kind: Option<String>,
    rules: Rules,
}

impl Walk {
    /// A walk below `root`, a path or a URL, in a store with these options.
    ///
    /// # Errors
    /// [`ErrorCode::Usage`](crate::ErrorCode::Usage): the root can't be opened as a location.
    pub fn new(
        stores: Arc<Stores>,
        root: impl Into<String>,
        options: BTreeMap<String, String>,
    ) -> Result<Self, Error> {
        let root = root.into();
        let folder = stores.folder(&root, &options)?;
        Ok(Self { root, folder, options, kind: None, rules: Rules::default() })
    }

    /// The kind of every table that is found; by default the table's own stamp says it.
    pub fn kind(mut self, kind: impl Into<String>) -> Self {
        self.kind = Some(kind.into());
        self
    }

    /// Only tables whose path below the root matches one of these globs, such as `**/cdc_*`;
    /// by default, and with none, all. `*` stays within one folder, `**` does not.
    ///
    /// `*` and `?` stay within a name, `**` crosses folders. A root that is itself a table was named
    /// by the caller and needs no match.
    ///
    /// # Errors
    /// [`ErrorCode::Usage`](crate::ErrorCode::Usage): one is no glob, or one that no path below the
    /// root can match.
    pub fn include<'a>(mut self, globs: impl IntoIterator<Item = &'a str>) -> Result<Self, Error> {
        self.rules.include(globs)?;
        Ok(self)
    }

    /// No table and no folder whose path below the root matches one of these globs; nothing below
    /// such a folder is looked at either.
    ///
    /// # Errors
    /// [`ErrorCode::Usage`](crate::ErrorCode::Usage): one is no glob, or one that no path below the
    /// root can match.
    pub fn exclude<'a>(mut self, globs: impl IntoIterator<Item = &'a str>) -> Result<Self, Error> {
        self.rules.exclude(globs)?;
        Ok(self)
    }

    /// The table at a path below the root.
    fn found(&self, below: &str) -> Result<Found, Error> {
        let mut found = Found::at(self.uri(below)?, BTreeMap::new());
        found.access = Access::Options(self.options.clone());
        found.kind.clone_from(&self.kind);
        Ok(found)
    }

    /// The location of a folder, and the certainty that it is read back as that very folder.
    fn uri(&self, below: &str) -> Result<String, Error> {
        let uri = self.shown(below);
        let read_back = location::parse(&uri).and_then(|url| location::path_in_store(&url));
        match (read_back, self.at(below)) {
            (Ok(path), Ok(at)) if path == at => Ok(uri),
            _ => Err(unnameable(&uri)),
        }
    }

    /// Where a folder is in its store.
    fn at(&self, below: &str) -> Result<StorePath, object_store::path::Error> {
        match (self.folder.path.as_ref(), below) {
            (root, "") => StorePath::parse(root),
            ("", below) => StorePath::parse(below),
            (root, below) => StorePath::parse(format!("{root}/{below}")),
        }
    }

    /// A folder for people and reports; never with credentials.
    fn shown(&self, below: &str) -> String {
        let mut url = self.folder.url.clone();
        if !below.is_empty()
            && let Ok(mut segments) = url.path_segments_mut()
        {
            segments.pop_if_empty().extend(below.split('/'));
        }
        location::shown(url.as_str())
    }
}

impl Source for Walk {
    fn name(&self) -> String {
        format!("walk of {}", location::shown(&self.root))
    }

    fn tables(&self) -> BoxStream<'_, Result<Found, Error>> {
        crawl::tables(self)
    }
}

impl fmt::Debug for Walk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Options are secret, and a store's own Debug prints its credentials.
        f.debug_struct("Walk").field("name", &self.name()).field("kind", &self.kind).finish_non_exhaustive()
    }
}

/// A folder that no text leads to.
fn unnameable(shown: &str) -> Error {
    Error::usage(format!("the name of the folder `{}` can't be part of a location", shown.escape_debug()))
        .with_hint("rename it, or leave it out with `exclude`")
}

/// Where the log of a table is.
const LOG: &str = "_delta_log";

/// Whether a file of this name in `_delta_log` makes the folder a table: one of a version, or the hint
/// at the newest checkpoint. Files that a writer stages before it commits do not.
fn is_log_file(name: &str) -> bool {
    let of_version = |name: &str| {
        let (version, rest) = name.split_at_checked(20)?;
        Some(version.bytes().all(|b| b.is_ascii_digit()) && rest.starts_with('.'))
    };
    let is_staged = name.contains('#') || name.ends_with(".tmp");
    name == "_last_checkpoint" || (of_version(name).unwrap_or(false) && !is_staged)
}

/// Skipped: not data, by the convention of Hive and Spark.
fn is_hidden(name: &str) -> bool {
    name.starts_with(['_', '.'])
}

/// A folder seen from outside.
enum Look {
    Table,
    Other(Inside),
}

/// What lies in a folder that is no table.
#[derive(Default)]
struct Inside {
    /// Names of folders.
    folders: Vec<String>,
    /// Links of the local file system that lead to folders, with the folders.
    links: Vec<(String, std::path::PathBuf)>,
    /// What could not be looked at.
    unseen: Vec<(String, Unseen)>,
}

/// Why something in a folder could not be looked at.
enum Unseen {
    Link(std::io::Error),
    Name,
}

#[cfg(test)]
mod tests;
