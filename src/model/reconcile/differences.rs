//! Where a table and what it should be like differ, in words.

use serde::Serialize;

use super::{Desired, Wanted, is_addable};
use crate::model::diff::{Differs, Walked};
use crate::model::evolve::Change;
use crate::model::kind::Shape;
use crate::model::path::ColumnPath;
use crate::model::report::ErrorReport;
use crate::model::state::TableState;
use crate::model::text::{clean, shorten};
use crate::model::types::{Field, same_name};

/// What a table lacks of a schema or kind, and where they differ otherwise.
#[derive(Debug, Clone, Default, Serialize)]
#[non_exhaustive]
pub struct SchemaDiff {
    /// The columns that `reconcile` adds, or added: all of them nullable.
    pub adds: Vec<Change>,
    /// What differs and stays so: `reconcile` does nothing about it.
    pub left: Vec<SchemaDifference>,
    /// Why `reconcile` refuses the table; nothing is added then.
    #[serde(skip)]
    pub refusal: Option<ErrorReport>,
}

impl SchemaDiff {
    /// Whether nothing is to be added.
    pub fn is_empty(&self) -> bool {
        self.adds.is_empty()
    }

    /// Whether the table has all that is wanted, as it is wanted; it may have further columns.
    pub fn is_match(&self) -> bool {
        self.adds.is_empty() && self.left.iter().all(|d| d.difference == DifferenceKind::ExtraColumn)
    }
}

/// A difference that is reported and left as it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SchemaDifference {
    /// Of which sort it is.
    pub difference: DifferenceKind,
    /// The column's path, where it is about one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The name of a property, constraint or feature, where it is about one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// What the table has; none where it has nothing of the kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub table: Option<String>,
    /// What is wanted; none where nothing is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wanted: Option<String>,
    /// One line for people.
    pub text: String,
}

/// The sorts of differences that `reconcile` leaves alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum DifferenceKind {
    /// The table has a column more.
    ExtraColumn,
    /// A column is missing, and the table has one of a similar name or the same comment.
    RenamedColumn,
    /// A required column is missing.
    RequiredColumn,
    /// A column is missing, and no column of its type can be added.
    UnaddableColumn,
    /// A column has another type.
    Type,
    /// A column is required in one and nullable in the other.
    Nullability,
    /// A column has another comment.
    Comment,
    /// The table has another description.
    Description,
    /// The table is partitioned otherwise.
    Partitioning,
    /// A property has another value.
    Property,
    /// A table feature is missing.
    Feature,
    /// A constraint is missing or another one.
    Constraint,
}

/// Collects differences.
pub(super) struct Left {
    /// What the table is compared with, as messages call it.
    what: String,
    pub(super) found: Vec<SchemaDifference>,
    /// Required columns that are missing, each in backticks with its type.
    pub(super) required: Vec<String>,
}

impl Left {
    pub(super) fn new(desired: &Desired) -> Self {
        let what = desired.kind().map_or("the schema".to_owned(), |kind| format!("kind `{}`", kind.name()));
        Self { what, found: Vec::new(), required: Vec::new() }
    }

    fn put(&mut self, difference: DifferenceKind, at: At<'_>, has: Has, text: &str) {
        let (path, key) = match at {
            At::Column(path) => (Some(path.to_string()), None),
            At::Key(key) => (None, Some(key.to_owned())),
            At::Table => (None, None),
        };
        let Has { table, wanted } = has;
        self.found.push(SchemaDifference { difference, path, key, table, wanted, text: clean(text) });
    }

    pub(super) fn take(&mut self, Walked { at, differs }: &Walked<'_>, wanted: &Wanted<'_>) {
        let what = self.what.clone();
        let column = At::Column(at);
        match differs {
            Differs::New(field) => self.not_added(field, at, wanted),
            Differs::Gone(field) => self.extra(field, at),
            Differs::Renamed { new, field, why, old } => {
                if !wanted.is_held_back(new, *why) {
                    self.extra(old, at);
                    return self.not_added(field, new, wanted);
                }
                if !field.nullable {
                    self.required.push(format!("`{new}` ({})", field.data_type));
                }
                let text = format!(
                    "`{at}` is in the table alone, and `{new}` of the same type is missing: renamed? It is not \
                     added; if they are two columns, say so (`--add {new}`)"
                );
                self.put(
                    DifferenceKind::RenamedColumn,
                    column,
                    Has::both(at.to_string(), new.to_string()),
                    &text,
                );
            }
            Differs::Relaxed | Differs::Narrowed => {
                let word = |nullable: bool| if nullable { "nullable" } else { "required" };
                let in_table = matches!(differs, Differs::Narrowed);
                let has = Has::both(word(in_table), word(!in_table));
                let text =
                    format!("`{at}` is {} in the table, {} in {what}", word(in_table), word(!in_table));
                self.put(DifferenceKind::Nullability, column, has, &text);
            }
            Differs::Comment { have, wanted } => {
                let text = format!("`{at}` has another comment in {what}");
                let has = Has { table: have.map(str::to_owned), wanted: Some((*wanted).to_owned()) };
                self.put(DifferenceKind::Comment, column, has, &text);
            }
            Differs::Key { have, wanted } | Differs::Type { have, wanted } => {
                let way = match wanted.fits(have) {
                    true => "; the table's type is the wider one, and holds it",
                    false => "; a type is never changed here",
                };
                let text = format!("`{at}` is {have} in the table, {wanted} in {what}{way}");
                self.put(
                    DifferenceKind::Type,
                    column,
                    Has::both(have.to_string(), wanted.to_string()),
                    &text,
                );
            }
        }
    }

