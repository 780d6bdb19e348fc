//! Hostile sizes: the command answers or refuses, within bounded memory, and never aborts.
//!
//! The command runs under a limit of its address space, so that what grows without bound is killed
//! here and not found on somebody's pod.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::support::{Ran, Table, column, command, facts, struct_type};

/// Kilobytes of address space: threads and mapped libraries are in it, so that it is far above what
/// is really used.
const LIMIT: u32 = 2_500_000;

const KIND: &str = "kind = \"facts\"\n[columns]\nid = \"long\"\n[[migrations]]\ndescription = \"one more\"\nadd_columns = { more = \"string\" }\n";

/// Runs `plan` on the table, which must neither be killed nor write.
fn plan(table: &Table, kind: &str) -> Ran {
    let file = table.beside("kind.toml");
    std::fs::write(&file, kind).unwrap();
    let before = table.versions();
    let inner = command(&table.beside(""));
    let mut limited = std::process::Command::new("bash");
    limited
        .args(["-c", &format!("ulimit -v {LIMIT}; exec \"$0\" \"$@\"")])
        .arg(inner.get_program())
        .args(["--namespace", "app", "--format", "json", "--kind-file"])
        .arg(file)
        .args(["plan", table.arg()]);
    let ran = Ran::of(limited.output().unwrap());
    assert_eq!(table.versions(), before);
    ran
}

/// The code of the refusal, or the outcome.
fn said(ran: &Ran) -> String {
    let report = ran.json();
    let table = &report["tables"][0];
    let code = table["error"]["code"].as_str().or(table["outcome"].as_str());
    code.unwrap_or_else(|| panic!("{ran:?}")).to_owned()
}

fn id_and(more: Vec<Value>) -> Vec<Value> {
    [vec![column("id", "long")], more].concat()
}

#[test]
fn properties_of_a_hundred_megabytes() {
    let big = 100_000_000;
    let stranger = facts().property("owner", &"y".repeat(big)).table();
    assert_eq!(said(&plan(&stranger, KIND)), "planned");
    let stamp = facts().property("app.schema_version", &"1".repeat(big)).table();
    let ran = plan(&stamp, KIND);
    assert_eq!(said(&ran), "invalid_stamp");
    assert!(ran.stdout.len() < 10_000, "the whole value is repeated: {} bytes", ran.stdout.len());
}

#[test]
fn records_and_digests_without_end() {
    let entries = [r#"{"from":0,"to":1,"at":"x","by":"b","how":"created"}"#; 300_000].join(",");
    let history = facts().stamped(0).property("app.schema_history", &format!("[{entries}]")).table();
    assert_eq!(said(&plan(&history, KIND)), "planned");
    let nested = facts().stamped(0).property("app.schema_history", &"[".repeat(5_000_000)).table();
    // It would be lost if it was written anew.
    assert_eq!(said(&plan(&nested, KIND)), "invalid_stamp");
    let digest = format!("1:{}", ["abcdef01"; 1_000_000].join(","));
    let digest = facts().stamped(0).property("app.schema_digest", &digest).table();
    assert_eq!(said(&plan(&digest, KIND)), "diverged");
}

#[test]
fn a_schema_of_a_hundred_thousand_fields() {
    let fields = (0..100_000).map(|n| column(&format!("c{n}"), "string")).collect();
    let table = facts().metadata("schemaString", struct_type(id_and(fields)).to_string()).table();
    assert_eq!(said(&plan(&table, KIND)), "planned");
    let mut kind = "kind = \"facts\"\n[columns]\nid = \"long\"\n".to_owned();
    (0..2_000).for_each(|n| writeln!(kind, "c{n} = \"string\"").unwrap());
    assert_eq!(said(&plan(&table, &kind)), "planned");
}

#[test]
fn types_nested_deeper_than_any_reader_goes() {
    for depth in [90, 1_000, 1_000_000] {
        let open = r#"{"type":"array","containsNull":true,"elementType":"#.repeat(depth);
        let schema = format!(
            r#"{{"type":"struct","fields":[{{"name":"id","type":{open}"long"{},"nullable":true,"metadata":{{}}}}]}}"#,
            "}".repeat(depth)
        );
        let table = facts().metadata("schemaString", schema).table();
        let wanted = if depth == 90 { "unknown_shape" } else { "corrupt_log" };
        assert_eq!(said(&plan(&table, KIND)), wanted, "{depth}");
    }
    let table = facts().table();
    for text in [
        format!(
            "kind = \"facts\"\n[columns]\nid = \"{}long{}\"\n",
            "array<".repeat(500_000),
            ">".repeat(500_000)
        ),
        format!("kind = \"facts\"\nadopt = {}{}\n", "[".repeat(500_000), "]".repeat(500_000)),
        format!(
            "kind = \"facts\"\n[columns]\nid = {}\"long\"{}\n",
            "{type=".repeat(500_000),
            "}".repeat(500_000)
        ),
    ] {
        let ran = plan(&table, &text);
        assert_eq!(ran.code, 2, "{} {}", ran.stderr.len(), &ran.stderr[..ran.stderr.len().min(500)]);
    }
}

#[test]
fn lines_that_never_end() {
    for line in ["[".repeat(20_000_000), "{\"x\":".repeat(4_000_000), "x".repeat(100_000_000)] {
        let table = facts().table();
        let file = table.log_file(1);
        std::fs::write(file, line + "\n").unwrap();
        assert_eq!(said(&plan(&table, KIND)), "corrupt_log");
    }
    // A line that is none of ours is skipped, however long.
    let table = facts().table();
    table.commit_raw(&[json!({ "add": { "path": "p".repeat(100_000_000), "partitionValues": {}, "size": 1,
        "modificationTime": 1, "dataChange": true } })]);
    assert_eq!(said(&plan(&table, KIND)), "planned");
}

#[test]
fn a_hundred_thousand_commits_without_a_checkpoint() {
    let table = facts().table();
    let mut source = table.log_file(table.commit_nothing());
    for version in 2..100_000 {
        let file = table.log_file(version);
        // A file takes only so many links.
        if std::fs::hard_link(&source, &file).is_err() {
            std::fs::copy(&source, &file).unwrap();
            source = file;
        }
    }
    let ran = plan(&table, KIND);
    assert_eq!(said(&ran), "planned", "{ran:?}");
    assert_eq!(ran.json()["tables"][0]["log_version"], 99_999);
}
