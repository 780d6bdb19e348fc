//! Cuts a scenario that fails down to one that still fails in the same way.

use super::drive::play;
use super::scenario::{Actor, Scenario};

/// What a violation is about, without numbers and values.
pub(super) fn class(violation: &str) -> String {
    violation.chars().filter(|c| c.is_ascii_alphabetic() || *c == ' ').take(60).collect()
}

/// The violations of a scenario; a panic is one.
pub(super) fn violations(scenario: &Scenario) -> Vec<String> {
    std::panic::catch_unwind(|| play(scenario, false).violations)
        .unwrap_or_else(|_| vec!["a panic".to_owned()])
}

/// A scenario in which nothing can be left out without the failure going away.
pub(super) fn shrink(scenario: &Scenario) -> Scenario {
    let wanted = violations(scenario).first().map(|v| class(v));
    let fails = |s: &Scenario| violations(s).iter().any(|v| Some(class(v)) == wanted);
    let mut best = scenario.clone();
    loop {
        let smaller = candidates(&best).into_iter().find(|s| fails(s));
        match smaller {
            Some(smaller) => best = smaller,
            None => return best,
        }
    }
}

/// Scenarios that are a little smaller, the most daring first.
fn candidates(scenario: &Scenario) -> Vec<Scenario> {
    let mut out = Vec::new();
    let mut with = |change: &dyn Fn(&mut Scenario)| {
        let mut copy = scenario.clone();
        change(&mut copy);
        out.push(copy);
    };
    let choices = scenario.choices.len();
    for keep in [0, choices / 2, choices.saturating_sub(10), choices.saturating_sub(1)] {
        if keep < choices {
            with(&|s| s.choices.truncate(keep));
        }
    }
    // Taking an actor away moves the numbers of those behind it.
    for at in 0..scenario.actors.len() {
        with(&|s| {
            s.actors.remove(at);
            s.faults.retain(|f| f.actor != at);
            s.faults.iter_mut().filter(|f| f.actor > at).for_each(|f| f.actor -= 1);
        });
    }
    for at in 0..scenario.faults.len() {
        with(&|s| drop(s.faults.remove(at)));
        for op in 0..scenario.faults[at].before.len() {
            with(&|s| {
                s.faults[at].before.remove(op);
            });
        }
    }
    for at in 0..scenario.start.ops.len() {
        with(&|s| {
            s.start.ops.remove(at);
        });
    }
    if scenario.start.checksums {
        with(&|s| s.start.checksums = false);
    }
    for (at, actor) in scenario.actors.iter().enumerate() {
        match actor {
            Actor::Writer { ops } => {
                for op in 0..ops.len() {
                    with(&|s| {
                        if let Actor::Writer { ops } = &mut s.actors[at] {
                            ops.remove(op);
                        }
                    });
                }
            }
            Actor::Migrator { runs, skew_ms, budget_ms, .. } => {
                let simple = |s: &mut Scenario, fewer: u32, skew: i64, budget: u64| {
                    if let Actor::Migrator { runs, skew_ms, budget_ms, .. } = &mut s.actors[at] {
                        (*runs, *skew_ms, *budget_ms) = (fewer, skew, budget);
                    }
                };
                if *runs > 1 {
                    with(&|s| simple(s, runs - 1, *skew_ms, *budget_ms));
                }
                if *skew_ms != 0 {
                    with(&|s| simple(s, *runs, 0, *budget_ms));
                }
                if *budget_ms != 60_000 {
                    with(&|s| simple(s, *runs, *skew_ms, 60_000));
                }
            }
        }
    }
    // A turn that does not matter goes to whoever went last.
    for at in (0..choices).filter(|at| scenario.choices[*at] != 0) {
        with(&|s| s.choices[at] = 0);
        if scenario.choices[at] > 40 {
            with(&|s| s.choices[at] %= 40);
        }
    }
    out
}
