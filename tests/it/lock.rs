//! What has shipped stays as it was: `lock`, `validate`, and what heeds them.

mod cells;

use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;

use crate::support::{Ran, command, facts, run};

const FACTS: &str = r#"kind = "facts"
description = "One row per fact"

[columns]
id = { type = "long", nullable = false }

[[migrations]]
description = "detail of a row"
[migrations.add_columns]
detail = { type = "string", comment = "JSON" }

[[migrations]]
description = "score"
[migrations.add_columns]
score = "long"

[[migrations]]
description = "what the columns mean"
[migrations.comments]
detail = "JSON; text before 1.0"
"#;

const TENANT: &str = r#"
[[migrations]]
description = "tenant"
[migrations.add_columns]
tenant = "string"
"#;

const ORDERS: &str = "kind = \"orders\"\n[columns]\nid = \"long\"\n";

/// A project with two kinds, locked.
struct Project(TempDir);

impl Project {
    fn unlocked() -> Self {
        let project = Self(tempfile::tempdir().unwrap());
        std::fs::create_dir(project.0.path().join("kinds")).unwrap();
        // A secret that is not there is none of validate's business.
        project.write(
            "delta-migrate.toml",
            "namespace = \"app\"\n[storage]\naws_secret_access_key = \"${NOT_SET_ANYWHERE}\"\n",
        );
        project.write("kinds/facts.toml", FACTS);
        project.write("kinds/orders.toml", ORDERS);
        project
    }

    fn locked() -> Self {
        let project = Self::unlocked();
        assert_eq!(project.run(&["lock"]).code, 0);
        project
    }

    /// Locked, and then one text of a file replaced by another.
    fn edited(file: &str, from: &str, to: &str) -> Self {
        let project = Self::locked();
        project.edit(file, from, to);
        project
    }

    fn write(&self, file: &str, text: &str) {
        std::fs::write(self.0.path().join(file), text).unwrap();
    }

    fn read(&self, file: &str) -> String {
        std::fs::read_to_string(self.0.path().join(file)).unwrap()
    }

    fn edit(&self, file: &str, from: &str, to: &str) {
        let text = self.read(file);
        assert!(text.contains(from), "{text}");
        self.write(file, &text.replacen(from, to, 1));
    }

    fn run(&self, args: &[&str]) -> Ran {
        run(self.0.path(), args)
    }

    fn shown(&self, args: &[&str]) -> String {
        let ran = self.run(args);
        let mut text = format!("$ delta-migrate {}\n{}", args.join(" "), ran.stdout);
        for line in ran.stderr.lines() {
            text.push_str(&format!("stderr: {line}\n"));
        }
        text + &format!("exit code {}\n", ran.code)
    }

    /// Code, place and lock line of each finding; every one has a message and a way out.
    fn findings(&self) -> Vec<String> {
        let ran = self.run(&["validate", "--format", "json"]);
        let report = ran.json();
        let findings = report["findings"].as_array().unwrap();
        assert_eq!(
            (ran.code == 0, report["ok"] == true),
            (findings.is_empty(), findings.is_empty()),
            "{report}"
        );
        let lock = self.read("migrations.lock");
        assert_eq!(self.run(&["lock"]).code, ran.code, "`lock` finds what `validate` finds");
        if !findings.is_empty() {
            assert_eq!(self.read("migrations.lock"), lock, "`lock` repaired what it had to refuse");
        }
        findings.iter().map(place).collect()
    }
}

fn place(finding: &Value) -> String {
    assert!(finding["message"].as_str().unwrap().len() > 10 && finding["hint"].as_str().unwrap().len() > 10);
    let text = |key: &str| finding[key].as_str().unwrap_or("-").to_owned();
    format!("{} {}:{} lock:{}", text("code"), text("file"), finding["line"], finding["lock_line"])
}

macro_rules! assert_shown {
    ($name:expr, $text:expr) => {
        let mut settings = insta::Settings::clone_current();
        settings.set_omit_expression(true);
        settings.set_prepend_module_to_snapshot(false);
        settings.bind(|| insta::assert_snapshot!($name, $text));
    };
}

