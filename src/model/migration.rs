//! One migration: what it is called and the steps that it takes.

use std::any::Any;
use std::fmt;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Arc;

use indexmap::IndexMap;

use super::path::ColumnPath;
use super::types::DataType;

/// A function of the author's own that is a step; only its name is known here.
#[derive(Clone)]
pub(crate) struct Function {
    pub(crate) name: String,
    /// What the data steps' module calls.
    #[cfg_attr(not(feature = "datafusion"), allow(dead_code))]
    pub(crate) call: Arc<dyn Any + Send + Sync>,
}

// Nothing here looks into it, so that no panic can leave it half changed.
impl UnwindSafe for Function {}
impl RefUnwindSafe for Function {}

impl PartialEq for Function {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Function").field(&self.name).finish()
    }
}

/// One entry of a kind's chain; its position, counted from 1, is its version.
///
/// Made by [`MigrationBuilder`] or a kind file and checked as a part of its [`Kind`](crate::Kind).
#[derive(Debug, Clone, PartialEq)]
pub struct Migration {
    /// What it is for, in a few words.
    pub(crate) description: String,
    /// Where the decision is written down.
    pub(crate) source: Option<String>,
    /// Whether older releases must not write afterwards.
    pub(crate) raises_min_version: bool,
    /// Why the floor is not raised although `validate` would ask for it.
    pub(crate) min_version_waived: Option<String>,
    /// Whether data or names may be lost.
    pub(crate) destructive: bool,
    /// The steps, in the order in which one migration does them.
    pub(crate) steps: Vec<Step>,
}

impl Migration {
    /// What it is for.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// Where the decision is written down.
    pub fn source(&self) -> Option<&str> {
        self.source.as_deref()
    }

    /// Whether it raises the floor to its own version.
    pub fn raises_min_version(&self) -> bool {
        self.raises_min_version
    }

    /// Why the floor is not raised although the change asks for it.
    pub fn min_version_waived(&self) -> Option<&str> {
        self.min_version_waived.as_deref()
    }

    /// Whether it is declared to lose data or names.
    pub fn is_destructive(&self) -> bool {
        self.destructive
    }

    /// The steps before the first that moves data, and the others.
    pub(crate) fn halves(&self) -> (&[Step], &[Step]) {
        let at = self.steps.iter().position(Step::moves_data).unwrap_or(self.steps.len());
        self.steps.split_at(at)
    }

    /// A migration built in Rust.
    ///
    /// # Examples
    /// ```
    /// use delta_migrate::{Kind, Migration};
    ///
    /// let kind = Kind::builder("facts")
    ///     .column("app_id", "string")
    ///     .migration(Migration::builder("detail of a row").add_column("detail", "string"))
    ///     .build()?;
    /// assert_eq!(kind.newest().get(), 1);
    /// # Ok::<(), delta_migrate::Error>(())
    /// ```
    pub fn builder(description: impl Into<String>) -> MigrationBuilder {
        MigrationBuilder { description: description.into(), ..MigrationBuilder::default() }
    }
}

/// One step of a migration, with its arguments read and checked.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Step {
    DropConstraints(Vec<String>),
    EnableFeatures(Vec<String>),
    RenameColumns(Vec<(ColumnPath, String)>),
    WidenTypes(Vec<(ColumnPath, DataType)>),
    RelaxNullability(Vec<ColumnPath>),
    AddColumns(Vec<AddedColumn>),
    Comments(Vec<(ColumnPath, String)>),
    TableDescription(String),
    SetProperties(IndexMap<String, String>),
    UnsetProperties(Vec<String>),
    Update { set: IndexMap<String, String>, predicate: String },
    Run(Function),
    SetDefaults(IndexMap<String, String>),
    RetypeColumns(Vec<(ColumnPath, DataType)>),
    AddConstraints(IndexMap<String, String>),
    DropColumns(Vec<ColumnPath>),
}

/// A column of an `add_columns` step: nullable, with everything inside it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct AddedColumn {
    pub(crate) path: ColumnPath,
    pub(crate) data_type: DataType,
    pub(crate) comment: Option<String>,
}

