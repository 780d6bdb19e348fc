//! Table features: what each asks of a metadata-only commit, as a table in code.
//!
//! Names as in PROTOCOL.md, Valid Feature Names in Table Features. A feature that is not listed is
//! refused: a writer must implement every writer feature of a table.

use std::collections::BTreeSet;

use indexmap::IndexMap;

use super::types::{Field, Primitive};

/// What a feature asks of a commit that changes the log only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rule {
    /// Nothing: such a commit touches nothing that the feature speaks of.
    Nothing,
    /// Not handled here; the table is refused by the feature's name.
    Refuse,
}

/// Every feature with a rule; one that is missing here is refused as unknown.
const RULES: &[(&str, Rule)] = &[
    ("appendOnly", Rule::Nothing),
    // Invariants, constraints and generation expressions live in field metadata and properties,
    // which are carried over byte for byte; no step here adds one.
    ("invariants", Rule::Nothing),
    ("checkConstraints", Rule::Nothing),
    ("generatedColumns", Rule::Nothing),
    // No data changes, so no cdc action; the reserved names are kept free by the check of names.
    ("changeDataFeed", Rule::Nothing),
    ("deletionVectors", Rule::Nothing),
    ("v2Checkpoint", Rule::Nothing),
    ("timestampNtz", Rule::Nothing),
    ("adaptiveMetadata", Rule::Refuse),
    ("allowColumnDefaults", Rule::Refuse),
    ("catalogManaged", Rule::Refuse),
    ("catalogOwned", Rule::Refuse),
    ("catalogOwned-preview", Rule::Refuse),
    ("checkpointProtection", Rule::Refuse),
    ("clustering", Rule::Refuse),
    ("collations", Rule::Refuse),
    ("collations-preview", Rule::Refuse),
    ("columnMapping", Rule::Refuse),
    ("coordinatedCommits-preview", Rule::Refuse),
    ("domainMetadata", Rule::Refuse),
    ("geospatial", Rule::Refuse),
    ("icebergCompatV1", Rule::Refuse),
    ("icebergCompatV2", Rule::Refuse),
    ("icebergCompatV3", Rule::Refuse),
    ("icebergWriterCompatV1", Rule::Refuse),
    ("identityColumns", Rule::Refuse),
    ("inCommitTimestamp", Rule::Refuse),
    ("materializePartitionColumns", Rule::Refuse),
    ("redirectReaderWriter-preview", Rule::Refuse),
    ("redirectWriterOnly-preview", Rule::Refuse),
    ("rowTracking", Rule::Refuse),
    ("timestampNanos", Rule::Refuse),
    ("typeWidening", Rule::Refuse),
    ("typeWidening-preview", Rule::Refuse),
    ("vacuumProtocolCheck", Rule::Refuse),
    ("variantShredding", Rule::Refuse),
    ("variantShredding-preview", Rule::Refuse),
    ("variantType", Rule::Refuse),
    ("variantType-preview", Rule::Refuse),
];

/// What each legacy writer version adds (PROTOCOL.md, Table Features for New and Existing Tables).
const IMPLIED: &[(i64, &[&str])] = &[
    (2, &["appendOnly", "invariants"]),
    (3, &["checkConstraints"]),
    (4, &["changeDataFeed", "generatedColumns"]),
    (5, &["columnMapping"]),
    (6, &["identityColumns"]),
];

/// The newest protocol versions there are.
const MAX_READER: i64 = 3;
const MAX_WRITER: i64 = 7;

/// A protocol action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Protocol {
    pub(crate) min_reader: i64,
    pub(crate) min_writer: i64,
    pub(crate) reader_features: Option<Vec<String>>,
    pub(crate) writer_features: Option<Vec<String>>,
}

impl Protocol {
    /// Every feature that the table asks a writer for, listed or implied, in alphabetical order.
    pub(crate) fn features(&self) -> BTreeSet<&str> {
        let listed = [&self.reader_features, &self.writer_features].into_iter().flatten().flatten();
        let mut features: BTreeSet<&str> = listed.map(String::as_str).collect();
        if self.min_writer < MAX_WRITER {
            let implied = IMPLIED.iter().filter(|(version, _)| *version <= self.min_writer);
            features.extend(implied.flat_map(|(_, names)| names.iter().copied()));
        }
        features
    }

    pub(crate) fn has(&self, feature: &str) -> bool {
        self.features().contains(feature)
    }
}

/// Everything about a table's protocol and properties that forbids a commit of ours; empty if none.
pub(crate) fn refused(protocol: &Protocol, configuration: &IndexMap<String, String>) -> Vec<String> {
    let mut refused = Vec::new();
    if protocol.min_reader > MAX_READER {
        refused.push(format!("reader version {}", protocol.min_reader));
    }
    if protocol.min_writer > MAX_WRITER {
        refused.push(format!("writer version {}", protocol.min_writer));
    }
    for feature in protocol.features() {
        match RULES.iter().find(|(name, _)| *name == feature) {
            Some((_, Rule::Nothing)) => {}
            Some((_, Rule::Refuse)) | None => refused.push(feature.to_owned()),
        }
    }
    // Properties that promise a feature which the protocol does not list leave a table that some
    // engine reads otherwise; writing to it would take a side.
    let is = |key: &str, value: &str| configuration.get(key).is_some_and(|v| v.eq_ignore_ascii_case(value));
    if is("delta.checkpointPolicy", "v2") && !protocol.has("v2Checkpoint") {
        refused.push("delta.checkpointPolicy=v2 without the feature v2Checkpoint".to_owned());
    }
    let mapping = configuration.get("delta.columnMapping.mode").filter(|m| m.as_str() != "none");
    if let Some(mode) = mapping
        && !protocol.has("columnMapping")
    {
        refused.push(format!("delta.columnMapping.mode={mode} without the feature columnMapping"));
    }
    refused
}

