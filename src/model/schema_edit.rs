//! Changes inside the text of a schema string, which leave every other byte as it is.
//!
//! The text is never parsed into values and written again: what other writers put into it (their
//! own keys, the order of keys, how they escape) outlives our change (`delta-rs#4191`,
//! `trino#18012`). Positions are found by borrowing raw values out of the text itself.

use indexmap::IndexMap;
use serde_json::value::RawValue;

use super::path::ColumnPath;
use super::types::same_name;

type Object<'a> = IndexMap<String, &'a RawValue>;

/// Appends a field to the struct at `parent` (empty: the top level).
pub(crate) fn append_field(schema: &str, parent: &[String], field: &str) -> Option<String> {
    let fields = object(type_at(schema, parent)?)?.get("fields")?.get();
    let end = end_of(schema, fields) - 1;
    let empty = fields.get(1..fields.len() - 1)?.trim().is_empty();
    Some(splice(schema, end, end, &format!("{}{field}", if empty { "" } else { "," })))
}

/// Sets the comment of the field at `path`.
pub(crate) fn set_comment(schema: &str, path: &ColumnPath, comment: &str) -> Option<String> {
    set_field_metadata(schema, path, "comment", &serde_json::Value::from(comment).to_string())
}

/// Lets the field, array element or map value at `path` be null.
pub(crate) fn set_nullable(schema: &str, path: &ColumnPath) -> Option<String> {
    if let Some(field) = field_at(schema, path.segments()) {
        return set_key(schema, field, "nullable", "true");
    }
    let parent = type_at(schema, path.parent())?;
    let key = match path.name() {
        "element" => "containsNull",
        "value" => "valueContainsNull",
        _ => return None,
    };
    set_key(schema, parent, key, "true")
}

/// Gives the field at `path` another name.
pub(crate) fn set_name(schema: &str, path: &ColumnPath, name: &str) -> Option<String> {
    let field = field_at(schema, path.segments())?;
    set_key(schema, field, "name", &serde_json::Value::from(name).to_string())
}

/// Gives the field, array element, map key or map value at `path` another type.
pub(crate) fn set_type(schema: &str, path: &ColumnPath, data_type: &str) -> Option<String> {
    if let Some(field) = field_at(schema, path.segments()) {
        return set_key(schema, field, "type", data_type);
    }
    let parent = type_at(schema, path.parent())?;
    let key = match path.name() {
        "element" => "elementType",
        "key" => "keyType",
        "value" => "valueType",
        _ => return None,
    };
    object(parent)?.get(key)?;
    set_key(schema, parent, key, data_type)
}

/// Takes the field at `path` out of its struct, with one comma.
pub(crate) fn remove_field(schema: &str, path: &ColumnPath) -> Option<String> {
    let field = field_at(schema, path.segments())?;
    let fields = object(type_at(schema, path.parent())?)?.get("fields")?.get();
    let fields: Vec<&RawValue> = serde_json::from_str(fields).ok()?;
    let at = fields.iter().position(|f| std::ptr::eq(f.get(), field))?;
    let start = |f: &RawValue| end_of(schema, f.get()) - f.get().len();
    let (from, to) = match (at.checked_sub(1).and_then(|n| fields.get(n)), fields.get(at + 1)) {
        (Some(before), _) => (end_of(schema, before.get()), end_of(schema, field)),
        (None, Some(after)) => (end_of(schema, field) - field.len(), start(after)),
        (None, None) => (end_of(schema, field) - field.len(), end_of(schema, field)),
    };
    Some(splice(schema, from, to, ""))
}

/// The raw value of a key in the metadata of the field at `path`.
pub(crate) fn field_metadata<'a>(schema: &'a str, path: &ColumnPath, key: &str) -> Option<&'a str> {
    let metadata = object(field_at(schema, path.segments())?)?.get("metadata")?.get();
    object(metadata)?.get(key).map(|value| value.get())
}

/// Sets a key in the metadata of the field at `path`.
pub(crate) fn set_field_metadata(schema: &str, path: &ColumnPath, key: &str, value: &str) -> Option<String> {
    let field = field_at(schema, path.segments())?;
    match object(field)?.get("metadata").map(|m| m.get()) {
        Some(metadata) if metadata.starts_with('{') => set_key(schema, metadata, key, value),
        _ => set_key(schema, field, "metadata", &format!("{{{}:{value}}}", serde_json::Value::from(key))),
    }
}

