//! Checkpoints of other writers, and logs of many entries.

use delta_migrate::{IfMissing, Target};
use serde_json::{Value, json};

use crate::features::{adding, sound, sound_after};
use crate::support::checkpoint::{domain, write_checkpoint, write_rows};
use crate::support::judge::Before;
use crate::support::rows::read;
use crate::support::store::TrickStore;
use crate::support::{Log, Table, column, migrator};

fn clustered() -> Table {
    let features = ["clustering", "domainMetadata"];
    let table = Log::new(vec![column("id", "long")]).features(&[], &features).property("owner", "a").table();
    let add = write_rows(
        &table,
        "part-0.parquet",
        vec![("id", deltalake::arrow::datatypes::DataType::Int64)],
        &[json!({ "id": 1 }), json!({ "id": 2 })],
    );
    let clustering = json!({ "domain": "delta.clustering", "configuration": "{\"clusteringColumns\":[[\"id\"]]}", "removed": false });
    let own = json!({ "domain": "app", "configuration": "{\"x\":\"ü\"}", "removed": false });
    table.commit_raw(&[add, json!({ "domainMetadata": clustering }), json!({ "domainMetadata": own })]);
    table
}

/// Every action that a checkpoint of the whole log holds.
fn actions(table: &Table) -> Vec<Value> {
    let all = table.versions().into_iter().flat_map(|v| table.commit(v));
    all.filter(|a| a.get("commitInfo").is_none()).collect()
}

fn drop_commits(table: &Table, up_to: u64) {
    (0..=up_to).for_each(|v| std::fs::remove_file(table.log_file(v)).unwrap());
}

/// delta-rs#3360.
#[tokio::test]
async fn case_17_a_domain_inside_a_checkpoint_survives() {
    let table = clustered();
    let wanted = domain(&table, "app").await;
    assert_eq!(wanted.as_deref(), Some("{\"x\":\"ü\"}"));
    let before = Before::of(&table);
    write_checkpoint(&table, "00000000000000000001.checkpoint.parquet", &actions(&table));
    drop_commits(&table, 1);
    for (version, columns) in [(2, "more = \"string\""), (3, "more = \"string\"\nlast = \"long\"")] {
        let kind = if version == 2 {
            adding(columns)
        } else {
            adding("more = \"string\"")
                + "[[migrations]]\ndescription = \"two\"\n[migrations.add_columns]\nlast = \"long\"\n"
        };
        let before = if version == 2 {
            before.clone()
        } else {
            Before {
                protocol: before.protocol.clone(),
                ..Before { metadata: table.metadata(), ..before.clone() }
            }
        };
        let done = sound_after(&table, &kind, &[], before);
        assert_eq!(done.entry, version);
        done.caught("`domainMetadata` in a metadata-only commit", |a| {
            a.push(json!({ "domainMetadata": { "domain": "app", "configuration": "", "removed": true } }));
        });
        assert_eq!(domain(&table, "app").await, wanted);
    }
    let rows = read(&table).await;
    assert_eq!(rows[1], json!({ "id": 2, "more": null, "last": null }));
}

/// A v2 checkpoint: `checkpointMetadata`, what is not a file, and a sidecar with the files.
fn v2(table: &Table, json_form: bool) {
    let version = table.newest();
    let (files, mut rest): (Vec<Value>, Vec<Value>) =
        actions(table).into_iter().partition(|a| a.get("add").is_some());
    let sidecar = "3a0d65cd-4056-49b8-937b-95f9e3ee90e5.parquet";
    let size = write_checkpoint(table, &format!("_sidecars/{sidecar}"), &files);
    rest.insert(0, json!({ "checkpointMetadata": { "version": version } }));
    rest.push(json!({ "sidecar": { "path": sidecar, "sizeInBytes": size, "modificationTime": 1 } }));
    let stem = format!("{version:020}.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11");
    if json_form {
        let text: String = rest.iter().map(|a| format!("{a}\n")).collect();
        std::fs::write(table.path().join("_delta_log").join(stem + ".json"), text).unwrap();
    } else {
        write_checkpoint(table, &(stem + ".parquet"), &rest);
    }
}

