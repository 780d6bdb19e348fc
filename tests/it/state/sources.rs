//! Words that the code knows, read out of its sources: a list of its own would only be another copy.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

pub(super) fn text(file: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).unwrap()
}

/// Every source file below a folder that is no test.
pub(super) fn code(folder: &str) -> Vec<String> {
    let mut files = Vec::new();
    below(&Path::new(env!("CARGO_MANIFEST_DIR")).join(folder), &mut files);
    let read = |file: PathBuf| {
        let text = std::fs::read_to_string(file).unwrap();
        text.split("#[cfg(test)]\nmod").next().unwrap().to_owned()
    };
    files.into_iter().map(read).collect()
}

fn below(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true if path.ends_with("tests") => {}
            true => below(&path, files),
            false if path.extension().is_some_and(|e| e == "rs") && !path.ends_with("tests.rs") => {
                files.push(path)
            }
            false => {}
        }
    }
}

/// The words of an enum that is written in snake case, one a variant.
pub(super) fn variants(file: &str, name: &str) -> BTreeSet<String> {
    let text = text(file);
    let (before, body) =
        text.split_once(&format!("enum {name} {{\n")).unwrap_or_else(|| panic!("{file}: {name}"));
    let attributes = before.rsplit("\n\n").next().unwrap();
    let is_snake =
        attributes.contains("rename_all = \"snake_case\"") || text.contains("The stable, snake_case name");
    assert!(is_snake, "{file}: {name} is written otherwise");
    let body = body.split("\n}").next().unwrap();
    let mut words = BTreeSet::new();
    for line in body.lines() {
        assert!(!line.contains("serde(rename =") || line.starts_with("        "), "{file}: {name}: {line}");
        let variant = line.strip_prefix("    ").filter(|l| l.starts_with(|c: char| c.is_ascii_uppercase()));
        if let Some(variant) = variant {
            words.insert(snake(variant.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap()));
        }
    }
    words
}

fn snake(name: &str) -> String {
    let mut out = String::new();
    for c in name.chars() {
        if c.is_ascii_uppercase() && !out.is_empty() {
            out.push('_');
        }
        out.push(c.to_ascii_lowercase());
    }
    out
}

/// What stands between quotes right after a text, wherever it does.
pub(super) fn quoted_after(text: &str, lead: &str) -> BTreeSet<String> {
    text.split(lead).skip(1).filter_map(|rest| Some(rest.split_once('"')?.0.to_owned())).collect()
}

#[test]
fn words_are_found_in_sources() {
    let how = variants("src/model/history.rs", "How");
    assert_eq!(
        how.into_iter().collect::<Vec<_>>(),
        ["adopted", "created", "migrated", "reconciled", "repaired"]
    );
    assert_eq!(snake("NotATable"), "not_a_table");
    assert_eq!(quoted_after("f(\"a\") f(\"b\") g(\"c\")", "f(\"").into_iter().collect::<String>(), "ab");
    assert!(code("src").len() > 100, "{}", code("src").len());
}
