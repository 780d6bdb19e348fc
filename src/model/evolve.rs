//! Migration steps applied to what a table really is: its schema JSON and its properties.

mod add;
mod columns;
mod data;
mod names;
mod properties;
mod references;
mod widen;

use std::collections::BTreeMap;

use indexmap::IndexMap;
use serde::Serialize;

pub(crate) use self::columns::{DEFAULT, NEEDS_DEFAULTS};
pub(crate) use self::names::NameRules;
pub(crate) use self::properties::CONSTRAINT;
use super::features::{self, Duties, Protocol};
use super::mapping::Mapping;
use super::migration::Step;
use super::path::ColumnPath;
use super::refusal::Refusal;
use super::schema_edit;
use super::state::TableState;
use super::types::{Field, Target, field_mut, resolve, schema_from_json};
use crate::error::ErrorCode;

/// One thing that a commit changes, for plans and for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "change", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Change {
    /// A nullable column is added.
    AddColumn {
        /// Its path.
        path: String,
        /// Its type, in Delta's names.
        #[serde(rename = "type")]
        type_text: String,
        /// Its comment.
        #[serde(skip_serializing_if = "Option::is_none")]
        comment: Option<String>,
    },
    /// A column that was to be added is there already, with a fitting type, and is left alone.
    LeaveColumn {
        /// Its path.
        path: String,
    },
    /// A column's comment is set.
    Comment {
        /// The column's path.
        path: String,
        /// The new text.
        comment: String,
    },
    /// A required column may be null from now on.
    RelaxNullability {
        /// The column's path.
        path: String,
    },
    /// The table's description is set.
    TableDescription {
        /// The new text.
        description: String,
    },
    /// A property is set.
    SetProperty {
        /// Its name.
        key: String,
        /// The new value.
        value: String,
        /// The value before, where there was one.
        #[serde(skip_serializing_if = "Option::is_none")]
        was: Option<String>,
    },
    /// The protocol is upgraded for a feature; this can't be undone.
    EnableFeature {
        /// The feature's name.
        feature: String,
    },
    /// A property is removed.
    UnsetProperty {
        /// Its name.
        key: String,
        /// The value before.
        was: String,
    },
    /// Rows are filled in: files are rewritten.
    Update {
        /// The columns and the SQL expressions that they get.
        set: BTreeMap<String, String>,
        /// The rows: those for which this is true.
        #[serde(rename = "where")]
        predicate: String,
    },
    /// A function of the author's own is run.
    Run {
        /// Its name.
        name: String,
    },
    /// A column's type is changed: the table's files are rewritten.
    RetypeColumn {
        /// Its path.
        path: String,
        /// The type before.
        was: String,
        /// The new type, in Delta's names.
        #[serde(rename = "type")]
        type_text: String,
    },
    /// A constraint is added: the rows that are there are read.
    AddConstraint {
        /// Its name.
        name: String,
        /// What must be true of every row.
        expression: String,
    },
    /// A check constraint is dropped.
    DropConstraint {
        /// The property that held it.
        key: String,
        /// Its expression.
        was: String,
    },
    /// A column gets another name; its data stay where they are.
    RenameColumn {
        /// Its path before.
        path: String,
        /// Its new name.
        to: String,
    },
    /// A column, or a part of one, gets a wider type.
    WidenType {
        /// The path of the part whose type changes.
        path: String,
        /// Its new type.
        #[serde(rename = "type")]
        type_text: String,
        /// Its type before.
        was: String,
    },
    /// What later writers put into a column for which they have no value.
    SetDefault {
        /// The column.
        path: String,
        /// The expression.
        value: String,
        /// The expression before, where there was one.
        #[serde(skip_serializing_if = "Option::is_none")]
        was: Option<String>,
    },
    /// A column is dropped.
    DropColumn {
        /// Its path.
        path: String,
        /// Its type.
        #[serde(rename = "type")]
        type_text: String,
    },
}

impl Change {
    /// Whether it is more than a note.
    pub(crate) fn is_effective(&self) -> bool {
        !matches!(self, Self::LeaveColumn { .. })
    }
}

