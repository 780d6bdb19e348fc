//! One process, many times: a table that is brought up to date, and one that already is.
//!
//! ```text
//! cargo bench --bench up_to_date
//! ```
//! First it counts the requests of a check on an open table and of a no-op from a location.
#![allow(clippy::print_stdout)] // figures are its purpose

mod table;

use std::collections::HashMap;
use std::fmt;
use std::hint::black_box;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use criterion::{BatchSize, Criterion};
use delta_migrate::{IfMissing, Location, Migrator, Target};
use deltalake::DeltaTableBuilder;
use deltalake::kernel::{DataType, StructField};
use deltalake::logstore::LogStoreRef;
use futures::stream::BoxStream;
use object_store::local::LocalFileSystem;
use object_store::path::Path as StorePath;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, RenameOptions,
};
use table::Result;
use tokio::runtime::Runtime;

fn main() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let folder = tempfile::tempdir()?;
    let original = folder.path().join("original");
    runtime.block_on(make(&original, table::files()))?;
    runtime.block_on(requests(&original))?;

    let mut criterion = Criterion::default().configure_from_args();
    let mut group = criterion.benchmark_group(format!("{} files with a checkpoint", table::files()));

    let open = runtime.block_on(table::load(&original))?;
    let migrator = table::current()?;
    group.bench_function("check on an open table", |b| {
        b.iter(|| migrator.check("facts", black_box(&open)).map(drop));
    });
    group.bench_function("no-op on an open table: bring_up_to_date", |b| {
        b.to_async(&runtime)
            .iter(|| async { migrator.bring_up_to_date("facts", black_box(open.clone())).await.map(drop) });
    });
    group.sample_size(20);
    group.bench_function("no-op: Migrator::migrate", |b| {
        b.to_async(&runtime).iter(|| async { no_op(&original).await });
    });
    group.bench_function("no-op: kernel::Snapshot::try_new", |b| {
        b.to_async(&runtime).iter(|| async { lazy(&original).await });
    });
    group.sample_size(10);
    let copies = Copies { original, folder: folder.path().to_owned(), made: Mutex::default() };
    group.bench_function("one migration: Migrator::migrate", |b| {
        b.iter_batched(|| copies.next(), |copy| done(&runtime, migrate(&copy)), BatchSize::PerIteration);
    });
    group.bench_function("one migration: add_columns, set_tbl_properties", |b| {
        b.iter_batched(|| copies.next(), |copy| done(&runtime, by_hand(&copy)), BatchSize::PerIteration);
    });
    group.finish();
    criterion.final_summary();
    Ok(())
}

fn done(runtime: &Runtime, work: impl Future<Output = Result<()>>) {
    if let Err(error) = runtime.block_on(work) {
        println!("{error}");
        std::process::exit(1);
    }
}

/// Fresh copies of the log, one an iteration.
struct Copies {
    original: PathBuf,
    folder: PathBuf,
    made: Mutex<u64>,
}

impl Copies {
    fn next(&self) -> PathBuf {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        *made += 1;
        let copy = self.folder.join(format!("copy-{made}"));
        if let Err(error) = table::copy(&self.original, &copy) {
            println!("{error}");
        }
        copy
    }
}

/// A release that knows one migration more.
fn newer() -> Result<Migrator> {
    table::migrator(table::kind("")?, 2)
}

/// Makes the log of a table at version 1 of its kind, without the data files, which nobody here opens:
/// raw commits, a checkpoint by delta-rs, and a few commits after it.
async fn make(folder: &Path, files: u64) -> Result<()> {
    let version = table::begin(folder, files).await?;
    table::checkpoint(folder).await?;
    table::append(folder, version, files, table::COMMITS_AFTER)
}

/// Ours: one migration, from nothing but the location.
async fn migrate(folder: &Path) -> Result<()> {
    let report = table::run(&newer()?, folder).await?;
    table::expect("migrated", report.outcome.as_str())
}

/// Ours: a table that is current, from nothing but the location.
async fn no_op(folder: &Path) -> Result<()> {
    let report = table::run(&table::current()?, folder).await?;
    table::expect("current", report.outcome.as_str())
}

/// delta-rs: the same change by hand, two operations on a table that was loaded for them.
async fn by_hand(folder: &Path) -> Result<()> {
    let table = table::load(folder).await?;
    let tenant = StructField::nullable("tenant", DataType::STRING);
    let table = table.add_columns().with_fields([tenant]).await?;
    let properties = [("team.owner", "sink"), ("my_sink.schema_version", "2")];
    let properties = properties.map(|(key, value)| (key.to_owned(), value.to_owned()));
    table.set_tbl_properties().with_properties(properties.into()).with_raise_if_not_exists(false).await?;
    Ok(())
}

