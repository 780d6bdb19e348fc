//! `lock`: freeze what ships.

use serde::Serialize;

use super::Exit;
use super::args::{Global, LockArgs};
use super::frozen::Frozen;
use super::output::Output;
use super::validate::{floors, print_findings};
use crate::error::Error;
use crate::migrator::Migrator;
use crate::model::finding::Finding;
use crate::model::lockfile::Unlocked;
use crate::model::text::count;
use crate::model::version::SchemaVersion;

/// The JSON document.
#[derive(Serialize)]
struct Report<'a> {
    command: &'static str,
    ok: bool,
    lock_file: &'a str,
    /// What was appended, or with `--check` would be.
    added: &'a [Unlocked],
    written: bool,
    findings: &'a [Finding],
}

pub(crate) fn run(
    global: &Global,
    args: &LockArgs,
    own: Option<Migrator>,
    output: &Output,
) -> Result<Exit, Error> {
    let frozen = Frozen::load(global, own)?;
    frozen.check_sql()?;
    let mut verified = frozen.verify();
    // Once it is frozen, a migration can raise the floor no more.
    verified.findings.extend(floors(&frozen, &verified.unlocked));
    let file = frozen.file();
    let fits = verified.findings.is_empty();
    let is_current = frozen.lock.is_some() && verified.unlocked.is_empty() && !verified.mended;
    let written = fits && !is_current && !args.check;
    if written {
        let text = frozen.lock_or_empty().extended(&frozen.kinds).to_string();
        std::fs::write(&frozen.path, text)
            .map_err(|e| Error::usage(format!("`{file}` can't be written")).with_source(e))?;
    }
    let ok = fits && (is_current || written);
    let added: &[Unlocked] = if fits { &verified.unlocked } else { &[] };
    if output.is_json() {
        let findings = &verified.findings;
        output.json(&Report { command: "lock", ok, lock_file: &file, added, written, findings });
    } else {
        print_findings(&verified.findings, &file, output);
        print_added(added, output);
        output.text(&closing(&file, fits, is_current, written, added.len()));
    }
    Ok(if ok { Exit::Fine } else { Exit::Errors })
}

fn print_added(added: &[Unlocked], output: &Output) {
    let name = |u: &Unlocked| match u.frozen.version {
        SchemaVersion::ZERO => format!("{} base", u.kind),
        version => format!("{} {version}", u.kind),
    };
    let width = added.iter().map(|u| name(u).len()).max().unwrap_or_default();
    for u in added {
        let line = format!("+ {:width$}  {}", name(u), u.frozen.description);
        output.text(&format!("{}\n", line.trim_end()));
    }
}

fn closing(file: &str, fits: bool, is_current: bool, written: bool, added: usize) -> String {
    match (fits, is_current, written) {
        (false, _, _) => format!("\n{file} is left as it was: it only grows\n"),
        (true, true, _) => format!("{file} is up to date\n"),
        (true, false, true) if added == 0 => format!("{file}: descriptions brought up to date\n"),
        (true, false, true) => format!("{file}: {} added\n", count(added, "line")),
        (true, false, false) => format!("{file} is not up to date: run `delta-migrate lock`\n"),
    }
}
