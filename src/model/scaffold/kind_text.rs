//! From a table to the kind file that recreates it.

use std::collections::BTreeSet;

use super::describable::{describable, left_out};
use super::field_metadata::FieldMetadata;
use super::remain::{Properties, features_left_out};
use super::toml_text::{column, key, list, quoted};
use crate::error::{Error, ErrorCode, Stage};
use crate::model::evolve::NameRules;
use crate::model::kind::Kind;
use crate::model::mapping::MAX_COLUMN_ID;
use crate::model::path::ColumnPath;
use crate::model::state::TableState;
use crate::model::text::clean;
use crate::model::types::{DataType, Field, Primitive, find};
use crate::model::version::Namespace;

/// A kind file, and what it could not take over from the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KindText {
    pub(crate) text: String,
    /// What was left out and why, one line each, in the order of the text.
    pub(crate) notes: Vec<String>,
}

/// Writes the kind file whose base shape is the table's: columns, comments, partitioning, properties.
///
/// What the file can't hold stands in it as a comment. Stamps of any namespace are never taken over,
/// nor is anything that `own` owns: a table that is created from the kind gets stamps of its own.
///
/// # Errors
/// [`ErrorCode::Usage`]: `name` can be no kind's. [`ErrorCode::UnsupportedFeature`]: the text would
/// not be read back as the shape that was written.
pub(crate) fn kind_text(state: &TableState, name: &str, own: Option<&Namespace>) -> Result<KindText, Error> {
    // A mistake in the name is told before one that would only follow from it.
    Kind::builder(name).build()?;
    let shape = Shape::of(state, own);
    let made = KindText { text: shape.text(state, name), notes: shape.notes() };
    let read = Kind::from_toml(&made.text);
    if read.is_ok_and(|kind| shape.is_base_of(&kind)) {
        return Ok(made);
    }
    Err(Error::new(
        ErrorCode::UnsupportedFeature,
        Stage::Plan,
        "the table's shape can't be said in a kind file",
    )
    .with_hint("please report this with the table's newest metaData action"))
}

/// What of a table goes into the file, with the notes on each part.
struct Shape {
    head: Vec<String>,
    /// A column, or none where it is left out, and the notes above it.
    columns: Vec<(Option<Field>, Vec<String>)>,
    partition_by: Vec<String>,
    properties: Properties,
}

impl Shape {
    fn of(state: &TableState, own: Option<&Namespace>) -> Self {
        let metadata = FieldMetadata::of(&state.metadata.schema_text);
        let properties = Properties::of(&state.metadata.configuration, own);
        let rules = NameRules::of(&properties.kept);
        let columns: Vec<(Option<Field>, Vec<String>)> = state
            .columns
            .iter()
            .map(|field| {
                let mut notes = Vec::new();
                let kept = top_level(field, &mut notes);
                notes.extend(
                    metadata.of_columns.iter().filter(|(c, _)| *c == field.name).map(|(_, n)| n.clone()),
                );
                let named = kept.iter().try_for_each(|f| rules.check_field(&f.name, &f.data_type, true));
                if let Err(refusal) = named {
                    notes.push(format!("no table can be created with it: {}", clean(&refusal.message)));
                }
                (kept, notes)
            })
            .collect();
        let mut head = Vec::new();
        let kept: Vec<Field> = columns.iter().filter_map(|(field, _)| field.clone()).collect();
        let partition_by = partitioning(state, &kept, &mut head);
        if metadata.mapped || state.metadata.configuration.contains_key(MAX_COLUMN_ID) {
            head.push(
                "the columns' ids and physical names are left out: a new table gives its own".to_owned(),
            );
        }
        head.extend(features_left_out(&state.protocol, &kept, &properties.kept));
        Self { head, columns, partition_by, properties }
    }

    fn kept(&self) -> impl Iterator<Item = &Field> {
        self.columns.iter().filter_map(|(field, _)| field.as_ref())
    }

    fn notes(&self) -> Vec<String> {
        let Self { head, columns, partition_by: _, properties } = self;
        let of_columns = columns.iter().flat_map(|(_, notes)| notes);
        head.iter().chain(of_columns).chain(&properties.notes).cloned().collect()
    }

    /// Whether a kind that was read has just this base shape.
    fn is_base_of(&self, kind: &Kind) -> bool {
        self.kept().eq(kind.columns())
            && self.partition_by == kind.partition_by()
            && self.properties.kept.iter().eq(kind.properties().iter())
    }

    fn text(&self, state: &TableState, name: &str) -> String {
        let Self { head, columns, partition_by, properties } = self;
        let mut out = format!(
            "# The shape of an existing table, as it was at log version {}. What could not be taken over is\n\
             # said where it was left out.\n",
            state.log_version
        );
        comments(&mut out, head);
        out.push_str(&format!("kind = {}\n", quoted(name)));
        if let Some(description) = &state.metadata.description {
            out.push_str(&format!("description = {}\n", quoted(description)));
        }
        if !partition_by.is_empty() {
            out.push_str(&format!("partition_by = {}\n", list(partition_by)));
        }
        out.push_str("# identified_by = [\"…\"]   # columns that only tables of this kind have\n");
        if !columns.is_empty() {
            out.push_str("\n[columns]\n");
        }
        for (field, notes) in columns {
            comments(&mut out, notes);
            if let Some(field) = field {
                out.push_str(&format!("{} = {}\n", key(&field.name), column(field)));
            }
        }
        let Properties { kept, notes } = properties;
        if !kept.is_empty() || !notes.is_empty() {
            out.push_str("\n[properties]\n");
        }
        comments(&mut out, notes);
        for (name, value) in kept {
            out.push_str(&format!("{} = {}\n", quoted(name), quoted(value)));
        }
        out
    }
}

fn comments(out: &mut String, notes: &[String]) {
    notes.iter().for_each(|note| out.push_str(&format!("# {note}\n")));
}

fn top_level(field: &Field, notes: &mut Vec<String>) -> Option<Field> {
    let path = ColumnPath::of([&field.name]);
    if field.name.is_empty() {
        notes.push(left_out(&path, "it has no name"));
        return None;
    }
    Some(Field { data_type: describable(&field.data_type, &path, notes)?, ..field.clone() })
}

/// The partition columns as the columns are written; none where a kind can't have them.
fn partitioning(state: &TableState, kept: &[Field], notes: &mut Vec<String>) -> Vec<String> {
    let wanted = &state.metadata.partition_columns;
    let simple = |f: &&Field| matches!(&f.data_type, DataType::Primitive(p) if *p != Primitive::Variant);
    let found: Vec<String> =
        wanted.iter().filter_map(|name| find(kept, name).filter(simple)).map(|f| f.name.clone()).collect();
    let distinct: BTreeSet<&String> = found.iter().collect();
    if found.len() == wanted.len()
        && distinct.len() == found.len()
        && (found.is_empty() || found.len() < kept.len())
    {
        return found;
    }
    let shown: Vec<String> = wanted.iter().map(|name| clean(name)).collect();
    notes.push(format!(
        "the partitioning by `{}` is left out: a kind is partitioned by some of its columns, not by all, and \
         only by those of a simple type",
        shown.join("`, `")
    ));
    Vec::new()
}
