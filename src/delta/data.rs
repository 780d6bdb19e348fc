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

use std::collections::HashSet;

use self::active::{Active, ActiveFile, Key};
use self::portion::Portion;
use super::location::Location;
use crate::batch::watch::{self, Went};
use crate::error::{Error, ErrorCode, Stage};
use crate::model::data::{Actions, Counts, Next, Values};
use crate::model::migration::Step;
use crate::model::plan::{DataWork, Plan, PlannedCommit, Rewrite};
use crate::model::state::TableState;
use crate::model::version::SchemaVersion;

/// How much is rewritten in one commit: what a crash can cost.
const MOST_IN_A_COMMIT: u64 = 1 << 30;

/// With change data feed deltalake holds all that it changes in memory.
const MOST_WITH_CHANGE_DATA: u64 = 32 << 20;

/// The work on one table's files, over all the commits that it takes.
#[derive(Debug)]
pub(crate) struct Work {
    active: Active,
    values: Values,
    /// The migration whose step is under way.
    version: Option<SchemaVersion>,
    /// Files whose rows were looked at: nothing of them will be refused.
    looked_at: HashSet<Key>,
    /// Whether that holds for the later migrations as well.
    all_looked_at: bool,
    /// Files that need nothing more: no row matches, or ours.
    clean: HashSet<Key>,
    /// What was done and is not committed yet.
    pending: Vec<Portion>,
    /// How often something new turned up after everything had been gone through.
    rounds: u32,
    counts: Counts,
    /// The functions of the migration that were run.
    ran: HashSet<String>,
    notes: Vec<String>,
    /// How often each is run.
    times: usize,
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
        values: Values,
    ) -> Result<Self, Error> {
        let mut active = Active::new(location);
        let files = active.files_at(state.log_version).await?;
        let all_looked_at = check::before_anything(location, plan, state, &files, values).await?;
        Ok(Self {
            active,
            values,
            version: None,
            looked_at: if all_looked_at {
                files.into_iter().map(|f| f.key).collect()
            } else {
                HashSet::new()
            },
            all_looked_at,
            clean: HashSet::new(),
            pending: Vec::new(),
            rounds: 0,
            counts: Counts::default(),
            ran: HashSet::new(),
            notes: Vec::new(),
            times: 1,
        })
    }

    /// Runs each function twice, as a crash might.
    pub(crate) fn twice(mut self) -> Self {
        self.times = 2;
        self
    }

    /// How often others added files after all had been gone through.
    pub(crate) fn rounds(&self) -> u32 {
        self.rounds
    }

    /// What was committed so far.
    pub(crate) fn counts(&self) -> Counts {
        self.counts
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
        if self.version != Some(data.version) {
            (self.version, self.rounds) = (Some(data.version), 0);
            self.clean.clear();
            self.pending.clear();
            self.ran.clear();
            if !self.all_looked_at {
                self.looked_at.clear();
            }
        }
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
        let begun = !self.clean.is_empty() || !self.pending.is_empty();
        if begun && !todo.is_empty() {
            self.rounds += 1;
        }
        let new: Vec<&ActiveFile> =
            todo.iter().filter(|f| !self.looked_at.contains(&f.key)).copied().collect();
        if !new.is_empty() {
            check::of_files(location, planned, state, &new, self.values).await?;
            self.looked_at.extend(new.iter().map(|f| f.key.clone()));
        }
        let whole = data.steps.iter().any(|s| matches!(s, Step::RetypeColumns(_)));
        let most = if stage::has_change_data(state) { MOST_WITH_CHANGE_DATA } else { MOST_IN_A_COMMIT };
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
            if !whole && waiting >= MOST_IN_A_COMMIT {
                return Ok(Next::Commit(self.actions(false)));
            }
            let group = group(&mut todo, most);
            let done = portion::run(location, data, state, &group).await?;
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
            for _ in 0..self.times {
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
            self.looked_at.extend(done.adds.iter().cloned());
            self.clean.extend(done.adds);
        }
    }

    fn actions(&self, last: bool) -> Actions {
        let mut counts = Counts::default();
        self.pending.iter().for_each(|p| counts.add(&p.counts));
        Actions { lines: self.pending.iter().flat_map(|p| p.lines.clone()).collect(), last, counts }
    }
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
    Ok(check::estimate(plan, &files))
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
