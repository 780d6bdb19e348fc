//! What only the rows can refuse, looked at before anything is written: rows that would match for ever,
//! values that do not cast, rows that break a constraint.

use std::collections::{HashMap, HashSet};

use deltalake::arrow::array::AsArray as _;
use deltalake::arrow::datatypes::{DataType as ArrowType, Int64Type};
use deltalake::arrow::util::display::array_value_to_string;
use deltalake::datafusion::common::Column;
use deltalake::datafusion::functions_aggregate::expr_fn::count;
use deltalake::datafusion::logical_expr::{Expr, lit, try_cast, when};
use deltalake::datafusion::prelude::{DataFrame, SessionContext};
use serde_json::Value;

use super::active::{ActiveFile, percent_decoded};
use super::portion::{Set, cast_column, filled, null_column, rows, unqualified, wrong};
use super::stage::stage;
use super::{failed, sql};
use crate::delta::location::Location;
use crate::error::{Error, ErrorCode, Stage};
use crate::model::data::Values;
use crate::model::evolve::{CONSTRAINT, Change};
use crate::model::features::Protocol;
use crate::model::path::ColumnPath;
use crate::model::plan::{Content, Plan, PlannedCommit, Rewrite};
use crate::model::state::TableState;
use crate::model::text;
use crate::model::types::{Field, parse_type};

/// The column that says which file a row is from.
const FILE: &str = "__delta_migrate_file";

/// Files that a message names.
const MOST_FILES: usize = 5;

/// Values that a message shows, where that was asked for.
const MOST_VALUES: usize = 5;

/// What a look at rows gave.
#[derive(Debug, Default)]
pub(super) struct Looked {
    /// Whether all of them could be looked at: a later step may need what an earlier one leaves.
    pub(super) all: bool,
    /// Of each `update`, in their order: the files with rows to fill, and how many.
    pub(super) to_fill: Vec<ToFill>,
}

/// Files by their decoded paths, with the number of rows that an `update` will set.
pub(super) type ToFill = HashMap<String, u64>;

/// How many rows of a file an `update` will set.
pub(super) fn rows_in(file: &ActiveFile, found: &ToFill) -> u64 {
    found.get(&percent_decoded(&file.key.0)).copied().unwrap_or(0)
}

/// Looks at every row that the plan's data steps speak of, as it will be when each step's turn comes.
pub(super) async fn before_anything(
    location: &Location,
    plan: &Plan,
    state: &TableState,
    files: &[ActiveFile],
    values: Values,
) -> Result<Looked, Error> {
    let mut commits = plan.commits.as_slice();
    let (mut schema_text, mut protocol) = (state.metadata.schema_text.as_str(), &state.protocol);
    // What lands before the first data step is nothing but the log's.
    if let Some((first, rest)) = commits.split_first().filter(|(first, _)| first.data.is_none()) {
        if let Content::Evolve(evolved) = &first.content {
            schema_text = &evolved.schema_text;
            protocol = evolved.protocol.as_ref().unwrap_or(protocol);
        }
        commits = rest;
    }
    let changes = commits.iter().flat_map(|c| &c.migrations).flat_map(|m| &m.changes);
    let changes: Vec<Change> = changes.cloned().collect();
    let files: Vec<&ActiveFile> = files.iter().collect();
    look_at(location, state, (schema_text, protocol), &files, &changes, values).await
}

/// The same for one commit and some files, as the table is now.
pub(super) async fn of_files(
    location: &Location,
    planned: &PlannedCommit,
    state: &TableState,
    files: &[&ActiveFile],
    values: Values,
) -> Result<ToFill, Error> {
    let changes = planned.migrations.iter().flat_map(|m| &m.changes);
    // A function has run by now.
    let changes: Vec<Change> = changes.filter(|c| !matches!(c, Change::Run { .. })).cloned().collect();
    let mut protocol = &state.protocol;
    if let Content::Evolve(evolved) = &planned.content {
        protocol = evolved.protocol.as_ref().unwrap_or(protocol);
    }
    let schema = (state.metadata.schema_text.as_str(), protocol);
    let looked = look_at(location, state, schema, files, &changes, values).await?;
    if looked.all {
        return Ok(looked.to_fill.into_iter().next().unwrap_or_default());
    }
    Err(Error::new(
        ErrorCode::DataStep,
        Stage::Plan,
        format!("migration {}: its rows can't be looked at beforehand", planned.to),
    )
    .with_hint("put the data step into a migration of its own; nothing was written for it"))
}

