use aws_sdk_glue::types::{SerDeInfo, TableIdentifier};

use super::*;

type Pairs<'a> = &'a [(&'a str, &'a str)];

fn map(pairs: Pairs<'_>) -> HashMap<String, String> {
    pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
}

fn column(name: &str, r#type: &str) -> Column {
    Column::builder().name(name).r#type(r#type).build().unwrap()
}

fn entry(parameters: Pairs<'_>, storage: StorageDescriptor) -> Table {
    let table = Table::builder().name("t").set_parameters(Some(map(parameters)));
    table.storage_descriptor(storage).build().unwrap()
}

fn at(location: &str) -> StorageDescriptor {
    StorageDescriptor::builder().location(location).build()
}

fn uri(storage: StorageDescriptor) -> String {
    match judge(&entry(&[("classification", "delta")], storage)) {
        Verdict::Delta { uri, .. } => uri,
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_spark_says_decides_and_else_the_others() {
    let spark = "spark.sql.sources.provider";
    let delta: &[Pairs<'_>] = &[
        &[(spark, "delta")],
        &[(spark, "DELTA"), ("classification", "parquet"), ("table_type", "ICEBERG")],
        &[("Spark.SQL.sources.Provider", "Delta")],
        &[("table_type", "DELTA")],
        &[("table_type", "delta"), ("EXTERNAL", "TRUE")],
        &[("classification", "Delta")],
    ];
    for parameters in delta {
        assert!(matches!(judge(&entry(parameters, at("s3://b/t"))), Verdict::Delta { .. }), "{parameters:?}");
    }
    let other: &[Pairs<'_>] = &[
        &[],
        &[(spark, "parquet"), ("classification", "delta"), ("table_type", "DELTA")],
        &[(spark, "")],
        &[("table_type", "ICEBERG"), ("classification", "delta")],
        &[("table_type", "EXTERNAL_TABLE")],
        &[("classification", "deltalake")],
    ];
    for parameters in other {
        assert!(matches!(judge(&entry(parameters, at("s3://b/t"))), Verdict::Other(_)), "{parameters:?}");
    }
}

#[test]
fn views_links_and_manifests_are_no_tables_of_ours() {
    let spark = &[("spark.sql.sources.provider", "delta")];
    let mut view = entry(spark, at("s3://b/t"));
    view.table_type = Some("VIRTUAL_VIEW".to_owned());
    assert_eq!(judge(&view), Verdict::Other("a view"));
    let mut link = entry(spark, at("s3://b/t"));
    link.target_table = Some(TableIdentifier::builder().name("t").build());
    assert_eq!(judge(&link), Verdict::Other("a link to a table of another catalog"));
    let format = "org.apache.hadoop.hive.ql.io.SymlinkTextInputFormat";
    let manifest = StorageDescriptor::builder().location("s3://b/t/manifest").input_format(format).build();
    assert_eq!(judge(&entry(&[("classification", "delta")], manifest)), Verdict::Other(MANIFEST));
    for location in ["s3://b/t/_symlink_format_manifest", "s3://b/t/_symlink_format_manifest/"] {
        assert_eq!(judge(&entry(spark, at(location))), Verdict::Other(MANIFEST));
    }
}

#[test]
fn the_location_is_the_real_one_and_its_bucket_keeps_its_name() {
    let real = |location| uri(at(location));
    assert_eq!(real("s3a://logs3archive/t"), "s3://logs3archive/t");
    assert_eq!(real("s3n://s3a/s3n/t"), "s3://s3a/s3n/t");
    assert_eq!(real("S3://b/s3a://t/"), "s3://b/s3a://t/");
    assert_eq!(real("s3://b/t-__PLACEHOLDER__"), "s3://b/t");
    assert_eq!(real("s3://b/t-__PLACEHOLDER__/"), "s3://b/t");
    assert_eq!(real("s3://b/-__PLACEHOLDER__-t"), "s3://b/-__PLACEHOLDER__-t");
    assert_eq!(real(" s3://b/50%25 ?a#b"), "s3://b/50%2525 %3Fa%23b");
    assert_eq!(real("file:/lake/t"), "file:///lake/t");
    assert_eq!(real("file:///lake/t"), "file:///lake/t");
    assert_eq!(real("abfss://c@a.dfs.core.windows.net/t"), "abfss://c@a.dfs.core.windows.net/t");
    assert_eq!(real("/lake/100%/t"), "/lake/100%/t");
    let serde = SerDeInfo::builder().parameters("path", "s3a://b/real").build();
    let spark = StorageDescriptor::builder().location("s3://b/t-__PLACEHOLDER__").serde_info(serde).build();
    assert_eq!(uri(spark), "s3://b/real");
}

#[test]
fn without_a_location_a_delta_table_is_nowhere() {
    let delta = &[("classification", "delta")];
    for location in ["", "  ", "-__PLACEHOLDER__"] {
        assert_eq!(judge(&entry(delta, at(location))), Verdict::Nowhere, "{location}");
    }
    let table = Table::builder().name("t").set_parameters(Some(map(delta))).build().unwrap();
    assert_eq!(judge(&table), Verdict::Nowhere);
    assert!(matches!(judge(&entry(&[], at(""))), Verdict::Other(_)));
}

fn names(parameters: Pairs<'_>, hive: &[Column], partitions: &[Column]) -> Option<Vec<String>> {
    let storage = StorageDescriptor::builder().set_columns(Some(hive.to_vec())).build();
    let mut table = entry(parameters, storage);
    table.partition_keys = Some(partitions.to_vec());
    columns(&table)
}

fn some(names: &[&str]) -> Option<Vec<String>> {
    Some(names.iter().map(|n| (*n).to_owned()).collect())
}

#[test]
fn hives_copy_of_the_columns_is_taken_with_the_partitions_unless_it_says_nothing() {
    let (id, day) = (column("id", "bigint"), column("day", "date"));
    assert_eq!(names(&[], std::slice::from_ref(&id), std::slice::from_ref(&day)), some(&["id", "day"]));
    assert_eq!(names(&[], &[id, day.clone()], std::slice::from_ref(&day)), some(&["id", "day"]));
    assert_eq!(names(&[], &[], &[]), None);
    let placeholder = column("col", "array<string>");
    assert_eq!(names(&[], std::slice::from_ref(&placeholder), &[day]), None);
    assert_eq!(names(&[], &[column("col", "string")], &[]), some(&["col"]));
    assert_eq!(names(&[], &[placeholder, column("id", "int")], &[]), some(&["col", "id"]));
}

#[test]
fn sparks_copy_of_the_columns_comes_first() {
    let hive = [column("col", "array<string>")];
    let schema = r#"{"type":"struct","fields":[{"name":"Id","type":"long"},{"name":"p","type":{"type":"struct",
        "fields":[{"name":"inner","type":"long"}]}}]}"#;
    assert_eq!(names(&[("spark.sql.sources.schema", schema)], &hive, &[]), some(&["Id", "p"]));
    let (first, second) = schema.split_at(40);
    let parts = |n| {
        [
            ("spark.sql.sources.schema.numParts", n),
            ("spark.sql.sources.schema.part.0", first),
            ("spark.sql.sources.schema.part.1", second),
        ]
    };
    assert_eq!(names(&parts("2"), &hive, &[]), some(&["Id", "p"]));
    let real = [column("id", "bigint")];
    for broken in ["1", "3", "4294967295", "x", "0"] {
        assert_eq!(names(&parts(broken), &hive, &[]), None, "{broken}");
        assert_eq!(names(&parts(broken), &real, &[]), some(&["id"]), "{broken}");
    }
    for empty in [r#"{"type":"struct","fields":[]}"#, "{}", "[", r#"{"fields":[{"name":1}]}"#] {
        assert_eq!(names(&[("spark.sql.sources.schema", empty)], &real, &[]), some(&["id"]), "{empty}");
    }
}
