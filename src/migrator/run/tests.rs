//! Clocks that jump, on the same table and between two attempts at one commit.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use deltalake::logstore::{StorageConfig, logstore_with};
use object_store::ObjectStoreExt as _;
use object_store::memory::InMemory;
use object_store::path::Path;
use serde_json::{Value, json};
use url::Url;
use uuid::Uuid;

use super::*;
use crate::delta::test_store::{RecordingStore, Verb, now};
use crate::migrator::Moments;

/// A clock that stands still until it is set.
#[derive(Debug)]
struct Clock(AtomicI64);

impl Clock {
    fn set(&self, millis: i64) {
        self.0.store(millis, Ordering::SeqCst);
    }
}

impl Moments for Clock {
    fn now(&self) -> DateTime<Utc> {
        DateTime::from_timestamp_millis(self.0.load(Ordering::SeqCst)).unwrap()
    }

    fn id(&self) -> Uuid {
        Uuid::new_v4()
    }
}

/// 2026, and far from it on both sides.
const NOW: i64 = 1_767_225_600_000;
const PAST: i64 = 86_400_000;
const FUTURE: i64 = 4_102_444_800_000;

fn migrator(clock: &Arc<Clock>, migrations: usize) -> Migrator {
    let mut text = "kind = \"facts\"\n[columns]\nid = \"long\"\n[properties]\n\
                    \"delta.enableInCommitTimestamps\" = \"true\"\n"
        .to_owned();
    for n in 0..migrations {
        text.push_str(&format!(
            "[[migrations]]\ndescription = \"{n}\"\nadd_columns = {{ c{n} = \"long\" }}\n"
        ));
    }
    let builder = Migrator::builder(Namespace::new("app").unwrap()).kind(Kind::from_toml(&text).unwrap());
    builder.moments(clock.clone()).build().unwrap()
}

fn entry_path(version: u64) -> Path {
    Path::from(format!("t/_delta_log/{version:020}.json"))
}

fn location(store: Arc<dyn object_store::ObjectStore>) -> Location {
    let url = Url::parse("memory:///t/").unwrap();
    Location::from_log_store(logstore_with(store, &url, StorageConfig::default()).unwrap())
}

async fn migrate(clock: &Arc<Clock>, location: &Location, migrations: usize) -> TableReport {
    let migrator = migrator(clock, migrations);
    migrator.migrate("facts", location, Target::Newest, IfMissing::Create).await.unwrap()
}

async fn timestamps(store: &InMemory, versions: u64) -> Vec<i64> {
    let mut found = Vec::new();
    for version in 0..versions {
        let bytes = store.get(&entry_path(version)).await.unwrap().bytes().await.unwrap();
        let first = bytes.split(|b| *b == b'\n').next().unwrap();
        let info: Value = serde_json::from_slice(first).unwrap();
        found.push(info["commitInfo"]["inCommitTimestamp"].as_i64().unwrap());
    }
    found
}

#[tokio::test]
async fn timestamps_rise_whatever_the_clock_does() {
    let store = Arc::new(InMemory::new());
    let location = location(store.clone());
    let clock = Arc::new(Clock(AtomicI64::new(NOW)));
    for (migrations, millis) in [NOW, PAST, FUTURE, NOW, 0, -1].into_iter().enumerate() {
        clock.set(millis);
        migrate(&clock, &location, migrations).await;
    }
    let wanted = [NOW, NOW + 1, FUTURE, FUTURE + 1, FUTURE + 2, FUTURE + 3];
    assert_eq!(timestamps(&store, 6).await, wanted);
}

#[tokio::test]
async fn a_clock_that_jumps_between_two_attempts_changes_neither_order_nor_patience() {
    for (jump, wanted) in [(PAST, FUTURE + 1), (FUTURE + 1000, FUTURE + 1000)] {
        let inner = Arc::new(InMemory::new());
        let clock = Arc::new(Clock(AtomicI64::new(NOW)));
        migrate(&clock, &location(inner.clone()), 0).await;
        let (foreign, turned) = (inner.clone(), clock.clone());
        let first = std::sync::atomic::AtomicBool::new(true);
        // Another writer, whose clock is ahead, wins the first race; meanwhile ours is set anew.
        let store = RecordingStore::new(inner.clone()).before(move |request| {
            if request.verb == Verb::Put && first.swap(false, Ordering::SeqCst) {
                let info = json!({ "commitInfo": { "operation": "WRITE", "inCommitTimestamp": FUTURE } });
                now(foreign.put(&entry_path(1), format!("{info}\n").into())).unwrap();
                turned.set(jump);
            }
            None
        });
        let report = migrate(&clock, &location(Arc::new(store)), 1).await;
        assert_eq!((report.attempts, report.log_version.map(LogVersion::get)), (2, Some(2)));
        assert_eq!(timestamps(&inner, 3).await, [NOW, FUTURE, wanted]);
    }
}

#[tokio::test]
async fn a_plan_made_upon_an_entry_that_is_gone_is_made_anew() {
    let inner = Arc::new(InMemory::new());
    let clock = Arc::new(Clock(AtomicI64::new(NOW)));
    migrate(&clock, &location(inner.clone()), 0).await;
    // An entry without the stamp, as a clean-up that goes on may leave one; it goes before it is looked at.
    let bytes = inner.get(&entry_path(0)).await.unwrap().bytes().await.unwrap();
    let lines = String::from_utf8(bytes.to_vec()).unwrap();
    let metadata = lines.lines().find(|line| line.contains("\"metaData\"")).unwrap();
    let mut metadata: Value = serde_json::from_str(metadata).unwrap();
    metadata["metaData"]["configuration"] = json!({});
    let info = json!({ "commitInfo": { "inCommitTimestamp": NOW + 1 } });
    let entry = format!("{info}\n{metadata}\n");
    inner.put(&entry_path(1), entry.clone().into()).await.unwrap();
    let refused =
        migrator(&clock, 1).plan("facts", &location(inner.clone()), Target::Newest).await.unwrap_err();
    assert_eq!(refused.code(), ErrorCode::StampLost);
    let log = inner.clone();
    let store = RecordingStore::new(inner.clone()).before(move |request| {
        if request.verb == Verb::GetRange {
            drop(now(log.delete(&entry_path(1))));
        }
        None
    });
    let planned = migrator(&clock, 1).plan("facts", &location(Arc::new(store)), Target::Newest).await;
    assert_eq!(planned.unwrap().to().get(), 1);
}