/// More rows than this are not all looked at as they will be: of the others only those that match are
/// counted, and what becomes of them is proved from the new files, before these are committed.
const MOST_FORESEEN: u64 = 1_000_000;

/// How closely rows are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Depth {
    /// As they will be.
    Full,
    /// Which of them an `update` will set.
    Matches,
}

async fn look_at(
    location: &Location,
    state: &TableState,
    schema: (&str, &Protocol),
    files: &[&ActiveFile],
    changes: &[Change],
    values: Values,
) -> Result<Looked, Error> {
    let mut rows = 0_u64;
    let foreseen = files.iter().take_while(|file| {
        let before = rows;
        rows = rows.saturating_add(file.rows.unwrap_or(MOST_FORESEEN / 4));
        before < MOST_FORESEEN
    });
    let foreseen: Vec<&ActiveFile> = foreseen.copied().collect();
    let asks_all = changes.iter().any(|c| match c {
        Change::RetypeColumn { .. } | Change::AddConstraint { .. } => true,
        // What the table itself asks of the values.
        Change::Update { set, .. } => asks_of(state, set),
        _ => false,
    });
    if asks_all || foreseen.len() == files.len() {
        return look(location, state, schema, files, changes, (Depth::Full, values)).await;
    }
    look(location, state, schema, &foreseen, changes, (Depth::Full, values)).await?;
    look(location, state, schema, files, changes, (Depth::Matches, values)).await
}

/// Whether the table has constraints, invariants or generated columns, or requires a column that is set.
fn asks_of(state: &TableState, set: &Set) -> bool {
    state.metadata.configuration.keys().any(|key| key.starts_with(CONSTRAINT))
        || !of_fields(&state.metadata.schema_text).is_empty()
        || state.columns.iter().any(|c| !c.nullable && set.contains_key(&c.name))
}

/// Whether an `update` left nothing to do in the files that it wrote. Their statistics mostly say so, and
/// then nothing is read.
pub(super) async fn nothing_left(
    location: &Location,
    state: &TableState,
    files: &[&ActiveFile],
    predicate: &str,
) -> Result<(), Error> {
    let staged = stage(location, state, &state.protocol, &state.metadata.schema_text, files).await?;
    let session = sql::session();
    let all = rows(&session, &staged, Some(FILE)).await?;
    let found = count_by_file(only(&session, all, predicate)?, location).await?;
    if found.rows > 0 { Err(endless(&found, predicate)) } else { Ok(()) }
}

fn endless(found: &Found, predicate: &str) -> Error {
    Error::new(
        ErrorCode::DataStep,
        Stage::Plan,
        format!(
            "{} for which `{}` would still be true after they are set, in {}",
            text::count(found.rows, "row"),
            text::shorten(predicate, 100),
            found.files()
        ),
    )
    .with_hint(
        "the step would never come to an end: give those rows a value too (COALESCE), or leave them out with \
         `where`; nothing was written for it",
    )
}

