//! Walks in memory, with a store that counts, fails and stalls; `local` has those of real folders.

mod local;

use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt as _, TryStreamExt as _};
use object_store::limit::LimitStore;
use object_store::memory::InMemory;
use object_store::throttle::{ThrottleConfig, ThrottledStore};
use object_store::{ObjectStore, ObjectStoreExt as _};
use url::Url;

use super::*;
use crate::catalog::Trust;
use crate::delta::test_store::{RecordingStore, Verb, unavailable};
use crate::error::ErrorCode;

const COMMIT: &str = "_delta_log/00000000000000000000.json";

async fn store_with(files: &[&str]) -> Arc<InMemory> {
    let store = Arc::new(InMemory::new());
    for file in files {
        store.put(&StorePath::parse(file).unwrap(), "x".into()).await.unwrap();
    }
    store
}

/// A walk in a store that is handed in.
fn walk_in(store: Arc<dyn ObjectStore>, root: &str) -> Walk {
    let url = location::parse(root).unwrap();
    let folder = Folder { store, path: location::path_in_store(&url).unwrap(), url };
    let options = BTreeMap::from([("token".to_owned(), "s3cret".to_owned())]);
    Walk { root: root.to_owned(), folder, options, kind: None, rules: Rules::default() }
}

/// What hangs fails.
async fn in_time<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), work).await.expect("an answer in time")
}

/// All that a walk finds, sorted, and the texts of its errors.
async fn all(walk: &Walk) -> (Vec<String>, Vec<String>) {
    let (mut found, mut errors) = (Vec::new(), Vec::new());
    for item in in_time(walk.tables().collect::<Vec<_>>()).await {
        match item {
            Ok(table) => found.push(table.uri),
            Err(e) => errors.push(format!("{}: {e}", e.code())),
        }
    }
    found.sort();
    errors.sort();
    (found, errors)
}

async fn found(walk: &Walk) -> Vec<String> {
    let (found, errors) = all(walk).await;
    assert_eq!(errors, Vec::<String>::new());
    found
}

#[tokio::test]
async fn a_log_file_makes_a_table_and_nothing_below_it_is_looked_at() {
    let store = store_with(&[
        "lake/a/_delta_log/00000000000000000007.checkpoint.parquet",
        "lake/a/d=1/x.parquet",
        &format!("lake/a/inner/{COMMIT}"),
        "lake/deep/er/b/_delta_log/_last_checkpoint",
        &format!("lake/x=1/c/{COMMIT}"),
        &format!("lake/_hidden/t/{COMMIT}"),
        &format!("lake/.hidden/{COMMIT}"),
        "lake/plain/file.parquet",
        &format!("elsewhere/{COMMIT}"),
    ])
    .await;
    let walk = walk_in(store.clone(), "memory:///lake/");
    assert_eq!(found(&walk).await, ["memory:///lake/a", "memory:///lake/deep/er/b", "memory:///lake/x=1/c"]);
    // The root's own name is not judged, and a table has nothing below it.
    assert_eq!(found(&walk_in(store.clone(), "memory:///lake/_hidden")).await, ["memory:///lake/_hidden/t"]);
    assert_eq!(found(&walk_in(store.clone(), "memory:///lake/a")).await, ["memory:///lake/a"]);
    assert_eq!(found(&walk_in(store.clone(), "memory:///")).await.len(), 4);
    assert_eq!(found(&walk_in(store, "memory:///nothing/here")).await, Vec::<String>::new());
}

#[tokio::test]
async fn a_log_folder_without_a_log_file_is_no_table_and_hides_nothing() {
    let store = store_with(&[
        "a/_delta_log/0000000000000000000.json",
        "a/_delta_log/00000000000000000000.json#1",
        "a/_delta_log/00000000000000000000.json.5f.tmp",
        "a/_delta_log/ümlautümlaut00000000.json",
        "a/_delta_log/_sidecars/00000000000000000000.parquet",
        &format!("a/b/{COMMIT}"),
    ])
    .await;
    assert_eq!(found(&walk_in(store, "memory:///")).await, ["memory:///a/b"]);
}

