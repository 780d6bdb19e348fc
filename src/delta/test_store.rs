//! A store for tests that writes down every request and can be told to fail or to interfere.

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{FutureExt as _, StreamExt as _, stream};
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, RenameOptions, Result,
};

/// What a request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verb {
    Get,
    /// A get of a part of an object.
    GetRange,
    GetRanges,
    Head,
    /// With or without an offset.
    List,
    ListWithDelimiter,
    Put,
    Delete,
    Copy,
    Rename,
}

/// One request, in the order in which they were made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) verb: Verb,
    pub(crate) path: String,
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verb = match self.verb {
            Verb::Get => "get",
            Verb::GetRange => "get-range",
            Verb::GetRanges => "get-ranges",
            Verb::Head => "head",
            Verb::List => "list",
            Verb::ListWithDelimiter => "list-with-delimiter",
            Verb::Put => "put",
            Verb::Delete => "delete",
            Verb::Copy => "copy",
            Verb::Rename => "rename",
        };
        write!(f, "{verb} {}", self.path)
    }
}

type Interference = Box<dyn Fn(&Request) -> Option<object_store::Error> + Send + Sync>;

/// Passes everything on to another store, and remembers it.
pub(crate) struct RecordingStore {
    inner: Arc<dyn ObjectStore>,
    requests: Mutex<Vec<Request>>,
    before: Option<Interference>,
    hidden: Option<String>,
    stalled: Option<Choice>,
}

type Choice = Box<dyn Fn(&Request) -> bool + Send + Sync>;

impl RecordingStore {
    pub(crate) fn new(inner: Arc<dyn ObjectStore>) -> Self {
        Self { inner, requests: Mutex::default(), before: None, hidden: None, stalled: None }
    }

    /// Runs before each request; an error is the request's answer.
    pub(crate) fn before(
        mut self,
        interference: impl Fn(&Request) -> Option<object_store::Error> + Send + Sync + 'static,
    ) -> Self {
        self.before = Some(Box::new(interference));
        self
    }

    /// Leaves an object out of every listing, though a get finds it.
    pub(crate) fn hide(mut self, path: &str) -> Self {
        self.hidden = Some(path.to_owned());
        self
    }

    /// Never answers the listings that are chosen.
    pub(crate) fn stall(mut self, choice: impl Fn(&Request) -> bool + Send + Sync + 'static) -> Self {
        self.stalled = Some(Box::new(choice));
        self
    }

    fn is_stalled(&self, verb: Verb, path: &str) -> bool {
        self.stalled.as_ref().is_some_and(|choice| choice(&Request { verb, path: path.to_owned() }))
    }

    /// The requests since the last call, one line each.
    pub(crate) fn take(&self) -> Vec<String> {
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *requests).iter().map(ToString::to_string).collect()
    }

    /// How many requests of a kind there were since the last [`RecordingStore::take`].
    pub(crate) fn count(&self, verb: Verb) -> usize {
        let requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        requests.iter().filter(|r| r.verb == verb).count()
    }

    fn record(&self, verb: Verb, path: impl fmt::Display) -> Result<()> {
        let request = Request { verb, path: path.to_string() };
        let answer = self.before.as_ref().and_then(|before| before(&request));
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).push(request);
        answer.map_or(Ok(()), Err)
    }

    fn listing(
        &self,
        prefix: Option<&Path>,
        list: impl FnOnce() -> BoxStream<'static, Result<ObjectMeta>>,
    ) -> BoxStream<'static, Result<ObjectMeta>> {
        let path = prefix.map(Path::as_ref).unwrap_or_default();
        match self.record(Verb::List, path) {
            Ok(()) if self.is_stalled(Verb::List, path) => stream::pending().boxed(),
            Ok(()) => {
                let hidden = self.hidden.clone();
                let shown = move |meta: &Result<ObjectMeta>| {
                    meta.as_ref().map_or(true, |m| Some(m.location.as_ref()) != hidden.as_deref())
                };
                list().filter(move |meta| std::future::ready(shown(meta))).boxed()
            }
            Err(e) => stream::once(async move { Err(e) }).boxed(),
        }
    }
}

/// The answer of a server that has no time.
pub(crate) fn unavailable() -> object_store::Error {
    object_store::Error::Generic { store: "test", source: "503 slow down".into() }
}

/// Changes a store in the middle of a request, which is no place to wait in.
pub(crate) fn now<T>(work: impl Future<Output = T>) -> T {
    work.now_or_never().expect("a store in memory answers at once")
}

impl fmt::Debug for RecordingStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RecordingStore({})", self.inner)
    }
}

impl fmt::Display for RecordingStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RecordingStore({})", self.inner)
    }
}

#[async_trait::async_trait]
impl ObjectStore for RecordingStore {
    async fn put_opts(&self, location: &Path, payload: PutPayload, opts: PutOptions) -> Result<PutResult> {
        self.record(Verb::Put, location)?;
        self.inner.put_opts(location, payload, opts).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        opts: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.record(Verb::Put, location)?;
        self.inner.put_multipart_opts(location, opts).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let verb = match (options.head, &options.range) {
            (true, _) => Verb::Head,
            (false, Some(_)) => Verb::GetRange,
            (false, None) => Verb::Get,
        };
        self.record(verb, location)?;
        self.inner.get_opts(location, options).await
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.record(Verb::GetRanges, location)?;
        self.inner.get_ranges(location, ranges).await
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        match self.record(Verb::Delete, "") {
            Ok(()) => self.inner.delete_stream(locations),
            Err(e) => stream::once(async move { Err(e) }).boxed(),
        }
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.listing(prefix, || self.inner.list(prefix))
    }

    fn list_with_offset(
        &self,
        prefix: Option<&Path>,
        offset: &Path,
    ) -> BoxStream<'static, Result<ObjectMeta>> {
        self.listing(prefix, || self.inner.list_with_offset(prefix, offset))
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        let path = prefix.map(Path::as_ref).unwrap_or_default();
        self.record(Verb::ListWithDelimiter, path)?;
        if self.is_stalled(Verb::ListWithDelimiter, path) {
            std::future::pending::<()>().await;
        }
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.record(Verb::Copy, from)?;
        self.inner.copy_opts(from, to, options).await
    }

    async fn rename_opts(&self, from: &Path, to: &Path, options: RenameOptions) -> Result<()> {
        self.record(Verb::Rename, from)?;
        self.inner.rename_opts(from, to, options).await
    }
}
