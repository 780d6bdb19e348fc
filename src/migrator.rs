//! Read → assess → plan → commit, and again while races are lost.

mod afterwards;
mod builder;
mod by_hand;
mod data;
pub(crate) mod moments;
mod races;
mod reconcile;
mod run;
mod saved;
mod seen;
mod sink;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use deltalake::DeltaTable;

use crate::delta::disk;
use crate::delta::history::{HistoryReport, read_history};
use crate::delta::location::Location;
use crate::delta::read::fault::is_busy;
use crate::delta::read::{self, Found, LogRead, Settled};
use crate::error::{Error, ErrorCode, Stage};
use crate::model::data::Settings;
#[cfg(feature = "cli")]
use crate::model::data::Values;
use crate::model::kind::Kind;
use crate::model::plan::{Plan, Target, plan};
use crate::model::refusal::Refusal;
use crate::model::report::TableReport;
use crate::model::state::{TableState, keys};
use crate::model::text;
use crate::model::version::{Namespace, SchemaVersion};
use crate::retry::Budget;
pub use builder::MigratorBuilder;
pub use moments::Moments;
pub use reconcile::Reconciled;
use run::{Aim, Done, Intent};

/// What opening a table may do to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum StartupPolicy {
    /// Metadata commits, but no rewrite of data.
    #[default]
    ApplyMetadata,
    /// Metadata commits as far as no older release is shut out.
    StopAtFloor,
    /// Nothing is written; a table that does not fit is an error.
    VerifyOnly,
    /// Everything that the chain asks for.
    ApplyAll,
}

impl StartupPolicy {
    /// Whether files may be read and rewritten.
    pub(crate) fn may_rewrite(self) -> bool {
        self == Self::ApplyAll
    }
}

/// Carries tables through the chains of their kinds.
///
/// Made once per program and shared; see the [crate's guide](crate) for the whole picture.
///
/// # Examples
/// ```
/// use delta_migrate::{Kind, Migrator, Namespace};
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let facts = Kind::from_toml("kind = \"facts\"\n[columns]\napp_id = \"string\"")?;
/// let migrator = Migrator::builder(Namespace::new("my_sink")?).kind(facts).release("my-sink 1.4.0").build()?;
/// let opened = migrator.open_or_create("facts", "memory:///facts", Default::default()).await?;
/// assert_eq!(opened.report().outcome.as_str(), "created");
/// let table = opened.into_table();
/// migrator.check("facts", &table)?;
/// # Ok(())
/// # }
/// # tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap().block_on(example()).unwrap();
/// ```
pub struct Migrator {
    namespace: Namespace,
    kinds: BTreeMap<String, Kind>,
    release: String,
    policy: StartupPolicy,
    budget: Duration,
    moments: Arc<dyn Moments>,
    data: Settings,
    /// What loaded tables were found to be.
    seen: seen::Seen,
    /// Tables and versions that a warning was given for.
    warned: Mutex<BTreeSet<(String, SchemaVersion)>>,
}

/// A table whose version was checked and whose writers may go on, with what was done to it.
#[derive(Debug)]
pub struct Opened {
    table: DeltaTable,
    report: TableReport,
}

impl Opened {
    /// What was done; its `Display` is one line for a log.
    pub fn report(&self) -> &TableReport {
        &self.report
    }

    /// The loaded table.
    pub fn table(&self) -> &DeltaTable {
        &self.table
    }

    /// The loaded table, to be written to.
    pub fn into_table(self) -> DeltaTable {
        self.table
    }
}

/// Whether a missing table is created.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum IfMissing {
    /// It is refused as `missing`.
    #[default]
    Refuse,
    /// It is created at the target's shape.
    Create,
}

/// A budget for lost races may be shorter than one honest read.
const LEAST_READ: Duration = Duration::from_secs(10);

/// How often a plan is made anew because the newest entry vanished while it was made.
const MOST_REREADS: usize = 4;

impl Migrator {
    /// Begins the settings of a migrator for one namespace.
    pub fn builder(namespace: Namespace) -> MigratorBuilder {
        MigratorBuilder {
            namespace,
            kinds: Vec::new(),
            release: concat!("delta-migrate ", env!("CARGO_PKG_VERSION")).to_owned(),
            policy: StartupPolicy::default(),
            budget: Duration::from_secs(60),
            lock: None,
            moments: Arc::new(moments::Real),
            data: Settings::default(),
        }
    }

    /// The namespace.
    pub fn namespace(&self) -> &Namespace {
        &self.namespace
    }

