//! What a local disk needs beside its store: commits that outlive a loss of power, which neither
//! delta-rs nor the store asks the disk for.

use std::fs::OpenOptions;
use std::io::{Error as IoError, ErrorKind, Result as IoResult};
use std::path::Path;
use std::time::Duration;

use super::location::Location;
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
}
