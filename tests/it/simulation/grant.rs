//! What happens when a request has its turn: it is carried out, or a fault strikes.

use bytes::Bytes;
use object_store::{GetRange, ObjectMeta};

use super::answers;
use super::scenario::{Fault, FaultKind, Phase};
use super::schedule::{Answer, Ask, Parked, Wait};
use super::world::{TABLE, Who, World, entry_version};

impl World {
    /// Carries out one request; the actor whose process died of it, if one did.
    pub(super) fn grant(&mut self, ticket: u64) -> Option<usize> {
        self.schedule.tick();
        let mut parked = self.schedule.parked.remove(&ticket)?;
        if parked.wait == Wait::Detached {
            let done = self.act(&parked);
            self.trace(&parked, &format!("under way: {}", short(&done)));
            return None;
        }
        match &parked.ask {
            Ask::Sleep { until, long } => {
                self.schedule.clock = self.schedule.clock.max(*until);
                if let Some(run) = parked.run {
                    // A pause comes alone; a time limit is on something else.
                    let waits = |p: &Parked| p.run == Some(run) && p.wait != Wait::Detached;
                    let limit = *long || self.schedule.parked.values().any(waits);
                    let run = &mut self.runs[run];
                    (run.look, run.slow, run.blind) = (None, run.slow || limit, run.blind || limit);
                }
                self.trace(&parked, "");
                self.schedule.answer(ticket, Answer::Slept, parked.waker);
                return None;
            }
            Ask::Prepare { .. } | Ask::Commit { .. } => {
                let answer = self.writer(&parked.ask);
                self.trace(&parked, &short(&answer));
                self.schedule.answer(ticket, answer, parked.waker);
                return None;
            }
            _ => {}
        }
        let fault = if parked.counted { None } else { self.fault(&parked) };
        parked.counted = true;
        let Some(kind) = fault else {
            let answer = self.act(&parked);
            self.trace(&parked, &short(&answer));
            self.schedule.answer(ticket, answer, parked.waker);
            return None;
        };
        self.strike(ticket, parked, kind)
    }

    /// The fault that a request meets; what comes right before it is done.
    fn fault(&mut self, parked: &Parked) -> Option<FaultKind> {
        let (run, step) = (parked.run?, self.schedule.step);
        let phase = self.runs[run].phase(&parked.ask, step);
        let nth = self.counts.request(parked.actor, phase);
        let hit = |f: &&Fault| f.actor == parked.actor && f.phase == phase && f.nth == nth;
        let fault = self.scenario.clone().faults.iter().find(hit)?.clone();
        for op in &fault.before {
            self.stranger(*op);
        }
        if !self.applies(fault.kind, &parked.ask) {
            return None;
        }
        let (known, chain) = (self.runs[run].known, self.runs[run].chain);
        let assessment = self.assess(known, chain);
        let mut counted = true;
        if let FaultKind::Meanwhile(op) = fault.kind {
            counted = self.stranger(op);
        }
        if counted && self.spoilt.is_none() {
            self.counts.add(assessment, fault.kind, phase);
        }
        self.runs[run].faults.push(fault.kind);
        self.runs[run].blind |= phase == Phase::After && !matches!(fault.kind, FaultKind::Meanwhile(_));
        Some(fault.kind)
    }

    fn applies(&self, kind: FaultKind, ask: &Ask) -> bool {
        use FaultKind as F;
        let is_entry = matches!(ask, Ask::Put { path, .. } if entry_version(path).is_some());
        match kind {
            F::ErrorAfter
            | F::ErrorLater
            | F::RetryCollides
            | F::RetryPrecondition
            | F::AnswerLost
            | F::ActsLater => is_entry,
            F::ExistsNothing | F::BlobExistsNothing | F::PreconditionNothing | F::CrashAfter => is_entry,
            F::Breaks => match ask {
                Ask::Get { path, .. } => self.objects.contains_key(path),
                Ask::List { .. } => true,
                _ => false,
            },
            F::TornList | F::StaleList => self.entries(ask) >= 2,
            F::HoleyList => self.entries(ask) >= 3,
            _ => true,
        }
    }

