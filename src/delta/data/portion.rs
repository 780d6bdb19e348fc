//! Some files at a time: what deltalake does with them, as actions for a commit of ours.

use std::collections::HashMap;
use std::sync::Arc;

use deltalake::arrow::datatypes::DataType as ArrowType;
use deltalake::datafusion::common::Column;
use deltalake::datafusion::logical_expr::{Expr, cast, lit, when};
use deltalake::datafusion::prelude::{DataFrame, SessionContext};
use deltalake::kernel::transaction::CommitProperties;
use deltalake::protocol::SaveMode;
use serde_json::{Value, json};

use super::active::{ActiveFile, Key, of_add, percent_decoded, vector_id};
use super::check::nothing_left;
use super::stage::{Staged, has_change_data, stage};
use super::{failed, sql};
use crate::delta::location::Location;
use crate::error::{Error, ErrorCode, Stage};
use crate::model::data::Counts;
use crate::model::migration::Step;
use crate::model::path::ColumnPath;
use crate::model::plan::DataWork;
use crate::model::schema_edit;
use crate::model::state::TableState;
use crate::model::types::{DataType, resolve, schema_from_json, type_json};

/// What became of some files.
#[derive(Debug, Default)]
pub(super) struct Portion {
    pub(super) removes: Vec<Key>,
    pub(super) adds: Vec<Key>,
    /// Actions, one line each.
    pub(super) lines: Vec<String>,
    pub(super) counts: Counts,
    /// Rows of the new files, as far as these say it.
    rows_added: Option<u64>,
}

/// Does the steps to these files, which the table has at `state`.
pub(super) async fn run(
    location: &Location,
    data: &DataWork,
    state: &TableState,
    group: &[&ActiveFile],
    to_fill: Option<&HashMap<Key, u64>>,
    streams: Option<usize>,
) -> Result<Portion, Error> {
    let session = sql::session_of(streams);
    let mut update = None;
    let mut retyped = Vec::new();
    for step in &data.steps {
        match step {
            Step::Update { set, predicate } => {
                let set: Set = set.iter().map(|(column, sql)| (column.clone(), sql.clone())).collect();
                update = Some((set, predicate));
            }
            // One that comes with the same commit is in no file yet, and one may have its type already.
            Step::RetypeColumns(columns) => retyped.extend(
                columns
                    .iter()
                    .filter(|(path, wanted)| {
                        let found = resolve(&state.columns, path.segments());
                        found.is_some_and(|found| !found.data_type().same_as(wanted))
                    })
                    .cloned(),
            ),
            _ => {}
        }
    }
    let update = update.as_ref().map(|(set, predicate)| (set, *predicate));
    match (update, retyped.is_empty()) {
        (None, true) => Ok(Portion::default()),
        (Some((set, predicate)), true) => {
            let counted = |file: &ActiveFile| to_fill.and_then(|all| all.get(&file.key)).copied();
            if let Some(unknown) = group.iter().find(|f| counted(f).is_none()) {
                return Err(wrong(&unknown.key.0, "its rows were not counted; please report this"));
            }
            let rows = |file: &ActiveFile| counted(file).unwrap_or(0);
            let group: Vec<&ActiveFile> = group.iter().filter(|f| rows(f) > 0).copied().collect();
            if group.is_empty() {
                return Ok(Portion::default());
            }
            // Only deltalake's own update writes a change feed.
            let done = if has_change_data(state) {
                self::update(&session, location, state, &group, (set, predicate)).await?
            } else {
                let set_rows = group.iter().map(|f| rows(f)).sum();
                let mut done =
                    rewrite(&session, location, state, &group, Some((set, predicate)), &[]).await?;
                done.counts.rows_updated = set_rows;
                done.counts.rows_copied = done.counts.rows_copied.saturating_sub(set_rows);
                done
            };
            let added: Vec<ActiveFile> = done.added()?;
            let added: Vec<&ActiveFile> = added.iter().collect();
            nothing_left(location, state, &added, predicate).await?;
            Ok(done)
        }
        (update, false) => rewrite(&session, location, state, group, update, &retyped).await,
    }
}

