//! One table of a corpus, on a copy: looked at, carried, read, appended to, read again.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::generate::rows_of;
use super::manifest::TableEntry;
use super::moments::Fixed;
use super::rows::told;
use super::steps::{changed_values, runs_functions, through};
use super::table::Table;
use super::{Finding, files};
use crate::error::Error;
use crate::migrator::{IfMissing, Migrator};
use crate::model::kind::Kind;
use crate::model::plan::Target;
use crate::model::report::TableReport;
use crate::model::state::keys;
use crate::model::version::{Namespace, SchemaVersion};

/// Rows of today's writers are numbered from here, so that they differ from the release's.
pub(super) const TODAY: u32 = 500;

/// Carries the tables of one corpus.
pub(super) struct Carrier<'a> {
    corpus: &'a Path,
    label: &'a str,
    pub(super) namespace: &'a Namespace,
    scratch: &'a Path,
    pub(super) older_releases: usize,
    pub(super) findings: Vec<Finding>,
}

/// A copy of a table, under work.
pub(super) struct Copy<'c> {
    pub(super) kind: &'c Kind,
    pub(super) table: Table,
    /// What it is called in findings.
    pub(super) place: String,
    pub(super) moments: Fixed,
    /// The rows that it must have.
    pub(super) rows: Vec<Value>,
    /// Columns whose old values a migration has just changed on purpose.
    changed: Vec<String>,
}

impl<'a> Carrier<'a> {
    pub(super) fn new(corpus: &'a Path, label: &'a str, namespace: &'a Namespace, scratch: &'a Path) -> Self {
        Self { corpus, label, namespace, scratch, older_releases: 0, findings: Vec::new() }
    }

    pub(super) fn tell(
        &mut self,
        place: &str,
        found: impl Into<String>,
        wanted: impl Into<String>,
        hint: &str,
    ) {
        self.findings.push(Finding::new(place, found, wanted, hint));
    }

    /// Notes an error of a step that had to succeed; none where it did not.
    pub(super) fn sound<T>(&mut self, place: &str, wanted: &str, step: Result<T, Error>) -> Option<T> {
        step.map_err(|e| self.findings.push(Finding::of_error(place, wanted, &e))).ok()
    }

    pub(super) fn migrator(&self, kind: &Kind, known: SchemaVersion) -> Result<Migrator, Error> {
        let release = "delta-migrate compat check";
        let built =
            Migrator::builder(self.namespace.clone()).kind(kind.clone().cut_at(known)).release(release);
        Ok(built.build()?.for_a_test())
    }

    /// Everything that one table must stand.
    pub(super) async fn table(&mut self, kind: &Kind, entry: &TableEntry) -> Result<(), Error> {
        let table = Table::new(self.scratch, &entry.path);
        files::copy(&self.corpus.join(&entry.path), &table.folder)?;
        let text = files::read_text(&self.corpus.join(rows_of(entry)))?;
        let rows = serde_json::from_str(&text)
            .map_err(|e| Error::usage(format!("`{}` holds no rows", rows_of(entry))).with_source(e))?;
        let mut copy = Copy {
            kind,
            place: format!("{}/{}", self.label, entry.path),
            moments: Fixed::new(format!("{} checked", entry.path)),
            rows,
            changed: Vec::new(),
            table,
        };
        let migrator = self.migrator(kind, kind.newest())?;
        let is_stamped = copy.table.log()?.property(&self.namespace.property(keys::SCHEMA_VERSION)).is_some();
        let pending = !is_stamped || entry.version.is_some_and(|v| v < kind.newest().get());
        let wanted = match entry.outcome.as_str() {
            "refused" => entry.code.clone().unwrap_or_default(),
            _ if pending => "planned".to_owned(),
            _ => "current".to_owned(),
        };
        if !self.looks(&migrator, &copy, entry, &wanted).await? {
            return Ok(());
        }
        self.same_rows(&copy, "as the release left them").await?;
        if entry.outcome == "refused" {
            return self.stays(&migrator, &copy, &wanted).await;
        }
        if !self.carried(&migrator, &copy, entry, pending).await? {
            return Ok(());
        }
        let (from, newest) = (entry.version.unwrap_or_default(), kind.newest().get());
        copy.rows.iter_mut().for_each(|row| *row = through(kind, from, newest, row));
        copy.changed = changed_values(kind, from);
        let by_hand = runs_functions(kind, from);
        if !by_hand {
            self.same_rows(&copy, "after it was carried").await?;
        }
        if by_hand || !std::mem::take(&mut copy.changed).is_empty() {
            // What data steps made of the values stays from here on.
            copy.rows = copy.table.rows().await?;
        }
        self.append(&mut copy, TODAY, None)?;
        self.same_rows(&copy, "after today's writer appended").await?;
        self.older(&mut copy).await?;
        self.same_rows(&copy, "after older releases appended").await?;
        self.stays(&migrator, &copy, "current").await
    }

