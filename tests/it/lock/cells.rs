//! Each cell of what an older release would do, executed with deltalake's writers and compared with what
//! `validate` says.
//!
//! Merging and overwriting as one call take DataFusion in deltalake. Here they are the parts of it that are
//! there without: the casts, the merging writer, and one commit of the new files and the removal of all
//! others, through the same checks of the protocol. What `write_deltalake` of the Python package makes of
//! the same steps is compared in tests/real/older_releases.py.

use std::sync::Arc;

use delta_migrate::IfMissing;
use deltalake::DeltaTable;
use deltalake::arrow::array::RecordBatch;
use deltalake::arrow::compute::cast;
use deltalake::arrow::datatypes::{DataType, Schema};
use deltalake::arrow::json::ReaderBuilder;
use deltalake::kernel::schema::cast_record_batch;
use deltalake::kernel::transaction::{CommitBuilder, PROTOCOL};
use deltalake::kernel::{Action, Remove};
use deltalake::protocol::{DeltaOperation, SaveMode};
use deltalake::writer::{DeltaWriter as _, RecordBatchWriter, WriteMode};
use serde_json::{Value, json};

use crate::support::rows::{append_as, arrow_schema, read};
use crate::support::{Log, Table, column, command, migrator, required, run, struct_type};

const BASE: &str = r#"
kind = "facts"
[columns]
id      = { type = "long", nullable = false }
code    = { type = "string", nullable = false }
payload = "struct<lsn: long>"
items   = "array<struct<sku: string>>"
tags    = "map<string, struct<by: string>>"
[[migrations]]
description = "the one that older releases don't know"
"#;

fn log() -> Log {
    let map = json!({
        "type": "map", "keyType": "string", "valueContainsNull": true,
        "valueType": struct_type(vec![column("by", "string")]),
    });
    let array = json!({
        "type": "array", "containsNull": true, "elementType": struct_type(vec![column("sku", "string")]),
    });
    Log::new(vec![
        required("id", "long"),
        required("code", "string"),
        column("payload", struct_type(vec![column("lsn", "long")])),
        column("items", array),
        column("tags", map),
    ])
    .property("legacy", "1")
    .property("delta.dataSkippingNumIndexedCols", "3")
}

/// What an older release writes.
fn old_row(id: i64) -> Value {
    json!({
        "id": id, "code": "c", "payload": { "lsn": 10 * id }, "items": [{ "sku": "s" }],
        "tags": { "k": { "by": "me" } },
    })
}

fn batch(schema: &Schema, rows: &[Value]) -> RecordBatch {
    let lines: Vec<String> = rows.iter().map(Value::to_string).collect();
    let reader = ReaderBuilder::new(Arc::new(schema.clone())).build(std::io::Cursor::new(lines.join("\n")));
    reader.unwrap().next().unwrap().unwrap()
}

/// One step to look at, and the table that it meets.
struct Case {
    migration: String,
    log: Log,
}

fn case(migration: &str) -> Case {
    Case { migration: migration.to_owned(), log: log() }
}

impl Case {
    fn kind(&self) -> String {
        format!("{BASE}{}\n", self.migration)
    }

    /// A table with a row of an older release, migrated; and the older release's columns.
    async fn migrated(&self) -> (Table, Schema) {
        let table = self.log.table();
        let mut loaded = table.load().await;
        let old = arrow_schema(&loaded);
        append_as(&mut loaded, old.clone(), &[old_row(1)]).await.unwrap();
        migrator(&self.kind()).open_at("facts", &table.location()).await.unwrap();
        (table, old)
    }

