//! Columns that are added, or are there already.

use super::{Change, Evolution, lost};
use crate::error::ErrorCode;
use crate::model::mapping::MAX_COLUMN_ID;
use crate::model::migration::AddedColumn;
use crate::model::path::ColumnPath;
use crate::model::refusal::Refusal;
use crate::model::schema_edit;
use crate::model::types::{DataType, Field, Primitive, Target, field_json, resolve, siblings_mut};

impl Evolution {
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
    pub(super) fn note_ids(&mut self, path: &ColumnPath) -> Result<(), Refusal> {
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
    pub(super) fn check_type(&self, path: &ColumnPath, data_type: &DataType) -> Result<(), Refusal> {
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