    /// What `status` says of the copy.
    async fn looks(
        &mut self,
        migrator: &Migrator,
        copy: &Copy<'_>,
        entry: &TableEntry,
        wanted: &str,
    ) -> Result<bool, Error> {
        let report = said(migrator.status(copy.kind.name(), &copy.table.location()?).await, copy);
        let found = word(&report);
        if found != wanted {
            let hint = "a table that a release left is one that every later one understands";
            self.tell(&copy.place, format!("status `{found}`{}", why(&report)), format!("`{wanted}`"), hint);
            return Ok(false);
        }
        let from = report.from.map(SchemaVersion::get);
        if report.error.is_none() && from != entry.version {
            let number =
                |v: Option<u32>| v.map_or_else(|| "no version".to_owned(), |v| format!("version {v}"));
            let hint = "stamps that a release wrote mean the same for every later one";
            self.tell(&copy.place, number(from), number(entry.version), hint);
            return Ok(false);
        }
        Ok(true)
    }

    /// Carries the copy to the newest version: one commit, or none; as many as were planned where data
    /// is moved.
    async fn carried(
        &mut self,
        migrator: &Migrator,
        copy: &Copy<'_>,
        entry: &TableEntry,
        pending: bool,
    ) -> Result<bool, Error> {
        let before = hashes(&copy.table)?;
        let location = copy.table.location()?;
        let planned = migrator.plan(copy.kind.name(), &location, Target::Newest).await;
        let Some(planned) = self.sound(&copy.place, "a plan to the newest version", planned) else {
            return Ok(false);
        };
        let done = migrator.migrate(copy.kind.name(), &location, Target::Newest, IfMissing::Refuse).await;
        let Some(report) = self.sound(&copy.place, "to be carried to the newest version", done) else {
            return Ok(false);
        };
        let newest = copy.kind.newest();
        let log = copy.table.log()?;
        let (mut commits, mut hint) =
            (u64::from(pending), "all pending migrations are one commit, and no other file is touched");
        if planned.moves_data() {
            commits = planned.commits.len() as u64;
            hint = "a data step takes the commits that were planned, and no file that was there is touched";
        }
        // A function of the author's own commits what it likes.
        let by_hand = runs_functions(copy.kind, entry.version.unwrap_or_default());
        let version = log.version.unwrap_or_default();
        let end = entry.log_version + commits;
        if u64::from(report.commits) != commits || version < end || (version != end && !by_hand) {
            let found = format!("{} commits, log version {version}", report.commits);
            let wanted = format!("{commits} commits, log version {end}");
            self.tell(&copy.place, found, wanted, hint);
        }
        let mut new: BTreeSet<PathBuf> =
            (entry.log_version + 1..=version).map(|v| copy.table.entry(v)).collect();
        if planned.moves_data() {
            new.extend(log.named.iter().map(|path| copy.table.folder.join(path)));
        }
        for path in changed_files(&before, &hashes(&copy.table)?, &new) {
            self.tell(&copy.place, format!("`{path}` changed"), "nothing but what its commits name", hint);
        }
        let key = |name: &str| self.namespace.property(name);
        let stamp = log.property(&key(keys::SCHEMA_VERSION));
        let floor = log.property(&key(keys::MIN_VERSION)).and_then(|f| f.parse::<u32>().ok());
        let asked = copy.kind.floor_at(newest).map(|f| f.get());
        let hint = "the stamp is the newest version, the floor the greater of the table's and the chain's";
        if stamp.as_deref() != Some(newest.to_string().as_str()) {
            self.tell(&copy.place, format!("stamp {stamp:?}"), format!("stamp {newest}"), hint);
        }
        if pending && floor.unwrap_or_default() != asked.max(entry.min_version).unwrap_or_default() {
            self.tell(
                &copy.place,
                format!("floor {floor:?}"),
                format!("{:?}", asked.max(entry.min_version)),
                hint,
            );
        }
        Ok(true)
    }

