//! A migration as text, and its place at the end of a kind file.

use super::next::{NextMigration, is_extended_by};
use super::toml_text::{column, key, list, path, quoted};
use crate::error::Error;
use crate::model::digest::ChainDigest;
use crate::model::kind::Kind;
use crate::model::path::ColumnPath;
use crate::model::text::shorten;
use crate::model::types::Field;

/// The block of a migration that is not empty.
pub(super) fn text(next: &NextMigration, description: Option<&str>) -> String {
    let NextMigration { version, relaxed, added, comments, features, notes: _ } = next;
    let description = description.map_or_else(|| described(next), str::to_owned);
    let mut out = format!("[[migrations]]  # {version}\ndescription = {}\n", quoted(&description));
    if !features.is_empty() {
        out.push_str(&format!("# enable_features = {}\n", list(features)));
    }
    if !relaxed.is_empty() {
        let paths: Vec<String> = relaxed.iter().map(ToString::to_string).collect();
        out.push_str(&format!("relax_nullability = {}\n", list(&paths)));
    }
    if !added.is_empty() {
        out.push_str("[migrations.add_columns]\n");
    }
    for add in added {
        let mut field = Field::nullable(add.path.name(), add.data_type.clone());
        field.comment.clone_from(&add.comment);
        out.push_str(&format!("{} = {}\n", path(&add.path), column(&field)));
    }
    if !comments.is_empty() {
        out.push_str("[migrations.comments]\n");
    }
    for (at, comment) in comments {
        out.push_str(&format!("{} = {}\n", key(&at.to_string()), quoted(comment)));
    }
    out
}

/// `adds a and b; lets c be null; comments on d`.
fn described(next: &NextMigration) -> String {
    let NextMigration { version: _, relaxed, added, comments, features: _, notes: _ } = next;
    let mut parts = Vec::new();
    let mut part = |verb: &str, paths: Vec<&ColumnPath>, after: &str| {
        let names: Vec<String> = paths.iter().take(5).map(ToString::to_string).collect();
        let more = paths.len().saturating_sub(names.len());
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        if !paths.is_empty() {
            parts.push(format!("{verb} {}{more}{after}", names.join(", ")));
        }
    };
    part("adds", added.iter().map(|a| &a.path).collect(), "");
    part("lets", relaxed.iter().collect(), " be null");
    part("comments on", comments.iter().map(|(path, _)| path).collect(), "");
    shorten(&parts.join("; "), 200)
}

/// What has to be written at the end of a kind file's text for it to have `block` as well: a line end
/// where the last line has none, an empty line, and the block with the file's own line ends.
///
/// # Errors
/// [`ErrorCode::Usage`](crate::ErrorCode::Usage): the longer text would not be the old kind with that
/// migration after it, its digests unchanged; nothing may be written then.
pub(crate) fn append(
    old: &Kind,
    text: &str,
    file: &str,
    next: &NextMigration,
    block: &str,
) -> Result<String, Error> {
    let newline = line_end(text);
    let mut tail = String::new();
    if !text.is_empty() && !text.ends_with('\n') {
        tail.push_str(newline);
    }
    if !text.trim_end_matches([' ', '\t']).ends_with(&format!("{newline}{newline}")) {
        tail.push_str(newline);
    }
    tail.push_str(&block.replace('\n', newline));
    let cannot = |error: Option<Error>| {
        let wrong =
            Error::usage(format!("`{file}` can't be extended by appending to it; nothing was written"));
        let wrong = match error {
            Some(error) => wrong.with_source(error),
            None => wrong,
        };
        wrong.with_hint(
            "write its migrations as [[migrations]] blocks, or add this one by hand: see --dry-run",
        )
    };
    let new = Kind::from_toml_file(&format!("{text}{tail}"), file).map_err(|e| cannot(Some(e)))?;
    let digests = [&new, old].map(|kind| ChainDigest::of(kind, old.newest()));
    if digests[0] == digests[1] && is_extended_by(old, &new, next) {
        return Ok(tail);
    }
    Err(cannot(None))
}

/// The line end that the text's last line end is like.
fn line_end(text: &str) -> &'static str {
    match text.rfind('\n') {
        Some(at) if text[..at].ends_with('\r') => "\r\n",
        _ => "\n",
    }
}
