//! Kinds: a table type's base shape and its chain of migrations.

mod build;
mod origin;
mod shape;

use indexmap::IndexMap;

pub(crate) use build::{Place, Problem, WAYS_OUT, build, is_kind_name, nearest};
pub(crate) use origin::Origin;
pub(crate) use shape::Shape;

use super::migration::{ColumnDraft, Migration, MigrationBuilder, Step};
use super::path::ColumnPath;
use super::types::Field;
use super::version::{MinVersion, SchemaVersion};
use crate::error::Error;

/// How a table without a stamp is taken over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Adopt {
    /// It is at version 0 if the base shape's columns are there; the chain runs from there.
    #[default]
    FromZero,
    /// It is at the lowest of the highest versions whose columns are all there.
    Detect,
    /// It is refused until somebody runs `baseline`.
    Refuse,
}

impl Adopt {
    /// The word in a kind file.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::FromZero => "from_zero",
            Self::Detect => "detect",
            Self::Refuse => "refuse",
        }
    }

    /// What the word in a kind file means.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        match text {
            "from_zero" => Some(Self::FromZero),
            "detect" => Some(Self::Detect),
            "refuse" => Some(Self::Refuse),
            _ => None,
        }
    }
}

/// A table type: base shape and append-only chain of migrations.
///
/// # Examples
/// ```
/// use delta_migrate::Kind;
///
/// let facts = Kind::from_toml(r#"
/// kind = "facts"
/// [columns]
/// app_id = "string"
/// [[migrations]]
/// description = "detail of an event row"
/// [migrations.add_columns]
/// detail = { type = "string", comment = "JSON" }
/// "#)?;
/// assert_eq!(facts.newest().get(), 1);
/// # Ok::<(), delta_migrate::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Kind {
    name: String,
    description: Option<String>,
    partition_by: Vec<String>,
    identified_by: Vec<ColumnPath>,
    columns: Vec<Field>,
    properties: IndexMap<String, String>,
    adopt: Adopt,
    migrations: Vec<Migration>,
    /// Where it was read from.
    origin: Origin,
}

/// Two kinds are the same if they do the same, wherever they were read from.
impl PartialEq for Kind {
    fn eq(&self, other: &Self) -> bool {
        let Self {
            name,
            description,
            partition_by,
            identified_by,
            columns,
            properties,
            adopt,
            migrations,
            origin: _,
        } = self;
        *name == other.name
            && *description == other.description
            && *partition_by == other.partition_by
            && *identified_by == other.identified_by
            && *columns == other.columns
            && *properties == other.properties
            && *adopt == other.adopt
            && *migrations == other.migrations
    }
}

impl Kind {
    /// Reads a kind file's text.
    ///
    /// # Errors
    /// [`ErrorCode::Usage`](crate::ErrorCode::Usage): the message holds every mistake of the text,
    /// each with line, column, what was found and what would be right.
    pub fn from_toml(text: &str) -> Result<Self, Error> {
        super::kind_file::read(text, "kind file")
    }

    /// Reads a kind file's text; `file` is what error messages call it.
    ///
    /// # Errors
    /// As [`Kind::from_toml`].
    pub fn from_toml_file(text: &str, file: &str) -> Result<Self, Error> {
        super::kind_file::read(text, file)
    }

    /// A kind built in Rust; see [`Migration::builder`] for an example.
    pub fn builder(name: impl Into<String>) -> KindBuilder {
        KindBuilder { name: name.into(), ..KindBuilder::default() }
    }

    /// The kind's name, as it is stamped on tables.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What tables of this kind hold; the description of a table that is created.
    pub fn description(&self) -> Option<&str> {
        self.description.as_deref()
    }

    /// The chain, oldest first.
    pub fn migrations(&self) -> &[Migration] {
        &self.migrations
    }

    /// The newest version: how many migrations the chain has.
    pub fn newest(&self) -> SchemaVersion {
        SchemaVersion::new(u32::try_from(self.migrations.len()).unwrap_or(u32::MAX))
    }

    /// How a table without a stamp is taken over.
    pub fn adopt(&self) -> Adopt {
        self.adopt
    }

    /// The same kind with another way to take over tables without a stamp.
    pub fn with_adopt(mut self, adopt: Adopt) -> Self {
        self.adopt = adopt;
        self
    }

    /// The same kind as an older release knew it: the chain cut after `version`.
    pub fn cut_at(mut self, version: SchemaVersion) -> Self {
        self.migrations.truncate(version.index());
        self
    }

    /// Where it was read from.
    pub(crate) fn origin(&self) -> &Origin {
        &self.origin
    }

    /// The same kind, with the places in the file that it was read from.
    pub(crate) fn with_origin(mut self, origin: Origin) -> Self {
        self.origin = origin;
        self
    }

