//! A lazy reader of a Delta log: protocol and metadata alone, never the list of files.
//!
//! The raw `metaData` text is kept, because a commit that replaces it owes the table every key of
//! it (PROTOCOL.md, Change Metadata), also those that nobody here knows.
//!
//! One read costs a get of the hint, one listing, the commits after the newest checkpoint until
//! protocol and metadata are found, and from the checkpoint the footer and a few column chunks. Where
//! nothing is to be done, the newest checksum file can stand for the checkpoint and most commits.

mod checkpoint;
pub(crate) mod fault;
mod listing;
mod scan;
mod shortcut;
#[cfg(test)]
mod test_log;
mod tip;

use futures::{StreamExt, stream};
use indexmap::IndexMap;
use object_store::{ObjectMeta, ObjectStore};

use self::fault::{Fault, corrupt, storage, unusable};
use self::listing::{LOG, Listing};
use self::scan::Actions;
use self::tip::Seen;
pub(crate) use self::tip::{Now, Tip, is_still, now};
use crate::error::{Error, ErrorCode, Stage};
use crate::model::features::Protocol;
use crate::model::state::{Metadata, StateError, TableState};
use crate::model::text::count;
use crate::model::version::{LogVersion, SchemaVersion};

/// How often a read is started over because a file vanished between the listing and its get.
const RESTARTS: usize = 3;

/// The newest commits are got a few at a time, since protocol and metadata may be in the first; a
/// log that goes on without them is read faster.
const NEAR: usize = 16;
const NEAR_IN_FLIGHT: usize = 8;
const FAR_IN_FLIGHT: usize = 32;

/// Says whether a table's properties carry the stamp that makes evidence of one needless.
pub(crate) type Stamped<'a> = &'a (dyn Fn(&IndexMap<String, String>) -> bool + Send + Sync);

/// Says whether nothing is to be done with a table that stands so.
pub(crate) type Settled<'a> = &'a (dyn Fn(&TableState) -> bool + Send + Sync);

/// What one read of a log gives.
#[derive(Debug, Clone)]
pub(crate) struct LogRead {
    pub(crate) state: TableState,
    pub(crate) tip: Tip,
    /// The version of the newest checkpoint when the log was listed.
    pub(crate) checkpoint: Option<LogVersion>,
    /// Whether the log had a checksum file for its newest version when it was listed.
    pub(crate) checksum: bool,
    /// Whether protocol or metadata come from a checksum file: nothing may be written or refused by them.
    pub(crate) is_shortcut: bool,
}

/// What stands at a location.
#[derive(Debug, Clone)]
#[allow(clippy::large_enum_variant, reason = "one value a read, taken apart at once")]
pub(crate) enum Found {
    Table(LogRead),
    /// Neither a table nor anything else.
    Nothing,
}

/// What a log gained since an earlier read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Since {
    /// How many commits are new.
    pub(crate) commits: u64,
    /// Whether one of them holds a metaData action.
    pub(crate) metadata: bool,
    /// Whether one of them holds a protocol action.
    pub(crate) protocol: bool,
}

/// Reads the log below the root of `store`.
///
/// The evidence of a stamp (the `txn` action of the application `evidence_id`) is looked up only if
/// `stamped` denies the table's properties, for it can cost the rest of the log.
///
/// With `settled`, a checksum file is believed where it says that nothing is to be done.
///
/// # Errors
/// - [`ErrorCode::NotATable`]: there is no log, but something else.
/// - [`ErrorCode::CorruptLog`]: a version is missing, or a file that is needed can't be read.
/// - [`ErrorCode::UnsupportedFeature`], [`ErrorCode::InvalidName`]: a schema that no reader takes.
/// - [`ErrorCode::Storage`]: the store failed, or files kept vanishing.
pub(crate) async fn read(
    store: &dyn ObjectStore,
    evidence_id: Option<&str>,
    stamped: Stamped<'_>,
    settled: Option<Settled<'_>>,
) -> Result<Found, Error> {
    let want = Want { evidence_id, stamped, settled };
    let mut hint = listing::hint(store).await?;
    let (mut torn, mut restarts) = (false, 0);
    let mut unlike = Unlike::default();
    loop {
        // Only the first listing trusts the hint; every other one shows the whole log.
        let hinted = hint.is_some();
        match Box::pin(attempt(store, hint.take(), want, &mut unlike)).await {
            Ok(found) => return Ok(found),
            Err(Fault::Failed(error) | Fault::Unreadable(error)) => return Err(error),
            Err(Fault::Torn(_)) if hinted => {}
            Err(Fault::Torn(error)) if torn => return Err(error),
            Err(Fault::Torn(_)) => torn = true,
            Err(Fault::Gone(path)) if restarts == RESTARTS => {
                let message =
                    format!("`{path}` was listed but is gone, {} in a row", count(restarts + 1, "time"));
                return Err(Error::new(ErrorCode::Storage, Stage::Read, message)
                    .with_hint("the log is being cleaned up or replaced; run again"));
            }
            Err(Fault::Gone(path)) => {
                tracing::debug!(%path, "a log file vanished while the log was read; reading it again");
                restarts += 1;
            }
        }
    }
}