    /// Who migrates.
    #[cfg(feature = "cli")]
    pub(crate) fn release(&self) -> &str {
        &self.release
    }

    /// The same migrator with another time budget.
    #[cfg(feature = "cli")]
    pub(crate) fn with_budget(mut self, budget: Duration) -> Self {
        self.budget = budget;
        self
    }

    /// The same migrator, which may read and rewrite files.
    #[cfg(feature = "cli")]
    pub(crate) fn allowed_to_rewrite(mut self, values: Values) -> Self {
        (self.policy, self.data.values) = (StartupPolicy::ApplyAll, values);
        self
    }

    /// A plan with what its data steps will read and rewrite, which takes the list of files.
    pub(crate) async fn estimated(&self, mut plan: Plan, location: &Location) -> Result<Plan, Error> {
        if plan.moves_data() {
            let estimate = data::estimate(location, &plan).await;
            plan.rewrite = Some(estimate.map_err(|e| e.with_table(location.uri()))?);
        }
        Ok(plan)
    }

    /// The same migrator, which rewrites files, and runs each function of a migration twice.
    pub(crate) fn for_a_test(mut self) -> Self {
        (self.policy, self.data.times) = (StartupPolicy::ApplyAll, 2);
        self
    }

    /// The same migrator, whose data steps write the same bytes however many cores there are; one that
    /// stops at the first of them is interrupted there.
    pub(crate) fn for_a_corpus(mut self, stop_before: bool) -> Self {
        (self.data.streams, self.data.stop_before) = (Some(1), stop_before);
        self
    }

    /// How many times a table that is ahead was warned of.
    pub(crate) fn warnings_given(&self) -> usize {
        self.warned.lock().map_or(0, |warned| warned.len())
    }

    /// The kinds' names in alphabetical order.
    pub fn kind_names(&self) -> impl Iterator<Item = &str> {
        self.kinds.keys().map(String::as_str)
    }

    /// The kinds, by name.
    #[cfg(feature = "cli")]
    pub(crate) fn kinds(&self) -> impl Iterator<Item = &Kind> {
        self.kinds.values()
    }

    /// A kind by its name.
    ///
    /// # Errors
    /// [`ErrorCode::Usage`]: there is none of that name; the message lists those that there are.
    pub fn kind(&self, name: &str) -> Result<&Kind, Error> {
        self.kinds.get(name).ok_or_else(|| {
            let names: Vec<&str> = self.kinds.keys().map(String::as_str).collect();
            Error::usage(format!("there is no kind `{name}`; there is {}", crate::model::text::list(&names)))
        })
    }

    /// How a table stands to its kind and what is pending; writes nothing.
    ///
    /// Reads protocol and metadata, never the list of files.
    ///
    /// # Errors
    /// As [`Migrator::plan`].
    pub async fn status(&self, kind: &str, location: &Location) -> Result<TableReport, Error> {
        let started = Instant::now();
        let made = self.plan_from(self.kind(kind)?, location, Target::Newest, None).await?;
        Ok(TableReport::of_plan(location.uri(), &made, self.kind(kind)?.newest()).took(started.elapsed()))
    }

    /// What would be done with a table; writes nothing.
    ///
    /// Where data steps are pending, the list of files is read as well, for [`Plan::rewrite`].
    ///
    /// # Errors
    /// Every refusal that applying the plan would meet, but for what only the rows can tell; and `storage`.
    pub async fn plan(&self, kind: &str, location: &Location, target: Target) -> Result<Plan, Error> {
        self.estimated(self.plan_from(self.kind(kind)?, location, target, None).await?, location).await
    }

    /// [`Migrator::plan`] on what was read already, if anything was.
    pub(crate) async fn plan_from(
        &self,
        kind: &Kind,
        location: &Location,
        target: Target,
        read: Option<LogRead>,
    ) -> Result<Plan, Error> {
        let evidence = self.namespace.evidence_id(kind.name());
        let make = |state: Option<&TableState>| plan(&self.namespace, kind, state, target);
        self.planned(Some(&evidence), location, read, make).await
    }

