//! A kind, a table's state and a target give a plan: data that says what would be committed.

mod losses;
mod repair;
mod split;

use indexmap::IndexMap;
use serde::Serialize;

pub use repair::Repair;
pub(crate) use repair::{plan_baseline, plan_repair};

use super::assess::{Assessment, adoption, assess, differences, refused_features};
use super::digest::ChainDigest;
use super::evolve::{Change, Evolution, NEEDS_DEFAULTS, NameRules, cannot_enable, unsupported};
use super::features::{self, Protocol};
use super::history::{self, How};
use super::kind::{Kind, Shape};
use super::migration::Step;
use super::path::ColumnPath;
use super::reconcile::SchemaDiff;
use super::refusal::Refusal;
use super::state::{Stamps, TableState};
use super::text;
use super::types::{leads_through_a_map, same_name};
use super::version::{LogVersion, MinVersion, Namespace, SchemaVersion};
use crate::error::ErrorCode;

/// How far to carry a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Target {
    /// To the newest version of its kind.
    #[default]
    Newest,
    /// To this version; a table that is beyond it is left alone.
    Version(SchemaVersion),
    /// As far as no older release is shut out.
    BelowFloor,
}

/// What carrying a plan out costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Mode {
    /// Nothing is to be done.
    NoChange,
    /// The table is created.
    Create,
    /// One commit that changes the log only.
    MetadataOnly,
    /// Data is moved.
    Rewrite,
}

impl Mode {
    /// The word in reports.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::NoChange => "no_change",
            Self::Create => "create",
            Self::MetadataOnly => "metadata_only",
            Self::Rewrite => "rewrite",
        }
    }
}

/// What would be done with one table, for which state of it, and what that means for others.
///
/// A plan is made by [`Migrator::plan`](crate::Migrator::plan) and carried out by
/// [`Migrator::apply`](crate::Migrator::apply). It holds no choices: whatever can be refused was
/// refused when it was made.
#[derive(Debug, Clone)]
pub struct Plan {
    pub(crate) namespace: Namespace,
    pub(crate) kind: String,
    /// The chain that the plan was made with, up to its target.
    pub(crate) chain: ChainDigest,
    pub(crate) assessment: Assessment,
    /// The table's floor before.
    pub(crate) floor: Option<MinVersion>,
    /// The table that the plan was made for; none where it is to be created.
    pub(crate) base: Option<Base>,
    pub(crate) from: SchemaVersion,
    pub(crate) to: SchemaVersion,
    pub(crate) mode: Mode,
    pub(crate) commits: Vec<PlannedCommit>,
    pub(crate) warnings: Vec<String>,
    /// What data steps will read and write, where that was looked up.
    pub(crate) rewrite: Option<Rewrite>,
    /// The names of the table's columns before.
    pub(crate) columns: Vec<String>,
    /// What the table is to get, and what else differs, where it is compared with a schema.
    pub(crate) diff: Option<SchemaDiff>,
}

/// The state of the table that a plan was made for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Base {
    pub(crate) log_version: LogVersion,
    pub(crate) table_id: String,
    pub(crate) fingerprint: String,
}

/// One commit to make.
#[derive(Debug, Clone)]
pub(crate) struct PlannedCommit {
    pub(crate) how: How,
    pub(crate) from: SchemaVersion,
    pub(crate) to: SchemaVersion,
    /// The floor to stamp; none leaves the property as it is.
    pub(crate) floor: Option<MinVersion>,
    /// Whether the floor is another than before.
    pub(crate) floor_changes: bool,
    pub(crate) digest: Option<ChainDigest>,
    pub(crate) why: Option<String>,
    pub(crate) migrations: Vec<PlannedMigration>,
    pub(crate) content: Content,
    /// What is to be done with the table's files before the commit may stamp.
    pub(crate) data: Option<DataWork>,
}

/// The data steps of one commit.
#[derive(Debug, Clone)]
pub(crate) struct DataWork {
    /// The version of the migration that they begin with.
    pub(crate) version: SchemaVersion,
    pub(crate) description: String,
    /// In the order in which they are done.
    pub(crate) steps: Vec<Step>,
}