/// Continues from an earlier read with the same `evidence_id`: gets the next version, and the next,
/// until one is not there; never lists.
///
/// A log that was cleaned up or replaced since then looks as if nothing were new: whoever commits
/// has to ask [`is_still`] as well.
///
/// # Errors
/// As [`read`]; [`ErrorCode::Missing`] if the table vanished.
pub(crate) async fn read_on(
    store: &dyn ObjectStore,
    read_before: LogRead,
    evidence_id: Option<&str>,
    stamped: Stamped<'_>,
) -> Result<(LogRead, Since), Error> {
    let want = Want { evidence_id, stamped, settled: None };
    let LogRead { state, mut tip, checkpoint, checksum, is_shortcut } = read_before;
    let (mut since, mut newer) = (Since::default(), Gathered::default());
    loop {
        let next = tip.log_version.next();
        let (actions, meta) = match scan::commit(store, next.get(), evidence_id).await {
            Ok(found) => found,
            Err(Fault::Gone(_)) => break,
            Err(Fault::Torn(error) | Fault::Unreadable(error) | Fault::Failed(error)) => return Err(error),
        };
        since.commits += 1;
        since.metadata |= actions.metadata.is_some();
        since.protocol |= actions.protocol.is_some();
        newer.replace(actions)?;
        tip = Tip { log_version: next, meta, seen: Seen::Got };
    }
    if since == Since::default() {
        return Ok((LogRead { state, tip, checkpoint, checksum, is_shortcut }, since));
    }
    let was_stamped = stamped(&state.metadata.configuration);
    let TableState { log_version: before, protocol, metadata, columns: _, evidence, recent_commits } = state;
    newer.protocol = newer.protocol.or(Some(protocol));
    newer.metadata = newer.metadata.or_else(|| Some((metadata, format!("`{LOG}`"))));
    newer.evidence = newer.evidence.or(evidence);
    if was_stamped && newer.lacks_evidence(want) {
        // A stamp that was there vanished; its evidence was not looked up as long as it stood.
        return match read(store, evidence_id, stamped, None).await? {
            Found::Table(again) => {
                let commits = again.state.log_version.get().saturating_sub(before.get());
                let protocol = since.protocol || newer.protocol.as_ref() != Some(&again.state.protocol);
                Ok((again, Since { commits, protocol, ..since }))
            }
            Found::Nothing => {
                Err(Error::new(ErrorCode::Missing, Stage::Read, "the table vanished while it was read"))
            }
        };
    }
    let mut state = newer.finish(tip.log_version, want)?;
    state.recent_commits = recent_commits.saturating_add(u32::try_from(since.commits).unwrap_or(u32::MAX));
    Ok((LogRead { state, tip, checkpoint, checksum, is_shortcut }, since))
}

/// Whether the log has a checkpoint; one listing.
///
/// # Errors
/// [`ErrorCode::Storage`] if the store failed.
pub(crate) async fn has_checkpoint(store: &dyn ObjectStore) -> Result<bool, Error> {
    Ok(listing::list(store, None).await?.has_checkpoint())
}

#[derive(Clone, Copy)]
struct Want<'a> {
    evidence_id: Option<&'a str>,
    stamped: Stamped<'a>,
    settled: Option<Settled<'a>>,
}

/// What tells a commit that was exchanged after it was listed from one that the store describes in two ways.
#[derive(Default)]
struct Unlike {
    /// A commit as it was listed, and as it was got.
    pair: Option<(ObjectMeta, ObjectMeta)>,
    /// Whether the store describes one object in two ways.
    two_ways: bool,
}

