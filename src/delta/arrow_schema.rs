//! Arrow schemas as Delta's columns: as a program has them.

use deltalake::arrow::datatypes::{DataType as ArrowType, Field as ArrowField, Fields, Schema};

use crate::error::Error;
use crate::model::kind::Kind;
use crate::model::path::ColumnPath;
use crate::model::scaffold::{NextMigration, next_migration};
use crate::model::text::clean;
use crate::model::types::{DataType, Field, Primitive};

impl Kind {
    /// The next migration of the kind, from the difference between its newest shape and `schema`.
    ///
    /// It only adds: new nullable columns (at any depth), changed comments (the field metadata
    /// `comment`), nullability relaxed. Everything else that differs is in its
    /// [notes](NextMigration::notes). Arrow's types are taken as deltalake takes them: every string type
    /// is `string`, a timestamp without a zone is `timestamp_ntz`, unsigned integers are the signed ones
    /// of the same size.
    ///
    /// # Errors
    /// [`ErrorCode::Usage`](crate::ErrorCode::Usage): a column of a type that Delta has not; all of them
    /// are named.
    ///
    /// # Examples
    /// ```
    /// use delta_migrate::Kind;
    /// use deltalake::arrow::datatypes::{DataType, Field, Schema};
    ///
    /// let facts = Kind::builder("facts").column("app_id", "string").build()?;
    /// let schema = Schema::new(vec![
    ///     Field::new("app_id", DataType::Utf8, true),
    ///     Field::new("rows", DataType::Int64, true),
    /// ]);
    /// let next = facts.next_migration(&schema)?;
    /// assert_eq!(
    ///     next.to_toml(Some("rows of a batch")),
    ///     "[[migrations]]  # 1\ndescription = \"rows of a batch\"\n[migrations.add_columns]\nrows = \"long\"\n"
    /// );
    /// # Ok::<(), delta_migrate::Error>(())
    /// ```
    pub fn next_migration(&self, schema: &Schema) -> Result<NextMigration, Error> {
        Ok(next_migration(self, &columns_of(schema)?))
    }
}

/// The columns of an Arrow schema.
///
/// # Errors
/// `Usage`: types that Delta has not, each with its column.
pub(crate) fn columns_of(schema: &Schema) -> Result<Vec<Field>, Error> {
    let mut mistakes = Vec::new();
    let columns = fields(schema.fields(), None, &mut mistakes);
    if mistakes.is_empty() {
        return Ok(columns);
    }
    Err(Error::usage(mistakes.join("\n"))
        .with_hint("cast these columns to a type that Delta has, or leave them out"))
}

fn fields(fields: &Fields, at: Option<&ColumnPath>, mistakes: &mut Vec<String>) -> Vec<Field> {
    let path = |name: &str| at.map_or_else(|| ColumnPath::of([name]), |at| at.child(name));
    let field = |field: &ArrowField, mistakes: &mut Vec<String>| {
        let path = path(field.name());
        Some(Field {
            name: field.name().clone(),
            data_type: type_of(field, &path, mistakes)?,
            nullable: field.is_nullable(),
            comment: field.metadata().get("comment").cloned(),
        })
    };
    fields.iter().filter_map(|f| field(f, mistakes)).collect()
}

fn type_of(field: &ArrowField, at: &ColumnPath, mistakes: &mut Vec<String>) -> Option<DataType> {
    let extension = field.metadata().get("ARROW:extension:name").map(String::as_str);
    if matches!(extension, Some("arrow.parquet.variant" | "parquet.variant")) {
        return Some(DataType::Primitive(Primitive::Variant));
    }
    data_type(field.data_type(), at, mistakes)
}

fn data_type(found: &ArrowType, at: &ColumnPath, mistakes: &mut Vec<String>) -> Option<DataType> {
    let primitive = match found {
        ArrowType::Utf8 | ArrowType::LargeUtf8 | ArrowType::Utf8View => Primitive::String,
        ArrowType::Int64 | ArrowType::UInt64 => Primitive::Long,
        ArrowType::Int32 | ArrowType::UInt32 => Primitive::Integer,
        ArrowType::Int16 | ArrowType::UInt16 => Primitive::Short,
        ArrowType::Int8 | ArrowType::UInt8 => Primitive::Byte,
        ArrowType::Float32 => Primitive::Float,
        ArrowType::Float64 => Primitive::Double,
        ArrowType::Boolean => Primitive::Boolean,
        ArrowType::Binary
        | ArrowType::LargeBinary
        | ArrowType::BinaryView
        | ArrowType::FixedSizeBinary(_) => Primitive::Binary,
        ArrowType::Date32 | ArrowType::Date64 => Primitive::Date,
        ArrowType::Timestamp(_, None) => Primitive::TimestampNtz,
        ArrowType::Timestamp(_, Some(_)) => Primitive::Timestamp,
        ArrowType::Null => Primitive::Void,
        ArrowType::Decimal32(p, s)
        | ArrowType::Decimal64(p, s)
        | ArrowType::Decimal128(p, s)
        | ArrowType::Decimal256(p, s) => match u8::try_from(*s) {
            Ok(scale) if *p <= 38 && scale <= *p => Primitive::Decimal(*p, scale),
            _ => return foreign(found, at, mistakes),
        },
        ArrowType::Dictionary(_, value) => return data_type(value, at, mistakes),
        ArrowType::RunEndEncoded(_, values) => return type_of(values, at, mistakes),
        ArrowType::List(element)
        | ArrowType::LargeList(element)
        | ArrowType::ListView(element)
        | ArrowType::LargeListView(element)
        | ArrowType::FixedSizeList(element, _) => {
            let inner = type_of(element, &at.child("element"), mistakes)?;
            return Some(DataType::Array { element: Box::new(inner), contains_null: element.is_nullable() });
        }
        ArrowType::Map(entries, _) => return map(found, entries, at, mistakes),
        ArrowType::Struct(inner) => return Some(DataType::Struct(fields(inner, Some(at), mistakes))),
        other => return foreign(other, at, mistakes),
    };
    Some(DataType::Primitive(primitive))
}

fn map(
    found: &ArrowType,
    entries: &ArrowField,
    at: &ColumnPath,
    mistakes: &mut Vec<String>,
) -> Option<DataType> {
    let ArrowType::Struct(pair) = entries.data_type() else { return foreign(found, at, mistakes) };
    let [key, value] = pair.iter().as_slice() else { return foreign(found, at, mistakes) };
    Some(DataType::Map {
        key: Box::new(type_of(key, &at.child("key"), mistakes)?),
        value: Box::new(type_of(value, &at.child("value"), mistakes)?),
        value_contains_null: value.is_nullable(),
    })
}

fn foreign(found: &ArrowType, at: &ColumnPath, mistakes: &mut Vec<String>) -> Option<DataType> {
    mistakes.push(format!("`{}` is of Arrow type {found}, which Delta has not", clean(&at.to_string())));
    None
}
