//! The entries of the chain.

use super::{QUOTE_NAME, QUOTE_PATH, Reader};
use crate::model::kind::Place;
use crate::model::migration::MigrationBuilder;
use crate::model::toml_walk::Value;

/// The keys of a `[[migrations]]` table.
pub(super) const KEYS: &[&str] = &[
    "description",
    "source",
    "raises_min_version",
    "min_version_waived",
    "destructive",
    "drop_constraints",
    "enable_features",
    "rename_columns",
    "widen_types",
    "relax_nullability",
    "add_columns",
    "comments",
    "table_description",
    "set_properties",
    "unset_properties",
    "update",
    "set_defaults",
    "retype_columns",
    "add_constraints",
    "drop_columns",
];

impl<'t> Reader<'t> {
    pub(super) fn migration(&mut self, place: &Place, value: &Value<'t>) -> MigrationBuilder {
        let mut draft = MigrationBuilder::default();
        self.places.put(place, value.span().start);
        let before = self.walk.slips();
        if let Some(table) = self.walk.table(value, "wanted a table") {
            for entry in self.walk.entries(table, KEYS) {
                let place = place.child(entry.key);
                self.places.put(&place, entry.at);
                self.key(&place, entry.key, entry.value, &mut draft);
            }
        } else {
            self.places.spoil(&place.child("description"));
            self.walk.lose();
        }
        // A migration that does nothing was meant to do what could not be read.
        if self.walk.slips() > before {
            self.places.spoil(place);
        }
        if draft.description.is_empty() && self.walk.is_broken() {
            self.places.spoil(&place.child("description"));
        }
        draft
    }

    fn key(&mut self, place: &Place, key: &str, value: &Value<'t>, draft: &mut MigrationBuilder) {
        match key {
            "description" => draft.description = self.text(place, value).unwrap_or_default(),
            "source" => draft.source = self.text(place, value),
            "raises_min_version" => draft.raises_min_version = self.walk.flag(value).unwrap_or(false),
            "min_version_waived" => draft.min_version_waived = self.text(place, value),
            // Whatever it says instead, it is not the missing word of a step that asks for it.
            "destructive" => draft.destructive = self.walk.flag(value).unwrap_or(true),
            "drop_constraints" => draft.drop_constraints = self.list(place, value),
            "enable_features" => draft.enable_features = self.list(place, value),
            "rename_columns" => draft.rename_columns = self.moving(|r| r.paths(place, value)),
            "widen_types" => draft.widen_types = self.paths(place, value),
            "relax_nullability" => draft.relax_nullability = self.list(place, value),
            "add_columns" => draft.add_columns = self.added_columns(place, value, KEYS),
            "comments" => draft.comments = self.paths(place, value),
            "table_description" => draft.table_description = self.text(place, value),
            "set_properties" => draft.set_properties = self.names(place, value),
            "unset_properties" => draft.unset_properties = self.list(place, value),
            "update" => self.update(place, value, draft),
            "set_defaults" => draft.set_defaults = self.paths(place, value),
            "retype_columns" => draft.retype_columns = self.paths(place, value),
            "add_constraints" => draft.add_constraints = self.names(place, value),
            _ => draft.drop_columns = self.moving(|r| r.list(place, value)),
        }
    }

    fn paths(&mut self, place: &Place, value: &Value<'t>) -> Vec<(String, String)> {
        self.texts(place, value, QUOTE_PATH, KEYS)
    }

    fn names(&mut self, place: &Place, value: &Value<'t>) -> Vec<(String, String)> {
        self.texts(place, value, QUOTE_NAME, KEYS)
    }

    /// Reads a step after which columns have other names or are gone: if a part of it can't be read,
    /// the shape that later migrations meet is not known.
    fn moving<T>(&mut self, read: impl FnOnce(&mut Self) -> T) -> T {
        let before = self.walk.slips();
        let steps = read(self);
        if self.walk.slips() > before {
            self.walk.lose();
        }
        steps
    }

    fn update(&mut self, place: &Place, value: &Value<'t>, draft: &mut MigrationBuilder) {
        let before = self.walk.slips();
        let wanted = "wanted `{ set = { column = \"expression\" }, where = \"condition\" }`";
        if let Some(table) = self.walk.table(value, wanted) {
            for entry in self.walk.entries(table, &["set", "where"]) {
                let place = place.child(entry.key);
                self.places.put(&place, entry.at);
                match entry.key {
                    "set" => draft.update_set = self.paths(&place, entry.value),
                    _ => draft.update_where = self.text(&place, entry.value),
                }
            }
        }
        if self.walk.slips() > before {
            self.places.spoil(place);
        }
    }
}
