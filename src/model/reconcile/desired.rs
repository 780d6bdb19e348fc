//! What a table is compared with.

use std::collections::BTreeSet;

use crate::error::Error;
use crate::model::kind::{Kind, Shape};
use crate::model::path::ColumnPath;
use crate::model::types::{Field, resolve};

/// What a table should have: the columns of an Arrow schema ([`Desired::schema`]), or the newest shape of
/// a kind ([`Desired::of_kind`]).
///
/// It is what [`Migrator::diff`](crate::Migrator::diff) and
/// [`Migrator::reconcile`](crate::Migrator::reconcile) take.
#[derive(Debug, Clone, PartialEq)]
pub struct Desired {
    pub(super) kind: Option<Kind>,
    pub(super) columns: Vec<Field>,
    pub(super) adding: BTreeSet<ColumnPath>,
}

impl Desired {
    /// The newest shape of a kind.
    ///
    /// # Examples
    /// ```
    /// use delta_migrate::{Desired, Kind};
    ///
    /// let facts = Kind::builder("facts").column("app_id", "string").build()?;
    /// let desired = Desired::of_kind(&facts);
    /// # Ok::<(), delta_migrate::Error>(())
    /// ```
    pub fn of_kind(kind: &Kind) -> Self {
        let columns = kind.shape_at(kind.newest()).columns;
        Self { kind: Some(kind.clone()), columns, adding: BTreeSet::new() }
    }

    pub(crate) fn of_columns(columns: Vec<Field>) -> Self {
        Self { kind: None, columns, adding: BTreeSet::new() }
    }

    /// Says that `path` is a new column, although the table has one of the same type and a similar name.
    /// Without that it is taken for the same column under another name, and is not added.
    ///
    /// # Errors
    /// [`ErrorCode::Usage`](crate::ErrorCode::Usage): there is no such column.
    pub fn adding(mut self, path: &str) -> Result<Self, Error> {
        let unknown = || Error::usage(format!("there is no column `{path}` to add"));
        let parsed: ColumnPath = path.parse().map_err(|_| unknown())?;
        if resolve(&self.columns, parsed.segments()).is_none() {
            return Err(unknown().with_hint("name a column of the schema, as it is written there"));
        }
        self.adding.insert(parsed);
        Ok(self)
    }

    pub(crate) fn kind(&self) -> Option<&Kind> {
        self.kind.as_ref()
    }

    pub(super) fn shape(&self) -> Option<Shape> {
        self.kind.as_ref().map(|kind| kind.shape_at(kind.newest()))
    }

    pub(super) fn columns(&self) -> &[Field] {
        &self.columns
    }

    pub(super) fn adds(&self, path: &ColumnPath) -> bool {
        self.adding.contains(path)
    }
}

impl From<&Kind> for Desired {
    fn from(kind: &Kind) -> Self {
        Self::of_kind(kind)
    }
}
