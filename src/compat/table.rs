//! A table in a local folder: its log as it stands, rows appended as another writer would, rows read
//! back. Its log has no checkpoint, for nothing here writes one.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use deltalake::DeltaTable;
use serde_json::{Map, Value, json};

use super::columns::{Column, Known, Type, columns, grown, shown};
use super::moments::Fixed;
use super::{files, parquet, rows, unreadable};
use crate::delta::location::Location;
use crate::error::Error;
use crate::migrator::Moments as _;
use crate::model::features::mapping_mode;
use crate::model::version::Namespace;

/// A table's folder, and the name that reports call it by.
#[derive(Debug, Clone)]
pub(super) struct Table {
    pub(super) folder: PathBuf,
    pub(super) name: String,
}

/// What a log says, replayed from its first commit.
#[derive(Debug, Clone, Default)]
pub(super) struct Log {
    pub(super) version: Option<u64>,
    pub(super) metadata: Value,
    in_commit_timestamp: Option<i64>,
    /// Partition values of the active files by path.
    active: BTreeMap<String, Value>,
    /// Every file that the log names, the table's or one of its change data.
    pub(super) named: BTreeSet<String>,
}

impl Log {
    pub(super) fn configuration(&self) -> Map<String, Value> {
        self.metadata.get("configuration").and_then(Value::as_object).cloned().unwrap_or_default()
    }

    pub(super) fn property(&self, key: &str) -> Option<String> {
        self.configuration().get(key).and_then(Value::as_str).map(str::to_owned)
    }

    pub(super) fn columns(&self) -> Result<Vec<Column>, Error> {
        let texts = self.configuration().into_iter().filter_map(|(k, v)| Some((k, v.as_str()?.to_owned())));
        let is_mapped = mapping_mode(&texts.collect()).is_some();
        columns(self.metadata.get("schemaString").and_then(Value::as_str).unwrap_or_default(), is_mapped)
    }

    fn is_partition(&self, column: &Column) -> bool {
        let by = self.metadata.get("partitionColumns").and_then(Value::as_array);
        by.is_some_and(|by| by.iter().any(|name| name.as_str() == Some(&column.name)))
    }
}

impl Table {
    pub(super) fn new(root: &Path, name: &str) -> Self {
        Self { folder: root.join(name), name: name.to_owned() }
    }

    pub(super) fn location(&self) -> Result<Location, Error> {
        let folder = self.folder.to_str().ok_or_else(|| {
            Error::usage(format!("`{}` is no text, so no location", self.folder.display()))
                .with_hint("use a folder whose path is Unicode")
        })?;
        Ok(Location::new(folder, HashMap::new())?.called(&self.name))
    }

    pub(super) fn entry(&self, version: u64) -> PathBuf {
        self.folder.join(format!("_delta_log/{version:020}.json"))
    }

    pub(super) fn log(&self) -> Result<Log, Error> {
        let mut log = Log::default();
        for version in 0.. {
            let file = self.entry(version);
            if !file.exists() {
                break;
            }
            log.version = Some(version);
            for line in files::read_text(&file)?.lines() {
                let action: Value = serde_json::from_str(line)
                    .map_err(|e| unreadable(format!("`{}` holds a line that is no JSON: {e}", self.name)))?;
                self.replay(&mut log, &action);
            }
        }
        Ok(log)
    }

    fn replay(&self, log: &mut Log, action: &Value) {
        let text = |of: &Value, key: &str| of.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        if let Some(metadata) = action.get("metaData") {
            log.metadata = metadata.clone();
        }
        if let Some(info) = action.get("commitInfo") {
            log.in_commit_timestamp = info.get("inCommitTimestamp").and_then(Value::as_i64);
        }
        if let Some(add) = action.get("add") {
            let values = add.get("partitionValues").cloned().unwrap_or_default();
            log.active.insert(decoded(&text(add, "path")), values);
        }
        if let Some(remove) = action.get("remove") {
            log.active.remove(&decoded(&text(remove, "path")));
        }
        let named = ["add", "cdc"].into_iter().filter_map(|verb| action.get(verb));
        log.named.extend(named.map(|body| decoded(&text(body, "path"))));
    }

