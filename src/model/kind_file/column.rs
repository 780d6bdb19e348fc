//! Columns: `"type"` or `{ type = "…", nullable = false, comment = "…" }`.

use toml::de::{DeTable, DeValue};

use super::{KEYS, QUOTE_PATH, Reader};
use crate::model::kind::{Place, nearest};
use crate::model::migration::ColumnDraft;
use crate::model::toml_walk::{Leaf, Value};

const COLUMN_KEYS: &[&str] = &["type", "nullable", "comment"];

impl<'t> Reader<'t> {
    /// The base shape's columns; keys are names.
    pub(super) fn base_columns(&mut self, place: &Place, value: &Value<'t>) -> Vec<ColumnDraft> {
        self.columns(
            place,
            value,
            "a nested column belongs into its parent's type, as in `struct<a: long>`, \
             a name that holds a dot into quotes",
            KEYS,
        )
    }

    /// The columns of an `add_columns` step; keys are paths.
    pub(super) fn added_columns(
        &mut self,
        place: &Place,
        value: &Value<'t>,
        above: &[&str],
    ) -> Vec<ColumnDraft> {
        self.columns(place, value, QUOTE_PATH, above)
    }

    fn columns(
        &mut self,
        place: &Place,
        value: &Value<'t>,
        wanted: &str,
        above: &[&str],
    ) -> Vec<ColumnDraft> {
        let Some(table) = self.walk.table(value, "wanted a table of columns, as in `app_id = \"string\"`")
        else {
            self.walk.lose();
            return Vec::new();
        };
        let mut drafts = Vec::new();
        for leaf in self.walk.leaves(table, wanted, &describes_column) {
            if !self.is_misplaced(place, &leaf, above) {
                drafts.push(self.column(place, leaf));
            }
        }
        drafts
    }

    fn column(&mut self, place: &Place, leaf: Leaf<'_, 't>) -> ColumnDraft {
        let place = place.child(&leaf.name);
        self.places.put(&place, leaf.at);
        let type_place = place.child("type");
        // Without a type that can be read the column still counts as there, with a type that is not
        // known; the complaint about the empty text is dropped, because its place is spoiled.
        let mut draft = ColumnDraft::new(leaf.name, "");
        match leaf.value.get_ref() {
            DeValue::String(_) => {
                draft.type_text = self.text(&type_place, leaf.value).unwrap_or_default();
            }
            DeValue::Table(table) => self.details(&place, leaf.value, table, &mut draft),
            _ => {
                self.places.spoil(&type_place);
                self.walk.wrong::<()>(
                    leaf.value,
                    "wanted a type, as in `\"long\"` or `{ type = \"long\", comment = \"…\" }`",
                );
            }
        }
        draft
    }

    fn details(&mut self, place: &Place, value: &Value<'t>, table: &DeTable<'t>, draft: &mut ColumnDraft) {
        let type_place = place.child("type");
        let mut typed = false;
        for entry in self.walk.entries(table, COLUMN_KEYS) {
            match entry.key {
                "type" => {
                    typed = true;
                    draft.type_text = self.text(&type_place, entry.value).unwrap_or_default();
                }
                "nullable" => {
                    self.places.put_value(&place.child("nullable"), &self.walk, entry.value);
                    draft.nullable = self.walk.flag(entry.value).unwrap_or(true);
                }
                _ => draft.comment = self.text(&place.child("comment"), entry.value),
            }
        }
        if !typed {
            self.places.spoil(&type_place);
            let found = format!("the column `{}` has no type", draft.path);
            self.walk.mistake(value.span().start, found, "wanted `type = \"…\"`");
        }
    }

    /// Reports a key of the table above that TOML put into the table at `place`, because it stands
    /// below the header; told by a value that fits the key and nothing here.
    pub(super) fn is_misplaced(&mut self, place: &Place, leaf: &Leaf<'_, 't>, above: &[&str]) -> bool {
        let fits_here = matches!(leaf.value.get_ref(), DeValue::String(_) | DeValue::Table(_));
        let misplaced = !fits_here && above.contains(&leaf.name.as_str());
        if misplaced {
            let parts = place.0.iter().filter(|part| part.parse::<usize>().is_err());
            let header = parts.map(String::as_str).collect::<Vec<_>>().join(".");
            let found = format!("`{}` stands below [{header}] and so belongs to it", leaf.name);
            self.walk.mistake(leaf.at, found, format!("move it above [{header}]"));
            self.places.spoil(place);
        }
        misplaced
    }
}

/// Whether a sub-table describes a column, rather than being the start of a path without quotes.
fn describes_column(table: &DeTable<'_>, dotted: bool) -> bool {
    let mut keys = table.keys().map(|key| key.get_ref().as_ref());
    if dotted {
        keys.any(|key| key == "type")
    } else {
        keys.any(|key| COLUMN_KEYS.contains(&key) || nearest(key, COLUMN_KEYS).is_some())
    }
}
