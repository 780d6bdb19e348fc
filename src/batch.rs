//! A stream of tables, a few at a time, one report.

mod job;
mod stop;
mod tasks;
pub(crate) mod watch;

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use futures::stream::BoxStream;
use futures::{FutureExt as _, StreamExt as _};

use crate::catalog::Source;
use crate::delta::stores::Stores;
use crate::error::{Error, ErrorCode, Stage};
use crate::migrator::Migrator;
use crate::model::plan::Target;
use crate::model::report::{BatchReport, ErrorReport, Outcome, SourceReport, TableReport};
use crate::model::text;
#[cfg(feature = "cli")]
pub(crate) use job::stamped_kind_of;
pub(crate) use job::{Job, Opening};
pub use stop::Stop;
use tasks::{Kinds, Task, Tasks};
pub use watch::Went;

/// Brings every table of several sources up to date, and goes on where one fails.
///
/// Tables are worked on as they are found, a few at a time, each with a budget of its own, so that a
/// slow or broken one holds up no other. The same table found twice is done once. Running it again
/// continues where it stopped: a table that is up to date costs one read.
///
/// # Examples
/// ```
/// use std::sync::Arc;
/// use delta_migrate::catalog::Walk;
/// use delta_migrate::{Batch, Kind, Migrator, Namespace, Stores};
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let facts = Kind::from_toml("kind = \"facts\"\n[columns]\napp_id = \"string\"")?;
/// let migrator = Migrator::builder(Namespace::new("my_sink")?).kind(facts).build()?;
/// let stores = Arc::new(Stores::new(32));
/// let lake = Walk::new(stores.clone(), "fixtures/lake/tables", Default::default())?;
/// let report = Batch::new(Arc::new(migrator), stores).source(lake).status().await;
/// assert!(report.sources[0].tables > 0);
/// # Ok(())
/// # }
/// # tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap().block_on(example()).unwrap();
/// ```
pub struct Batch {
    migrator: Arc<Migrator>,
    stores: Arc<Stores>,
    sources: Vec<Box<dyn Source>>,
    kinds: Kinds,
    settings: Settings,
    stop: Stop,
    observer: Arc<dyn Observer>,
}

#[derive(Debug, Clone, Copy)]
struct Settings {
    concurrency: usize,
    fail_fast: bool,
    max_changed: Option<u32>,
    /// Ours, from 0, of how many.
    shard: (u32, u32),
}

impl fmt::Debug for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sources: Vec<String> = self.sources.iter().map(|source| source.name()).collect();
        f.debug_struct("Batch")
            .field("migrator", &self.migrator)
            .field("sources", &sources)
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

/// Somebody who watches a run; each call comes as it happens, from any thread.
pub trait Observer: Send + Sync {
    /// A table was found and will be worked on, or reported.
    fn found(&self) {}

    /// The work on a table begins.
    fn started(&self, _uri: &str) {}

    /// A table's last word; each table has one.
    fn finished(&self, _report: &TableReport) {}

    /// A data step came further.
    fn went_through(&self, _uri: &str, _went: Went) {}

    /// The work on a table ended, and it will be worked on once more, or has had its last word.
    fn ended(&self, _uri: &str) {}
}

struct Nobody;

impl Observer for Nobody {}

impl Batch {
    /// A run with a migrator's kinds over sources that are still to be named; 32 tables at a time.
    pub fn new(migrator: Arc<Migrator>, stores: Arc<Stores>) -> Self {
        Self {
            kinds: Kinds::of(&migrator),
            migrator,
            stores,
            sources: Vec::new(),
            settings: Settings { concurrency: 32, fail_fast: false, max_changed: None, shard: (0, 1) },
            stop: Stop::new(),
            observer: Arc::new(Nobody),
        }
    }

    /// Adds a source. Of a table that several sources give, the first one's rule counts.
    pub fn source(mut self, source: impl Source + 'static) -> Self {
        self.sources.push(Box::new(source));
        self
    }

    #[cfg(feature = "cli")]
    pub(crate) fn sources(mut self, sources: Vec<Box<dyn Source>>) -> Self {
        self.sources.extend(sources);
        self
    }

