//! Words, codes and names: each list of STATE.md is the one that the code has.

use std::collections::BTreeSet;

use delta_migrate::{ErrorCode, Kind};

use super::documents::seen;
use super::page::{keys, rows};
use super::seen::{
    ASSESSMENT, COMMIT, DIFF, ENTRY, ERROR, FINDING, MANIFEST, ONE, PLAN, PLANS, PROPERTIES, VALIDATE,
};
use super::sources::{code, quoted_after, text, variants};
use super::{assert_none, files};
use crate::support::{Table, apply, command, facts, kind_file, run};

pub(super) const SECTIONS: [&str; 17] = [
    "Outcomes",
    "Modes",
    "How",
    "States",
    "Changes",
    "Error codes",
    "Sorts of differences",
    "Findings of `validate`",
    "Consequences",
    "Checks",
    "Outcomes of checks",
    "Ends of plans",
    "Ways to adopt",
    "Types of catalogs",
    "Types",
    "Environment variables",
    "Encodings",
];

#[track_caller]
pub(super) fn same(section: &str, found: &BTreeSet<String>) {
    let listed: BTreeSet<String> = keys(section).into_iter().map(str::to_owned).collect();
    let unlisted =
        found.difference(&listed).map(|w| format!("{section}: the code has `{w}`, the page lacks it"));
    let gone = listed.difference(found).map(|w| format!("{section}: the page has `{w}`, the code lacks it"));
    assert_none(unlisted.chain(gone).collect());
}

