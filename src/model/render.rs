//! Plans, reports and histories as people read them.

mod diff;

use std::fmt::Write as _;

pub(crate) use diff::diff;

use super::evolve::Change;
use super::kind::Shape;
use super::plan::{Content, Mode, Plan, Rewrite};
use super::report::{BatchReport, Outcome, TableReport, tells_of_a_fault};
use super::text;

/// Escape sequences around words; empty where colour is not wanted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Palette {
    good: &'static str,
    pending: &'static str,
    pub(crate) bad: &'static str,
    pub(crate) dim: &'static str,
    bold: &'static str,
    pub(crate) reset: &'static str,
}

impl Palette {
    /// No colour.
    pub(crate) const PLAIN: Self = Self { good: "", pending: "", bad: "", dim: "", bold: "", reset: "" };
    /// The sixteen colours that every terminal has.
    pub(crate) const COLOUR: Self = Self {
        good: "\u{1b}[32m",
        pending: "\u{1b}[33m",
        bad: "\u{1b}[31m",
        dim: "\u{1b}[2m",
        bold: "\u{1b}[1m",
        reset: "\u{1b}[0m",
    };

    fn outcome(self, outcome: Outcome) -> &'static str {
        match outcome {
            Outcome::Created
            | Outcome::Migrated
            | Outcome::Repaired
            | Outcome::Reconciled
            | Outcome::Current => self.good,
            Outcome::Ahead | Outcome::Planned | Outcome::Skipped => self.pending,
            Outcome::Refused | Outcome::Failed => self.bad,
        }
    }
}

/// What a mode costs, in words.
pub(crate) fn cost(mode: Mode) -> &'static str {
    match mode {
        Mode::NoChange => "nothing to do",
        Mode::Create => "creates the table",
        Mode::MetadataOnly => "metadata only: seconds, nothing is moved",
        Mode::Rewrite => "moves data",
    }
}

/// What data steps will read and rewrite, at most.
fn moved(rewrite: Rewrite) -> String {
    let Rewrite { files, rows, bytes } = rewrite;
    let files = text::count(usize::try_from(files).unwrap_or(usize::MAX), "file");
    let rows =
        rows.map(|rows| format!(", {}", text::count(usize::try_from(rows).unwrap_or(usize::MAX), "row")));
    format!(" (at most {files}{}, {} MB)", rows.unwrap_or_default(), bytes.div_ceil(1_000_000))
}

/// One plan: what the table is, what changes, what that means.
pub(crate) fn plan(uri: &str, plan: &Plan, palette: Palette) -> String {
    let Palette { bold, dim, good, pending, reset, .. } = palette;
    let mut out = String::new();
    let what = match (plan.mode, plan.from == plan.to) {
        (Mode::Create, _) => format!("new table at version {}", plan.to),
        (mode, true) => format!("version {}, {}", plan.to, cost(mode)),
        (mode, false) => format!("version {} → {}, {}", plan.from, plan.to, cost(mode)),
    };
    let moved = plan.rewrite.map(moved).unwrap_or_default();
    let _ = writeln!(out, "{bold}{uri}{reset} ({}): {what}{moved}", plan.kind);
    for commit in &plan.commits {
        for migration in &commit.migrations {
            let _ = writeln!(out, "  {:>3}  {}", migration.version, migration.description);
            for change in &migration.changes {
                let (mark, line) = change_line(change);
                let colour = if mark == '+' { good } else { pending };
                let _ = writeln!(out, "       {colour}{mark}{reset} {line}");
            }
            if migration.changes.is_empty() {
                let _ = writeln!(out, "       {dim}changes nothing on this table{reset}");
            }
        }
        if let Content::Create { shape, .. } = &commit.content {
            created(&mut out, shape, palette);
        } else if commit.migrations.is_empty() {
            let floor = match commit.floor.filter(|_| commit.floor_changes) {
                Some(floor) => format!(", floor {floor}"),
                None => String::new(),
            };
            let _ = writeln!(out, "       ~ stamps version {}{floor} ({})", commit.to, commit.how.as_str());
        }
        if let Some(why) = &commit.why {
            let _ = writeln!(out, "       {dim}why: {why}{reset}");
        }
    }
    for warning in &plan.warnings {
        let _ = writeln!(out, "  {pending}!{reset} {warning}");
    }
    out
}

