//! What a release that does not know a migration would do with the table afterwards.
//!
//! The older release that is meant asks the table for its schema and fills in the columns that it knows
//! (*append*), or lets its writer merge its own columns into the table's (*merge*); an *overwrite* merges
//! likewise, and takes all other rows away. One that replaces the schema undoes every migration alike,
//! needs no new one for it, and is found as `drifted`. Each answer for a step that is carried out was seen
//! to happen with the writers of deltalake (tests/it/lock/cells.rs and tests/real/older_releases.py execute
//! them), but for those on tables that deltalake writes neither before nor after the step: column mapping,
//! type widening and defaults. Those, and the answers for the steps to come, follow from PROTOCOL.md.

use std::collections::BTreeSet;

use serde::Serialize;

use super::features::{self, Protocol};
use super::kind::{Kind, Shape};
use super::migration::{Migration, Step};
use super::types::leads_through_a_map;
use super::version::SchemaVersion;

/// What becomes of one operation of an older release, the worst last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Consequence {
    /// It goes on as before.
    NothingNew,
    /// NULL stands, or is read, where a release that knows the migration would have a value.
    ReadsNull,
    /// It reads something else than what was written.
    Misreads,
    /// What it writes is wrong to releases that know the migration.
    Miswrites,
    /// It can't read the rows.
    CannotRead,
    /// Its commit fails.
    CannotWrite,
}

impl Consequence {
    /// The words for people.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::NothingNew => "nothing new",
            Self::ReadsNull => "reads NULL",
            Self::Misreads => "misreads",
            Self::Miswrites => "miswrites",
            Self::CannotRead => "cannot read",
            Self::CannotWrite => "cannot write",
        }
    }

    /// Whether an older release had better be stopped.
    pub(crate) fn asks_for_a_floor(self) -> bool {
        self >= Self::Misreads
    }
}

/// The consequences of one step, by what the older release does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct StepConsequences {
    /// The step's key in a kind file.
    pub(crate) step: &'static str,
    pub(crate) append: Consequence,
    pub(crate) merge: Consequence,
    pub(crate) overwrite: Consequence,
    pub(crate) read: Consequence,
}

impl StepConsequences {
    const fn new(step: &'static str, writes: Consequence, read: Consequence) -> Self {
        Self { step, append: writes, merge: writes, overwrite: writes, read }
    }

