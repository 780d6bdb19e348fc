//! The same table's log in the forms that a log can have.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use deltalake::arrow::array::RecordBatch;
use deltalake::arrow::compute::{filter_record_batch, is_not_null};
use deltalake::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use deltalake::arrow::json::ReaderBuilder;
use deltalake::parquet::arrow::ArrowWriter;
use deltalake::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use deltalake::parquet::file::properties::WriterProperties;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::table::{self, Result};

const PARTS: usize = 4;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Commits alone.
    Json,
    /// A checkpoint in one file, by delta-rs.
    Classic,
    /// The same rows in several files.
    Parts,
    /// PROTOCOL.md, V2 Spec: the files in sidecars, the rest as lines of JSON.
    V2Json,
    /// The rest as Parquet.
    V2Parquet,
}

/// What a table's log is like.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Log {
    pub(crate) files: u64,
    pub(crate) form: Form,
    /// Commits of one file each after the checkpoint.
    pub(crate) after: u64,
    /// How many of the newest commits have a checksum file.
    pub(crate) checksums: u64,
}

pub(crate) async fn make(folder: &Path, log: Log) -> Result<()> {
    let version = table::begin(folder, log.files).await?;
    if log.form != Form::Json {
        table::checkpoint(folder).await?;
    }
    match log.form {
        Form::Json | Form::Classic => {}
        Form::Parts => parts(folder, version)?,
        Form::V2Json | Form::V2Parquet => v2(folder, version, log.form)?,
    }
    table::append(folder, version, log.files, log.after)?;
    let newest = version + log.after;
    for version in (newest + 1).saturating_sub(log.checksums)..=newest {
        checksum(folder, version, log.files + log.after - (newest - version))?;
    }
    Ok(())
}

fn log_file(folder: &Path, version: u64, rest: &str) -> PathBuf {
    folder.join(format!("_delta_log/{version:020}.{rest}"))
}

/// The actions of the first commit.
fn first(folder: &Path) -> Result<Vec<Value>> {
    let text = fs::read_to_string(log_file(folder, 0, "json"))?;
    Ok(text.lines().map(serde_json::from_str).collect::<serde_json::Result<_>>()?)
}

fn action(actions: &[Value], name: &str) -> Result<Value> {
    actions.iter().find_map(|a| a.get(name)).cloned().ok_or_else(|| format!("no {name} action").into())
}

/// PROTOCOL.md, Version Checksum File.
fn checksum(folder: &Path, version: u64, files: u64) -> Result<()> {
    let actions = first(folder)?;
    let checksum = json!({
        "tableSizeBytes": (0..files).map(table::size).sum::<u64>(),
        "numFiles": files,
        "numMetadata": 1,
        "numProtocol": 1,
        "metadata": action(&actions, "metaData")?,
        "protocol": action(&actions, "protocol")?,
    });
    Ok(fs::write(log_file(folder, version, "crc"), checksum.to_string())?)
}

/// Some rows of the checkpoint, and columns, in `PARTS` files; says how many there were.
fn split(
    classic: &Path,
    into: &[PathBuf],
    pick: impl Fn(RecordBatch) -> Result<RecordBatch>,
) -> Result<usize> {
    let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(classic)?)?;
    let a_file = usize::try_from(reader.metadata().file_metadata().num_rows())?.div_ceil(into.len());
    let column = reader.metadata().row_groups().first().and_then(|group| group.columns().first());
    let compression = column.ok_or("an empty checkpoint")?.compression();
    let properties = WriterProperties::builder().set_compression(compression).build();
    let empty = pick(RecordBatch::new_empty(reader.schema().clone()))?;
    let (mut batches, mut rows) = (reader.with_batch_size(1024).build()?, 0);
    for path in into {
        let mut writer = ArrowWriter::try_new(File::create(path)?, empty.schema(), Some(properties.clone()))?;
        let mut read = 0;
        while read < a_file {
            let Some(batch) = batches.next() else { break };
            let batch = batch?;
            read += batch.num_rows();
            let batch = pick(batch)?;
            rows += batch.num_rows();
            writer.write(&batch)?;
        }
        writer.close()?;
    }
    Ok(rows)
}

