//! What a person decides about one table: baselines and repairs.

use super::Migrator;
use super::run::{Aim, Intent};
use crate::delta::location::Location;
use crate::error::Error;
use crate::model::kind::Kind;
use crate::model::plan::{Plan, Repair};
use crate::model::report::TableReport;
use crate::model::version::SchemaVersion;

impl Migrator {
    /// Stamps a table without a stamp at `at`, once its columns are known to fit that version.
    ///
    /// # Errors
    /// `unknown_shape` when they do not; the refusals of an assessment.
    pub async fn baseline(
        &self,
        kind: &str,
        location: &Location,
        at: SchemaVersion,
    ) -> Result<TableReport, Error> {
        Ok(self.run(kind, location, Intent::baseline(at)).await?.report)
    }

    /// Puts a table right by hand; `why`, at most 300 characters, goes into its history.
    ///
    /// # Errors
    /// Refused where the repair does not fit the table's state; see [`Repair`].
    pub async fn repair(
        &self,
        kind: &str,
        location: &Location,
        repair: Repair,
        why: &str,
    ) -> Result<TableReport, Error> {
        check_why(why)?;
        Ok(self.run(kind, location, Intent::repair(repair, why)).await?.report)
    }

    /// What [`Migrator::baseline`] would do.
    ///
    /// # Errors
    /// As there.
    pub async fn plan_baseline(
        &self,
        kind: &str,
        location: &Location,
        at: SchemaVersion,
    ) -> Result<Plan, Error> {
        self.plan_intent(self.kind(kind)?, location, &Intent::baseline(at)).await
    }

    /// What [`Migrator::repair`] would do.
    ///
    /// # Errors
    /// As there.
    pub async fn plan_repair(
        &self,
        kind: &str,
        location: &Location,
        repair: Repair,
        why: &str,
    ) -> Result<Plan, Error> {
        check_why(why)?;
        self.plan_intent(self.kind(kind)?, location, &Intent::repair(repair, why)).await
    }

    pub(super) async fn plan_intent(
        &self,
        kind: &Kind,
        location: &Location,
        intent: &Intent,
    ) -> Result<Plan, Error> {
        self.plan_aim(Aim::Kind(kind, intent), location).await
    }

    pub(super) async fn plan_aim(&self, aim: Aim<'_>, location: &Location) -> Result<Plan, Error> {
        let evidence = aim.evidence(&self.namespace);
        self.planned(evidence.as_deref(), location, None, |state| aim.plan(&self.namespace, state)).await
    }
}

fn check_why(why: &str) -> Result<(), Error> {
    let length = why.trim().chars().count();
    if (1..=300).contains(&length) && !why.chars().any(char::is_control) {
        return Ok(());
    }
    Err(Error::usage("`why` must be 1 to 300 characters on one line")
        .with_hint("say why the repair is needed"))
}