/// Columns and the expressions that they get.
pub(super) type Set = std::collections::BTreeMap<String, String>;

/// Rows of some files are filled in; files without such rows stay.
async fn update(
    session: &SessionContext,
    location: &Location,
    state: &TableState,
    group: &[&ActiveFile],
    (set, predicate): (&Set, &str),
) -> Result<Portion, Error> {
    let staged = stage(location, state, &state.protocol, &state.metadata.schema_text, group).await?;
    let columns = sql::schema_of(&state.columns).map_err(|e| wrong("the table's schema", &e))?;
    let mut update = staged
        .table
        .clone()
        .update()
        .with_session_state(Arc::new(session.state()))
        .with_commit_properties(quiet())
        .with_predicate(
            sql::condition(session, &columns, predicate).map_err(|e| wrong("`update.where`", &e))?,
        );
    for (column, text) in set {
        let target = columns.field_with_unqualified_name(column).map(|f| f.data_type().clone());
        let target = target.map_err(|e| wrong(column, &sql::first_line(&e)))?;
        let value = sql::value(session, &columns, text, &target).map_err(|e| wrong(column, &e))?;
        update = update.with_update(Column::from_name(column.clone()), value);
    }
    let (_, metrics) = update.await.map_err(|e| failed("rows could not be filled in", e))?;
    let mut done = captured(&staged, group).await?;
    done.counts.rows_updated = metrics.num_updated_rows as u64;
    done.counts.rows_copied = metrics.num_copied_rows as u64;
    done.is_complete(group)?;
    Ok(done)
}

/// Files are written anew, with rows filled in and columns of other types.
async fn rewrite(
    session: &SessionContext,
    location: &Location,
    state: &TableState,
    group: &[&ActiveFile],
    update: Option<(&Set, &String)>,
    retyped: &[(ColumnPath, DataType)],
) -> Result<Portion, Error> {
    let staged = stage(location, state, &state.protocol, &state.metadata.schema_text, group).await?;
    let mut rows = rows(session, &staged, None).await?;
    if let Some((set, predicate)) = update {
        rows = filled(session, rows, set, predicate)?;
    }
    let (text, tops) = retyped_schema(state, retyped)?;
    for (top, target) in tops {
        rows = cast_column(rows, &top, &target)?;
    }
    let target = stage(location, state, &state.protocol, &text, &[]).await?;
    let plan = rows.logical_plan().clone();
    target
        .table
        .clone()
        .write([])
        .with_input_plan(plan)
        .with_session_state(Arc::new(session.state()))
        .with_save_mode(SaveMode::Append)
        .with_commit_properties(quiet())
        .await
        .map_err(|e| failed("files could not be written anew", e))?;
    let mut done = captured(&target, &[]).await?;
    for file in group {
        done.remove(file);
    }
    let rows: Option<u64> = group.iter().map(|f| f.rows).sum();
    done.counts.rows_copied = done.rows_added.or(rows).unwrap_or(0);
    done.is_complete(group)?;
    Ok(done)
}

/// The schema string with the new types, and the top-level columns that differ with their Arrow types.
fn retyped_schema(
    state: &TableState,
    retyped: &[(ColumnPath, DataType)],
) -> Result<(String, Vec<(String, ArrowType)>), Error> {
    let unread = || wrong("the table's schema", "it can't be edited");
    let mut text = state.metadata.schema_text.clone();
    for (path, data_type) in retyped {
        text = schema_edit::set_type(&text, path, &type_json(data_type).to_string()).ok_or_else(unread)?;
    }
    let columns = schema_from_json(&text).map_err(|_| unread())?;
    let arrow = sql::schema_of(&columns).map_err(|e| wrong("the new schema", &e))?;
    let mut tops = Vec::new();
    for (path, _) in retyped {
        let Some(top) = path.segments().first() else { continue };
        let field = arrow.field_with_unqualified_name(top).map_err(|e| wrong(top, &sql::first_line(&e)))?;
        if !tops.iter().any(|(name, _)| name == top) {
            tops.push((top.clone(), field.data_type().clone()));
        }
    }
    Ok((text, tops))
}

