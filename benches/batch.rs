//! Ten thousand tables on a store that takes 5 ms longer for each request: how near a batch comes to
//! what the requests alone must take, and how much memory it needs.
//!
//! ```text
//! cargo bench --bench batch
//! ```
//! `DELTA_MIGRATE_BENCH_TABLES` (10000) makes it smaller or larger.
#![allow(clippy::print_stdout)] // figures are its purpose

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use delta_migrate::catalog::{Found, Source, Walk};
use delta_migrate::{Batch, BatchReport, IfMissing, Kind, Location, Migrator, Namespace, SchemaVersion};
use delta_migrate::{Observer, Stores, TableReport, Target};
use deltalake::DeltaResult;
use deltalake::logstore::{
    LogStore, LogStoreFactory, ObjectStoreFactory, ObjectStoreRef, StorageConfig, default_logstore,
    logstore_factories, object_store_factories,
};
use futures::StreamExt as _;
use futures::stream::BoxStream;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    ObjectStoreExt as _, PutMultipartOptions, PutOptions, PutPayload, PutResult,
};
use url::Url;

type Result<T, E = Box<dyn Error + Send + Sync>> = std::result::Result<T, E>;

const LATENCY: Duration = Duration::from_millis(5);
const CONCURRENCY: u16 = 32;
const KIND: &str = "kind = \"facts\"\n[columns]\nid = \"long\"\npayload = \"string\"\n\
                    [[migrations]]\ndescription = \"detail\"\n[migrations.add_columns]\ndetail = \"string\"\n\
                    [[migrations]]\ndescription = \"tenant\"\n[migrations.add_columns]\ntenant = \"string\"\n";

fn main() -> Result<()> {
    let tables: usize = match std::env::var("DELTA_MIGRATE_BENCH_TABLES") {
        Ok(text) => text.parse()?,
        Err(_) => 10_000,
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(run(tables))
}

async fn run(tables: usize) -> Result<()> {
    let slow = Arc::new(Slow::new(InMemory::new()));
    let factory = Arc::new(Factory { store: slow.clone(), clients: AtomicUsize::new(0) });
    let scheme = Url::parse("slow://")?;
    object_store_factories().insert(scheme.clone(), factory.clone());
    logstore_factories().insert(scheme, factory.clone());
    fill(&slow.inner, tables).await?;
    println!("{tables} tables, {CONCURRENCY} at a time, {} ms a request", LATENCY.as_millis());
    println!("memory before the first run: {:.1} MB, most of it the store", peak_memory()?);

    for (name, apply) in [("status", false), ("apply", true), ("apply again", true)] {
        let migrator = Arc::new(migrator()?);
        let stores = Arc::new(Stores::new(usize::from(CONCURRENCY)));
        factory.clients.store(0, Ordering::Relaxed);
        slow.counts.requests.store(0, Ordering::Relaxed);
        slow.counts.waited.store(0, Ordering::Relaxed);
        let began = Instant::now();
        let watch = Arc::new(Watch::new(began));
        let walk = Walk::new(stores.clone(), "slow://lake/tables", Default::default())?;
        let walk = Ended { walk, watch: watch.clone() };
        let batch =
            Batch::new(migrator, stores).source(walk).concurrency(CONCURRENCY).observer(watch.clone());
        let report = if apply { batch.apply().await } else { batch.status().await };
        let took = began.elapsed();
        tell(name, &report, took, &slow.counts, &watch)?;
        println!("    clients made: {}", factory.clients.load(Ordering::Relaxed));
    }
    Ok(())
}

fn tell(name: &str, report: &BatchReport, took: Duration, counts: &Counts, watch: &Watch) -> Result<()> {
    let requests = counts.requests.load(Ordering::Relaxed);
    let waited = Duration::from_micros(u64::try_from(counts.waited.load(Ordering::Relaxed))?);
    let least = waited / u32::from(CONCURRENCY);
    println!("{name}: {}", report.summary);
    println!(
        "    {:.2} s for {requests} requests of {:.2} ms, which take {:.2} s at best: {:.2} of the possible",
        took.as_secs_f64(),
        waited.as_secs_f64() * 1000.0 / requests as f64,
        least.as_secs_f64(),
        least.as_secs_f64() / took.as_secs_f64()
    );
    let at = |n: &AtomicUsize| n.load(Ordering::Relaxed) as f64 / 1000.0;
    println!(
        "    first table begun after {:.2} s, the walk ended after {:.2} s; peak memory {:.1} MB",
        at(&watch.first),
        at(&watch.walked),
        peak_memory()?
    );
    Ok(())
}

fn migrator() -> Result<Migrator> {
    let kind = Kind::from_toml(KIND)?;
    Ok(Migrator::builder(Namespace::new("bench")?).kind(kind).build()?)
}

/// A tenth of the tables is a version behind; all lie in folders of a hundred.
async fn fill(store: &InMemory, tables: usize) -> Result<()> {
    let seed = tempfile::tempdir()?;
    let mut logs = Vec::new();
    for version in [1, 2] {
        let folder = seed.path().join(version.to_string());
        let location = Location::new(folder.display().to_string(), Default::default())?;
        let target = Target::Version(SchemaVersion::new(version));
        migrator()?.migrate("facts", &location, target, IfMissing::Create).await?;
        logs.push(Bytes::from(std::fs::read(folder.join("_delta_log/00000000000000000000.json"))?));
    }
    for n in 0..tables {
        let log = if n % 10 == 0 { &logs[0] } else { &logs[1] };
        let path = format!("tables/f{}/t{n}/_delta_log/00000000000000000000.json", n / 100);
        store.put(&Path::from(path), log.clone().into()).await?;
    }
    Ok(())
}

/// The most memory that this process ever had, in MB.
fn peak_memory() -> Result<f64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:")).ok_or("no VmHWM")?;
    Ok(line.trim().trim_end_matches(" kB").trim().parse::<f64>()? / 1024.0)
}

