//! The shape of a table at one version of its chain.

use indexmap::IndexMap;

use super::Kind;
use crate::model::features;
use crate::model::migration::{Migration, Step};
use crate::model::path::ColumnPath;
use crate::model::types::{DataType, Field, field_mut, find, resolve_mut, siblings_mut};

/// Columns, partitioning, properties and description: everything that creation needs.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Shape {
    pub(crate) columns: Vec<Field>,
    pub(crate) partition_by: Vec<String>,
    pub(crate) properties: IndexMap<String, String>,
    pub(crate) description: Option<String>,
    /// The constraints by name.
    pub(crate) constraints: IndexMap<String, String>,
    /// What `enable_features` steps asked for, in their order.
    pub(crate) features: Vec<String>,
    /// What later writers put into a column for which they have no value, by the column's name.
    pub(crate) defaults: IndexMap<String, String>,
}

impl Shape {
    pub(crate) fn base(kind: &Kind) -> Self {
        Self {
            columns: kind.columns.clone(),
            partition_by: kind.partition_by.clone(),
            properties: kind.properties.clone(),
            description: kind.description.clone(),
            constraints: IndexMap::new(),
            features: Vec::new(),
            defaults: IndexMap::new(),
        }
    }

    /// Applies one migration whose steps were checked against this shape.
    pub(crate) fn apply(&mut self, migration: &Migration) {
        for step in &migration.steps {
            self.apply_step(step);
        }
    }

    /// Applies one step; parts that are not there are passed over, because the kind's check has
    /// already reported them.
    pub(crate) fn apply_step(&mut self, step: &Step) {
        match step {
            Step::AddColumns(added) => {
                for column in added {
                    let field = Field {
                        name: column.path.name().to_owned(),
                        data_type: column.data_type.clone(),
                        nullable: true,
                        comment: column.comment.clone(),
                    };
                    if let Some(siblings) = siblings_mut(&mut self.columns, column.path.parent())
                        && find(siblings, &field.name).is_none()
                    {
                        siblings.push(field);
                    }
                }
            }
            Step::RelaxNullability(paths) => paths.iter().for_each(|p| self.relax(p)),
            Step::Comments(comments) => {
                for (path, text) in comments {
                    if let Some(field) = field_mut(&mut self.columns, path) {
                        field.comment = Some(text.clone());
                    }
                }
            }
            Step::TableDescription(text) => self.description = Some(text.clone()),
            Step::SetProperties(set) => {
                self.properties.extend(set.iter().map(|(k, v)| (k.clone(), v.clone())));
            }
            Step::UnsetProperties(keys) => self.properties.retain(|k, _| !keys.contains(k)),
            Step::RenameColumns(renames) => {
                for (path, new) in renames {
                    if let Some(field) = field_mut(&mut self.columns, path) {
                        let old = std::mem::replace(&mut field.name, new.clone());
                        if path.parent().is_empty()
                            && let Some(default) = self.defaults.shift_remove(&old)
                        {
                            self.defaults.insert(new.clone(), default);
                        }
                    }
                }
            }
            Step::WidenTypes(changes) => {
                for (path, wide) in changes {
                    if let Some(target) = resolve_mut(&mut self.columns, path.segments()) {
                        *target = target.widened(wide);
                    }
                }
            }
            Step::RetypeColumns(changes) => {
                for (path, data_type) in changes {
                    if let Some(target) = resolve_mut(&mut self.columns, path.segments()) {
                        target.clone_from(data_type);
                    }
                }
            }
            Step::DropColumns(paths) => {
                for path in paths {
                    if let Some(siblings) = siblings_mut(&mut self.columns, path.parent()) {
                        let there = find(siblings, path.name()).map(|f| f.name.clone());
                        siblings.retain(|f| there.as_ref() != Some(&f.name));
                        if let Some(name) = there.filter(|_| path.parent().is_empty()) {
                            self.defaults.shift_remove(&name);
                        }
                    }
                }
            }
            Step::EnableFeatures(features) => {
                for feature in features {
                    if let Some(Some((key, value))) = features::enabling(feature) {
                        self.properties.insert(key.to_owned(), value.to_owned());
                    }
                    self.features.push(feature.clone());
                }
            }
            Step::SetDefaults(defaults) => {
                for (column, expression) in defaults {
                    if let Some(field) = find(&self.columns, column) {
                        self.defaults.insert(field.name.clone(), expression.clone());
                    }
                }
            }
            Step::DropConstraints(names) => {
                self.constraints.retain(|name, _| !names.iter().any(|n| n.eq_ignore_ascii_case(name)));
            }
            Step::AddConstraints(constraints) => {
                self.constraints.extend(constraints.iter().map(|(k, v)| (k.clone(), v.clone())));
                if !self.features.iter().any(|f| f == "checkConstraints") {
                    self.features.push("checkConstraints".to_owned());
                }
            }
            // A new table has no rows.
            Step::Update { .. } | Step::Run(_) => {}
        }
    }

    fn relax(&mut self, path: &ColumnPath) {
        if let Some(field) = field_mut(&mut self.columns, path) {
            field.nullable = true;
        } else if let Some(parent) = resolve_mut(&mut self.columns, path.parent()) {
            match (parent, path.name()) {
                (DataType::Array { contains_null, .. }, "element") => *contains_null = true,
                (DataType::Map { value_contains_null, .. }, "value") => *value_contains_null = true,
                _ => {}
            }
        }
    }
}
