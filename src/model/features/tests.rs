use super::*;

fn table(min_reader: i64, min_writer: i64, features: Option<&[&str]>) -> Protocol {
    let list: Option<Vec<String>> = features.map(|f| f.iter().map(ToString::to_string).collect());
    let reader_features = list.clone().filter(|_| min_reader >= 3);
    Protocol { min_reader, min_writer, reader_features, writer_features: list }
}

fn properties(pairs: &[(&str, &str)]) -> IndexMap<String, String> {
    pairs.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect()
}

#[test]
fn legacy_versions_imply_their_features() {
    let none = IndexMap::new();
    for writer in 1..=6 {
        assert_eq!(refused(&table(2, writer, None), &none), Vec::<String>::new(), "{writer}");
    }
    let all: Vec<&str> = table(2, 6, None)
        .features()
        .into_iter()
        .map(|f| RULES.iter().find(|(n, _)| *n == f).unwrap().0)
        .collect();
    assert_eq!(all.len(), 7, "{all:?}");
}

#[test]
fn an_upgrade_keeps_everything_that_the_old_protocol_implied() {
    let upgraded = |mut protocol: Protocol, feature: &str| {
        let before: Vec<String> = protocol.features().into_iter().map(str::to_owned).collect();
        protocol.add(feature);
        assert!(before.iter().all(|f| protocol.has(f)), "{before:?} {protocol:?}");
        assert!(protocol.has(feature) && protocol.min_writer == 7);
        (protocol.min_reader, protocol.reader_features.clone(), protocol.writer_features.clone().unwrap())
    };
    let list = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
    let (reader, readers, writers) = upgraded(table(1, 2, None), "timestampNtz");
    assert_eq!((reader, readers), (3, Some(list(&["timestampNtz"]))));
    assert_eq!(writers, list(&["appendOnly", "invariants", "timestampNtz"]));
    let (_, _, writers) = upgraded(table(1, 4, None), "timestampNtz");
    assert_eq!(
        writers,
        list(&[
            "appendOnly",
            "changeDataFeed",
            "checkConstraints",
            "generatedColumns",
            "invariants",
            "timestampNtz"
        ])
    );
    let (reader, readers, _) = upgraded(table(2, 5, None), "deletionVectors");
    assert_eq!((reader, readers), (3, Some(list(&["columnMapping", "deletionVectors"]))));
    let (reader, readers, writers) = upgraded(table(1, 6, None), "deletionVectors");
    assert_eq!((reader, readers), (3, Some(list(&["columnMapping", "deletionVectors"]))));
    assert!(writers.contains(&"columnMapping".to_owned()), "in both lists: {writers:?}");
    let (reader, readers, writers) = upgraded(table(1, 5, None), "domainMetadata");
    assert_eq!((reader, readers), (2, None));
    assert!(writers.contains(&"columnMapping".to_owned()), "{writers:?}");
    let (reader, readers, _) = upgraded(table(1, 2, None), "domainMetadata");
    assert_eq!((reader, readers), (1, None), "readers need not know it");
    let (reader, readers, _) = upgraded(table(1, 7, Some(&["appendOnly"])), "variantType");
    assert_eq!((reader, readers), (3, Some(list(&["variantType"]))));
    let (reader, readers, writers) = upgraded(table(2, 7, Some(&["appendOnly"])), "variantType");
    assert_eq!((reader, readers), (3, Some(list(&["variantType"]))), "{writers:?} has no columnMapping");
    let (_, readers, _) = upgraded(table(2, 7, Some(&["columnMapping"])), "variantType");
    assert_eq!(readers, Some(list(&["columnMapping", "variantType"])));
    let mut known = table(1, 4, None);
    known.add("changeDataFeed");
    assert_eq!(known, table(1, 4, None), "what is implied needs no upgrade");
}

#[test]
fn what_is_not_known_is_refused_by_name() {
    let none = IndexMap::new();
    assert_eq!(refused(&table(3, 7, Some(&["appendOnly", "blahabl"])), &none), ["blahabl"]);
    assert_eq!(refused(&table(1, 8, None), &none), ["writer version 8"]);
    assert_eq!(refused(&table(99, 7, Some(&[])), &none), ["reader version 99"]);
    let reader_only = Protocol {
        reader_features: Some(vec!["redirectReaderWriter-preview".into()]),
        ..table(3, 7, Some(&["redirectReaderWriter-preview"]))
    };
    assert_eq!(refused(&reader_only, &none), ["redirectReaderWriter-preview"]);
}