/// The rows of a stage; `file` names a column that says which file each one is from.
pub(super) async fn rows(
    session: &SessionContext,
    staged: &Staged,
    file: Option<&str>,
) -> Result<DataFrame, Error> {
    let wrong = |e| failed("the table's rows can't be read", e);
    let mut provider = staged.table.table_provider().with_session(Arc::new(session.state()));
    if let Some(file) = file {
        provider = provider.with_file_column(file);
    }
    staged
        .table
        .update_datafusion_session(&session.state())
        .map_err(|e| failed("the table's rows can't be read", e))?;
    let provider = provider.await.map_err(wrong)?;
    session.read_table(provider).map_err(wrong)
}

/// The rows as an `update` leaves them.
pub(super) fn filled(
    session: &SessionContext,
    rows: DataFrame,
    set: &Set,
    predicate: &str,
) -> Result<DataFrame, Error> {
    let schema = unqualified(&rows)?;
    let condition = sql::condition(session, &schema, predicate).map_err(|e| wrong("`update.where`", &e))?;
    let mut select = Vec::new();
    for field in schema.fields() {
        let old = Expr::Column(Column::from_name(field.name().clone()));
        select.push(match set.get(field.name()) {
            None => old,
            Some(text) => {
                let target = field.data_type().clone();
                let value =
                    sql::value(session, &schema, text, &target).map_err(|e| wrong(field.name(), &e))?;
                when(condition.clone(), cast(value, target))
                    .otherwise(old)
                    .map_err(|e| failed("an expression can't be used", e))?
                    .alias(field.name().clone())
            }
        });
    }
    rows.select(select).map_err(|e| failed("an expression can't be used", e))
}

/// The columns without the name of the table.
pub(super) fn unqualified(rows: &DataFrame) -> Result<deltalake::datafusion::common::DFSchema, Error> {
    let arrow = rows.schema().as_arrow().clone();
    deltalake::datafusion::common::DFSchema::try_from(arrow)
        .map_err(|e| failed("the table's columns can't be used", e))
}

pub(super) fn cast_column(rows: DataFrame, name: &str, target: &ArrowType) -> Result<DataFrame, Error> {
    let column = Expr::Column(Column::from_name(name));
    rows.with_column(name, cast(column, target.clone()))
        .map_err(|e| failed("a column can't be given its new type", e))
}

/// A column of nulls.
pub(super) fn null_column(rows: DataFrame, name: &str, target: &ArrowType) -> Result<DataFrame, Error> {
    let null = lit(deltalake::datafusion::common::ScalarValue::Null);
    rows.with_column(name, cast(null, target.clone())).map_err(|e| failed("a column can't be added", e))
}

/// No checkpoint, no clean-up: the stage has no log to look after.
fn quiet() -> CommitProperties {
    CommitProperties::default().with_create_checkpoint(false).with_cleanup_expired_logs(Some(false))
}

pub(super) fn wrong(what: &str, why: &str) -> Error {
    Error::new(ErrorCode::DataStep, Stage::Plan, format!("{what}: {why}"))
        .with_hint("correct the kind file; nothing was written for this step")
}

