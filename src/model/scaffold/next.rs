//! From the difference between a kind's newest shape and what a table or schema has to the next
//! migration: what only adds, and no more.

use std::collections::BTreeSet;

use super::block;
use super::describable::describable;
use crate::model::diff::{Differs, Walked, walk};
use crate::model::features::protocol_at_birth;
use crate::model::kind::{Kind, Shape, WAYS_OUT};
use crate::model::migration::AddedColumn;
use crate::model::path::ColumnPath;
use crate::model::text::clean;
use crate::model::types::{Field, Primitive};
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
    let mut next = Collected::default();
    walk(&shape.columns, wanted).iter().for_each(|difference| next.take(difference));
    let Collected { relaxed, added, comments, mut notes } = next;
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
struct Collected {
    relaxed: Vec<ColumnPath>,
    added: Vec<AddedColumn>,
    comments: Vec<(ColumnPath, String)>,
    notes: Vec<String>,
}

impl Collected {
    fn take(&mut self, Walked { at, differs }: &Walked<'_>) {
        match differs {
            Differs::New(field) => self.new_field(field, at),
            Differs::Renamed { new, .. } => {
                let what = format!(
                    "is gone, and `{new}` of the same type is new: renamed? That is `rename_columns` with \
                     `destructive = true`; if it is another column, add it by hand"
                );
                self.note(at, &what);
            }
            Differs::Gone(_) => self.note(
                at,
                "is gone; a column is never removed unasked: it stays in the kind, and reads NULL where it is not \
                 written",
            ),
            Differs::Relaxed => self.relaxed.push(at.clone()),
            Differs::Narrowed => {
                self.note(at, "may be null in the kind, and not here; a column is never narrowed")
            }
            Differs::Comment { wanted, .. } => self.comments.push((at.clone(), (*wanted).to_owned())),
            Differs::Key { have, wanted } => {
                self.note(at, &format!("is of type {have} in the kind, {wanted} here; keys of maps stay"));
            }
            Differs::Type { have, wanted } => {
                let way = if have.fits(wanted) {
                    "a wider type is `widen_types`, where the tables have the feature typeWidening"
                } else if wanted.fits(have) {
                    "the narrower one fits into it: nothing has to change"
                } else {
                    "another type is `retype_columns`, which rewrites the table; or add a column of another name"
                };
                self.note(at, &format!("is of type {have} in the kind, {wanted} here; {way}"));
            }
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
