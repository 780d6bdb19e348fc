//! Where a table lies, and the store behind it.

pub(super) mod options;

use std::collections::HashMap;
use std::fmt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use deltalake::DeltaTableError;
use deltalake::logstore::{LogStoreRef, StorageConfig, logstore_with, object_store_factories};
use object_store::path::Path as StorePath;
use object_store::{ObjectStore, ObjectStoreScheme};
use url::Url;

use self::options::Options;
use crate::error::{Error, ErrorCode, Stage};

/// A table's location with the store that holds it.
///
/// Nothing is read when a location is made.
#[derive(Clone)]
pub struct Location {
    uri: String,
    log_store: LogStoreRef,
}

impl Location {
    /// A table by path or URL, with options for its store.
    ///
    /// A text without `://` is a path of the local file system; it need not exist.
    ///
    /// # Errors
    /// [`ErrorCode::Usage`]: the text is no URL, or this build has no store for its scheme.
    ///
    /// # Examples
    /// ```
    /// use delta_migrate::Location;
    ///
    /// let location = Location::new("data/facts", Default::default())?;
    /// assert!(location.uri().ends_with("data/facts"));
    /// # Ok::<(), delta_migrate::Error>(())
    /// ```
    pub fn new(uri: impl AsRef<str>, options: HashMap<String, String>) -> Result<Self, Error> {
        let url = parse(uri.as_ref())?;
        let options = options.into_iter().collect();
        in_store(&url, root_store(&url, &options)?, &options)
    }

    /// A table in a store that the caller has opened.
    pub fn from_log_store(log_store: LogStoreRef) -> Self {
        Self { uri: redacted(log_store.root_url()), log_store }
    }

    /// The same table, called by another name in reports and plans.
    pub(crate) fn called(mut self, uri: impl Into<String>) -> Self {
        self.uri = uri.into();
        self
    }

    /// The location for people and reports: a path for local files, else the URL, never with
    /// credentials.
    pub fn uri(&self) -> &str {
        &self.uri
    }

    /// Refuses a file of the local file system, in which no log can lie.
    pub(crate) fn check_is_folder(&self) -> Result<(), Error> {
        if !self.local_folder().is_some_and(|path| path.is_file()) {
            return Ok(());
        }
        Err(Error::new(ErrorCode::NotATable, Stage::Read, "the location is a file, not a folder")
            .with_table(&self.uri)
            .with_hint("name the table's folder: the one that holds `_delta_log`"))
    }

    /// The folder of a table on a local disk.
    pub(super) fn local_folder(&self) -> Option<PathBuf> {
        let url = self.log_store.root_url();
        (url.scheme() == "file").then(|| url.to_file_path().ok())?
    }

    pub(crate) fn log_store(&self) -> &LogStoreRef {
        &self.log_store
    }

    /// The store, rooted at the table.
    pub(crate) fn store(&self) -> Arc<dyn ObjectStore> {
        self.log_store.object_store(None)
    }
}

impl fmt::Debug for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The store's own Debug prints its credentials.
        f.debug_struct("Location").field("uri", &self.uri).finish_non_exhaustive()
    }
}

/// The whole store that a location lies in, from its root; a client of its own at each call.
pub(super) fn root_store(url: &Url, options: &Options) -> Result<Arc<dyn ObjectStore>, Error> {
    options::check_no_lock(url, options)?;
    root_store_beside_locks(url, options)
}

/// The same, whatever other writers lock with: not to commit to.
pub(super) fn root_store_beside_locks(url: &Url, options: &Options) -> Result<Arc<dyn ObjectStore>, Error> {
    register_stores();
    let scheme = Url::parse(&format!("{}://", url.scheme())).map_err(|_| options::unknown_scheme(url))?;
    let factory = object_store_factories().get(&scheme).map(|entry| entry.value().clone());
    let factory = factory.ok_or_else(|| options::unknown_scheme(url))?;
    options::check(url, options, &options::environment())?;
    let config = config_of(url, options)?;
    let (store, _) = factory.parse_url_opts(url, &config).map_err(|e| not_opened(url, options, e))?;
    Ok(store)
}

