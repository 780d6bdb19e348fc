//! A Unity catalog, played by a small server.

mod failures;
mod lending;

use std::collections::BTreeMap;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use delta_migrate::catalog::{Access, Found, Source, UnityCatalog, UnityOptions};
use delta_migrate::{Error, ErrorCode};
use futures::StreamExt as _;
use serde_json::{Value, json};

use crate::sources::contract;
use crate::support::http::{Answer, Request, Server};

const API: &str = "/api/2.1/unity-catalog";
const TOKEN: &str = "dapiTOPSECRET";

fn options(server: &Server, tables: &[&str]) -> UnityOptions {
    let mut options = UnityOptions::default();
    options.tables = tables.iter().map(|t| (*t).to_owned()).collect();
    options.endpoint = server.url();
    options.token = Some(TOKEN.to_owned());
    options
}

fn catalog(server: &Server, tables: &[&str]) -> UnityCatalog {
    UnityCatalog::new(options(server, tables)).unwrap()
}

async fn all(catalog: &UnityCatalog) -> Vec<Result<Found, Error>> {
    tokio::time::timeout(Duration::from_secs(60), catalog.tables().collect()).await.unwrap()
}

/// The locations of all tables, sorted, where there must be no error.
async fn uris(catalog: &UnityCatalog) -> Vec<String> {
    let mut uris: Vec<String> = all(catalog).await.into_iter().map(|found| found.unwrap().uri).collect();
    uris.sort();
    uris
}

/// All that a person could ever see of an error.
fn seen(error: &Error) -> String {
    format!("{error:?} {error} {:?} {:?} {:?}", error.hint(), error.causes(), error.table())
}

fn table(full: &str) -> Value {
    let name = full.rsplit('.').next().unwrap();
    json!({
        "name": name, "full_name": full, "table_id": format!("id-{full}"), "table_type": "EXTERNAL",
        "data_source_format": "DELTA", "storage_location": format!("s3://lake/{}", full.replace('.', "/")),
        "columns": [{"name": "v", "position": 1, "type_name": "STRING"}, {"name": "id", "position": 0}],
    })
}

fn named(names: &[&str]) -> Vec<Value> {
    names.iter().map(|name| json!({"name": name})).collect()
}

/// A page of these items, two a page and each followed by an empty one; the token is the next index.
fn page(request: &Request, key: &str, items: &[Value]) -> Answer {
    let token = request.param("page_token").unwrap_or("0").to_owned();
    let (at, is_empty) = match token.strip_suffix("-empty") {
        Some(at) => (at.parse::<usize>().unwrap(), true),
        None => (token.parse().unwrap(), false),
    };
    if is_empty {
        return Answer::json(200, &json!({"next_page_token": at.to_string()}));
    }
    let end = items.len().min(at + 2);
    let next = (end < items.len()).then(|| format!("{end}-empty"));
    Answer::json(200, &json!({key: items[at..end], "next_page_token": next, "unheard_of": [{}]}))
}

/// Three catalogs; `prod` with five schemas, of which `cdc` holds five tables and other things.
fn lake(request: &Request) -> Answer {
    let place = (request.param("catalog_name"), request.param("schema_name"));
    match (request.path.strip_prefix(API).unwrap_or_default(), place) {
        ("/catalogs", _) => page(request, "catalogs", &named(&["dev", "prod", "system"])),
        ("/schemas", (Some("prod"), _)) => page(request, "schemas", &named(&["a", "b", "cdc", "d", "e"])),
        ("/schemas", (Some("dev"), _)) => page(request, "schemas", &named(&["cdc"])),
        ("/schemas", _) => page(request, "schemas", &[]),
        ("/tables", (Some("prod"), Some("cdc"))) => page(request, "tables", &mixed()),
        ("/tables", (Some(catalog), Some(schema))) => {
            page(request, "tables", &[table(&format!("{catalog}.{schema}.t"))])
        }
        (path, _) => match path.strip_prefix("/tables/") {
            Some(full) => match mixed().into_iter().find(|t| t["full_name"] == full) {
                Some(table) => Answer::json(200, &table),
                None => Answer::json(404, &json!({"error_code": "TABLE_DOES_NOT_EXIST", "message": "gone"})),
            },
            None => Answer::new(404, "nothing here"),
        },
    }
}