impl Unlike {
    /// Whether another object was got than the one that was listed. Where it is the same again, the store
    /// merely describes it in two ways.
    fn differs(&mut self, listed: &ObjectMeta, got: &ObjectMeta) -> bool {
        if self.two_ways || tip::is_listed(listed, got) {
            return false;
        }
        let pair = Some((listed.clone(), got.clone()));
        self.two_ways = self.pair == pair;
        self.pair = pair;
        !self.two_ways
    }
}

async fn attempt(
    store: &dyn ObjectStore,
    hint: Option<u64>,
    want: Want<'_>,
    unlike: &mut Unlike,
) -> Result<Found, Fault> {
    let mut listing = listing::list(store, hint).await?;
    listing.fill_gaps(store).await?;
    let listing = listing;
    // A hint may be older than the log or name what is gone; then the whole log says how it is.
    if hint.is_some() && !listing.has_checkpoint() {
        return Err(Fault::Torn(corrupt(format!("`{LOG}` has no checkpoint where its hint says"))));
    }
    let Some((version, meta)) = listing.tip() else { return nothing(store, &listing).await };
    let table = |gathered: Gathered, tip: Tip, is_shortcut| {
        let mut state = gathered.finish(tip.log_version, want)?;
        state.recent_commits = listing.recent_commits();
        let checkpoint = listing.newest_checkpoint().map(LogVersion::new);
        let checksum = listing.checksum.as_ref().is_some_and(|(at, _)| *at == version);
        Ok::<_, Error>(LogRead { state, tip, checkpoint, checksum, is_shortcut })
    };
    if let Some(settled) = want.settled
        && let Some((gathered, tip)) = Box::pin(shortcut::read(store, &listing, want)).await
        && let Ok(read) = table(gathered, tip, true)
        && settled(&read.state)
    {
        return Ok(Found::Table(read));
    }
    let mut tip = Tip { log_version: LogVersion::new(version), meta: meta.clone(), seen: Seen::Listed };
    let mut gathered = Gathered::default();
    let mut unreadable = None;
    for base in listing.bases() {
        let base = match (base, unreadable.take()) {
            (Ok(base), _) => base,
            (Err(_), Some(error)) => return Err(beyond(hint, error)),
            (Err(missing), None) => return Err(Fault::Torn(gap(missing, &listing))),
        };
        let commits = base.commits;
        let (near, far) = commits.split_at(commits.len().min(NEAR));
        let get =
            |version: u64| async move { (version, scan::commit(store, version, want.evidence_id).await) };
        let mut got = stream::iter(near.to_vec())
            .map(get)
            .buffered(NEAR_IN_FLIGHT)
            .chain(stream::iter(far.to_vec()).map(get).buffered(FAR_IN_FLIGHT));
        while let Some((version, commit)) = got.next().await {
            let (actions, meta) = commit?;
            // Another object than the listed one is another table's, or was put into the place of one that
            // was cleaned up: what is read before and after it would be taken for one table.
            if listing.commit(version).is_some_and(|listed| unlike.differs(listed, &meta)) {
                return Err(Fault::Gone(meta.location));
            }
            if meta.location == tip.meta.location {
                tip = Tip { meta, seen: Seen::Got, ..tip };
            }
            gathered.add_older(actions)?;
            if gathered.is_enough(want) {
                break;
            }
        }
        drop(got);
        let Some(checkpoint) = base.checkpoint else { break };
        if gathered.is_enough(want) {
            break;
        }
        let mut reader = checkpoint::Reader::new(store, checkpoint, want.evidence_id);
        match gathered.complete(&mut reader, want).await {
            Ok(()) => break,
            Err(Fault::Unreadable(error)) => {
                tracing::warn!(
                    version = checkpoint.version,
                    "a checkpoint can't be read; going further back"
                );
                unreadable = Some(error);
            }
            Err(fault) => return Err(fault),
        }
    }
    if let Some(error) = unreadable {
        return Err(beyond(hint, error));
    }
    Ok(Found::Table(table(gathered, tip, false)?))
}

/// Nothing that is listed replaces an unreadable checkpoint; a listing from the start may.
fn beyond(hint: Option<u64>, unreadable: Error) -> Fault {
    if hint.is_some() { Fault::Torn(unreadable) } else { Fault::Unreadable(unreadable) }
}

fn gap(missing: u64, listing: &Listing) -> Error {
    let newest = listing.tip().map(|(version, _)| version).unwrap_or_default();
    let why = if listing.has_checkpoint() { "" } else { " and there is no complete checkpoint" };
    corrupt(format!("log version `{missing}` is missing below version `{newest}`{why}"))
}

