//! A log in memory that names some of a table's files: deltalake reads and writes the table's own data
//! through it, and what it commits stays in memory.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use deltalake::DeltaTable;
use deltalake::logstore::{LogStoreRef, logstore_with};
use futures::StreamExt as _;
use futures::stream::BoxStream;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    ObjectStoreExt as _, PutMultipartOptions, PutOptions, PutPayload, PutResult, RenameOptions, Result,
};
use serde_json::{Value, json};

use super::active::ActiveFile;
use super::failed;
use crate::delta::location::{Location, path_in_store};
use crate::error::Error;
use crate::model::features::{self, Protocol};
use crate::model::state::TableState;

/// What lies under a prefix is in memory, the rest is the table's store.
struct Overlay {
    log: InMemory,
    prefix: Path,
    table: Arc<dyn ObjectStore>,
}

impl Overlay {
    fn store(&self, path: &Path) -> &dyn ObjectStore {
        if path.prefix_matches(&self.prefix) { &self.log } else { self.table.as_ref() }
    }
}

impl fmt::Debug for Overlay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Overlay").field("prefix", &self.prefix).finish_non_exhaustive()
    }
}

impl fmt::Display for Overlay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a stage before the table's store")
    }
}

#[async_trait]
impl ObjectStore for Overlay {
    async fn put_opts(&self, location: &Path, payload: PutPayload, opts: PutOptions) -> Result<PutResult> {
        self.store(location).put_opts(location, payload, opts).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        opts: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.store(location).put_multipart_opts(location, opts).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        self.store(location).get_opts(location, options).await
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.store(location).get_ranges(location, ranges).await
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        // Nothing of a table is deleted by a stage.
        locations
            .map(|path| {
                Err(object_store::Error::NotSupported { source: format!("{path:?} on a stage").into() })
            })
            .boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.store(prefix.unwrap_or(&Path::default())).list(prefix)
    }

    fn list_with_offset(
        &self,
        prefix: Option<&Path>,
        offset: &Path,
    ) -> BoxStream<'static, Result<ObjectMeta>> {
        self.store(prefix.unwrap_or(&Path::default())).list_with_offset(prefix, offset)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.store(prefix.unwrap_or(&Path::default())).list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.store(to).copy_opts(from, to, options).await
    }

    async fn rename_opts(&self, from: &Path, to: &Path, options: RenameOptions) -> Result<()> {
        self.store(to).rename_opts(from, to, options).await
    }
}

/// A loaded stage.
pub(super) struct Staged {
    pub(super) table: DeltaTable,
    log: LogStoreRef,
}

/// A stage of some files of the table, with another schema where `schema_text` says so.
pub(super) async fn stage(
    location: &Location,
    state: &TableState,
    protocol: &Protocol,
    schema_text: &str,
    files: &[&ActiveFile],
) -> Result<Staged, Error> {
    let wrong = |e| failed("deltalake can't open the table", e);
    let real = location.log_store();
    let url = real.root_url().clone();
    let prefix = path_in_store(&url)?.join("_delta_log");
    let overlay =
        Overlay { log: InMemory::new(), prefix: prefix.clone(), table: real.root_object_store(None) };
    let entry = entry(state, protocol, schema_text, files);
    let first = prefix.join("00000000000000000000.json");
    overlay
        .log
        .put(&first, entry.into())
        .await
        .map_err(|e| failed("the stage in memory can't be written", e))?;
    let options = real.config().options().clone();
    let log = logstore_with(Arc::new(overlay), &url, options).map_err(wrong)?;
    let mut table = DeltaTable::new(log.clone());
    table.load().await.map_err(wrong)?;
    Ok(Staged { table, log })
}

impl Staged {
    /// The actions that deltalake committed on the stage, as they stand there; none if it had nothing
    /// to commit.
    pub(super) async fn committed(&self) -> Result<Vec<Value>, Error> {
        let read = self.log.read_commit_entry(1).await;
        let Some(bytes) = read.map_err(|e| failed("the stage in memory can't be read", e))? else {
            return Ok(Vec::new());
        };
        let text = String::from_utf8_lossy(&bytes);
        text.lines()
            .filter(|line| !line.trim().is_empty())
            .map(|line| {
                serde_json::from_str(line).map_err(|e| failed("an action of deltalake is no JSON", e))
            })
            .collect()
    }
}

/// Whether writers of this table keep a change data feed.
pub(super) fn has_change_data(state: &TableState) -> bool {
    let on = state.metadata.configuration.get("delta.enableChangeDataFeed");
    on.is_some_and(|v| v.eq_ignore_ascii_case("true"))
}

/// Properties of the log, which is not theirs to look after.
const OF_THE_LOG: [&str; 6] = [
    "delta.checkpointInterval",
    "delta.checkpointPolicy",
    "delta.enableExpiredLogCleanup",
    "delta.enableInCommitTimestamps",
    "delta.inCommitTimestampEnablementTimestamp",
    "delta.inCommitTimestampEnablementVersion",
];

fn entry(state: &TableState, protocol: &Protocol, schema_text: &str, files: &[&ActiveFile]) -> Vec<u8> {
    let configuration: serde_json::Map<String, Value> = state
        .metadata
        .configuration
        .iter()
        .filter(|(key, _)| !OF_THE_LOG.contains(&key.as_str()))
        .map(|(key, value)| (key.clone(), Value::from(value.clone())))
        .collect();
    let metadata = json!({
        "id": state.metadata.id,
        "format": { "provider": "parquet", "options": {} },
        "schemaString": schema_text,
        "partitionColumns": state.metadata.partition_columns,
        "configuration": configuration,
        "createdTime": 0,
    });
    let mut out =
        format!("{}\n{}\n", json!({ "protocol": protocol_of(protocol) }), json!({ "metaData": metadata }));
    for file in files {
        out.push_str(&json!({ "add": file.add }).to_string());
        out.push('\n');
    }
    out.into_bytes()
}

/// The protocol without what our own commit takes care of, and what a stage does not have.
fn protocol_of(protocol: &Protocol) -> Value {
    let Protocol { min_reader, min_writer, reader_features, writer_features } = protocol;
    let told = |list: &Option<Vec<String>>| -> Option<Vec<String>> {
        Some(list.as_ref()?.iter().filter(|f| features::is_told_to_writers(f)).cloned().collect())
    };
    // Version 6 stands for identity columns, whose numbers no data step gives or changes.
    let min_writer = if *min_writer == 6 { &5 } else { min_writer };
    let mut out = json!({ "minReaderVersion": min_reader, "minWriterVersion": min_writer });
    let lists = [("readerFeatures", told(reader_features)), ("writerFeatures", told(writer_features))];
    for (key, list) in lists {
        if let (Some(map), Some(list)) = (out.as_object_mut(), list) {
            map.insert(key.to_owned(), json!(list));
        }
    }
    out
}
