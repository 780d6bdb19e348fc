//! Reads one migration's steps and checks each against the shape it meets.

mod columns;

use indexmap::IndexMap;

use super::{Check, Place, UNKNOWN, taken, unique_map};
use crate::model::features;
use crate::model::kind::Shape;
use crate::model::migration::{AddedColumn, ColumnDraft, Function, Migration, MigrationBuilder, Step};
use crate::model::path::ColumnPath;
use crate::model::types::{DataType, Target, resolve};

/// The ways out of a required column.
pub(crate) const WAYS_OUT: &str = "make it nullable; or add it nullable and fill it with an `update` step; \
                                   or write the migration that this change needs";

/// Reads `draft` and carries `shape` along, step by step.
pub(super) fn read(
    check: &mut Check,
    place: &Place,
    draft: MigrationBuilder,
    shape: &mut Shape,
    identified_by: &[ColumnPath],
) -> Migration {
    let before = (check.problems.len(), check.skipped);
    check_head(check, place, &draft);
    let mut reader = Reader { check, place, shape, identified_by, steps: Vec::new() };
    reader.read(&draft);
    let steps = reader.steps;
    let migration = Migration {
        description: draft.description,
        source: draft.source,
        raises_min_version: draft.raises_min_version,
        min_version_waived: draft.min_version_waived,
        destructive: draft.destructive,
        steps,
    };
    let empty = migration.steps.is_empty() && !migration.raises_min_version;
    if empty && (check.problems.len(), check.skipped) == before {
        check.add(
            place,
            "the migration does nothing",
            "wanted a step such as [migrations.add_columns], or `raises_min_version = true`",
        );
    }
    migration
}

fn check_head(check: &mut Check, place: &Place, draft: &MigrationBuilder) {
    if draft.description.trim().is_empty() {
        check.add(
            &place.child("description"),
            "the migration has no description",
            "wanted `description = \"what it is for\"`",
        );
    }
    match &draft.min_version_waived {
        Some(why) if why.trim().is_empty() => {
            check.add(
                &place.child("min_version_waived"),
                "the reason is empty",
                "say why the floor need not rise",
            );
        }
        Some(_) if draft.raises_min_version => check.add(
            &place.child("min_version_waived"),
            "the floor is both raised and waived",
            "keep one of `raises_min_version` and `min_version_waived`",
        ),
        _ => {}
    }
    let loses = [
        ("rename_columns", !draft.rename_columns.is_empty()),
        ("retype_columns", !draft.retype_columns.is_empty()),
        ("drop_columns", !draft.drop_columns.is_empty()),
    ];
    for (key, _) in loses.iter().filter(|(_, there)| *there && !draft.destructive) {
        check.add(
            &place.child(key),
            format!("`{key}` breaks what reads the old columns"),
            "say `destructive = true` in this migration",
        );
    }
}

struct Reader<'a> {
    check: &'a mut Check,
    place: &'a Place,
    shape: &'a mut Shape,
    identified_by: &'a [ColumnPath],
    steps: Vec<Step>,
}

