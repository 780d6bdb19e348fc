//! Scenarios in which chosen faults strike at chosen requests while the table stands as wanted. One
//! combination of assessment, fault and phase is aimed at; on the way to it and after it others of the
//! same assessment are, as far as they leave each other room.

use std::sync::OnceLock;

use super::chance::Chance;
use super::counts::{Key, can_occur, combinations, kinds};
use super::generate::{choices, migrator, more_faults, others, pending_table};
use super::kinds::NEWEST;
use super::scenario::{Actor, Chain, Fault, FaultKind, Op, Phase, Scenario, Start};

/// The combination that a seed aims at. Each has its turn; neighbours differ, so that few seeds hit
/// something of everything.
pub(super) fn aim(seed: u64) -> Key {
    static AIMS: OnceLock<Vec<Key>> = OnceLock::new();
    let aims = AIMS.get_or_init(|| {
        combinations().into_iter().flat_map(|key| std::iter::repeat_n(key, weight(key))).collect()
    });
    aims[(seed.wrapping_mul(0x9e37_79b1) % aims.len() as u64) as usize]
}

/// What is seldom hit on the way to another is aimed at more often, as measured.
fn weight((assessment, kind, phase): Key) -> usize {
    match phase {
        _ if assessment == "missing" => 12,
        Phase::Read | Phase::List if kind == FaultKind::Meanwhile(Op::Drop) => 12,
        Phase::Read if kind == FaultKind::Breaks => 11,
        Phase::List if matches!(kind, FaultKind::TornList | FaultKind::StaleList | FaultKind::HoleyList) => 6,
        Phase::Read | Phase::List if is_same_table_after(kind) => 4,
        Phase::Read | Phase::List => 5,
        Phase::Before if is_gentle(kind) => 2,
        Phase::Before | Phase::Put => 12,
        Phase::After if matches!(assessment, "unversioned" | "behind") => 6,
        Phase::After => 3,
    }
}

/// Whether the same table stands after it.
fn is_same_table_after(kind: FaultKind) -> bool {
    use Op::{Drop, RecreateEqual, RecreateHigher, RecreateLower};
    !matches!(kind, FaultKind::Meanwhile(Drop | RecreateEqual | RecreateHigher | RecreateLower))
}

/// Whether the run goes on to the next request as if nothing were, with the same table.
fn is_gentle(kind: FaultKind) -> bool {
    let cleans_up = matches!(kind, FaultKind::Meanwhile(Op::CleanUp | Op::CleanUpAll));
    is_same_table_after(kind) && !cleans_up && matches!(kind, FaultKind::Delay | FaultKind::Meanwhile(_))
}

/// Whether nothing stands where the entry belongs, when the migrator looks what became of it.
fn leaves_nothing(kind: FaultKind) -> bool {
    use FaultKind as F;
    matches!(
        kind,
        F::RefusedS3
            | F::RefusedAzure
            | F::RefusedGcs
            | F::RequestLost
            | F::ExistsNothing
            | F::BlobExistsNothing
            | F::PreconditionNothing
            | F::ErrorLater
            | F::ActsLater
    )
}

/// What brings a table to an assessment, beforehand or right before a request.
fn scene(assessment: &str, phase: Phase, known: u32, start: &mut Start, chance: &mut Chance) -> Vec<Op> {
    let mut before = Vec::new();
    match assessment {
        "missing" if phase == Phase::Before || phase == Phase::After && chance.one_in(2) => {
            before.push(Op::Drop);
        }
        "missing" => start.table = false,
        "unversioned" => start.ops.retain(|op| !matches!(op, Op::StampTo(_))),
        "behind" => {
            start.ops.retain(|op| !matches!(op, Op::StampTo(_)));
            start.ops.push(Op::StampTo(chance.below(known as usize) as u32));
        }
        "unsupported" => before.push(Op::EnableUnknown),
        "invalid_stamp" => before.push(Op::BadStamp),
        "not_this_kind" => before.push(Op::OtherKind),
        "too_new" => before.push(Op::RaiseFloor),
        "diverged" => before.push(Op::Diverge),
        "stamp_lost" => before.extend([Op::StampTo(known), Op::Replace]),
        "drifted" => before.extend([Op::StampTo(known), Op::OverwriteOldSchema]),
        "ahead" => before.push(Op::StampTo(NEWEST)),
        _ => before.push(Op::StampTo(known)),
    }
    before
}

