//! What a log says, replayed commit by commit from what was really written.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::kinds::{self, NEWEST, RAISES};
use super::scenario::{Chain, Op};

/// The table at one log version.
#[derive(Clone, Debug)]
pub(super) struct State {
    /// Counts the tables that stood at the place, one after the other.
    pub(super) table: u64,
    pub(super) version: u64,
    pub(super) protocol: Value,
    pub(super) metadata: Value,
    /// The versions of `txn` actions by application.
    pub(super) txns: BTreeMap<String, u64>,
    pub(super) files: BTreeSet<String>,
    /// The in-commit timestamp of the newest entry.
    pub(super) timestamp: Option<i64>,
}

pub(super) fn parse(entry: &[u8]) -> Vec<Value> {
    let text = std::str::from_utf8(entry).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

impl State {
    /// The state after version 0.
    pub(super) fn first(table: u64, actions: &[Value]) -> Self {
        let none = Self {
            table,
            version: 0,
            protocol: Value::Null,
            metadata: Value::Null,
            txns: BTreeMap::new(),
            files: BTreeSet::new(),
            timestamp: None,
        };
        none.with(0, actions)
    }

    /// The state after one more commit.
    pub(super) fn with(&self, version: u64, actions: &[Value]) -> Self {
        let mut out = Self { version, timestamp: None, ..self.clone() };
        for action in actions {
            let (name, value) = action.as_object().unwrap().iter().next().unwrap();
            match name.as_str() {
                "protocol" => out.protocol = value.clone(),
                "metaData" => out.metadata = value.clone(),
                "txn" => {
                    out.txns.insert(
                        value["appId"].as_str().unwrap().to_owned(),
                        value["version"].as_u64().unwrap(),
                    );
                }
                "add" => drop(out.files.insert(value["path"].as_str().unwrap().to_owned())),
                "remove" => drop(out.files.remove(value["path"].as_str().unwrap())),
                "commitInfo" => out.timestamp = value["inCommitTimestamp"].as_i64(),
                _ => {}
            }
        }
        out
    }

    pub(super) fn id(&self) -> &str {
        self.metadata["id"].as_str().unwrap()
    }

    pub(super) fn property(&self, key: &str) -> Option<&str> {
        self.metadata["configuration"][key].as_str()
    }

    /// The version stamp as a number.
    pub(super) fn stamp(&self) -> Option<u32> {
        self.property("app.schema_version")?.parse().ok()
    }

    pub(super) fn floor(&self) -> Option<u32> {
        self.property("app.min_version")?.parse().ok()
    }

    pub(super) fn history(&self) -> Vec<Value> {
        self.property("app.schema_history").map(|h| serde_json::from_str(h).unwrap()).unwrap_or_default()
    }

    pub(super) fn schema(&self) -> Value {
        serde_json::from_str(self.metadata["schemaString"].as_str().unwrap()).unwrap()
    }

    pub(super) fn has_feature(&self, name: &str) -> bool {
        let list = |key: &str| self.protocol[key].as_array().is_some_and(|l| l.iter().any(|f| f == name));
        list("writerFeatures") || list("readerFeatures")
    }

    pub(super) fn is_timestamped(&self) -> bool {
        self.property("delta.enableInCommitTimestamps") == Some("true")
    }

    fn is_mapped(&self) -> bool {
        self.property("delta.columnMapping.mode").is_some()
    }

    /// Everything that a checkpoint holds.
    pub(super) fn actions(&self) -> Vec<Value> {
        let mut out = vec![json!({ "protocol": self.protocol }), json!({ "metaData": self.metadata })];
        out.extend(self.txns.iter().map(|(id, v)| json!({ "txn": { "appId": id, "version": v } })));
        out.extend(self.files.iter().map(|path| add(path)));
        out
    }

    /// The checksum file that goes with the state.
    pub(super) fn checksum(&self) -> Value {
        let mut out = json!({
            "tableSizeBytes": self.files.len() * 100, "numFiles": self.files.len(), "numMetadata": 1,
            "numProtocol": 1, "metadata": self.metadata, "protocol": self.protocol,
        });
        if let Some(at) = self.timestamp {
            out["inCommitTimestampOpt"] = at.into();
        }
        out
    }
}

pub(super) fn add(path: &str) -> Value {
    json!({ "add": {
        "path": path, "partitionValues": {}, "size": 100, "modificationTime": 1, "dataChange": true,
        "stats": "{\"numRecords\":1}",
    } })
}

/// The actions of version 0 of a table that another program makes.
pub(super) fn creation(id: &str, millis: i64) -> Vec<Value> {
    vec![
        info("CREATE TABLE", id, millis),
        json!({ "protocol": { "minReaderVersion": 1, "minWriterVersion": 2 } }),
        json!({ "metaData": {
            "id": id,
            "format": { "provider": "parquet", "options": {} },
            "schemaString": crate::support::struct_type(kinds::base_fields()).to_string(),
            "partitionColumns": [],
            "configuration": {},
            "createdTime": millis,
        } }),
    ]
}

fn info(operation: &str, id: &str, millis: i64) -> Value {
    json!({ "commitInfo": { "timestamp": millis, "operation": operation, "engineInfo": "stranger", "txnId": id } })
}

/// The actions with which another writer does something to a table; none where it has nothing to do.
/// `name` is a name that nothing else has.
pub(super) fn actions(op: Op, state: &State, name: &str, millis: i64) -> Option<Vec<Value>> {
    let mut after = state.clone();
    let (mut files, mut upgraded) = (Vec::new(), false);
    let remove_all =
        || state.files.iter().map(|path| json!({ "remove": { "path": path, "dataChange": true } }));
    let operation = match op {
        Op::Append => {
            files.push(add(name));
            "WRITE"
        }
        Op::Overwrite => {
            files.extend(remove_all());
            files.push(add(name));
            "WRITE"
        }
        Op::OverwriteOldSchema => {
            files.extend(remove_all());
            files.push(add(name));
            let fields = after.schema()["fields"].as_array().unwrap().clone();
            let old = fields
                .into_iter()
                .filter(|f| ["id", "code", "payload"].contains(&f["name"].as_str().unwrap()));
            set_fields(&mut after, old.map(without_warnings).collect());
            (after.metadata != state.metadata).then_some("CREATE OR REPLACE TABLE")?
        }
        Op::Replace => {
            files.extend(remove_all());
            let keep = |key: &String| key.starts_with("delta.");
            let configuration = after.metadata["configuration"].as_object_mut().unwrap();
            configuration.retain(|key, _| keep(key));
            (after.metadata != state.metadata).then_some("CREATE OR REPLACE TABLE")?
        }
        Op::SetProperty => {
            set(&mut after, &format!("their.{name}"), "x");
            "SET TBLPROPERTIES"
        }
        Op::AddColumn => {
            add_field(&mut after, None, crate::support::column(&name.replace('-', "_"), "long"));
            "ADD COLUMNS"
        }
        Op::StampTo(version) => {
            stamp(&mut after, version, &mut upgraded)?;
            files.push(json!({ "txn": { "appId": "app/facts", "version": version } }));
            "MIGRATE BY HAND"
        }
        Op::RaiseFloor => {
            (state.floor() != Some(99)).then_some(())?;
            set(&mut after, "app.min_version", "99");
            "SET TBLPROPERTIES"
        }
        Op::Diverge => {
            (state.property("app.schema_digest") != Some("1:00000000")).then_some(())?;
            set(&mut after, "app.schema_digest", "1:00000000");
            "SET TBLPROPERTIES"
        }
        Op::BadStamp => {
            (state.property("app.schema_version") != Some("x")).then_some(())?;
            set(&mut after, "app.schema_version", "x");
            "SET TBLPROPERTIES"
        }
        Op::OtherKind => {
            (state.property("app.kind") != Some("other")).then_some(())?;
            set(&mut after, "app.kind", "other");
            "SET TBLPROPERTIES"
        }
        Op::EnableTimestamps => {
            (!state.is_timestamped()).then_some(())?;
            upgraded |= add_feature(&mut after, "inCommitTimestamp", false);
            set(&mut after, "delta.enableInCommitTimestamps", "true");
            set(&mut after, "delta.inCommitTimestampEnablementVersion", &(state.version + 1).to_string());
            set(&mut after, "delta.inCommitTimestampEnablementTimestamp", &millis.to_string());
            "SET TBLPROPERTIES"
        }
        Op::EnableMapping => {
            (!state.is_mapped()).then_some(())?;
            upgraded |= add_feature(&mut after, "columnMapping", true);
            let (mut highest, mut fields) = (0, after.schema()["fields"].clone());
            give_ids(&mut fields, &mut highest, true);
            set_fields(&mut after, fields.as_array().unwrap().clone());
            set(&mut after, "delta.columnMapping.mode", "name");
            set(&mut after, "delta.columnMapping.maxColumnId", &highest.to_string());
            "SET TBLPROPERTIES"
        }
        Op::EnableV2Checkpoint => {
            upgraded |= add_feature(&mut after, "v2Checkpoint", true);
            upgraded.then_some("ADD FEATURE")?
        }
        Op::EnableUnknown => {
            upgraded |= add_feature(&mut after, "somethingNew", false);
            upgraded.then_some("ADD FEATURE")?
        }
        _ => return None,
    };
    let mut info = info(operation, name, millis);
    if after.is_timestamped() {
        let above = state.timestamp.map_or(millis, |before| millis.max(before + 1));
        info["commitInfo"]["inCommitTimestamp"] = above.into();
    }
    let mut out = vec![info];
    if upgraded {
        out.push(json!({ "protocol": after.protocol }));
    }
    if after.metadata != state.metadata {
        out.push(json!({ "metaData": after.metadata }));
    }
    out.extend(files);
    Some(out)
}

fn set(state: &mut State, key: &str, value: &str) {
    state.metadata["configuration"][key] = value.into();
}

fn set_fields(state: &mut State, fields: Vec<Value>) {
    state.metadata["schemaString"] = crate::support::struct_type(fields).to_string().into();
}

fn without_warnings(mut field: Value) -> Value {
    if let Some(fields) = field["type"].get_mut("fields").and_then(Value::as_array_mut) {
        fields.retain(|f| f["name"] != "warnings");
    }
    field
}

/// Adds a field to the top or to a struct; with ids where the table's columns are mapped.
fn add_field(state: &mut State, into: Option<&str>, mut field: Value) {
    let mut schema = state.schema();
    if state.is_mapped() {
        let max = "delta.columnMapping.maxColumnId";
        let mut highest: u64 = state.property(max).unwrap().parse().unwrap();
        let mut fields = json!([field]);
        give_ids(&mut fields, &mut highest, false);
        field = fields[0].take();
        set(state, max, &highest.to_string());
    }
    let fields = schema["fields"].as_array_mut().unwrap();
    let target = match into {
        None => fields,
        Some(name) => {
            let parent = fields.iter_mut().find(|f| f["name"] == name).unwrap();
            parent["type"]["fields"].as_array_mut().unwrap()
        }
    };
    if target.iter().all(|f| f["name"] != field["name"]) {
        target.push(field);
    }
    state.metadata["schemaString"] = schema.to_string().into();
}

/// Ids and physical names: the logical ones on an existing table, others for new fields.
fn give_ids(fields: &mut Value, highest: &mut u64, existing: bool) {
    for field in fields.as_array_mut().unwrap() {
        *highest += 1;
        let name = field["name"].as_str().unwrap().to_owned();
        field["metadata"]["delta.columnMapping.id"] = (*highest).into();
        field["metadata"]["delta.columnMapping.physicalName"] =
            if existing { name.into() } else { format!("col-s-{highest}").into() };
        let inner = &mut field["type"];
        let inner = if inner.get("valueType").is_some() { &mut inner["valueType"] } else { inner };
        if inner.get("fields").is_some() {
            give_ids(&mut inner["fields"], highest, existing);
        }
    }
}

/// Lists a feature, with what the old versions implied.
fn add_feature(state: &mut State, name: &str, for_readers: bool) -> bool {
    if state.has_feature(name) {
        return false;
    }
    let protocol = &mut state.protocol;
    if protocol["minWriterVersion"] != 7 {
        protocol["minWriterVersion"] = 7.into();
        protocol["writerFeatures"] = json!(["appendOnly", "invariants"]);
    }
    protocol["writerFeatures"].as_array_mut().unwrap().push(name.into());
    if for_readers {
        if protocol["minReaderVersion"] != 3 {
            protocol["minReaderVersion"] = 3.into();
            protocol["readerFeatures"] = json!([]);
        }
        protocol["readerFeatures"].as_array_mut().unwrap().push(name.into());
    }
    true
}

/// Does by hand what our chain does up to a version; none where the table is there or not ours.
fn stamp(state: &mut State, version: u32, upgraded: &mut bool) -> Option<()> {
    let from = match state.property("app.schema_version") {
        None => 0,
        Some(stamp) => stamp.parse::<u32>().ok()?,
    };
    let before = kinds::digest(Chain::Ours, from);
    let ours = state.property("app.schema_digest").is_none_or(|d| d == before);
    let ready = ours
        && state.property("app.kind").is_none_or(|k| k == "facts")
        && state.floor().is_none_or(|f| f <= NEWEST);
    let new = state.property("app.schema_version").is_none() || from < version;
    (ready && new && version <= NEWEST).then_some(())?;
    for (into, field) in (from + 1..=version).filter_map(kinds::added) {
        let there = state.schema()["fields"].as_array().unwrap().iter().any(|f| f["name"] == field["name"]);
        if !there {
            add_field(state, into, field);
        }
    }
    if (from + 1..=version).contains(&5) {
        *upgraded |= add_feature(state, "domainMetadata", false);
        set(state, "team", "b");
    }
    if version >= RAISES {
        let floor = state.floor().unwrap_or(0).max(RAISES);
        set(state, "app.min_version", &floor.to_string());
    }
    let mut history = state.history();
    history.push(
        json!({ "from": from, "to": version, "at": "2026-01-01T00:00:00Z", "by": "hand", "how": "migrated" }),
    );
    set(state, "app.schema_version", &version.to_string());
    set(state, "app.kind", "facts");
    set(state, "app.schema_digest", &kinds::digest(Chain::Ours, version));
    set(state, "app.schema_history", &Value::from(history).to_string());
    Some(())
}
