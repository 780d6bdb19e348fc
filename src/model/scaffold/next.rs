//! From the difference between a kind's newest shape and what a table or schema has to the next
//! migration: what only adds, and no more.

use std::collections::BTreeSet;

use super::block;
use super::describable::describable;
use crate::model::features::protocol_at_birth;
use crate::model::kind::{Kind, Shape, WAYS_OUT};
use crate::model::migration::AddedColumn;
use crate::model::path::ColumnPath;
use crate::model::text::clean;
use crate::model::types::{DataType, Field, Primitive, find};
use crate::model::version::SchemaVersion;

/// The next migration of a kind, worked out from a schema: new nullable columns, changed comments,
/// relaxed nullability; and notes on everything else that differs.
///
/// Made by [`Kind::next_migration`].
#[derive(Debug, Clone, PartialEq)]
pub struct NextMigration {
    pub(super) version: SchemaVersion,
    pub(super) relaxed: Vec<ColumnPath>,
    pub(super) added: Vec<AddedColumn>,
    pub(super) comments: Vec<(ColumnPath, String)>,
    /// Table features that added columns need and that the kind has not had so far.
    pub(super) features: Vec<&'static str>,
    pub(super) notes: Vec<String>,
}

impl NextMigration {
    /// Whether there is nothing to add.
    pub fn is_empty(&self) -> bool {
        let Self { version: _, relaxed, added, comments, features: _, notes: _ } = self;
        relaxed.is_empty() && added.is_empty() && comments.is_empty()
    }

    /// The version that the migration will be.
    pub fn version(&self) -> SchemaVersion {
        self.version
    }

    /// What differs and is not a part of the migration, each with what to do about it.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// The migration as a `[[migrations]]` block of a kind file, with lines that end in `\n`; empty
    /// where there is nothing to add. Without a description it gets one that lists what it does.
    pub fn to_toml(&self, description: Option<&str>) -> String {
        if self.is_empty() { String::new() } else { block::text(self, description) }
    }
}

/// Works out what `wanted` adds to the newest shape of `kind`.
pub(crate) fn next_migration(kind: &Kind, wanted: &[Field]) -> NextMigration {
    let shape = kind.shape_at(kind.newest());
    let mut diff = Diff::default();
    diff.fields(&shape.columns, wanted, None);
    let Diff { relaxed, added, comments, mut notes } = diff;
    let features = needed(&shape, &added);
    for feature in &features {
        notes.push(format!(
            "tables that lack the feature `{feature}` refuse the migration until it says `enable_features`, which \
             can't be undone; the line is there as a comment"
        ));
    }
    let version = SchemaVersion::new(kind.newest().get().saturating_add(1));
    NextMigration { version, relaxed, added, comments, features, notes }
}

/// The features that the added columns' types need and a table of this kind is not sure to have.
fn needed(shape: &Shape, added: &[AddedColumn]) -> Vec<&'static str> {
    let has = |feature: &str| {
        protocol_at_birth(&shape.columns, &shape.properties, &shape.features).is_ok_and(|p| p.has(feature))
    };
    let primitives = added.iter().flat_map(|column| column.data_type.primitives());
    let features: BTreeSet<&'static str> = primitives
        .filter_map(|primitive| match primitive {
            Primitive::TimestampNtz => Some("timestampNtz"),
            Primitive::Variant => Some("variantType"),
            _ => None,
        })
        .collect();
    features.into_iter().filter(|feature| !has(feature)).collect()
}

#[derive(Default)]
struct Diff {
    relaxed: Vec<ColumnPath>,
    added: Vec<AddedColumn>,
    comments: Vec<(ColumnPath, String)>,
    notes: Vec<String>,
}

impl Diff {
    /// Compares the fields of one struct, or the top-level columns.
    fn fields(&mut self, have: &[Field], wanted: &[Field], at: Option<&ColumnPath>) {
        let path = |name: &str| at.map_or_else(|| ColumnPath::of([name]), |at| at.child(name));
        let gone: Vec<(usize, &Field)> =
            have.iter().enumerate().filter(|(_, f)| find(wanted, &f.name).is_none()).collect();
        let mut renamed = BTreeSet::new();
        for (index, field) in wanted.iter().enumerate() {
            let new = path(&field.name);
            if let Some(old) = find(have, &field.name) {
                self.same_field(old, field, &path(&old.name));
                continue;
            }
            let free = gone.iter().filter(|(_, old)| !renamed.contains(&old.name));
            let alike = free.filter_map(|(i, old)| Some((likeness((*i, old), (index, field))?, old)));
            match alike.min_by_key(|(likeness, _)| *likeness) {
                None => self.new_field(field, &new),
                Some((_, old)) => {
                    renamed.insert(&old.name);
                    let what = format!(
                        "is gone, and `{new}` of the same type is new: renamed? That is `rename_columns` with \
                         `destructive = true`; if it is another column, add it by hand"
                    );
                    self.note(&path(&old.name), &what);
                }
            }
        }
        for (_, field) in gone.iter().filter(|(_, f)| !renamed.contains(&f.name)) {
            self.note(
                &path(&field.name),
                "is gone; a column is never removed unasked: it stays in the kind, and reads NULL where it is not \
                 written",
            );
        }
    }

