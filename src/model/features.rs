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
    /// Nothing: such a commit touches nothing that the feature speaks of, or carries it over byte
    /// for byte with the rest of the metadata.
    Nothing,
    /// Something that [`Duties`] does.
    Duty,
    /// Refused by the feature's name.
    Refuse,
}

/// Every feature with a rule; one that is missing here is refused as unknown.
const RULES: &[(&str, Rule)] = &[
    ("adaptiveMetadata", Rule::Refuse),
    // §Default Columns: the command that adds a column must not set its default; none here does.
    ("allowColumnDefaults", Rule::Nothing),
    ("appendOnly", Rule::Nothing),
    // §Catalog-managed tables: a commit to the file system is forbidden.
    ("catalogManaged", Rule::Refuse),
    ("catalogOwned", Rule::Refuse),
    ("catalogOwned-preview", Rule::Refuse),
    // No data changes, so no cdc action; the reserved names are kept free by the check of names.
    ("changeDataFeed", Rule::Nothing),
    // Invariants, constraints and generation expressions live in field metadata and properties;
    // no step here adds one.
    ("checkConstraints", Rule::Nothing),
    // Nothing here writes a checkpoint or cleans up a log.
    ("checkpointProtection", Rule::Nothing),
    // Domains persist until they are removed; none is touched.
    ("clustering", Rule::Nothing),
    // `__COLLATIONS` stands in field metadata.
    ("collations", Rule::Nothing),
    ("collations-preview", Rule::Nothing),
    ("columnMapping", Rule::Duty),
    ("coordinatedCommits-preview", Rule::Refuse),
    ("deletionVectors", Rule::Nothing),
    ("domainMetadata", Rule::Nothing),
    ("generatedColumns", Rule::Nothing),
    ("geospatial", Rule::Refuse),
    ("icebergCompatV1", Rule::Duty),
    ("icebergCompatV2", Rule::Duty),
    ("icebergCompatV3", Rule::Duty),
    ("icebergWriterCompatV1", Rule::Refuse),
    ("icebergWriterCompatV3", Rule::Refuse),
    // The high-water mark stands in field metadata. It is the newest one, because a commit builds
    // on the log version that was read or not at all.
    ("identityColumns", Rule::Nothing),
    ("inCommitTimestamp", Rule::Duty),
    ("invariants", Rule::Nothing),
    ("materializePartitionColumns", Rule::Nothing),
    ("redirectReaderWriter-preview", Rule::Refuse),
    ("redirectWriterOnly-preview", Rule::Refuse),
    ("rowTracking", Rule::Duty),
    ("timestampNanos", Rule::Refuse),
    ("timestampNtz", Rule::Nothing),
    // `delta.typeChanges` stands in field metadata.
    ("typeWidening", Rule::Nothing),
    ("typeWidening-preview", Rule::Nothing),
    ("v2Checkpoint", Rule::Nothing),
    ("vacuumProtocolCheck", Rule::Nothing),
    ("variantShredding", Rule::Nothing),
    ("variantShredding-preview", Rule::Nothing),
    ("variantType", Rule::Nothing),
    ("variantType-preview", Rule::Nothing),
];

/// What the active features of a table ask of a commit; see delta-rules of each where it is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Duties {
    /// New fields get ids and physical names (§Column Mapping).
    pub(crate) column_mapping: bool,
    /// Elements of new arrays and maps get ids too (§IcebergCompatV2).
    pub(crate) nested_ids: bool,
    /// No new arrays and maps at all (§IcebergCompatV1).
    pub(crate) no_collections: bool,
    /// New columns keep to the types that Iceberg knows.
    pub(crate) iceberg_types: bool,
    /// commitInfo carries a timestamp above the one before (§In-Commit Timestamps).
    pub(crate) in_commit_timestamp: bool,
    /// commitInfo says that row ids were preserved (§Row Tracking).
    pub(crate) row_tracking: bool,
}

