//! Table features that ask something of a rewrite.

use super::*;
use delta_migrate::ErrorCode;
use deltalake::arrow::array::RecordBatch;
use futures::TryStreamExt as _;

use crate::support::rows::to_json;

fn with_metadata(mut field: Value, key: &str, value: impl Into<Value>) -> Value {
    field["metadata"][key] = value.into();
    field
}

/// What the change data feed tells of the versions from `first` on.
async fn feed(table: &Table, first: u64) -> Vec<Value> {
    use deltalake::datafusion::physical_plan::execute_stream;
    use deltalake::datafusion::prelude::SessionContext;
    let context = SessionContext::new();
    let scan = table.load().await.scan_cdf().with_starting_version(first);
    let plan = scan.build(&context.state(), None).await.unwrap();
    let batches: Vec<RecordBatch> =
        execute_stream(plan, context.task_ctx()).unwrap().try_collect().await.unwrap();
    batches.iter().flat_map(to_json).collect()
}

#[tokio::test]
async fn a_change_data_feed_tells_each_row_before_and_after() {
    for most in [1 << 30, ONE_FILE] {
        let log = base().versions(1, 4).property("delta.enableChangeDataFeed", "true");
        let table = table_of(log, 3).await;
        let only = FILL.replace("tenant IS NULL", "tenant IS NULL AND id <> 3");
        let first = table.newest() + 1;
        migrate_at(&table.location(), &only, most).await.unwrap();
        let found = feed(&table, first).await;
        let of = |kind: &str| {
            let mut ids: Vec<(i64, Value)> = found
                .iter()
                .filter(|r| r["_change_type"] == kind)
                .map(|r| (r["id"].as_i64().unwrap(), r["tenant"].clone()))
                .collect();
            ids.sort_by_key(|(id, _)| *id);
            ids
        };
        let ids = [0, 1, 2, 4, 5];
        assert_eq!(of("update_preimage"), ids.map(|id| (id, Value::Null)), "{found:#?}");
        assert_eq!(of("update_postimage"), ids.map(|id| (id, filled(id)["tenant"].clone())));
        assert_eq!(found.len(), 10);
        sound(&table);
    }
}

#[tokio::test]
async fn in_commit_timestamps_rise_with_every_commit() {
    let now = 4_102_444_800_000_i64;
    let log = base().features(&[], &["inCommitTimestamp"]).property("delta.enableInCommitTimestamps", "true");
    let table = log.table();
    let mut first = table.commit(0);
    first[0]["commitInfo"]["inCommitTimestamp"] = now.into();
    let text: Vec<String> = first.iter().map(Value::to_string).collect();
    std::fs::write(table.log_file(0), text.join("\n") + "\n").unwrap();
    let columns = || vec![("id", DataType::Int64), ("code", DataType::Utf8)];
    let adds: Vec<Value> = (0..3)
        .map(|n| write_rows(&table, &format!("f{n}.parquet"), columns(), &[row(2 * n), row(2 * n + 1)]))
        .collect();
    let info = json!({ "commitInfo": { "inCommitTimestamp": now + 1, "operation": "WRITE" } });
    table.commit_raw(&[vec![info], adds].concat());
    migrate_at(&table.location(), FILL, ONE_FILE).await.unwrap();
    is_filled(&table, 0..6).await;
    let stamps: Vec<i64> = table
        .versions()
        .into_iter()
        .map(|v| table.commit(v)[0]["commitInfo"]["inCommitTimestamp"].as_i64().unwrap())
        .collect();
    assert_eq!(stamps, (now..).take(stamps.len()).collect::<Vec<_>>());
    assert!(stamps.len() >= 5, "{stamps:?}");
}

