//! From a kind as it is written down to a checked [`Kind`], with every mistake found on the way.

mod steps;

use std::fmt;

use indexmap::IndexMap;

pub(crate) use steps::WAYS_OUT;

use super::{Kind, KindBuilder, Origin, Shape};
use crate::model::path::ColumnPath;
use crate::model::types::{DataType, Field, Primitive, Target, find, parse_type, resolve, same_name};

/// Where in a kind a mistake stands: the key path of the kind file, with positions from 0.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place(pub(crate) Vec<String>);

/// A mistake: what was found and what would be right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) place: Place,
    /// Byte offset inside the text that stands at the place.
    pub(crate) offset: usize,
    pub(crate) found: String,
    pub(crate) wanted: String,
}

impl Problem {
    pub(crate) fn text(&self) -> String {
        format!("{}; {}", self.found, self.wanted)
    }
}

impl Place {
    pub(crate) fn of<T: ToString>(parts: &[T]) -> Self {
        Self(parts.iter().map(ToString::to_string).collect())
    }

    pub(crate) fn child(&self, part: impl ToString) -> Self {
        let mut parts = self.0.clone();
        parts.push(part.to_string());
        Self(parts)
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = match self.0.as_slice() {
            [first, index, rest @ ..] if first == "migrations" => {
                let version = index.parse::<usize>().map_or(0, |i| i + 1);
                write!(f, "migration {version}{}", if rest.is_empty() { "" } else { ", " })?;
                rest
            }
            all => all,
        };
        f.write_str(&parts.join("."))
    }
}

/// Stands for a type that could not be read: no type text gives it, and the column counts as there,
/// so that one mistake is one report.
const UNKNOWN: DataType = DataType::Primitive(Primitive::Void);

/// Collects problems while the parts of a kind are read.
#[derive(Default)]
struct Check {
    problems: Vec<Problem>,
    /// How often a check was left out because it leans on a type that could not be read, which is
    /// a problem already.
    skipped: usize,
}

impl Check {
    fn add(&mut self, place: &Place, found: impl Into<String>, wanted: impl Into<String>) {
        self.add_at(place, 0, found, wanted);
    }

    fn add_at(&mut self, place: &Place, offset: usize, found: impl Into<String>, wanted: impl Into<String>) {
        self.problems.push(Problem {
            place: place.clone(),
            offset,
            found: found.into(),
            wanted: wanted.into(),
        });
    }

    fn data_type(&mut self, place: &Place, text: &str) -> Option<DataType> {
        parse_type(text).map_err(|e| self.add_at(place, e.offset, e.found, e.wanted)).ok()
    }

    fn path(&mut self, place: &Place, text: &str) -> Option<ColumnPath> {
        text.parse()
            .map_err(|e: crate::model::path::InvalidPath| {
                self.add(place, format!("`{text}` is no column path"), e.wanted);
            })
            .ok()
    }

    /// Whether the segments lead to a column of which only the type is not known; nothing can be
    /// checked there.
    fn skips(&mut self, columns: &[Field], segments: &[String]) -> bool {
        let unknown = |target: Target<'_>| *target.data_type() == UNKNOWN;
        let skips = (1..=segments.len()).any(|n| resolve(columns, &segments[..n]).is_some_and(unknown));
        self.skipped += usize::from(skips);
        skips
    }

    /// A path that must lead to a column of `columns`.
    fn existing(&mut self, place: &Place, text: &str, columns: &[Field], where_: &str) -> Option<ColumnPath> {
        let path = self.path(place, text)?;
        if resolve(columns, path.segments()).is_some() {
            return Some(path);
        }
        if self.skips(columns, path.segments()) {
            return None;
        }
        let names: Vec<&str> = columns.iter().map(|f| f.name.as_str()).collect();
        let near = nearest(path.segments().first().map_or("", String::as_str), &names);
        let wanted = match near {
            Some(near) if path.segments().len() == 1 => format!("did you mean `{near}`?"),
            _ => format!("name a column of {where_}"),
        };
        self.add(place, format!("there is no column `{path}` in {where_}"), wanted);
        None
    }
}

/// The candidate that was probably meant: equal but for case, or one or two letters away.
pub(crate) fn nearest<'a>(word: &str, candidates: &[&'a str]) -> Option<&'a str> {
    let word = word.to_lowercase();
    candidates
        .iter()
        .map(|c| (strsim::damerau_levenshtein(&word, &c.to_lowercase()), *c))
        .filter(|(distance, c)| *distance <= 2 && *distance < c.chars().count())
        .min()
        .map(|(_, c)| c)
}