impl Duties {
    pub(crate) fn of(protocol: &Protocol, configuration: &IndexMap<String, String>) -> Self {
        let on = |key: &str| is(configuration, key, "true");
        let v1 = on("delta.enableIcebergCompatV1");
        let later = on("delta.enableIcebergCompatV2") || on("delta.enableIcebergCompatV3");
        Self {
            column_mapping: mapping_mode(configuration).is_some(),
            nested_ids: later,
            no_collections: v1,
            iceberg_types: v1 || later,
            in_commit_timestamp: protocol.has("inCommitTimestamp") && on("delta.enableInCommitTimestamps"),
            row_tracking: protocol.has("rowTracking"),
        }
    }
}

fn is(configuration: &IndexMap<String, String>, key: &str, value: &str) -> bool {
    configuration.get(key).is_some_and(|v| v.eq_ignore_ascii_case(value))
}

/// The mode of column mapping, where it is on.
pub(crate) fn mapping_mode(configuration: &IndexMap<String, String>) -> Option<&str> {
    configuration.get("delta.columnMapping.mode").map(String::as_str).filter(|m| *m != "none")
}

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
            let implied = implied.flat_map(|(_, names)| names.iter().copied());
            // Readers of version 1 were never told of column mapping, so that it can't be in use.
            features.extend(implied.filter(|f| *f != "columnMapping" || self.min_reader >= 2));
        }
        features
    }

    /// Adds a feature: to the lists, with everything that the old versions implied.
    ///
    /// Writers go to version 7; readers go to version 3 only where they must know the feature.
    pub(crate) fn add(&mut self, feature: &str) {
        if self.has(feature) {
            return;
        }
        let mut writers: BTreeSet<String> = self.features().into_iter().map(str::to_owned).collect();
        writers.insert(feature.to_owned());
        let for_readers = READER_FEATURES.contains(&feature);
        // Writer versions 5 and 6 stood for column mapping, which readers must be told of as well: by
        // reader version 2 where no list of theirs is needed, or nobody could read the table.
        let mapping = match self.min_writer {
            MAX_WRITER.. => self.has("columnMapping"),
            version => version >= 5 || self.min_reader == 2,
        };
        if mapping {
            writers.insert("columnMapping".to_owned());
            self.min_reader = self.min_reader.max(2);
        }
        if self.min_writer < MAX_WRITER {
            self.min_writer = MAX_WRITER;
            self.writer_features = Some(writers.into_iter().collect());
        } else {
            self.writer_features.get_or_insert_default().push(feature.to_owned());
        }
        if for_readers && self.min_reader < MAX_READER {
            let implied = mapping.then(|| "columnMapping".to_owned());
            self.min_reader = MAX_READER;
            self.reader_features = Some(implied.into_iter().collect());
        }
        if for_readers {
            self.reader_features.get_or_insert_default().push(feature.to_owned());
        }
    }

    pub(crate) fn has(&self, feature: &str) -> bool {
        self.features().contains(feature)
    }
}

/// Columns whose types need a feature that the protocol does not list: no engine opens such a table.
pub(crate) fn unlisted_types(protocol: &Protocol, columns: &[Field]) -> Vec<String> {
    let mut out = BTreeSet::new();
    for primitive in columns.iter().flat_map(|f| f.data_type.primitives()) {
        let (name, features): (&str, &[&str]) = match primitive {
            Primitive::TimestampNtz => ("timestamp_ntz", &["timestampNtz"]),
            Primitive::Variant => ("variant", &["variantType", "variantType-preview"]),
            Primitive::Other(name) if name.starts_with("geo") => (name, &["geospatial"]),
            Primitive::Other(name) if name == "timestamp_nanos" => (name, &["timestampNanos"]),
            _ => continue,
        };
        if let Some(wanted) = features.first().filter(|_| !features.iter().any(|f| protocol.has(f))) {
            out.insert(format!("a column of type {name} without the feature {wanted}"));
        }
    }
    out.into_iter().collect()
}

