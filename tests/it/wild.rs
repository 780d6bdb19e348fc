//! Tables as they are met in the wild: faults that users reported with other tools, by the numbers
//! of the list in the design, and tables of unusual size.

mod checkpoints;
mod size;

use deltalake::arrow::datatypes::{DataType, TimeUnit};
use serde_json::{Value, json};

use crate::features::{adding, adding_to, based, sound};
use crate::support::checkpoint::{read_mapped, write_rows};
use crate::support::command::on;
use crate::support::rows::{append, read};
use crate::support::{Log, column, refused_everywhere, required, struct_type};

const MAX: &str = "delta.columnMapping.maxColumnId";
const ID: &str = "delta.columnMapping.id";

fn mapped(name: &str, data_type: impl Into<Value>, id: u32) -> Value {
    let mut field = column(name, data_type);
    field["metadata"] = json!({ ID: id, "delta.columnMapping.physicalName": format!("p{id}") });
    field
}

fn named(fields: Vec<Value>) -> Log {
    Log::new(fields).versions(2, 5).property("delta.columnMapping.mode", "name")
}

fn array(element: Value) -> Value {
    json!({ "type": "array", "elementType": element, "containsNull": true })
}

/// delta-rs#4610.
#[test]
fn case_07_columns_that_differ_in_case_alone_are_a_typed_refusal() {
    let twice = |at: fn(Vec<Value>) -> Value| {
        let inner = at(vec![column("sf_gsp", "string"), column("SF_GSP", "string")]);
        Log::new(vec![column("id", "long"), column("s", inner)])
    };
    let top = Log::new(vec![column("id", "long"), column("sf_gsp", "string"), column("SF_GSP", "string")]);
    for log in [top, twice(struct_type), twice(|f| array(struct_type(f)))] {
        let error = refused_everywhere(&log.table(), &adding("x = \"string\""), "invalid_name");
        let text = error["message"].as_str().unwrap();
        assert!(text.contains("sf_gsp") && text.contains("SF_GSP"), "{error}");
    }
    // Letters outside ASCII have cases too.
    let log = Log::new(vec![column("id", "long"), column("größe", "string"), column("GRÖßE", "string")]);
    refused_everywhere(&log.table(), &adding("x = \"string\""), "invalid_name");
}

/// delta#462, delta#957.
#[tokio::test]
async fn case_08_space_comma_and_equals_sign_need_column_mapping() {
    let names = ["a b", "a,b", "a=b", "a;b", "a{b}", "(a)", "a\\tb"];
    for name in names {
        for column in [format!("\"{name}\" = \"string\""), format!("s = \"array<struct<`{name}`: long>>\"")] {
            let plain = Log::new(vec![column_id()]).table();
            let error = refused_everywhere(&plain, &adding(&column), "invalid_name");
            assert!(error["message"].as_str().unwrap().contains("column mapping"), "{error}");
        }
    }
    let table = named(vec![mapped("id", "long", 1)]).table();
    let add = write_rows(&table, "part-0.parquet", vec![("p1", DataType::Int64)], &[json!({ "p1": 1 })]);
    table.commit_raw(&[add]);
    let columns: Vec<String> = names.iter().map(|n| format!("\"{n}\" = \"string\"")).collect();
    let kind = adding(&(columns.join("\n") + "\ns = \"array<struct<`x y=z`: long>>\""));
    sound(&table, &kind, &[]);
    let rows = read_mapped(&table).await;
    let row = rows[0].as_object().unwrap();
    assert_eq!(
        (row["id"].as_i64(), &row["a,b"], &row["a\tb"], row.len()),
        (Some(1), &Value::Null, &Value::Null, 9)
    );
}

fn column_id() -> Value {
    column("id", "long")
}

fn upgrade(columns: &str) -> String {
    upgrade_of("", columns)
}

fn upgrade_of(base: &str, columns: &str) -> String {
    based(base, &format!("enable_features = [\"timestampNtz\"]\n[migrations.add_columns]\n{columns}"))
}