    /// How many log entries a listing would show.
    fn entries(&self, ask: &Ask) -> usize {
        let Ask::List { prefix, after } = ask else { return 0 };
        self.listed(prefix, after.as_deref())
            .iter()
            .filter(|m| entry_version(m.location.as_ref()).is_some())
            .count()
    }

    fn strike(&mut self, ticket: u64, mut parked: Parked, kind: FaultKind) -> Option<usize> {
        use FaultKind as F;
        let path = match &parked.ask {
            Ask::Put { path, .. } | Ask::Get { path, .. } => path.clone(),
            Ask::List { prefix, .. } | Ask::Folder { prefix } => prefix.clone(),
            _ => String::new(),
        };
        let failed = Answer::Failed(answers::error(kind, &path));
        let (mut crashed, mut wait) = (None, None);
        let answer = match kind {
            F::RefusedS3 | F::RefusedAzure | F::RefusedGcs | F::Forbidden => failed,
            F::ExistsNothing | F::BlobExistsNothing | F::PreconditionNothing => failed,
            F::ErrorAfter => {
                self.act(&parked);
                failed
            }
            F::RetryCollides | F::RetryPrecondition => {
                // The client's first attempt; its second one is what is answered.
                self.act(&parked);
                failed
            }
            F::ErrorLater => {
                let again = Parked { ask: parked.ask.clone(), wait: Wait::Detached, waker: None, ..parked };
                self.schedule.park(again);
                failed
            }
            F::AnswerLost | F::CrashAfter => {
                self.act(&parked);
                wait = Some(Wait::Forever);
                crashed = (kind == F::CrashAfter).then_some(parked.actor);
                Answer::Slept
            }
            F::RequestLost => {
                wait = Some(Wait::Forever);
                Answer::Slept
            }
            F::ActsLater => {
                wait = Some(Wait::ForeverThenAct);
                Answer::Slept
            }
            F::Crash => {
                wait = Some(Wait::Turn);
                crashed = Some(parked.actor);
                Answer::Slept
            }
            F::Delay => {
                wait = Some(Wait::Step(self.schedule.step + 5 + self.schedule.step % 23));
                Answer::Slept
            }
            F::Breaks | F::TornList | F::StaleList | F::HoleyList => {
                let whole = self.act(&parked);
                altered(whole, kind)
            }
            F::Meanwhile(_) => self.act(&parked),
        };
        self.trace(
            &parked,
            &format!("{kind:?}: {}", if wait.is_some() { String::new() } else { short(&answer) }),
        );
        match wait {
            Some(wait) => {
                parked.wait = wait;
                self.schedule.parked.insert(ticket, parked);
            }
            None => self.schedule.answer(ticket, answer, parked.waker),
        }
        crashed
    }

    /// What an honest store does.
    fn act(&mut self, parked: &Parked) -> Answer {
        match &parked.ask {
            Ask::Get { path, range } => match (self.meta(path), self.objects.get(path)) {
                (Some(meta), Some(object)) => {
                    let size = meta.size;
                    let (start, end) = match range {
                        Some(GetRange::Bounded(range)) => (range.start, range.end.min(size)),
                        Some(GetRange::Offset(start)) => (*start, size),
                        Some(GetRange::Suffix(length)) => (size.saturating_sub(*length), size),
                        None => (0, size),
                    };
                    let bytes: Bytes = object.bytes.slice(start as usize..end as usize);
                    Answer::Object { meta, bytes, start, broken: false }
                }
                _ => Answer::Failed(answers::nowhere(path)),
            },
            Ask::List { prefix, after } => {
                Answer::Listed { found: self.listed(prefix, after.as_deref()), broken: false }
            }
            Ask::Folder { prefix } => {
                let below = self.objects.keys().filter_map(|path| path.strip_prefix(prefix.as_str()));
                let mut folders: Vec<String> =
                    below.filter_map(|rest| Some(format!("{prefix}{}", rest.split_once('/')?.0))).collect();
                folders.dedup();
                Answer::Folder { objects: Vec::new(), folders }
            }
            Ask::Put { path, bytes } => {
                let who = parked.run.map_or(Who::Stranger, Who::Run);
                let (path, bytes) = (path.clone(), bytes.clone());
                if self.create_object(&path, &bytes, who) {
                    Answer::Created
                } else {
                    Answer::Failed(answers::there(&path))
                }
            }
            _ => Answer::Slept,
        }
    }

