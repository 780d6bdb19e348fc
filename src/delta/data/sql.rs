//! SQL of kind files: read against columns, and refused where it could not be done twice with the same
//! result.

use std::sync::Arc;

use deltalake::arrow::datatypes::{DataType as ArrowType, Schema};
use deltalake::datafusion::common::tree_node::{TreeNode as _, TreeNodeRecursion};
use deltalake::datafusion::common::{DFSchema, DataFusionError};
use deltalake::datafusion::logical_expr::simplify::SimplifyContext;
use deltalake::datafusion::logical_expr::{Expr, ExprSchemable as _, Volatility};
use deltalake::datafusion::optimizer::simplify_expressions::ExprSimplifier;
use deltalake::datafusion::prelude::SessionContext;
use deltalake::delta_datafusion::create_session;
use deltalake::kernel::StructType;
use deltalake::kernel::engine::arrow_conversion::TryIntoArrow as _;

use crate::model::kind::Kind;
use crate::model::migration::Step;
use crate::model::types::{Field, schema_json};
use crate::model::version::SchemaVersion;

/// A session of deltalake's: its functions, names as they are written.
pub(crate) fn session() -> SessionContext {
    create_session().into_inner()
}

/// A session that reads and writes rows in so many streams.
pub(crate) fn session_of(streams: Option<usize>) -> SessionContext {
    let session = session();
    if let Some(streams) = streams {
        session.state_ref().write().config_mut().options_mut().execution.target_partitions = streams;
    }
    session
}

/// The columns as DataFusion sees them.
pub(crate) fn schema_of(columns: &[Field]) -> Result<DFSchema, String> {
    let kernel: StructType = serde_json::from_value(schema_json(columns)).map_err(|e| e.to_string())?;
    let arrow: Schema = (&kernel).try_into_arrow().map_err(|e| e.to_string())?;
    DFSchema::try_from(arrow).map_err(|e| first_line(&e))
}

/// A condition on rows.
pub(crate) fn condition(session: &SessionContext, schema: &DFSchema, sql: &str) -> Result<Expr, String> {
    let (expr, found) = read(session, schema, sql)?;
    match found {
        ArrowType::Boolean | ArrowType::Null => Ok(expr),
        other => Err(format!("it is {other}, wanted a condition: something that is true or false")),
    }
}

/// A value for a column of type `target`.
pub(crate) fn value(
    session: &SessionContext,
    schema: &DFSchema,
    sql: &str,
    target: &ArrowType,
) -> Result<Expr, String> {
    let (expr, found) = read(session, schema, sql)?;
    if goes_into(&found, target) {
        return Ok(expr);
    }
    Err(format!("it is {found}, and the column is {target}; say CAST(… AS …) where that is meant"))
}

fn read(session: &SessionContext, schema: &DFSchema, sql: &str) -> Result<(Expr, ArrowType), String> {
    let state = session.state();
    let expr = state.create_logical_expr(sql, schema).map_err(|e| first_line(&e))?;
    refuse(&expr)?;
    let context = SimplifyContext::builder().with_schema(Arc::new(schema.clone())).build();
    let expr = ExprSimplifier::new(context).coerce(expr, schema).map_err(|e| first_line(&e))?;
    let found = expr.get_type(schema).map_err(|e| first_line(&e))?;
    Ok((expr, found))
}

/// What gives another answer the next time, or looks at more than the row.
fn refuse(expr: &Expr) -> Result<(), String> {
    let mut wrong = None;
    let walked = expr.apply(|part| {
        let what = match part {
            Expr::ScalarFunction(call) if call.func.signature().volatility != Volatility::Immutable => {
                Some(format!(
                    "`{}` gives another value each time, and a step that is interrupted is done again",
                    call.func.name()
                ))
            }
            Expr::AggregateFunction(_) | Expr::WindowFunction(_) | Expr::GroupingSet(_) => {
                Some("it looks at other rows; wanted an expression of one row's columns".to_owned())
            }
            Expr::Exists(_)
            | Expr::InSubquery(_)
            | Expr::ScalarSubquery(_)
            | Expr::OuterReferenceColumn(..) => {
                Some("it holds a query; wanted an expression of one row's columns".to_owned())
            }
            Expr::Placeholder(_) | Expr::ScalarVariable(..) | Expr::Unnest(_) => {
                Some("wanted an expression of one row's columns".to_owned())
            }
            _ => None,
        };
        Ok(match what {
            Some(_) => {
                wrong = what;
                TreeNodeRecursion::Stop
            }
            None => TreeNodeRecursion::Continue,
        })
    });
    match (walked, wrong) {
        (_, Some(what)) => Err(what),
        (Err(e), None) => Err(first_line(&e)),
        (Ok(_), None) => Ok(()),
    }
}

