//! A seed gives a scenario. Every combination of assessment, fault and phase is aimed at in turn, so
//! that the rare ones strike as well; the rest is chance.

use std::ops::Range;
use std::sync::OnceLock;

use super::chance::Chance;
use super::counts::{Key, combinations, kinds};
use super::kinds::{NEWEST, RAISES};
use super::oracle::is_pending;
use super::scenario::{Actor, Chain, Fault, FaultKind, Op, Phase, Scenario, Start};
use super::schedule::JUMP;

pub(super) fn generate(seed: u64) -> Scenario {
    static AIMS: OnceLock<Vec<Key>> = OnceLock::new();
    let aims = AIMS.get_or_init(|| {
        combinations().into_iter().flat_map(|key| std::iter::repeat_n(key, weight(key))).collect()
    });
    let mut chance = Chance::new(seed);
    if seed % 32 == 7 {
        return at_random(seed, &mut chance);
    }
    // Neighbours differ, so that few seeds hit something of everything.
    aimed(seed, aims[(seed.wrapping_mul(0x9e37_79b1) % aims.len() as u64) as usize], &mut chance)
}

/// What comes late in a run is missed more often, because something else struck before; a fault while a
/// table is read seldom comes alone.
fn weight((assessment, kind, phase): Key) -> usize {
    let late = match phase {
        Phase::Read => 3,
        Phase::List => 4,
        Phase::Before => 7,
        Phase::Put => 8,
        Phase::After => 9,
    };
    let missed = match phase {
        Phase::Read => usize::from(assessment == "missing"),
        Phase::List => {
            usize::from(matches!(kind, FaultKind::HoleyList | FaultKind::StaleList | FaultKind::TornList))
        }
        Phase::After if assessment == "unsupported" => 4,
        Phase::After if matches!(assessment, "unversioned" | "behind") => 2,
        _ => 0,
    };
    late + missed
}

