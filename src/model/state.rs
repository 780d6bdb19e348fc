//! What a table says at one log version, and the stamps in it.

use indexmap::IndexMap;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::digest::ChainDigest;
use super::features::Protocol;
use super::types::{Field, SchemaError, schema_from_json};
use super::version::{LogVersion, MinVersion, Namespace, SchemaVersion};

/// A table at one log version: protocol, metadata and the evidence of a stamp.
#[derive(Debug, Clone)]
pub(crate) struct TableState {
    pub(crate) log_version: LogVersion,
    pub(crate) protocol: Protocol,
    pub(crate) metadata: Metadata,
    /// The columns of the schema string.
    pub(crate) columns: Vec<Field>,
    /// The version in the `txn` action that every stamp leaves; looked up only without a stamp.
    pub(crate) evidence: Option<SchemaVersion>,
    /// How many commits the log shows in the hour before its newest one; 0 where that is not known.
    pub(crate) recent_commits: u32,
}

/// A metaData action.
#[derive(Debug, Clone)]
pub(crate) struct Metadata {
    pub(crate) id: String,
    pub(crate) description: Option<String>,
    pub(crate) schema_text: String,
    pub(crate) partition_columns: Vec<String>,
    pub(crate) configuration: IndexMap<String, String>,
    /// The action's object as it stands in the log; none where only a loaded snapshot was looked at.
    pub(crate) raw: Option<String>,
}

/// Why a log's metadata or protocol can't be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum StateError {
    #[error("the {action} action can't be read: {why}")]
    Malformed { action: &'static str, why: String },
    #[error("property `{0}` is null, which no Delta reader accepts")]
    NullProperty(String),
    #[error(transparent)]
    Schema(#[from] SchemaError),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct MetadataJson<'a> {
    id: String,
    #[serde(default)]
    description: Option<String>,
    schema_string: String,
    #[serde(default)]
    partition_columns: Vec<String>,
    #[serde(default, borrow)]
    configuration: Option<IndexMap<String, &'a RawValue>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ProtocolJson {
    min_reader_version: i64,
    min_writer_version: i64,
    #[serde(default)]
    reader_features: Option<Vec<String>>,
    #[serde(default)]
    writer_features: Option<Vec<String>>,
}

impl Metadata {
    /// Reads the object of a metaData action.
    pub(crate) fn parse(raw: &str) -> Result<Self, StateError> {
        let wrong =
            |why: serde_json::Error| StateError::Malformed { action: "metaData", why: why.to_string() };
        let json: MetadataJson<'_> = serde_json::from_str(raw).map_err(wrong)?;
        let mut configuration = IndexMap::new();
        for (key, value) in json.configuration.unwrap_or_default() {
            match serde_json::from_str::<Option<String>>(value.get()).map_err(wrong)? {
                Some(value) => configuration.insert(key, value),
                None => return Err(StateError::NullProperty(key)),
            };
        }
        Ok(Self {
            id: json.id,
            description: json.description,
            schema_text: json.schema_string,
            partition_columns: json.partition_columns,
            configuration,
            raw: Some(raw.to_owned()),
        })
    }
}

impl Protocol {
    /// Reads the object of a protocol action.
    pub(crate) fn parse(raw: &str) -> Result<Self, StateError> {
        let json: ProtocolJson = serde_json::from_str(raw)
            .map_err(|e| StateError::Malformed { action: "protocol", why: e.to_string() })?;
        Ok(Self {
            min_reader: json.min_reader_version,
            min_writer: json.min_writer_version,
            reader_features: json.reader_features,
            writer_features: json.writer_features,
        })
    }
}

impl TableState {
    /// Puts a state together; the schema string is read here.
    pub(crate) fn new(
        log_version: LogVersion,
        protocol: Protocol,
        metadata: Metadata,
        evidence: Option<SchemaVersion>,
    ) -> Result<Self, StateError> {
        let columns = schema_from_json(&metadata.schema_text)?;
        Ok(Self { log_version, protocol, metadata, columns, evidence, recent_commits: 0 })
    }

    /// A text that changes with the table's id, protocol, schema and configuration, and with
    /// nothing else: what a saved plan is compared by.
    pub(crate) fn fingerprint(&self) -> String {
        use sha2::{Digest, Sha256};
        let Metadata { id, description, schema_text, partition_columns, configuration, raw: _ } =
            &self.metadata;
        let sorted: std::collections::BTreeMap<_, _> = configuration.iter().collect();
        let Protocol { min_reader, min_writer, .. } = &self.protocol;
        let features: Vec<_> = self.protocol.features().into_iter().collect();
        let text = serde_json::json!([
            id,
            description,
            schema_text,
            partition_columns,
            sorted,
            min_reader,
            min_writer,
            features
        ]);
        Sha256::digest(text.to_string().as_bytes()).iter().map(|b| format!("{b:02x}")).collect()
    }
}

/// Names of the properties that delta-migrate keeps in its namespace.
pub(crate) mod keys {
    pub(crate) const SCHEMA_VERSION: &str = "schema_version";
    pub(crate) const MIN_VERSION: &str = "min_version";
    pub(crate) const KIND: &str = "kind";
    pub(crate) const DIGEST: &str = "schema_digest";
    pub(crate) const HISTORY: &str = "schema_history";
}

/// The stamps of one namespace on a table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Stamps {
    pub(crate) schema_version: Option<SchemaVersion>,
    pub(crate) min_version: Option<MinVersion>,
    pub(crate) kind: Option<String>,
    pub(crate) digest: Option<ChainDigest>,
    /// The history as it stands, not yet read.
    pub(crate) history: Option<String>,
}

/// A stamp that can't be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InvalidStamp {
    /// The property.
    pub(crate) property: String,
    /// Its value.
    pub(crate) value: String,
    /// What would be right.
    pub(crate) wanted: &'static str,
}

impl Stamps {
    pub(crate) fn read(
        namespace: &Namespace,
        configuration: &IndexMap<String, String>,
    ) -> Result<Self, InvalidStamp> {
        let get = |key: &str| configuration.get(&namespace.property(key));
        let invalid = |key: &str, value: &str, wanted| InvalidStamp {
            property: namespace.property(key),
            value: value.to_owned(),
            wanted,
        };
        const NUMBER: &str = "wanted a whole number from 0 to 4294967295 in plain digits";
        let schema_version = get(keys::SCHEMA_VERSION)
            .map(|v| SchemaVersion::from_stamp(v).ok_or_else(|| invalid(keys::SCHEMA_VERSION, v, NUMBER)))
            .transpose()?;
        let min_version = get(keys::MIN_VERSION)
            .map(|v| MinVersion::from_stamp(v).ok_or_else(|| invalid(keys::MIN_VERSION, v, NUMBER)))
            .transpose()?;
        let kind = get(keys::KIND)
            .map(|k| {
                if k.is_empty() {
                    Err(invalid(keys::KIND, k, "wanted the name of a kind"))
                } else {
                    Ok(k.clone())
                }
            })
            .transpose()?;
        const DIGEST: &str = "wanted `1:` and 8 hexadecimal digits a migration, separated by commas";
        let digest = get(keys::DIGEST)
            .map(|d| ChainDigest::from_stamp(d).map_err(|()| invalid(keys::DIGEST, d, DIGEST)))
            .transpose()?
            .flatten();
        Ok(Self { schema_version, min_version, kind, digest, history: get(keys::HISTORY).cloned() })
    }
}
