//! Steps on columns that are there: other names, defaults, an end.

use super::Reader;
use crate::model::kind::build::Place;
use crate::model::migration::Step;
use crate::model::path::ColumnPath;
use crate::model::types::{DataType, Field, Primitive, Target, resolve, same_name};

impl Reader<'_> {
    pub(super) fn constraints_dropped(&mut self, names: &[String]) {
        let place = self.place.child("drop_constraints");
        for (i, name) in names.iter().enumerate() {
            if name.is_empty() {
                self.check.add(&place.child(i), "a constraint without a name", "wanted its name");
            } else if names.iter().take(i).any(|other| same_name(other, name)) {
                self.check.add(
                    &place.child(i),
                    format!("`{name}` is named twice"),
                    "name each constraint once",
                );
            }
        }
        self.push_some(names.to_vec(), Step::DropConstraints);
    }

    pub(super) fn renames(&mut self, pairs: &[(String, String)]) {
        let mut renames = Vec::new();
        for (text, new) in pairs {
            let place = self.place.child("rename_columns").child(text);
            let Some(path) = self.existing(&place, text) else { continue };
            if !self.may_go(&place, &path) {
                continue;
            }
            let taken = self
                .siblings(&path)
                .iter()
                .any(|f| same_name(&f.name, new) && !same_name(&f.name, path.name()));
            if new.is_empty() || taken {
                self.check.add(
                    &place,
                    format!("the new name `{new}` is empty or taken"),
                    "wanted a free name",
                );
            } else if new == path.name() {
                self.check.add(&place, format!("`{path}` has that name already"), "leave it out");
            } else {
                // Taken into the shape at once, so that the next of this step meets the new name.
                self.shape.apply_step(&Step::RenameColumns(vec![(path.clone(), new.clone())]));
                renames.push((path, new.clone()));
            }
        }
        if !renames.is_empty() {
            self.steps.push(Step::RenameColumns(renames));
        }
    }

    pub(super) fn dropped(&mut self, texts: &[String]) {
        let mut paths = Vec::new();
        for (i, text) in texts.iter().enumerate() {
            let place = self.place.child("drop_columns").child(i);
            let Some(path) = self.existing(&place, text) else { continue };
            if !self.may_go(&place, &path) {
                continue;
            }
            let partition_by = &self.shape.partition_by;
            let is_data = |f: &&Field| !path.parent().is_empty() || !partition_by.contains(&f.name);
            // An empty shape is one: the tables may have columns that the kind does not speak of.
            let counts = !path.parent().is_empty() || !partition_by.is_empty();
            if counts && self.siblings(&path).iter().filter(is_data).count() == 1 {
                let wanted = match path.parent().is_empty() {
                    true => "a table needs a column that is no partition column",
                    false => "drop the struct instead",
                };
                self.check.add(&place, format!("`{path}` is the last column there"), wanted);
                continue;
            }
            self.shape.apply_step(&Step::DropColumns(vec![path.clone()]));
            paths.push(path);
        }
        if !paths.is_empty() {
            self.steps.push(Step::DropColumns(paths));
        }
    }

    pub(super) fn defaults(&mut self, pairs: &[(String, String)]) {
        let place = self.place.child("set_defaults");
        let defaults = self.by_column_at(&place, pairs);
        for (column, expression) in &defaults {
            let place = place.child(column);
            let found = resolve(&self.shape.columns, std::slice::from_ref(column)).map(Target::data_type);
            if expression.trim().is_empty() {
                self.check.add(&place, "the expression is empty", "wanted SQL, such as `0` or `'none'`");
            } else if found == Some(&DataType::Primitive(Primitive::Variant))
                && !expression.eq_ignore_ascii_case("null")
            {
                self.check.add(
                    &place,
                    format!("`{column}` is a variant"),
                    "a variant's default is always null",
                );
            }
        }
        if !defaults.is_empty() {
            self.push(Step::SetDefaults(defaults));
        }
    }

    /// The fields among which a path's last segment stands.
    fn siblings(&self, path: &ColumnPath) -> &[Field] {
        match resolve(&self.shape.columns, path.parent()).map(Target::data_type) {
            Some(DataType::Struct(fields)) => fields,
            _ => &self.shape.columns,
        }
    }

    /// Whether the name of a column may vanish: of a field, which neither partitions the table nor
    /// tells tables of the kind.
    fn may_go(&mut self, place: &Place, path: &ColumnPath) -> bool {
        if !matches!(resolve(&self.shape.columns, path.segments()), Some(Target::Field(_))) {
            self.check.add(
                place,
                format!("`{path}` is a part of an array or map"),
                "only columns and struct fields have a name",
            );
            return false;
        }
        if path.parent().is_empty() && self.shape.partition_by.iter().any(|p| same_name(p, path.name())) {
            self.check.add(
                place,
                format!("`{path}` is a partition column"),
                "it can't be renamed or dropped: partitioning can't be changed",
            );
            return false;
        }
        let leads_there = |by: &&ColumnPath| {
            let (by, path) = (by.segments(), path.segments());
            by.len() >= path.len() && by.iter().zip(path).all(|(a, b)| same_name(a, b))
        };
        if let Some(by) = self.identified_by.iter().find(leads_there) {
            self.check.add(
                place,
                format!("`{by}` is in `identified_by`"),
                "tables that have lost their stamp would not be known any more: identify them by other columns",
            );
            return false;
        }
        true
    }
}