/// A table in a store that was opened before.
pub(super) fn in_store(url: &Url, root: Arc<dyn ObjectStore>, options: &Options) -> Result<Location, Error> {
    let log_store =
        logstore_with(root, url, config_of(url, options)?).map_err(|e| not_opened(url, options, e))?;
    Ok(Location { uri: redacted(url), log_store })
}

/// Where in its store a location is.
pub(crate) fn path_in_store(url: &Url) -> Result<StorePath, Error> {
    // A scheme of the program's own is read as deltalake reads it.
    let path =
        ObjectStoreScheme::parse(url).map(|(_, path)| path).or_else(|_| StorePath::from_url_path(url.path()));
    path.map_err(|e| Error::usage(format!("`{}` is no location in a store", redacted(url))).with_source(e))
}

fn config_of(url: &Url, options: &Options) -> Result<StorageConfig, Error> {
    StorageConfig::parse_options(options::with_defaults(options))
        .map_err(|e| not_opened(url, options, e).with_hint("correct the storage option that it names"))
}

/// Makes the stores of this build known to deltalake.
fn register_stores() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        #[cfg(feature = "s3")]
        deltalake::aws::register_handlers(None);
        #[cfg(feature = "azure")]
        deltalake::azure::register_handlers(None);
        #[cfg(feature = "gcs")]
        deltalake::gcp::register_handlers(None);
    });
}

fn not_opened(url: &Url, options: &Options, error: DeltaTableError) -> Error {
    if matches!(error, DeltaTableError::InvalidTableLocation(_)) {
        return options::unknown_scheme(url);
    }
    // The text of a dependency may hold what it was given.
    let why = options::without_secrets(&error.to_string(), options, &options::environment());
    let why = why.replace(url.as_str(), &redacted(url));
    // What follows quotes the file.
    const DECODED: &str = "decode service account file";
    let why = why.find(DECODED).and_then(|at| why.get(..at + DECODED.len())).unwrap_or(&why).to_owned();
    let refused = Error::usage(format!("`{}` can't be opened as a location", redacted(url))).with_source(why);
    match options::Family::of(url) {
        Some(family) => refused.with_hint(family.credentials()),
        None => refused,
    }
}

pub(crate) fn parse(text: &str) -> Result<Url, Error> {
    let wrong = |why: &str| Error::usage(format!("`{}` is no table location: {why}", shown(text)));
    if text.trim().is_empty() {
        return Err(wrong("it is empty"));
    }
    if text.contains("://") {
        let url = Url::parse(text).map_err(|e| wrong("it is no URL").with_source(e))?;
        let url = options::normalised(url);
        if url.scheme() == "file" && (url.query().is_some() || url.fragment().is_some()) {
            return Err(wrong("`?` and `#` end a URL's path")
                .with_hint("write them as %3F and %23, or give the path without file://"));
        }
        // As a folder, so that log paths are joined below it.
        return match url.path().ends_with('/') {
            true => Ok(url),
            false => {
                let mut url = url;
                url.set_path(&format!("{}/", url.path()));
                Ok(url)
            }
        };
    }
    if let Some((scheme, _)) = text.split_once("//").filter(|(scheme, _)| is_store(scheme)) {
        return Err(Error::usage(format!(
            "`{scheme}//…` is no table location: a URL has a colon after its scheme"
        ))
        .with_hint(format!("write {scheme}://…")));
    }
    if let Some((scheme, _)) = text.split_once(":/").filter(|(scheme, _)| is_scheme(scheme)) {
        return Err(wrong("a URL has two slashes after its scheme").with_hint(format!("write {scheme}://…")));
    }
    if Path::new(text).components().any(|c| c.as_os_str() == "~") {
        return Err(wrong("`~` is a name like any other here").with_hint("write the path of the home folder"));
    }
    let path = std::path::absolute(Path::new(text)).map_err(|e| wrong("it is no path").with_source(e))?;
    Url::from_directory_path(without_parents(&path)).map_err(|()| wrong("it can't be written as a file URL"))
}

/// A location as [`Location::uri`] gives it.
pub(crate) fn named(text: &str) -> Result<String, Error> {
    Ok(redacted(&parse(text)?))
}