pub(super) fn aimed(seed: u64, key: Key, chance: &mut Chance) -> Scenario {
    let (assessment, _, phase) = key;
    let early = matches!(phase, Phase::Read | Phase::List);
    let known = match assessment {
        "ahead" => chance.pick(&[4, 5]),
        "drifted" => chance.pick(&[1, 2, 3, 4, 5, NEWEST]),
        _ => chance.pick(&[1, 2, 3, 3, 4, 5, NEWEST, NEWEST]),
    };
    let mut start = pending_table(known, chance);
    let mut before = scene(assessment, phase, known, &mut start, chance);
    let aims = if early { while_reading(key, chance) } else { while_writing(key, &mut start, chance) };
    for (_, kind, _) in &aims {
        if let FaultKind::Meanwhile(op) = kind {
            start.ops.retain(|had| had != op || matches!(op, Op::Append | Op::CleanUp | Op::Checkpoint));
        }
    }
    if early {
        // A listing that lies needs entries.
        start.ops.extend([Op::Append; 3]);
        if chance.one_in(2) {
            // The table stood so before.
            start.ops.append(&mut before);
        }
    }
    let mut faults = faults(0, assessment, &before, aims, chance);
    let create = match assessment {
        "missing" => !early || chance.one_in(2),
        _ => !chance.one_in(4),
    };
    let mut actors = vec![migrator(known, Chain::Ours, create, chance)];
    if let Actor::Migrator { budget_ms, runs, .. } = &mut actors[0] {
        if !chance.one_in(4) {
            *budget_ms = 60_000;
        }
        if early {
            // A run that fails meets one of them.
            *runs = faults.len() as u32;
        }
    }
    let again = !early && !before.is_empty() && chance.one_in(5);
    if again {
        faults.extend(anew(assessment, &before, &mut start, chance));
        actors.push(actors[0].clone());
    }
    if chance.one_in(if again { 4 } else { 2 }) {
        others(&mut actors, chance);
    }
    if chance.one_in(2) {
        more_faults(&mut faults, actors.len(), chance);
    }
    let mut choices = choices(chance);
    if again {
        choices[..40].fill(0);
    } else if chance.one_in(2) {
        // The others come once the first has got far.
        choices[..12].fill(0);
    }
    Scenario { seed, start, actors, faults, choices }
}

/// A phase, what strikes there, and the how-manieth request.
type Aim = (Phase, FaultKind, u32);

fn faults(actor: usize, assessment: &str, before: &[Op], aims: Vec<Aim>, chance: &mut Chance) -> Vec<Fault> {
    // Where somebody else's entry stands in the place of its own, it finds something there, and the
    // table is pending as before.
    let finds = aims.iter().any(|(phase, kind, _)| (*phase, *kind) == (Phase::After, FaultKind::Breaks));
    let taken = matches!(assessment, "unversioned" | "behind") && (finds || chance.one_in(2));
    let fault = |(phase, kind, nth)| {
        let nth = if chance.one_in(20) { chance.below(4) as u32 } else { nth };
        let mut before = before.to_vec();
        if taken && phase == Phase::Put {
            before.push(Op::Append);
        }
        Fault { actor, phase, nth, before, kind }
    };
    aims.into_iter().map(fault).collect()
}

