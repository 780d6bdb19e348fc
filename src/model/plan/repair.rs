//! Plans that a person asks for: `baseline` and the three ways of `repair`.

use super::{
    Base, Content, Evolved, Floor, Mode, Plan, PlannedCommit, PlannedMigration, check_gate, check_history,
    floor_warning,
};
use crate::error::ErrorCode;
use crate::model::assess::{Assessment, FoundKind, assess, fits_shape};
use crate::model::digest::ChainDigest;
use crate::model::evolve::Evolution;
use crate::model::history::How;
use crate::model::kind::Kind;
use crate::model::migration::AddedColumn;
use crate::model::path::ColumnPath;
use crate::model::refusal::Refusal;
use crate::model::state::{Stamps, TableState, keys};
use crate::model::text::shorten;
use crate::model::types::{Target, resolve};
use crate::model::version::{MinVersion, Namespace, SchemaVersion};

/// A way out of `drifted`, `stamp_lost`, `diverged`, an unreadable stamp or a floor raised by mistake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Repair {
    /// Adds the columns that the stamp promises and the table lacks; lost values stay lost.
    ReaddColumns,
    /// Stamps this version, after checking that the table's columns fit it.
    Restamp(SchemaVersion),
    /// Lowers the floor to this.
    LowerFloor(MinVersion),
}

/// Stamps a table without a stamp at `at`, once its columns are known to fit.
pub(crate) fn plan_baseline(
    namespace: &Namespace,
    kind: &Kind,
    state: Option<&TableState>,
    at: SchemaVersion,
) -> Result<Plan, Refusal> {
    let state = state.ok_or_else(missing)?;
    let assessment = assess(namespace, kind, Some(state));
    let stamp = Stamps::read(namespace, &state.metadata.configuration).ok().and_then(|s| s.schema_version);
    if stamp == Some(at) && assessment.refusal().is_none() {
        return Ok(Plan::new(namespace, kind, Some(state), assessment));
    }
    match (&assessment, stamp) {
        (Assessment::Unversioned | Assessment::Unsupported { .. }, None) => {}
        (_, Some(stamp)) if assessment.refusal().is_none() => {
            return Err(Refusal::new(
                ErrorCode::Diverged,
                format!("the table is stamped at version {stamp} already, not at {at}"),
                "`baseline` is for tables without a stamp; `delta-migrate repair TABLE --restamp N --why …` \
                 corrects a wrong one",
            ));
        }
        _ => return Err(assessment.refusal().unwrap_or_else(missing)),
    }
    stamp_at(namespace, kind, state, assessment, at, How::Adopted, None)
}

/// Works out one repair; `why` goes into the history.
pub(crate) fn plan_repair(
    namespace: &Namespace,
    kind: &Kind,
    state: Option<&TableState>,
    repair: Repair,
    why: &str,
) -> Result<Plan, Refusal> {
    let state = state.ok_or_else(missing)?;
    let assessment = assess(namespace, kind, Some(state));
    if matches!(assessment, Assessment::NotThisKind { .. }) {
        return Err(assessment.refusal().unwrap_or_else(missing));
    }
    match repair {
        Repair::ReaddColumns => readd(namespace, kind, state, assessment, why),
        Repair::Restamp(at) => {
            if matches!(assessment, Assessment::TooNew { .. }) {
                return Err(assessment.refusal().unwrap_or_else(missing));
            }
            stamp_at(namespace, kind, state, assessment, at, How::Repaired, Some(why))
        }
        Repair::LowerFloor(floor) => lower_floor(namespace, kind, state, assessment, floor, why),
    }
}

fn missing() -> Refusal {
    Refusal::new(ErrorCode::Missing, "there is no table", "check the location")
}

/// A plan of one commit that leaves the version at `at`.
fn of_one(mut plan: Plan, state: &TableState, commit: PlannedCommit, warnings: Vec<String>) -> Plan {
    plan.base = Some(Base {
        log_version: state.log_version,
        table_id: state.metadata.id.clone(),
        fingerprint: state.fingerprint(),
    });
    plan.from = commit.from;
    plan.to = commit.to;
    plan.mode = Mode::MetadataOnly;
    plan.warnings = warnings;
    plan.warnings.push(
        "transactions of other writers that are in flight when the commit lands fail with a metadata conflict"
            .to_owned(),
    );
    plan.commits = vec![commit];
    plan
}

fn unchanged(state: &TableState) -> Content {
    Evolved::content(Evolution::of(state), state)
}

