//! Wider types (PROTOCOL.md, Type Widening).

use serde_json::json;

use super::references::{Doing, in_use};
use super::{Change, Evolution, lost};
use crate::error::ErrorCode;
use crate::model::path::ColumnPath;
use crate::model::refusal::Refusal;
use crate::model::schema_edit;
use crate::model::types::{DataType, Primitive, Target, leaves, resolve, same_name, schema_from_json};

const TYPE_CHANGES: &str = "delta.typeChanges";

impl Evolution {
    /// Gives the column at `path`, or parts inside it, a wider type; what is as wide already is left.
    pub(super) fn widen(&mut self, path: &ColumnPath, wanted: &DataType) -> Result<Vec<Change>, Refusal> {
        let mut changes = Vec::new();
        for (segments, to) in leaves(wanted, path.segments()) {
            let at = ColumnPath::of(segments);
            let found = resolve(&self.columns, at.segments()).map(Target::data_type);
            let from = match found {
                Some(DataType::Primitive(from)) => from.clone(),
                Some(other) => return Err(conflict(&at, &other.to_string(), to)),
                None => return Err(lost(&at)),
            };
            if to.widens_to(&from) {
                continue;
            }
            if !from.widens_to(to) {
                return Err(conflict(&at, &from.name(), to));
            }
            changes.push(self.widen_part(&at, &from, to)?);
        }
        if changes.is_empty() {
            changes.push(Change::LeaveColumn { path: path.to_string() });
        }
        Ok(changes)
    }

    fn widen_part(&mut self, at: &ColumnPath, from: &Primitive, to: &Primitive) -> Result<Change, Refusal> {
        self.check_widening_on(at)?;
        self.check_type(at, &DataType::Primitive(to.clone()))?;
        self.check_iceberg_widening(at, from, to)?;
        let is_partition =
            at.parent().is_empty() && self.partition_columns.iter().any(|p| same_name(p, at.name()));
        if is_partition && !keeps_its_text(from, to) {
            let why =
                format!("it is a partition column, whose values are not written as {} ones are", to.name());
            let hint = "add a column of the wider type, and fill it".to_owned();
            return Err(in_use(at, Doing::Widen, &why, hint));
        }
        self.check_references(at, Doing::Widen)?;
        let (field, inside) = self.nearest_field(at).ok_or_else(|| lost(at))?;
        let mut change = json!({ "fromType": from.name(), "toType": to.name() });
        if !inside.is_empty() {
            change["fieldPath"] = inside.join(".").into();
        }
        // The preview asked for the log version of the change; the feature itself does not.
        if !self.protocol.has("typeWidening") {
            change["tableVersion"] = self.log_version.into();
        }
        let name = serde_json::Value::from(to.name()).to_string();
        let text = schema_edit::set_type(&self.schema_text, at, &name).ok_or_else(|| lost(at))?;
        let text = schema_edit::append_field_metadata(&text, &field, TYPE_CHANGES, &change.to_string());
        let Some(text) = text else {
            return Err(Refusal::new(
                ErrorCode::UnsupportedFeature,
                format!("`{at}` can't be widened: `{TYPE_CHANGES}` of `{field}` is no list"),
                "repair the metadata of the column with the engine that wrote it",
            ));
        };
        self.columns = schema_from_json(&text).map_err(|_| lost(at))?;
        self.schema_text = text;
        Ok(Change::WidenType { path: at.to_string(), type_text: to.name(), was: from.name() })
    }

    /// The struct field that holds the part at `at`, and the way from there (§Type Change Metadata).
    fn nearest_field(&self, at: &ColumnPath) -> Option<(ColumnPath, Vec<String>)> {
        let segments = at.segments();
        (1..=segments.len()).rev().find_map(|n| {
            let (field, inside) = segments.split_at(n);
            let found = resolve(&self.columns, field)?;
            matches!(found, Target::Field(_)).then(|| (ColumnPath::of(field.to_vec()), inside.to_vec()))
        })
    }

    fn check_widening_on(&self, at: &ColumnPath) -> Result<(), Refusal> {
        let supported = self.protocol.has("typeWidening") || self.protocol.has("typeWidening-preview");
        let on = self
            .configuration()
            .get("delta.enableTypeWidening")
            .is_some_and(|v| v.eq_ignore_ascii_case("true"));
        if supported && on {
            return Ok(());
        }
        let what = match supported {
            true => "property `delta.enableTypeWidening` is not `true` on the table",
            false => "that needs the table feature `typeWidening`, which the table lacks",
        };
        Err(Refusal::new(
            ErrorCode::UnsupportedFeature,
            format!("`{at}` can't be widened: {what}"),
            "say `enable_features = [\"typeWidening\"]` in the migration: a protocol is never upgraded unasked, \
             because that can't be undone, and readers that do not know the feature are shut out",
        ))
    }

    /// §Writer Requirements for Type Widening: what Iceberg does not know, while its features are there.
    fn check_iceberg_widening(
        &self,
        at: &ColumnPath,
        from: &Primitive,
        to: &Primitive,
    ) -> Result<(), Refusal> {
        use Primitive::{Decimal, Double, Float, TimestampNtz};
        let shared =
            ["icebergCompatV1", "icebergCompatV2", "icebergCompatV3"].iter().any(|f| self.protocol.has(f));
        let unknown = match (from, to) {
            (Float, Double) => false,
            (_, Double | TimestampNtz) => true,
            (Decimal(_, scale), Decimal(_, new)) => scale != new,
            (_, Decimal(..)) => true,
            _ => false,
        };
        if shared && unknown {
            return Err(Refusal::new(
                ErrorCode::UnsupportedFeature,
                format!(
                    "`{at}` can't be widened from {} to {}: the table is compatible with Iceberg, which does not \
                     know that change",
                    from.name(),
                    to.name()
                ),
                "add a column of the wider type, and fill it",
            ));
        }
        Ok(())
    }
}

/// Whether a partition value is written alike in both types (§Partition Value Serialization).
fn keeps_its_text(from: &Primitive, to: &Primitive) -> bool {
    use Primitive::{Byte, Decimal, Double, Float, Integer, Long, Short};
    match (from, to) {
        (Byte | Short | Integer, Short | Integer | Long) | (Float, Double) => true,
        (Decimal(_, scale), Decimal(_, new)) => scale == new,
        _ => false,
    }
}

fn conflict(at: &ColumnPath, found: &str, wanted: &Primitive) -> Refusal {
    let wanted = wanted.name();
    Refusal::new(
        ErrorCode::TypeConflict,
        format!("`{at}` is {found} in the table, which can't be widened to {wanted}"),
        "add a column of that type and fill it with `update`, or rewrite the table with `retype_columns`",
    )
}
