//! Data steps: rows filled in, columns retyped, constraints proved, by DataFusion through deltalake.
//!
//! Nothing is committed here. deltalake works on a *stage* ([`stage`]), a log in memory that names some
//! of the table's files; what it would commit there is captured and becomes a part of our own commit,
//! once the files that it takes away are known to be there still. So an append of somebody else costs a
//! look at what was appended, and nothing that was done is done again.

mod active;
mod check;
pub(crate) mod function;
mod portion;
pub(crate) mod sql;
mod stage;

use std::collections::{HashMap, HashSet};

use self::active::{Active, ActiveFile, Key};
use self::portion::Portion;
use super::location::Location;
use crate::batch::watch::{self, Went};
use crate::error::{Error, ErrorCode, Stage};
use crate::model::data::{Actions, Counts, Next, Settings};
use crate::model::migration::Step;
use crate::model::plan::{DataWork, Plan, PlannedCommit, Rewrite};
use crate::model::state::TableState;
use crate::model::version::SchemaVersion;

/// With change data feed deltalake holds all that it changes in memory.
const MOST_WITH_CHANGE_DATA: u64 = 8 << 20;

/// The work on one table's files, over all the commits that it takes.
#[derive(Debug)]
pub(crate) struct Work {
    active: Active,
    settings: Settings,
    /// The migration whose step is under way.
    version: Option<SchemaVersion>,
    /// The protocol and the metadata that everything below was done for.
    fingerprint: Option<String>,
    /// Files whose rows were looked at for the whole chain: nothing of them will be refused.
    foreseen: HashSet<Key>,
    /// The same for the migration under way.
    looked_at: HashSet<Key>,
    /// How many rows each file that was looked at has to fill, by the migration that fills them.
    to_fill: HashMap<SchemaVersion, HashMap<Key, u64>>,
    /// Files that need nothing more: no row matches, or ours.
    clean: HashSet<Key>,
    /// What was done and is not committed yet.
    pending: Vec<Portion>,
    /// Whether everything that there was has been gone through.
    gone_through: bool,
    /// How often something new turned up after that.
    rounds: u32,
    counts: Counts,
    /// The functions of the migration that were run.
    ran: HashSet<String>,
    notes: Vec<String>,
}

impl Work {
    /// Loads the table and checks everything that can be refused before anything is written.
    ///
    /// # Errors
    /// `data_step`: rows that would never end matching, that do not cast, that break a constraint.
    pub(crate) async fn begin(
        location: &Location,
        plan: &Plan,
        state: &TableState,
        settings: Settings,
    ) -> Result<Self, Error> {
        let mut active = Active::new(location);
        let files = active.files_at(state.log_version).await?;
        let looked = check::before_anything(location, plan, state, &files, settings.values).await?;
        let to_fill = looked.to_fill.iter().map(|found| rows_to_fill(&files, found)).collect::<Vec<_>>();
        let foreseen = files.into_iter().map(|f| f.key);
        let updates = |data: &&DataWork| data.steps.iter().any(|s| matches!(s, Step::Update { .. }));
        let updates = plan.commits.iter().filter_map(|c| c.data.as_ref()).filter(updates).map(|d| d.version);
        Ok(Self {
            active,
            settings,
            version: None,
            fingerprint: None,
            foreseen: if looked.all { foreseen.collect() } else { HashSet::new() },
            to_fill: updates.zip(to_fill).collect(),
            looked_at: HashSet::new(),
            clean: HashSet::new(),
            pending: Vec::new(),
            gone_through: false,
            rounds: 0,
            counts: Counts::default(),
            ran: HashSet::new(),
            notes: Vec::new(),
        })
    }

    /// How often others added files after all had been gone through.
    pub(crate) fn rounds(&self) -> u32 {
        self.rounds
    }

    /// What was committed so far.
    pub(crate) fn counts(&self) -> Counts {
        self.counts
    }