    /// A plan for the table as it is read, with what only another look at the log can refuse.
    async fn planned(
        &self,
        evidence: Option<&str>,
        location: &Location,
        read: Option<LogRead>,
        make: impl Fn(Option<&TableState>) -> Result<Plan, Refusal> + Send + Sync,
    ) -> Result<Plan, Error> {
        let settled = |state: &TableState| make(Some(state)).is_ok_and(|made| made.is_empty());
        let mut found = match read {
            Some(read) => Some(read),
            None => self.read_unless_settled(location, evidence, &settled).await?,
        };
        for _ in 0..MOST_REREADS {
            let made = make(found.as_ref().map(|f| &f.state));
            if needs_the_log(found.as_ref(), made.as_ref()) {
                found = self.read_for(location, evidence).await?;
                continue;
            }
            let made = match made {
                Ok(made) => made,
                Err(refusal) => {
                    let vanished = run::vanished(self, location, &refusal, found.as_ref()).await;
                    if vanished.map_err(|e| e.with_table(location.uri()))? {
                        found = self.read_for(location, evidence).await?;
                        continue;
                    }
                    return Err(refusal.at(Stage::Plan).with_table(location.uri()));
                }
            };
            if made.is_empty() {
                return Ok(made);
            }
            match run::timestamp(self, location, found.as_ref())
                .await
                .map_err(|e| e.with_table(location.uri()))?
            {
                Some(_) => return Ok(made),
                None => found = self.read_for(location, evidence).await?,
            }
        }
        Err(Error::new(
            ErrorCode::Storage,
            Stage::Read,
            "the newest log entry vanished each time that it was read",
        )
        .with_hint("the log is being cleaned up or replaced; run it again")
        .with_table(location.uri()))
    }

    /// Brings a table up to date without handing it out: reads protocol and metadata only.
    ///
    /// # Errors
    /// Every code of [`ErrorCode`]; a refusal leaves every byte as it was.
    ///
    /// # Examples
    /// ```
    /// use delta_migrate::{IfMissing, Kind, Location, Migrator, Namespace, Target};
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let facts = Kind::from_toml("kind = \"facts\"\n[columns]\napp_id = \"string\"")?;
    /// let migrator = Migrator::builder(Namespace::new("my_sink")?).kind(facts).build()?;
    /// let location = Location::new("memory:///facts", Default::default())?;
    /// let report = migrator.migrate("facts", &location, Target::Newest, IfMissing::Create).await?;
    /// assert_eq!(report.outcome.as_str(), "created");
    /// # Ok(())
    /// # }
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(example()).unwrap();
    /// ```
    pub async fn migrate(
        &self,
        kind: &str,
        location: &Location,
        target: Target,
        if_missing: IfMissing,
    ) -> Result<TableReport, Error> {
        self.migrate_from(self.kind(kind)?, location, target, if_missing, None).await
    }

    /// [`Migrator::migrate`] on what was read already, if anything was.
    pub(crate) async fn migrate_from(
        &self,
        kind: &Kind,
        location: &Location,
        target: Target,
        if_missing: IfMissing,
        read: Option<LogRead>,
    ) -> Result<TableReport, Error> {
        let intent = Intent::migrate(self.policy, target, if_missing);
        Ok(self.run_from(kind, location, intent, read).await?.report)
    }

    /// Who migrated a table when, from its log and from its own record.
    ///
    /// # Errors
    /// `missing`, `not_a_table`, `corrupt_log`, `storage`.
    pub async fn history(&self, location: &Location) -> Result<HistoryReport, Error> {
        location.check_is_folder()?;
        read_history(&self.namespace, location).await.map_err(|e| e.with_table(location.uri()))
    }

    /// Reads a table whose kind is not known yet. Of a table with a version stamp this is all that
    /// its kind's migrator reads; of any other the evidence of a stamp is not looked for.
    pub(crate) async fn read_of_any_kind(&self, location: &Location) -> Result<Option<LogRead>, Error> {
        let stamp = self.namespace.property(keys::KIND);
        let settled = |state: &TableState| {
            let kind = state.metadata.configuration.get(&stamp).and_then(|name| self.kinds.get(name));
            let made = kind.map(|kind| plan(&self.namespace, kind, Some(state), Target::Newest));
            made.is_some_and(|made| made.is_ok_and(|made| made.is_empty()))
        };
        self.read_unless_settled(location, None, &settled).await
    }

    /// Lazily: protocol, metadata, and the evidence where there is no stamp.
    async fn read_for(&self, location: &Location, evidence: Option<&str>) -> Result<Option<LogRead>, Error> {
        self.read_log(location, evidence, None).await
    }

    /// As [`Migrator::read_for`]; of a table that a checksum file calls `settled`, that alone.
    async fn read_unless_settled(
        &self,
        location: &Location,
        evidence: Option<&str>,
        settled: Settled<'_>,
    ) -> Result<Option<LogRead>, Error> {
        self.read_log(location, evidence, Some(settled)).await
    }