    /// Appends one row, of the known columns alone where a writer knows no others. Gives the row as
    /// the table shows it from then on; none, and nothing appended, where there is no column to write,
    /// or a required one whose type is not written here.
    pub(super) fn append(
        &self,
        number: u32,
        known: Option<&Known>,
        moments: &Fixed,
    ) -> Result<Option<Value>, Error> {
        let log = self.log()?;
        let all = log.columns()?;
        let written = known.map_or_else(|| all.clone(), |known| known.of(&all));
        let Some(row) = rows::row(&written, number) else { return Ok(None) };
        let (by, data): (Vec<&Column>, Vec<&Column>) = written.iter().partition(|c| log.is_partition(c));
        // A writer that knows no column of the table has nothing to write.
        if !data.iter().any(|c| c.is_writable()) {
            return Ok(None);
        }
        let bytes = parquet::write(&data, &row)?;
        let path = format!("part-00000-{}-c000.parquet", moments.id());
        files::write(&self.folder.join(&path), &bytes)?;
        let cell = |c: &Column| row.get(&c.name).cloned().unwrap_or_default();
        let values: Map<String, Value> =
            by.iter().map(|c| (c.physical.clone(), rows::to_partition(&c.data_type, &cell(c)))).collect();
        let nulls: Map<String, Value> = data
            .iter()
            .filter(|c| matches!(c.data_type, Type::Primitive(_)) && c.is_writable())
            .map(|c| (c.physical.clone(), Value::from(u8::from(cell(c).is_null()))))
            .collect();
        let now = moments.now().timestamp_millis();
        let add = json!({
            "path": path,
            "partitionValues": values,
            "size": bytes.len(),
            "modificationTime": now,
            "dataChange": true,
            "stats": json!({ "numRecords": 1, "nullCount": nulls }).to_string(),
        });
        let parameters = json!({ "mode": "Append" });
        self.commit(&log, "WRITE", parameters, &[json!({ "add": add })], now)?;
        // What was not written is NULL, as any other reader has it.
        Ok(Some(grown(&all, &row)))
    }

    /// Replaces the newest metaData as another program would.
    pub(super) fn change_metadata(
        &self,
        change: impl FnOnce(&mut Value),
        moments: &Fixed,
    ) -> Result<(), Error> {
        let log = self.log()?;
        let mut metadata = log.metadata.clone();
        change(&mut metadata);
        let now = moments.now().timestamp_millis();
        self.commit(&log, "SET TBLPROPERTIES", json!({}), &[json!({ "metaData": metadata })], now)
    }

    fn commit(
        &self,
        log: &Log,
        operation: &str,
        parameters: Value,
        actions: &[Value],
        now: i64,
    ) -> Result<(), Error> {
        let mut info = json!({
            "timestamp": now,
            "operation": operation,
            "operationParameters": parameters,
            "engineInfo": "delta-migrate compat writer",
        });
        if let (Some(map), Some(before)) = (info.as_object_mut(), log.in_commit_timestamp) {
            map.insert("inCommitTimestamp".to_owned(), Value::from(now.max(before + 1)));
        }
        let lines: Vec<String> =
            [json!({ "commitInfo": info })].iter().chain(actions).map(|a| format!("{a}\n")).collect();
        let version = log.version.map_or(0, |v| v + 1);
        files::write_new(&self.entry(version), lines.concat().as_bytes())
    }

