//! What data steps change in the metadata, and what they need of the table.

use indexmap::IndexMap;

use super::properties::CONSTRAINT;
use super::references::Doing;
use super::{Change, Evolution, lost};
use crate::error::ErrorCode;
use crate::model::features;
use crate::model::path::ColumnPath;
use crate::model::refusal::Refusal;
use crate::model::schema_edit;
use crate::model::types::{DataType, find, resolve, schema_from_json, type_json};

impl Evolution {
    pub(super) fn update(&self, set: &IndexMap<String, String>, predicate: &str) -> Result<Change, Refusal> {
        self.check_rewritable("update")?;
        if let Some(gone) = set.keys().find(|name| find(&self.columns, name).is_none()) {
            return Err(lost(&ColumnPath::of([gone.as_str()])));
        }
        for name in set.keys() {
            self.check_given(name)?;
        }
        let set = set.iter().map(|(column, sql)| (column.clone(), sql.clone())).collect();
        Ok(Change::Update { set, predicate: predicate.to_owned() })
    }

    pub(super) fn retype(
        &mut self,
        path: &ColumnPath,
        data_type: &DataType,
    ) -> Result<Option<Change>, Refusal> {
        let found = resolve(&self.columns, path.segments()).ok_or_else(|| lost(path))?;
        let was = found.data_type().clone();
        if was.same_as(data_type) {
            return Ok(None);
        }
        self.check_rewritable("retype_columns")?;
        if !path.parent().is_empty() {
            return Err(Refusal::new(
                ErrorCode::UnsupportedStep,
                format!("`{path}` lies inside a column, and only whole columns are retyped"),
                "retype the top-level column with all that is in it, or add a new column and fill it with `update`",
            ));
        }
        let partition = self.partition_columns.iter().any(|p| ColumnPath::of([p.as_str()]) == *path);
        if partition {
            return Err(Refusal::new(
                ErrorCode::TypeConflict,
                format!(
                    "`{path}` is a partition column, whose values stand in the log and in the names of folders"
                ),
                "add a column of the new type and fill it with `update`, or write the table anew",
            ));
        }
        self.check_references(path, Doing::Retype)?;
        if let Some(top) = path.segments().first() {
            self.check_given(top)?;
        }
        self.check_type(path, data_type)?;
        let text = schema_edit::set_type(&self.schema_text, path, &type_json(data_type).to_string());
        let text = text.ok_or_else(|| lost(path))?;
        self.columns = schema_from_json(&text).map_err(|_| lost(path))?;
        self.schema_text = text;
        Ok(Some(Change::RetypeColumn {
            path: path.to_string(),
            was: was.to_string(),
            type_text: data_type.to_string(),
        }))
    }

    pub(super) fn add_constraint(&mut self, name: &str, expression: &str) -> Result<Option<Change>, Refusal> {
        let configuration = self.configuration();
        // Engines write the name in lower case.
        let wanted = format!("{CONSTRAINT}{}", name.to_lowercase());
        let there = configuration.iter().find(|(key, _)| key.eq_ignore_ascii_case(&wanted));
        if let Some((_, there)) = there {
            if there.trim() == expression.trim() {
                return Ok(None);
            }
            return Err(Refusal::new(
                ErrorCode::TypeConflict,
                format!("the table has a constraint `{name}` already, and it is another one: {there}"),
                "give the new constraint another name, or drop the old one with `drop_constraints` first",
            ));
        }
        self.check_readable("add_constraints")?;
        if !self.protocol.has("checkConstraints") {
            return Err(Refusal::new(
                ErrorCode::UnsupportedFeature,
                format!(
                    "constraint `{name}` needs the table feature `checkConstraints`, which the table lacks"
                ),
                "say `enable_features = [\"checkConstraints\"]` in the migration: a protocol is never upgraded \
                 unasked, because that can't be undone",
            ));
        }
        self.properties.insert(wanted, Some(expression.to_owned()));
        Ok(Some(Change::AddConstraint { name: name.to_owned(), expression: expression.to_owned() }))
    }

    /// Values of some columns come from the table alone (PROTOCOL.md, Generated Columns, Identity Columns).
    fn check_given(&self, name: &str) -> Result<(), Refusal> {
        let schema: serde_json::Value = serde_json::from_str(&self.schema_text).unwrap_or_default();
        let mut fields = schema["fields"].as_array().into_iter().flatten();
        let field = fields.find(|f| f["name"] == name);
        let keys = field.and_then(|f| f["metadata"].as_object()).into_iter().flat_map(|m| m.keys());
        let keys: Vec<&str> = keys.map(String::as_str).collect();
        let what = match () {
            () if keys.contains(&"delta.generationExpression") => "generated from others",
            () if keys.iter().any(|k| k.starts_with("delta.identity.")) => "an identity column",
            () => return Ok(()),
        };
        Err(Refusal::new(
            ErrorCode::UnsupportedFeature,
            format!("`{name}` is {what}, and its values are the table's own"),
            "leave the column to the table: set another one, or do this with an engine that knows the feature",
        ))
    }

    /// Files can be rewritten only where all that the table's features ask of new files is done.
    fn check_rewritable(&self, step: &str) -> Result<(), Refusal> {
        let configuration = self.configuration();
        let on = |key: &str| configuration.get(key).is_some_and(|v| v.eq_ignore_ascii_case("true"));
        if on("delta.appendOnly") {
            return Err(Refusal::new(
                ErrorCode::UnsupportedFeature,
                format!("`{step}` takes files away, and the table is append-only"),
                "leave the step out, or let the owner of the table take the property `delta.appendOnly` off first",
            ));
        }
        refuse(step, features::not_rewritten(&self.protocol))
    }

    /// As far as rows are only read.
    fn check_readable(&self, step: &str) -> Result<(), Refusal> {
        refuse(step, features::not_read(&self.protocol))
    }
}

fn refuse(step: &str, features: Vec<String>) -> Result<(), Refusal> {
    if features.is_empty() {
        return Ok(());
    }
    Err(Refusal::new(
        ErrorCode::UnsupportedFeature,
        format!("`{step}` can't be done on a table with {}", crate::model::text::list(&features)),
        "do this with an engine that knows the feature, then take the table over at the version after it with \
         `delta-migrate baseline TABLE --at N`",
    ))
}