    fn extra(&mut self, field: &Field, at: &ColumnPath) {
        let has = Has { table: Some(field.data_type.to_string()), wanted: None };
        let text = format!("`{at}` ({}) is in the table alone, and stays", field.data_type);
        self.put(DifferenceKind::ExtraColumn, At::Column(at), has, &text);
    }

    /// A column that is missing, and why it stays so.
    fn not_added(&mut self, field: &Field, at: &ColumnPath, wanted: &Wanted<'_>) {
        let data_type = &field.data_type;
        let has = Has { table: None, wanted: Some(data_type.to_string()) };
        let name = format!("`{at}` ({data_type})");
        let (difference, why) = if !field.nullable {
            self.required.push(name.clone());
            (
                DifferenceKind::RequiredColumn,
                "is missing and required: the rows that are there have no value for it",
            )
        } else if wanted.partitions(at) {
            (DifferenceKind::Partitioning, "is missing and a partition column, which can't be added later")
        } else if !is_addable(data_type) {
            (DifferenceKind::UnaddableColumn, "is missing; no column of that type can be added")
        } else {
            return;
        };
        self.put(difference, At::Column(at), has, &format!("{name} {why}"));
    }

    /// What a kind says of its tables beside columns.
    pub(super) fn take_table(&mut self, shape: &Shape, state: &TableState) {
        let what = self.what.clone();
        let Shape { columns: _, partition_by, properties, description, features, constraints, defaults: _ } =
            shape;
        let (have, configuration) = (&state.metadata.partition_columns, &state.metadata.configuration);
        let same =
            have.len() == partition_by.len() && have.iter().zip(partition_by).all(|(a, b)| same_name(a, b));
        if !same {
            let list = |names: &[String]| match names {
                [] => "nothing".to_owned(),
                names => names.join(", "),
            };
            let (table, wanted) = (list(have), list(partition_by));
            let text = format!("the table is partitioned by {table}, and by {wanted} in {what}");
            self.put(DifferenceKind::Partitioning, At::Table, Has::both(table, wanted), &text);
        }
        if let Some(wanted) = description.as_ref().filter(|d| state.metadata.description.as_ref() != Some(d))
        {
            let has = Has { table: state.metadata.description.clone(), wanted: Some(wanted.clone()) };
            self.put(
                DifferenceKind::Description,
                At::Table,
                has,
                &format!("the table has another description than {what}"),
            );
        }
        for (key, value) in properties {
            self.value(DifferenceKind::Property, key, key, value, configuration.get(key));
        }
        for feature in features.iter().filter(|feature| !state.protocol.has(feature)) {
            let has = Has { table: None, wanted: Some(feature.clone()) };
            let text = format!("the table lacks the feature `{feature}`; a protocol is never upgraded here");
            self.put(DifferenceKind::Feature, At::Key(feature), has, &text);
        }
        for (name, condition) in constraints {
            let found = configuration.get(&format!("delta.constraints.{}", name.to_lowercase()));
            self.value(DifferenceKind::Constraint, name, &format!("constraint {name}"), condition, found);
        }
    }

    fn value(&mut self, sort: DifferenceKind, key: &str, name: &str, wanted: &str, found: Option<&String>) {
        if found.is_some_and(|found| found == wanted) {
            return;
        }
        let now = found.map_or("is not set".to_owned(), |found| format!("is `{}`", shorten(found, 60)));
        let text = format!("`{name}` {now} in the table, `{}` in {}", shorten(wanted, 60), self.what);
        let has = Has { table: found.cloned(), wanted: Some(wanted.to_owned()) };
        self.put(sort, At::Key(key), has, &text);
    }
}

#[derive(Clone, Copy)]
enum At<'a> {
    Column(&'a ColumnPath),
    Key(&'a str),
    Table,
}

struct Has {
    table: Option<String>,
    wanted: Option<String>,
}

impl Has {
    fn both(table: impl Into<String>, wanted: impl Into<String>) -> Self {
        Self { table: Some(table.into()), wanted: Some(wanted.into()) }
    }
}