    /// Every property that the kind sets or unsets.
    pub(crate) fn property_keys(&self) -> impl Iterator<Item = &String> {
        let of_steps = self.migrations.iter().flat_map(|m| &m.steps).flat_map(|step| match step {
            Step::SetProperties(set) => set.keys().collect(),
            Step::UnsetProperties(keys) => keys.iter().collect(),
            _ => Vec::new(),
        });
        self.properties.keys().chain(of_steps)
    }

    pub(crate) fn partition_by(&self) -> &[String] {
        &self.partition_by
    }

    pub(crate) fn identified_by(&self) -> &[ColumnPath] {
        &self.identified_by
    }

    pub(crate) fn columns(&self) -> &[Field] {
        &self.columns
    }

    pub(crate) fn properties(&self) -> &IndexMap<String, String> {
        &self.properties
    }

    /// The shape at a version: the base shape with migrations `1..=version` applied.
    pub(crate) fn shape_at(&self, version: SchemaVersion) -> Shape {
        let mut shape = Shape::base(self);
        for migration in self.migrations.iter().take(version.index()) {
            shape.apply(migration);
        }
        shape
    }

    /// The migrations `from + 1 ..= to`, each with its version.
    pub(crate) fn between(
        &self,
        from: SchemaVersion,
        to: SchemaVersion,
    ) -> impl Iterator<Item = (SchemaVersion, &Migration)> {
        self.numbered().filter(move |(version, _)| *version > from && *version <= to)
    }

    /// Every migration with its version.
    pub(crate) fn numbered(&self) -> impl Iterator<Item = (SchemaVersion, &Migration)> {
        (1..).map(SchemaVersion::new).zip(&self.migrations)
    }

    /// The floor that the chain asks for at `version`: the highest raising migration up to it.
    pub(crate) fn floor_at(&self, version: SchemaVersion) -> Option<MinVersion> {
        self.numbered()
            .take(version.index())
            .filter(|(_, m)| m.raises_min_version)
            .last()
            .map(|(v, _)| MinVersion::new(v.get()))
    }
}

/// A kind as it is written down: texts that [`KindBuilder::build`] reads and checks.
#[derive(Debug, Clone, Default)]
pub struct KindBuilder {
    pub(crate) name: String,
    pub(crate) description: Option<String>,
    pub(crate) partition_by: Vec<String>,
    pub(crate) identified_by: Vec<String>,
    pub(crate) columns: Vec<ColumnDraft>,
    pub(crate) properties: Vec<(String, String)>,
    pub(crate) adopt: Adopt,
    pub(crate) migrations: Vec<MigrationBuilder>,
    /// What of a schema can be no column.
    pub(crate) mistakes: Vec<String>,
}

impl KindBuilder {
    /// What tables of this kind hold.
    pub fn description(mut self, text: impl Into<String>) -> Self {
        self.description = Some(text.into());
        self
    }

    /// Adds a nullable column to the base shape.
    pub fn column(mut self, name: impl Into<String>, type_text: impl Into<String>) -> Self {
        self.columns.push(ColumnDraft::new(name, type_text));
        self
    }

    /// Adds a column to the base shape that never holds null.
    pub fn required_column(mut self, name: impl Into<String>, type_text: impl Into<String>) -> Self {
        self.columns.push(ColumnDraft { nullable: false, ..ColumnDraft::new(name, type_text) });
        self
    }

    /// The partition columns, outermost first; they must stand in the base shape.
    pub fn partition_by<T: Into<String>>(mut self, columns: impl IntoIterator<Item = T>) -> Self {
        self.partition_by = columns.into_iter().map(Into::into).collect();
        self
    }

    /// Columns that only a table of this kind has: the gate of automatic adoption.
    pub fn identified_by<T: Into<String>>(mut self, columns: impl IntoIterator<Item = T>) -> Self {
        self.identified_by = columns.into_iter().map(Into::into).collect();
        self
    }

    /// A table property at birth.
    pub fn property(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.properties.push((key.into(), value.into()));
        self
    }

    /// How a table without a stamp is taken over; [`Adopt::FromZero`] by default.
    pub fn adopt(mut self, adopt: Adopt) -> Self {
        self.adopt = adopt;
        self
    }

    /// Appends a migration to the chain.
    pub fn migration(mut self, migration: MigrationBuilder) -> Self {
        self.migrations.push(migration);
        self
    }

    /// Reads every text and checks the whole kind.
    ///
    /// # Errors
    /// [`ErrorCode::Usage`](crate::ErrorCode::Usage): the message lists every mistake, not the first.
    pub fn build(self) -> Result<Kind, Error> {
        let name = self.name.clone();
        build::build(self).map_err(|problems| {
            let lines: Vec<String> =
                problems.iter().map(|p| format!("  {}: {}", p.place, p.text())).collect();
            Error::usage(format!("kind `{name}` can't be used:\n{}", lines.join("\n")))
        })
    }
}

#[cfg(test)]
mod tests;
