//! Properties and the constraints among them.

use indexmap::IndexMap;

use super::{Change, Evolution};
use crate::error::ErrorCode;
use crate::model::features;
use crate::model::refusal::Refusal;
use crate::model::types::same_name;

/// What the names of properties that hold check constraints begin with (§CHECK Constraints).
pub(crate) const CONSTRAINT: &str = "delta.constraints.";

impl Evolution {
    /// The properties as they will be.
    pub(super) fn configuration(&self) -> IndexMap<String, String> {
        let mut after = self.before.clone();
        for (key, value) in &self.properties {
            match value {
                Some(value) => drop(after.insert(key.clone(), value.clone())),
                None => drop(after.shift_remove(key)),
            }
        }
        after
    }

    pub(super) fn set_property(
        &mut self,
        key: &str,
        value: Option<&String>,
    ) -> Result<Option<Change>, Refusal> {
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

    /// Removes a check constraint; Spark compares their names regardless of case.
    pub(super) fn drop_constraint(&mut self, name: &str) -> Vec<Change> {
        let wanted = format!("{CONSTRAINT}{name}");
        let mut changes = Vec::new();
        for (key, was) in self.configuration() {
            if same_name(&key, &wanted) {
                self.properties.insert(key.clone(), None);
                changes.push(Change::DropConstraint { key, was });
            }
        }
        changes
    }
}
