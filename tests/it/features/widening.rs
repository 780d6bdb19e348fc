//! `widen_types`: the types that the protocol allows, with their history, and old rows read as before.

use std::sync::Arc;

use deltalake::arrow::datatypes::{DataType, Field};
use serde_json::{Value, json};

use super::mapping::mapped;
use super::{based, sound, sound_after};
use crate::support::checkpoint::write_rows;
use crate::support::command::on;
use crate::support::judge::Before;
use crate::support::rows::{scan_folder, shown};
use crate::support::table::copied;
use crate::support::{Log, Table, apply, column, refused_everywhere, struct_type};

const FEATURE: [&str; 1] = ["typeWidening"];

fn with(name: &str, data_type: impl Into<Value>, metadata: Value) -> Value {
    let mut field = column(name, data_type);
    field["metadata"] = metadata;
    field
}

fn log(fields: Vec<Value>) -> Log {
    Log::new([vec![column("id", "long")], fields].concat())
        .features(&FEATURE, &FEATURE)
        .property("delta.enableTypeWidening", "true")
}

fn widen(base: &str, steps: &str) -> String {
    based(base, &format!("widen_types = {steps}"))
}

fn changes(table: &Table, field: &str) -> Value {
    table.field(field)["metadata"]["delta.typeChanges"].clone()
}

/// The changes that the protocol allows, each as the table has it, as the kind asks, and as it becomes.
const ALLOWED: [(&str, &str, bool); 17] = [
    ("byte", "short", true),
    ("byte", "integer", true),
    ("short", "integer", true),
    ("byte", "long", true),
    ("integer", "long", true),
    ("float", "double", true),
    ("decimal(6,2)", "decimal(10,2)", true),
    ("byte", "double", false),
    ("short", "double", false),
    ("integer", "double", false),
    ("decimal(6,2)", "decimal(10,4)", false),
    ("byte", "decimal(10,0)", false),
    ("short", "decimal(12,2)", false),
    ("integer", "decimal(10,0)", false),
    ("long", "decimal(20,0)", false),
    ("long", "decimal(22,2)", false),
    ("date", "timestamp_ntz", false),
];

#[test]
fn what_the_protocol_allows_is_done_and_written_down() {
    for (from, to, _) in ALLOWED {
        let features = ["typeWidening", "timestampNtz"];
        let table = log(vec![column("n", from)]).features(&features, &features).table();
        let done = sound(
            &table,
            &widen(&format!("n = \"{from}\""), &format!("{{ n = \"{to}\" }}")),
            &[&format!("widen:n={to}")],
        );
        assert_eq!(table.field("n")["type"], to);
        assert_eq!(changes(&table, "n"), json!([{ "fromType": from, "toType": to }]));
        done.caught_in_fields("the type changes of `n`", |f| {
            f[1]["metadata"].as_object_mut().unwrap().remove("delta.typeChanges");
        });
        done.caught_in_fields("the type changes of `n`", |f| {
            f[1]["metadata"]["delta.typeChanges"][0]["fromType"] = "boolean".into();
        });
        done.caught_in_fields("`n` is", |f| f[1]["type"] = "string".into());
    }
}

#[test]
fn iceberg_allows_less() {
    for version in ["V1", "V2", "V3"] {
        let compat = format!("icebergCompat{version}");
        for (from, to, iceberg) in ALLOWED {
            let writers = ["typeWidening", "timestampNtz", "columnMapping", &compat];
            // The feature alone counts, also while its property is off.
            let log = Log::new(vec![mapped("id", "long", 1), mapped("n", from, 2)])
                .features(&writers[..3], &writers)
                .property("delta.columnMapping.mode", "name")
                .property("delta.columnMapping.maxColumnId", "2")
                .property("delta.enableTypeWidening", "true");
            let chain = widen(&format!("n = \"{from}\""), &format!("{{ n = \"{to}\" }}"));
            if iceberg {
                sound(&log.table(), &chain, &[&format!("widen:n={to}")]);
            } else {
                let error = refused_everywhere(&log.table(), &chain, "unsupported_feature");
                assert!(error["message"].as_str().unwrap().contains("Iceberg"), "{error}");
            }
        }
    }
}

