//! One log entry at exactly one version, and what really became of it.

use std::io::ErrorKind;
use std::time::Duration;

use bytes::Bytes;
use deltalake::kernel::transaction::TransactionError;
use deltalake::logstore::CommitOrBytes;
use object_store::path::Path;
use object_store::{Error as StoreError, ObjectStore, ObjectStoreExt};
use serde_json::Value;

use super::location::Location;
use super::read::fault::is_busy;
use super::read::{self, Now, Tip};
use crate::error::{Error, ErrorCode, Stage};
use crate::model::entry::COMMIT_ID;
use crate::model::text;
use crate::model::version::LogVersion;
use crate::retry::Budget;

/// What became of a commit.
#[derive(Debug)]
pub(crate) enum CommitOutcome {
    /// The entry at the version is ours.
    Landed,
    /// Somebody else's entry stands there; who wrote it, for messages.
    Lost {
        /// Its operation and engine, as far as it says.
        winner: String,
        /// Whether a request of ours may be under way still: it lands if that entry is ever taken away.
        pending: bool,
    },
}

/// How often the same bytes are sent again after an answer that says they did not land.
const RESENDS: usize = 5;

/// How long a look at the entry may take even where the budget is spent.
const LEAST_LOOK: Duration = Duration::from_secs(10);

/// Who wins where the entry that was built upon is no longer there.
pub(crate) const REPLACED: &str = "a writer that replaced the newest log entry";

/// The log stores whose commits are known to be conditional puts; others may overwrite an entry.
const KNOWN_LOG_STORES: [&str; 2] = ["DefaultLogStore", "S3LogStore"];

/// Writes `bytes` as the entry of `version`, which follows the entry `built_upon`.
///
/// Stores retry conditional puts, answer 409 although nothing landed, and lose answers, so that no
/// answer but success is believed: the entry itself decides (Faults 1). Before the bytes are sent
/// again, the entry below is looked at again: in the meantime another table may have taken its place.
pub(crate) async fn commit(
    location: &Location,
    version: LogVersion,
    bytes: Vec<u8>,
    commit_id: &str,
    built_upon: Option<&Tip>,
    budget: &Budget,
) -> Result<CommitOutcome, Error> {
    let log_store = location.log_store();
    if !KNOWN_LOG_STORES.contains(&log_store.name().as_str()) {
        return Err(Error::new(
            ErrorCode::Storage,
            Stage::Commit,
            format!("log store `{}` is not known to create entries exclusively", log_store.name()),
        )
        .with_hint("use a store with conditional puts; nothing was written"));
    }
    let bytes = Bytes::from(bytes);
    let operation = uuid::Uuid::new_v4();
    let mut waits = budget.pauses();
    let mut attempts = 0;
    // Whether an attempt may be under way still: then no later answer proves that nothing is written.
    let mut pending = false;
    loop {
        let put =
            log_store.write_commit_entry(version.get(), CommitOrBytes::LogBytes(bytes.clone()), operation);
        // At least a moment, so that the last attempt of a budget is a real one.
        let failure = match budget.within(Duration::from_millis(100), put).await {
            Some(Ok(())) => return Ok(CommitOutcome::Landed),
            Some(Err(error)) => Some(error),
            None => None,
        };
        attempts += 1;
        pending |= !says_no(failure.as_ref()) || failure.as_ref().is_some_and(was_repeated);
        let store = location.store();
        let Some(found) = look(store.as_ref(), version, commit_id, budget).await else {
            return Err(unknown(version, attempts, budget, failure));
        };
        match found {
            Ok(Entry::Ours) => return Ok(CommitOutcome::Landed),
            Ok(Entry::Theirs { winner }) => return Ok(CommitOutcome::Lost { winner, pending }),
            Ok(Entry::Absent) => {}
            Err(error) => return Err(unknown(version, attempts, budget, failure).with_source(error)),
        }
        let over = attempts > RESENDS || budget.is_spent();
        let refused = is_final(failure.as_ref());
        if !over && !refused {
            budget.pause(waits.next().unwrap_or_default()).await;
        }
        if let Some(tip) = built_upon.filter(|_| !refused) {
            match budget.within(LEAST_LOOK, read::now(store.as_ref(), tip)).await {
                Some(Ok(Now::Same)) => {}
                Some(Ok(Now::Other)) if !pending => {
                    return Ok(CommitOutcome::Lost { winner: REPLACED.to_owned(), pending });
                }
                // A log that is cleaned up may have lost our entry as well.
                _ => return Err(unknown(version, attempts, budget, failure)),
            }
        }
        if over || refused {
            return Err(match failure {
                Some(failure) if !pending => gave_up(version, failure),
                failure => unknown(version, attempts, budget, failure),
            });
        }
    }
}

/// Whether the entry at a version is the one with this id; a store that does not say is not waited for.
pub(crate) async fn is_ours(location: &Location, version: LogVersion, commit_id: &str) -> bool {
    matches!(read_entry(location.store().as_ref(), version, commit_id).await, Ok(Entry::Ours))
}

/// What stands at the version; none if the store does not answer in time. One that has no time is asked
/// again while the budget lasts.
async fn look(
    store: &dyn ObjectStore,
    version: LogVersion,
    commit_id: &str,
    budget: &Budget,
) -> Option<Result<Entry, StoreError>> {
    let mut waits = budget.pauses();
    loop {
        match budget.within(LEAST_LOOK, read_entry(store, version, commit_id)).await? {
            Err(error) if is_busy(&error) && !budget.is_spent() => {}
            found => return Some(found),
        }
        budget.pause(waits.next().unwrap_or_default()).await;
    }
}

