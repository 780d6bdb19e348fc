//! The loop: read → assess → plan → commit until it landed, nothing is to be done, or the time is over.

use chrono::{DateTime, SecondsFormat, Utc};

use super::data::Work;
use super::races::Races;
use super::{IfMissing, MOST_REREADS, Migrator, StartupPolicy, afterwards, missing, moments, needs_the_log};
use crate::delta::checksum;
use crate::delta::commit::{CommitOutcome, REPLACED, commit, is_ours};
use crate::delta::disk;
use crate::delta::location::Location;
use crate::delta::read::{self, LogRead};
use crate::delta::timestamps;
use crate::error::{Error, ErrorCode, Stage};
use crate::model::assess::Assessment;
use crate::model::data::Next;
use crate::model::entry::{Moment, entry};
use crate::model::features::Duties;
use crate::model::history::How;
use crate::model::kind::Kind;
use crate::model::plan::{Mode, Plan, Repair, Target, plan, plan_baseline, plan_repair};
use crate::model::reconcile::{Desired, reconcile_plan};
use crate::model::refusal::Refusal;
use crate::model::report::{NOT_SYNCED, Outcome, TableReport};
use crate::model::saved_plan::SavedPlan;
use crate::model::state::{TableState, keys};
use crate::model::text;
use crate::model::version::{LogVersion, Namespace, SchemaVersion};
use crate::retry::Budget;

/// A commit's checksum file is not worth a longer wait.
const LONGEST_CHECKSUM: std::time::Duration = std::time::Duration::from_secs(10);

/// What a caller wants of a table.
#[derive(Debug, Clone)]
pub(super) struct Intent {
    wish: Wish,
    policy: StartupPolicy,
    if_missing: IfMissing,
    /// The id of the table that the caller holds already.
    id: Option<String>,
    /// Whether a refusal for data steps comes before they are begun.
    may_rewrite: bool,
}

#[derive(Debug, Clone)]
enum Wish {
    Reach(Target),
    Saved(Box<SavedPlan>),
    Baseline(SchemaVersion),
    Repair(Repair, String),
}

impl Intent {
    /// For a table that the caller holds loaded, under the id that it was loaded with.
    pub(super) fn held(policy: StartupPolicy, id: &str) -> Self {
        let id = Some(id.to_owned());
        Self { id, ..Self::migrate(policy, Target::Newest, IfMissing::Refuse) }
    }

    pub(super) fn migrate(policy: StartupPolicy, target: Target, if_missing: IfMissing) -> Self {
        let target = match (policy, target) {
            (StartupPolicy::StopAtFloor, Target::Newest) => Target::BelowFloor,
            (_, target) => target,
        };
        Self { wish: Wish::Reach(target), policy, if_missing, id: None, may_rewrite: policy.may_rewrite() }
    }

    /// A plan that says `create` was made by somebody who named location and kind.
    pub(super) fn saved(policy: StartupPolicy, plan: &SavedPlan) -> Self {
        Self {
            wish: Wish::Saved(Box::new(plan.clone())),
            ..Self::migrate(policy, Target::Newest, IfMissing::Create)
        }
    }

    /// What is left of it after a commit of its own changed the table that a saved plan was made for.
    fn further(&self, made: &Plan) -> Self {
        Self { wish: Wish::Reach(Target::Version(made.to())), if_missing: IfMissing::Refuse, ..self.clone() }
    }

    pub(super) fn baseline(at: SchemaVersion) -> Self {
        Self::by_hand(Wish::Baseline(at))
    }

    pub(super) fn repair(repair: Repair, why: &str) -> Self {
        Self::by_hand(Wish::Repair(repair, why.trim().to_owned()))
    }

    fn by_hand(wish: Wish) -> Self {
        let policy = StartupPolicy::default();
        Self { wish, policy, if_missing: IfMissing::Refuse, id: None, may_rewrite: false }
    }

    /// Decides for one state of the table.
    pub(super) fn plan(
        &self,
        namespace: &Namespace,
        kind: &Kind,
        state: Option<&TableState>,
    ) -> Result<Plan, Refusal> {
        let made = match &self.wish {
            Wish::Reach(target) => plan(namespace, kind, state, *target)?,
            Wish::Saved(saved) => {
                let made = saved.check(plan(namespace, kind, state, saved.target(kind.newest()))?)?;
                return self.allowed(made);
            }
            Wish::Baseline(at) => plan_baseline(namespace, kind, state, *at)?,
            Wish::Repair(repair, why) => plan_repair(namespace, kind, state, *repair, why)?,
        };
        if made.mode == Mode::Create && self.if_missing == IfMissing::Refuse {
            return Err(missing());
        }
        if self.policy == StartupPolicy::VerifyOnly && !made.is_empty() {
            return Err(unfit(&made));
        }
        self.allowed(made)
    }