impl Reader<'_> {
    fn read(&mut self, draft: &MigrationBuilder) {
        self.constraints_dropped(&draft.drop_constraints);
        for (i, feature) in draft.enable_features.iter().enumerate() {
            if let Err(meant) = features::known(feature) {
                let wanted = match meant {
                    Some(meant) => format!("did you mean `{meant}`?"),
                    None => "wanted a table feature of Delta's protocol, such as `timestampNtz`".to_owned(),
                };
                let place = self.place.child("enable_features").child(i);
                self.check.add(&place, format!("`{feature}` is no table feature"), wanted);
            }
        }
        self.push_some(draft.enable_features.clone(), Step::EnableFeatures);
        self.renames(&draft.rename_columns);
        let widened = self.retyped("widen_types", &draft.widen_types, true);
        self.push_some(widened, Step::WidenTypes);
        self.relaxed(&draft.relax_nullability);
        self.added(&draft.add_columns);
        let comments = self.commented(&draft.comments);
        self.push_some(comments, Step::Comments);
        if let Some(text) = &draft.table_description {
            self.push(Step::TableDescription(text.clone()));
        }
        let set = self.properties("set_properties", &draft.set_properties);
        if !set.is_empty() {
            self.push(Step::SetProperties(set));
        }
        self.unset(&draft.unset_properties, &draft.set_properties);
        self.update(draft);
        self.functions(&draft.run);
        self.defaults(&draft.set_defaults);
        let retyped = self.retyped("retype_columns", &draft.retype_columns, false);
        self.push_some(retyped, Step::RetypeColumns);
        let constraints =
            unique_map(self.check, &self.place.child("add_constraints"), draft.add_constraints.clone());
        if !constraints.is_empty() {
            self.push(Step::AddConstraints(constraints));
        }
        self.dropped(&draft.drop_columns);
    }

    fn push(&mut self, step: Step) {
        self.shape.apply_step(&step);
        self.steps.push(step);
    }

    fn push_some<T>(&mut self, items: Vec<T>, step: fn(Vec<T>) -> Step) {
        if !items.is_empty() {
            self.push(step(items));
        }
    }

    fn existing(&mut self, place: &Place, text: &str) -> Option<ColumnPath> {
        self.check.existing(place, text, &self.shape.columns, "the shape that this migration meets")
    }

    fn added(&mut self, drafts: &[ColumnDraft]) {
        let mut added = Vec::new();
        for draft in drafts {
            let place = self.place.child("add_columns").child(&draft.path);
            let path = self.check.path(&place, &draft.path);
            let data_type = self.check.data_type(&place.child("type"), &draft.type_text);
            if let Some(path) = &path {
                self.check_added(&place, path, draft, data_type.as_ref());
            }
            if let (Some(path), data_type) = (path, data_type) {
                // Taken into the shape at once, so that the next of this step can't repeat it.
                let known = data_type.unwrap_or(UNKNOWN);
                let column = AddedColumn { path, data_type: known, comment: draft.comment.clone() };
                self.shape.apply_step(&Step::AddColumns(vec![column.clone()]));
                added.push(column);
            }
        }
        if !added.is_empty() {
            self.steps.push(Step::AddColumns(added));
        }
    }

    fn check_added(
        &mut self,
        place: &Place,
        path: &ColumnPath,
        draft: &ColumnDraft,
        data_type: Option<&DataType>,
    ) {
        let columns = &self.shape.columns;
        if !draft.nullable {
            self.check.add(
                &place.child("nullable"),
                format!("`{path}` is required, but the rows that are there have no value for it"),
                WAYS_OUT,
            );
        } else if let Some(part) = data_type.and_then(|t| t.required_part(path)) {
            self.check.add(
                &place.child("type"),
                format!("`{part}` is required inside an added column"),
                "everything inside an added column is nullable: leave out `not null`",
            );
        }
        let siblings = if path.parent().is_empty() {
            Some(columns.as_slice())
        } else {
            match resolve(columns, path.parent()).map(Target::data_type) {
                Some(DataType::Struct(fields)) => Some(fields.as_slice()),
                _ if self.check.skips(columns, path.parent()) => None,
                Some(other) => {
                    let parent = ColumnPath::of(path.parent().to_vec());
                    let (found, wanted) = not_a_struct(&parent, other, path.name());
                    self.check.add(place, found, wanted);
                    None
                }
                None => {
                    let parent = ColumnPath::of(path.parent().to_vec());
                    self.check.add(
                        place,
                        format!("there is no column `{parent}` for `{path}` to stand in"),
                        "wanted the path of a struct column; write a name that holds a dot in backticks",
                    );
                    None
                }
            }
        };
        if let Some(other) = siblings.and_then(|s| taken(s, path.name())) {
            let other = path.parent().iter().chain([&other.name]);
            let other = ColumnPath::of(other.cloned().collect::<Vec<_>>());
            self.check.add(
                place,
                if other == *path {
                    format!("`{path}` is there already")
                } else {
                    format!("`{path}` is there already, as `{other}`")
                },
                "a column is added once; names must differ in more than letter case",
            );
        }
    }

    fn relaxed(&mut self, texts: &[String]) {
        let mut paths = Vec::new();
        for (i, text) in texts.iter().enumerate() {
            let place = self.place.child("relax_nullability").child(i);
            let Some(path) = self.existing(&place, text) else { continue };
            let nullable = match resolve(&self.shape.columns, path.segments()) {
                Some(Target::Field(field)) => field.nullable,
                Some(Target::Part(_, _)) if path.name() == "key" => {
                    self.check.add(&place, format!("`{path}` is the key of a map"), "keys can never be null");
                    continue;
                }
                Some(Target::Part(_, nullable)) => nullable,
                None => continue,
            };
            if nullable {
                self.check.add(&place, format!("`{path}` accepts null already"), "leave it out");
            } else {
                self.shape.apply_step(&Step::RelaxNullability(vec![path.clone()]));
                paths.push(path);
            }
        }
        if !paths.is_empty() {
            self.steps.push(Step::RelaxNullability(paths));
        }
    }

    fn commented(&mut self, pairs: &[(String, String)]) -> Vec<(ColumnPath, String)> {
        let mut comments = Vec::new();
        for (text, comment) in pairs {
            let place = self.place.child("comments").child(text);
            let Some(path) = self.existing(&place, text) else { continue };
            match resolve(&self.shape.columns, path.segments()) {
                Some(Target::Field(_)) => comments.push((path, comment.clone())),
                _ => self.check.add(
                    &place,
                    format!("`{path}` is a part of an array or map"),
                    "comments belong to columns and struct fields",
                ),
            }
        }
        comments
    }

    fn properties(&mut self, step: &str, pairs: &[(String, String)]) -> IndexMap<String, String> {
        let place = self.place.child(step);
        for (key, _) in pairs {
            self.check_property(&place.child(key), key);
        }
        unique_map(self.check, &place, pairs.to_vec())
    }

    fn check_property(&mut self, place: &Place, key: &str) {
        if let Some(feature) = features::enabled_by(key) {
            self.check.add(
                place,
                format!("`{key}` turns the table feature `{feature}` on or off"),
                "a property of that sort can't be changed by a migration; set it in [properties], at birth",
            );
        }
    }

    fn unset(&mut self, keys: &[String], set: &[(String, String)]) {
        let place = self.place.child("unset_properties");
        for (i, key) in keys.iter().enumerate() {
            self.check_property(&place.child(i), key);
            if set.iter().any(|(k, _)| k == key) {
                self.check.add(
                    &place.child(i),
                    format!("`{key}` is both set and unset"),
                    "keep one of the two",
                );
            }
        }
        self.push_some(keys.to_vec(), Step::UnsetProperties);
    }

    fn retyped(
        &mut self,
        step: &str,
        pairs: &[(String, String)],
        widening: bool,
    ) -> Vec<(ColumnPath, DataType)> {
        let mut changes = Vec::new();
        for (text, type_text) in pairs {
            let place = self.place.child(step).child(text);
            let new = self.check.data_type(&place.child("type"), type_text);
            let path = self.existing(&place, text);
            let (Some(path), Some(new)) = (path, new) else { continue };
            let old = resolve(&self.shape.columns, path.segments()).map(Target::data_type);
            if self.check.skips(&self.shape.columns, path.segments()) {
                continue;
            }
            let (same, fits) = old.map_or((false, false), |old| (old.same_as(&new), old.widens_to(&new)));
            if same {
                self.check.add(&place, format!("`{path}` is of type {new} already"), "leave it out");
            } else if widening && !fits {
                let old = old.map(ToString::to_string).unwrap_or_default();
                self.check.add(
                    &place,
                    format!("{old} can't be widened to {new}"),
                    "a narrower or another type is a new column that `update` fills, or `retype_columns`, which \
                     rewrites the table; PROTOCOL.md, Type Widening, lists the wider ones",
                );
            } else {
                if widening {
                    // Taken into the shape at once, so that the next of this step builds on it.
                    self.shape.apply_step(&Step::WidenTypes(vec![(path.clone(), new.clone())]));
                }
                changes.push((path, new));
            }
        }
        changes
    }

    fn update(&mut self, draft: &MigrationBuilder) {
        let place = self.place.child("update");
        let set = self.by_column_at(&place.child("set"), &draft.update_set);
        match (&draft.update_where, draft.update_set.is_empty()) {
            (None, true) => {}
            (Some(predicate), false) => self.push(Step::Update { set, predicate: predicate.clone() }),
            (None, false) => self.check.add(
                &place,
                "an `update` without `where`",
                "wanted a condition that is false for a row once it is set, as in `where = \"tenant IS NULL\"`",
            ),
            (Some(_), true) => {
                self.check.add(&place, "an `update` without `set`", "wanted `set = { column = \"expression\" }`");
            }
        }
    }

    fn functions(&mut self, functions: &[Function]) {
        for (i, function) in functions.iter().enumerate() {
            let place = self.place.child("run").child(i);
            if function.name.trim().is_empty() || function.name.chars().any(char::is_control) {
                self.check.add(
                    &place,
                    "a function has no name",
                    "wanted a name: it stands in the chain's digest",
                );
            } else if functions[..i].iter().any(|f| f.name == function.name) {
                self.check.add(
                    &place,
                    format!("there are two functions `{}`", function.name),
                    "give each a name of its own: it names the transaction that the function may use",
                );
            } else {
                self.push(Step::Run(function.clone()));
            }
        }
    }

    /// Expressions by column; the columns must be at the top level.
    fn by_column_at(&mut self, place: &Place, pairs: &[(String, String)]) -> IndexMap<String, String> {
        let mut map = IndexMap::new();
        for (text, expression) in pairs {
            let place = place.child(text);
            let Some(path) = self.existing(&place, text) else { continue };
            if path.parent().is_empty() {
                map.insert(path.name().to_owned(), expression.clone());
            } else {
                self.check.add(
                    &place,
                    format!("`{path}` lies inside a column"),
                    "set the whole top-level column",
                );
            }
        }
        map
    }
}

/// The problem of a nested path whose parent is no struct, with the path that was probably meant.
fn not_a_struct(parent: &ColumnPath, found: &DataType, name: &str) -> (String, String) {
    let through = match found {
        DataType::Array { .. } => Some("element"),
        DataType::Map { .. } => Some("value"),
        _ => None,
    };
    let wanted = match through {
        Some(step) => format!("go through the {found} as `{}`", parent.child(step).child(name)),
        None => "a nested column needs a struct to stand in; write a name that holds a dot in backticks"
            .to_owned(),
    };
    (format!("`{parent}` is of type {found}, not a struct"), wanted)
}