    /// How many tables are worked on at the same time; at least 1.
    pub fn concurrency(mut self, tables: u16) -> Self {
        self.settings.concurrency = usize::from(tables.max(1));
        self
    }

    /// Begins no other table once one was refused or failed.
    pub fn fail_fast(mut self) -> Self {
        self.settings.fail_fast = true;
        self
    }

    /// Looks at every table before the first write, and refuses the run where more than so many
    /// would be changed. Those that would are read twice.
    pub fn max_changed(mut self, tables: u32) -> Self {
        self.settings.max_changed = Some(tables);
        self
    }

    /// Takes only the tables of shard `index`, from 1, of `count`: a table belongs to the same shard
    /// in every run, as long as its location and `count` stay.
    ///
    /// # Errors
    /// [`ErrorCode::Usage`]: there is no such shard.
    pub fn shard(mut self, index: u32, count: u32) -> Result<Self, Error> {
        if index == 0 || index > count {
            return Err(Error::usage(format!("there is no shard {index} of {count}"))
                .with_hint("shards are numbered from 1: 1/4, 2/4, 3/4, 4/4"));
        }
        self.settings.shard = (index - 1, count);
        Ok(self)
    }

    /// Tells somebody what happens.
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.observer = observer;
        self
    }

    /// The way to end the run early: what was begun is finished, the rest is reported as skipped.
    pub fn stop(&self) -> Stop {
        self.stop.clone()
    }

    /// How every table stands to its kind; writes nothing.
    pub async fn status(&self) -> BatchReport {
        self.each("status", |job| async move { job.status(Target::Newest).await }).await
    }

    /// Brings every table up to date.
    ///
    /// A table that was named with its kind and does not exist is created; one that was found is
    /// adopted only where its kind has `identified_by`.
    pub async fn apply(&self) -> BatchReport {
        self.carry("apply", Target::Newest).await
    }

    pub(crate) async fn carry(&self, command: &'static str, target: Target) -> BatchReport {
        let Some(most) = self.settings.max_changed else {
            return self.each(command, |job| async move { job.migrate(target).await }).await;
        };
        let (found, sources) = self.find_changes(target).await;
        let is_pending = |report: &TableReport| report.outcome == Outcome::Planned;
        let pending = found.iter().filter(|(_, report)| is_pending(report)).count();
        if pending > most as usize {
            for (_, report) in found.iter().filter(|(_, r)| is_pending(r)) {
                self.observer.finished(report);
            }
            let mut report = BatchReport::new(command, sorted(found));
            report.sources = sources;
            report.error = Some(ErrorReport::of(&too_many(pending, most)));
            return report;
        }
        let (pending, mut done): (Vec<_>, Vec<_>) = found.into_iter().partition(|(_, r)| is_pending(r));
        let tasks = futures::stream::iter(pending.into_iter().map(|(task, _)| task)).boxed();
        done.extend(self.work(tasks, |_| true, |job| async move { job.migrate(target).await }).await);
        let mut report = BatchReport::new(command, sorted(done));
        report.sources = sources;
        report
    }

    /// What would be changed; only tables that would not have had their last word.
    async fn find_changes(&self, target: Target) -> (Vec<(Task, TableReport)>, Vec<SourceReport>) {
        let tasks = Tasks::new(self.settings.shard, &self.sources, self.stop.clone());
        let last_word = |report: &TableReport| report.outcome != Outcome::Planned;
        let found =
            self.work(self.watched(&tasks), last_word, |job| async move { job.status(target).await }).await;
        (found, tasks.reports())
    }

    /// Works on every table.
    pub(crate) async fn each<F, Fut>(&self, command: &'static str, work: F) -> BatchReport
    where
        F: Fn(Job) -> Fut,
        Fut: Future<Output = Result<TableReport, Error>>,
    {
        let tasks = Tasks::new(self.settings.shard, &self.sources, self.stop.clone());
        let done = self.work(self.watched(&tasks), |_| true, work).await;
        let mut report = BatchReport::new(command, sorted(done));
        report.sources = tasks.reports();
        report
    }

    /// Gives the observer a table's last word.
    #[cfg(feature = "cli")]
    pub(crate) fn tell(&self, report: &TableReport) {
        self.observer.found();
        self.observer.finished(report);
    }

    fn watched<'a>(&'a self, tasks: &'a Tasks<'_>) -> BoxStream<'a, Task> {
        tasks.stream().inspect(|_| self.observer.found()).boxed()
    }

    async fn work<F, Fut>(
        &self,
        tasks: BoxStream<'_, Task>,
        last_word: impl Fn(&TableReport) -> bool,
        work: F,
    ) -> Vec<(Task, TableReport)>
    where
        F: Fn(Job) -> Fut,
        Fut: Future<Output = Result<TableReport, Error>>,
    {
        let (work, last_word) = (&work, &last_word);
        tasks
            .map(|task| async move {
                let report = self.one(&task, work).await;
                if last_word(&report) {
                    self.observer.finished(&report);
                }
                self.observer.ended(&task.uri);
                if self.settings.fail_fast && matches!(report.outcome, Outcome::Refused | Outcome::Failed) {
                    self.stop.after_a_failure();
                }
                (task, report)
            })
            .buffer_unordered(self.settings.concurrency)
            .collect()
            .await
    }

    async fn one<F, Fut>(&self, task: &Task, work: &F) -> TableReport
    where
        F: Fn(Job) -> Fut,
        Fut: Future<Output = Result<TableReport, Error>>,
    {
        let kind = task.found.as_ref().ok().and_then(|f| f.kind.as_deref()).unwrap_or_default();
        let newest = self.migrator.kind(kind).ok().map(crate::model::kind::Kind::newest);
        if let Some(why) = self.stop.reason() {
            return TableReport::skipped(&task.uri, kind, newest, &why.error());
        }
        let found = match &task.found {
            Ok(found) => found,
            Err(report) => return TableReport::clone(report),
        };
        self.observer.started(&task.uri);
        let began = Instant::now();
        let worked = async {
            match Job::open(&self.migrator, &self.kinds, &self.stores, found).await {
                Ok(Opening::LeftOut { kind, reason }) => TableReport::left_out(&task.uri, &kind, reason),
                Ok(Opening::Job(job)) => {
                    let (kind, newest) = (job.kind.name().to_owned(), job.kind.newest());
                    let done = work(*job).await;
                    done.unwrap_or_else(|e| TableReport::of_error(&task.uri, &kind, Some(newest), &e))
                }
                Err(e) => TableReport::of_error(&task.uri, kind, newest, &e),
            }
        };
        // A dependency's panic is one table's failure, not the end of the run.
        let watch =
            watch::Watch { uri: task.uri.clone(), stop: self.stop.clone(), observer: self.observer.clone() };
        let worked = watch.over(std::panic::AssertUnwindSafe(worked).catch_unwind()).await;
        let report = worked.unwrap_or_else(|_| TableReport::of_error(&task.uri, kind, newest, &panicked()));
        tasks::compare_with_catalog(report.took(began.elapsed()), found)
    }
}

fn panicked() -> Error {
    Error::new(
        ErrorCode::OutcomeUnknown,
        Stage::Commit,
        "the work on the table was cut off by a panic in a library",
    )
    .with_hint("run it again: it finds out what landed; check the storage options, and please report this")
}

/// Those that were named in their order, those that were found by location, source after source.
fn sorted(mut done: Vec<(Task, TableReport)>) -> Vec<TableReport> {
    done.sort_by(|(a, _), (b, _)| a.place.cmp(&b.place).then_with(|| a.uri.cmp(&b.uri)));
    done.into_iter().map(|(_, report)| report).collect()
}

pub(crate) fn too_many(pending: usize, most: u32) -> Error {
    Error::new(
        ErrorCode::TooManyChanges,
        Stage::Plan,
        format!("{} would be changed, which is more than {most}", text::count(pending, "table")),
    )
    .with_hint(
        "nothing was written; look at them with `delta-migrate plan`, then allow more with --max-changed",
    )
}
