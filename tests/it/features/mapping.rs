//! Column mapping: ids, nested ids, physical names, `maxColumnId`.

use std::sync::Arc;

use delta_migrate::{IfMissing, Target};
use deltalake::arrow::datatypes::DataType;
use serde_json::{Value, json};

use super::{adding, adding_to, sound};
use crate::support::checkpoint::{read_mapped, write_rows};
use crate::support::store::{Trick, TrickStore};
use crate::support::{Log, Table, column, migrator, refused_everywhere, struct_type};

pub(crate) const MAX: &str = "delta.columnMapping.maxColumnId";
const ID: &str = "delta.columnMapping.id";
const NAME: &str = "delta.columnMapping.physicalName";

/// A field with its id and the physical name `p<id>`.
pub(crate) fn mapped(name: &str, data_type: impl Into<Value>, id: u32) -> Value {
    let mut field = column(name, data_type);
    field["metadata"] = json!({ ID: id, NAME: format!("p{id}") });
    field
}

fn array(element: impl Into<Value>) -> Value {
    json!({ "type": "array", "elementType": element.into(), "containsNull": true })
}

/// `id`, arrays of arrays of structs, a map to structs; ids 1, 2, 3, 4, 7, and 50 for an element.
pub(crate) fn fields() -> Vec<Value> {
    let inner = struct_type(vec![mapped("a", "long", 3)]);
    let mut data = mapped("data", array(array(inner)), 2);
    data["metadata"]["delta.columnMapping.nested.ids"] =
        json!({ "p2.element": 49, "p2.element.element": 50 });
    let value = struct_type(vec![mapped("since", "timestamp", 7)]);
    let map = json!({ "type": "map", "keyType": "string", "valueType": value, "valueContainsNull": true });
    vec![mapped("id", "long", 1), data, mapped("tags", map, 4)]
}

/// Those columns in a kind.
pub(crate) const BASE: &str = r#"
data = "array<array<struct<a: long>>>"
tags = "map<string, struct<since: timestamp>>"
"#;

fn log(mode: &str, max: Option<&str>) -> Log {
    let log = Log::new(fields()).versions(2, 5).property("delta.columnMapping.mode", mode);
    match max {
        Some(max) => log.property(MAX, max),
        None => log,
    }
}

const ADDED: &str = r#"
plain = { type = "string", comment = "first" }
"data.element.element.b" = "string"
"tags.value.why" = "string"
s = "struct<a: long, b: array<struct<c: string>>, m: map<string, struct<d: date>>>"
"a b,c=d" = "string"
"#;

fn max(table: &Table) -> i64 {
    table.property(MAX).unwrap().parse().unwrap()
}

#[tokio::test]
async fn new_fields_get_ids_and_physical_names_and_rows_stay_readable() {
    for mode in ["name", "id"] {
        for (given, highest) in [(Some("50"), 50), (Some("4"), 50), (Some("900"), 900), (None, 50)] {
            let table = log(mode, given).table();
            let rows = [json!({ "p1": 1 }), json!({ "p1": 2 })];
            let add = write_rows(&table, "part-0.parquet", vec![("p1", DataType::Int64)], &rows);
            table.commit_raw(&[add]);
            let before = read_mapped(&table).await;
            let done = sound(&table, &adding_to(BASE, ADDED), &[]);
            // plain, b, why, s and its five fields, `a b,c=d`
            assert_eq!(max(&table), highest + 10, "{mode} {given:?}");
            assert_eq!(table.field("plain")["metadata"][ID], highest + 1);
            assert_eq!(table.field("plain")["metadata"]["comment"], "first");
            assert_eq!(table.field("a b,c=d")["metadata"][ID], highest + 10);
            let inner = &table.field("data")["type"]["elementType"]["elementType"]["fields"][1];
            assert_eq!((&inner["name"], &inner["metadata"][ID]), (&json!("b"), &json!(highest + 2)));
            let value = &table.field("tags")["type"]["valueType"]["fields"][1];
            assert_eq!((&value["name"], &value["metadata"][ID]), (&json!("why"), &json!(highest + 3)));

            let after = read_mapped(&table).await;
            assert_eq!((before.len(), after.len()), (2, 2));
            for (before, after) in before.iter().zip(&after) {
                assert_eq!(
                    (&after["id"], &after["plain"], &after["a b,c=d"]),
                    (&before["id"], &Value::Null, &Value::Null)
                );
                assert_eq!(after.as_object().unwrap().len(), 6);
            }
            if given == Some("50") {
                broken(&done);
            }
            // Also where no property says how high the ids are.
            done.caught_in_fields("a new id is not above every old one", |f| {
                f[3]["metadata"][ID] = 48.into()
            });
        }
    }
}

