//! `new`: a kind file to begin with.

use std::path::Path;

use super::Exit;
use super::args::{Global, NewArgs};
use super::config;
use super::output::Output;
use crate::error::Error;
use crate::model::kind::Kind;
use crate::model::scaffold::quoted;

pub(crate) fn run(global: &Global, args: &NewArgs, output: &Output) -> Result<Exit, Error> {
    let text = template(&args.name);
    // What is written must be a kind, whatever the name.
    Kind::from_toml_file(&text, &format!("{}.toml", args.name))?;
    let folder = folder(global)?;
    let file = folder.join(format!("{}.toml", args.name));
    let failed =
        |e: std::io::Error| Error::usage(format!("`{}` can't be written", file.display())).with_source(e);
    std::fs::create_dir_all(&folder).map_err(failed)?;
    if file.exists() {
        return Err(Error::usage(format!("`{}` is there already", file.display()))
            .with_hint("append a [[migrations]] block to it, by hand or with `delta-migrate kind add-migration`; shipped migrations \
                        are never edited"));
    }
    std::fs::write(&file, text).map_err(failed)?;
    if output.is_json() {
        output.json(&serde_json::json!({ "command": "new", "file": file.display().to_string() }));
    } else {
        output.text(&format!("wrote {}\n", file.display()));
        output.note("→ edit it, then see `delta-migrate plan --namespace NAME --kind-file FILE TABLE`");
    }
    Ok(Exit::Fine)
}

/// The configuration's folder of kind files, else `kinds/` here.
fn folder(global: &Global) -> Result<std::path::PathBuf, Error> {
    let path = global.config.clone().unwrap_or_else(|| "delta-migrate.toml".into());
    match std::fs::read_to_string(&path) {
        Ok(text) => {
            let parent = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
            let file = path.display().to_string();
            // Secrets are not needed to find a folder, so unset ones are no mistake here.
            let env = |name: &str| Some(std::env::var(name).unwrap_or_default());
            Ok(config::parse(&text, &file, parent, &env)?.kinds)
        }
        Err(error) if global.config.is_some() => {
            Err(Error::usage(format!("`{}` can't be read", path.display())).with_source(error))
        }
        Err(_) => Ok("kinds".into()),
    }
}

fn template(name: &str) -> String {
    let name = quoted(name);
    format!(
        r#"# A kind: the shape of a table at version 0, and the chain of migrations that changed it since.
# Once a table was written, what stands here is never edited; the next change is one more
# [[migrations]] block at the end.
kind = {name}
description = "What one row is"
# partition_by = ["day"]              # can't be changed later
# identified_by = ["id"]              # columns that only tables of this kind have

[columns]
id = {{ type = "string", nullable = false, comment = "Who or what the row is about" }}
amount = "decimal(18,2)"              # the same as {{ type = "decimal(18,2)" }}

# [properties]
# "delta.enableChangeDataFeed" = "true"

# [[migrations]]                      # version 1
# description = "where the amount came from"
# [migrations.add_columns]
# source = {{ type = "string", comment = "Name of the system" }}
"#
    )
}
