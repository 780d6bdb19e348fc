//! Which commits a chain becomes, and what plans and reports say of them.

use delta_migrate::SchemaVersion;

use super::*;
use crate::support::command::{on, run};

const CHAIN: &str = r#"
kind = "facts"
[columns]
id = "long"
code = "string"

[[migrations]]
description = "note"
[migrations.add_columns]
note = "string"

[[migrations]]
description = "tenant"
raises_min_version = true
[migrations.add_columns]
tenant = "string"
[migrations.update]
set = { tenant = "concat('of ', coalesce(code, 'nobody'))" }
where = "tenant IS NULL"

[[migrations]]
description = "size"
[migrations.add_columns]
size = "long"
[migrations.comments]
size = "bytes"
"#;

const ONE_COMMIT: &str = r#"
kind = "facts"
[columns]
id = "long"
code = "string"

[[migrations]]
description = "text"
destructive = true
raises_min_version = true
[migrations.retype_columns]
id = "string"

[[migrations]]
description = "constraint"
[migrations.add_constraints]
has_id = "id IS NOT NULL"
"#;

fn at(version: u32) -> Option<SchemaVersion> {
    Some(SchemaVersion::new(version))
}

fn parameters(table: &Table, version: u64) -> Value {
    table.commit(version)[0]["commitInfo"]["operationParameters"].clone()
}

#[tokio::test]
async fn three_versions_behind_are_columns_fills_and_one_stamp() {
    let table = table_of(base(), 2).await;
    let first = table.newest() + 1;
    let report = migrate_at(&table.location(), CHAIN, ONE_FILE).await.unwrap();
    let found = ours(&table);
    assert_eq!(found.into_values().collect::<Vec<_>>(), ["adopted", "filled", "migrated"]);
    assert_eq!((report.commits, report.from, report.to), (3, at(0), at(3)));
    let of = |n: u64| parameters(&table, first + n);
    assert_eq!((&of(0)["from"], &of(0)["to"], &of(0)["floor"]), (&json!("0"), &json!("1"), &json!("2")));
    assert_eq!((&of(1)["from"], &of(1)["to"], &of(1)["data"]), (&json!("1"), &json!("1"), &json!("update")));
    assert_eq!((&of(2)["from"], &of(2)["to"], &of(2)["data"]), (&json!("1"), &json!("3"), &json!("update")));
    assert_eq!(of(0).get("data"), None);
    assert_eq!(of(1).get("floor"), None);
    let stamps = |n: u64| table.action(first + n, "metaData")["configuration"].clone();
    assert_eq!((&stamps(0)["app.schema_version"], &stamps(0)["app.min_version"]), (&json!("1"), &json!("2")));
    assert_eq!((&stamps(2)["app.schema_version"], &stamps(2)["app.min_version"]), (&json!("3"), &json!("2")));
    // Columns of the fill come first, columns behind it with the stamp.
    let names = |n: u64| table.action(first + n, "metaData")["schemaString"].as_str().unwrap().to_owned();
    assert!(names(0).contains("tenant") && !names(0).contains("size"));
    assert!(names(2).contains("size"));
    assert_eq!(table.history().len(), 2);
    assert_eq!(rows(&table).await.iter().filter(|r| r["tenant"].is_string()).count(), 4);
    sound(&table);
}

#[tokio::test]
async fn a_constraint_and_other_types_are_one_commit() {
    let table = table_of(base().versions(1, 3), 2).await;
    let report = migrate_at(&table.location(), ONE_COMMIT, ONE_FILE).await.unwrap();
    assert_eq!((report.commits, ours(&table).len()), (1, 1));
    let version = report.log_version.unwrap().get();
    assert_eq!(parameters(&table, version)["data"], "retype_columns,add_constraints");
    assert_eq!(table.property("delta.constraints.has_id").as_deref(), Some("id IS NOT NULL"));
    let ids: Vec<Value> = rows(&table).await.into_iter().map(|r| r["id"].clone()).collect();
    assert_eq!(ids, ["0", "1", "2", "3"]);
    sound(&table);
}