/// Versions and lists of a protocol action that do not go together (§Protocol Evolution).
fn malformed(protocol: &Protocol) -> Vec<String> {
    let Protocol { min_reader, min_writer, reader_features, writer_features } = protocol;
    let mut out = Vec::new();
    let mut if_so = |so: bool, what: String| {
        if so {
            out.push(what);
        }
    };
    if_so(*min_reader < 1, format!("reader version {min_reader}"));
    if_so(*min_writer < 1, format!("writer version {min_writer}"));
    if_so(
        *min_reader == MAX_READER && reader_features.is_none(),
        "reader version 3 without readerFeatures".into(),
    );
    if_so(
        *min_writer == MAX_WRITER && writer_features.is_none(),
        "writer version 7 without writerFeatures".into(),
    );
    if_so(
        *min_reader == MAX_READER && *min_writer < MAX_WRITER,
        format!("reader version 3 with writer version {min_writer}"),
    );
    let writers: BTreeSet<&String> = writer_features.iter().flatten().collect();
    for feature in reader_features.iter().flatten().filter(|f| !writers.contains(f)) {
        if_so(*min_writer >= MAX_WRITER, format!("{feature} in readerFeatures alone"));
    }
    out
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
            Some((_, Rule::Nothing | Rule::Duty)) => {}
            Some((_, Rule::Refuse)) | None => refused.push(feature.to_owned()),
        }
    }
    refused.extend(malformed(protocol));
    refused.extend(contradictions(protocol, configuration));
    refused
}

/// Properties that promise a feature which the protocol does not list: engines read such a table
/// differently, and writing to it would take a side.
fn contradictions(protocol: &Protocol, configuration: &IndexMap<String, String>) -> Vec<String> {
    let mut out = Vec::new();
    let without = |property: String, feature: &str| {
        (!protocol.has(feature)).then(|| format!("{property} without the feature {feature}"))
    };
    let on = |key: &str| is(configuration, key, "true");
    if is(configuration, "delta.checkpointPolicy", "v2") {
        out.extend(without("delta.checkpointPolicy=v2".to_owned(), "v2Checkpoint"));
    }
    let mode = mapping_mode(configuration);
    if let Some(mode) = mode {
        out.extend(without(format!("delta.columnMapping.mode={mode}"), "columnMapping"));
    }
    for (property, feature) in [
        ("delta.enableIcebergCompatV1", "icebergCompatV1"),
        ("delta.enableIcebergCompatV2", "icebergCompatV2"),
        ("delta.enableIcebergCompatV3", "icebergCompatV3"),
    ] {
        if on(property) {
            out.extend(without(format!("{property}=true"), feature));
            if mode.is_none() {
                out.push(format!("{property}=true without column mapping"));
            }
        }
    }
    // §Writer Requirements for IcebergCompatV1 and V2: deletion vectors not supported, not active.
    if on("delta.enableIcebergCompatV1") && protocol.has("deletionVectors") {
        out.push("delta.enableIcebergCompatV1=true with the feature deletionVectors".to_owned());
    }
    if on("delta.enableIcebergCompatV2")
        && protocol.has("deletionVectors")
        && on("delta.enableDeletionVectors")
    {
        out.push("delta.enableIcebergCompatV2=true with delta.enableDeletionVectors=true".to_owned());
    }
    // §Writer Requirements for each IcebergCompat: no other one may be active.
    let active = ["V1", "V2", "V3"].iter().filter(|v| on(&format!("delta.enableIcebergCompat{v}"))).count();
    if active > 1 {
        out.push("two versions of Iceberg compatibility at once".to_owned());
    }
    if let Some(mode) = mode.filter(|m| !matches!(*m, "name" | "id")) {
        out.push(format!("delta.columnMapping.mode={mode}"));
    }
    if on("delta.enableIcebergCompatV3") && !on("delta.enableRowTracking") {
        out.push("delta.enableIcebergCompatV3=true without row tracking".to_owned());
    }
    if on("delta.enableInCommitTimestamps") {
        out.extend(without("delta.enableInCommitTimestamps=true".to_owned(), "inCommitTimestamp"));
    }
    out
}