#[test]
fn a_property_without_its_feature_is_refused() {
    let v2 = properties(&[("delta.checkpointPolicy", "v2")]);
    assert_eq!(refused(&table(1, 2, None), &v2).len(), 1);
    assert!(refused(&table(3, 7, Some(&["v2Checkpoint"])), &v2).is_empty());
    let mapping = properties(&[("delta.columnMapping.mode", "name")]);
    assert_eq!(refused(&table(1, 2, None), &mapping).len(), 1);
    assert!(refused(&table(2, 5, None), &mapping).is_empty());
    let iceberg =
        properties(&[("delta.enableIcebergCompatV2", "true"), ("delta.columnMapping.mode", "name")]);
    assert!(refused(&table(3, 7, Some(&["icebergCompatV2", "columnMapping"])), &iceberg).is_empty());
    let two = properties(&[
        ("delta.enableIcebergCompatV1", "true"),
        ("delta.enableIcebergCompatV2", "true"),
        ("delta.columnMapping.mode", "name"),
    ]);
    assert_eq!(
        refused(&table(3, 7, Some(&["icebergCompatV1", "icebergCompatV2", "columnMapping"])), &two).len(),
        1
    );
    let unmapped = properties(&[("delta.enableIcebergCompatV2", "true")]);
    assert_eq!(refused(&table(3, 7, Some(&["icebergCompatV2"])), &unmapped).len(), 1);
    let odd = properties(&[("delta.columnMapping.mode", "sideways")]);
    assert_eq!(refused(&table(2, 5, None), &odd).len(), 1);
    let times = properties(&[("delta.enableInCommitTimestamps", "true")]);
    assert_eq!(refused(&table(1, 2, None), &times).len(), 1);
    let off = properties(&[("delta.columnMapping.mode", "none")]);
    assert!(refused(&table(1, 2, None), &off).is_empty());
}

#[test]
fn protocols_and_types_that_no_engine_opens_are_refused() {
    let none = IndexMap::new();
    let lists = |reader: Option<&[&str]>, writer: Option<&[&str]>| {
        let list = |l: Option<&[&str]>| l.map(|l| l.iter().map(ToString::to_string).collect());
        Protocol {
            min_reader: 3,
            min_writer: 7,
            reader_features: list(reader),
            writer_features: list(writer),
        }
    };
    let features: &[&str] = &["deletionVectors"];
    assert!(refused(&lists(Some(features), Some(features)), &none).is_empty());
    assert_eq!(refused(&lists(None, Some(features)), &none).len(), 1);
    assert_eq!(refused(&lists(Some(&[]), None), &none).len(), 1);
    assert_eq!(refused(&lists(Some(features), Some(&[])), &none).len(), 1);
    assert_eq!(refused(&table(0, 2, None), &none), ["reader version 0"]);
    assert_eq!(
        refused(&Protocol { min_reader: 3, ..table(1, 5, None) }, &none).len(),
        2,
        "no list, and writer 5"
    );
    let columns = |t: &str| {
        crate::model::types::schema_from_json(&format!(
            r#"{{"type":"struct","fields":[{{"name":"c","type":"{t}","nullable":true,"metadata":{{}}}}]}}"#
        ))
        .unwrap()
    };
    for (data_type, feature) in [
        ("geometry(4326)", "geospatial"),
        ("timestamp_nanos", "timestampNanos"),
        ("variant", "variantType"),
        ("timestamp_ntz", "timestampNtz"),
    ] {
        let found = unlisted_types(&table(1, 2, None), &columns(data_type));
        assert!(found.len() == 1 && found[0].contains(feature), "{found:?}");
        assert!(unlisted_types(&table(3, 7, Some(&[feature])), &columns(data_type)).is_empty());
    }
}

#[test]
fn every_feature_stands_in_the_table_once() {
    let mut names: Vec<&str> = RULES.iter().map(|(name, _)| *name).collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
    for (_, implied) in IMPLIED {
        assert!(implied.iter().all(|f| names.contains(f)));
    }
}