/// What a rewrite will read and write, at most: taken from the files' entries in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, serde::Deserialize)]
#[non_exhaustive]
pub struct Rewrite {
    /// Files that may hold rows to change.
    pub files: u64,
    /// Their rows; none where a file has no statistics.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows: Option<u64>,
    /// Their bytes.
    pub bytes: u64,
}

/// One migration of a commit and what it changes on this table.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct PlannedMigration {
    pub(crate) version: SchemaVersion,
    pub(crate) description: String,
    pub(crate) changes: Vec<Change>,
}

/// The metadata that a commit leaves, without the stamps.
#[derive(Debug, Clone)]
pub(crate) enum Content {
    Create { shape: Box<Shape>, protocol: Protocol },
    Evolve(Box<Evolved>),
}

/// An existing table's metadata and protocol as they will be.
#[derive(Debug, Clone)]
pub(crate) struct Evolved {
    pub(crate) schema_text: String,
    /// Where it changes.
    pub(crate) description: Option<String>,
    pub(crate) properties: IndexMap<String, Option<String>>,
    /// Where it changes.
    pub(crate) protocol: Option<Protocol>,
}

impl From<super::data::Counts> for Rewrite {
    fn from(counts: super::data::Counts) -> Self {
        let rows = counts.rows_updated.saturating_add(counts.rows_copied);
        Self { files: counts.files_removed, rows: Some(rows), bytes: counts.bytes_removed }
    }
}

impl Evolved {
    pub(super) fn content(evolution: Evolution, state: &TableState) -> Content {
        let Evolution { schema_text, description, properties, protocol, .. } = evolution;
        let protocol = (protocol != state.protocol).then_some(protocol);
        Content::Evolve(Box::new(Self { schema_text, description, properties, protocol }))
    }
}

impl Plan {
    /// The table's kind.
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// How the table stood to its kind when the plan was made.
    pub fn assessment(&self) -> &Assessment {
        &self.assessment
    }

    /// The version that the table has, or is taken to have.
    pub fn from(&self) -> SchemaVersion {
        self.from
    }

    /// The version that it will have.
    pub fn to(&self) -> SchemaVersion {
        self.to
    }

    /// What carrying it out costs.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// The log version that it was made for; none where there is no table yet.
    pub fn log_version(&self) -> Option<LogVersion> {
        self.base.as_ref().map(|b| b.log_version)
    }

    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.commits.is_empty()
    }

    /// What data steps will read and rewrite; none where there are none.
    pub fn rewrite(&self) -> Option<Rewrite> {
        self.rewrite
    }

    /// Whether files are read or rewritten.
    pub(crate) fn moves_data(&self) -> bool {
        self.commits.iter().any(|c| c.data.is_some())
    }

    /// What it changes on a table that exists, in the order in which it is done. A creation has no
    /// changes: the table is born with its newest shape.
    pub fn changes(&self) -> impl Iterator<Item = &Change> {
        self.commits.iter().flat_map(|c| &c.migrations).flat_map(|m| &m.changes)
    }

    /// What the plan means for readers and other writers, in sentences.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    fn new(namespace: &Namespace, kind: &Kind, state: Option<&TableState>, assessment: Assessment) -> Self {
        let version = match &assessment {
            Assessment::Current { version } | Assessment::Ahead { table: version, .. } => *version,
            Assessment::Behind { from, .. } => *from,
            _ => SchemaVersion::ZERO,
        };
        let chain = ChainDigest::of(kind, version);
        Self {
            from: version,
            to: version,
            ..Self::empty(namespace, kind.name().to_owned(), chain, state, assessment)
        }
    }

    /// A plan that does nothing, of a table at no version.
    pub(super) fn empty(
        namespace: &Namespace,
        kind: String,
        chain: ChainDigest,
        state: Option<&TableState>,
        assessment: Assessment,
    ) -> Self {
        Self {
            namespace: namespace.clone(),
            kind,
            chain,
            assessment,
            floor: state
                .and_then(|s| Stamps::read(namespace, &s.metadata.configuration).ok())
                .and_then(|s| s.min_version),
            base: state.map(|s| Base {
                log_version: s.log_version,
                table_id: s.metadata.id.clone(),
                fingerprint: s.fingerprint(),
            }),
            from: SchemaVersion::ZERO,
            to: SchemaVersion::ZERO,
            mode: Mode::NoChange,
            commits: Vec::new(),
            warnings: Vec::new(),
            rewrite: None,
            columns: state.iter().flat_map(|s| &s.columns).map(|c| c.name.clone()).collect(),
            diff: None,
        }
    }

    /// The names of the table's columns afterwards.
    pub(crate) fn columns_after(&self) -> Vec<String> {
        let mut columns = self.columns.clone();
        let top = |path: &str| {
            let path: ColumnPath = path.parse().ok()?;
            path.parent().is_empty().then(|| path.name().to_owned())
        };
        for change in self.changes() {
            match change {
                Change::AddColumn { path, .. } => columns.extend(top(path)),
                Change::RenameColumn { path, to } => {
                    let at = top(path).and_then(|old| columns.iter_mut().find(|c| same_name(c, &old)));
                    at.into_iter().for_each(|column| column.clone_from(to));
                }
                Change::DropColumn { path, .. } => {
                    let gone = top(path);
                    columns.retain(|c| gone.as_ref().is_none_or(|gone| !same_name(c, gone)));
                }
                _ => {}
            }
        }
        columns
    }
}

