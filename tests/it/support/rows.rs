//! Rows as JSON: written with delta-rs, read back from the Parquet files.

use std::collections::BTreeMap;
use std::sync::Arc;

use buoyant_kernel::Snapshot;
use deltalake::arrow::array::RecordBatch;
use deltalake::arrow::datatypes::{Field, Schema};
use deltalake::arrow::json::{ReaderBuilder, WriterBuilder, writer::JsonArray};
use deltalake::arrow::util::display::array_value_to_string;
use deltalake::kernel::engine::arrow_conversion::TryIntoArrow as _;
use deltalake::kernel::engine::arrow_data::ArrowEngineData;
use deltalake::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use deltalake::writer::{DeltaWriter as _, RecordBatchWriter};
use deltalake::{DeltaTable, DeltaTableError};
use object_store::{ObjectStoreExt as _, path::Path};
use serde_json::Value;

use super::Table;

/// The table's schema as Arrow has it.
pub(crate) fn arrow_schema(table: &DeltaTable) -> Schema {
    let schema = table.snapshot().unwrap().metadata().parse_schema().unwrap();
    (&schema).try_into_arrow().unwrap()
}

/// The named columns of the table alone, as a writer has them that knows no others.
pub(crate) fn known_columns(table: &DeltaTable, names: &[&str]) -> Schema {
    let all = arrow_schema(table);
    let fields: Vec<Field> = names.iter().map(|n| all.field_with_name(n).unwrap().clone()).collect();
    Schema::new(fields)
}

/// Appends rows with delta-rs; `schema` is what the writer knows.
pub(crate) async fn append_as(table: &mut DeltaTable, schema: Schema, rows: &[Value]) -> Result<u64, String> {
    try_append(table, schema, rows).await.map_err(|e| e.to_string())
}

/// The same, with the error as delta-rs gives it.
pub(crate) async fn try_append(
    table: &mut DeltaTable,
    schema: Schema,
    rows: &[impl serde::Serialize],
) -> Result<u64, DeltaTableError> {
    let schema = Arc::new(schema);
    let batch = from_json(Arc::clone(&schema), rows);
    let partitions = table.snapshot().unwrap().metadata().partition_columns().to_vec();
    let mut writer = RecordBatchWriter::try_new(table.table_url(), schema, Some(partitions), None)?;
    writer.write(batch).await?;
    writer.flush_and_commit(table).await
}

/// At least one row, in columns that are given.
pub(crate) fn from_json(schema: Arc<Schema>, rows: &[impl serde::Serialize]) -> RecordBatch {
    let lines: Vec<String> = rows.iter().map(|row| serde_json::to_string(row).unwrap()).collect();
    let mut reader = ReaderBuilder::new(schema).build(std::io::Cursor::new(lines.join("\n"))).unwrap();
    reader.next().unwrap().unwrap()
}

/// Appends rows as a writer that knows the whole table.
pub(crate) async fn append(table: &Table, rows: &[Value]) {
    let mut loaded = table.load().await;
    let schema = arrow_schema(&loaded);
    append_as(&mut loaded, schema, rows).await.unwrap();
}

/// All rows, in the order of their text; columns that a file lacks are null.
pub(crate) async fn read(table: &Table) -> Vec<Value> {
    let table = table.load().await;
    let snapshot = table.snapshot().unwrap();
    let names: Vec<String> = arrow_schema(&table).fields().iter().map(|f| f.name().clone()).collect();
    let paths: Vec<Path> = snapshot.log_data().iter().map(|f| f.object_store_path()).collect();
    let mut rows = Vec::new();
    for path in paths {
        let bytes = table.object_store().get(&path).await.unwrap().bytes().await.unwrap();
        for batch in ParquetRecordBatchReaderBuilder::try_new(bytes).unwrap().build().unwrap() {
            rows.extend(to_json(&batch.unwrap()));
        }
    }
    for row in &mut rows {
        let row = row.as_object_mut().unwrap();
        for name in &names {
            row.entry(name.clone()).or_insert(Value::Null);
        }
    }
    rows.sort_by_key(ToString::to_string);
    rows
}

/// All rows as the Delta kernel reads them.
pub(crate) async fn scan(table: DeltaTable) -> Vec<Value> {
    batches(table).await.iter().flat_map(to_json).collect()
}

/// The same, each batch as somebody wants it.
#[cfg(feature = "datafusion")]
pub(crate) async fn scan_as<T: Send + 'static>(
    table: DeltaTable,
    of: impl Fn(&RecordBatch) -> Vec<T> + Send + 'static,
) -> Vec<T> {
    batches(table).await.iter().flat_map(of).collect()
}

async fn batches(table: DeltaTable) -> Vec<RecordBatch> {
    let engine = table.log_store().engine(None);
    let url = table.log_store().root_url().clone();
    let scan = move || {
        let snapshot = Snapshot::builder_for(url).build(engine.as_ref()).unwrap();
        let scan = snapshot.scan_builder().build().unwrap();
        let data = scan.execute(engine).unwrap().map(|data| data.unwrap().into_any());
        data.map(|data| RecordBatch::from(*data.downcast::<ArrowEngineData>().unwrap())).collect()
    };
    tokio::task::spawn_blocking(scan).await.unwrap()
}

/// The same as texts by column, in their order: maps with any sort of keys have no JSON.
pub(crate) async fn shown(table: &Table) -> Vec<BTreeMap<String, String>> {
    let table = deltalake::DeltaTableBuilder::from_url(table.url()).unwrap().build().unwrap();
    let mut rows = Vec::new();
    for batch in batches(table).await {
        let schema = batch.schema();
        for row in 0..batch.num_rows() {
            let text = |at: usize| array_value_to_string(batch.column(at), row).unwrap();
            let fields = schema.fields().iter().enumerate();
            rows.push(fields.map(|(at, field)| (field.name().clone(), text(at))).collect());
        }
    }
    rows.sort();
    rows
}

/// The same of a table that deltalake does not read itself.
pub(crate) async fn scan_folder(table: &Table) -> Vec<Value> {
    scan(deltalake::DeltaTableBuilder::from_url(table.url()).unwrap().build().unwrap()).await
}

pub(crate) fn to_json(batch: &RecordBatch) -> Vec<Value> {
    let mut writer = WriterBuilder::new().with_explicit_nulls(true).build::<_, JsonArray>(Vec::new());
    writer.write(batch).unwrap();
    writer.finish().unwrap();
    serde_json::from_slice(&writer.into_inner()).unwrap()
}
