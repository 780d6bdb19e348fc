//! Whole processes, each on a fresh copy of one log: how long they take and how much memory they need
//! at most, ours, the floor below it, and delta-rs in Rust and Python, by turns.
//!
//! ```text
//! cargo bench --bench whole_process
//! cargo bench --bench whole_process -- checkpoint 1m
//! cargo bench --bench whole_process -- --help
//! ```
#![allow(clippy::print_stdout)] // figures are its purpose

mod process;
mod table;

use std::path::Path;
use std::time::Instant;

use process::measure;
use process::operations::Operation;
use process::scenarios::{self, Scenario};
use table::Result;

const ENVIRONMENT: &str = "\
DELTA_MIGRATE_BENCH_FILES      files of the middle table (100000); the others follow it
DELTA_MIGRATE_BENCH_RUNS       processes of each operation (9)
DELTA_MIGRATE_BENCH_SLOW_RUNS  of those that read the list of files (3)
DELTA_MIGRATE_BENCH_PYTHON     an interpreter that has deltalake
DELTA_MIGRATE_BENCH_OLD        another build of this bench, whose operations are run in the same rounds
DELTA_MIGRATE_BENCH_TABLE      the folder of a table without a stamp, for the scenario `outside`";

fn main() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    if let Ok(name) = std::env::var(measure::OPERATION) {
        let operation = Operation::named(&name).ok_or("no such operation")?;
        let folder = std::env::args_os().nth(1).ok_or("no folder")?;
        let started = Instant::now();
        runtime.block_on(operation.run(Path::new(&folder)))?;
        println!("{} {}", started.elapsed().as_nanos(), measure::peak()?);
        return Ok(());
    }
    let mut chosen = Vec::new();
    // Cargo says `--bench` to every bench.
    for argument in std::env::args().skip(1).filter(|argument| argument != "--bench") {
        let Some(scenario) = Scenario::ALL.into_iter().find(|s| s.name() == argument) else {
            println!("scenarios, all of them if none is named:\n");
            for scenario in Scenario::ALL {
                println!("  {:<17} {}", scenario.name(), scenario.about());
            }
            println!("\n{ENVIRONMENT}");
            let is_help = ["--help", "-h"].contains(&argument.as_str());
            return if is_help { Ok(()) } else { Err(format!("no scenario `{argument}`").into()) };
        };
        chosen.push(scenario);
    }
    if chosen.is_empty() {
        chosen.extend(Scenario::ALL);
    }
    scenarios::run(&runtime, &chosen)
}
