//! A store over the local file system that counts requests and plays tricks on commits.

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures::StreamExt as _;
use futures::stream::BoxStream;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, RenameOptions, Result,
};

/// What happens to one put of a log entry.
pub(crate) enum Trick {
    /// It is carried out.
    Pass,
    /// It is not carried out; this is the answer.
    Instead(Error),
    /// It is carried out, and then this is the answer.
    Afterwards(Error),
    /// It is carried out, and then something happens before the answer is given.
    Then(Box<dyn FnOnce() + Send>),
    /// Both.
    AfterwardsThen(Error, Box<dyn FnOnce() + Send>),
    /// It is not carried out and there never is an answer.
    Never,
}

type OnPut = Box<dyn Fn(usize) -> Trick + Send + Sync>;
type OnGet = Box<dyn Fn(&Path, &GetOptions) + Send + Sync>;

pub(crate) struct TrickStore {
    inner: LocalFileSystem,
    requests: Mutex<Vec<String>>,
    on_put: Option<OnPut>,
    on_get: Option<OnGet>,
    puts: Mutex<usize>,
}

impl TrickStore {
    fn new(on_put: Option<OnPut>, on_get: Option<OnGet>) -> Arc<Self> {
        let inner = LocalFileSystem::new();
        Arc::new(Self { inner, requests: Mutex::default(), on_put, on_get, puts: Mutex::default() })
    }

    /// A store that only counts.
    pub(crate) fn counting() -> Arc<Self> {
        Self::new(None, None)
    }

    /// A store that decides about each put of a log entry, counted from 0.
    pub(crate) fn on_put(decide: impl Fn(usize) -> Trick + Send + Sync + 'static) -> Arc<Self> {
        Self::new(Some(Box::new(decide)), None)
    }

    /// A store that lets something happen before each get.
    pub(crate) fn on_get(act: impl Fn(&Path, &GetOptions) + Send + Sync + 'static) -> Arc<Self> {
        Self::new(None, Some(Box::new(act)))
    }

    /// The requests since the last call: verb and file name.
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.requests.lock().unwrap())
    }

    /// How many log entries were put.
    pub(crate) fn puts(&self) -> usize {
        *self.puts.lock().unwrap()
    }

    fn note(&self, verb: &str, path: &Path) {
        let name = path.filename().unwrap_or_default();
        self.requests.lock().unwrap().push(format!("{verb} {name}"));
    }
}

/// The answer of a server that has no time.
pub(crate) fn unavailable() -> Error {
    Error::Generic { store: "test", source: "503 slow down".into() }
}

/// The answer of a server to which the entry is there already.
pub(crate) fn exists() -> Error {
    Error::AlreadyExists { path: "entry".to_owned(), source: "409 conflict".into() }
}

pub(crate) fn forbidden() -> Error {
    Error::PermissionDenied { path: "entry".to_owned(), source: "403 forbidden".into() }
}

impl fmt::Debug for TrickStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TrickStore")
    }
}

impl fmt::Display for TrickStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TrickStore")
    }
}

#[async_trait::async_trait]
impl ObjectStore for TrickStore {
    async fn put_opts(&self, location: &Path, payload: PutPayload, opts: PutOptions) -> Result<PutResult> {
        self.note("put", location);
        let trick = match &self.on_put {
            Some(decide) if location.as_ref().contains("/_delta_log/") => {
                let n = {
                    let mut puts = self.puts.lock().unwrap();
                    *puts += 1;
                    *puts - 1
                };
                decide(n)
            }
            _ => Trick::Pass,
        };
        let (error, then) = match trick {
            Trick::Pass => (None, None),
            Trick::Instead(error) => return Err(error),
            Trick::Never => return futures::future::pending().await,
            Trick::Afterwards(error) => (Some(error), None),
            Trick::Then(act) => (None, Some(act)),
            Trick::AfterwardsThen(error, act) => (Some(error), Some(act)),
        };
        let done = self.inner.put_opts(location, payload, opts).await;
        if let Some(act) = then {
            act();
        }
        error.map_or(done, Err)
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        opts: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.note("put-multipart", location);
        self.inner.put_multipart_opts(location, opts).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        if let Some(act) = &self.on_get {
            act(location, &options);
        }
        let verb = match (options.head, &options.range) {
            (true, _) => "head",
            (false, Some(_)) => "get-range",
            (false, None) => "get",
        };
        self.note(verb, location);
        self.inner.get_opts(location, options).await
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.note("get-ranges", location);
        self.inner.get_ranges(location, ranges).await
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        self.note("delete", &Path::default());
        self.inner.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.note("list", prefix.unwrap_or(&Path::default()));
        self.inner.list(prefix)
    }

    fn list_with_offset(
        &self,
        prefix: Option<&Path>,
        offset: &Path,
    ) -> BoxStream<'static, Result<ObjectMeta>> {
        self.note("list", prefix.unwrap_or(&Path::default()));
        self.inner.list_with_offset(prefix, offset).boxed()
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.note("list-with-delimiter", prefix.unwrap_or(&Path::default()));
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.note("copy", from);
        self.inner.copy_opts(from, to, options).await
    }

    async fn rename_opts(&self, from: &Path, to: &Path, options: RenameOptions) -> Result<()> {
        self.note("rename", from);
        self.inner.rename_opts(from, to, options).await
    }
}
