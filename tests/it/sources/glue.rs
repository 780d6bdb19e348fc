//! Tables of a Glue catalog, against a fake that pages and, where there is one, against moto.

mod caller;
mod fake;
mod faults;
mod moto;

use std::collections::BTreeMap;
use std::time::Duration;

use delta_migrate::catalog::{Access, Found, GlueCatalog, GlueOptions, Source, Trust};
use delta_migrate::{Error, ErrorCode};
use futures::StreamExt as _;
use serde_json::{Value, json};

use self::fake::{Fake, Request, Trick};
use crate::sources::contract;

const SECRETS: [&str; 4] = ["AKIDSOURCE", "top-secret-key", "session-token-1", "hidden-value"];

fn options(fake: &Fake, tables: &[&str]) -> GlueOptions {
    let storage = [
        ("AWS_ACCESS_KEY_ID", SECRETS[0]),
        ("aws_secret_access_key", SECRETS[1]),
        ("aws_session_token", SECRETS[2]),
        ("aws_endpoint", SECRETS[3]),
        ("aws_region", "eu-central-1"),
    ];
    let mut options = GlueOptions::default();
    options.tables = tables.iter().map(|t| (*t).to_owned()).collect();
    options.storage = storage.map(|(k, v)| (k.to_owned(), v.to_owned())).into();
    options.endpoint = Some(fake.url.clone());
    options
}

fn table(name: &str, parameters: Value, location: Option<&str>) -> Value {
    let columns = json!([{"Name": "id", "Type": "bigint"}, {"Name": "v", "Type": "string"}]);
    let mut storage = json!({"Columns": columns, "SerdeInfo": {"Parameters": {}}});
    if let Some(location) = location {
        storage["Location"] = json!(location);
    }
    json!({"Name": name, "Parameters": parameters, "StorageDescriptor": storage, "TableType": "EXTERNAL_TABLE",
           "PartitionKeys": [{"Name": "day", "Type": "date"}], "CreateTime": 1.7e9, "IsRegisteredWithLakeFormation": false})
}

fn delta(name: &str) -> Value {
    table(name, json!({"table_type": "DELTA"}), Some(&format!("s3://lake/{name}")))
}

/// The databases `db0`, `db1`, … with so many Delta tables each.
fn databases(counts: &[usize]) -> BTreeMap<String, Vec<Value>> {
    let tables = |db: usize, n: usize| (0..n).map(|t| delta(&format!("d{db}t{t:03}"))).collect();
    counts.iter().enumerate().map(|(db, n)| (format!("db{db}"), tables(db, *n))).collect()
}

/// What was found, sorted, and the errors. A test that hangs ends here.
async fn all(options: GlueOptions) -> (Vec<Found>, Vec<Error>) {
    let catalog = GlueCatalog::new(options).unwrap();
    let items =
        tokio::time::timeout(Duration::from_secs(60), catalog.tables().collect::<Vec<_>>()).await.unwrap();
    let (mut found, mut errors) = (Vec::new(), Vec::new());
    for item in items {
        match item {
            Ok(table) => found.push(table),
            Err(error) => errors.push(error),
        }
    }
    found.sort_by(|a, b| a.uri.cmp(&b.uri));
    for error in &errors {
        secret_free(&format!("{error} {error:?} {:?} {:?}", error.hint(), error.causes()));
    }
    secret_free(&format!("{} {catalog:?} {found:?}", catalog.name()));
    (found, errors)
}

fn secret_free(text: &str) {
    for secret in SECRETS {
        assert!(!text.contains(secret), "{secret} in {text}");
    }
}

fn uris(found: &[Found]) -> Vec<&str> {
    found.iter().map(|f| f.uri.as_str()).collect()
}

fn lines(lines: &[&str]) -> Vec<String> {
    lines.iter().map(|l| (*l).to_owned()).collect()
}

#[tokio::test]
async fn two_hundred_and_fifty_tables_on_many_pages_are_each_found_once() {
    let databases = databases(&[130, 0, 75, 1, 25, 19]);
    let wanted: Vec<String> =
        databases.values().flatten().map(|t| format!("s3://lake/{}", t["Name"].as_str().unwrap())).collect();
    assert_eq!(wanted.len(), 250);
    let fake = Fake::start(databases, 25, |_| Trick::Serve).await;
    let (found, errors) = all(options(&fake, &[])).await;
    assert!(errors.is_empty(), "{errors:?}");
    assert_eq!(uris(&found), wanted);
    let mut asked = lines(&[
        "GetDatabases 1",
        "GetTables db1 1",
        "GetTables db3 1",
        "GetTables db4 1",
        "GetTables db5 1",
    ]);
    asked.extend((1..=6).map(|page| format!("GetTables db0 {page}")));
    asked.extend((1..=3).map(|page| format!("GetTables db2 {page}")));
    asked.sort();
    assert_eq!(fake.asked(), asked);
}