fn hint(folder: &Path, hint: &Value) -> Result<()> {
    Ok(fs::write(folder.join("_delta_log/_last_checkpoint"), hint.to_string())?)
}

fn parts(folder: &Path, version: u64) -> Result<()> {
    let classic = log_file(folder, version, "checkpoint.parquet");
    let part = |n| log_file(folder, version, &format!("checkpoint.{n:010}.{PARTS:010}.parquet"));
    let into: Vec<PathBuf> = (1..=PARTS).map(part).collect();
    let rows = split(&classic, &into, Ok)?;
    hint(folder, &json!({"version": version, "size": rows, "parts": PARTS}))?;
    Ok(fs::remove_file(classic)?)
}

fn v2(folder: &Path, version: u64, form: Form) -> Result<()> {
    let protocol = json!({
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": ["v2Checkpoint"],
        "writerFeatures": ["v2Checkpoint"],
    });
    let mut actions = first(folder)?;
    for action in &mut actions {
        if let Some(old) = action.get_mut("protocol") {
            *old = protocol.clone();
        }
    }
    let lines: String = actions.iter().map(|action| format!("{action}\n")).collect();
    fs::write(log_file(folder, 0, "json"), lines)?;

    let classic = log_file(folder, version, "checkpoint.parquet");
    let sidecars = folder.join("_delta_log/_sidecars");
    fs::create_dir_all(&sidecars)?;
    let into: Vec<PathBuf> =
        (0..PARTS).map(|_| sidecars.join(format!("{}.parquet", Uuid::new_v4()))).collect();
    let files = split(&classic, &into, |batch| {
        let at = batch.schema().index_of("add")?;
        let adds = batch.project(&[at])?;
        Ok(filter_record_batch(&adds, &is_not_null(adds.column(0))?)?)
    })?;

    let mut rows = vec![json!({"checkpointMetadata": {"version": version}})];
    for path in &into {
        let name = path.file_name().ok_or("no name")?.to_string_lossy();
        rows.push(json!({"sidecar": {
            "path": name,
            "sizeInBytes": fs::metadata(path)?.len(),
            "modificationTime": 1_764_547_200_000_u64,
        }}));
    }
    rows.push(json!({"protocol": protocol}));
    rows.push(json!({"metaData": action(&actions, "metaData")?}));
    let count = rows.len() + files;
    let lines: String = rows.iter().map(|row| format!("{row}\n")).collect();
    let top = |end| log_file(folder, version, &format!("checkpoint.{}.{end}", Uuid::new_v4()));
    if form == Form::V2Json {
        fs::write(top("json"), lines)?;
    } else {
        let schema = top_schema(&classic)?;
        let mut batches = ReaderBuilder::new(schema.clone()).build(lines.as_bytes())?;
        let mut writer = ArrowWriter::try_new(File::create(top("parquet"))?, schema, None)?;
        batches.try_for_each(|batch| {
            writer.write(&batch?).map_err(Box::<dyn std::error::Error + Send + Sync>::from)
        })?;
        writer.close()?;
    }
    hint(folder, &json!({"version": version, "size": count}))?;
    Ok(fs::remove_file(classic)?)
}

/// A classic checkpoint's columns and the two that only the new ones have.
fn top_schema(classic: &Path) -> Result<SchemaRef> {
    let classic = ParquetRecordBatchReaderBuilder::try_new(File::open(classic)?)?.schema().clone();
    let number = |name: &str| Field::new(name, DataType::Int64, false);
    let structure = |name: &str, fields: Vec<Field>| Field::new(name, DataType::Struct(fields.into()), true);
    let own = [
        structure("checkpointMetadata", vec![number("version")]),
        structure(
            "sidecar",
            vec![
                Field::new("path", DataType::Utf8, false),
                number("sizeInBytes"),
                number("modificationTime"),
            ],
        ),
    ];
    // delta-rs writes a column of that name into classic ones too.
    let shared = classic.fields().iter().filter(|field| own.iter().all(|own| own.name() != field.name()));
    let fields = shared.cloned().chain(own.iter().cloned().map(Arc::new));
    Ok(Arc::new(Schema::new(fields.collect::<Vec<_>>())))
}