fn stamp_at(
    namespace: &Namespace,
    kind: &Kind,
    state: &TableState,
    assessment: Assessment,
    at: SchemaVersion,
    how: How,
    why: Option<&str>,
) -> Result<Plan, Refusal> {
    if at > kind.newest() {
        return Err(Refusal::new(
            ErrorCode::Usage,
            format!(
                "version {at} is beyond kind `{}`, whose newest version is {}",
                kind.name(),
                kind.newest()
            ),
            "name a version that the kind's chain has",
        ));
    }
    check_gate(state)?;
    fits_shape(kind, at, state).map_err(|refusal| match how {
        How::Repaired => Refusal {
            hint: "restamp a version whose columns the table has; if the kind file was edited after it shipped, \
                   put it back as it was"
                .to_owned(),
            ..refusal
        },
        _ => refusal,
    })?;
    let get = |key: &str| state.metadata.configuration.get(&namespace.property(key));
    // An unreadable stamp hides the others from the assessment, so that they are looked at here.
    if let Some(other) = get(keys::KIND).filter(|k| !k.is_empty() && *k != kind.name()) {
        let found = FoundKind::Stamp(other.clone());
        let stranger = Assessment::NotThisKind { expected: kind.name().to_owned(), found };
        return Err(stranger.refusal().unwrap_or_else(missing));
    }
    let min_version = get(keys::MIN_VERSION);
    let floor = min_version.and_then(|v| MinVersion::from_stamp(v));
    if let Some(floor) = floor.filter(|f| f.get() > kind.newest().get()) {
        let too_new = Assessment::TooNew { min_version: floor, known: kind.newest(), raised_by: None };
        return Err(too_new.refusal().unwrap_or_else(missing));
    }
    let unreadable = min_version.filter(|_| floor.is_none());
    let from = get(keys::SCHEMA_VERSION).and_then(|v| SchemaVersion::from_stamp(v));
    let mut new_floor = Floor::of(floor, kind.floor_at(at));
    let mut warnings = Vec::new();
    if let Some(lost) = state.evidence.filter(|lost| *lost > at) {
        warnings.push(format!(
            "the log says that the table was at version {lost}: the migrations after {at} are carried out again"
        ));
    }
    if let Some(from) = from.filter(|from| *from > at) {
        warnings.push(format!(
            "lowers the stamp from {from} to {at}: the migrations in between are carried out again, and leave alone \
             what is there"
        ));
    }
    if let Some(text) = unreadable {
        new_floor = Floor { stamp: Some(new_floor.stamp.unwrap_or_default()), changes: true };
        warnings.push(format!("the min version `{}` can't be read and is replaced", shorten(text, 60)));
    }
    if how == How::Repaired
        && crate::model::history::entries(get(keys::HISTORY).map_or("[]", |h| h)).is_none()
    {
        warnings.push("the history can't be read and is begun anew".to_owned());
    } else if how != How::Repaired {
        check_history(namespace, state)?;
    }
    if let Some(floor) = new_floor.stamp.filter(|_| new_floor.changes) {
        warnings.push(floor_warning(kind, floor));
    }
    let plan =
        Plan { chain: ChainDigest::of(kind, at), ..Plan::new(namespace, kind, Some(state), assessment) };
    let commit = PlannedCommit {
        how,
        from: from.unwrap_or(at),
        to: at,
        floor: new_floor.stamp,
        floor_changes: new_floor.changes,
        digest: Some(plan.chain.clone()),
        why: why.map(str::to_owned),
        migrations: Vec::new(),
        content: unchanged(state),
        data: None,
    };
    Ok(of_one(plan, state, commit, warnings))
}

