//! `compat`: what each release wrote, and whether today's code still carries it.

use serde::Serialize;

use super::args::{CheckArgs, CompatCommand, GenerateArgs, Global};
use super::context::{Context, read_config};
use super::kinds::kind_texts;
use super::output::Output;
use super::{Exit, frozen};
use crate::compat::{Checked, Manifest, Options, check, generate};
use crate::error::Error;
use crate::migrator::Migrator;
use crate::model::kind::Kind;
use crate::model::text;

#[derive(Serialize)]
struct Generated<'a> {
    command: &'static str,
    folder: String,
    manifest: &'a Manifest,
}

#[derive(Serialize)]
struct CheckedAll<'a> {
    command: &'static str,
    corpora: &'a [Checked],
}

pub(crate) async fn run(
    global: &Global,
    command: CompatCommand,
    own: Option<Migrator>,
    output: &Output,
) -> Result<Exit, Error> {
    let is_own = own.is_some();
    let context = Context::load(global, own, None)?;
    let migrator = context.migrator();
    let kinds = migrator.kind_names().map(|name| migrator.kind(name).cloned());
    let kinds: Vec<Kind> = kinds.collect::<Result<_, Error>>()?;
    match command {
        CompatCommand::Generate(args) => {
            let mut options = options(&args, migrator.release());
            options.lock = frozen::text(global)?;
            if !is_own {
                options.kind_files = kind_texts(global, read_config(global, false)?.as_ref())?;
            }
            let manifest = generate(&kinds, migrator.namespace(), &args.folder, &options).await?;
            told(&manifest, &args, output);
            Ok(Exit::Fine)
        }
        CompatCommand::Check(CheckArgs { folders }) => {
            let mut corpora = Vec::new();
            for folder in &folders {
                corpora.push(check(folder, &kinds, migrator.namespace()).await?);
            }
            if output.is_json() {
                output.json(&CheckedAll { command: "compat check", corpora: &corpora });
            } else {
                corpora.iter().for_each(|checked| output.text(&format!("{checked}\n")));
            }
            let is_fine = corpora.iter().all(|checked| checked.findings.is_empty());
            Ok(if is_fine { Exit::Fine } else { Exit::Errors })
        }
    }
}

fn options(args: &GenerateArgs, release: &str) -> Options {
    let GenerateArgs { folder: _, release: named, commit, binary_sha256, rustc } = args;
    let mut options = Options::new(named.clone().unwrap_or_else(|| release.to_owned()));
    // Not the folder: the same build writes the same bytes wherever it stands.
    let named = named.as_ref().map(|name| format!(" --release '{name}'")).unwrap_or_default();
    options.command = Some(format!("delta-migrate compat generate FOLDER{named}"));
    options.commit.clone_from(commit);
    options.binary_sha256.clone_from(binary_sha256);
    options.rustc.clone_from(rustc);
    options
}

fn told(manifest: &Manifest, args: &GenerateArgs, output: &Output) {
    let folder = args.folder.display().to_string();
    if output.is_json() {
        output.json(&Generated { command: "compat generate", folder, manifest });
        return;
    }
    output.text(&format!(
        "wrote {folder}: {} of {}\n",
        text::count(manifest.tables.len(), "table"),
        manifest.release
    ));
    output.note(
        "→ commit the folder and never touch it again; `delta-migrate compat check` reads it from now on",
    );
}