#[tokio::test]
async fn constraints_and_invariants_hold_for_what_is_filled_in() {
    let log = base().versions(1, 3).property("delta.constraints.short", "length(code) < 5 or code is null");
    let table = table_of(log, 2).await;
    migrate(&table, FILL).await.unwrap();
    is_filled(&table, 0..4).await;

    let invariant = r#"{"expression":{"expression":"id < 100"}}"#;
    let fields =
        vec![with_metadata(column("id", "long"), "delta.invariants", invariant), column("code", "string")];
    let kind = |value: &str| {
        format!(
            "kind = \"facts\"\n[columns]\nid = \"long\"\n[[migrations]]\ndescription = \"new ids\"\n\
             [migrations.update]\nset = {{ id = \"{value}\" }}\nwhere = \"id < 10\"\n"
        )
    };
    let table = Log::new(fields).table();
    append(&table, &[row(1), row(2)]).await;
    let before = table.files();
    let error = migrate(&table, &kind("id + 100")).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::DataStep, "{error:?}");
    let log_now: Vec<_> = table.versions();
    assert_eq!(log_now.len(), 2, "{error:?}");
    assert!(before.iter().all(|(file, bytes)| table.files().get(file) == Some(bytes)));
    migrate(&table, &kind("id + 10")).await.unwrap();
    let ids: Vec<Value> = rows(&table).await.into_iter().map(|r| r["id"].clone()).collect();
    assert_eq!(ids, [11, 12]);
}

#[tokio::test]
async fn a_required_column_never_becomes_null() {
    let table = Log::new(vec![crate::support::required("id", "long"), column("code", "string")]).table();
    append(&table, &[row(1), row(2)]).await;
    let kind = "kind = \"facts\"\n[columns]\nid = \"long\"\n[[migrations]]\ndescription = \"no ids\"\n\
                [migrations.update]\nset = { id = \"NULL\" }\nwhere = \"id = 1\"\n";
    let entries = table.versions();
    let error = migrate(&table, kind).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::DataStep, "{error:?}");
    assert_eq!(table.versions(), entries);
}

/// What a generated column is made of changes: it would say something else than its expression.
#[tokio::test]
async fn a_generated_column_says_what_its_expression_says() {
    let key = "delta.generationExpression";
    let fields = || {
        vec![
            column("id", "long"),
            column("code", "string"),
            with_metadata(column("twice", "long"), key, "id * 2"),
        ]
    };
    let table = Log::new(fields()).versions(1, 4).table();
    append(
        &table,
        &[json!({ "id": 1, "code": null, "twice": 2 }), json!({ "id": 2, "code": "c", "twice": 4 })],
    )
    .await;
    let plain = copy_of(&table);
    migrate(&plain, FILL).await.unwrap();
    let found: Vec<(Value, Value)> =
        rows(&plain).await.into_iter().map(|r| (r["twice"].clone(), r["tenant"].clone())).collect();
    assert_eq!(found, [(json!(2), json!("of nobody")), (json!(4), json!("of c"))]);

    let entries = table.versions();
    for set in ["id = \"id + 100\"", "twice = \"7\""] {
        let kind = format!(
            "kind = \"facts\"\n[columns]\nid = \"long\"\n\"twice\" = \"long\"\n[[migrations]]\ndescription = \"new ids\"\n\
             [migrations.update]\nset = {{ {set} }}\nwhere = \"id < 10 AND twice <> 7\"\n"
        );
        let error = migrate(&table, &kind).await.unwrap_err();
        assert!(
            [ErrorCode::DataStep, ErrorCode::UnsupportedFeature].contains(&error.code()),
            "{set}: {error:?}"
        );
        assert_eq!(table.versions(), entries, "{set}");
    }
}

#[tokio::test]
async fn identity_columns_keep_their_numbers_and_their_high_water_mark() {
    for log in [base().versions(1, 6), base().features(&[], &["identityColumns", "appendOnly", "invariants"])]
    {
        let mut log = log;
        let field = &mut log.schema["fields"][0]["metadata"];
        field["delta.identity.start"] = 1.into();
        field["delta.identity.step"] = 1.into();
        field["delta.identity.highWaterMark"] = 77.into();
        field["delta.identity.allowExplicitInsert"] = false.into();
        let table = log.table();
        let columns = vec![("id", DataType::Int64), ("code", DataType::Utf8)];
        let add = write_rows(&table, "f.parquet", columns, &[row(1), row(2)]);
        table.commit_raw(&[add]);
        migrate(&table, FILL).await.unwrap();
        is_filled(&table, 1..3).await;
        assert_eq!(table.field("id")["metadata"]["delta.identity.highWaterMark"], 77);
    }
}

