//! Tables whose rows are filled in, columns retyped, constraints proved.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use delta_migrate::deltalake::DeltaTable;
use delta_migrate::deltalake::datafusion::prelude::{col, lit};
use delta_migrate::{Migration, StepContext};

use super::frozen::sample_kind;
use super::*;

async fn generated(folder: &Path, known: u32) -> PathBuf {
    let (text, kind) = sample_kind("filled");
    let corpus = folder.join("1.0");
    let mut options = Options::new("my-sink 1.0");
    options.kind_files.insert("filled.toml".into(), text);
    let kind = kind.cut_at(SchemaVersion::new(known));
    compat::generate(&[kind], &namespace(), &corpus, &options).await.unwrap();
    corpus
}

async fn checked(corpus: &Path) -> Checked {
    compat::check(corpus, &[sample_kind("filled").1], &namespace()).await.unwrap()
}

fn json(file: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap()
}

/// Every action of a table's log.
fn actions(table: &Path) -> Vec<Value> {
    let entries = files_below(&table.join("_delta_log")).into_values();
    let lines = entries.flat_map(|bytes| {
        let text = String::from_utf8(bytes).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect::<Vec<Value>>()
    });
    lines.collect()
}

fn entry<'m>(manifest: &'m Value, table: &str) -> &'m Value {
    let is_it = |t: &&Value| t["path"] == format!("tables/filled/{table}");
    manifest["tables"].as_array().unwrap().iter().find(is_it).unwrap()
}

