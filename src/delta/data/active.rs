//! The table's files at one log version.

use deltalake::arrow::array::{Array as _, AsArray as _};
use deltalake::kernel::{Action, Snapshot};
use deltalake::logstore::LogStoreRef;
use futures::TryStreamExt as _;
use indexmap::IndexMap;
use serde_json::Value;

use super::failed;
use crate::delta::location::Location;
use crate::error::{Error, ErrorCode, Stage};
use crate::model::version::LogVersion;

/// What names a file in a log: its path as it is written there, and its deletion vector.
pub(crate) type Key = (String, Option<String>);

/// A file that the table consists of.
#[derive(Debug, Clone)]
pub(crate) struct ActiveFile {
    pub(crate) key: Key,
    /// The `add` action's object.
    pub(crate) add: Value,
    pub(crate) bytes: u64,
    pub(crate) rows: Option<u64>,
}

/// The files as they were last read; what the log has got since is read on.
pub(crate) struct Active {
    log_store: LogStoreRef,
    version: Option<u64>,
    files: IndexMap<Key, ActiveFile>,
}

impl Active {
    pub(crate) fn new(location: &Location) -> Self {
        Self { log_store: location.log_store().clone(), version: None, files: IndexMap::new() }
    }

    /// The files at exactly this version.
    pub(crate) async fn files_at(&mut self, version: LogVersion) -> Result<Vec<ActiveFile>, Error> {
        let at = version.get();
        let known = self.version.filter(|known| *known <= at);
        let is_read_on = match known {
            Some(known) => self.read_on(known, at).await?,
            None => false,
        };
        if !is_read_on {
            self.files = self.replayed(at).await?;
        }
        self.version = Some(at);
        Ok(self.files.values().cloned().collect())
    }

    /// Applies the commits since; not where one of them is gone.
    async fn read_on(&mut self, known: u64, at: u64) -> Result<bool, Error> {
        for version in known + 1..=at {
            let read = self.log_store.read_commit_entry(version).await;
            let Some(bytes) = read.map_err(|e| failed("a log entry can't be read", e))? else {
                return Ok(false);
            };
            let text = String::from_utf8_lossy(&bytes);
            let mut adds = Vec::new();
            // A writer may put white space into its JSON.
            for line in text.lines().filter(|l| l.contains("\"add\"") || l.contains("\"remove\"")) {
                let action: Value =
                    serde_json::from_str(line).map_err(|e| failed("an action of the log is no JSON", e))?;
                if let Some(add) = action.get("add").filter(|a| a.is_object()) {
                    adds.push(of_add(add.clone()).ok_or_else(unlike)?);
                } else if let Some(remove) = action.get("remove").filter(|a| a.is_object()) {
                    self.files.shift_remove(&key_of(remove).ok_or_else(unlike)?);
                }
            }
            self.files.extend(adds.into_iter().map(|file| (file.key.clone(), file)));
        }
        Ok(true)
    }

    async fn replayed(&self, at: u64) -> Result<IndexMap<Key, ActiveFile>, Error> {
        let wrong = |e| failed("the table's list of files can't be read", e);
        let log_store = self.log_store.as_ref();
        let snapshot = Snapshot::try_new(log_store, Some(at)).await.map_err(wrong)?;
        // Only the batches have the path as the log writes it; the views of them have the rest.
        let batches: Vec<_> = snapshot.files(log_store, None).try_collect().await.map_err(wrong)?;
        let mut raw: Vec<String> = Vec::new();
        for batch in &batches {
            let paths =
                batch.column_by_name("path").and_then(|c| c.as_string_opt::<i32>()).ok_or_else(unlike)?;
            raw.extend((0..paths.len()).map(|i| paths.value(i).to_owned()));
        }
        let views: Vec<_> = snapshot.file_views(log_store, None).try_collect().await.map_err(wrong)?;
        if views.len() != raw.len() {
            return Err(unlike());
        }
        let mut out = IndexMap::with_capacity(raw.len());
        for (path, view) in raw.into_iter().zip(views) {
            if view.path() != percent_decoded(&path) {
                return Err(unlike());
            }
            #[allow(deprecated)]
            let action = serde_json::to_value(Action::Add(view.add_action())).ok();
            let mut add = action.and_then(|mut a| a.get_mut("add").map(Value::take)).ok_or_else(unlike)?;
            if let Some(map) = add.as_object_mut() {
                map.insert("path".to_owned(), Value::from(path));
            }
            let file = of_add(add).ok_or_else(unlike)?;
            out.insert(file.key.clone(), file);
        }
        Ok(out)
    }
}

fn key_of(action: &Value) -> Option<Key> {
    let path = action.get("path")?.as_str()?.to_owned();
    Some((path, action.get("deletionVector").filter(|v| v.is_object()).and_then(vector_id)))
}

pub(super) fn of_add(mut add: Value) -> Option<ActiveFile> {
    let statistics = add.get("stats").and_then(Value::as_str);
    let statistics: Option<Value> = statistics.and_then(|s| serde_json::from_str(s).ok());
    let rows = statistics.and_then(|s| s.get("numRecords")?.as_u64());
    let deleted = add.get("deletionVector").and_then(|v| v.get("cardinality")?.as_u64()).unwrap_or(0);
    let key = key_of(&add)?;
    // What is written here is a change of data, however the file came to the table.
    add.as_object_mut()?.insert("dataChange".to_owned(), Value::from(true));
    let bytes = add.get("size").and_then(Value::as_u64).unwrap_or(0);
    Some(ActiveFile { key, bytes, rows: rows.map(|r| r.saturating_sub(deleted)), add })
}

/// What tells one deletion vector of a file from another (PROTOCOL.md, Action Reconciliation).
pub(super) fn vector_id(vector: &Value) -> Option<String> {
    let text = |key: &str| vector.get(key).and_then(Value::as_str);
    let offset = vector.get("offset").and_then(Value::as_i64).map(|o| format!("@{o}")).unwrap_or_default();
    Some(format!("{}{}{offset}", text("storageType")?, text("pathOrInlineDv")?))
}

/// A path of the log as deltalake gives it.
pub(super) fn percent_decoded(path: &str) -> String {
    percent_encoding::percent_decode_str(path).decode_utf8_lossy().into_owned()
}

fn unlike() -> Error {
    Error::new(ErrorCode::DataStep, Stage::Read, "the table's list of files was read in two ways that differ")
        .with_hint("nothing was written; please report this with the table's newest checkpoint")
}

impl std::fmt::Debug for Active {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The store's own Debug prints its credentials.
        f.debug_struct("Active").field("version", &self.version).finish_non_exhaustive()
    }
}