#[tokio::test]
async fn a_table_costs_one_listing_and_any_other_folder_two() {
    let mut files: Vec<String> = (0..1500).map(|i| format!("lake/t/part-{i}.parquet")).collect();
    files.extend((0..1500).map(|i| format!("lake/t/_delta_log/{i:020}.json")));
    files.extend((0..1500).map(|i| format!("lake/plain/part-{i}.parquet")));
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    let store = Arc::new(RecordingStore::new(store_with(&files).await));
    let walk = walk_in(store.clone(), "memory:///lake");
    assert_eq!(found(&walk).await, ["memory:///lake/t"]);
    let mut requests = store.take();
    requests.sort();
    let expected = [
        "list lake/_delta_log",
        "list lake/plain/_delta_log",
        "list lake/t/_delta_log",
        "list-with-delimiter lake",
        "list-with-delimiter lake/plain",
    ];
    assert_eq!(requests, expected);
}

#[tokio::test]
async fn what_the_globs_rule_out_is_not_asked_for() {
    let files =
        ["a/t", "a/cdc_x", "a/_b/t", "old/t", "tmp/x/t", "b/c/cdc_y"].map(|t| format!("{t}/{COMMIT}"));
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    let store = Arc::new(RecordingStore::new(store_with(&files).await));
    let all = walk_in(store.clone(), "memory:///").include(["**/cdc_*"]).unwrap();
    assert_eq!(found(&all).await, ["memory:///a/cdc_x", "memory:///b/c/cdc_y"]);
    let some = walk_in(store.clone(), "memory:///").exclude(["old", "tmp/**", "**/cdc_*"]).unwrap();
    store.take();
    assert_eq!(found(&some).await, ["memory:///a/t"]);
    // The root, `a`, `b` and `b/c` with two, `a/t` and `tmp` with one.
    assert_eq!((store.count(Verb::List), store.count(Verb::ListWithDelimiter)), (6, 4));
    store.take();
    let level = walk_in(store.clone(), "memory:///").include(["a/*"]).unwrap();
    assert_eq!(found(&level).await, ["memory:///a/cdc_x", "memory:///a/t"]);
    assert_eq!((store.count(Verb::List), store.count(Verb::ListWithDelimiter)), (4, 2));
    // A root that is the table was named; only an exclude speaks against it.
    let root = || walk_in(store.clone(), "memory:///a/t").include(["x"]).unwrap();
    assert_eq!(found(&root()).await, ["memory:///a/t"]);
    assert_eq!(found(&root().exclude(["**"]).unwrap()).await, Vec::<String>::new());
}

#[tokio::test]
async fn a_folder_that_fails_is_one_error_and_the_others_go_on() {
    let files = ["a/t", "b/t", "c/t"].map(|t| format!("lake/{t}/{COMMIT}"));
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    let store = RecordingStore::new(store_with(&files).await).before(|request| {
        match (request.verb, request.path.as_str()) {
            (Verb::List, "lake/a/_delta_log") => Some(unavailable()),
            (Verb::ListWithDelimiter, "lake/c") => Some(object_store::Error::PermissionDenied {
                path: "lake/c".to_owned(),
                source: "403 forbidden".into(),
            }),
            // Somebody takes this one away meanwhile.
            (Verb::ListWithDelimiter, "lake/b") => {
                Some(object_store::Error::NotFound { path: "lake/b".to_owned(), source: "404".into() })
            }
            _ => None,
        }
    });
    let (found, errors) = all(&walk_in(Arc::new(store), "s3://u:s3cret@bucket/lake?sig=s3cret")).await;
    assert_eq!(found, Vec::<String>::new());
    let expected = [
        "storage: the folder `s3://bucket/lake/a` can't be listed",
        "storage: the folder `s3://bucket/lake/c` can't be listed",
    ];
    assert_eq!(errors, expected);
    // A root that is not there, such as a bucket, is no empty prefix.
    let store = RecordingStore::new(store_with(&[]).await).before(|_| {
        Some(object_store::Error::NotFound { path: String::new(), source: "no such bucket".into() })
    });
    let (_, errors) = all(&walk_in(Arc::new(store), "s3://bucket/lake")).await;
    assert_eq!(errors, ["storage: the folder `s3://bucket/lake` can't be listed"]);
}