/// What deltalake committed on the stage. It names the files that it takes away as it decoded their
/// paths; a reader of logs compares paths as they are written, so that the log's own are put back.
async fn captured(staged: &Staged, group: &[&ActiveFile]) -> Result<Portion, Error> {
    let mut done = Portion { rows_added: Some(0), ..Portion::default() };
    let known: HashMap<(String, Option<&str>), &ActiveFile> =
        group.iter().map(|f| ((percent_decoded(&f.key.0), f.key.1.as_deref()), *f)).collect();
    for action in staged.committed().await? {
        let Some((name, body)) = action.as_object().and_then(|map| map.iter().next()) else { continue };
        match name.as_str() {
            "add" => {
                let path = body.get("path").and_then(Value::as_str).unwrap_or_default().to_owned();
                done.adds.push((path, body.get("deletionVector").and_then(vector_id)));
                done.lines.push(action.to_string());
                done.counts.files_added += 1;
                done.rows_added = done.rows_added.zip(rows_of(body)).map(|(sum, rows)| sum + rows);
            }
            "cdc" => done.lines.push(action.to_string()),
            "remove" => {
                let path = percent_decoded(body.get("path").and_then(Value::as_str).unwrap_or_default());
                let vector = body.get("deletionVector").and_then(vector_id);
                let file = known.get(&(path.clone(), vector.as_deref())).ok_or_else(|| {
                    Error::new(
                        ErrorCode::DataStep,
                        Stage::Plan,
                        format!("deltalake takes away `{path}`, which it was not given"),
                    )
                    .with_hint("nothing was written; please report this")
                })?;
                done.remove(file);
            }
            "commitInfo" => {}
            other => {
                return Err(Error::new(
                    ErrorCode::DataStep,
                    Stage::Plan,
                    format!("deltalake wants to commit a `{other}` action, which a data step never does"),
                )
                .with_hint("nothing was written; please report this"));
            }
        }
    }
    Ok(done)
}

/// The rows of a file as its statistics say it.
fn rows_of(add: &Value) -> Option<u64> {
    let statistics: Value = serde_json::from_str(add.get("stats")?.as_str()?).ok()?;
    statistics.get("numRecords")?.as_u64()
}

impl Portion {
    /// The files that it adds.
    fn added(&self) -> Result<Vec<ActiveFile>, Error> {
        let unread = || wrong("an `add` action of deltalake", "it can't be read");
        let adds = self.lines.iter().filter(|line| line.starts_with("{\"add\""));
        adds.map(|line| {
            let mut action: Value = serde_json::from_str(line).map_err(|_| unread())?;
            of_add(action.get_mut("add").map(Value::take).unwrap_or_default()).ok_or_else(unread)
        })
        .collect()
    }

    /// What is taken away must come back: as many rows, by all that is known of them.
    fn is_complete(&self, group: &[&ActiveFile]) -> Result<(), Error> {
        let gone = group.iter().filter(|f| self.removes.contains(&f.key));
        let gone: Option<u64> = gone.map(|f| f.rows).sum();
        let Counts { rows_updated, rows_copied, files_added, files_removed, .. } = self.counts;
        let handled = rows_updated + rows_copied;
        let there = self.rows_added.unwrap_or(handled);
        let taken = gone.unwrap_or(handled);
        if there == handled && taken == handled && (files_added == 0 || files_removed > 0) {
            return Ok(());
        }
        Err(Error::new(
            ErrorCode::DataStep,
            Stage::Plan,
            format!(
                "{files_removed} files have {taken} rows by the log, {handled} were read, and {there} stand in the \
                 {files_added} new files"
            ),
        )
        .with_hint("nothing was written for it; compare the files' statistics with their rows, and report this"))
    }

    fn remove(&mut self, file: &ActiveFile) {
        let get = |key: &str| file.add.get(key).filter(|v| !v.is_null()).cloned();
        let mut remove = json!({
            "path": file.key.0,
            "deletionTimestamp": chrono::Utc::now().timestamp_millis(),
            "dataChange": true,
            "extendedFileMetadata": true,
            "partitionValues": get("partitionValues").unwrap_or_else(|| json!({})),
            "size": file.bytes,
        });
        if let (Some(map), Some(vector)) = (remove.as_object_mut(), get("deletionVector")) {
            map.insert("deletionVector".to_owned(), vector);
        }
        self.lines.push(json!({ "remove": remove }).to_string());
        self.removes.push(file.key.clone());
        self.counts.files_removed += 1;
        self.counts.bytes_removed += file.bytes;
    }
}
