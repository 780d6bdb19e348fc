//! Files that people write: what their readers take, and what they insist on.

use std::collections::{BTreeMap, BTreeSet};

use delta_migrate::Kind;

use super::assert_none;
use super::page::{Row, row, rows};
use crate::support::command::on;
use crate::support::{facts, run};

pub(super) const SECTIONS: [&str; 4] = [CONFIG, KIND, STEPS, LOCK];

const CONFIG: &str = "The configuration file";
const KIND: &str = "A kind file";
const STEPS: &str = "Steps";
const LOCK: &str = "The lock file";

/// A key that no file has, and that resembles none.
const NONE: &str = "zzzzqqqq";

/// The keys that stand beside each other, by the table that they stand in.
fn listed(sections: &[&str]) -> BTreeMap<String, BTreeSet<String>> {
    let mut tables: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for row in sections.iter().flat_map(|section| rows(section)) {
        let (table, key) = row.key.rsplit_once('.').unwrap_or(("", &row.key));
        if key != "*" {
            tables.entry(table.to_owned()).or_default().insert(key.to_owned());
        }
    }
    tables
}

/// What a reader says of a text, for each of which `write` puts a line into a table of it: every
/// listed key is known, no other is, and the reader names just the listed ones.
fn held(sections: &[&str], write: &dyn Fn(&str, &str) -> String, read: &dyn Fn(&str) -> Result<(), String>) {
    for (table, keys) in listed(sections) {
        let said = read(&write(&table, &format!("{NONE} = 1"))).unwrap_err();
        let lead = format!("unknown key `{NONE}`; wanted one of ");
        let known =
            said.split(&lead).nth(1).unwrap_or_else(|| panic!("{table}: {said}")).lines().next().unwrap();
        let known: BTreeSet<String> = known.split(", ").map(str::to_owned).collect();
        assert_eq!(known, keys, "left: what the reader takes in `{table}`; right: what the page lists");
        for key in keys {
            let said = read(&write(&table, &format!("{key} = 1"))).err().unwrap_or_default();
            assert!(!said.contains("unknown key"), "`{key}` in `{table}`: {said}");
        }
    }
    let all = || sections.iter().flat_map(|section| rows(section));
    for open in all().filter_map(|row| row.key.strip_suffix(".*")) {
        let (table, key) = open.rsplit_once('.').unwrap_or(("", open));
        let line = format!("{key} = {{ \"a name of the author's\" = \"x\" }}");
        let said = read(&write(table, &line)).err().unwrap_or_default();
        assert!(!said.contains("unknown key"), "`{open}`: {said}");
    }
    for row in all().filter(|row| row.cells[0].starts_with("table")) {
        let inside = format!("{}.", row.key);
        assert!(all().any(|other| other.key.starts_with(&inside)), "`{}` is a table of nothing", row.key);
    }
}

fn read_config(text: &str) -> Result<(), String> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("delta-migrate.toml"), text).unwrap();
    std::fs::create_dir(folder.path().join("kinds")).unwrap();
    std::fs::write(folder.path().join("kinds/k.toml"), "kind = \"k\"\n").unwrap();
    // `lock` reads the configuration and opens no table.
    let ran = run(folder.path(), &["lock", "--check"]);
    if ran.code == 2 { Err(ran.stderr) } else { Ok(()) }
}

fn read_kind(text: &str) -> Result<(), String> {
    Kind::from_toml(text).map(drop).map_err(|e| e.message().to_owned())
}

#[test]
fn the_configuration_takes_the_keys_of_the_page_and_no_other() {
    let write = |table: &str, line: &str| match table {
        "" => line.to_owned(),
        table => format!("[[{}]]\n{line}", table.trim_end_matches("[]")),
    };
    held(&[CONFIG], &write, &read_config);
}

#[test]
fn a_kind_file_takes_the_keys_of_the_page_and_no_other() {
    let write = |table: &str, line: &str| match table {
        "" => line.to_owned(),
        "columns.*" => format!("[columns]\nc = {{ type = \"long\", {line} }}"),
        "migrations[]" => format!("[[migrations]]\n{line}"),
        "migrations[].add_columns.*" => {
            format!("[[migrations]]\n[migrations.add_columns]\nc = {{ type = \"long\", {line} }}")
        }
        "migrations[].update" => format!("[[migrations]]\nupdate = {{ {line} }}"),
        other => panic!("no text has `{other}`"),
    };
    held(&[KIND, STEPS], &write, &|text| match read_kind(text) {
        // The same key twice is another mistake.
        Err(said) if said.contains("second time") => Err(said.replace("second time", "")),
        other => other,
    });
}

/// A text of blocks of lines, each line with the key that it gives.
fn text(blocks: &[&[(&str, &str)]], without: &str) -> String {
    let lines = blocks.iter().flat_map(|block| block.iter());
    lines.filter(|(key, _)| *key != without).map(|(_, line)| format!("{line}\n")).collect()
}