#[tokio::test]
async fn a_table_is_given_while_the_walk_goes_on() {
    let files: Vec<String> = (0..2000).map(|i| format!("lake/f{i:04}/x")).collect();
    let mut files: Vec<&str> = files.iter().map(String::as_str).collect();
    let table = format!("lake/f0009/{COMMIT}");
    files.push(&table);
    let store = RecordingStore::new(store_with(&files).await)
        .stall(|request| request.path.contains("/f") && !request.path.contains("/f0009"));
    let store = Arc::new(store);
    let walk = walk_in(store.clone(), "memory:///lake");
    let mut tables = walk.tables();
    let first = in_time(tables.next()).await.unwrap();
    assert_eq!(first.unwrap().uri, "memory:///lake/f0009");
    // All others hang: no more than the bound are under way, and dropping the stream ends the work.
    assert!(tokio::time::timeout(Duration::from_millis(20), tables.next()).await.is_err());
    assert_eq!(store.count(Verb::List), 1 + 16 + 1);
    drop(tables);
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert_eq!(Arc::strong_count(&store), 2, "a listing outlives the stream");
}

#[tokio::test]
async fn a_caller_that_waits_for_the_same_store_is_not_waited_for() {
    let files: Vec<String> = (0..40).map(|i| format!("lake/t{i}/{COMMIT}")).collect();
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    let slow = ThrottleConfig { wait_list_per_call: Duration::from_millis(1), ..Default::default() };
    let inner = store_with(&files).await;
    let store = Arc::new(LimitStore::new(ThrottledStore::new(inner, slow), 1));
    let walk = walk_in(store.clone(), "memory:///lake");
    let mut tables = walk.tables();
    let mut n = 0;
    while let Some(table) = in_time(tables.next()).await {
        n += 1;
        let at = StorePath::from(format!("lake/{}", table.unwrap().uri.rsplit('/').next().unwrap()));
        let listed = in_time(store.list(Some(&at)).try_collect::<Vec<_>>()).await;
        assert_eq!(listed.unwrap().len(), 1);
    }
    assert_eq!(n, 40);
}

#[tokio::test]
async fn what_is_given_opens_as_that_very_table() {
    let names = ["a b", "100%", "x%20y", "x#y?z", "ü/é", "d=1", "a+b", "[x]", "~", "back\\slash", "%2E%2E"];
    for root in ["memory:///lake/", "memory:///la%20ke/50%25/", "memory:///"] {
        let stores = Arc::new(Stores::new(4));
        let folder = stores.folder(root, &BTreeMap::new()).unwrap();
        for name in names {
            let path = StorePath::parse(format!("{}/{name}/{COMMIT}", folder.path)).unwrap();
            folder.store.put(&path, "x".into()).await.unwrap();
        }
        let walk = Walk::new(stores.clone(), root, BTreeMap::new()).unwrap();
        let found = found(&walk).await;
        assert_eq!(found.len(), names.len(), "{found:?}");
        for uri in found {
            let location = stores.location(&uri, &BTreeMap::new()).unwrap();
            assert_eq!(location.uri(), uri);
            let files: Vec<_> = location.store().list(None).try_collect().await.unwrap();
            let files: Vec<&str> = files.iter().map(|f| f.location.as_ref()).collect();
            assert_eq!(files, [COMMIT], "{uri}");
        }
    }
}

#[tokio::test]
async fn a_table_carries_the_rule_and_no_secret() {
    let store = store_with(&[&format!("lake/t/{COMMIT}")]).await;
    let walk = walk_in(store, "abfss://box@account/lake?sig=s3cret").kind("facts");
    let table = walk.tables().next().await.unwrap().unwrap();
    assert_eq!(table.uri, "abfss://box@account/lake/t");
    assert_eq!((table.kind.as_deref(), table.trust), (Some("facts"), Trust::Found));
    assert!(matches!(&table.access, Access::Options(options) if options["token"] == "s3cret"));
    assert_eq!(walk.name(), "walk of abfss://box@account/lake");
    assert!(!format!("{walk:?}{table:?}").contains("s3cret"));
    assert_eq!(Url::parse(&table.uri).unwrap().query(), None);
}

#[test]
fn outside_of_a_runtime_it_is_an_error() {
    let walk = walk_in(Arc::new(InMemory::new()), "memory:///");
    let item = futures::executor::block_on(walk.tables().next());
    assert_eq!(item.unwrap().unwrap_err().code(), ErrorCode::Usage);
}