#[tokio::test]
async fn a_plan_says_what_it_would_rewrite_and_is_carried_out_over_its_commits() {
    let table = table_of(base(), 2).await;
    let before = table.files();
    let file = table.beside("plan.json");
    let ran = on(&table, CHAIN, &["plan", "-o", file.to_str().unwrap(), table.arg()]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let report = ran.table();
    assert_eq!((&report["outcome"], &report["mode"]), (&json!("planned"), &json!("rewrite")));
    let size: u64 = active(&table).values().map(|a| a["size"].as_u64().unwrap()).sum();
    assert_eq!(report["rewrite"], json!({ "files": 2, "rows": 4, "bytes": size }));
    assert!(table.files() == before);
    let plan: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    let plan = &plan["tables"][0];
    assert_eq!(plan["rewrite"], report["rewrite"]);
    let commits = plan["commits"].as_array().unwrap();
    assert_eq!(commits.len(), 2, "{plan}");
    assert_eq!((commits[0].get("data"), &commits[1]["data"]), (None, &json!(["update"])));
    let changes = commits[1]["migrations"][0]["changes"].as_array().unwrap();
    let update = changes.iter().find(|c| c["change"] == "update").unwrap();
    assert_eq!(update["where"], "tenant IS NULL");
    assert_eq!(update["set"]["tenant"], "concat('of ', coalesce(code, 'nobody'))");

    // Appends meanwhile leave a plan alone; without leave to rewrite it is refused.
    append(&table, &[row(4)]).await;
    let kind = table.beside("kind.toml");
    let common = [
        "--namespace",
        "app",
        "--kind-file",
        kind.to_str().unwrap(),
        "--format",
        "json",
        "apply",
        "--plan",
        file.to_str().unwrap(),
    ];
    let folder = table.beside("");
    let before = table.files();
    let ran = run(&folder, &common);
    assert_eq!((ran.code, &ran.table()["error"]["code"]), (1, &json!("rewrite_required")), "{ran:?}");
    assert!(table.files() == before);
    let ran = run(&folder, &[&common[..], &["--allow-rewrite"]].concat());
    assert_eq!(ran.code, 0, "{ran:?}");
    let report = ran.table();
    assert_eq!((&report["outcome"], &report["commits"]), (&json!("migrated"), &json!(2)));
    assert_eq!((&report["rewrite"]["files"], &report["rewrite"]["rows"]), (&json!(3), &json!(5)));
    is_stamped(&table, "3");
    assert!(rows(&table).await.iter().all(|r| r["tenant"].is_string()));
    sound(&table);
}

/// A constraint that stands asks for no leave to rewrite.
#[tokio::test]
async fn a_constraint_that_is_there_already_moves_no_data() {
    let kind = "kind = \"facts\"\n[columns]\nid = \"long\"\n[[migrations]]\ndescription = \"one\"\n\
                [migrations.add_constraints]\nhas_id = \"id IS NOT NULL\"\n";
    let table =
        table_of(base().versions(1, 3).property("delta.constraints.has_id", "id IS NOT NULL"), 1).await;
    let files = active(&table);
    let migrator = rewriter_with(kind, StartupPolicy::ApplyMetadata, ONE_FILE);
    let done = migrator.migrate("facts", &table.location(), Target::Newest, IfMissing::Refuse).await;
    assert_eq!(done.unwrap().outcome.as_str(), "migrated");
    assert_eq!(active(&table), files);
    is_stamped(&table, "1");
}

#[tokio::test]
async fn the_commands_own_way() {
    let table = table_of(base(), 2).await;
    let before = table.files();
    let ran = on(&table, FILL, &["apply", "--dry-run", "--allow-rewrite", table.arg()]);
    assert_eq!((ran.code, &ran.table()["outcome"]), (0, &json!("planned")), "{ran:?}");
    assert!(table.files() == before);
    let ran = on(&table, FILL, &["apply", "--allow-rewrite", table.arg()]);
    assert_eq!((ran.code, &ran.table()["outcome"]), (0, &json!("migrated")), "{ran:?}");
    is_filled(&table, 0..4).await;
}
