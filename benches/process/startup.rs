//! The command's own start, against a process that does nothing.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use super::measure::millis;
use crate::table::Result;

const RUNS: usize = 41;

/// Built with the feature `cli` only.
const COMMAND: Option<&str> = option_env!("CARGO_BIN_EXE_delta-migrate");

const KIND: &str = "kind = \"facts\"\n[columns]\nid = \"long\"\n";

pub(crate) fn measure(folder: &Path) -> Result<()> {
    println!("## Startup\n");
    let Some(command) = COMMAND else {
        println!("left out: built without the feature `cli`");
        return Ok(());
    };
    let kind = folder.join("facts.toml");
    fs::write(&kind, KIND)?;
    let (kind, absent) = (kind.display().to_string(), folder.join("absent").display().to_string());
    let status = ["status", "--namespace", "app", "--kind-file", &kind, &absent];
    let all: [(&str, &str, &[&str]); 3] = [
        ("`true`", "true", &[]),
        ("`delta-migrate --version`", command, &["--version"]),
        ("`delta-migrate status` of a folder that isn't there", command, &status),
    ];
    let mut times: [Vec<Duration>; 3] = Default::default();
    let mut codes = [None; 3];
    for round in 0..=RUNS {
        for (((_, program, args), times), code) in all.iter().zip(&mut times).zip(&mut codes) {
            let started = Instant::now();
            let output = Command::new(program).args(*args).output()?;
            let time = started.elapsed();
            *code = output.status.code();
            if round > 0 {
                times.push(time);
            }
        }
    }
    println!("{RUNS} processes each, by turns\n");
    println!("| command | exit code | median, ms | fastest | more than `true` | fastest |");
    println!("|---|--:|--:|--:|--:|--:|");
    let figures = times.map(|mut times| {
        times.sort();
        let at = |n: usize| times.get(n).copied().map(millis).unwrap_or_default();
        (at(times.len() / 2), at(0))
    });
    let (base, base_least) = figures[0];
    for (((name, ..), code), (median, least)) in all.iter().zip(codes).zip(figures) {
        let code = code.map_or_else(|| "none".to_owned(), |code| code.to_string());
        println!(
            "| {name} | {code} | {median:.1} | {least:.1} | {:.1} | {:.1} |",
            median - base,
            least - base_least
        );
    }
    let megabytes = |path: &Path| fs::metadata(path).map(|meta| meta.len() as f64 / 1e6);
    print!("\nThe program is {:.1} MB", megabytes(Path::new(command))?);
    let stripped = folder.join("stripped");
    match Command::new("strip").arg("-o").arg(&stripped).arg(command).status() {
        Ok(status) if status.success() => println!(", {:.1} MB without symbols", megabytes(&stripped)?),
        _ => println!("; there is no `strip`"),
    }
    Ok(())
}
