//! Tables without a stamp, and what a person decides about a table.

mod repair;

use serde_json::{Value, json};

use crate::support::command::on;
use crate::support::{
    FACTS, Log, Table, apply, column, facts, kind_file, refused_everywhere, required, run, struct_type,
};

fn adopting(way: &str) -> String {
    FACTS.replacen("[columns]", &format!("adopt = \"{way}\"\n[columns]"), 1)
}

fn warnings() -> Value {
    column("warnings", json!({ "type": "array", "elementType": "string", "containsNull": true }))
}

/// The columns of version 2, which are those of versions 3 to 7 as well.
fn at_two() -> Log {
    Log::new(vec![
        required("id", "long"),
        required("code", "string"),
        column("payload", struct_type(vec![column("lsn", "long"), warnings()])),
        column("detail", "string"),
    ])
}

/// What the newest entry of the table's record says.
fn last(table: &Table) -> (String, u64, u64) {
    let entry = table.history().pop().unwrap();
    let number = |key: &str| entry[key].as_u64().unwrap();
    (entry["how"].as_str().unwrap().to_owned(), number("from"), number("to"))
}

#[test]
fn from_zero_runs_the_whole_chain_over_what_is_there() {
    let table = at_two().table();
    assert_eq!(apply(&table, FACTS).table()["outcome"], "migrated");
    assert_eq!(last(&table), ("adopted".to_owned(), 0, 10));
    assert_eq!(table.column_names(), ["id", "code", "payload", "detail", "tenant", "tags", "score"]);
    assert_eq!(table.field("detail")["metadata"], json!({ "comment": "JSON; text before 1.0" }));
}

#[test]
fn detect_takes_the_lowest_of_the_versions_that_fit_equally() {
    let table = at_two().table();
    let ran = apply(&table, &adopting("detect"));
    assert_eq!(ran.table()["outcome"], "migrated", "{ran:?}");
    assert_eq!(last(&table), ("adopted".to_owned(), 2, 10));
    // The steps that leave no trace in the columns were run.
    assert_eq!(table.field("code")["nullable"], true);
    assert_eq!(table.property("owner").as_deref(), Some("team b"));
}

#[test]
fn detect_stamps_a_table_that_is_at_the_newest_shape_already() {
    let table = Table::missing();
    assert_eq!(apply(&table, FACTS).code, 0);
    let fields = table.schema()["fields"].as_array().unwrap().clone();
    let table = Log::new(fields).table();
    let schema = table.schema();
    assert_eq!(apply(&table, &adopting("detect")).table()["outcome"], "migrated");
    assert_eq!(last(&table), ("adopted".to_owned(), 10, 10));
    assert_eq!(table.property("app.schema_version").as_deref(), Some("10"));
    assert_eq!(table.property("app.min_version").as_deref(), Some("8"));
    assert_eq!(table.schema(), schema);
    assert_eq!(apply(&table, &adopting("detect")).table()["outcome"], "current");
}

#[test]
fn detect_is_refused_for_a_chain_that_renames_or_drops() {
    for step in ["rename_columns = { code = \"code_2\" }", "drop_columns = [\"code\"]"] {
        let kind = format!(
            "{}\n[[migrations]]\ndescription = \"breaks\"\ndestructive = true\n{step}\n",
            adopting("detect")
        );
        let error = refused_everywhere(&at_two().table(), &kind, "unversioned");
        assert!(error["message"].as_str().unwrap().contains("migration 11"), "{error}");
    }
}

#[test]
fn detect_refuses_a_table_that_no_version_fits() {
    let table = Log::new(vec![required("id", "long")]).table();
    refused_everywhere(&table, &adopting("detect"), "unknown_shape");
}

