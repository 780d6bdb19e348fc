//! What is refused, with every byte as it was.

use delta_migrate::ErrorCode;

use super::*;
use crate::support::command::{on, run};

fn update(set: &str, predicate: &str) -> String {
    format!(
        "kind = \"facts\"\n[columns]\nid = \"long\"\ncode = \"string\"\n[[migrations]]\ndescription = \"fill\"\n\
         [migrations.add_columns]\ntenant = \"string\"\n[migrations.update]\nset = {{ {set} }}\nwhere = '{predicate}'\n"
    )
}

/// The error of a chain that changes no byte.
async fn untouched(table: &Table, kind: &str) -> Error {
    let before = table.files();
    let error = migrate(table, kind).await.unwrap_err();
    assert!(table.files() == before, "{error:?}");
    assert!(error.committed().is_empty(), "{error:?}");
    error
}

#[tokio::test]
async fn a_condition_that_would_still_be_true_is_found_before_anything_is_written() {
    let table = table_of(base(), 3).await;
    // The new value is null for those without a code: rows 0 and 3.
    let error = untouched(&table, &update("tenant = 'upper(code)'", "tenant IS NULL")).await;
    assert_eq!(error.code(), ErrorCode::DataStep);
    let said = error.message();
    assert!(said.contains("2 rows") && said.contains("tenant IS NULL"), "{said}");
    let names: Vec<String> = active(&table).into_keys().map(|(path, _)| path).collect();
    assert_eq!(names.iter().filter(|n| said.contains(&format!("`{n}` (1)"))).count(), 2, "{said}");
    assert!(error.hint().unwrap().contains("COALESCE"), "{error:?}");
    for set in ["tenant = \"tenant\"", "code = \"'x'\""] {
        untouched(&table, &update(set, "tenant IS NULL")).await;
    }
    untouched(&table, &update("tenant = \"'x'\"", "id >= 0")).await;
    untouched(&table, &update("tenant = \"'x'\"", "true")).await;
}

/// More files than are foreseen: without statistics each counts for many rows. Row `id` is in file `id`.
async fn six_files_without_statistics(log: Log) -> Table {
    let table = log.table();
    for id in 0..6 {
        append(&table, &[json!({ "id": id, "code": "c" })]).await;
        let version = table.newest();
        let mut actions = table.commit(version);
        actions.iter_mut().filter_map(|a| a.get_mut("add")).for_each(|add| {
            add["stats"] = Value::Null;
        });
        std::fs::remove_file(table.log_file(version)).unwrap();
        table.commit_raw(&actions);
    }
    table
}