#[test]
fn parts_of_columns_say_where_they_are() {
    let map = |value: Value| json!({ "type": "map", "keyType": "float", "valueType": value, "valueContainsNull": false });
    let inner = struct_type(vec![column("a", "short"), with("b", "integer", json!({ "comment": "c" }))]);
    let array = json!({ "type": "array", "elementType": map(inner), "containsNull": false });
    let old = json!([{ "fromType": "byte", "toType": "short" }]);
    let n = with("n", "short", json!({ "x": 1.10, "delta.typeChanges": old, "y": 2 }));
    let plain = with("tags", map("byte".into()), json!({}));
    let table = log(vec![with("items", array, json!({ "k": "v" })), n, plain]).table();
    let base = "items = \"array<map<float, struct<a: short, b: int>>>\"\nn = \"short\"\ntags = \"map<float, byte>\"\n";
    let steps = "{ items = \"array<map<double, struct<a: int, b: int>>>\", \"items.element.value.b\" = \"long\", \
                 n = \"long\", \"tags.value\" = \"int\" }";
    let may = [
        "widen:items.element.key=double",
        "widen:items.element.value.a=integer",
        "widen:items.element.value.b=long",
        "widen:n=long",
        "widen:tags.value=integer",
    ];
    sound(&table, &widen(base, steps), &may);
    let items = table.field("items");
    assert_eq!(
        items["metadata"],
        json!({ "k": "v", "delta.typeChanges": [{ "fromType": "float", "toType": "double", "fieldPath": "element.key" }] })
    );
    let fields = items["type"]["elementType"]["valueType"]["fields"].clone();
    assert_eq!(
        fields[0]["metadata"]["delta.typeChanges"],
        json!([{ "fromType": "short", "toType": "integer" }])
    );
    assert_eq!(
        fields[1]["metadata"]["delta.typeChanges"],
        json!([{ "fromType": "integer", "toType": "long" }])
    );
    assert_eq!(items["type"]["containsNull"], false);
    let kept = json!([{ "fromType": "byte", "toType": "short" }, { "fromType": "short", "toType": "long" }]);
    assert_eq!(table.field("n")["metadata"], json!({ "x": 1.10, "delta.typeChanges": kept, "y": 2 }));
    assert_eq!(
        changes(&table, "tags"),
        json!([{ "fromType": "byte", "toType": "integer", "fieldPath": "value" }])
    );
    assert_eq!(apply(&table, &widen(base, steps)).table()["outcome"], "current");
}

/// The preview wrote the log version of each change, and its readers may ask for it.
#[test]
fn the_preview_gets_the_log_version_too() {
    let preview = ["typeWidening-preview"];
    let table = log(vec![column("n", "short")]).features(&preview, &preview).table();
    table.commit_nothing();
    sound(&table, &widen("n = \"short\"", "{ n = \"long\" }"), &["widen:n=long"]);
    assert_eq!(changes(&table, "n"), json!([{ "fromType": "short", "toType": "long", "tableVersion": 2 }]));
}

#[test]
fn a_table_gets_the_feature_only_where_the_migration_names_it() {
    let base = "n = \"integer\"";
    let plain = || Log::new(vec![column("id", "long"), column("n", "integer")]);
    let off = || plain().features(&FEATURE, &FEATURE);
    for log in [plain(), off(), off().property("delta.enableTypeWidening", "false")] {
        let error = refused_everywhere(&log.table(), &widen(base, "{ n = \"long\" }"), "unsupported_feature");
        assert!(error["hint"].as_str().unwrap().contains("enable_features = [\"typeWidening\"]"), "{error}");
    }
    let named = based(base, "enable_features = [\"typeWidening\"]\nwiden_types = { n = \"long\" }");
    for log in [plain(), off()] {
        let table = log.table();
        sound(&table, &named, &["widen:n=long", "protocol", "property:delta.enableTypeWidening"]);
        assert!(table.metadata()["configuration"]["delta.enableTypeWidening"] == "true");
    }
    // `timestamp_ntz` asks for a feature of its own.
    let day = log(vec![column("day", "date")]);
    let error = refused_everywhere(
        &day.table(),
        &widen("day = \"date\"", "{ day = \"timestamp_ntz\" }"),
        "unsupported_feature",
    );
    assert!(error["message"].as_str().unwrap().contains("timestampNtz"), "{error}");
}

