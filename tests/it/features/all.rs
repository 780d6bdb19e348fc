//! Every safe feature on one table, and three migrations over it.

use deltalake::arrow::datatypes::DataType;
use serde_json::{Value, json};

use super::mapping::{MAX, fields, mapped};
use super::timestamps::stamped;
use super::{part, sound};
use crate::support::checkpoint::{domain, read_mapped, write_rows};
use crate::support::{Log, Table, apply};

const FUTURE: i64 = 4_102_444_800_000;

const WRITER: [&str; 25] = [
    "allowColumnDefaults",
    "appendOnly",
    "changeDataFeed",
    "checkConstraints",
    "checkpointProtection",
    "clustering",
    "columnMapping",
    "deletionVectors",
    "domainMetadata",
    "generatedColumns",
    "icebergCompatV1",
    "icebergCompatV2",
    "icebergCompatV3",
    "identityColumns",
    "inCommitTimestamp",
    "invariants",
    "materializePartitionColumns",
    "rowTracking",
    "timestampNtz",
    "typeWidening",
    "v2Checkpoint",
    "vacuumProtocolCheck",
    "variantShredding",
    "variantType",
    "collations",
];
const READER: [&str; 8] = [
    "columnMapping",
    "deletionVectors",
    "timestampNtz",
    "typeWidening",
    "v2Checkpoint",
    "vacuumProtocolCheck",
    "variantShredding",
    "variantType",
];

fn log(reader: &[&str], writer: &[&str]) -> Log {
    let mut fields = fields();
    let mut day = mapped("day", "date", 60);
    let keys = [
        ("delta.generationExpression", json!("CAST(at AS DATE)")),
        ("CURRENT_DEFAULT", json!("current_date()")),
        ("__COLLATIONS", json!({ "day": "spark.UTF8_LCASE" })),
        ("delta.typeChanges", json!([{ "fromType": "integer", "toType": "long" }])),
        ("delta.identity.highWaterMark", json!(9_223_372_036_854_775_807_i64)),
    ];
    for (key, value) in keys {
        day["metadata"][key] = value;
    }
    fields.push(day);
    let mut log = Log::new(fields).features(reader, writer);
    for (key, value) in [
        ("delta.columnMapping.mode", "name"),
        (MAX, "60"),
        ("delta.enableChangeDataFeed", "true"),
        ("delta.enableDeletionVectors", "true"),
        ("delta.enableIcebergCompatV3", "true"),
        ("delta.enableRowTracking", "true"),
        ("delta.rowTracking.materializedRowIdColumnName", "_row-id"),
        ("delta.rowTracking.materializedRowCommitVersionColumnName", "_row-version"),
        ("delta.enableTypeWidening", "true"),
        ("delta.checkpointPolicy", "v2"),
        ("delta.constraints.positive", "id > 0"),
        ("delta.appendOnly", "false"),
        ("delta.requireCheckpointProtectionBeforeVersion", "0"),
    ] {
        log = log.property(key, value);
    }
    log
}

const CHAIN: &str = r#"
kind = "facts"
[columns]
id = "long"
data = "array<array<struct<a: long>>>"
tags = "map<string, struct<since: timestamp>>"
day = "date"

[[migrations]]
description = "one"
[migrations.add_columns]
plain = "string"
"data.element.element.b" = "array<timestamp_ntz>"

[[migrations]]
description = "two"
[migrations.comments]
day = "the day"
[migrations.set_properties]
owner = "team"

[[migrations]]
description = "three"
raises_min_version = true
[migrations.add_columns]
"tags.value.why" = "map<string, struct<a: long, b: array<string>>>"
"last one" = "timestamp_ntz"
"#;

fn chain(version: usize) -> String {
    let parts: Vec<&str> = CHAIN.split("[[migrations]]").take(version + 1).collect();
    parts.join("[[migrations]]")
}

fn three_migrations(table: &Table) {
    let start = table.newest();
    let timestamp = |v: u64| table.action(v, "commitInfo")["inCommitTimestamp"].as_i64();
    for (n, may) in [(1, &[][..]), (2, &["comment:day", "property:owner"]), (3, &[])] {
        let done = sound(table, &chain(n), may);
        assert_eq!(done.entry, start + n as u64);
        assert_eq!(timestamp(done.entry), timestamp(done.entry - 1).map(|t| t + 1));
        done.caught("is not above", |a| part(a, "commitInfo")["inCommitTimestamp"] = FUTURE.into());
        done.caught("the tag of row tracking", |a| part(a, "commitInfo")["tags"] = json!({}));
        done.caught_in_fields("share id", |f| {
            f[0]["metadata"]["delta.columnMapping.id"] = 60.into();
        });
    }
    let before = table.files();
    assert_eq!(apply(table, CHAIN).table()["outcome"], "current");
    assert!(table.files() == before);
    // 60; plain, b, its element; why, its key and value, a, b, its element; last one.
    assert_eq!(table.property(MAX).as_deref(), Some("70"));
    assert_eq!((table.property("app.schema_version"), table.history().len()), (Some("3".into()), 3));
    let day = &table.field("day")["metadata"];
    assert_eq!((&day["comment"], day.as_object().unwrap().len()), (&json!("the day"), 8));
}

/// Two rows, and a domain of each owner.
fn filled(log: Log) -> Table {
    let table = stamped(log, Some(FUTURE));
    let rows = [json!({ "p1": 1 }), json!({ "p1": 2 })];
    let said = |name: &str| json!({ "domainMetadata": { "domain": name, "configuration": "{\"a\":1}", "removed": false } });
    table.commit_raw(&[
        json!({ "commitInfo": { "operation": "WRITE", "inCommitTimestamp": FUTURE + 1 } }),
        write_rows(&table, "part-0.parquet", vec![("p1", DataType::Int64)], &rows),
        said("delta.clustering"),
        said("delta.rowTracking"),
        said("app"),
    ]);
    table
}

#[tokio::test]
async fn three_migrations_keep_every_duty_and_the_rows_stay_readable() {
    // Everything at once.
    three_migrations(&filled(log(&READER, &WRITER)));
    // The same without what deltalake can't open.
    let closed = ["typeWidening", "icebergCompatV3", "collations"];
    let open =
        |names: &[&'static str]| names.iter().copied().filter(|n| !closed.contains(n)).collect::<Vec<_>>();
    let log = log(&open(&READER), &open(&WRITER));
    let log =
        log.property("delta.enableTypeWidening", "false").property("delta.enableIcebergCompatV3", "false");
    let log = log.property("delta.enableDeletionVectors", "false");
    let table = filled(log.property("delta.enableIcebergCompatV2", "true"));
    let before = read_mapped(&table).await;
    three_migrations(&table);
    let after = read_mapped(&table).await;
    assert_eq!((before.len(), after.len()), (2, 2));
    for (before, after) in before.iter().zip(&after) {
        assert_eq!(
            (&after["id"], &after["last one"], &after["plain"]),
            (&before["id"], &Value::Null, &Value::Null)
        );
    }
    let domain = domain(&table, "app").await;
    assert_eq!(domain.as_deref(), Some("{\"a\":1}"));
}
