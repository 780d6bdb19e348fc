//! A kind and a table's state give an assessment.

use serde::Serialize;

use super::digest::ChainDigest;
use super::features;
use super::kind::{Adopt, Kind, Shape};
use super::path::ColumnPath;
use super::refusal::Refusal;
use super::state::{InvalidStamp, Stamps, TableState};
use super::text;
use super::types::{DataType, Field, find, resolve};
use super::version::{MinVersion, Namespace, SchemaVersion};
use crate::error::ErrorCode;

/// How a table stands to its kind; where several hold, the first of this list counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Assessment {
    /// There is no table.
    Missing,
    /// A stamp can't be read.
    InvalidStamp {
        /// The property.
        property: String,
        /// Its value.
        value: String,
        /// What would be right.
        wanted: &'static str,
    },
    /// The table is of another kind.
    NotThisKind {
        /// The kind that was asked for.
        expected: String,
        /// What the table says instead.
        found: FoundKind,
    },
    /// The floor shuts this release out: it must not write.
    TooNew {
        /// The table's floor.
        min_version: MinVersion,
        /// How many migrations this release knows.
        known: SchemaVersion,
        /// The release that raised the floor, from the table's history.
        #[serde(skip_serializing_if = "Option::is_none")]
        raised_by: Option<String>,
    },
    /// The chain that migrated the table is another one from migration `at` on (0: the base shape).
    Diverged {
        /// The first migration that differs.
        at: SchemaVersion,
        /// Its description in the chain that this release knows.
        #[serde(skip_serializing_if = "Option::is_none")]
        description: Option<String>,
    },
    /// The table has no stamp.
    Unversioned,
    /// The stamp vanished; the evidence says which version it had.
    StampLost {
        /// The version that the evidence names.
        evidence: SchemaVersion,
    },
    /// Columns that the stamp promises are missing or have incompatible types.
    Drifted {
        /// The stamped version.
        version: SchemaVersion,
        /// What differs.
        differences: Vec<Difference>,
    },
    /// Work is pending, but the table's protocol asks for what is not handled here.
    Unsupported {
        /// The features by name.
        features: Vec<String>,
    },
    /// A newer release migrated the table and its floor lets this one write.
    Ahead {
        /// The table's version.
        table: SchemaVersion,
        /// How many migrations this release knows.
        known: SchemaVersion,
    },
    /// Migrations are pending.
    Behind {
        /// The table's version.
        from: SchemaVersion,
        /// The kind's newest version.
        to: SchemaVersion,
    },
    /// Nothing is pending.
    Current {
        /// The table's version.
        version: SchemaVersion,
    },
}

/// What a table is instead of the expected kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FoundKind {
    /// It carries another kind's stamp.
    Stamp(String),
    /// It has no kind stamp and lacks these columns of `identified_by`.
    WithoutColumns(Vec<String>),
}

/// A column that is not what the stamp promises.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Difference {
    /// The column's path.
    pub path: String,
    /// The type that the shape says.
    pub wanted: String,
    /// The type in the table; none where the column is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub found: Option<String>,
}

impl Difference {
    /// One line for people.
    pub(crate) fn text(&self) -> String {
        let Self { path, wanted, found } = self;
        match found {
            None => format!("`{path}` ({wanted}) is missing"),
            Some(found) => format!("`{path}` is {found}, not {wanted}"),
        }
    }
}

