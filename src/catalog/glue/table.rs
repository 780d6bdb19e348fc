//! What an entry of the catalog is, and where its table lies.

use std::collections::HashMap;

use aws_sdk_glue::types::{Column, StorageDescriptor, Table};
use serde_json::Value;

/// What an entry of the catalog is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// A Delta table, with the catalog's copy of its columns.
    Delta { uri: String, columns: Option<Vec<String>> },
    /// Something else, in words that follow `it is`.
    Other(&'static str),
    /// A Delta table without a location.
    Nowhere,
}

type Parameters = Option<HashMap<String, String>>;

/// What an entry of the catalog is.
pub(super) fn judge(table: &Table) -> Verdict {
    if table.target_table.is_some() {
        return Verdict::Other("a link to a table of another catalog");
    }
    if table.table_type.as_deref().is_some_and(|t| t.to_ascii_uppercase().contains("VIEW")) {
        return Verdict::Other("a view");
    }
    if let Some(what) = other_format(&table.parameters) {
        return Verdict::Other(what);
    }
    let is_by_spark = parameter(&table.parameters, PROVIDER).is_some();
    let storage = table.storage_descriptor.as_ref();
    let format = storage.and_then(|s| s.input_format.as_deref()).unwrap_or_default();
    if !is_by_spark && format.contains("SymlinkTextInputFormat") {
        return Verdict::Other(MANIFEST);
    }
    match storage.and_then(location) {
        None => Verdict::Nowhere,
        Some(at) if at.trim_end_matches('/').ends_with("/_symlink_format_manifest") => {
            Verdict::Other(MANIFEST)
        }
        Some(at) => Verdict::Delta { uri: as_url(at), columns: columns(table) },
    }
}

const MANIFEST: &str = "a table over the manifests of a Delta table";
const PROVIDER: &str = "spark.sql.sources.provider";

/// What Spark says decides; else Athena (`table_type`) and the crawlers (`classification`) do.
fn other_format(parameters: &Parameters) -> Option<&'static str> {
    let is_delta = |key| parameter(parameters, key).map(|value| value.trim().eq_ignore_ascii_case("delta"));
    let is_iceberg = parameter(parameters, "table_type").is_some_and(|t| t.eq_ignore_ascii_case("iceberg"));
    match (is_delta(PROVIDER), is_iceberg) {
        (Some(true), _) => None,
        (_, true) => Some("an Iceberg table"),
        (Some(false), false) => Some("a table of another format"),
        (None, false) => {
            match is_delta("table_type") == Some(true) || is_delta("classification") == Some(true) {
                true => None,
                false => Some("a table of another format"),
            }
        }
    }
}

/// Spark keeps the location of a table that is not Hive's in the SerDe's parameters, and writes a
/// location that nobody should use where Hive looks.
fn location(storage: &StorageDescriptor) -> Option<&str> {
    let serde = storage.serde_info.as_ref();
    let path = serde.and_then(|s| parameter(&s.parameters, "path")).map(str::trim).filter(|p| !p.is_empty());
    let hive = storage.location.as_deref().unwrap_or_default().trim();
    let real = hive.trim_end_matches('/').strip_suffix("-__PLACEHOLDER__").unwrap_or(hive);
    path.or(Some(real).filter(|at| !at.is_empty()))
}

/// A catalog keeps locations as they are, with characters that mean something else in a URL; and in
/// Hadoop's schemes.
fn as_url(at: &str) -> String {
    let Some((scheme, rest)) = at.split_once(":/") else { return at.to_owned() };
    let rest = rest.trim_start_matches('/');
    let rest = rest.replace('%', "%25").replace('#', "%23").replace('?', "%3F");
    match scheme.to_ascii_lowercase().as_str() {
        "s3" | "s3a" | "s3n" => format!("s3://{rest}"),
        "file" => format!("file:///{rest}"),
        scheme => format!("{scheme}://{rest}"),
    }
}

/// The catalog's copy of the columns. Spark writes its own beside Hive's, which then says nothing
/// (`col array<string>`); and none at all since Delta keeps the schema to its log.
fn columns(table: &Table) -> Option<Vec<String>> {
    by_spark(&table.parameters).filter(|names| !names.is_empty()).or_else(|| by_hive(table))
}

fn by_hive(table: &Table) -> Option<Vec<String>> {
    let columns = table.storage_descriptor.as_ref()?.columns.as_deref().unwrap_or_default();
    let is_nothing = match columns {
        [] => true,
        [Column { name, r#type, .. }] => name == "col" && r#type.as_deref() == Some("array<string>"),
        _ => false,
    };
    if is_nothing {
        return None;
    }
    let mut names: Vec<String> = columns.iter().map(|column| column.name.clone()).collect();
    for key in table.partition_keys.iter().flatten() {
        if !names.contains(&key.name) {
            names.push(key.name.clone());
        }
    }
    Some(names)
}

fn by_spark(parameters: &Parameters) -> Option<Vec<String>> {
    const SCHEMA: &str = "spark.sql.sources.schema";
    let part = |key: String| parameter(parameters, &key);
    let text = match (part(SCHEMA.to_owned()), part(format!("{SCHEMA}.numParts"))) {
        (Some(whole), _) => whole.to_owned(),
        // A value of Hive's is at most 4,000 characters long. A part that is not there ends it, so
        // that a huge number costs nothing.
        (None, Some(parts)) => {
            let parts = 0..parts.trim().parse::<u32>().ok()?;
            parts.map(|n| part(format!("{SCHEMA}.part.{n}"))).collect::<Option<String>>()?
        }
        (None, None) => return None,
    };
    let schema: Value = serde_json::from_str(&text).ok()?;
    let fields = schema.get("fields")?.as_array()?.iter();
    fields.map(|field| Some(field.get("name")?.as_str()?.to_owned())).collect()
}

/// A parameter by its key; in any case, for who wrote it is not known.
fn parameter<'a>(parameters: &'a Parameters, key: &str) -> Option<&'a str> {
    let parameters = parameters.as_ref()?;
    let other =
        || parameters.iter().filter(|(k, _)| k.eq_ignore_ascii_case(key)).min().map(|(_, value)| value);
    parameters.get(key).or_else(other).map(String::as_str)
}

#[cfg(test)]
mod tests;