    /// The plan, if the files may be touched that it touches.
    fn allowed(&self, made: Plan) -> Result<Plan, Refusal> {
        if made.moves_data() && !self.may_rewrite {
            return Err(rewrite_required(&made));
        }
        Ok(made)
    }
}

/// The refusal of work on files that nobody has allowed; nothing of the plan is done.
fn rewrite_required(made: &Plan) -> Refusal {
    let first = made.commits.iter().find_map(|c| c.data.as_ref());
    let (version, what, steps) = first.map_or_else(
        || (made.to(), String::new(), String::new()),
        |data| {
            let steps: Vec<&str> = data.steps.iter().map(crate::model::migration::Step::name).collect();
            (data.version, format!(" (`{}`)", data.description), text::list(&steps))
        },
    );
    let before = version.get().saturating_sub(1);
    let stop = match before > made.from().get() {
        true => format!("; `--target {before}` stops before it"),
        false => String::new(),
    };
    Refusal::new(
        ErrorCode::RewriteRequired,
        format!("migration {version}{what} reads or rewrites files ({steps}), and nobody allowed that"),
        format!(
            "run `delta-migrate apply --allow-rewrite` once, as a job of its own{stop}; nothing was written"
        ),
    )
}

/// The refusal of a sink that may only verify.
fn unfit(made: &Plan) -> Refusal {
    let hint = "the policy is to write nothing: run `delta-migrate apply` first";
    match made.mode {
        Mode::Create => Refusal::new(ErrorCode::Missing, "there is no table", hint),
        _ if matches!(made.assessment, Assessment::Unversioned) => {
            Refusal::new(ErrorCode::Unversioned, "the table has no stamp", hint)
        }
        _ => {
            let pending = made.to().get().saturating_sub(made.from().get());
            let what = text::count(pending as usize, "migration");
            Refusal::new(
                ErrorCode::Behind,
                format!("the table is at version {}: {what} of kind `{}` pending", made.from, made.kind),
                hint,
            )
        }
    }
}

/// The end of one table's work.
#[derive(Debug)]
pub(super) struct Done {
    pub(super) report: TableReport,
}

/// What is to be done with a table, and by what it is measured.
#[derive(Debug, Clone, Copy)]
pub(super) enum Aim<'a> {
    /// A kind's chain.
    Kind(&'a Kind, &'a Intent),
    /// Columns alone.
    Reconcile(&'a Desired, StartupPolicy),
}

impl Aim<'_> {
    /// Decides for one state of the table.
    pub(super) fn plan(self, namespace: &Namespace, state: Option<&TableState>) -> Result<Plan, Refusal> {
        match self {
            Self::Kind(kind, intent) => intent.plan(namespace, kind, state),
            Self::Reconcile(desired, policy) => {
                let made = reconcile_plan(namespace, desired, state)?;
                if policy == StartupPolicy::VerifyOnly && !made.is_empty() {
                    return Err(lacking(&made));
                }
                Ok(made)
            }
        }
    }

    fn kind(&self) -> Option<&Kind> {
        match self {
            Self::Kind(kind, _) => Some(kind),
            Self::Reconcile(desired, _) => desired.kind(),
        }
    }

    /// The application id to look for on a table without a stamp.
    pub(super) fn evidence(&self, namespace: &Namespace) -> Option<String> {
        self.kind().map(|kind| namespace.evidence_id(kind.name()))
    }

    /// The newest version that is known of the kind.
    pub(super) fn newest(&self) -> Option<SchemaVersion> {
        self.kind().map(Kind::newest)
    }

    /// The id of the table that the caller holds already.
    fn id(&self) -> Option<String> {
        match self {
            Self::Kind(_, intent) => intent.id.clone(),
            Self::Reconcile(..) => None,
        }
    }

    /// Whether the table's own record tells of the commit.
    pub(super) fn is_recorded(&self) -> bool {
        matches!(self, Self::Kind(..))
    }
}

/// The refusal of a program that may only verify.
fn lacking(made: &Plan) -> Refusal {
    Refusal::new(
        ErrorCode::Behind,
        format!("the table lacks {}", text::count(made.changes().count(), "column")),
        "the policy is to write nothing: run `delta-migrate reconcile` first",
    )
}

pub(super) async fn run(
    migrator: &Migrator,
    aim: Aim<'_>,
    location: &Location,
    read: Option<LogRead>,
) -> Result<Done, Error> {
    let mut landed = Landed::default();
    match carry(migrator, aim, location, read, &mut landed).await {
        Ok(done) => Ok(done),
        Err(error) => Err(landed.told_in(landed.late_in(error, migrator, location).await)),
    }
}

