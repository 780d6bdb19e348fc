//! Carries Delta tables through append-only chains of schema migrations, each table in one atomic
//! metadata commit, while others keep writing.
//!
//! A release that needs a new column has to reach tables that exist already, shared by jobs that
//! upgrade, and roll back, one at a time. Here the change is a *migration*: an entry in the chain of
//! the table's *kind*. Every table says in its own properties how many migrations it has had (the
//! *stamp*), every release knows how many there are, and a writer that opens a table through a
//! [`Migrator`] gets it at the newest version, or an [`Error`] that says why it must not write.
//!
//! - [Quick start](#quick-start)
//! - [Kinds and chains](#kinds-and-chains)
//! - [Opening a table in a sink](#opening-a-table-in-a-sink)
//! - [Before each batch](#before-each-batch)
//! - [Startup policies](#startup-policies)
//! - [Plans, and carrying them out later](#plans-and-carrying-them-out-later)
//! - [A schema and no versions](#a-schema-and-no-versions)
//! - [Tables of earlier releases](#tables-of-earlier-releases)
//! - [Errors](#errors)
//! - [Features of this crate](#features-of-this-crate)
//! - [deltalake's types](#deltalakes-types)
//! - [Invariants](#invariants)
//! - [Code map](#code-map)
//!
//! # Quick start
//!
//! A table that a first release creates, and that the next release brings up to date:
//!
//! ```
//! use delta_migrate::{Kind, Location, Migrator, Namespace};
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let chain = r#"
//!     kind = "facts"
//!     [columns]
//!     app_id   = { type = "string", nullable = false }
//!     batch_id = "long"
//! "#;
//! let location = Location::new("memory:///facts", Default::default())?;
//!
//! // Release 1.0 knows no migration. It creates the table and writes to it.
//! let first = Migrator::builder(Namespace::new("my_sink")?)
//!     .kind(Kind::from_toml(chain)?)
//!     .release("my-sink 1.0.0")
//!     .build()?;
//! let opened = first.open_at("facts", &location).await?;
//! assert_eq!(opened.report().outcome.as_str(), "created");
//! let mut old_writer = opened.into_table();
//!
//! // Release 1.1 appends a migration to the chain.
//! let longer = format!(r#"{chain}
//!     [[migrations]]
//!     description = "detail of an event row"
//!     add_columns = {{ detail = "string" }}
//! "#);
//! let second = Migrator::builder(Namespace::new("my_sink")?)
//!     .kind(Kind::from_toml(&longer)?)
//!     .release("my-sink 1.1.0")
//!     .build()?;
//! let opened = second.open_at("facts", &location).await?;
//! assert_eq!(opened.report().outcome.as_str(), "migrated");
//! assert!(opened.table().snapshot()?.schema().field("detail").is_some());
//!
//! // Release 1.0 may go on: the table is ahead of it, and its floor was not raised.
//! old_writer.update_incremental(None).await?;
//! let assessment = first.check("facts", &old_writer)?;
//! assert!(matches!(assessment, delta_migrate::Assessment::Ahead { .. }));
//! # Ok(())
//! # }
//! # tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap().block_on(example()).unwrap();
//! ```
//!
//! # Kinds and chains
//!
//! A [`Kind`] is a table type: a *base shape* (columns, partitioning and properties at version 0) and
//! an append-only *chain* of migrations. A migration's position, counted from 1, is its version; the
//! shape at a version is derived, so that what a new table looks like and what an old one becomes
//! can't differ. Once a migration has shipped it is never edited, moved or removed.
//!
//! A kind is read from a TOML file ([`Kind::from_toml`]; [`Kind::from_toml_file`] where errors are to
//! name the file) or built in Rust; both meet the same checks, and every mistake is reported, not the
//! first one:
//!
//! ```
//! use delta_migrate::{Kind, Migration};
//!
//! let built = Kind::builder("facts")
//!     .required_column("app_id", "string")
//!     .column("payload", "struct<lsn: binary, rows: long>")
//!     .migration(Migration::builder("warnings of a batch").add_column("payload.warnings", "array<string>"))
//!     .migration(Migration::builder("tenant").raises_min_version().add_column("tenant", "string"))
//!     .build()?;
//! assert_eq!(built.newest().get(), 2);
//!
//! let error = Kind::from_toml("kind = \"facts\"\n[columns]\nid = \"lnog\"\nday = \"datee\"").unwrap_err();
//! assert!(error.message().contains("3:") && error.message().contains("4:"), "{error}");
//! # Ok::<(), delta_migrate::Error>(())
//! ```
//!
//! Steps that are carried out: columns are added (nullable, at any depth), comments and the table's
//! description set, properties set and removed, required columns made nullable, table features enabled
//! (an explicit protocol upgrade), types widened, defaults set, constraints dropped, and columns renamed
//! and dropped under column mapping. All other steps of a kind file are refused when a plan is made
//! (`unsupported_step`), before anything is written.
//!
//! [`MigrationBuilder::raises_min_version`] is for a change after which rows of older releases would
//! be wrong: it raises the table's *floor* to the migration's version, and releases that know fewer
//! migrations are refused from then on.
//!
//! A table without a stamp is taken over as the kind's [`Adopt`] says, once it has the columns of
//! [`KindBuilder::identified_by`].
//!
//! # Opening a table in a sink
//!
//! - [`Migrator::open_or_create`] takes a path or URL and gives an [`Opened`]: a loaded
//!   [`DeltaTable`](deltalake::DeltaTable) and the [`TableReport`] of what was done to it.
//! - [`Migrator::open_at`] does the same with a [`Location`], for a store that the caller opened.
//! - [`Migrator::bring_up_to_date`] takes a table that is loaded already. If it is up to date, no
//!   request is made.
//! - [`Migrator::migrate`] brings a table up to date without loading it: protocol and metadata are
//!   read, the list of files is not. [`Migrator::status`] only looks.
//!
//! A table is handed out only if this release may write to it.
//!
//! # Before each batch
//!
//! [`Migrator::check`] compares a loaded table with its kind from memory: no request, no waiting. With
//! a snapshot that is refreshed for each batch, an old writer stops within one batch after the floor
//! was raised:
//!
//! ```
//! # use delta_migrate::{ErrorCode, Kind, Location, Migration, Migrator, Namespace};
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! # let namespace = || Namespace::new("my_sink");
//! # let kind = || Kind::builder("facts").column("app_id", "string");
//! # let location = Location::new("memory:///facts", Default::default())?;
//! # let old = Migrator::builder(namespace()?).kind(kind().build()?).build()?;
//! # let mut table = old.open_at("facts", &location).await?.into_table();
//! # let tenant = Migration::builder("tenant").raises_min_version().add_column("tenant", "string");
//! # let new = Migrator::builder(namespace()?).kind(kind().migration(tenant).build()?).build()?;
//! old.check("facts", &table)?;
//!
//! // Meanwhile a new release raises the floor.
//! new.open_at("facts", &location).await?;
//!
//! table.update_incremental(None).await?;
//! assert_eq!(old.check("facts", &table).unwrap_err().code(), ErrorCode::TooNew);
//! # Ok(())
//! # }
//! # tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap().block_on(example()).unwrap();
//! ```
//!
//! # Startup policies
//!
//! What opening a table may do to it is the [`StartupPolicy`] of the migrator:
//!
//! - [`ApplyMetadata`](StartupPolicy::ApplyMetadata), the default: metadata commits.
//! - [`StopAtFloor`](StartupPolicy::StopAtFloor): metadata commits up to, and not including, the
//!   first migration that would shut older releases out.
//! - [`VerifyOnly`](StartupPolicy::VerifyOnly): nothing is written; a table that does not fit is
//!   `behind`, `missing` or `unversioned`.
//! - [`ApplyAll`](StartupPolicy::ApplyAll): everything that the chain asks for, data steps too. The
//!   others refuse those as `rewrite_required`.
//!
//! # Plans, and carrying them out later
//!
//! [`Migrator::plan`] works out what would be done and what that means for readers and writers. A
//! [`Plan`] leaves no choices: what can be refused was refused when it was made.
//! [`Migrator::apply`] carries it out, or refuses it as `stale_plan` if the table's id, protocol,
//! schema or configuration changed meanwhile; appended rows do not matter. A [`PlanFile`] keeps plans
//! in a file; its commits are for people to read, and are worked out anew from the kinds.
//!
//! ```
//! use delta_migrate::{Kind, Location, Migrator, Mode, Namespace, PlanFile, SavedPlan, Target};
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let facts = Kind::builder("facts").column("app_id", "string").build()?;
//! let migrator = Migrator::builder(Namespace::new("my_sink")?).kind(facts).build()?;
//! let location = Location::new("memory:///facts", Default::default())?;
//!
//! let plan = migrator.plan("facts", &location, Target::Newest).await?;
//! assert_eq!(plan.mode(), Mode::Create);
//! let text = PlanFile::new(vec![SavedPlan::of(&plan, location.uri())]).to_json();
//!
//! let file = PlanFile::from_json(&text)?;
//! let report = migrator.apply_saved(&file.tables[0], &location).await?;
//! assert_eq!(report.outcome.as_str(), "created");
//! # Ok(())
//! # }
//! # tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap().block_on(example()).unwrap();
//! ```
//!
//! # A schema and no versions
//!
//! [`Migrator::reconcile`] gives a table the nullable columns that it lacks of a [`Desired`] shape: that
//! of an Arrow schema, or a kind's newest. It does nothing else, touches no stamp, and a second run
//! writes nothing; [`Migrator::diff`] only tells. [`KindBuilder::columns_from`] takes a schema as a base
//! shape, and [`Kind::assert_matches_newest`] is a test that fails, with the migration to append, when
//! the schema has grown beyond the chain.
//!
//! ```
//! use delta_migrate::deltalake::arrow::datatypes::{DataType, Field, Schema};
//! use delta_migrate::{Desired, Kind, Location, Migrator, Namespace};
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let first = Schema::new(vec![Field::new("app_id", DataType::Utf8, true)]);
//! let facts = Kind::builder("facts").columns_from(&first).build()?;
//! facts.assert_matches_newest(&first);
//! # let location = Location::new("memory:///facts", Default::default())?;
//! # Migrator::builder(Namespace::new("other")?).kind(facts.clone()).build()?.open_at("facts", &location).await?;
//!
//! // A table that has these columns, and a schema that has grown.
//! let grown = Schema::new(vec![
//!     Field::new("app_id", DataType::Utf8, true),
//!     Field::new("rows", DataType::Int64, true),
//! ]);
//! assert!(facts.matches_newest(&grown).unwrap_err().message().contains("rows = \"long\""));
//! let migrator = Migrator::builder(Namespace::new("my_sink")?).build()?;
//! let done = migrator.reconcile(&Desired::schema(&grown)?, &location).await?;
//! assert_eq!(done.changes().len(), 1);
//! # Ok(())
//! # }
//! # tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap().block_on(example()).unwrap();
//! ```
//!
//! # Tables of earlier releases
//!
//! The module [`compat`] writes a folder of tables for each release, to be kept, and checks that
//! today's kinds and code carry every one of them; it has a test to copy.
//!
//! # Errors
//!
//! There is one [`Error`]: a stable [`ErrorCode`], the [`Stage`], the table, one fact as its message,
//! the next step as its [`hint`](Error::hint), the cause as its source, and the log versions that were
//! [committed](Error::committed) before it.
//!
//! - A *refusal* ([`Error::is_refusal`]) is a decision, the same on every run until somebody changes
//!   something; the table is exactly as it was, but for what [`Error::committed`] says.
//! - A *failure* is not; where [`Error::is_retryable`], the same call may succeed the next time, and
//!   does nothing twice.
//!
//! # Features of this crate
//!
//! - `cli` (default): the command `delta-migrate`, and the module `cli`, with which a program builds
//!   the same command with kinds of its own. A sink takes `default-features = false`.
//! - `s3`, `azure`, `gcs`: tables in these stores; credentials from options or the environment.
//! - `glue`, `unity`: tables out of these catalogs.
//! - `datafusion` (default): data steps, which read and rewrite files. It makes a build several times as
//!   long; a sink that leaves such steps to a job does without, and refuses them by name.
//!
//! # deltalake's types
//!
//! Tables, log stores and Arrow schemas are those of one version of deltalake. It is re-exported: name
//! its types through this crate, and they fit, whatever else is in the program.
//!
//! ```
//! use delta_migrate::deltalake::{DeltaTable, arrow::datatypes::Schema};
//!
//! fn columns(opened: delta_migrate::Opened) -> Result<Vec<String>, Box<dyn std::error::Error>> {
//!     let table: DeltaTable = opened.into_table();
//!     Ok(table.snapshot()?.schema().fields().map(|field| field.name().clone()).collect())
//! }
//!
//! fn next(kind: &delta_migrate::Kind, schema: &Schema) -> Result<String, delta_migrate::Error> {
//!     Ok(kind.next_migration(schema)?.to_toml(Some("what the new columns are for")))
//! }
//! ```
//!
//! # Invariants
//!
//! 1. Nothing is written before everything that can be refused was checked.
//! 2. All pending migrations and all stamps are one commit: schema, version, floor, kind, digest and
//!    history change together, or none does. Only rows that are filled in take more: what they need
//!    lands before them, and no version is stamped before the log version after one at which none is
//!    left to fill. Columns that are added without a version touch no stamp.
//! 3. A commit is created at exactly the log version after the one that was read, and only where no
//!    entry stands. A lost race is read and planned again; an older plan is never replayed.
//! 4. A commit never happens merely to complete a stamp. A table that is up to date is not written to.
//! 5. No answer of a store but success is believed: after any other, the entry itself says whose it is.
//! 6. No file is ever deleted, no log entry is overwritten, no checkpoint is written. A file is taken out
//!    of a table only by a data step, in the commit that adds what took its place.
//! 7. A release never lowers a version or a floor; only a repair that a person asked for does. A
//!    column is removed, renamed or retyped only by a migration that says `destructive`.
//! 8. What a commit does not change in the table's metadata stays as it was, unknown keys included.
//! 9. A table with a table feature that is not handled is not written to. A protocol is upgraded only
//!    where a migration says so, and no feature is taken away.
//! 10. Work that began on one table never ends on another: its id is compared on every read, and the
//!     newest log entry is looked at again before and after the commit. Delta has no compare-and-swap
//!     on the id, so a table that is replaced between the last look and the commit is noticed
//!     afterwards (`identity_changed`), not prevented.
//! 11. The same kind and table state give the same plan: deciding knows no clock, no randomness, no I/O.
//! 12. This crate prints no storage options, and shows locations without credentials.
//!
//! # Code map
//!
//! Deciding (`model`) and doing (`delta`, `migrator`) live apart; `cli` alone prints.
//!
//! | module | |
//! |---|---|
//! | `error` | the error type and its codes |
//! | `deprecated` | what is still there for older programs |
//! | `migrator`, `migrator::run` | the public calls; the loop read → assess → plan → commit |
//! | `migrator::sink` | tables that a writer holds |
//! | `migrator::races`, `migrator::afterwards` | races that were lost; the look at a commit that landed |
//! | `batch` | many tables: sources to tasks, tasks to jobs, a few at a time, one report |
//! | `catalog` | where tables come from: a list, a walk, Glue, Unity |
//! | `retry` | the time budget, and the pauses after lost races |
//! | `model::version` | schema, min and log versions, namespaces |
//! | `model::types`, `model::path` | Delta's types and their text; column paths |
//! | `model::kind`, `model::migration` | kinds and migrations, their builders and checks; the shape at a version |
//! | `model::kind_file`, `model::toml_walk` | TOML to kinds, with the place of every mistake |
//! | `model::digest` | canonical bytes of what a chain does |
//! | `model::lockfile`, `model::finding` | what has shipped, and what became of it |
//! | `model::consequences` | what a release that does not know a migration would do |
//! | `model::state`, `model::history` | what a table says: metadata, stamps, its own record |
//! | `model::features` | table features: what each asks of a commit, refused, needed at birth |
//! | `model::mapping` | ids and physical names of new fields under column mapping |
//! | `model::assess` | kind and state give an assessment |
//! | `model::diff`, `model::reconcile` | in what two schemas differ; the plan that adds what a table lacks |
//! | `model::plan`, `model::refusal` | kind, state and target give a plan or a refusal; repairs |
//! | `model::evolve`, `model::schema_edit` | steps applied to the schema's own JSON and the properties |
//! | `model::entry`, `model::checksum` | a planned commit as the lines of a log entry; the checksum after it |
//! | `model::saved_plan` | plans in files; what makes one stale |
//! | `model::scaffold` | kind files and migrations written from tables and schemas that exist |
//! | `model::report`, `model::render`, `model::text` | reports for programs, text for people |
//! | `delta::location`, `delta::stores` | where a table lies, and its store; one client for many tables |
//! | `delta::read` | the log's newest protocol and metadata, without the list of files |
//! | `delta::snapshot` | the same from a loaded table, without a request |
//! | `delta::data` | data steps: deltalake and DataFusion on a stage in memory, what they do captured |
//! | `delta::commit` | one entry at one version, and what became of it |
//! | `delta::disk` | local disks: syncing a commit, and files that listings pass over |
//! | `delta::doctor` | what a store can and can't do |
//! | `delta::arrow_schema` | Arrow schemas as Delta's columns |
//! | `delta::timestamps`, `delta::checksum` | the in-commit timestamp before ours; the checksum file after |
//! | `delta::history` | the migrating commits that are left in a log |
//! | `compat` | the tables of a release, kept: written, and checked with today's code |
//! | `migrator::moments` | the clock, the pauses and the ids of commits |
//! | `cli` | arguments, configuration, printing, progress, exit codes |