/// Appends to a list in the metadata of the field at `path`, which begins where there is none; no
/// text where something else stands in its place.
pub(crate) fn append_field_metadata(
    schema: &str,
    path: &ColumnPath,
    key: &str,
    item: &str,
) -> Option<String> {
    let Some(list) = field_metadata(schema, path, key) else {
        return set_field_metadata(schema, path, key, &format!("[{item}]"));
    };
    let items: Vec<&RawValue> = serde_json::from_str(list).ok()?;
    let end = end_of(schema, list) - 1;
    let comma = if items.is_empty() { "" } else { "," };
    Some(splice(schema, end, end, &format!("{comma}{item}")))
}

/// Sets `key` of the object `object_text`, which lies inside `text`, and gives the new `text`.
fn set_key(text: &str, object_text: &str, key: &str, value: &str) -> Option<String> {
    let entries = object(object_text)?;
    if let Some(old) = entries.get(key) {
        let end = end_of(text, old.get());
        return Some(splice(text, end - old.get().len(), end, value));
    }
    let end = end_of(text, object_text) - 1;
    let comma = if entries.is_empty() { "" } else { "," };
    Some(splice(text, end, end, &format!("{comma}\"{key}\":{value}")))
}

/// The text of the type that `segments` lead to; the whole schema for none.
fn type_at<'a>(schema: &'a str, segments: &[String]) -> Option<&'a str> {
    let mut at = schema;
    for segment in segments {
        let entries = object(at)?;
        let key = match (kind_of(&entries)?.as_str(), segment.as_str()) {
            ("struct", name) => {
                at = object(named(&entries, name)?)?.get("type")?.get();
                continue;
            }
            ("array", "element") => "elementType",
            ("map", "key") => "keyType",
            ("map", "value") => "valueType",
            _ => return None,
        };
        at = entries.get(key)?.get();
    }
    Some(at)
}

/// The text of the field that `segments` lead to; none if they end at a part of an array or map.
fn field_at<'a>(schema: &'a str, segments: &[String]) -> Option<&'a str> {
    let (name, parent) = segments.split_last()?;
    let entries = object(type_at(schema, parent)?)?;
    (kind_of(&entries)? == "struct").then(|| named(&entries, name)).flatten()
}

fn kind_of(entries: &Object<'_>) -> Option<String> {
    serde_json::from_str(entries.get("type")?.get()).ok()
}

/// The text of a struct's field: the name exactly so written, else equal but for letter case.
fn named<'a>(entries: &Object<'a>, name: &str) -> Option<&'a str> {
    let fields: Vec<&'a RawValue> = serde_json::from_str(entries.get("fields")?.get()).ok()?;
    let name_of = |field: &RawValue| -> Option<String> {
        serde_json::from_str(object(field.get())?.get("name")?.get()).ok()
    };
    let names: Vec<Option<String>> = fields.iter().map(|f| name_of(f)).collect();
    let exact = names.iter().position(|n| n.as_deref() == Some(name));
    let at = exact.or_else(|| names.iter().position(|n| n.as_deref().is_some_and(|n| same_name(n, name))));
    fields.get(at?).map(|f| f.get())
}

fn object(text: &str) -> Option<Object<'_>> {
    serde_json::from_str(text).ok()
}

/// Where `part`, a slice of `text`, ends in it.
fn end_of(text: &str, part: &str) -> usize {
    part.as_ptr() as usize - text.as_ptr() as usize + part.len()
}

fn splice(text: &str, start: usize, end: usize, new: &str) -> String {
    format!("{}{new}{}", &text[..start], &text[end..])
}

/// Puts new values into the raw text of a metaData action; everything else stays as it is.
///
/// `configuration` lists changes: a value sets the key, none removes it.
pub(crate) fn rewrite_metadata(
    raw: &str,
    schema_text: &str,
    description: Option<&str>,
    configuration: &IndexMap<String, Option<String>>,
) -> Option<String> {
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let mut text = set_key(raw, raw, "schemaString", &quoted(schema_text))?;
    if let Some(description) = description {
        text = set_key(&text, &text, "description", &quoted(description))?;
    }
    let old = object(&text)?.get("configuration").map(|c| c.get().to_owned()).unwrap_or_default();
    let old = if old.starts_with('{') { old } else { "{}".to_owned() };
    let mut entries: IndexMap<String, &str> = object(&old)?.into_iter().map(|(k, v)| (k, v.get())).collect();
    let changes: IndexMap<&String, Option<String>> =
        configuration.iter().map(|(k, v)| (k, v.as_deref().map(quoted))).collect();
    for (key, value) in &changes {
        match value {
            Some(value) => drop(entries.insert((*key).clone(), value)),
            None => drop(entries.shift_remove(*key)),
        }
    }
    let pairs: Vec<String> = entries.iter().map(|(k, v)| format!("{}:{v}", quoted(k))).collect();
    set_key(&text, &text, "configuration", &format!("{{{}}}", pairs.join(",")))
}

#[cfg(test)]
mod tests;
