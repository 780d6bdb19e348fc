//! A planned commit as the bytes of a log entry (PROTOCOL.md, Delta Log Entries).

use indexmap::IndexMap;
use serde_json::{Value, json};

use super::data::Actions;
use super::evolve::{CONSTRAINT, Change, DEFAULT};
use super::features::{Duties, Protocol, mapping_mode};
use super::history::{self, Entry, How};
use super::kind::Shape;
use super::mapping::{MAX_COLUMN_ID, Mapping};
use super::plan::{Content, Evolved, Plan, PlannedCommit};
use super::schema_edit;
use super::state::{TableState, keys};
use super::types::schema_json;

/// What only the moment of committing knows; made anew for each attempt.
#[derive(Debug, Clone)]
pub(crate) struct Moment {
    /// Milliseconds since the epoch, UTC.
    pub(crate) millis: i64,
    /// What in-commit timestamps ask for: above the one before. Used where the table asks for it.
    pub(crate) in_commit_timestamp: i64,
    /// The same instant as RFC 3339 in whole seconds.
    pub(crate) at: String,
    /// Unique to the commit; stays the same while its fate is unclear.
    pub(crate) commit_id: String,
    /// The id of a table that is created.
    pub(crate) table_id: String,
    /// Who migrates.
    pub(crate) release: String,
}

/// The key of [`Moment::commit_id`] in commitInfo, the one that Spark uses for the same purpose.
pub(crate) const COMMIT_ID: &str = "txnId";

/// How a commit came about that fills rows in and stamps nothing.
const FILLED: &str = "filled";

/// The operation of a commit that changes a table's version.
pub(crate) const MIGRATE: &str = "MIGRATE";

/// The operation of a commit that adds columns and leaves the stamps alone.
pub(crate) const RECONCILE: &str = "RECONCILE";

/// The lines of the entry, one action each; none where the state lacks the raw metadata.
///
/// `data` is the part of the table's files: where it is not the last of its step, it is all that is
/// committed, and nothing is stamped.
pub(crate) fn entry(
    plan: &Plan,
    commit: &PlannedCommit,
    state: Option<&TableState>,
    moment: &Moment,
    data: Option<&Actions>,
) -> Option<Vec<u8>> {
    let info = commit_info(plan, commit, state, moment, data);
    let mut actions = vec![json!({ "commitInfo": info }).to_string()];
    if data.is_none_or(|data| data.last) {
        actions.extend(metadata(plan, commit, state, moment)?);
    }
    actions.extend(data.iter().flat_map(|data| data.lines.iter().cloned()));
    let mut text = actions.join("\n");
    text.push('\n');
    // A raw value may hold line breaks where JSON allows white space; an action is one line.
    (text.lines().count() == actions.len()).then(|| text.into_bytes())
}

/// The actions that change protocol and metadata, and the evidence of the stamps.
fn metadata(
    plan: &Plan,
    commit: &PlannedCommit,
    state: Option<&TableState>,
    moment: &Moment,
) -> Option<Vec<String>> {
    // A reconciliation belongs to no version: stamps, record and evidence stay as they are.
    let is_stamped = commit.how != How::Reconciled;
    let stamps = if is_stamped { stamps(plan, commit, state, moment) } else { IndexMap::new() };
    let mut actions = Vec::new();
    match &commit.content {
        Content::Create { shape, protocol } => {
            actions.push(protocol_action(protocol));
            actions.push(json!({ "metaData": new_metadata(shape, &stamps, moment) }).to_string());
        }
        Content::Evolve(evolved) => {
            let Evolved { schema_text, description, properties, protocol } = evolved.as_ref();
            actions.extend(protocol.as_ref().map(protocol_action));
            let raw = state?.metadata.raw.as_deref()?;
            let stamps = stamps.into_iter().map(|(k, v)| (k, Some(v)));
            let properties = properties.clone().into_iter().chain(stamps).collect();
            let metadata =
                schema_edit::rewrite_metadata(raw, schema_text, description.as_deref(), &properties)?;
            actions.push(format!("{{\"metaData\":{metadata}}}"));
        }
    }
    if is_stamped {
        let app_id = plan.namespace.evidence_id(&plan.kind);
        let txn = json!({ "appId": app_id, "version": commit.to.get(), "lastUpdated": moment.millis });
        actions.push(json!({ "txn": txn }).to_string());
    }
    Some(actions)
}