/// Compares a table with its kind; `None` is a location without a table.
pub(crate) fn assess(namespace: &Namespace, kind: &Kind, state: Option<&TableState>) -> Assessment {
    let Some(state) = state else { return Assessment::Missing };
    let stamps = match Stamps::read(namespace, &state.metadata.configuration) {
        Ok(stamps) => stamps,
        Err(InvalidStamp { property, value, wanted }) => {
            return Assessment::InvalidStamp { property, value, wanted };
        }
    };
    if let Some(found) = other_kind(kind, &stamps, state) {
        return Assessment::NotThisKind { expected: kind.name().to_owned(), found };
    }
    let known = kind.newest();
    if let Some(min_version) = stamps.min_version.filter(|floor| floor.get() > known.get()) {
        let raised_by = super::history::raised_by(stamps.history.as_deref(), min_version);
        return Assessment::TooNew { min_version, known, raised_by };
    }
    if let Some(at) = stamps.digest.as_ref().and_then(|d| d.parts_from(&ChainDigest::of(kind, known))) {
        let description = at.index().checked_sub(1).and_then(|i| kind.migrations().get(i));
        return Assessment::Diverged { at, description: description.map(|m| m.description().to_owned()) };
    }
    let pending = match (stamps.schema_version, state.evidence) {
        (None, Some(evidence)) => return Assessment::StampLost { evidence },
        (None, None) => Assessment::Unversioned,
        (Some(version), _) => {
            let differences = differences(&kind.shape_at(version.min(known)), &state.columns);
            if !differences.is_empty() && !is_begun(kind, version, state) {
                return Assessment::Drifted { version, differences };
            }
            match version.cmp(&known) {
                std::cmp::Ordering::Greater => return Assessment::Ahead { table: version, known },
                std::cmp::Ordering::Equal => return Assessment::Current { version },
                std::cmp::Ordering::Less => Assessment::Behind { from: version, to: known },
            }
        }
    };
    let features = refused_features(state);
    if features.is_empty() { pending } else { Assessment::Unsupported { features } }
}

/// Whether the table stands between the commits of the migration after `version`: what its data step
/// needs has landed, a renaming for instance, and its stamp has not.
fn is_begun(kind: &Kind, version: SchemaVersion, state: &TableState) -> bool {
    let Some(next) = kind.migrations().get(version.index()) else { return false };
    let (before, behind) = next.halves();
    if behind.is_empty() {
        return false;
    }
    let mut shape = kind.shape_at(version);
    before.iter().for_each(|step| shape.apply_step(step));
    differences(&shape, &state.columns).is_empty()
}

/// Everything about a table that forbids a commit of ours.
pub(crate) fn refused_features(state: &TableState) -> Vec<String> {
    let mut refused = features::refused(&state.protocol, &state.metadata.configuration);
    refused.extend(features::unlisted_types(&state.protocol, &state.columns));
    refused
}

/// The kind stamp decides; without one, the columns of `identified_by` do.
fn other_kind(kind: &Kind, stamps: &Stamps, state: &TableState) -> Option<FoundKind> {
    match &stamps.kind {
        Some(stamp) if stamp == kind.name() => None,
        Some(stamp) => Some(FoundKind::Stamp(stamp.clone())),
        None => {
            let there = |path: &ColumnPath| resolve(&state.columns, path.segments()).is_some();
            let missing: Vec<String> =
                kind.identified_by().iter().filter(|p| !there(p)).map(ToString::to_string).collect();
            (!missing.is_empty()).then_some(FoundKind::WithoutColumns(missing))
        }
    }
}

/// What a table lacks of a shape: missing columns and incompatible types, at any depth. Widened
/// types, relaxed nullability, other comments and further columns are no differences.
pub(crate) fn differences(shape: &Shape, columns: &[Field]) -> Vec<Difference> {
    let mut out = Vec::new();
    compare(&shape.columns, columns, &[], &mut out);
    out
}

fn compare(wanted: &[Field], found: &[Field], at: &[String], out: &mut Vec<Difference>) {
    for field in wanted {
        let path = [at, std::slice::from_ref(&field.name)].concat();
        match find(found, &field.name) {
            None => out.push(difference(&path, &field.data_type, None)),
            Some(other) => compare_types(&field.data_type, &other.data_type, &path, out),
        }
    }
}

fn compare_types(wanted: &DataType, found: &DataType, at: &[String], out: &mut Vec<Difference>) {
    let below = |step: &str| [at, &[step.to_owned()]].concat();
    match (wanted, found) {
        (DataType::Struct(a), DataType::Struct(b)) => compare(a, b, at, out),
        (DataType::Array { element: a, .. }, DataType::Array { element: b, .. }) => {
            compare_types(a, b, &below("element"), out);
        }
        (DataType::Map { key, value, .. }, DataType::Map { key: key2, value: value2, .. }) => {
            compare_types(key, key2, &below("key"), out);
            compare_types(value, value2, &below("value"), out);
        }
        _ if wanted.fits(found) => {}
        _ => out.push(difference(at, wanted, Some(found))),
    }
}