    /// The operations with their answers, in the order of the table.
    pub(crate) fn cells(&self) -> [(&'static str, Consequence); 4] {
        let Self { step: _, append, merge, overwrite, read } = *self;
        [("append", append), ("merge", merge), ("overwrite", overwrite), ("read", read)]
    }

    fn worst(self, other: Self) -> Self {
        Self {
            step: self.step,
            append: self.append.max(other.append),
            merge: self.merge.max(other.merge),
            overwrite: self.overwrite.max(other.overwrite),
            read: self.read.max(other.read),
        }
    }
}

/// The consequences of every step of a migration of the kind, in the order of the steps.
pub(crate) fn of_migration(
    kind: &Kind,
    version: SchemaVersion,
    migration: &Migration,
) -> Vec<StepConsequences> {
    let mut shape = kind.shape_at(SchemaVersion::new(version.get().saturating_sub(1)));
    let mut out = Vec::new();
    for step in &migration.steps {
        out.push(of_step(&shape, step));
        shape.apply_step(step);
    }
    out
}

/// The operations of older releases that ask for a floor after these steps; empty if none does.
pub(crate) fn harmed(steps: &[StepConsequences]) -> Vec<(&'static str, &'static str, Consequence)> {
    let cells = steps.iter().flat_map(|s| s.cells().map(|(operation, answer)| (s.step, operation, answer)));
    cells.filter(|(_, _, answer)| answer.asks_for_a_floor()).collect()
}

fn of_step(before: &Shape, step: &Step) -> StepConsequences {
    use Consequence::{CannotRead, CannotWrite, Misreads, Miswrites, NothingNew, ReadsNull};
    let all = |writes, read| StepConsequences::new(step.name(), writes, read);
    match step {
        Step::Comments(_)
        | Step::TableDescription(_)
        // Those that turn features on are refused in these steps; of the rest, the ones that a writer
        // obeys tell it how to write files, not what rows mean.
        | Step::SetProperties(_)
        | Step::UnsetProperties(_)
        | Step::DropConstraints(_) => all(NothingNew, NothingNew),
        Step::AddColumns(columns) => {
            let in_map = columns.iter().any(|c| leads_through_a_map(&before.columns, c.path.segments()));
            match in_map {
                // Arrow's cast, which DataFusion uses to merge and to scan older files, takes no maps.
                true => StepConsequences { append: ReadsNull, ..all(CannotWrite, CannotRead) },
                false => all(ReadsNull, NothingNew),
            }
        }
        Step::RelaxNullability(_) => all(NothingNew, ReadsNull),
        Step::EnableFeatures(features) => {
            let mut protocol = protocol_of(before);
            let each = features.iter().map(|feature| of_feature(&mut protocol, feature));
            each.fold(all(NothingNew, NothingNew), StepConsequences::worst)
        }
        // Its rows lack what `update` promises of every row, until `update` runs again.
        Step::Update { .. } | Step::Run(_) => all(Miswrites, NothingNew),
        // A default is no NULL to those who know it.
        Step::SetDefaults(_) => all(Miswrites, NothingNew),
        // It fills a column that is not there any more, and brings it back if it merges.
        Step::RenameColumns(_) | Step::DropColumns(_) | Step::RetypeColumns(_) => all(Miswrites, Misreads),
        Step::WidenTypes(_) => all(NothingNew, Misreads),
        // It knows no constraint that its rows might break.
        Step::AddConstraints(_) => all(CannotWrite, NothingNew),
    }
}

/// The protocol that a table of this shape has at least.
fn protocol_of(shape: &Shape) -> Protocol {
    features::protocol_at_birth(&shape.columns, &shape.properties, &shape.features).unwrap_or(Protocol {
        min_reader: 1,
        min_writer: 2,
        reader_features: None,
        writer_features: None,
    })
}

/// Writer features that every build of deltalake 1.1 writes; some more only with DataFusion.
const WRITTEN: [&str; 5] = ["appendOnly", "deletionVectors", "timestampNtz", "v2Checkpoint", "variantType"];

/// Reader features that deltalake 1.1 lacks; it opens such a table, and refuses to scan it.
const NOT_READ: [&str; 2] = ["typeWidening", "vacuumProtocolCheck"];

fn of_feature(protocol: &mut Protocol, feature: &str) -> StepConsequences {
    use Consequence::{CannotRead, CannotWrite, NothingNew};
    let is_new = !protocol.has(feature);
    let before = asked_for(protocol);
    protocol.add(feature);
    let after = asked_for(protocol);
    let writable = after.difference(&before).all(|f| WRITTEN.contains(&f.as_str()));
    let writes = if is_new && !writable { CannotWrite } else { NothingNew };
    let read = if is_new && NOT_READ.contains(&feature) { CannotRead } else { NothingNew };
    let mut answers = StepConsequences::new("enable_features", writes, read);
    if feature == "appendOnly" {
        // The property comes with the feature: rows can't be taken away any more.
        answers.overwrite = CannotWrite;
    }
    answers
}

/// The features that deltalake's writers are asked for by name.
fn asked_for(protocol: &Protocol) -> BTreeSet<String> {
    if protocol.min_writer <= 2 {
        // Writer version 2 implies `invariants` too, but builds of deltalake without DataFusion, which
        // don't have it, write such tables all the same; they no longer do once it is listed.
        return BTreeSet::from(["appendOnly".to_owned()]);
    }
    protocol.features().into_iter().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests;
