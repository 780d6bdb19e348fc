//! CHANGELOG.md says of every release what it means for state.

use std::collections::BTreeMap;
use std::path::Path;

use super::{Release, assert_none, corpora};

fn text() -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("CHANGELOG.md")).unwrap()
}

/// The text of each release's section "State compatibility"; empty where there is none.
fn compatibility(changelog: &str) -> BTreeMap<String, String> {
    let mut releases: BTreeMap<String, String> = BTreeMap::new();
    let (mut release, mut inside) = (String::new(), false);
    for line in changelog.lines() {
        if let Some(title) = line.strip_prefix("## ") {
            release = title.trim_start_matches('[').split(']').next().unwrap().to_owned();
            releases.insert(release.clone(), String::new());
            inside = false;
        } else if line.starts_with("### ") {
            inside = line == "### State compatibility";
        } else if inside {
            *releases.get_mut(&release).unwrap() += line.trim();
        }
    }
    releases
}

/// What is wrong with a changelog, for a version of Cargo.toml and the releases that have a corpus.
fn faults(changelog: &str, version: &str, corpora: &[String]) -> Vec<String> {
    let releases = compatibility(changelog);
    let silent = releases.iter().filter(|(_, text)| text.is_empty());
    let mut faults: Vec<String> = silent
        .map(|(release, _)| format!("[{release}] has nothing under `### State compatibility`"))
        .collect();
    faults.extend(
        releases.keys().filter(|r| Release::parse(r).is_none()).map(|r| format!("[{r}] is no release")),
    );
    let wanted = corpora.iter().map(String::as_str).chain([version]);
    faults
        .extend(wanted.filter(|w| !releases.contains_key(*w)).map(|w| format!("there is no entry for {w}")));
    faults
}

/// The newest release of the changelog: the one that is being made.
pub(super) fn newest() -> Release {
    compatibility(&text()).keys().filter_map(|release| Release::parse(release)).max().unwrap()
}

#[test]
fn every_release_says_what_it_means_for_state() {
    let corpora: Vec<String> = corpora::releases().iter().map(|folder| corpora::name(folder)).collect();
    assert_none(faults(&text(), env!("CARGO_PKG_VERSION"), &corpora));
}

#[test]
fn a_release_that_is_silent_or_missing_is_told() {
    let sound = "# Changelog\n\n## [0.2.0] - x\n\n### Added\n\n- a\n\n### State compatibility\n\nNothing changes.\n\
                 \n## [0.1.0] - y\n\n### State compatibility\n\n- b\n";
    assert_eq!(faults(sound, "0.2.0", &["0.1.0".to_owned()]), Vec::<String>::new());
    let silent = sound.replace("Nothing changes.", "");
    assert_eq!(faults(&silent, "0.2.0", &[]), ["[0.2.0] has nothing under `### State compatibility`"]);
    let without = sound.replace("### State compatibility", "### Changed");
    assert_eq!(faults(&without, "0.2.0", &[]).len(), 2);
    let missing = faults(sound, "0.3.0", &["0.1.1".to_owned()]);
    assert_eq!(missing, ["there is no entry for 0.1.1", "there is no entry for 0.3.0"]);
}