#[tokio::test]
async fn features_that_a_rewrite_can_not_keep_are_refused_by_name() {
    let refused = |feature: &'static str, reader: &[&str]| (feature, base().features(reader, &[feature]));
    let logs = [
        refused("rowTracking", &[]),
        refused("typeWidening", &["typeWidening"]),
        refused("icebergCompatV2", &[]),
        refused("variantShredding", &["variantShredding"]),
        refused("materializePartitionColumns", &[]),
        refused("collations", &[]),
    ];
    for (feature, log) in logs {
        let table = log.table();
        let before = table.files();
        let error = migrate(&table, FILL).await.unwrap_err();
        assert_eq!(error.code(), ErrorCode::UnsupportedFeature, "{error:?}");
        assert!(error.message().contains(feature), "{error}");
        assert!(table.files() == before, "{feature}");
    }
    let table = table_of(base().property("delta.appendOnly", "true"), 1).await;
    let before = table.files();
    let error = migrate(&table, FILL).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::UnsupportedFeature, "{error:?}");
    assert!(error.message().contains("append-only"), "{error}");
    assert!(table.files() == before);
}

/// Rows that a deletion vector hides do not come back, and the vector is taken away with its file.
#[tokio::test]
async fn rows_under_a_deletion_vector_stay_deleted() {
    let log = Log::new(vec![column("id", "long")]).features(&["deletionVectors"], &["deletionVectors"]);
    let table = log.property("delta.enableDeletionVectors", "true").table();
    let data: Vec<Value> = (0..6).map(|id| json!({ "id": id })).collect();
    let mut add = write_rows(&table, "f.parquet", vec![("id", DataType::Int64)], &data);
    // Rows 3, 4 and 5 of an inline vector, as in PROTOCOL.md's examples of deletion vectors.
    let vector = json!({
        "storageType": "i", "pathOrInlineDv": inline(&[3, 4, 5]), "sizeInBytes": 40, "cardinality": 3,
    });
    add["add"]["deletionVector"] = vector.clone();
    table.commit_raw(&[add]);
    assert_eq!(rows(&table).await.len(), 3);
    migrate(&table, EXTRA).await.unwrap();
    has_extra(&table, 0..3).await;
    let remove = table.commit(table.newest()).into_iter().find_map(|a| a.get("remove").cloned()).unwrap();
    assert_eq!(remove["deletionVector"]["pathOrInlineDv"], vector["pathOrInlineDv"]);
}

/// A roaring bitmap array of small numbers, as Delta writes it, in Z85.
fn inline(rows: &[u16]) -> String {
    let mut bytes: Vec<u8> = Vec::new();
    bytes.extend(1_681_511_377_u32.to_le_bytes());
    bytes.extend(1_u64.to_le_bytes());
    bytes.extend(0_u32.to_le_bytes());
    // The portable format of a 32-bit bitmap with one array container.
    bytes.extend(12_346_u32.to_le_bytes());
    bytes.extend(1_u32.to_le_bytes());
    bytes.extend(0_u16.to_le_bytes());
    bytes.extend(u16::try_from(rows.len() - 1).unwrap().to_le_bytes());
    bytes.extend(16_u32.to_le_bytes());
    for row in rows {
        bytes.extend(row.to_le_bytes());
    }
    while !bytes.len().is_multiple_of(4) {
        bytes.push(0);
    }
    const LETTERS: &[u8] =
        b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#";
    let mut out = String::new();
    for chunk in bytes.chunks(4) {
        let mut number = u32::from_be_bytes(chunk.try_into().unwrap());
        let mut letters = [0_u8; 5];
        for letter in letters.iter_mut().rev() {
            *letter = LETTERS[(number % 85) as usize];
            number /= 85;
        }
        out.push_str(std::str::from_utf8(&letters).unwrap());
    }
    out
}
