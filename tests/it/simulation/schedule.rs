//! Every request of every actor waits here until the schedule says who goes on.

use std::collections::BTreeMap;
use std::task::Waker;

use bytes::Bytes;
use object_store::{Error, GetRange, ObjectMeta};
use serde_json::Value;

use super::chance::Chance;
use super::scenario::{Op, Scenario};

/// What an actor asks for.
#[derive(Clone, Debug)]
pub(super) enum Ask {
    Get {
        path: String,
        range: Option<GetRange>,
    },
    List {
        prefix: String,
        after: Option<String>,
    },
    Folder {
        prefix: String,
    },
    Put {
        path: String,
        bytes: Bytes,
    },
    /// `long` is the time limit of something else, which goes on only when nothing else does.
    Sleep {
        until: i64,
        long: bool,
    },
    /// A writer reads the table and makes up its mind.
    Prepare {
        op: Op,
    },
    /// A writer commits what it made for a version of a table.
    Commit {
        table: u64,
        version: u64,
        actions: Vec<Value>,
    },
}

/// What comes of it.
#[derive(Debug)]
pub(super) enum Answer {
    Object { meta: ObjectMeta, bytes: Bytes, start: u64, broken: bool },
    Listed { found: Vec<ObjectMeta>, broken: bool },
    Folder { objects: Vec<ObjectMeta>, folders: Vec<String> },
    Created,
    Slept,
    Prepared(Option<(u64, u64, Vec<Value>)>),
    Committed(bool),
    Failed(Error),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    /// Until it is chosen.
    Turn,
    /// Until then, or until nobody else can go on.
    Step(u64),
    /// For an answer that never comes.
    Forever,
    /// The same; it is carried out once nobody waits for it any more.
    ForeverThenAct,
    /// Nobody waits for it any more, but it is under way.
    Detached,
}

pub(super) struct Parked {
    pub(super) actor: usize,
    /// The run that it belongs to, where it is a migrator's.
    pub(super) run: Option<usize>,
    pub(super) ask: Ask,
    pub(super) wait: Wait,
    /// Whether it was looked at already when faults were dealt out.
    pub(super) counted: bool,
    pub(super) waker: Option<Waker>,
}

pub(super) struct Schedule {
    pub(super) step: u64,
    /// Milliseconds since the epoch.
    pub(super) clock: i64,
    pub(super) parked: BTreeMap<u64, Parked>,
    answers: BTreeMap<u64, Answer>,
    choices: Vec<u16>,
    tickets: u64,
    last: usize,
    ticks: Chance,
    pub(super) trace: Option<Vec<String>>,
}

/// A choice from here on lets the next time limit run out.
pub(super) const JUMP: u16 = 0xf000;

impl Schedule {
    pub(super) fn new(scenario: &Scenario, tracing: bool) -> Self {
        Self {
            step: 0,
            clock: 1_790_000_000_000,
            parked: BTreeMap::new(),
            answers: BTreeMap::new(),
            choices: scenario.choices.clone(),
            tickets: 0,
            last: 0,
            ticks: Chance::new(scenario.seed ^ 0x7153),
            trace: tracing.then(Vec::new),
        }
    }

    pub(super) fn note(&mut self, what: impl FnOnce() -> String) {
        if let Some(trace) = &mut self.trace {
            trace.push(format!("{:4} {}", self.step, what()));
        }
    }

    pub(super) fn park(&mut self, parked: Parked) -> u64 {
        self.tickets += 1;
        self.parked.insert(self.tickets, parked);
        self.tickets
    }

    pub(super) fn tick(&mut self) {
        self.step += 1;
        self.clock += 1 + (self.ticks.next() % 9) as i64;
    }

    pub(super) fn answer(&mut self, ticket: u64, answer: Answer, waker: Option<Waker>) {
        self.answers.insert(ticket, answer);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    pub(super) fn take_answer(&mut self, ticket: u64) -> Option<Answer> {
        self.answers.remove(&ticket)
    }

    /// Nobody waits for it any more. A put that was sent is under way all the same.
    pub(super) fn give_up(&mut self, ticket: u64) {
        self.answers.remove(&ticket);
        let Some(parked) = self.parked.get_mut(&ticket) else { return };
        let sent = matches!(parked.ask, Ask::Put { .. }) && parked.wait != Wait::Forever;
        if sent {
            parked.wait = Wait::Detached;
            parked.waker = None;
        } else {
            self.parked.remove(&ticket);
        }
    }

    /// Whether an actor waits for something here, and not for work of its own on another thread.
    pub(super) fn holds(&self, actor: usize) -> bool {
        let limit = |p: &Parked| matches!(p.ask, Ask::Sleep { long: true, .. });
        self.parked.values().any(|p| p.actor == actor && p.wait != Wait::Detached && !limit(p))
    }

    /// Who goes on; none if nobody can.
    pub(super) fn pick(&mut self, at: &mut usize) -> Option<u64> {
        let choice = self.choices.get(*at).copied().unwrap_or(0);
        *at += 1;
        let (mut own, mut ready, mut under_way) = (Vec::new(), Vec::new(), Vec::new());
        let (mut delayed, mut limits) = (None, Vec::new());
        for (ticket, parked) in &self.parked {
            match (&parked.ask, parked.wait) {
                (Ask::Sleep { long: true, until }, _) => limits.push((*until, *ticket)),
                (_, Wait::Detached) => under_way.push(*ticket),
                (_, Wait::Step(step)) if step > self.step => {
                    delayed.get_or_insert(*ticket);
                }
                (_, Wait::Turn | Wait::Step(_)) if parked.actor == self.last => own.push(*ticket),
                (_, Wait::Turn | Wait::Step(_)) => ready.push(*ticket),
                (_, Wait::Forever | Wait::ForeverThenAct) => {}
            }
        }
        limits.sort_unstable();
        let limit = limits.first().map(|(_, ticket)| *ticket);
        if choice >= JUMP && limit.is_some() {
            return limit;
        }
        // What nobody waits for comes last, so that it does not hurry by itself.
        own.append(&mut ready);
        own.append(&mut under_way);
        let chosen =
            if own.is_empty() { delayed.or(limit) } else { own.get(choice as usize % own.len()).copied() };
        if let Some(parked) =
            chosen.and_then(|ticket| self.parked.get(&ticket)).filter(|p| p.wait != Wait::Detached)
        {
            self.last = parked.actor;
        }
        chosen
    }
}
