//! A walk below a prefix of a store.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use futures::stream::{self, BoxStream};
use futures::{StreamExt as _, TryStreamExt as _};
use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use object_store::ObjectStore;
use object_store::path::Path;
use tokio::task::JoinSet;
use url::Url;

use super::{Access, Found, Source, Trust};
use crate::delta::location;
use crate::delta::stores::Stores;
use crate::error::{Error, ErrorCode, Stage};

/// How many folders are looked at at the same time.
const LISTINGS: usize = 16;

/// Finds the tables below a folder of any store.
///
/// A folder is a table if its `_delta_log` holds a log file; what lies below a table is not looked
/// at, whatever its size: a table costs one request, any other folder two. Folders whose name begins
/// with `_` or `.` are left out, and so is what is found a second time behind a link of the local
/// file system. Paths are those below the root, without a slash in front; the root itself, where it
/// is a table, is given whatever the globs say.
#[derive(Debug)]
pub struct Walk {
    root: String,
    options: BTreeMap<String, String>,
    stores: Arc<Stores>,
    kind: Option<String>,
    globs: Arc<Globs>,
}

#[derive(Debug, Default)]
struct Globs {
    /// None takes all.
    include: Option<GlobSet>,
    exclude: GlobSet,
    /// Folders below which everything is excluded.
    prune: GlobSet,
}

impl Walk {
    /// A walk below `root`, a path or a URL, in a store with these options.
    ///
    /// # Errors
    /// [`ErrorCode::Usage`]: the root can't be opened as a location.
    pub fn new(
        stores: Arc<Stores>,
        root: impl Into<String>,
        options: BTreeMap<String, String>,
    ) -> Result<Self, Error> {
        let root = root.into();
        stores.folder(&root, &options)?;
        Ok(Self { root, options, stores, kind: None, globs: Arc::default() })
    }

    /// The kind of every table that is found; by default the table's own stamp says it.
    pub fn kind(mut self, kind: impl Into<String>) -> Self {
        self.kind = Some(kind.into());
        self
    }

    /// Only tables whose path below the root matches one of these globs, such as `**/cdc_*`;
    /// by default, and with none, all. `*` stays within one folder, `**` does not.
    ///
    /// # Errors
    /// [`ErrorCode::Usage`]: one is no glob.
    pub fn include<'a>(mut self, globs: impl IntoIterator<Item = &'a str>) -> Result<Self, Error> {
        let set = glob_set(globs)?;
        let Globs { include: _, exclude, prune } = &*self.globs;
        let include = (!set.is_empty()).then_some(set);
        self.globs = Arc::new(Globs { include, exclude: exclude.clone(), prune: prune.clone() });
        Ok(self)
    }

    /// No table whose path below the root matches one of these globs, and nothing below a folder
    /// that does.
    ///
    /// # Errors
    /// [`ErrorCode::Usage`]: one is no glob.
    pub fn exclude<'a>(mut self, globs: impl IntoIterator<Item = &'a str>) -> Result<Self, Error> {
        let globs: Vec<&str> = globs.into_iter().collect();
        let exclude = glob_set(globs.iter().copied())?;
        // `a/**` matches all that lies below `a`, so that `a` need not be looked into.
        let prune = glob_set(globs.iter().map(|g| g.strip_suffix("/**").unwrap_or(g)))?;
        let include = self.globs.include.clone();
        self.globs = Arc::new(Globs { include, exclude, prune });
        Ok(self)
    }

    fn start(&self) -> Result<Walker, Error> {
        let folder = self.stores.folder(&self.root, &self.options)?;
        check_is_folder(&folder.url)?;
        let looker = Looker { store: folder.store, globs: self.globs.clone(), seen: Mutex::default() };
        let found = Found {
            kind: self.kind.clone(),
            access: Access::Options(self.options.clone()),
            ..Found::at("", BTreeMap::new())
        };
        let root = Folder { path: folder.path, url: folder.url, below: String::new() };
        Ok(Walker { looker: Arc::new(looker), found, queue: VecDeque::from([root]), looks: JoinSet::new() })
    }
}

impl Source for Walk {
    fn name(&self) -> String {
        let root = location::named(&self.root).unwrap_or_else(|_| location::shown(&self.root));
        format!("walk of {root}")
    }

    fn tables(&self) -> BoxStream<'_, Result<Found, Error>> {
        match self.start() {
            Ok(walker) => stream::unfold(walker, |mut w| async move { Some((w.next().await?, w)) }).boxed(),
            Err(error) => stream::once(std::future::ready(Err(error))).boxed(),
        }
    }
}

/// A folder to look at.
#[derive(Debug)]
struct Folder {
    path: Path,
    /// With its last slash.
    url: Url,
    /// The path below the root.
    below: String,
}

/// What a folder turned out to be.
enum Looked {
    Table(Folder),
    Folders(Vec<Folder>),
}

/// A walk under way.
struct Walker {
    looker: Arc<Looker>,
    found: Found,
    queue: VecDeque<Folder>,
    /// Tasks of their own: a look holds one of the store's requests, and must come to its end even
    /// while whoever reads the stream waits for a request of the same store.
    looks: JoinSet<Result<Looked, Error>>,
}