fn lower_floor(
    namespace: &Namespace,
    kind: &Kind,
    state: &TableState,
    assessment: Assessment,
    floor: MinVersion,
    why: &str,
) -> Result<Plan, Refusal> {
    let stamps = Stamps::read(namespace, &state.metadata.configuration);
    let stamps = stamps.map_err(|_| assessment.refusal().unwrap_or_else(missing))?;
    let Some(old) = stamps.min_version.filter(|old| floor < *old) else {
        let now = stamps.min_version.map_or("none".to_owned(), |f| f.to_string());
        return Err(Refusal::new(
            ErrorCode::Usage,
            format!("the table's floor is {now}, so it can't be lowered to {floor}"),
            "name a floor below the table's; nothing else lowers one",
        ));
    };
    check_gate(state)?;
    check_history(namespace, state)?;
    let Some(version) = stamps.schema_version else {
        let hint = "the table needs a stamp first: `delta-migrate repair TABLE --restamp N --why …`, or \
                    `delta-migrate baseline TABLE --at N`. If the floor forbids that too, unset the property with \
                    the engine that writes the table";
        let code = if state.evidence.is_some() { ErrorCode::StampLost } else { ErrorCode::Unversioned };
        return Err(Refusal::new(code, "the table has a floor, but no schema version", hint));
    };
    let chain = kind.floor_at(version.min(kind.newest()));
    let mut warnings =
        vec![format!("lowers the floor from {old} to {floor}: older releases may write again")];
    if let Some(chain) = chain.filter(|c| *c > floor) {
        warnings.push(format!(
            "the chain of kind `{}` raises the floor to {chain}: releases below it may miswrite rows, and the \
             next migration raises the floor again",
            kind.name()
        ));
    }
    let commit = PlannedCommit {
        how: How::Repaired,
        from: version,
        to: version,
        floor: Some(floor),
        floor_changes: true,
        // The chain's digest may be longer than ours on a table that is ahead; it stays.
        digest: None,
        why: Some(why.to_owned()),
        migrations: Vec::new(),
        content: unchanged(state),
        data: None,
    };
    Ok(of_one(Plan::new(namespace, kind, Some(state), assessment), state, commit, warnings))
}

fn readd(
    namespace: &Namespace,
    kind: &Kind,
    state: &TableState,
    assessment: Assessment,
    why: &str,
) -> Result<Plan, Refusal> {
    let (version, differences) = match &assessment {
        Assessment::Drifted { version, differences } => (*version, differences),
        Assessment::Unversioned => {
            return Err(Refusal::new(
                ErrorCode::Unversioned,
                "the table has no stamp, so that nothing says which columns it should have",
                "`delta-migrate baseline TABLE --at N` stamps it, or `delta-migrate apply` takes it over",
            ));
        }
        other => {
            return other
                .refusal()
                .map_or_else(|| Ok(Plan::new(namespace, kind, Some(state), other.clone())), Err);
        }
    };
    // Added again by a release that does not know the step, such a column would be another, empty one.
    if version > kind.newest() {
        return Err(Refusal::new(
            ErrorCode::Drifted,
            format!(
                "the table is at version {version}, and {} is known here: a later migration may have renamed or \
                 dropped what it lacks",
                kind.newest()
            ),
            "upgrade this program, or repair the table with the release that migrated it",
        ));
    }
    let lacks = |path: &&ColumnPath| resolve(&state.columns, path.segments()).is_none();
    if let Some(path) = kind.identified_by().iter().find(lacks) {
        return Err(Refusal::new(
            ErrorCode::NotThisKind,
            format!("the table lacks `{path}`, by which tables of kind `{}` are known", kind.name()),
            "the kind stamp may be wrong: check which kind the table is before columns are added to it; a wrong \
             stamp is removed by unsetting the property with the engine that writes the table",
        ));
    }
    if differences.iter().any(|d| d.found.is_some()) {
        let refusal = assessment.refusal().unwrap_or_else(missing);
        return Err(Refusal {
            hint: "a column has another type: only missing columns can be added again".to_owned(),
            ..refusal
        });
    }
    check_gate(state)?;
    check_history(namespace, state)?;
    let shape = kind.shape_at(version.min(kind.newest()));
    let mut evolution = Evolution::of(state);
    let (mut changes, mut warnings) = (Vec::new(), Vec::new());
    for difference in differences {
        let path: ColumnPath = difference.path.parse().map_err(|_| missing())?;
        let Some(Target::Field(field)) = resolve(&shape.columns, path.segments()) else { continue };
        if shape.partition_by.iter().any(|p| p == path.name()) && path.parent().is_empty() {
            return Err(Refusal::new(
                ErrorCode::Drifted,
                format!("the partition column `{path}` is missing"),
                "a partition column can't be added to a table; recreate it",
            ));
        }
        if !field.nullable {
            warnings.push(format!(
                "`{path}` was required and comes back nullable: old rows have no value for it"
            ));
        }
        let added =
            AddedColumn { path, data_type: field.data_type.loosened(), comment: field.comment.clone() };
        changes.push(evolution.add_column(&added)?);
    }
    let description = format!("columns of version {version} added again");
    let commit = PlannedCommit {
        how: How::Repaired,
        from: version,
        to: version,
        floor: None,
        floor_changes: false,
        digest: None,
        why: Some(why.to_owned()),
        migrations: vec![PlannedMigration { version, description, changes }],
        content: Evolved::content(evolution, state),
        data: None,
    };
    Ok(of_one(Plan::new(namespace, kind, Some(state), assessment), state, commit, warnings))
}