/// delta-rs#2882.
#[tokio::test]
async fn case_09_timestamp_ntz_on_a_1_2_table_with_a_required_column_keeps_invariants() {
    let log = Log::new(vec![required("id", "long")]);
    refused_everywhere(&log.clone().table(), &adding("t = \"timestamp_ntz\""), "unsupported_feature");
    let table = log.table();
    let entry = sound(&table, &upgrade("t = \"timestamp_ntz\""), &["protocol"]).entry;
    let writers = table.action(entry, "protocol")["writerFeatures"].clone();
    assert_eq!(writers, json!(["appendOnly", "invariants", "timestampNtz"]));
    let time = DataType::Timestamp(TimeUnit::Microsecond, None);
    let row = json!({ "id": 1, "t": "2026-12-01T10:11:12" });
    let add = write_rows(&table, "part-0.parquet", vec![("id", DataType::Int64), ("t", time)], &[row]);
    table.commit_raw(&[add]);
    assert_eq!(read(&table).await[0]["t"], "2026-12-01T10:11:12");
}

/// trino#24158.
#[tokio::test]
async fn case_10_timestamp_ntz_on_a_1_4_table_keeps_the_change_data_feed() {
    let table =
        Log::new(vec![column_id()]).versions(1, 4).property("delta.enableChangeDataFeed", "true").table();
    let entry = sound(&table, &upgrade("t = \"timestamp_ntz\""), &["protocol"]).entry;
    let writers = table.action(entry, "protocol")["writerFeatures"].to_string();
    for name in ["appendOnly", "invariants", "checkConstraints", "changeDataFeed", "generatedColumns"] {
        assert!(writers.contains(&format!("\"{name}\"")), "{name} is not in {writers}");
    }
    assert_eq!(table.property("delta.enableChangeDataFeed").as_deref(), Some("true"));
    assert_eq!(table.load().await.version(), Some(entry));
}

#[tokio::test]
async fn case_11_timestamp_ntz_inside_a_map_does_not_slip_past() {
    for wanted in
        ["map<string, timestamp_ntz>", "map<timestamp_ntz, long>", "array<map<string, array<timestamp_ntz>>>"]
    {
        let columns = format!("t = \"{wanted}\"");
        let log = Log::new(vec![column_id()]);
        refused_everywhere(&log.clone().table(), &adding(&columns), "unsupported_feature");
        // An older feature list without it does not help.
        let listed = log.clone().features(&["deletionVectors"], &["deletionVectors"]);
        refused_everywhere(&listed.table(), &adding(&columns), "unsupported_feature");
        let table = log.table();
        let entry = sound(&table, &upgrade(&columns), &["protocol"]).entry;
        assert_eq!(table.load().await.version(), Some(entry), "{wanted}");
    }
    // Inside a struct that is there already as well.
    let log = Log::new(vec![column_id(), column("s", struct_type(vec![column("a", "long")]))]);
    let inside = "\"s.t\" = \"map<string, timestamp_ntz>\"";
    let base = "s = \"struct<a: long>\"";
    refused_everywhere(&log.clone().table(), &adding_to(base, inside), "unsupported_feature");
    sound(&log.table(), &upgrade_of(base, inside), &["protocol"]);
}

/// delta-rs#3305, delta-kernel-rs#739.
#[test]
fn case_12_void_survives_and_an_unknown_type_is_a_typed_refusal() {
    let inner = struct_type(vec![column("nothing", "void"), column("a", "long")]);
    let table =
        Log::new(vec![column_id(), column("gone", "void"), column("s", array(inner.clone()))]).table();
    sound(
        &table,
        &adding_to("s = \"array<struct<a: long>>\"", "\"s.element.b\" = \"string\"\nmore = \"long\""),
        &[],
    );
    assert_eq!(table.field("gone"), column("gone", "void"));
    assert_eq!(table.field("s")["type"]["elementType"]["fields"][0], column("nothing", "void"));
    for name in ["char(10)", "varchar(5)", "null", "decimal(39,0)", "Long", "json"] {
        for field in [column("odd", name), column("odd", array(struct_type(vec![column("in", name)])))] {
            let table = Log::new(vec![column_id(), field]).table();
            let error = refused_everywhere(&table, &adding("x = \"string\""), "unsupported_feature");
            let text = error["message"].as_str().unwrap();
            assert!(text.contains(name) && text.contains("odd"), "{error}");
        }
    }
}