/// The commits of this call that landed.
#[derive(Debug, Default)]
struct Landed {
    versions: Vec<LogVersion>,
    /// Entries that lost, of which a request may be under way still, with their ids.
    late: Vec<(LogVersion, String)>,
    /// The report of the first plan, which is the one that somebody asked for.
    report: Option<TableReport>,
}

impl Landed {
    /// An error after work that landed says so.
    fn told_in(&self, error: Error) -> Error {
        let told: Vec<u64> = error.committed().to_vec();
        let new = self.versions.iter().map(|v| v.get()).filter(|v| !told.contains(v));
        let new: Vec<u64> = new.collect();
        let error = match error.hint() {
            Some(hint) if !new.is_empty() && hint.contains("nothing was written") => {
                let hint = hint.replace("nothing was written", "nothing more was written");
                error.with_hint(hint)
            }
            _ => error,
        };
        new.into_iter().fold(error, Error::with_committed)
    }

    /// An entry that lost, and landed when the one that had won was taken away, is another table's.
    async fn late_in(&self, error: Error, migrator: &Migrator, location: &Location) -> Error {
        for (version, id) in &self.late {
            let look = async { Ok(is_ours(location, *version, id).await) };
            if migrator.in_time(look).await.unwrap_or(false) {
                return changed().with_committed(version.get()).with_source(error);
            }
        }
        error
    }

    /// The report of all that was done, up to the commit of `made`.
    fn report(&mut self, now: TableReport, version: LogVersion, outcome: Outcome) -> &mut TableReport {
        self.versions.push(version);
        let report = self.report.get_or_insert(now);
        report.outcome = outcome;
        report.commits = u32::try_from(self.versions.len()).unwrap_or(u32::MAX);
        report.log_version = Some(version);
        report
    }
}