/// A table while steps are applied to it.
#[derive(Debug, Clone)]
pub(crate) struct Evolution {
    /// The schema string as it will be.
    pub(crate) schema_text: String,
    /// The description, where it changes.
    pub(crate) description: Option<String>,
    /// Properties that change: a value sets the key, none removes it.
    pub(crate) properties: IndexMap<String, Option<String>>,
    /// The protocol as it will be.
    pub(crate) protocol: Protocol,
    duties: Duties,
    mapping: Option<Mapping>,
    columns: Vec<Field>,
    before: IndexMap<String, String>,
    partition_columns: Vec<String>,
    /// The log version that the commit makes.
    log_version: u64,
    old_description: Option<String>,
    rules: NameRules,
}

impl Evolution {
    pub(crate) fn of(state: &TableState) -> Self {
        let duties = Duties::of(&state.protocol, &state.metadata.configuration);
        Self {
            schema_text: state.metadata.schema_text.clone(),
            description: None,
            properties: IndexMap::new(),
            columns: state.columns.clone(),
            before: state.metadata.configuration.clone(),
            partition_columns: state.metadata.partition_columns.clone(),
            log_version: state.log_version.get() + 1,
            old_description: state.metadata.description.clone(),
            rules: NameRules::of(&state.metadata.configuration),
            protocol: state.protocol.clone(),
            duties,
            mapping: duties.column_mapping.then(|| Mapping::of(state, duties.nested_ids)),
        }
    }

    /// The columns as they will be.
    pub(crate) fn columns(&self) -> &[Field] {
        &self.columns
    }

    /// Applies steps of a migration and lists what they really change on this table.
    pub(crate) fn apply(&mut self, steps: &[Step]) -> Result<Vec<Change>, Refusal> {
        let mut changes = Vec::new();
        for step in steps {
            self.step(step, &mut changes)?;
        }
        Ok(changes)
    }

    fn step(&mut self, step: &Step, changes: &mut Vec<Change>) -> Result<(), Refusal> {
        match step {
            Step::AddColumns(columns) => {
                for column in columns {
                    changes.push(self.add_column(column)?);
                }
            }
            Step::Comments(comments) => {
                for (path, comment) in comments {
                    changes.extend(self.comment(path, comment)?);
                }
            }
            Step::RelaxNullability(paths) => {
                for path in paths {
                    changes.extend(self.relax(path)?);
                }
            }
            Step::TableDescription(text) => {
                let now = self.description.as_ref().or(self.old_description.as_ref());
                if now != Some(text) {
                    self.description = Some(text.clone());
                    changes.push(Change::TableDescription { description: text.clone() });
                }
            }
            Step::SetProperties(pairs) => {
                for (key, value) in pairs {
                    changes.extend(self.set_property(key, Some(value))?);
                }
            }
            Step::UnsetProperties(keys) => {
                for key in keys {
                    changes.extend(self.set_property(key, None)?);
                }
            }
            Step::EnableFeatures(features) => {
                for feature in features {
                    changes.extend(self.enable(feature)?);
                }
            }
            Step::Update { set, predicate } => {
                changes.push(self.update(set, predicate)?);
            }
            Step::Run(function) => changes.push(Change::Run { name: function.name.clone() }),
            Step::RetypeColumns(retyped) => {
                for (path, data_type) in retyped {
                    changes.extend(self.retype(path, data_type)?);
                }
            }
            Step::AddConstraints(constraints) => {
                for (name, expression) in constraints {
                    changes.extend(self.add_constraint(name, expression)?);
                }
            }
            Step::DropConstraints(names) => {
                for name in names {
                    changes.extend(self.drop_constraint(name));
                }
            }
            Step::RenameColumns(renames) => {
                for (path, new) in renames {
                    changes.push(self.rename(path, new)?);
                }
            }
            Step::WidenTypes(wider) => {
                for (path, data_type) in wider {
                    changes.extend(self.widen(path, data_type)?);
                }
            }
            Step::SetDefaults(defaults) => {
                for (column, expression) in defaults {
                    changes.extend(self.set_default(column, expression)?);
                }
            }
            Step::DropColumns(paths) => {
                for path in paths {
                    changes.extend(self.drop_column(path)?);
                }
            }
        }
        Ok(())
    }
    /// Upgrades the protocol for one feature, and turns the feature on where a property does that.
    fn enable(&mut self, feature: &str) -> Result<Vec<Change>, Refusal> {
        let Some(property) = features::enabling(feature) else {
            return Err(cannot_enable(feature));
        };
        let mut changes = Vec::new();
        if !self.protocol.has(feature) {
            self.protocol.add(feature);
            changes.push(Change::EnableFeature { feature: feature.to_owned() });
        }
        if let Some((key, value)) = property {
            let was = self.before.get(key).cloned();
            if was.as_deref() != Some(value) {
                self.properties.insert(key.to_owned(), Some(value.to_owned()));
                changes.push(Change::SetProperty { key: key.to_owned(), value: value.to_owned(), was });
            }
        }
        let after = self.configuration();
        // Features can exclude each other.
        let refused = features::refused(&self.protocol, &after);
        if !refused.is_empty() {
            return Err(Refusal::new(
                ErrorCode::UnsupportedFeature,
                format!("`{feature}` can't be enabled: the table would have {}", super::text::list(&refused)),
                "leave the feature out, or turn off what excludes it first",
            ));
        }
        // Names that were fine so far may be reserved from now on.
        self.rules = NameRules::of(&after);
        self.columns.iter().try_for_each(|f| self.rules.check(&f.name, true))?;
        Ok(changes)
    }