    /// Forgets what does not hold for another migration, or for another schema and other properties.
    fn turn_to(&mut self, data: &DataWork, state: &TableState) {
        let (version, fingerprint) = (Some(data.version), Some(state.fingerprint()));
        let is_another = self.version != version;
        if !is_another && self.fingerprint == fingerprint {
            return;
        }
        if is_another {
            self.rounds = 0;
            self.ran.clear();
        } else {
            // Somebody else's change: a constraint of theirs, say, was not asked about.
            self.foreseen.clear();
            self.to_fill.clear();
        }
        (self.version, self.fingerprint) = (version, fingerprint);
        self.looked_at.clear();
        self.clean.clear();
        self.pending.clear();
        self.gone_through = false;
    }

    /// The files' part of the next commit, for the table as it is at `state`.
    pub(crate) async fn next(
        &mut self,
        location: &Location,
        plan: &Plan,
        planned: &PlannedCommit,
        data: &DataWork,
        state: &TableState,
    ) -> Result<Next, Error> {
        if self.settings.stop_before {
            let files = self.active.files_at(state.log_version).await?;
            return Err(interrupted(files.len()));
        }
        self.turn_to(data, state);
        if self.functions(location, plan, data).await? {
            return Ok(Next::Again);
        }
        let files = self.active.files_at(state.log_version).await?;
        let there: HashSet<&Key> = files.iter().map(|f| &f.key).collect();
        // What another writer took away meanwhile is done again, with what took its place.
        self.pending.retain(|p| p.removes.iter().all(|key| there.contains(key)));
        let taken: HashSet<&Key> = self.pending.iter().flat_map(|p| &p.removes).collect();
        let mut todo: Vec<&ActiveFile> =
            files.iter().filter(|f| !self.clean.contains(&f.key) && !taken.contains(&f.key)).collect();
        if self.gone_through && !todo.is_empty() {
            self.rounds += 1;
        }
        let fills = data.steps.iter().any(|s| matches!(s, Step::Update { .. }));
        let counted = self.to_fill.get(&data.version);
        // Whether a file has rows to fill is never guessed: one that was not counted is looked at.
        let is_new = |f: &&&ActiveFile| match fills {
            true => counted.is_none_or(|counted| !counted.contains_key(&f.key)),
            false => !self.foreseen.contains(&f.key) && !self.looked_at.contains(&f.key),
        };
        let new: Vec<&ActiveFile> = todo.iter().filter(is_new).copied().collect();
        if !new.is_empty() {
            let found = check::of_files(location, planned, state, &new, self.settings.values).await?;
            let found = new.iter().map(|f| (f.key.clone(), check::rows_in(f, &found)));
            self.to_fill.entry(data.version).or_default().extend(found);
            self.looked_at.extend(new.iter().map(|f| f.key.clone()));
        }
        let whole = data.steps.iter().any(|s| matches!(s, Step::RetypeColumns(_)));
        let most_in_a_commit = self.settings.most_in_a_commit;
        let most = match stage::has_change_data(state) {
            true => MOST_WITH_CHANGE_DATA.min(most_in_a_commit),
            false => most_in_a_commit,
        };
        let mut went = Went {
            of_files: todo.len() as u64,
            of_bytes: todo.iter().map(|f| f.bytes).sum(),
            ..Went::default()
        };
        while !todo.is_empty() {
            if watch::stop().is_some_and(|stop| stop.is_asked()) {
                // What was done is not lost: it lands, and the next run goes on behind it.
                if !whole && !self.pending.is_empty() {
                    return Ok(Next::Commit(self.actions(false)));
                }
                return Err(interrupted(todo.len()));
            }
            let waiting: u64 = self.pending.iter().map(|p| p.counts.bytes_removed).sum();
            if !whole && waiting >= most_in_a_commit {
                return Ok(Next::Commit(self.actions(false)));
            }
            let group = group(&mut todo, most);
            let to_fill = self.to_fill.get(&data.version);
            let done = portion::run(location, data, state, &group, to_fill, self.settings.streams).await?;
            let removed: HashSet<&Key> = done.removes.iter().collect();
            self.clean.extend(group.iter().filter(|f| !removed.contains(&f.key)).map(|f| f.key.clone()));
            tracing::info!(
                table = location.uri(),
                files = group.len(),
                left = todo.len(),
                rows = done.counts.rows_updated,
                bytes = done.counts.bytes_removed,
                "went through files"
            );
            went.files += group.len() as u64;
            went.bytes += group.iter().map(|f| f.bytes).sum::<u64>();
            went.rows += done.counts.rows_updated + done.counts.rows_copied;
            watch::went(went);
            if !done.lines.is_empty() {
                self.pending.push(done);
            }
        }
        self.gone_through = true;
        Ok(Next::Commit(self.actions(true)))
    }

