//! Every refusal: its code, its hint, exit code 1 from every command, and no byte changed.

mod features;

use serde_json::json;

use crate::support::command::on;
use crate::support::{FACTS, Log, Table, apply, column, facts, kind_file, refused_everywhere, required};

fn message(error: &serde_json::Value) -> &str {
    error["message"].as_str().unwrap()
}

#[test]
fn a_version_or_floor_that_is_no_number_is_an_invalid_stamp() {
    for key in ["app.schema_version", "app.min_version"] {
        for value in ["abc", "-1", "3.0", "", "12345678901234567890", " 3", "+3", "4294967296"] {
            let table = facts().stamped(0).property(key, value).table();
            let error = refused_everywhere(&table, FACTS, "invalid_stamp");
            assert!(message(&error).contains(key), "{error}");
            assert!(message(&error).contains(value), "{error}");
        }
    }
}

#[test]
fn a_broken_digest_is_an_invalid_stamp() {
    for value in ["", "1", "1:", "1:xyz", "1:0123456", "1:0123456789", "1:0123ABCD", "one:01234567"] {
        let table = facts().stamped(0).property("app.schema_digest", value).table();
        let error = refused_everywhere(&table, FACTS, "invalid_stamp");
        assert!(message(&error).contains("app.schema_digest"), "{error}");
    }
}

#[test]
fn a_digest_of_a_later_encoding_is_not_compared() {
    let table = facts().stamped(0).property("app.schema_digest", "2:whatever it is").table();
    assert_eq!(apply(&table, FACTS).table()["outcome"], "migrated");
}

#[test]
fn a_history_that_is_no_list_is_never_overwritten() {
    let table = facts().stamped(0).property("app.schema_history", "mine").table();
    let error = refused_everywhere(&table, FACTS, "invalid_stamp");
    assert!(message(&error).contains("app.schema_history"), "{error}");
}

#[test]
fn the_kind_stamp_of_another_kind_is_not_this_kind() {
    let table = facts().stamped(0).property("app.kind", "control").table();
    let error = refused_everywhere(&table, FACTS, "not_this_kind");
    assert!(message(&error).contains("`control`") && message(&error).contains("`facts`"), "{error}");
}

#[test]
fn a_table_without_the_identifying_columns_is_not_this_kind() {
    let kind = FACTS.replacen("[columns]", "identified_by = [\"id\", \"payload\"]\n[columns]", 1);
    let table = Log::new(vec![required("id", "long"), column("other", "string")]).table();
    let error = refused_everywhere(&table, &kind, "not_this_kind");
    assert!(message(&error).contains("payload") && !message(&error).contains("`id`"), "{error}");
    assert_eq!(apply(&facts().table(), &kind).table()["outcome"], "migrated");
}

#[test]
fn a_floor_above_this_release_is_too_new_and_names_who_raised_it() {
    let history = json!([
        { "from": 0, "to": 11, "at": "2026-11-30T23:00:00Z", "by": "sink 2.0", "how": "migrated" },
        { "from": 11, "to": 12, "at": "2026-12-01T23:00:00Z", "by": "sink 3.0", "how": "migrated", "floor": 12 },
        { "from": 12, "to": 13, "at": "2026-12-02T23:00:00Z", "by": "sink 4.0", "how": "migrated" },
    ]);
    let log = facts().stamped(13).property("app.min_version", "12");
    let table = log.clone().property("app.schema_history", &history.to_string()).table();
    let error = refused_everywhere(&table, FACTS, "too_new");
    assert!(message(&error).contains("`sink 3.0`") && message(&error).contains("12"), "{error}");
    // Without a history it is refused all the same.
    refused_everywhere(&log.table(), FACTS, "too_new");
}

#[test]
fn a_table_of_another_chain_is_diverged_at_the_migration_where_they_part() {
    let table = facts().table();
    assert_eq!(apply(&table, &kind_file(3)).code, 0);
    let edited = FACTS.replacen("array<string>", "array<long>", 1);
    let error = refused_everywhere(&table, &edited, "diverged");
    assert!(message(&error).contains("migration 2 (`warnings inside the payload`)"), "{error}");
    // Also where the table is ahead of the release that asks.
    let short = kind_file(2).replacen("array<string>", "array<long>", 1);
    refused_everywhere(&table, &short, "diverged");
    // And where it is the base shape that parts.
    let base = FACTS.replacen("id      = { type = \"long\"", "id      = { type = \"integer\"", 1);
    let error = refused_everywhere(&table, &base, "diverged");
    assert!(message(&error).contains("base shape"), "{error}");
}

#[test]
fn editing_a_comment_or_the_spelling_of_a_type_diverges_nobody() {
    let table = facts().table();
    assert_eq!(apply(&table, FACTS).code, 0);
    let before = table.files();
    let edited = FACTS
        .replacen("type = \"long\"", "type = \"bigint\"", 1)
        .replacen("struct<lsn: long>", "struct<lsn: BIGINT COMMENT 'x'>", 1)
        .replacen("JSON; text before 1.0", "another comment", 1)
        .replacen("description = \"detail\"", "description = \"details, rather\"", 1);
    assert_ne!(edited, FACTS);
    let ran = apply(&table, &edited);
    assert_eq!((ran.code, ran.table()["outcome"].as_str()), (0, Some("current")), "{ran:?}");
    assert!(table.files() == before);
}

#[test]
fn a_table_that_lacks_the_base_shape_is_of_unknown_shape() {
    let table = Log::new(vec![required("id", "long"), required("code", "string")]).table();
    let error = refused_everywhere(&table, FACTS, "unknown_shape");
    assert!(message(&error).contains("`payload`"), "{error}");
}

