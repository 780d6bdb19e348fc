//! The two commands.

use std::fs::File;

use delta_migrate::deltalake::arrow::ipc::writer::FileWriter;
use delta_migrate::deltalake::parquet::arrow::ArrowWriter;

use super::*;
use crate::support::command::on;
use crate::support::{Ran, run};

/// The schema in files beside the table.
fn files(table: &Table) {
    let schema = Arc::new(schema());
    let create = |name: &str| File::create(table.beside(name)).unwrap();
    ArrowWriter::try_new(create("a.parquet"), schema.clone(), None).unwrap().close().unwrap();
    FileWriter::try_new(create("a.arrow"), &schema).unwrap().finish().unwrap();
}

/// A command in the table's folder with a namespace and no kind.
fn with_schema(table: &Table, args: &[&str]) -> Ran {
    run(&table.beside(""), &[args, &["--namespace", "app"]].concat())
}

fn shown(table: &Table, args: &[&str]) -> String {
    let ran = with_schema(table, args);
    let folder = table.beside("");
    let folder = folder.to_str().unwrap().trim_end_matches('/');
    let mut text = format!("$ delta-migrate {}\n{}", args.join(" "), ran.stdout);
    ran.stderr.lines().for_each(|line| text.push_str(&format!("stderr: {line}\n")));
    text.push_str(&format!("exit code {}\n\n", ran.code));
    text.replace(folder, "[HERE]")
}

/// A table that differs in every way that columns can.
fn different() -> Table {
    let mut log = facts();
    let fields = log.schema["fields"].as_array_mut().unwrap();
    fields[1] = column("code", "long");
    fields.push(column("theirs", "date"));
    fields.push(column("tenants", "string"));
    log.table()
}

#[test]
fn people_are_shown_what_is_added_and_what_is_left() {
    let table = different();
    files(&table);
    let mut text = String::new();
    for args in [
        &["diff", "facts", "--schema", "a.parquet"][..],
        &["reconcile", "facts", "--schema", "a.parquet", "--dry-run"],
        &["reconcile", "facts", "--schema", "a.parquet"],
        &["reconcile", "facts", "--schema", "a.arrow"],
        &["diff", "facts", "--schema", "a.arrow", "--add", "tenant", "--check"],
        &["reconcile", "facts", "--schema", "a.arrow", "--add", "tenant"],
        &["history", "facts", "--kind-file", "k.toml"],
    ] {
        std::fs::write(table.beside("k.toml"), "kind = \"k\"\n[columns]\nid = \"long\"\n").unwrap();
        text.push_str(&shown(&table, args));
    }
    assert_eq!(table.versions(), [0, 1, 2]);
    let mut settings = insta::Settings::clone_current();
    settings.set_omit_expression(true);
    settings.add_filter(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "[AT]");
    settings.add_filter(r"delta-migrate \d+\.\d+\.\d+", "delta-migrate [VERSION]");
    settings.bind(|| insta::assert_snapshot!("diff_and_reconcile", text));
}

#[test]
fn names_of_a_table_move_no_cursor_and_forge_no_line() {
    let forged = "x\u{1b}[2J\ncurrent   FORGED";
    let mut mapped = column(forged, "long");
    mapped["metadata"] = json!({ "delta.columnMapping.id": 1, "delta.columnMapping.physicalName": "p" });
    let table = Log::new(vec![mapped]).versions(2, 5).property("delta.columnMapping.mode", "name").table();
    files(&table);
    for args in [&["diff", "facts"][..], &["reconcile", "facts", "--dry-run"]] {
        let ran = with_schema(&table, &[args, &["--schema", "a.parquet"]].concat());
        assert!(ran.stdout.contains("FORGED"), "{ran:?}");
        assert!(!ran.stdout.contains('\u{1b}') && !ran.stdout.contains("\ncurrent"), "{ran:?}");
    }
}

/// What was begun is finished, and told; nothing else is begun.
#[cfg(unix)]
#[test]
fn an_interrupt_begins_no_other_table() {
    let first = facts().table();
    files(&first);
    let folder = first.beside("");
    let names: Vec<String> = (0..150).map(|n| format!("t{n:03}")).collect();
    names.iter().for_each(|name| copy(first.path(), &folder.join(name)));
    let mut args = vec!["--namespace", "app", "--format", "json", "reconcile", "--schema", "a.arrow"];
    args.extend(names.iter().map(String::as_str));
    let mut command = crate::support::command(&folder);
    let piped = std::process::Stdio::piped;
    let child = command.args(&args).stdout(piped()).stderr(piped()).spawn().unwrap();
    let landed = |name: &str| folder.join(name).join("_delta_log/00000000000000000001.json").exists();
    while !landed(&names[0]) {
        std::thread::yield_now();
    }
    std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    let ran = Ran::of(child.wait_with_output().unwrap());
    let report = ran.json();
    for (name, table) in names.iter().zip(report["tables"].as_array().unwrap()) {
        let wanted = if landed(name) { "reconciled" } else { "skipped" };
        assert_eq!(table["outcome"], wanted, "{table}");
    }
    let skipped = &report["summary"]["skipped"];
    assert!(skipped.as_u64().unwrap() > 0, "the interrupt came while 150 tables were worked on, one by one");
    assert_eq!(ran.code, 1);
    let again = run(&folder, &args);
    assert_eq!((again.code, &again.json()["summary"]["reconciled"]), (0, skipped), "{again:?}");
}

