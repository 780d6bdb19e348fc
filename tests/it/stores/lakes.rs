//! Whole lakes on real object stores: the same report as on a local disk, and many runs at once.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;

use delta_migrate::Location;
use futures::{StreamExt as _, TryStreamExt as _};
use object_store::path::Path as StorePath;
use object_store::{ObjectStore, ObjectStoreExt};
use serde_json::Value;

use super::Place;
use super::servers::{azurite, moto};
use crate::support::Ran;
use crate::support::lake::{Lake, lake_of_300};
use crate::support::table::files_below;

fn store(place: &Place) -> Arc<dyn ObjectStore> {
    let options: std::collections::HashMap<String, String> =
        place.env.iter().map(|(k, v)| (k.to_lowercase(), v.clone())).collect();
    // Makes the stores of this build known.
    Location::new(&place.uri, options.clone()).unwrap();
    let url = url::Url::parse(&format!("{}/", place.uri)).unwrap();
    deltalake::logstore::store_for(&url, options).unwrap()
}

/// Puts every file of the lake below the place.
async fn upload(lake: &Lake, place: &Place) {
    let (root, store) = (lake.path(""), store(place));
    let files = files_below(&lake.path("lake")).into_iter().filter(|(file, _)| file.is_file());
    let put = |(file, bytes): (std::path::PathBuf, Vec<u8>)| {
        let path = StorePath::parse(file.strip_prefix(&root).unwrap().to_str().unwrap()).unwrap();
        let store = &store;
        async move { store.put(&path, bytes.into()).await.unwrap() }
    };
    futures::stream::iter(files).map(put).buffer_unordered(16).collect::<Vec<_>>().await;
}

/// How many log entries each table has.
async fn entries(place: &Place) -> BTreeMap<String, usize> {
    let mut entries = BTreeMap::new();
    for meta in store(place).list(None).try_collect::<Vec<_>>().await.unwrap() {
        let path = meta.location.to_string();
        if let Some((table, file)) = path.split_once("/_delta_log/")
            && file.ends_with(".json")
        {
            *entries.entry(table.to_owned()).or_default() += 1;
        }
    }
    entries
}

fn apply(place: &Place, lake: &Lake) -> (i32, Value) {
    let ran = Ran::of(place.command(&lake.path(""), &["apply", "--format", "json"]).output().unwrap());
    (ran.code, ran.json())
}

/// What a report says of each table, without where the lake lies and how long it took.
fn gist(report: &Value, root: &str) -> Vec<Value> {
    let tables = report["tables"].as_array().unwrap();
    let gist = |table: &Value| {
        let mut table = table.clone();
        let uri = table["uri"].as_str().unwrap().replace("%20", " ");
        table["uri"] = uri.strip_prefix(root).unwrap_or_else(|| panic!("{uri} {root}")).into();
        table.as_object_mut().unwrap().remove("elapsed_ms");
        if let Some(error) = table.get_mut("error") {
            *error = error["code"].clone();
        }
        table
    };
    let mut gists: Vec<Value> = tables.iter().map(gist).collect();
    gists.sort_by_key(|table| table["uri"].to_string());
    gists
}

async fn the_same_lake(place: &Place) {
    let (lake, behind) = lake_of_300().await;
    upload(&lake, place).await;
    let before = entries(place).await;
    assert_eq!(before.len(), 300);
    let (_, local) = lake.json(&["apply"]);

    lake.configure(&format!("[[discover]]\nroot = \"{}/lake\"\n", place.uri));
    let (code, report) = apply(place, &lake);
    assert_eq!(code, 1);
    let root = lake.path("lake");
    assert_eq!(gist(&report, &format!("{}/lake", place.uri)), gist(&local, root.to_str().unwrap()));
    assert_eq!(report["summary"], local["summary"]);
    assert_eq!(report["summary"]["migrated"], behind);
    let after = entries(place).await;
    let more: usize = after.iter().map(|(table, n)| n - before[table]).sum();
    assert_eq!(more, behind);
    assert!(after.iter().all(|(table, n)| n - before[table] <= 1));

    let (code, again) = apply(place, &lake);
    assert_eq!((code, &again["summary"]["current"]), (1, &Value::from(298)), "{}", again["summary"]);
    assert_eq!(entries(place).await, after, "the second run wrote");
}

/// Twenty processes bring the same tables up to date at the same time; every one ends with exit code 0.
/// Handed back are the tables that did not get one commit, or that not one run alone says it migrated.
async fn crowd(place: &Place, tables: usize) -> BTreeMap<String, String> {
    let lake = Lake::new();
    lake.table("lake/t0", 2).await;
    for n in 1..tables {
        lake.copy("lake/t0", &format!("lake/d{}/t{n}", n % 3));
    }
    upload(&lake, place).await;
    lake.configure(&format!("[[discover]]\nroot = \"{}/lake\"\n", place.uri));
    let start = |folder: &Path| {
        let mut command = place.command(folder, &["apply", "--format", "json", "--concurrency", "4"]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let children: Vec<_> = (0..20).map(|_| start(&lake.path(""))).collect();
    let mut claims: BTreeMap<String, usize> = BTreeMap::new();
    for child in children {
        let ran = Ran::of(child.wait_with_output().unwrap());
        let report = ran.json();
        assert_eq!(ran.code, 0, "{} {}", report["summary"], ran.stderr);
        for table in report["tables"].as_array().unwrap() {
            let uri = table["uri"].as_str().unwrap();
            let (_, name) = uri.split_once("/lake/").unwrap();
            *claims.entry(format!("lake/{name}")).or_default() += usize::from(table["outcome"] == "migrated");
        }
    }
    let mut wrong = BTreeMap::new();
    let entries = entries(place).await;
    assert_eq!((claims.len(), entries.len()), (tables, tables));
    for (table, entries) in entries {
        let claims = claims.iter().find(|(name, _)| table.ends_with(name.as_str())).map_or(0, |(_, n)| *n);
        if (claims, entries) != (1, 3) {
            wrong.insert(table, format!("{entries} log entries, {claims} runs that say they made one"));
        }
    }
    wrong
}

/// Under load moto lets two racers win about once in 1,250 rounds: it looks and writes in two steps.
/// One such run is no fault of ours; two in a row, on tables of their own, would be.
async fn one_commit_a_table(place: impl Fn() -> Option<Place>, tables: usize) {
    let Some(first) = place() else { return };
    let wrong = crowd(&first, tables).await;
    if !wrong.is_empty() {
        let again = crowd(&place().unwrap(), tables).await;
        assert!(again.is_empty(), "{wrong:#?}, and then {again:#?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lake_of_300_tables_gives_the_same_report_on_moto() {
    if let Some(place) = moto() {
        the_same_lake(&place).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lake_of_300_tables_gives_the_same_report_on_azurite() {
    if let Some(place) = azurite() {
        the_same_lake(&place).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn twenty_racing_runs_over_fifty_tables_on_moto_make_one_commit_a_table() {
    one_commit_a_table(moto, 50).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn twenty_racing_runs_over_twenty_tables_on_azurite_make_one_commit_a_table() {
    one_commit_a_table(azurite, 20).await;
}