#[test]
fn what_is_as_wide_already_is_left_and_what_can_not_be_is_refused() {
    let chain = widen("n = \"integer\"", "{ n = \"long\" }");
    // Somebody widened it before: there is nothing to write down.
    let table = log(vec![column("n", "long")]).table();
    let plan = on(&table, &chain, &["plan", table.arg()]).json()["plans"][0].clone();
    assert_eq!(
        plan["commits"][0]["migrations"][0]["changes"],
        json!([{ "change": "leave_column", "path": "n" }])
    );
    sound(&table, &chain, &[]);
    assert_eq!(table.field("n"), column("n", "long"));
    // Wider than that: no long can be made of it, and the stamp would promise one.
    for other in ["double", "decimal(10,0)"] {
        let error = refused_everywhere(&log(vec![column("n", other)]).table(), &chain, "type_conflict");
        assert!(error["hint"].as_str().unwrap().contains("`retype_columns`"), "{error}");
    }
}

#[test]
fn references_and_partitions_hold_a_type() {
    let base = "n = \"integer\"\nday = \"date\"\n";
    let chain = widen(base, "{ n = \"long\" }");
    let of = |key: &str, value: Value, on: usize| {
        let mut fields = vec![column("n", "integer"), column("day", "date")];
        fields[on]["metadata"][key] = value;
        log(fields)
    };
    let fine = || log(vec![column("n", "integer"), column("day", "date")]);
    let cases = [
        fine().property("delta.constraints.c", "N > 0"),
        of("delta.generationExpression", "make_date(n, 1, 1)".into(), 1),
        of("delta.generationExpression", "1 + 1".into(), 0),
        of("delta.identity.start", 1.into(), 0),
        of("delta.invariants", json!({ "expression": { "expression": "n > 3" } }).to_string().into(), 0),
    ];
    for log in cases {
        refused_everywhere(&log.table(), &chain, "column_in_use");
    }
    let table = fine().property("delta.dataSkippingStatsColumns", "n").partitioned(&["n"]).table();
    sound(&table, &chain, &["widen:n=long"]);
    // A day is written otherwise than a timestamp, and stays so in the log.
    let features = ["typeWidening", "timestampNtz"];
    let by_day = fine().features(&features, &features).partitioned(&["day"]);
    let error =
        refused_everywhere(&by_day.table(), &widen(base, "{ day = \"timestamp_ntz\" }"), "column_in_use");
    assert!(error["message"].as_str().unwrap().contains("partition"), "{error}");
    let broken = of("delta.typeChanges", "many".into(), 0);
    refused_everywhere(&broken.table(), &chain, "unsupported_feature");
}

#[test]
fn narrower_and_other_types_are_no_kind_with_the_ways_out() {
    for (from, to) in [
        ("long", "integer"),
        ("string", "long"),
        ("double", "decimal(38,18)"),
        ("long", "double"),
        ("decimal(10,2)", "decimal(10,4)"),
        ("decimal(10,2)", "decimal(11,4)"),
        ("integer", "decimal(9,0)"),
        ("timestamp", "timestamp_ntz"),
        ("struct<a: int>", "struct<a: long, b: string>"),
        ("struct<a: int>", "struct<b: long>"),
        ("array<int>", "array<string>"),
    ] {
        let table = Table::missing();
        let ran = on(
            &table,
            &widen(&format!("n = \"{from}\""), &format!("{{ n = \"{to}\" }}")),
            &["status", table.arg()],
        );
        assert_eq!(ran.code, 2, "{from} → {to}: {ran:?}");
        let said = format!("{}{}", ran.stdout, ran.stderr);
        for words in ["can't be widened to", "a new column that `update` fills", "`retype_columns`"] {
            assert!(said.contains(words), "{from} → {to}: {said}");
        }
    }
}