/// Nothing in a table is named by chance, or of the hour in which the corpus was made.
fn is_settled(table: &Path) {
    let first = 1_767_225_600_000_i64;
    let mut named = 0;
    for action in actions(table) {
        for (verb, key) in
            [("add", "modificationTime"), ("remove", "deletionTimestamp"), ("commitInfo", "timestamp")]
        {
            let Some(body) = action.get(verb) else { continue };
            let at = body[key].as_i64().unwrap();
            assert!((first..first + 86_400_000).contains(&at), "{action}");
        }
        let written = ["add", "cdc"].into_iter().find_map(|verb| action.get(verb));
        if let Some(path) = written.map(|body| body["path"].as_str().unwrap()) {
            assert!(table.join(path).is_file(), "{path}");
            named += 1;
        }
    }
    let files = files_below(table).into_keys().filter(|f| f.extension().is_some_and(|e| e == "parquet"));
    assert_eq!(files.count(), named, "{} holds files that its log does not name", table.display());
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_whose_data_was_moved_are_the_same_each_time_and_pass() {
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let corpus = generated(folders[0].path(), 4).await;
    let again = generated(folders[1].path(), 4).await;
    let (one, other) = (relative(&corpus), relative(&again));
    assert_eq!(one.keys().collect::<Vec<_>>(), other.keys().collect::<Vec<_>>());
    // The manifest, which has the hashes of all others, comes last.
    for (path, bytes) in one.iter().rev() {
        let lines = |bytes: &[u8]| -> Vec<String> {
            String::from_utf8_lossy(bytes).lines().map(str::to_owned).collect()
        };
        let both = lines(bytes).into_iter().zip(lines(&other[path]));
        let first = both.filter(|(a, b)| a != b).take(3).collect::<Vec<_>>();
        assert!(bytes == &other[path], "{}: {first:#?}", path.display());
    }
    let tables = corpus.join("tables/filled");
    for table in std::fs::read_dir(&tables).unwrap() {
        is_settled(&table.unwrap().path());
    }
    let all = actions(&tables.join("stepwise"));
    for verb in ["add", "remove", "cdc"] {
        assert!(all.iter().any(|a| a.get(verb).is_some()), "no `{verb}` in {all:#?}");
    }
    let before = relative(&corpus);
    let checked = checked(&corpus).await;
    assert!(checked.findings.is_empty(), "{checked}");
    // A release that knows the third migration goes on; those before it are shut out.
    assert!(checked.tables > 18 && checked.older_releases > 50, "{checked}");
    assert!(relative(&corpus) == before, "the check wrote into the corpus");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_interrupted_table_is_one_that_status_calls_behind() {
    let folder = tempfile::tempdir().unwrap();
    let corpus = generated(folder.path(), 2).await;
    let manifest = json(&corpus.join("manifest.json"));
    let found = entry(&manifest, "interrupted_2");
    let of = |key: &str| found[key].clone();
    assert_eq!((of("outcome"), of("version"), of("min_version")), ("planned".into(), 1.into(), 2.into()));
    assert_eq!(of("rows"), 3);
    let all = actions(&corpus.join("tables/filled/interrupted_2"));
    let metadata = all.iter().filter_map(|a| a.get("metaData")).next_back().unwrap();
    assert_eq!(metadata["configuration"]["app.schema_version"], "1");
    assert_eq!(metadata["configuration"]["app.min_version"], "2");
    assert!(metadata["schemaString"].as_str().unwrap().contains("tenant"), "{metadata}");
    let rows = json(&corpus.join("rows/filled/interrupted_2.json"));
    let tenants: Vec<&Value> = rows.as_array().unwrap().iter().map(|row| &row["tenant"]).collect();
    assert_eq!(tenants.iter().filter(|t| t.is_null()).count(), 2, "{tenants:?}");
    // A longer chain of today finishes it, and carries every other table of that release.
    let checked = checked(&corpus).await;
    assert!(checked.findings.is_empty(), "{checked}");
}

#[tokio::test(flavor = "multi_thread")]
async fn values_that_a_data_step_gave_are_held_to() {
    let folder = tempfile::tempdir().unwrap();
    let corpus = generated(folder.path(), 3).await;
    let of = |table: &str| json(&corpus.join(format!("rows/filled/{table}.json")));
    let all = of("stepwise");
    let row = all.as_array().unwrap().iter().find(|row| row["id"] == -60129542354_i64).unwrap();
    assert_eq!((&row["tenant"], &row["amount"]), (&"of code 15 ü".into(), &"1048592".into()), "{all}");
    assert_eq!(of("0_to_1").as_array().unwrap().iter().filter(|row| row["amount"] == 1048592).count(), 1);
    // A value that is another one than the release left is found, whichever step gave it.
    let rows = "rows/filled/stepwise.json";
    for (was, other) in [("of code 15 ü", "of somebody"), ("1048592", "1048593")] {
        let tampered = Corpus { folder: tempfile::tempdir().unwrap() };
        let bytes = relative(&corpus);
        for (path, bytes) in bytes.into_iter().filter(|(path, _)| corpus.join(path).is_file()) {
            let file = tampered.path().join(path);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, bytes).unwrap();
        }
        tampered.rewrite(rows, |text| {
            assert!(text.contains(was), "{text}");
            text.replacen(was, other, 1)
        });
        let checked = checked(&tampered.path()).await;
        assert!(checked.findings.iter().all(|f| f.place.ends_with("/stepwise")), "{checked}");
        assert!(checked.findings[0].found.starts_with("as the release left them"), "{checked}");
    }
}

/// A kind with a function of its own, which may refuse to run on a table a second time.
fn by_hand(once: bool) -> Kind {
    let seen = Arc::new(Mutex::new(BTreeSet::new()));
    let migration = Migration::builder("no note is missing").raises_min_version().run(
        "notes",
        move |context: StepContext, table: DeltaTable| {
            let is_new = seen.lock().unwrap().insert(table.log_store().root_url().to_string());
            async move {
                if once && !is_new {
                    return Err("was here already".into());
                }
                let update = table.update().with_predicate(col("note").not_eq(lit("none")));
                let update = update.with_update("note", lit("none"));
                update.with_commit_properties(context.commit_properties()).await?;
                Ok(())
            }
        },
    );
    let kind = Kind::builder("facts").column("id", "long").column("note", "string");
    kind.migration(migration).build().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_function_runs_twice_in_a_check_and_is_found_where_it_can_not() {
    let folder = tempfile::tempdir().unwrap();
    let corpus = folder.path().join("1.0");
    let options = Options::new("my-sink 1.0");
    compat::generate(&[by_hand(true)], &namespace(), &corpus, &options).await.unwrap();
    let rows = json(&corpus.join("rows/facts/0_to_1.json"));
    assert!(rows.as_array().unwrap().iter().any(|row| row["note"] == "none"), "{rows}");
    let checked = compat::check(&corpus, &[by_hand(false)], &namespace()).await.unwrap();
    assert!(checked.findings.is_empty(), "{checked}");
    let checked = compat::check(&corpus, &[by_hand(true)], &namespace()).await.unwrap().to_string();
    assert!(checked.contains("tables/facts/born_0: found data_step"), "{checked}");
    assert!(checked.contains("was here already"), "{checked}");
}
