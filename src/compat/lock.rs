//! The lock file of a release, against today's chains.

use std::path::Path;

use super::manifest::Manifest;
use super::{Finding, files};
use crate::error::Error;
use crate::model::kind::Kind;
use crate::model::lockfile::{Kinds, LOCK_FILE, Lockfile};
use crate::model::version::SchemaVersion;

/// What `lock` writes for the kinds.
pub(super) fn text(kinds: &[Kind]) -> String {
    Lockfile::empty(LOCK_FILE).extended(kinds).to_string()
}

/// What the lock file of a corpus has against today's kinds, and what it should hold and does not.
pub(super) fn check(
    folder: &Path,
    label: &str,
    manifest: &Manifest,
    kinds: &[Kind],
) -> Result<Vec<Finding>, Error> {
    let path = folder.join(LOCK_FILE);
    let place = format!("{label}/{LOCK_FILE}");
    if !path.is_file() {
        return Ok(Vec::new());
    }
    let lock = Lockfile::parse(&files::read_text(&path)?, &place);
    let verified = lock.verify(kinds, Kinds::All);
    let mut findings: Vec<Finding> = Vec::new();
    for found in &verified.findings {
        let hint = "what a release locked is the beginning of every later chain, and its file is read by every later release";
        findings.push(Finding::new(&place, found.to_string(), "the lines to be read, and to hold", hint));
    }
    // A line that is not understood must not pass as one that is not there.
    for unlocked in verified.unlocked {
        let entry = manifest.kinds.iter().find(|entry| entry.name == unlocked.kind);
        if entry.is_some_and(|entry| unlocked.frozen.version <= SchemaVersion::new(entry.newest)) {
            let found = format!("no line for `{}` {}", unlocked.kind, unlocked.frozen);
            let hint = "a lock file that a release wrote is read by every later one";
            findings.push(Finding::new(&place, found, "one", hint));
        }
    }
    Ok(findings)
}