#[test]
fn a_table_without_a_stamp_waits_for_a_person_where_adoption_is_refused() {
    let kind = FACTS.replacen("[columns]", "adopt = \"refuse\"\n[columns]", 1);
    let error = refused_everywhere(&facts().table(), &kind, "unversioned");
    assert!(error["hint"].as_str().unwrap().contains("baseline"), "{error}");
}

#[test]
fn a_stamp_that_is_gone_while_the_evidence_is_there_is_lost() {
    let table = facts().txn("app/facts", 3).table();
    let error = refused_everywhere(&table, FACTS, "stamp_lost");
    assert!(message(&error).contains("version 3"), "{error}");
    assert!(error["hint"].as_str().unwrap().contains("--restamp 3"), "{error}");
    // The evidence of another kind or namespace says nothing.
    for app in ["app/other", "other/facts", "app"] {
        let table = facts().txn(app, 3).table();
        assert_eq!(apply(&table, FACTS).table()["outcome"], "migrated", "{app}");
    }
}

#[test]
fn a_replace_that_wipes_the_properties_makes_the_stamp_lost() {
    let table = facts().table();
    assert_eq!(apply(&table, FACTS).code, 0);
    table.change_metadata(|m| m["configuration"] = json!({}));
    refused_everywhere(&table, FACTS, "stamp_lost");
}

#[test]
fn a_promised_column_that_is_missing_or_of_another_type_is_drift() {
    let table = facts().stamped(1).table();
    let error = refused_everywhere(&table, FACTS, "drifted");
    assert!(message(&error).contains("`detail` (string) is missing"), "{error}");
    assert!(error["hint"].as_str().unwrap().contains("--readd-columns"), "{error}");

    let mut log = facts().stamped(1);
    log.schema["fields"].as_array_mut().unwrap().push(column("detail", "long"));
    let error = refused_everywhere(&log.table(), FACTS, "drifted");
    assert!(message(&error).contains("`detail` is long, not string"), "{error}");
}

#[test]
fn a_column_that_stands_in_the_way_is_a_type_conflict() {
    for field in [column("detail", "long"), required("detail", "string")] {
        let mut log = facts();
        log.schema["fields"].as_array_mut().unwrap().push(field.clone());
        let error = refused_everywhere(&log.table(), FACTS, "type_conflict");
        assert!(message(&error).contains("`detail`"), "{field}: {error}");
    }
}

#[test]
fn a_folder_of_other_files_is_not_a_table() {
    let table = Table::missing();
    std::fs::create_dir_all(table.path().join("year=2026")).unwrap();
    std::fs::write(table.path().join("year=2026/a.csv"), "a,b\n").unwrap();
    refused_everywhere(&table, FACTS, "not_a_table");
    let ran = on(&table, FACTS, &["history", table.arg()]);
    assert_eq!((ran.code, &ran.table()["error"]["code"]), (1, &json!("not_a_table")));
}

#[test]
fn a_file_is_not_a_table() {
    let table = Table::missing();
    std::fs::write(table.path(), "a,b\n").unwrap();
    refused_everywhere(&table, FACTS, "not_a_table");
    let ran = on(&table, FACTS, &["history", table.arg()]);
    assert_eq!((ran.code, &ran.table()["error"]["code"]), (1, &json!("not_a_table")));
}

#[test]
fn a_log_with_a_gap_is_corrupt() {
    let table = facts().table();
    table.commit_nothing();
    table.commit_nothing();
    std::fs::remove_file(table.log_file(1)).unwrap();
    let error = refused_everywhere(&table, FACTS, "corrupt_log");
    assert!(message(&error).contains('1'), "{error}");
}

#[test]
fn a_log_without_metadata_or_with_broken_json_is_corrupt() {
    let table = facts().table();
    let lines = facts().actions();
    std::fs::write(table.log_file(0), format!("{}\n{}\n", lines[0], lines[1])).unwrap();
    refused_everywhere(&table, FACTS, "corrupt_log");
    std::fs::write(table.log_file(0), format!("{}\n{}\n{{\"metaData\":\n", lines[0], lines[1])).unwrap();
    refused_everywhere(&table, FACTS, "corrupt_log");
}

#[test]
fn a_missing_table_is_pending_for_status_and_refused_by_hand() {
    let table = Table::missing();
    let status = on(&table, FACTS, &["status", table.arg()]);
    assert_eq!((status.code, &status.table()["outcome"]), (0, &json!("planned")));
    assert_eq!(status.table()["assessment"]["state"], "missing");
    let plan = on(&table, FACTS, &["plan", table.arg()]);
    assert_eq!((plan.code, &plan.table()["mode"]), (0, &json!("create")));
    assert_eq!(on(&table, FACTS, &["status", "--check", table.arg()]).code, 3);
    let why = ["--why", "because"];
    for args in [
        vec!["history", table.arg()],
        vec!["baseline", table.arg(), "--at", "1"],
        [&["repair", table.arg(), "--readd-columns"], &why[..]].concat(),
        [&["repair", table.arg(), "--restamp", "1"], &why[..]].concat(),
        [&["repair", table.arg(), "--lower-floor", "1"], &why[..]].concat(),
    ] {
        let ran = on(&table, FACTS, &args);
        assert_eq!((ran.code, &ran.table()["error"]["code"]), (1, &json!("missing")), "{args:?}");
        assert!(!ran.table()["error"]["hint"].as_str().unwrap().is_empty());
    }
    assert!(table.files().is_empty(), "nothing came into being");
}