    async fn read_log(
        &self,
        location: &Location,
        evidence: Option<&str>,
        settled: Option<Settled<'_>>,
    ) -> Result<Option<LogRead>, Error> {
        location.check_is_folder()?;
        let stamp = self.namespace.property(keys::SCHEMA_VERSION);
        let stamped = move |c: &indexmap::IndexMap<String, String>| c.contains_key(&stamp);
        let store = location.store();
        let mut again = true;
        loop {
            let found =
                self.patiently(|| Box::pin(read::read(store.as_ref(), evidence, &stamped, settled))).await;
            let newest = match found {
                Ok(Found::Table(ref read)) => Some(read.state.log_version),
                Ok(Found::Nothing) => None,
                // A gap, or what looks like one.
                Err(ref error) if error.code() == ErrorCode::CorruptLog => None,
                Err(error) => return Err(error.with_table(location.uri())),
            };
            let has_newer =
                disk::has_newer(location, newest).await.map_err(|e| e.with_table(location.uri()))?;
            // A log that others write to has always something newer.
            if has_newer && std::mem::take(&mut again) {
                continue;
            }
            return match found.map_err(|e| e.with_table(location.uri()))? {
                Found::Table(read) => Ok(Some(read)),
                Found::Nothing => Ok(None),
            };
        }
    }

    /// A store that never answers must not hold up a sink's start, or the tables behind this one.
    async fn in_time<T>(&self, work: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        let limit = self.budget.max(LEAST_READ);
        moments::timeout(self.moments.as_ref(), limit, work).await.unwrap_or_else(|| {
            Err(Error::new(ErrorCode::Storage, Stage::Read, "the store did not answer in time")
                .with_hint("run it again, or give it more time"))
        })
    }

    /// As [`Migrator::in_time`]; a store that has no time is asked again while the budget lasts.
    async fn patiently<T, F>(&self, mut work: impl FnMut() -> F) -> Result<T, Error>
    where
        F: Future<Output = Result<T, Error>>,
    {
        let budget = Budget::start(self.budget, self.moments.clone());
        let (mut waits, mut attempts) = (budget.pauses(), 0);
        loop {
            attempts += 1;
            match self.in_time(work()).await {
                Err(error) if is_busy(&error) && budget.is_spent() => {
                    let (attempts, seconds) =
                        (text::count(attempts, "attempt"), budget.elapsed().as_secs_f64());
                    let message = format!("the store was too busy to answer: {attempts} in {seconds:.1} s");
                    return Err(Error::new(ErrorCode::Storage, Stage::Read, message)
                        .with_hint("run it again, or give it more time")
                        .with_source(error));
                }
                Err(error) if is_busy(&error) => tracing::debug!(%error, "the store is busy"),
                done => return done,
            }
            budget.pause(waits.next().unwrap_or_default()).await;
        }
    }

    async fn run(&self, kind: &str, location: &Location, intent: Intent) -> Result<Done, Error> {
        self.run_from(self.kind(kind)?, location, intent, None).await
    }

    async fn run_from(
        &self,
        kind: &Kind,
        location: &Location,
        intent: Intent,
        read: Option<LogRead>,
    ) -> Result<Done, Error> {
        self.run_aim(Aim::Kind(kind, &intent), location, read).await
    }

    async fn run_aim(&self, aim: Aim<'_>, location: &Location, read: Option<LogRead>) -> Result<Done, Error> {
        let started = Instant::now();
        // On the heap: what waits in it would take most of a small thread's stack.
        let done = Box::pin(run::run(self, aim, location, read)).await;
        let mut done = done.map_err(|e| e.with_table(location.uri()))?;
        done.report = done.report.took(started.elapsed());
        tracing::debug!(report = %done.report, "table done");
        Ok(done)
    }
}

/// Whether a checksum file alone says that something is to be written or refused.
fn needs_the_log(found: Option<&LogRead>, made: Result<&Plan, &Refusal>) -> bool {
    found.is_some_and(|read| read.is_shortcut) && made.map_or(true, |made| !made.is_empty())
}

impl fmt::Debug for Migrator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds: Vec<&String> = self.kinds.keys().collect();
        f.debug_struct("Migrator")
            .field("namespace", &self.namespace)
            .field("kinds", &kinds)
            .field("release", &self.release)
            .field("policy", &self.policy)
            .finish_non_exhaustive()
    }
}

/// The refusal of a missing table that nobody asked to create.
pub(crate) fn missing() -> Refusal {
    Refusal::new(
        ErrorCode::Missing,
        "there is no table",
        "check the location; a table is created only where its location and kind were given",
    )
}
