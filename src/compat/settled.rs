//! What data steps wrote, without chance and clock: deltalake gives files names of its own and says when
//! it made them; in a corpus both follow from the table's name.

use std::collections::HashMap;

use serde_json::{Map, Value};
use uuid::Uuid;

use super::files;
use super::moments::Fixed;
use super::table::{Table, decoded};
use super::{parquet, unreadable};
use crate::error::Error;
use crate::migrator::Moments as _;

/// A file that a commit names, with what it is told from others by.
struct Named {
    action: Value,
    verb: &'static str,
    /// Its bytes and its partition; its name is chance.
    order: (String, String),
}

impl Table {
    /// Gives the files that were written from a log version on names and times of the table's own, and
    /// the actions that name them one order.
    pub(super) fn settle(&self, from: u64, moments: &Fixed) -> Result<(), Error> {
        let mut names: HashMap<String, String> = HashMap::new();
        for version in from.. {
            let entry = self.entry(version);
            if !entry.exists() {
                break;
            }
            let (mut lines, mut added, mut removed) = (Vec::new(), Vec::new(), Vec::new());
            let mut now = Value::Null;
            for line in files::read_text(&entry)?.lines() {
                let action: Value = serde_json::from_str(line)
                    .map_err(|e| unreadable(format!("`{}` holds a line that is no JSON: {e}", self.name)))?;
                if let Some(at) = action.pointer("/commitInfo/timestamp") {
                    now = at.clone();
                }
                match ["add", "cdc", "remove"].into_iter().find(|verb| action.get(verb).is_some()) {
                    Some("remove") => removed.push(action),
                    Some(verb) => added.push(self.named(verb, action)?),
                    None => lines.push(line.to_owned()),
                }
            }
            if added.is_empty() && removed.is_empty() {
                continue;
            }
            for action in &mut removed {
                let Some(body) = action.get_mut("remove").and_then(Value::as_object_mut) else { continue };
                let path = text(body, "path");
                let path = names.get(&path).cloned().unwrap_or(path);
                body.insert("path".to_owned(), Value::from(path));
                body.insert("deletionTimestamp".to_owned(), now.clone());
                in_order(body);
            }
            removed.sort_by_cached_key(Value::to_string);
            added.sort_by(|a, b| (a.verb, &a.order).cmp(&(b.verb, &b.order)));
            for Named { action, verb, .. } in &mut added {
                let Some(body) = action.get_mut(*verb).and_then(Value::as_object_mut) else { continue };
                let old = text(body, "path");
                let new = renamed(&old, moments.id());
                self.rename(&old, &new)?;
                body.insert("path".to_owned(), Value::from(new.clone()));
                if body.contains_key("modificationTime") {
                    body.insert("modificationTime".to_owned(), now.clone());
                }
                in_order(body);
                names.insert(old, new);
            }
            let actions = removed.iter().chain(added.iter().map(|named| &named.action));
            lines.extend(actions.map(Value::to_string));
            files::write(&entry, (lines.join("\n") + "\n").as_bytes())?;
        }
        Ok(())
    }

    fn named(&self, verb: &'static str, mut action: Value) -> Result<Named, Error> {
        let body = action.get(verb).and_then(Value::as_object).cloned().unwrap_or_default();
        let file = self.folder.join(decoded(&text(&body, "path")));
        let mut bytes = files::read(&file)?;
        if verb == "cdc" {
            // What rows were and what they are come in two streams, and are written as they come.
            bytes = parquet::in_order(bytes)?;
            files::write(&file, &bytes)?;
            if let Some(size) = action.pointer_mut("/cdc/size") {
                *size = Value::from(bytes.len());
            }
        }
        let hash = files::sha256(&bytes);
        let partition = sorted(body.get("partitionValues").unwrap_or(&Value::Null)).to_string();
        Ok(Named { action, verb, order: (partition, hash) })
    }

    fn rename(&self, old: &str, new: &str) -> Result<(), Error> {
        let (old, new) = (self.folder.join(decoded(old)), self.folder.join(decoded(new)));
        if old == new {
            return Ok(());
        }
        files::write(&new, &files::read(&old)?)?;
        files::remove(&old, &self.folder)
    }
}

fn text(body: &Map<String, Value>, key: &str) -> String {
    body.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// The path with another id, and no folder of a name by chance.
fn renamed(path: &str, id: Uuid) -> String {
    let digits = id.simple().to_string();
    let (folders, name) = path.rsplit_once('/').unwrap_or(("", path));
    let mut out: Vec<String> = folders
        .split('/')
        .filter(|folder| !folder.is_empty())
        .map(|folder| match folder.contains('=') || folder == "_change_data" {
            true => folder.to_owned(),
            false => digits.chars().cycle().take(folder.chars().count()).collect(),
        })
        .collect();
    let is_id = |part: &&str| part.len() == 36 && Uuid::try_parse(part).is_ok();
    let old = (0..name.len()).filter_map(|at| name.get(at..at + 36)).find(is_id);
    out.push(old.map_or_else(|| name.to_owned(), |old| name.replace(old, &id.to_string())));
    out.join("/")
}

/// Maps that deltalake fills in the order of their hashes.
fn in_order(body: &mut Map<String, Value>) {
    for key in ["partitionValues", "tags"] {
        if let Some(value) = body.get_mut(key) {
            *value = sorted(value);
        }
    }
    if let Some(Ok(statistics)) = body.get("stats").and_then(Value::as_str).map(serde_json::from_str::<Value>)
    {
        body.insert("stats".to_owned(), Value::from(sorted(&statistics).to_string()));
    }
}

fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let mut pairs: Vec<(&String, &Value)> = map.iter().collect();
            pairs.sort_by_key(|(key, _)| *key);
            Value::Object(pairs.into_iter().map(|(key, value)| (key.clone(), sorted(value))).collect())
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_by_chance_become_the_table_s_own() {
        let id = Uuid::from_u128(0x0123_4567_89ab_4def_8123_4567_89ab_cdef);
        let chance = "a1b2c3d4-0000-4000-8000-00000000000f";
        for (old, new) in [
            ("part-00000-@-c000.snappy.parquet", "part-00000-#-c000.snappy.parquet"),
            ("day=2026-01-01/part-00000-@-c000.parquet", "day=2026-01-01/part-00000-#-c000.parquet"),
            ("_change_data/a=1/b=x%2520y/cdc-@.parquet", "_change_data/a=1/b=x%2520y/cdc-#.parquet"),
            ("zY/part-@.parquet", "01/part-#.parquet"),
            ("of another writer.parquet", "of another writer.parquet"),
        ] {
            let filled = |text: &str, id: &str| text.replace(['@', '#'], id);
            assert_eq!(renamed(&filled(old, chance), id), filled(new, &id.to_string()));
        }
    }

    #[test]
    fn statistics_and_partitions_have_one_order() {
        let mut body = json!({
            "partitionValues": { "b": "1", "a": null },
            "stats": "{\"numRecords\":1,\"minValues\":{\"z\":{\"y\":1,\"x\":2.0},\"a\":3}}",
        });
        in_order(body.as_object_mut().unwrap());
        assert_eq!(body["partitionValues"].to_string(), r#"{"a":null,"b":"1"}"#);
        assert_eq!(body["stats"], r#"{"minValues":{"a":3,"z":{"x":2.0,"y":1}},"numRecords":1}"#);
    }
}
