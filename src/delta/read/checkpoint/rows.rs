//! Rows of a checkpoint, turned back into the JSON that a commit would hold.

use deltalake::arrow::array::{Array, AsArray, RecordBatch, StructArray};
use deltalake::arrow::datatypes::{DataType, FieldRef, Int64Type};
use deltalake::arrow::error::ArrowError;
use deltalake::arrow::json::writer::{EncoderOptions, make_encoder};
use deltalake::parquet::errors::ParquetError;
use serde_json::{Map, Value};

use super::scan::evidence;
use crate::model::version::SchemaVersion;

/// What is looked for.
#[derive(Debug, Clone)]
pub(super) enum Sought {
    Actions {
        protocol: bool,
        metadata: bool,
    },
    /// The `txn` action of this application id.
    Txn(String),
}

impl Sought {
    /// The columns that hold it, each with the leaf that is never null in such an action.
    pub(super) fn roots(&self) -> Vec<(&'static str, &'static str)> {
        let all = match self {
            Self::Actions { protocol, metadata } => {
                [protocol.then_some(("protocol", "minReaderVersion")), metadata.then_some(("metaData", "id"))]
            }
            Self::Txn(_) => [Some(("txn", "appId")), None],
        };
        all.into_iter().flatten().collect()
    }
}

/// What was found: the objects of the actions as JSON.
#[derive(Debug, Default)]
pub(super) struct Rows {
    pub(super) protocol: Option<String>,
    pub(super) metadata: Option<String>,
    pub(super) txn: Option<SchemaVersion>,
}

impl Rows {
    pub(super) fn take(&mut self, batch: &RecordBatch, sought: &Sought) -> Result<(), ParquetError> {
        match sought {
            Sought::Actions { .. } => {
                self.protocol = last(batch, "protocol")?.map(|v| v.to_string()).or(self.protocol.take());
                let metadata = last(batch, "metaData")?.map(|v| with_options(v).to_string());
                self.metadata = metadata.or(self.metadata.take());
            }
            Sought::Txn(id) => self.txn = txn(batch, id)?.or(self.txn),
        }
        Ok(())
    }
}

/// The last row of a column that holds an action.
fn last(batch: &RecordBatch, name: &str) -> Result<Option<Value>, ParquetError> {
    let Some((at, field)) = batch.schema_ref().column_with_name(name) else { return Ok(None) };
    let Some(column) = batch.column(at).as_struct_opt() else {
        return Err(ParquetError::General(format!("`{name}` is not a struct")));
    };
    let is_there = |row: &usize| column.is_valid(*row) && column.columns().iter().any(|c| c.is_valid(*row));
    match (0..column.len()).rev().find(is_there) {
        None => Ok(None),
        Some(row) => json(&FieldRef::from(field.clone()), column, row).map(Some),
    }
}

fn json(field: &FieldRef, column: &StructArray, row: usize) -> Result<Value, ParquetError> {
    // Nulls are written out and then dropped where they mean that a field is absent: dropping them
    // at once would also drop a property whose value is null, and hide it from the check for that.
    let options = EncoderOptions::default().with_explicit_nulls(true);
    let mut text = Vec::new();
    make_encoder(field, column, &options)?.encode(row, &mut text);
    let value: Value = serde_json::from_slice(&text).map_err(|e| ParquetError::External(Box::new(e)))?;
    Ok(without_absent(value, field.data_type()))
}

/// Drops the struct fields that are null; nulls in maps and lists are values.
fn without_absent(value: Value, data_type: &DataType) -> Value {
    match (value, data_type) {
        (Value::Object(object), DataType::Struct(fields)) => {
            let kept = object.into_iter().filter(|(_, value)| !value.is_null()).map(|(key, value)| {
                let value = match fields.find(&key) {
                    Some((_, field)) => without_absent(value, field.data_type()),
                    None => value,
                };
                (key, value)
            });
            Value::Object(kept.collect())
        }
        (Value::Array(items), DataType::List(item) | DataType::LargeList(item)) => {
            Value::Array(items.into_iter().map(|i| without_absent(i, item.data_type())).collect())
        }
        (Value::Object(object), DataType::Map(entries, _)) => {
            let of_values = match entries.data_type() {
                DataType::Struct(fields) => fields.get(1).map(|f| f.data_type()),
                _ => None,
            };
            let Some(of_values) = of_values else { return Value::Object(object) };
            Value::Object(object.into_iter().map(|(k, v)| (k, without_absent(v, of_values))).collect())
        }
        (value, _) => value,
    }
}

/// A format always has options (PROTOCOL.md, Format Specification); Parquet can't tell an empty map
/// from none everywhere.
fn with_options(mut metadata: Value) -> Value {
    if let Some(format) = metadata.get_mut("format").and_then(Value::as_object_mut) {
        format.entry("options").or_insert_with(|| Value::Object(Map::new()));
    }
    metadata
}

fn txn(batch: &RecordBatch, id: &str) -> Result<Option<SchemaVersion>, ParquetError> {
    let Some(column) = batch.column_by_name("txn") else { return Ok(None) };
    let txn = column.as_struct_opt();
    let ids = txn.and_then(|t| t.column_by_name("appId")?.as_string_opt::<i32>());
    let versions = txn.and_then(|t| t.column_by_name("version")?.as_primitive_opt::<Int64Type>());
    let (Some(ids), Some(versions)) = (ids, versions) else {
        let error = ArrowError::SchemaError("`txn` has no text `appId` and long `version`".to_owned());
        return Err(error.into());
    };
    let is_it = |row: &usize| column.is_valid(*row) && ids.is_valid(*row) && ids.value(*row) == id;
    let row = (0..ids.len()).rev().find(is_it);
    Ok(row.map(|row| evidence(versions.is_valid(row).then(|| versions.value(row)))))
}