/// The words of an enum, and those that documents held under these keys.
#[track_caller]
fn same_as_enum(section: &str, file: &str, name: &str, places: &[(&'static str, &str)]) {
    let known = variants(file, name);
    same(section, &known);
    for (document, path) in places {
        let written = seen().texts(document, path);
        assert!(!written.is_empty(), "nothing wrote `{path}` of {document}");
        let strange: Vec<_> = written.difference(&known).collect();
        assert!(strange.is_empty(), "{document}: `{path}` is {strange:?}");
    }
}

#[test]
fn outcomes_modes_and_ways() {
    same_as_enum(
        "Outcomes",
        "src/model/report.rs",
        "Outcome",
        &[(ONE, "outcome"), (MANIFEST, "tables[].outcome")],
    );
    same_as_enum("Modes", "src/model/plan.rs", "Mode", &[(ONE, "mode"), (PLAN, "mode")]);
    let how = [(ENTRY, "how"), (COMMIT, "operationParameters.how"), (PLAN, "commits[].how")];
    let mut known = variants("src/model/history.rs", "How");
    known.extend(quoted_after(&text("src/model/entry.rs"), "const FILLED: &str = \""));
    same("How", &known);
    for (document, path) in how {
        assert!(seen().texts(document, path).is_subset(&known) && !seen().texts(document, path).is_empty());
    }
    same_as_enum("Ends of plans", "src/compat/manifest.rs", "PlanEnd", &[(MANIFEST, "plans[].ends")]);
}

#[test]
fn states_and_changes() {
    same_as_enum("States", "src/model/assess.rs", "Assessment", &[(ASSESSMENT, "state")]);
    let changes = "commits[].migrations[].changes[].change";
    same_as_enum("Changes", "src/model/evolve.rs", "Change", &[(PLAN, changes)]);
    let written = rows("Changes").iter().filter(|row| !row.is_of_another_build()).count();
    assert_eq!(seen().texts(PLAN, changes).len(), written, "every change was planned");
    let sorts = "Sorts of differences";
    let left = [(DIFF, "left[].difference")];
    same_as_enum(sorts, "src/model/reconcile/differences.rs", "DifferenceKind", &left);
    assert_eq!(seen().texts(DIFF, "left[].difference").len(), keys(sorts).len(), "every sort was told");
}

#[test]
fn findings_consequences_and_checks() {
    let findings = [(FINDING, "code")];
    same_as_enum("Findings of `validate`", "src/model/finding.rs", "FindingCode", &findings);
    let cells = ["append", "merge", "overwrite", "read"].map(|o| format!("consequences[].steps[].{o}"));
    let cells = cells.each_ref().map(|path| (VALIDATE, path.as_str()));
    same_as_enum("Consequences", "src/model/consequences.rs", "Consequence", &cells);
    same_as_enum(
        "Outcomes of checks",
        "src/delta/doctor.rs",
        "CheckOutcome",
        &[("`doctor`", "checks[].outcome")],
    );
    let mut checks = BTreeSet::new();
    for text in [text("src/delta/doctor.rs")].into_iter().chain(code("src/delta/doctor")) {
        let leads = ["Check::ok(\"", "Check::failed(\"", "Check::skipped(\"", "Check::refused(\"", "skip(\""];
        leads.iter().for_each(|lead| checks.extend(quoted_after(&text, lead)));
        checks.extend(quoted_after(&text, "const NAME: &str = \""));
    }
    same("Checks", &checks);
    assert!(checks.is_superset(&seen().texts("`doctor`", "checks[].check")));
}

/// Every code; the compiler does not know whether it is, so the source is asked below.
const CODES: [ErrorCode; 28] = [
    ErrorCode::Missing,
    ErrorCode::InvalidStamp,
    ErrorCode::NotThisKind,
    ErrorCode::TooNew,
    ErrorCode::Diverged,
    ErrorCode::Unversioned,
    ErrorCode::UnknownShape,
    ErrorCode::StampLost,
    ErrorCode::Drifted,
    ErrorCode::UnsupportedFeature,
    ErrorCode::UnsupportedStep,
    ErrorCode::InvalidName,
    ErrorCode::TypeConflict,
    ErrorCode::RequiredColumn,
    ErrorCode::ColumnInUse,
    ErrorCode::RewriteRequired,
    ErrorCode::Behind,
    ErrorCode::StalePlan,
    ErrorCode::NotATable,
    ErrorCode::CorruptLog,
    ErrorCode::Storage,
    ErrorCode::Conflict,
    ErrorCode::OutcomeUnknown,
    ErrorCode::IdentityChanged,
    ErrorCode::DataStep,
    ErrorCode::Interrupted,
    ErrorCode::TooManyChanges,
    ErrorCode::Usage,
];

#[test]
fn error_codes_and_whether_each_is_a_refusal() {
    same_as_enum("Error codes", "src/error.rs", "ErrorCode", &[(ERROR, "code"), (MANIFEST, "tables[].code")]);
    same("Error codes", &CODES.iter().map(|code| code.as_str().to_owned()).collect());
    for code in CODES {
        let row = rows("Error codes").iter().find(|row| row.key == code.as_str()).unwrap();
        let sort = if code.is_refusal() { "refusal" } else { "failure" };
        assert_eq!(row.cells[0], sort, "{code}");
    }
}

#[test]
fn ways_to_adopt_and_types_of_catalogs() {
    let known = |message: &str, lead: &str, first: &str| -> BTreeSet<String> {
        let list = message.split(lead).nth(1).unwrap_or_else(|| panic!("{message}"));
        list.lines().next().unwrap().split('`').skip(1).step_by(2).chain([first]).map(str::to_owned).collect()
    };
    let wrong = Kind::from_toml("kind = \"k\"\nadopt = \"zzzzqqqq\"\n").unwrap_err();
    let ways = known(wrong.message(), "wanted one of ", "detect");
    same("Ways to adopt", &ways);
    let folder = tempfile::tempdir().unwrap();
    let config = "namespace = \"app\"\n[[catalogs]]\ntype = \"zzzzqqqq\"\n";
    std::fs::write(folder.path().join("delta-migrate.toml"), config).unwrap();
    let ran = run(folder.path(), &["status"]);
    same("Types of catalogs", &known(&ran.stderr, "no type of catalog `zzzzqqqq`; wanted ", "glue"));
}

#[test]
fn types_of_columns() {
    let source = text("src/model/types/type_text.rs");
    let part = |from: &str, to: &str| source.split(from).nth(1).unwrap().split(to).next().unwrap().to_owned();
    let arms = part("fn data_type", "fn fields") + &part("fn primitive", "fn decimal");
    let arms =
        arms.lines().filter_map(|line| Some(line.trim().strip_prefix('"')?.split_once("=>")?.0.to_owned()));
    let words = arms.flat_map(|arm| arm.split('"').step_by(2).map(str::to_owned).collect::<Vec<_>>());
    same("Types", &words.collect());
    // A table is born with a column of each.
    let sample = |word: &str| match word {
        "array" => "array<long not null>".to_owned(),
        "map" => "map<string, long not null>".to_owned(),
        "struct" => "struct<a: long not null comment 'x', b: STRING>".to_owned(),
        word if word.len() % 2 == 0 => word.to_uppercase(),
        word => word.to_owned(),
    };
    let columns = rows("Types").iter().map(|row| format!("\"c {0}\" = \"{1}\"\n", row.key, sample(&row.key)));
    let mode = "[properties]\n\"delta.columnMapping.mode\" = \"name\"\n";
    let kind = format!("kind = \"k\"\n[columns]\n{}{mode}", columns.collect::<String>());
    let table = Table::missing();
    assert_eq!(apply(&table, &kind).code, 0);
    for row in rows("Types") {
        let found = table.field(&format!("c {}", row.key))["type"].clone();
        let found = found.as_str().unwrap_or_else(|| found["type"].as_str().unwrap());
        assert_eq!(row.cells[0].split('`').nth(1), Some(found), "{}", row.key);
    }
    let read = |text: &str| Kind::from_toml(&format!("kind = \"k\"\n[columns]\nc = \"{text}\"\n"));
    for word in ["void", "text", "object", "zzzzqqqq"] {
        assert!(read(word).is_err(), "{word}");
    }
}

#[test]
fn environment_variables() {
    let mut names = BTreeSet::new();
    for source in code("src") {
        names.extend(
            quoted_after(&source, "\"DELTA_MIGRATE").into_iter().map(|rest| format!("DELTA_MIGRATE{rest}")),
        );
    }
    same("Environment variables", &names);
    let folder = tempfile::tempdir().unwrap();
    let elsewhere = folder.path().join("elsewhere.toml");
    std::fs::write(&elsewhere, "namespace = \"app\"\nzzzzqqqq = 1\n").unwrap();
    let asked =
        command(folder.path()).arg("status").env("DELTA_MIGRATE_CONFIG", &elsewhere).output().unwrap();
    assert!(String::from_utf8(asked.stderr).unwrap().contains("unknown key `zzzzqqqq`"));
    let table = facts().table();
    std::fs::write(table.beside("kind.toml"), kind_file(1)).unwrap();
    let args = ["apply", "--namespace", "app", "--kind-file", "kind.toml", "facts"];
    let said = |log: Option<&str>| {
        let mut command = command(&table.beside(""));
        if let Some(filter) = log {
            command.env("DELTA_MIGRATE_LOG", filter);
        }
        command.args(args).output().unwrap().stderr
    };
    let logs = |log: Option<&str>| String::from_utf8(said(log)).unwrap().contains("delta_migrate::");
    assert_eq!((logs(None), logs(Some("delta_migrate=trace"))), (false, true));
}

#[test]
fn encodings() {
    let mut found = BTreeSet::new();
    let mut put = |name: &str, numbers: BTreeSet<String>| {
        found.extend(numbers.into_iter().map(|number| format!("{name} {number}")));
    };
    let before_colon = |stamp: String| stamp.split_once(':').unwrap().0.to_owned();
    put("digest", seen().texts(PROPERTIES, "<ns>.schema_digest").into_iter().map(before_colon).collect());
    put("digest", seen().texts(MANIFEST, "schemes.digest"));
    put("plan", seen().texts(MANIFEST, "schemes.plan"));
    put("plan", seen().texts(PLANS, "format"));
    put("corpus", seen().texts(MANIFEST, "format"));
    let lock = files::lock_of(&kind_file(2));
    put("lock", quoted_after_hash(&lock));
    same("Encodings", &found);
}

/// The word after the scheme's comment.
fn quoted_after_hash(lock: &str) -> BTreeSet<String> {
    let line = lock.lines().find_map(|line| line.strip_prefix("# scheme: ")).unwrap();
    line.split_whitespace().take(1).map(str::to_owned).collect()
}