/// Rows that were written before and after are read alike, as the kernel reads them.
#[tokio::test]
async fn old_and_new_files_are_read_as_one_table() {
    let table = Log::new(vec![
        column("id", "long"),
        column("n", "integer"),
        column("f", "float"),
        column("p", struct_type(vec![column("a", "short")])),
    ])
    .table();
    let inner = |t: DataType| DataType::Struct(vec![Arc::new(Field::new("a", t, true))].into());
    let row = |id: i64, n: i64, f: f64| json!({ "id": id, "n": n, "f": f, "p": { "a": n } });
    let old = vec![
        ("id", DataType::Int64),
        ("n", DataType::Int32),
        ("f", DataType::Float32),
        ("p", inner(DataType::Int16)),
    ];
    let add = write_rows(&table, "old.parquet", old, &[row(1, 7, 1.5), row(2, -32_768, -0.25)]);
    table.commit_raw(&[add]);
    assert_eq!(scan_folder(&table).await.len(), 2);
    let base = "n = \"integer\"\nf = \"float\"\np = \"struct<a: short>\"\n";
    let steps = "enable_features = [\"typeWidening\"]\nwiden_types = { n = \"long\", f = \"double\", \"p.a\" = \"long\" }";
    let may =
        ["widen:n=long", "widen:f=double", "widen:p.a=long", "protocol", "property:delta.enableTypeWidening"];
    sound(&table, &based(base, steps), &may);
    let new = vec![
        ("id", DataType::Int64),
        ("n", DataType::Int64),
        ("f", DataType::Float64),
        ("p", inner(DataType::Int64)),
    ];
    let add = write_rows(&table, "new.parquet", new, &[row(3, 3_000_000_000, 0.1)]);
    table.commit_raw(&[add]);
    let mut rows = scan_folder(&table).await;
    rows.sort_by_key(|r| r["id"].as_i64());
    assert_eq!(rows, [row(1, 7, 1.5), row(2, -32_768, -0.25), row(3, 3_000_000_000, 0.1)]);
}

/// Spark's own tables, whose history of changes is continued.
#[tokio::test]
async fn tables_that_spark_widened_are_widened_further() {
    let Some(table) = copied("delta--type-widening") else { return };
    let before = shown(&table).await;
    assert!(!before.is_empty());
    let base =
        "kind = \"facts\"\n[columns]\ndecimal_decimal_same_scale = \"decimal(20,2)\"\nbyte_long = \"long\"\n";
    let chain = format!(
        "{base}[[migrations]]\ndescription = \"one\"\nwiden_types = {{ decimal_decimal_same_scale = \"decimal(30,2)\" }}\n"
    );
    let state = Before::of(&table);
    let version = table.newest() + 1;
    sound_after(&table, &chain, &["widen:decimal_decimal_same_scale=decimal(30,2)"], state);
    assert_eq!(
        changes(&table, "decimal_decimal_same_scale"),
        json!([
            { "toType": "decimal(20,2)", "fromType": "decimal(10,2)", "tableVersion": 2 },
            { "fromType": "decimal(20,2)", "toType": "decimal(30,2)", "tableVersion": version },
        ])
    );
    assert_eq!(shown(&table).await, before);
    let Some(table) = copied("delta--type-widening-nested") else { return };
    // The kernel of deltalake 1.1 does not read this table at all, as Spark left it: an array was widened.
    let base = "kind = \"facts\"\n[columns]\nstruct = \"struct<a: long>\"\n";
    let chain = format!(
        "{base}[[migrations]]\ndescription = \"one\"\nwiden_types = {{ \"struct.a\" = \"decimal(20,0)\" }}\n"
    );
    let state = Before::of(&table);
    sound_after(&table, &chain, &["widen:struct.a=decimal(20,0)"], state);
    let told = table.field("struct")["type"]["fields"][0]["metadata"]["delta.typeChanges"].clone();
    assert_eq!(told.as_array().unwrap().len(), 2, "{told}");
}

/// Nothing was ever narrower in a new table.
#[test]
fn a_new_table_is_born_wide_and_without_a_history() {
    let table = Table::missing();
    let chain = based(
        "n = \"integer\"\np = \"struct<a: array<short not null>>\"\n",
        "enable_features = [\"typeWidening\"]\nwiden_types = { n = \"long\", p = \"struct<a: array<long>>\" }",
    );
    assert_eq!(apply(&table, &chain).table()["outcome"], "created");
    assert_eq!(table.field("n"), column("n", "long"));
    let array = json!({ "type": "array", "elementType": "long", "containsNull": false });
    assert_eq!(table.field("p")["type"], struct_type(vec![column("a", array)]));
    let protocol = table.action(0, "protocol");
    assert!(protocol["readerFeatures"].to_string().contains("\"typeWidening\""), "{protocol}");
    assert_eq!(table.property("delta.enableTypeWidening").as_deref(), Some("true"));
    assert_eq!(apply(&table, &chain).table()["outcome"], "current");
}
