//! What a Unity catalog answers, read with patience: catalogs gain values and leave out fields.

use std::collections::HashMap;

use serde_json::Value;
use serde_json::value::RawValue;

/// One page of a listing.
#[derive(Debug)]
pub(super) struct Page {
    pub(super) items: Vec<Value>,
    pub(super) next: Option<String>,
}

impl Page {
    /// Reads a page with its items under that key; none if the text is no such page.
    pub(super) fn read(text: &[u8], key: &str) -> Option<Self> {
        // Item by item, so that one odd item is not the page's failure.
        let fields: HashMap<String, Box<RawValue>> = serde_json::from_slice(text).ok()?;
        let raw: Option<Vec<Box<RawValue>>> = match fields.get(key) {
            None => None,
            Some(raw) => serde_json::from_str(raw.get()).ok()?,
        };
        let next: Option<Value> =
            fields.get("next_page_token").and_then(|t| serde_json::from_str(t.get()).ok());
        let next = match next {
            Some(Value::String(token)) if !token.is_empty() => Some(token),
            Some(Value::Number(token)) => Some(token.to_string()),
            _ => None,
        };
        // What can't be read stays in its place, so that it is told and not lost.
        let items = raw.unwrap_or_default();
        let items = items.iter().map(|item| serde_json::from_str(item.get()).unwrap_or(Value::Null));
        Some(Self { items: items.collect(), next })
    }
}

/// A table, or something else that is listed among tables.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Table {
    pub(super) name: String,
    pub(super) id: Option<String>,
    /// `table_type`.
    pub(super) kind: Option<String>,
    /// `data_source_format`.
    pub(super) format: Option<String>,
    pub(super) location: Option<String>,
    pub(super) columns: Option<Vec<String>>,
}

impl Table {
    /// Reads an item of a list of tables; none if it has no name.
    pub(super) fn read(item: &Value) -> Option<Self> {
        Some(Self {
            name: name(item)?,
            id: text(item, "table_id"),
            kind: text(item, "table_type"),
            format: text(item, "data_source_format"),
            location: text(item, "storage_location"),
            columns: columns(item),
        })
    }

    /// Whether it is a Delta table whose log is its own: not a view, nor something that an engine
    /// keeps up by itself.
    pub(super) fn is_ours(&self) -> bool {
        let is = |found: &Option<String>, wanted: &[&str]| {
            found.as_ref().is_some_and(|f| wanted.iter().any(|w| f.eq_ignore_ascii_case(w)))
        };
        is(&self.format, &["DELTA"]) && is(&self.kind, &["EXTERNAL", "MANAGED"])
    }
}

/// The name of a catalog, a schema or a table.
pub(super) fn name(item: &Value) -> Option<String> {
    text(item, "name")
}

/// A text that is there and not empty.
pub(super) fn text(item: &Value, key: &str) -> Option<String> {
    item.get(key).and_then(Value::as_str).filter(|t| !t.is_empty()).map(str::to_owned)
}

/// Names of columns in their order; none if one of them can't be read, because then the copy says
/// nothing about the table.
fn columns(item: &Value) -> Option<Vec<String>> {
    let columns = item.get("columns")?.as_array().filter(|c| !c.is_empty())?;
    let named = columns.iter().map(|column| {
        // A column without a position stays behind those that have one.
        let position = column.get("position").and_then(Value::as_i64).unwrap_or(i64::MAX);
        Some((position, name(column)?))
    });
    let mut named = named.collect::<Option<Vec<_>>>()?;
    named.sort_by_key(|(position, _)| *position);
    Some(named.into_iter().map(|(_, name)| name).collect())
}
