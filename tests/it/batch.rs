//! Whole lakes: what is found, what is done with it, what is told of it.

#[cfg(feature = "unity")]
mod catalogs;
mod interrupted;
mod reports;
#[cfg(all(feature = "s3", feature = "glue", feature = "unity"))]
mod secrets;
mod sharing;
mod strangers;

use serde_json::Value;

use crate::support::lake::{Lake, by_name, lake_of_300};

fn count(report: &Value, outcome: &str) -> usize {
    report["summary"][outcome].as_u64().unwrap() as usize
}

#[tokio::test]
async fn a_lake_of_300_tables_is_brought_up_to_date_and_a_second_run_writes_nothing() {
    let (lake, behind) = lake_of_300().await;
    let before = lake.entries();
    assert_eq!(before.len(), 300);

    let (code, status) = lake.json(&["status"]);
    assert_eq!(code, 1);
    assert_eq!((count(&status, "planned"), count(&status, "current")), (behind, 298 - behind), "{status}");
    assert_eq!(lake.entries(), before, "status wrote");

    let (code, report) = lake.json(&["apply"]);
    assert_eq!(code, 1);
    assert_eq!((count(&report, "migrated"), count(&report, "current")), (behind, 298 - behind));
    assert_eq!((count(&report, "refused"), count(&report, "failed"), count(&report, "skipped")), (2, 0, 0));
    let tables = by_name(&report);
    assert_eq!(tables["too_new"]["error"]["code"], "too_new");
    assert_eq!(tables["corrupt"]["error"]["code"], "corrupt_log");
    assert!(!tables.contains_key("files"));
    assert_eq!(report["sources"][0]["tables"], 300, "{}", report["sources"]);
    assert_eq!(report["sources"][0]["complete"], true);

    let after = lake.entries();
    for table in report["tables"].as_array().unwrap() {
        let path = std::path::Path::new(table["uri"].as_str().unwrap());
        let more = after[path] - before[path];
        assert_eq!(more, usize::from(table["outcome"] == "migrated"), "{table}");
        assert_eq!(table["commits"], more, "{table}");
    }
    let uris: Vec<&str> =
        report["tables"].as_array().unwrap().iter().map(|t| t["uri"].as_str().unwrap()).collect();
    assert!(uris.is_sorted(), "tables that were found are told in the order of their locations");

    let bytes = lake.files();
    let (code, again) = lake.json(&["apply"]);
    assert_eq!((code, count(&again, "current"), count(&again, "refused")), (1, 298, 2));
    assert!(lake.files() == bytes, "the second run wrote");
}

#[tokio::test]
async fn one_table_that_never_answers_holds_up_no_other() {
    let lake = Lake::new();
    for n in 0..40 {
        match n {
            0 => lake.table("lake/t0", 2).await,
            _ => lake.copy("lake/t0", &format!("lake/t{n}")),
        }
    }
    lake.hung("lake/a_hung");
    let events = lake.path("events.jsonl");
    let (code, report) =
        lake.json(&["apply", "--concurrency", "2", "--timeout", "1", "--events", events.to_str().unwrap()]);
    assert_eq!((code, count(&report, "migrated")), (1, 40));
    let tables = by_name(&report);
    assert_eq!(tables["a_hung"]["error"]["code"], "storage");
    // It was among the first to begin and is the last to end.
    let lines = std::fs::read_to_string(events).unwrap();
    assert!(lines.lines().last().unwrap().contains("a_hung"), "{lines}");
}

#[tokio::test]
async fn the_same_table_found_twice_is_done_once_by_the_first_rule() {
    let lake = Lake::new();
    lake.table("lake/a/one", 2).await;
    lake.table("lake/a/two", 2).await;
    lake.configure(
        "[[tables]]\nuri = \"lake/a/one/\"\nkind = \"facts\"\n\
         [[discover]]\nroot = \"lake\"\n[[discover]]\nroot = \"lake/a\"\n",
    );
    #[cfg(unix)]
    std::os::unix::fs::symlink(lake.path("lake/a/two"), lake.path("lake/a/link")).unwrap();
    let (code, report) = lake.json(&["apply"]);
    assert_eq!((code, count(&report, "migrated")), (0, 2), "{report}");
    assert_eq!(report["tables"].as_array().unwrap().len(), 2, "{report}");
    let duplicates: u64 =
        report["sources"].as_array().unwrap().iter().map(|s| s["duplicates"].as_u64().unwrap()).sum();
    assert_eq!(duplicates, 3, "{report}");
    assert!(lake.entries().into_values().all(|n| n == 3));
}

