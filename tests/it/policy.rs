//! What the documents promise of versions and of the public API is what the manifest and `api/` say.

use std::collections::BTreeSet;
use std::path::Path;

fn file(name: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).unwrap()
}

fn toml(name: &str) -> toml::Table {
    file(name).parse().unwrap()
}

fn text(value: &toml::Value) -> String {
    value.as_str().unwrap().to_owned()
}

/// The version of a crate that this build has.
fn locked(name: &str) -> String {
    let lock = toml("Cargo.lock");
    let mut found = lock["package"].as_array().unwrap().iter().filter(|p| p["name"].as_str() == Some(name));
    let version = text(&found.next().unwrap()["version"]);
    assert!(found.next().is_none(), "there are two versions of {name}");
    version
}

/// Every version that stands right behind a word.
fn versions_of(word: &str, document: &str) -> Vec<String> {
    let word = format!("{word} ");
    let after = document.split(&word).skip(1);
    let numbers = after.map(|text| text.split(|c: char| !(c.is_ascii_digit() || c == '.')).next().unwrap());
    numbers.map(|n| n.trim_end_matches('.').to_owned()).filter(|n| n.contains('.')).collect()
}

/// The second column of a row of CONTRIBUTING.md.
fn supported(what: &str) -> String {
    let contributing = file("CONTRIBUTING.md");
    let begin = format!("| {what} | ");
    let row = contributing.lines().find_map(|line| line.strip_prefix(&begin)).unwrap();
    row.split(" |").next().unwrap().to_owned()
}

#[test]
fn the_documents_name_the_rust_and_the_deltalake_of_the_manifest() {
    let manifest = toml("Cargo.toml");
    let rust = text(&manifest["package"]["rust-version"]);
    let deltalake = text(&manifest["dependencies"]["deltalake"]["version"]);
    assert_eq!(supported("Rust"), format!("{rust} or newer"));
    assert_eq!(supported("deltalake"), format!("{deltalake} or a newer 1.x"));
    let readme = file("README.md");
    assert!(versions_of("Rust", &readme).contains(&rust), "README.md does not say which Rust it takes");
    assert!(versions_of("deltalake", &readme).contains(&deltalake), "nor which deltalake");
    assert!(file("examples/deploy/Dockerfile").contains(&format!("FROM rust:{rust}-")));
    for name in ["README.md", "CONTRIBUTING.md", "ARCHITECTURE.md", "RELEASING.md", "src/lib.rs"] {
        let document = file(name);
        for (word, wanted) in [("Rust", &rust), ("deltalake", &deltalake)] {
            let same = |found: &String| format!("{wanted}.").starts_with(&format!("{found}."));
            let others = versions_of(word, &document).into_iter().filter(|found| !same(found));
            assert_eq!(others.collect::<Vec<_>>(), Vec::<String>::new(), "{word} in {name}");
        }
    }
    assert_eq!(versions_of("Rust", "Rust 1.95, Rust 2.0. Rust code, Rust 3"), ["1.95", "2.0"]);
}

#[test]
fn the_documents_name_the_versions_that_are_built_and_tested() {
    let major = |name: &str| locked(name).split('.').next().unwrap().to_owned();
    assert_eq!(supported("arrow"), major("arrow-schema"));
    assert_eq!(supported("datafusion"), major("datafusion"));
    let deltalake = toml("Cargo.toml")["dependencies"]["deltalake"]["version"].clone();
    assert_eq!(
        locked("deltalake"),
        text(&deltalake),
        "the oldest deltalake that is allowed is the one that is tested"
    );
}

#[test]
fn the_crates_that_the_api_shows_are_named_and_deltalake_is_handed_on() {
    let api = ["library", "features", "traits"].map(|name| file(&format!("api/{name}.txt"))).concat();
    let own = ["alloc", "core", "delta_migrate", "std"];
    let mut seen = BTreeSet::new();
    for word in api.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':')) {
        // `a::b::C` begins with the crate; `Self::C` and `<T as A>::C` do not.
        if let Some((name, _)) = word.split_once("::")
            && name.starts_with(|c: char| c.is_ascii_lowercase())
            && !own.contains(&name)
        {
            seen.insert(name.to_owned());
        }
    }
    let contributing = file("CONTRIBUTING.md");
    let list = contributing.split("These are seen in the API: ").nth(1).unwrap().split(". ").next().unwrap();
    let named: BTreeSet<String> = list.split(", ").map(|name| name.replace('`', "")).collect();
    assert_eq!(seen, named);
    assert!(api.lines().any(|line| line == "pub use delta_migrate::deltalake"));
}

#[test]
fn the_changelog_begins_with_this_version_and_no_release_is_silent_about_state() {
    let changelog = file("CHANGELOG.md");
    let mut releases = changelog.split("\n## [").skip(1).peekable();
    assert!(releases.peek().unwrap().starts_with(&format!("{}]", env!("CARGO_PKG_VERSION"))));
    for release in releases {
        let said = release.split("\n### State compatibility\n").nth(1);
        assert!(said.is_some_and(|said| !said.trim().is_empty()), "{}", release.lines().next().unwrap());
    }
}
