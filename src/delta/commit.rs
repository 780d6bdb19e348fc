//! One log entry at exactly one version, and what really became of it.

use std::time::Duration;

use bytes::Bytes;
use deltalake::kernel::transaction::TransactionError;
use deltalake::logstore::CommitOrBytes;
use object_store::path::Path;
use object_store::{Error as StoreError, ObjectStore, ObjectStoreExt};
use serde_json::Value;

use super::location::Location;
use super::read::fault::is_busy;
use crate::error::{Error, ErrorCode, Stage};
use crate::model::entry::COMMIT_ID;
use crate::model::text;
use crate::model::version::LogVersion;
use crate::retry::{Budget, pauses};

/// What became of a commit.
#[derive(Debug)]
pub(crate) enum CommitOutcome {
    /// The entry at the version is ours.
    Landed,
    /// Somebody else's entry stands there; who wrote it, for messages.
    Lost {
        /// Its operation and engine, as far as it says.
        winner: String,
    },
}

/// How often the same bytes are sent again after an answer that says they did not land.
const RESENDS: usize = 5;

/// How long a look at the entry may take even where the budget is spent.
const LEAST_LOOK: Duration = Duration::from_secs(10);

/// The log stores whose commits are known to be conditional puts; others may overwrite an entry.
const KNOWN_LOG_STORES: [&str; 2] = ["DefaultLogStore", "S3LogStore"];

/// Writes `bytes` as the entry of `version`.
///
/// Stores retry conditional puts, answer 409 although nothing landed, and lose answers, so that no
/// answer but success is believed: the entry itself decides (Faults 1).
pub(crate) async fn commit(
    location: &Location,
    version: LogVersion,
    bytes: Vec<u8>,
    commit_id: &str,
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
    let mut waits = pauses();
    let mut sends = Sends::default();
    loop {
        let put =
            log_store.write_commit_entry(version.get(), CommitOrBytes::LogBytes(bytes.clone()), operation);
        // At least a moment, so that the last attempt of a budget is a real one.
        let answer = tokio::time::timeout(budget.left().max(Duration::from_millis(100)), put).await;
        let failure = match answer {
            Ok(Ok(())) => return Ok(CommitOutcome::Landed),
            Ok(Err(error)) => Some(error),
            Err(_) => None,
        };
        sends.note(failure.as_ref());
        let store = location.store();
        let Some(found) = look(store.as_ref(), version, commit_id, budget).await else {
            return Err(unknown(version, failure, &sends, budget));
        };
        match found {
            Ok(Entry::Ours) => return Ok(CommitOutcome::Landed),
            Ok(Entry::Theirs { winner }) => return Ok(CommitOutcome::Lost { winner }),
            Ok(Entry::Absent) => {
                if sends.count > RESENDS || budget.is_spent() || is_final(failure.as_ref()) {
                    return Err(gave_up(version, failure, &sends, budget));
                }
            }
            Err(error) => return Err(unknown(version, failure, &sends, budget).with_source(error)),
        }
        tokio::time::sleep(waits.next().unwrap_or_default().min(budget.left())).await;
    }
}

/// What stands at the version; none if the store does not answer in time. A store that has no time is
/// asked again while the budget lasts.
async fn look(
    store: &dyn ObjectStore,
    version: LogVersion,
    commit_id: &str,
    budget: &Budget,
) -> Option<Result<Entry, StoreError>> {
    let mut waits = pauses();
    loop {
        let entry = read_entry(store, version, commit_id);
        match tokio::time::timeout(budget.left().max(LEAST_LOOK), entry).await.ok()? {
            Err(error) if is_busy(&error) && !budget.is_spent() => {}
            found => return Some(found),
        }
        tokio::time::sleep(waits.next().unwrap_or_default().min(budget.left())).await;
    }
}

/// The puts of one entry until now.
#[derive(Debug, Default)]
struct Sends {
    count: usize,
    /// Whether one of them has no answer that says what became of it: it may be under way still,
    /// whatever the ones after it were told.
    is_open: bool,
}

impl Sends {
    fn note(&mut self, failure: Option<&TransactionError>) {
        self.count += 1;
        let is_answered =
            is_final(failure) || matches!(failure, Some(TransactionError::VersionAlreadyExists(_)));
        self.is_open |= !is_answered || failure.is_some_and(was_repeated);
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

fn gave_up(version: LogVersion, failure: Option<TransactionError>, sends: &Sends, budget: &Budget) -> Error {
    if sends.is_open {
        return unknown(version, failure, sends, budget);
    }
    let exists = matches!(failure, Some(TransactionError::VersionAlreadyExists(_)));
    let error = if exists {
        Error::new(
            ErrorCode::Storage,
            Stage::Commit,
            format!("the store says that log entry {version} exists, but there is none"),
        )
        // The client may have sent the put more than once: this answer says nothing of the ones before.
        .with_hint("run it again, and check the store's conditional puts if it stays so")
    } else {
        Error::new(ErrorCode::Storage, Stage::Commit, format!("the store can't create log entry {version}"))
            .with_hint(
                "nothing was written; commits need a store that creates a file only where there is none (on \
                 local disks: permission to write into `_delta_log`, space, and hard links)",
            )
    };
    match failure {
        Some(failure) => error.with_source(failure),
        None => error,
    }
}

fn unknown(version: LogVersion, failure: Option<TransactionError>, sends: &Sends, budget: &Budget) -> Error {
    let error = Error::new(
        ErrorCode::OutcomeUnknown,
        Stage::Commit,
        format!(
            "it is not known whether log entry {version} was written: {} in {:.1} s brought no clear answer",
            text::count(sends.count, "attempt"),
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
