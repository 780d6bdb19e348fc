//! What a table lacks of a schema, as people read it.

use std::fmt::Write as _;

use super::{Palette, change_line, cost};
use crate::model::reconcile::{DifferenceKind, SchemaDiff};
use crate::model::report::{Outcome, TableReport};
use crate::model::text::{clean, count};

/// One table: what it lacks, what else differs, what adding columns means for others. Empty where it has
/// all that is wanted, and no more.
pub(crate) fn diff(table: &TableReport, palette: Palette) -> String {
    let Palette { bold, dim, good, pending, reset, .. } = palette;
    let TableReport { uri, kind, outcome, diff, warnings, mode, .. } = table;
    let Some(SchemaDiff { adds, left, .. }) =
        diff.as_ref().filter(|d| !d.adds.is_empty() || !d.left.is_empty())
    else {
        return String::new();
    };
    let of = if kind.is_empty() { String::new() } else { format!(" ({})", clean(kind)) };
    let columns = count(adds.len(), "column");
    let what = match outcome {
        Outcome::Reconciled => format!("{columns} added"),
        Outcome::Refused | Outcome::Failed => "nothing was added".to_owned(),
        _ if adds.is_empty() => "no column to add".to_owned(),
        _ => format!("{columns} to add, {}", cost(*mode)),
    };
    let mut out = String::new();
    let _ = writeln!(out, "{bold}{}{reset}{of}: {what}", clean(uri));
    for change in adds {
        let (mark, line) = change_line(change);
        let _ = writeln!(out, "  {good}{mark}{reset} {}", clean(&line));
    }
    for difference in left {
        let colour = if difference.difference == DifferenceKind::ExtraColumn { dim } else { pending };
        let _ = writeln!(out, "  {colour}={reset} {}", difference.text);
    }
    for warning in warnings {
        let _ = writeln!(out, "  {pending}!{reset} {warning}");
    }
    out.push('\n');
    out
}

/// The end of a table's line in a list.
pub(super) fn summary(table: &TableReport, diff: &SchemaDiff, palette: Palette) -> String {
    let Palette { dim, reset, .. } = palette;
    let left = diff.left.iter().filter(|d| d.difference != DifferenceKind::ExtraColumn).count();
    let left =
        if left > 0 { format!(", {} left as they are", count(left, "difference")) } else { String::new() };
    let commit = match table.log_version.filter(|_| table.commits > 0) {
        Some(v) => format!(" {dim}(log version {v}){reset}"),
        None => String::new(),
    };
    let what = match (table.outcome, diff.adds.len()) {
        (_, 0) => "lacks nothing that could be added".to_owned(),
        (Outcome::Reconciled, n) => format!("{} added", count(n, "column")),
        (_, n) => format!("{} to add", count(n, "column")),
    };
    format!("{what}{left}{commit}")
}
