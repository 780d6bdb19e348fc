//! Files of a corpus, with errors that name them.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use super::rows::hex;
use crate::error::Error;

fn failed(what: &str, path: &Path, error: std::io::Error) -> Error {
    Error::usage(format!("`{}` can't be {what}", path.display())).with_source(error)
}

pub(super) fn read(path: &Path) -> Result<Vec<u8>, Error> {
    std::fs::read(path).map_err(|e| failed("read", path, e))
}

pub(super) fn read_text(path: &Path) -> Result<String, Error> {
    std::fs::read_to_string(path).map_err(|e| failed("read", path, e))
}

/// Writes a file, and the folders above it.
pub(super) fn write(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(|e| failed("made", folder, e))?;
    }
    std::fs::write(path, bytes).map_err(|e| failed("written", path, e))
}

/// Writes a file where none is.
pub(super) fn write_new(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(|e| failed("made", folder, e))?;
    }
    let file = std::fs::OpenOptions::new().write(true).create_new(true).open(path);
    file.and_then(|mut f| f.write_all(bytes)).map_err(|e| failed("written", path, e))
}

/// Removes a file, and the folders above it that are empty then, up to `root`.
pub(super) fn remove(path: &Path, root: &Path) -> Result<(), Error> {
    std::fs::remove_file(path).map_err(|e| failed("removed", path, e))?;
    let mut above = path.parent();
    while let Some(folder) = above.filter(|folder| *folder != root && folder.starts_with(root)) {
        // One that is not empty stays.
        if std::fs::remove_dir(folder).is_err() {
            break;
        }
        above = folder.parent();
    }
    Ok(())
}

/// Removes a folder with everything below it.
pub(super) fn remove_all(folder: &Path) -> Result<(), Error> {
    std::fs::remove_dir_all(folder).map_err(|e| failed("removed", folder, e))
}

pub(super) fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// Every file below a folder, by its path from there with `/`, in alphabetical order.
pub(super) fn below(folder: &Path) -> Result<BTreeMap<String, PathBuf>, Error> {
    let mut found = BTreeMap::new();
    let mut folders = vec![(String::new(), folder.to_owned())];
    while let Some((prefix, folder)) = folders.pop() {
        let entries = std::fs::read_dir(&folder).map_err(|e| failed("read", &folder, e))?;
        for entry in entries {
            let path = entry.map_err(|e| failed("read", &folder, e))?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let name = format!("{prefix}{name}");
            if path.is_dir() {
                folders.push((format!("{name}/"), path));
            } else {
                found.insert(name, path);
            }
        }
    }
    Ok(found)
}

/// Refuses a folder that holds anything; makes one that is missing.
pub(super) fn make_empty(folder: &Path) -> Result<(), Error> {
    let mut entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(e) if e.kind() == ErrorKind::NotFound => {
            return std::fs::create_dir_all(folder).map_err(|e| failed("made", folder, e));
        }
        Err(e) => return Err(failed("read", folder, e)),
    };
    match entries.next() {
        None => Ok(()),
        Some(_) => Err(Error::usage(format!("`{}` is not empty", folder.display()))
            .with_hint("a corpus is never written over: name a new folder")),
    }
}

/// Copies a folder with everything below it.
pub(super) fn copy(from: &Path, to: &Path) -> Result<(), Error> {
    for (name, path) in below(from)? {
        write(&to.join(name), &read(&path)?)?;
    }
    Ok(())
}

/// A folder that is gone once it is dropped.
#[derive(Debug)]
pub(super) struct Scratch(PathBuf);

impl Scratch {
    pub(super) fn new() -> Result<Self, Error> {
        let folder = std::env::temp_dir().join(format!("delta-migrate-compat-{}", Uuid::new_v4()));
        std::fs::create_dir_all(&folder).map_err(|e| failed("made", &folder, e))?;
        Ok(Self(folder))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What can't be removed is left to the system's own cleaning.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