#[test]
fn the_configuration_overrides_how_a_table_is_taken_over() {
    let one = at_two().table();
    let folder = one.beside("");
    std::fs::create_dir(folder.join("kinds")).unwrap();
    std::fs::write(folder.join("kinds/facts.toml"), FACTS).unwrap();
    for (name, _) in [("refused", 0), ("detected", 0)] {
        at_two().write(&folder.join(name));
    }
    let config = "namespace = \"app\"\n\
        [[tables]]\nuri = \"facts\"\nkind = \"facts\"\n\
        [[tables]]\nuri = \"refused\"\nkind = \"facts\"\nadopt = \"refuse\"\n\
        [[tables]]\nuri = \"detected\"\nkind = \"facts\"\nadopt = \"detect\"\n";
    std::fs::write(folder.join("delta-migrate.toml"), config).unwrap();
    let ran = run(&folder, &["apply", "--format", "json"]);
    assert_eq!(ran.code, 1);
    let tables = ran.json()["tables"].clone();
    assert_eq!((&tables[0]["outcome"], &tables[0]["from"]), (&json!("migrated"), &json!(0)));
    assert_eq!(
        (&tables[1]["outcome"], &tables[1]["error"]["code"]),
        (&json!("refused"), &json!("unversioned"))
    );
    assert_eq!((&tables[2]["outcome"], &tables[2]["from"]), (&json!("migrated"), &json!(2)));
    // The override counts for a table that is named on the command line, too.
    let ran = run(&folder, &["apply", "refused", "--format", "json"]);
    assert_eq!(ran.table()["error"]["code"], "unversioned");
}

#[test]
fn baseline_stamps_a_version_that_fits_and_apply_goes_on_from_there() {
    let kind = adopting("refuse");
    let table = at_two().table();
    let (schema, before) = (table.schema(), table.files());
    let dry = on(&table, &kind, &["baseline", table.arg(), "--at", "3", "--dry-run"]);
    assert_eq!((dry.code, &dry.table()["outcome"]), (0, &json!("planned")));
    assert!(table.files() == before);
    let ran = on(&table, &kind, &["baseline", table.arg(), "--at", "3"]);
    assert_eq!((ran.code, &ran.table()["commits"]), (0, &json!(1)), "{ran:?}");
    assert_eq!(table.versions(), [0, 1]);
    assert_eq!(table.schema(), schema, "a baseline changes no column");
    assert_eq!(table.property("app.schema_version").as_deref(), Some("3"));
    assert_eq!(table.property("app.schema_digest").unwrap().split(',').count(), 4);
    assert_eq!(last(&table), ("adopted".to_owned(), 3, 3));
    let again = on(&table, &kind, &["baseline", table.arg(), "--at", "3"]);
    assert_eq!((again.code, table.newest()), (0, 1), "{again:?}");
    let ran = apply(&table, &kind);
    assert_eq!((&ran.table()["from"], &ran.table()["to"]), (&json!(3), &json!(10)));
    assert_eq!(table.field("detail")["metadata"], json!({}), "comments of migration 3 were not run again");
}

#[test]
fn baseline_at_a_version_that_does_not_fit_writes_nothing() {
    let table = at_two().table();
    let before = table.files();
    let ran = on(&table, FACTS, &["baseline", table.arg(), "--at", "8"]);
    assert_eq!((ran.code, &ran.table()["error"]["code"]), (1, &json!("unknown_shape")));
    assert!(ran.table()["error"]["message"].as_str().unwrap().contains("`tenant`"));
    let ran = on(&table, FACTS, &["baseline", table.arg(), "--at", "11"]);
    assert_eq!(ran.code, 2, "a version that the chain does not have: {ran:?}");
    assert!(table.files() == before);
}

#[test]
fn baseline_does_not_restamp_a_table_that_has_a_stamp() {
    let table = facts().table();
    assert_eq!(apply(&table, &kind_file(2)).code, 0);
    let before = table.files();
    let ran = on(&table, FACTS, &["baseline", table.arg(), "--at", "1"]);
    assert_eq!((ran.code, &ran.table()["outcome"]), (1, &json!("refused")));
    assert!(ran.table()["error"]["hint"].as_str().unwrap().contains("--restamp"));
    assert!(table.files() == before);
}