async fn look(
    location: &Location,
    state: &TableState,
    (schema_text, protocol): (&str, &Protocol),
    files: &[&ActiveFile],
    changes: &[Change],
    (depth, values): (Depth, Values),
) -> Result<Looked, Error> {
    let staged = stage(location, state, protocol, schema_text, files).await?;
    let session = sql::session();
    let mut all = rows(&session, &staged, Some(FILE)).await?;
    let moves = |c: &Change| {
        matches!(c, Change::Update { .. } | Change::RetypeColumn { .. } | Change::AddConstraint { .. })
    };
    // What comes behind the last of them is nothing that rows could refuse.
    let last = changes.iter().rposition(moves).map_or(0, |at| at + 1);
    let mut looked = Looked::default();
    let known: HashSet<String> = files.iter().map(|f| percent_decoded(&f.key.0)).collect();
    for change in &changes[..last] {
        match change {
            Change::Update { set, predicate } => {
                let matching = only(&session, all.clone(), predicate)?;
                let to_fill = match depth {
                    Depth::Matches => {
                        let [found] = counted(matching, location, [count(lit(1_i64))]).await?;
                        found.into_iter().map(|(file, n)| (file, n as u64)).collect()
                    }
                    Depth::Full => {
                        let after = filled(&session, matching, set, predicate)?;
                        let (to_fill, left) =
                            still_matching(&session, after.clone(), location, predicate).await?;
                        if left.rows > 0 {
                            return Err(endless(&left, predicate));
                        }
                        keeps(&session, &after, location, state, set, values).await?;
                        to_fill
                    }
                };
                // A file that goes by another name than the log's would be passed over.
                if let Some(stranger) = to_fill.keys().find(|path| !known.contains(*path)) {
                    return Err(wrong(stranger, "rows are read from it, and the log names no such file"));
                }
                looked.to_fill.push(to_fill);
                all = filled(&session, all, set, predicate)?;
            }
            Change::RetypeColumn { path, type_text, .. } => {
                all = retyped(all, location, path, type_text, values).await?;
            }
            Change::AddConstraint { name, expression } => {
                holds(&session, all.clone(), location, (name, expression, ""), values).await?;
            }
            Change::AddColumn { path, .. }
            | Change::RenameColumn { path, .. }
            | Change::WidenType { path, .. }
            | Change::DropColumn { path, .. } => {
                let path: ColumnPath = path.parse().map_err(|_| wrong(path, "it is no path"))?;
                // What lies inside a column is looked at when its turn comes.
                if !path.parent().is_empty() {
                    return Ok(looked);
                }
                all = evolved(all, path.name(), change)?;
            }
            // Metadata that no row and no expression sees.
            Change::LeaveColumn { .. }
            | Change::Comment { .. }
            | Change::RelaxNullability { .. }
            | Change::TableDescription { .. }
            | Change::SetProperty { .. }
            | Change::UnsetProperty { .. }
            | Change::EnableFeature { .. }
            | Change::DropConstraint { .. }
            | Change::SetDefault { .. } => {}
            // Nobody can tell what it does.
            Change::Run { .. } => return Ok(looked),
        }
    }
    Ok(Looked { all: true, ..looked })
}

fn only(session: &SessionContext, rows: DataFrame, predicate: &str) -> Result<DataFrame, Error> {
    let schema = unqualified(&rows)?;
    let condition = sql::condition(session, &schema, predicate).map_err(|e| wrong("`update.where`", &e))?;
    rows.filter(condition).map_err(|e| failed("the condition can't be used", e))
}

/// The rows as a change of one top-level column leaves them.
fn evolved(rows: DataFrame, name: &str, change: &Change) -> Result<DataFrame, Error> {
    match change {
        Change::AddColumn { type_text, .. } => null_column(rows, name, &arrow_type(name, type_text)?),
        Change::WidenType { type_text, .. } => cast_column(rows, name, &arrow_type(name, type_text)?),
        Change::RenameColumn { to, .. } => {
            kept(rows, |column| Some(if column == name { to.clone() } else { column.to_owned() }))
        }
        Change::DropColumn { .. } => kept(rows, |column| (column != name).then(|| column.to_owned())),
        _ => Ok(rows),
    }
}

/// The columns for which there is a name, under that name.
fn kept(rows: DataFrame, called: impl Fn(&str) -> Option<String>) -> Result<DataFrame, Error> {
    let schema = unqualified(&rows)?;
    let names = schema.fields().iter().map(|field| field.name());
    let select =
        names.filter_map(|old| Some(Expr::Column(Column::from_name(old.clone())).alias(called(old)?)));
    rows.select(select.collect::<Vec<_>>()).map_err(|e| failed("columns can't be renamed or dropped", e))
}

fn arrow_type(name: &str, type_text: &str) -> Result<ArrowType, Error> {
    let target = parse_type(type_text).map_err(|e| wrong(name, &e.found))?;
    let schema = sql::schema_of(&[Field::nullable(name, target)]).map_err(|e| wrong(name, &e))?;
    Ok(schema.field(0).data_type().clone())
}

/// A column with its new type, if every value has one there.
async fn retyped(
    rows: DataFrame,
    location: &Location,
    path: &str,
    type_text: &str,
    values: Values,
) -> Result<DataFrame, Error> {
    let path: ColumnPath = path.parse().map_err(|_| wrong(path, "it is no path"))?;
    let [top] = path.segments() else {
        return Err(wrong(
            &path.to_string(),
            "only columns at the top level can be retyped; retype the whole column, or add a new one and fill it",
        ));
    };
    let target = arrow_type(top, type_text)?;
    let column = Expr::Column(Column::from_name(top.clone()));
    let lost = column.clone().is_not_null().and(try_cast(column.clone(), target.clone()).is_null());
    let lost = rows.clone().filter(lost).map_err(|e| failed("the column can't be given its new type", e))?;
    let found = count_by_file(lost.clone(), location).await?;
    if found.rows > 0 {
        let shown = shown(lost, std::slice::from_ref(top), values).await?;
        return Err(Error::new(
            ErrorCode::DataStep,
            Stage::Plan,
            format!(
                "{} of `{top}` can't be cast to {type_text}, in {}{shown}",
                text::count(found.rows, "value"),
                found.files()
            ),
        )
        .with_hint(
            "set those values right first (with an `update` before it, or by hand), or add a new column and fill it; \
             nothing was written for this step",
        ));
    }
    cast_column(rows, top, &target)
}