#[test]
fn properties_that_turn_features_on_are_known_in_any_case() {
    for (key, feature) in [
        ("delta.enableChangeDataFeed", Some("changeDataFeed")),
        ("DELTA.enableDeletionVectors", Some("deletionVectors")),
        ("delta.columnMapping.mode", Some("columnMapping")),
        ("delta.constraints.positive", Some("checkConstraints")),
        ("delta.feature.rowTracking", Some("rowTracking")),
        ("delta.minWriterVersion", Some("protocol version")),
        ("delta.inCommitTimestampEnablementVersion", Some("inCommitTimestamp")),
        ("delta.redirectReaderWriter-preview", None),
        ("delta.logRetentionDuration", None),
        ("app.enableChangeDataFeed", None),
    ] {
        if key.contains("redirect") {
            continue;
        }
        assert_eq!(enabled_by(key), feature, "{key}");
    }
}

#[test]
fn a_new_table_gets_the_protocol_that_it_needs() {
    let columns = |text: &str| match crate::model::types::parse_type(text).unwrap() {
        crate::model::types::DataType::Struct(fields) => fields,
        _ => panic!("a struct"),
    };
    let born =
        |text: &str, pairs: &[(&str, &str)]| protocol_at_birth(&columns(text), &properties(pairs), &[]);
    let plain = born("struct<a: long>", &[("delta.appendOnly", "true"), ("x", "y")]).unwrap();
    assert_eq!((plain.min_reader, plain.min_writer, plain.writer_features), (1, 2, None));
    let cdf = born("struct<a: long>", &[("delta.enableChangeDataFeed", "true")]).unwrap();
    assert_eq!((cdf.min_reader, cdf.min_writer, cdf.writer_features), (1, 4, None));
    let ntz =
        born("struct<a: map<string, timestamp_ntz>>", &[("delta.enableChangeDataFeed", "true")]).unwrap();
    assert_eq!((ntz.min_reader, ntz.min_writer), (3, 7));
    assert_eq!(ntz.reader_features.unwrap(), ["timestampNtz"]);
    assert_eq!(ntz.writer_features.unwrap(), ["appendOnly", "changeDataFeed", "invariants", "timestampNtz"]);
    let times = born("struct<a: long>", &[("delta.enableInCommitTimestamps", "true")]).unwrap();
    assert_eq!((times.min_reader, times.min_writer, times.reader_features), (1, 7, None));
    assert_eq!(born("struct<a: variant>", &[]).unwrap().reader_features.unwrap(), ["variantType"]);
    assert_eq!(
        born("struct<a: long>", &[("delta.enableRowTracking", "true")]),
        Err(vec!["rowTracking".to_owned()])
    );
    assert_eq!(
        born("struct<a: long>", &[("delta.checkpointPolicy", "x")]),
        Err(vec!["v2Checkpoint".to_owned()])
    );
    let mapped = born("struct<a: long>", &[("delta.columnMapping.mode", "name")]).unwrap();
    assert_eq!((mapped.min_reader, mapped.min_writer, mapped.writer_features), (2, 5, None));
    let both = [("delta.columnMapping.mode", "id"), ("delta.enableDeletionVectors", "true")];
    assert_eq!(
        born("struct<a: long>", &both).unwrap().reader_features.unwrap(),
        ["columnMapping", "deletionVectors"]
    );
    let odd = [("delta.columnMapping.maxColumnId", "7")];
    assert_eq!(born("struct<a: long>", &odd), Err(vec!["columnMapping".to_owned()]));
    let enabled = |names: &[&str]| {
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        protocol_at_birth(&columns("struct<a: long>"), &properties(&[]), &names)
    };
    assert_eq!(enabled(&["checkConstraints"]).unwrap().min_writer, 3);
    assert_eq!(enabled(&["timestampNtz"]).unwrap().reader_features.unwrap(), ["timestampNtz"]);
    assert_eq!(enabled(&["rowTracking"]), Err(vec!["rowTracking".to_owned()]));
    let off = born("struct<a: long>", &[("delta.enableDeletionVectors", "false")]).unwrap();
    assert_eq!(off.min_writer, 2);
}
