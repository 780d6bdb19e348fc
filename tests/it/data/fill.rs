//! Rows filled in, on tables of every make that can be rewritten.

mod features;

use delta_migrate::SchemaVersion;

use super::*;
use crate::support::checkpoint::{write_checkpoint, write_rows};
use deltalake::arrow::datatypes::DataType;

/// A kind that adds `extra` and fills it.
const EXTRA: &str = r#"
kind = "facts"
[columns]
id = "long"
[[migrations]]
description = "extra"
[migrations.add_columns]
extra = "string"
[migrations.update]
set = { extra = "concat('n', CAST(id AS VARCHAR))" }
where = "extra IS NULL"
"#;

fn of_ids(table_rows: &[Value]) -> Vec<(i64, Option<String>)> {
    let mut found: Vec<(i64, Option<String>)> = table_rows
        .iter()
        .map(|r| (r["id"].as_i64().unwrap(), r["extra"].as_str().map(str::to_owned)))
        .collect();
    found.sort();
    found
}

fn at(version: u32) -> Option<SchemaVersion> {
    Some(SchemaVersion::new(version))
}

/// Every row has its own value.
async fn has_extra(table: &Table, ids: impl IntoIterator<Item = i64>) {
    let wanted: Vec<(i64, Option<String>)> = ids.into_iter().map(|id| (id, Some(format!("n{id}")))).collect();
    assert_eq!(of_ids(&rows(table).await), wanted);
    is_stamped(table, "1");
    sound(table);
}

#[tokio::test]
async fn a_plain_table_is_filled_in_one_rewrite_and_a_stamp() {
    let table = table_of(base(), 3).await;
    let before = rows(&table).await;
    let report = migrate(&table, FILL).await.unwrap();
    is_filled(&table, 0..6).await;
    let found: Vec<Value> = rows(&table)
        .await
        .into_iter()
        .map(|mut row| {
            row.as_object_mut().unwrap().remove("tenant");
            row
        })
        .collect();
    assert_eq!(found, before);
    assert_eq!(
        (report.outcome.as_str(), report.commits, report.from, report.to),
        ("migrated", 2, at(0), at(1))
    );
    let rewrite = report.rewrite.unwrap();
    assert_eq!((rewrite.files, rewrite.rows), (3, Some(6)));
    assert_eq!(ours(&table).into_values().collect::<Vec<_>>(), ["adopted", "migrated"]);
}

#[tokio::test]
async fn an_empty_table_and_one_without_a_matching_row_are_only_stamped() {
    let table = base().table();
    migrate(&table, FILL).await.unwrap();
    is_filled(&table, []).await;
    assert_eq!(table.newest(), 2);

    let only = FILL.replace("tenant IS NULL", "tenant IS NULL AND id > 1000");
    let table = table_of(base(), 2).await;
    let files = active(&table);
    let report = migrate(&table, &only).await.unwrap();
    assert_eq!(active(&table), files);
    assert_eq!(report.rewrite.map(|r| (r.files, r.bytes)), Some((0, 0)));
    is_stamped(&table, "1");
    sound(&table);

    // One file of three has such rows: the others stay as they are.
    let only = FILL.replace("tenant IS NULL", "tenant IS NULL AND id = 2");
    let table = table_of(base(), 3).await;
    let files = active(&table);
    migrate(&table, &only).await.unwrap();
    let now = active(&table);
    assert_eq!(files.keys().filter(|k| now.contains_key(*k)).count(), 2);
    let found = rows(&table).await;
    let set: Vec<i64> =
        found.iter().filter(|r| r["tenant"].is_string()).map(|r| r["id"].as_i64().unwrap()).collect();
    assert_eq!(set, [2]);
}

const ODD: [Option<&str>; 9] = [
    Some("a b"),
    Some("50%"),
    Some("a=b"),
    Some("ü/é"),
    Some("a%20b"),
    Some("c:d?e#f"),
    Some("'q'\"{}[]"),
    Some("日本 🎉"),
    None,
];

