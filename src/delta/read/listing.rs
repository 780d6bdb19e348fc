//! Which files of a log count: commits and checkpoints, from one listing.

use std::collections::BTreeMap;

use futures::TryStreamExt;
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt as _};
use serde::Deserialize;

use super::fault::storage;
use crate::error::{Error, ErrorCode, Stage};

/// The folder of the log, below the table's root.
pub(super) const LOG: &str = "_delta_log";

/// A hint larger than this is no hint.
const MAX_HINT: u64 = 64 << 20;

/// Delta's versions are signed 64-bit numbers; a file beyond is not part of the log.
const MAX_VERSION: u64 = i64::MAX as u64;

/// A listing that misses more than these is taken anew.
const MOST_FILLED: usize = 1000;

/// The file of a commit.
pub(super) fn commit_path(version: u64) -> Path {
    Path::from(format!("{LOG}/{version:020}.json"))
}

/// The checkpoint version in `_last_checkpoint`; none where the file is missing or says nothing.
///
/// The hint only ever saves work (PROTOCOL.md, Last Checkpoint File), so nothing in it is an error.
pub(super) async fn hint(store: &dyn ObjectStore) -> Result<Option<u64>, Error> {
    #[derive(Deserialize)]
    struct Hint {
        version: u64,
    }
    let path = Path::from(format!("{LOG}/_last_checkpoint"));
    let failed = |e| if is_below_a_file(&e) { not_a_folder(e) } else { storage(path.as_ref(), e) };
    let found = match store.get(&path).await {
        Ok(found) if found.meta.size > MAX_HINT => return Ok(None),
        Ok(found) => found,
        Err(object_store::Error::NotFound { .. }) => return Ok(None),
        Err(e) => return Err(failed(e)),
    };
    match found.bytes().await {
        Ok(bytes) => {
            let hint = serde_json::from_slice::<Hint>(&bytes).ok();
            Ok(hint.map(|h| h.version).filter(|v| *v <= MAX_VERSION))
        }
        Err(object_store::Error::NotFound { .. }) => Ok(None),
        Err(e) => Err(failed(e)),
    }
}

/// Whether the error says that a folder on the way is a file, as local file systems do.
fn is_below_a_file(error: &object_store::Error) -> bool {
    let mut next: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(cause) = next {
        if cause
            .downcast_ref::<std::io::Error>()
            .is_some_and(|e| e.kind() == std::io::ErrorKind::NotADirectory)
        {
            return true;
        }
        next = cause.source();
    }
    false
}

fn not_a_folder(source: object_store::Error) -> Error {
    Error::new(ErrorCode::NotATable, Stage::Read, "the location is a file")
        .with_hint("give the folder that holds `_delta_log`")
        .with_source(source)
}

/// A complete checkpoint.
#[derive(Debug, Clone)]
pub(super) struct Checkpoint {
    pub(super) version: u64,
    pub(super) format: Format,
    /// The files in which protocol and metadata may be; never sidecars, which hold neither
    /// (PROTOCOL.md, V2 Spec).
    pub(super) files: Vec<ObjectMeta>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Parquet,
    Json,
}

/// What one listing showed.
#[derive(Debug, Default)]
pub(super) struct Listing {
    /// Ascending.
    commits: Vec<u64>,
    /// The newest commits as they were listed, as far as they are kept.
    recent: BTreeMap<u64, ObjectMeta>,
    /// Complete ones, newest first; of several for a version, the one with the fewest files first.
    checkpoints: Vec<Checkpoint>,
    /// The newest version with a checksum file, and that file.
    pub(super) checksum: Option<(u64, ObjectMeta)>,
    /// Files that a crashed or unfinished write leaves behind.
    pub(super) staged: usize,
    /// Files that are neither log files nor staged ones.
    pub(super) others: usize,
}

/// A complete point to start from, and the commits that lead on from it.
#[derive(Debug)]
pub(super) struct Base<'a> {
    pub(super) checkpoint: Option<&'a Checkpoint>,
    /// Newest first; contiguous.
    pub(super) commits: Vec<u64>,
}