    /// What `validate` says of the step.
    fn said(&self) -> Value {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("facts.toml"), self.kind()).unwrap();
        let ran = run(folder.path(), &["validate", "--kind-file", "facts.toml", "--format", "json"]);
        let report = ran.json();
        let mut said = report["consequences"][0]["steps"][0].clone();
        let harmful = |answer: &Value| !matches!(answer.as_str(), Some("nothing_new" | "reads_null"));
        let bad = said.as_object().unwrap().iter().any(|(key, answer)| key != "step" && harmful(answer));
        assert_eq!(ran.code, i32::from(bad), "{report}");
        assert_eq!(report["findings"].as_array().unwrap().len(), usize::from(bad), "{report}");
        said.as_object_mut().unwrap().remove("step");
        said
    }

    /// What happens.
    async fn executed(&self) -> Value {
        let mut seen = serde_json::Map::new();
        for operation in ["append", "merge", "overwrite"] {
            seen.insert(operation.to_owned(), self.write(operation).await.into());
        }
        seen.insert("read".to_owned(), self.read().await.into());
        Value::Object(seen)
    }

    async fn write(&self, operation: &str) -> &'static str {
        let (table, old) = self.migrated().await;
        let before = (table.schema(), table.metadata()["configuration"].clone());
        let described = table.metadata()["description"].clone();
        let Ok(mut loaded) = deltalake::open_table(table.url()).await else { return "cannot_write" };
        let rows = [old_row(2)];
        let done = match operation {
            // As examples/sink.rs: the table's schema, with the columns that are known filled in.
            "append" => {
                let schema = arrow_schema(&loaded);
                append_as(&mut loaded, schema, &rows).await.map(drop)
            }
            "merge" => merge(&mut loaded, batch(&old, &rows)).await,
            _ => overwrite(&mut loaded, batch(&old, &rows)).await,
        };
        if done.is_err() {
            return "cannot_write";
        }
        let all = read(&table).await;
        let mine: Vec<&Value> = all.iter().filter(|row| row["id"] == 2).collect();
        let kept = all.iter().filter(|row| row["id"] == 1).count() == usize::from(operation != "overwrite");
        let same = (table.schema(), table.metadata()["configuration"].clone()) == before
            && table.metadata()["description"] == described;
        let status = migrator(&self.kind()).status("facts", &table.location()).await;
        let current = status.is_ok_and(|report| report.outcome.as_str() == "current");
        match mine.as_slice() {
            [row] if kept && same && current && holds(row, &old_row(2)) => {
                if nulls(&table.schema(), row) {
                    "reads_null"
                } else {
                    "nothing_new"
                }
            }
            _ => "miswrites",
        }
    }

    /// What an older release reads of the rows of a newer one.
    async fn read(&self) -> &'static str {
        let (table, old) = self.migrated().await;
        let Ok(mut loaded) = deltalake::open_table(table.url()).await else { return "cannot_read" };
        // What a scan asks before it reads.
        if PROTOCOL.can_read_from(loaded.snapshot().unwrap().snapshot()).is_err()
            || cast_maps(&batch(&old, &[old_row(1)]), &arrow_schema(&loaded)).is_err()
        {
            return "cannot_read";
        }
        // A newer release leaves NULL wherever it may; a writer that can't is none to look at here.
        let schema = arrow_schema(&loaded);
        let row: serde_json::Map<String, Value> = old_row(3)
            .as_object()
            .unwrap()
            .iter()
            .filter(|(name, _)| *name == "id" || !schema.field_with_name(name).unwrap().is_nullable())
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        let _ = append_as(&mut loaded, schema, &[Value::Object(row)]).await;
        let all = read(&table).await;
        let first = all.iter().find(|row| row["id"] == 1).unwrap();
        if !holds(first, &old_row(1)) {
            return "misreads";
        }
        let required = old.fields().iter().filter(|f| !f.is_nullable());
        let surprised = required.clone().any(|f| all.iter().any(|row| row[f.name()].is_null()));
        if surprised { "reads_null" } else { "nothing_new" }
    }
}

/// Whether everything that was written stands in the row.
fn holds(row: &Value, written: &Value) -> bool {
    match (row, written) {
        (Value::Object(row), Value::Object(written)) => {
            written.iter().all(|(key, value)| row.get(key).is_some_and(|row| holds(row, value)))
        }
        (Value::Array(row), Value::Array(written)) => {
            row.len() == written.len() && row.iter().zip(written).all(|(row, written)| holds(row, written))
        }
        _ => row == written,
    }
}

/// Whether a column of the schema is null in the row, at any depth; what a file lacks is null.
fn nulls(data_type: &Value, value: &Value) -> bool {
    if value.is_null() {
        return true;
    }
    match data_type["type"].as_str() {
        Some("struct") => data_type["fields"].as_array().unwrap().iter().any(|f| {
            let name = f["name"].as_str().unwrap();
            nulls(&f["type"], value.get(name).unwrap_or(&Value::Null))
        }),
        Some("array") => value.as_array().unwrap().iter().any(|v| nulls(&data_type["elementType"], v)),
        Some("map") => value.as_object().unwrap().values().any(|v| nulls(&data_type["valueType"], v)),
        _ => false,
    }
}

