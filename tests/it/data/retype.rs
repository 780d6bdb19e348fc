//! Columns with new types.

use delta_migrate::ErrorCode;

use super::*;

fn kind(before: &str, column: &str, to: &str) -> String {
    format!(
        "kind = \"facts\"\n[columns]\nid = \"long\"\n{before}\n[[migrations]]\ndescription = \"new type\"\n\
         destructive = true\n[migrations.retype_columns]\n{column} = \"{to}\"\n"
    )
}

async fn numbers(values: &[&str]) -> Table {
    let table = Log::new(vec![column("id", "long"), column("n", "string")]).table();
    for (id, value) in values.iter().enumerate() {
        append(&table, &[json!({ "id": id, "n": value }), json!({ "id": id + 100, "n": null })]).await;
    }
    table
}

#[tokio::test]
async fn every_value_that_casts_is_cast_in_one_commit() {
    let table = numbers(&["1", "22", "-3"]).await;
    let report = migrate_at(&table.location(), &kind("n = \"string\"", "n", "int"), ONE_FILE).await.unwrap();
    assert_eq!(report.commits, 1);
    assert_eq!(table.field("n")["type"], "integer");
    let found: Vec<Value> =
        rows(&table).await.into_iter().map(|r| r["n"].clone()).filter(|n| !n.is_null()).collect();
    assert_eq!(found, [1, 22, -3]);
    assert_eq!(rows(&table).await.len(), 6);
    sound(&table);
}

#[tokio::test]
async fn values_that_do_not_cast_are_counted_and_nothing_is_written() {
    let table = numbers(&["1", "x", "3000000000", "secret"]).await;
    let before = table.files();
    let error = migrate(&table, &kind("n = \"string\"", "n", "int")).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::DataStep, "{error:?}");
    assert!(error.message().contains("3 values") && error.message().contains("`n`"), "{error}");
    assert!(error.message().matches(".parquet` (1)").count() == 3, "{error}");
    assert!(!error.to_string().contains("secret"), "{error}");
    assert!(table.files() == before);
}

/// The column comes with an earlier migration of the same commit: no file has it yet.
#[tokio::test]
async fn a_column_that_comes_and_is_retyped_in_one_commit() {
    let chain = "kind = \"facts\"\n[columns]\nid = \"long\"\n[[migrations]]\ndescription = \"more\"\n\
        [migrations.add_columns]\nmore = \"string\"\n[[migrations]]\ndescription = \"new type\"\n\
        destructive = true\n[migrations.retype_columns]\nmore = \"long\"\n";
    let table = numbers(&["1", "2"]).await;
    let files = active(&table);
    let report = migrate(&table, chain).await.unwrap();
    assert_eq!(report.commits, 1);
    assert_eq!(active(&table), files, "no file holds the column");
    assert_eq!(table.field("more")["type"], "long");
    assert!(rows(&table).await.iter().all(|r| r["more"].is_null()));
    is_stamped(&table, "2");
}

#[tokio::test]
async fn other_columns_partitions_and_fills_of_the_same_migration_stay_together() {
    let chain = "kind = \"facts\"\n[columns]\nid = \"long\"\nn = \"string\"\npart = \"string\"\n[[migrations]]\n\
        description = \"clean and type\"\ndestructive = true\n[migrations.update]\nset = { n = \"'0'\" }\n\
        where = \"n = 'none'\"\n[migrations.retype_columns]\nn = \"long\"\n";
    let log = Log::new(vec![column("id", "long"), column("n", "string"), column("part", "string")]);
    let table = log.partitioned(&["part"]).table();
    append(
        &table,
        &[json!({ "id": 1, "n": "7", "part": "a b" }), json!({ "id": 2, "n": "none", "part": null })],
    )
    .await;
    append(&table, &[json!({ "id": 3, "n": null, "part": "50%" })]).await;
    migrate_at(&table.location(), chain, ONE_FILE).await.unwrap();
    let wanted = [
        json!({ "id": 1, "n": 7, "part": "a b" }),
        json!({ "id": 2, "n": 0, "part": null }),
        json!({ "id": 3, "n": null, "part": "50%" }),
    ];
    assert_eq!(rows(&table).await, wanted);
    is_stamped(&table, "1");
    sound(&table);
}

/// Appends of the old type win; they are carried over as well.
#[tokio::test]
async fn appends_that_win_get_the_new_type() {
    let table = Arc::new(numbers(&["1", "2"]).await);
    let rival = table.clone();
    let store = crate::support::store::TrickStore::on_put(move |n| {
        if n < 2 {
            let rival = rival.clone();
            meanwhile(async move { append(&rival, &[json!({ "id": 50 + n, "n": format!("{n}5") })]).await });
        }
        crate::support::store::Trick::Pass
    });
    migrate_at(&table.location_in(&store), &kind("n = \"string\"", "n", "int"), ONE_FILE).await.unwrap();
    let mut found: Vec<i64> = rows(&table).await.iter().filter_map(|r| r["n"].as_i64()).collect();
    found.sort_unstable();
    assert_eq!(found, [1, 2, 5, 15]);
    assert_eq!(rows(&table).await.len(), 6);
    sound(&table);
}

/// A value arrives that does not cast: refused, and the table is as its writers left it.
#[tokio::test]
async fn an_append_that_does_not_cast_meanwhile_is_noticed() {
    let table = Arc::new(numbers(&["1", "2"]).await);
    let rival = table.clone();
    let store = crate::support::store::TrickStore::on_put(move |n| {
        if n == 0 {
            let rival = rival.clone();
            meanwhile(async move { append(&rival, &[json!({ "id": 50, "n": "x" })]).await });
        }
        crate::support::store::Trick::Pass
    });
    let done = migrate_at(&table.location_in(&store), &kind("n = \"string\"", "n", "int"), ONE_FILE).await;
    let error = done.unwrap_err();
    assert_eq!(error.code(), ErrorCode::DataStep, "{error:?}");
    assert!(error.message().contains("1 value"), "{error}");
    assert!(error.committed().is_empty() && ours(&table).is_empty());
    assert_eq!(rows(&table).await.len(), 5);
}
