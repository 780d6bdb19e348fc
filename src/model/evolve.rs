//! Migration steps applied to what a table really is: its schema JSON and its properties.

mod data;
#[cfg(feature = "datafusion")]
pub(crate) use data::CONSTRAINT;

use indexmap::IndexMap;
use serde::Serialize;

use super::features::{self, Duties, Protocol};
use super::mapping::{MAX_COLUMN_ID, Mapping};
use super::migration::{AddedColumn, Step};
use super::path::ColumnPath;
use super::refusal::Refusal;
use super::schema_edit;
use super::state::TableState;
use super::types::{
    DataType, Field, Primitive, Target, field_json, field_mut, resolve, schema_from_json, siblings_mut,
};
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
        set: IndexMap<String, String>,
        /// The rows: those for which this is true.
        #[serde(rename = "where")]
        predicate: String,
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
    old_description: Option<String>,
    partition_columns: Vec<String>,
    rules: NameRules,
}

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
    fn check(&self, name: &str, top: bool) -> Result<(), Refusal> {
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
        if top && self.materialized.iter().any(|m| super::types::same_name(m, name)) {
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

impl Evolution {
    pub(crate) fn of(state: &TableState) -> Self {
        let duties = Duties::of(&state.protocol, &state.metadata.configuration);
        Self {
            schema_text: state.metadata.schema_text.clone(),
            description: None,
            properties: IndexMap::new(),
            columns: state.columns.clone(),
            before: state.metadata.configuration.clone(),
            old_description: state.metadata.description.clone(),
            partition_columns: state.metadata.partition_columns.clone(),
            rules: NameRules::of(&state.metadata.configuration),
            protocol: state.protocol.clone(),
            duties,
            mapping: duties.column_mapping.then(|| Mapping::of(state, duties.nested_ids)),
        }
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
            other => return Err(unsupported(other)),
        }
        Ok(())
    }

    /// The properties as they will be.
    fn configuration(&self) -> IndexMap<String, String> {
        let mut after = self.before.clone();
        for (key, value) in &self.properties {
            match value {
                Some(value) => drop(after.insert(key.clone(), value.clone())),
                None => drop(after.shift_remove(key)),
            }
        }
        after
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

    /// Adds a column, or leaves alone one that is there with a fitting type.
    pub(crate) fn add_column(&mut self, column: &AddedColumn) -> Result<Change, Refusal> {
        let AddedColumn { path, data_type, comment } = column;
        if let Some(found) = resolve(&self.columns, path.segments()) {
            if let Target::Field(Field { name, .. }) = found
                && name != path.name()
            {
                return Err(Refusal::new(
                    ErrorCode::InvalidName,
                    format!(
                        "`{path}` can't be added beside `{name}`: names must differ in more than letter case"
                    ),
                    "write the name as the table has it, or rename the table's column first",
                ));
            }
            return leave(path, data_type, found);
        }
        let is_struct = path.parent().is_empty()
            || matches!(
                resolve(&self.columns, path.parent()).map(Target::data_type),
                Some(DataType::Struct(_))
            );
        if !is_struct {
            let parent = ColumnPath::of(path.parent().to_vec());
            return Err(Refusal::new(
                ErrorCode::TypeConflict,
                format!("`{path}` can't be added: the table has no struct `{parent}`"),
                "bring the parent column back first, or check that this is the right kind for the table",
            ));
        }
        self.rules.check_field(path.name(), data_type, path.parent().is_empty())?;
        self.check_type(path, data_type)?;
        let mut field = Field::nullable(path.name(), data_type.clone());
        field.comment.clone_from(comment);
        let json = match &mut self.mapping {
            Some(mapping) => mapping.field_json(&field).to_string(),
            None => field_json(&field).to_string(),
        };
        self.note_ids(path)?;
        let text = schema_edit::append_field(&self.schema_text, path.parent(), &json);
        self.schema_text = text.ok_or_else(|| lost(path))?;
        siblings_mut(&mut self.columns, path.parent()).ok_or_else(|| lost(path))?.push(field);
        Ok(Change::AddColumn {
            path: path.to_string(),
            type_text: data_type.to_string(),
            comment: comment.clone(),
        })
    }

    /// The highest id that was given belongs to the same commit as the fields that got them.
    fn note_ids(&mut self, path: &ColumnPath) -> Result<(), Refusal> {
        let Some(mapping) = &self.mapping else { return Ok(()) };
        if let Some(trouble) = mapping.trouble() {
            return Err(Refusal::new(
                ErrorCode::UnsupportedFeature,
                format!("`{path}` can't be added: {trouble}"),
                "column ids are 32-bit numbers that are never used twice; repair the table's column mapping, or \
                 recreate the table",
            ));
        }
        self.properties.insert(MAX_COLUMN_ID.to_owned(), Some(mapping.highest().to_string()));
        Ok(())
    }

    /// A type that needs a table feature is refused where the table lacks it: Delta readers could
    /// not open the table afterwards.
    fn check_type(&self, path: &ColumnPath, data_type: &DataType) -> Result<(), Refusal> {
        self.check_iceberg(path, data_type)?;
        for primitive in data_type.primitives() {
            let (feature, there) = match primitive {
                Primitive::TimestampNtz => ("timestampNtz", self.protocol.has("timestampNtz")),
                Primitive::Variant => (
                    "variantType",
                    self.protocol.has("variantType") || self.protocol.has("variantType-preview"),
                ),
                _ => continue,
            };
            if !there {
                return Err(Refusal::new(
                    ErrorCode::UnsupportedFeature,
                    format!(
                        "`{path}` of type {data_type} needs the table feature `{feature}`, which the table lacks"
                    ),
                    format!(
                        "say `enable_features = [\"{feature}\"]` in the migration: a protocol is never upgraded \
                         unasked, because that can't be undone"
                    ),
                ));
            }
        }
        Ok(())
    }

    /// Tables that Iceberg readers share keep to what Iceberg can express.
    fn check_iceberg(&self, path: &ColumnPath, data_type: &DataType) -> Result<(), Refusal> {
        let refuse = |what: &str| {
            Err(Refusal::new(
                ErrorCode::UnsupportedFeature,
                format!("`{path}` of type {data_type} can't be added: {what}"),
                "use another type, or turn the Iceberg compatibility of the table off first",
            ))
        };
        if self.duties.no_collections && data_type.has_collection() {
            return refuse("the table is compatible with Iceberg V1, which rules out new arrays and maps");
        }
        let foreign =
            |p: &&Primitive| matches!(p, Primitive::Variant | Primitive::Void | Primitive::Other(_));
        if self.duties.iceberg_types && data_type.primitives().iter().any(foreign) {
            return refuse("the table is compatible with Iceberg, which does not know that type");
        }
        Ok(())
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

    fn set_property(&mut self, key: &str, value: Option<&String>) -> Result<Option<Change>, Refusal> {
        if let Some(feature) = features::enabled_by(key) {
            return Err(Refusal::new(
                ErrorCode::UnsupportedStep,
                format!("`{key}` turns the table feature `{feature}` on or off"),
                "take it out of the migration",
            ));
        }
        let was = match self.properties.get(key) {
            Some(pending) => pending.clone(),
            None => self.before.get(key).cloned(),
        };
        if was.as_ref() == value {
            return Ok(None);
        }
        self.properties.insert(key.to_owned(), value.cloned());
        let key = key.to_owned();
        Ok(match (value, was) {
            (Some(value), was) => Some(Change::SetProperty { key, value: value.clone(), was }),
            (None, Some(was)) => Some(Change::UnsetProperty { key, was }),
            (None, None) => None,
        })
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
        format!("step `{}` is not handled by this version of delta-migrate", step.name()),
        "upgrade delta-migrate, or stop before that migration with `--target`",
    )
}

/// A column that must be left as it is, or that stands in the way.
fn leave(path: &ColumnPath, wanted: &DataType, found: Target<'_>) -> Result<Change, Refusal> {
    let found_type = found.data_type();
    let required = matches!(found, Target::Field(f) if !f.nullable);
    if wanted.fits(found_type) && !required {
        return Ok(Change::LeaveColumn { path: path.to_string() });
    }
    let how = if required && wanted.fits(found_type) {
        format!("`{path}` is in the table already and is required, but the migration adds it nullable")
    } else {
        format!("`{path}` is in the table already as {found_type}, but the migration adds it as {wanted}")
    };
    Err(Refusal::new(
        ErrorCode::TypeConflict,
        how,
        "rename the column in the migration, or change the table's column first; nothing was written",
    ))
}

fn lost(path: &ColumnPath) -> Refusal {
    Refusal::new(
        ErrorCode::Drifted,
        format!("the table has no column `{path}`"),
        "see `delta-migrate status` for what differs, and `delta-migrate repair --readd-columns`",
    )
}
