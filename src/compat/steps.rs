//! What migrations do to rows that are there.

use serde_json::Value;

use crate::model::kind::Kind;
use crate::model::migration::Step;
use crate::model::path::ColumnPath;
use crate::model::version::SchemaVersion;

/// A row at one version as a later one shows it: columns under their new names, without those that were
/// dropped.
pub(super) fn through(kind: &Kind, from: u32, to: u32, row: &Value) -> Value {
    let mut row = row.clone();
    for (_, migration) in kind.between(SchemaVersion::new(from), SchemaVersion::new(to)) {
        for step in &migration.steps {
            match step {
                Step::RenameColumns(renames) => renames.iter().for_each(|(path, new)| {
                    at(&mut row, path.parent(), &mut |fields| {
                        *fields = std::mem::take(fields)
                            .into_iter()
                            .map(
                                |(name, value)| {
                                    if name == path.name() { (new.clone(), value) } else { (name, value) }
                                },
                            )
                            .collect();
                    });
                }),
                Step::DropColumns(paths) => paths.iter().for_each(|path| {
                    at(&mut row, path.parent(), &mut |fields| drop(fields.shift_remove(path.name())));
                }),
                _ => {}
            }
        }
    }
    row
}

/// The first migration that this build can't carry out.
pub(super) fn unsupported(kind: &Kind) -> Option<String> {
    kind.numbered().find_map(|(version, migration)| {
        let step = migration.steps.iter().find(|step| !step.is_supported())?;
        Some(format!("migration {version} moves data (`{}`)", step.name()))
    })
}

/// Whether a function of the author's own is among the migrations after `from`: what it does to rows
/// nobody knows.
pub(super) fn runs_functions(kind: &Kind, from: u32) -> bool {
    let mut pending = kind.between(SchemaVersion::new(from), kind.newest());
    pending.any(|(_, migration)| migration.steps.iter().any(|step| matches!(step, Step::Run(_))))
}

/// Columns whose values the migrations after `from` change, under their newest names, so that they can't
/// be foretold here.
pub(super) fn changed_values(kind: &Kind, from: u32) -> Vec<String> {
    let top = |path: &ColumnPath| path.segments().first().cloned().unwrap_or_default();
    let mut names: Vec<String> = Vec::new();
    let pending = kind.between(SchemaVersion::new(from), kind.newest());
    for step in pending.flat_map(|(_, migration)| &migration.steps) {
        match step {
            Step::RetypeColumns(changes) => names.extend(changes.iter().map(|(path, _)| top(path))),
            Step::Update { set, .. } => names.extend(set.keys().cloned()),
            Step::RenameColumns(renames) => {
                for (path, new) in renames.iter().filter(|(path, _)| path.parent().is_empty()) {
                    names.iter_mut().filter(|n| *n == path.name()).for_each(|n| n.clone_from(new));
                }
            }
            _ => {}
        }
    }
    names
}

type Fields = serde_json::Map<String, Value>;

/// Does something with every struct that a path leads to; maps are lists of pairs here.
fn at(value: &mut Value, way: &[String], change: &mut dyn FnMut(&mut Fields)) {
    match (value, way.split_first()) {
        (Value::Object(fields), None) => change(fields),
        (Value::Object(fields), Some((name, rest))) => {
            if let Some(inner) = fields.get_mut(name) {
                at(inner, rest, change);
            }
        }
        (Value::Array(items), Some((part, rest))) => {
            for item in items {
                let inner = match part.as_str() {
                    "key" => item.get_mut(0),
                    "value" => item.get_mut(1),
                    _ => Some(item),
                };
                inner.into_iter().for_each(|inner| at(inner, rest, change));
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::Kind;

    #[test]
    fn rows_follow_names_at_any_depth() {
        let kind = Kind::from_toml(
            "kind = \"k\"\n[columns]\na = \"long\"\nb = \"array<struct<c: long, d: long>>\"\n\
             m = \"map<string, struct<e: long, f: long>>\"\n\
             [[migrations]]\ndescription = \"1\"\ndestructive = true\n\
             rename_columns = { \"b.element.c\" = \"x\", \"m.value.e\" = \"y\", a = \"z\" }\n\
             drop_columns = [\"b.element.d\", \"m.value.f\"]\n",
        )
        .unwrap();
        let row = json!({ "a": 1, "b": [{ "c": 2, "d": 3 }, null], "m": [["k", { "e": 4, "f": 5 }]] });
        let wanted = json!({ "z": 1, "b": [{ "x": 2 }, null], "m": [["k", { "y": 4 }]] });
        assert_eq!(through(&kind, 0, 1, &row), wanted);
        assert_eq!(through(&kind, 1, 1, &row), row);
        assert_eq!(changed_values(&kind, 0), Vec::<String>::new());
    }
}