/// delta-rs: protocol and metadata without the list of files.
async fn lazy(folder: &Path) -> Result<()> {
    let (_, snapshot) = table::snapshot(folder).await?;
    let version = snapshot.metadata().configuration().get("my_sink.schema_version").map(String::as_str);
    table::expect("1", version.unwrap_or_default())
}

/// Says what an up-to-date table costs in requests.
async fn requests(folder: &Path) -> Result<()> {
    let store = Arc::new(Counting { inner: LocalFileSystem::new(), requests: Mutex::default() });
    let url = deltalake::ensure_table_uri(folder.to_str().ok_or("the folder's name is not UTF-8")?)?;
    let root: Arc<dyn ObjectStore> = store.clone();
    let builder = DeltaTableBuilder::from_url(url.clone())?.with_storage_backend(root, url);
    let log_store: LogStoreRef = builder.build_storage()?;
    let migrator = table::current()?;

    let location = Location::from_log_store(log_store.clone());
    store.take();
    migrator.migrate("facts", &location, Target::Newest, IfMissing::Refuse).await?;
    println!("requests of a no-op from a location: {}", store.take());
    let mut open = deltalake::DeltaTable::new(log_store);
    open.load().await?;
    println!("requests of a load by delta-rs: {}", store.take());
    migrator.check("facts", &open)?;
    println!("requests of a check on an open table: {}", store.take());
    migrator.bring_up_to_date("facts", open).await?;
    println!("requests of bring_up_to_date on an open table: {}\n", store.take());
    Ok(())
}

#[derive(Debug)]
struct Counting {
    inner: LocalFileSystem,
    requests: Mutex<Vec<&'static str>>,
}

impl Counting {
    fn count(&self, verb: &'static str) {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).push(verb);
    }

    /// Those since the last call.
    fn take(&self) -> String {
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        let mut counts: HashMap<&str, u64> = HashMap::new();
        for verb in std::mem::take(&mut *requests) {
            *counts.entry(verb).or_default() += 1;
        }
        let mut counts: Vec<String> = counts.into_iter().map(|(verb, n)| format!("{n} {verb}")).collect();
        counts.sort();
        if counts.is_empty() { "none".to_owned() } else { counts.join(", ") }
    }
}

impl fmt::Display for Counting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Counting({})", self.inner)
    }
}

type Answer<T> = object_store::Result<T>;

#[async_trait::async_trait]
impl ObjectStore for Counting {
    async fn put_opts(&self, at: &StorePath, payload: PutPayload, options: PutOptions) -> Answer<PutResult> {
        self.count("put");
        self.inner.put_opts(at, payload, options).await
    }

    async fn put_multipart_opts(
        &self,
        at: &StorePath,
        options: PutMultipartOptions,
    ) -> Answer<Box<dyn MultipartUpload>> {
        self.count("put");
        self.inner.put_multipart_opts(at, options).await
    }

    async fn get_opts(&self, at: &StorePath, options: GetOptions) -> Answer<GetResult> {
        self.count(if options.head { "head" } else { "get" });
        self.inner.get_opts(at, options).await
    }

    async fn get_ranges(&self, at: &StorePath, ranges: &[Range<u64>]) -> Answer<Vec<bytes::Bytes>> {
        self.count("get_ranges");
        self.inner.get_ranges(at, ranges).await
    }

    fn delete_stream(
        &self,
        at: BoxStream<'static, Answer<StorePath>>,
    ) -> BoxStream<'static, Answer<StorePath>> {
        self.count("delete");
        self.inner.delete_stream(at)
    }

    fn list(&self, prefix: Option<&StorePath>) -> BoxStream<'static, Answer<ObjectMeta>> {
        self.count("list");
        self.inner.list(prefix)
    }

    fn list_with_offset(
        &self,
        prefix: Option<&StorePath>,
        offset: &StorePath,
    ) -> BoxStream<'static, Answer<ObjectMeta>> {
        self.count("list");
        self.inner.list_with_offset(prefix, offset)
    }

    async fn list_with_delimiter(&self, prefix: Option<&StorePath>) -> Answer<ListResult> {
        self.count("list");
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &StorePath, to: &StorePath, options: CopyOptions) -> Answer<()> {
        self.count("copy");
        self.inner.copy_opts(from, to, options).await
    }

    async fn rename_opts(&self, from: &StorePath, to: &StorePath, options: RenameOptions) -> Answer<()> {
        self.count("rename");
        self.inner.rename_opts(from, to, options).await
    }
}
