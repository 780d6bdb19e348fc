//! Migrations of a table that eight writers append to as fast as they can.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use delta_migrate::{IfMissing, Kind, Location, Migration, Migrator, Namespace, SchemaVersion, Target};
use deltalake::DeltaTableError;
use deltalake::kernel::transaction::{CommitConflictError, TransactionError};
use object_store::memory::InMemory;
use serde_json::{Value, json};

use crate::support::log::entries;
use crate::support::rows::{known_columns, scan, try_append};
use crate::support::scheme::Named;

const WRITERS: usize = 8;
const TABLES: usize = 5;
const MIGRATIONS: u32 = 10;

/// One column more in each migration.
fn kind() -> Kind {
    let base = Kind::builder("facts").required_column("id", "long");
    let chain =
        (1..=MIGRATIONS).map(|n| Migration::builder(format!("c{n}")).add_column(format!("c{n}"), "string"));
    chain.fold(base, |kind, migration| kind.migration(migration)).build().unwrap()
}

fn release(known: u32) -> Migrator {
    let kind = kind().cut_at(SchemaVersion::new(known));
    Migrator::builder(Namespace::new("app").unwrap()).kind(kind).build().unwrap()
}

/// What a writer did until it was told to stop.
struct Written {
    rows: Vec<usize>,
    /// The schema versions at which it began the transactions that it lost to a migration.
    lost: Vec<u32>,
    /// Transactions that delta-rs gave up because other appends kept winning.
    crowded_out: usize,
}

/// Appends row after row. A transaction that a migration makes void is lost; the writer looks at the
/// table again and does the next one.
async fn write(number: usize, uri: String, begun: Arc<AtomicUsize>, is_over: Arc<AtomicBool>) -> Written {
    let migrator = release(0);
    let mut table = migrator.open_or_create("facts", &uri, HashMap::new()).await.unwrap().into_table();
    let schema = known_columns(&table, &["id"]);
    let mut written = Written { rows: Vec::new(), lost: Vec::new(), crowded_out: 0 };
    for n in 0.. {
        if is_over.load(Ordering::SeqCst) {
            break;
        }
        let id = n * WRITERS + number;
        begun.fetch_add(1, Ordering::SeqCst);
        match try_append(&mut table, schema.clone(), &[json!({ "id": id })]).await {
            Ok(_) => {
                written.rows.push(id);
                continue;
            }
            Err(DeltaTableError::Transaction {
                source: TransactionError::CommitConflict(CommitConflictError::MetadataChanged),
            }) => {
                let properties = table.snapshot().unwrap().metadata().configuration();
                written.lost.push(properties["app.schema_version"].parse().unwrap());
            }
            Err(DeltaTableError::Transaction { source: TransactionError::MaxCommitAttempts(_) }) => {
                written.crowded_out += 1;
            }
            Err(error) => panic!("writer {number}: {error:?}"),
        }
        table.update_incremental(None).await.unwrap();
        migrator.check("facts", &table).unwrap();
    }
    written
}

/// What the migrations of one table took, and what they cost the writers.
struct Cost {
    attempts: Vec<u32>,
    lost: usize,
    rows: usize,
}

/// Carries a new table through its chain, one migration after the other, among the writers.
async fn migrate_among_writers(name: &str) -> Cost {
    let store = Arc::new(InMemory::new());
    let named = Named::new(name, store.clone());
    let uri = named.uri("t");
    let location = Location::new(&uri, HashMap::new()).unwrap();
    release(0).migrate("facts", &location, Target::Newest, IfMissing::Create).await.unwrap();
    let is_over = Arc::new(AtomicBool::new(false));
    let begun: Vec<Arc<AtomicUsize>> = (0..WRITERS).map(|_| Arc::default()).collect();
    let writers: Vec<_> = begun
        .iter()
        .enumerate()
        .map(|(number, begun)| tokio::spawn(write(number, uri.clone(), begun.clone(), is_over.clone())))
        .collect();

    let mut cost = Cost { attempts: Vec::new(), lost: 0, rows: 0 };
    for version in 1..=MIGRATIONS {
        // Every writer is in the middle of another transaction than at the last migration.
        let before: Vec<usize> = begun.iter().map(|n| n.load(Ordering::SeqCst)).collect();
        while begun.iter().zip(&before).any(|(n, before)| n.load(Ordering::SeqCst) == *before) {
            assert!(!writers.iter().any(tokio::task::JoinHandle::is_finished), "a writer gave up");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        let migrator = release(version);
        let report = migrator.migrate("facts", &location, Target::Newest, IfMissing::Refuse).await.unwrap();
        assert_eq!((report.outcome.as_str(), report.commits), ("migrated", 1), "{report}");
        cost.attempts.push(report.attempts);
    }
    is_over.store(true, Ordering::SeqCst);
    let mut rows = Vec::new();
    for writer in futures::future::join_all(writers).await {
        let Written { rows: written, lost, crowded_out: _ } = writer.unwrap();
        let each: BTreeSet<u32> = lost.iter().copied().collect();
        assert_eq!(each.len(), lost.len(), "one migration cost a writer two transactions: {lost:?}");
        cost.lost += lost.len();
        rows.extend(written);
    }

    let entries = entries(store.as_ref(), "t").await;
    let metadata = entries.iter().flatten().filter(|action| action.get("metaData").is_some()).count();
    assert_eq!(metadata, 1 + MIGRATIONS as usize, "each migration is one commit of metadata");
    let table = release(MIGRATIONS).open_or_create("facts", &uri, HashMap::new()).await.unwrap().into_table();
    let id = |row: &Value| usize::try_from(row["id"].as_u64().unwrap()).unwrap();
    let mut found: Vec<usize> = scan(table).await.iter().map(id).collect();
    found.sort_unstable();
    rows.sort_unstable();
    assert_eq!(found, rows, "every row that a writer was told of is there once");
    cost.rows = rows.len();
    cost
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn among_eight_busy_writers_a_migration_lands_soon_and_costs_each_one_transaction() {
    let (mut attempts, mut lost, mut rows) = (Vec::new(), 0, 0);
    for n in 0..TABLES {
        let cost = migrate_among_writers(&format!("eight-writers-{n}")).await;
        attempts.extend(cost.attempts);
        lost += cost.lost;
        rows += cost.rows;
    }
    attempts.sort_unstable();
    assert_eq!(attempts.len(), 50);
    assert!(attempts[attempts.len() / 2] <= 3, "{attempts:?}");
    // The writers were busy: their transactions were in flight, and others landed.
    assert!(lost >= 50 && rows >= 50, "{lost} transactions lost, {rows} rows");
}
