//! Texts as TOML takes them.

use crate::model::path::ColumnPath;
use crate::model::types::Field;

/// A basic string, on one line.
pub(crate) fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c.is_control() => out.push_str(&format!("\\u{:04X}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// A key: bare where TOML allows that.
pub(super) fn key(text: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if !text.is_empty() && text.chars().all(bare) { text.to_owned() } else { quoted(text) }
}

/// `["a", "b"]`.
pub(super) fn list<T: AsRef<str>>(items: &[T]) -> String {
    let items: Vec<String> = items.iter().map(|i| quoted(i.as_ref())).collect();
    format!("[{}]", items.join(", "))
}

/// A column as a kind file describes it: its type alone where that says it all.
pub(super) fn column(field: &Field) -> String {
    let Field { name: _, data_type, nullable, comment } = field;
    let data_type = quoted(&data_type.to_string());
    if *nullable && comment.is_none() {
        return data_type;
    }
    let nullable = if *nullable { "" } else { ", nullable = false" };
    let comment = comment.as_ref().map(|c| format!(", comment = {}", quoted(c))).unwrap_or_default();
    format!("{{ type = {data_type}{nullable}{comment} }}")
}

/// A path as a key.
pub(super) fn path(path: &ColumnPath) -> String {
    key(&path.to_string())
}