/// Leaves out one key after the other: what the page calls refused is, all else has a default.
fn absences(
    sections: &[&str],
    blocks: &[&[(&str, &str)]],
    read: &dyn Fn(&str) -> Result<(), String>,
) -> Vec<String> {
    read(&text(blocks, "none")).unwrap();
    let keys =
        blocks.iter().flat_map(|block| block.iter()).map(|(key, _)| *key).filter(|key| !key.is_empty());
    let row = |key: &str| -> &'static Row {
        sections.iter().find_map(|section| row(section, key)).unwrap_or_else(|| panic!("no `{key}`"))
    };
    let told = |key: &str| {
        let (is_refused, asked) = (read(&text(blocks, key)).is_err(), row(key).is_asked_for());
        (is_refused != asked)
            .then(|| format!("`{key}`: refused without it: {is_refused}; the page says {asked}"))
    };
    let faults = keys.clone().filter_map(told).collect();
    let tried: BTreeSet<&str> = keys.collect();
    let asked = sections.iter().flat_map(|section| rows(section)).filter(|row| row.is_asked_for());
    let untried: Vec<&str> = asked.map(|row| row.key.as_str()).filter(|key| !tried.contains(key)).collect();
    assert!(untried.is_empty(), "left out by this test: {untried:?}");
    faults
}

#[test]
fn the_page_says_what_a_configuration_must_have() {
    let blocks: [&[(&str, &str)]; 6] = [
        &[
            ("namespace", "namespace = \"app\""),
            ("kinds", "kinds = \"kinds\""),
            ("", "[storage]"),
            ("storage.*", "a = \"b\""),
        ],
        &[
            ("", "[[tables]]"),
            ("tables[].uri", "uri = \"t\""),
            ("tables[].kind", "kind = \"k\""),
            ("tables[].adopt", "adopt = \"detect\""),
        ],
        &[("tables[].storage", "storage = { a = \"b\" }")],
        &[
            ("", "[[discover]]"),
            ("discover[].root", "root = \"t\""),
            ("discover[].include", "include = \"*\""),
            ("discover[].exclude", "exclude = [\"x\"]"),
            ("discover[].kind", "kind = \"k\""),
        ],
        &[
            ("", "[[catalogs]]"),
            ("catalogs[].type", "type = \"unity\""),
            ("catalogs[].endpoint", "endpoint = \"https://localhost\""),
            ("catalogs[].token", "token = \"x\""),
            ("catalogs[].tables", "tables = \"a.b.*\""),
            ("catalogs[].exclude", "exclude = [\"a.b.c\"]"),
            ("catalogs[].kind", "kind = \"k\""),
        ],
        &[
            ("", "[[catalogs]]\ntype = \"glue\""),
            ("catalogs[].region", "region = \"x\""),
            ("catalogs[].catalog_id", "catalog_id = \"1\""),
        ],
    ];
    assert_none(absences(&[CONFIG], &blocks, &read_config));
}

#[test]
fn the_page_says_what_a_kind_file_must_have() {
    let blocks: [&[(&str, &str)]; 3] = [
        &[("kind", "kind = \"k\""), ("description", "description = \"d\""), ("adopt", "adopt = \"detect\"")],
        &[
            ("", "[columns]\nc = {"),
            ("columns.*.type", "type = \"long\","),
            ("columns.*.nullable", "nullable = false,"),
            ("columns.*.comment", "comment = \"c\","),
            ("", "}\n[properties]"),
            ("properties.*", "a = \"b\""),
        ],
        &[
            ("", "[[migrations]]"),
            ("migrations[].description", "description = \"d\""),
            ("migrations[].source", "source = \"s\""),
            ("migrations[].raises_min_version", "raises_min_version = true"),
            ("migrations[].destructive", "destructive = true"),
            ("", "table_description = \"t\""),
        ],
    ];
    assert_none(absences(&[KIND], &blocks, &read_kind));
}

/// A kind with one migration of one step.
fn with_step(step: &str) -> String {
    let line = match step {
        "drop_constraints" => "[\"c\"]",
        "enable_features" => "[\"appendOnly\"]",
        "rename_columns" => "{ payload = \"content\" }",
        "widen_types" => "{ n = \"long\" }",
        "relax_nullability" => "[\"id\"]",
        "add_columns" => "{ more = { type = \"string\", nullable = true, comment = \"c\" } }",
        "comments" => "{ id = \"who\" }",
        "table_description" => "\"facts\"",
        "set_properties" => "{ owner = \"us\" }",
        "unset_properties" => "[\"owner\"]",
        "update" => "{ set = { n = \"1\" }, where = \"n is null\" }",
        "set_defaults" => "{ n = \"1\" }",
        "retype_columns" => "{ code = \"long\" }",
        "add_constraints" => "{ c = \"n > 0\" }",
        "drop_columns" => "[\"n\"]",
        other => panic!("no text for `{other}`"),
    };
    format!(
        "kind = \"facts\"\n[columns]\nid = {{ type = \"long\", nullable = false }}\ncode = \"string\"\n\
         payload = \"struct<lsn: long>\"\nn = \"integer\"\n\
         [[migrations]]\ndescription = \"d\"\ndestructive = true\n{step} = {line}\n"
    )
}