/// Lists the log from `from` on, or all of it.
pub(super) async fn list(store: &dyn ObjectStore, from: Option<u64>) -> Result<Listing, Error> {
    let prefix = Path::from(LOG);
    let mut files = match from {
        // The bare number sorts right before every file of that version.
        Some(version) => store.list_with_offset(Some(&prefix), &Path::from(format!("{LOG}/{version:020}"))),
        None => store.list(Some(&prefix)),
    };
    let mut collected = Collected::default();
    loop {
        match files.try_next().await {
            Ok(Some(meta)) => collected.add(meta),
            Ok(None) | Err(object_store::Error::NotFound { .. }) => break,
            Err(e) => return Err(storage(LOG, e)),
        }
    }
    Ok(collected.finish())
}

impl Listing {
    /// How many commits were written in the hour before the newest one.
    pub(super) fn recent_commits(&self) -> u32 {
        let Some((_, newest)) = self.recent.last_key_value() else { return 0 };
        let hour = chrono::TimeDelta::hours(1);
        let recent = self.recent.values().filter(|c| newest.last_modified - c.last_modified <= hour).count();
        // The newest one itself is no sign of others.
        u32::try_from(recent.saturating_sub(1)).unwrap_or(u32::MAX)
    }

    /// A commit as it was listed, where it is one of the newest.
    pub(super) fn commit(&self, version: u64) -> Option<&ObjectMeta> {
        self.recent.get(&version)
    }

    /// The version that the log stands at, and the file that says so.
    pub(super) fn tip(&self) -> Option<(u64, &ObjectMeta)> {
        let commit = self.recent.last_key_value().map(|(version, meta)| (*version, meta));
        let checkpoint = self.checkpoints.first().and_then(|c| Some((c.version, c.files.first()?)));
        match (commit, checkpoint) {
            (Some(commit), Some(checkpoint)) if checkpoint.0 > commit.0 => Some(checkpoint),
            (commit, checkpoint) => commit.or(checkpoint),
        }
    }

    pub(super) fn has_checkpoint(&self) -> bool {
        !self.checkpoints.is_empty()
    }

    /// The version of the newest complete checkpoint.
    pub(super) fn newest_checkpoint(&self) -> Option<u64> {
        self.checkpoints.first().map(|c| c.version)
    }

    /// The points to start from, the newest first, each with the commits up to the one before it.
    ///
    /// Ends at the first commit that is missing, with its version.
    pub(super) fn bases(&self) -> impl Iterator<Item = Result<Base<'_>, u64>> {
        let beginning = (!self.commits.is_empty()).then_some(None);
        let mut below = u64::MAX;
        let mut over = false;
        self.checkpoints.iter().map(Some).chain(beginning).map_while(move |checkpoint| {
            if over {
                return None;
            }
            let from = checkpoint.map_or(0, |c| c.version.saturating_add(1));
            let commits = self.between(from, below);
            over = commits.is_err();
            below = from;
            Some(commits.map(|commits| Base { checkpoint, commits }))
        })
    }

    /// The first version that seems to be missing above the newest checkpoint.
    fn gap(&self) -> Option<u64> {
        self.bases().next()?.err()
    }

    /// Asks for versions that the listing lacks: a listing taken while others write can miss a file
    /// and show a later one, as reading a local folder does. What is there is no gap.
    pub(super) async fn fill_gaps(&mut self, store: &dyn ObjectStore) -> Result<(), Error> {
        for _ in 0..MOST_FILLED {
            let Some(missing) = self.gap() else { return Ok(()) };
            let path = commit_path(missing);
            match store.get(&path).await {
                Ok(_) => {
                    let at = self.commits.partition_point(|v| *v < missing);
                    self.commits.insert(at, missing);
                }
                Err(object_store::Error::NotFound { .. }) => return Ok(()),
                Err(e) => return Err(storage(path.as_ref(), e)),
            }
        }
        Ok(())
    }

    /// The commits from `from` up to, but not including, `below`; all of them must be there.
    fn between(&self, from: u64, below: u64) -> Result<Vec<u64>, u64> {
        let start = self.commits.partition_point(|v| *v < from);
        let end = self.commits.partition_point(|v| *v < below);
        let commits = self.commits.get(start..end).unwrap_or_default();
        let gap = commits.iter().zip(from..).find(|(found, wanted)| *found != wanted);
        if let Some((_, missing)) = gap {
            return Err(missing);
        }
        // Between two checkpoints the end is known, and the last ones can be missing as well.
        let reached = from.saturating_add(commits.len() as u64);
        if below != u64::MAX && reached < below {
            return Err(reached);
        }
        Ok(commits.iter().rev().copied().collect())
    }
}

