//! The bucket as it really is, what was ever written into it, and who did it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use chrono::{DateTime, Utc};
use object_store::ObjectMeta;
use object_store::path::Path;

use super::chance::Chance;
use super::counts::Counts;
use super::invariants;
use super::log::{self, State};
use super::oracle;
use super::run::{Landing, Run};
use super::scenario::{Chain, Op, Scenario};
use super::schedule::Schedule;

/// Where the table lies in the bucket.
pub(super) const TABLE: &str = "t";

#[derive(Clone)]
pub(super) struct Object {
    pub(super) bytes: Bytes,
    tag: u64,
    modified: DateTime<Utc>,
}

/// Who wrote something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Who {
    /// Another program.
    Stranger,
    /// A run of a migrator, by its place in [`World::runs`].
    Run(usize),
}

pub(super) struct World {
    pub(super) scenario: Arc<Scenario>,
    pub(super) objects: BTreeMap<String, Object>,
    pub(super) schedule: Schedule,
    /// The table that stands there now.
    pub(super) state: Option<Arc<State>>,
    /// One state after the other; none where no table stood.
    pub(super) timeline: Vec<Option<Arc<State>>>,
    /// Where in the timeline the log was cleaned up.
    pub(super) clean_ups: Vec<usize>,
    /// The step at which the table was last dropped.
    pub(super) replaced: Option<u64>,
    /// Why the table can't be judged any more: a commit that was made for its predecessor.
    pub(super) spoilt: Option<String>,
    pub(super) runs: Vec<Run>,
    /// The files of the table, by what its writers were told.
    pub(super) rows: BTreeSet<String>,
    /// What was written into each checkpoint.
    pub(super) checkpoints: BTreeMap<String, Arc<State>>,
    pub(super) violations: Vec<String>,
    /// Whether nothing is judged.
    pub(super) learning: bool,
    pub(super) counts: Counts,
    tables: u64,
    names: u64,
    ids: Chance,
}

impl World {
    pub(super) fn new(scenario: Arc<Scenario>, tracing: bool) -> Self {
        let mut world = Self {
            objects: BTreeMap::new(),
            schedule: Schedule::new(&scenario, tracing),
            state: None,
            timeline: vec![None],
            clean_ups: Vec::new(),
            replaced: None,
            spoilt: None,
            runs: Vec::new(),
            rows: BTreeSet::new(),
            checkpoints: BTreeMap::new(),
            violations: Vec::new(),
            learning: false,
            counts: Counts::default(),
            tables: 0,
            names: 0,
            ids: Chance::new(scenario.seed ^ 0x1d5),
            scenario: scenario.clone(),
        };
        if scenario.start.table {
            world.create();
            for op in &scenario.start.ops {
                world.stranger(*op);
            }
        }
        world
    }

    pub(super) fn violation(&mut self, what: impl Into<String>) {
        let what = what.into();
        self.schedule.note(|| format!("VIOLATION {what}"));
        self.violations.push(what);
    }

    pub(super) fn id(&mut self) -> u128 {
        (u128::from(self.ids.next()) << 64) | u128::from(self.ids.next())
    }

    pub(super) fn now(&self, skew: i64) -> DateTime<Utc> {
        DateTime::from_timestamp_millis(self.schedule.clock + skew).unwrap()
    }

    /// A name that nothing else has.
    pub(super) fn name(&mut self) -> String {
        self.names += 1;
        format!("s-{}", self.names)
    }

