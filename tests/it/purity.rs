//! The model decides and nothing else: no input, no output, no clock, no chance.

use std::path::{Path, PathBuf};

const FORBIDDEN: [&str; 9] = [
    "tokio",
    "std::fs",
    "deltalake::",
    "SystemTime",
    "Instant::now",
    "Utc::now",
    "rand::",
    "Uuid::new",
    "std::env::var",
];

fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut out = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if name == "tests" || name == "tests.rs" || name == "testdata" {
            continue;
        }
        if path.is_dir() {
            out.extend(sources(&path));
        } else if name.ends_with(".rs") {
            out.push(path);
        }
    }
    out
}

/// What is forbidden in the code of a file, outside comments and the tests at its end.
fn found(text: &str, is_types: bool) -> Vec<&'static str> {
    let code = text.split("#[cfg(test)]").next().unwrap();
    let lines: Vec<&str> = code.lines().filter(|l| !l.trim_start().starts_with("//")).collect();
    let code = lines.join("\n");
    let allowed = |word: &str| is_types && word == "deltalake::";
    FORBIDDEN.into_iter().filter(|word| !allowed(word) && code.contains(word)).collect()
}

#[test]
fn the_model_does_no_input_or_output_and_asks_neither_clock_nor_chance() {
    let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/model");
    let files = sources(&model);
    assert!(files.len() > 20, "the model was looked for in the wrong place: {files:?}");
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let inside = file.strip_prefix(&model).unwrap();
        let found = found(&text, inside.starts_with("types") || inside == Path::new("types.rs"));
        assert!(found.is_empty(), "{}: {found:?}", inside.display());
    }
}

#[test]
fn the_search_finds_what_it_looks_for() {
    assert_eq!(found("use deltalake::DeltaTable;\nlet at = Utc::now();", false), ["deltalake::", "Utc::now"]);
    assert_eq!(found("use deltalake::kernel::DataType;", true), Vec::<&str>::new());
    assert_eq!(found("// tokio\n#[cfg(test)]\nmod tests { use tokio; }", false), Vec::<&str>::new());
    assert_eq!(found("std::env::var(\"X\"); rand::random(); Uuid::new_v4()", true).len(), 3);
}