#[test]
fn from_nothing_to_a_lock_to_a_longer_one() {
    let project = Project::unlocked();
    assert_shown!("lock_missing", project.shown(&["validate"]));
    assert_shown!("lock_check_missing", project.shown(&["lock", "--check"]));
    assert_shown!("lock", project.shown(&["lock"]));
    let first = project.read("migrations.lock");
    assert_shown!("lock_file", first);
    assert_shown!("lock_again", project.shown(&["lock"]));
    assert_shown!("validate_fine", project.shown(&["validate", "--locked"]));
    project.write("kinds/facts.toml", &format!("{FACTS}{TENANT}"));
    assert_shown!("validate_unlocked", project.shown(&["validate"]));
    assert_shown!("lock_check", project.shown(&["lock", "--check"]));
    assert_eq!(project.read("migrations.lock"), first, "--check writes nothing");
    assert_shown!("lock_appends", project.shown(&["lock"]));
    let longer = project.read("migrations.lock");
    let added: Vec<&str> = longer.lines().filter(|l| !first.lines().any(|f| f == *l)).collect();
    assert_eq!(added.len(), 1, "one migration is one line: {added:?}");
    assert!(first.lines().all(|l| longer.lines().any(|m| m == l)));
    assert_eq!(project.run(&["lock", "--check"]).code, 0);
    assert_shown!("validate_explain", project.shown(&["validate", "--explain"]));
}

#[test]
fn one_character_of_any_shipped_effect_fails() {
    for (line, from, to) in [
        (4, "id = {", "ID = {"),
        (4, "nullable = false", "nullable = true "),
        (7, "type = \"string\"", "type = \"binary\""),
        (12, "score = \"long\"", "Score = \"long\""),
        (12, "score = \"long\"", "score = \"date\""),
    ] {
        let found = Project::edited("kinds/facts.toml", from, to).findings();
        assert_eq!(found.len(), 1, "{from}: {found:?}");
        assert!(found[0].contains(&format!(" kinds/facts.toml:{line} ")), "{from}: {found:?}");
    }
}

#[test]
fn an_edited_moved_removed_or_inserted_migration_is_found() {
    let facts = |from: &str, to: &str| Project::edited("kinds/facts.toml", from, to);
    let edited = facts("score = \"long\"", "score = \"integer\"");
    assert_eq!(edited.findings(), ["edited_migration kinds/facts.toml:12 lock:7"]);
    assert_shown!("edited", edited.shown(&["validate"]));
    assert_shown!("edited_json", edited.shown(&["validate", "--format", "json"]));
    assert_shown!("lock_refuses", edited.shown(&["lock"]));
    let raised = facts("description = \"score\"", "description = \"score\"\nraises_min_version = true");
    assert_eq!(raised.findings(), ["edited_migration kinds/facts.toml:12 lock:7"]);

    let score = "[[migrations]]\ndescription = \"score\"\n[migrations.add_columns]\nscore = \"long\"\n\n";
    let removed = facts(score, "");
    assert_eq!(removed.findings(), ["removed_migration kinds/facts.toml:12 lock:7"]);
    assert_shown!("removed", removed.shown(&["validate"]));
    let moved = Project::locked();
    moved.write("kinds/facts.toml", &format!("{}\n{score}", FACTS.replace(score, "")));
    assert_eq!(moved.findings(), ["moved_migration kinds/facts.toml:17 lock:7"]);
    assert_shown!("moved", moved.shown(&["validate"]));
    let inserted = facts(
        "\n[[migrations]]\ndescription = \"score\"",
        &format!("{TENANT}\n[[migrations]]\ndescription = \"score\""),
    );
    assert_eq!(inserted.findings(), ["inserted_migration kinds/facts.toml:12 lock:7"]);
    assert_shown!("inserted", inserted.shown(&["validate"]));
}

#[test]
fn a_changed_base_shape_and_a_vanished_kind_are_found() {
    let base =
        Project::edited("kinds/facts.toml", "id = { type = \"long\", nullable = false }", "id = \"long\"");
    assert_eq!(base.findings(), ["changed_base kinds/facts.toml:4 lock:5"]);
    assert_shown!("changed_base", base.shown(&["validate"]));
    let renamed = Project::edited("kinds/orders.toml", "\"orders\"", "\"order\"");
    assert_eq!(renamed.findings(), ["vanished_kind migrations.lock:10 lock:10"]);
    assert_shown!("vanished", renamed.shown(&["validate"]));
}

