//! Reads kind files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::args::Global;
use super::config::Config;
use crate::error::Error;
use crate::model::kind::Kind;

/// All kind files; the mistakes of all of them are reported together.
pub(crate) fn read_kinds(global: &Global, config: Option<&Config>) -> Result<Vec<Kind>, Error> {
    let files = match (global.kind_file.as_slice(), config) {
        ([], Some(config)) => kind_files(&config.kinds)?,
        (files, _) => files.to_vec(),
    };
    let (mut kinds, mut mistakes) = (Vec::new(), Vec::new());
    for file in &files {
        let name = shown(file);
        let text = match std::fs::read_to_string(file) {
            Ok(text) => text,
            Err(error) => {
                mistakes.push(format!("kind file `{name}` can't be read: {error}"));
                continue;
            }
        };
        match Kind::from_toml_file(&text, &name) {
            Ok(kind) => kinds.push(kind),
            Err(error) => mistakes.push(error.message().to_owned()),
        }
    }
    if mistakes.is_empty() { Ok(kinds) } else { Err(Error::usage(mistakes.join("\n"))) }
}

/// The texts of the kind files by their names.
pub(crate) fn kind_texts(
    global: &Global,
    config: Option<&Config>,
) -> Result<BTreeMap<String, String>, Error> {
    let files = match (global.kind_file.as_slice(), config) {
        ([], None) => Vec::new(),
        ([], Some(config)) => kind_files(&config.kinds)?,
        (files, _) => files.to_vec(),
    };
    let read = |file: &PathBuf| {
        let text = std::fs::read_to_string(file);
        let text =
            text.map_err(|e| Error::usage(format!("`{}` can't be read", file.display())).with_source(e));
        Ok((file.file_name().unwrap_or_default().to_string_lossy().into_owned(), text?))
    };
    files.iter().map(read).collect()
}

/// A file as messages call it.
pub(crate) fn shown(file: &Path) -> String {
    file.strip_prefix(".").unwrap_or(file).display().to_string()
}

fn kind_files(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let wrong = |e: std::io::Error| {
        Error::usage(format!("the folder of kind files `{}` can't be read", folder.display()))
            .with_hint("set `kinds` in the configuration, or make a first one with `delta-migrate new KIND`")
            .with_source(e)
    };
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(wrong)? {
        let path = entry.map_err(wrong)?.path();
        // Editors and file systems keep hidden copies beside a file.
        let hidden = path.file_name().is_some_and(|n| n.to_string_lossy().starts_with('.'));
        if path.extension().is_some_and(|e| e == "toml") && !hidden {
            files.push(path);
        }
    }
    files.sort();
    if files.is_empty() {
        return Err(Error::usage(format!("there is no kind file in `{}`", folder.display()))
            .with_hint("make one with `delta-migrate new KIND`"));
    }
    Ok(files)
}