/// When the first table was begun and when the walk ended, in milliseconds.
struct Watch {
    began: Instant,
    first: AtomicUsize,
    walked: AtomicUsize,
}

impl Watch {
    fn new(began: Instant) -> Self {
        Self { began, first: AtomicUsize::new(0), walked: AtomicUsize::new(0) }
    }

    fn now(&self) -> usize {
        usize::try_from(self.began.elapsed().as_millis()).unwrap_or(usize::MAX)
    }
}

impl Observer for Watch {
    fn started(&self, _uri: &str) {
        let _ = self.first.compare_exchange(0, self.now(), Ordering::Relaxed, Ordering::Relaxed);
    }

    fn finished(&self, _report: &TableReport) {}
}

/// A walk that tells when it ended.
struct Ended {
    walk: Walk,
    watch: Arc<Watch>,
}

impl Source for Ended {
    fn name(&self) -> String {
        self.walk.name()
    }

    fn tables(&self) -> BoxStream<'_, std::result::Result<Found, delta_migrate::Error>> {
        let end = futures::stream::poll_fn(|_| {
            self.watch.walked.store(self.watch.now(), Ordering::Relaxed);
            std::task::Poll::Ready(None)
        });
        self.walk.tables().chain(end).boxed()
    }
}

struct Factory {
    store: Arc<Slow>,
    clients: AtomicUsize,
}

impl fmt::Debug for Factory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Factory")
    }
}

impl ObjectStoreFactory for Factory {
    fn parse_url_opts(&self, url: &Url, _config: &StorageConfig) -> DeltaResult<(ObjectStoreRef, Path)> {
        self.clients.fetch_add(1, Ordering::Relaxed);
        Ok((self.store.clone(), Path::from(url.path())))
    }
}

impl LogStoreFactory for Factory {
    fn with_options(
        &self,
        prefixed_store: ObjectStoreRef,
        root_store: ObjectStoreRef,
        location: &Url,
        options: &StorageConfig,
    ) -> DeltaResult<Arc<dyn LogStore>> {
        Ok(default_logstore(prefixed_store, root_store, location, options))
    }
}

/// A store in memory that takes its time and counts.
#[derive(Debug)]
struct Slow {
    inner: InMemory,
    counts: Arc<Counts>,
}

/// How many requests there were, and for how many microseconds they waited in all.
#[derive(Debug, Default)]
struct Counts {
    requests: AtomicUsize,
    waited: AtomicUsize,
}

impl Counts {
    async fn wait(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
        let began = Instant::now();
        tokio::time::sleep(LATENCY).await;
        // Timers are coarse: what was really waited counts.
        let waited = usize::try_from(began.elapsed().as_micros()).unwrap_or(usize::MAX);
        self.waited.fetch_add(waited, Ordering::Relaxed);
    }
}

impl Slow {
    fn new(inner: InMemory) -> Self {
        Self { inner, counts: Arc::default() }
    }

    async fn wait(&self) {
        self.counts.wait().await;
    }

    /// A listing takes its time once.
    fn later(
        &self,
        list: BoxStream<'static, object_store::Result<ObjectMeta>>,
    ) -> BoxStream<'static, object_store::Result<ObjectMeta>> {
        let counts = self.counts.clone();
        let wait = async move {
            counts.wait().await;
            list
        };
        futures::stream::once(wait).flatten().boxed()
    }
}

impl fmt::Display for Slow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Slow")
    }
}

#[async_trait::async_trait]
impl ObjectStore for Slow {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        opts: PutOptions,
    ) -> object_store::Result<PutResult> {
        self.wait().await;
        self.inner.put_opts(location, payload, opts).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        opts: PutMultipartOptions,
    ) -> object_store::Result<Box<dyn MultipartUpload>> {
        self.wait().await;
        self.inner.put_multipart_opts(location, opts).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> object_store::Result<GetResult> {
        self.wait().await;
        self.inner.get_opts(location, options).await
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, object_store::Result<Path>>,
    ) -> BoxStream<'static, object_store::Result<Path>> {
        self.inner.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, object_store::Result<ObjectMeta>> {
        self.later(self.inner.list(prefix))
    }

    fn list_with_offset(
        &self,
        prefix: Option<&Path>,
        offset: &Path,
    ) -> BoxStream<'static, object_store::Result<ObjectMeta>> {
        self.later(self.inner.list_with_offset(prefix, offset))
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> object_store::Result<ListResult> {
        self.wait().await;
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> object_store::Result<()> {
        self.wait().await;
        self.inner.copy_opts(from, to, options).await
    }
}
