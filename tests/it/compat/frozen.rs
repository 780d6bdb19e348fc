//! What this project's own releases left, and the kinds that they are made of.

use std::path::{Path, PathBuf};
use std::process::Command;

use delta_migrate::compat::{self, Options};
use delta_migrate::{Kind, Namespace};

fn here() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("compat")
}

fn sample_kinds() -> Vec<(String, Kind)> {
    let entries = std::fs::read_dir(here().join("kinds")).unwrap();
    let mut files: Vec<PathBuf> = entries.map(|e| e.unwrap().path()).collect();
    files.sort();
    let read = |file: PathBuf| {
        let text = std::fs::read_to_string(&file).unwrap();
        let kind = Kind::from_toml_file(&text, file.to_str().unwrap()).unwrap();
        (text, kind)
    };
    files.into_iter().map(read).collect()
}

pub(super) fn sample_kind(name: &str) -> (String, Kind) {
    sample_kinds().into_iter().find(|(_, kind)| kind.name() == name).unwrap()
}

fn namespace() -> Namespace {
    Namespace::new("compat").unwrap()
}

/// The folders of the releases, oldest name first.
fn releases() -> Vec<PathBuf> {
    let entries = std::fs::read_dir(here()).unwrap().map(|e| e.unwrap().path());
    let mut folders: Vec<PathBuf> = entries.filter(|p| p.join("manifest.json").exists()).collect();
    folders.sort();
    folders
}

/// What git says in this repository; none where there is no git, or no repository.
fn git(args: &[&str]) -> Option<String> {
    let output = Command::new("git").current_dir(env!("CARGO_MANIFEST_DIR")).args(args).output().ok()?;
    output.status.success().then(|| String::from_utf8(output.stdout).unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn every_release_s_corpus_passes() {
    let kinds: Vec<Kind> = sample_kinds().into_iter().map(|(_, kind)| kind).collect();
    for release in releases() {
        let checked = compat::check(&release, &kinds, &namespace()).await.unwrap();
        // A build that moves no data says which tables it left out, and finds nothing else.
        let lacking = "a build with the feature `datafusion`";
        let is_told = |wanted: &str| cfg!(not(feature = "datafusion")) && wanted == lacking;
        assert!(checked.findings.iter().all(|f| is_told(&f.wanted)), "{checked}");
    }
}

#[test]
fn no_commit_after_the_one_that_added_a_corpus_touched_it() {
    if git(&["rev-parse", "--is-inside-work-tree"]).is_none_or(|said| said.trim() != "true") {
        println!("SKIPPED: there is no git repository here, so nobody can say whether a corpus was touched");
        return;
    }
    if git(&["rev-parse", "--is-shallow-repository"]).is_some_and(|said| said.trim() == "true") {
        println!("SKIPPED: this is a shallow clone, whose history does not go back to the corpora");
        return;
    }
    for release in releases() {
        let folder = release.to_str().unwrap();
        let touched = git(&["log", "--format=%h %s", "--full-history", "--no-merges", "--", folder]).unwrap();
        let commits: Vec<&str> = touched.lines().collect();
        assert!(commits.len() <= 1, "{folder} was touched after it was added: {commits:#?}");
        let state = git(&["status", "--porcelain", "--", folder]).unwrap();
        let is_new = commits.is_empty() && state.lines().all(|l| l.starts_with("??") || l.starts_with("A "));
        assert!(state.is_empty() || is_new, "{folder} is not as it was committed: {state}");
    }
}

#[test]
fn the_sample_kinds_use_every_step_and_every_type() {
    let kinds = sample_kinds();
    let text: String = kinds.iter().map(|(text, _)| text.as_str()).collect();
    let steps = [
        "enable_features",
        "relax_nullability",
        "add_columns",
        "comments",
        "table_description",
        "set_properties",
        "unset_properties",
        "drop_constraints",
        "rename_columns",
        "widen_types",
        "set_defaults",
        "drop_columns",
        "update",
        "retype_columns",
        "add_constraints",
        "raises_min_version",
        "min_version_waived",
        "identified_by",
        "partition_by",
        "adopt = \"detect\"",
        "adopt = \"refuse\"",
    ];
    let types = [
        "\"string\"",
        "\"long\"",
        "\"integer\"",
        "\"short\"",
        "\"byte\"",
        "\"float\"",
        "\"double\"",
        "decimal(38,18)",
        "\"boolean\"",
        "\"binary\"",
        "\"date\"",
        "\"timestamp\"",
        "\"timestamp_ntz\"",
        "\"variant\"",
        "array<",
        "map<",
        "struct<",
    ];
    let features = [
        "allowColumnDefaults",
        "appendOnly",
        "changeDataFeed",
        "checkConstraints",
        "deletionVectors",
        "domainMetadata",
        "generatedColumns",
        "invariants",
        "timestampNtz",
        "typeWidening",
        "v2Checkpoint",
        "vacuumProtocolCheck",
        "variantType",
        "delta.columnMapping.mode",
        "delta.enableChangeDataFeed",
        "delta.enableInCommitTimestamps",
    ];
    for word in steps.iter().chain(&types).chain(&features) {
        assert!(text.contains(word), "no sample kind has {word}");
    }
    assert!(kinds.iter().any(|(text, _)| !text.contains("[columns]")), "no base shape is empty");
}

/// The kinds of this test, one after the other; what a release freezes must pass on the day itself.
async fn passes(names: &[&str]) {
    let kinds = sample_kinds().into_iter().map(|(_, kind)| kind);
    let kinds: Vec<Kind> = kinds.filter(|k| names.contains(&k.name())).collect();
    assert_eq!(kinds.len(), names.len());
    let folder = tempfile::tempdir().unwrap();
    let corpus = folder.path().join("now");
    compat::generate(&kinds, &namespace(), &corpus, &Options::new("test")).await.unwrap();
    let checked = compat::check(&corpus, &kinds, &namespace()).await.unwrap();
    assert!(checked.findings.is_empty(), "{checked}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_corpus_of_odd_sample_kinds_passes() {
    passes(&["any", "changes", "frozen", "mapped", "partitioned", "evolved"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_corpus_of_every_type_and_every_feature_passes() {
    passes(&["types", "features"]).await;
}
