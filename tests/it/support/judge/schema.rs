//! The schema: what was there is the same text, what is new obeys the table's features.

use std::collections::BTreeSet;

use indexmap::IndexMap;
use serde_json::Value;
use serde_json::value::RawValue;

use super::{Judge, mapping, parse};

type Object<'a> = IndexMap<String, &'a RawValue>;

/// A field of a schema with the path to it.
pub(super) struct Found {
    pub(super) path: String,
    pub(super) top: bool,
    pub(super) field: Value,
    pub(super) new: bool,
}

pub(super) fn judge(judge: &mut Judge<'_>, metadata: &Value, features: &BTreeSet<String>) {
    let old = judge.before.metadata["schemaString"].as_str().unwrap().to_owned();
    let new = metadata["schemaString"].as_str().unwrap_or_default();
    let mut added = BTreeSet::new();
    same_but_added(judge, &old, new, "", &mut added);
    let mut fields = Vec::new();
    walk(&parse(new), "", false, &added, &mut fields);
    names(judge, &parse(new), "");
    for found in fields.iter().filter(|f| f.new) {
        new_field(judge, found, metadata, features);
    }
    mapping::judge(judge, metadata, &fields);
}

fn object(text: &str) -> Object<'_> {
    serde_json::from_str(text).unwrap_or_default()
}

/// Every byte of the old schema is in the new one; further fields may follow in any struct.
fn same_but_added(judge: &mut Judge<'_>, old: &str, new: &str, at: &str, added: &mut BTreeSet<String>) {
    if old == new {
        return;
    }
    if let Some(wide) = judge.asked("widen", at) {
        judge.check(parse(new) == wide, format!("`{at}` is {new}, not {wide}"));
        return;
    }
    let (was, is) = (object(old), object(new));
    let keys = |o: &Object<'_>| o.keys().cloned().collect::<Vec<_>>();
    judge.check(keys(&was) == keys(&is) && !was.is_empty(), format!("the type of `{at}` changed"));
    for (key, was) in &was {
        let Some(is) = is.get(key) else { continue };
        match key.as_str() {
            "fields" => same_fields(judge, was.get(), is.get(), at, added),
            "elementType" => same_but_added(judge, was.get(), is.get(), &format!("{at}.element"), added),
            "keyType" => same_but_added(judge, was.get(), is.get(), &format!("{at}.key"), added),
            "valueType" => same_but_added(judge, was.get(), is.get(), &format!("{at}.value"), added),
            _ => judge.check(was.get() == is.get(), format!("`{key}` of the type of `{at}` changed")),
        }
    }
}

fn same_fields(judge: &mut Judge<'_>, old: &str, new: &str, at: &str, added: &mut BTreeSet<String>) {
    let of = |text| serde_json::from_str::<Vec<&RawValue>>(text).unwrap();
    let (mut old, new) = (of(old), of(new));
    let name = |field: &RawValue| parse(field.get())["name"].as_str().unwrap_or_default().to_owned();
    let may = judge.may;
    let gone: Vec<String> = old.iter().map(|f| name(f)).collect();
    for gone in gone.into_iter().filter(|n| may.contains(&format!("drop:{}", below(at, n)).as_str())) {
        let there = new.iter().any(|f| name(f) == gone);
        judge.check(!there, format!("`{}` is there still", below(at, &gone)));
    }
    old.retain(|f| !judge.may(&format!("drop:{}", below(at, &name(f)))));
    judge.check(new.len() >= old.len(), format!("fields of `{at}` are gone"));
    for (was, is) in old.iter().zip(&new) {
        if was.get() != is.get() {
            same_field(judge, was.get(), is.get(), at, added);
        }
    }
    for field in new.iter().skip(old.len()) {
        let name = parse(field.get())["name"].as_str().unwrap_or_default().to_owned();
        added.insert(below(at, &name));
    }
}

