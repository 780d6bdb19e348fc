//! Arrow schemas as Delta's columns: as a program has them.

use std::collections::BTreeMap;

use deltalake::arrow::datatypes::{DataType as ArrowType, Field as ArrowField, Fields, Schema};

use crate::error::Error;
use crate::model::kind::{Kind, KindBuilder};
use crate::model::migration::ColumnDraft;
use crate::model::path::ColumnPath;
use crate::model::reconcile::Desired;
use crate::model::scaffold::{NextMigration, next_migration};
use crate::model::text::clean;
use crate::model::types::{DataType, Field, MAX_DEPTH, Primitive};

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

    /// Checks that `schema` is the kind's newest shape: the same columns with the same types, nullability
    /// and, as far as the schema has any, comments. The order of columns does not matter.
    ///
    /// # Errors
    /// [`ErrorCode::Usage`](crate::ErrorCode::Usage): it is not; the message has every difference, and the
    /// block of the migration to append where one would do.
    pub fn matches_newest(&self, schema: &Schema) -> Result<(), Error> {
        let next = self.next_migration(schema)?;
        if next.is_empty() && next.notes().is_empty() {
            return Ok(());
        }
        let mut text = format!("kind `{}` at version {} is not the schema", self.name(), self.newest());
        for note in next.notes() {
            text.push_str(&format!("\n  {note}"));
        }
        if !next.is_empty() {
            text.push_str(&format!("\nappend this to the chain:\n\n{}", next.to_toml(None)));
        }
        Err(Error::usage(text).with_hint("append a migration to the kind, or mend the schema"))
    }

    /// [`Kind::matches_newest`] as one line of a program's test: a column that is written and not in the
    /// chain fails the build, not the night.
    ///
    /// # Panics
    /// With the differences and the migration to append, if they are not the same.
    ///
    /// # Examples
    /// ```
    /// use delta_migrate::{Kind, Migration};
    /// use delta_migrate::deltalake::arrow::datatypes::{DataType, Field, Schema};
    ///
    /// // What the program writes.
    /// let schema = Schema::new(vec![
    ///     Field::new("app_id", DataType::Utf8, true),
    ///     Field::new("rows", DataType::Int64, true),
    /// ]);
    /// let facts = Kind::builder("facts")
    ///     .column("app_id", "string")
    ///     .migration(Migration::builder("rows of a batch").add_column("rows", "long"))
    ///     .build()?;
    /// facts.assert_matches_newest(&schema);
    /// # Ok::<(), delta_migrate::Error>(())
    /// ```
    #[track_caller]
    #[allow(clippy::panic, reason = "it is an assertion, for tests")]
    pub fn assert_matches_newest(&self, schema: &Schema) {
        if let Err(error) = self.matches_newest(schema) {
            panic!("{}", error.message());
        }
    }
}

impl Desired {
    /// The columns of an Arrow schema, with comments from the field metadata `comment`.
    ///
    /// Types are taken as [`Kind::next_migration`] takes them.
    ///
    /// # Errors
    /// [`ErrorCode::Usage`](crate::ErrorCode::Usage): columns of types that Delta has not, or names that
    /// differ only in letter case; all of them are named.
    ///
    /// # Examples
    /// ```
    /// use delta_migrate::Desired;
    /// use delta_migrate::deltalake::arrow::datatypes::{DataType, Field, Schema};
    ///
    /// let schema = Schema::new(vec![Field::new("app_id", DataType::Utf8, true)]);
    /// let desired = Desired::schema(&schema)?;
    /// # Ok::<(), delta_migrate::Error>(())
    /// ```
    pub fn schema(schema: &Schema) -> Result<Self, Error> {
        Ok(Self::of_columns(columns_of(schema)?))
    }
}

