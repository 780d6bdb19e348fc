//! How often the store is asked.

use delta_migrate::{IfMissing, Target};

use serde_json::{Value, json};

use crate::support::checkpoint::write_checkpoint;
use crate::support::kinds::{kind_file, row};
use crate::support::rows::append;
use crate::support::store::{Trick, TrickStore};
use crate::support::{FACTS, Table, apply, facts, migrator};

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
    let migrator = migrator(FACTS);
    let opened = migrator.bring_up_to_date("facts", loaded).await.unwrap();
    assert_eq!(opened.report().outcome.as_str(), "current");
    assert_eq!(store.take(), Vec::<String>::new());
    // The second time it is known from the first; what is told is the same, of the version that is loaded.
    let first = serde_json::to_value(opened.report()).unwrap();
    let mut loaded = opened.into_table();
    let newer = table.commit_nothing();
    loaded.update_incremental(None).await.unwrap();
    store.take();
    let opened = migrator.bring_up_to_date("facts", loaded).await.unwrap();
    assert_eq!(store.take(), Vec::<String>::new());
    let mut second = serde_json::to_value(opened.report()).unwrap();
    assert_eq!(second["log_version"], newer);
    for key in ["log_version", "elapsed_ms"] {
        second[key] = first[key].clone();
    }
    assert_eq!(second, first);
}

/// The requests of one run on the table, sorted, and how it ended.
async fn requests_of(table: &Table, kind: &str) -> (String, Vec<String>) {
    let store = TrickStore::counting();
    requests_in(&store, table, kind).await
}

async fn requests_in(store: &std::sync::Arc<TrickStore>, table: &Table, kind: &str) -> (String, Vec<String>) {
    let location = table.location_in(store);
    let report = migrator(kind).migrate("facts", &location, Target::Newest, IfMissing::Create).await.unwrap();
    let mut requests = store.take();
    requests.sort();
    (report.outcome.as_str().to_owned(), requests)
}

/// A table that is current, with a checkpoint of its second version and three commits after it.
fn with_a_checkpoint() -> Table {
    let table = facts().table();
    assert_eq!(apply(&table, FACTS).code, 0);
    let actions =
        [json!({ "protocol": table.action(0, "protocol") }), json!({ "metaData": table.metadata() })];
    write_checkpoint(&table, "00000000000000000001.checkpoint.parquet", &actions);
    let hint = json!({ "version": 1, "size": 2 });
    std::fs::write(table.path().join("_delta_log/_last_checkpoint"), hint.to_string()).unwrap();
    for _ in 0..3 {
        table.commit_nothing();
    }
    table
}

fn write_checksum(table: &Table, change: impl FnOnce(&mut Value)) {
    let mut checksum = json!({
        "tableSizeBytes": 0, "numFiles": 0, "numMetadata": 1, "numProtocol": 1,
        "metadata": table.metadata(), "protocol": table.action(0, "protocol"),
    });
    change(&mut checksum);
    let path = table.path().join(format!("_delta_log/{:020}.crc", table.newest()));
    std::fs::write(path, checksum.to_string()).unwrap();
}

#[tokio::test]
async fn a_checkpoint_costs_its_end_and_the_commits_after_it() {
    let table = with_a_checkpoint();
    let (outcome, requests) = requests_of(&table, FACTS).await;
    assert_eq!(outcome, "current");
    let mut wanted = vec![
        "get 00000000000000000002.json".to_owned(),
        "get 00000000000000000003.json".to_owned(),
        "get 00000000000000000004.json".to_owned(),
        "get _last_checkpoint".to_owned(),
        "get-range 00000000000000000001.checkpoint.parquet".to_owned(),
        "list _delta_log".to_owned(),
    ];
    assert_eq!(requests, wanted);
    // A checksum file stands for all but the newest commit.
    write_checksum(&table, |_| {});
    let (outcome, requests) = requests_of(&table, FACTS).await;
    assert_eq!(outcome, "current");
    wanted.drain(0..2);
    wanted.remove(2);
    wanted.insert(0, "get 00000000000000000004.crc".to_owned());
    assert_eq!(requests, wanted);
}

#[tokio::test]
async fn nothing_is_written_or_refused_on_the_word_of_a_checksum_file() {
    // It calls the table new, and behind: the log knows better.
    for (key, value) in [("app.min_version", "99"), ("app.schema_version", "1")] {
        let table = with_a_checkpoint();
        write_checksum(&table, |checksum| checksum["metadata"]["configuration"][key] = value.into());
        let before = table.files();
        assert_eq!(requests_of(&table, FACTS).await.0, "current");
        assert_eq!(table.files(), before);
    }
    // And where something is to be done, what is written comes from the log.
    let table = with_a_checkpoint();
    write_checksum(&table, |checksum| {
        checksum["metadata"]["configuration"]["app.schema_version"] = "9".into();
        checksum["metadata"]["configuration"]["from.the.checksum"] = "yes".into();
    });
    table.set_property("app.schema_version", "9");
    let newest = format!("_delta_log/{:020}.crc", table.newest());
    std::fs::rename(table.path().join("_delta_log/00000000000000000004.crc"), table.path().join(newest))
        .unwrap();
    let file =
        std::fs::File::options().append(true).open(table.path().join("_delta_log/00000000000000000005.crc"));
    file.unwrap().set_modified(std::time::SystemTime::now()).unwrap();
    let (outcome, requests) = requests_of(&table, FACTS).await;
    assert_eq!(outcome, "migrated");
    assert!(requests.contains(&"get 00000000000000000005.crc".to_owned()), "{requests:?}");
    assert_eq!(
        (table.property("app.schema_version").as_deref(), table.property("from.the.checksum")),
        (Some("10"), None)
    );
}

#[tokio::test]
async fn ten_migrations_cost_what_one_costs() {
    let (one, ten) = (facts().table(), facts().table());
    let of_one = requests_of(&one, &kind_file(1)).await;
    assert_eq!(of_one, requests_of(&ten, &kind_file(10)).await);
    assert_eq!(of_one.0, "migrated");
    assert_eq!(ten.property("app.schema_version").as_deref(), Some("10"));
}

#[tokio::test]
async fn a_lost_race_costs_the_winners_commit_and_no_list() {
    let table = std::sync::Arc::new(facts().table());
    let winner = table.clone();
    let store = TrickStore::on_put(move |n| {
        if n == 0 {
            winner.commit_nothing();
        }
        Trick::Pass
    });
    let (outcome, requests) = requests_in(&store, &table, FACTS).await;
    assert_eq!((outcome.as_str(), store.puts()), ("migrated", 2));
    let get = |version| format!("get {}", entry(version));
    let look = |version| format!("get-range {}", entry(version));
    let wanted = [
        get(0),
        // Whose it is, and what it holds.
        get(1),
        get(1),
        // Nothing newer.
        get(2),
        "get _last_checkpoint".to_owned(),
        // Before the first put, after the winner was read, and around the second put.
        look(0),
        look(0),
        look(1),
        look(1),
        "list _delta_log".to_owned(),
        format!("put {}", entry(1)),
        format!("put {}", entry(2)),
    ];
    assert_eq!(requests, wanted);
}

#[tokio::test]
async fn a_new_table_is_one_put() {
    let table = Table::missing();
    let (outcome, requests) = requests_of(&table, FACTS).await;
    assert_eq!(outcome, "created");
    // That nothing is there is asked twice: listings tear.
    let wanted = [
        "get _last_checkpoint",
        "list _delta_log",
        "list _delta_log",
        "list-with-delimiter facts",
        "put 00000000000000000000.json",
    ];
    assert_eq!(requests, wanted);
}