/// Tables among which there is every oddity that a catalog has.
fn mixed() -> Vec<Value> {
    let with = |name: &str, changes: Value| {
        let mut table = table(&format!("prod.cdc.{name}"));
        for (key, value) in changes.as_object().unwrap() {
            table[key] = value.clone();
        }
        table
    };
    vec![
        with("orders", json!({})),
        with(
            "metrics",
            json!({"table_type": "METRIC_VIEW", "data_source_format": null, "columns": [{"type_name": "MEASURE"}]}),
        ),
        with("kept", json!({"table_type": "MANAGED", "data_source_format": "delta", "columns": []})),
        with("mat", json!({"table_type": "MATERIALIZED_VIEW"})),
        with("stream", json!({"table_type": "STREAMING_TABLE"})),
        with("v", json!({"table_type": "VIEW", "storage_location": null})),
        with("files", json!({"data_source_format": "PARQUET"})),
        with("foreign", json!({"table_type": "FOREIGN", "data_source_format": "SNOWFLAKE_FORMAT"})),
        with("hadoop", json!({"storage_location": "s3a://lake/prod/cdc/hadoop"})),
        with("local", json!({"storage_location": "file:/tmp/lake/local"})),
        json!({"name": "bare"}),
        with("orders", json!({})),
        with("next", json!({"table_type": "NEXT_YEARS_TYPE", "data_source_format": 7, "columns": {"x": 1}})),
    ]
}

#[tokio::test]
async fn tables_of_many_pages_are_found_once_and_views_are_passed_over() {
    let server = Server::start(lake);
    let found = all(&catalog(&server, &["prod.cdc.*"])).await;
    let found: Vec<Found> = found.into_iter().map(Result::unwrap).collect();
    let uris: Vec<&str> = found.iter().map(|f| f.uri.as_str()).collect();
    let lake = ["s3://lake/prod/cdc/orders", "s3://lake/prod/cdc/kept", "s3://lake/prod/cdc/hadoop"];
    assert_eq!(uris, [lake.as_slice(), &["file:///tmp/lake/local"]].concat());
    assert_eq!(found[0].columns, Some(vec!["id".to_owned(), "v".to_owned()]));
    assert_eq!(found[1].columns, None);
    assert!(matches!(found[0].access, Access::Lent(_)) && matches!(found[3].access, Access::Options(_)));
    let asked = server.asked();
    assert!(asked.iter().all(|r| r.path == format!("{API}/tables")), "literal parts are not listed");
    assert!(asked.iter().all(|r| r.param("max_results") == Some("0")));
    assert!(asked.iter().all(|r| r.headers["authorization"] == format!("Bearer {TOKEN}")));
    assert_eq!(asked.len(), 13, "seven pages, an empty one between each two");
}

#[tokio::test(flavor = "multi_thread")]
async fn unity_keeps_the_contract_of_sources() {
    let server = Server::start(lake);
    let make = || Box::new(catalog(&server, &["dev.*.*", "prod.*.*"])) as Box<dyn Source>;
    let tables =
        ["dev/cdc/t", "prod/a/t", "prod/b/t", "prod/d/t", "prod/e/t"].map(|t| format!("s3://lake/{t}"));
    let cdc = ["s3://lake/prod/cdc/orders", "s3://lake/prod/cdc/kept", "s3://lake/prod/cdc/hadoop"];
    let mut wanted = [tables.to_vec(), cdc.map(str::to_owned).to_vec()].concat();
    wanted.push("file:///tmp/lake/local".to_owned());
    contract::holds(&make, &wanted, &[TOKEN]).await;

    let broken = Server::start(|request| match request.param("schema_name") {
        Some("cdc") => Answer::json(403, &json!({"error_code": "PERMISSION_DENIED", "message": "not you"})),
        _ => lake(request),
    });
    let make = || Box::new(catalog(&broken, &["prod.*.*"])) as Box<dyn Source>;
    let rest: Vec<String> =
        wanted.into_iter().filter(|t| t.starts_with("s3://lake/prod/") && t.ends_with("/t")).collect();
    contract::goes_on_after_an_error(&make, &rest, 1, &[TOKEN]).await;
}

#[tokio::test]
async fn catalogs_and_schemas_are_listed_where_the_pattern_has_a_star() {
    let server = Server::start(lake);
    let mut options = options(&server, &["*.*.*"]);
    options.exclude = vec!["prod.cdc.*".to_owned(), "*.d.t".to_owned(), "system.*.*".to_owned()];
    options.kind = Some("bronze".to_owned());
    options.token = None;
    let catalog = UnityCatalog::new(options).unwrap();
    let wanted = ["dev/cdc", "prod/a", "prod/b", "prod/e"].map(|t| format!("s3://lake/{t}/t"));
    assert_eq!(uris(&catalog).await, wanted);
    let asked = server.asked();
    assert!(asked.iter().all(|r| !r.headers.contains_key("authorization")));
    let left_out = |r: &Request| {
        r.param("catalog_name") == Some("system") || r.line().contains("prod&max_results=0&schema_name=cdc")
    };
    assert!(!asked.iter().any(left_out), "what is left out as a whole is not listed");
    assert!(all(&catalog).await.iter().all(|f| f.as_ref().unwrap().kind.as_deref() == Some("bronze")));
}

