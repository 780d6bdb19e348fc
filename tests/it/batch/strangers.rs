//! Which kind a table that was found is of, and what is left alone.

use serde_json::Value;

use super::count;
use crate::support::lake::{Lake, by_name};
use crate::support::{FACTS, Log, column, facts};

fn identified() -> String {
    FACTS.replacen("[columns]", "identified_by = [\"code\", \"payload\"]\n\n[columns]", 1)
}

#[tokio::test]
async fn without_a_rule_only_the_tables_own_stamp_says_its_kind() {
    let lake = Lake::new();
    lake.table("lake/ours", 2).await;
    facts().write(&lake.path("lake/unstamped"));
    facts().property("app.schema_version", "2").write(&lake.path("lake/no_kind"));
    facts().property("app.schema_version", "1").property("app.kind", "other").write(&lake.path("lake/other"));
    facts().property("else.schema_version", "1").property("else.kind", "facts").write(&lake.path("lake/ns"));
    let strangers = ["unstamped", "no_kind", "other", "ns"];
    let before = strangers.map(|n| crate::support::table::files_below(&lake.path(&format!("lake/{n}"))));
    let (code, report) = lake.json(&["apply"]);
    assert_eq!((code, count(&report, "migrated"), count(&report, "skipped")), (0, 1, 4), "{report}");
    let tables = by_name(&report);
    for (name, reason) in [
        ("unstamped", "no stamp of namespace `app`"),
        ("no_kind", "no kind stamp"),
        ("other", "kind `other`"),
        ("ns", "no stamp of namespace `app`"),
    ] {
        assert_eq!(tables[name]["outcome"], "skipped", "{report}");
        assert!(tables[name]["reason"].as_str().unwrap().contains(reason), "{}", tables[name]);
        assert!(tables[name].get("error").is_none());
    }
    let after = strangers.map(|n| crate::support::table::files_below(&lake.path(&format!("lake/{n}"))));
    assert!(before == after, "a stranger was written to");
    let (code, status) = lake.json(&["status", "--check"]);
    assert_eq!((code, count(&status, "skipped")), (0, 4));
}

#[tokio::test]
async fn a_stamp_whose_version_vanished_is_not_taken_for_zero() {
    let lake = Lake::new();
    facts().property("app.kind", "facts").txn("app/facts", 3).write(&lake.path("lake/lost"));
    let (code, report) = lake.json(&["apply"]);
    assert_eq!(
        (code, &by_name(&report)["lost"]["error"]["code"]),
        (1, &Value::from("stamp_lost")),
        "{report}"
    );
}

#[tokio::test]
async fn a_table_that_a_rule_finds_is_adopted_only_where_its_kind_can_be_told() {
    let lake = Lake::new();
    facts().write(&lake.path("lake/like_ours"));
    Log::new(vec![column("name", "string")]).write(&lake.path("lake/stranger"));
    lake.configure("[[discover]]\nroot = \"lake\"\nkind = \"facts\"\n");
    let before = lake.files();
    let (code, report) = lake.json(&["apply"]);
    assert_eq!((code, count(&report, "refused")), (1, 2), "{report}");
    let error = by_name(&report)["like_ours"]["error"].clone();
    assert_eq!(error["code"], "unversioned", "{report}");
    assert!(error["hint"].as_str().unwrap().contains("baseline"), "{report}");
    assert!(lake.files() == before);

    std::fs::write(lake.path("kinds/facts.toml"), identified()).unwrap();
    let (code, report) = lake.json(&["apply"]);
    assert_eq!((code, count(&report, "migrated"), count(&report, "refused")), (1, 1, 1), "{report}");
    assert_eq!(by_name(&report)["like_ours"]["outcome"], "migrated");
    assert_eq!(by_name(&report)["stranger"]["error"]["code"], "not_this_kind");
}

#[tokio::test]
async fn a_listed_table_is_adopted_and_created_and_a_found_one_is_not() {
    let lake = Lake::new();
    facts().write(&lake.path("lake/listed"));
    lake.configure(
        "[[tables]]\nuri = \"lake/listed\"\nkind = \"facts\"\n\
         [[tables]]\nuri = \"lake/new\"\nkind = \"facts\"\n\
         [[discover]]\nroot = \"lake\"\nkind = \"facts\"\n",
    );
    let (code, report) = lake.json(&["apply"]);
    assert_eq!((code, count(&report, "migrated"), count(&report, "created")), (0, 1, 1), "{report}");
}

