//! Commands, options and exit codes, as the command itself tells them.

use std::collections::{BTreeMap, BTreeSet};

use super::page::{keys, rows};
use super::sources::{code, quoted_after, text};
use super::words::same;
use crate::support::{facts, kind_file, run};

pub(super) const SECTIONS: [&str; 3] = ["Commands", "Options", "Exit codes"];

fn help(command: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let ran = run(
        folder.path(),
        &command.split(' ').filter(|w| !w.is_empty()).chain(["--help"]).collect::<Vec<_>>(),
    );
    assert_eq!(ran.code, 0, "{command}: {ran:?}");
    ran.stdout
}

/// The commands that a help text lists.
fn commands_of(help: &str) -> Vec<String> {
    let list = help.split("Commands:\n").nth(1).unwrap().split("\n\n").next().unwrap();
    let names =
        list.lines().filter_map(|line| line.strip_prefix("  ")?.split_once("  ").map(|(name, _)| name));
    names.filter(|name| !name.is_empty() && *name != "help").map(str::to_owned).collect()
}

/// The options that a help text lists: `-o, --out`.
fn options_of(help: &str) -> BTreeSet<String> {
    let blocks =
        help.split("\n\n").filter(|block| block.lines().next().is_some_and(|l| l.ends_with("ptions:")));
    let lines = blocks.flat_map(str::lines).map(str::trim).filter(|line| line.starts_with('-'));
    let names = lines.map(|line| line.split([' ', '.']).take_while(|word| word.starts_with('-')));
    let names = names.map(|words| words.collect::<Vec<_>>().join(" "));
    names.filter(|name| !name.ends_with("--help") && !name.ends_with("--version")).collect()
}

#[test]
fn commands() {
    let mut found = BTreeSet::new();
    for command in commands_of(&help("")) {
        match command.as_str() {
            "compat" | "kind" => {
                found.extend(
                    commands_of(&help(&command)).into_iter().map(|inner| format!("{command} {inner}")),
                );
            }
            _ => drop(found.insert(command)),
        }
    }
    assert_eq!(found.len(), 17, "{found:?}");
    found.extend(quoted_after(&text("src/cli/args.rs"), "alias = \""));
    same("Commands", &found);
}

#[test]
fn options() {
    let mut listed: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for command in keys("Commands") {
        for row in rows("Options") {
            let row_is_for =
                |name: &str| row.cells[0] == "every command" || row.cells[0].contains(&format!("`{name}`"));
            let name = match command {
                "info" => "status",
                "stamp" => "baseline",
                name => name,
            };
            if row_is_for(name) {
                listed.entry(command).or_default().insert(row.key.clone());
            }
        }
    }
    let of_some: BTreeSet<&String> = listed.values().flatten().collect();
    assert_eq!(of_some.len(), keys("Options").len(), "an option of no command");
    for (command, listed) in listed {
        assert_eq!(
            options_of(&help(command)),
            listed,
            "left: what `{command} --help` has; right: what the page lists"
        );
    }
}

#[test]
fn exit_codes() {
    let body = text("src/cli/mod.rs");
    let body = body.split("enum Exit {").nth(1).unwrap().split('}').next().unwrap();
    let mut codes: BTreeSet<String> = body
        .lines()
        .filter_map(|l| Some(l.trim().split_once(" = ")?.1.trim_end_matches(',').to_owned()))
        .collect();
    for source in code("src") {
        for after in source.split("process::exit(").skip(1) {
            codes.insert(after.split(')').next().unwrap().to_owned());
        }
    }
    same("Exit codes", &codes);
    // 130 is seen in `batch::interrupted`.
    let table = facts().table();
    std::fs::write(table.beside("kind.toml"), kind_file(1)).unwrap();
    let code = |args: &[&str]| {
        let options = ["--namespace", "app", "--kind-file", "kind.toml", "facts"];
        run(&table.beside(""), &[args, &options].concat()).code
    };
    assert_eq!((code(&["status"]), code(&["status", "--check"]), code(&["status", "--zzzz"])), (0, 3, 2));
    table.set_property("app.schema_version", "abc");
    assert_eq!((code(&["status"]), code(&["apply"])), (1, 1));
}