impl Step {
    /// The key of the step in a kind file.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::DropConstraints(_) => "drop_constraints",
            Self::EnableFeatures(_) => "enable_features",
            Self::RenameColumns(_) => "rename_columns",
            Self::WidenTypes(_) => "widen_types",
            Self::RelaxNullability(_) => "relax_nullability",
            Self::AddColumns(_) => "add_columns",
            Self::Comments(_) => "comments",
            Self::TableDescription(_) => "table_description",
            Self::SetProperties(_) => "set_properties",
            Self::UnsetProperties(_) => "unset_properties",
            Self::Update { .. } => "update",
            Self::Run(_) => "run",
            Self::SetDefaults(_) => "set_defaults",
            Self::RetypeColumns(_) => "retype_columns",
            Self::AddConstraints(_) => "add_constraints",
            Self::DropColumns(_) => "drop_columns",
        }
    }

    /// Whether the step reads or rewrites files; the others change the log only.
    pub(crate) fn moves_data(&self) -> bool {
        matches!(self, Self::Update { .. } | Self::Run(_) | Self::RetypeColumns(_) | Self::AddConstraints(_))
    }

    /// Whether rows are written by commits of their own before the one that stamps.
    pub(crate) fn fills(&self) -> bool {
        matches!(self, Self::Update { .. } | Self::Run(_))
    }

    /// Whether files are rewritten.
    pub(crate) fn rewrites(&self) -> bool {
        matches!(self, Self::Update { .. } | Self::Run(_) | Self::RetypeColumns(_))
    }

    /// Whether this build can take the step.
    pub(crate) fn is_supported(&self) -> bool {
        !self.moves_data() || cfg!(feature = "datafusion")
    }

    /// Whether older shapes can't be told from newer ones by their columns alone.
    pub(crate) fn renames_or_drops(&self) -> bool {
        matches!(self, Self::RenameColumns(_) | Self::DropColumns(_))
    }
}

/// A migration as it is written down: texts that [`KindBuilder::build`](crate::KindBuilder::build)
/// reads and checks.
#[derive(Debug, Clone, Default)]
pub struct MigrationBuilder {
    pub(crate) description: String,
    pub(crate) source: Option<String>,
    pub(crate) raises_min_version: bool,
    pub(crate) min_version_waived: Option<String>,
    pub(crate) destructive: bool,
    pub(crate) drop_constraints: Vec<String>,
    pub(crate) enable_features: Vec<String>,
    pub(crate) rename_columns: Vec<(String, String)>,
    pub(crate) widen_types: Vec<(String, String)>,
    pub(crate) relax_nullability: Vec<String>,
    pub(crate) add_columns: Vec<ColumnDraft>,
    pub(crate) comments: Vec<(String, String)>,
    pub(crate) table_description: Option<String>,
    pub(crate) set_properties: Vec<(String, String)>,
    pub(crate) unset_properties: Vec<String>,
    pub(crate) update_set: Vec<(String, String)>,
    pub(crate) update_where: Option<String>,
    pub(crate) run: Vec<Function>,
    pub(crate) set_defaults: Vec<(String, String)>,
    pub(crate) retype_columns: Vec<(String, String)>,
    pub(crate) add_constraints: Vec<(String, String)>,
    pub(crate) drop_columns: Vec<String>,
}

/// A column as it is written down.
#[derive(Debug, Clone)]
pub(crate) struct ColumnDraft {
    /// A name in the base shape, a path in a migration.
    pub(crate) path: String,
    pub(crate) type_text: String,
    pub(crate) nullable: bool,
    pub(crate) comment: Option<String>,
}

impl ColumnDraft {
    pub(crate) fn new(path: impl Into<String>, type_text: impl Into<String>) -> Self {
        Self { path: path.into(), type_text: type_text.into(), nullable: true, comment: None }
    }
}

