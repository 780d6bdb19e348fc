//! Rows to the bytes of a Parquet file and back.
//!
//! Arrow's own JSON is not used: it knows no map whose keys are not texts, and its spelling of values
//! may change with a release of arrow, under a corpus that is there to stay.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use deltalake::arrow::array::{
    Array, ArrayRef, AsArray as _, BinaryArray, BooleanArray, Decimal128Array, ListArray, MapArray,
    PrimitiveArray, RecordBatch, StringArray, StructArray, new_null_array,
};
use deltalake::arrow::buffer::{NullBuffer, OffsetBuffer};
use deltalake::arrow::compute::{concat_batches, take_record_batch};
use deltalake::arrow::datatypes::{
    ArrowPrimitiveType, DataType, Date32Type, Decimal128Type, Field, Fields, Float32Type, Float64Type,
    Int8Type, Int16Type, Int32Type, Int64Type, Schema, TimeUnit, TimestampMicrosecondType, UInt64Type,
};
use deltalake::parquet::arrow::ArrowWriter;
use deltalake::parquet::arrow::arrow_reader::{ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
use deltalake::parquet::arrow::arrow_writer::ArrowWriterOptions;
use deltalake::parquet::basic::Compression;
use deltalake::parquet::file::properties::WriterProperties;
use serde_json::{Map, Value};

use super::columns::{Column, Type};
use super::rows::{hex, unhex};
use super::unreadable;
use crate::error::Error;
use crate::model::types::Primitive;

/// A file of one row, given by logical names.
pub(super) fn write(columns: &[&Column], row: &Value) -> Result<Vec<u8>, Error> {
    let wrong = |e: &dyn std::fmt::Display| unreadable(format!("the row can't be written: {e}"));
    let columns: Vec<&Column> = columns.iter().copied().filter(|c| c.is_writable()).collect();
    let schema = Arc::new(Schema::new(columns.iter().map(|c| field(c)).collect::<Vec<_>>()));
    let arrays: Vec<ArrayRef> =
        columns.iter().map(|c| array(&c.data_type, &[row.get(&c.name).unwrap_or(&Value::Null)])).collect();
    let batch = RecordBatch::try_new(schema.clone(), arrays).map_err(|e| wrong(&e))?;
    let mut out = Vec::new();
    // As files of other writers, which know no Arrow.
    let options = ArrowWriterOptions::new().with_skip_arrow_metadata(true);
    let mut writer = ArrowWriter::try_new_with_options(&mut out, schema, options).map_err(|e| wrong(&e))?;
    writer.write(&batch).map_err(|e| wrong(&e))?;
    writer.close().map_err(|e| wrong(&e))?;
    Ok(out)
}

/// The rows of a file, by the names that the file has.
pub(super) fn read(bytes: Vec<u8>) -> Result<Vec<Value>, Error> {
    let wrong = |e: &dyn std::fmt::Display| unreadable(format!("the data file can't be read: {e}"));
    // As other readers, which know no Arrow: its types are the writer's choice.
    let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
    let reader = ParquetRecordBatchReaderBuilder::try_new_with_options(Bytes::from(bytes), options)
        .map_err(|e| wrong(&e))?;
    let mut rows = Vec::new();
    for batch in reader.build().map_err(|e| wrong(&e))? {
        let batch = StructArray::from(batch.map_err(|e| wrong(&e))?);
        rows.extend((0..batch.len()).map(|at| value(&batch, at)));
    }
    Ok(rows)
}

/// The same file with its rows in the order of their text, for a writer whose rows race each other.
pub(super) fn in_order(bytes: Vec<u8>) -> Result<Vec<u8>, Error> {
    let wrong = |e: &dyn std::fmt::Display| unreadable(format!("the data file can't be put in order: {e}"));
    let reader =
        ParquetRecordBatchReaderBuilder::try_new(Bytes::from(bytes.clone())).map_err(|e| wrong(&e))?;
    let schema = reader.schema().clone();
    let batches: Result<Vec<RecordBatch>, _> = reader.build().map_err(|e| wrong(&e))?.collect();
    let all = concat_batches(&schema, &batches.map_err(|e| wrong(&e))?).map_err(|e| wrong(&e))?;
    let texts: Vec<String> = read(bytes)?.iter().map(Value::to_string).collect();
    let mut order: Vec<(&String, u64)> = texts.iter().zip(0..).collect();
    order.sort();
    let order: PrimitiveArray<UInt64Type> = order.into_iter().map(|(_, at)| Some(at)).collect();
    let all = take_record_batch(&all, &order).map_err(|e| wrong(&e))?;
    let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
    let mut out = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut out, all.schema(), Some(properties)).map_err(|e| wrong(&e))?;
    writer.write(&all).map_err(|e| wrong(&e))?;
    writer.close().map_err(|e| wrong(&e))?;
    Ok(out)
}

