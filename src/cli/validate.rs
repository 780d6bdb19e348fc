//! `validate`: what has shipped is as it was, and older releases do no harm. The step for CI.

use std::collections::BTreeSet;

use serde::Serialize;

use super::Exit;
use super::args::{Global, ValidateArgs};
use super::frozen::Frozen;
use super::output::Output;
use crate::error::Error;
use crate::migrator::Migrator;
use crate::model::consequences::{Consequence, StepConsequences, harmed, of_migration};
use crate::model::finding::{Finding, FindingCode};
use crate::model::kind::Kind;
use crate::model::lockfile::Unlocked;
use crate::model::render::Palette;
use crate::model::text::count;
use crate::model::version::SchemaVersion;

/// The JSON document.
#[derive(Serialize)]
struct Report<'a> {
    command: &'static str,
    ok: bool,
    /// None if there is no lock file.
    lock_file: Option<&'a str>,
    findings: &'a [Finding],
    unlocked: &'a [Unlocked],
    consequences: &'a [Consequences],
}

/// What older releases would do after one migration.
#[derive(Serialize)]
struct Consequences {
    kind: String,
    version: SchemaVersion,
    description: String,
    raises_min_version: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    min_version_waived: Option<String>,
    steps: Vec<StepConsequences>,
}

pub(crate) fn run(
    global: &Global,
    args: &ValidateArgs,
    own: Option<Migrator>,
    output: &Output,
) -> Result<Exit, Error> {
    let frozen = Frozen::load(global, own)?;
    frozen.check_sql()?;
    let file = frozen.file();
    let verified = frozen.verify();
    let mut findings = verified.findings;
    findings.extend(floors(&frozen, &verified.unlocked));
    if args.locked && frozen.lock.is_none() {
        findings.push(Finding {
            file: Some(file.clone()),
            ..Finding::new(
                FindingCode::MissingLock,
                "there is no lock file",
                "run `delta-migrate lock`, and commit it",
            )
        });
    } else if args.locked {
        findings.extend(verified.unlocked.iter().map(unlocked));
    }
    let consequences: Vec<Consequences> = frozen.kinds.iter().flat_map(of_kind).collect();
    let ok = findings.is_empty();
    if output.is_json() {
        output.json(&Report {
            command: "validate",
            ok,
            lock_file: frozen.lock.is_some().then_some(file.as_str()),
            findings: &findings,
            unlocked: &verified.unlocked,
            consequences: &consequences,
        });
    } else {
        print_findings(&findings, &file, output);
        if args.explain || global.verbose > 0 {
            print_consequences(&consequences, output);
        }
        if !args.locked {
            print_unlocked(&frozen, &verified.unlocked, output);
        }
        output.text(&summary(&frozen.kinds, findings.len()));
    }
    Ok(if ok { Exit::Fine } else { Exit::Errors })
}

/// Migrations after which older releases had better be stopped, and are not.
pub(crate) fn floors(frozen: &Frozen, unlocked: &[Unlocked]) -> Vec<Finding> {
    let unlocked: BTreeSet<(&str, SchemaVersion)> =
        unlocked.iter().map(|u| (u.kind.as_str(), u.frozen.version)).collect();
    let mut out = Vec::new();
    for kind in &frozen.kinds {
        let floor = kind.floor_at(kind.newest()).map_or(0, |floor| floor.get());
        for (version, migration) in kind.numbered() {
            let is_locked = frozen.lock.is_some() && !unlocked.contains(&(kind.name(), version));
            // What has shipped can't raise the floor any more; a later migration can do it.
            let raised = migration.raises_min_version() || (is_locked && floor >= version.get());
            if raised || migration.min_version_waived().is_some() {
                continue;
            }
            let harmed = harmed(&of_migration(kind, version, migration));
            if !harmed.is_empty() {
                out.push(floor_not_raised(kind, version, &harmed, is_locked));
            }
        }
    }
    out
}

fn floor_not_raised(
    kind: &Kind,
    version: SchemaVersion,
    harmed: &[(&'static str, &'static str, Consequence)],
    is_locked: bool,
) -> Finding {
    let cells: Vec<String> = harmed
        .iter()
        .map(|(step, operation, answer)| format!("{operation}: {} (`{step}`)", answer.as_str()))
        .collect();
    let message = format!(
        "after migration {version} of kind `{}` an older release goes wrong, and the floor does not stop it: {}",
        kind.name(),
        cells.join(", ")
    );
    let waive = "or say why older releases do no harm: `min_version_waived = \"…\"`";
    let hint = match is_locked {
        false => format!("say `raises_min_version = true` in the migration, {waive}"),
        true => format!(
            "it has shipped, so add one more migration with `raises_min_version = true` at the end, {waive}"
        ),
    };
    let origin = kind.origin();
    Finding {
        kind: Some(kind.name().to_owned()),
        version: Some(version),
        file: origin.file.clone(),
        line: origin.line(version),
        ..Finding::new(FindingCode::FloorNotRaised, message, hint)
    }
}

