//! Definition-driven use: a table gets the columns that a schema, or a kind's newest shape, has.

use super::Migrator;
#[cfg(feature = "cli")]
use super::StartupPolicy;
use super::run::Aim;
use crate::delta::location::Location;
use crate::error::{Error, Stage};
use crate::model::evolve::Change;
#[cfg(feature = "cli")]
use crate::model::plan::Plan;
use crate::model::reconcile::{Desired, SchemaDiff, missing, schema_diff};
use crate::model::report::TableReport;

/// What a reconciliation did.
#[derive(Debug, Clone)]
pub struct Reconciled {
    report: TableReport,
    diff: SchemaDiff,
}

impl Reconciled {
    /// The columns that were added, in their order; empty where nothing was written.
    pub fn changes(&self) -> &[Change] {
        &self.diff.adds
    }

    /// The same, and what else differs.
    pub fn diff(&self) -> &SchemaDiff {
        &self.diff
    }

    /// What was done; its `Display` is one line for a log.
    pub fn report(&self) -> &TableReport {
        &self.report
    }
}

impl Migrator {
    /// Compares a table with what it should be like; writes nothing.
    ///
    /// Reads protocol and metadata, never the list of files. What [`Migrator::reconcile`] would refuse is
    /// no error here, but the [`SchemaDiff::refusal`].
    ///
    /// # Errors
    /// - `missing`: there is no table.
    /// - `not_a_table`, `corrupt_log`, `storage`: it can't be read.
    ///
    /// # Examples
    /// ```
    /// use delta_migrate::deltalake::arrow::datatypes::{DataType, Field, Schema};
    /// use delta_migrate::{Desired, Kind, Location, Migrator, Namespace};
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// # let facts = Kind::builder("facts").column("app_id", "string").build()?;
    /// # let creator = Migrator::builder(Namespace::new("other")?).kind(facts).build()?;
    /// # let location = Location::new("memory:///facts", Default::default())?;
    /// # creator.open_at("facts", &location).await?;
    /// let migrator = Migrator::builder(Namespace::new("my_sink")?).build()?;
    /// let schema = Schema::new(vec![
    ///     Field::new("app_id", DataType::Utf8, true),
    ///     Field::new("rows", DataType::Int64, true),
    /// ]);
    /// let diff = migrator.diff(&Desired::schema(&schema)?, &location).await?;
    /// assert_eq!((diff.adds.len(), diff.left.len()), (1, 0));
    /// assert!(diff.refusal.is_none());
    /// # Ok(())
    /// # }
    /// # tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap().block_on(example()).unwrap();
    /// ```
    pub async fn diff(&self, desired: &Desired, location: &Location) -> Result<SchemaDiff, Error> {
        let evidence = Aim::Reconcile(desired, self.policy).evidence(&self.namespace);
        match self.read_for(location, evidence.as_deref()).await? {
            Some(read) => Ok(schema_diff(&self.namespace, desired, &read.state)),
            None => Err(missing().at(Stage::Read).with_table(location.uri())),
        }
    }

    /// Adds the columns that a table lacks: nullable ones, at any depth, in one commit. Nothing else is
    /// ever done: further columns stay, and types, nullability, names, comments, partitioning, properties
    /// and constraints that differ are [reported](SchemaDiff::left).
    ///
    /// A table that lacks nothing is not written to, so a second run does nothing. Stamps are neither
    /// written nor moved: a table that has versions keeps them, and one that has none gets none.
    ///
    /// A lost race is read and worked out again, with everything else that [`Migrator::migrate`] does for a
    /// commit.
    ///
    /// # Errors
    /// - `required_column`: the table lacks a column that is required; nothing is added then.
    /// - `not_this_kind`: the table is stamped by another kind, or by any where a schema is wanted.
    /// - `too_new`, `diverged`, `invalid_stamp`: as [`Migrator::migrate`].
    /// - `unsupported_feature`: the table's protocol asks for what is not handled, or lacks what a new
    ///   column's type needs; `invalid_name`, `type_conflict`: it can't take a column.
    /// - `missing`: there is no table; none is created.
    /// - `behind`: columns are missing, and the policy is [`VerifyOnly`](crate::StartupPolicy::VerifyOnly).
    /// - The failures of [`Migrator::migrate`].
    ///
    /// # Examples
    /// ```
    /// use delta_migrate::deltalake::arrow::datatypes::{DataType, Field, Schema};
    /// use delta_migrate::{Desired, Kind, Location, Migrator, Namespace};
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// # let facts = Kind::builder("facts").column("app_id", "string").build()?;
    /// # let creator = Migrator::builder(Namespace::new("other")?).kind(facts).build()?;
    /// # let location = Location::new("memory:///facts", Default::default())?;
    /// # creator.open_at("facts", &location).await?;
    /// let migrator = Migrator::builder(Namespace::new("my_sink")?).build()?;
    /// let schema = Schema::new(vec![
    ///     Field::new("app_id", DataType::Utf8, true),
    ///     Field::new("rows", DataType::Int64, true),
    /// ]);
    /// let desired = Desired::schema(&schema)?;
    /// let first = migrator.reconcile(&desired, &location).await?;
    /// assert_eq!(first.changes().len(), 1);
    /// let second = migrator.reconcile(&desired, &location).await?;
    /// assert!(second.changes().is_empty());
    /// assert_eq!(second.report().commits, 0);
    /// # Ok(())
    /// # }
    /// # tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap().block_on(example()).unwrap();
    /// ```
    pub async fn reconcile(&self, desired: &Desired, location: &Location) -> Result<Reconciled, Error> {
        let report = self.reconcile_reported(desired, location).await?;
        let diff = report.diff.clone().unwrap_or_default();
        Ok(Reconciled { report, diff })
    }

    pub(crate) async fn reconcile_reported(
        &self,
        desired: &Desired,
        location: &Location,
    ) -> Result<TableReport, Error> {
        Ok(self.run_aim(Aim::Reconcile(desired, self.policy), location, None).await?.report)
    }

    /// What [`Migrator::reconcile`] would do, whatever the policy. Such a plan is for looking at:
    /// [`Migrator::apply`] carries out chains.
    #[cfg(feature = "cli")]
    pub(crate) async fn plan_reconcile(&self, desired: &Desired, location: &Location) -> Result<Plan, Error> {
        self.plan_aim(Aim::Reconcile(desired, StartupPolicy::default()), location).await
    }
}
