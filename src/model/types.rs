//! Delta's schema types: the only place that knows their names and their JSON.
//!
//! Two texts are read here: the type names of kind files (Delta's and Spark SQL's, see
//! [`type_text`]) and the schema JSON of a table (PROTOCOL.md, Schema Serialization Format).

mod json;
mod type_text;
mod widening;

use std::fmt;

pub(crate) use json::{MAX_DEPTH, SchemaError, field_json, schema_from_json, schema_json, type_json};
pub(crate) use type_text::parse_type;
pub(crate) use widening::leaves;

use super::path::{ColumnPath, quote_segment};

/// A type of a Delta schema.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum DataType {
    /// A type without parts.
    Primitive(Primitive),
    /// A list.
    Array {
        /// The type of the elements.
        element: Box<DataType>,
        /// Whether an element may be null.
        contains_null: bool,
    },
    /// A map.
    Map {
        /// The type of the keys.
        key: Box<DataType>,
        /// The type of the values.
        value: Box<DataType>,
        /// Whether a value may be null.
        value_contains_null: bool,
    },
    /// Named fields.
    Struct(Vec<Field>),
}

/// A type without parts (PROTOCOL.md, Primitive Types).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Primitive {
    /// UTF-8 text.
    String,
    /// 64-bit integer.
    Long,
    /// 32-bit integer.
    Integer,
    /// 16-bit integer.
    Short,
    /// 8-bit integer.
    Byte,
    /// 32-bit floating point.
    Float,
    /// 64-bit floating point.
    Double,
    /// `decimal(precision, scale)`.
    Decimal(u8, u8),
    /// True or false.
    Boolean,
    /// Bytes.
    Binary,
    /// A day.
    Date,
    /// An instant, in microseconds.
    Timestamp,
    /// A wall-clock time without a zone; needs the table feature `timestampNtz`.
    TimestampNtz,
    /// Semi-structured; needs the table feature `variantType`.
    Variant,
    /// The type of a column that only ever held null.
    Void,
    /// A type that this crate carries along without knowing it, as it is written in the schema.
    Other(String),
}

/// A named column or struct field.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Field {
    /// The name, as written.
    pub(crate) name: String,
    /// The type.
    pub(crate) data_type: DataType,
    /// Whether null is allowed.
    pub(crate) nullable: bool,
    /// The `comment` of the field's metadata.
    pub(crate) comment: Option<String>,
}

impl Field {
    /// A nullable field without a comment.
    pub(crate) fn nullable(name: &str, data_type: DataType) -> Self {
        Self { name: name.to_owned(), data_type, nullable: true, comment: None }
    }
}

impl Primitive {
    /// Delta's own name.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::String => "string".into(),
            Self::Long => "long".into(),
            Self::Integer => "integer".into(),
            Self::Short => "short".into(),
            Self::Byte => "byte".into(),
            Self::Float => "float".into(),
            Self::Double => "double".into(),
            Self::Decimal(precision, scale) => format!("decimal({precision},{scale})"),
            Self::Boolean => "boolean".into(),
            Self::Binary => "binary".into(),
            Self::Date => "date".into(),
            Self::Timestamp => "timestamp".into(),
            Self::TimestampNtz => "timestamp_ntz".into(),
            Self::Variant => "variant".into(),
            Self::Void => "void".into(),
            Self::Other(text) => text.clone(),
        }
    }

    /// How many decimal digits an integer type can need; none for other types.
    fn integer_digits(&self) -> Option<u8> {
        match self {
            Self::Byte | Self::Short | Self::Integer => Some(10),
            Self::Long => Some(20),
            _ => None,
        }
    }

    /// Whether a column of this type may have been widened to `wide` (PROTOCOL.md, Type Widening).
    pub(crate) fn widens_to(&self, wide: &Self) -> bool {
        use Primitive::{Byte, Date, Decimal, Double, Float, Integer, Long, Short, TimestampNtz};
        let rank = |p: &Self| [Byte, Short, Integer, Long].iter().position(|r| r == p);
        match (self, wide) {
            (a, b) if a == b => true,
            (a, b) if rank(a).is_some() && rank(b).is_some() => rank(a) < rank(b),
            (Byte | Short | Integer | Float, Double) | (Date, TimestampNtz) => true,
            (Decimal(p, s), Decimal(p2, s2)) => s2 >= s && p2 >= p && p2 - p >= s2 - s,
            (a, Decimal(p, s)) => a.integer_digits().is_some_and(|d| *p >= d && p - d >= *s),
            _ => false,
        }
    }
}