fn broken(done: &super::Sound) {
    done.caught_in_fields("share id 1", |f| f[3]["metadata"][ID] = 1.into());
    done.caught_in_fields("share id 50", |f| f[3]["metadata"][ID] = 50.into());
    done.caught_in_fields("may have been used before", |f| f[3]["metadata"][ID] = 20.into());
    done.caught_in_fields("id 2147483648", |f| f[3]["metadata"][ID] = 2_147_483_648_i64.into());
    done.caught_in_fields("`plain` has no id", |f| {
        drop(f[3]["metadata"].as_object_mut().unwrap().remove(ID))
    });
    done.caught_in_fields("`plain` has no physical name", |f| f[3]["metadata"][NAME] = "".into());
    done.caught_in_fields("share the physical name p1", |f| f[3]["metadata"][NAME] = "p1".into());
    done.caught_in_fields("physical name `plain`", |f| f[3]["metadata"][NAME] = "plain".into());
    done.caught_in_fields("`s.a` has no id", |f| f[4]["type"]["fields"][0]["metadata"] = json!({}));
    done.caught_in_fields("`metadata` of `data` changed", |f| f[1]["metadata"][ID] = 99.into());
    done.caught_in_metadata("maxColumnId is Some(59)", |m| m["configuration"][MAX] = "59".into());
    done.caught_in_metadata("maxColumnId is None", |m| {
        m["configuration"].as_object_mut().unwrap().remove(MAX);
    });
}

#[test]
fn ids_go_on_from_commit_to_commit_and_names_never_repeat() {
    let table = log("name", None).table();
    sound(&table, &adding("one = \"string\""), &[]);
    let two = adding("one = \"string\"")
        + "[[migrations]]\ndescription = \"two\"\n[migrations.add_columns]\ntwo = \"string\"\n";
    sound(&table, &two, &[]);
    let of = |name: &str| table.field(name)["metadata"].clone();
    assert_eq!((of("one")[ID].as_i64(), of("two")[ID].as_i64(), max(&table)), (Some(51), Some(52), 52));
    assert_ne!(of("one")[NAME], of("two")[NAME]);
}

#[test]
fn a_commit_without_new_fields_leaves_the_highest_id_alone() {
    let table = log("name", Some("60")).table();
    let comment = super::kind("[migrations.comments]\nid = \"number\"");
    sound(&table, &comment, &["comment:id"]);
    assert_eq!(table.property(MAX).as_deref(), Some("60"));
    let table = log("name", None).table();
    sound(&table, &comment, &["comment:id"]);
    assert_eq!(table.property(MAX), None);
}

#[test]
fn without_mapping_the_feature_adds_no_ids_and_names_stay_plain() {
    let plain = || vec![column("id", "long")];
    for mode in [None, Some("none")] {
        let log = Log::new(plain()).versions(2, 5);
        let log = mode.map_or(log.clone(), |m| log.property("delta.columnMapping.mode", m));
        let table = log.clone().table();
        let done = sound(&table, &adding("more = \"struct<a: long>\""), &[]);
        assert_eq!(table.field("more")["metadata"], json!({}));
        assert_eq!(table.property(MAX), None);
        done.caught_in_fields("has an id without mapping", |f| f[1]["metadata"][ID] = 5.into());
        done.caught_in_fields("has a physical name without mapping", |f| f[1]["metadata"][NAME] = "x".into());
        refused_everywhere(&log.table(), &adding("\"a b\" = \"string\""), "invalid_name");
    }
}