/// DataFusion leaves maps to Arrow's cast, in plans that merge and in scans of older files.
fn cast_maps(batch: &RecordBatch, to: &Schema) -> Result<(), String> {
    for field in to.fields().iter().filter(|f| matches!(f.data_type(), DataType::Map(..))) {
        if let Some(column) = batch.column_by_name(field.name()) {
            cast(column, field.data_type()).map_err(|e| e.to_string())?;
        }
    }
    Ok(())
}

/// An append with schema merging, of a batch that has the writer's own columns only.
async fn merge(table: &mut DeltaTable, batch: RecordBatch) -> Result<(), String> {
    let batch = fitted(table, &batch)?;
    let mut writer = RecordBatchWriter::for_table(table).map_err(|e| e.to_string())?;
    writer.write_with_mode(batch, WriteMode::MergeSchema).await.map_err(|e| e.to_string())?;
    writer.flush_and_commit(table).await.map(drop).map_err(|e| e.to_string())
}

/// The cast by which deltalake's `SchemaMode::Merge` fits nested columns; the writer alone merges the top
/// level.
fn fitted(table: &DeltaTable, batch: &RecordBatch) -> Result<RecordBatch, String> {
    let merged = Arc::new(arrow_schema(table));
    cast_maps(batch, &merged)?;
    cast_record_batch(batch, merged, true, true).map_err(|e| e.to_string())
}

async fn overwrite(table: &mut DeltaTable, batch: RecordBatch) -> Result<(), String> {
    let batch = fitted(table, &batch)?;
    let mut writer = RecordBatchWriter::for_table(table).map_err(|e| e.to_string())?;
    writer.write_with_mode(batch, WriteMode::MergeSchema).await.map_err(|e| e.to_string())?;
    let mut actions: Vec<Action> =
        writer.flush().await.map_err(|e| e.to_string())?.into_iter().map(Action::Add).collect();
    let snapshot = table.snapshot().unwrap();
    for file in snapshot.log_data().iter() {
        actions.push(Action::Remove(Remove {
            path: file.path().to_string(),
            data_change: true,
            deletion_timestamp: Some(1_800_000_000_000),
            ..Remove::default()
        }));
    }
    let operation = DeltaOperation::Write { mode: SaveMode::Overwrite, partition_by: None, predicate: None };
    let commit = CommitBuilder::default().with_actions(actions);
    let built = commit.build(Some(snapshot.snapshot()), table.log_store(), operation).await;
    built.map(drop).map_err(|e| e.to_string())
}

async fn compare(cases: Vec<Case>) {
    for case in cases {
        assert_eq!(case.said(), case.executed().await, "{}", case.migration);
    }
}

#[tokio::test]
async fn columns() {
    compare(vec![
        case("add_columns = { detail = \"string\" }"),
        case("add_columns = { detail = \"struct<a: long, b: array<string>>\" }"),
        case("add_columns = { \"payload.warnings\" = \"array<string>\" }"),
        case("add_columns = { \"items.element.discount\" = \"decimal(9,2)\" }"),
        case("add_columns = { \"tags.value.why\" = \"string\" }"),
        case("relax_nullability = [\"code\"]"),
    ])
    .await;
}

#[tokio::test]
async fn words_and_properties() {
    let set = |key: &str, value: &str| case(&format!("set_properties = {{ \"{key}\" = \"{value}\" }}"));
    compare(vec![
        case("comments = { code = \"what it is\", \"payload.lsn\" = \"where it is\" }"),
        case("table_description = \"what the table is\""),
        case("unset_properties = [\"legacy\", \"never.there\", \"delta.dataSkippingNumIndexedCols\"]"),
        set("owner", "team b"),
        set("delta.logRetentionDuration", "interval 90 days"),
        set("delta.deletedFileRetentionDuration", "interval 1 days"),
        set("delta.checkpointInterval", "1"),
        set("delta.checkpoint.writeStatsAsStruct", "true"),
        set("delta.dataSkippingNumIndexedCols", "0"),
        set("delta.dataSkippingStatsColumns", "id"),
        set("delta.targetFileSize", "1000"),
        set("delta.isolationLevel", "Serializable"),
        set("delta.randomizeFilePrefixes", "true"),
    ])
    .await;
}