/// What `enable_features` can enable by metadata alone, each with the property that turns it on.
///
/// Others need work on rows or files (constraints, column mapping, row tracking), or change who may
/// write at all.
pub(crate) const ENABLED_BY_STEP: [(&str, Option<(&str, &str)>); 13] = [
    ("allowColumnDefaults", None),
    ("appendOnly", Some(("delta.appendOnly", "true"))),
    ("changeDataFeed", Some(("delta.enableChangeDataFeed", "true"))),
    ("checkConstraints", None),
    ("deletionVectors", Some(("delta.enableDeletionVectors", "true"))),
    ("domainMetadata", None),
    ("generatedColumns", None),
    ("invariants", None),
    ("timestampNtz", None),
    ("typeWidening", Some(("delta.enableTypeWidening", "true"))),
    ("v2Checkpoint", Some(("delta.checkpointPolicy", "v2"))),
    ("vacuumProtocolCheck", None),
    ("variantType", None),
];

/// Whether a feature of that name is known at all; else the one that was probably meant.
pub(crate) fn known(feature: &str) -> Result<(), Option<&'static str>> {
    let names: Vec<&'static str> = RULES.iter().map(|(name, _)| *name).collect();
    if names.contains(&feature) { Ok(()) } else { Err(super::kind::nearest(feature, &names)) }
}

/// The property that comes with enabling a feature; the outer `None` if no step can enable it.
pub(crate) fn enabling(feature: &str) -> Option<Option<(&'static str, &'static str)>> {
    ENABLED_BY_STEP.iter().find(|(name, _)| *name == feature).map(|(_, property)| *property)
}

/// Features that readers must know too (PROTOCOL.md, Valid Feature Names in Table Features).
const READER_FEATURES: [&str; 8] = [
    "columnMapping",
    "deletionVectors",
    "timestampNtz",
    "typeWidening",
    "v2Checkpoint",
    "vacuumProtocolCheck",
    "variantShredding",
    "variantType",
];

/// Features of a table whose files can be read and written by a data step: what delta-rs does with
/// DataFusion, and those that speak of the log alone, which this program writes itself.
const REWRITTEN: [&str; 17] = [
    "allowColumnDefaults",
    "appendOnly",
    "changeDataFeed",
    "checkConstraints",
    "checkpointProtection",
    "clustering",
    "columnMapping",
    "deletionVectors",
    "domainMetadata",
    "generatedColumns",
    "identityColumns",
    "inCommitTimestamp",
    "invariants",
    "timestampNtz",
    "v2Checkpoint",
    "vacuumProtocolCheck",
    "variantType",
];

/// Features that readers must know, and that the reader of data steps does.
const READ: [&str; 6] = [
    "columnMapping",
    "deletionVectors",
    "timestampNtz",
    "v2Checkpoint",
    "vacuumProtocolCheck",
    "variantType",
];

/// Features of a table whose files no data step can rewrite.
pub(crate) fn not_rewritten(protocol: &Protocol) -> Vec<String> {
    protocol.features().into_iter().filter(|f| !REWRITTEN.contains(f)).map(str::to_owned).collect()
}

/// Features that the reader of data steps lacks.
pub(crate) fn not_read(protocol: &Protocol) -> Vec<String> {
    let features = protocol.reader_features.iter().flatten();
    features.filter(|f| !READ.contains(&f.as_str())).cloned().collect()
}

