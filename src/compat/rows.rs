//! Rows whose values follow from names, types and a number alone.

use serde_json::{Map, Value};

use super::columns::{Column, Type, grown};
use crate::model::types::Primitive;

/// The row of that number, by logical names; none where a required column can't be written.
///
/// Here and there a nullable column is NULL, so that reading must tell NULL from a value.
pub(super) fn row(columns: &[Column], number: u32) -> Option<Value> {
    fields(columns, u64::from(number)).map(Value::Object)
}

/// Rows as texts in one order, under these columns and without some of them.
pub(super) fn told(columns: &[Column], rows: &[Value], without: &[String]) -> Vec<String> {
    let tell = |row: &Value| {
        let mut row = grown(columns, row);
        if let Some(row) = row.as_object_mut() {
            row.retain(|name, _| !without.contains(name));
        }
        row.to_string()
    };
    let mut told: Vec<String> = rows.iter().map(tell).collect();
    told.sort();
    told
}

fn fields(columns: &[Column], number: u64) -> Option<Map<String, Value>> {
    let mut row = Map::new();
    for (at, column) in columns.iter().enumerate() {
        // Kept small, however deep the columns are nested.
        let seed = number % 10_007 * 7 + at as u64;
        let value = match column.nullable && seed % 5 == 4 {
            true => Value::Null,
            false => value(column, seed),
        };
        if value.is_null() && !column.nullable {
            return None;
        }
        row.insert(column.name.clone(), value);
    }
    Some(row)
}

/// NULL where no value of the type is written here.
fn value(column: &Column, seed: u64) -> Value {
    if !column.is_writable() {
        return Value::Null;
    }
    match &column.data_type {
        Type::Primitive(primitive) => primitive_value(primitive, &column.name, seed),
        Type::Struct(inner) => fields(inner, seed).map_or(Value::Null, Value::Object),
        Type::Array(element) => {
            let end = if element.nullable { Value::Null } else { value(element, seed + 2) };
            Value::Array(vec![value(element, seed), value(element, seed + 1), end])
        }
        Type::Map(key, inner) => {
            let pair = |seed| Value::Array(vec![value(key, seed), value(inner, seed)]);
            // Two keys that differ, whatever the seed: a boolean has just two.
            Value::Array(vec![pair(seed), pair(seed + 1)])
        }
    }
}

fn primitive_value(primitive: &Primitive, name: &str, seed: u64) -> Value {
    let signed = if seed % 3 == 2 { -(seed as i64) } else { seed as i64 };
    match primitive {
        Primitive::String => Value::from(format!("{name} {seed} ü")),
        Primitive::Long => Value::from(signed * 4_294_967_311),
        Primitive::Integer => Value::from(signed * 65_537 % 2_147_483_647),
        Primitive::Short => Value::from(signed * 257 % 32_767),
        Primitive::Byte => Value::from(signed % 127),
        // Values that decimal text holds exactly.
        Primitive::Float => Value::from(signed as f64 + 0.5),
        Primitive::Double => Value::from(signed as f64 + 0.125),
        Primitive::Decimal(precision, scale) => Value::from(decimal(*precision, *scale, signed)),
        Primitive::Boolean => Value::from(seed.is_multiple_of(2)),
        Primitive::Binary => Value::from(hex(format!("b{seed}").as_bytes())),
        Primitive::Date => Value::from(date(signed)),
        Primitive::Timestamp => Value::from(format!("{}Z", instant(seed))),
        Primitive::TimestampNtz => Value::from(instant(seed)),
        Primitive::Variant | Primitive::Void | Primitive::Other(_) => Value::Null,
    }
}

/// A number with as many digits before and behind the point as the type has room for, up to a few.
fn decimal(precision: u8, scale: u8, number: i64) -> String {
    let room = u32::from(precision.saturating_sub(scale)).min(9);
    let whole = number.unsigned_abs() % 10_u64.pow(room);
    let sign = if number < 0 && (whole > 0 || scale > 0) { "-" } else { "" };
    let digits = "123456789".repeat(5);
    match digits.get(..usize::from(scale)).unwrap_or_default() {
        "" => format!("{sign}{whole}"),
        fraction => format!("{sign}{whole}.{fraction}"),
    }
}

fn date(number: i64) -> String {
    let start = chrono::NaiveDate::from_ymd_opt(2026, 1, 1).unwrap_or_default();
    (start + chrono::TimeDelta::days(number)).to_string()
}

fn instant(seed: u64) -> String {
    format!("2026-0{}-1{}T0{}:00:00.00000{}", seed % 9 + 1, seed % 8, seed % 10, seed % 7 + 1)
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

pub(super) fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes().chunks(2);
    digits.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}

/// A value as `partitionValues` has it (PROTOCOL.md, Partition Value Serialization).
pub(super) fn to_partition(data_type: &Type, value: &Value) -> Value {
    match (data_type, value) {
        (_, Value::Null) => Value::Null,
        (Type::Primitive(Primitive::Binary), Value::String(text)) => {
            Value::from(String::from_utf8_lossy(&unhex(text).unwrap_or_default()).into_owned())
        }
        (Type::Primitive(Primitive::TimestampNtz), Value::String(text)) => {
            Value::from(text.replace('T', " "))
        }
        (_, Value::String(text)) => Value::from(text.clone()),
        (_, other) => Value::from(other.to_string()),
    }
}

/// The value of a partition column from the text in the log.
pub(super) fn from_partition(data_type: &Type, text: &Value) -> Value {
    let (Type::Primitive(primitive), Value::String(text)) = (data_type, text) else { return Value::Null };
    match primitive {
        Primitive::Binary => Value::from(hex(text.as_bytes())),
        Primitive::TimestampNtz => Value::from(text.replacen(' ', "T", 1)),
        Primitive::Long | Primitive::Integer | Primitive::Short | Primitive::Byte => {
            text.parse::<i64>().map_or(Value::Null, Value::from)
        }
        Primitive::Float | Primitive::Double => text.parse::<f64>().map_or(Value::Null, Value::from),
        Primitive::Boolean => Value::from(text == "true"),
        _ => Value::from(text.as_str()),
    }
}