    /// A table that is up to date, or refused, keeps every byte.
    async fn stays(&mut self, migrator: &Migrator, copy: &Copy<'_>, wanted: &str) -> Result<(), Error> {
        let before = hashes(&copy.table)?;
        let location = copy.table.location()?;
        let done = migrator.migrate(copy.kind.name(), &location, Target::Newest, IfMissing::Refuse).await;
        let report = said(done, copy);
        let found = word(&report);
        if found != wanted {
            let hint = "what `apply` says of a table is what `status` says";
            self.tell(
                &copy.place,
                format!("apply says `{found}`{}", why(&report)),
                format!("`{wanted}`"),
                hint,
            );
        }
        if hashes(&copy.table)? != before {
            let hint = "a table that is up to date, or refused, is not written to";
            self.tell(&copy.place, "files that changed", "every byte as it was", hint);
        }
        Ok(())
    }

    /// Appends a row as a writer does that knows these columns.
    pub(super) fn append(
        &mut self,
        copy: &mut Copy<'_>,
        number: u32,
        known: Option<&super::columns::Known>,
    ) -> Result<(), Error> {
        let row = copy.table.append(number, known, &copy.moments)?;
        copy.rows.extend(row);
        Ok(())
    }

    /// Reads every row and compares it with what it must be.
    pub(super) async fn same_rows(&mut self, copy: &Copy<'_>, when: &str) -> Result<(), Error> {
        let Some(found) = self.sound(&copy.place, "rows that can be read", copy.table.rows().await) else {
            return Ok(());
        };
        let columns = copy.table.log()?.columns()?;
        let (found, wanted) =
            (told(&columns, &found, &copy.changed), told(&columns, &copy.rows, &copy.changed));
        if found == wanted {
            return Ok(());
        }
        let hint = "old values stay, what came later reads NULL, and no row is lost or there twice";
        let only = |of: &[String], other: &[String]| {
            let only = of.iter().find(|row| !other.contains(row)).map(|row| format!(", among them {row}"));
            format!("{} rows{}", of.len(), only.unwrap_or_default())
        };
        self.tell(&copy.place, format!("{when}: {}", only(&found, &wanted)), only(&wanted, &found), hint);
        Ok(())
    }
}

fn said(report: Result<TableReport, Error>, copy: &Copy<'_>) -> TableReport {
    let newest = Some(copy.kind.newest());
    report.unwrap_or_else(|e| TableReport::of_error(&copy.table.name, copy.kind.name(), newest, &e))
}

/// The outcome, or the code of the refusal.
fn word(report: &TableReport) -> String {
    report.error.as_ref().map_or(report.outcome.as_str(), |e| e.code).to_owned()
}

fn why(report: &TableReport) -> String {
    report.error.as_ref().map(|e| format!(" ({})", e.message)).unwrap_or_default()
}

/// Every file of the table with its hash.
pub(super) fn hashes(table: &Table) -> Result<BTreeMap<PathBuf, String>, Error> {
    let files = files::below(&table.folder)?.into_values();
    files.map(|path| Ok((path.clone(), files::sha256(&files::read(&path)?)))).collect()
}

fn changed_files(
    before: &BTreeMap<PathBuf, String>,
    after: &BTreeMap<PathBuf, String>,
    new: &BTreeSet<PathBuf>,
) -> Vec<String> {
    let is_new = |path: &PathBuf| !before.contains_key(path) && !new.contains(path);
    let gone = before.iter().filter(|(path, hash)| after.get(*path) != Some(hash)).map(|(path, _)| path);
    let paths = gone.chain(after.keys().filter(|path| is_new(path)));
    paths.map(|path| path.file_name().unwrap_or_default().to_string_lossy().into_owned()).collect()
}