fn same_field(judge: &mut Judge<'_>, was: &str, is: &str, at: &str, added: &mut BTreeSet<String>) {
    let path = below(at, parse(was)["name"].as_str().unwrap());
    let old_type = parse(was)["type"].clone();
    let (was, is) = (object(was), object(is));
    let keys = |o: &Object<'_>| o.keys().cloned().collect::<Vec<_>>();
    judge.check(keys(&was) == keys(&is), format!("the keys of `{path}` changed"));
    for (key, was) in &was {
        let Some(is) = is.get(key) else { continue };
        match key.as_str() {
            "type" => same_but_added(judge, was.get(), is.get(), &path, added),
            "name" if judge.asked("rename", &path).is_some() => {
                let wanted = judge.asked("rename", &path).unwrap();
                judge.check(parse(is.get()) == wanted, format!("`{path}` is not called {wanted}"));
            }
            "metadata" if !widened_in(judge, &path).is_empty() => {
                type_changes(judge, &path, &old_type, was, is)
            }
            "metadata" if judge.may(&format!("default:{path}")) => {
                let (mut was, mut is) = (object(was.get()), object(is.get()));
                was.shift_remove("CURRENT_DEFAULT");
                judge.check(is.shift_remove("CURRENT_DEFAULT").is_some(), format!("`{path}` has no default"));
                judge.check(texts(&was) == texts(&is), format!("the metadata of `{path}` changed"));
            }
            "nullable" if judge.may(&format!("nullable:{path}")) => {
                judge.check(is.get() == "true", format!("`{path}` was not relaxed"));
            }
            "metadata" if judge.may(&format!("comment:{path}")) => {
                let (mut was, mut is) = (object(was.get()), object(is.get()));
                was.shift_remove("comment");
                is.shift_remove("comment");
                judge.check(texts(&was) == texts(&is), format!("the metadata of `{path}` changed"));
            }
            _ => judge.check(was.get() == is.get(), format!("`{key}` of `{path}` changed")),
        }
    }
}

fn texts(object: &Object<'_>) -> Vec<(String, String)> {
    object.iter().map(|(k, v)| (k.clone(), v.get().to_owned())).collect()
}

/// The parts of a field that were to be widened: the ways to them below it, and their new types.
fn widened_in(judge: &Judge<'_>, path: &str) -> Vec<(Vec<String>, String)> {
    let widened = judge.may.iter().filter_map(|m| m.strip_prefix("widen:")?.rsplit_once('='));
    let inside = widened.filter_map(|(at, wide)| {
        let way: Vec<String> = match at.strip_prefix(path)? {
            "" => Vec::new(),
            rest => rest.strip_prefix('.')?.split('.').map(str::to_owned).collect(),
        };
        way.iter().all(|w| ["element", "key", "value"].contains(&w.as_str())).then(|| (way, wide.to_owned()))
    });
    inside.collect()
}

/// The history of type changes grows by those that were asked for, and by nothing else.
fn type_changes(judge: &mut Judge<'_>, path: &str, old_type: &Value, was: &RawValue, is: &RawValue) {
    let (mut was, mut is) = (object(was.get()), object(is.get()));
    let list = |raw: Option<&RawValue>| raw.map(|r| r.get().to_owned()).unwrap_or_else(|| "[]".to_owned());
    let before = list(was.shift_remove("delta.typeChanges"));
    let after = list(is.shift_remove("delta.typeChanges"));
    judge.check(texts(&was) == texts(&is), format!("the metadata of `{path}` changed"));
    let kept = after.starts_with(before.trim_end_matches(']'));
    judge.check(kept, format!("the type changes of `{path}` are not kept"));
    let (before, after) = (parse(&before), parse(&after));
    let new = after.as_array().into_iter().flatten().skip(before.as_array().map_or(0, Vec::len));
    let mut wanted = Vec::new();
    for (way, wide) in widened_in(judge, path) {
        let mut part = old_type;
        for step in &way {
            part = &part[match step.as_str() {
                "element" => "elementType",
                "key" => "keyType",
                _ => "valueType",
            }];
        }
        let mut change = serde_json::json!({ "fromType": part, "toType": wide });
        if !way.is_empty() {
            change["fieldPath"] = way.join(".").into();
        }
        wanted.push(change);
    }
    let strip = |change: &Value| {
        let mut change = change.clone();
        change.as_object_mut().map(|c| c.remove("tableVersion"));
        change
    };
    let new: Vec<Value> = new.map(strip).collect();
    judge.check(new == wanted, format!("the type changes of `{path}` are {new:?}, not {wanted:?}"));
}

