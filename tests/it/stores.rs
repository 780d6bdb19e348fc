//! The command on real object stores, and what it says where there is none.
//!
//! `tests/real/servers.sh run cargo test …` starts the stores and says where they are.

#[cfg(feature = "s3")]
mod faults;
#[cfg(all(feature = "s3", feature = "azure"))]
mod lakes;
mod nowhere;
#[cfg(any(feature = "s3", feature = "azure"))]
mod servers;

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::support::{Ran, command, kind_file};

/// Whatever this machine's environment says of stores is left out.
const PREFIXES: [&str; 4] = ["AWS_", "AZURE_", "AZURITE_", "GOOGLE_"];

/// A place in a store: the URI, and the environment that leads there.
#[derive(Clone)]
struct Place {
    uri: String,
    env: Vec<(&'static str, String)>,
}

impl Place {
    fn new(uri: impl Into<String>, env: &[(&'static str, &str)]) -> Self {
        Self { uri: uri.into(), env: env.iter().map(|(k, v)| (*k, (*v).to_owned())).collect() }
    }

    fn command(&self, folder: &Path, args: &[&str]) -> Command {
        let mut command = command(folder);
        for (name, _) in std::env::vars_os() {
            if name.to_str().is_some_and(|n| PREFIXES.iter().any(|prefix| n.starts_with(prefix))) {
                command.env_remove(name);
            }
        }
        command.envs(self.env.iter().map(|(k, v)| (*k, v))).args(args);
        command
    }

    /// A command on the place with a kind, its chain cut after `version`; the report is JSON.
    fn on(&self, folder: &Path, version: usize, args: &[&str]) -> Ran {
        Ran::of(self.with_kind(folder, version, args).output().unwrap())
    }

    fn with_kind(&self, folder: &Path, version: usize, args: &[&str]) -> Command {
        let file = folder.join(format!("kind{version}.toml"));
        std::fs::write(&file, kind_file(version)).unwrap();
        let kind = ["--namespace", "app", "--format", "json", "--kind-file", file.to_str().unwrap()];
        self.command(folder, &[args, &[&self.uri], &kind].concat())
    }

    fn doctor(&self, args: &[&str]) -> Ran {
        let folder = tempfile::tempdir().unwrap();
        let all = [&["doctor", &self.uri, "--format", "json"][..], args].concat();
        Ran::of(self.command(folder.path(), &all).output().unwrap())
    }

    /// Several processes of one command that start at the same time.
    #[cfg(any(feature = "s3", feature = "azure"))]
    fn at_once(&self, folder: &Path, version: usize, processes: usize) -> Vec<Ran> {
        // The kind file is written before the first of them starts.
        let prepared: Vec<Command> =
            (0..processes).map(|_| self.with_kind(folder, version, &["apply"])).collect();
        let start = |mut c: Command| {
            c.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap()
        };
        let children: Vec<_> = prepared.into_iter().map(start).collect();
        children.into_iter().map(|c| Ran::of(c.wait_with_output().unwrap())).collect()
    }
}

/// The outcome of one check of the doctor's.
fn outcome(report: &Value, check: &str) -> String {
    let checks = report["checks"].as_array().unwrap_or_else(|| panic!("{report}"));
    let found = checks.iter().find(|c| c["check"] == check).unwrap_or_else(|| panic!("{report}"));
    found["outcome"].as_str().unwrap().to_owned()
}
