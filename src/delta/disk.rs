//! What a local disk needs beside its store: commits that outlive a loss of power, which neither
//! delta-rs nor the store asks the disk for, and files that the store's listings leave out.

use std::fs::OpenOptions;
use std::io::{Error as IoError, ErrorKind, Result as IoResult};
use std::path::Path;
use std::time::Duration;

use super::location::Location;
use crate::error::{Error, ErrorCode, Stage};
use crate::model::version::LogVersion;

/// How long a disk may take to sync.
const MOST_WAIT: Duration = Duration::from_secs(10);

/// Waits until the disk holds the entry of `version` and its name. Other stores need nothing: they
/// answer a put when it is safe.
///
/// # Errors
/// The disk's own. The commit stands all the same: whoever reads the log now sees it.
pub(crate) async fn sync(location: &Location, version: LogVersion) -> IoResult<()> {
    let Some(table) = location.local_folder() else { return Ok(()) };
    let work = tokio::task::spawn_blocking(move || sync_entry(&table, version));
    match tokio::time::timeout(MOST_WAIT, work).await {
        Ok(Ok(done)) => done,
        Ok(Err(cut_off)) => Err(IoError::other(cut_off)),
        Err(_) => Err(IoError::new(ErrorKind::TimedOut, "the disk did not answer in time")),
    }
}

fn sync_entry(table: &Path, version: LogVersion) -> IoResult<()> {
    let log = table.join("_delta_log");
    match sync_file(&log.join(format!("{:020}.json", version.get()))) {
        // A store of the caller's own may only be called like a folder.
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        done => done?,
    }
    sync_folder(&log)?;
    if version.get() == 0 {
        // The folders of a new table are new as well, and are named by those above them.
        let real = std::fs::canonicalize(table)?;
        for folder in real.ancestors() {
            match sync_folder(folder) {
                // What may only be passed through was there before.
                Err(error) if error.kind() == ErrorKind::PermissionDenied => break,
                done => done?,
            }
        }
    }
    Ok(())
}

fn sync_file(path: &Path) -> IoResult<()> {
    // Windows syncs only what may be written to.
    OpenOptions::new().read(true).write(cfg!(windows)).open(path)?.sync_all()
}

fn sync_folder(path: &Path) -> IoResult<()> {
    if !cfg!(unix) {
        return Ok(());
    }
    match sync_file(path) {
        // Some file systems have nothing to sync in a folder, and say so in these ways.
        Err(error) if matches!(error.kind(), ErrorKind::InvalidInput | ErrorKind::Unsupported) => Ok(()),
        done => done,
    }
}

/// Whether the log has a file above `newest`, or any at all where none was found: it came since the
/// listing, or the listing passed over it. The store's listings do that with files whose status can't
/// be had, so that the newest version, with its floor, would be overlooked.
///
/// # Errors
/// [`ErrorCode::Storage`]: there is such a file, and its status can't be had now either.
pub(crate) async fn has_newer(location: &Location, newest: Option<LogVersion>) -> Result<bool, Error> {
    let Some(table) = location.local_folder() else { return Ok(false) };
    let look = move || newer(&table.join("_delta_log"), newest);
    match tokio::task::spawn_blocking(look).await {
        Ok(Newer::Unknown(name, source)) => Err(Error::new(
            ErrorCode::Storage,
            Stage::Read,
            format!("`_delta_log/{name}` is there, but the disk can't say what it is"),
        )
        .with_hint("nothing was changed; check the permissions of `_delta_log`, and the disk")
        .with_source(source)),
        Ok(Newer::Yes) => Ok(true),
        Ok(Newer::No) | Err(_) => Ok(false),
    }
}

enum Newer {
    No,
    Yes,
    /// A file that has a name and no status.
    Unknown(String, IoError),
}

fn newer(log: &Path, newest: Option<LogVersion>) -> Newer {
    // A folder that can't be read has failed the listing as well.
    let Ok(entries) = std::fs::read_dir(log) else { return Newer::No };
    let mut found = Newer::No;
    for entry in entries.flatten() {
        let Ok(name) = entry.file_name().into_string() else { continue };
        let version = name.get(..20).and_then(|digits| digits.parse().ok()).map(LogVersion::new);
        let is_log = name.ends_with(".json") || name.ends_with(".parquet");
        if !is_log || version.is_none() || version <= newest {
            continue;
        }
        match std::fs::metadata(entry.path()) {
            Ok(_) => found = Newer::Yes,
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Newer::Unknown(name, error),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    fn at(folder: &Path) -> Location {
        Location::new(folder.to_str().unwrap(), HashMap::new()).unwrap()
    }

    #[tokio::test]
    async fn what_is_not_on_a_local_disk_needs_no_sync() {
        let folder = tempfile::tempdir().unwrap();
        let here = folder.path().join("t");
        // The same as a store of the caller's own that is only called like a folder.
        for location in [Location::new("memory:///t", HashMap::new()).unwrap(), at(&here)] {
            sync(&location, LogVersion::new(0)).await.unwrap();
            assert!(!has_newer(&location, None).await.unwrap());
        }
        assert!(!here.exists());
    }

    /// A log with files that lead to themselves: the disk can't say what they are.
    #[cfg(unix)]
    fn with_loops(names: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("_delta_log");
        std::fs::create_dir(&log).unwrap();
        for name in names {
            std::os::unix::fs::symlink(log.join(name), log.join(name)).unwrap();
        }
        folder
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn what_the_disk_says_of_a_sync_is_told() {
        let folder = with_loops(&["00000000000000000007.json"]);
        assert!(sync(&at(folder.path()), LogVersion::new(7)).await.is_err());
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn a_file_of_the_log_that_a_listing_leaves_out_is_told() {
        let folder = with_loops(&["00000000000000000007.json", "_last_checkpoint", "notes"]);
        let location = at(folder.path());
        for (newest, is_told) in [(None, true), (Some(6), true), (Some(7), false)] {
            let told = has_newer(&location, newest.map(LogVersion::new)).await;
            assert_eq!(told.is_err(), is_told, "{newest:?} {told:?}");
        }
        let error = has_newer(&location, None).await.unwrap_err();
        assert_eq!(error.code(), ErrorCode::Storage);
        assert!(error.message().contains("00000000000000000007.json"), "{error}");
        // What is gone by now was left out rightly.
        let log = folder.path().join("_delta_log");
        std::fs::remove_file(log.join("00000000000000000007.json")).unwrap();
        std::os::unix::fs::symlink(log.join("gone"), log.join("00000000000000000008.json")).unwrap();
        assert!(!has_newer(&location, None).await.unwrap());
        // What another writer is about to link into place is not there yet.
        std::fs::write(log.join("00000000000000000009.json#1"), "").unwrap();
        assert!(!has_newer(&location, None).await.unwrap());
        std::fs::write(log.join("00000000000000000009.json"), "").unwrap();
        let newer = async |newest| has_newer(&location, Some(LogVersion::new(newest))).await.unwrap();
        assert!(newer(8).await && !newer(9).await);
    }
}
