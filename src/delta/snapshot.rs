//! The state of a table that is already loaded, without any request.

use deltalake::DeltaTable;
use indexmap::IndexMap;

use super::read::fault::unusable;
use crate::error::{Error, ErrorCode, Stage};
use crate::model::features::Protocol;
use crate::model::state::{Metadata, TableState};
use crate::model::version::LogVersion;

/// What a loaded table says; the evidence and the raw metadata are not in memory.
pub(crate) fn state_of(table: &DeltaTable) -> Result<TableState, Error> {
    let snapshot = table.snapshot().map_err(|e| {
        Error::new(ErrorCode::Usage, Stage::Read, "the table is not loaded")
            .with_hint("call `load` on it first, or use `open_or_create`")
            .with_source(e)
    })?;
    let (metadata, protocol) = (snapshot.metadata(), snapshot.protocol());
    let features = |list: Option<&[_]>| list.map(|l| l.iter().map(ToString::to_string).collect());
    let protocol = Protocol {
        min_reader: i64::from(protocol.min_reader_version()),
        min_writer: i64::from(protocol.min_writer_version()),
        reader_features: features(protocol.reader_features()),
        writer_features: features(protocol.writer_features()),
    };
    let configuration: IndexMap<String, String> =
        metadata.configuration().iter().map(|(k, v)| (k.clone(), v.clone())).collect();
    let metadata = Metadata {
        id: metadata.id().to_owned(),
        description: metadata.description().map(str::to_owned),
        schema_text: metadata.schema_string().to_owned(),
        partition_columns: metadata.partition_columns().to_vec(),
        configuration,
        raw: None,
    };
    let log_version = LogVersion::new(snapshot.version());
    TableState::new(log_version, protocol, metadata, None).map_err(|e| unusable("the loaded table", e))
}
