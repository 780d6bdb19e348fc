//! Chain digests: canonical bytes of what a chain *does*, hashed with SHA-256.
//!
//! The encoding is state: every stamped table holds its result. It covers effects only, so that a
//! comment, a description or the spelling of a type can be mended in a shipped migration. A golden
//! test pins it.

use std::fmt;

use sha2::{Digest, Sha256};

use super::kind::Kind;
use super::migration::{AddedColumn, Migration, Step};
use super::path::ColumnPath;
use super::types::{DataType, Field};
use super::version::SchemaVersion;

/// The encoding that this crate writes.
pub(crate) const SCHEME: &str = "1";

/// Whether a text can be one part of a chain's digest.
pub(crate) fn is_part(text: &str) -> bool {
    let hex = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
    text.len() == 8 && text.bytes().all(hex)
}

/// The digest of a chain up to a version: the base shape's, then one a migration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ChainDigest(Vec<String>);

impl ChainDigest {
    /// That of no chain.
    pub(crate) fn none() -> Self {
        Self(Vec::new())
    }

    /// The digest of `kind` up to `version`.
    pub(crate) fn of(kind: &Kind, version: SchemaVersion) -> Self {
        let migrations = kind.migrations().iter().take(version.index());
        Self([base(kind)].into_iter().chain(migrations.map(migration)).collect())
    }

    /// The parts: the base shape's digest at 0, then migration n's at n.
    pub(crate) fn parts(&self) -> &[String] {
        &self.0
    }

    /// Reads a stamp. `Ok(None)` for an encoding of a later release, which can't be compared.
    pub(crate) fn from_stamp(text: &str) -> Result<Option<Self>, ()> {
        let (scheme, rest) = text.split_once(':').ok_or(())?;
        if scheme.is_empty() || !scheme.bytes().all(|b| b.is_ascii_digit()) {
            return Err(());
        }
        if scheme != SCHEME {
            return Ok(None);
        }
        let parts: Vec<String> = rest.split(',').map(str::to_owned).collect();
        if parts.iter().all(|p| is_part(p)) { Ok(Some(Self(parts))) } else { Err(()) }
    }

    /// The first position at which two chains differ as far as both go: 0 is the base shape,
    /// n is migration n.
    pub(crate) fn parts_from(&self, other: &Self) -> Option<SchemaVersion> {
        let at = self.0.iter().zip(&other.0).position(|(a, b)| a != b)?;
        u32::try_from(at).ok().map(SchemaVersion::new)
    }
}

impl fmt::Display for ChainDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME}:{}", self.0.join(","))
    }
}

/// Writes length-prefixed parts, so that no two different lists of parts give the same bytes.
#[derive(Default)]
struct Canonical(Vec<u8>);

impl Canonical {
    fn text(&mut self, text: &str) -> &mut Self {
        self.number(text.len());
        self.0.extend_from_slice(text.as_bytes());
        self
    }

    fn number(&mut self, number: usize) -> &mut Self {
        self.0.extend_from_slice(format!("{number};").as_bytes());
        self
    }

    fn path(&mut self, path: &ColumnPath) -> &mut Self {
        self.number(path.segments().len());
        for s in path.segments().iter() {
            self.text(s);
        }
        self
    }

    fn pairs<'a>(&mut self, pairs: impl ExactSizeIterator<Item = (&'a String, &'a String)>) -> &mut Self {
        // By key: the order in which properties are set has no effect.
        let mut pairs: Vec<_> = pairs.collect();
        pairs.sort_unstable();
        self.number(pairs.len());
        for (k, v) in pairs.iter() {
            self.text(k).text(v);
        }
        self
    }

    fn field(&mut self, field: &Field) -> &mut Self {
        let Field { name, data_type, nullable, comment: _ } = field;
        self.text(name).number(usize::from(*nullable)).data_type(data_type)
    }

    fn data_type(&mut self, data_type: &DataType) -> &mut Self {
        match data_type {
            DataType::Primitive(_) => self.text(&data_type.to_string()),
            DataType::Array { element, contains_null } => {
                self.text("array").number(usize::from(*contains_null)).data_type(element)
            }
            DataType::Map { key, value, value_contains_null } => {
                self.text("map").number(usize::from(*value_contains_null)).data_type(key).data_type(value)
            }
            DataType::Struct(fields) => {
                self.text("struct").number(fields.len());
                for f in fields.iter() {
                    self.field(f);
                }
                self
            }
        }
    }

    fn finish(&self) -> String {
        Sha256::digest(&self.0).iter().take(4).map(|b| format!("{b:02x}")).collect()
    }
}

fn base(kind: &Kind) -> String {
    let mut out = Canonical::default();
    out.text("base").number(kind.columns().len());
    for f in kind.columns().iter() {
        out.field(f);
    }
    out.number(kind.partition_by().len());
    for p in kind.partition_by().iter() {
        out.text(p);
    }
    out.pairs(kind.properties().iter());
    out.finish()
}

fn migration(migration: &Migration) -> String {
    let Migration {
        description: _,
        source: _,
        raises_min_version,
        min_version_waived: _,
        destructive: _,
        steps,
    } = migration;
    let mut out = Canonical::default();
    out.text("migration").number(usize::from(*raises_min_version));
    steps.iter().for_each(|s| step(&mut out, s));
    out.finish()
}

fn step(out: &mut Canonical, step: &Step) {
    let texts = |out: &mut Canonical, items: &[String]| {
        out.number(items.len());
        for i in items.iter() {
            out.text(i);
        }
    };
    if matches!(step, Step::Comments(_) | Step::TableDescription(_)) {
        return;
    }
    out.text(step.name());
    match step {
        Step::Comments(_) | Step::TableDescription(_) => {}
        Step::DropConstraints(items) | Step::EnableFeatures(items) | Step::UnsetProperties(items) => {
            texts(out, items)
        }
        Step::RenameColumns(renames) => {
            out.number(renames.len());
            for (path, new) in renames.iter() {
                out.path(path).text(new);
            }
        }
        Step::WidenTypes(changes) | Step::RetypeColumns(changes) => {
            out.number(changes.len());
            for (path, data_type) in changes.iter() {
                out.path(path).data_type(data_type);
            }
        }
        Step::RelaxNullability(paths) | Step::DropColumns(paths) => {
            out.number(paths.len());
            for p in paths.iter() {
                out.path(p);
            }
        }
        Step::AddColumns(columns) => {
            out.number(columns.len());
            for AddedColumn { path, data_type, comment: _ } in columns {
                out.path(path).data_type(data_type);
            }
        }
        Step::SetProperties(pairs) | Step::SetDefaults(pairs) | Step::AddConstraints(pairs) => {
            out.pairs(pairs.iter());
        }
        Step::Run(function) => {
            out.text(&function.name);
        }
        Step::Update { set, predicate } => {
            out.pairs(set.iter()).text(predicate.trim());
        }
    }
}

#[cfg(test)]
mod tests;
