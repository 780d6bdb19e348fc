//! Sixteen processes of the real command that start at the same time.

use std::process::{Child, Stdio};

use crate::support::{FACTS, Ran, Table, command, facts};

/// Runs `apply` sixteen times at once and gives how each ended.
fn sixteen(table: &Table) -> Vec<Ran> {
    let file = table.beside("kind.toml");
    std::fs::write(&file, FACTS).unwrap();
    let folder = table.beside("");
    let start = |_| -> Child {
        command(&folder)
            .args(["apply", "--namespace", "app", "--format", "json", "--kind-file"])
            .arg(&file)
            .arg(table.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    };
    let children: Vec<Child> = (0..16).map(start).collect();
    children.into_iter().map(|c| Ran::of(c.wait_with_output().unwrap())).collect()
}

fn outcomes(all: &[Ran]) -> Vec<String> {
    let mut outcomes: Vec<String> =
        all.iter().map(|r| r.table()["outcome"].as_str().unwrap().to_owned()).collect();
    outcomes.sort();
    outcomes
}

#[test]
fn sixteen_on_a_table_that_is_behind_make_one_commit_and_all_succeed() {
    let table = facts().table();
    let before = table.files();
    let all = sixteen(&table);
    assert!(all.iter().all(|r| r.code == 0), "{all:#?}");
    let mut wanted = vec!["current"; 15];
    wanted.push("migrated");
    assert_eq!(outcomes(&all), wanted);
    assert_eq!(table.versions(), [0, 1]);
    assert_eq!(table.files().len(), before.len() + 1, "no temporary file stays");
    assert_eq!((table.history().len(), table.column_names().len()), (1, 7));
}

#[test]
fn sixteen_on_a_missing_table_create_it_once() {
    let table = Table::missing();
    let all = sixteen(&table);
    assert!(all.iter().all(|r| r.code == 0), "{all:#?}");
    let mut wanted = vec!["created"];
    wanted.extend(["current"; 15]);
    assert_eq!(outcomes(&all), wanted);
    assert_eq!(table.versions(), [0]);
    assert_eq!(table.files().keys().filter(|p| p.is_file()).count(), 1, "one log entry and nothing else");
    assert_eq!(table.history()[0]["how"], "created");
}