/// Properties that turn a feature on or off, each with the feature; prefixes end with a dot.
const ENABLING: &[(&str, &str)] = &[
    ("delta.appendOnly", "appendOnly"),
    ("delta.checkpointPolicy", "v2Checkpoint"),
    ("delta.columnMapping.", "columnMapping"),
    ("delta.constraints.", "checkConstraints"),
    ("delta.coordinatedCommits.", "coordinatedCommits"),
    ("delta.enableChangeDataFeed", "changeDataFeed"),
    ("delta.enableDeletionVectors", "deletionVectors"),
    ("delta.enableIcebergCompatV1", "icebergCompatV1"),
    ("delta.enableIcebergCompatV2", "icebergCompatV2"),
    ("delta.enableIcebergCompatV3", "icebergCompatV3"),
    ("delta.enableIcebergWriterCompatV1", "icebergWriterCompatV1"),
    ("delta.enableInCommitTimestamps", "inCommitTimestamp"),
    ("delta.enableRowTracking", "rowTracking"),
    ("delta.enableTypeWidening", "typeWidening"),
    ("delta.enableVariantShredding", "variantShredding"),
    ("delta.inCommitTimestampEnablement", "inCommitTimestamp"),
    ("delta.redirect", "redirectReaderWriter"),
    ("delta.rowTracking.", "rowTracking"),
];

/// The feature that a property turns on or off, if it does; `delta.feature.x` and the protocol
/// versions count too.
pub(crate) fn enabled_by(property: &str) -> Option<&str> {
    let lower = property.to_ascii_lowercase();
    if let Some(rest) = lower.strip_prefix("delta.feature.") {
        return property.get(property.len() - rest.len()..);
    }
    if lower == "delta.minreaderversion" || lower == "delta.minwriterversion" {
        return Some("protocol version");
    }
    let hit = |name: &str| {
        let name = name.to_ascii_lowercase();
        if name.ends_with('.') {
            lower.starts_with(&name)
        } else {
            lower == name || lower.starts_with(&format!("{name}-"))
        }
    };
    let prefixes = ["delta.inCommitTimestampEnablement"];
    ENABLING
        .iter()
        .find(|(name, _)| {
            hit(name) || (prefixes.contains(name) && lower.starts_with(&name.to_ascii_lowercase()))
        })
        .map(|(_, feature)| *feature)
}

/// The protocol that a new table needs, or the features that can't be given to it at birth.
pub(crate) fn protocol_at_birth(
    columns: &[Field],
    properties: &IndexMap<String, String>,
) -> Result<Protocol, Vec<String>> {
    let on = |key: &str| properties.get(key).is_some_and(|v| v.eq_ignore_ascii_case("true"));
    let (mut needed, mut refused) = (BTreeSet::new(), Vec::new());
    for (key, value) in properties {
        match (enabled_by(key), value.as_str()) {
            (None, _) | (Some("appendOnly"), _) => {}
            (Some(_), "false" | "none" | "classic") => {}
            (Some("changeDataFeed"), _) => drop(on(key).then(|| needed.insert("changeDataFeed"))),
            (Some("deletionVectors"), _) => drop(on(key).then(|| needed.insert("deletionVectors"))),
            (Some("v2Checkpoint"), "v2") => drop(needed.insert("v2Checkpoint")),
            (Some(feature), _) => refused.push(feature.to_owned()),
        }
    }
    for primitive in columns.iter().flat_map(|f| f.data_type.primitives()) {
        match primitive {
            Primitive::TimestampNtz => drop(needed.insert("timestampNtz")),
            Primitive::Variant => refused.push("variantType".to_owned()),
            _ => {}
        }
    }
    if !refused.is_empty() {
        refused.sort_unstable();
        refused.dedup();
        return Err(refused);
    }
    if needed.iter().all(|f| *f == "changeDataFeed") {
        let min_writer = if needed.is_empty() { 2 } else { 4 };
        return Ok(Protocol { min_reader: 1, min_writer, reader_features: None, writer_features: None });
    }
    needed.extend(["appendOnly", "invariants"]);
    let reader = ["deletionVectors", "timestampNtz", "v2Checkpoint"];
    let reader: Vec<String> =
        reader.iter().filter(|f| needed.contains(*f)).map(ToString::to_string).collect();
    Ok(Protocol {
        min_reader: 3,
        min_writer: 7,
        reader_features: Some(reader),
        writer_features: Some(needed.into_iter().map(str::to_owned).collect()),
    })
}

#[cfg(test)]
mod tests;
