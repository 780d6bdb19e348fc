//! A store whose writes fail from some number on, or whose answer to one of them is lost.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use futures::stream::BoxStream;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, RenameOptions, Result,
};

use crate::support::store::{forbidden, unavailable};

/// What happens to writes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Fault {
    /// From this one on, none is carried out.
    Stop(usize),
    /// This one is carried out, and the answer says that it was not.
    Lost(usize),
}

pub(super) struct FaultyStore {
    inner: LocalFileSystem,
    fault: Fault,
    writes: AtomicUsize,
}

impl FaultyStore {
    pub(super) fn new(fault: Fault) -> Arc<Self> {
        Arc::new(Self { inner: LocalFileSystem::new(), fault, writes: AtomicUsize::new(0) })
    }

    /// How many writes were asked for.
    pub(super) fn writes(&self) -> usize {
        self.writes.load(Ordering::SeqCst)
    }

    /// Whether the answer to this write is lost.
    fn write(&self) -> Result<bool> {
        let n = self.writes.fetch_add(1, Ordering::SeqCst);
        match self.fault {
            Fault::Stop(at) if n >= at => Err(forbidden()),
            Fault::Lost(at) if n == at => Ok(true),
            _ => Ok(false),
        }
    }
}

impl fmt::Debug for FaultyStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FaultyStore")
    }
}

impl fmt::Display for FaultyStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FaultyStore")
    }
}

#[async_trait::async_trait]
impl ObjectStore for FaultyStore {
    async fn put_opts(&self, location: &Path, payload: PutPayload, opts: PutOptions) -> Result<PutResult> {
        let lost = self.write()?;
        let done = self.inner.put_opts(location, payload, opts).await;
        if lost { Err(unavailable()) } else { done }
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        opts: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        if self.write()? {
            return Err(unavailable());
        }
        self.inner.put_multipart_opts(location, opts).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        self.inner.get_opts(location, options).await
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.inner.get_ranges(location, ranges).await
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        self.inner.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.write()?;
        self.inner.copy_opts(from, to, options).await
    }

    async fn rename_opts(&self, from: &Path, to: &Path, options: RenameOptions) -> Result<()> {
        self.write()?;
        self.inner.rename_opts(from, to, options).await
    }
}
