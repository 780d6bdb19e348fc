//! What a release says of its tables: the documents that programs keep and read.

use std::path::Path;
use std::sync::Arc;

use chrono::SecondsFormat;
use serde::Serialize;

use super::files::{self, Scratch};
use super::generate::{Maker, check_outcome};
use super::manifest::{PlanEnd, PlanEntry, TableEntry};
use super::moments::Fixed;
use super::table::Table;
use crate::delta::history::WithCommand;
use crate::error::Error;
use crate::migrator::{IfMissing, Migrator, Moments as _};
use crate::model::kind::{Adopt, Kind};
use crate::model::plan::Target;
use crate::model::report::{BatchReport, Event, Outcome, TableReport};
use crate::model::saved_plan::{PlanFile, SavedPlan, WithPlans};
use crate::model::version::SchemaVersion;

/// The folder of the documents.
pub(super) const SAID: &str = "said";
/// The saved plans.
pub(super) const PLAN_FILE: &str = "said/plan_file.json";
/// The table that there is not.
const MISSING: &str = "missing";

/// Collects the documents as the tables are looked at.
pub(super) struct Said<'a> {
    maker: Maker<'a>,
    tables: Vec<(String, Table)>,
    status: Vec<TableReport>,
    plan: Vec<TableReport>,
    pub(super) plans: Vec<SavedPlan>,
}

impl<'a> Said<'a> {
    pub(super) fn new(maker: Maker<'a>) -> Self {
        Self { maker, tables: Vec::new(), status: Vec::new(), plan: Vec::new(), plans: Vec::new() }
    }

    /// Looks at a table as the release that knows the whole chain does.
    pub(super) async fn look(
        &mut self,
        kind: &Kind,
        table: &Table,
        story: &str,
        rows: usize,
        ends: &mut Vec<PlanEntry>,
    ) -> Result<TableEntry, Error> {
        let report = self.report(kind, table).await?;
        let name = table.name.rsplit('/').next().unwrap_or_default();
        let wanted: &[&str] = match name {
            "too_new" | "stamp_lost" | "drifted" => &[name],
            "unstamped" if kind.adopt() == Adopt::Refuse => &["unversioned"],
            "unstamped" => &["planned", "unknown_shape"],
            _ => &["planned", "current"],
        };
        check_outcome(&table.name, &report, wanted)?;
        if !ends.iter().any(|plan| plan.table == table.name) {
            ends.extend(in_chain(&report).map(|ends| PlanEntry { table: table.name.clone(), ends }));
        }
        let log = table.log()?;
        let floor = log.property(&self.maker.namespace.property(crate::model::state::keys::MIN_VERSION));
        self.tables.push((kind.name().to_owned(), table.clone()));
        Ok(TableEntry {
            path: table.name.clone(),
            kind: kind.name().to_owned(),
            story: story.to_owned(),
            outcome: report.outcome.as_str().to_owned(),
            code: report.error.as_ref().map(|e| e.code.to_owned()),
            version: report.from.map(SchemaVersion::get),
            min_version: floor.and_then(|f| f.parse().ok()),
            log_version: log.version.unwrap_or_default(),
            rows,
        })
    }

    pub(super) async fn look_at_missing(
        &mut self,
        kind: &Kind,
        ends: &mut Vec<PlanEntry>,
    ) -> Result<(), Error> {
        let table = self.maker.table(kind, MISSING);
        let report = self.report(kind, &table).await?;
        ends.extend(in_chain(&report).map(|ends| PlanEntry { table: table.name.clone(), ends }));
        self.tables.push((kind.name().to_owned(), table));
        Ok(())
    }

    async fn report(&mut self, kind: &Kind, table: &Table) -> Result<TableReport, Error> {
        let moments = Arc::new(Fixed::new(format!("{} looked at", table.name)));
        let migrator = self.maker.migrator(kind, kind.newest(), &moments)?;
        let location = table.location()?;
        let status = settled(kind, table, migrator.status(kind.name(), &location).await);
        let plan = migrator.plan(kind.name(), &location, Target::Newest).await;
        let has_plan = self.plans.iter().any(|p| p.uri == table.name);
        if let Some(plan) = plan.as_ref().ok().filter(|_| !has_plan) {
            self.plans.push(SavedPlan::of(plan, location.uri()));
        }
        let plan = plan.map(|p| TableReport::of_plan(location.uri(), &p, kind.newest()));
        self.plan.push(settled(kind, table, plan));
        self.status.push(status.clone());
        Ok(status)
    }