#[test]
fn a_lock_that_was_merged_or_damaged_is_found() {
    let line =
        |project: &Project, n: usize| project.read("migrations.lock").lines().nth(n - 1).unwrap().to_owned();
    let project = Project::locked();
    let (seven, eight) = (line(&project, 7), line(&project, 8));
    project.edit("migrations.lock", &seven, &format!("{seven}\nfacts 2 01234567 of the other branch"));
    assert_eq!(project.findings(), ["forked_lock migrations.lock:8 lock:8"]);
    assert_shown!("forked", project.shown(&["validate"]));

    let project = Project::locked();
    let conflict = format!("<<<<<<< HEAD\n{eight}\n=======\nfacts 3 01234567 theirs\n>>>>>>> other");
    project.edit("migrations.lock", &eight, &conflict);
    assert_eq!(project.findings(), ["forked_lock migrations.lock:8 lock:8"]);
    assert_shown!("conflict", project.shown(&["validate"]));

    let project = Project::edited("migrations.lock", &seven, "facts 2 what is this");
    assert_eq!(
        project.findings(),
        ["broken_lock migrations.lock:7 lock:7", "broken_lock migrations.lock:8 lock:8"]
    );
    let project = Project::edited("migrations.lock", "scheme: 1", "scheme: 7");
    assert_eq!(project.findings(), ["later_lock migrations.lock:3 lock:3"]);
    let project = Project::locked();
    std::fs::write(project.0.path().join("migrations.lock"), b"facts base \xff\xfe\n").unwrap();
    assert_eq!(project.run(&["validate"]).code, 1);
}

#[test]
fn comments_descriptions_and_spellings_may_be_mended() {
    let project = Project::edited("kinds/facts.toml", "comment = \"JSON\"", "comment = \"text\"");
    project.edit("kinds/facts.toml", "score = \"long\"", "score = \"bigint\"");
    assert_eq!(project.findings(), Vec::<String>::new());
    assert_eq!(project.run(&["lock", "--check"]).code, 0);
    project.edit("kinds/facts.toml", "\"score\"", "\"the score\"");
    assert_eq!(project.run(&["validate", "--locked"]).code, 0);
    assert_eq!(project.run(&["lock", "--check"]).code, 1, "the lock says the old words");
    assert_eq!(project.run(&["lock"]).code, 0);
    assert!(project.read("migrations.lock").contains(" the score\n"));
    // Whatever git makes of line ends.
    project.write("migrations.lock", &project.read("migrations.lock").replace('\n', "\r\n"));
    assert_eq!((project.run(&["validate"]).code, project.run(&["lock", "--check"]).code), (0, 0));
}

#[test]
fn everything_must_be_locked_where_that_is_asked_for() {
    let project = Project::unlocked();
    let place_of = |project: &Project| {
        let report = project.run(&["validate", "--locked", "--format", "json"]).json();
        report["findings"].as_array().unwrap().iter().map(place).collect::<Vec<_>>()
    };
    assert_eq!(place_of(&project), ["missing_lock migrations.lock:null lock:null"]);
    assert_eq!(project.run(&["validate", "--locked"]).code, 1);
    let project = Project::locked();
    project.write("kinds/facts.toml", &format!("{FACTS}{TENANT}"));
    assert_eq!(place_of(&project), ["unlocked_migration kinds/facts.toml:22 lock:null"]);
}

const FEATURE: &str =
    "\n[[migrations]]\ndescription = \"wall clock\"\nenable_features = [\"timestampNtz\"]\n";

#[test]
fn a_floor_that_should_rise_is_asked_for() {
    let project = Project::locked();
    project.write("kinds/facts.toml", &format!("{FACTS}{FEATURE}"));
    assert_eq!(project.findings(), ["floor_not_raised kinds/facts.toml:22 lock:null"]);
    assert_shown!("floor_not_raised", project.shown(&["validate"]));
    for way in ["raises_min_version = true\n", "min_version_waived = \"no release writes\"\n"] {
        project.write("kinds/facts.toml", &format!("{FACTS}{FEATURE}{way}"));
        assert_eq!(project.run(&["validate"]).code, 0, "{way}");
    }
    assert_shown!("floor_waived", project.shown(&["validate", "-v"]));
    for wrong in ["min_version_waived = \" \"\n", "min_version_waived = \"x\"\nraises_min_version = true\n"] {
        project.write("kinds/facts.toml", &format!("{FACTS}{FEATURE}{wrong}"));
        assert_eq!(project.run(&["validate"]).code, 2, "{wrong}");
    }
}