    pub(super) fn assess(&self, known: u32, chain: Chain) -> &'static str {
        oracle::assess(self.state.as_deref(), known, chain)
    }

    pub(super) fn meta(&self, path: &str) -> Option<ObjectMeta> {
        let object = self.objects.get(path)?;
        Some(ObjectMeta {
            location: Path::from(path),
            last_modified: object.modified,
            size: object.bytes.len() as u64,
            e_tag: Some(object.tag.to_string()),
            version: None,
        })
    }

    /// Puts an object, whatever stood there.
    pub(super) fn write(&mut self, path: String, bytes: Bytes) {
        let tag = self.ids.next();
        let modified = self.now(0);
        self.objects.insert(path, Object { bytes, tag, modified });
    }

    /// A put that succeeds only where nothing stands; whether it did.
    pub(super) fn create_object(&mut self, path: &str, bytes: &Bytes, who: Who) -> bool {
        if self.objects.contains_key(path) {
            return false;
        }
        self.write(path.to_owned(), bytes.clone());
        if let Some(version) = entry_version(path) {
            self.landed(version, bytes, who);
        } else if matches!(who, Who::Run(_)) {
            invariants::side_file(self, path, bytes);
        }
        true
    }

    /// A log entry stands where none stood.
    fn landed(&mut self, version: u64, bytes: &Bytes, who: Who) {
        let actions = log::parse(bytes);
        let next = match &self.state {
            None if version == 0 => {
                self.tables += 1;
                Some(State::first(self.tables, &actions))
            }
            Some(state) if version == state.version + 1 => Some(state.with(version, &actions)),
            _ => None,
        };
        if let Who::Run(run) = who
            && !self.learning
        {
            invariants::landed(self, run, version, bytes, &actions, next.as_ref());
        }
        if let Some(next) = next {
            self.stands(Some(next));
        }
    }

    /// The place of the run that an actor is in.
    pub(super) fn current_run(&self, actor: usize) -> Option<usize> {
        self.runs.iter().rposition(|run| run.actor == actor && run.ended.is_none())
    }

    fn stands(&mut self, state: Option<State>) {
        self.state = state.map(Arc::new);
        self.timeline.push(self.state.clone());
    }

    /// Commits actions of another program at the end of the log.
    pub(super) fn commit(&mut self, actions: &[serde_json::Value]) {
        let version = self.state.as_ref().map_or(0, |s| s.version + 1);
        let lines: Vec<String> = actions.iter().map(ToString::to_string).collect();
        let bytes = Bytes::from(lines.join("\n") + "\n");
        if self.create_object(&entry_path(version), &bytes, Who::Stranger) {
            for action in actions {
                if let Some(path) = action["add"]["path"].as_str() {
                    self.rows.insert(path.to_owned());
                } else if let Some(path) = action["remove"]["path"].as_str() {
                    self.rows.remove(path);
                }
            }
        }
        if let Some(state) = self.state.clone().filter(|_| self.scenario.start.checksums) {
            let path = format!("{TABLE}/_delta_log/{version:020}.crc");
            self.write(path, state.checksum().to_string().into());
        }
    }

    /// What an op of another program would commit now, as far as it commits anything.
    pub(super) fn prepare(&mut self, op: Op) -> Option<Vec<serde_json::Value>> {
        let state = self.state.clone()?;
        let (name, millis) = (self.name(), self.schedule.clock);
        log::actions(op, &state, &name, millis)
    }

    /// Lets another program do something at once; whether it had anything to do.
    pub(super) fn stranger(&mut self, op: Op) -> bool {
        let done = self.do_stranger(op);
        self.schedule.note(|| format!("stranger {op:?}{}", if done { "" } else { " (nothing to do)" }));
        done
    }

    fn do_stranger(&mut self, op: Op) -> bool {
        let version = self.state.as_ref().map(|s| s.version);
        match op {
            Op::Drop => return version.is_some() && self.drop_table(),
            Op::RecreateLower => return version.is_some_and(|v| v > 0 && self.recreate(v - 1)),
            Op::RecreateEqual => return self.recreate(version.unwrap_or(0)),
            Op::RecreateHigher => return version.is_some_and(|v| self.recreate(v + 2)),
            _ => {}
        }
        let Some(state) = self.state.clone().filter(|_| self.spoilt.is_none()) else { return false };
        match op {
            Op::Checkpoint => super::checkpoint::write(self, &state),
            Op::CleanUp | Op::CleanUpAll => {
                super::checkpoint::write(self, &state);
                // The table is the same, but a run may have met the clean-up.
                self.timeline.push(Some(state.clone()));
                self.clean_ups.push(self.timeline.len() - 1);
                let kept = if op == Op::CleanUp { state.version } else { state.version + 1 };
                let log = format!("{TABLE}/_delta_log/");
                self.objects.retain(|path, _| match path.strip_prefix(&log).and_then(|n| n.get(..20)) {
                    Some(number) if !path.contains("checkpoint") => {
                        number.parse::<u64>().is_ok_and(|v| v >= kept)
                    }
                    _ => true,
                });
            }
            Op::BrokenHint => self.write(hint_path(), r#"{"version":1000000,"size":1}"#.into()),
            Op::EmptyHint => self.write(hint_path(), Bytes::new()),
            _ => {
                let (name, millis) = (self.name(), self.schedule.clock);
                let Some(actions) = log::actions(op, &state, &name, millis) else { return false };
                self.commit(&actions);
            }
        }
        true
    }

    fn drop_table(&mut self) -> bool {
        self.objects.clear();
        self.rows.clear();
        for run in self.runs.iter_mut().filter(|run| run.ended.is_none()) {
            run.landed.iter_mut().for_each(|(_, landing)| *landing = Landing::Dropped);
        }
        self.replaced = Some(self.schedule.step);
        // What was made for the old table is gone with it.
        self.spoilt = None;
        self.stands(None);
        true
    }

    fn recreate(&mut self, newest: u64) -> bool {
        if self.state.is_some() {
            self.drop_table();
        }
        self.create();
        for _ in 0..newest {
            self.stranger(Op::Append);
        }
        true
    }

    fn create(&mut self) {
        let id = format!("{:032x}", self.id());
        let actions = log::creation(&id, self.schedule.clock);
        self.commit(&actions);
    }
}

pub(super) fn entry_path(version: u64) -> String {
    format!("{TABLE}/_delta_log/{version:020}.json")
}

pub(super) fn hint_path() -> String {
    format!("{TABLE}/_delta_log/_last_checkpoint")
}

/// The version of a log entry's path.
pub(super) fn entry_version(path: &str) -> Option<u64> {
    path.strip_prefix(TABLE)?.strip_prefix("/_delta_log/")?.strip_suffix(".json")?.parse().ok()
}