/// Reads every text of `draft` and checks the whole kind.
///
/// # Errors
/// Every mistake, in no order that means anything.
pub(crate) fn build(draft: KindBuilder) -> Result<Kind, Vec<Problem>> {
    let mut check = Check::default();
    check_name(&mut check, &draft.name);
    let columns = base_columns(&mut check, &draft);
    for mistake in &draft.mistakes {
        check.add(
            &Place::of(&["columns"]),
            mistake.as_str(),
            "cast it to a type that Delta has, or leave it out",
        );
    }
    check_partitioning(&mut check, &draft, &columns);
    let identified_by = draft
        .identified_by
        .iter()
        .enumerate()
        .filter_map(|(i, text)| {
            check.existing(&Place::of(&["identified_by", &i.to_string()]), text, &columns, "the base shape")
        })
        .collect();
    let mut kind = Kind {
        name: draft.name,
        description: draft.description,
        partition_by: draft.partition_by,
        identified_by,
        columns,
        properties: unique_map(&mut check, &Place::of(&["properties"]), draft.properties),
        adopt: draft.adopt,
        migrations: Vec::new(),
        origin: Origin::default(),
    };
    let mut shape = Shape::base(&kind);
    for (index, migration) in draft.migrations.into_iter().enumerate() {
        let place = Place::of(&["migrations".to_owned(), index.to_string()]);
        let migration = steps::read(&mut check, &place, migration, &mut shape, &kind.identified_by);
        kind.migrations.push(migration);
    }
    if check.problems.is_empty() { Ok(kind) } else { Err(check.problems) }
}

/// Whether a text can be the name of a kind.
pub(crate) fn is_kind_name(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    (1..=64).contains(&name.len()) && name.chars().all(allowed)
}

fn check_name(check: &mut Check, name: &str) {
    let place = Place::of(&["kind"]);
    if name.is_empty() {
        check.add(&place, "the kind has no name", "wanted `kind = \"facts\"`");
    } else if !is_kind_name(name) {
        check.add(
            &place,
            format!("`{name}` is no name of a kind"),
            "wanted at most 64 ASCII letters, digits, `_`, `-` or dots",
        );
    }
}

fn base_columns(check: &mut Check, draft: &KindBuilder) -> Vec<Field> {
    let mut columns: Vec<Field> = Vec::new();
    for column in &draft.columns {
        let place = Place::of(&["columns", &column.path]);
        if column.path.is_empty() {
            check.add(&place, "a column without a name", "wanted a name");
        }
        if let Some(other) = columns.iter().find(|f| same_name(&f.name, &column.path)) {
            check.add(
                &place,
                format!("`{}` stands beside `{}`", column.path, other.name),
                "column names must differ in more than letter case",
            );
            continue;
        }
        let data_type = check.data_type(&place.child("type"), &column.type_text).unwrap_or(UNKNOWN);
        columns.push(Field {
            name: column.path.clone(),
            data_type,
            nullable: column.nullable,
            comment: column.comment.clone(),
        });
    }
    columns
}

fn check_partitioning(check: &mut Check, draft: &KindBuilder, columns: &[Field]) {
    for (i, name) in draft.partition_by.iter().enumerate() {
        let place = Place::of(&["partition_by", &i.to_string()]);
        let Some(field) = columns.iter().find(|f| f.name == *name) else {
            let names: Vec<&str> = columns.iter().map(|f| f.name.as_str()).collect();
            let wanted = match nearest(name, &names) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "partition columns must stand in [columns]; they can't be added later".to_owned(),
            };
            check.add(&place, format!("there is no column `{name}` in the base shape"), wanted);
            continue;
        };
        let partitionable = matches!(&field.data_type, DataType::Primitive(p) if *p != Primitive::Variant);
        if !partitionable {
            check.add(
                &place,
                format!("`{name}` is of type {}", field.data_type),
                "a partition column must be of a simple type",
            );
        }
        if draft.partition_by.iter().take(i).any(|other| same_name(other, name)) {
            check.add(&place, format!("`{name}` is named twice"), "name each partition column once");
        }
    }
    let data_columns = columns.iter().filter(|f| !draft.partition_by.contains(&f.name)).count();
    if !draft.partition_by.is_empty() && data_columns == 0 && !columns.is_empty() {
        check.add(
            &Place::of(&["partition_by"]),
            "every column is a partition column",
            "a table needs a column that is not",
        );
    }
}

fn unique_map(check: &mut Check, place: &Place, pairs: Vec<(String, String)>) -> IndexMap<String, String> {
    let mut map = IndexMap::new();
    for (key, value) in pairs {
        if key.is_empty() {
            check.add(
                place,
                "a property without a name",
                "wanted a name such as \"delta.logRetentionDuration\"",
            );
        }
        if map.contains_key(&key) {
            check.add(&place.child(&key), format!("`{key}` is set twice"), "set each property once");
        }
        map.insert(key, value);
    }
    map
}

/// Whether a field of that name stands among `fields` already.
fn taken<'a>(fields: &'a [Field], name: &str) -> Option<&'a Field> {
    find(fields, name)
}