    fn same_field(&mut self, old: &Field, wanted: &Field, at: &ColumnPath) {
        self.nullability(old.nullable, wanted.nullable, at);
        if let Some(comment) = wanted.comment.as_ref().filter(|c| old.comment.as_ref() != Some(c)) {
            self.comments.push((at.clone(), comment.clone()));
        }
        self.types(&old.data_type, &wanted.data_type, at);
    }

    fn types(&mut self, old: &DataType, wanted: &DataType, at: &ColumnPath) {
        match (old, wanted) {
            (DataType::Struct(have), DataType::Struct(wanted)) => self.fields(have, wanted, Some(at)),
            (
                DataType::Array { element: old, contains_null: had },
                DataType::Array { element: wanted, contains_null: has },
            ) => {
                let at = at.child("element");
                self.nullability(*had, *has, &at);
                self.types(old, wanted, &at);
            }
            (
                DataType::Map { key: old_key, value: old, value_contains_null: had },
                DataType::Map { key, value: wanted, value_contains_null: has },
            ) => {
                // Rows are found by their keys: what a key consists of is no addition.
                if !old_key.same_as(key) {
                    self.note(
                        &at.child("key"),
                        &format!("is of type {old_key} in the kind, {key} here; keys of maps stay"),
                    );
                }
                let at = at.child("value");
                self.nullability(*had, *has, &at);
                self.types(old, wanted, &at);
            }
            (old, wanted) if old.same_as(wanted) => {}
            // A column that only ever held null.
            (_, DataType::Primitive(Primitive::Void)) => {}
            (old, wanted) => {
                let way = if old.fits(wanted) {
                    "a wider type is `widen_types`, where the tables have the feature typeWidening"
                } else if wanted.fits(old) {
                    "the narrower one fits into it: nothing has to change"
                } else {
                    "another type is `retype_columns`, which rewrites the table; or add a column of another name"
                };
                self.note(at, &format!("is of type {old} in the kind, {wanted} here; {way}"));
            }
        }
    }

    fn nullability(&mut self, old: bool, wanted: bool, at: &ColumnPath) {
        match (old, wanted) {
            (false, true) => self.relaxed.push(at.clone()),
            (true, false) => {
                self.note(at, "may be null in the kind, and not here; a column is never narrowed")
            }
            _ => {}
        }
    }

    fn new_field(&mut self, field: &Field, at: &ColumnPath) {
        if field.name.is_empty() {
            return self.note(at, "has no name");
        }
        if !field.nullable {
            let why =
                format!("is new and required, but the rows that are there have no value for it: {WAYS_OUT}");
            return self.note(at, &why);
        }
        let Some(data_type) = describable(&field.data_type, at, &mut self.notes) else { return };
        if let Some(part) = data_type.required_part(at) {
            self.note(
                &part,
                "is required inside a new column, and nullable in the migration, as everything there",
            );
        }
        let data_type = data_type.loosened();
        self.added.push(AddedColumn { path: at.clone(), data_type, comment: field.comment.clone() });
    }

    fn note(&mut self, at: &ColumnPath, what: &str) {
        self.notes.push(format!("`{}` {}", clean(&at.to_string()), clean(what)));
    }
}

/// Why a column that is gone and a new one of the same type are likely one under two names; the
/// surest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Likeness {
    Comment,
    Name,
    Place,
}

fn likeness(gone: (usize, &Field), new: (usize, &Field)) -> Option<Likeness> {
    let ((old_index, old), (new_index, new)) = (gone, new);
    if !old.data_type.same_as(&new.data_type) {
        return None;
    }
    let (a, b) = (old.name.to_lowercase(), new.name.to_lowercase());
    let longer = a.chars().count().max(b.chars().count());
    if old.comment.is_some() && old.comment == new.comment {
        Some(Likeness::Comment)
    } else if a.contains(&b) || b.contains(&a) || strsim::damerau_levenshtein(&a, &b) * 3 <= longer {
        Some(Likeness::Name)
    } else {
        (old_index == new_index).then_some(Likeness::Place)
    }
}
