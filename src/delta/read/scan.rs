//! Actions out of lines of JSON: commits, and the top files of v2 checkpoints.

mod lines;

use std::fs::File;
use std::io::{BufRead, BufReader};

use futures::TryStreamExt;
use object_store::path::Path;
use object_store::{GetResultPayload, ObjectMeta, ObjectStore, ObjectStoreExt as _};

use self::lines::LineScanner;
use super::fault::{Fault, corrupt, storage};
use super::listing::commit_path;
use crate::model::version::SchemaVersion;

/// Local files are read in pieces of this size; object_store would take 8 KiB at a time.
const BUFFER: usize = 1 << 20;

/// The last actions of each kind in a file.
#[derive(Debug, Default)]
pub(super) struct Actions {
    pub(super) protocol: Option<Raw>,
    pub(super) metadata: Option<Raw>,
    /// The version of the `txn` action whose application id was asked for.
    pub(super) txn: Option<SchemaVersion>,
}

/// The object of an action as it stands in the log.
#[derive(Debug)]
pub(super) struct Raw {
    pub(super) text: String,
    /// Where it stands, for errors.
    pub(super) at: String,
}

/// Reads a commit; what it holds is final, so content that can't be read is a failure.
pub(super) async fn commit(
    store: &dyn ObjectStore,
    version: u64,
    evidence_id: Option<&str>,
) -> Result<(Actions, ObjectMeta), Fault> {
    match file(store, &commit_path(version), None, evidence_id).await {
        Err(Fault::Unreadable(error)) => Err(Fault::Failed(error)),
        other => other,
    }
}

/// Reads a file of lines, each an action, in memory that does not grow with the file.
///
/// `size` is what the listing said; a file of another size is not the one that was listed.
pub(super) async fn file(
    store: &dyn ObjectStore,
    path: &Path,
    size: Option<u64>,
    evidence_id: Option<&str>,
) -> Result<(Actions, ObjectMeta), Fault> {
    let got = store.get(path).await.map_err(|e| Fault::get(path, e))?;
    if size.is_some_and(|size| size != got.meta.size) {
        return Err(Fault::Gone(path.clone()));
    }
    let mut scanner = LineScanner::new(evidence_id);
    let scanned = match got.payload {
        GetResultPayload::Stream(mut chunks) => loop {
            match chunks.try_next().await {
                Ok(Some(chunk)) => {
                    if let Err(e) = scanner.push(&chunk) {
                        break Err(e);
                    }
                }
                Ok(None) => break scanner.finish(),
                Err(e) => return Err(Fault::get(path, e)),
            }
        },
        GetResultPayload::File(file, _) => {
            let scanned = tokio::task::spawn_blocking(move || scan_file(file, scanner)).await;
            match scanned.map_err(|e| Fault::thread(path, e))? {
                Ok(scanned) => scanned,
                Err(e) => {
                    let source = object_store::Error::Generic { store: "file", source: Box::new(e) };
                    return Err(Fault::Failed(storage(path.as_ref(), source)));
                }
            }
        }
    };
    let found =
        scanned.map_err(|e| Fault::Unreadable(corrupt(format!("`{path}`, line {}: {}", e.line, e.why))))?;
    let raw = |found: Option<(u64, String)>| {
        found.map(|(line, text)| Raw { text, at: format!("`{path}`, line {line}") })
    };
    let actions = Actions { protocol: raw(found.protocol), metadata: raw(found.metadata), txn: found.txn };
    // A store below a prefix names the object from its own root in answers to a get.
    Ok((actions, ObjectMeta { location: path.clone(), ..got.meta }))
}

type Scanned = Result<lines::Found, lines::BadLine>;

fn scan_file(file: File, mut scanner: LineScanner) -> std::io::Result<Scanned> {
    let mut reader = BufReader::with_capacity(BUFFER, file);
    loop {
        let piece = reader.fill_buf()?;
        if piece.is_empty() {
            return Ok(scanner.finish());
        }
        if let Err(e) = scanner.push(piece) {
            return Ok(Err(e));
        }
        let read = piece.len();
        reader.consume(read);
    }
}

/// The schema version that a `txn` version stands for; a number that no release writes counts as
/// the highest, so that it never passes for a version that somebody knows.
pub(super) fn evidence(version: Option<i64>) -> SchemaVersion {
    SchemaVersion::new(version.and_then(|v| u32::try_from(v).ok()).unwrap_or(u32::MAX))
}