/// The columns, partitioning and properties of a table that is to be created.
fn created(out: &mut String, shape: &Shape, palette: Palette) {
    let Palette { good, dim, reset, .. } = palette;
    for field in &shape.columns {
        let required = if field.nullable { "" } else { " not null" };
        let comment =
            field.comment.as_ref().map(|c| format!("  {dim}{}{reset}", quoted(c))).unwrap_or_default();
        let _ = writeln!(out, "       {good}+{reset} {} {}{required}{comment}", field.name, field.data_type);
    }
    if let Some(description) = &shape.description {
        let _ = writeln!(out, "       {dim}described as {}{reset}", quoted(description));
    }
    if !shape.partition_by.is_empty() {
        let _ = writeln!(out, "       {dim}partitioned by {}{reset}", shape.partition_by.join(", "));
    }
    for (column, value) in &shape.defaults {
        let _ = writeln!(out, "       {good}+{reset} default of {column}: {}", quoted(value));
    }
    for (key, value) in &shape.properties {
        let _ = writeln!(out, "       {good}+{reset} property {key} = {}", quoted(value));
    }
}

fn change_line(change: &Change) -> (char, String) {
    match change {
        Change::AddColumn { path, type_text, comment } => {
            let comment = comment.as_ref().map(|c| format!("  {}", quoted(c))).unwrap_or_default();
            ('+', format!("{path} {type_text}{comment}"))
        }
        Change::LeaveColumn { path } => ('=', format!("{path} is there already and stays as it is")),
        Change::Comment { path, comment } => ('~', format!("comment on {path}: {}", quoted(comment))),
        Change::RelaxNullability { path } => ('~', format!("{path} may be null")),
        Change::TableDescription { description } => {
            ('~', format!("table description: {}", quoted(description)))
        }
        Change::Update { set, predicate } => {
            let set: Vec<String> = set.iter().map(|(column, sql)| format!("{column} = {sql}")).collect();
            ('~', format!("rows where {predicate}: {}", set.join(", ")))
        }
        Change::Run { name } => ('~', format!("runs the function {name}")),
        Change::RetypeColumn { path, was, type_text } => {
            ('~', format!("{path} becomes {type_text} (was {was})"))
        }
        Change::AddConstraint { name, expression } => ('+', format!("constraint {name}: {expression}")),
        Change::SetProperty { key, value, was: None } => ('+', format!("property {key} = {}", quoted(value))),
        Change::SetProperty { key, value, was: Some(was) } => {
            ('~', format!("property {key} = {} (was {})", quoted(value), quoted(was)))
        }
        Change::EnableFeature { feature } => ('+', format!("table feature {feature} (a protocol upgrade)")),
        Change::DropConstraint { key, was } => {
            let name = key.rsplit('.').next().unwrap_or(key);
            ('-', format!("constraint {name} (was {})", quoted(was)))
        }
        Change::RenameColumn { path, to } => ('~', format!("{path} is called {to}")),
        Change::WidenType { path, type_text, was } => ('~', format!("{path} {was} → {type_text}")),
        Change::SetDefault { path, value, was } => {
            let was = was.as_ref().map(|was| format!(" (was {})", quoted(was))).unwrap_or_default();
            ('~', format!("default of {path}: {}{was}", quoted(value)))
        }
        Change::DropColumn { path, type_text } => ('-', format!("{path} {type_text}")),
        Change::UnsetProperty { key, was } => ('-', format!("property {key} (was {})", quoted(was))),
    }
}

fn quoted(value: &str) -> String {
    format!("\"{}\"", text::shorten(&value.replace('\\', "\\\\").replace('"', "\\\""), 80))
}