#[tokio::test]
async fn more_changes_than_are_allowed_refuse_the_run_before_the_first_write() {
    let lake = Lake::new();
    for (name, version) in [("a", 2), ("b", 5), ("c", 10), ("d", 2)] {
        lake.table(&format!("lake/{name}"), version).await;
    }
    let before = lake.files();
    let (code, report) = lake.json(&["apply", "--max-changed", "2"]);
    assert_eq!((code, &report["error"]["code"]), (1, &Value::from("too_many_changes")), "{report}");
    assert_eq!((count(&report, "planned"), count(&report, "current")), (3, 1));
    assert!(report["error"]["message"].as_str().unwrap().contains("3 tables"), "{report}");
    assert!(lake.files() == before);

    let plan = lake.path("plan.json");
    assert_eq!(lake.run(&["plan", "-o", plan.to_str().unwrap()]).code, 0);
    let written = lake.path("report.json");
    let args = ["--max-changed", "2", "--report", written.to_str().unwrap(), "--events", "events.jsonl"];
    let (code, report) = lake.json(&[&["apply", "--plan", plan.to_str().unwrap()], &args[..]].concat());
    assert_eq!((code, &report["error"]["code"]), (1, &Value::from("too_many_changes")), "{report}");
    assert_eq!((count(&report, "planned"), count(&report, "current")), (3, 1));
    assert_eq!(serde_json::from_slice::<Value>(&std::fs::read(written).unwrap()).unwrap(), report);
    assert_eq!(std::fs::read_to_string(lake.path("events.jsonl")).unwrap().lines().count(), 4);
    assert!(lake.files() == before);

    let human = lake.run(&["apply", "--max-changed", "2"]);
    assert!(human.stdout.contains("--max-changed"), "{human:?}");

    let (code, report) = lake.json(&["apply", "--max-changed", "3"]);
    assert_eq!((code, count(&report, "migrated"), count(&report, "current")), (0, 3, 1), "{report}");
}

#[tokio::test]
async fn a_failure_ends_a_run_that_fails_fast() {
    let lake = Lake::new();
    lake.corrupt("lake/a");
    for name in ["b", "c", "d"] {
        lake.table(&format!("lake/{name}"), 2).await;
    }
    let tables = ["a", "b", "c", "d"].map(|n| format!("[[tables]]\nuri = \"lake/{n}\"\nkind = \"facts\"\n"));
    lake.configure(&tables.concat());
    let (code, report) = lake.json(&["apply", "--fail-fast", "--concurrency", "1"]);
    assert_eq!((code, count(&report, "refused"), count(&report, "skipped")), (1, 1, 3), "{report}");
    assert_eq!(by_name(&report)["b"]["error"]["code"], "interrupted");
    let (code, report) = lake.json(&["apply", "--concurrency", "1"]);
    assert_eq!((code, count(&report, "refused"), count(&report, "migrated")), (1, 1, 3), "{report}");
}

#[tokio::test]
async fn a_plan_is_carried_out_where_it_changes_no_more_than_is_allowed() {
    let lake = Lake::new();
    lake.table("lake/a", 2).await;
    lake.table("lake/b", 10).await;
    assert_eq!(lake.run(&["plan", "-o", "plan.json"]).code, 0);
    let (code, report) = lake.json(&["apply", "--plan", "plan.json", "--max-changed", "1", "--events", "e"]);
    assert_eq!((code, count(&report, "migrated"), count(&report, "current")), (0, 1, 1), "{report}");
    assert_eq!(std::fs::read_to_string(lake.path("e")).unwrap().lines().count(), 2);
}