#[tokio::test]
async fn glue_keeps_the_contract_of_sources() {
    let databases = databases(&[7, 0, 12]);
    let wanted: Vec<String> =
        databases.values().flatten().map(|t| format!("s3://lake/{}", t["Name"].as_str().unwrap())).collect();
    let fake = Fake::start(databases.clone(), 3, |_| Trick::Serve).await;
    let make = || Box::new(GlueCatalog::new(options(&fake, &[])).unwrap()) as Box<dyn Source>;
    contract::holds(&make, &wanted, &SECRETS).await;

    let denied = |r: &Request| match r.line.as_str() {
        "GetTables db0 1" => {
            Trick::Answer(400, json!({"__type": "AccessDeniedException", "Message": "not you"}))
        }
        _ => Trick::Serve,
    };
    let fake = Fake::start(databases, 3, denied).await;
    let make = || Box::new(GlueCatalog::new(options(&fake, &[])).unwrap()) as Box<dyn Source>;
    let rest: Vec<String> = wanted.into_iter().filter(|uri| uri.contains("/d2")).collect();
    contract::goes_on_after_an_error(&make, &rest, 1, &SECRETS).await;
}

#[tokio::test]
async fn each_table_comes_with_its_kind_its_columns_and_the_way_to_its_store() {
    let mut spark =
        table("spark", json!({"spark.sql.sources.provider": "delta"}), Some("s3://w/x-__PLACEHOLDER__"));
    spark["StorageDescriptor"]["SerdeInfo"]["Parameters"]["path"] = json!("s3a://logs3archive/spark");
    spark["StorageDescriptor"]["Columns"] = json!([{"Name": "col", "Type": "array<string>"}]);
    let mut link = delta("link");
    link["TargetTable"] = json!({"CatalogId": "1", "DatabaseName": "a", "Name": "b"});
    let mut view = delta("view");
    view["TableType"] = json!("VIRTUAL_VIEW");
    let nowhere = table("nowhere", json!({"classification": "delta"}), None);
    let tables = vec![
        delta("athena"),
        spark,
        link,
        view,
        nowhere,
        table("iceberg", json!({"table_type": "ICEBERG"}), Some("s3://lake/iceberg")),
        table("parquet", json!({"classification": "parquet"}), Some("s3://lake/parquet")),
        table("manifest", json!({"classification": "delta"}), Some("s3://lake/m/_symlink_format_manifest")),
        json!({"Name": "bare"}),
    ];
    let fake = Fake::start([("mix".to_owned(), tables)].into(), 4, |_| Trick::Serve).await;
    let mut options = options(&fake, &["mix.*"]);
    options.kind = Some("facts".to_owned());
    let (found, errors) = all(options.clone()).await;
    assert_eq!(uris(&found), ["s3://lake/athena", "s3://logs3archive/spark"]);
    assert_eq!(found[0].columns.as_deref().unwrap(), ["id", "v", "day"]);
    assert_eq!(found[1].columns, None);
    for found in &found {
        assert_eq!((found.kind.as_deref(), found.trust), (Some("facts"), Trust::Found));
        assert!(matches!(&found.access, Access::Options(o) if *o == options.storage));
    }
    let [error] = &errors[..] else { panic!("{errors:?}") };
    assert_eq!((error.code(), error.table()), (ErrorCode::NotATable, Some("glue mix.nowhere")));
    assert!(error.hint().unwrap().contains("location"));
}