fn below(at: &str, name: &str) -> String {
    if at.is_empty() { name.to_owned() } else { format!("{at}.{name}") }
}

fn walk(data_type: &Value, at: &str, new: bool, added: &BTreeSet<String>, out: &mut Vec<Found>) {
    for (key, step) in [("elementType", "element"), ("keyType", "key"), ("valueType", "value")] {
        if let Some(part) = data_type.get(key) {
            walk(part, &below(at, step), new, added, out);
        }
    }
    for field in data_type["fields"].as_array().into_iter().flatten() {
        let path = below(at, field["name"].as_str().unwrap());
        let new = new || added.contains(&path);
        out.push(Found { path: path.clone(), top: at.is_empty(), field: field.clone(), new });
        walk(&field["type"], &path, new, added, out);
    }
}

/// No two fields of one struct have the same name but for letter case.
fn names(judge: &mut Judge<'_>, data_type: &Value, at: &str) {
    for key in ["elementType", "keyType", "valueType"] {
        if let Some(part) = data_type.get(key) {
            names(judge, part, at);
        }
    }
    let mut seen = BTreeSet::new();
    for field in data_type["fields"].as_array().into_iter().flatten() {
        let name = field["name"].as_str().unwrap();
        judge.check(seen.insert(name.to_lowercase()), format!("two fields named `{name}` in `{at}`"));
        names(judge, &field["type"], &below(at, name));
    }
}

fn new_field(judge: &mut Judge<'_>, found: &Found, metadata: &Value, features: &BTreeSet<String>) {
    let Found { path, top, field, .. } = found;
    judge.check(field["nullable"] == true, format!("new `{path}` is required"));
    let text = field["type"].to_string();
    let required = text.contains("\"containsNull\":false") || text.contains("\"valueContainsNull\":false");
    judge.check(!required, format!("something in new `{path}` is required"));
    for (name, feature) in [("\"timestamp_ntz\"", "timestampNtz"), ("\"variant\"", "variantType")] {
        let fits = !text.contains(name)
            || features.contains(feature)
            || features.contains(&format!("{feature}-preview"));
        judge.check(fits, format!("new `{path}` needs {feature}"));
    }
    judge.check(!text.contains("\"void\""), format!("new `{path}` is void"));
    for key in field["metadata"].as_object().into_iter().flat_map(|m| m.keys()) {
        let known = key == "comment" || key.starts_with("delta.columnMapping.");
        judge.check(known, format!("new `{path}` has `{key}`"));
    }
    let name = field["name"].as_str().unwrap();
    let configuration = &metadata["configuration"];
    let mapped = mapping::mode(metadata).is_some();
    let plain = !name.is_empty() && !name.contains('\n') && (mapped || !name.contains(mapping::SPECIAL));
    judge.check(plain, format!("new `{path}` has a name that the table can't take"));
    let reserved = ["_change_type", "_commit_version", "_commit_timestamp"];
    let feed = configuration["delta.enableChangeDataFeed"] == "true";
    judge.check(!(feed && *top && reserved.contains(&name)), format!("`{path}` is reserved by the feed"));
    for key in ["materializedRowIdColumnName", "materializedRowCommitVersionColumnName"] {
        let taken = configuration[format!("delta.rowTracking.{key}")] == name;
        judge.check(!(*top && taken), format!("`{path}` is reserved by row tracking"));
    }
}
