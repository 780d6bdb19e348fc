//! The in-commit timestamp of a log entry (PROTOCOL.md, In-Commit Timestamps).

use object_store::path::Path;
use object_store::{Error as StoreError, GetOptions, GetRange, ObjectStore, ObjectStoreExt as _};
use serde_json::Value;

use crate::error::{Error, ErrorCode, Stage};
use crate::model::version::LogVersion;

/// The first action lies in the first bytes of an entry; more is read only if it does not.
const HEAD: u64 = 64 * 1024;

/// The in-commit timestamp of the entry at `version`, in milliseconds since the epoch.
///
/// # Errors
/// - [`ErrorCode::CorruptLog`]: the entry has none, although the table asks for it.
/// - [`ErrorCode::Storage`]: the entry, or its checksum file where it was cleaned up, can't be read.
pub(crate) async fn in_commit_timestamp(store: &dyn ObjectStore, version: LogVersion) -> Result<i64, Error> {
    let number = version.get();
    let entry = Path::from(format!("_delta_log/{number:020}.json"));
    let none = |what: &str| {
        Error::new(
            ErrorCode::CorruptLog,
            Stage::Read,
            format!("the table uses in-commit timestamps, but {what} of log version {number} has none"),
        )
        .with_hint("repair the log with the engine that writes the table; nothing was changed")
    };
    match first_line(store, &entry).await {
        Ok(line) => of_entry(&line).ok_or_else(|| none("the first action")),
        // Cleaned up below a checkpoint: the checksum file repeats the timestamp.
        Err(StoreError::NotFound { .. }) => {
            let checksum = Path::from(format!("_delta_log/{number:020}.crc"));
            match store.get(&checksum).await {
                Ok(found) => {
                    let bytes = found.bytes().await.map_err(failed)?;
                    of_checksum(&bytes).ok_or_else(|| none("the checksum file"))
                }
                Err(StoreError::NotFound { .. }) => Err(none("what is left")),
                Err(error) => Err(failed(error)),
            }
        }
        Err(error) => Err(failed(error)),
    }
}

fn failed(source: StoreError) -> Error {
    Error::new(ErrorCode::Storage, Stage::Read, "the newest log entry can't be read")
        .with_hint("nothing was changed; run it again, and check permissions and the store if it stays so")
        .with_source(source)
}

async fn first_line(store: &dyn ObjectStore, path: &Path) -> Result<Vec<u8>, StoreError> {
    let head = GetOptions { range: Some(GetRange::Bounded(0..HEAD)), ..GetOptions::default() };
    let found = match store.get_opts(path, head).await {
        Ok(found) => found,
        Err(error) => {
            // No store can give a part of an empty object, and each says so in its own way.
            let is_empty = store.head(path).await.is_ok_and(|meta| meta.size == 0);
            return if is_empty { Ok(Vec::new()) } else { Err(error) };
        }
    };
    let size = found.meta.size;
    let bytes = found.bytes().await?;
    let line = bytes.split(|b| *b == b'\n').next().unwrap_or_default();
    if line.len() < bytes.len() || size <= HEAD {
        return Ok(line.to_vec());
    }
    let bytes = store.get(path).await?.bytes().await?;
    Ok(bytes.split(|b| *b == b'\n').next().unwrap_or_default().to_vec())
}

fn of_entry(line: &[u8]) -> Option<i64> {
    let line: Value = serde_json::from_slice(line).ok()?;
    line.get("commitInfo")?.get("inCommitTimestamp")?.as_i64()
}

fn of_checksum(bytes: &[u8]) -> Option<i64> {
    let checksum: Value = serde_json::from_slice(bytes).ok()?;
    checksum.get("inCommitTimestampOpt")?.as_i64()
}
