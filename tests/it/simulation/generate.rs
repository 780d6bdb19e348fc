//! A seed gives a scenario. Every combination of assessment, fault and phase is aimed at in turn, so
//! that the rare ones strike as well; the rest is chance.

use std::sync::OnceLock;

use super::chance::Chance;
use super::counts::{Key, combinations, kinds};
use super::kinds::{NEWEST, RAISES};
use super::scenario::{Actor, Chain, Fault, FaultKind, Op, Phase, Scenario, Start};
use super::schedule::JUMP;

pub(super) fn generate(seed: u64) -> Scenario {
    static AIMS: OnceLock<Vec<Key>> = OnceLock::new();
    let aims = AIMS.get_or_init(|| {
        combinations().into_iter().flat_map(|key| std::iter::repeat_n(key, weight(key.2))).collect()
    });
    let mut chance = Chance::new(seed);
    if seed % 8 == 7 {
        return at_random(seed, &mut chance);
    }
    // Neighbours differ, so that few seeds hit something of everything.
    aimed(seed, aims[(seed.wrapping_mul(0x9e37_79b1) % aims.len() as u64) as usize], &mut chance)
}

/// What comes late in a run is missed more often, because something else struck before.
fn weight(phase: Phase) -> usize {
    match phase {
        Phase::Read => 4,
        Phase::List => 5,
        Phase::Before => 6,
        Phase::Put | Phase::After => 7,
    }
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
        faults.push(Fault {
            actor: 0,
            phase: Phase::Put,
            nth: 0,
            before: Vec::new(),
            kind: FaultKind::ExistsNothing,
        });
    }
    // The first file that is read is the hint, which is mostly not there.
    let first = u32::from(phase == Phase::Read && kind == FaultKind::Breaks);
    let nth = if chance.one_in(5) { chance.below(4) as u32 } else { first };
    faults.push(Fault { actor: 0, phase, nth, before, kind });
    if let FaultKind::Meanwhile(op) = kind {
        start.ops.retain(|had| *had != op || matches!(op, Op::Append | Op::CleanUp | Op::Checkpoint));
    }
    let create = assessment == "missing" || !chance.one_in(4);
    let mut actors = vec![migrator(known, Chain::Ours, create, chance)];
    if let Actor::Migrator { budget_ms, .. } = &mut actors[0]
        && !chance.one_in(4)
    {
        *budget_ms = 60_000;
    }
    if chance.one_in(2) {
        others(&mut actors, chance);
    }
    if chance.one_in(2) {
        more_faults(&mut faults, actors.len(), chance);
    }
    Scenario { seed, start, actors, faults, choices: choices(chance) }
}

fn at_random(seed: u64, chance: &mut Chance) -> Scenario {
    let known = chance.pick(&[1, 2, 3, 4, 5, NEWEST]);
    let mut start = pending_table(known, chance);
    start.table = !chance.one_in(6);
    let mut actors = vec![migrator(known, Chain::Ours, !chance.one_in(3), chance)];
    while actors.len() < 3 {
        others(&mut actors, chance);
    }
    let mut faults = Vec::new();
    for _ in 0..chance.below(4) {
        more_faults(&mut faults, actors.len(), chance);
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

fn others(actors: &mut Vec<Actor>, chance: &mut Chance) {
    for _ in 0..chance.below(3) {
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

fn more_faults(faults: &mut Vec<Fault>, actors: usize, chance: &mut Chance) {
    for _ in 0..1 + chance.below(2) {
        let phase = chance.pick(&Phase::ALL);
        let all = kinds(phase);
        let kind = all[chance.below(all.len())];
        let before = if chance.one_in(4) { vec![any_op(chance)] } else { Vec::new() };
        faults.push(Fault { actor: chance.below(actors), phase, nth: chance.below(4) as u32, before, kind });
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