fn difference(path: &[String], wanted: &DataType, found: Option<&DataType>) -> Difference {
    Difference {
        path: ColumnPath::of(path.to_vec()).to_string(),
        wanted: wanted.to_string(),
        found: found.map(ToString::to_string),
    }
}

/// The version at which a table without a stamp is taken over, by its kind's way of adoption.
pub(crate) fn adoption(kind: &Kind, state: &TableState) -> Result<SchemaVersion, Refusal> {
    match kind.adopt() {
        Adopt::Refuse => Err(Refusal::new(
            ErrorCode::Unversioned,
            format!("the table has no stamp, and kind `{}` says `adopt = \"refuse\"`", kind.name()),
            "find out which version it is at, then run `delta-migrate baseline TABLE --at N`",
        )),
        Adopt::FromZero => {
            let missing = differences(&kind.shape_at(SchemaVersion::ZERO), &state.columns);
            if missing.is_empty() {
                return Ok(SchemaVersion::ZERO);
            }
            Err(unknown_shape(&format!("the base shape of kind `{}`", kind.name()), &missing))
        }
        Adopt::Detect => detect(kind, state),
    }
}

/// The lowest of the versions that fit as well as the highest one that fits at all.
fn detect(kind: &Kind, state: &TableState) -> Result<SchemaVersion, Refusal> {
    if let Some((version, _)) = kind.numbered().find(|(_, m)| m.steps.iter().any(|s| s.renames_or_drops())) {
        return Err(Refusal::new(
            ErrorCode::Unversioned,
            format!("`adopt = \"detect\"` can't be used: migration {version} renames or drops columns"),
            "find out which version the table is at, then run `delta-migrate baseline TABLE --at N`",
        ));
    }
    let shapes: Vec<Shape> =
        (0..=kind.newest().get()).map(|n| kind.shape_at(SchemaVersion::new(n))).collect();
    let fits = |shape: &&Shape| differences(shape, &state.columns).is_empty();
    let Some(best) = shapes.iter().rev().find(fits) else {
        let missing = shapes.first().map(|s| differences(s, &state.columns)).unwrap_or_default();
        return Err(unknown_shape(
            &format!("no version of kind `{}`; the closest is 0", kind.name()),
            &missing,
        ));
    };
    let lowest = shapes.iter().position(|s| same_columns(s, best)).unwrap_or_default();
    Ok(SchemaVersion::new(u32::try_from(lowest).unwrap_or(u32::MAX)))
}

/// Whether two shapes have the same columns as far as a table's schema can tell.
fn same_columns(a: &Shape, b: &Shape) -> bool {
    a.columns.len() == b.columns.len()
        && a.columns
            .iter()
            .zip(&b.columns)
            .all(|(f, g)| f.name == g.name && f.data_type.same_as(&g.data_type))
}

/// Checks that a table's columns fit the shape at `version`.
pub(crate) fn fits_shape(kind: &Kind, version: SchemaVersion, state: &TableState) -> Result<(), Refusal> {
    let differences = differences(&kind.shape_at(version), &state.columns);
    if differences.is_empty() {
        return Ok(());
    }
    Err(unknown_shape(&format!("version {version} of kind `{}`", kind.name()), &differences))
}

fn unknown_shape(what: &str, differences: &[Difference]) -> Refusal {
    let shown: Vec<String> = differences.iter().take(5).map(Difference::text).collect();
    let more = differences.len().saturating_sub(shown.len());
    let more = if more > 0 { format!("; and {more} more") } else { String::new() };
    Refusal::new(
        ErrorCode::UnknownShape,
        format!("the table's columns do not fit {what}: {}{more}", shown.join("; ")),
        "check that this is the right kind for the table; a table that fits another version is taken over \
         with `delta-migrate baseline TABLE --at N`",
    )
}