/// Works out what is to be done, or why nothing may be done.
pub(crate) fn plan(
    namespace: &Namespace,
    kind: &Kind,
    state: Option<&TableState>,
    target: Target,
) -> Result<Plan, Refusal> {
    let assessment = assess(namespace, kind, state);
    if let Some(refusal) = assessment.refusal() {
        return Err(refusal);
    }
    let Some(state) = state else { return create(namespace, kind, target, assessment) };
    let mut plan = Plan::new(namespace, kind, Some(state), assessment);
    let (from, how) = match &plan.assessment {
        Assessment::Behind { from, .. } => (*from, How::Migrated),
        Assessment::Unversioned => (adoption(kind, state)?, How::Adopted),
        _ => return Ok(plan),
    };
    let to = reach(kind, from, target)?;
    plan.from = from;
    plan.to = from.max(to);
    if plan.to == from && how == How::Migrated {
        return Ok(plan);
    }
    check_gate(state)?;
    check_steps(kind, from, plan.to)?;
    let floor = Floor::at(namespace, kind, state, plan.to);
    plan.commits = split::commits(namespace, kind, state, (from, plan.to), how)?;
    plan.mode = if plan.moves_data() { Mode::Rewrite } else { Mode::MetadataOnly };
    plan.chain = ChainDigest::of(kind, plan.to);
    let migrations: Vec<&PlannedMigration> = plan.commits.iter().flat_map(|c| &c.migrations).collect();
    plan.warnings = warnings(kind, from, how, &floor, &migrations, state);
    check_history(namespace, state)?;
    Ok(plan)
}

/// The version that a target means for a table at `from`.
fn reach(kind: &Kind, from: SchemaVersion, target: Target) -> Result<SchemaVersion, Refusal> {
    let newest = kind.newest();
    match target {
        Target::Newest => Ok(newest),
        Target::Version(version) if version > newest => Err(Refusal::new(
            ErrorCode::Usage,
            format!("target {version} is beyond kind `{}`, whose newest version is {newest}", kind.name()),
            "name a version that the kind's chain has",
        )),
        Target::Version(version) => Ok(version),
        Target::BelowFloor => {
            let raising = kind.between(from, newest).find(|(_, m)| m.raises_min_version());
            Ok(raising.map_or(newest, |(v, _)| SchemaVersion::new(v.get() - 1)))
        }
    }
}

/// The features of the table, for a commit that assessment did not ask about.
pub(super) fn check_gate(state: &TableState) -> Result<(), Refusal> {
    let features = refused_features(state);
    if features.is_empty() {
        return Ok(());
    }
    Assessment::Unsupported { features }.refusal().map_or(Ok(()), Err)
}