/// Whether the store says that it did not write, and no request can be under way any more.
fn says_no(failure: Option<&TransactionError>) -> bool {
    match failure {
        Some(TransactionError::VersionAlreadyExists(_)) => true,
        Some(TransactionError::ObjectStore { source: StoreError::Precondition { .. } }) => true,
        failure => is_final(failure),
    }
}

/// Whether the store's client sent the request more than once before it gave this answer: then the
/// answer is about the last of them alone. The client says so only in its text.
fn was_repeated(failure: &TransactionError) -> bool {
    let mut next: Option<&(dyn std::error::Error + 'static)> = Some(failure);
    while let Some(error) = next {
        if error.to_string().contains(" retries, max_retries: ") {
            return true;
        }
        next = error.source();
    }
    false
}

/// Whether the store's answer proves that nothing was written and that asking again is pointless.
fn is_final(failure: Option<&TransactionError>) -> bool {
    let Some(TransactionError::ObjectStore { source }) = failure else { return false };
    match source {
        StoreError::PermissionDenied { .. }
        | StoreError::Unauthenticated { .. }
        | StoreError::NotImplemented { .. }
        | StoreError::NotSupported { .. } => true,
        // The local file system answers for itself: no request is under way any more.
        StoreError::Generic { store, .. } => *store == "LocalFileSystem",
        _ => false,
    }
}

/// The store said no at every attempt.
fn gave_up(version: LogVersion, failure: TransactionError) -> Error {
    let error = if is_final(Some(&failure)) {
        Error::new(ErrorCode::Storage, Stage::Commit, format!("the store can't create log entry {version}"))
            .with_hint(format!("nothing was written; {}", way_out(&failure)))
    } else {
        Error::new(
            ErrorCode::Storage,
            Stage::Commit,
            format!("the store says that log entry {version} exists, but there is none"),
        )
        .with_hint("nothing was written; run it again, and check the store's conditional puts if it stays so")
    };
    error.with_source(failure)
}

/// What to do about a store that can't create an entry.
fn way_out(failure: &TransactionError) -> &'static str {
    // On Unix, of a link: the file system has none. So says the call's manual page.
    const NOT_PERMITTED: i32 = 1;
    let disk = cause_of(failure);
    match disk.map(|error| (error.kind(), error.raw_os_error())) {
        Some((ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge, _)) => {
            "make room for it (disk, quota, limit of a file's size), then run it again"
        }
        Some((ErrorKind::ReadOnlyFilesystem, _)) => {
            "the file system is mounted read-only: mount it for writing, or name the table by a path that is"
        }
        Some((ErrorKind::Unsupported, _)) => NO_LINKS,
        Some((ErrorKind::PermissionDenied, Some(NOT_PERMITTED))) if cfg!(unix) => NO_LINKS,
        Some((ErrorKind::PermissionDenied, _)) => {
            "run it as a user who may create files in `_delta_log`, and folders where the table is new"
        }
        _ => {
            "commits need a store that creates a file only where there is none (on local disks: permission \
             to write into `_delta_log`, space, and hard links)"
        }
    }
}

const NO_LINKS: &str = "commits on a local disk need hard links, and this mount has none (or forbids every \
                        change): use another file system, or the object store that is mounted";

/// What the operating system said, if it was asked.
fn cause_of(failure: &TransactionError) -> Option<&std::io::Error> {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(failure);
    while let Some(error) = cause {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        cause = error.source();
    }
    None
}

/// An attempt may be under way still, so that its absence proves nothing.
fn unknown(
    version: LogVersion,
    attempts: usize,
    budget: &Budget,
    failure: Option<TransactionError>,
) -> Error {
    let error = Error::new(
        ErrorCode::OutcomeUnknown,
        Stage::Commit,
        format!(
            "it is not known whether log entry {version} was written: no clear answer of the store to {} in \
             {:.1} s",
            text::count(attempts, "attempt"),
            budget.elapsed().as_secs_f64()
        ),
    )
    .with_hint("run it again: it finds out, and does nothing twice");
    match failure {
        Some(failure) => error.with_source(failure),
        None => error,
    }
}

/// What stands at a version.
#[derive(Debug, PartialEq, Eq)]
enum Entry {
    Ours,
    Theirs { winner: String },
    Absent,
}

async fn read_entry(
    store: &dyn ObjectStore,
    version: LogVersion,
    commit_id: &str,
) -> Result<Entry, StoreError> {
    let path = Path::from(format!("_delta_log/{:020}.json", version.get()));
    match store.get(&path).await {
        Ok(found) => Ok(judge(&found.bytes().await?, commit_id)),
        Err(StoreError::NotFound { .. }) => Ok(Entry::Absent),
        Err(error) => Err(error),
    }
}

fn judge(bytes: &[u8], commit_id: &str) -> Entry {
    let infos = bytes
        .split(|b| *b == b'\n')
        .filter(|line| line.windows(12).any(|w| w == b"\"commitInfo\""))
        .filter_map(|line| serde_json::from_slice::<Value>(line).ok());
    for line in infos {
        let Some(info) = line.get("commitInfo") else { continue };
        let text = |key: &str| info.get(key).and_then(Value::as_str);
        if text(COMMIT_ID) == Some(commit_id) {
            return Entry::Ours;
        }
        let parts: Vec<&str> = [text("operation"), text("engineInfo")].into_iter().flatten().collect();
        if !parts.is_empty() {
            return Entry::Theirs { winner: parts.join(" by ") };
        }
    }
    Entry::Theirs { winner: "a writer that does not say who it is".to_owned() }
}

#[cfg(test)]
mod tests;