/// What the table itself asks of rows is asked of all of them beforehand, however many there are.
#[tokio::test]
async fn what_a_column_asks_of_rows_is_found_in_a_far_file_before_anything_is_written() {
    let mut id = column("id", "long");
    id["metadata"] = json!({ "delta.invariants": r#"{"expression":{"expression":"id < 100"}}"# });
    let table = six_files_without_statistics(Log::new(vec![id, column("code", "string")])).await;
    for far in 0..6 {
        let set = format!("id = \"CASE WHEN id = {far} THEN 200 ELSE id + 10 END\"");
        let error = untouched(&table, &update(&set, "id < 10")).await;
        assert!(error.message().contains("1 row"), "{error:?}");
    }
}

/// A constraint after a renaming and a drop, which take commits of their own.
#[tokio::test]
async fn a_constraint_behind_a_renaming_is_looked_at_before_the_first_commit() {
    let mapped = |name: &str, of: &str, id: u32| {
        let mut field = column(name, of);
        field["metadata"] = json!({ "delta.columnMapping.id": id, "delta.columnMapping.physicalName": name });
        field
    };
    let log =
        Log::new(vec![mapped("id", "long", 1), mapped("code", "string", 2), mapped("old", "string", 3)])
            .features(&["columnMapping"], &["columnMapping", "checkConstraints"])
            .property("delta.columnMapping.mode", "name")
            .property("delta.columnMapping.maxColumnId", "3");
    let table = log.table();
    append(
        &table,
        &[json!({ "id": 1, "code": "a", "old": "x" }), json!({ "id": 2, "code": null, "old": "x" })],
    )
    .await;
    let kind = |constraint: &str| {
        format!(
            r#"
kind = "facts"
[columns]
id = "long"
code = "string"
old = "string"
[[migrations]]
description = "nobody"
update = {{ set = {{ code = "'nobody'" }}, where = "code IS NULL" }}
[[migrations]]
description = "names"
destructive = true
rename_columns = {{ code = "who" }}
drop_columns = ["old"]
[[migrations]]
description = "rule"
add_constraints = {{ rule = "{constraint}" }}
"#
        )
    };
    let error = untouched(&table, &kind("who <> 'nobody'")).await;
    assert!(error.message().contains("`rule`") && error.message().contains("1 row"), "{error:?}");
    untouched(&table, &kind("old = 'x'")).await;
    migrate(&table, &kind("who IS NOT NULL")).await.unwrap();
    assert_eq!(rows(&table).await, [json!({ "id": 1, "who": "a" }), json!({ "id": 2, "who": "nobody" })]);
}

#[tokio::test]
async fn what_lies_inside_a_column_is_not_retyped_and_the_plan_says_so() {
    let fields = vec![
        column("id", "long"),
        json!({
            "name": "p", "nullable": true, "metadata": {},
            "type": { "type": "struct", "fields": [column("n", "integer")] },
        }),
    ];
    let table = Log::new(fields).table();
    let kind = "kind = \"facts\"\n[[migrations]]\ndescription = \"one\"\nadd_columns = { p = \"struct<n: int>\" }\n\
                [[migrations]]\ndescription = \"two\"\ndestructive = true\nretype_columns = { \"p.n\" = \"string\" }\n";
    let plan = rewriter(kind, 1).plan("facts", &table.location(), Target::Newest).await.unwrap_err();
    assert_eq!(plan.code(), ErrorCode::UnsupportedStep, "{plan:?}");
    assert!(plan.message().contains("`p.n`"), "{plan}");
    assert_eq!(untouched(&table, kind).await.code(), ErrorCode::UnsupportedStep);
}

#[tokio::test]
async fn a_condition_that_is_still_true_in_a_far_file_ends_the_step_before_that_file_s_commit() {
    let table = six_files_without_statistics(base()).await;
    let good = update("tenant = 'upper(code)'", "tenant IS NULL");
    let filled = migrate_at(&copy_of(&table).location(), &good, ONE_FILE).await.unwrap();
    assert_eq!(filled.commits, 7, "columns, six files, of which the last shares the stamp's");
    // Null for one row of one file, wherever that stands in the order.
    for id in 0..6 {
        let copy = copy_of(&table);
        let set = format!("tenant = \"CASE WHEN id = {id} THEN NULL ELSE code END\"");
        let error =
            migrate_at(&copy.location(), &update(&set, "tenant IS NULL"), ONE_FILE).await.unwrap_err();
        assert_eq!(error.code(), ErrorCode::DataStep, "{error:?}");
        assert!(error.message().starts_with("1 row for which"), "{error:?}");
        assert_eq!(error.committed().len() as u64, copy.newest() - 6, "{error:?}");
        assert_ne!(copy.property("app.schema_version").as_deref(), Some("1"));
        let unfilled = rows(&copy).await.iter().filter(|r| r["tenant"].is_null()).count() as u64;
        assert!(unfilled == 6 || unfilled == 7 - error.committed().len() as u64, "{unfilled}: {error:?}");
    }
}

#[tokio::test]
async fn expressions_are_checked_before_anything_runs() {
    let table = table_of(base(), 1).await;
    let empty = base().table();
    let ok = "tenant IS NULL";
    let wrong = [
        (update("tenant = 'now()'", ok), "now"),
        (update("tenant = 'CAST(random() AS VARCHAR)'", ok), "random"),
        (update("tenant = 'uuid()'", ok), "uuid"),
        (update("tenant = 'CAST(current_date AS VARCHAR)'", ok), "current_date"),
        (update("tenant = \"'x'\"", "tenant IS NULL AND random() < 0.5"), "random"),
        (update("tenant = '(SELECT max(code) FROM t)'", ok), ""),
        (update("tenant = '(SELECT 1)'", ok), ""),
        (update("tenant = \"'x'\"", "EXISTS (SELECT 1)"), ""),
        (update("tenant = \"'x'\"", "tenant IS NULL AND id IN (SELECT 1)"), ""),
        (update("tenant = 'max(code)'", ok), ""),
        (update("tenant = 'first_value(code) OVER ()'", ok), ""),
        (update("tenant = '$1'", ok), ""),
        (update("tenant = 'id'", ok), "CAST"),
        (update("tenant = 'id > 1'", ok), "CAST"),
        (update("tenant = 'nowhere'", ok), "nowhere"),
        (update("tenant = 'CODE'", ok), "CODE"),
        (update("tenant = 'code ||'", ok), ""),
        (update("tenant = \"'x'; drop table t\"", ok), ""),
        (update("tenant = 'nofunction(code)'", ok), "nofunction"),
        (update("tenant = \"'x'\"", "code"), ""),
        (update("tenant = \"'x'\"", "id + 1"), ""),
        (update("tenant = \"'x'\"", "nowhere IS NULL"), "nowhere"),
    ];
    for (kind, says) in &wrong {
        for table in [&table, &empty] {
            let error = untouched(table, kind).await;
            assert_eq!(error.code(), ErrorCode::DataStep, "{kind}: {error:?}");
            assert!(error.message().contains(says), "{says}: {error}");
            assert!(error.message().contains("where") || error.message().contains("tenant"), "{error}");
        }
    }
}

/// The same mistakes in `validate`, without a table.
#[test]
fn validate_tells_all_mistakes_in_expressions() {
    let table = Table::missing();
    std::fs::create_dir_all(table.beside("kinds")).unwrap();
    let folder = table.beside("");
    std::fs::write(table.beside("delta-migrate.toml"), "namespace = \"app\"\n").unwrap();
    let kind = update("tenant = 'now()', code = 'nowhere'", "id + 1");
    std::fs::write(table.beside("kinds/facts.toml"), &kind).unwrap();
    for command in ["validate", "lock"] {
        let ran = run(&folder, &[command]);
        assert_ne!(ran.code, 0, "{ran:?}");
        let said = ran.stdout + &ran.stderr;
        for part in ["facts.toml:", "update.set.tenant", "now", "update.set.code", "nowhere", "update.where"]
        {
            assert!(said.contains(part), "{command}: {part} in {said}");
        }
    }
    assert!(!table.beside("migrations.lock").exists() && !table.beside("kinds/migrations.lock").exists());
}

#[test]
fn a_nested_target_is_a_mistake_of_the_kind() {
    for target in ["\"payload.lsn\"", "nowhere"] {
        let text = format!(
            "kind = \"facts\"\n[columns]\nid = \"long\"\npayload = \"struct<lsn: long>\"\n[[migrations]]\n\
             description = \"fill\"\n[migrations.update]\nset = {{ {target} = \"1\" }}\nwhere = \"id = 1\"\n"
        );
        let error = Kind::from_toml(&text).unwrap_err();
        assert!(error.to_string().contains(target.trim_matches('"')), "{error}");
    }
}

#[tokio::test]
async fn a_value_that_does_not_fit_is_refused_before_anything_is_written() {
    let table = table_of(base(), 2).await;
    let kind = "kind = \"facts\"\n[columns]\nid = \"long\"\n[[migrations]]\ndescription = \"fill\"\n\
                [migrations.add_columns]\nn = \"byte\"\n[migrations.update]\nset = { n = \"id + 126\" }\nwhere = \"n IS NULL\"\n";
    assert_eq!(untouched(&table, kind).await.code(), ErrorCode::DataStep);
    let kind = kind.replace("id + 126", "CAST(code AS BIGINT)");
    assert_eq!(untouched(&table, &kind).await.code(), ErrorCode::DataStep);
}

fn constraint(text: &str) -> String {
    format!(
        "kind = \"facts\"\n[columns]\nid = \"long\"\ncode = \"string\"\n[[migrations]]\ndescription = \"check\"\n\
         [migrations.add_constraints]\nsound = \"{text}\"\n"
    )
}

#[tokio::test]
async fn rows_that_break_a_constraint_are_counted_and_shown_on_request_alone() {
    let table = table_of(base().versions(1, 3), 3).await;
    // Null is not true: rows 0 and 3.
    for (text, rows, shown) in [
        ("code IS NOT NULL", "2 rows", "code ="),
        ("id < 4", "2 rows", "id = 4"),
        ("code <> 'x'", "2 rows", "code ="),
    ] {
        let kind = constraint(text);
        let error = untouched(&table, &kind).await;
        assert_eq!(error.code(), ErrorCode::DataStep);
        let said = error.message();
        assert!(said.contains("`sound`") && said.contains(rows) && said.contains(".parquet` ("), "{said}");
        assert!(!said.contains(shown), "{said}");

        let before = table.files();
        for (args, is_shown) in [
            (&["apply", "--allow-rewrite"][..], false),
            (&["apply", "--allow-rewrite", "--show-values"], true),
        ] {
            let ran = on(&table, &kind, &[args, &[table.arg()]].concat());
            assert_eq!(ran.code, 1, "{ran:?}");
            let error = ran.table()["error"].clone();
            assert_eq!(error["code"], "data_step", "{error}");
            assert_eq!(error["message"].as_str().unwrap().contains(shown), is_shown, "{error}");
            assert!(table.files() == before);
        }
    }
    // It is not taken unasked into a table that lacks the feature.
    let plain = table_of(base(), 1).await;
    assert_eq!(untouched(&plain, &constraint("id < 4")).await.code(), ErrorCode::UnsupportedFeature);
}

#[tokio::test]
async fn nobody_rewrites_without_leave() {
    let table = table_of(base().versions(1, 3), 2).await;
    let retype = "kind = \"facts\"\n[columns]\nid = \"long\"\n[[migrations]]\ndescription = \"t\"\n\
                  destructive = true\n[migrations.retype_columns]\nid = \"string\"\n";
    let before = table.files();
    for kind in [FILL, retype, &constraint("id >= 0")] {
        for policy in [StartupPolicy::ApplyMetadata, StartupPolicy::StopAtFloor] {
            if policy == StartupPolicy::StopAtFloor && kind == FILL {
                continue;
            }
            let migrator = rewriter_with(kind, policy, ONE_FILE);
            let location = table.location();
            let done = migrator.migrate("facts", &location, Target::Newest, IfMissing::Refuse).await;
            assert_eq!(done.unwrap_err().code(), ErrorCode::RewriteRequired, "{policy:?}");
        }
        let migrator = rewriter_with(kind, StartupPolicy::VerifyOnly, ONE_FILE);
        let done = migrator.migrate("facts", &table.location(), Target::Newest, IfMissing::Refuse).await;
        assert!(done.unwrap_err().is_refusal());
        let ran = on(&table, kind, &["apply", table.arg()]);
        let report = ran.table();
        assert_eq!((ran.code, &report["error"]["code"]), (1, &json!("rewrite_required")), "{report}");
        assert!(report["error"]["hint"].as_str().unwrap().contains("--allow-rewrite"), "{report}");
        assert!(table.files() == before);
    }
    // Opening a sink's table is the same.
    let migrator = rewriter_with(FILL, StartupPolicy::ApplyMetadata, ONE_FILE);
    let error = migrator.open_at("facts", &table.location()).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::RewriteRequired);
    assert!(table.files() == before);
}
