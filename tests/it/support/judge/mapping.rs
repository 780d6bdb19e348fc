//! Column mapping and what Iceberg compatibility asks of it.

use std::collections::BTreeMap;

use serde_json::Value;

use super::Judge;
use super::schema::Found;

pub(super) const MAX: &str = "delta.columnMapping.maxColumnId";
const ID: &str = "delta.columnMapping.id";
const NAME: &str = "delta.columnMapping.physicalName";
const NESTED: &str = "delta.columnMapping.nested.ids";
/// What names hold only where they are not the names in the files.
pub(super) const SPECIAL: [char; 9] = [' ', ',', ';', '{', '}', '(', ')', '\t', '='];

pub(super) fn mode(metadata: &Value) -> Option<&str> {
    metadata["configuration"]["delta.columnMapping.mode"].as_str().filter(|m| *m != "none")
}

pub(super) fn judge(judge: &mut Judge<'_>, metadata: &Value, fields: &[Found]) {
    if mode(metadata).is_none() {
        for Found { path, field, .. } in fields.iter().filter(|f| f.new) {
            judge.check(field["metadata"].get(ID).is_none(), format!("`{path}` has an id without mapping"));
            let named = field["metadata"].get(NAME).is_some();
            judge.check(!named, format!("`{path}` has a physical name without mapping"));
        }
        return;
    }
    let (mut ids, mut names) = (BTreeMap::new(), BTreeMap::new());
    let (mut highest, mut lowest) = (0, i64::MAX);
    let max = |m: &Value| m["configuration"][MAX].as_str().and_then(|v| v.parse::<i64>().ok());
    let before = max(&judge.before.metadata).unwrap_or(0);
    let mut old_highest = before;
    for Found { path, field, new, .. } in fields {
        let metadata = &field["metadata"];
        let mut own: Vec<i64> = Vec::new();
        match metadata[ID].as_i64() {
            Some(id) => own.push(id),
            None => judge.check(false, format!("`{path}` has no id")),
        }
        let nested = metadata[NESTED].as_object();
        own.extend(nested.into_iter().flat_map(|n| n.values()).filter_map(Value::as_i64));
        for id in own {
            judge.check((1..=i64::from(i32::MAX)).contains(&id), format!("id {id} of `{path}`"));
            if let Some(other) = ids.insert(id, path) {
                judge.check(false, format!("`{path}` and `{other}` share id {id}"));
            }
            if *new {
                highest = highest.max(id);
                lowest = lowest.min(id);
                judge.check(id > before, format!("id {id} of `{path}` may have been used before"));
            } else {
                old_highest = old_highest.max(id);
            }
        }
        let Some(name) = metadata[NAME].as_str().filter(|n| !n.is_empty()) else {
            judge.check(false, format!("`{path}` has no physical name"));
            continue;
        };
        judge.check(!new || name.starts_with("col-"), format!("physical name `{name}` of `{path}`"));
        if let Some(other) = names.insert(name, path) {
            judge.check(!new, format!("`{path}` and `{other}` share the physical name {name}"));
        }
    }
    let dropped = judge.may.iter().any(|m| m.starts_with("drop:"));
    old_highest = old_highest
        .max(highest_id(&super::parse(judge.before.metadata["schemaString"].as_str().unwrap_or("{}"))));
    judge.check(lowest > old_highest, "a new id is not above every old one");
    let max = max(metadata);
    // Where it was missing and no id is new, nobody has to write it.
    let absent = max.is_none()
        && highest == 0
        && !dropped
        && judge.before.metadata["configuration"].get(MAX).is_none();
    let enough = max.is_some_and(|m| m >= before && m >= highest && m >= old_highest);
    judge.check(absent || enough, format!("{MAX} is {max:?}"));
    iceberg(judge, metadata, fields);
}

/// The highest id that stands anywhere in a schema.
fn highest_id(value: &Value) -> i64 {
    match value {
        Value::Object(map) => map
            .iter()
            .map(|(key, value)| match key.as_str() {
                ID => value.as_i64().unwrap_or(0),
                NESTED => value
                    .as_object()
                    .into_iter()
                    .flat_map(|n| n.values())
                    .filter_map(Value::as_i64)
                    .max()
                    .unwrap_or(0),
                _ => highest_id(value),
            })
            .max()
            .unwrap_or(0),
        Value::Array(items) => items.iter().map(highest_id).max().unwrap_or(0),
        _ => 0,
    }
}

/// New arrays and maps: none under V1; with an id for each part under V2 and V3.
fn iceberg(judge: &mut Judge<'_>, metadata: &Value, fields: &[Found]) {
    let on = |v: &str| metadata["configuration"][format!("delta.enableIcebergCompat{v}")] == "true";
    for Found { path, field, .. } in fields.iter().filter(|f| f.new) {
        let parts = parts(&field["type"], field["metadata"][NAME].as_str().unwrap_or_default());
        judge.check(!on("V1") || parts.is_empty(), format!("`{path}` is an array or map under V1"));
        if on("V2") || on("V3") {
            let none = serde_json::Map::new();
            let ids = field["metadata"][NESTED].as_object().unwrap_or(&none);
            let mut found: Vec<&String> = ids.keys().collect();
            found.sort();
            let mut wanted: Vec<&String> = parts.iter().collect();
            wanted.sort();
            judge.check(found == wanted, format!("nested ids of `{path}` are {found:?}, not {wanted:?}"));
        }
    }
}

/// The parts of arrays and maps that belong to a field: those not inside a further field.
fn parts(data_type: &Value, at: &str) -> Vec<String> {
    let mut out = Vec::new();
    for (key, step) in [("elementType", "element"), ("keyType", "key"), ("valueType", "value")] {
        if let Some(part) = data_type.get(key) {
            let at = format!("{at}.{step}");
            out.push(at.clone());
            out.extend(parts(part, &at));
        }
    }
    out
}
