//! Races and faults, simulated: releases and other writers on one table, one request at a time, in an
//! order that follows from a seed.
//!
//! Every request waits in the store until the schedule lets it go on (`schedule`), so a seed decides
//! everything: who goes first, which fault strikes whom, what the clock says. What is true of the log
//! is checked whenever something is written (`invariants`), and what each migrator said is compared
//! with what really happened. CONTRIBUTING.md says how to run more schedules and how to replay one.

mod aims;
mod answers;
mod chance;
mod checkpoint;
mod counts;
mod drive;
mod found;
mod generate;
mod grant;
mod invariants;
mod kinds;
mod log;
mod oracle;
mod reader;
mod run;
mod scenario;
mod schedule;
mod shrink;
mod store;
mod world;

use std::collections::BTreeMap;
use std::time::Instant;

use self::counts::Counts;
use self::drive::{learn, play};
use self::generate::generate;
use self::scenario::Scenario;

/// A whole number from the environment.
fn number(name: &str) -> Option<u64> {
    std::env::var(name)
        .ok()
        .map(|text| text.parse().unwrap_or_else(|_| panic!("{name} is no number: {text}")))
}

#[test]
fn explore() {
    learn();
    let schedules = number("DELTA_MIGRATE_SCHEDULES").unwrap_or(4_000);
    let first = number("DELTA_MIGRATE_SEED").unwrap_or(0);
    let began = Instant::now();
    let (mut counts, mut failures, mut steps) = (Counts::default(), Vec::new(), 0);
    for seed in first..first + schedules {
        let scenario = generate(seed);
        match std::panic::catch_unwind(|| play(&scenario, false)) {
            Ok(played) => {
                counts.merge(&played.counts);
                steps += played.steps;
                if !played.violations.is_empty() {
                    println!("seed {seed}: {}", played.violations.join("; "));
                    failures.push((seed, played.violations));
                }
            }
            Err(_) => failures.push((seed, vec!["a panic".to_owned()])),
        }
    }
    let struck: u64 = counts.struck.values().sum();
    println!("{}\n{:?}", counts.table(), counts.ended);
    println!(
        "{schedules} schedules from seed {first} in {:.1} s: {steps} requests, {struck} faults, {} failures",
        began.elapsed().as_secs_f64(),
        failures.len()
    );
    let mut classes: BTreeMap<String, Vec<(u64, &String)>> = BTreeMap::new();
    for (seed, violations) in &failures {
        violations.iter().for_each(|v| classes.entry(shrink::class(v)).or_default().push((*seed, v)));
    }
    for seeds in classes.values() {
        let (seed, first) = seeds[0];
        println!("{} times, first in seed {seed}: {first}", seeds.len());
    }
    if let Some((seed, _)) = failures.first() {
        let small = shrink::shrink(&generate(*seed));
        println!("{}", told(&small).1);
        panic!(
            "seed {seed} fails; replay it with DELTA_MIGRATE_REPLAY='{}'",
            serde_json::to_string(&small).unwrap()
        );
    }
    if let Some(least) = number("DELTA_MIGRATE_LEAST") {
        let rare = counts.below(least);
        assert!(rare.is_empty(), "these struck less often than {least} times: {rare:#?}");
    }
}

/// Plays one scenario, given as JSON or as a seed, and tells every step.
#[test]
fn replay() {
    let Ok(text) = std::env::var("DELTA_MIGRATE_REPLAY") else { return };
    learn();
    let scenario: Scenario = text.parse().map_or_else(|_| serde_json::from_str(&text).unwrap(), generate);
    let (violations, trace) = told(&scenario);
    println!("{trace}");
    assert!(violations.is_empty(), "{violations:#?}");
}

/// What a scenario comes to, and every step of it.
fn told(scenario: &Scenario) -> (Vec<String>, String) {
    match std::panic::catch_unwind(|| play(scenario, true)) {
        Ok(played) => {
            let trace = format!("{scenario:?}\n{}\n{:#?}", played.trace.join("\n"), played.violations);
            (played.violations, trace)
        }
        Err(_) => (vec!["a panic".to_owned()], format!("{scenario:?}")),
    }
}

#[test]
fn a_seed_decides_everything() {
    learn();
    for seed in [3, 14, 159] {
        let traces: Vec<Vec<String>> = (0..2).map(|_| play(&generate(seed), true).trace).collect();
        assert!(traces[0].len() > 10 && traces[0] == traces[1], "seed {seed}");
    }
}
