//! What a run tells people, programs and files.

use serde_json::Value;

use super::count;
use crate::support::lake::Lake;

#[tokio::test]
async fn the_report_and_the_events_are_files_as_well() {
    let lake = Lake::new();
    for (name, version) in [("a", 2), ("b", 10)] {
        lake.table(&format!("lake/{name}"), version).await;
    }
    lake.too_new("lake/c");
    let (report, events) = (lake.path("report.json"), lake.path("events.jsonl"));
    let args = ["--report", report.to_str().unwrap(), "--events", events.to_str().unwrap()];
    for command in ["status", "plan", "apply", "status"] {
        let _ = std::fs::remove_file(&events);
        let (code, printed) = lake.json(&[&[command], &args[..]].concat());
        assert_eq!(code, 1);
        let written: Value = serde_json::from_slice(&std::fs::read(&report).unwrap()).unwrap();
        assert_eq!(written, printed, "{command}");
        let text = std::fs::read_to_string(&events).unwrap();
        let lines: Vec<Value> = text.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
        assert_eq!(lines.len(), 3, "{text}");
        for line in &lines {
            assert_eq!(line["command"], command);
            assert!(line["at"].as_str().unwrap().ends_with('Z'));
            let mut line = line.clone();
            let told = printed["tables"].as_array().unwrap().iter().find(|t| t["uri"] == line["uri"]);
            line.as_object_mut().unwrap().retain(|key, _| key != "at" && key != "command");
            assert_eq!(Some(&line), told, "{text}");
        }
    }
    // Events are appended, so that runs after each other share a file.
    lake.json(&[&["status"], &args[..]].concat());
    assert_eq!(std::fs::read_to_string(&events).unwrap().lines().count(), 6);
}

#[tokio::test]
async fn events_of_a_run_that_looks_first_are_one_a_table() {
    let lake = Lake::new();
    for (name, version) in [("a", 2), ("b", 10), ("c", 5)] {
        lake.table(&format!("lake/{name}"), version).await;
    }
    let events = lake.path("events.jsonl");
    for (most, outcome) in [("1", "planned"), ("2", "migrated")] {
        let _ = std::fs::remove_file(&events);
        lake.json(&["apply", "--max-changed", most, "--events", events.to_str().unwrap()]);
        let text = std::fs::read_to_string(&events).unwrap();
        let of = |outcome: &str| text.matches(&format!("\"outcome\":\"{outcome}\"")).count();
        assert_eq!((text.lines().count(), of(outcome), of("current")), (3, 2, 1), "{text}");
    }
}

#[tokio::test]
async fn files_that_can_not_be_written_are_told_before_the_first_table() {
    let lake = Lake::new();
    lake.table("lake/a", 2).await;
    let before = lake.files();
    for flag in ["--report", "--events"] {
        let ran = lake.run(&["apply", flag, "no/such/folder/file"]);
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{ran:?}");
        assert!(ran.stderr.contains("no/such/folder/file"), "{ran:?}");
    }
    assert!(lake.files() == before);
}

#[tokio::test]
async fn many_tables_of_a_sort_are_one_line() {
    let lake = Lake::new();
    lake.table("lake/current/t0", 10).await;
    for n in 1..30 {
        lake.copy("lake/current/t0", &format!("lake/current/t{n}"));
    }
    for n in 0..25 {
        crate::support::facts().write(&lake.path(&format!("lake/strange/t{n}")));
    }
    lake.too_new("lake/new/a");
    lake.too_new("lake/new/b");
    lake.table("lake/behind", 5).await;
    let ran = lake.run(&["apply"]);
    assert_eq!(ran.code, 1);
    let root = lake.path("lake").display().to_string();
    let shown = ran.stdout.replace(&root, "<lake>");
    insta::assert_snapshot!("many_tables", shown);
    assert_eq!(ran.stderr, "");
}

#[tokio::test]
async fn what_a_source_could_not_give_is_told_and_is_an_error() {
    let lake = Lake::new();
    lake.table("lake/a", 2).await;
    lake.configure("[[discover]]\nroot = \"nowhere\"\n[[discover]]\nroot = \"lake\"\n");
    let (code, report) = lake.json(&["apply"]);
    assert_eq!((code, count(&report, "migrated")), (1, 1), "{report}");
    let source = &report["sources"][0];
    assert_eq!((&source["failures"], &source["tables"]), (&Value::from(1), &Value::from(0)), "{report}");
    assert!(source["errors"][0]["message"].as_str().unwrap().contains("nowhere"), "{report}");
    assert!(source["errors"][0]["hint"].as_str().is_some_and(|h| !h.is_empty()), "{report}");
    let human = lake.run(&["apply"]);
    assert!(human.stderr.contains("nowhere"), "{human:?}");
    std::fs::create_dir(lake.path("nowhere")).unwrap();
    let human = lake.run(&["apply"]);
    assert_eq!(human.code, 0, "{human:?}");
    assert!(human.stderr.contains("found no table"), "{human:?}");
}