/// A batch: refused and failed tables first, each with its next step; then the others; then the count.
pub(crate) fn batch(report: &BatchReport, palette: Palette) -> String {
    let mut out = String::new();
    let rank = |t: &&TableReport| match t.outcome {
        Outcome::Failed => 0,
        Outcome::Refused => 1,
        Outcome::Planned => 2,
        Outcome::Created => 3,
        Outcome::Migrated | Outcome::Repaired | Outcome::Reconciled => 4,
        Outcome::Ahead => 5,
        Outcome::Current => 6,
        Outcome::Skipped => 7,
    };
    let code = |t: &TableReport| t.error.as_ref().map(|e| e.code);
    let mut tables: Vec<&TableReport> = report.tables.iter().collect();
    tables.sort_by_key(rank);
    // Few tables stay in their order; of many, those with one fault stand together.
    if tables.len() > MOST_CURRENT as usize {
        tables.sort_by(|a, b| rank(a).cmp(&rank(b)).then_with(|| code(a).cmp(&code(b))));
    }
    let many_current = report.summary.current > MOST_CURRENT;
    let is_left_out = |t: &TableReport| t.outcome == Outcome::Skipped;
    let many_left_out = report.summary.skipped > MOST_CURRENT;
    let is_counted = |t: &&TableReport| {
        (many_current && t.outcome == Outcome::Current && t.warnings.is_empty())
            || (many_left_out && is_left_out(t))
    };
    let (counted, shown): (Vec<&TableReport>, Vec<&TableReport>) = tables.into_iter().partition(is_counted);
    let names = shorten_uris(&shown);
    let width = names.iter().map(|n| n.chars().count()).max().unwrap_or(0).min(60);
    let kinds = shown.iter().map(|t| text::clean(&t.kind).chars().count()).max().unwrap_or(0);
    let in_full = if shown.len() > MOST_CURRENT as usize { InFull::No } else { InFull::Yes };
    let hint = |t: &TableReport| t.error.as_ref().and_then(|e| e.hint.clone());
    for (n, (table, name)) in shown.iter().zip(&names).enumerate() {
        let _ = writeln!(out, "{}", line(table, name, (width, kinds), in_full, palette));
        // A hint that several tables share stands once, below the last of them.
        let next = shown.get(n + 1).filter(|next| code(next) == code(table)).and_then(|next| hint(next));
        if let Some(hint) = hint(table).filter(|hint| next.as_ref() != Some(hint)) {
            let _ = writeln!(out, "{}→ {hint}", " ".repeat(10));
        }
    }
    for (what, n) in counted_lines(&counted) {
        let (what, why) = what.split_once(": ").map_or((what.as_str(), None), |(a, b)| (a, Some(b)));
        let why = why.map(|why| format!(": {why}")).unwrap_or_default();
        let _ = writeln!(out, "{} {what}, not listed{why}", text::count(n, "table"));
    }
    let Palette { bold, reset, dim, .. } = palette;
    if !out.is_empty() {
        out.push('\n');
    }
    if let Some(error) = &report.error {
        let red = palette.outcome(Outcome::Refused);
        let _ = writeln!(
            out,
            "{red}refused{reset}: {} {dim}({}){reset}",
            text::clean(&error.message),
            error.code
        );
        if let Some(hint) = &error.hint {
            let _ = writeln!(out, "  → {hint}");
        }
    }
    let _ = writeln!(out, "{bold}{}{reset}", report.summary);
    out
}

/// Whether each table's migrations are listed below it; where there are many they would be all that
/// is seen.
#[derive(Clone, Copy, PartialEq, Eq)]
enum InFull {
    Yes,
    No,
}

/// Tables that are only counted, each way of being left out by itself.
fn counted_lines(tables: &[&TableReport]) -> Vec<(String, usize)> {
    let mut counts: Vec<(String, usize)> = Vec::new();
    for table in tables {
        let why = table.reason.as_ref().or(table.error.as_ref().map(|e| &e.message));
        let what = match why.filter(|_| table.outcome == Outcome::Skipped) {
            Some(why) => format!("skipped: {}", text::clean(why)),
            None => table.outcome.as_str().to_owned(),
        };
        match counts.iter_mut().find(|(known, _)| *known == what) {
            Some((_, n)) => *n += 1,
            None => counts.push((what, 1)),
        }
    }
    counts
}

