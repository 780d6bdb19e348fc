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