/// What is set keeps to the table's own constraints, and leaves no required column null.
async fn keeps(
    session: &SessionContext,
    after: &DataFrame,
    location: &Location,
    state: &TableState,
    set: &Set,
    values: Values,
) -> Result<(), Error> {
    const WHEN: &str = " once they are set";
    for (key, expression) in &state.metadata.configuration {
        if let Some(name) = key.strip_prefix(CONSTRAINT) {
            holds(session, after.clone(), location, (name, expression, WHEN), values).await?;
        }
    }
    for (name, expression) in of_fields(&state.metadata.schema_text) {
        holds(session, after.clone(), location, (&name, &expression, WHEN), values).await?;
    }
    for column in state.columns.iter().filter(|c| !c.nullable && set.contains_key(&c.name)) {
        let null = Expr::Column(Column::from_name(column.name.clone())).is_null();
        let null = after.clone().filter(null).map_err(|e| failed("rows could not be looked at", e))?;
        let found = count_by_file(null, location).await?;
        if found.rows > 0 {
            return Err(Error::new(
                ErrorCode::DataStep,
                Stage::Plan,
                format!(
                    "`{}` must not be null, and would be in {}, in {}",
                    column.name,
                    text::count(found.rows, "row"),
                    found.files()
                ),
            )
            .with_hint("give those rows a value (COALESCE), or leave them out with `where`; nothing was written for it"));
        }
    }
    Ok(())
}

/// What top-level columns ask of rows (PROTOCOL.md, Column Invariants, Generated Columns): a name and SQL.
fn of_fields(schema_text: &str) -> Vec<(String, String)> {
    let schema: Value = serde_json::from_str(schema_text).unwrap_or_default();
    let mut out = Vec::new();
    for field in schema.get("fields").and_then(Value::as_array).into_iter().flatten() {
        let text = |key: &str| field.get("metadata").and_then(|m| m.get(key)).and_then(Value::as_str);
        let name = field.get("name").and_then(Value::as_str).unwrap_or_default();
        let invariant: Option<Value> = text("delta.invariants").and_then(|t| serde_json::from_str(t).ok());
        if let Some(sql) = invariant.as_ref().and_then(|i| i.get("expression")?.get("expression")?.as_str()) {
            out.push((name.to_owned(), sql.to_owned()));
        }
        if let Some(sql) = text("delta.generationExpression") {
            let column = name.replace('"', "\"\"");
            out.push((name.to_owned(), format!("(\"{column}\") IS NOT DISTINCT FROM ({sql})")));
        }
    }
    out
}

async fn holds(
    session: &SessionContext,
    rows: DataFrame,
    location: &Location,
    (name, expression, when): (&str, &str, &str),
    values: Values,
) -> Result<(), Error> {
    let schema = unqualified(&rows)?;
    let condition = sql::condition(session, &schema, expression)
        .map_err(|e| wrong(&format!("constraint `{name}`"), &e))?;
    let columns: Vec<String> =
        condition.column_refs().into_iter().map(|column| column.name.clone()).collect();
    // What is neither true nor false breaks a constraint as well.
    let broken = rows
        .filter(condition.is_not_true())
        .map_err(|e| failed(&format!("constraint `{name}` can't be used"), e))?;
    let found = count_by_file(broken.clone(), location).await?;
    if found.rows == 0 {
        return Ok(());
    }
    let shown = shown(broken, &columns, values).await?;
    Err(Error::new(
        ErrorCode::DataStep,
        Stage::Plan,
        format!(
            "constraint `{name}` ({}) is not true of {}{when}, in {}{shown}",
            text::shorten(expression, 100),
            text::count(found.rows, "row"),
            found.files()
        ),
    )
    .with_hint(
        "mend those rows first (an `update` step before it, or by hand), or change the constraint; nothing was written \
         for this step",
    ))
}

/// Rows that were found, and where.
struct Found {
    rows: usize,
    /// Each file with its number of rows, the most first.
    by_file: Vec<(String, usize)>,
}

