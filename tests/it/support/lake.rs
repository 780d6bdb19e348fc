//! A lake of many tables in nested folders, with a configuration that walks it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use delta_migrate::{IfMissing, Location, SchemaVersion, Target};
use serde_json::Value;
use tempfile::TempDir;

use super::command::{Ran, command};
use super::table::files_below;
use super::{FACTS, facts, kind_file, migrator};

pub(crate) struct Lake {
    folder: TempDir,
}

/// The newest version of [`FACTS`].
const NEWEST: u32 = 10;

impl Lake {
    /// An empty lake whose configuration walks `lake/` for tables with a kind stamp.
    pub(crate) fn new() -> Self {
        let lake = Self { folder: tempfile::tempdir().unwrap() };
        std::fs::create_dir_all(lake.path("kinds")).unwrap();
        std::fs::create_dir_all(lake.path("lake")).unwrap();
        std::fs::write(lake.path("kinds/facts.toml"), FACTS).unwrap();
        lake.configure("[[discover]]\nroot = \"lake\"\n");
        lake
    }

    pub(crate) fn configure(&self, sources: &str) {
        let text = format!("namespace = \"app\"\n{sources}");
        std::fs::write(self.path("delta-migrate.toml"), text).unwrap();
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        Ran::of(command(self.folder.path()).args(args).output().unwrap())
    }

    /// The same, with the report as JSON.
    pub(crate) fn json(&self, args: &[&str]) -> (i32, Value) {
        let ran = self.run(&[args, &["--format", "json"]].concat());
        (ran.code, ran.json())
    }

    /// A table of the kind at a version, stamped by an honest migration.
    pub(crate) async fn table(&self, name: &str, version: u32) {
        let folder = self.path(name);
        facts().write(&folder);
        let location = Location::new(folder.to_str().unwrap(), Default::default()).unwrap();
        let migrator = migrator(&kind_file(version as usize));
        let target = Target::Version(SchemaVersion::new(version));
        migrator.migrate("facts", &location, target, IfMissing::Refuse).await.unwrap();
    }

    /// A copy of a table that is there already.
    pub(crate) fn copy(&self, from: &str, to: &str) {
        for (file, bytes) in files_below(&self.path(from)) {
            let to = self.path(to).join(file.strip_prefix(self.path(from)).unwrap());
            match file.is_dir() {
                true => std::fs::create_dir_all(to).unwrap(),
                false => std::fs::write(to, bytes).unwrap(),
            }
        }
    }

    /// A table that only newer releases may write.
    pub(crate) fn too_new(&self, name: &str) {
        facts().stamped(99).property("app.min_version", "98").write(&self.path(name));
    }

    /// A table whose newest commit is garbage.
    pub(crate) fn corrupt(&self, name: &str) {
        facts().stamped(NEWEST).write(&self.path(name));
        let entry = self.path(name).join(format!("_delta_log/{:020}.json", 1));
        std::fs::write(entry, "{\"metaData\":{\"id\"\n").unwrap();
    }

    /// A table whose log can't be read to its end: a pipe that nobody writes to stands for its hint.
    pub(crate) fn hung(&self, name: &str) {
        facts().write(&self.path(name));
        let pipe = self.path(name).join("_delta_log/_last_checkpoint");
        assert!(std::process::Command::new("mkfifo").arg(pipe).status().unwrap().success());
    }

    /// A folder of files that is no table.
    pub(crate) fn no_table(&self, name: &str) {
        std::fs::create_dir_all(self.path(name)).unwrap();
        std::fs::write(self.path(name).join("part-0.parquet"), "PAR1").unwrap();
    }

    /// How many log entries each table has.
    pub(crate) fn entries(&self) -> BTreeMap<PathBuf, usize> {
        let mut entries = BTreeMap::new();
        for file in files_below(&self.path("lake")).into_keys() {
            let log = file.parent().filter(|p| p.ends_with("_delta_log"));
            if let Some(log) = log.filter(|_| file.extension().is_some_and(|e| e == "json")) {
                *entries.entry(log.parent().unwrap().to_owned()).or_default() += 1;
            }
        }
        entries
    }

    pub(crate) fn files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        files_below(&self.path("lake"))
    }
}

/// 300 tables in nested folders: `behind` of them at versions 2 and 5, one too new, one corrupt, the
/// others current; and one folder that is no table.
pub(crate) async fn lake_of_300() -> (Lake, usize) {
    let lake = Lake::new();
    let versions = [2, 5, NEWEST];
    for version in versions {
        lake.table(&format!("lake/seed/v{version}"), version).await;
    }
    let mut behind = 2;
    for n in 3..298 {
        let version = versions[n % 3];
        behind += usize::from(version < NEWEST);
        let (team, area) = (n % 7, n % 11);
        lake.copy(&format!("lake/seed/v{version}"), &format!("lake/team {team}/area={area}/t{n}"));
    }
    lake.too_new("lake/team 1/too_new");
    lake.corrupt("lake/deep/er/and/deeper/corrupt");
    lake.no_table("lake/team 1/files");
    (lake, behind)
}

/// The reports of a run by the last two parts of their locations.
pub(crate) fn by_name(report: &Value) -> BTreeMap<String, Value> {
    let tables = report["tables"].as_array().unwrap();
    let name = |uri: &str| Path::new(uri).file_name().unwrap().to_str().unwrap().to_owned();
    tables.iter().map(|t| (name(t["uri"].as_str().unwrap()), t.clone())).collect()
}