#[test]
fn exit_codes_and_documents() {
    let table = facts().table();
    files(&table);
    let before = table.files();
    let json = |args: &[&str]| {
        let ran =
            with_schema(&table, &[args, &["facts", "--schema", "a.parquet", "--format", "json"]].concat());
        (ran.code, ran.table(), ran.json())
    };
    for (args, code) in [(&["diff"][..], 0), (&["diff", "--check"], 3), (&["reconcile", "--dry-run"], 0)] {
        let (found, report, document) = json(args);
        assert_eq!((found, &report["outcome"]), (code, &json!("planned")), "{args:?}: {report}");
        assert_eq!(document["command"], args[0]);
        assert_eq!(document["summary"]["planned"], 1);
        let adds = json!([
            { "change": "add_column", "path": "payload.rows", "type": "integer" },
            { "change": "add_column", "path": "tenant", "type": "string", "comment": "who" },
        ]);
        assert_eq!(report["diff"], json!({ "adds": adds, "left": [] }));
        assert!(
            report.get("kind").is_none()
                && report.get("from").is_none()
                && report.get("migrations").is_none()
        );
        assert!(table.files() == before, "{args:?}");
    }
    let (code, report, document) = json(&["reconcile"]);
    assert_eq!((code, &report["outcome"], &report["commits"]), (0, &json!("reconciled"), &json!(1)));
    assert_eq!(document["summary"]["reconciled"], 1);
    assert_eq!(report["diff"]["adds"].as_array().unwrap().len(), 2);
    let before = table.files();
    let (code, report, _) = json(&["reconcile"]);
    assert_eq!(
        (code, &report["outcome"], &report["diff"]),
        (0, &json!("current"), &json!({ "adds": [], "left": [] }))
    );
    assert_eq!(json(&["diff", "--check"]).0, 0);
    assert!(table.files() == before);
}

#[test]
fn a_refused_table_is_told_with_its_differences() {
    let mut log = facts();
    log.schema["fields"].as_array_mut().unwrap().remove(1);
    let table = log.table();
    files(&table);
    let before = table.files();
    for args in [&["diff"][..], &["diff", "--check"], &["reconcile", "--dry-run"], &["reconcile"]] {
        let ran =
            with_schema(&table, &[args, &["facts", "--schema", "a.parquet", "--format", "json"]].concat());
        let report = ran.table();
        assert_eq!((ran.code, &report["outcome"]), (1, &json!("refused")), "{report}");
        assert_eq!(report["error"]["code"], "required_column");
        assert_eq!(report["diff"]["adds"].as_array().unwrap().len(), 2, "{report}");
        assert_eq!(report["diff"]["left"][0]["difference"], "required_column");
        assert!(table.files() == before);
    }
    let text = with_schema(&table, &["reconcile", "facts", "--schema", "a.parquet"]);
    assert!(text.stdout.contains("facts: nothing was added"), "{text:?}");
    assert!(
        text.stdout.contains("required_column: the table lacks `code` (string), which is required"),
        "{text:?}"
    );
}

#[test]
fn without_a_schema_the_kind_says_what_is_wanted() {
    let table = facts().table();
    let ran = on(&table, &crate::support::kind_file(2), &["reconcile", table.arg()]);
    let report = ran.table();
    assert_eq!((ran.code, &report["kind"], &report["outcome"]), (0, &json!("facts"), &json!("reconciled")));
    assert_eq!(report["assessment"]["state"], "unversioned");
    assert_eq!(table.property("app.schema_version"), None);
    // An edited chain is not taken, as `apply` takes none.
    let lock = on(&table, &crate::support::kind_file(2), &["lock"]);
    assert_eq!(lock.code, 0, "{lock:?}");
    let edited = FACTS.replace("detail = { type = \"string\"", "detail = { type = \"long\"");
    let before = table.files();
    let ran = on(&table, &edited, &["reconcile", table.arg()]);
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(table.files() == before);
}

#[test]
fn what_cant_be_used_is_told_before_the_first_table() {
    let table = facts().table();
    files(&table);
    std::fs::write(table.beside("text"), "a,b\n").unwrap();
    let before = table.files();
    for (args, wanted) in [
        (&["reconcile", "facts", "--schema", "text", "--namespace", "app"][..], "is no Arrow IPC file"),
        (&["reconcile", "facts", "--schema", "nowhere", "--namespace", "app"], "can't be read"),
        (&["reconcile", "facts", "--schema", "a.arrow"], "which namespace?"),
        (&["reconcile", "--schema", "a.arrow", "--namespace", "app"], "<TABLE>"),
        (
            &["reconcile", "facts", "--schema", "a.arrow", "--namespace", "app", "--kind", "k"],
            "cannot be used with",
        ),
        (
            &["diff", "facts", "--schema", "a.arrow", "--namespace", "app", "--add", "x"],
            "there is no column `x` to add",
        ),
        (&["diff", "facts", "--namespace", "app"], "there is no `delta-migrate.toml` here"),
    ] {
        let ran = run(&table.beside(""), args);
        assert_eq!(ran.code, 2, "{args:?}: {ran:?}");
        assert!(ran.stderr.contains(wanted), "{args:?}: {ran:?}");
    }
    assert!(table.files() == before);
}