/// The namespace's properties after the commit.
fn stamps(
    plan: &Plan,
    commit: &PlannedCommit,
    state: Option<&TableState>,
    moment: &Moment,
) -> IndexMap<String, String> {
    let key = |name: &str| plan.namespace.property(name);
    let mut out = IndexMap::new();
    out.insert(key(keys::SCHEMA_VERSION), commit.to.to_string());
    if let Some(floor) = commit.floor {
        out.insert(key(keys::MIN_VERSION), floor.to_string());
    }
    out.insert(key(keys::KIND), plan.kind.clone());
    if let Some(digest) = &commit.digest {
        out.insert(key(keys::DIGEST), digest.to_string());
    }
    let existing = state.and_then(|s| s.metadata.configuration.get(&key(keys::HISTORY)));
    let existing = existing.and_then(|h| history::entries(h)).unwrap_or_default();
    let entry = Entry {
        from: commit.from,
        to: commit.to,
        at: &moment.at,
        by: &moment.release,
        how: commit.how,
        why: commit.why.as_deref(),
        floor: commit.floor.filter(|_| commit.floor_changes),
    };
    out.insert(key(keys::HISTORY), history::append(&existing, &entry));
    out
}

/// What a commit says of itself: its operation, and the parameters of it. Spark reads these as a map of
/// strings, so nested values are JSON in a string.
fn operation(
    plan: &Plan,
    commit: &PlannedCommit,
    moment: &Moment,
    data: Option<&Actions>,
) -> (&'static str, Value) {
    let stamps = data.is_none_or(|data| data.last);
    if commit.how == How::Reconciled {
        let column = |change: &Change| match change {
            Change::AddColumn { path, type_text, comment: _ } => {
                Some(json!({ "path": path, "type": type_text }))
            }
            _ => None,
        };
        let columns: Vec<Value> =
            commit.migrations.iter().flat_map(|m| &m.changes).filter_map(column).collect();
        let mut parameters = json!({ "namespace": plan.namespace });
        if let Some(map) = parameters.as_object_mut() {
            if !plan.kind.is_empty() {
                map.insert("kind".to_owned(), Value::from(plan.kind.clone()));
            }
            map.insert("columns".to_owned(), Value::from(Value::from(columns).to_string()));
            map.insert("release".to_owned(), Value::from(moment.release.clone()));
        }
        return (RECONCILE, parameters);
    }
    let migrations: Vec<Value> = commit
        .migrations
        .iter()
        .filter(|m| !stamps || m.version <= commit.to)
        .map(|m| json!({ "version": m.version, "description": m.description }))
        .collect();
    let mut parameters = json!({
        "namespace": plan.namespace,
        "kind": plan.kind,
        "how": if stamps { json!(commit.how) } else { json!(FILLED) },
        "from": commit.from.to_string(),
        "to": if stamps { commit.to.to_string() } else { commit.from.to_string() },
        "migrations": Value::from(migrations).to_string(),
        "release": moment.release,
    });
    let mut put = |key: &str, value: Option<String>| {
        if let (Some(map), Some(value)) = (parameters.as_object_mut(), value) {
            map.insert(key.to_owned(), Value::from(value));
        }
    };
    put("floor", commit.floor.filter(|_| stamps).map(|f| f.to_string()));
    put("why", commit.why.clone());
    let steps =
        commit.data.as_ref().map(|d| d.steps.iter().map(super::migration::Step::name).collect::<Vec<_>>());
    put("data", steps.map(|s| s.join(",")));
    (MIGRATE, parameters)
}