#[test]
fn what_has_shipped_without_a_floor_gets_one_by_a_later_migration() {
    let project = Project::unlocked();
    let waived = "min_version_waived = \"not yet written anywhere\"\n";
    project.write("kinds/facts.toml", &format!("{FACTS}{FEATURE}{waived}"));
    assert_eq!(project.run(&["lock"]).code, 0);
    // Waiving is no effect, so it may be taken back.
    project.write("kinds/facts.toml", &format!("{FACTS}{FEATURE}"));
    let said = project.run(&["validate"]);
    assert!(
        said.code == 1 && said.stdout.contains("add one more migration with `raises_min_version"),
        "{said:?}"
    );
    let raise = "\n[[migrations]]\ndescription = \"stop 1.0\"\nraises_min_version = true\n";
    project.write("kinds/facts.toml", &format!("{FACTS}{FEATURE}{raise}"));
    assert_eq!(project.run(&["validate"]).code, 0);
}

#[test]
fn kind_files_that_cannot_be_used_are_no_findings() {
    let project = Project::edited("kinds/facts.toml", "\"long\"", "\"lnog\"");
    assert_eq!(project.run(&["validate"]).code, 2);
    assert_eq!(project.run(&["lock"]).code, 2);
    let report = project.run(&["validate", "--format", "json"]).json();
    assert_eq!(report["error"]["code"], "usage");
    let nothing = tempfile::tempdir().unwrap();
    assert_eq!(run(nothing.path(), &["validate"]).code, 2);
}

#[test]
fn picked_kinds_are_compared_alone_and_lock_files_may_lie_elsewhere() {
    let project = Project::locked();
    std::fs::remove_file(project.0.path().join("delta-migrate.toml")).unwrap();
    let picked = ["--kind-file", "kinds/facts.toml"];
    assert_eq!(project.run(&[&["validate"][..], &picked].concat()).code, 0, "orders did not vanish");
    project.write("kinds/facts.toml", &format!("{FACTS}{TENANT}"));
    assert_eq!(project.run(&[&["lock"][..], &picked].concat()).code, 0);
    assert!(project.read("migrations.lock").contains("\norders base "), "others' lines stay");
    assert_eq!(project.run(&[&["lock", "--lock-file", "other.lock"][..], &picked].concat()).code, 0);
    assert!(!project.read("other.lock").contains("orders"));
}

#[test]
fn apply_heeds_the_lock_and_the_others_warn() {
    let table = facts().table();
    let project = Project::locked();
    project.edit("kinds/facts.toml", "score = \"long\"", "score = \"integer\"");
    let before = table.files();
    let named = ["--kind", "facts", table.arg()];
    let run = |args: &[&str]| {
        let mut command = command(project.0.path());
        Ran::of(command.env("NOT_SET_ANYWHERE", "x").args(args).args(named).output().unwrap())
    };
    for args in [&["apply"][..], &["apply", "--dry-run"]] {
        let ran = run(args);
        assert_eq!(ran.code, 2, "{args:?}: {ran:?}");
        assert!(ran.stderr.contains("kinds/facts.toml:12: edited_migration"), "{ran:?}");
        assert!(ran.stderr.contains("delta-migrate validate"), "{ran:?}");
    }
    for args in ["status", "plan"] {
        let ran = run(&[args]);
        assert!(ran.code == 0 && ran.stderr.contains("edited_migration"), "{args}: {ran:?}");
        assert!(!ran.stdout.contains("edited_migration"), "{args}: {ran:?}");
    }
    assert!(table.files() == before);
    project.edit("kinds/facts.toml", "score = \"integer\"", "score = \"long\"");
    let ran = run(&["apply"]);
    assert!(ran.code == 0 && ran.stderr.is_empty(), "{ran:?}");
}

#[test]
fn the_demo_lake_is_locked() {
    let lake = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/lake");
    let ran = run(&lake, &["validate", "--locked"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{ran:?}");
    assert_eq!(run(&lake, &["lock", "--check"]).code, 0);
}
