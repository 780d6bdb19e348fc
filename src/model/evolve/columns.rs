//! Columns that get another name, a default, or an end.

use super::references::{Doing, in_use};
use super::{Change, Evolution, lost};
use crate::error::ErrorCode;
use crate::model::features::mapping_mode;
use crate::model::mapping::MAX_COLUMN_ID;
use crate::model::path::ColumnPath;
use crate::model::refusal::Refusal;
use crate::model::schema_edit;
use crate::model::types::{
    DataType, Field, Primitive, Target, field_mut, find, resolve, same_name, siblings_mut,
};

const PHYSICAL_NAME: &str = "delta.columnMapping.physicalName";
/// Where a column's default stands (§Default Columns).
pub(crate) const DEFAULT: &str = "CURRENT_DEFAULT";

impl Evolution {
    /// Gives a column another name; its physical name, by which files have it, stays.
    pub(super) fn rename(&mut self, path: &ColumnPath, new: &str) -> Result<Change, Refusal> {
        let target = ColumnPath::of(path.parent().iter().map(String::as_str).chain([new]));
        let taken = match resolve(&self.columns, target.segments()) {
            Some(Target::Field(field)) => Some(field.name.clone()),
            _ => None,
        };
        let old = match resolve(&self.columns, path.segments()) {
            Some(Target::Field(field)) => field.name.clone(),
            // Somebody renamed it already; whether the type fits is asked once all is done.
            None if taken.as_deref() == Some(new) => {
                return Ok(Change::LeaveColumn { path: target.to_string() });
            }
            _ => return Err(lost(path)),
        };
        if old == new {
            return Ok(Change::LeaveColumn { path: target.to_string() });
        }
        if let Some(taken) = taken.filter(|taken| *taken != old) {
            return Err(Refusal::new(
                ErrorCode::InvalidName,
                format!("`{path}` can't be renamed to `{new}`: the table has `{taken}` too"),
                "find out which of the two holds the data, and rename or drop the other with the engine that made it",
            ));
        }
        self.check_mapped(path, Doing::Rename)?;
        self.check_not_partition(path, Doing::Rename)?;
        let physical = schema_edit::field_metadata(&self.schema_text, path, PHYSICAL_NAME);
        if physical.is_none_or(|name| !name.starts_with('"') || name == "\"\"") {
            return Err(Refusal::new(
                ErrorCode::UnsupportedFeature,
                format!("`{path}` can't be renamed: it has no physical name, although column mapping is on"),
                "repair the table's column mapping with the engine that turned it on",
            ));
        }
        self.check_references(path, Doing::Rename)?;
        self.rules.check(new, path.parent().is_empty())?;
        let text = schema_edit::set_name(&self.schema_text, path, new).ok_or_else(|| lost(path))?;
        field_mut(&mut self.columns, path).ok_or_else(|| lost(path))?.name = new.to_owned();
        self.schema_text = text;
        Ok(Change::RenameColumn { path: path.to_string(), to: new.to_owned() })
    }

    /// Takes a column out of the schema; its values stay in the files until these are rewritten.
    pub(super) fn drop_column(&mut self, path: &ColumnPath) -> Result<Option<Change>, Refusal> {
        let Some(found) = resolve(&self.columns, path.segments()) else { return Ok(None) };
        let Target::Field(Field { name, data_type, .. }) = found else { return Err(lost(path)) };
        let (name, type_text) = (name.clone(), data_type.to_string());
        self.check_mapped(path, Doing::Drop)?;
        self.check_not_partition(path, Doing::Drop)?;
        self.check_references(path, Doing::Drop)?;
        let refuse = |why: &str, hint: &str| Err(in_use(path, Doing::Drop, why, hint.to_owned()));
        if self.protocol.has("clustering") {
            // The columns stand in a domain of the log, which is not read here.
            return refuse(
                "the table is clustered, perhaps by it",
                "drop it with an engine that knows clustering, which leaves nothing to do here",
            );
        }
        let partitions = self.partition_columns.clone();
        let is_data =
            |f: &&Field| !path.parent().is_empty() || !partitions.iter().any(|p| same_name(p, &f.name));
        let siblings = siblings_mut(&mut self.columns, path.parent()).ok_or_else(|| lost(path))?;
        if siblings.iter().filter(is_data).count() == 1 {
            return match path.parent().is_empty() {
                true => refuse("it is the table's last column with data", "add a column first"),
                false => refuse("it is the last field of its struct", "drop the struct instead"),
            };
        }
        siblings.retain(|f| f.name != name);
        self.schema_text = schema_edit::remove_field(&self.schema_text, path).ok_or_else(|| lost(path))?;
        // The highest id may go with the column, and must not be given again.
        if !self.configuration().contains_key(MAX_COLUMN_ID) {
            self.note_ids(path)?;
        }
        Ok(Some(Change::DropColumn { path: path.to_string(), type_text }))
    }