#[test]
fn a_table_whose_ids_are_spent_is_refused() {
    let spent = log("name", Some("2147483647"));
    let error = refused_everywhere(&spent.table(), &adding("more = \"string\""), "unsupported_feature");
    assert!(error["message"].as_str().unwrap().contains("ids are spent"), "{error}");
    // One id is left for one field, not for two.
    let table = log("name", Some("2147483646")).table();
    sound(&table, &adding("more = \"string\""), &[]);
    assert_eq!(max(&table), 2_147_483_647);
    let table = log("name", Some("2147483646")).table();
    refused_everywhere(&table, &adding("more = \"struct<a: long>\""), "unsupported_feature");
}

#[test]
fn a_mode_that_is_not_known_and_a_line_break_in_a_name_are_refused() {
    let error =
        refused_everywhere(&log("both", None).table(), &adding("x = \"long\""), "unsupported_feature");
    assert!(error["message"].as_str().unwrap().contains("delta.columnMapping.mode=both"), "{error}");
    refused_everywhere(&log("name", None).table(), &adding("\"a\\nb\" = \"long\""), "invalid_name");
    refused_everywhere(&log("name", None).table(), &adding("s = \"struct<`a\\nb`: long>\""), "invalid_name");
}

/// A reader of version 1 knows no column mapping: a mode is a promise that nobody keeps.
#[test]
fn mapping_that_readers_are_not_told_of_is_refused() {
    let table = log("name", None).versions(1, 5).table();
    let error = refused_everywhere(&table, &adding("x = \"long\""), "unsupported_feature");
    assert!(error["message"].as_str().unwrap().contains("columnMapping"), "{error}");
}

/// Fields of a struct that the same commit adds, and mapping that is turned on in a lost race.
#[test]
fn a_field_inside_a_struct_of_the_same_commit_gets_an_id_of_its_own() {
    let kind = adding("s = \"struct<a: long>\"\nl = \"array<struct<a: long>>\"")
        + "[[migrations]]\ndescription = \"two\"\n[migrations.add_columns]\n\"s.b\" = \"struct<c: long>\"\n\
           \"l.element.b\" = \"long\"\n[migrations.comments]\n\"s.b.c\" = \"deep\"\n";
    let table = log("name", None).table();
    sound(&table, &kind, &[]);
    // s, s.a, l, l.element.a, then s.b, s.b.c, l.element.b.
    assert_eq!(max(&table), 57);
    let c = &table.field("s")["type"]["fields"][1]["type"]["fields"][0]["metadata"];
    assert_eq!((&c[ID], &c["comment"]), (&json!(56), &json!("deep")));
}

#[tokio::test]
async fn mapping_that_is_turned_on_in_a_lost_race_is_obeyed_by_the_next_attempt() {
    let table = Arc::new(Log::new(vec![column("id", "long")]).versions(2, 5).table());
    let other = table.clone();
    let store = TrickStore::on_put(move |n| {
        if n == 0 {
            other.change_metadata(|m| {
                m["schemaString"] = struct_type(vec![mapped("id", "long", 7)]).to_string().into();
                m["configuration"]["delta.columnMapping.mode"] = "name".into();
                m["configuration"][MAX] = "7".into();
            });
        }
        Trick::Pass
    });
    let migrator = migrator(&adding("more = \"string\""));
    let location = table.location_in(&store);
    migrator.migrate("facts", &location, Target::Newest, IfMissing::Refuse).await.unwrap();
    assert_eq!((table.newest(), max(&table)), (2, 8));
    assert_eq!(table.field("more")["metadata"][ID], 8);
    assert!(table.field("more")["metadata"][NAME].as_str().unwrap().starts_with("col-"));
    assert_eq!(table.field("id"), mapped("id", "long", 7));
}
