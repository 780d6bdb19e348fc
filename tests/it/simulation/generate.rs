//! A seed gives a scenario. Every combination of assessment, fault and phase is aimed at in turn, so
//! that the rare ones strike as well; the rest is chance.

use super::aims::{aim, aimed};
use super::chance::Chance;
use super::counts::kinds;
use super::kinds::{NEWEST, RAISES};
use super::scenario::{Actor, Chain, Fault, Op, Phase, Scenario, Start};
use super::schedule::JUMP;

pub(super) fn generate(seed: u64) -> Scenario {
    let mut chance = Chance::new(seed);
    if seed % 8 == 7 {
        return at_random(seed, &mut chance);
    }
    aimed(seed, aim(seed), &mut chance)
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
pub(super) fn pending_table(known: u32, chance: &mut Chance) -> Start {
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

pub(super) fn migrator(known: u32, chain: Chain, create: bool, chance: &mut Chance) -> Actor {
    Actor::Migrator {
        known,
        chain,
        budget_ms: chance.pick(&[0, 100, 1_000, 8_000, 60_000, 60_000, 60_000, 60_000]),
        skew_ms: chance.pick(&[0, 0, 0, -60_000, 60_000]),
        runs: chance.pick(&[1, 1, 2, 3]),
        create,
    }
}

pub(super) fn others(actors: &mut Vec<Actor>, chance: &mut Chance) {
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

pub(super) fn more_faults(faults: &mut Vec<Fault>, actors: usize, chance: &mut Chance) {
    for _ in 0..1 + chance.below(2) {
        let phase = chance.pick(&Phase::ALL);
        let all = kinds(phase);
        let kind = all[chance.below(all.len())];
        let before = if chance.one_in(4) { vec![any_op(chance)] } else { Vec::new() };
        faults.push(Fault { actor: chance.below(actors), phase, nth: chance.below(4) as u32, before, kind });
    }
}

/// Whose turn it is: sometimes the same actor's for long, sometimes anybody's.
pub(super) fn choices(chance: &mut Chance) -> Vec<u16> {
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