    /// Runs the functions that did not run yet; whether any did.
    async fn functions(&mut self, location: &Location, plan: &Plan, data: &DataWork) -> Result<bool, Error> {
        let mut ran = false;
        for step in &data.steps {
            let Step::Run(function) = step else { continue };
            if self.ran.contains(&function.name) {
                continue;
            }
            let place = function::Place {
                location,
                namespace: plan.namespace.as_str(),
                kind: &plan.kind,
                version: data.version,
                stop: watch::stop(),
            };
            for _ in 0..self.settings.times {
                self.notes.extend(function::run(&place, function).await?);
            }
            self.ran.insert(function.name.clone());
            ran = true;
        }
        Ok(ran)
    }

    /// What functions noted since the last call.
    pub(crate) fn notes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notes)
    }

    /// The commit landed: what it added needs nothing more.
    pub(crate) fn landed(&mut self, with_files: bool) {
        if !with_files {
            return;
        }
        for done in std::mem::take(&mut self.pending) {
            self.counts.add(&done.counts);
            // What was made of rows that were looked at for the whole chain needs no look either.
            let looked = match done.removes.iter().all(|key| self.foreseen.contains(key)) {
                true => &mut self.foreseen,
                false => &mut self.looked_at,
            };
            looked.extend(done.adds.iter().cloned());
            self.clean.extend(done.adds);
        }
    }

    fn actions(&self, last: bool) -> Actions {
        let mut counts = Counts::default();
        self.pending.iter().for_each(|p| counts.add(&p.counts));
        Actions { lines: self.pending.iter().flat_map(|p| p.lines.clone()).collect(), last, counts }
    }
}

/// Every one of these files with its number of rows to fill, none of them left out.
fn rows_to_fill(files: &[ActiveFile], found: &check::ToFill) -> HashMap<Key, u64> {
    files.iter().map(|f| (f.key.clone(), check::rows_in(f, found))).collect()
}

/// Takes the next files, at least one.
fn group<'a>(todo: &mut Vec<&'a ActiveFile>, most: u64) -> Vec<&'a ActiveFile> {
    let mut size = 0;
    let mut out = Vec::new();
    while let Some(file) = todo.last() {
        size += file.bytes;
        if !out.is_empty() && size > most {
            break;
        }
        out.extend(todo.pop());
    }
    out
}

/// What the plan's data steps will read, at most.
pub(crate) async fn estimate(location: &Location, plan: &Plan) -> Result<Rewrite, Error> {
    let Some(version) = plan.log_version() else { return Ok(Rewrite::default()) };
    let files = Active::new(location).files_at(version).await?;
    Ok(check::estimate(&files))
}

fn interrupted(left: usize) -> Error {
    let left = crate::model::text::count(left, "file");
    Error::new(ErrorCode::Interrupted, Stage::Commit, format!("interrupted, with {left} still to go through"))
        .with_hint("run it again: it goes on with what is left")
}

/// A failure of deltalake or DataFusion in a data step.
fn failed(what: &str, cause: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::new(ErrorCode::DataStep, Stage::Commit, what.to_owned())
        .with_hint(
            "see the cause; what was not committed has changed nothing, and a rerun goes on from there",
        )
        .with_source(cause)
}