/// The one spelling of a location that all of its spellings have: as [`Location::uri`], with links of
/// the local file system followed.
pub(crate) fn canonical(text: &str) -> Result<String, Error> {
    let url = parse(text)?;
    if url.scheme() == "file"
        && let Ok(path) = url.to_file_path()
        && let Ok(path) = std::fs::canonicalize(path)
        && let Ok(text) = path.into_os_string().into_string()
    {
        return Ok(text);
    }
    // The same object may be written with and without escapes.
    let shown = redacted(&url);
    let path = path_in_store(&url).ok().filter(|path| !path.as_ref().is_empty());
    Ok(match path.and_then(|path| Some((shown.split_once(url.path().trim_end_matches('/'))?.0, path))) {
        Some((store, path)) => format!("{store}/{path}"),
        None => shown,
    })
}

/// A location as somebody wrote it, without what may be secret in a URL.
pub(crate) fn shown(text: &str) -> String {
    match text.split_once("://") {
        None => text.to_owned(),
        Some((scheme, _)) => Url::parse(text).map_or_else(|_| format!("{scheme}://…"), |url| redacted(&url)),
    }
}

fn is_store(text: &str) -> bool {
    Url::parse(&format!("{text}://x")).is_ok_and(|url| options::Family::of(&url).is_some())
}

/// Two letters at least: one alone is a drive.
fn is_scheme(text: &str) -> bool {
    text.len() > 1 && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
}

/// The path without `..`, which object stores do not take; links on the way are followed first, as
/// the file system would.
fn without_parents(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for component in path.components() {
        if component == Component::ParentDir {
            out = std::fs::canonicalize(&out).unwrap_or(out);
            out.pop();
        } else {
            out.push(component);
        }
    }
    out
}

/// The URL without user info and query, and as a plain path for local files.
pub(crate) fn redacted(url: &Url) -> String {
    if url.scheme() == "file"
        && let Ok(path) = url.to_file_path()
    {
        let text = path.to_string_lossy();
        let trimmed = text.trim_end_matches('/');
        return if trimmed.is_empty() { "/".to_owned() } else { trimmed.to_owned() };
    }
    let mut url = url.clone();
    url.set_query(None);
    url.set_fragment(None);
    // Azure writes the container where others write a user; there only a password is a secret.
    if url.password().is_some() || matches!(url.scheme(), "s3" | "s3a" | "s3n" | "gs") {
        let _ = url.set_password(None);
        let _ = url.set_username("");
    }
    url.as_str().trim_end_matches('/').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_never_show() {
        let shown = |text: &str| redacted(&Url::parse(text).unwrap());
        assert_eq!(shown("s3://user:secret@bucket/t/?sig=abc"), "s3://bucket/t");
        assert_eq!(shown("s3://secret@bucket/t/"), "s3://bucket/t");
        assert_eq!(shown("abfss://container@account/t/"), "abfss://container@account/t");
        assert_eq!(shown("file:///tmp/a%20b/"), "/tmp/a b");
        let location = Location::new("memory:///t?token=abc", HashMap::new()).unwrap();
        assert!(!format!("{location:?}").contains("abc"));
    }

    #[test]
    fn locations_that_can_not_be_opened_are_refused_at_once() {
        for text in [
            "",
            "  ",
            "nonsense://x/y",
            "http://[bad",
            "file:/tmp/t",
            "~/t",
            "a/~/t",
            "file:///t/a#b",
            "file:///t/a?b",
        ] {
            assert_eq!(Location::new(text, HashMap::new()).unwrap_err().code(), ErrorCode::Usage, "{text}");
        }
    }

    #[test]
    fn parents_in_a_path_are_resolved_as_the_file_system_does() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("real/deep")).unwrap();
        let at = |path: &str| {
            Location::new(root.join(path).to_str().unwrap(), HashMap::new()).unwrap().uri().to_owned()
        };
        assert_eq!(at("gone/../t"), root.join("t").to_str().unwrap());
        assert_eq!(at("real/deep/../../t"), root.join("t").to_str().unwrap());
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(root.join("real/deep"), root.join("link")).unwrap();
            assert_eq!(at("link/../t"), root.join("real/t").to_str().unwrap());
        }
    }

    #[test]
    fn a_path_with_odd_characters_stays_what_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a b#c%20?d=ü");
        let location = Location::new(path.to_str().unwrap(), HashMap::new()).unwrap();
        assert_eq!(location.uri(), path.to_str().unwrap());
    }
}