/// Every pending step must be one that this build takes, before any of them is planned.
fn check_steps(kind: &Kind, from: SchemaVersion, to: SchemaVersion) -> Result<(), Refusal> {
    for (version, migration) in kind.between(from, to) {
        if let Some(step) = migration.steps.iter().find(|s| !s.is_supported()) {
            let refusal = unsupported(step);
            let message = format!("migration {version} (`{}`): {}", migration.description(), refusal.message);
            return Err(Refusal { message, ..refusal });
        }
    }
    Ok(())
}

/// What a step left alone, because it was there already, must be what the kind promises: else the
/// table would be `drifted` right after the commit.
fn check_result(kind: &Kind, to: SchemaVersion, evolution: &Evolution) -> Result<(), Refusal> {
    match differences(&kind.shape_at(to), evolution.columns()).first() {
        None => Ok(()),
        Some(difference) => Err(Refusal::new(
            ErrorCode::TypeConflict,
            format!("the table would not be at version {to} afterwards: {}", difference.text()),
            "check that this is the right kind for the table, and change the table's column first; nothing was \
             written",
        )),
    }
}

/// A history that can't be read is never replaced silently: it is the user's record.
fn check_history(namespace: &Namespace, state: &TableState) -> Result<(), Refusal> {
    let property = namespace.property(super::state::keys::HISTORY);
    match state.metadata.configuration.get(&property) {
        Some(text) if history::entries(text).is_none() => Err(Refusal::new(
            ErrorCode::InvalidStamp,
            format!("property `{property}` is `{}`; wanted a JSON array of objects", text::shorten(text, 60)),
            "find out which program wrote it; `delta-migrate repair TABLE --restamp N --why …` starts a new record",
        )),
        _ => Ok(()),
    }
}

/// The floor that a commit leaves: the greater of the table's and the chain's.
pub(super) struct Floor {
    pub(super) stamp: Option<MinVersion>,
    pub(super) changes: bool,
}

impl Floor {
    fn at(namespace: &Namespace, kind: &Kind, state: &TableState, to: SchemaVersion) -> Self {
        let table = Stamps::read(namespace, &state.metadata.configuration).ok().and_then(|s| s.min_version);
        Self::of(table, kind.floor_at(to))
    }

    pub(super) fn of(table: Option<MinVersion>, chain: Option<MinVersion>) -> Self {
        let stamp = table.max(chain);
        Self { stamp, changes: stamp != table }
    }
}

fn warnings(
    kind: &Kind,
    from: SchemaVersion,
    how: How,
    floor: &Floor,
    migrations: &[&PlannedMigration],
    state: &TableState,
) -> Vec<String> {
    let mut out = Vec::new();
    if how == How::Adopted {
        out.push(format!(
            "the table has no stamp: it is taken over as kind `{}` at version {from}",
            kind.name()
        ));
    }
    out.push(in_flight(state));
    if migrations.iter().flat_map(|m| &m.changes).any(|c| matches!(c, Change::EnableFeature { .. })) {
        out.push(
            "upgrades the protocol, which can't be undone: readers and writers that do not know the feature are \
             shut out"
                .to_owned(),
        );
    }
    out.extend(fixed_schema(migrations));
    out.extend(losses::warnings(migrations.iter().flat_map(|m| &m.changes), &state.metadata.configuration));
    if let Some(floor) = floor.stamp.filter(|_| floor.changes) {
        out.push(floor_warning(kind, floor));
    }
    out.extend(what_others_cannot_read(migrations, state));
    out
}

/// What columns that are added mean for readers and other writers.
pub(super) fn for_others(migrations: &[&PlannedMigration], state: &TableState) -> Vec<String> {
    let mut out = vec![in_flight(state)];
    out.extend(fixed_schema(migrations));
    out.extend(what_others_cannot_read(migrations, state));
    out
}

fn in_flight(state: &TableState) -> String {
    let busy = match state.recent_commits {
        // A commit every few minutes or less is nothing to plan around.
        0..10 => String::new(),
        n => format!(" (the hour before its newest commit saw {})", text::count(n as usize, "more commit")),
    };
    format!(
        "transactions of other writers that are in flight when the commit lands fail with a metadata conflict \
         and must be rerun by their owners{busy}"
    )
}