    fn comment(&mut self, path: &ColumnPath, comment: &str) -> Result<Option<Change>, Refusal> {
        let field = field_mut(&mut self.columns, path).ok_or_else(|| lost(path))?;
        if field.comment.as_deref() == Some(comment) {
            return Ok(None);
        }
        field.comment = Some(comment.to_owned());
        let text = schema_edit::set_comment(&self.schema_text, path, comment);
        self.schema_text = text.ok_or_else(|| lost(path))?;
        Ok(Some(Change::Comment { path: path.to_string(), comment: comment.to_owned() }))
    }

    fn relax(&mut self, path: &ColumnPath) -> Result<Option<Change>, Refusal> {
        let nullable = match resolve(&self.columns, path.segments()) {
            Some(Target::Field(field)) => field.nullable,
            Some(Target::Part(_, nullable)) => nullable,
            None => return Err(lost(path)),
        };
        if nullable {
            return Ok(None);
        }
        let text = schema_edit::set_nullable(&self.schema_text, path).ok_or_else(|| lost(path))?;
        self.columns = schema_from_json(&text).map_err(|_| lost(path))?;
        self.schema_text = text;
        Ok(Some(Change::RelaxNullability { path: path.to_string() }))
    }
}

/// The refusal of a feature that no step can enable.
pub(crate) fn cannot_enable(feature: &str) -> Refusal {
    Refusal::new(
        ErrorCode::UnsupportedFeature,
        format!("`enable_features` can't enable `{feature}`"),
        format!("it can enable {}", super::text::list(&features::ENABLED_BY_STEP.map(|(name, _)| name))),
    )
}

/// The refusal of a step that this build does not take.
pub(crate) fn unsupported(step: &Step) -> Refusal {
    Refusal::new(
        ErrorCode::UnsupportedStep,
        format!("step `{}` moves data, and this build has no DataFusion", step.name()),
        "let a build with the feature `datafusion` do it (the command has it by default), or stop before that \
         migration with `--target`",
    )
}

/// A column that should be there and is not.
fn lost(path: &ColumnPath) -> Refusal {
    Refusal::new(
        ErrorCode::Drifted,
        format!("the table has no column `{path}`"),
        "see `delta-migrate status` for what differs, and `delta-migrate repair --readd-columns`",
    )
}

#[cfg(test)]
mod tests;