async fn carry(
    migrator: &Migrator,
    aim: Aim<'_>,
    location: &Location,
    read: Option<LogRead>,
    landed: &mut Landed,
) -> Result<Done, Error> {
    let evidence = aim.evidence(&migrator.namespace);
    let evidence = evidence.as_deref();
    let mut further: Option<Intent> = None;
    let mut budget = Budget::start(migrator.budget, migrator.moments.clone());
    let mut waits = budget.pauses();
    let mut races = Races::default();
    let mut work: Option<Work> = None;
    // The metadata that the rows were looked at for.
    let mut looked_at: Option<String> = None;
    let mut rereads = 0;
    let mut found = match read {
        Some(read) => Some(read),
        None => {
            let settled = |state: &TableState| {
                aim.plan(&migrator.namespace, Some(state)).is_ok_and(|made| made.is_empty())
            };
            migrator.read_unless_settled(location, evidence, &settled).await?
        }
    };
    let mut id = aim.id();
    loop {
        same_table(&mut id, found.as_ref())?;
        let state = found.as_ref().map(|f| &f.state);
        let aim = match (&further, aim) {
            (Some(intent), Aim::Kind(kind, _)) => Aim::Kind(kind, intent),
            (_, aim) => aim,
        };
        let made = aim.plan(&migrator.namespace, state);
        if needs_the_log(found.as_ref(), made.as_ref()) {
            found = migrator.read_for(location, evidence).await?;
            continue;
        }
        let made = match made {
            Ok(made) => made,
            // A log that was cleaned up meanwhile says things that no longer count.
            Err(refusal)
                if rereads < MOST_REREADS
                    && vanished(migrator, location, &refusal, found.as_ref()).await? =>
            {
                rereads += 1;
                found = migrator.read_for(location, evidence).await?;
                continue;
            }
            Err(refusal) => return Err(refusal.at(Stage::Plan)),
        };
        let mut report = TableReport::of_plan(location.uri(), &made, aim.newest());
        report.attempts = races.attempts();
        let Some(planned) = made.commits.first() else {
            return Ok(Done { report: landed.report.take().unwrap_or(report) });
        };
        if made.moves_data() {
            let Some(state) = state else { return Err(missing().at(Stage::Plan)) };
            // Everything that the rows can refuse, before the first byte is written; once more where somebody
            // changed what is asked of them meanwhile.
            let fingerprint = Some(state.fingerprint());
            if work.is_none() || (landed.versions.is_empty() && looked_at != fingerprint) {
                let began = migrator.moments.elapsed();
                work = Some(Work::begin(location, &made, state, migrator.data).await?);
                budget.leave_out(migrator.moments.elapsed().saturating_sub(began));
                looked_at = fingerprint;
            }
        }
        let data = match (&planned.data, work.as_mut(), state) {
            (Some(data), Some(work), Some(state)) => {
                // The budget is for races; rewriting takes as long as it takes.
                let began = migrator.moments.elapsed();
                let next = work.next(location, &made, planned, data, state).await?;
                budget.leave_out(migrator.moments.elapsed().saturating_sub(began));
                match next {
                    Next::Commit(actions) => Some(actions),
                    #[cfg(feature = "datafusion")]
                    Next::Again => {
                        found = migrator.read_for(location, evidence).await?;
                        // What a function of the author's own changed is no reason to run it again.
                        looked_at = found.as_ref().map(|f| f.state.fingerprint());
                        continue;
                    }
                }
            }
            _ => None,
        };
        races.note_rounds(work.as_ref().map_or(0, Work::rounds));
        // The entry that was read must still be there, or a gap or another table would be built upon.
        let Some(previous) = ready(migrator, location, found.as_ref()).await? else {
            races.lost(&budget, REPLACED)?;
            pause(&mut waits, &budget).await;
            found = migrator.read_for(location, evidence).await?;
            continue;
        };
        let version = state.map_or(LogVersion::new(0), |s| s.log_version.next());
        let moment = moment(migrator, migrator.moments.now(), previous);
        let bytes = entry(&made, planned, state, &moment, data.as_ref()).ok_or_else(|| {
            Error::new(ErrorCode::CorruptLog, Stage::Plan, "the metaData action can't be rewritten")
                .with_hint("nothing was written; please report this with the table's newest metaData action")
        })?;
        let tip = found.as_ref().map(|f| &f.tip);
        match commit(location, version, bytes.clone(), &moment.commit_id, tip, &budget).await? {
            CommitOutcome::Landed => {
                let stamped = data.as_ref().is_none_or(|data| data.last);
                let outcome = match planned.how {
                    How::Created => Outcome::Created,
                    How::Repaired => Outcome::Repaired,
                    How::Reconciled => Outcome::Reconciled,
                    How::Migrated | How::Adopted => Outcome::Migrated,
                };
                let columns = made.columns_after();
                let report = landed.report(report, version, outcome);
                report.attempts = races.attempts() + report.commits;
                report.columns = columns;
                if let Err(error) = disk::sync(location, version).await {
                    report.warnings.push(format!(
                        "{NOT_SYNCED}: the commit landed, but the disk did not confirm it ({error}), and a \
                         loss of power may undo it; check the disk, then run `status`"
                    ));
                }
                afterwards::check(migrator, aim, location, found.as_ref(), version, &bytes).await?;
                if let Some(work) = &mut work {
                    work.landed(data.is_some());
                    report.rewrite = Some(work.counts().into());
                    report.warnings.extend(work.notes());
                }
                // The files of a data step would have to be counted in it.
                let counted = data.as_ref().is_none_or(|data| data.lines.is_empty());
                if let Some(read) = found.as_ref().filter(|f| f.checksum && counted) {
                    let store = location.store();
                    let write = checksum::write(store.as_ref(), &read.state, &bytes);
                    if moments::timeout(migrator.moments.as_ref(), LONGEST_CHECKSUM, write).await.is_none() {
                        tracing::warn!(table = location.uri(), %version, "no answer about the checksum file");
                    }
                }
                if stamped && made.commits.len() == 1 {
                    return Ok(Done { report: report.clone() });
                }
                if let Aim::Kind(_, intent) = aim {
                    further = Some(intent.further(&made));
                }
                budget = Budget::start(migrator.budget, migrator.moments.clone());
                found = migrator.read_for(location, evidence).await?;
            }
            CommitOutcome::Lost { winner, pending } => {
                if pending {
                    landed.late.push((version, moment.commit_id.clone()));
                }
                races.lost(&budget, &winner)?;
                tracing::debug!(table = location.uri(), %version, winner, "lost a race");
                found = again(migrator, evidence, location, found, &budget, &mut waits).await?;
            }
        }
    }
}

/// Whether a refusal rests on an entry that is no longer in the log.
pub(super) async fn vanished(
    migrator: &Migrator,
    location: &Location,
    refusal: &Refusal,
    found: Option<&LogRead>,
) -> Result<bool, Error> {
    match found {
        Some(read) if refusal.code == ErrorCode::StampLost => Ok(!is_still(migrator, location, read).await?),
        _ => Ok(false),
    }
}

