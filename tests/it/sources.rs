//! Where tables come from. Every source is held to one contract.

pub(crate) mod contract;
#[cfg(feature = "glue")]
mod glue;
#[cfg(feature = "unity")]
mod unity;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use delta_migrate::Stores;
use delta_migrate::catalog::{Found, Source, TableList, Trust, Walk};

use crate::support::table::files_below;
use crate::support::{FACTS, facts, migrator};

fn secret_options() -> BTreeMap<String, String> {
    BTreeMap::from([("some_token".to_owned(), "s3cret".to_owned())])
}

fn uris(root: &Path, names: &[&str]) -> Vec<String> {
    names.iter().map(|name| root.join(name).to_str().unwrap().to_owned()).collect()
}

/// A folder with tables in it, and things that are none.
fn lake() -> (tempfile::TempDir, Vec<String>) {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let names = ["bronze/a b", "bronze/cdc_ü", "silver/deep/er/100%", "top"];
    for name in names.iter().chain(&["_tmp/t", ".trash/t"]) {
        facts().write(&root.join(name));
    }
    std::fs::create_dir_all(root.join("silver/plain/d=1")).unwrap();
    std::fs::write(root.join("silver/plain/d=1/x.parquet"), "x").unwrap();
    let uris = uris(root, &names);
    (folder, uris)
}

#[tokio::test]
async fn a_list_is_a_source() {
    let expected = ["/t/a", "s3://lake/b", "s3://lake/b", "abfss://box@account/c"].map(str::to_owned);
    let make = || {
        let tables = expected.iter().map(|uri| {
            let mut table = Found::at(uri.clone(), secret_options());
            table.trust = Trust::Named;
            table
        });
        Box::new(TableList::new(tables.collect())) as Box<dyn Source>
    };
    contract::holds(&make, &expected, &["s3cret"]).await;
    contract::goes_on_after_an_error(&make, &expected, 0, &["s3cret"]).await;
}

#[tokio::test]
async fn a_walk_of_a_folder_is_a_source() {
    let (folder, expected) = lake();
    let before = files_below(folder.path());
    let root = folder.path().to_str().unwrap();
    let make = || {
        let walk = Walk::new(Arc::new(Stores::new(2)), root, secret_options()).unwrap();
        Box::new(walk) as Box<dyn Source>
    };
    contract::holds(&make, &expected, &["s3cret"]).await;
    assert!(files_below(folder.path()) == before, "the walk wrote something");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_walk_on_several_threads_is_a_source() {
    let (folder, expected) = lake();
    let root = format!("file://{}", folder.path().to_str().unwrap());
    let make = || {
        let walk = Walk::new(Arc::new(Stores::new(1)), root.as_str(), secret_options()).unwrap();
        Box::new(walk) as Box<dyn Source>
    };
    contract::holds(&make, &expected, &["s3cret"]).await;
}

#[tokio::test]
async fn a_walk_of_an_object_store_is_a_source() {
    // One store in memory for all who ask with the same options.
    let stores = Arc::new(Stores::new(1));
    let options = BTreeMap::new();
    let expected = ["memory:///lake/a", "memory:///lake/b/c%20d", "memory:///lake/b/e%25"].map(str::to_owned);
    for uri in expected.iter().chain(&["memory:///lake/_x/t".to_owned(), "memory:///else".to_owned()]) {
        migrator(FACTS).open_at("facts", &stores.location(uri, &options).unwrap()).await.unwrap();
    }
    let make = || {
        let root = "memory:///lake/?sig=s3cret";
        Box::new(Walk::new(stores.clone(), root, options.clone()).unwrap()) as Box<dyn Source>
    };
    contract::holds(&make, &expected, &["s3cret"]).await;
}

#[tokio::test]
async fn a_walk_goes_on_after_what_can_not_be_read() {
    let (folder, expected) = lake();
    let make = || {
        let root = folder.path().to_str().unwrap();
        Box::new(Walk::new(Arc::new(Stores::new(2)), root, secret_options()).unwrap()) as Box<dyn Source>
    };
    // A table whose name no location can have.
    facts().write(&folder.path().join("bronze/~"));
    contract::goes_on_after_an_error(&make, &expected, 1, &["s3cret"]).await;
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("gone", folder.path().join("silver/broken")).unwrap();
        std::os::unix::fs::symlink("../silver", folder.path().join("silver/circle")).unwrap();
        contract::goes_on_after_an_error(&make, &expected, 2, &["s3cret"]).await;
    }
}