fn field(column: &Column) -> Field {
    let field = Field::new(&column.physical, arrow_type(&column.data_type), column.nullable);
    match &column.id {
        Some(id) => field.with_metadata(HashMap::from([("PARQUET:field_id".to_owned(), id.clone())])),
        None => field,
    }
}

fn fields(columns: &[Column]) -> Fields {
    columns.iter().filter(|c| c.is_writable()).map(field).collect()
}

fn entries(key: &Column, value: &Column) -> Fields {
    Fields::from(vec![field(key), field(value)])
}

fn arrow_type(data_type: &Type) -> DataType {
    match data_type {
        Type::Struct(inner) => DataType::Struct(fields(inner)),
        Type::Array(element) => DataType::List(Arc::new(field(element))),
        Type::Map(key, value) => {
            let entries = Field::new("key_value", DataType::Struct(entries(key, value)), false);
            DataType::Map(Arc::new(entries), false)
        }
        Type::Primitive(primitive) => match primitive {
            Primitive::String => DataType::Utf8,
            Primitive::Long => DataType::Int64,
            Primitive::Integer => DataType::Int32,
            Primitive::Short => DataType::Int16,
            Primitive::Byte => DataType::Int8,
            Primitive::Float => DataType::Float32,
            Primitive::Double => DataType::Float64,
            Primitive::Decimal(precision, scale) => {
                DataType::Decimal128(*precision, i8::try_from(*scale).unwrap_or(i8::MAX))
            }
            Primitive::Boolean => DataType::Boolean,
            Primitive::Binary => DataType::Binary,
            Primitive::Date => DataType::Date32,
            Primitive::Timestamp => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
            Primitive::TimestampNtz => DataType::Timestamp(TimeUnit::Microsecond, None),
            Primitive::Variant | Primitive::Void | Primitive::Other(_) => DataType::Null,
        },
    }
}

fn array(data_type: &Type, values: &[&Value]) -> ArrayRef {
    // Where the parts don't fit, a column that may be NULL is; any other is refused with the batch.
    let none = || new_null_array(&arrow_type(data_type), values.len());
    let nulls = || NullBuffer::from(values.iter().map(|v| !v.is_null()).collect::<Vec<bool>>());
    match data_type {
        Type::Primitive(primitive) => primitive_array(primitive, values),
        Type::Struct(inner) => {
            let inner: Vec<&Column> = inner.iter().filter(|c| c.is_writable()).collect();
            let of = |c: &&Column| {
                let parts: Vec<&Value> =
                    values.iter().map(|v| v.get(&c.name).unwrap_or(&Value::Null)).collect();
                array(&c.data_type, &parts)
            };
            // Below a struct that is NULL stands nothing, whatever the fields ask for.
            let loose: Vec<Field> = inner.iter().map(|c| field(c)).collect();
            let made = StructArray::try_new(loose.into(), inner.iter().map(of).collect(), Some(nulls()));
            made.map_or_else(|_| none(), |a| Arc::new(a) as ArrayRef)
        }
        Type::Array(element) => {
            let (items, lengths) = flattened(values);
            let items = array(&element.data_type, &items);
            let offsets = OffsetBuffer::from_lengths(lengths);
            let made = ListArray::try_new(Arc::new(field(element)), offsets, items, Some(nulls()));
            made.map_or_else(|_| none(), |a| Arc::new(a) as ArrayRef)
        }
        Type::Map(key, value) => {
            let (pairs, lengths) = flattened(values);
            let part =
                |at: usize| pairs.iter().map(|p| p.get(at).unwrap_or(&Value::Null)).collect::<Vec<_>>();
            let columns = vec![array(&key.data_type, &part(0)), array(&value.data_type, &part(1))];
            let (Ok(entries), DataType::Map(item, _)) =
                (StructArray::try_new(entries(key, value), columns, None), arrow_type(data_type))
            else {
                return none();
            };
            let offsets = OffsetBuffer::from_lengths(lengths);
            let made = MapArray::try_new(item, offsets, entries, Some(nulls()), false);
            made.map_or_else(|_| none(), |a| Arc::new(a) as ArrayRef)
        }
    }
}

/// The items of all lists, one list after the other, and how many each has.
fn flattened<'v>(values: &[&'v Value]) -> (Vec<&'v Value>, Vec<usize>) {
    let items: Vec<&[Value]> =
        values.iter().map(|v| v.as_array().map(Vec::as_slice).unwrap_or_default()).collect();
    (items.iter().flat_map(|i| i.iter()).collect(), items.iter().map(|i| i.len()).collect())
}

