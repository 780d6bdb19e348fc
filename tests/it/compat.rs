//! The compat corpus: written, checked, tampered with.

mod frozen;
#[cfg(feature = "datafusion")]
mod moved;
mod tampered;
#[cfg(not(feature = "datafusion"))]
mod unmoved;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use delta_migrate::compat::{self, Checked, Options};
use delta_migrate::{Kind, Namespace, SchemaVersion};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;

use crate::support::table::files_below;
use crate::support::{Ran, command};

/// A chain with a floor in its middle, nested types, and a partition column.
const KIND: &str = r#"
kind = "facts"
partition_by = ["day"]
identified_by = ["id"]

[columns]
id      = { type = "long", nullable = false }
payload = "struct<lsn: binary, n: decimal(10,2)>"
day     = "date"

[[migrations]]
description = "detail"
[migrations.add_columns]
detail = "string"

[[migrations]]
description = "tenant"
raises_min_version = true
[migrations.add_columns]
tenant = "map<long, string>"

[[migrations]]
description = "inside"
[migrations.add_columns]
"payload.more" = "array<timestamp>"
"#;

fn kind(version: u32) -> Kind {
    Kind::from_toml(KIND).unwrap().cut_at(SchemaVersion::new(version))
}

fn namespace() -> Namespace {
    Namespace::new("app").unwrap()
}

/// A corpus in a temporary folder.
struct Corpus {
    folder: TempDir,
}

impl Corpus {
    /// As the release that knew `version` migrations wrote it.
    async fn of(version: u32) -> Self {
        Self::made(version, Options::new("my-sink 1.0")).await
    }

    /// Of a release that had a lock file.
    async fn with_lock(lock: &str) -> Self {
        let mut options = Options::new("my-sink 1.0");
        options.lock = Some(lock.to_owned());
        Self::made(1, options).await
    }

    async fn made(version: u32, mut options: Options) -> Self {
        let corpus = Self { folder: tempfile::tempdir().unwrap() };
        options.kind_files.insert("facts.toml".into(), KIND.into());
        compat::generate(&[kind(version)], &namespace(), corpus.path(), &options).await.unwrap();
        corpus
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("1.0")
    }

    fn file(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    async fn check(&self, version: u32) -> Checked {
        compat::check(self.path(), &[kind(version)], &namespace()).await.unwrap()
    }

    /// The findings as lines for people.
    async fn findings(&self, version: u32) -> Vec<String> {
        self.check(version).await.findings.iter().map(ToString::to_string).collect()
    }

    /// Changes a file and makes all hashes fit, as if the release had written it so.
    fn rewrite(&self, name: &str, change: impl FnOnce(&str) -> String) {
        let file = self.file(name);
        let text = change(&std::fs::read_to_string(&file).unwrap());
        std::fs::write(&file, &text).unwrap();
        let manifest = self.file("manifest.json");
        let mut json: Value = serde_json::from_str(&std::fs::read_to_string(&manifest).unwrap()).unwrap();
        for entry in json["files"].as_array_mut().unwrap().iter_mut().filter(|e| e["path"] == name) {
            entry["size"] = text.len().into();
            entry["sha256"] = sha256(text.as_bytes()).into();
        }
        let text = serde_json::to_string_pretty(&json).unwrap() + "\n";
        std::fs::write(&manifest, &text).unwrap();
        let seal = format!("{}  manifest.json\n", sha256(text.as_bytes()));
        std::fs::write(self.file("manifest.json.sha256"), seal).unwrap();
    }

    fn rewrite_json(&self, name: &str, change: impl FnOnce(&mut Value)) {
        self.rewrite(name, |text| {
            let mut json = serde_json::from_str(text).unwrap();
            change(&mut json);
            serde_json::to_string_pretty(&json).unwrap() + "\n"
        });
    }

    fn bytes(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        relative(&self.path())
    }
}

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|b| format!("{b:02x}")).collect()
}

/// Every file below a folder by its path from there.
fn relative(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let inside = |path: PathBuf| path.strip_prefix(folder).unwrap().to_owned();
    files_below(folder).into_iter().map(|(path, bytes)| (inside(path), bytes)).collect()
}