mod batch;
pub mod catalog;
#[cfg(feature = "cli")]
pub mod cli;
pub mod compat;
mod delta;
mod deprecated;
mod error;
mod migrator;
mod model;
mod retry;

pub use batch::{Batch, Observer, Stop, Went};
#[cfg(feature = "datafusion")]
pub use delta::data::function::{StepContext, StepError};
pub use delta::doctor::{Check, CheckOutcome, Diagnosis, diagnose};
pub use delta::history::{HistoryReport, LoggedMigration};
pub use delta::location::Location;
pub use delta::stores::Stores;
#[allow(deprecated)]
pub use deprecated::{How, InvalidStamp};
pub use error::{Error, ErrorCode, Stage};
#[doc(hidden)]
pub use migrator::Moments;
pub use migrator::{IfMissing, Migrator, MigratorBuilder, Opened, Reconciled, StartupPolicy};
pub use model::assess::{Assessment, Difference, FoundKind};
pub use model::evolve::Change;
pub use model::kind::{Adopt, Kind, KindBuilder};
pub use model::migration::{Migration, MigrationBuilder};
pub use model::plan::{Mode, Plan, Repair, Rewrite, Target};
pub use model::reconcile::{Desired, DifferenceKind, SchemaDiff, SchemaDifference};
pub use model::report::{
    BatchReport, ErrorReport, MigrationReport, Outcome, SourceReport, Summary, TableReport,
};
pub use model::saved_plan::{PlanFile, SavedPlan};
pub use model::scaffold::NextMigration;
pub use model::version::{InvalidNamespace, LogVersion, MinVersion, Namespace, SchemaVersion};

/// The deltalake that this crate is built with, and whose tables and log stores it takes and gives.
#[doc(no_inline)]
pub use deltalake;
