//! The newest log entry as it was seen, to tell later whether it is still the same object.

use object_store::{GetOptions, GetRange, ObjectMeta, ObjectStore};

use super::fault::storage;
use super::listing::commit_path;
use crate::error::Error;
use crate::model::version::LogVersion;

/// The newest log entry as it was seen, to tell later whether it is still the same object.
#[derive(Debug, Clone)]
pub(crate) struct Tip {
    pub(crate) log_version: LogVersion,
    pub(super) meta: ObjectMeta,
    pub(super) seen: Seen,
}

/// Where the description of a tip comes from; stores round times in listings differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Seen {
    Listed,
    Got,
}

/// What stands where a tip stood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Now {
    /// The object that was read.
    Same,
    /// Another one.
    Other,
    /// Nothing.
    Gone,
}

/// What stands where the tip stood; a single get, of one byte.
///
/// # Errors
/// [`ErrorCode::Storage`](crate::ErrorCode::Storage) if the store failed.
pub(crate) async fn now(store: &dyn ObjectStore, tip: &Tip) -> Result<Now, Error> {
    Ok(match look(store, tip).await? {
        Some(now) if tip.is(&now) => Now::Same,
        Some(_) => Now::Other,
        None => Now::Gone,
    })
}

/// Whether the tip's object is still the one that was read; a single get, of one byte.
///
/// # Errors
/// [`ErrorCode::Storage`](crate::ErrorCode::Storage) if the store failed.
pub(crate) async fn is_still(store: &dyn ObjectStore, tip: &Tip) -> Result<bool, Error> {
    Ok(now(store, tip).await? == Now::Same)
}

/// What stands where the tip stood.
async fn look(store: &dyn ObjectStore, tip: &Tip) -> Result<Option<ObjectMeta>, Error> {
    let path = &tip.meta.location;
    // No store can give a byte of an empty object.
    let range = (tip.meta.size > 0).then_some(GetRange::Bounded(0..1));
    match store.get_opts(path, GetOptions { range, ..GetOptions::default() }).await {
        Ok(found) => {
            let now = found.meta.clone();
            // A body that is read to its end gives the connection back.
            drop(found.bytes().await);
            Ok(Some(now))
        }
        Err(object_store::Error::NotFound { .. }) => Ok(None),
        Err(e) => Err(storage(path.as_ref(), e)),
    }
}

impl Tip {
    /// Whether it is a log entry, and not a checkpoint behind which the entry was cleaned up.
    pub(crate) fn is_entry(&self) -> bool {
        self.meta.location == commit_path(self.log_version.get())
    }

    pub(super) fn is(&self, now: &ObjectMeta) -> bool {
        is_same(&self.meta, self.seen, now)
    }
}

/// Whether an object that was got is the one that a listing showed.
pub(super) fn is_listed(listed: &ObjectMeta, got: &ObjectMeta) -> bool {
    is_same(listed, Seen::Listed, got)
}

fn is_same(before: &ObjectMeta, seen: Seen, now: &ObjectMeta) -> bool {
    // Azure quotes the tag in answers to a get and not in listings; proxies that compress weaken it.
    let bare = |tag: &String| tag.trim_start_matches("W/").trim_matches('"').to_owned();
    let tag = |meta: &ObjectMeta| meta.e_tag.as_ref().map(bare);
    let tags = tag(before).zip(tag(now));
    let (then, at) = (before.last_modified, now.last_modified);
    let same_time = match seen {
        Seen::Got => then == at,
        // Listings are more precise than headers on some stores; a tag says enough.
        Seen::Listed => tags.is_some() || then.timestamp() == at.timestamp(),
    };
    before.size == now.size && same_time && tags.is_none_or(|(then, now)| then == now)
}
