//! What went wrong once when somebody tried to break the command.

use std::process::Stdio;

use serde_json::json;

use super::Lake;
use crate::support::command::{on, run};
use crate::support::{FACTS, command, facts};

#[test]
fn a_mistyped_name_beside_a_configuration_makes_no_table() {
    let lake = Lake::copy();
    let folder = lake.path();
    for kind in ["customers", "metrics"] {
        std::fs::remove_file(folder.join(format!("kinds/{kind}.toml"))).unwrap();
    }
    std::fs::remove_file(folder.join("migrations.lock")).unwrap();
    std::fs::write(
        folder.join("delta-migrate.toml"),
        "namespace = \"shop\"\n[[tables]]\nuri = \"tables/orders_us\"\nkind = \"orders\"\n",
    )
    .unwrap();
    for args in [&["status"][..], &["plan"], &["apply"]] {
        let ran = run(&folder, &[args, &["--format", "json", "tables/ordres_us"]].concat());
        assert_eq!((ran.code, &ran.table()["error"]["code"]), (1, &json!("missing")), "{ran:?}");
        assert!(!folder.join("tables/ordres_us").exists());
    }
    let asked = run(&folder, &["apply", "--kind", "orders", "--format", "json", "tables/ordres_us"]);
    assert_eq!((asked.code, &asked.table()["outcome"]), (0, &json!("created")), "{asked:?}");
}

#[test]
fn results_that_can_not_be_written_are_an_error_and_no_panic() {
    let Ok(full) = std::fs::OpenOptions::new().write(true).open("/dev/full") else {
        eprintln!("SKIPPED: this system has no /dev/full");
        return;
    };
    let table = facts().table();
    let file = table.beside("kind.toml");
    std::fs::write(&file, FACTS).unwrap();
    let args = ["--namespace", "app", "--kind-file", file.to_str().unwrap(), "status", table.arg()];
    let ended = command(&table.beside("")).args(args).stdout(full).stderr(Stdio::piped()).output().unwrap();
    let said = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(1), "{said}");
    assert!(said.contains("stdout can't be written"), "{said}");
}

#[test]
fn a_plan_is_asked_for_its_own_tables_only() {
    let table = facts().table();
    let file = table.beside("plan.json").to_str().unwrap().to_owned();
    assert_eq!(on(&table, FACTS, &["plan", "-o", &file, table.arg()]).code, 0);
    let other = on(&table, FACTS, &["apply", "--plan", &file, "somewhere/else"]);
    assert_eq!((other.code, &other.json()["error"]["code"]), (2, &json!("usage")), "{other:?}");
    // The same table in another spelling is still the same table.
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace(table.arg(), &format!("{}/./", table.arg()))).unwrap();
    let spelled = on(&table, FACTS, &["apply", "--plan", &file]);
    assert_eq!((spelled.code, &spelled.table()["outcome"]), (0, &json!("migrated")), "{spelled:?}");
}

#[test]
fn a_plan_that_can_not_be_saved_is_one_document_on_stdout() {
    let table = facts().table();
    let ran = on(&table, FACTS, &["plan", "-o", "no/such/folder/plan.json", table.arg()]);
    assert_eq!((ran.code, &ran.json()["error"]["code"]), (2, &json!("usage")), "{ran:?}");
}

#[test]
fn text_of_a_table_moves_no_cursor_and_forges_no_line() {
    let forged = "x\u{1b}[2J\ncurrent   FORGED";
    let history =
        json!([{ "by": forged, "floor": 99, "from": 0, "to": 99, "how": "migrated", "at": forged }]);
    let table = facts()
        .stamped(0)
        .property("app.min_version", "99")
        .property("app.schema_history", &history.to_string())
        .table();
    let file = table.beside("kind.toml");
    std::fs::write(&file, FACTS).unwrap();
    let with = ["--namespace", "app", "--kind-file", file.to_str().unwrap()];
    for command in ["status", "history"] {
        let ran = run(&table.beside(""), &[&with[..], &[command, table.arg()]].concat());
        assert!(ran.stdout.contains("FORGED"), "{ran:?}");
        assert!(!ran.stdout.contains('\u{1b}') && !ran.stdout.contains("\ncurrent"), "{ran:?}");
    }
}

#[test]
fn a_record_that_can_not_be_read_is_said_to_be_so() {
    let table = facts().stamped(0).property("app.schema_history", "garbage").table();
    let ran = on(&table, FACTS, &["history", table.arg()]);
    assert_eq!(ran.json()["unreadable"], "garbage", "{ran:?}");
}

/// Whatever the moment of the interrupt: the report tells what was done, and a second run does the rest.
#[cfg(unix)]
#[test]
fn an_interrupt_ends_what_was_begun_and_reports_it() {
    let first = facts().table();
    let folder = first.beside("");
    let names: Vec<String> = (0..150).map(|n| format!("t{n:03}")).collect();
    for name in &names {
        let log = folder.join(name).join("_delta_log");
        std::fs::create_dir_all(&log).unwrap();
        let entry = "00000000000000000000.json";
        std::fs::copy(first.path().join("_delta_log").join(entry), log.join(entry)).unwrap();
    }
    std::fs::write(first.beside("kind.toml"), FACTS).unwrap();
    let mut args = vec!["--namespace", "app", "--kind-file", "kind.toml", "--format", "json", "apply"];
    args.extend(["--concurrency", "1"]);
    args.extend(names.iter().map(String::as_str));
    let child = command(&folder).args(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let landed = |name: &str| folder.join(name).join("_delta_log/00000000000000000001.json").exists();
    while !landed(&names[0]) {
        std::thread::yield_now();
    }
    std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    let ran = crate::support::Ran::of(child.wait_with_output().unwrap());
    let report = ran.json();
    let tables = report["tables"].as_array().unwrap();
    assert_eq!(tables.len(), names.len());
    for (name, table) in names.iter().zip(tables) {
        let wanted = if landed(name) { "migrated" } else { "skipped" };
        assert_eq!(table["outcome"], wanted, "{table}");
    }
    let skipped = tables.iter().filter(|t| t["outcome"] == "skipped").count();
    assert!(skipped > 0, "the interrupt came while 150 tables were worked on, one by one");
    assert_eq!(ran.code, 1);
    let again = run(&folder, &args);
    assert_eq!((again.code, &again.json()["summary"]["migrated"]), (0, &json!(skipped)), "{again:?}");
}