/// A table with a constraint is one that builds without DataFusion write only while the protocol does not
/// list the feature.
#[tokio::test]
async fn a_constraint_less_is_nothing_new() {
    let mut case = case("drop_constraints = [\"POSITIVE\"]");
    case.log = log().property("delta.constraints.positive", "id > 0");
    let (table, _) = case.migrated().await;
    assert_eq!(table.property("delta.constraints.positive"), None);
    compare(vec![case]).await;
}

/// Deltalake writes such tables neither before the step nor after it, so that the answers for them can't be
/// executed: once it does, their cells are due here.
#[tokio::test]
async fn tables_that_deltalake_does_not_write_are_not_written_after_the_step_either() {
    // An older release is held to be a build of deltalake without DataFusion, which writes less.
    if cfg!(feature = "datafusion") {
        return;
    }
    let ids = |mut log: Log| {
        let mut last = 0;
        crate::state::give_ids(&mut log.schema, &mut last);
        log.versions(2, 5).property("delta.columnMapping.mode", "name")
    };
    let wide = |log: Log| {
        log.features(&["typeWidening"], &["typeWidening"]).property("delta.enableTypeWidening", "true")
    };
    let cases = [
        ("destructive = true\nrename_columns = { code = \"c\" }", ids(log()), ["miswrites", "misreads"]),
        ("destructive = true\ndrop_columns = [\"code\"]", ids(log()), ["miswrites", "misreads"]),
        ("widen_types = { \"payload.lsn\" = \"decimal(20,0)\" }", wide(log()), ["nothing_new", "misreads"]),
        (
            "set_defaults = { code = \"'x'\" }",
            log().features(&[], &["allowColumnDefaults"]),
            ["miswrites", "nothing_new"],
        ),
    ];
    for (migration, log, [writes, reads]) in cases {
        let case = Case { migration: migration.to_owned(), log };
        let said = case.said();
        assert_eq!((&said["append"], &said["read"]), (&writes.into(), &reads.into()), "{migration}");
        let table = case.log.table();
        for migrated in [false, true] {
            if migrated {
                migrator(&case.kind())
                    .migrate("facts", &table.location(), Default::default(), IfMissing::Refuse)
                    .await
                    .unwrap();
            }
            let mut loaded = table.load().await;
            let schema = arrow_schema(&loaded);
            let mut row = old_row(2);
            row["c"] = "c".into();
            let wrote = append_as(&mut loaded, schema, &[row]).await;
            assert!(wrote.is_err(), "{migration}, migrated: {migrated}");
        }
    }
}

const FEATURES: [&str; 13] = [
    "allowColumnDefaults",
    "appendOnly",
    "changeDataFeed",
    "checkConstraints",
    "deletionVectors",
    "domainMetadata",
    "generatedColumns",
    "invariants",
    "timestampNtz",
    "typeWidening",
    "v2Checkpoint",
    "vacuumProtocolCheck",
    "variantType",
];

#[tokio::test]
async fn features() {
    // An older release is held to be a build of deltalake without DataFusion, which writes less.
    if cfg!(feature = "datafusion") {
        return;
    }
    compare(FEATURES.iter().map(|f| case(&format!("enable_features = [\"{f}\"]"))).collect()).await;
}

#[tokio::test]
async fn an_overwrite_that_replaces_the_schema_is_found_as_drift() {
    let case = case("add_columns = { detail = \"string\" }");
    let (table, _) = case.migrated().await;
    let fields: Vec<Value> = table.schema()["fields"].as_array().unwrap()[..5].to_vec();
    table.set_fields(fields);
    let error = migrator(&case.kind()).status("facts", &table.location()).await;
    let code = match error {
        Ok(report) => report.error.map(|e| e.code.to_string()).unwrap_or_default(),
        Err(error) => error.code().to_string(),
    };
    assert_eq!(code, "drifted");
}

#[test]
fn the_command_needs_no_table_and_no_configuration() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("facts.toml"), case("comments = { id = \"x\" }").kind()).unwrap();
    let ran = command(folder.path()).args(["validate", "--kind-file", "facts.toml"]).output().unwrap();
    assert_eq!(ran.status.code(), Some(0));
}
