//! Every key of every corpus is on the page, since that release or an earlier one.

use std::path::{Path, PathBuf};

use delta_migrate::compat::{self, Options};
use delta_migrate::{Kind, Namespace};
use serde_json::Value;

use super::changelog::newest;
use super::files::lock_faults;
use super::page::keys;
use super::seen::{HISTORY, MANIFEST, MANY, PLANS, Seen};
use super::{Release, assert_none, sources};
use crate::support::run;
use crate::support::table::files_below;

pub(super) const SECTIONS: [&str; 1] = [FILES];

const FILES: &str = "A corpus";

fn here() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("compat")
}

/// The folders of the releases.
pub(super) fn releases() -> Vec<PathBuf> {
    let entries = std::fs::read_dir(here()).unwrap().map(|e| e.unwrap().path());
    let mut folders: Vec<PathBuf> = entries.filter(|p| p.join("manifest.json").exists()).collect();
    folders.sort();
    folders
}

pub(super) fn name(folder: &Path) -> String {
    folder.file_name().unwrap().to_str().unwrap().to_owned()
}

/// What a corpus holds that the page does not list, or not for its release.
fn faults(folder: &Path, release: Release) -> Vec<String> {
    let text = |file: &str| std::fs::read_to_string(folder.join(file)).unwrap();
    let json = |file: &str| -> Value { serde_json::from_str(&text(file)).unwrap() };
    let manifest = json("manifest.json");
    let namespace = manifest["namespace"].as_str().unwrap();
    let (mut seen, mut faults) = (Seen::default(), Vec::new());
    seen.add(MANIFEST, &manifest);
    let mut logs: Vec<Vec<Value>> = Vec::new();
    for (path, bytes) in files_below(folder).into_iter().filter(|(path, _)| path.is_file()) {
        let file = path.strip_prefix(folder).unwrap().to_str().unwrap();
        let is_listed =
            |key: &&str| *key == file || key.strip_suffix('*').is_some_and(|k| file.starts_with(k));
        if !keys(FILES).iter().any(is_listed) {
            faults.push(format!("the file `{file}` is not listed"));
        }
        let lines = || -> Vec<Value> {
            let text = String::from_utf8(bytes.clone()).unwrap();
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
        };
        match file {
            "said/plan_file.json" => seen.add(PLANS, &json(file)),
            "said/events.jsonl" => lines().iter().for_each(|line| seen.add_event(line)),
            "said/history.jsonl" => lines().iter().for_each(|line| seen.add(HISTORY, line)),
            "migrations.lock" => faults.extend(lock_faults(&text(file))),
            said if said.starts_with("said/") => seen.add(MANY, &json(file)),
            file if file.contains("/_delta_log/") && file.ends_with(".json") => logs.push(lines()),
            _ => {}
        }
    }
    assert!(logs.len() > 5, "the logs of {} were looked for in the wrong place", folder.display());
    seen.add_log(&logs, namespace);
    faults.extend(seen.unlisted(release));
    faults.iter().map(|fault| format!("{}: {fault}", name(folder))).collect()
}

#[test]
fn what_every_release_left_is_on_the_page_since_that_release() {
    for folder in releases() {
        let manifest: Value =
            serde_json::from_slice(&std::fs::read(folder.join("manifest.json")).unwrap()).unwrap();
        let version = manifest["crate_version"].as_str().unwrap();
        assert_eq!(name(&folder), version, "the folder is of another release");
        assert_none(faults(&folder, Release::parse(version).unwrap()));
        let lock = folder.join("migrations.lock");
        if lock.exists() {
            // What was shipped then is still the beginning of every chain.
            let args = ["-c", "delta-migrate.toml", "validate", "--lock-file", lock.to_str().unwrap()];
            assert_eq!(run(&here(), &args).code, 0, "{}", lock.display());
        }
    }
}

/// A corpus of two small kinds, as today's code writes it.
async fn corpus(folder: &Path) -> PathBuf {
    let mut options = Options::new("delta-migrate today");
    let (mut kinds, mut texts) = (Vec::new(), String::new());
    let moved = cfg!(feature = "datafusion").then_some("filled.toml");
    for file in moved.into_iter().chain(["any.toml", "changes.toml"]) {
        let text = sources::text(&format!("compat/kinds/{file}"));
        kinds.push(Kind::from_toml_file(&text, file).unwrap());
        options.kind_files.insert(file.to_owned(), text.clone());
        texts = text;
    }
    options.lock = Some(super::files::lock_of(&texts));
    let corpus = folder.join("today");
    compat::generate(&kinds, &Namespace::new("compat").unwrap(), &corpus, &options).await.unwrap();
    corpus
}

#[tokio::test(flavor = "multi_thread")]
async fn what_today_s_code_leaves_is_on_the_page() {
    let folder = tempfile::tempdir().unwrap();
    let corpus = corpus(folder.path()).await;
    assert_none(faults(&corpus, newest()));
    let missing: Vec<&str> =
        keys(FILES).into_iter().filter(|key| !corpus.join(key.trim_end_matches('*')).exists()).collect();
    assert!(missing.is_empty(), "the page lists files that nothing wrote: {missing:?}");
    // As a release before the first one would have left it, every key is too early.
    let early = faults(&corpus, Release(0, 0, 9));
    for key in ["`tables`", "`txnId`", "`<ns>.kind`", "`plans[].ends`", "`record`", "`at`", "`fingerprint`"] {
        assert!(early.iter().any(|fault| fault.contains(&format!("{key} is listed since"))), "{key}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_of_a_corpus_that_the_page_lacks_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let corpus = corpus(folder.path()).await;
    let change = |file: &str, from: &str, to: &str| {
        let text = std::fs::read_to_string(corpus.join(file)).unwrap();
        assert!(text.contains(from), "{file}: {text}");
        std::fs::write(corpus.join(file), text.replacen(from, to, 1)).unwrap();
    };
    let log = "tables/changes/born_1/_delta_log/00000000000000000000.json";
    change("said/status.json", "\"uri\"", "\"new_1\": 1, \"uri\"");
    change("said/apply.json", "\"command\"", "\"new_2\": 1, \"command\"");
    change("said/plan_file.json", "\"chain\"", "\"new_3\": 1, \"chain\"");
    change("said/events.jsonl", "{", "{\"new_4\": 1, ");
    change("said/history.jsonl", "\"log\":[{", "\"log\":[{\"new_5\": 1, ");
    change("manifest.json", "\"schemes\"", "\"new_6\": 1, \"schemes\"");
    change(log, "\"txnId\"", "\"new_7\":1,\"txnId\"");
    change(log, "\"compat.kind\"", "\"compat.new_8\":\"1\",\"compat.kind\"");
    change(log, "{\\\"from\\\"", "{\\\"new_9\\\":1,\\\"from\\\"");
    change("migrations.lock", "digest, description", "digest, new_10, description");
    std::fs::write(corpus.join("said/new_11.json"), "{}").unwrap();
    let found = faults(&corpus, newest());
    for n in 1..=11 {
        let told = found
            .iter()
            .any(|fault| fault.contains(&format!("new_{n}")) || n == 10 && fault.contains("# scheme:"));
        assert!(told, "new_{n}: {found:#?}");
    }
    assert_eq!(found.len(), 11, "{found:#?}");
}
