//! Runs that are ended from outside, softly and hard.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};

use serde_json::Value;

use super::count;
use crate::support::command::{Ran, command};
use crate::support::lake::Lake;

async fn lake(tables: usize) -> Lake {
    let lake = Lake::new();
    lake.table("lake/t0", 2).await;
    for n in 1..tables {
        lake.copy("lake/t0", &format!("lake/t{n}"));
    }
    lake
}

fn start(lake: &Lake, args: &[&str]) -> Child {
    command(&lake.path("")).args(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn signal(child: &Child, name: &str) {
    let done = std::process::Command::new("kill").args([name, &child.id().to_string()]).status().unwrap();
    assert!(done.success());
}

/// Waits until the run has told of so many tables.
fn wait_for_events(lake: &Lake, lines: usize) {
    for _ in 0..2000 {
        let text = std::fs::read_to_string(lake.path("events.jsonl")).unwrap_or_default();
        if text.lines().count() >= lines {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    panic!("no events");
}

#[tokio::test]
async fn the_first_signal_ends_a_run_softly_and_a_rerun_does_the_rest() {
    for name in ["-INT", "-TERM"] {
        let lake = lake(30).await;
        // Beside a table that takes ten seconds, so that the run is still under way.
        lake.hung("lake/hung");
        let tables: Vec<String> = (0..30)
            .map(|n| if n == 3 { "hung".to_owned() } else { format!("t{n}") })
            .map(|n| format!("[[tables]]\nuri = \"lake/{n}\"\nkind = \"facts\"\n"))
            .collect();
        lake.configure(&tables.concat());
        let args =
            ["apply", "--format", "json", "--concurrency", "1", "--timeout", "1", "--events", "events.jsonl"];
        let child = start(&lake, &args);
        wait_for_events(&lake, 3);
        // The fourth is begun as soon as the third is told.
        std::thread::sleep(std::time::Duration::from_millis(200));
        signal(&child, name);
        let ran = Ran::of(child.wait_with_output().unwrap());
        let report = ran.json();
        assert_eq!(ran.code, 1, "{ran:?}");
        assert_eq!((count(&report, "migrated"), count(&report, "failed")), (3, 1), "{report}");
        assert_eq!(count(&report, "skipped"), 26, "{report}");
        assert!(ran.stderr.contains("once more to end at once"), "{ran:?}");
        std::fs::remove_dir_all(lake.path("lake/hung")).unwrap();
        lake.configure("[[discover]]\nroot = \"lake\"\n");
        let (code, report) = lake.json(&["apply"]);
        assert_eq!((code, count(&report, "migrated"), count(&report, "current")), (0, 27, 3), "{report}");
        assert!(lake.entries().into_values().all(|n| n == 3));
    }
}

#[tokio::test]
async fn the_second_signal_ends_a_run_at_once() {
    let lake = lake(1).await;
    lake.hung("lake/hung");
    let mut child = start(&lake, &["apply", "--events", "events.jsonl", "--timeout", "300"]);
    wait_for_events(&lake, 1);
    signal(&child, "-INT");
    let mut line = String::new();
    BufReader::new(child.stderr.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert!(line.contains("interrupted"), "{line}");
    signal(&child, "-INT");
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

#[tokio::test]
async fn a_run_that_is_killed_anywhere_is_finished_by_the_next() {
    let lake = lake(60).await;
    let mut killed = 0;
    for n in [1, 7, 19] {
        let mut child = start(&lake, &["apply", "--concurrency", "3", "--events", "events.jsonl"]);
        wait_for_events(&lake, n);
        // It may have ended by itself in the meantime.
        if child.try_wait().unwrap().is_none() {
            child.kill().unwrap();
            killed += 1;
        }
        child.wait().unwrap();
        let text = std::fs::read_to_string(lake.path("events.jsonl")).unwrap();
        for line in text.lines() {
            let told: Value = serde_json::from_str(line).unwrap();
            assert!(told["outcome"] == "migrated" || told["outcome"] == "current", "{told}");
        }
        std::fs::remove_file(lake.path("events.jsonl")).unwrap();
    }
    assert!(killed > 0);
    let (code, report) = lake.json(&["apply"]);
    assert_eq!((code, count(&report, "migrated") + count(&report, "current")), (0, 60), "{report}");
    // Nothing was done twice.
    assert!(lake.entries().into_values().all(|n| n == 3), "{:?}", lake.entries());
    let (code, again) = lake.json(&["status", "--check"]);
    assert_eq!((code, count(&again, "current")), (0, 60));
}
