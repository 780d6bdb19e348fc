//! Plans that are carried out later.

use std::time::Instant;

use super::Migrator;
use super::run::Intent;
use crate::delta::location::Location;
use crate::error::{Error, ErrorCode, Stage};
use crate::model::kind::Kind;
use crate::model::plan::Plan;
use crate::model::report::TableReport;
use crate::model::saved_plan::SavedPlan;

impl Migrator {
    /// Carries out a plan, on the table that it was made for.
    ///
    /// # Errors
    /// `stale_plan` when the table's id, protocol, schema or configuration are no longer those that
    /// the plan was made for (appended rows do not matter); else as [`Migrator::migrate`].
    pub async fn apply(&self, plan: &Plan, location: &Location) -> Result<TableReport, Error> {
        self.apply_saved(&SavedPlan::of(plan, location.uri()), location).await
    }

    /// Carries out a plan that was read from a file. Its commits are worked out anew from the kinds.
    ///
    /// # Errors
    /// As [`Migrator::apply`].
    pub async fn apply_saved(&self, plan: &SavedPlan, location: &Location) -> Result<TableReport, Error> {
        self.apply_saved_to(self.kind(&plan.kind)?, plan, location).await
    }

    pub(crate) async fn apply_saved_to(
        &self,
        kind: &Kind,
        plan: &SavedPlan,
        location: &Location,
    ) -> Result<TableReport, Error> {
        self.check_namespace(plan)?;
        Ok(self.run_from(kind, location, Intent::saved(self.policy, plan), None).await?.report)
    }

    fn check_namespace(&self, plan: &SavedPlan) -> Result<(), Error> {
        if plan.namespace == self.namespace.as_str() {
            return Ok(());
        }
        let message = format!("the plan is for namespace `{}`, not `{}`", plan.namespace, self.namespace);
        Err(Error::new(ErrorCode::StalePlan, Stage::Plan, message)
            .with_hint("carry it out with the configuration that it was made with"))
    }

    /// What [`Migrator::apply_saved`] would do; writes nothing.
    ///
    /// # Errors
    /// As there.
    pub async fn check_saved(&self, plan: &SavedPlan, location: &Location) -> Result<TableReport, Error> {
        self.check_saved_for(self.kind(&plan.kind)?, plan, location).await
    }

    pub(crate) async fn check_saved_for(
        &self,
        kind: &Kind,
        plan: &SavedPlan,
        location: &Location,
    ) -> Result<TableReport, Error> {
        let started = Instant::now();
        self.check_namespace(plan)?;
        let made = self.plan_intent(kind, location, &Intent::saved(self.policy, plan)).await?;
        Ok(TableReport::of_plan(location.uri(), &made, kind.newest()).took(started.elapsed()))
    }
}
