//! Data steps: rows filled in, columns retyped, constraints proved, under faults and races.

mod crash;
mod fill;
mod judge;
mod layout;
mod races;
mod refusals;
mod restore;
mod retype;
mod store;
mod sweep;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use delta_migrate::{
    Error, IfMissing, Kind, Location, Migrator, Namespace, StartupPolicy, TableReport, Target,
};
use deltalake::DeltaTableBuilder;
use object_store::ObjectStore;
use serde_json::{Value, json};

use self::judge::sound;
use crate::support::rows::{append, scan};
use crate::support::table::files_below;
use crate::support::{Log, Table, column};

/// Adds `tenant` and fills it from the row.
const FILL: &str = r#"
kind = "facts"
[columns]
id = "long"
code = "string"

[[migrations]]
description = "tenant"
raises_min_version = true
[migrations.add_columns]
tenant = "string"
[migrations.update]
set = { tenant = "concat('of ', coalesce(code, 'nobody'))" }
where = "tenant IS NULL"
"#;

/// So little that each file gets a commit of its own.
const ONE_FILE: u64 = 1;

fn rewriter_with(kind: &str, policy: StartupPolicy, most: u64) -> Migrator {
    Migrator::builder(Namespace::new("app").unwrap())
        .kind(Kind::from_toml(kind).unwrap())
        .release("test 1.0")
        .policy(policy)
        .budget(Duration::from_secs(60))
        .most_in_a_commit(most)
        .build()
        .unwrap()
}

/// One that may rewrite, `most` bytes in a commit.
fn rewriter(kind: &str, most: u64) -> Migrator {
    rewriter_with(kind, StartupPolicy::ApplyAll, most)
}

async fn migrate_at(location: &Location, kind: &str, most: u64) -> Result<TableReport, Error> {
    rewriter(kind, most).migrate("facts", location, Target::Newest, IfMissing::Refuse).await
}

async fn migrate(table: &Table, kind: &str) -> Result<TableReport, Error> {
    migrate_at(&table.location(), kind, 1 << 30).await
}

fn location_in(table: &Table, store: Arc<dyn ObjectStore>) -> Location {
    let builder = DeltaTableBuilder::from_url(table.url()).unwrap();
    Location::from_log_store(builder.with_storage_backend(store, table.url()).build().unwrap().log_store())
}

fn base() -> Log {
    Log::new(vec![column("id", "long"), column("code", "string")])
}

fn row(id: i64) -> Value {
    // Every third row has nobody.
    json!({ "id": id, "code": (id % 3 != 0).then(|| format!("c{id}")) })
}

/// A table with two rows in each of these files.
async fn table_of(log: Log, files: i64) -> Table {
    let table = log.table();
    for file in 0..files {
        append(&table, &[row(2 * file), row(2 * file + 1)]).await;
    }
    table
}

fn copy_of(table: &Table) -> Table {
    let copy = Table::missing();
    for (file, bytes) in files_below(table.path()) {
        let to = copy.path().join(file.strip_prefix(table.path()).unwrap());
        match file.is_dir() {
            true => std::fs::create_dir_all(to).unwrap(),
            false => std::fs::write(to, bytes).unwrap(),
        }
    }
    copy
}

/// All rows as the kernel reads them, in the order of their text.
async fn rows(table: &Table) -> Vec<Value> {
    let mut rows = scan(table.load().await).await;
    rows.sort_by_key(ToString::to_string);
    rows
}

/// What `FILL` makes of a row.
fn filled(id: i64) -> Value {
    let mut row = row(id);
    let code = row["code"].as_str().unwrap_or("nobody").to_owned();
    row["tenant"] = format!("of {code}").into();
    row
}

fn filled_all(ids: impl IntoIterator<Item = i64>) -> Vec<Value> {
    let mut all: Vec<Value> = ids.into_iter().map(filled).collect();
    all.sort_by_key(ToString::to_string);
    all
}

/// Every row is there once and filled in, the stamp stands, and the log is sound.
async fn is_filled(table: &Table, ids: impl IntoIterator<Item = i64>) {
    assert_eq!(rows(table).await, filled_all(ids));
    is_stamped(table, "1");
    sound(table);
}

fn is_stamped(table: &Table, version: &str) {
    assert_eq!(table.property("app.schema_version").as_deref(), Some(version));
    assert_eq!(table.property("app.kind").as_deref(), Some("facts"));
}

/// The log versions of our own commits, each with what it says of how it came about.
fn ours(table: &Table) -> BTreeMap<u64, String> {
    let of = |version: u64| {
        let info = table.commit(version).into_iter().find_map(|a| a.get("commitInfo").cloned())?;
        let how = info["operationParameters"]["how"].as_str()?.to_owned();
        (info["operation"] == "MIGRATE").then_some((version, how))
    };
    table.versions().into_iter().filter_map(of).collect()
}

/// Lets something happen while a store holds a request.
fn meanwhile<F: Future<Output = ()> + Send + 'static>(work: F) {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    std::thread::spawn(move || runtime().block_on(work)).join().unwrap();
}

/// The paths and deletion vectors of all files that the table has, with their `add` actions.
fn active(table: &Table) -> HashMap<(String, String), Value> {
    judge::replay(table, |_, _, _| {})
}