/// Whether the writer of data steps needs to be told of a feature; the others are met by the commit.
#[cfg(feature = "datafusion")]
pub(crate) fn is_told_to_writers(feature: &str) -> bool {
    const COMMIT: [&str; 8] = [
        "allowColumnDefaults",
        "checkpointProtection",
        "clustering",
        "domainMetadata",
        "identityColumns",
        "inCommitTimestamp",
        "v2Checkpoint",
        "vacuumProtocolCheck",
    ];
    !COMMIT.contains(&feature)
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

/// Features that a table can be born with by a property alone, each with that property and value.
const BORN_WITH: [(&str, &str, &str); 8] = [
    ("columnMapping", "delta.columnMapping.mode", "name"),
    ("columnMapping", "delta.columnMapping.mode", "id"),
    ("changeDataFeed", "delta.enableChangeDataFeed", "true"),
    ("deletionVectors", "delta.enableDeletionVectors", "true"),
    ("inCommitTimestamp", "delta.enableInCommitTimestamps", "true"),
    ("typeWidening", "delta.enableTypeWidening", "true"),
    ("v2Checkpoint", "delta.checkpointPolicy", "v2"),
    // Every writer version knows it.
    ("appendOnly", "delta.appendOnly", "true"),
];

/// What a property means for a table that is born with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AtBirth<'a> {
    /// Nothing for the protocol.
    Nothing,
    /// The table gets this feature.
    Gives(&'static str),
    /// It turns on a feature, or is a part of one, that no table can be given at birth.
    Refused(&'a str),
}

/// What a property means for a table that is born with it.
pub(crate) fn at_birth<'a>(key: &'a str, value: &str) -> AtBirth<'a> {
    let Some(feature) = enabled_by(key) else { return AtBirth::Nothing };
    let born = BORN_WITH.iter().find(|(_, k, v)| *k == key && value.eq_ignore_ascii_case(v));
    let off = ["false", "none", "classic"].iter().any(|v| value.eq_ignore_ascii_case(v));
    match born {
        Some((feature, _, _)) => AtBirth::Gives(feature),
        None if off => AtBirth::Nothing,
        None => AtBirth::Refused(feature),
    }
}

/// The protocol that a new table needs, or the features that can't be given to it at birth.
pub(crate) fn protocol_at_birth(
    columns: &[Field],
    properties: &IndexMap<String, String>,
    enabled: &[String],
) -> Result<Protocol, Vec<String>> {
    let (mut needed, mut refused) = (BTreeSet::new(), BTreeSet::new());
    for feature in enabled {
        match ENABLED_BY_STEP.iter().find(|(name, _)| name == feature) {
            Some((name, _)) => drop(needed.insert(*name)),
            None => drop(refused.insert(feature.clone())),
        }
    }
    for (key, value) in properties {
        match at_birth(key, value) {
            AtBirth::Nothing => {}
            AtBirth::Gives(feature) => drop(needed.insert(feature)),
            AtBirth::Refused(feature) => drop(refused.insert(feature.to_owned())),
        }
    }
    for primitive in columns.iter().flat_map(|f| f.data_type.primitives()) {
        match primitive {
            Primitive::TimestampNtz => drop(needed.insert("timestampNtz")),
            Primitive::Variant => drop(needed.insert("variantType")),
            _ => {}
        }
    }
    if !refused.is_empty() {
        return Err(refused.into_iter().collect());
    }
    // The oldest protocol that does, so that the most readers and writers can take part.
    let mut protocol =
        Protocol { min_reader: 1, min_writer: 2, reader_features: None, writer_features: None };
    let implied =
        |version: i64| IMPLIED.iter().filter(move |(v, _)| *v <= version).flat_map(|(_, names)| *names);
    if let Some(version) = (2..=5).find(|version| needed.iter().all(|f| implied(*version).any(|i| i == f))) {
        protocol.min_writer = version;
        // Writer version 5 is column mapping, which readers must know as well.
        protocol.min_reader = if version == 5 { 2 } else { 1 };
    } else {
        needed.iter().for_each(|feature| protocol.add(feature));
    }
    Ok(protocol)
}

#[cfg(test)]
mod tests;
