//! What each table feature asks of a migrating commit: done, and a broken one is noticed.

mod all;
mod checksum;
mod defaults;
mod iceberg;
mod kept;
mod mapping;
mod refusals;
mod renames;
mod timestamps;
mod upgrades;
mod widening;

use serde_json::Value;

use crate::support::judge::{Before, judge};
use crate::support::{Table, apply};

/// A kind whose only migration has these lines below its description.
pub(crate) fn kind(steps: &str) -> String {
    based("", steps)
}

/// The same with more columns in the base shape.
pub(crate) fn based(columns: &str, steps: &str) -> String {
    let base = format!("kind = \"facts\"\n[columns]\nid = \"long\"\n{columns}\n");
    format!("{base}[[migrations]]\ndescription = \"one\"\n{steps}\n")
}

/// A kind whose only migration adds these columns.
pub(crate) fn adding(columns: &str) -> String {
    adding_to("", columns)
}

/// The same with more columns in the base shape.
pub(crate) fn adding_to(base: &str, columns: &str) -> String {
    based(base, &format!("[migrations.add_columns]\n{columns}"))
}

/// A commit of ours that was found sound.
pub(crate) struct Sound {
    before: Before,
    may: Vec<String>,
    text: String,
    pub(crate) entry: u64,
}

/// Migrates with the real command; the one new entry must be sound and no other file may change
/// (but for the checksum file of the new version).
pub(crate) fn sound(table: &Table, kind: &str, may: &[&str]) -> Sound {
    sound_after(table, kind, may, Before::of(table))
}

/// The same on a table whose log no longer tells what was before.
pub(crate) fn sound_after(table: &Table, kind: &str, may: &[&str], before: Before) -> Sound {
    let files = table.files();
    let ran = apply(table, kind);
    assert_eq!((ran.code, ran.table()["outcome"].as_str()), (0, Some("migrated")), "{ran:?}");
    let entry = ran.table()["log_version"].as_u64().unwrap();
    let mut after = table.files();
    assert!(after.remove(&table.log_file(entry)).is_some());
    after.remove(&table.log_file(entry).with_extension("crc"));
    assert!(after == files, "another file came, went or changed");
    let text = std::fs::read_to_string(table.log_file(entry)).unwrap();
    let wrong = judge(&before, &text, may);
    assert!(wrong.is_empty(), "{wrong:#?}\n{text}");
    Sound { before, may: may.iter().map(|m| (*m).to_owned()).collect(), text, entry }
}

impl Sound {
    /// The judge sees it when the entry's text is broken.
    pub(crate) fn caught_in_text(&self, wrong: &str, change: impl FnOnce(&str) -> String) {
        let text = change(&self.text);
        assert_ne!(text, self.text, "nothing was broken: {wrong}");
        let may: Vec<&str> = self.may.iter().map(String::as_str).collect();
        let found = judge(&self.before, &text, &may);
        assert!(found.iter().any(|f| f.contains(wrong)), "{wrong:?} is not in {found:#?}");
    }

    /// The judge sees it when the entry's actions are broken.
    pub(crate) fn caught(&self, wrong: &str, change: impl FnOnce(&mut Vec<Value>)) {
        self.caught_in_text(wrong, |text| {
            let mut actions: Vec<Value> = text.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
            change(&mut actions);
            actions.iter().map(|a| format!("{a}\n")).collect()
        });
    }

    /// The judge sees it when the metaData action is broken.
    pub(crate) fn caught_in_metadata(&self, wrong: &str, change: impl FnOnce(&mut Value)) {
        self.caught(wrong, |actions| change(part(actions, "metaData")));
    }

    /// The judge sees it when the fields are broken.
    pub(crate) fn caught_in_fields(&self, wrong: &str, change: impl FnOnce(&mut Vec<Value>)) {
        self.caught_in_metadata(wrong, |metadata| {
            let mut schema: Value = serde_json::from_str(metadata["schemaString"].as_str().unwrap()).unwrap();
            change(schema["fields"].as_array_mut().unwrap());
            metadata["schemaString"] = schema.to_string().into();
        });
    }
}

/// One action among those of an entry.
pub(crate) fn part<'a>(actions: &'a mut [Value], name: &str) -> &'a mut Value {
    actions.iter_mut().find_map(|a| a.get_mut(name)).unwrap()
}

/// What every commit must be, shown once on a plain table: the judge itself can fail.
#[test]
fn the_judge_sees_what_is_wrong_with_a_commit() {
    use serde_json::json;
    let mut log = crate::support::facts().property("kept", "x").metadata("name", "n");
    log.schema["fields"][0]["metadata"] = json!({ "comment": "c" });
    let table = log.table();
    let done = sound(&table, &adding("more = \"string\""), &[]);
    done.caught("commitInfo is not first", |a| a.swap(0, 1));
    done.caught("`add` in a metadata-only commit", |a| a.push(json!({ "add": { "path": "x" } })));
    done.caught("`metaData` twice", |a| a.push(a[1].clone()));
    done.caught("no `txn`", |a| a.truncate(2));
    done.caught("different versions", |a| part(a, "txn")["version"] = 2.into());
    done.caught("not one action", |a| a[0]["txn"] = json!({}));
    done.caught_in_text("no end", |t| t.trim_end().to_owned());
    done.caught_in_text("is no JSON object", |t| t.replacen("{\"metaData\":", "{\"metaData\":\n", 1));
    done.caught_in_metadata("metaData.id changed", |m| m["id"] = "other".into());
    done.caught_in_metadata("metaData.name changed", |m| drop(m.as_object_mut().unwrap().remove("name")));
    done.caught_in_metadata("metaData.createdTime changed", |m| m["createdTime"] = Value::Null);
    done.caught_in_metadata("metaData.partitionColumns changed", |m| m["partitionColumns"] = json!(["id"]));
    done.caught_in_metadata("metaData.format changed", |m| m["format"]["options"]["a"] = "b".into());
    done.caught_in_metadata("property kept changed", |m| m["configuration"]["kept"] = "y".into());
    done.caught_in_metadata("property other came", |m| m["configuration"]["other"] = "y".into());
    done.caught_in_fields("`metadata` of `id` changed", |f| f[0]["metadata"] = json!({}));
    done.caught_in_fields("`nullable` of `id` changed", |f| f[0]["nullable"] = true.into());
    done.caught_in_fields("the type of `id` changed", |f| f[0]["type"] = "integer".into());
    done.caught_in_fields("`name` of `code` changed", |f| f[1]["name"] = "code_2".into());
    done.caught_in_fields("fields of `` are gone", |f| drop(f.drain(1..)));
    done.caught_in_fields("new `more` is required", |f| f[3]["nullable"] = false.into());
    done.caught_in_fields("two fields named `ID`", |f| f[3]["name"] = "ID".into());
    done.caught_in_fields("a name that the table can't take", |f| f[3]["name"] = "a b".into());
    done.caught_in_fields("needs timestampNtz", |f| f[3]["type"] = "timestamp_ntz".into());
    done.caught_in_fields("`more` has an id without mapping", |f| {
        f[3]["metadata"]["delta.columnMapping.id"] = 1.into();
    });
    done.caught("a protocol action that nobody asked for", |a| {
        a.push(json!({ "protocol": { "minReaderVersion": 1, "minWriterVersion": 2 } }));
    });
    done.caught("inCommitTimestamp where it is not due", |a| {
        part(a, "commitInfo")["inCommitTimestamp"] = 1.into();
    });
    done.caught("the tag of row tracking", |a| {
        part(a, "commitInfo")["tags"]["delta.rowTracking.preserved"] = "true".into();
    });
}
