//! Definition-driven use: what a schema, or a kind's newest shape, has that a table lacks; and the plan
//! that adds just that.

mod desired;
mod differences;

pub use desired::Desired;
pub use differences::{DifferenceKind, SchemaDiff, SchemaDifference};

use differences::Left;

use super::assess::{Assessment, FoundKind, assess};
use super::diff::{Differs, Likeness, Walked, walk};
use super::digest::ChainDigest;
use super::evolve::{Change, Evolution};
use super::history::How;
use super::kind::Shape;
use super::migration::AddedColumn;
use super::path::ColumnPath;
use super::plan::{Evolved, Mode, Plan, PlannedCommit, PlannedMigration, check_gate, for_others};
use super::refusal::Refusal;
use super::state::{InvalidStamp, Stamps, TableState};
use super::text;
use super::types::{DataType, Field, Primitive, same_name};
use super::version::{MinVersion, Namespace, SchemaVersion};
use crate::error::{ErrorCode, Stage};
use crate::model::report::ErrorReport;

/// Why a required column can't be added, and what can be done.
const REQUIRED: &str = "rows that are there have no value for it: make it nullable, or add it by hand with the \
                        engine that writes the table; nothing was written";

/// Works out what `reconcile` adds, or why it must not.
///
/// A plan that is not empty adds nullable columns in one commit that touches no stamp.
pub(crate) fn reconcile_plan(
    namespace: &Namespace,
    desired: &Desired,
    state: Option<&TableState>,
) -> Result<Plan, Refusal> {
    let state = state.ok_or_else(missing)?;
    let Compared { assessment, changes, evolution, left, refusal } = compare(namespace, desired, state);
    if let Some(refusal) = refusal {
        return Err(refusal);
    }
    let version = stamped(&assessment).unwrap_or_default();
    let chain = desired.kind().map_or_else(ChainDigest::none, |kind| ChainDigest::of(kind, version));
    let name = desired.kind().map_or_else(String::new, |kind| kind.name().to_owned());
    let behind = pending(desired, &assessment);
    let mut plan = Plan::empty(namespace, name, chain, Some(state), assessment);
    (plan.from, plan.to) = (version, version);
    plan.diff = Some(SchemaDiff { adds: changes.clone(), left, refusal: None });
    if changes.is_empty() {
        return Ok(plan);
    }
    let description = "columns that were missing".to_owned();
    let migrations = vec![PlannedMigration { version, description, changes }];
    plan.mode = Mode::MetadataOnly;
    plan.warnings = for_others(&migrations.iter().collect::<Vec<_>>(), state);
    plan.warnings.extend(behind);
    plan.commits = vec![PlannedCommit {
        how: How::Reconciled,
        from: version,
        to: version,
        floor: None,
        floor_changes: false,
        digest: None,
        why: None,
        migrations,
        content: Evolved::content(evolution, state),
        data: None,
    }];
    Ok(plan)
}

/// The same to look at: what would be added, what else differs, and why `reconcile` would refuse.
pub(crate) fn schema_diff(namespace: &Namespace, desired: &Desired, state: &TableState) -> SchemaDiff {
    let Compared { changes, left, refusal, .. } = compare(namespace, desired, state);
    let refusal = refusal.map(|refusal| ErrorReport::of(&refusal.at(Stage::Plan)));
    SchemaDiff { adds: changes, left, refusal }
}

pub(crate) fn missing() -> Refusal {
    Refusal::new(
        ErrorCode::Missing,
        "there is no table",
        "check the location; `reconcile` and `diff` work on tables that exist",
    )
}

/// The version that a table's stamp says.
pub(crate) fn stamped(assessment: &Assessment) -> Option<SchemaVersion> {
    match assessment {
        Assessment::Current { version } | Assessment::Drifted { version, .. } => Some(*version),
        Assessment::Ahead { table, .. } => Some(*table),
        Assessment::Behind { from, .. } => Some(*from),
        _ => None,
    }
}

struct Compared {
    assessment: Assessment,
    changes: Vec<Change>,
    evolution: Evolution,
    left: Vec<SchemaDifference>,
    refusal: Option<Refusal>,
}

fn compare(namespace: &Namespace, desired: &Desired, state: &TableState) -> Compared {
    let assessment = match desired.kind() {
        Some(kind) => assess(namespace, kind, Some(state)),
        None => assess_for_schema(namespace, state),
    };
    let shape = desired.shape();
    let wanted = Wanted { columns: desired.columns(), shape: shape.as_ref(), desired };
    let mut evolution = Evolution::of(state);
    let (mut changes, mut refusal) = (Vec::new(), None);
    let additions = wanted.additions(&state.columns);
    for column in &additions {
        match evolution.add_column(column) {
            Ok(change) => changes.push(change),
            Err(why) => {
                refusal.get_or_insert(never_upgraded(why));
                changes.push(added(column));
            }
        }
    }
    // What differs once the columns are there is what differs in the end, and on every later run.
    let mut left = Left::new(desired);
    let waiting = |at: &ColumnPath| additions.iter().any(|column| column.path == *at);
    for difference in walk(evolution.columns(), desired.columns()) {
        if !matches!(difference.differs, Differs::New(field) if field.nullable && waiting(&difference.at)) {
            left.take(&difference, &wanted);
        }
    }
    if let Some(shape) = shape.as_ref().filter(|_| desired.kind().is_some()) {
        left.take_table(shape, state);
    }
    let refusal = refusal_of(&assessment)
        .or_else(|| required(&left.required))
        .or_else(|| if changes.is_empty() { None } else { check_gate(state).err() })
        .or(refusal);
    Compared { assessment, changes, evolution, left: left.found, refusal }
}

