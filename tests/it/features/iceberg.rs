//! Tables that Iceberg readers share.

use serde_json::{Value, json};

use super::mapping::{BASE, MAX, fields, mapped};
use super::{adding, adding_to, sound};
use crate::support::{Log, refused_everywhere};

const NESTED: &str = "delta.columnMapping.nested.ids";
const ID: &str = "delta.columnMapping.id";

fn log(version: &str) -> Log {
    let mut features = vec!["columnMapping".to_owned(), format!("icebergCompat{version}")];
    if version == "V3" {
        features.extend(["rowTracking".to_owned(), "domainMetadata".to_owned()]);
    }
    let writer: Vec<&str> = features.iter().map(String::as_str).collect();
    let log =
        Log::new(fields()).features(&["columnMapping"], &writer).property("delta.columnMapping.mode", "name");
    let log = log.property(MAX, "50");
    if version == "V3" { log.property("delta.enableRowTracking", "true") } else { log }
}

fn active(version: &str) -> Log {
    log(version).property(&format!("delta.enableIcebergCompat{version}"), "true")
}

fn text(error: &Value) -> &str {
    error["message"].as_str().unwrap()
}

const COLLECTIONS: [&str; 4] =
    ["array<long>", "map<string, long>", "struct<a: array<long>>", "struct<a: struct<b: map<string, long>>>"];

#[test]
fn v1_takes_no_new_arrays_and_maps_while_it_is_active() {
    for wanted in COLLECTIONS {
        let kind = adding(&format!("x = \"{wanted}\""));
        let error = refused_everywhere(&active("V1").table(), &kind, "unsupported_feature");
        assert!(text(&error).contains("Iceberg V1"), "{error}");
        let done = sound(&log("V1").table(), &kind, &[]);
        done.caught_in_metadata("is an array or map under V1", |m| {
            m["configuration"]["delta.enableIcebergCompatV1"] = "true".into();
        });
        sound(&log("V1").property("delta.enableIcebergCompatV1", "false").table(), &kind, &[]);
    }
    sound(&active("V1").table(), &adding("x = \"struct<a: struct<b: long>>\""), &[]);
    // Not even inside a struct that is there.
    let inside = adding_to(BASE, "\"tags.value.more\" = \"array<long>\"");
    refused_everywhere(&active("V1").table(), &inside, "unsupported_feature");
}

#[test]
fn v2_and_v3_give_ids_to_elements_keys_and_values() {
    for version in ["V2", "V3"] {
        let table = active(version).table();
        let kind = adding_to(
            BASE,
            "deep = \"array<map<string, array<struct<inner: array<long>>>>>\"\n\"tags.value.more\" = \"array<long>\"\nplain = \"long\"",
        );
        let done = sound(&table, &kind, &[]);
        let deep = table.field("deep");
        // deep 51, element, key, value, value.element; inner with its own element.
        let nested = deep["metadata"][NESTED].as_object().unwrap();
        let physical = deep["metadata"]["delta.columnMapping.physicalName"].as_str().unwrap();
        let suffixes: Vec<&str> = nested.keys().map(|k| k.strip_prefix(physical).unwrap()).collect();
        assert_eq!(suffixes, [".element", ".element.key", ".element.value", ".element.value.element"]);
        let inner = &deep["type"]["elementType"]["valueType"]["elementType"]["fields"][0];
        assert_eq!(inner["metadata"][NESTED].as_object().unwrap().len(), 1);
        assert_eq!(table.field("plain")["metadata"].get(NESTED), None);
        // 50 before; 6 for `deep` and its parts, 1 for `inner`, 2 for `more`, 1 for `plain`.
        assert_eq!(table.property(MAX).as_deref(), Some("60"), "{deep}");

        done.caught_in_fields("nested ids of `deep` are []", |f| {
            f[3]["metadata"].as_object_mut().unwrap().remove(NESTED);
        });
        done.caught_in_fields("share id", |f| {
            let id = f[3]["metadata"][ID].clone();
            let nested = f[3]["metadata"][NESTED].as_object_mut().unwrap();
            nested.values_mut().for_each(|v| *v = id.clone());
        });
        // Without compatibility no part has an id.
        let table = log(version).table();
        sound(&table, &adding("x = \"array<long>\""), &[]);
        assert_eq!(table.field("x")["metadata"].get(NESTED), None);
    }
}

#[test]
fn a_type_that_iceberg_does_not_know_is_refused() {
    for version in ["V1", "V2", "V3"] {
        let mut log = active(version);
        log.protocol["readerFeatures"] = json!(["columnMapping", "variantType"]);
        log.protocol["writerFeatures"].as_array_mut().unwrap().push("variantType".into());
        let kind = adding("v = \"struct<v: variant>\"");
        let error = refused_everywhere(&log.table(), &kind, "unsupported_feature");
        assert!(text(&error).contains("Iceberg"), "{error}");
    }
}

#[test]
fn compatibility_that_the_table_does_not_keep_is_refused_by_name() {
    let plain = || {
        let mut first = mapped("id", "long", 1);
        first["metadata"] = json!({});
        Log::new(vec![first])
    };
    let kind = adding("x = \"long\"");
    for version in ["V1", "V2", "V3"] {
        let feature = format!("icebergCompat{version}");
        let property = format!("delta.enableIcebergCompat{version}");
        let log =
            plain().features(&["columnMapping"], &["columnMapping", &feature]).property(&property, "true");
        let error = refused_everywhere(&log.table(), &kind, "unsupported_feature");
        assert!(text(&error).contains(&format!("{property}=true without column mapping")), "{error}");
        let log =
            active(version).features(&["columnMapping"], &["columnMapping", "rowTracking", "domainMetadata"]);
        let error = refused_everywhere(&log.table(), &kind, "unsupported_feature");
        assert!(text(&error).contains(&format!("{property}=true without the feature {feature}")), "{error}");
    }
    let vectors = |version: &str| {
        let mut log = active(version);
        for list in ["readerFeatures", "writerFeatures"] {
            log.protocol[list].as_array_mut().unwrap().push("deletionVectors".into());
        }
        log
    };
    let error = refused_everywhere(&vectors("V1").table(), &kind, "unsupported_feature");
    assert!(text(&error).contains("deletionVectors"), "{error}");
    let error = refused_everywhere(
        &vectors("V2").property("delta.enableDeletionVectors", "true").table(),
        &kind,
        "unsupported_feature",
    );
    assert!(text(&error).contains("delta.enableDeletionVectors=true"), "{error}");
    sound(&vectors("V2").table(), &kind, &[]);
    sound(&vectors("V3").property("delta.enableDeletionVectors", "true").table(), &kind, &[]);
    let without = active("V3").property("delta.enableRowTracking", "false");
    let error = refused_everywhere(&without.table(), &kind, "unsupported_feature");
    assert!(text(&error).contains("without row tracking"), "{error}");
}

#[test]
fn deletion_vectors_are_not_turned_on_where_iceberg_does_not_know_them() {
    let kind = super::kind("enable_features = [\"deletionVectors\"]");
    for version in ["V1", "V2"] {
        let error = refused_everywhere(&active(version).table(), &kind, "unsupported_feature");
        assert!(text(&error).contains("`deletionVectors` can't be enabled"), "{error}");
    }
    sound(&active("V3").table(), &kind, &["protocol", "property:delta.enableDeletionVectors"]);
}