/// delta#1731.
#[tokio::test]
async fn case_13_a_field_below_arrays_of_arrays() {
    let data = |a: Value| array(array(struct_type(vec![a])));
    let base = "data = \"array<array<struct<a: long>>>\"";
    let kind = adding_to(base, "\"data.element.element.b\" = \"array<long>\"");
    let plain = Log::new(vec![column_id(), column("data", data(column("a", "long")))]).table();
    append(&plain, &[json!({ "id": 1, "data": [[{ "a": 5 }]] })]).await;
    sound(&plain, &kind, &[]);
    let wanted = column("b", array("long".into()));
    assert_eq!(plain.field("data")["type"]["elementType"]["elementType"]["fields"][1], wanted);
    assert_eq!(read(&plain).await.len(), 1);
    append(&plain, &[json!({ "id": 2, "data": [[{ "a": 6, "b": [7] }]] })]).await;
    assert!(read(&plain).await.iter().any(|r| r["data"] == json!([[{ "a": 6, "b": [7] }]])));

    let table = named(vec![mapped("id", "long", 1), mapped("data", data(mapped("a", "long", 3)), 2)]).table();
    sound(&table, &kind, &[]);
    let b = table.field("data")["type"]["elementType"]["elementType"]["fields"][1].clone();
    assert_eq!((&b["name"], &b["nullable"], &b["metadata"][ID]), (&json!("b"), &json!(true), &json!(4)));
    assert_eq!(table.property(MAX).as_deref(), Some("4"));
    // A path that is no struct is no place for a field.
    for path in ["data.b", "data.element.b", "data.key.b", "id.b"] {
        let kind = adding_to(base, &format!("\"{path}\" = \"long\""));
        let table = Log::new(vec![column_id(), column("data", data(column("a", "long")))]).table();
        let ran = on(&table, &kind, &["apply", table.arg()]);
        assert_eq!((ran.code, &ran.json()["error"]["code"]), (2, &json!("usage")), "{path}: {ran:?}");
        assert_eq!(table.versions(), [0]);
    }
}

/// delta#3234, delta#4363.
#[test]
fn case_14_new_ids_are_above_nested_ones_and_a_missing_maximum_is_derived() {
    let mut tags = mapped(
        "tags",
        json!({ "type": "map", "keyType": "string", "valueType": array("long".into()),
        "valueContainsNull": true }),
        2,
    );
    tags["metadata"]["delta.columnMapping.nested.ids"] =
        json!({ "p2.key": 100, "p2.value": 101, "p2.value.element": 102 });
    // PROTOCOL.md's own example has the ids under the name that Parquet files have them under.
    let mut parquet = tags.clone();
    let ids = parquet["metadata"].as_object_mut().unwrap().remove("delta.columnMapping.nested.ids").unwrap();
    parquet["metadata"]["parquet.field.nested.ids"] = ids;
    let table = named(vec![mapped("id", "long", 1), parquet]).table();
    sound(&table, &adding("more = \"long\""), &[]);
    assert_eq!(table.field("more")["metadata"][ID], 103);
    for max in [None, Some("2"), Some("102"), Some("500")] {
        let log = named(vec![mapped("id", "long", 1), tags.clone()]);
        let table = max.map_or(log.clone(), |m| log.property(MAX, m)).table();
        sound(&table, &adding("more = \"long\""), &[]);
        let wanted = if max == Some("500") { 501 } else { 103 };
        assert_eq!(table.field("more")["metadata"][ID], wanted, "{max:?}");
        assert_eq!(table.property(MAX), Some(wanted.to_string()), "{max:?}");
        assert_eq!(table.field("tags"), tags);
    }
    for max in ["not a number", "9223372036854775807"] {
        let table = named(vec![mapped("id", "long", 1)]).property(MAX, max).table();
        refused_everywhere(&table, &adding("more = \"long\""), "unsupported_feature");
    }
}