fn unlocked(unlocked: &Unlocked) -> Finding {
    let Unlocked { kind, frozen, file, line } = unlocked;
    let what = match frozen.version {
        SchemaVersion::ZERO => "the base shape".to_owned(),
        version => format!("migration {version}"),
    };
    Finding {
        kind: Some(kind.clone()),
        version: Some(frozen.version),
        file: file.clone(),
        line: *line,
        is: Some(frozen.clone()),
        ..Finding::new(
            FindingCode::UnlockedMigration,
            format!("{what} of kind `{kind}` is not in the lock file"),
            "run `delta-migrate lock`, and commit what it appended",
        )
    }
}

fn of_kind(kind: &Kind) -> impl Iterator<Item = Consequences> + '_ {
    kind.numbered().map(|(version, migration)| Consequences {
        kind: kind.name().to_owned(),
        version,
        description: migration.description().to_owned(),
        raises_min_version: migration.raises_min_version(),
        min_version_waived: migration.min_version_waived().map(str::to_owned),
        steps: of_migration(kind, version, migration),
    })
}

/// Every finding: place, what it is, was and is, and the way out.
pub(crate) fn print_findings(findings: &[Finding], lock_file: &str, output: &Output) {
    let Palette { bad, dim, reset, .. } = output.palette();
    for finding in findings {
        let code = finding.code.as_str();
        output.text(&format!("{}: {bad}{code}{reset}: {}\n", finding.place(), finding.message));
        if let Some(was) = &finding.was {
            let line = finding.lock_line.map(|line| format!("  {dim}({lock_file}:{line}){reset}"));
            output.text(&format!("    was  {was}{}\n", line.unwrap_or_default()));
        }
        if let Some(is) = &finding.is {
            output.text(&format!("    is   {is}\n"));
        }
        output.text(&format!("    → {}\n", finding.hint));
    }
}

fn print_consequences(consequences: &[Consequences], output: &Output) {
    output.text("what an older release would do after each migration:\n\n");
    let row = |cells: [&str; 6]| {
        let [what, step, append, merge, overwrite, read] = cells;
        let line = format!("{what:<14}  {step:<18}  {append:<12}  {merge:<12}  {overwrite:<12}  {read}");
        output.text(&format!("{}\n", line.trim_end()));
    };
    row(["", "", "append", "merge", "overwrite", "read"]);
    for one in consequences {
        let what = format!("{} {}", one.kind, one.version);
        let mut what = what.as_str();
        for step in &one.steps {
            let [append, merge, overwrite, read] = step.cells().map(|(_, answer)| answer.as_str());
            row([what, step.step, append, merge, overwrite, read]);
            what = "";
        }
        if one.raises_min_version {
            row([what, "raises the floor", "", "", "", ""]);
        } else if let Some(why) = &one.min_version_waived {
            output.text(&format!("{what:<14}  floor waived: {}\n", crate::model::text::clean(why)));
        }
    }
    output.text("\n");
}

/// What is no finding, but is not frozen either.
fn print_unlocked(frozen: &Frozen, unlocked: &[Unlocked], output: &Output) {
    let file = frozen.file();
    if frozen.lock.is_none() {
        output.note(&format!(
            "! there is no {file} yet, so nothing is frozen: an edit of what has shipped goes unseen"
        ));
        output.note("→ `delta-migrate lock` writes it; commit it, and let a release say `validate --locked`");
        return;
    }
    for u in unlocked {
        let what = match u.frozen.version {
            SchemaVersion::ZERO => "base shape".to_owned(),
            version => format!("migration {version}"),
        };
        let description = match u.frozen.description.as_str() {
            "" => String::new(),
            text => format!(" ({text})"),
        };
        output.note(&format!("not locked yet: {what} of kind `{}`{description}", u.kind));
    }
    if !unlocked.is_empty() {
        output.note("→ `delta-migrate lock` freezes them when they ship");
    }
}

fn summary(kinds: &[Kind], findings: usize) -> String {
    let migrations = kinds.iter().map(|k| k.migrations().len()).sum();
    let what = format!("{}, {}", count(kinds.len(), "kind"), count(migrations, "migration"));
    match findings {
        0 => format!("{what}: all fine\n"),
        n => format!("\n{what}: {}\n", count(n, "finding")),
    }
}
