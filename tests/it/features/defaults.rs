//! `set_defaults` and `drop_constraints`.

use serde_json::json;

use super::{based, kind, sound};
use crate::support::command::on;
use crate::support::{Log, Table, apply, column, refused_everywhere};

fn log() -> Log {
    let mut code = column("code", "string");
    code["metadata"] = json!({ "comment": "c", "CURRENT_DEFAULT": "'a'", "n": 1.10 });
    Log::new(vec![column("id", "long"), code, column("v", "variant")])
        .features(&["variantType"], &["allowColumnDefaults", "variantType"])
}

const BASE: &str = "code = \"string\"\n";

#[test]
fn a_default_is_set_for_later_writes_and_nothing_else_changes() {
    let table = log().table();
    let chain = based(BASE, "set_defaults = { id = \"-1\", code = \"concat('a', \\\"b\\\")\" }");
    let done = sound(&table, &chain, &["default:id", "default:code"]);
    assert_eq!(table.field("id")["metadata"], json!({ "CURRENT_DEFAULT": "-1" }));
    let code = table.field("code")["metadata"].clone();
    assert_eq!(code, json!({ "comment": "c", "CURRENT_DEFAULT": "concat('a', \"b\")", "n": 1.10 }));
    done.caught_in_fields("the metadata of `code` changed", |f| f[1]["metadata"]["comment"] = "d".into());
    done.caught_in_fields("`id` has no default", |f| f[0]["metadata"] = json!({ "x": 1 }));
}

#[test]
fn plans_tell_the_default_before() {
    let table = log().table();
    let chain = based(BASE, "set_defaults = { id = \"1\", code = \"'b'\" }");
    let plan = on(&table, &chain, &["plan", table.arg()]).json()["plans"][0].clone();
    assert_eq!(
        plan["commits"][0]["migrations"][0]["changes"],
        json!([
            { "change": "set_default", "path": "id", "value": "1" },
            { "change": "set_default", "path": "code", "value": "'b'", "was": "'a'" },
        ])
    );
    // The same default again is nothing to do.
    let same = based(BASE, "set_defaults = { code = \"'a'\" }");
    let plan = on(&table, &same, &["plan", table.arg()]).json()["plans"][0].clone();
    assert_eq!(plan["commits"][0]["migrations"][0]["changes"], json!([]));
}

#[test]
fn a_table_gets_defaults_only_with_the_feature() {
    let plain = || Log::new(vec![column("id", "long"), column("code", "string")]);
    let step = "set_defaults = { code = \"'x'\" }";
    let error = refused_everywhere(&plain().table(), &based(BASE, step), "unsupported_feature");
    assert!(
        error["hint"].as_str().unwrap().contains("enable_features = [\"allowColumnDefaults\"]"),
        "{error}"
    );
    refused_everywhere(&Table::missing(), &based(BASE, step), "unsupported_feature");
    let named = based(BASE, &format!("enable_features = [\"allowColumnDefaults\"]\n{step}"));
    let table = plain().table();
    sound(&table, &named, &["protocol", "default:code"]);
    let protocol = table.action(1, "protocol");
    assert!(protocol["writerFeatures"].to_string().contains("allowColumnDefaults"), "{protocol}");
    assert_eq!(protocol.get("readerFeatures"), None);
}

#[test]
fn generated_columns_identities_and_variants_take_none() {
    for key in ["delta.generationExpression", "delta.identity.start"] {
        let mut log = log();
        log.schema["fields"][0]["metadata"][key] = "1".into();
        refused_everywhere(&log.table(), &based(BASE, "set_defaults = { id = \"1\" }"), "column_in_use");
    }
    let variant = "kind = \"facts\"\n[columns]\nv = \"variant\"\n[[migrations]]\ndescription = \"d\"\nset_defaults = { v = \"1\" }\n";
    let table = log().table();
    let ran = on(&table, variant, &["status", table.arg()]);
    assert_eq!(ran.code, 2, "{ran:?}");
    sound(&table, &variant.replace("\"1\"", "\"NULL\""), &["default:v"]);
}

/// §Default Columns rules out a default in the command that adds the column, because rows that are there
/// have none. They read NULL here as well: the default is for later writes.
#[test]
fn a_column_that_the_same_commit_adds_can_have_a_default() {
    let table = log().table();
    let steps = "set_defaults = { more = \"1\" }\nadd_columns = { more = \"long\" }";
    let ran = apply(&table, &based(BASE, steps));
    assert_eq!(ran.table()["outcome"], "migrated", "{ran:?}");
    assert_eq!(table.field("more")["metadata"], json!({ "CURRENT_DEFAULT": "1" }));
}

/// A new table has its newest defaults from the start, under the newest names.
#[test]
fn a_new_table_is_born_with_its_defaults() {
    for mapping in ["", "[properties]\n\"delta.columnMapping.mode\" = \"name\"\n"] {
        let base = format!("{BASE}gone = \"long\"\n{mapping}");
        let steps = "enable_features = [\"allowColumnDefaults\"]\n\
            set_defaults = { id = \"1\", code = \"'x'\", gone = \"2\" }\n\
            [[migrations]]\ndescription = \"two\"\ndestructive = true\n\
            rename_columns = { code = \"name\" }\ndrop_columns = [\"gone\"]\n";
        let chain = based(&base, steps);
        let table = Table::missing();
        assert_eq!(apply(&table, &chain).table()["outcome"], "created");
        assert_eq!(table.column_names(), ["id", "name"]);
        assert_eq!(table.field("id")["metadata"]["CURRENT_DEFAULT"], "1");
        assert_eq!(table.field("name")["metadata"]["CURRENT_DEFAULT"], "'x'");
        let protocol = table.action(0, "protocol");
        assert!(protocol["writerFeatures"].to_string().contains("allowColumnDefaults"), "{protocol}");
        assert_eq!(apply(&table, &chain).table()["outcome"], "current");
    }
}

#[test]
fn a_constraint_goes_whatever_the_case_of_its_name() {
    let log = Log::new(vec![column("id", "long")])
        .versions(1, 3)
        .property("delta.constraints.idPositive", "id > 0")
        .property("delta.constraints.other", "id < 9")
        .property("delta.constraints", "x");
    let table = log.table();
    let chain = kind("drop_constraints = [\"IDPOSITIVE\", \"never.there\"]");
    let plan = on(&table, &chain, &["plan", table.arg()]).json()["plans"][0].clone();
    assert_eq!(
        plan["commits"][0]["migrations"][0]["changes"],
        json!([{ "change": "drop_constraint", "key": "delta.constraints.idPositive", "was": "id > 0" }])
    );
    let done = sound(&table, &chain, &["property:delta.constraints.idPositive"]);
    assert_eq!(table.property("delta.constraints.idPositive"), None);
    assert_eq!(table.property("delta.constraints.other").as_deref(), Some("id < 9"));
    assert_eq!(table.property("delta.constraints").as_deref(), Some("x"));
    done.caught_in_metadata("property delta.constraints.other changed", |m| {
        m["configuration"].as_object_mut().unwrap().remove("delta.constraints.other");
    });
    assert_eq!(apply(&table, &chain).table()["outcome"], "current");
}
