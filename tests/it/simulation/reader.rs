//! The table as deltalake finds it in the end.

use std::sync::Arc;

use deltalake::DeltaTableBuilder;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt as _};
use url::Url;

use super::log::State;
use super::world::{TABLE, World, hint_path};

/// What deltalake sees otherwise than what was committed; nothing where it can't be asked.
pub(super) fn differences(world: &World, runtime: &tokio::runtime::Runtime) -> Vec<String> {
    let Some(state) = world.state.clone().filter(|s| !s.has_feature("somethingNew")) else {
        return Vec::new();
    };
    let objects: Vec<(String, bytes::Bytes)> = world
        .objects
        .iter()
        .filter(|(path, _)| **path != hint_path())
        .map(|(p, o)| (p.clone(), o.bytes.clone()))
        .collect();
    runtime.block_on(async {
        let store = InMemory::new();
        for (path, bytes) in objects {
            store.put(&Path::from(path), bytes.into()).await.unwrap();
        }
        compare(&state, Arc::new(store)).await
    })
}

async fn compare(state: &State, store: Arc<dyn ObjectStore>) -> Vec<String> {
    let url = Url::parse(&format!("memory:///{TABLE}")).unwrap();
    let builder = DeltaTableBuilder::from_url(url.clone()).unwrap();
    let table = match builder.with_storage_backend(store, url).load().await {
        Ok(table) => table,
        Err(error) => return vec![format!("deltalake can't open the table in the end: {error}")],
    };
    let snapshot = table.snapshot().unwrap();
    let files: Vec<String> = snapshot.log_data().iter().map(|f| f.path().to_string()).collect();
    let metadata = snapshot.metadata();
    let property = |key: &str| metadata.configuration().get(key).map(String::as_str);
    let parts = [
        ("version", Some(state.version) == table.version()),
        ("id", metadata.id() == state.id()),
        ("schema", state.metadata["schemaString"] == metadata.schema_string().as_str()),
        ("version stamp", property("app.schema_version") == state.property("app.schema_version")),
        (
            "number of files",
            files.len() == state.files.len() && files.iter().all(|f| state.files.contains(f)),
        ),
    ];
    let wrong = parts.iter().filter(|(_, right)| !right);
    wrong.map(|(what, _)| format!("in the end, deltalake sees another {what}")).collect()
}