#[tokio::test]
async fn a_table_that_is_named_in_full_is_asked_for_alone() {
    let server = Server::start(lake);
    assert_eq!(uris(&catalog(&server, &["prod.cdc.orders"])).await, ["s3://lake/prod/cdc/orders"]);
    let asked: Vec<String> = server.asked().iter().map(Request::line).collect();
    assert_eq!(asked, [format!("GET {API}/tables/prod.cdc.orders?")]);
    for (name, says) in [("prod.cdc.gone", "404 (TABLE_DOES_NOT_EXIST: gone)"), ("prod.cdc.v", "`VIEW`")] {
        let found = all(&catalog(&server, &[name])).await;
        let error = found.into_iter().next().unwrap().unwrap_err();
        assert_eq!(error.table(), Some(format!("unity {name}").as_str()));
        assert!(error.message().contains(says) && error.hint().is_some(), "{error:?}");
    }
    let both = catalog(&server, &["prod.cdc.orders", "prod.cdc.*"]);
    assert_eq!(uris(&both).await.len(), 4, "a table that two patterns name is given once");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_tables_are_given_before_the_second_page_is_there() {
    let (open, gate) = mpsc::channel::<()>();
    let gate = std::sync::Mutex::new(gate);
    let server = Server::start(move |request| {
        if request.param("page_token").is_some() {
            gate.lock().unwrap().recv_timeout(Duration::from_secs(20)).unwrap();
        }
        lake(request)
    });
    let catalog = catalog(&server, &["prod.cdc.*"]);
    let mut tables = catalog.tables();
    let first = tokio::time::timeout(Duration::from_secs(10), tables.next()).await.unwrap();
    assert_eq!(first.unwrap().unwrap().uri, "s3://lake/prod/cdc/orders");
    (0..20).for_each(|_| open.send(()).unwrap());
    assert_eq!(tables.count().await, 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn at_most_four_schemas_are_listed_at_once_and_dropping_ends_it() {
    let now = Arc::new(std::sync::Mutex::new((0, 0)));
    let counts = Arc::clone(&now);
    let server = Server::start(move |request| {
        let lists_tables = request.path.ends_with("/tables");
        if lists_tables {
            let mut counts = counts.lock().unwrap();
            counts.0 += 1;
            counts.1 = counts.1.max(counts.0);
        }
        let names: Vec<String> = (0..20).map(|n| format!("s{n}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let answer = match request.param("schema_name") {
            None => page(request, "schemas", &named(&names)),
            Some(schema) => {
                std::thread::sleep(Duration::from_millis(30));
                page(request, "tables", &[table(&format!("c.{schema}.t"))])
            }
        };
        if lists_tables {
            counts.lock().unwrap().0 -= 1;
        }
        answer
    });
    let source = catalog(&server, &["c.*.*"]);
    assert_eq!(uris(&source).await.len(), 20);
    let most = now.lock().unwrap().1;
    assert!((2..=4).contains(&most), "{most} at once");
    let before = server.asked().len();
    let first = source.tables().next().await.unwrap();
    assert!(first.is_ok());
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(server.asked().len() - before < 12, "a stream that is dropped asks no more");
}

#[tokio::test]
async fn a_table_without_a_place_to_open_is_one_error_that_names_it() {
    let server = Server::start(|request| {
        let mut tables = vec![table("c.s.good"), table("c.s.none"), table("c.s.odd"), json!({"name": ""})];
        tables[1].as_object_mut().unwrap().remove("storage_location");
        tables[2]["storage_location"] = json!("dbfs:/x?sig=SECRET");
        page(request, "tables", &tables)
    });
    let found = all(&catalog(&server, &["c.s.*"])).await;
    assert_eq!(found.iter().filter(|f| f.is_ok()).count(), 1);
    let errors: Vec<Error> = found.into_iter().filter_map(Result::err).collect();
    let tables: Vec<_> = errors.iter().map(|e| e.table()).collect();
    assert_eq!(tables, [Some("unity c.s.none"), Some("unity c.s.odd"), None]);
    assert!(errors[..2].iter().all(|e| e.code() == ErrorCode::Usage && e.hint().is_some()), "{errors:?}");
    assert!(errors.iter().all(|e| !seen(e).contains("SECRET")));
}