impl DataType {
    /// Whether a column declared as `self` may stand in a table as `found`: the same type, or one
    /// that a table may have been widened to, with more fields and looser nullability inside.
    pub(crate) fn fits(&self, found: &DataType) -> bool {
        match (self, found) {
            (Self::Primitive(a), Self::Primitive(b)) => a.widens_to(b),
            (Self::Array { element: a, .. }, Self::Array { element: b, .. }) => a.fits(b),
            (Self::Map { key: k, value: v, .. }, Self::Map { key: k2, value: v2, .. }) => {
                k.fits(k2) && v.fits(v2)
            }
            (Self::Struct(fields), Self::Struct(found)) => fields
                .iter()
                .all(|field| find(found, &field.name).is_some_and(|f| field.data_type.fits(&f.data_type))),
            _ => false,
        }
    }

    /// Whether the types are equal but for nullability and comments, at any depth.
    pub(crate) fn same_as(&self, other: &DataType) -> bool {
        match (self, other) {
            (Self::Primitive(a), Self::Primitive(b)) => a == b,
            (Self::Array { element: a, .. }, Self::Array { element: b, .. }) => a.same_as(b),
            (Self::Map { key: k, value: v, .. }, Self::Map { key: k2, value: v2, .. }) => {
                k.same_as(k2) && v.same_as(v2)
            }
            (Self::Struct(a), Self::Struct(b)) => {
                a.len() == b.len()
                    && a.iter().all(|f| find(b, &f.name).is_some_and(|g| f.data_type.same_as(&g.data_type)))
            }
            _ => false,
        }
    }

    /// The type with everything inside it nullable.
    pub(crate) fn loosened(&self) -> DataType {
        match self {
            Self::Primitive(_) => self.clone(),
            Self::Array { element, .. } => {
                Self::Array { element: Box::new(element.loosened()), contains_null: true }
            }
            Self::Map { key, value, .. } => Self::Map {
                key: Box::new(key.loosened()),
                value: Box::new(value.loosened()),
                value_contains_null: true,
            },
            Self::Struct(fields) => {
                let loosened =
                    |f: &Field| Field { nullable: true, data_type: f.data_type.loosened(), ..f.clone() };
                Self::Struct(fields.iter().map(loosened).collect())
            }
        }
    }

    /// Every primitive inside, depth first.
    pub(crate) fn primitives(&self) -> Vec<&Primitive> {
        match self {
            Self::Primitive(p) => vec![p],
            Self::Array { element, .. } => element.primitives(),
            Self::Map { key, value, .. } => [key.primitives(), value.primitives()].concat(),
            Self::Struct(fields) => fields.iter().flat_map(|f| f.data_type.primitives()).collect(),
        }
    }

    /// Every struct inside (this one included) as its path below `at` and its fields.
    pub(crate) fn structs<'a>(&'a self, at: &[String], out: &mut Vec<(Vec<String>, &'a [Field])>) {
        let below = |step: &str| [at, &[step.to_owned()]].concat();
        match self {
            Self::Primitive(_) => {}
            Self::Array { element, .. } => element.structs(&below("element"), out),
            Self::Map { key, value, .. } => {
                key.structs(&below("key"), out);
                value.structs(&below("value"), out);
            }
            Self::Struct(fields) => {
                out.push((at.to_vec(), fields));
                for field in fields {
                    field.data_type.structs(&below(&field.name), out);
                }
            }
        }
    }

    /// Whether the type is, or holds, an array or a map.
    pub(crate) fn has_collection(&self) -> bool {
        match self {
            Self::Primitive(_) => false,
            Self::Array { .. } | Self::Map { .. } => true,
            Self::Struct(fields) => fields.iter().any(|f| f.data_type.has_collection()),
        }
    }

    /// A required part inside the type, as the path to it below `at`.
    pub(crate) fn required_part(&self, at: &ColumnPath) -> Option<ColumnPath> {
        match self {
            Self::Primitive(_) => None,
            Self::Array { element, contains_null } => {
                let path = at.child("element");
                if *contains_null { element.required_part(&path) } else { Some(path) }
            }
            Self::Map { key, value, value_contains_null } => {
                let path = at.child("value");
                if *value_contains_null {
                    key.required_part(&at.child("key")).or_else(|| value.required_part(&path))
                } else {
                    Some(path)
                }
            }
            Self::Struct(fields) => fields.iter().find_map(|f| {
                let path = at.child(&f.name);
                if f.nullable { f.data_type.required_part(&path) } else { Some(path) }
            }),
        }
    }
}

/// The field of that name: exactly so written, else equal but for letter case, as Delta resolves it.
pub(crate) fn find<'a>(fields: &'a [Field], name: &str) -> Option<&'a Field> {
    fields.iter().find(|f| f.name == name).or_else(|| fields.iter().find(|f| same_name(&f.name, name)))
}

