//! `kind from-table`: the kind file that recreates a table.

use std::io::Write as _;
use std::path::Path;

use serde_json::json;

use super::{Read, read_table, tell};
use crate::cli::Exit;
use crate::cli::args::{FromTableArgs, Global};
use crate::cli::output::Output;
use crate::error::Error;
use crate::model::scaffold::{KindText, kind_text};

pub(super) async fn run(global: &Global, args: &FromTableArgs, output: &Output) -> Result<Exit, Error> {
    let FromTableArgs { uri, name, out, force } = args;
    // Told before the table is read; that nobody else made the file meanwhile is seen to below.
    if let Some(file) = out.as_deref().filter(|file| !force && file.exists()) {
        return Err(is_there(file));
    }
    let Read { uri, state, namespace } = read_table(global, uri).await?;
    let name = name.clone().unwrap_or_else(|| name_of(&uri));
    let KindText { text, notes } = kind_text(&state, &name, namespace.as_ref())?;
    if let Some(file) = out {
        write(file, &text, *force)?;
    }
    if output.is_json() {
        let file = out.as_ref().map(|file| file.display().to_string());
        output.json(&json!({
            "command": "kind from-table", "uri": uri, "kind": name, "file": file, "text": text, "notes": notes,
        }));
        return Ok(Exit::Fine);
    }
    match out {
        Some(file) => output.text(&format!("wrote {}\n", file.display())),
        None => output.text(&text),
    }
    tell(output, &notes);
    Ok(Exit::Fine)
}

/// The last part of a location, as far as it can be a kind's name.
fn name_of(uri: &str) -> String {
    let path = uri.split_once("://").map_or(uri, |(_, rest)| rest);
    let last = path.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let name: String = last.chars().map(|c| if allowed(c) { c } else { '_' }).take(64).collect();
    if name.is_empty() { "table".to_owned() } else { name }
}

fn write(file: &Path, text: &str, force: bool) -> Result<(), Error> {
    let mut options = std::fs::OpenOptions::new();
    match force {
        true => options.write(true).create(true).truncate(true),
        false => options.write(true).create_new(true),
    };
    let written = options.open(file).and_then(|mut f| f.write_all(text.as_bytes()));
    written.map_err(|e| match e.kind() {
        std::io::ErrorKind::AlreadyExists => is_there(file),
        _ => Error::usage(format!("`{}` can't be written", file.display())).with_source(e),
    })
}

fn is_there(file: &Path) -> Error {
    Error::usage(format!("`{}` is there already", file.display()))
        .with_hint("name another file, or replace it with --force")
}