/// The command in a project folder with the kind, a corpus and a configuration.
fn project() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("kinds")).unwrap();
    std::fs::write(folder.path().join("kinds/facts.toml"), KIND).unwrap();
    std::fs::write(folder.path().join("delta-migrate.toml"), "namespace = \"app\"\nkinds = \"kinds\"\n")
        .unwrap();
    folder
}

fn run(folder: &Path, args: &[&str]) -> Ran {
    Ran::of(command(folder).args(args).output().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_corpus_passes_with_the_chain_that_it_was_made_with_and_stays_as_it_is() {
    let corpus = Corpus::of(3).await;
    let before = corpus.bytes();
    let checked = corpus.check(3).await;
    assert!(checked.findings.is_empty(), "{checked}");
    // Of 23 tables three are refused, and one of another program is among the others.
    assert!(checked.tables > 15 && checked.older_releases > 30, "{checked}");
    assert!(corpus.bytes() == before, "the check wrote into the corpus");
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_of_a_shorter_chain_are_carried_by_a_longer_one() {
    for version in [0, 1, 2] {
        let checked = Corpus::of(version).await.check(3).await;
        assert!(checked.findings.is_empty(), "{version}: {checked}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chain_that_was_changed_after_it_was_shipped_is_found() {
    let corpus = Corpus::of(3).await;
    let check = async |text: String| {
        let kinds = [Kind::from_toml(&text).unwrap()];
        let checked = compat::check(corpus.path(), &kinds, &namespace()).await.unwrap();
        checked.to_string()
    };
    let edited = check(KIND.replace("detail = \"string\"", "detail = \"long\"")).await;
    assert!(edited.contains("1.0: kind `facts`: found another migration 1"), "{edited}");
    let based = check(KIND.replace("day     = \"date\"", "day = \"string\"")).await;
    assert!(based.contains("another base shape"), "{based}");
    let unraised = check(KIND.replace("raises_min_version = true", "")).await;
    assert!(unraised.contains("another migration 2"), "{unraised}");
    let shorter = corpus.check(2).await.to_string();
    assert!(shorter.contains("a chain of 2; wanted the chain of 3 migrations"), "{shorter}");
    let gone = check("kind = \"others\"\n[columns]\nid = \"long\"".to_owned()).await;
    assert!(gone.contains("kind `facts`: found no such kind"), "{gone}");
    // What says nothing about the tables may be mended.
    let mended = check(KIND.replace("\"inside\"", "\"inside the payload\"")).await;
    assert!(mended.ends_with("all as it was"), "{mended}");
}

#[test]
fn the_same_build_writes_the_same_bytes_whatever_the_surroundings() {
    let (one, other) = (project(), project());
    let release = ["--release", "my-sink 1.0"];
    let first = run(one.path(), &[&["compat", "generate", "1.0"], &release[..]].concat());
    assert_eq!(first.code, 0, "{first:?}");
    let inner = other.path().join("kinds");
    let second = command(&inner)
        .args([
            "-c",
            "../delta-migrate.toml",
            "compat",
            "generate",
            "../deep/er/corpus",
            "--release",
            "my-sink 1.0",
        ])
        .env("TZ", "Asia/Kolkata")
        .env("LC_ALL", "tr_TR.UTF-8")
        .env("LANG", "tr_TR.UTF-8")
        .output()
        .unwrap();
    assert!(second.status.success(), "{second:?}");
    let (a, b) = (relative(&one.path().join("1.0")), relative(&other.path().join("deep/er/corpus")));
    assert!(a.len() > 80, "{}", a.len());
    for (path, bytes) in &a {
        assert!(b.get(path) == Some(bytes), "{} differs", path.display());
        for word in [one.path(), &std::env::temp_dir(), Path::new(env!("CARGO_MANIFEST_DIR"))] {
            let word = word.to_str().unwrap().as_bytes();
            let names = bytes.windows(word.len()).any(|w| w == word);
            assert!(!names, "{} names a folder of this computer", path.display());
        }
    }
    assert_eq!(a.len(), b.len());
}

#[test]
fn the_command_generates_checks_and_tells_what_it_found() {
    let folder = project();
    let here = folder.path();
    let made = run(here, &["compat", "generate", "compat/1.0", "--commit", "abc", "--format", "json"]);
    assert_eq!(made.code, 0, "{made:?}");
    let manifest = &made.json()["manifest"];
    assert_eq!(manifest["commit"], "abc");
    assert_eq!(manifest["binary_sha256"], Value::Null);
    assert_eq!(manifest["release"], concat!("delta-migrate ", env!("CARGO_PKG_VERSION")));
    assert_eq!(manifest["command"], "delta-migrate compat generate FOLDER");
    assert_eq!(std::fs::read_to_string(here.join("compat/1.0/kinds/facts.toml")).unwrap(), KIND);

    let fine = run(here, &["compat", "check", "compat/1.0"]);
    assert_eq!((fine.code, fine.stderr.as_str()), (0, ""), "{fine:?}");
    assert!(fine.stdout.ends_with("all as it was\n"), "{fine:?}");

    let before = files_below(&here.join("compat"));
    let again = run(here, &["compat", "generate", "compat/1.0"]);
    assert_eq!(again.code, 2, "{again:?}");
    assert!(again.stderr.contains("`compat/1.0` is not empty"), "{again:?}");
    assert!(files_below(&here.join("compat")) == before, "a corpus was written over");

    let data = here.join("compat/1.0/rows/facts/stepwise.json");
    std::fs::write(&data, "[]").unwrap();
    let found = run(here, &["compat", "check", "compat/1.0", "--format", "json"]);
    assert_eq!(found.code, 1, "{found:?}");
    let findings = found.json()["corpora"][0]["findings"].clone();
    assert_eq!(findings.as_array().unwrap().len(), 1, "{findings}");
    assert_eq!(findings[0]["place"], "1.0/rows/facts/stepwise.json");
    assert!(findings[0]["hint"].as_str().unwrap().contains("version control"), "{findings}");

    let nowhere = run(here, &["compat", "check", "kinds"]);
    assert_eq!(nowhere.code, 2, "{nowhere:?}");
    assert!(nowhere.stderr.contains("there is no corpus in `kinds`"), "{nowhere:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_lock_file_is_kept_in_the_corpus_and_read_again() {
    let folder = project();
    let here = folder.path();
    assert_eq!(run(here, &["lock"]).code, 0);
    assert_eq!(run(here, &["compat", "generate", "compat/1.0"]).code, 0);
    let lock = std::fs::read(here.join("migrations.lock")).unwrap();
    assert_eq!(std::fs::read(here.join("compat/1.0/migrations.lock")).unwrap(), lock);
    assert_eq!(run(here, &["compat", "check", "compat/1.0"]).code, 0);
    let other = ["--lock-file", "other.lock", "compat", "generate", "compat/1.1"];
    assert_eq!(run(here, &other).code, 0);
    // Without one, it is what `lock` would write.
    assert_eq!(std::fs::read(here.join("compat/1.1/migrations.lock")).unwrap(), lock);

    let corpus = Corpus::with_lock(&String::from_utf8(lock).unwrap()).await;
    assert_eq!(corpus.findings(3).await, Vec::<String>::new());
    corpus.rewrite("migrations.lock", |text| text.replacen("facts 1 ", "facts one ", 1));
    let broken = corpus.findings(3).await.join("\n");
    assert!(
        broken.starts_with(
            "1.0/migrations.lock: found 1.0/migrations.lock:6: broken_lock: `one` is no version"
        ),
        "{broken}"
    );
    corpus.rewrite("migrations.lock", |text| text.replacen("# scheme: 1", "# scheme: 2", 1));
    let later = corpus.findings(3).await.join("\n");
    assert!(later.starts_with("1.0/migrations.lock: found 1.0/migrations.lock:3: later_lock: "), "{later}");
}

#[test]
fn help_teaches() {
    let folder = project();
    for (what, words) in [
        ("generate", ["git add compat/1.4.0", "--binary-sha256"]),
        ("check", ["compat check compat/1.3.0 compat/1.4.0", "1 something was found"]),
    ] {
        let help = run(folder.path(), &["compat", what, "--help"]);
        assert_eq!(help.code, 0);
        for word in words {
            assert!(help.stdout.contains(word), "{word}: {}", help.stdout);
        }
    }
}
