//! Wide and deep schemas, and long properties in every script: all of it survives byte for byte.

use serde_json::{Value, json};

use crate::features::{adding, adding_to, based, kind, sound};
use crate::support::log::TABLE_ID;
use crate::support::rows::{append, read};
use crate::support::{Log, Table, column};

fn schema_text(table: &Table) -> String {
    table.metadata()["schemaString"].as_str().unwrap().to_owned()
}

/// What the new text has more than the old one: one piece, in one place.
fn inserted<'a>(old: &str, new: &'a str) -> &'a str {
    let start = old.bytes().zip(new.bytes()).take_while(|(a, b)| a == b).count();
    let start = (0..=start).rev().find(|at| new.is_char_boundary(*at) && old.is_char_boundary(*at)).unwrap();
    let end = new.len() - (old.len() - start);
    assert_eq!(&new[end..], &old[start..], "more than one place changed");
    &new[start..end]
}

#[tokio::test]
async fn two_thousand_columns() {
    let mut fields = vec![column("id", "long")];
    for i in 1..2_000 {
        let mut field =
            column(&format!("spalte_{i}_äöü_列"), ["string", "long", "decimal(38,18)", "date"][i % 4]);
        field["metadata"] =
            json!({ "comment": format!("\"{i}\"\n\\ \u{1F600}"), "n": i, "nested": { "b": 1, "a": [i] } });
        fields.push(field);
    }
    let table = Log::new(fields).table();
    append(&table, &[json!({ "id": 1, "spalte_1_äöü_列": 7 })]).await;
    let old = schema_text(&table);
    sound(&table, &adding("more = { type = \"string\", comment = \"new\" }"), &[]);
    let piece = r#",{"name":"more","type":"string","nullable":true,"metadata":{"comment":"new"}}"#;
    assert_eq!(inserted(&old, &schema_text(&table)), piece);
    let rows = read(&table).await;
    assert_eq!((rows.len(), rows[0].as_object().unwrap().len()), (1, 2_001));
    assert_eq!(
        (&rows[0]["id"], &rows[0]["spalte_1_äöü_列"], &rows[0]["more"]),
        (&json!(1), &json!(7), &Value::Null)
    );
}