/// What a file name in `_delta_log` means (PROTOCOL.md, File Types).
#[derive(Debug, PartialEq, Eq)]
enum LogFile {
    Commit(u64),
    Classic(u64),
    Part { version: u64, part: u64, of: u64 },
    Uuid(u64, Format),
    Checksum(u64),
}

fn classify(name: &str) -> Option<LogFile> {
    let (version, rest) = name.split_once('.')?;
    let version = number(version, 20).filter(|v| *v <= MAX_VERSION)?;
    if rest == "json" {
        return Some(LogFile::Commit(version));
    }
    if rest == "crc" {
        return Some(LogFile::Checksum(version));
    }
    let rest = rest.strip_prefix("checkpoint.")?;
    if rest == "parquet" {
        return Some(LogFile::Classic(version));
    }
    let parts: Vec<&str> = rest.split('.').collect();
    match parts.as_slice() {
        [part, of, "parquet"] => {
            let (part, of) = (number(part, 10)?, number(of, 10)?);
            (1..=of).contains(&part).then_some(LogFile::Part { version, part, of })
        }
        [uuid, "parquet"] if is_uuid(uuid) => Some(LogFile::Uuid(version, Format::Parquet)),
        [uuid, "json"] if is_uuid(uuid) => Some(LogFile::Uuid(version, Format::Json)),
        _ => None,
    }
}

fn number(text: &str, digits: usize) -> Option<u64> {
    (text.len() == digits && text.bytes().all(|b| b.is_ascii_digit())).then(|| text.parse().ok()).flatten()
}

fn is_uuid(text: &str) -> bool {
    text.len() == 36 && uuid::Uuid::try_parse(text).is_ok()
}

/// Whether an unfinished write leaves files of that name: object_store's `#`, Hadoop's leading dot,
/// the temporary names of delta-rs and others.
fn is_staged(name: &str) -> bool {
    name.contains('#') || name.starts_with('.') || name.starts_with("_tmp") || name.ends_with(".tmp")
}

/// More commits an hour, or above a checkpoint, than these are as busy as a table gets.
const MOST_KEPT: usize = 1000;

#[derive(Default)]
struct Collected {
    listing: Listing,
    whole: BTreeMap<u64, Vec<Checkpoint>>,
    /// Keyed by the version and the number of parts that there should be.
    parts: BTreeMap<(u64, u64), BTreeMap<u64, ObjectMeta>>,
}

impl Collected {
    fn add(&mut self, meta: ObjectMeta) {
        let mut below = meta.location.parts().skip(1);
        let (name, deeper) = (below.next(), below.next().is_some());
        let name = name.as_ref().map(AsRef::as_ref).unwrap_or_default();
        let kind = if deeper { None } else { classify(name) };
        let listing = &mut self.listing;
        match kind {
            Some(LogFile::Commit(version)) => {
                listing.commits.push(version);
                listing.recent.insert(version, meta);
                if listing.recent.len() > MOST_KEPT {
                    listing.recent.pop_first();
                }
            }
            Some(LogFile::Classic(version)) => {
                let found = Checkpoint { version, format: Format::Parquet, files: vec![meta] };
                self.whole.entry(version).or_default().insert(0, found);
            }
            Some(LogFile::Uuid(version, format)) => {
                self.whole.entry(version).or_default().push(Checkpoint {
                    version,
                    format,
                    files: vec![meta],
                });
            }
            Some(LogFile::Part { version, part, of }) => {
                self.parts.entry((version, of)).or_default().insert(part, meta);
            }
            // A checksum without its log is no reason to take the place for a log.
            Some(LogFile::Checksum(version)) => {
                if listing.checksum.as_ref().is_none_or(|(newest, _)| *newest < version) {
                    listing.checksum = Some((version, meta));
                }
                listing.others += 1;
            }
            None if is_staged(name) => listing.staged += 1,
            None => listing.others += 1,
        }
    }

    fn finish(mut self) -> Listing {
        for ((version, of), parts) in self.parts {
            if parts.len() as u64 == of {
                let files = parts.into_values().collect();
                let found = Checkpoint { version, format: Format::Parquet, files };
                self.whole.entry(version).or_default().push(found);
            } else {
                // An incomplete checkpoint must be ignored (PROTOCOL.md, Multi-part checkpoint).
                self.listing.others += parts.len();
            }
        }
        self.listing.commits.sort_unstable();
        self.listing.commits.dedup();
        self.listing.checkpoints = self.whole.into_values().rev().flatten().collect();
        self.listing
    }
}

#[cfg(test)]
mod tests;
