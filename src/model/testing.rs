//! Table states for the tests of the pure core.

pub(crate) mod schemas;

use indexmap::IndexMap;
use serde_json::json;

use super::features::Protocol;
use super::state::{Metadata, TableState};
use super::types::{DataType, parse_type, schema_json};
use super::version::{LogVersion, Namespace, SchemaVersion};

pub(crate) fn namespace() -> Namespace {
    Namespace::new("app").unwrap()
}

pub(crate) fn version(number: u32) -> SchemaVersion {
    SchemaVersion::new(number)
}

/// A (1,2) table at log version 7 with the columns of a struct's text.
pub(crate) fn table(columns: &str, properties: &[(&str, &str)]) -> TableState {
    let Ok(DataType::Struct(fields)) = parse_type(&format!("struct<{columns}>")) else {
        panic!("columns: {columns}")
    };
    let configuration: IndexMap<&str, &str> = properties.iter().copied().collect();
    let raw = json!({
        "id": "table-id",
        "name": "n",
        "format": { "provider": "parquet", "options": { "o": "1" } },
        "schemaString": schema_json(&fields).to_string(),
        "partitionColumns": [],
        "configuration": configuration,
        "createdTime": 17,
        "future": [1],
    });
    let protocol = Protocol { min_reader: 1, min_writer: 2, reader_features: None, writer_features: None };
    of(&raw.to_string(), protocol)
}

pub(crate) fn of(raw: &str, protocol: Protocol) -> TableState {
    TableState::new(LogVersion::new(7), protocol, Metadata::parse(raw).unwrap(), None).unwrap()
}

/// A protocol of (3,7) with these features for readers and writers alike.
pub(crate) fn features(names: &[&str]) -> Protocol {
    let list: Vec<String> = names.iter().map(ToString::to_string).collect();
    Protocol {
        min_reader: 3,
        min_writer: 7,
        reader_features: Some(list.clone()),
        writer_features: Some(list),
    }
}
