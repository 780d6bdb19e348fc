//! What the command says and how it ends.

mod hardened;
mod mistakes;

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{Ran, Table, command, facts, kind_file, run};

/// A copy of the demo lake.
struct Lake {
    folder: TempDir,
}

impl Lake {
    fn copy() -> Self {
        let folder = tempfile::tempdir().unwrap();
        copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/lake"), folder.path());
        Self { folder }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().to_owned()
    }

    fn run(&self, args: &[&str]) -> Ran {
        run(self.folder.path(), args)
    }

    /// How a command ended and everything it said, without what differs from run to run.
    fn shown(&self, args: &[&str]) -> String {
        shown(self.folder.path(), args, &self.run(args))
    }
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

fn shown(folder: &Path, args: &[&str], ran: &Ran) -> String {
    let mut text = format!("$ delta-migrate {}\n{}", args.join(" "), ran.stdout);
    for line in ran.stderr.lines() {
        text.push_str(&format!("stderr: {line}\n"));
    }
    text.push_str(&format!("exit code {}\n", ran.code));
    text.replace(folder.to_str().unwrap(), "[HERE]")
}

/// Compares with the stored text; times, ids and durations may be any.
macro_rules! assert_shown {
    ($name:expr, $text:expr) => {
        let mut settings = insta::Settings::clone_current();
        settings.add_filter(r#""elapsed_ms": \d+"#, r#""elapsed_ms": 0"#);
        settings.add_filter(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "[ID]");
        settings.add_filter(r#""fingerprint": "[0-9a-f]{64}""#, r#""fingerprint": "[FINGERPRINT]""#);
        settings.add_filter(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ", "[TIME]");
        settings.add_filter(r#""timestamp": \d{13}"#, r#""timestamp": 0"#);
        settings.add_filter(env!("CARGO_PKG_VERSION"), "[VERSION]");
        settings.set_omit_expression(true);
        settings.set_prepend_module_to_snapshot(false);
        settings.bind(|| insta::assert_snapshot!($name, $text));
    };
}

#[test]
fn the_lake_from_status_to_a_second_apply() {
    let lake = Lake::copy();
    assert_shown!("status", lake.shown(&["status"]));
    assert_shown!("plan", lake.shown(&["plan"]));
    assert_shown!("apply", lake.shown(&["apply"]));
    assert_shown!("apply_again", lake.shown(&["apply"]));
    assert_shown!("history", lake.shown(&["history", "orders_us"]));
    assert_shown!("history_of_another_release", lake.shown(&["history", "tables/orders_locked"]));
}

#[test]
fn the_lake_as_json() {
    let lake = Lake::copy();
    assert_shown!("status_json", lake.shown(&["status", "--format", "json"]));
    assert_shown!("plan_json", lake.shown(&["plan", "--format", "json", "tables/orders_us", "orders_new"]));
    assert_shown!("apply_json", lake.shown(&["apply", "--format", "json"]));
    assert_shown!("history_json", lake.shown(&["history", "orders_us", "--format", "json"]));
}

#[test]
fn a_single_table_without_a_configuration() {
    let table = facts().table();
    std::fs::write(table.beside("facts.toml"), kind_file(4)).unwrap();
    let folder = table.beside("");
    let show = |args: &[&str]| {
        let options = ["--namespace", "app", "--kind-file", "facts.toml"];
        let folder = Path::new(folder.to_str().unwrap().trim_end_matches('/'));
        shown(folder, args, &run(folder, &[args, &options[..]].concat()))
    };
    assert_shown!("baseline_that_does_not_fit", show(&["baseline", "facts", "--at", "2"]));
    assert_shown!("baseline", show(&["baseline", "facts", "--at", "0"]));
    assert_shown!("baseline_again", show(&["baseline", "facts", "--at", "0"]));
    assert_shown!("plan_to_a_file", show(&["plan", "-o", "plan.json", "facts"]));
    assert_shown!("apply_a_dry_run", show(&["apply", "--dry-run", "--target", "1", "facts"]));
    assert_shown!("apply_a_saved_plan", show(&["apply", "--plan", "plan.json"]));
    table.change_metadata(|m| {
        m["configuration"].as_object_mut().unwrap().remove("app.schema_version");
    });
    assert_shown!("stamp_lost", show(&["status", "facts"]));
    assert_shown!("repair", show(&["repair", "facts", "--restamp", "4", "--why", "a REPLACE by hand"]));
    assert_shown!("repair_again", show(&["repair", "facts", "--readd-columns", "--why", "to be sure"]));
}

#[test]
fn help_completions_and_a_first_kind_file() {
    let folder = tempfile::tempdir().unwrap();
    let show = |args: &[&str]| shown(folder.path(), args, &run(folder.path(), args));
    assert_shown!("help", show(&["--help"]));
    assert_shown!("help_apply", show(&["apply", "--help"]));
    assert_shown!("help_repair", show(&["repair", "--help"]));
    assert_shown!("new", show(&["new", "facts"]));
    assert_shown!("new_again", show(&["new", "facts"]));
    assert_shown!("nothing_here", show(&["status"]));
    assert_shown!("new_kind_file", std::fs::read_to_string(folder.path().join("kinds/facts.toml")).unwrap());
    let bash = run(folder.path(), &["completions", "bash"]);
    assert_eq!((bash.code, bash.stderr.as_str()), (0, ""));
    assert_eq!(bash.stdout.lines().next(), Some("_delta__migrate() {"));
    for shell in ["zsh", "fish", "powershell", "elvish"] {
        let ran = run(folder.path(), &["completions", shell]);
        assert!(ran.code == 0 && ran.stdout.contains("delta-migrate"), "{shell}");
    }
}

#[test]
fn a_new_kind_file_can_be_used_at_once() {
    let table = Table::missing();
    let folder = table.beside("");
    assert_eq!(run(&folder, &["new", "facts"]).code, 0);
    let args =
        ["apply", "facts", "--namespace", "app", "--kind-file", "kinds/facts.toml", "--format", "json"];
    assert_eq!(run(&folder, &args).table()["outcome"], "created");
}

#[test]
fn the_exit_code_says_how_it_ended() {
    let lake = Lake::copy();
    let before = crate::support::table::files_below(&lake.path());
    for (code, args) in [
        (1, &["status"][..]),
        (1, &["status", "--check"]),
        (0, &["status", "orders_us"]),
        (0, &["info", "orders_us"]),
        (3, &["status", "--check", "orders_us"]),
        (3, &["status", "--check", "orders_new"]),
        (3, &["status", "--check", "orders_eu", "orders_current"]),
        (0, &["status", "--check", "orders_current", "orders_next"]),
        (1, &["status", "--check", "orders_us", "orders_locked"]),
        (0, &["plan", "orders_us"]),
        (1, &["plan", "orders_broken"]),
        (0, &["apply", "--dry-run", "orders_us"]),
        (2, &["apply", "--target", "5", "orders_us"]),
        (2, &["plan", "--target", "5", "orders_us"]),
        (2, &["apply", "--target", "-1", "orders_us"]),
        (2, &["frobnicate"]),
        (2, &[]),
        (0, &["--version"]),
    ] {
        let ran = lake.run(args);
        assert_eq!(ran.code, code, "{args:?}: {ran:?}");
    }
    assert!(crate::support::table::files_below(&lake.path()) == before, "none of these writes");
    assert_eq!(lake.run(&["apply"]).code, 1, "three tables are refused");
    assert_eq!(lake.run(&["apply", "orders_us", "orders_new", "orders_next"]).code, 0);
    assert_eq!(lake.run(&["status", "--check", "orders_us", "orders_new"]).code, 0);
}

#[test]
fn with_json_stdout_is_one_document_whatever_happens() {
    let lake = Lake::copy();
    for args in [
        &["status"][..],
        &["status", "no/such/kind"],
        &["plan"],
        &["apply", "--dry-run"],
        &["apply", "-vv"],
        &["history", "orders_us"],
        &["history", "nowhere"],
        &["baseline", "orders_us", "--at", "4"],
        &["repair", "orders_broken", "--readd-columns", "--why", "x"],
        &["new", "facts"],
        &["new", "facts"],
        &["status", "-c", "no-such-file.toml"],
    ] {
        let ran = lake.run(&[args, &["--format", "json"]].concat());
        assert!(ran.json().is_object(), "{args:?}");
        if ran.code == 2 {
            assert!(ran.json()["error"]["code"].is_string(), "{args:?}: {ran:?}");
        }
    }
}

#[test]
fn the_summary_counts_every_table_once() {
    let lake = Lake::copy();
    let report = lake.run(&["apply", "--format", "json"]).json();
    let counts = report["summary"].as_object().unwrap();
    let sum: u64 = counts.values().map(|v| v.as_u64().unwrap()).sum();
    assert_eq!(sum, report["tables"].as_array().unwrap().len() as u64);
    assert_eq!(
        (&counts["migrated"], &counts["created"], &counts["current"], &counts["ahead"], &counts["refused"]),
        (&json!(4), &json!(1), &json!(1), &json!(1), &json!(3))
    );
    let uris: Vec<&str> =
        report["tables"].as_array().unwrap().iter().map(|t| t["uri"].as_str().unwrap()).collect();
    assert!(uris[0].ends_with("orders_eu") && uris[9].ends_with("customers_archive"), "in their order");
}

#[test]
fn a_table_that_is_named_twice_is_worked_on_once() {
    let lake = Lake::copy();
    let ran =
        lake.run(&["apply", "orders_us", "tables/orders_us", "./tables/orders_us/", "--format", "json"]);
    assert_eq!(ran.table()["outcome"], Value::from("migrated"));
}

#[test]
fn colour_is_for_terminals_alone() {
    let lake = Lake::copy();
    let ran = Ran::of(command(&lake.path()).env_remove("NO_COLOR").arg("plan").output().unwrap());
    assert!(!ran.stdout.contains('\u{1b}') && !ran.stderr.contains('\u{1b}'));
    let forced = command(&lake.path()).env("CLICOLOR_FORCE", "1").env_remove("NO_COLOR").arg("plan").output();
    assert!(Ran::of(forced.unwrap()).stdout.contains('\u{1b}'), "there is colour to take out");
}
