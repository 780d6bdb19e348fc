//! Pending migrations as commits: one, or where rows are filled in as many as that takes.
//!
//! A fill trusts its predicate, so that what it needs lands first (columns, and the floor that keeps older
//! releases out), and its stamp after it. Everything else of one run goes into the same commit: what the
//! log alone is changed by, constraints, and one rewrite of the files.

use super::{Content, DataWork, Evolved, Floor, PlannedCommit, PlannedMigration};
use crate::model::digest::ChainDigest;
use crate::model::evolve::{Change, Evolution};
use crate::model::history::How;
use crate::model::kind::Kind;
use crate::model::migration::{Migration, Step};
use crate::model::path::ColumnPath;
use crate::model::refusal::Refusal;
use crate::model::state::TableState;
use crate::model::version::{Namespace, SchemaVersion};

/// The commit that is being put together.
struct Open {
    how: How,
    from: SchemaVersion,
    to: SchemaVersion,
    migrations: Vec<PlannedMigration>,
    data: Option<DataWork>,
}

impl Open {
    fn new(how: How, at: SchemaVersion) -> Self {
        Self { how, from: at, to: at, migrations: Vec::new(), data: None }
    }

    /// Whether it holds anything that has to land before rows are filled in.
    fn is_needed(&self, floor: &Floor) -> bool {
        let changes = self.changes().any(Change::is_effective);
        self.how == How::Adopted || self.to > self.from || changes || floor.changes || self.data.is_some()
    }

    /// Whether a data step can join it: the files still say what its changes speak of.
    fn is_foreseen(&self) -> bool {
        self.changes().all(is_foreseen)
    }

    fn changes(&self) -> impl Iterator<Item = &Change> {
        self.migrations.iter().flat_map(|m| &m.changes)
    }

    fn rewrites(&self) -> bool {
        self.data.iter().flat_map(|d| &d.steps).any(Step::rewrites)
    }

    fn note(&mut self, version: SchemaVersion, migration: &Migration, changes: Vec<Change>) {
        match self.migrations.last_mut().filter(|m| m.version == version) {
            Some(same) => same.changes.extend(changes),
            None => {
                let description = migration.description().to_owned();
                self.migrations.push(PlannedMigration { version, description, changes });
            }
        }
    }

    /// Notes data steps, of those that change something.
    fn work(&mut self, version: SchemaVersion, migration: &Migration, steps: &[Step], changes: &[Change]) {
        let is_due = |step: &&Step| match step {
            Step::RetypeColumns(_) => changes.iter().any(|c| matches!(c, Change::RetypeColumn { .. })),
            Step::AddConstraints(_) => changes.iter().any(|c| matches!(c, Change::AddConstraint { .. })),
            step => step.moves_data(),
        };
        let steps: Vec<Step> = steps.iter().filter(is_due).cloned().collect();
        if steps.is_empty() {
            return;
        }
        let data = self.data.get_or_insert_with(|| DataWork {
            version,
            description: migration.description().to_owned(),
            steps: Vec::new(),
        });
        data.steps.extend(steps);
    }
}

/// Changes after which a data step of the same commit finds the columns that it speaks of in the files as
/// they are, or as columns of nulls.
fn is_foreseen(change: &Change) -> bool {
    match change {
        Change::AddColumn { path, .. } => path.parse::<ColumnPath>().is_ok_and(|p| p.parent().is_empty()),
        Change::LeaveColumn { .. }
        | Change::Comment { .. }
        | Change::RelaxNullability { .. }
        | Change::TableDescription { .. }
        | Change::SetProperty { .. }
        | Change::UnsetProperty { .. }
        | Change::EnableFeature { .. }
        | Change::DropConstraint { .. }
        | Change::SetDefault { .. }
        | Change::Update { .. }
        | Change::RetypeColumn { .. }
        | Change::AddConstraint { .. } => true,
        #[allow(unreachable_patterns)]
        _ => false,
    }
}

struct Split<'a> {
    namespace: &'a Namespace,
    kind: &'a Kind,
    state: &'a TableState,
    evolution: Evolution,
    done: Vec<PlannedCommit>,
    open: Open,
}

impl Split<'_> {
    /// The floor at a version; whether it changes is told of the first commit that has it.
    fn floor(&self, at: SchemaVersion) -> Floor {
        let floor = Floor::at(self.namespace, self.kind, self.state, at);
        let before = self.done.last().map(|c| c.floor);
        Floor { changes: before.map_or(floor.changes, |before| before != floor.stamp), ..floor }
    }

    /// Closes the commit, with the floor of a version that it may not have reached.
    fn close(&mut self, floor_at: SchemaVersion) {
        let floor = self.floor(floor_at);
        let next = Open::new(How::Migrated, self.open.to);
        let Open { how, from, to, migrations, data } = std::mem::replace(&mut self.open, next);
        self.done.push(PlannedCommit {
            how,
            from,
            to,
            floor: floor.stamp,
            floor_changes: floor.changes,
            digest: Some(ChainDigest::of(self.kind, to)),
            why: None,
            migrations,
            content: content(&self.evolution, self.state),
            data,
        });
    }
}

fn content(evolution: &Evolution, state: &TableState) -> Content {
    Evolved::content(evolution.clone(), state)
}

pub(super) fn commits(
    namespace: &Namespace,
    kind: &Kind,
    state: &TableState,
    (from, to): (SchemaVersion, SchemaVersion),
    how: How,
) -> Result<Vec<PlannedCommit>, Refusal> {
    let evolution = Evolution::of(state);
    let mut split = Split { namespace, kind, state, evolution, done: Vec::new(), open: Open::new(how, from) };
    for (version, migration) in kind.between(from, to) {
        let (before, behind) = migration.halves();
        let fills = behind.iter().any(Step::fills);
        if behind.iter().any(Step::rewrites) && split.open.rewrites() {
            split.close(split.open.to);
        }
        let changes = split.evolution.apply(before)?;
        let notes_only = !changes.iter().any(Change::is_effective);
        let first = if fills && notes_only && !split.open.is_needed(&split.floor(version)) {
            // Nothing has to land before: what is only noted is told with the data step.
            changes
        } else {
            split.open.note(version, migration, changes);
            if fills || (!behind.is_empty() && !split.open.is_foreseen()) {
                split.close(if fills { version } else { split.open.to });
            }
            Vec::new()
        };
        if !behind.is_empty() {
            let more = split.evolution.apply(behind)?;
            split.open.work(version, migration, behind, &more);
            split.open.note(version, migration, first.into_iter().chain(more).collect());
        }
        split.open.to = version;
    }
    super::check_result(kind, to, &split.evolution)?;
    split.close(to);
    Ok(split.done)
}
