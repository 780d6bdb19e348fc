//! A migration as text.

use super::next::NextMigration;
use super::toml_text::{column, key, list, path, quoted};
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