impl MigrationBuilder {
    /// Where the decision is written down, for example `ADR 0023`.
    pub fn source(mut self, source: impl Into<String>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Releases that do not know this migration must not write afterwards.
    pub fn raises_min_version(mut self) -> Self {
        self.raises_min_version = true;
        self
    }

    /// Adds a nullable column; `path` may lead into a struct (`payload.warnings`).
    pub fn add_column(mut self, path: impl Into<String>, type_text: impl Into<String>) -> Self {
        self.add_columns.push(ColumnDraft::new(path, type_text));
        self
    }

    /// Adds a nullable column with a comment.
    pub fn add_commented_column(
        mut self,
        path: impl Into<String>,
        type_text: impl Into<String>,
        comment: impl Into<String>,
    ) -> Self {
        let comment = Some(comment.into());
        self.add_columns.push(ColumnDraft { comment, ..ColumnDraft::new(path, type_text) });
        self
    }

    /// Sets a column's comment.
    pub fn comment(mut self, path: impl Into<String>, comment: impl Into<String>) -> Self {
        self.comments.push((path.into(), comment.into()));
        self
    }

    /// Sets the table's description.
    pub fn table_description(mut self, text: impl Into<String>) -> Self {
        self.table_description = Some(text.into());
        self
    }

    /// Upgrades the protocol for a table feature, and turns the feature on; this can't be undone.
    pub fn enable_feature(mut self, feature: impl Into<String>) -> Self {
        self.enable_features.push(feature.into());
        self
    }

    /// Lets a required column hold null from now on.
    pub fn relax_nullability(mut self, path: impl Into<String>) -> Self {
        self.relax_nullability.push(path.into());
        self
    }

    /// Sets a top-level column to an SQL expression in the rows for which `predicate` is true, and no
    /// longer is once they are set. Called again, it adds a column; the last predicate counts.
    ///
    /// A data step: see [`StartupPolicy::ApplyAll`](crate::StartupPolicy::ApplyAll).
    pub fn update(
        mut self,
        column: impl Into<String>,
        expression: impl Into<String>,
        predicate: impl Into<String>,
    ) -> Self {
        self.update_set.push((column.into(), expression.into()));
        self.update_where = Some(predicate.into());
        self
    }

    /// Gives a column another type and rewrites the table's files; asks for
    /// [`MigrationBuilder::destructive`]. Refused where a value does not cast. A data step.
    pub fn retype_column(mut self, path: impl Into<String>, type_text: impl Into<String>) -> Self {
        self.retype_columns.push((path.into(), type_text.into()));
        self
    }

    /// Adds a constraint, an SQL condition that is true of every row; refused where it is not. A data step.
    pub fn add_constraint(mut self, name: impl Into<String>, condition: impl Into<String>) -> Self {
        self.add_constraints.push((name.into(), condition.into()));
        self
    }

    /// Sets a table property; never one of the own namespace, never one that enables a feature.
    pub fn set_property(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.set_properties.push((key.into(), value.into()));
        self
    }

    /// Removes a table property.
    pub fn unset_property(mut self, key: impl Into<String>) -> Self {
        self.unset_properties.push(key.into());
        self
    }

    /// Drops a check constraint.
    pub fn drop_constraint(mut self, name: impl Into<String>) -> Self {
        self.drop_constraints.push(name.into());
        self
    }

    /// Data or names may be lost: what [`rename_column`](Self::rename_column) and
    /// [`drop_column`](Self::drop_column) ask for.
    pub fn destructive(mut self) -> Self {
        self.destructive = true;
        self
    }

    /// Gives a column another name, on tables with column mapping; `path` may lead into a struct.
    pub fn rename_column(mut self, path: impl Into<String>, new_name: impl Into<String>) -> Self {
        self.rename_columns.push((path.into(), new_name.into()));
        self
    }

    /// Gives a column a wider type, on tables with type widening.
    pub fn widen_type(mut self, path: impl Into<String>, type_text: impl Into<String>) -> Self {
        self.widen_types.push((path.into(), type_text.into()));
        self
    }

    /// Sets what later writers put into a top-level column for which they have no value: an SQL
    /// expression. Rows that are there keep what they have.
    pub fn set_default(mut self, column: impl Into<String>, expression: impl Into<String>) -> Self {
        self.set_defaults.push((column.into(), expression.into()));
        self
    }

    /// Drops a column, on tables with column mapping; `path` may lead into a struct.
    pub fn drop_column(mut self, path: impl Into<String>) -> Self {
        self.drop_columns.push(path.into());
        self
    }
}