/// delta-rs#4597.
#[tokio::test]
async fn case_18_v2_checkpoints_with_uuid_names_and_sidecars() {
    for json_form in [true, false] {
        for commits_after in [0, 2] {
            let features = ["v2Checkpoint", "domainMetadata", "clustering"];
            let log = Log::new(vec![column("id", "long")]).features(&["v2Checkpoint"], &features);
            let table = log.property("delta.checkpointPolicy", "v2").table();
            let int = deltalake::arrow::datatypes::DataType::Int64;
            let rows = [json!({ "id": 1 }), json!({ "id": 2 })];
            let add = write_rows(&table, "part-0.parquet", vec![("id", int)], &rows);
            let own = json!({ "domain": "app", "configuration": "{}", "removed": false });
            table.commit_raw(&[add, json!({ "domainMetadata": own })]);
            let before = Before::of(&table);
            v2(&table, json_form);
            (0..commits_after).for_each(|_| {
                table.commit_nothing();
            });
            drop_commits(&table, 1);
            let done = sound_after(&table, &adding("more = \"string\""), &[], before);
            assert_eq!(done.entry, 2 + commits_after, "{json_form}");
            assert_eq!(table.property("delta.checkpointPolicy").as_deref(), Some("v2"));
            let rows = read(&table).await;
            assert_eq!((rows.len(), &rows[0]), (2, &json!({ "id": 1, "more": null })), "{json_form}");
            assert_eq!(domain(&table, "app").await.as_deref(), Some("{}"));
        }
    }
}

/// Requests of one migration, by verb.
async fn requests(table: &Table) -> Vec<String> {
    let store = TrickStore::counting();
    let location = table.location_in(&store);
    let migrator = migrator(&adding("more = \"string\""));
    let report = migrator.migrate("facts", &location, Target::Newest, IfMissing::Refuse).await.unwrap();
    assert_eq!((report.outcome.as_str(), report.attempts), ("migrated", 1));
    store.take()
}

fn busy(commits: u64) -> Table {
    let table = Log::new(vec![column("id", "long")]).table();
    let text = json!({ "commitInfo": { "operation": "WRITE", "engineInfo": "somebody" } }).to_string() + "\n";
    (1..=commits).for_each(|v| std::fs::write(table.log_file(v), &text).unwrap());
    table
}

/// delta-rs#2518, delta-rs#4114.
#[tokio::test]
async fn case_21_requests_are_bounded_on_2000_log_entries() {
    let table = busy(1_999);
    let all = requests(&table).await;
    let count = |all: &[String], verb: &str| all.iter().filter(|r| r.starts_with(verb)).count();
    // Metadata at version 0 and no checkpoint: each entry once, two looks at the tip, the evidence
    // in the same pass.
    assert_eq!((count(&all, "list"), count(&all, "put "), count(&all, "head")), (1, 1, 0));
    assert_eq!((count(&all, "get-range "), count(&all, "get ")), (2, 2_001), "hint and 2,000 entries");
    let entries: std::collections::BTreeSet<&String> = all.iter().filter(|r| r.starts_with("get ")).collect();
    assert_eq!(entries.len(), 2_001, "no entry is read twice");

    // Metadata near the tip: only what is newer is read, and what is read ahead of it. The stamp
    // makes evidence needless.
    let table = busy(1_989);
    table.change_metadata(|m| m["configuration"]["app.schema_version"] = "0".into());
    let protocol = table.action(0, "protocol");
    table.commit_raw(&[json!({ "protocol": protocol })]);
    (0..5).for_each(|_| {
        table.commit_nothing();
    });
    let all = requests(&table).await;
    assert!(count(&all, "get ") <= 25 && all.len() <= 30, "{}: {all:?}", all.len());

    // A checkpoint near the tip: its footer and columns, and the entries after it.
    let table = busy(1_990);
    let first: Vec<Value> = actions(&table);
    write_checkpoint(&table, "00000000000000001990.checkpoint.parquet", &first);
    (0..9).for_each(|_| {
        table.commit_nothing();
    });
    let all = requests(&table).await;
    assert!(count(&all, "get") <= 15 && all.len() <= 20, "{}: {all:?}", all.len());
    let done = table.newest();
    assert_eq!((done, table.versions().len()), (2_000, 2_001), "nothing is deleted");
    // With a hint the listing starts there; without commits below nothing changes.
    let table = busy(1_990);
    write_checkpoint(&table, "00000000000000001990.checkpoint.parquet", &first);
    let hint = json!({ "version": 1_990, "size": 3 });
    std::fs::write(table.path().join("_delta_log/_last_checkpoint"), hint.to_string()).unwrap();
    drop_commits(&table, 1_990);
    let all = requests(&table).await;
    // Once more after the commit: that a checkpoint still stands does not prove that the entry counts.
    assert!(count(&all, "get") <= 8 && all.len() <= 12, "{}: {all:?}", all.len());
}

#[test]
fn a_domain_that_is_removed_stays_removed() {
    let table = clustered();
    let gone = json!({ "domain": "app", "configuration": "", "removed": true });
    table.commit_raw(&[json!({ "domainMetadata": gone })]);
    sound(&table, &adding("more = \"string\""), &[]);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    assert_eq!(runtime.block_on(domain(&table, "app")), None);
}
