//! Tables that a writer opens and holds: brought up to date once, looked at before each batch.

use std::collections::HashMap;
use std::time::Instant;

use deltalake::DeltaTable;

use super::run::Intent;
use super::{IfMissing, Migrator, Opened};
use crate::delta::location::Location;
use crate::delta::snapshot::state_of;
use crate::error::{Error, ErrorCode, Stage};
use crate::model::assess::{Assessment, assess};
use crate::model::plan::{Target, plan};
use crate::model::report::TableReport;
use crate::model::version::LogVersion;

impl Migrator {
    /// Opens a table for a writer: brings it up to date, or creates it, as the policy allows.
    ///
    /// The table is loaded once. When nothing is pending, nothing but that load is read and nothing
    /// is written.
    ///
    /// # Errors
    /// Every code of [`ErrorCode`]; a refusal leaves every byte as it was, but for a commit of this call
    /// that [`Error::committed`] names.
    pub async fn open_or_create(
        &self,
        kind: &str,
        uri: impl AsRef<str>,
        options: HashMap<String, String>,
    ) -> Result<Opened, Error> {
        self.open_at(kind, &Location::new(uri, options)?).await
    }

    /// [`Migrator::open_or_create`] for a store that the caller has opened.
    ///
    /// # Errors
    /// As there.
    pub async fn open_at(&self, kind: &str, location: &Location) -> Result<Opened, Error> {
        let mut table = DeltaTable::new(location.log_store().clone());
        match table.load().await {
            Ok(()) => self.bring_up(kind, table, location).await,
            Err(cause) => {
                // What is wrong (or missing) is told by the log itself, not by the kernel's text.
                let started = Instant::now();
                let done = self
                    .run(kind, location, Intent::migrate(self.policy, Target::Newest, IfMissing::Create))
                    .await?;
                tracing::debug!(table = location.uri(), %cause, "the table could not be loaded at first");
                load(&mut table, &done.report).await?;
                self.opened(kind, table, done.report.took(started.elapsed()))
            }
        }
    }

    /// Brings an open, loaded table up to date; without any request when it is.
    ///
    /// # Errors
    /// Every code of [`ErrorCode`] but `missing`; a refusal leaves every byte as it was.
    pub async fn bring_up_to_date(&self, kind: &str, table: DeltaTable) -> Result<Opened, Error> {
        let location = Location::from_log_store(table.log_store());
        self.bring_up(kind, table, &location).await
    }

    async fn bring_up(
        &self,
        kind: &str,
        mut table: DeltaTable,
        location: &Location,
    ) -> Result<Opened, Error> {
        let started = Instant::now();
        let in_memory = self.assess_loaded(kind, &table)?;
        if matches!(in_memory, Assessment::Current { .. } | Assessment::Ahead { .. }) {
            let report = match self.seen.report(kind, &table) {
                Some(report) => report.again(location.uri(), table.version().map(LogVersion::new)),
                None => {
                    let state = state_of(&table).map_err(|e| e.with_table(location.uri()))?;
                    let made = plan(&self.namespace, self.kind(kind)?, Some(&state), Target::Newest)
                        .map_err(|r| r.at(Stage::Assess).with_table(location.uri()))?;
                    let report = TableReport::of_plan(location.uri(), &made, self.kind(kind)?.newest());
                    self.seen.keep(kind, &table, &in_memory, Some(&report));
                    report
                }
            };
            return self.opened(kind, table, report.took(started.elapsed()));
        }
        let id = state_of(&table).map(|s| s.metadata.id).map_err(|e| e.with_table(location.uri()))?;
        let done = self.run(kind, location, Intent::held(self.policy, &id)).await?;
        load(&mut table, &done.report).await?;
        self.opened(kind, table, done.report.took(started.elapsed()))
    }

    /// The last look at what is handed out: nobody gets a table that the floor forbids.
    fn opened(&self, kind: &str, table: DeltaTable, report: TableReport) -> Result<Opened, Error> {
        // Between our commit and this look a newer release may have raised it.
        self.check(kind, &table).map_err(|e| with_commit(e, &report))?;
        for warning in report.warnings.iter().filter(|_| report.commits > 0) {
            tracing::warn!(table = report.uri, kind, "{warning}");
        }
        Ok(Opened { table, report })
    }

    /// Whether a writer may go on with a loaded table, from memory alone: no request, no waiting.
    ///
    /// Called before each batch on a table whose snapshot is refreshed for it, it stops an old
    /// writer within one batch after the floor was raised. A table that a newer release migrated
    /// is fine as long as its floor allows this release; that is said once a version at WARN.
    ///
    /// # Errors
    /// The refusals of an assessment, `too_new` above all.
    pub fn check(&self, kind: &str, table: &DeltaTable) -> Result<Assessment, Error> {
        let assessment = self.assess_loaded(kind, table)?;
        if let Assessment::Ahead { table: version, known } = assessment {
            let uri = Location::from_log_store(table.log_store()).uri().to_owned();
            let first = self.warned.lock().is_ok_and(|mut w| w.insert((uri.clone(), version)));
            if first {
                tracing::warn!(
                    table = uri,
                    kind,
                    "the table is at version {version}, this release knows {known}: it goes on writing what it knows"
                );
            }
        }
        Ok(assessment)
    }

    fn assess_loaded(&self, kind: &str, table: &DeltaTable) -> Result<Assessment, Error> {
        let uri = || Location::from_log_store(table.log_store()).uri().to_owned();
        if let Some(assessment) = self.seen.find(kind, table) {
            return Ok(assessment);
        }
        let kind = self.kind(kind)?;
        let state = state_of(table).map_err(|e| e.with_table(uri()))?;
        let assessment = assess(&self.namespace, kind, Some(&state));
        match assessment.refusal() {
            // Only a table that has work to do is refused for its features; a writer may go on.
            Some(refusal) if refusal.code != ErrorCode::UnsupportedFeature => {
                Err(refusal.at(Stage::Assess).with_table(uri()))
            }
            _ => {
                self.seen.keep(kind.name(), table, &assessment, None);
                Ok(assessment)
            }
        }
    }
}

/// Loads a table, or what is new of it, after the work on it is done.
async fn load(table: &mut DeltaTable, report: &TableReport) -> Result<(), Error> {
    table.update_incremental(None).await.map_err(|e| {
        let (message, hint) = match report.commits {
            0 => (
                "the table can't be loaded",
                "delta-rs can't read a table that this program can; see the cause",
            ),
            _ => (
                "the table is up to date now, but can't be loaded",
                "run it again: nothing is left to migrate",
            ),
        };
        let error = Error::new(ErrorCode::Storage, Stage::Read, message)
            .with_hint(hint)
            .with_table(&report.uri)
            .with_source(e);
        with_commit(error, report)
    })
}

/// An error after work that is reported: it says what was committed.
fn with_commit(error: Error, report: &TableReport) -> Error {
    match report.log_version.filter(|_| report.commits > 0) {
        Some(version) => error.with_committed(version.get()),
        None => error,
    }
}