/// What there is where no log is.
async fn nothing(store: &dyn ObjectStore, listing: &Listing) -> Result<Found, Fault> {
    if listing.others > 0 {
        let files = count(listing.others, "file");
        let message = format!("`{LOG}` holds {files} but neither a commit nor a complete checkpoint");
        return Err(Fault::Torn(corrupt(message)));
    }
    let root = store.list_with_delimiter(None).await.map_err(|e| storage("the table's folder", e))?;
    let is_log = |folder: &&object_store::path::Path| folder.as_ref() == LOG;
    let folders = root.common_prefixes.iter().filter(|f| !is_log(f)).count();
    let objects = root.objects.len();
    if objects == 0 && folders == 0 {
        return Ok(Found::Nothing);
    }
    let found: Vec<String> = [(objects, "object"), (folders, "folder")]
        .into_iter()
        .filter(|(n, _)| *n > 0)
        .map(|(n, noun)| count(n, noun))
        .collect();
    let message = format!("there is no Delta log, but {}", found.join(" and "));
    // The log was listed first: another writer may have created the table since then, and written to it.
    Err(Fault::Torn(
        Error::new(ErrorCode::NotATable, Stage::Read, message)
            .with_hint("check the location; a new table needs an empty one"),
    ))
}

/// What was found so far, the newest of each.
#[derive(Default)]
struct Gathered {
    protocol: Option<Protocol>,
    /// With where it stands, for errors.
    metadata: Option<(Metadata, String)>,
    evidence: Option<SchemaVersion>,
}

impl Gathered {
    /// Takes what is still missing.
    fn add_older(&mut self, actions: Actions) -> Result<(), Error> {
        let Actions { protocol, metadata, txn } = actions;
        if let (None, Some(raw)) = (&self.protocol, protocol) {
            self.protocol = Some(Protocol::parse(&raw.text).map_err(|e| unusable(&raw.at, e))?);
        }
        if let (None, Some(raw)) = (&self.metadata, metadata) {
            let metadata = Metadata::parse(&raw.text).map_err(|e| unusable(&raw.at, e))?;
            self.metadata = Some((metadata, raw.at));
        }
        self.evidence = self.evidence.or(txn);
        Ok(())
    }

    /// Takes everything.
    fn replace(&mut self, newer: Actions) -> Result<(), Error> {
        let older = std::mem::take(self);
        self.add_older(newer)?;
        self.protocol = self.protocol.take().or(older.protocol);
        self.metadata = self.metadata.take().or(older.metadata);
        self.evidence = self.evidence.or(older.evidence);
        Ok(())
    }

    /// Takes what is missing from a checkpoint.
    async fn complete(&mut self, reader: &mut checkpoint::Reader<'_>, want: Want<'_>) -> Result<(), Fault> {
        if self.protocol.is_none() || self.metadata.is_none() {
            let found = reader.actions(self.protocol.is_none(), self.metadata.is_none()).await?;
            self.add_older(found)?;
        }
        if self.lacks_evidence(want) {
            self.evidence = reader.evidence().await?;
        }
        Ok(())
    }

    fn lacks_evidence(&self, want: Want<'_>) -> bool {
        let unstamped = |(metadata, _): &(Metadata, String)| !(want.stamped)(&metadata.configuration);
        want.evidence_id.is_some() && self.evidence.is_none() && self.metadata.as_ref().is_some_and(unstamped)
    }

    fn is_enough(&self, want: Want<'_>) -> bool {
        self.protocol.is_some() && self.metadata.is_some() && !self.lacks_evidence(want)
    }

    fn finish(self, version: LogVersion, want: Want<'_>) -> Result<TableState, Error> {
        let absent =
            |action: &str| corrupt(format!("the log up to version `{version}` has no {action} action"));
        let protocol = self.protocol.ok_or_else(|| absent("protocol"))?;
        let (metadata, at) = self.metadata.ok_or_else(|| absent("metaData"))?;
        // Evidence beside a stamp says nothing; without this it would depend on where the read ended.
        let evidence = self.evidence.filter(|_| !(want.stamped)(&metadata.configuration));
        TableState::new(version, protocol, metadata, evidence).map_err(|e: StateError| unusable(&at, e))
    }
}

#[cfg(test)]
mod tests;