    /// Takes the stamps and their evidence out of a table of one commit, as if another program had
    /// created it.
    pub(super) fn disown(&self, namespace: &Namespace) -> Result<(), Error> {
        let file = self.entry(0);
        let mut lines = String::new();
        for line in files::read_text(&file)?.lines() {
            let mut action: Value =
                serde_json::from_str(line).map_err(|e| unreadable(format!("a line is no JSON: {e}")))?;
            if action.get("txn").is_some() {
                continue;
            }
            if let Some(info) = action.get_mut("commitInfo").and_then(Value::as_object_mut) {
                info.retain(|key, _| key == "timestamp" || key == "inCommitTimestamp");
                info.insert("operation".to_owned(), Value::from("CREATE TABLE"));
                info.insert("engineInfo".to_owned(), Value::from("another program"));
            }
            if let Some(properties) = action.pointer_mut("/metaData/configuration") {
                drop_stamps(properties, namespace);
            }
            lines.push_str(&format!("{action}\n"));
        }
        files::write(&file, lines.as_bytes())
    }

    /// A table of another program with one column, for a kind whose base shape is empty.
    pub(super) fn create_foreign(&self, moments: &Fixed) -> Result<(), Error> {
        let field = json!({ "name": "left_there", "type": "string", "nullable": true, "metadata": {} });
        let now = moments.now().timestamp_millis();
        let metadata = json!({
            "id": moments.id().to_string(),
            "format": { "provider": "parquet", "options": {} },
            "schemaString": json!({ "type": "struct", "fields": [field] }).to_string(),
            "partitionColumns": [],
            "configuration": {},
            "createdTime": now,
        });
        let protocol = json!({ "protocol": { "minReaderVersion": 1, "minWriterVersion": 2 } });
        let actions = [protocol, json!({ "metaData": metadata })];
        self.commit(&Log::default(), "CREATE TABLE", json!({}), &actions, now)
    }

    pub(super) async fn load(&self) -> Result<DeltaTable, Error> {
        let location = self.location()?;
        let mut table = DeltaTable::new(location.log_store().clone());
        table
            .load()
            .await
            .map_err(|e| unreadable("delta-rs can't load the table").with_source(e.to_string()))?;
        Ok(table)
    }

    /// All rows in the order of their text, from the files that delta-rs says are the table's.
    pub(super) async fn rows(&self) -> Result<Vec<Value>, Error> {
        let table = self.load().await?;
        let snapshot =
            table.snapshot().map_err(|e| unreadable("there is no snapshot").with_source(e.to_string()))?;
        let listed: BTreeSet<String> = snapshot.log_data().iter().map(|f| f.path().into_owned()).collect();
        let log = self.log()?;
        if !listed.iter().eq(log.active.keys()) {
            return Err(unreadable("delta-rs lists other files than the log has"));
        }
        let columns = log.columns()?;
        let mut out = Vec::new();
        for (path, values) in &log.active {
            for mut stored in parquet::read(files::read(&self.folder.join(path))?)? {
                for column in columns.iter().filter(|c| log.is_partition(c)) {
                    let text = values.get(&column.physical).unwrap_or(&Value::Null);
                    let cell = rows::from_partition(&column.data_type, text);
                    if let Some(stored) = stored.as_object_mut() {
                        stored.insert(column.physical.clone(), cell);
                    }
                }
                out.push(shown(&columns, &stored));
            }
        }
        out.sort_by_cached_key(Value::to_string);
        Ok(out)
    }
}

/// A path of the log as the store has it (PROTOCOL.md, Add File: URL-encoded).
pub(super) fn decoded(path: &str) -> String {
    let mut out = Vec::with_capacity(path.len());
    let mut rest = path.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        let code = behind.get(..2).filter(|_| *first == b'%').and_then(|code| std::str::from_utf8(code).ok());
        match code.and_then(rows::unhex).as_deref() {
            Some([byte]) => {
                out.push(*byte);
                rest = behind.get(2..).unwrap_or_default();
            }
            _ => {
                out.push(*first);
                rest = behind;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// Takes the namespace's properties out.
pub(super) fn drop_stamps(properties: &mut Value, namespace: &Namespace) {
    if let Some(properties) = properties.as_object_mut() {
        properties.retain(|key, _| !namespace.owns(key));
    }
}