/// Another table comes in the place of the first, and the next release is struck while it writes to it.
fn anew(assessment: &'static str, before: &[Op], start: &mut Start, chance: &mut Chance) -> Vec<Fault> {
    let recreate = match assessment {
        "missing" => Op::RecreateEqual,
        _ => chance.pick(&[Op::RecreateEqual, Op::RecreateHigher, Op::RecreateLower]),
    };
    let at = chance.pick(&[Phase::Read, Phase::List]);
    let mut out = faults(1, assessment, &[], vec![(at, FaultKind::Meanwhile(recreate), 0)], chance);
    if let Some(kind) = any_kind(assessment, Phase::Put, |_| true, chance) {
        let aims = while_writing((assessment, kind, Phase::Put), start, chance);
        out.extend(faults(1, assessment, before, aims, chance));
    }
    out
}

/// Reading does not change the table: one run after the other, or one request after the other, meets
/// it as it stands.
fn while_reading((assessment, kind, phase): Key, chance: &mut Chance) -> Vec<Aim> {
    if phase == Phase::Read && kind == FaultKind::Breaks {
        // The first file that is read is the hint, which is mostly not there.
        return vec![(phase, kind, 1)];
    }
    // Nothing strikes the same table after it is gone.
    let last = !is_same_table_after(kind);
    let (mut out, mut next) = (Vec::new(), [0, 0]);
    let mut add = |phase, kind| {
        let nth = &mut next[usize::from(phase == Phase::List)];
        out.push((phase, kind, *nth));
        *nth += 1;
    };
    if !last {
        add(phase, kind);
    }
    for _ in 0..2 {
        let also = if !last && chance.below(5) < 3 { Phase::List } else { Phase::Read };
        let fits = |kind| is_same_table_after(kind) && (also == Phase::List || kind != FaultKind::Breaks);
        if let Some(kind) = any_kind(assessment, also, fits, chance) {
            add(also, kind);
        }
    }
    if last {
        add(phase, kind);
    }
    out
}

/// What strikes right before a put, at it, and after it.
fn while_writing((assessment, kind, phase): Key, start: &mut Start, chance: &mut Chance) -> Vec<Aim> {
    // What is asked after a put that succeeded meets none of these.
    let pending = matches!(assessment, "missing" | "unversioned" | "behind" | "unsupported");
    let mut out = Vec::new();
    if phase == Phase::After && !pending && chance.one_in(3) {
        // It looks at the table, and then reads and puts the checksum file where there are such.
        start.checksums |= !chance.one_in(4);
        out.push((phase, kind, 0));
        for nth in 1..3 {
            let fits = |kind| is_same_table_after(kind) && kind != FaultKind::Breaks;
            out.extend(any_kind(assessment, phase, fits, chance).map(|kind| (phase, kind, nth)));
        }
        return out;
    }
    if phase == Phase::Before {
        out.push((phase, kind, 0));
        if !is_gentle(kind) {
            return out;
        }
    } else if assessment != "missing" && chance.one_in(2) {
        out.extend(any_kind(assessment, Phase::Before, is_gentle, chance).map(|k| (Phase::Before, k, 0)));
    }
    let put = match phase {
        Phase::Put => Some(kind),
        Phase::After => any_kind(assessment, Phase::Put, leaves_nothing, chance),
        _ => any_kind(assessment, Phase::Put, |_| true, chance),
    };
    out.extend(put.map(|kind| (Phase::Put, kind, 0)));
    let ends = |kind| matches!(kind, FaultKind::Crash | FaultKind::CrashAfter) || !is_same_table_after(kind);
    if phase == Phase::After {
        out.push((phase, kind, 0));
    } else if put.is_some_and(|kind| !ends(kind)) {
        out.extend(any_kind(assessment, Phase::After, |_| true, chance).map(|k| (Phase::After, k, 0)));
    }
    out
}

/// A fault that can strike there.
fn any_kind(
    assessment: &str,
    phase: Phase,
    fits: impl Fn(FaultKind) -> bool,
    chance: &mut Chance,
) -> Option<FaultKind> {
    let mut all = kinds(phase);
    all.retain(|kind| can_occur(assessment, *kind, phase) && fits(*kind));
    (!all.is_empty()).then(|| chance.pick(&all))
}