fn aimed(seed: u64, (assessment, kind, phase): (&str, FaultKind, Phase), chance: &mut Chance) -> Scenario {
    let known = match assessment {
        "ahead" => chance.pick(&[4, 5]),
        "drifted" => chance.pick(&[1, 2, 3, 4, 5, NEWEST]),
        _ => chance.pick(&[1, 2, 3, 3, 4, 5, NEWEST, NEWEST]),
    };
    let mut start = pending_table(known, chance);
    let mut before = Vec::new();
    let written = matches!(phase, Phase::Before | Phase::Put | Phase::After);
    let mut faults = Vec::new();
    match assessment {
        "missing" if written && phase != Phase::Put => before.push(Op::Drop),
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
    if !written && chance.one_in(2) {
        // The table stood so before.
        start.ops.append(&mut before);
    }
    if phase == Phase::After && matches!(assessment, "missing" | "unversioned" | "behind" | "unsupported") {
        // Else the table is current after the put.
        faults.extend((0..2).map(|actor| Fault {
            actor,
            phase: Phase::Put,
            nth: 0,
            before: Vec::new(),
            kind: FaultKind::ExistsNothing,
        }));
    }
    // The first file that is read is the hint, which is mostly not there; nor is, at first, the entry of a
    // put that was refused.
    let breaks = kind == FaultKind::Breaks;
    let first =
        u32::from(breaks && (phase == Phase::Read || (phase == Phase::After && is_pending(assessment))));
    let nth = if chance.one_in(5) { chance.below(4) as u32 } else { first };
    let all = kinds(phase);
    let mut another = |actor, nth, before: &[Op], chance: &mut Chance| {
        let kind = all[chance.below(all.len())];
        faults.push(Fault { actor, phase, nth, before: before.to_vec(), kind });
    };
    // Two of the same release, one after the other or at once, meet the same.
    let create = assessment == "missing" || !chance.one_in(4);
    let twins = if chance.one_in(3) { 1 } else { 2 };
    for actor in 0..twins {
        if !written {
            // Whoever reads meets more than one.
            (nth + 1..nth + 3).for_each(|nth| another(actor, nth, &[], chance));
        }
        if actor > 0 {
            another(actor, nth, &before, chance);
        }
    }
    faults.push(Fault { actor: 0, phase, nth, before, kind });
    if let FaultKind::Meanwhile(op) = kind {
        start.ops.retain(|had| *had != op || matches!(op, Op::Append | Op::CleanUp | Op::Checkpoint));
    }
    let mut actors: Vec<Actor> = (0..twins).map(|_| migrator(known, Chain::Ours, create, chance)).collect();
    for actor in &mut actors {
        if let Actor::Migrator { budget_ms, .. } = actor
            && !chance.one_in(4)
        {
            *budget_ms = 60_000;
        }
    }
    if chance.one_in(2) {
        // Whoever goes first leaves nothing to do for the others.
        let alone = written && is_pending(assessment) && chance.one_in(2);
        others(&mut actors, !alone, chance);
    }
    if chance.one_in(2) {
        // What strikes the first one otherwise would come before what is aimed at.
        let first = if chance.one_in(3) { 0 } else { twins };
        more_faults(&mut faults, first..actors.len(), chance);
    }
    Scenario { seed, start, actors, faults, choices: choices(chance) }
}

fn at_random(seed: u64, chance: &mut Chance) -> Scenario {
    let known = chance.pick(&[1, 2, 3, 4, 5, NEWEST]);
    let mut start = pending_table(known, chance);
    start.table = !chance.one_in(6);
    let mut actors = vec![migrator(known, Chain::Ours, !chance.one_in(3), chance)];
    while actors.len() < 3 {
        others(&mut actors, true, chance);
    }
    let mut faults = Vec::new();
    for _ in 0..chance.below(4) {
        more_faults(&mut faults, 0..actors.len(), chance);
    }
    Scenario { seed, start, actors, faults, choices: choices(chance) }
}

/// A table with work to do for a release, or with none.
fn pending_table(known: u32, chance: &mut Chance) -> Start {
    let mut ops = Vec::new();
    for op in [Op::EnableV2Checkpoint, Op::EnableTimestamps, Op::EnableMapping] {
        if chance.one_in(4) {
            ops.push(op);
        }
    }
    (0..chance.below(4)).for_each(|_| ops.push(Op::Append));
    if chance.one_in(2) {
        ops.push(Op::StampTo(chance.below(known as usize) as u32));
    }
    if chance.one_in(6) {
        ops.push(chance.pick(&[Op::Checkpoint, Op::CleanUp, Op::BrokenHint, Op::EmptyHint]));
        (0..chance.below(3)).for_each(|_| ops.push(Op::Append));
    }
    Start { table: true, checksums: chance.one_in(3), ops }
}

fn migrator(known: u32, chain: Chain, create: bool, chance: &mut Chance) -> Actor {
    Actor::Migrator {
        known,
        chain,
        budget_ms: chance.pick(&[0, 100, 1_000, 8_000, 60_000, 60_000, 60_000, 60_000]),
        skew_ms: chance.pick(&[0, 0, 0, -60_000, 60_000]),
        runs: chance.pick(&[1, 1, 2, 3]),
        create,
    }
}

fn others(actors: &mut Vec<Actor>, migrators: bool, chance: &mut Chance) {
    for _ in 0..if migrators { chance.below(3) } else { 0 } {
        let chain = if chance.one_in(8) { Chain::Other } else { Chain::Ours };
        let known = chance.pick(&[1, 2, 3, RAISES, 5, NEWEST]);
        let create = !chance.one_in(3);
        actors.push(migrator(known, chain, create, chance));
    }
    for _ in 0..chance.below(3) {
        let ops = (0..1 + chance.below(5)).map(|_| any_op(chance)).collect();
        actors.push(Actor::Writer { ops });
    }
}

/// Mostly appends, as in life.
fn any_op(chance: &mut Chance) -> Op {
    const USUAL: [Op; 5] = [Op::Append, Op::Append, Op::Append, Op::Overwrite, Op::SetProperty];
    const SELDOM: [Op; 19] = [
        Op::AddColumn,
        Op::AddColumn,
        Op::OverwriteOldSchema,
        Op::Replace,
        Op::StampTo(2),
        Op::StampTo(5),
        Op::RaiseFloor,
        Op::Diverge,
        Op::EnableTimestamps,
        Op::EnableTimestamps,
        Op::EnableMapping,
        Op::EnableMapping,
        Op::EnableV2Checkpoint,
        Op::EnableUnknown,
        Op::Checkpoint,
        Op::CleanUp,
        Op::CleanUpAll,
        Op::RecreateEqual,
        Op::Drop,
    ];
    if chance.one_in(3) { chance.pick(&SELDOM) } else { chance.pick(&USUAL) }
}

fn more_faults(faults: &mut Vec<Fault>, actors: Range<usize>, chance: &mut Chance) {
    if actors.is_empty() {
        return;
    }
    for _ in 0..1 + chance.below(2) {
        let phase = chance.pick(&Phase::ALL);
        let all = kinds(phase);
        let kind = all[chance.below(all.len())];
        let before = if chance.one_in(4) { vec![any_op(chance)] } else { Vec::new() };
        let actor = actors.start + chance.below(actors.len());
        faults.push(Fault { actor, phase, nth: chance.below(4) as u32, before, kind });
    }
}

/// Whose turn it is: sometimes the same actor's for long, sometimes anybody's.
fn choices(chance: &mut Chance) -> Vec<u16> {
    let stay = chance.pick(&[0, 50, 80, 95]);
    let jump = chance.pick(&[0, 0, 1, 3]);
    (0..300)
        .map(|_| {
            let any = (chance.next() % u64::from(JUMP)) as u16;
            match chance.below(100) {
                n if n < jump => JUMP,
                n if n < jump + stay => 0,
                _ => any,
            }
        })
        .collect()
}