/// Column mapping for every field of a schema.
pub(crate) fn give_ids(data_type: &mut serde_json::Value, last: &mut u32) {
    for key in ["elementType", "keyType", "valueType"] {
        if data_type.get(key).is_some() {
            give_ids(&mut data_type[key], last);
        }
    }
    for field in data_type.get_mut("fields").and_then(|f| f.as_array_mut()).into_iter().flatten() {
        *last += 1;
        field["metadata"]["delta.columnMapping.id"] = (*last).into();
        field["metadata"]["delta.columnMapping.physicalName"] = format!("p{last}").into();
        give_ids(&mut field["type"], last);
    }
}

const DATA_STEPS: [&str; 3] = ["update", "retype_columns", "add_constraints"];

#[test]
fn the_page_says_which_steps_are_carried_out() {
    let mut log = facts().versions(1, 3);
    log.schema["fields"].as_array_mut().unwrap().push(crate::support::column("n", "integer"));
    // A table on which every step can be carried out.
    give_ids(&mut log.schema, &mut 0);
    let features = ["columnMapping", "typeWidening", "allowColumnDefaults"];
    let table = log
        .features(&features[..2], &features)
        .property("delta.columnMapping.mode", "name")
        .property("delta.enableTypeWidening", "true")
        .table();
    let mut plain = facts().versions(1, 3);
    plain.schema["fields"].as_array_mut().unwrap().push(crate::support::column("n", "integer"));
    let plain = plain.table();
    let steps = rows(STEPS).iter().filter(|row| row.key.matches('.').count() == 1);
    let mut faults = Vec::new();
    for row in steps {
        let step = row.key.rsplit_once('.').unwrap().1;
        // A table on which nothing stands against moving data.
        let table = if DATA_STEPS.contains(&step) { &plain } else { &table };
        let report = on(table, &with_step(step), &["status", table.arg()]).table();
        let is_refused = report["error"]["code"] == "unsupported_step";
        assert!(is_refused || report["outcome"] == "planned", "{step}: {report}");
        let wanted = row.absent().contains("unsupported_step") || row.is_of_another_build();
        if is_refused != wanted {
            faults.push(format!("`{step}`: the page says `{}`, the code {report}", row.absent()));
        }
    }
    assert_none(faults);
}

/// The lock file of a kind.
pub(super) fn lock_of(kind: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("k.toml"), kind).unwrap();
    assert_eq!(run(folder.path(), &["lock", "--kind-file", "k.toml"]).code, 0);
    std::fs::read_to_string(folder.path().join("migrations.lock")).unwrap()
}

/// The parts of a lock file that the page names, as this one has them; what else it has is a fault.
pub(super) fn lock_faults(lock: &str) -> Vec<String> {
    let keys = super::page::keys(LOCK);
    let (scheme, columns) = (keys[0], &keys[1..]);
    let head = format!("{scheme} 1 ({})", columns.join(", "));
    let mut faults = Vec::new();
    if lock.lines().filter(|line| *line == head).count() != 1 {
        faults.push(format!("no line `{head}`"));
    }
    for line in lock.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let words: Vec<&str> = line.splitn(columns.len(), ' ').collect();
        let is_version = |w: &str| w == "base" || w.parse::<u32>().is_ok_and(|n| n > 0);
        let is_digest = |w: &str| w.len() == 8 && w.bytes().all(|b| b.is_ascii_hexdigit());
        if words.len() < columns.len() - 1 || !is_version(words[1]) || !is_digest(words[2]) {
            faults.push(format!("a line that is not `{}`: {line}", columns.join(" ")));
        }
    }
    faults
}

#[test]
fn the_lock_file_has_the_parts_of_the_page() {
    let kind = with_step("add_columns");
    let lock = lock_of(&kind);
    assert_none(lock_faults(&lock));
    assert!(!lock_faults(&lock.replace("facts 1 ", "facts one ")).is_empty());
    assert!(!lock_faults(&lock.replace("digest, ", "hash, ")).is_empty());
    // Without each part in turn.
    let line = lock.lines().find(|line| line.starts_with("facts 1 ")).unwrap();
    let code = |lock: &str| {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("k.toml"), &kind).unwrap();
        std::fs::write(folder.path().join("migrations.lock"), lock).unwrap();
        let ran = run(folder.path(), &["validate", "--kind-file", "k.toml", "--format", "json"]);
        (ran.code, ran.json()["findings"][0]["code"].clone())
    };
    for (n, row) in rows(LOCK).iter().enumerate() {
        let without = match n {
            0 => lock
                .lines()
                .filter(|line| !line.starts_with(&row.key))
                .map(|line| format!("{line}\n"))
                .collect(),
            n => {
                let words = line.splitn(4, ' ').enumerate().filter(|(i, _)| i + 1 != n).map(|(_, w)| w);
                lock.replace(line, &words.collect::<Vec<_>>().join(" "))
            }
        };
        assert_ne!(without, lock);
        let (code, finding) = code(&without);
        let is_refused = code == 1 && finding == "broken_lock";
        assert_eq!(is_refused, row.is_asked_for(), "{}: {code}, {finding}", row.key);
    }
}