    /// Says what later writers put into a column for which they have no value.
    pub(super) fn set_default(&mut self, column: &str, expression: &str) -> Result<Option<Change>, Refusal> {
        let path = ColumnPath::of([column]);
        let data_type = find(&self.columns, column).map(|f| &f.data_type).ok_or_else(|| lost(&path))?;
        let refuse = |code, why: &str, hint: &str| {
            Err(Refusal::new(code, format!("`{path}` can't get a default: {why}"), hint))
        };
        // §Default Columns: a variant's default is always null.
        if *data_type == DataType::Primitive(Primitive::Variant) && !expression.eq_ignore_ascii_case("null") {
            return refuse(
                ErrorCode::TypeConflict,
                "it is a variant, whose default is null",
                "leave the default out",
            );
        }
        if !self.protocol.has("allowColumnDefaults") {
            return refuse(
                ErrorCode::UnsupportedFeature,
                "that needs the table feature `allowColumnDefaults`, which the table lacks",
                NEEDS_DEFAULTS,
            );
        }
        if self.is_made(&path) {
            return refuse(
                ErrorCode::ColumnInUse,
                "its values are generated by the table",
                "leave the default out",
            );
        }
        let was = schema_edit::field_metadata(&self.schema_text, &path, DEFAULT);
        let was = was.map(|raw| serde_json::from_str::<String>(raw).unwrap_or_else(|_| raw.to_owned()));
        if was.as_deref() == Some(expression) {
            return Ok(None);
        }
        let value = serde_json::Value::from(expression).to_string();
        let text = schema_edit::set_field_metadata(&self.schema_text, &path, DEFAULT, &value);
        self.schema_text = text.ok_or_else(|| lost(&path))?;
        Ok(Some(Change::SetDefault { path: path.to_string(), value: expression.to_owned(), was }))
    }

    /// Without column mapping, names are what files hold the data under.
    fn check_mapped(&self, path: &ColumnPath, doing: Doing) -> Result<(), Refusal> {
        if matches!(mapping_mode(&self.configuration()), Some("name" | "id")) {
            return Ok(());
        }
        let (done, way) = match doing {
            Doing::Drop => ("dropped", "leave the column as it is; nobody has to fill it"),
            _ => ("renamed", "add a column of the new name and fill it"),
        };
        Err(Refusal::new(
            ErrorCode::UnsupportedFeature,
            format!("`{path}` can't be {done}: the table has no column mapping, so that files hold the name"),
            format!(
                "{way}; or turn column mapping on with an engine that knows it (`delta.columnMapping.mode` = `name`)"
            ),
        ))
    }

    fn check_not_partition(&self, path: &ColumnPath, doing: Doing) -> Result<(), Refusal> {
        let at_top = path.parent().is_empty();
        if at_top && self.partition_columns.iter().any(|p| same_name(p, path.name())) {
            let hint = "partitioning can't be changed by metadata; take the step out, or rewrite the table"
                .to_owned();
            return Err(in_use(path, doing, "it is a partition column", hint));
        }
        Ok(())
    }
}

/// The way out where defaults are not allowed yet.
pub(crate) const NEEDS_DEFAULTS: &str = "say `enable_features = [\"allowColumnDefaults\"]` in the migration: a protocol \
                                         is never upgraded unasked, because that can't be undone";