/// A struct in a struct …, through arrays and maps, as text: values of this depth can't be printed
/// by everything.
fn nested(levels: usize, innermost: &str) -> String {
    (0..levels).fold(innermost.to_owned(), |inner, level| {
        let level = levels - level;
        let inner = match level % 6 {
            0 => format!(r#"{{"type":"array","elementType":{inner},"containsNull":true}}"#),
            1 => format!(
                r#"{{"type":"map","keyType":"string","valueType":{inner},"valueContainsNull":false}}"#
            ),
            _ => inner,
        };
        format!(r#"{{"type":"struct","fields":[{{"name":"l{level}","type":{inner},"nullable":true,"metadata":{{ "x" : {level} }}}}]}}"#)
    })
}

/// The type of the first level in a kind.
fn type_text(levels: usize) -> String {
    (1..=levels).rev().fold("struct<a: long not null>".to_owned(), |inner, level| {
        let inner = match level % 6 {
            0 => format!("array<{inner}>"),
            1 => format!("map<string, {inner}>"),
            _ => inner,
        };
        if level == 1 { inner } else { format!("struct<l{level}: {inner}>") }
    })
}

fn path(levels: usize) -> String {
    let step = |level: usize| match level % 6 {
        0 => format!("l{level}.element"),
        1 => format!("l{level}.value"),
        _ => format!("l{level}"),
    };
    (1..=levels).map(step).collect::<Vec<_>>().join(".")
}

#[test]
fn sixty_levels_of_nesting() {
    let innermost =
        r#"{"type":"struct","fields":[{"name":"a","type":"long","nullable":false,"metadata":{}}]}"#;
    let deep = nested(60, innermost);
    let fields = deep.strip_prefix(r#"{"type":"struct","fields":["#).unwrap();
    let id = r#"{"name":"id","type":"long","nullable":true,"metadata":{}}"#;
    let old = format!(r#"{{"type":"struct","fields":[{id},{fields}"#);
    let piece = r#"{"name":"b","type":"array<string>","nullable":true,"metadata":{}}"#
        .replace("\"array<string>\"", r#"{"type":"array","elementType":"string","containsNull":true}"#);
    let log = || Log::new(Vec::new()).metadata("schemaString", old.clone());
    let table = log().table();
    let base = format!("l1 = \"{}\"", type_text(60));
    sound(&table, &adding_to(&base, &format!("\"{}.b\" = \"array<string>\"", path(60))), &[]);
    assert_eq!(inserted(&old, &schema_text(&table)), format!(",{piece}"));

    // A change in place at the bottom, and another one at the top.
    let table = log().table();
    let at = format!("{}.a", path(60));
    let steps =
        format!("relax_nullability = [\"{at}\"]\n[migrations.comments]\n\"{at}\" = \"deep\"\nid = \"top\"");
    let (nullable, comment) = (format!("nullable:{at}"), format!("comment:{at}"));
    sound(&table, &based(&base, &steps), &[&nullable, &comment, "comment:id"]);
    let relaxed = innermost
        .replace(r#""nullable":false,"metadata":{}"#, r#""nullable":true,"metadata":{"comment":"deep"}"#);
    let wanted = old
        .replace(innermost, &relaxed)
        .replace(id, r#"{"name":"id","type":"long","nullable":true,"metadata":{"comment":"top"}}"#);
    assert_eq!(schema_text(&table), wanted);
    // With column mapping every level below a new column has an id of its own.
    let mapped = log().versions(2, 5).property("delta.columnMapping.mode", "name");
    let mapped = mapped.metadata("schemaString", r#"{"type":"struct","fields":[{"name":"id","type":"long","nullable":true,"metadata":{"delta.columnMapping.id":1,"delta.columnMapping.physicalName":"id"}}]}"#);
    let table = mapped.table();
    let wanted = (0..40).fold("long".to_owned(), |t, i| format!("struct<f{i}: {t}>"));
    sound(&table, &adding(&format!("deep = \"{wanted}\"")), &[]);
    assert_eq!(table.property("delta.columnMapping.maxColumnId").as_deref(), Some("42"));
}

/// Letters of many scripts, quotes, escapes, line breaks, controls; at least `bytes` of them.
fn text(bytes: usize) -> String {
    const SCRIPTS: &str = "\"quoted\" 'single' \\back\\slash\\ \n\r\n\t\u{0}\u{1}\u{1f}\u{7f}\u{85}\u{2028}\u{2029}\u{feff} \
        Grüße Ελληνικά Русский עברית العربية हिन्दी বাংলা தமிழ் ไทย 한국어 日本語 中文 አማርኛ ქართული Հայերեն ᐃᓄᒃᑎᑐᑦ 𐎀𐎁 👩‍👩‍👧 e\u{301} \
        {\"a\":[1]} </script> %00 ${x} \u{10ffff}";
    SCRIPTS.repeat(bytes / SCRIPTS.len() + 1)
}

#[tokio::test]
async fn properties_of_64_kb_in_every_script() {
    let long = text(64 << 10);
    let mut log = Log::new(vec![column("id", "long")])
        .metadata("description", long.as_str())
        .metadata("name", "n\"\u{2028}ü")
        .property("a \"key\"\n日本", "x")
        .property("empty", "");
    for i in 0..4 {
        log = log.property(&format!("long.{i}"), &format!("{i}{long}"));
    }
    log.schema["fields"][0]["metadata"] = json!({ "comment": long, "other": long });
    let table = log.table();
    let (old, schema) = (table.metadata(), schema_text(&table));
    sound(&table, &adding("more = \"string\""), &[]);
    let new = table.metadata();
    for key in ["id", "name", "description", "format", "partitionColumns", "createdTime"] {
        assert_eq!(new[key], old[key], "{key}");
    }
    assert_eq!(new["id"], TABLE_ID);
    for (key, value) in old["configuration"].as_object().unwrap() {
        assert!(new["configuration"][key] == *value, "{key} changed");
    }
    assert_eq!(inserted(&schema, &schema_text(&table)).matches("\"name\"").count(), 1);
    // In the file, too: the same escapes as before.
    let raw = |version: u64| {
        let text = std::fs::read_to_string(table.log_file(version)).unwrap();
        text.lines().find(|l| l.starts_with("{\"metaData\":")).unwrap().to_owned()
    };
    let (was, is) = (raw(0), raw(1));
    for (key, value) in old["configuration"].as_object().unwrap() {
        let pair = format!("{}:{value}", Value::from(key.as_str()));
        assert!(was.contains(&pair) && is.contains(&pair), "{key}");
    }
    append(&table, &[json!({ "id": 1, "more": "x" })]).await;
    assert_eq!(read(&table).await, [json!({ "id": 1, "more": "x" })]);

    // Such a value and such a comment can be set as well.
    let value = toml(&long);
    let steps = format!(
        "table_description = {value}\n[migrations.set_properties]\nnew = {value}\n[migrations.comments]\nid = {value}\n"
    );
    let table = Log::new(vec![column("id", "long")]).table();
    sound(&table, &kind(&steps), &["description", "property:new", "comment:id"]);
    assert!(table.property("new").unwrap() == long);
    assert!(table.metadata()["description"] == *long && table.field("id")["metadata"]["comment"] == *long);
}

/// A TOML string: JSON's escapes are TOML's, but for a few controls.
fn toml(text: &str) -> String {
    Value::from(text).to_string().replace('\u{7f}', "\\u007f")
}