impl KindBuilder {
    /// Adds every column of an Arrow schema to the base shape: name, type, nullability, and a comment
    /// from the field metadata `comment`.
    ///
    /// A base shape is frozen once it has shipped. A schema that grows belongs into a chain: a test that
    /// calls [`Kind::assert_matches_newest`] says which migration is to be added.
    ///
    /// A column that Delta can't hold is a mistake that [`KindBuilder::build`] tells, with its name.
    ///
    /// # Examples
    /// ```
    /// use delta_migrate::Kind;
    /// use delta_migrate::deltalake::arrow::datatypes::{DataType, Field, Schema};
    ///
    /// let schema = Schema::new(vec![
    ///     Field::new("app_id", DataType::Utf8, false),
    ///     Field::new("rows", DataType::Int64, true),
    /// ]);
    /// let facts = Kind::builder("facts").columns_from(&schema).build()?;
    /// facts.assert_matches_newest(&schema);
    ///
    /// let odd = Schema::new(vec![Field::new("at", DataType::Duration(deltalake::arrow::datatypes::TimeUnit::Second), true)]);
    /// let error = Kind::builder("facts").columns_from(&odd).build().unwrap_err();
    /// assert!(error.message().contains("`at` is of Arrow type"), "{error}");
    /// # Ok::<(), delta_migrate::Error>(())
    /// ```
    pub fn columns_from(mut self, schema: &Schema) -> Self {
        let mut mistakes = Vec::new();
        for field in fields(schema.fields(), None, &mut mistakes) {
            let Field { name, data_type, nullable, comment } = field;
            if data_type == DataType::Primitive(Primitive::Void) {
                let shown = clean(&ColumnPath::of([&name]).to_string());
                mistakes.push(format!("`{shown}` is of Arrow type Null, which no column can be of"));
                continue;
            }
            self.columns.push(ColumnDraft {
                path: name,
                type_text: data_type.to_string(),
                nullable,
                comment,
            });
        }
        self.mistakes.extend(mistakes);
        self
    }
}

/// The columns of an Arrow schema.
///
/// # Errors
/// `Usage`: types that Delta has not and names that it can't tell apart, each with its column.
pub(crate) fn columns_of(schema: &Schema) -> Result<Vec<Field>, Error> {
    let mut mistakes = Vec::new();
    let columns = fields(schema.fields(), None, &mut mistakes);
    check_names(&columns, &mut mistakes);
    if mistakes.is_empty() {
        return Ok(columns);
    }
    Err(Error::usage(mistakes.join("\n"))
        .with_hint("cast these columns to a type that Delta has, rename them, or leave them out"))
}

/// Names must be there, and differ in more than letter case from their neighbours'.
fn check_names(columns: &[Field], mistakes: &mut Vec<String>) {
    check_siblings(columns, &[], mistakes);
    for field in columns {
        let mut structs = Vec::new();
        field.data_type.structs(std::slice::from_ref(&field.name), &mut structs);
        structs.iter().for_each(|(at, fields)| check_siblings(fields, at, mistakes));
    }
}

fn check_siblings(siblings: &[Field], at: &[String], mistakes: &mut Vec<String>) {
    let mut seen = BTreeMap::new();
    for Field { name, .. } in siblings {
        let path = ColumnPath::of([at, std::slice::from_ref(name)].concat());
        let shown = clean(&path.to_string());
        if name.is_empty() {
            mistakes.push(format!("{shown} has no name"));
        }
        if let Some(other) = seen.insert(name.to_lowercase(), name) {
            let other = clean(other);
            mistakes.push(format!(
                "`{shown}` stands beside `{other}`: names must differ in more than letter case"
            ));
        }
    }
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
    if at.segments().len() > MAX_DEPTH {
        let top = at.segments().first().map_or("", String::as_str);
        mistakes.push(format!("`{}` is nested deeper than {MAX_DEPTH} levels", clean(top)));
        return None;
    }
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
        ArrowType::Struct(inner) => {
            let before = mistakes.len();
            let inner = fields(inner, Some(at), mistakes);
            // What is left of a struct would only be another mistake.
            return (mistakes.len() == before).then_some(DataType::Struct(inner));
        }
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