fn primitive_array(primitive: &Primitive, values: &[&Value]) -> ArrayRef {
    fn ints<T: ArrowPrimitiveType>(values: &[&Value]) -> ArrayRef
    where
        T::Native: TryFrom<i64>,
    {
        let native = values.iter().map(|v| v.as_i64().and_then(|v| T::Native::try_from(v).ok()));
        Arc::new(native.collect::<PrimitiveArray<T>>())
    }
    let texts = || values.iter().map(|v| v.as_str());
    let instants = |format: &'static str| {
        let parse = move |t: &str| chrono::NaiveDateTime::parse_from_str(t, format).ok();
        texts()
            .map(move |t| t.and_then(parse).map(|t| t.and_utc().timestamp_micros()))
            .collect::<PrimitiveArray<TimestampMicrosecondType>>()
    };
    match primitive {
        Primitive::String => Arc::new(texts().collect::<StringArray>()),
        Primitive::Long => ints::<Int64Type>(values),
        Primitive::Integer => ints::<Int32Type>(values),
        Primitive::Short => ints::<Int16Type>(values),
        Primitive::Byte => ints::<Int8Type>(values),
        Primitive::Float => {
            let native = values.iter().map(|v| v.as_f64().map(|v| v as f32));
            Arc::new(native.collect::<PrimitiveArray<Float32Type>>())
        }
        Primitive::Double => {
            Arc::new(values.iter().map(|v| v.as_f64()).collect::<PrimitiveArray<Float64Type>>())
        }
        Primitive::Decimal(..) => {
            // The text has all digits of the scale, so that without its point it is the number.
            let native = texts().map(|t| t.and_then(|t| t.replace('.', "").parse::<i128>().ok()));
            Arc::new(
                native
                    .collect::<Decimal128Array>()
                    .with_data_type(arrow_type(&Type::Primitive(primitive.clone()))),
            )
        }
        Primitive::Boolean => Arc::new(values.iter().map(|v| v.as_bool()).collect::<BooleanArray>()),
        Primitive::Binary => Arc::new(texts().map(|t| t.and_then(unhex)).collect::<BinaryArray>()),
        Primitive::Date => {
            let epoch = chrono::NaiveDate::default();
            let days = |t: &str| t.parse::<chrono::NaiveDate>().ok().map(|d| (d - epoch).num_days());
            let native = texts().map(|t| t.and_then(days).and_then(|d| i32::try_from(d).ok()));
            Arc::new(native.collect::<PrimitiveArray<Date32Type>>())
        }
        Primitive::Timestamp => Arc::new(instants("%Y-%m-%dT%H:%M:%S%.fZ").with_timezone("UTC")),
        Primitive::TimestampNtz => Arc::new(instants("%Y-%m-%dT%H:%M:%S%.f")),
        Primitive::Variant | Primitive::Void | Primitive::Other(_) => {
            new_null_array(&DataType::Null, values.len())
        }
    }
}

/// One value of an array; a type that no table of a kind has is told by its name.
fn value(array: &dyn Array, at: usize) -> Value {
    if array.is_null(at) {
        return Value::Null;
    }
    let items = |list: ArrayRef| (0..list.len()).map(|i| value(list.as_ref(), i)).collect::<Vec<Value>>();
    match array.data_type() {
        DataType::Struct(fields) => {
            let array = array.as_struct();
            let columns = fields.iter().zip(array.columns());
            Value::Object(
                columns.map(|(f, c)| (f.name().clone(), value(c.as_ref(), at))).collect::<Map<_, _>>(),
            )
        }
        DataType::List(_) => Value::Array(items(array.as_list::<i32>().value(at))),
        DataType::Map(..) => {
            let pairs = array.as_map().value(at);
            let pair = |i: usize| pairs.columns().iter().map(|c| value(c.as_ref(), i)).collect::<Value>();
            Value::Array((0..pairs.len()).map(pair).collect())
        }
        DataType::Utf8 => Value::from(array.as_string::<i32>().value(at)),
        DataType::Int64 => Value::from(array.as_primitive::<Int64Type>().value(at)),
        DataType::Int32 => Value::from(array.as_primitive::<Int32Type>().value(at)),
        DataType::Int16 => Value::from(array.as_primitive::<Int16Type>().value(at)),
        DataType::Int8 => Value::from(array.as_primitive::<Int8Type>().value(at)),
        DataType::Float32 => Value::from(f64::from(array.as_primitive::<Float32Type>().value(at))),
        DataType::Float64 => Value::from(array.as_primitive::<Float64Type>().value(at)),
        DataType::Decimal128(..) => Value::from(array.as_primitive::<Decimal128Type>().value_as_string(at)),
        DataType::Boolean => Value::from(array.as_boolean().value(at)),
        DataType::Binary => Value::from(hex(array.as_binary::<i32>().value(at))),
        DataType::Date32 => array
            .as_primitive::<Date32Type>()
            .value_as_date(at)
            .map_or(Value::Null, |d| Value::from(d.to_string())),
        DataType::Timestamp(TimeUnit::Microsecond, zone) => {
            let micros = array.as_primitive::<TimestampMicrosecondType>().value(at);
            let text = chrono::DateTime::from_timestamp_micros(micros)
                .map(|t| t.format("%Y-%m-%dT%H:%M:%S%.6f").to_string())
                .unwrap_or_default();
            Value::from(if zone.is_some() { format!("{text}Z") } else { text })
        }
        other => Value::from(format!("a value of type {other}")),
    }
}