/// Whether values of one type are meant for a column of the other: as they are, or another size of the
/// same sort. Whether each one fits is seen when it is converted, and an error if it does not.
fn goes_into(found: &ArrowType, target: &ArrowType) -> bool {
    let text = |t: &ArrowType| matches!(t, ArrowType::Utf8 | ArrowType::LargeUtf8 | ArrowType::Utf8View);
    let binary = |t: &ArrowType| {
        matches!(
            t,
            ArrowType::Binary
                | ArrowType::LargeBinary
                | ArrowType::BinaryView
                | ArrowType::FixedSizeBinary(_)
        )
    };
    let time = |t: &ArrowType| matches!(t, ArrowType::Timestamp(_, _));
    let date = |t: &ArrowType| matches!(t, ArrowType::Date32 | ArrowType::Date64);
    // Values that repeat come as a dictionary of them.
    if let ArrowType::Dictionary(_, found) = found {
        return goes_into(found, target);
    }
    if let ArrowType::Dictionary(_, target) = target {
        return goes_into(found, target);
    }
    *found == ArrowType::Null
        || found == target
        || (text(found) && text(target))
        || (binary(found) && binary(target))
        || (time(found) && time(target))
        || (date(found) && date(target))
        || (found.is_numeric() && target.is_numeric())
        || (found.is_nested() && target.is_nested())
}

/// Every mistake in the SQL of a kind's chain: the migration, the key, and what is wrong.
pub(crate) fn mistakes(kind: &Kind) -> Vec<(SchemaVersion, String, String)> {
    let mut out = Vec::new();
    let session = session();
    for (version, migration) in kind.numbered() {
        if !migration.steps.iter().any(Step::moves_data) {
            continue;
        }
        let mut shape = kind.shape_at(SchemaVersion::new(version.get().saturating_sub(1)));
        for step in &migration.steps {
            if step.moves_data() {
                match schema_of(&shape.columns) {
                    Ok(schema) => {
                        let found = of_step(&session, &schema, step);
                        out.extend(found.into_iter().map(|(key, what)| (version, key, what)));
                    }
                    Err(what) => out.push((version, step.name().to_owned(), what)),
                }
            }
            shape.apply_step(step);
        }
    }
    out
}

fn of_step(session: &SessionContext, schema: &DFSchema, step: &Step) -> Vec<(String, String)> {
    let mut out = Vec::new();
    match step {
        Step::Update { set, predicate } => {
            for (column, sql) in set {
                let target = schema.field_with_unqualified_name(column).map(|f| f.data_type().clone());
                let found = match target {
                    Ok(target) => value(session, schema, sql, &target).map(drop),
                    Err(_) => Err("there is no such column".to_owned()),
                };
                out.extend(found.err().map(|what| (format!("update.set.{column}"), what)));
            }
            let found = condition(session, schema, predicate);
            out.extend(found.err().map(|what| ("update.where".to_owned(), what)));
        }
        Step::AddConstraints(constraints) => {
            for (name, sql) in constraints {
                let found = condition(session, schema, sql);
                out.extend(found.err().map(|what| (format!("add_constraints.{name}"), what)));
            }
        }
        _ => {}
    }
    out
}

/// What DataFusion says, without what it adds for its own developers.
pub(crate) fn first_line(error: &DataFusionError) -> String {
    let text = error.strip_backtrace();
    text.lines().next().unwrap_or_default().to_owned()
}