    /// Writes everything, with what `apply` would say: that is done on copies.
    pub(super) async fn write(self, kinds: &[Kind]) -> Result<(), Error> {
        let folder = self.maker.root.join(SAID);
        let older = self.older(kinds).await?;
        let (applied, events) = self.apply(kinds).await?;
        let history = self.history(kinds).await?;
        let Self { status, plan, plans, .. } = self;
        let plan = BatchReport::new("plan", plan);
        put(&folder.join("status.json"), &BatchReport::new("status", status))?;
        put(&folder.join("status_older_release.json"), &BatchReport::new("status", older))?;
        put(&folder.join("plan.json"), &WithPlans { report: &plan, plans: &plans })?;
        put(&folder.join("apply.json"), &BatchReport::new("apply", applied))?;
        files::write(&folder.join("events.jsonl"), events.as_bytes())?;
        files::write(&folder.join("history.jsonl"), history.as_bytes())?;
        files::write(&self.maker.root.join(PLAN_FILE), (PlanFile::new(plans).to_json() + "\n").as_bytes())
    }

    /// What a release says that lacks the newest migration of each kind.
    async fn older(&self, kinds: &[Kind]) -> Result<Vec<TableReport>, Error> {
        let mut reports = Vec::new();
        for (kind, table) in self.of(kinds) {
            let Some(known) = kind.newest().get().checked_sub(1) else { continue };
            let known = SchemaVersion::new(known);
            let moments = Arc::new(Fixed::new(format!("{} looked at", table.name)));
            let migrator = self.maker.migrator(kind, known, &moments)?;
            let report = migrator.status(kind.name(), &table.location()?).await;
            reports.push(settled(&kind.clone().cut_at(known), table, report));
        }
        Ok(reports)
    }

    async fn apply(&self, kinds: &[Kind]) -> Result<(Vec<TableReport>, String), Error> {
        let scratch = Scratch::new()?;
        let (mut reports, mut events) = (Vec::new(), String::new());
        for (kind, table) in self.of(kinds) {
            let copy = Table::new(scratch.path(), &table.name);
            if table.folder.exists() {
                files::copy(&table.folder, &copy.folder)?;
            }
            let moments = Arc::new(Fixed::new(format!("{} applied", table.name)));
            let migrator = self.maker.migrator(kind, kind.newest(), &moments)?;
            let location = copy.location()?;
            let done = migrator.migrate(kind.name(), &location, Target::Newest, IfMissing::Create).await;
            let report = settled(kind, table, done);
            let at = moments.now().to_rfc3339_opts(SecondsFormat::Millis, true);
            let event = Event { at, command: "apply", report: &report };
            events += &line(&event);
            reports.push(report);
        }
        Ok((reports, events))
    }

    async fn history(&self, kinds: &[Kind]) -> Result<String, Error> {
        let mut lines = String::new();
        for (kind, table) in self.of(kinds).filter(|(_, t)| t.folder.exists()) {
            let migrator =
                Migrator::builder(self.maker.namespace.clone()).kind(kind.clone()).build()?.for_a_test();
            let history = migrator.history(&table.location()?).await?;
            lines += &line(&WithCommand { command: "history", history });
        }
        Ok(lines)
    }

    fn of<'s>(&'s self, kinds: &'s [Kind]) -> impl Iterator<Item = (&'s Kind, &'s Table)> {
        self.tables.iter().filter_map(|(name, table)| Some((kinds.iter().find(|k| k.name() == name)?, table)))
    }
}

/// How a plan that was saved for a table in this state must end.
pub(super) fn in_chain(report: &TableReport) -> Option<PlanEnd> {
    match report.outcome {
        Outcome::Planned => Some(PlanEnd::Applies),
        Outcome::Current => Some(PlanEnd::Done),
        _ => None,
    }
}

/// The report without what differs from run to run.
fn settled(kind: &Kind, table: &Table, report: Result<TableReport, Error>) -> TableReport {
    let report =
        report.unwrap_or_else(|e| TableReport::of_error(&table.name, kind.name(), Some(kind.newest()), &e));
    TableReport { elapsed_ms: 0, ..report }
}

fn line(document: &impl Serialize) -> String {
    serde_json::to_string(document).unwrap_or_default() + "\n"
}

fn put(file: &Path, document: &impl Serialize) -> Result<(), Error> {
    files::write(file, (serde_json::to_string_pretty(document).unwrap_or_default() + "\n").as_bytes())
}
