use serde_json::json;

use super::answer::{Page, Table};
use super::*;
use crate::ErrorCode;

fn options() -> UnityOptions {
    UnityOptions {
        tables: vec!["prod.cdc.*".to_owned()],
        endpoint: "https://uc.example.com:8443/".to_owned(),
        token: Some("dapiSECRET".to_owned()),
        storage: BTreeMap::from([("aws_secret_access_key".to_owned(), "SECRET".to_owned())]),
        ..UnityOptions::default()
    }
}

fn strings(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|t| (*t).to_owned()).collect()
}

#[test]
fn its_name_says_where_and_what_and_no_secret() {
    let catalog = UnityCatalog::new(options()).unwrap();
    assert_eq!(catalog.name(), "unity catalog at uc.example.com:8443 (prod.cdc.*)");
    let text = format!("{catalog:?} {:?}", options());
    assert!(!text.contains("SECRET"), "{text}");
    assert!(text.contains("aws_secret_access_key"), "{text}");
}

#[test]
fn a_catalog_without_patterns_or_with_a_bad_one_is_refused() {
    for tables in [&[] as &[&str], &["prod.cdc"], &["a.b.c", ""]] {
        let error = UnityCatalog::new(UnityOptions { tables: strings(tables), ..options() }).unwrap_err();
        assert_eq!(error.code(), ErrorCode::Usage, "{tables:?}");
        assert!(error.hint().is_some());
    }
    let exclude = strings(&["x"]);
    assert!(UnityCatalog::new(UnityOptions { exclude, ..options() }).is_err());
}

#[test]
fn names_without_a_star_are_not_listed() {
    let tables = strings(&["prod.cdc.*", "PROD.cdc.orders", "dev_*.x.y"]);
    let catalog = UnityCatalog::new(UnityOptions { tables, ..options() }).unwrap();
    let wanted = |place: &[&str]| {
        let Wanted { literal, list } = catalog.wanted(&strings(place));
        (literal.join(" "), list)
    };
    assert_eq!(wanted(&[]), ("prod".to_owned(), true));
    assert_eq!(wanted(&["prod"]), ("cdc".to_owned(), false));
    assert_eq!(wanted(&["prod", "cdc"]), ("orders".to_owned(), true));
    assert_eq!(wanted(&["dev_1"]), ("x".to_owned(), false));
    assert_eq!(wanted(&["dev_1", "x"]), ("y".to_owned(), false));
    assert_eq!(wanted(&["other"]), (String::new(), false));
}

#[test]
fn a_page_is_read_with_what_is_odd_in_it() {
    let page = |text: &str| Page::read(text.as_bytes(), "tables");
    let read = |text: &str| page(text).map(|p| (p.items.len(), p.next));
    assert_eq!(read("{}"), Some((0, None)));
    assert_eq!(read(r#"{"tables": null, "next_page_token": ""}"#), Some((0, None)));
    assert_eq!(read(r#"{"tables": [], "next_page_token": "x", "new": {}}"#), Some((0, Some("x".to_owned()))));
    assert_eq!(read(r#"{"tables": [1, null, {}], "next_page_token": null}"#), Some((3, None)));
    for text in ["", "[]", "<html>", "\"x\"", r#"{"tables": {}}"#] {
        assert_eq!(read(text), None, "{text}");
    }
    let deep = format!(r#"{{"tables": [{}{}, {{"name": "t"}}]}}"#, "[".repeat(5000), "]".repeat(5000));
    let items = page(&deep).unwrap().items;
    assert_eq!(items.iter().map(answer::name).collect::<Vec<_>>(), [None, Some("t".to_owned())]);
}

#[test]
fn delta_tables_are_told_from_everything_else() {
    let is_ours = |kind: &str, format: &str| {
        let item = json!({"name": "t", "table_type": kind, "data_source_format": format});
        Table::read(&item).unwrap().is_ours()
    };
    assert!(is_ours("EXTERNAL", "DELTA") && is_ours("MANAGED", "Delta") && is_ours("external", "delta"));
    for kind in ["VIEW", "METRIC_VIEW", "MATERIALIZED_VIEW", "STREAMING_TABLE", "FOREIGN", "NEWER", ""] {
        assert!(!is_ours(kind, "DELTA"), "{kind}");
    }
    for format in ["PARQUET", "DELTASHARING", "ICEBERG", "NEWER", ""] {
        assert!(!is_ours("EXTERNAL", format), "{format}");
    }
    assert!(!Table::read(&json!({"name": "t"})).unwrap().is_ours());
    let odd =
        json!({"name": "t", "table_type": 7, "data_source_format": {}, "columns": "x", "table_id": null});
    assert_eq!(Table::read(&odd).unwrap().columns, None);
    assert_eq!(Table::read(&json!({"name": ""})), None);
}

#[test]
fn columns_come_in_the_order_of_their_positions() {
    let columns = |value| Table::read(&json!({"name": "t", "columns": value})).unwrap().columns;
    let three = json!([{"name": "c"}, {"name": "b", "position": 1, "type_name": "NEWER"}, {"name": "a", "position": 0}]);
    assert_eq!(columns(three), Some(strings(&["a", "b", "c"])));
    assert_eq!(columns(json!([])), None);
    assert_eq!(columns(json!([{"name": "a"}, {"position": 1}])), None);
}