    fn listed(&self, prefix: &str, after: Option<&str>) -> Vec<ObjectMeta> {
        let below = self.objects.range(prefix.to_owned()..).map(|(path, _)| path);
        let below = below.take_while(|path| path.starts_with(prefix));
        below
            .filter(|path| after.is_none_or(|after| path.as_str() > after))
            .filter_map(|path| self.meta(path))
            .collect()
    }

    /// A writer that keeps Delta's rules: it commits right after what it read, or begins anew.
    fn writer(&mut self, ask: &Ask) -> Answer {
        match ask {
            Ask::Prepare { op } => {
                let Some(state) = self.state.clone().filter(|_| self.spoilt.is_none()) else {
                    return Answer::Prepared(None);
                };
                let prepared = self.prepare(*op).map(|actions| (state.table, state.version + 1, actions));
                if prepared.is_none() {
                    self.stranger(*op);
                }
                Answer::Prepared(prepared)
            }
            Ask::Commit { table, version, actions } => {
                let fits =
                    |s: &std::sync::Arc<super::log::State>| s.table == *table && s.version + 1 == *version;
                let done = self.spoilt.is_none() && self.state.as_ref().is_some_and(fits);
                if done {
                    self.commit(actions);
                }
                Answer::Committed(done)
            }
            _ => Answer::Slept,
        }
    }

    fn trace(&mut self, parked: &Parked, what: &str) {
        let (actor, run) = (parked.actor, parked.run);
        let ask = match &parked.ask {
            Ask::Get { path, range } => format!("get {path}{}", if range.is_some() { " (part)" } else { "" }),
            Ask::List { prefix, after } => {
                format!("list {prefix}{}", if after.is_some() { " (from the hint)" } else { "" })
            }
            Ask::Folder { prefix } => format!("list the folder {prefix}"),
            Ask::Put { path, .. } => format!("put {path}"),
            Ask::Sleep { until, long } => format!("{} until {until}", if *long { "limit" } else { "pause" }),
            Ask::Prepare { op } => format!("prepare {op:?}"),
            Ask::Commit { version, .. } => format!("commit {version}"),
        };
        let ask = ask.replace(&format!("{TABLE}/_delta_log/"), "");
        let run = run.map(|r| format!(" run {r}")).unwrap_or_default();
        self.schedule.note(|| format!("actor {actor}{run}: {ask} -> {what}"));
    }
}

fn altered(answer: Answer, kind: FaultKind) -> Answer {
    match (answer, kind) {
        (Answer::Object { meta, bytes, start, .. }, FaultKind::Breaks) => {
            Answer::Object { meta, bytes, start, broken: true }
        }
        (Answer::Listed { mut found, .. }, kind) => {
            let entries: Vec<(usize, u64)> = found
                .iter()
                .enumerate()
                .filter_map(|(at, m)| Some((at, entry_version(m.location.as_ref())?)))
                .collect();
            match kind {
                FaultKind::StaleList => {
                    let newest = entries.last().map_or(0, |(_, v)| *v);
                    let shown = format!("{newest:020}.");
                    found.retain(|m| !m.location.as_ref().contains(&shown));
                }
                FaultKind::HoleyList => drop(found.remove(entries[entries.len() / 2].0)),
                _ => found.truncate(found.len() / 2),
            }
            Answer::Listed { found, broken: kind == FaultKind::Breaks }
        }
        (other, _) => other,
    }
}

fn short(answer: &Answer) -> String {
    match answer {
        Answer::Object { bytes, broken, .. } => {
            format!("{} bytes{}", bytes.len(), if *broken { ", broken" } else { "" })
        }
        Answer::Listed { found, broken } => {
            format!("{} objects{}", found.len(), if *broken { ", broken" } else { "" })
        }
        Answer::Folder { folders, .. } => format!("{} folders", folders.len()),
        Answer::Created => "created".to_owned(),
        Answer::Slept => String::new(),
        Answer::Prepared(prepared) => {
            prepared.as_ref().map_or("nothing".to_owned(), |(_, v, _)| format!("for {v}"))
        }
        Answer::Committed(done) => (if *done { "done" } else { "conflict" }).to_owned(),
        Answer::Failed(error) => error.to_string().chars().take(60).collect(),
    }
}
