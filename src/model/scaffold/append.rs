//! A migration's place at the end of a kind file.

use super::next::NextMigration;
use crate::error::Error;
use crate::model::digest::ChainDigest;
use crate::model::kind::Kind;
use crate::model::migration::Step;

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

/// Whether the kind that was read back is the old one with just this migration after it.
fn is_extended_by(old: &Kind, new: &Kind, next: &NextMigration) -> bool {
    let NextMigration { version, relaxed, added, comments, features: _, notes: _ } = next;
    let mut steps = Vec::new();
    if !relaxed.is_empty() {
        steps.push(Step::RelaxNullability(relaxed.clone()));
    }
    if !added.is_empty() {
        steps.push(Step::AddColumns(added.clone()));
    }
    if !comments.is_empty() {
        steps.push(Step::Comments(comments.clone()));
    }
    new.newest() == *version
        && new.migrations().last().is_some_and(|migration| migration.steps == steps)
        && new.clone().cut_at(old.newest()) == *old
}
