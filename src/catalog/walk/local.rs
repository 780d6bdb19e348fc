//! One look at a folder of the local file system.
//!
//! Not through the object store, whose listing of a folder fails as a whole at one link that leads in
//! a circle or one name that is no Unicode, and leaves broken links out without a word.

use std::fs;
use std::io::{ErrorKind, Result};
use std::path::{Path, PathBuf};

use super::{Inside, LOG, Look, Unseen, is_hidden, is_log_file};

/// The real folder behind a root.
pub(super) fn real(root: &Path) -> Result<PathBuf> {
    let real = root.canonicalize()?;
    match real.is_dir() {
        true => Ok(real),
        false => Err(ErrorKind::NotADirectory.into()),
    }
}

/// Looks at a folder, and into it where `into` says so and it is no table.
pub(super) fn look(folder: &Path, into: bool) -> Result<Look> {
    if has_log(folder)? {
        return Ok(Look::Table);
    }
    let mut inside = Inside::default();
    if !into {
        return Ok(Look::Other(inside));
    }
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if !kind.is_dir() && !kind.is_symlink() {
            continue;
        }
        let name = match entry.file_name().into_string() {
            Ok(name) => name,
            Err(name) => {
                inside.unseen.push((name.to_string_lossy().into_owned(), Unseen::Name));
                continue;
            }
        };
        if kind.is_dir() {
            inside.folders.push(name);
        } else if !is_hidden(&name) {
            match fs::canonicalize(entry.path()) {
                Ok(real) if real.is_dir() => inside.links.push((name, real)),
                Ok(_) => {}
                Err(e) => inside.unseen.push((name, Unseen::Link(e))),
            }
        }
    }
    Ok(Look::Other(inside))
}

fn has_log(folder: &Path) -> Result<bool> {
    let log = folder.join(LOG);
    let entries = match fs::read_dir(&log) {
        Ok(entries) => entries,
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(false),
        Err(e) => return Err(e),
    };
    for entry in entries {
        if entry?.file_name().to_str().is_some_and(is_log_file) {
            return Ok(true);
        }
    }
    tracing::debug!(folder = %folder.display(), "no table: `_delta_log` holds no log file");
    Ok(false)
}
