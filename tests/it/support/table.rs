//! A table in a temporary folder: its bytes, its actions, its rows.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use delta_migrate::Location;
use deltalake::{DeltaTable, DeltaTableBuilder};
use serde_json::{Value, json};
use tempfile::TempDir;
use url::Url;

use super::store::TrickStore;

pub(crate) struct Table {
    folder: TempDir,
    path: PathBuf,
}

impl Table {
    /// A place in a temporary folder where no table is yet.
    pub(crate) fn missing() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("facts");
        Self { folder, path }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The table's folder as an argument of the command.
    pub(crate) fn arg(&self) -> &str {
        self.path.to_str().unwrap()
    }

    /// A file beside the table's folder.
    pub(crate) fn beside(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn log_file(&self, version: u64) -> PathBuf {
        self.path.join(format!("_delta_log/{version:020}.json"))
    }

    /// Every file below the folder with its bytes.
    pub(crate) fn files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        files_below(&self.path)
    }

    /// The versions of the commits that the log holds.
    pub(crate) fn versions(&self) -> Vec<u64> {
        let Ok(entries) = std::fs::read_dir(self.path.join("_delta_log")) else { return Vec::new() };
        let mut versions: Vec<u64> = entries
            .filter_map(|e| e.unwrap().file_name().to_str()?.strip_suffix(".json")?.parse().ok())
            .collect();
        versions.sort_unstable();
        versions
    }

    pub(crate) fn newest(&self) -> u64 {
        *self.versions().last().unwrap()
    }

    /// The actions of one commit, as JSON.
    pub(crate) fn commit(&self, version: u64) -> Vec<Value> {
        let text = std::fs::read_to_string(self.log_file(version)).unwrap();
        text.lines().map(|l| serde_json::from_str(l).unwrap()).collect()
    }

    /// The one action of a kind in a commit.
    pub(crate) fn action(&self, version: u64, name: &str) -> Value {
        let mut found: Vec<Value> =
            self.commit(version).into_iter().filter_map(|mut a| a.get_mut(name).map(Value::take)).collect();
        assert_eq!(found.len(), 1, "{name} in {version}");
        found.remove(0)
    }

    /// The newest metaData action of the commits.
    pub(crate) fn metadata(&self) -> Value {
        self.versions()
            .into_iter()
            .rev()
            .flat_map(|v| self.commit(v))
            .find_map(|mut a| a.get_mut("metaData").map(Value::take))
            .unwrap()
    }

    pub(crate) fn schema(&self) -> Value {
        serde_json::from_str(self.metadata()["schemaString"].as_str().unwrap()).unwrap()
    }

    pub(crate) fn field(&self, name: &str) -> Value {
        let schema = self.schema();
        let fields = schema["fields"].as_array().unwrap();
        fields.iter().find(|f| f["name"] == name).unwrap_or_else(|| panic!("no {name} in {schema}")).clone()
    }

    pub(crate) fn column_names(&self) -> Vec<String> {
        let schema = self.schema();
        schema["fields"].as_array().unwrap().iter().map(|f| f["name"].as_str().unwrap().to_owned()).collect()
    }

    pub(crate) fn property(&self, key: &str) -> Option<String> {
        self.metadata()["configuration"].get(key).map(|v| v.as_str().unwrap().to_owned())
    }

    /// The table's own record.
    pub(crate) fn history(&self) -> Vec<Value> {
        serde_json::from_str(&self.property("app.schema_history").unwrap()).unwrap()
    }

    /// Appends a commit of these actions, as any other writer would.
    pub(crate) fn commit_raw(&self, actions: &[Value]) -> u64 {
        let version = self.newest() + 1;
        let lines: Vec<String> = actions.iter().map(Value::to_string).collect();
        std::fs::write(self.log_file(version), lines.join("\n") + "\n").unwrap();
        version
    }

    /// A commit that changes nothing that matters here.
    pub(crate) fn commit_nothing(&self) -> u64 {
        self.commit_raw(&[json!({ "commitInfo": { "operation": "WRITE", "engineInfo": "somebody" } })])
    }

    /// A commit of another writer that changes the newest metaData.
    pub(crate) fn change_metadata(&self, change: impl FnOnce(&mut Value)) -> u64 {
        let mut metadata = self.metadata();
        change(&mut metadata);
        let info = json!({ "commitInfo": { "operation": "SET TBLPROPERTIES", "engineInfo": "somebody" } });
        self.commit_raw(&[info, json!({ "metaData": metadata })])
    }

    pub(crate) fn set_property(&self, key: &str, value: &str) -> u64 {
        self.change_metadata(|m| m["configuration"][key] = value.into())
    }

    /// Replaces the whole schema, as an overwrite with an old one does.
    pub(crate) fn set_fields(&self, fields: Vec<Value>) -> u64 {
        let schema = super::struct_type(fields).to_string();
        self.change_metadata(|m| m["schemaString"] = schema.into())
    }

    pub(crate) fn url(&self) -> Url {
        Url::from_directory_path(&self.path).unwrap()
    }

    pub(crate) fn location(&self) -> Location {
        Location::new(self.arg(), HashMap::new()).unwrap()
    }

    /// The same folder through a store that can be asked and told things.
    pub(crate) fn location_in(&self, store: &Arc<TrickStore>) -> Location {
        Location::from_log_store(self.build_in(store).log_store())
    }

    fn build_in(&self, store: &Arc<TrickStore>) -> DeltaTable {
        let builder = DeltaTableBuilder::from_url(self.url()).unwrap();
        builder.with_storage_backend(store.clone(), self.url()).build().unwrap()
    }

    pub(crate) async fn load_in(&self, store: &Arc<TrickStore>) -> DeltaTable {
        let mut table = self.build_in(store);
        table.load().await.unwrap();
        table
    }

    pub(crate) async fn load(&self) -> DeltaTable {
        deltalake::open_table(self.url()).await.unwrap()
    }

    /// Takes the table away; what stands there afterwards is somebody else's.
    pub(crate) fn recreate_as(&self, log: &super::Log) {
        std::fs::remove_dir_all(&self.path).unwrap();
        log.clone().metadata("id", "99999999-0000-4000-8000-000000000099").write(&self.path);
    }
}

/// A copy of a table that another program wrote, from the collection beside the checkout; none, told on
/// stderr, where that is not there.
pub(crate) fn copied(name: &str) -> Option<Table> {
    let default = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/tables");
    let folder = std::env::var_os("DELTA_MIGRATE_TABLES").map_or_else(default, PathBuf::from).join(name);
    if !folder.is_dir() {
        #[allow(clippy::print_stderr)]
        {
            eprintln!("skipped: there is no table {}", folder.display());
        }
        return None;
    }
    let table = Table::missing();
    for file in files_below(&folder).into_keys().filter(|path| path.is_file()) {
        let to = table.path().join(file.strip_prefix(&folder).unwrap());
        std::fs::create_dir_all(to.parent().unwrap()).unwrap();
        std::fs::copy(&file, &to).unwrap();
    }
    Some(table)
}

/// Every file below a folder (or the file itself) with its bytes.
pub(crate) fn files_below(path: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    if path.is_file() {
        files.insert(path.to_owned(), std::fs::read(path).unwrap());
    } else if path.is_dir() {
        // The folder itself counts too: a refused table leaves no empty folder behind.
        files.insert(path.to_owned(), Vec::new());
        for entry in std::fs::read_dir(path).unwrap() {
            files.extend(files_below(&entry.unwrap().path()));
        }
    }
    files
}
