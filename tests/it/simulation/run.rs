//! One run of one migrator: what it asked for, what it sent, and what it said in the end.

use object_store::GetRange;

use super::scenario::{Chain, FaultKind, Phase};
use super::schedule::Ask;
use super::world::entry_version;

/// What became of an entry that a run sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Landing {
    /// It stands at the end of the log of the table that was read.
    Effective,
    /// It stands where a checkpoint that does not know it counts instead.
    Stale,
    /// It stands in the log of another table.
    Foreign,
    /// It stood in a table that was dropped while the run went on.
    Dropped,
}

/// What a run said in the end.
#[derive(Clone, Debug)]
pub(super) enum Ended {
    Done {
        outcome: String,
        version: Option<u64>,
        commits: u32,
    },
    Failed {
        code: String,
        committed: Vec<u64>,
        said: String,
        message: String,
    },
    /// Its process died.
    Crashed,
}

#[derive(Debug)]
pub(super) struct Run {
    pub(super) actor: usize,
    pub(super) known: u32,
    pub(super) chain: Chain,
    pub(super) create: bool,
    /// The first state that it may have seen, in the world's timeline.
    pub(super) from: usize,
    /// The last one.
    pub(super) to: usize,
    pub(super) ended: Option<Ended>,
    pub(super) faults: Vec<FaultKind>,
    /// Each entry that it sent, with the step of the last look before it.
    pub(super) sent: Vec<(u64, Option<u64>)>,
    /// What became of them, as far as they stood before the run ended or count all the same.
    pub(super) landed: Vec<(u64, Landing)>,
    /// Whether the table held a commit that was made for another one.
    pub(super) spoilt: bool,
    /// Whether a time limit of it ran out.
    pub(super) slow: bool,
    /// Whether a look after its commit may have failed: a commit is not taken back for that.
    pub(super) blind: bool,
    /// The step of the last look at the newest entry, where no pause came after it.
    pub(super) look: Option<u64>,
    last_put: Option<u64>,
    looked_after: bool,
}

impl Run {
    pub(super) fn new(actor: usize, known: u32, chain: Chain, create: bool, from: usize) -> Self {
        Self {
            actor,
            known,
            chain,
            create,
            from,
            to: from,
            ended: None,
            faults: Vec::new(),
            sent: Vec::new(),
            landed: Vec::new(),
            spoilt: false,
            slow: false,
            blind: false,
            look: None,
            last_put: None,
            looked_after: false,
        }
    }

    /// What a request is for, by those that went before it.
    pub(super) fn phase(&mut self, ask: &Ask, step: u64) -> Phase {
        match ask {
            Ask::Put { path, .. } => match entry_version(path) {
                Some(version) => {
                    (self.last_put, self.looked_after) = (Some(version), false);
                    Phase::Put
                }
                None => Phase::After,
            },
            // The one beside what was put; before that, the newest one is read with the rest.
            Ask::Get { path, range: None } if path.ends_with(".crc") => {
                if self.last_put.is_some() {
                    Phase::After
                } else {
                    Phase::Read
                }
            }
            Ask::Get { range: Some(GetRange::Bounded(range)), path }
                if *range == (0..1) || !path.ends_with("parquet") =>
            {
                if *range == (0..1) {
                    self.look = Some(step);
                }
                if self.last_put.is_some() { Phase::After } else { Phase::Before }
            }
            Ask::Get { path, .. } => {
                let is_look =
                    entry_version(path).is_some_and(|v| self.last_put == Some(v)) && !self.looked_after;
                if is_look {
                    self.looked_after = true;
                    return Phase::After;
                }
                self.last_put = None;
                Phase::Read
            }
            Ask::List { .. } | Ask::Folder { .. } => {
                self.last_put = None;
                Phase::List
            }
            _ => Phase::Read,
        }
    }

    /// Whether a listing lied to it.
    pub(super) fn was_lied_to(&self) -> bool {
        let lies = [FaultKind::TornList, FaultKind::StaleList, FaultKind::HoleyList];
        self.faults.iter().any(|f| lies.contains(f))
    }
}
