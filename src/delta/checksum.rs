//! The version checksum file of our own commit, derived from the one before it (PROTOCOL.md,
//! Version Checksum File).

use object_store::path::Path;
use object_store::{Error as StoreError, ObjectStore, ObjectStoreExt as _, PutMode};

use crate::model::checksum::derive;
use crate::model::state::TableState;

/// Writes `<version + 1>.crc` after the commit `entry` landed on top of `state`.
///
/// Only a checksum file that agrees with what was read is built upon, and an existing file is never
/// replaced. Readers must do without the file, so that no failure here is one of the commit.
pub(crate) async fn write(store: &dyn ObjectStore, state: &TableState, entry: &[u8]) {
    let path = |version: u64| Path::from(format!("_delta_log/{version:020}.crc"));
    let version = state.log_version;
    let result = async {
        let before = store.get(&path(version.get())).await?.bytes().await?;
        let Some(after) = derive(&before, state, entry) else {
            tracing::debug!(%version, "the checksum file does not agree with the log; none is derived from it");
            return Ok(());
        };
        let create = PutMode::Create.into();
        store.put_opts(&path(version.next().get()), after.into(), create).await.map(|_| ())
    };
    match result.await {
        Ok(()) | Err(StoreError::NotFound { .. } | StoreError::AlreadyExists { .. }) => {}
        Err(error) => {
            tracing::warn!(%version, %error, "the commit landed, but its checksum file could not be written")
        }
    }
}
