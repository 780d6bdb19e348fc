//! The real command, as a process of its own.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::Table;
use super::table::files_below;

/// How a process ended and what it said.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    pub(crate) fn of(output: std::process::Output) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Self { code: output.status.code().unwrap(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }

    /// stdout, which must be one JSON document and nothing else.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|e| panic!("{e}: {self:?}"))
    }

    /// The report of the only table.
    pub(crate) fn table(&self) -> Value {
        let json = self.json();
        let tables = json["tables"].as_array().unwrap_or_else(|| panic!("{json}"));
        assert_eq!(tables.len(), 1, "{json}");
        tables[0].clone()
    }
}

/// The command in a folder, without whatever this machine's environment says.
pub(crate) fn command(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_delta-migrate"));
    command.current_dir(folder);
    for variable in ["DELTA_MIGRATE_CONFIG", "DELTA_MIGRATE_LOG", "AWS_S3_LOCKING_PROVIDER"] {
        command.env_remove(variable);
    }
    command.env("NO_COLOR", "1").env("COLUMNS", "100");
    command
}

pub(crate) fn run(folder: &Path, args: &[&str]) -> Ran {
    Ran::of(command(folder).args(args).output().unwrap())
}

/// A command on one table with one kind file; the report is JSON.
pub(crate) fn on(table: &Table, kind: &str, args: &[&str]) -> Ran {
    let file = table.beside("kind.toml");
    std::fs::write(&file, kind).unwrap();
    let folder = table.beside("");
    let mut all = vec!["--namespace", "app", "--kind-file", file.to_str().unwrap(), "--format", "json"];
    all.extend(args);
    run(&folder, &all)
}

pub(crate) fn apply(table: &Table, kind: &str) -> Ran {
    on(table, kind, &["apply", table.arg()])
}

/// `status`, `plan`, `apply` and a dry run all refuse the table with this code, a hint and exit
/// code 1, and leave every byte as it was. The error of `apply` is handed back.
pub(crate) fn refused_everywhere(table: &Table, kind: &str, code: &str) -> Value {
    let before = files_below(table.path());
    let mut error = Value::Null;
    for args in [&["status"][..], &["plan"], &["apply", "--dry-run"], &["apply"]] {
        let ran = on(table, kind, &[args, &[table.arg()]].concat());
        let report = ran.table();
        error = report["error"].clone();
        assert_eq!(error["code"], code, "{args:?}: {report}");
        assert_eq!(report["outcome"], "refused", "{args:?}: {report}");
        assert_eq!(ran.code, 1, "{args:?}");
        assert!(error["hint"].as_str().is_some_and(|h| h.len() > 10), "{args:?}: {error}");
        assert!(error["message"].as_str().is_some_and(|m| m.len() > 10), "{args:?}: {error}");
        assert!(error.get("committed").is_none(), "{error}");
        assert_eq!(report["commits"], 0, "{report}");
        assert!(files_below(table.path()) == before, "{args:?} changed the table's folder");
    }
    error
}
