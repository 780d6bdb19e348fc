//! What changes that lose a name, a column or readers mean for others.

use indexmap::IndexMap;

use crate::model::evolve::Change;
use crate::model::text;

/// A sentence for each sort of loss among the changes.
pub(super) fn warnings<'a>(
    changes: impl Iterator<Item = &'a Change>,
    configuration: &IndexMap<String, String>,
) -> Vec<String> {
    let (mut renamed, mut dropped, mut widened) = (Vec::new(), Vec::new(), false);
    for change in changes {
        match change {
            Change::RenameColumn { path, .. } => renamed.push(path.as_str()),
            Change::DropColumn { path, .. } => dropped.push(path.as_str()),
            Change::EnableFeature { feature } if feature == "typeWidening" => widened = true,
            _ => {}
        }
    }
    let mut out = Vec::new();
    if !dropped.is_empty() {
        out.push(format!(
            "drops {}: the values are gone for whoever reads the table from now on; they stay in the files, and in \
             older log versions, until these are rewritten or removed",
            text::list(&dropped)
        ));
    }
    if !renamed.is_empty() {
        out.push(format!(
            "renames {}: queries and programs that ask for an old name fail, and older releases that merge schemas \
             bring it back as another, empty column",
            text::list(&renamed)
        ));
    }
    if !renamed.is_empty() || !dropped.is_empty() {
        let feed =
            configuration.get("delta.enableChangeDataFeed").is_some_and(|v| v.eq_ignore_ascii_case("true"));
        let changes = if feed { ", and so does a read of the change data feed across it" } else { "" };
        out.push(format!(
            "a stream that reads across this commit fails until it is begun anew or told to follow the schema{changes}"
        ));
    }
    if widened {
        out.push("turns type widening on: some releases of delta-rs (1.6.6 in Python) can't read the table afterwards".to_owned());
    }
    out
}
