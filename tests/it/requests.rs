//! How often the store is asked.

use delta_migrate::{IfMissing, Target};

use crate::support::kinds::row;
use crate::support::rows::append;
use crate::support::store::TrickStore;
use crate::support::{FACTS, apply, facts, migrator};

fn entry(version: u64) -> String {
    format!("{version:020}.json")
}

#[tokio::test]
async fn nothing_to_do_is_one_get_of_the_hint_one_list_and_the_commits() {
    let table = facts().table();
    assert_eq!(apply(&table, FACTS).code, 0);
    let store = TrickStore::counting();
    let location = table.location_in(&store);
    let migrator = migrator(FACTS);
    let report = migrator.migrate("facts", &location, Target::Newest, IfMissing::Create).await.unwrap();
    assert_eq!(report.outcome.as_str(), "current");
    let mut requests = store.take();
    assert_eq!(requests[..2], ["get _last_checkpoint".to_owned(), "list _delta_log".to_owned()]);
    requests[2..].sort();
    assert_eq!(requests[2..], [format!("get {}", entry(0)), format!("get {}", entry(1))]);
}

#[tokio::test]
async fn something_to_do_is_one_put_more_and_a_look_at_the_tip_before_and_after() {
    let table = facts().table();
    append(&table, &[row(1)]).await;
    let store = TrickStore::counting();
    let location = table.location_in(&store);
    let migrator = migrator(FACTS);
    let report = migrator.migrate("facts", &location, Target::Newest, IfMissing::Create).await.unwrap();
    assert_eq!((report.outcome.as_str(), report.attempts), ("migrated", 1));
    let requests = store.take();
    let count = |verb: &str| requests.iter().filter(|r| r.starts_with(&format!("{verb} "))).count();
    assert_eq!((count("list"), count("put"), count("head")), (1, 1, 0), "{requests:?}");
    assert_eq!((count("get"), count("get-range")), (3, 2), "{requests:?}");
    assert!(requests.contains(&format!("put {}", entry(2))), "{requests:?}");
    assert_eq!(requests.len(), 7, "{requests:?}");
}

#[tokio::test]
async fn status_and_plan_put_nothing() {
    let table = facts().table();
    let store = TrickStore::counting();
    let location = table.location_in(&store);
    let migrator = migrator(FACTS);
    assert_eq!(migrator.status("facts", &location).await.unwrap().outcome.as_str(), "planned");
    migrator.plan("facts", &location, Target::Newest).await.unwrap();
    let requests = store.take();
    assert!(requests.iter().all(|r| r.starts_with("get ") || r.starts_with("list ")), "{requests:?}");
    assert_eq!(requests.len(), 6, "{requests:?}");
}

#[tokio::test]
async fn an_open_table_that_is_current_costs_no_request() {
    let table = facts().table();
    assert_eq!(apply(&table, FACTS).code, 0);
    let store = TrickStore::counting();
    let loaded = table.load_in(&store).await;
    store.take();
    let opened = migrator(FACTS).bring_up_to_date("facts", loaded).await.unwrap();
    assert_eq!(opened.report().outcome.as_str(), "current");
    assert_eq!(store.take(), Vec::<String>::new());
}