#[tokio::test]
async fn patterns_spare_requests_and_leave_nothing_out() {
    let fake = Fake::start(databases(&[2, 2, 2, 2]), 100, |_| Trick::Serve).await;
    let ask = async |tables: &[&str], exclude: &[&str]| {
        let (before, mut options) = (fake.asked().len(), options(&fake, tables));
        options.exclude = exclude.iter().map(|t| (*t).to_owned()).collect();
        let (found, errors) = all(options).await;
        assert!(errors.is_empty(), "{errors:?}");
        let names: Vec<String> = found.iter().map(|f| f.uri.replace("s3://lake/", "")).collect();
        (names.join(" "), fake.asked().len() - before)
    };
    // One request for a database that is named, one for a table that is, and none for what is left out.
    assert_eq!(ask(&["db1.*"], &[]).await, ("d1t000 d1t001".to_owned(), 1));
    assert_eq!(ask(&["DB1.*", "db1.d1t00?", "db1.d1t000"], &["*.*1"]).await, ("d1t000".to_owned(), 1));
    assert_eq!(ask(&["db1.d1t000", "db2.d2t001"], &[]).await, ("d1t000 d2t001".to_owned(), 2));
    assert_eq!(ask(&["db1.d1t000"], &["*.d1*"]).await, (String::new(), 0));
    assert_eq!(ask(&["db1.*", "db2.*"], &["db2.*"]).await, ("d1t000 d1t001".to_owned(), 1));
    assert_eq!(ask(&["*.*0"], &["db[03].*"]).await, ("d1t000 d2t000".to_owned(), 3));
    assert_eq!(
        ask(&["db[12].*", "db1.d1t000", "db3.d3t001"], &[]).await,
        ("d1t000 d1t001 d2t000 d2t001 d3t001".to_owned(), 4)
    );
    assert_eq!(
        ask(&["*.d1*", "db1.d1t001"], &["db0.*", "db2.*", "db3.*"]).await,
        ("d1t000 d1t001".to_owned(), 2)
    );
}

#[tokio::test]
async fn the_tables_of_a_page_are_there_before_the_next_page_is() {
    let fake =
        Fake::start(databases(&[5]), 2, |r| if r.line.ends_with(" 1") { Trick::Serve } else { Trick::Hold })
            .await;
    let catalog = GlueCatalog::new(options(&fake, &["db0.*"])).unwrap();
    let mut tables = catalog.tables();
    for uri in ["s3://lake/d0t000", "s3://lake/d0t001"] {
        assert_eq!(tables.next().await.unwrap().unwrap().uri, uri);
        assert_eq!(fake.asked(), lines(&["GetTables db0 1"]));
    }
    let third = tokio::time::timeout(Duration::from_millis(300), tables.next()).await;
    assert!(third.is_err(), "{third:?}");
    assert_eq!(fake.asked(), lines(&["GetTables db0 1", "GetTables db0 2"]));
    fake.open_the_gate();
    assert_eq!(tables.map(|t| t.unwrap().uri).collect::<Vec<_>>().await.len(), 3);
}

#[tokio::test]
async fn tables_come_before_all_databases_are_listed_and_a_slow_database_holds_up_no_other() {
    let hold = |r: &Request| match r.line.as_str() {
        "GetDatabases 2" | "GetTables db0 1" => Trick::Hold,
        _ => Trick::Serve,
    };
    let fake = Fake::start(databases(&[1, 1, 1]), 2, hold).await;
    let catalog = GlueCatalog::new(options(&fake, &[])).unwrap();
    let mut tables = catalog.tables();
    let first = tokio::time::timeout(Duration::from_secs(20), tables.next()).await.unwrap();
    assert_eq!(first.unwrap().unwrap().uri, "s3://lake/d1t000");
    fake.open_the_gate();
    assert_eq!(tables.count().await, 2);
}

#[tokio::test]
async fn at_most_four_databases_are_asked_at_once_and_a_dropped_stream_asks_nothing_more() {
    let fake = Fake::start(databases(&[3; 9]), 1, |r| match r.line.starts_with("GetTables") {
        true => Trick::Hold,
        false => Trick::Serve,
    });
    let fake = fake.await;
    let patterns: Vec<String> = (0..9).map(|db| format!("db{db}.*")).collect();
    let patterns: Vec<&str> = patterns.iter().map(String::as_str).collect();
    let catalog = GlueCatalog::new(options(&fake, &patterns)).unwrap();
    let mut tables = catalog.tables();
    assert!(tokio::time::timeout(Duration::from_secs(1), tables.next()).await.is_err());
    assert_eq!(fake.asked().len(), 4);
    drop(tables);
    fake.open_the_gate();
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(fake.asked().len(), 4);
}

#[tokio::test]
async fn a_request_goes_on_while_nobody_takes_tables() {
    let fake = Fake::start(databases(&[1, 1]), 9, |r| match r.line.as_str() {
        "GetTables db1 1" if r.times == 1 => {
            Trick::Answer(400, json!({"__type": "ThrottlingException", "Message": "Rate exceeded"}))
        }
        _ => Trick::Serve,
    });
    let fake = fake.await;
    let catalog = GlueCatalog::new(options(&fake, &["db0.*", "db1.*"])).unwrap();
    let mut tables = catalog.tables();
    tables.next().await.unwrap().unwrap();
    // The second request is made again without being polled.
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(fake.asked(), lines(&["GetTables db0 1", "GetTables db1 1", "GetTables db1 1"]));
    assert_eq!(tables.count().await, 1);
}