/// Reads on after a lost race: at once where only appends won, after a pause where metadata did.
async fn again(
    migrator: &Migrator,
    evidence: Option<&str>,
    location: &Location,
    found: Option<LogRead>,
    budget: &Budget,
    waits: &mut (impl Iterator<Item = std::time::Duration> + Send),
) -> Result<Option<LogRead>, Error> {
    let Some(read) = found else {
        pause(waits, budget).await;
        return migrator.read_for(location, evidence).await;
    };
    let stamp = migrator.namespace.property(keys::SCHEMA_VERSION);
    let stamped = move |c: &indexmap::IndexMap<String, String>| c.contains_key(&stamp);
    let store = location.store();
    let before = read.tip.clone();
    // Behind a checkpoint whose entry is gone, what comes next may be the leaving of a clean-up that has
    // gone on: only a listing tells.
    if !before.is_entry() {
        return migrator.read_for(location, evidence).await;
    }
    let (read, since) =
        migrator.patiently(|| read::read_on(store.as_ref(), read.clone(), evidence, &stamped)).await?;
    // What was read on belongs to the same log only if the entry before it is still the same.
    if !migrator.patiently(|| read::is_still(store.as_ref(), &before)).await? {
        pause(waits, budget).await;
        return migrator.read_for(location, evidence).await;
    }
    if since.metadata || since.protocol {
        pause(waits, budget).await;
    }
    Ok(Some(read))
}

async fn pause(waits: &mut impl Iterator<Item = std::time::Duration>, budget: &Budget) {
    budget.pause(waits.next().unwrap_or_default()).await;
}

/// The table that is worked on must stay the one that was read first.
fn same_table(id: &mut Option<String>, found: Option<&LogRead>) -> Result<(), Error> {
    match (id.as_ref(), found.map(|f| &f.state.metadata.id)) {
        (None, now) => {
            *id = now.cloned();
            Ok(())
        }
        (Some(was), Some(now)) if was == now => Ok(()),
        (Some(_), _) => Err(changed()),
    }
}

pub(super) fn changed() -> Error {
    Error::new(
        ErrorCode::IdentityChanged,
        Stage::Commit,
        "the table was dropped, or dropped and created again, while it was worked on",
    )
    .with_hint("run it again: it starts from what is there now")
}

/// Whether the newest entry is still the one that was read, and the in-commit timestamp in it where the
/// table asks for one. None where it is another one, or was cleaned up: then the table is to be read anew.
async fn ready(
    migrator: &Migrator,
    location: &Location,
    found: Option<&LogRead>,
) -> Result<Option<Option<i64>>, Error> {
    match found {
        Some(read) if !is_still(migrator, location, read).await? => Ok(None),
        found => timestamp(migrator, location, found).await,
    }
}

async fn is_still(migrator: &Migrator, location: &Location, read: &LogRead) -> Result<bool, Error> {
    let store = location.store();
    migrator.patiently(|| read::is_still(store.as_ref(), &read.tip)).await
}

/// The in-commit timestamp to stay above, where the table asks for one. None where the entry that has
/// it was taken away meanwhile: what is found then says nothing about the table.
pub(super) async fn timestamp(
    migrator: &Migrator,
    location: &Location,
    found: Option<&LogRead>,
) -> Result<Option<Option<i64>>, Error> {
    let Some(read) = found else { return Ok(Some(None)) };
    match migrator.in_time(previous_timestamp(location, &read.state)).await {
        Ok(previous) => Ok(Some(previous)),
        Err(error) if is_still(migrator, location, read).await? => Err(error),
        Err(_) => Ok(None),
    }
}

async fn previous_timestamp(location: &Location, state: &TableState) -> Result<Option<i64>, Error> {
    let duties = Duties::of(&state.protocol, &state.metadata.configuration);
    if !duties.in_commit_timestamp {
        return Ok(None);
    }
    let previous = timestamps::in_commit_timestamp(location.store().as_ref(), state.log_version).await?;
    if previous == i64::MAX {
        return Err(Error::new(
            ErrorCode::CorruptLog,
            Stage::Read,
            "no in-commit timestamp is above the last one",
        )
        .with_hint("repair the log with the engine that writes the table; nothing was changed"));
    }
    Ok(Some(previous))
}

fn moment(migrator: &Migrator, now: DateTime<Utc>, previous: Option<i64>) -> Moment {
    let millis = now.timestamp_millis();
    Moment {
        millis,
        in_commit_timestamp: previous.map_or(millis, |p| millis.max(p.saturating_add(1))),
        at: now.to_rfc3339_opts(SecondsFormat::Secs, true),
        commit_id: migrator.moments.id().to_string(),
        table_id: migrator.moments.id().to_string(),
        release: migrator.release.clone(),
    }
}

#[cfg(test)]
mod tests;