#[tokio::test]
async fn partition_values_of_every_sort_stay_and_their_files_are_taken_away_by_their_names() {
    let log = Log::new(vec![column("id", "long"), column("part", "string")]).partitioned(&["part"]);
    for most in [1 << 30, ONE_FILE] {
        let table = log.table();
        for (id, part) in ODD.iter().enumerate() {
            append(&table, &[json!({ "id": id, "part": part }), json!({ "id": id + 100, "part": part })])
                .await;
        }
        let before = rows(&table).await;
        let old = active(&table);
        migrate_at(&table.location(), EXTRA, most).await.unwrap();
        let count = i64::try_from(ODD.len()).unwrap();
        has_extra(&table, (0..count).chain(100..100 + count)).await;
        let after: Vec<Value> = rows(&table)
            .await
            .into_iter()
            .map(|mut r| {
                r.as_object_mut().unwrap().remove("extra");
                r
            })
            .collect();
        assert_eq!(after, before);
        let now = active(&table);
        assert!(old.keys().all(|k| !now.contains_key(k)));
    }
}

/// As Spark writes them: the folder's name is encoded, and the path in the log once more.
#[tokio::test]
async fn files_whose_paths_are_encoded_as_spark_does_it_are_taken_away() {
    let log = Log::new(vec![column("id", "long"), column("part", "string")]).partitioned(&["part"]);
    let table = log.table();
    let paths = [
        ("part=a b/f0.parquet", "part=a%20b/f0.parquet", "a b"),
        ("part=a%3Ab/f1.parquet", "part=a%253Ab/f1.parquet", "a:b"),
        ("part=50%25/f2.parquet", "part=50%2525/f2.parquet", "50%"),
        ("part=ü/f3.parquet", "part=ü/f3.parquet", "ü"),
        ("part=ä/f4.parquet", "part=%C3%A4/f4.parquet", "ä"),
    ];
    for (id, (on_disk, in_log, value)) in paths.iter().enumerate() {
        let rows = [json!({ "id": id })];
        let mut add = write_rows(&table, on_disk, vec![("id", DataType::Int64)], &rows);
        add["add"]["path"] = (*in_log).into();
        add["add"]["partitionValues"] = json!({ "part": value });
        table.commit_raw(&[add]);
    }
    let before = rows(&table).await;
    assert_eq!(before.len(), 5);
    migrate(&table, EXTRA).await.unwrap();
    has_extra(&table, 0..5).await;
    let parts = |rows: &[Value]| rows.iter().map(|r| r["part"].clone()).collect::<Vec<_>>();
    assert_eq!(parts(&rows(&table).await), parts(&before));
}

#[tokio::test]
async fn a_partition_column_can_be_filled_and_conditions_can_speak_of_it() {
    let kind = r#"
kind = "facts"
[columns]
id = "long"
part = "string"
[[migrations]]
description = "no partition without a name"
[migrations.update]
set = { part = "'none of it'" }
where = "part IS NULL"
"#;
    let log = Log::new(vec![column("id", "long"), column("part", "string")]).partitioned(&["part"]);
    let table = log.table();
    append(&table, &[json!({ "id": 0, "part": null }), json!({ "id": 1, "part": "a" })]).await;
    append(&table, &[json!({ "id": 2, "part": null })]).await;
    migrate(&table, kind).await.unwrap();
    let wanted = [
        json!({ "id": 0, "part": "none of it" }),
        json!({ "id": 1, "part": "a" }),
        json!({ "id": 2, "part": "none of it" }),
    ];
    assert_eq!(rows(&table).await, wanted);
    sound(&table);
    // `a` was not touched.
    assert_eq!(active(&table).len(), if active(&table).len() == 2 { 2 } else { 3 });
    assert_eq!(migrate(&table, kind).await.unwrap().outcome.as_str(), "current");
}