/// Whether two column names are the same to Delta, which compares them regardless of case.
pub(crate) fn same_name(a: &str, b: &str) -> bool {
    a == b || a.to_lowercase() == b.to_lowercase()
}

/// What a path leads to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Target<'a> {
    /// A column or a field of a struct.
    Field(&'a Field),
    /// The elements of an array, or the keys or values of a map, and whether they may be null.
    Part(&'a DataType, bool),
}

impl<'a> Target<'a> {
    pub(crate) fn data_type(self) -> &'a DataType {
        match self {
            Self::Field(field) => &field.data_type,
            Self::Part(data_type, _) => data_type,
        }
    }
}

/// Walks `segments` down from the top-level columns.
pub(crate) fn resolve<'a>(columns: &'a [Field], segments: &[String]) -> Option<Target<'a>> {
    let (first, rest) = segments.split_first()?;
    let mut at = Target::Field(find(columns, first)?);
    for segment in rest {
        at = match (at.data_type(), segment.as_str()) {
            (DataType::Struct(fields), name) => Target::Field(find(fields, name)?),
            (DataType::Array { element, contains_null }, "element") => Target::Part(element, *contains_null),
            (DataType::Map { key, .. }, "key") => Target::Part(key, false),
            (DataType::Map { value, value_contains_null, .. }, "value") => {
                Target::Part(value, *value_contains_null)
            }
            _ => return None,
        };
    }
    Some(at)
}

/// Whether the way down leads into the keys or values of a map.
pub(crate) fn leads_through_a_map(columns: &[Field], segments: &[String]) -> bool {
    (1..segments.len()).any(|n| {
        let at = segments.get(..n).and_then(|part| resolve(columns, part));
        matches!(at.map(Target::data_type), Some(DataType::Map { .. }))
    })
}

/// The same walk for a change in place; ends at a field or at the type of a part.
pub(crate) fn resolve_mut<'a>(columns: &'a mut [Field], segments: &[String]) -> Option<&'a mut DataType> {
    let (first, rest) = segments.split_first()?;
    let mut at = &mut find_mut(columns, first)?.data_type;
    for segment in rest {
        at = match (at, segment.as_str()) {
            (DataType::Struct(fields), name) => &mut find_mut(fields, name)?.data_type,
            (DataType::Array { element, .. }, "element") => element,
            (DataType::Map { key, .. }, "key") => key,
            (DataType::Map { value, .. }, "value") => value,
            _ => return None,
        };
    }
    Some(at)
}

/// The field that a path ends at, for a change in place.
pub(crate) fn field_mut<'a>(columns: &'a mut Vec<Field>, path: &ColumnPath) -> Option<&'a mut Field> {
    siblings_mut(columns, path.parent()).and_then(|fields| find_mut(fields, path.name()))
}

/// The list of fields in which a path's last segment stands.
pub(crate) fn siblings_mut<'a>(columns: &'a mut Vec<Field>, parent: &[String]) -> Option<&'a mut Vec<Field>> {
    if parent.is_empty() {
        return Some(columns);
    }
    match resolve_mut(columns, parent)? {
        DataType::Struct(fields) => Some(fields),
        _ => None,
    }
}

fn find_mut<'a>(fields: &'a mut [Field], name: &str) -> Option<&'a mut Field> {
    let at = fields
        .iter()
        .position(|f| f.name == name)
        .or_else(|| fields.iter().position(|f| same_name(&f.name, name)))?;
    fields.get_mut(at)
}

impl fmt::Display for DataType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let null = |nullable: bool| if nullable { "" } else { " not null" };
        match self {
            Self::Primitive(p) => f.write_str(&p.name()),
            Self::Array { element, contains_null } => write!(f, "array<{element}{}>", null(*contains_null)),
            Self::Map { key, value, value_contains_null } => {
                write!(f, "map<{key}, {value}{}>", null(*value_contains_null))
            }
            Self::Struct(fields) => {
                f.write_str("struct<")?;
                for (i, field) in fields.iter().enumerate() {
                    let comma = if i > 0 { ", " } else { "" };
                    let name = display_name(&field.name);
                    write!(f, "{comma}{name}: {}{}", field.data_type, null(field.nullable))?;
                    if let Some(comment) = &field.comment {
                        write!(f, " comment '{}'", comment.replace('\\', "\\\\").replace('\'', "\\'"))?;
                    }
                }
                f.write_str(">")
            }
        }
    }
}

/// A field's name as type text takes it: bare where that can be read back, else in backticks.
fn display_name(name: &str) -> String {
    let bare = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_');
    if bare {
        name.to_owned()
    } else if name.contains(['.', '`']) {
        quote_segment(name)
    } else {
        format!("`{name}`")
    }
}

#[cfg(test)]
mod tests;