/// More current or skipped tables than this are counted, not listed.
const MOST_CURRENT: u32 = 20;

/// Names without the folder that all of them share.
fn shorten_uris(tables: &[&TableReport]) -> Vec<String> {
    let common = match tables {
        [] | [_] => 0,
        [first, rest @ ..] => {
            let shared = rest.iter().fold(first.uri.as_str(), |shared, t| {
                let end = shared.char_indices().zip(t.uri.chars()).find(|((_, a), b)| a != b);
                let end = end.map_or(shared.len().min(t.uri.len()), |((i, _), _)| i);
                shared.get(..end).unwrap_or("")
            });
            shared.rfind('/').map_or(0, |i| i + 1)
        }
    };
    tables.iter().map(|t| text::clean(t.uri.get(common..).unwrap_or(&t.uri))).collect()
}

fn line(
    table: &TableReport,
    name: &str,
    (width, kinds): (usize, usize),
    in_full: InFull,
    palette: Palette,
) -> String {
    let TableReport { outcome, from, to, newest, log_version, kind, error, .. } = table;
    let Palette { dim, reset, .. } = palette;
    let colour = palette.outcome(*outcome);
    // A stranger's stamp is a stranger's text.
    let kind = text::clean(kind);
    let word = if *outcome == Outcome::Planned { "pending" } else { outcome.as_str() };
    let head = format!("{colour}{word:<9}{reset} {name:<width$}  {kind:<kinds$}");
    let gap = " ".repeat(10);
    match (error, from, to) {
        (Some(error), _, _) => {
            let mut out = format!("{head}  {}: {}", error.code, text::clean(&error.message));
            for cause in &error.causes {
                let _ = write!(out, "\n{gap}{dim}because: {}{reset}", text::clean(cause));
            }
            out
        }
        (None, ..) if table.diff.is_some() => {
            let diff = table.diff.clone().unwrap_or_default();
            let mut out = format!("{head}  {}", diff::summary(table, &diff, palette));
            for warning in table.warnings.iter().filter(|w| tells_of_a_fault(w)) {
                let _ = write!(out, "\n{gap}! {}", text::clean(warning));
            }
            out
        }
        (None, Some(from), Some(to)) => {
            let versions = match (outcome, newest) {
                (Outcome::Created, _) => format!("at version {to}"),
                (Outcome::Planned, _) if table.mode == Mode::Create => {
                    format!("missing, to be created at version {to}")
                }
                (Outcome::Ahead, Some(newest)) => format!("at version {to}, this release knows {newest}"),
                _ if from == to => format!("at version {to}"),
                _ => format!("version {from} → {to}"),
            };
            let cost = match outcome {
                Outcome::Planned if table.mode != Mode::Create => format!(", {}", cost(table.mode)),
                _ => String::new(),
            };
            // A table that is ahead shows how low this release may still be rolled back.
            let floor = match table.floor.or(table.min_version.filter(|_| *outcome == Outcome::Ahead)) {
                Some(floor) => format!(", floor {floor}"),
                None => String::new(),
            };
            let commit = match log_version.filter(|_| table.commits > 0) {
                Some(v) => format!(" {dim}(log version {v}){reset}"),
                None => String::new(),
            };
            let moved = match table.rewrite.filter(|r| table.commits > 0 && r.files > 0) {
                Some(Rewrite { files, .. }) => {
                    format!(", rewrote {}", text::count(usize::try_from(files).unwrap_or(usize::MAX), "file"))
                }
                None => String::new(),
            };
            let mut out = format!("{head}  {versions}{floor}{cost}{moved}{commit}");
            for warning in table.warnings.iter().filter(|w| tells_of_a_fault(w)) {
                let _ = write!(out, "\n{gap}! {}", text::clean(warning));
            }
            for m in
                table.migrations.iter().filter(|_| in_full == InFull::Yes && *outcome != Outcome::Created)
            {
                let _ = write!(out, "\n{gap}{dim}{:>3}  {}{reset}", m.version, m.description);
            }
            out
        }
        _ => match &table.reason {
            Some(reason) => format!("{head}  {}", text::clean(reason)),
            None => head,
        },
    }
}