#[tokio::test]
async fn globs_say_which_tables_of_a_walk_are_meant() {
    let lake = Lake::new();
    for name in ["cdc_a", "x/cdc_b", "x/other", "_tmp/cdc_c", "x/scratch/cdc_d"] {
        lake.table(&format!("lake/{name}"), 2).await;
    }
    lake.configure(
        "[[discover]]\nroot = \"lake\"\ninclude = [\"**/cdc_*\"]\nexclude = [\"**/scratch/**\"]\n",
    );
    let (code, report) = lake.json(&["apply"]);
    assert_eq!(code, 0);
    assert_eq!(by_name(&report).into_keys().collect::<Vec<_>>(), ["cdc_a", "cdc_b"], "{report}");
    // Globs that mean nothing are told, also where the tables lie deeper than they reach.
    for include in ["nothing_*", "cdc_b", "**/nothing"] {
        lake.configure(&format!("[[discover]]\nroot = \"lake\"\ninclude = \"{include}\"\n"));
        let ran = lake.run(&["status"]);
        assert!(ran.stderr.contains("mean no table"), "{include}: {ran:?}");
    }
}

/// Two kinds, so that a table's kind has to be told.
async fn two_kinds() -> Lake {
    let lake = Lake::new();
    let other = FACTS.replacen("kind = \"facts\"", "kind = \"other\"", 1);
    std::fs::write(lake.path("kinds/other.toml"), other).unwrap();
    lake.table("lake/ours", 2).await;
    facts().write(&lake.path("lake/unstamped"));
    lake
}

#[tokio::test]
async fn a_named_table_is_of_the_kind_that_its_own_stamp_says() {
    let lake = two_kinds().await;
    let before = lake.files();
    let unknown = lake.json(&["apply", "lake/unstamped"]);
    assert_eq!((unknown.0, &unknown.1["tables"][0]["error"]["code"]), (1, &Value::from("unversioned")));
    assert!(unknown.1["tables"][0]["error"]["hint"].as_str().unwrap().contains("--kind"));
    assert_eq!(lake.run(&["baseline", "lake/unstamped", "--at", "0"]).code, 2);
    assert!(lake.files() == before);
    let (code, report) = lake.json(&["apply", "lake/ours"]);
    assert_eq!((code, count(&report, "migrated")), (0, 1), "{report}");
    assert_eq!(report["tables"][0]["kind"], "facts");
    let args = ["repair", "lake/ours", "--restamp", "10", "--why", "x", "--dry-run"];
    assert!(lake.run(&args).code <= 1, "the stamp says the kind here too");
}

#[tokio::test]
async fn the_kind_of_the_command_line_is_for_the_tables_of_the_command_line() {
    let lake = two_kinds().await;
    lake.configure("[[tables]]\nuri = \"lake/new\"\nkind = \"facts\"\n[[discover]]\nroot = \"lake\"\n");
    let before = lake.files();
    for command in ["status", "plan", "apply"] {
        let ran = lake.run(&[command, "--kind", "other"]);
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{ran:?}");
        assert!(ran.stderr.contains("none was named"), "{ran:?}");
    }
    assert!(lake.files() == before);
}

#[tokio::test]
async fn a_short_name_out_of_a_report_makes_no_new_table() {
    let lake = two_kinds().await;
    let before = crate::support::table::files_below(&lake.path(""));
    for args in [&["apply", "ours"][..], &["apply", "--kind", "facts", "ours"]] {
        let ran = lake.run(args);
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{ran:?}");
        assert!(ran.stderr.contains("whole location"), "{ran:?}");
    }
    assert!(crate::support::table::files_below(&lake.path("")) == before);
}

#[tokio::test]
async fn a_strangers_stamp_can_not_draw_on_the_terminal() {
    let lake = Lake::new();
    let log = facts().property("app.schema_version", "1").property("app.kind", "o\u{1b}[31m\r\nders");
    log.write(&lake.path("lake/other"));
    let ran = lake.run(&["status"]);
    assert!(!ran.stdout.contains('\u{1b}') && !ran.stdout.contains('\r'), "{ran:?}");
    assert_eq!(ran.stdout.lines().count(), 3, "{ran:?}");
}
