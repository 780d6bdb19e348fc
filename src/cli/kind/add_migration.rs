//! `kind add-migration`: the next block of a kind file, from a difference.

use std::io::Write as _;
use std::path::Path;

use serde_json::json;

use super::{read_table, tell};
use crate::cli::Exit;
use crate::cli::args::{AddMigrationArgs, Global};
use crate::cli::output::Output;
use crate::delta::arrow_file::schema_of_file;
use crate::delta::arrow_schema::columns_of;
use crate::error::Error;
use crate::model::kind::Kind;
use crate::model::scaffold::{append, next_migration};
use crate::model::text::count;

pub(super) async fn run(global: &Global, args: &AddMigrationArgs, output: &Output) -> Result<Exit, Error> {
    let AddMigrationArgs { file, from_table, from_arrow, description, dry_run } = args;
    let shown = file.display().to_string();
    let text = std::fs::read_to_string(file)
        .map_err(|e| Error::usage(format!("kind file `{shown}` can't be read")).with_source(e))?;
    let kind = Kind::from_toml_file(&text, &shown)?;
    if description.as_ref().is_some_and(|d| d.trim().is_empty()) {
        return Err(Error::usage("--description is empty").with_hint("say what the migration is for"));
    }
    let columns = match (from_table, from_arrow) {
        (Some(uri), _) => read_table(global, uri).await?.state.columns,
        (None, Some(path)) => columns_of(&schema_of_file(path)?)?,
        (None, None) => Vec::new(),
    };
    let next = next_migration(&kind, &columns);
    let block = next.to_toml(description.as_deref());
    let written = !next.is_empty() && !dry_run;
    if !next.is_empty() {
        // Checked for --dry-run as well: what is shown can be written.
        let tail = append(&kind, &text, &shown, &next, &block)?;
        if written {
            write(file, &tail)?;
        }
    }
    if output.is_json() {
        output.json(&json!({
            "command": "kind add-migration", "file": shown, "kind": kind.name(),
            "version": (!next.is_empty()).then(|| next.version()),
            "block": (!next.is_empty()).then_some(&block),
            "written": written, "notes": next.notes(),
        }));
        return Ok(Exit::Fine);
    }
    output.text(&match (next.is_empty(), dry_run) {
        (true, _) => {
            format!("nothing to add: kind `{}` has all of it at version {}\n", kind.name(), kind.newest())
        }
        (false, true) => block,
        (false, false) => format!("{shown}: appended migration {}\n\n{block}", next.version()),
    });
    tell(output, next.notes());
    if next.is_empty() && !next.notes().is_empty() {
        output.note(&format!("→ {} not written; see above", count(next.notes().len(), "difference")));
    }
    Ok(Exit::Fine)
}

/// In one write at the end: what stands in the file is not touched, whatever happens.
fn write(file: &Path, tail: &str) -> Result<(), Error> {
    let opened = std::fs::OpenOptions::new().append(true).open(file);
    opened
        .and_then(|mut f| f.write_all(tail.as_bytes()))
        .map_err(|e| Error::usage(format!("`{}` can't be written", file.display())).with_source(e))
}