fn commit_info(
    plan: &Plan,
    commit: &PlannedCommit,
    state: Option<&TableState>,
    moment: &Moment,
    data: Option<&Actions>,
) -> Value {
    let (operation, parameters) = operation(plan, commit, moment, data);
    let mut info = json!({
        "timestamp": moment.millis,
        "operation": operation,
        "operationParameters": parameters,
        "isBlindAppend": false,
        "engineInfo": concat!("delta-migrate/", env!("CARGO_PKG_VERSION")),
        COMMIT_ID: moment.commit_id,
    });
    let Some(map) = info.as_object_mut() else { return info };
    if let Some(data) = data.filter(|data| !data.lines.is_empty()) {
        let counts = &data.counts;
        let metrics = json!({
            "numRemovedFiles": counts.files_removed.to_string(),
            "numAddedFiles": counts.files_added.to_string(),
            "numUpdatedRows": counts.rows_updated.to_string(),
            "numCopiedRows": counts.rows_copied.to_string(),
            "numRemovedBytes": counts.bytes_removed.to_string(),
        });
        map.insert("operationMetrics".to_owned(), metrics);
    }
    if let Some(state) = state {
        map.insert("readVersion".to_owned(), Value::from(state.log_version.get()));
    }
    let duties = duties(commit, state);
    if duties.in_commit_timestamp {
        map.insert("inCommitTimestamp".to_owned(), Value::from(moment.in_commit_timestamp));
    }
    if duties.row_tracking {
        map.insert("tags".to_owned(), json!({ "delta.rowTracking.preserved": "true" }));
    }
    info
}

/// What the table asks of the commit itself: the one that is there, or the one that is created.
fn duties(commit: &PlannedCommit, state: Option<&TableState>) -> Duties {
    match (&commit.content, state) {
        (Content::Create { shape, protocol }, _) => Duties::of(protocol, &shape.properties),
        (Content::Evolve(_), Some(state)) => Duties::of(&state.protocol, &state.metadata.configuration),
        (Content::Evolve(_), None) => Duties::default(),
    }
}

fn protocol_action(protocol: &Protocol) -> String {
    let Protocol { min_reader, min_writer, reader_features, writer_features } = protocol;
    let mut action = json!({ "minReaderVersion": min_reader, "minWriterVersion": min_writer });
    let lists = [("readerFeatures", reader_features), ("writerFeatures", writer_features)];
    for (key, list) in lists {
        if let (Some(map), Some(list)) = (action.as_object_mut(), list) {
            map.insert(key.to_owned(), json!(list));
        }
    }
    json!({ "protocol": action }).to_string()
}

fn new_metadata(shape: &Shape, stamps: &IndexMap<String, String>, moment: &Moment) -> Value {
    let Shape { columns, partition_by, properties, description, features: _, defaults, constraints } = shape;
    let mut configuration = properties.clone();
    let mut schema = schema_json(columns);
    // Nothing in the table is without an id from its birth on.
    if mapping_mode(properties).is_some() {
        let mut mapping = Mapping::of_new_table(&moment.table_id);
        let fields: Vec<Value> = columns.iter().map(|f| mapping.field_json(f)).collect();
        schema = json!({ "type": "struct", "fields": fields });
        configuration.insert(MAX_COLUMN_ID.to_owned(), mapping.highest().to_string());
    }
    for field in schema.get_mut("fields").and_then(Value::as_array_mut).into_iter().flatten() {
        let name = field.get("name").and_then(Value::as_str).unwrap_or_default();
        if let Some(default) = defaults.get(name) {
            field["metadata"][DEFAULT] = Value::from(default.clone());
        }
    }
    configuration.extend(
        constraints.iter().map(|(name, sql)| (format!("{CONSTRAINT}{}", name.to_lowercase()), sql.clone())),
    );
    configuration.extend(stamps.clone());
    let mut metadata = json!({
        "id": moment.table_id,
        "format": { "provider": "parquet", "options": {} },
        "schemaString": schema.to_string(),
        "partitionColumns": partition_by,
        "configuration": configuration,
        "createdTime": moment.millis,
    });
    if let (Some(map), Some(description)) = (metadata.as_object_mut(), description) {
        map.insert("description".to_owned(), Value::from(description.clone()));
    }
    metadata
}

#[cfg(test)]
mod tests;
