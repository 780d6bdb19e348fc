//! A Delta log written by hand, action by action.

use std::collections::BTreeMap;
use std::path::Path;

use object_store::path::Path as StorePath;
use object_store::{ObjectStore, ObjectStoreExt as _};
use serde_json::{Value, json};

use super::table::Table;

/// The id of every table that is written by hand.
pub(crate) const TABLE_ID: &str = "5b3c1d2e-0000-4000-8000-0000000000aa";
/// When they were all made.
pub(crate) const CREATED: u64 = 1_700_000_000_123;

/// A nullable field of a schema.
pub(crate) fn column(name: &str, data_type: impl Into<Value>) -> Value {
    json!({ "name": name, "type": data_type.into(), "nullable": true, "metadata": {} })
}

/// A field that never holds null.
pub(crate) fn required(name: &str, data_type: impl Into<Value>) -> Value {
    json!({ "name": name, "type": data_type.into(), "nullable": false, "metadata": {} })
}

pub(crate) fn struct_type(fields: Vec<Value>) -> Value {
    json!({ "type": "struct", "fields": fields })
}

/// What version 0 of a table holds.
#[derive(Clone)]
pub(crate) struct Log {
    pub(crate) protocol: Value,
    pub(crate) metadata: Value,
    pub(crate) schema: Value,
    pub(crate) txn: Option<(String, u64)>,
}

impl Log {
    pub(crate) fn new(fields: Vec<Value>) -> Self {
        Self {
            protocol: json!({ "minReaderVersion": 1, "minWriterVersion": 2 }),
            metadata: json!({
                "id": TABLE_ID,
                "format": { "provider": "parquet", "options": {} },
                "schemaString": "",
                "partitionColumns": [],
                "configuration": {},
                "createdTime": CREATED,
            }),
            schema: struct_type(fields),
            txn: None,
        }
    }

    pub(crate) fn property(mut self, key: &str, value: &str) -> Self {
        self.metadata["configuration"][key] = value.into();
        self
    }

    /// Version and kind, as an older release without digests stamped them.
    pub(crate) fn stamped(self, version: u32) -> Self {
        self.property("app.schema_version", &version.to_string()).property("app.kind", "facts")
    }

    pub(crate) fn metadata(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.metadata[key] = value.into();
        self
    }

    pub(crate) fn partitioned(self, by: &[&str]) -> Self {
        self.metadata("partitionColumns", by.to_vec())
    }

    pub(crate) fn versions(mut self, reader: u32, writer: u32) -> Self {
        self.protocol = json!({ "minReaderVersion": reader, "minWriterVersion": writer });
        self
    }

    pub(crate) fn features(mut self, reader: &[&str], writer: &[&str]) -> Self {
        self.protocol = json!({
            "minReaderVersion": 3, "minWriterVersion": 7,
            "readerFeatures": reader, "writerFeatures": writer,
        });
        self
    }

    pub(crate) fn txn(mut self, app: &str, version: u64) -> Self {
        self.txn = Some((app.to_owned(), version));
        self
    }

    /// The actions of version 0, one line each.
    pub(crate) fn actions(&self) -> Vec<String> {
        let mut metadata = self.metadata.clone();
        if metadata["schemaString"] == "" {
            metadata["schemaString"] = self.schema.to_string().into();
        }
        let mut lines = vec![
            json!({ "commitInfo": { "timestamp": CREATED, "operation": "CREATE TABLE", "engineInfo": "test" } })
                .to_string(),
            json!({ "protocol": self.protocol }).to_string(),
            json!({ "metaData": metadata }).to_string(),
        ];
        if let Some((app, version)) = &self.txn {
            lines.push(json!({ "txn": { "appId": app, "version": version } }).to_string());
        }
        lines
    }

    /// Writes version 0 into a new folder.
    pub(crate) fn write(&self, folder: &Path) {
        let log = folder.join("_delta_log");
        std::fs::create_dir_all(&log).unwrap();
        let text = self.actions().join("\n") + "\n";
        std::fs::write(log.join(format!("{:020}.json", 0)), text).unwrap();
    }

    /// A table of its own in a temporary folder.
    pub(crate) fn table(&self) -> Table {
        let table = Table::missing();
        self.write(table.path());
        table
    }
}

/// The log's entries in their order, without a gap from 0.
pub(crate) async fn entries(store: &dyn ObjectStore, table: &str) -> Vec<Vec<Value>> {
    let folder = StorePath::from(format!("{table}/_delta_log"));
    let listed = store.list_with_delimiter(Some(&folder)).await.unwrap();
    let mut all = BTreeMap::new();
    for meta in listed.objects {
        let name = meta.location.filename().unwrap().to_owned();
        let version: usize = name.strip_suffix(".json").unwrap_or_else(|| panic!("{name}")).parse().unwrap();
        let bytes = store.get(&meta.location).await.unwrap().bytes().await.unwrap();
        let actions = std::str::from_utf8(&bytes).unwrap().lines();
        all.insert(version, actions.map(|line| serde_json::from_str(line).unwrap()).collect());
    }
    assert!(all.keys().copied().eq(0..all.len()), "{:?}", all.keys());
    all.into_values().collect()
}