impl Assessment {
    /// The refusal that the assessment amounts to, whatever the caller wants; none where a writer
    /// may go on or work can be planned.
    pub(crate) fn refusal(&self) -> Option<Refusal> {
        let refuse = |code, message: String, hint: String| Some(Refusal::new(code, message, hint));
        match self {
            Self::Missing | Self::Unversioned => None,
            Self::Ahead { .. } | Self::Behind { .. } | Self::Current { .. } => None,
            Self::InvalidStamp { property, value, wanted } => refuse(
                ErrorCode::InvalidStamp,
                format!("property `{property}` is `{}`; {wanted}", text::shorten(value, 60)),
                "find out which program wrote it; `delta-migrate repair TABLE --restamp N --why …` writes a \
                 right stamp after checking the columns"
                    .to_owned(),
            ),
            Self::NotThisKind { expected, found } => not_this_kind(expected, found),
            Self::TooNew { min_version, known, raised_by } => {
                let by = raised_by
                    .as_ref()
                    .map(|r| format!(", raised by release `{}`", text::shorten(r, 64)))
                    .unwrap_or_default();
                refuse(
                    ErrorCode::TooNew,
                    format!(
                        "only releases that know {} may write (min version {min_version}{by}); this one knows {}",
                        text::count(min_version.get() as usize, "migration"),
                        known.get()
                    ),
                    "upgrade this program, or its kind files, to those migrations; a floor raised by mistake is \
                     lowered with `delta-migrate repair TABLE --lower-floor N --why …`"
                        .to_owned(),
                )
            }
            Self::Diverged { at, description } => {
                let part = match description {
                    Some(text) => format!("migration {at} (`{text}`)"),
                    None => "the base shape".to_owned(),
                };
                refuse(
                    ErrorCode::Diverged,
                    format!("the table was migrated by another chain: {part} is not the one known here"),
                    "if the kind file was edited after it shipped, put it back as it was and append a migration; \
                     else compare it with the one that the other release ships. Where both do the same: \
                     `delta-migrate repair TABLE --restamp N --why …`"
                        .to_owned(),
                )
            }
            Self::StampLost { evidence } => refuse(
                ErrorCode::StampLost,
                format!("the stamp is gone, but the log still says that the table was at version {evidence}"),
                format!(
                    "a REPLACE or overwrite dropped the properties; check the columns, then run \
                     `delta-migrate repair TABLE --restamp {evidence} --why …`; where a RESTORE dropped them, \
                     say the version that its rows had"
                ),
            ),
            Self::Drifted { version, differences } => {
                let shown: Vec<String> = differences.iter().take(5).map(Difference::text).collect();
                let more = differences.len().saturating_sub(shown.len());
                let more = if more > 0 { format!("; and {more} more") } else { String::new() };
                let missing = differences.iter().all(|d| d.found.is_none());
                let hint = if missing {
                    "an overwrite with an old schema may have removed it: `delta-migrate repair TABLE \
                     --readd-columns --why …` adds it again (values stay lost). If the kind file was edited \
                     after it shipped, put it back as it was instead"
                } else {
                    "a column was changed behind this program's back; change its type back, or recreate the table"
                };
                refuse(
                    ErrorCode::Drifted,
                    format!("the stamp says version {version}, but {}{more}", shown.join("; ")),
                    hint.to_owned(),
                )
            }
            Self::Unsupported { features } => refuse(
                ErrorCode::UnsupportedFeature,
                format!("the table's protocol asks for {}, which is not handled here", text::list(features)),
                "migrate this table with an engine that knows the feature, or upgrade delta-migrate"
                    .to_owned(),
            ),
        }
    }

    /// Whether the assessment says that there is work to do.
    pub fn is_pending(&self) -> bool {
        matches!(self, Self::Missing | Self::Unversioned | Self::Behind { .. })
    }
}

fn not_this_kind(expected: &str, found: &FoundKind) -> Option<Refusal> {
    let (message, hint) = match found {
        FoundKind::Stamp(stamp) => (
            format!("the table is of kind `{}`, not `{expected}`", text::shorten(stamp, 64)),
            format!("name it as kind `{}`, or check the location", text::shorten(stamp, 64)),
        ),
        FoundKind::WithoutColumns(columns) => (
            format!("the table is not of kind `{expected}`: it lacks {}", text::list(columns)),
            format!(
                "check the location; `identified_by` in the kind file says what a table of kind `{expected}` has"
            ),
        ),
    };
    Some(Refusal::new(ErrorCode::NotThisKind, message, hint))
}

#[cfg(test)]
mod tests;