fn fixed_schema(migrations: &[&PlannedMigration]) -> Option<String> {
    let schema_changes = migrations.iter().flat_map(|m| &m.changes).any(|c| {
        matches!(
            c,
            Change::AddColumn { .. }
                | Change::RelaxNullability { .. }
                | Change::Comment { .. }
                | Change::RenameColumn { .. }
                | Change::WidenType { .. }
                | Change::DropColumn { .. }
        )
    });
    schema_changes.then(|| "readers that stream with a fixed schema stop and must be restarted".to_owned())
}

fn what_others_cannot_read(migrations: &[&PlannedMigration], state: &TableState) -> Vec<String> {
    let mut out = Vec::new();
    let through_map = |c: &Change| match c {
        Change::AddColumn { path, .. } => path
            .parse()
            .is_ok_and(|p: super::path::ColumnPath| leads_through_a_map(&state.columns, p.segments())),
        _ => false,
    };
    if migrations.iter().flat_map(|m| &m.changes).any(through_map) {
        out.push(
            "adds a field inside a map: some releases of delta-rs (1.6.6 in Python) can't read the files that were \
             written before"
                .to_owned(),
        );
    }
    if state.protocol.has("typeWidening") || state.protocol.has("typeWidening-preview") {
        out.push("the table uses type widening, which some releases of delta-rs can't open".to_owned());
    }
    out
}

pub(super) fn floor_warning(kind: &Kind, floor: MinVersion) -> String {
    format!(
        "raises the floor to {floor}: releases that know fewer than {} of kind `{}` stop writing, and no \
         rollback below that is possible",
        text::count(floor.get() as usize, "migration"),
        kind.name()
    )
}

/// A missing table is born at the target's shape.
fn create(
    namespace: &Namespace,
    kind: &Kind,
    target: Target,
    assessment: Assessment,
) -> Result<Plan, Refusal> {
    let to = reach(kind, SchemaVersion::ZERO, target)?;
    check_steps(kind, SchemaVersion::ZERO, to)?;
    let shape = kind.shape_at(to);
    if shape.columns.is_empty() {
        return Err(Refusal::new(
            ErrorCode::UnknownShape,
            format!("kind `{}` has no columns, so no table can be created from it", kind.name()),
            "create the table with the program that knows its columns; the chain is applied afterwards",
        ));
    }
    if let Some(feature) = shape.features.iter().find(|f| features::enabling(f).is_none()) {
        return Err(cannot_enable(feature));
    }
    let rules = NameRules::of(&shape.properties);
    shape.columns.iter().try_for_each(|f| rules.check_field(&f.name, &f.data_type, true))?;
    let protocol = features::protocol_at_birth(&shape.columns, &shape.properties, &shape.features).map_err(|features| {
        Refusal::new(
            ErrorCode::UnsupportedFeature,
            format!("a table with {} can't be created here", text::list(&features)),
            "create the table with an engine that knows the feature, or take the property out of [properties]",
        )
    })?;
    if let Some((column, _)) = shape.defaults.first().filter(|_| !protocol.has("allowColumnDefaults")) {
        return Err(Refusal::new(
            ErrorCode::UnsupportedFeature,
            format!("`{column}` can't get a default: that needs the table feature `allowColumnDefaults`"),
            NEEDS_DEFAULTS,
        ));
    }
    let mut plan = Plan::new(namespace, kind, None, assessment);
    let floor = Floor::of(None, kind.floor_at(to));
    if let Some(floor) = floor.stamp {
        plan.warnings.push(format!(
            "the table is born with floor {floor}: releases that know fewer than {} of kind `{}` can't write it",
            text::count(floor.get() as usize, "migration"),
            kind.name()
        ));
    }
    plan.to = to;
    plan.mode = Mode::Create;
    plan.chain = ChainDigest::of(kind, to);
    plan.commits = vec![PlannedCommit {
        how: How::Created,
        from: SchemaVersion::ZERO,
        to,
        floor: floor.stamp,
        floor_changes: floor.changes,
        digest: Some(plan.chain.clone()),
        why: None,
        migrations: Vec::new(),
        content: Content::Create { shape: Box::new(shape), protocol },
        data: None,
    }];
    Ok(plan)
}

#[cfg(test)]
mod tests;