impl Walker {
    async fn next(&mut self) -> Option<Result<Found, Error>> {
        loop {
            while self.looks.len() < LISTINGS
                && let Some(folder) = self.queue.pop_front()
            {
                let looker = self.looker.clone();
                self.looks.spawn(async move { looker.look(folder).await });
            }
            match self.looks.join_next().await? {
                Ok(Ok(Looked::Table(folder))) if self.looker.globs.takes(&folder.below) => {
                    let uri = location::redacted(&folder.url);
                    return Some(Ok(Found { uri, trust: Trust::Found, ..self.found.clone() }));
                }
                Ok(Ok(Looked::Table(_))) => {}
                Ok(Ok(Looked::Folders(folders))) => {
                    // Depth first, so that the queue stays short.
                    for folder in folders.into_iter().rev() {
                        self.queue.push_front(folder);
                    }
                }
                Ok(Err(error)) => return Some(Err(error)),
                Err(lost) => {
                    let error = Error::new(ErrorCode::Storage, Stage::Read, "a folder's listing was lost");
                    return Some(Err(error.with_hint("run it again").with_source(lost)));
                }
            }
        }
    }
}

/// Looks at folders.
struct Looker {
    store: Arc<dyn ObjectStore>,
    globs: Arc<Globs>,
    /// Folders of the local file system without links, so that a loop of them ends.
    seen: Mutex<HashSet<PathBuf>>,
}

impl Looker {
    async fn look(&self, folder: Folder) -> Result<Looked, Error> {
        if !self.is_new(&folder) {
            return Ok(Looked::Folders(Vec::new()));
        }
        let failed = |e| unreadable(&folder.url, e);
        if self.has_log(&folder.path).await.map_err(failed)? {
            return Ok(Looked::Table(folder));
        }
        let listed = match self.store.list_with_delimiter(Some(&folder.path)).await {
            Ok(listed) => listed.common_prefixes,
            Err(object_store::Error::NotFound { .. }) => Vec::new(),
            Err(e) => return Err(failed(e)),
        };
        let below = listed.into_iter().filter_map(|path| self.child(&folder, path));
        Ok(Looked::Folders(below.collect()))
    }

    /// A single request, however long the log is.
    async fn has_log(&self, folder: &Path) -> Result<bool, object_store::Error> {
        let mut files = self.store.list(Some(&folder.clone().join("_delta_log")));
        let mut others = 0;
        loop {
            match files.try_next().await {
                Ok(Some(file)) if file.location.filename().is_some_and(is_log_file) => return Ok(true),
                Ok(Some(_)) => others += 1,
                Ok(None) | Err(object_store::Error::NotFound { .. }) => break,
                Err(e) => return Err(e),
            }
        }
        if others > 0 {
            tracing::debug!(%folder, others, "`_delta_log` holds no log file: no table");
        }
        Ok(false)
    }

    /// A folder below, unless it is one to stay out of.
    fn child(&self, folder: &Folder, path: Path) -> Option<Folder> {
        let name = path.filename()?.to_owned();
        if name.starts_with(['_', '.']) {
            return None;
        }
        let below = match folder.below.as_str() {
            "" => name.clone(),
            above => format!("{above}/{name}"),
        };
        if self.globs.prune.is_match(&below) {
            // A table that stands right there is not below itself.
            let may_be_table = !self.globs.exclude.is_match(&below);
            if !may_be_table {
                return None;
            }
        }
        let mut url = folder.url.clone();
        url.path_segments_mut().ok()?.pop_if_empty().push(&name).push("");
        Some(Folder { path, url, below })
    }

    fn is_new(&self, folder: &Folder) -> bool {
        if folder.url.scheme() != "file" {
            return true;
        }
        let real = folder.url.to_file_path().ok().and_then(|path| std::fs::canonicalize(path).ok());
        // What can't be followed says so when it is listed.
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        real.is_none_or(|real| seen.insert(real))
    }
}

impl Globs {
    fn takes(&self, below: &str) -> bool {
        below.is_empty()
            || (self.include.as_ref().is_none_or(|set| set.is_match(below)) && !self.exclude.is_match(below))
    }
}

fn glob_set<'a>(globs: impl IntoIterator<Item = &'a str>) -> Result<GlobSet, Error> {
    let wrong = |e: globset::Error| {
        let glob = e.glob().unwrap_or_default().to_owned();
        Error::usage(format!("`{glob}` is no glob: {}", e.kind()))
            .with_hint("write one such as `**/cdc_*`: `*` is any name, `**/` any folders")
    };
    let mut set = GlobSetBuilder::new();
    for glob in globs {
        set.add(GlobBuilder::new(glob).literal_separator(true).build().map_err(wrong)?);
    }
    set.build().map_err(wrong)
}

/// Commits, checkpoints and checksums begin with a version of 20 digits.
fn is_log_file(name: &str) -> bool {
    let head = name.as_bytes().get(..21);
    head.is_some_and(|h| h.iter().take(20).all(u8::is_ascii_digit) && h.last() == Some(&b'.'))
        || name == "_last_checkpoint"
}

/// A prefix of an object store need not exist; a folder must, or its name is mistyped.
fn check_is_folder(url: &Url) -> Result<(), Error> {
    let Ok(path) = url.to_file_path() else { return Ok(()) };
    if url.scheme() != "file" || path.is_dir() {
        return Ok(());
    }
    let what = if path.exists() { "is no folder" } else { "is not there" };
    Err(Error::usage(format!("`{}` {what}", location::redacted(url)))
        .with_hint("set `root` to the folder that the tables lie in"))
}

fn unreadable(url: &Url, error: object_store::Error) -> Error {
    let message = format!("folder `{}` can't be listed", location::redacted(url));
    Error::new(ErrorCode::Storage, Stage::Read, message)
        .with_hint("run it again, or give the right to list it; the other folders were looked at")
        .with_source(error)
}
