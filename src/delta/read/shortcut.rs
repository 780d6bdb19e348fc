//! Protocol and metadata out of the newest checksum file, for a table with which nothing is to be done.
//!
//! The file holds both as they stand at its version (PROTOCOL.md, Version Checksum File), and spares the
//! commits below it and the checkpoint. Nothing in a log is bound to agree with it, though, so that it
//! answers one question alone: whether there is anything to do. Whatever is written or refused is decided
//! by the actions themselves.

use futures::{StreamExt, stream};
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt as _};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::fault::Fault;
use super::listing::{Base, Listing};
use super::scan::{self, Actions, Raw};
use super::tip::{self, Seen, Tip};
use super::{Gathered, NEAR, NEAR_IN_FLIGHT, Want};
use crate::model::version::LogVersion;

/// Larger files hold more than they have to, and cost more than they spare.
const MOST: u64 = 4 << 20;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Checksum<'a> {
    num_metadata: u64,
    num_protocol: u64,
    #[serde(borrow)]
    metadata: &'a RawValue,
    #[serde(borrow)]
    protocol: &'a RawValue,
}

/// What the newest checksum file and the commits from its version on say, where that is enough and takes
/// fewer requests than the log.
///
/// Whatever is wrong with it is no error: the log itself says what there is.
pub(super) async fn read(
    store: &dyn ObjectStore,
    listing: &Listing,
    want: Want<'_>,
) -> Option<(Gathered, Tip)> {
    let (version, checksum) = listing.checksum.as_ref()?;
    let base = listing.bases().next()?.ok()?;
    let commits = above(&base, *version)?;
    // A file that is older than its commit was left behind by an entry that another one replaced.
    let is_fresh = checksum.last_modified >= listing.commit(*version)?.last_modified;
    if !is_fresh || checksum.size > MOST {
        return None;
    }
    let found = futures::try_join!(gather(store, listing, commits, want), fetch(store, checksum));
    let ((mut gathered, tip), actions) = match found {
        Ok(found) => found,
        Err(fault) => {
            tracing::debug!(version, ?fault, "the checksum file is of no use; reading the log");
            return None;
        }
    };
    gathered.add_older(actions?).ok()?;
    gathered.is_enough(want).then_some((gathered, tip?))
}

/// The commits from the version of the checksum file on, newest first, if they are fewer than what else
/// would have to be got.
fn above<'a>(base: &'a Base<'_>, version: u64) -> Option<&'a [u64]> {
    let at = base.commits.iter().take(NEAR).position(|v| *v == version)?;
    let spared = base.commits.len() + usize::from(base.checkpoint.is_some());
    (at + 2 < spared).then(|| base.commits.get(..=at))?
}

async fn gather(
    store: &dyn ObjectStore,
    listing: &Listing,
    commits: &[u64],
    want: Want<'_>,
) -> Result<(Gathered, Option<Tip>), Fault> {
    let get = |version: u64| async move { (version, scan::commit(store, version, want.evidence_id).await) };
    let mut got = stream::iter(commits.to_vec()).map(get).buffered(NEAR_IN_FLIGHT);
    let (mut gathered, mut tip) = (Gathered::default(), None);
    while let Some((version, commit)) = got.next().await {
        let (actions, meta) = commit?;
        if listing.commit(version).is_none_or(|listed| !tip::is_listed(listed, &meta)) {
            return Err(Fault::Gone(meta.location));
        }
        gathered.add_older(actions)?;
        tip.get_or_insert(Tip { log_version: LogVersion::new(version), meta, seen: Seen::Got });
    }
    Ok((gathered, tip))
}

async fn fetch(store: &dyn ObjectStore, listed: &ObjectMeta) -> Result<Option<Actions>, Fault> {
    let path = &listed.location;
    let got = store.get(path).await.map_err(|e| Fault::get(path, e))?;
    if !tip::is_listed(listed, &ObjectMeta { location: path.clone(), ..got.meta.clone() }) {
        return Err(Fault::Gone(path.clone()));
    }
    let bytes = got.bytes().await.map_err(|e| Fault::get(path, e))?;
    let Ok(Checksum { num_metadata: 1, num_protocol: 1, metadata, protocol }) =
        serde_json::from_slice(&bytes)
    else {
        return Ok(None);
    };
    let raw = |text: &RawValue| Raw { text: text.get().to_owned(), at: format!("`{path}`") };
    Ok(Some(Actions { protocol: Some(raw(protocol)), metadata: Some(raw(metadata)), txn: None }))
}