/// What is wanted of the table.
pub(super) struct Wanted<'a> {
    columns: &'a [Field],
    shape: Option<&'a Shape>,
    desired: &'a Desired,
}

impl Wanted<'_> {
    /// The columns that can be added to a table of these.
    fn additions(&self, have: &[Field]) -> Vec<AddedColumn> {
        let mut out = Vec::new();
        for Walked { at, differs } in walk(have, self.columns) {
            let (at, field) = match differs {
                Differs::New(field) => (at, field),
                Differs::Renamed { new, field, why, .. } if !self.is_held_back(&new, why) => (new, field),
                _ => continue,
            };
            if field.nullable && !self.partitions(&at) && is_addable(&field.data_type) {
                let data_type = field.data_type.loosened();
                out.push(AddedColumn { path: at, data_type, comment: field.comment.clone() });
            }
        }
        out
    }

    /// Whether a column is likely one that the table has under another name, and nobody said otherwise.
    /// A place alone says too little: two programs add columns of their own at the same place.
    fn is_held_back(&self, new: &ColumnPath, why: Likeness) -> bool {
        why != Likeness::Place && !self.desired.adds(new)
    }

    /// Whether the kind's tables are partitioned by that column. Files lie where the values of partition
    /// columns say, so that none can be added later.
    fn partitions(&self, at: &ColumnPath) -> bool {
        let partition_by = self.shape.map_or(&[][..], |shape| &shape.partition_by);
        at.parent().is_empty() && partition_by.iter().any(|name| same_name(name, at.name()))
    }
}

/// Whether a column of this type can be added: void holds nothing, and a struct needs a field.
fn is_addable(data_type: &DataType) -> bool {
    let mut structs = Vec::new();
    data_type.structs(&[], &mut structs);
    let unknown = |p: &&Primitive| matches!(p, Primitive::Void | Primitive::Other(_));
    !data_type.primitives().iter().any(unknown) && structs.iter().all(|(_, fields)| !fields.is_empty())
}

fn added(column: &AddedColumn) -> Change {
    let AddedColumn { path, data_type, comment } = column;
    Change::AddColumn { path: path.to_string(), type_text: data_type.to_string(), comment: comment.clone() }
}

/// Refusals that ask for a step of a migration mean something else here.
fn never_upgraded(refusal: Refusal) -> Refusal {
    if refusal.code != ErrorCode::UnsupportedFeature || !refusal.hint.contains("enable_features") {
        return refusal;
    }
    let hint = "`reconcile` never upgrades a protocol, because that can't be undone: enable the feature with the \
                engine that writes the table or with a kind's migration (`enable_features`), or use another type; \
                nothing was written";
    Refusal { hint: hint.to_owned(), ..refusal }
}

/// A table without a kind in question: one that has versions belongs to the kind that gave them.
fn assess_for_schema(namespace: &Namespace, state: &TableState) -> Assessment {
    let stamps = match Stamps::read(namespace, &state.metadata.configuration) {
        Ok(stamps) => stamps,
        Err(InvalidStamp { property, value, wanted }) => {
            return Assessment::InvalidStamp { property, value, wanted };
        }
    };
    match (stamps.kind, stamps.schema_version, stamps.min_version) {
        (Some(kind), _, _) => {
            Assessment::NotThisKind { expected: String::new(), found: FoundKind::Stamp(kind) }
        }
        (None, Some(_), _) => {
            Assessment::NotThisKind { expected: String::new(), found: FoundKind::Stamp(String::new()) }
        }
        (None, None, Some(min_version)) if min_version > MinVersion::new(0) => {
            Assessment::TooNew { min_version, known: SchemaVersion::ZERO, raised_by: None }
        }
        _ => Assessment::Unversioned,
    }
}

/// The refusals of an assessment that hold here: a table that drifted, lost its stamp or is behind may
/// get what it lacks, and a feature matters only where something is written.
fn refusal_of(assessment: &Assessment) -> Option<Refusal> {
    match assessment {
        Assessment::NotThisKind { expected, found: FoundKind::Stamp(stamp) } if expected.is_empty() => {
            let of = match stamp.as_str() {
                "" => "a kind".to_owned(),
                stamp => format!("kind `{}`", text::shorten(stamp, 64)),
            };
            Some(Refusal::new(
                ErrorCode::NotThisKind,
                format!("the table is stamped by {of}, whose migrations say which columns it has"),
                "write a migration for it; or compare it with that kind's newest shape (`--kind`) instead of a \
                 schema",
            ))
        }
        Assessment::InvalidStamp { .. }
        | Assessment::NotThisKind { .. }
        | Assessment::TooNew { .. }
        | Assessment::Diverged { .. } => assessment.refusal(),
        _ => None,
    }
}

fn required(paths: &[String]) -> Option<Refusal> {
    let message = match paths {
        [] => return None,
        [path] => format!("the table lacks {path}, which is required"),
        paths => format!("the table lacks {}, which are required", text::list(paths)),
    };
    Some(Refusal::new(ErrorCode::RequiredColumn, message, REQUIRED))
}

/// Columns of migrations that are pending come without their stamps.
fn pending(desired: &Desired, assessment: &Assessment) -> Option<String> {
    let Assessment::Behind { from, to } = assessment else { return None };
    let kind = desired.kind()?;
    let what = text::count(kind.between(*from, *to).count(), "migration");
    Some(format!(
        "the table is at version {from}: {what} of kind `{}` stay pending, for no stamp is touched; \
         `delta-migrate apply` carries them out and leaves alone what is there",
        kind.name()
    ))
}

#[cfg(test)]
mod tests;
