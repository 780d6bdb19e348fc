//! Parquet files written by hand: checkpoints, sidecars, and rows under physical names.

use std::path::Path;
use std::sync::Arc;

use deltalake::arrow::datatypes::{DataType, Field, Fields, Schema};
use deltalake::arrow::json::ReaderBuilder;
use deltalake::parquet::arrow::ArrowWriter;
use deltalake::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::{Value, json};

use super::Table;
use super::rows::to_json;

fn field(name: &str, data_type: DataType) -> Field {
    Field::new(name, data_type, true)
}

fn group(name: &str, fields: Vec<Field>) -> Field {
    field(name, DataType::Struct(Fields::from(fields)))
}

fn texts(name: &str) -> Field {
    field(name, DataType::List(Arc::new(field("element", DataType::Utf8))))
}

fn map(name: &str) -> Field {
    let entry = Fields::from(vec![Field::new("key", DataType::Utf8, false), field("value", DataType::Utf8)]);
    let entries = Field::new("key_value", DataType::Struct(entry), false);
    field(name, DataType::Map(Arc::new(entries), false))
}

/// The columns of a checkpoint (PROTOCOL.md, Checkpoints).
fn checkpoint_schema() -> Schema {
    let text = |name: &str| field(name, DataType::Utf8);
    let long = |name: &str| field(name, DataType::Int64);
    let int = |name: &str| field(name, DataType::Int32);
    let flag = |name: &str| field(name, DataType::Boolean);
    let versions = vec![int("minReaderVersion"), int("minWriterVersion")];
    Schema::new(vec![
        group("protocol", [versions, vec![texts("readerFeatures"), texts("writerFeatures")]].concat()),
        group(
            "metaData",
            vec![
                text("id"),
                text("name"),
                text("description"),
                group("format", vec![text("provider"), map("options")]),
                text("schemaString"),
                texts("partitionColumns"),
                map("configuration"),
                long("createdTime"),
            ],
        ),
        group("txn", vec![text("appId"), long("version"), long("lastUpdated")]),
        group(
            "add",
            vec![
                text("path"),
                map("partitionValues"),
                long("size"),
                long("modificationTime"),
                flag("dataChange"),
                text("stats"),
            ],
        ),
        group("domainMetadata", vec![text("domain"), text("configuration"), flag("removed")]),
        group("checkpointMetadata", vec![long("version")]),
        group("sidecar", vec![text("path"), long("sizeInBytes"), long("modificationTime")]),
    ])
}

/// Rows as the bytes of a Parquet file.
fn parquet_bytes(schema: Schema, rows: &[Value]) -> Vec<u8> {
    let schema = Arc::new(schema);
    let lines: Vec<String> = rows.iter().map(Value::to_string).collect();
    let mut reader =
        ReaderBuilder::new(schema.clone()).build(std::io::Cursor::new(lines.join("\n"))).unwrap();
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, schema, None).unwrap();
    writer.write(&reader.next().unwrap().unwrap()).unwrap();
    writer.close().unwrap();
    bytes
}

/// Actions as the bytes of a checkpoint.
pub(crate) fn checkpoint_bytes(actions: &[Value]) -> Vec<u8> {
    parquet_bytes(checkpoint_schema(), actions)
}

/// Writes rows as a Parquet file and gives its size.
pub(crate) fn write_parquet(path: &Path, schema: Schema, rows: &[Value]) -> u64 {
    let bytes = parquet_bytes(schema, rows);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, &bytes).unwrap();
    bytes.len() as u64
}

/// Writes actions as a checkpoint, or as a sidecar, below `_delta_log`.
pub(crate) fn write_checkpoint(table: &Table, name: &str, actions: &[Value]) -> u64 {
    write_parquet(&table.path().join("_delta_log").join(name), checkpoint_schema(), actions)
}

/// Rows in a file of the table, and the action that adds it.
pub(crate) fn write_rows(table: &Table, name: &str, columns: Vec<(&str, DataType)>, rows: &[Value]) -> Value {
    let schema = Schema::new(columns.into_iter().map(|(n, t)| field(n, t)).collect::<Vec<_>>());
    let size = write_parquet(&table.path().join(name), schema, rows);
    json!({ "add": {
        "path": name, "partitionValues": {}, "size": size, "modificationTime": super::log::CREATED,
        "dataChange": true, "stats": json!({ "numRecords": rows.len() }).to_string(),
    } })
}

/// The rows that deltalake sees, by logical names: files from its snapshot, columns by the physical
/// names of its schema; columns that a file lacks are null.
pub(crate) async fn read_mapped(table: &Table) -> Vec<Value> {
    let loaded = table.load().await;
    let snapshot = loaded.snapshot().unwrap();
    let schema: Value = serde_json::to_value(snapshot.metadata().parse_schema().unwrap()).unwrap();
    let mut rows = Vec::new();
    for file in snapshot.log_data().iter() {
        let file = std::fs::File::open(table.path().join(file.path().as_ref())).unwrap();
        for batch in ParquetRecordBatchReaderBuilder::try_new(file).unwrap().build().unwrap() {
            for found in to_json(&batch.unwrap()) {
                let fields = schema["fields"].as_array().unwrap().iter();
                let row: serde_json::Map<String, Value> = fields
                    .map(|f| {
                        let physical = f["metadata"]["delta.columnMapping.physicalName"].as_str();
                        let name = f["name"].as_str().unwrap();
                        (name.to_owned(), found[physical.unwrap_or(name)].clone())
                    })
                    .collect();
                rows.push(Value::Object(row));
            }
        }
    }
    rows.sort_by_key(ToString::to_string);
    rows
}

/// The configuration of a domain, as deltalake replays the log.
pub(crate) async fn domain(table: &Table, name: &str) -> Option<String> {
    let log_store = table.load().await.log_store();
    let snapshot = deltalake::kernel::Snapshot::try_new(log_store.as_ref(), None).await.unwrap();
    snapshot.domain_metadata(log_store.as_ref(), name).await.unwrap()
}