impl Found {
    fn of(by_file: HashMap<String, usize>) -> Self {
        let mut by_file: Vec<(String, usize)> = by_file.into_iter().filter(|(_, n)| *n > 0).collect();
        by_file.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        Self { rows: by_file.iter().map(|(_, n)| n).sum(), by_file }
    }

    fn files(&self) -> String {
        let named: Vec<String> =
            self.by_file.iter().take(MOST_FILES).map(|(file, n)| format!("`{file}` ({n})")).collect();
        let more = self.by_file.len().saturating_sub(named.len());
        let more = if more > 0 { format!(" and {}", text::count(more, "more file")) } else { String::new() };
        format!("{}{more}", named.join(", "))
    }
}

async fn count_by_file(rows: DataFrame, location: &Location) -> Result<Found, Error> {
    let [all] = counted(rows, location, [count(lit(1_i64))]).await?;
    Ok(Found::of(all))
}

/// The rows that were set, and those of them for which the condition is still true.
async fn still_matching(
    session: &SessionContext,
    after: DataFrame,
    location: &Location,
    predicate: &str,
) -> Result<(ToFill, Found), Error> {
    let schema = unqualified(&after)?;
    let condition = sql::condition(session, &schema, predicate).map_err(|e| wrong("`update.where`", &e))?;
    let again = when(condition, lit(1_i64)).end().map_err(|e| failed("the condition can't be used", e))?;
    let [all, again] = counted(after, location, [count(lit(1_i64)), count(again)]).await?;
    Ok((all.into_iter().map(|(file, n)| (file, n as u64)).collect(), Found::of(again)))
}

/// Each count by file.
async fn counted<const N: usize>(
    rows: DataFrame,
    location: &Location,
    counts: [Expr; N],
) -> Result<[HashMap<String, usize>; N], Error> {
    let wrong = |e| failed("rows could not be counted", e);
    let file = Expr::Column(Column::from_name(FILE));
    let counts = counts.into_iter().enumerate().map(|(i, count)| count.alias(format!("n{i}")));
    let counted = rows.aggregate(vec![file], counts.collect::<Vec<_>>()).map_err(wrong)?;
    let counted = counted.collect().await.map_err(wrong)?;
    let mut by_file: [HashMap<String, usize>; N] = std::array::from_fn(|_| HashMap::new());
    let root = location.log_store().root_url().as_str().trim_end_matches('/').to_owned();
    for batch in &counted {
        for row in 0..batch.num_rows() {
            let path = array_value_to_string(batch.column(0), row)
                .map_err(|e| failed("rows could not be counted", e))?;
            let path = path.strip_prefix(&root).map_or(path.as_str(), |p| p.trim_start_matches('/'));
            let path = percent_decoded(path);
            for (column, by_file) in batch.columns().iter().skip(1).zip(&mut by_file) {
                let number =
                    usize::try_from(column.as_primitive::<Int64Type>().value(row)).unwrap_or(usize::MAX);
                *by_file.entry(path.clone()).or_default() += number;
            }
        }
    }
    Ok(by_file)
}

/// A few of the values, only where somebody asked for them.
async fn shown(rows: DataFrame, columns: &[String], values: Values) -> Result<String, Error> {
    if values == Values::Hidden || columns.is_empty() {
        return Ok(String::new());
    }
    let wrong = |e| failed("values could not be read", e);
    let mut names = columns.to_vec();
    names.sort_unstable();
    names.dedup();
    let select = names.iter().map(|c| Expr::Column(Column::from_name(c.clone())));
    let batches = rows.select(select.collect::<Vec<_>>()).and_then(|r| r.limit(0, Some(MOST_VALUES)));
    let batches = batches.map_err(wrong)?.collect().await.map_err(wrong)?;
    let mut out = Vec::new();
    for batch in &batches {
        for row in 0..batch.num_rows() {
            let cells = names.iter().zip(batch.columns()).map(|(name, column)| {
                let cell = array_value_to_string(column, row).unwrap_or_default();
                format!("{name} = {}", text::shorten(&cell, 40))
            });
            out.push(cells.collect::<Vec<_>>().join(", "));
        }
    }
    Ok(format!(": {}", out.join("; ")))
}

/// Files, rows and bytes that the data steps may read.
pub(super) fn estimate(files: &[ActiveFile]) -> Rewrite {
    let rows = files.iter().map(|f| f.rows).sum::<Option<u64>>();
    Rewrite { files: files.len() as u64, rows, bytes: files.iter().map(|f| f.bytes).sum() }
}
