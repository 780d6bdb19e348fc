//! Features that ask for nothing but that everything of theirs stays as it is, and row tracking.

use serde_json::{Value, json};

use super::{adding, based, part, sound};
use crate::support::command::on;
use crate::support::{Log, Table, column, refused_everywhere, required};

fn with(name: &str, data_type: &str, metadata: Value) -> Value {
    let mut field = column(name, data_type);
    field["metadata"] = metadata;
    field
}

fn more() -> String {
    adding("more = \"string\"")
}

/// Writes version 0 with a schema string of another writer's bytes.
fn raw_schema(log: Log, fields: &str) -> Table {
    let schema = format!("{{\"type\":\"struct\",\"fields\":[{fields}]}}");
    log.metadata("schemaString", schema).table()
}

fn schema_text(table: &Table) -> String {
    table.metadata()["schemaString"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn row_tracking_gets_its_tag_and_keeps_its_names_and_its_mark() {
    let names = |log: Log| {
        log.property("delta.enableRowTracking", "true")
            .property("delta.rowTracking.materializedRowIdColumnName", "_row-id-col-1")
            .property("delta.rowTracking.materializedRowCommitVersionColumnName", "_row_version")
    };
    let log = Log::new(vec![column("id", "long")]).features(&[], &["rowTracking", "domainMetadata"]);
    let table = names(log.clone()).table();
    let mark = json!({ "domain": "delta.rowTracking", "configuration": "{\"rowIdHighWaterMark\":41}", "removed": false });
    table.commit_raw(&[json!({ "domainMetadata": mark })]);
    let done = sound(&table, &more(), &[]);
    assert_eq!(
        table.action(done.entry, "commitInfo")["tags"],
        json!({ "delta.rowTracking.preserved": "true" })
    );
    done.caught("the tag of row tracking", |a| {
        part(a, "commitInfo").as_object_mut().unwrap().remove("tags");
    });
    done.caught("`domainMetadata` in a metadata-only commit", |a| a.push(json!({ "domainMetadata": mark })));
    done.caught_in_metadata("property delta.rowTracking.materializedRowIdColumnName changed", |m| {
        m["configuration"]["delta.rowTracking.materializedRowIdColumnName"] = "other".into();
    });
    done.caught_in_fields("reserved by row tracking", |f| f[1]["name"] = "_row_version".into());
    let refused = adding("_ROW_VERSION = \"long\"");
    refused_everywhere(&names(log.clone()).table(), &refused, "invalid_name");
    // Only the table's own names are reserved, and only at the top.
    sound(&names(log).table(), &adding("s = \"struct<_row_version: long>\""), &[]);
}

/// A stale `highWaterMark` would hand out ids twice; a rounded one would, too.
#[test]
fn identity_columns_keep_their_mark_byte_for_byte() {
    let field = concat!(
        r#"{"name":"id","type":"long","nullable":true,"metadata":{"delta.identity.start":1,"#,
        r#""delta.identity.step":1,"delta.identity.highWaterMark":9223372036854775807,"#,
        r#""delta.identity.allowExplicitInsert":false,"other":123456789012345678901234567890,"exact":1.10}}"#
    );
    let log = || Log::new(Vec::new());
    for log in [log().versions(1, 6), log().features(&[], &["identityColumns"])] {
        let table = raw_schema(log, field);
        let done = sound(&table, &more(), &[]);
        assert!(schema_text(&table).contains(field), "{}", schema_text(&table));
        done.caught_in_text("`metadata` of `id` changed", |t| {
            t.replace("9223372036854775807", "9223372036854775806")
        });
        done.caught_in_text("`metadata` of `id` changed", |t| {
            t.replace("123456789012345678901234567890", "1.2345678901234568e29")
        });
        done.caught_in_text("`metadata` of `id` changed", |t| t.replace(":1.10", ":1.1"));
    }
}

#[test]
fn the_newest_mark_of_an_identity_column_is_built_upon() {
    let field = |mark: i64| with("id", "long", json!({ "delta.identity.highWaterMark": mark }));
    let table = Log::new(vec![field(10)]).versions(1, 6).table();
    table.set_fields(vec![field(9_007_199_254_740_993)]);
    sound(&table, &more(), &[]);
    assert_eq!(table.field("id"), field(9_007_199_254_740_993));
}

#[test]
fn defaults_stay_and_new_columns_get_none() {
    let field = with("id", "long", json!({ "CURRENT_DEFAULT": "nextval('a\"b')", "EXISTS_DEFAULT": "7" }));
    let table = Log::new(vec![field.clone()]).features(&[], &["allowColumnDefaults"]).table();
    let done = sound(&table, &more(), &[]);
    assert_eq!(table.field("id"), field);
    done.caught_in_fields("`metadata` of `id` changed", |f| f[0]["metadata"]["CURRENT_DEFAULT"] = "1".into());
    done.caught_in_fields("new `more` has `CURRENT_DEFAULT`", |f| {
        f[1]["metadata"]["CURRENT_DEFAULT"] = "1".into()
    });
}

#[test]
fn generated_columns_collations_and_type_changes_keep_every_key() {
    let changes = json!([{ "fromType": "integer", "toType": "long", "fieldPath": "element" }]);
    let fields = vec![
        column("id", "long"),
        with(
            "eventDate",
            "date",
            json!({ "delta.generationExpression": "CAST(at AS DATE)", "comment": "c" }),
        ),
        with("name", "string", json!({ "__COLLATIONS": { "name": "icu.de_DE.73" } })),
        with("n", "long", json!({ "delta.typeChanges": changes })),
        with("i", "long", json!({ "delta.invariants": "{\"expression\":{\"expression\":\"i > 3\"}}" })),
    ];
    let features = [
        "generatedColumns",
        "collations-preview",
        "collations",
        "typeWidening",
        "typeWidening-preview",
        "invariants",
    ];
    let log = Log::new(fields.clone()).features(&["typeWidening", "typeWidening-preview"], &features);
    let table = log.property("delta.enableTypeWidening", "true").table();
    // A comment on a mixed-case column is a change inside the very metadata.
    let steps =
        "[migrations.add_columns]\nmore = \"string\"\n[migrations.comments]\neventDate = \"the day\"\n";
    let kind = based("eventDate = \"date\"", steps);
    let done = sound(&table, &kind, &["comment:eventDate"]);
    let schema = table.schema();
    let now = schema["fields"].as_array().unwrap();
    assert_eq!((&now[0], &now[2..5]), (&fields[0], &fields[2..5]));
    let day = json!({ "delta.generationExpression": "CAST(at AS DATE)", "comment": "the day" });
    assert_eq!(now[1]["metadata"], day);
    for (at, key) in [(2, "__COLLATIONS"), (3, "delta.typeChanges"), (4, "delta.invariants")] {
        let name = fields[at]["name"].as_str().unwrap();
        done.caught_in_fields(&format!("`metadata` of `{name}` changed"), |f| {
            f[at]["metadata"][key] = Value::Null
        });
    }
    done.caught_in_fields("the metadata of `eventDate` changed", |f| {
        f[1]["metadata"].as_object_mut().unwrap().shift_remove("delta.generationExpression");
    });
    done.caught_in_fields("new `more` has `delta.generationExpression`", |f| {
        f[5]["metadata"]["delta.generationExpression"] = "1".into();
    });
}

#[test]
fn constraints_stay() {
    let log =
        Log::new(vec![column("id", "long")]).property("delta.constraints.positive", "id > 0 AND s = 'a\\'");
    for log in [log.clone().versions(1, 3), log.features(&[], &["checkConstraints"])] {
        let table = log.table();
        let done = sound(&table, &more(), &[]);
        assert_eq!(table.property("delta.constraints.positive").as_deref(), Some("id > 0 AND s = 'a\\'"));
        done.caught_in_metadata("property delta.constraints.positive changed", |m| {
            m["configuration"].as_object_mut().unwrap().remove("delta.constraints.positive");
        });
    }
}

#[tokio::test]
async fn a_change_data_feed_gets_no_cdc_action_and_its_names_stay_free() {
    let log = Log::new(vec![column("id", "long")]).property("delta.enableChangeDataFeed", "true");
    for log in [log.clone().versions(1, 4), log.features(&[], &["changeDataFeed"])] {
        let table = log.table();
        let done = sound(&table, &more(), &[]);
        done.caught("`cdc` in a metadata-only commit", |a| a.push(json!({ "cdc": { "path": "x" } })));
        done.caught_in_fields("reserved by the feed", |f| f[1]["name"] = "_change_type".into());
        assert_eq!(table.load().await.version(), Some(1));
    }
}

#[tokio::test]
async fn a_deletion_vector_stays_with_its_file() {
    let features = ["deletionVectors"];
    let log = Log::new(vec![column("id", "long")]).features(&features, &features);
    let table = log.property("delta.enableDeletionVectors", "true").table();
    // The inline vector of PROTOCOL.md's example: rows 3, 4, 7, 11, 18 and 29.
    let vector = json!({ "storageType": "i", "pathOrInlineDv": "wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L",
        "sizeInBytes": 40, "cardinality": 6 });
    table.commit_raw(&[json!({ "add": {
        "path": "part-0.parquet", "partitionValues": {}, "size": 9, "modificationTime": 1, "dataChange": true,
        "stats": "{\"numRecords\":30}", "deletionVector": vector,
    } })]);
    let done = sound(&table, &more(), &[]);
    done.caught("`remove` in a metadata-only commit", |a| a.push(json!({ "remove": { "path": "x" } })));
    let loaded = table.load().await;
    let files: Vec<_> =
        loaded.snapshot().unwrap().log_data().iter().map(|f| f.deletion_vector_descriptor()).collect();
    assert_eq!(files.len(), 1);
    assert_eq!(files[0].as_ref().unwrap().cardinality, 6);
}

#[tokio::test]
async fn variants_are_kept_and_added_where_the_table_knows_them() {
    let adds = adding("v = \"variant\"\ninside = \"array<struct<v: variant>>\"");
    for name in ["variantType", "variantType-preview"] {
        let log = Log::new(vec![column("id", "long"), column("old", "variant")]).features(&[name], &[name]);
        let table = log.table();
        let done = sound(&table, &adds, &[]);
        assert_eq!(table.field("v")["type"], "variant");
        done.caught("new `v` needs variantType", |a| {
            a.insert(1, json!({ "protocol": { "minReaderVersion": 1, "minWriterVersion": 2 } }));
        });
    }
}

#[test]
fn a_void_column_survives() {
    let fields = vec![column("id", "long"), column("nothing", "void"), column("span", "interval day")];
    let table = Log::new(fields.clone()).table();
    let done = sound(&table, &more(), &[]);
    assert_eq!(table.schema()["fields"].as_array().unwrap()[..3], fields[..]);
    done.caught_in_fields("the type of `nothing` changed", |f| f[1]["type"] = "string".into());
    done.caught_in_fields("the type of `span` changed", |f| f[2]["type"] = "interval day to second".into());
    done.caught_in_fields("new `more` is void", |f| f[3]["type"] = "void".into());
    // None is added, nowhere in a type.
    for wanted in ["void", "array<void>", "struct<a: map<string, void>>"] {
        let table = Log::new(fields.clone()).table();
        let ran = on(&table, &adding(&format!("x = \"{wanted}\"")), &["apply", table.arg()]);
        assert_ne!(ran.code, 0, "{wanted}: {ran:?}");
        assert_eq!(table.versions(), [0], "{wanted}");
    }
}

#[test]
fn features_that_ask_for_nothing_do_not_stand_in_the_way() {
    for name in ["vacuumProtocolCheck", "variantShredding", "variantShredding-preview", "v2Checkpoint"] {
        let table = Log::new(vec![required("id", "long")]).features(&[name], &[name]).table();
        sound(&table, &more(), &[]);
    }
    for name in ["checkpointProtection", "materializePartitionColumns", "appendOnly", "invariants"] {
        let log = Log::new(vec![required("id", "long")]).features(&[], &[name]);
        let log = log
            .property("delta.requireCheckpointProtectionBeforeVersion", "100")
            .property("delta.appendOnly", "true");
        sound(&log.table(), &more(), &[]);
    }
}