#[tokio::test]
async fn names_that_need_quotes_and_letters_of_both_cases() {
    let kind = r#"
kind = "facts"
[columns]
Id = "long"
"a b" = "string"
"x.y" = "string"
"OrderNo" = "long"
[[migrations]]
description = "odd names"
[migrations.add_columns]
"New Col" = "string"
TENANT = "string"
[migrations.update]
where = '"New Col" IS NULL AND "OrderNo" > 0'
[migrations.update.set]
"New Col" = 'concat("a b", "x.y")'
TENANT = 'CAST("OrderNo" + "Id" AS VARCHAR)'
"#;
    let mapped = |name: &str, of: &str, id: u32| {
        let mut field = column(name, of);
        field["metadata"] =
            json!({ "delta.columnMapping.id": id, "delta.columnMapping.physicalName": format!("p{id}") });
        field
    };
    let fields = vec![
        mapped("Id", "long", 1),
        mapped("a b", "string", 2),
        mapped("x.y", "string", 3),
        mapped("OrderNo", "long", 4),
    ];
    let log = Log::new(fields)
        .versions(2, 5)
        .property("delta.columnMapping.mode", "name")
        .property("delta.columnMapping.maxColumnId", "4");
    let table = log.table();
    let columns = vec![
        ("p1", DataType::Int64),
        ("p2", DataType::Utf8),
        ("p3", DataType::Utf8),
        ("p4", DataType::Int64),
    ];
    let old = [
        json!({ "p1": 1, "p2": "a", "p3": "x", "p4": 5 }),
        json!({ "p1": 2, "p2": "b", "p3": "y", "p4": -1 }),
    ];
    let add = write_rows(&table, "part-0.parquet", columns, &old);
    table.commit_raw(&[add]);
    migrate(&table, kind).await.unwrap();
    let wanted = [
        json!({ "Id": 1, "a b": "a", "x.y": "x", "OrderNo": 5, "New Col": "ax", "TENANT": "6" }),
        json!({ "Id": 2, "a b": "b", "x.y": "y", "OrderNo": -1, "New Col": null, "TENANT": null }),
    ];
    assert_eq!(rows(&table).await, wanted);
    sound(&table);
}

#[tokio::test]
async fn files_without_statistics_and_with_wrong_bounds_of_none() {
    let table = Log::new(vec![column("id", "long")]).table();
    let mut actions = Vec::new();
    for id in 0..3 {
        let rows = [json!({ "id": id })];
        let mut add = write_rows(&table, &format!("f{id}.parquet"), vec![("id", DataType::Int64)], &rows);
        let map = add["add"].as_object_mut().unwrap();
        match id {
            0 => drop(map.remove("stats")),
            1 => drop(map.insert("stats".into(), Value::Null)),
            _ => drop(map.insert("stats".into(), "{}".into())),
        }
        actions.push(add);
    }
    table.commit_raw(&actions);
    let report = migrate(&table, EXTRA).await.unwrap();
    has_extra(&table, 0..3).await;
    assert_eq!(report.rewrite.unwrap().rows, Some(3));
}

#[tokio::test]
async fn a_log_that_says_another_number_of_rows_than_the_file_has_is_refused() {
    let table = Log::new(vec![column("id", "long")]).table();
    let rows = [json!({ "id": 1 }), json!({ "id": 2 })];
    let mut add = write_rows(&table, "f.parquet", vec![("id", DataType::Int64)], &rows);
    add["add"]["stats"] = "{\"numRecords\":3}".into();
    table.commit_raw(&[add]);
    let error = migrate(&table, EXTRA).await.unwrap_err();
    assert!(error.message().contains("3 rows") && error.message().contains("2 were read"), "{error:?}");
    assert_eq!(table.property("app.schema_version").as_deref(), Some("0"));
}

