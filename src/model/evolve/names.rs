//! The names that a table can take.

use indexmap::IndexMap;

use crate::error::ErrorCode;
use crate::model::refusal::Refusal;
use crate::model::types::{DataType, same_name};

/// What a table's features forbid in names.
#[derive(Debug, Clone)]
pub(crate) struct NameRules {
    /// Physical names carry the data, so that logical ones may hold what Parquet can't.
    mapped: bool,
    /// Change data feed adds columns of its own to what readers see.
    change_data: bool,
    /// Names of the hidden columns that hold row ids (§Row Tracking).
    materialized: Vec<String>,
}

const CHANGE_DATA_NAMES: [&str; 3] = ["_change_type", "_commit_version", "_commit_timestamp"];

/// Properties that name the hidden columns of row tracking.
const MATERIALIZED: [&str; 2] = [
    "delta.rowTracking.materializedRowIdColumnName",
    "delta.rowTracking.materializedRowCommitVersionColumnName",
];

impl NameRules {
    pub(crate) fn of(configuration: &IndexMap<String, String>) -> Self {
        let get = |key: &str| configuration.get(key).map(String::as_str);
        Self {
            mapped: matches!(get("delta.columnMapping.mode"), Some("name" | "id")),
            change_data: get("delta.enableChangeDataFeed").is_some_and(|v| v.eq_ignore_ascii_case("true")),
            materialized: MATERIALIZED.iter().filter_map(|k| get(k)).map(str::to_owned).collect(),
        }
    }

    /// Checks one column name; `top` says that it stands at the top level.
    pub(super) fn check(&self, name: &str, top: bool) -> Result<(), Refusal> {
        let refuse = |why: String, hint: &str| Err(Refusal::new(ErrorCode::InvalidName, why, hint));
        if name.is_empty() {
            return refuse("a column name is empty".to_owned(), "give the column a name");
        }
        if name.contains(['\n', '\r']) {
            return refuse(format!("`{}` holds a line break", name.escape_debug()), "use a name without one");
        }
        let bad = name.chars().find(|c| " ,;{}()\t=".contains(*c));
        if let Some(bad) = bad.filter(|_| !self.mapped) {
            let shown = if bad == ' ' { "a space".to_owned() } else { format!("`{}`", bad.escape_debug()) };
            return refuse(
                format!(
                    "column name `{name}` holds {shown}, which a table without column mapping can't take"
                ),
                "use letters, digits and `_`, or enable column mapping on the table first",
            );
        }
        let reserved = CHANGE_DATA_NAMES.iter().any(|r| r.eq_ignore_ascii_case(name));
        if self.change_data && top && reserved {
            return refuse(
                format!("column name `{name}` is reserved on a table with change data feed"),
                "use another name",
            );
        }
        if top && self.materialized.iter().any(|m| same_name(m, name)) {
            return refuse(
                format!("column name `{name}` is reserved for the table's row tracking"),
                "use another name",
            );
        }
        Ok(())
    }

    /// Checks a column's name and every name inside its type.
    pub(crate) fn check_field(&self, name: &str, data_type: &DataType, top: bool) -> Result<(), Refusal> {
        self.check(name, top)?;
        let mut structs = Vec::new();
        data_type.structs(&[], &mut structs);
        structs.iter().flat_map(|(_, fields)| fields.iter()).try_for_each(|f| self.check(&f.name, false))
    }
}
