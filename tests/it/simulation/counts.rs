//! How often each fault struck, by the table's assessment and by what the request was for.

use std::collections::BTreeMap;

use super::oracle::ASSESSMENTS;
use super::scenario::{FaultKind, Op, Phase};

pub(super) type Key = (&'static str, FaultKind, Phase);

#[derive(Clone, Default)]
pub(super) struct Counts {
    requests: BTreeMap<(usize, Phase), u32>,
    pub(super) struck: BTreeMap<Key, u64>,
    /// Outcomes and codes of runs.
    pub(super) ended: BTreeMap<String, u64>,
}

impl Counts {
    /// Counts an actor's request; how many came before it.
    pub(super) fn request(&mut self, actor: usize, phase: Phase) -> u32 {
        let count = self.requests.entry((actor, phase)).or_default();
        *count += 1;
        *count - 1
    }

    pub(super) fn add(&mut self, assessment: &'static str, kind: FaultKind, phase: Phase) {
        *self.struck.entry((assessment, kind, phase)).or_default() += 1;
    }

    pub(super) fn merge(&mut self, other: &Self) {
        for (key, count) in &other.struck {
            *self.struck.entry(*key).or_default() += count;
        }
        for (key, count) in &other.ended {
            *self.ended.entry(key.clone()).or_default() += count;
        }
    }

    /// The combinations that can occur and struck less often than that.
    pub(super) fn below(&self, least: u64) -> Vec<String> {
        let rare =
            combinations().into_iter().filter(|key| self.struck.get(key).copied().unwrap_or(0) < least);
        rare.map(|key| format!("{key:?}: {}", self.struck.get(&key).copied().unwrap_or(0))).collect()
    }

    /// One line a phase and fault, one column an assessment; `-` where it can't occur.
    pub(super) fn table(&self) -> String {
        let mut out = format!("{:<34}", "");
        ASSESSMENTS.iter().for_each(|a| out += &format!("{:>14}", a));
        let possible = combinations();
        for phase in Phase::ALL {
            for kind in kinds(phase) {
                out += &format!("\n{:<34}", format!("{phase:?} {kind:?}"));
                for assessment in ASSESSMENTS {
                    let key = (assessment, kind, phase);
                    let count = self.struck.get(&key).copied().unwrap_or(0);
                    let shown = if count == 0 && !possible.contains(&key) {
                        "-".to_owned()
                    } else {
                        count.to_string()
                    };
                    out += &format!("{shown:>14}");
                }
            }
        }
        out + "\n"
    }
}

/// What other writers do in between that has a column of its own; other ops only set the scene.
const MEANWHILE: [Op; 15] = [
    Op::Append,
    Op::SetProperty,
    Op::AddColumn,
    Op::EnableTimestamps,
    Op::EnableMapping,
    Op::EnableV2Checkpoint,
    Op::Checkpoint,
    Op::CleanUp,
    Op::CleanUpAll,
    Op::BrokenHint,
    Op::EmptyHint,
    Op::Drop,
    Op::RecreateLower,
    Op::RecreateEqual,
    Op::RecreateHigher,
];

/// The faults that make sense in a phase.
pub(super) fn kinds(phase: Phase) -> Vec<FaultKind> {
    use FaultKind as F;
    let mut out =
        vec![F::RefusedS3, F::RefusedAzure, F::RefusedGcs, F::Forbidden, F::RequestLost, F::Delay, F::Crash];
    match phase {
        Phase::List => out.extend([F::Breaks, F::TornList, F::StaleList, F::HoleyList]),
        Phase::Put => out.extend([
            F::ErrorAfter,
            F::ErrorLater,
            F::RetryCollides,
            F::RetryPrecondition,
            F::ExistsNothing,
            F::BlobExistsNothing,
            F::PreconditionNothing,
            F::AnswerLost,
            F::ActsLater,
            F::CrashAfter,
        ]),
        Phase::Read | Phase::Before | Phase::After => out.push(F::Breaks),
    }
    out.extend(MEANWHILE.map(F::Meanwhile));
    out
}

/// Everything that can occur.
pub(super) fn combinations() -> Vec<Key> {
    let mut out = Vec::new();
    for phase in Phase::ALL {
        for kind in kinds(phase) {
            out.extend(ASSESSMENTS.iter().filter(|a| can_occur(a, kind, phase)).map(|a| (*a, kind, phase)));
        }
    }
    out
}

/// Where no table stands there is nothing to list, to break off, to clean up, or to drop.
pub(super) fn can_occur(assessment: &str, kind: FaultKind, phase: Phase) -> bool {
    use FaultKind as F;
    if assessment != "missing" {
        return true;
    }
    match kind {
        F::TornList | F::StaleList | F::HoleyList => false,
        F::Breaks => phase == Phase::List,
        F::Meanwhile(op) => op == Op::RecreateEqual,
        _ => true,
    }
}