/// Files that are named in a checkpoint alone; the entries below it are gone.
#[tokio::test]
async fn files_that_only_a_checkpoint_knows_are_filled() {
    for (log, name) in [
        (base(), format!("{:020}.checkpoint.parquet", 1)),
        (
            base().features(&["v2Checkpoint"], &["v2Checkpoint"]).property("delta.checkpointPolicy", "v2"),
            format!("{:020}.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.parquet", 1),
        ),
    ] {
        let v2 = name.contains("80a083e8");
        let table = log.table();
        let columns = || vec![("id", DataType::Int64), ("code", DataType::Utf8)];
        let adds: Vec<Value> = (0..2)
            .map(|n| write_rows(&table, &format!("f{n}.parquet"), columns(), &[row(2 * n), row(2 * n + 1)]))
            .collect();
        table.commit_raw(&adds);
        let mut actions = vec![
            json!({ "protocol": table.action(0, "protocol") }),
            json!({ "metaData": table.action(0, "metaData") }),
        ];
        let mut adds: Vec<Value> = adds;
        for add in &mut adds {
            add["add"]["dataChange"] = false.into();
        }
        if v2 {
            let sidecar = "016ae953-37a9-438e-8683-9a9a4a79a395.parquet";
            let size = write_checkpoint(&table, &format!("_sidecars/{sidecar}"), &adds);
            actions.push(json!({ "checkpointMetadata": { "version": 1 } }));
            actions
                .push(json!({ "sidecar": { "path": sidecar, "sizeInBytes": size, "modificationTime": 1 } }));
        } else {
            actions.extend(adds);
        }
        write_checkpoint(&table, &name, &actions);
        let metadata = table.metadata();
        for version in [0, 1] {
            std::fs::remove_file(table.log_file(version)).unwrap();
        }
        assert_eq!(rows(&table).await.len(), 4, "{name}");
        // An entry behind it, whose file is not in it.
        let add = write_rows(&table, "f9.parquet", columns(), &[row(9)]);
        let entry = json!({ "commitInfo": { "operation": "WRITE" } });
        std::fs::write(table.log_file(2), format!("{entry}\n{add}\n")).unwrap();
        migrate_at(&table.location(), FILL, ONE_FILE).await.unwrap();
        assert_eq!(rows(&table).await, filled_all([0, 1, 2, 3, 9]), "{name}");
        assert_eq!(table.metadata()["id"], metadata["id"]);
        is_stamped(&table, "1");
        let removed = table.versions().into_iter().flat_map(|v| table.commit(v));
        let mut removed: Vec<String> =
            removed.filter_map(|a| Some(a.get("remove")?["path"].as_str()?.to_owned())).collect();
        removed.sort();
        assert_eq!(removed, ["f0.parquet", "f1.parquet", "f9.parquet"]);
    }
}

/// Expressions of many types; what DataFusion makes of them is what stands in the file.
#[tokio::test]
async fn values_of_many_types() {
    let kind = r#"
kind = "facts"
[columns]
id = "long"
code = "string"
[[migrations]]
description = "many"
[migrations.add_columns]
i = "int"
d = "decimal(9,2)"
f = "double"
b = "boolean"
day = "date"
at = "timestamp"
s = "struct<a: long, b: string>"
l = "array<string>"
bin = "binary"
[migrations.update]
where = "i IS NULL"
[migrations.update.set]
i = "id * 2"
d = "CAST(1.25 AS DECIMAL(9,2))"
f = "id / 4.0"
b = "id % 2 = 0"
day = "DATE '2026-01-02'"
at = "TIMESTAMP '2026-01-02T03:04:05Z'"
s = "named_struct('a', id, 'b', code)"
l = "make_array(code, 'x')"
bin = "X'00ff'"
"#;
    let table = table_of(base(), 2).await;
    migrate(&table, kind).await.unwrap();
    let found = rows(&table).await;
    let one = found.iter().find(|r| r["id"] == 1).unwrap();
    assert_eq!(
        *one,
        json!({
            "id": 1, "code": "c1", "i": 2, "d": one["d"], "f": 0.25, "b": false, "day": "2026-01-02",
            "at": "2026-01-02T03:04:05Z", "s": { "a": 1, "b": "c1" }, "l": ["c1", "x"], "bin": "00ff",
        })
    );
    assert!(one["d"].to_string().contains("1.25"), "{one}");
    assert_eq!(found.len(), 4);
    sound(&table);
}
