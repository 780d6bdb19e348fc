//! Logs made by hand, in memory.

use std::sync::Arc;

use deltalake::arrow::datatypes::{DataType, Field, Fields, Schema};
use deltalake::arrow::json::ReaderBuilder;
use deltalake::parquet::arrow::ArrowWriter;
use deltalake::parquet::file::properties::{EnabledStatistics, WriterProperties};
use object_store::ObjectStoreExt as _;
use object_store::memory::InMemory;
use object_store::path::Path;
use serde_json::{Value, json};

pub(super) const SCHEMA: &str =
    r#"{"type":"struct","fields":[{"name":"id","type":"long","nullable":true,"metadata":{}}]}"#;

pub(super) struct Log {
    pub(super) store: Arc<InMemory>,
}

impl Log {
    pub(super) fn new() -> Self {
        Self { store: Arc::new(InMemory::new()) }
    }

    /// A log of commits, each with its lines, from version 0 on.
    pub(super) async fn with(commits: &[&[Value]]) -> Self {
        let log = Self::new();
        for (version, lines) in commits.iter().enumerate() {
            log.commit(version as u64, lines).await;
        }
        log
    }

    pub(super) async fn put(&self, name: &str, bytes: impl Into<Vec<u8>>) {
        let path = Path::parse(format!("_delta_log/{name}")).unwrap();
        self.store.put(&path, bytes.into().into()).await.unwrap();
    }

    pub(super) async fn remove(&self, name: &str) {
        self.store.delete(&Path::parse(format!("_delta_log/{name}")).unwrap()).await.unwrap();
    }

    pub(super) async fn commit(&self, version: u64, lines: &[Value]) {
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        self.put(&commit_name(version), text).await;
    }

    /// A classic checkpoint.
    pub(super) async fn checkpoint(&self, version: u64, rows: &[Value]) {
        self.put(&format!("{version:020}.checkpoint.parquet"), parquet(rows, rows.len(), true)).await;
    }

    pub(super) async fn hint(&self, version: u64) {
        self.put("_last_checkpoint", json!({"version": version, "size": 1}).to_string()).await;
    }
}

pub(super) fn commit_name(version: u64) -> String {
    format!("{version:020}.json")
}

pub(super) fn protocol(reader: i64, writer: i64) -> Value {
    json!({"protocol": {"minReaderVersion": reader, "minWriterVersion": writer}})
}

/// A metaData action that can be told from others by its id.
pub(super) fn metadata(id: &str, configuration: Value) -> Value {
    json!({"metaData": {
        "id": id,
        "format": {"provider": "parquet", "options": {}},
        "schemaString": SCHEMA,
        "partitionColumns": [],
        "configuration": configuration,
        "createdTime": 1_700_000_000_000_i64,
    }})
}

pub(super) fn add(file: u64) -> Value {
    json!({"add": {
        "path": format!("part-{file}.parquet"),
        "partitionValues": {},
        "size": 1,
        "modificationTime": 1,
        "dataChange": true,
    }})
}

pub(super) fn txn(app: &str, version: i64) -> Value {
    json!({"txn": {"appId": app, "version": version}})
}

fn map() -> DataType {
    let (key, value) = (Field::new("key", DataType::Utf8, false), Field::new("value", DataType::Utf8, true));
    let entries = DataType::Struct(Fields::from(vec![key, value]));
    DataType::Map(Arc::new(Field::new("key_value", entries, false)), false)
}

fn list() -> DataType {
    DataType::new_list(DataType::Utf8, true)
}

fn group(name: &str, fields: Vec<(&str, DataType)>) -> Field {
    let fields: Vec<Field> = fields.into_iter().map(|(name, t)| Field::new(name, t, true)).collect();
    Field::new(name, DataType::Struct(fields.into()), true)
}

/// The columns of a checkpoint, all of them nullable, with one that PROTOCOL.md does not know.
pub(super) fn schema() -> Schema {
    let format = group("format", vec![("provider", DataType::Utf8), ("options", map())]);
    Schema::new(vec![
        group("txn", vec![("appId", DataType::Utf8), ("version", DataType::Int64)]),
        group("add", vec![("path", DataType::Utf8), ("size", DataType::Int64)]),
        group(
            "metaData",
            vec![
                ("id", DataType::Utf8),
                ("name", DataType::Utf8),
                ("description", DataType::Utf8),
                ("format", format.data_type().clone()),
                ("schemaString", DataType::Utf8),
                ("partitionColumns", list()),
                ("configuration", map()),
                ("createdTime", DataType::Int64),
                ("fromTheFuture", DataType::Int64),
            ],
        ),
        group(
            "protocol",
            vec![
                ("minReaderVersion", DataType::Int32),
                ("minWriterVersion", DataType::Int32),
                ("readerFeatures", list()),
                ("writerFeatures", list()),
            ],
        ),
    ])
}

/// A checkpoint file with `group` rows to a row group.
pub(super) fn parquet(rows: &[Value], group: usize, statistics: bool) -> Vec<u8> {
    let text: String = rows.iter().map(|row| format!("{row}\n")).collect();
    let schema = Arc::new(schema());
    let reader = ReaderBuilder::new(Arc::clone(&schema)).with_batch_size(rows.len().max(1));
    let statistics = if statistics { EnabledStatistics::Chunk } else { EnabledStatistics::None };
    let properties = WriterProperties::builder()
        .set_max_row_group_row_count(Some(group.max(1)))
        .set_statistics_enabled(statistics)
        .build();
    let mut file = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut file, schema, Some(properties)).unwrap();
    for batch in reader.build(text.as_bytes()).unwrap() {
        writer.write(&batch.unwrap()).unwrap();
    }
    writer.close().unwrap();
    file
}
