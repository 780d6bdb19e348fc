//! From sources to a stream of tables, each once.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use futures::stream::{self, BoxStream};
use futures::{FutureExt as _, StreamExt as _};
use sha2::{Digest as _, Sha256};

use super::stop::Stop;
use crate::catalog::{Found, Source, Trust};
use crate::delta::location;
use crate::error::Error;
use crate::migrator::Migrator;
use crate::model::kind::{Adopt, Kind};
use crate::model::report::{CATALOG_STALE, ErrorReport, SourceReport, TableReport};

/// More errors of one source than these are only counted.
const MOST_ERRORS: usize = 20;

/// A table to work on, or one that its source could say no more of than what is wrong with it.
pub(super) struct Task {
    /// The table as reports name it.
    pub(super) uri: String,
    pub(super) found: Result<Found, Box<TableReport>>,
    /// Where it stands in the report: its source, and its place in a list of named ones.
    pub(super) place: (usize, usize),
}

/// The tables of all sources, one source after the other, so that of two rules for one table the
/// first one counts in every run.
pub(super) struct Tasks<'a> {
    sources: &'a [Box<dyn Source>],
    shard: (u32, u32),
    stop: Stop,
    seen: Mutex<HashSet<String>>,
    reports: Mutex<Vec<SourceReport>>,
}

impl<'a> Tasks<'a> {
    pub(super) fn new(shard: (u32, u32), sources: &'a [Box<dyn Source>], stop: Stop) -> Self {
        let reports = sources.iter().map(|s| SourceReport { source: s.name(), ..SourceReport::default() });
        Self { sources, shard, stop, seen: Mutex::default(), reports: Mutex::new(reports.collect()) }
    }

    /// What the sources gave so far; nothing of a list, whose tables are all told one by one.
    pub(super) fn reports(&self) -> Vec<SourceReport> {
        let reports = self.reports.lock().unwrap_or_else(PoisonError::into_inner);
        let is_list = |r: &&SourceReport| r.tables > 0 && r.named == r.tables && r.failures == 0;
        reports.iter().filter(|r| !is_list(r)).cloned().collect()
    }

    pub(super) fn stream(&self) -> BoxStream<'_, Task> {
        let of_source = move |(n, source): (usize, &'a dyn Source)| {
            let tables = until_stopped(source.tables(), self.stop.clone());
            let tables = tables.filter_map(move |item| std::future::ready(self.task(n, item)));
            let end = stream::once(async move {
                // A source that was cut short says so by not having come here.
                if self.stop.reason().is_none() {
                    self.report(n, |r| r.complete = true);
                }
                None
            });
            tables.map(Some).chain(end).filter_map(std::future::ready)
        };
        let sources = self.sources.iter().map(|source| &**source);
        stream::iter(sources.enumerate()).flat_map(of_source).boxed()
    }

    /// None where there is nothing to do: a duplicate, another shard's table, the source's own error.
    fn task(&self, n: usize, item: Result<Found, Error>) -> Option<Task> {
        let found = match item {
            Ok(found) => found,
            Err(error) => return self.failure(n, &error),
        };
        // What is no location fails when its turn comes, with the reason.
        let uri = location::named(&found.uri).unwrap_or_else(|_| location::shown(&found.uri));
        let key = location::canonical(&found.uri).unwrap_or_else(|_| uri.clone());
        let mut place = (n, 0);
        let mut is_ours = true;
        let first = self.seen.lock().unwrap_or_else(PoisonError::into_inner).insert(key.clone());
        self.report(n, |r| {
            r.tables += 1;
            if found.trust != Trust::Found {
                place.1 = r.tables as usize;
                r.named += 1;
            }
            if !first {
                r.duplicates += 1;
            } else if shard_of(&key, self.shard.1) != self.shard.0 {
                r.other_shards += 1;
                is_ours = false;
            }
        });
        (first && is_ours).then_some(Task { uri, found: Ok(found), place })
    }

    fn failure(&self, n: usize, error: &Error) -> Option<Task> {
        if let Some(table) = error.table() {
            if shard_of(table, self.shard.1) != self.shard.0 {
                return None;
            }
            self.report(n, |r| r.tables += 1);
            let report = TableReport::of_error(table, "", None, error);
            return Some(Task { uri: table.to_owned(), found: Err(Box::new(report)), place: (n, 0) });
        }
        let report = ErrorReport::of(error);
        self.report(n, |r| {
            r.failures += 1;
            if r.errors.len() < MOST_ERRORS {
                r.errors.push(report);
            }
        });
        None
    }

    fn report(&self, n: usize, change: impl FnOnce(&mut SourceReport)) {
        if let Some(report) = self.reports.lock().unwrap_or_else(PoisonError::into_inner).get_mut(n) {
            change(report);
        }
    }
}

/// The source's tables; once stopped only those that it has at hand, so that named ones are all told.
fn until_stopped<'s>(
    tables: BoxStream<'s, Result<Found, Error>>,
    stop: Stop,
) -> BoxStream<'s, Result<Found, Error>> {
    stream::unfold((tables, stop), |(mut tables, stop)| async move {
        let item = if stop.reason().is_some() {
            tables.next().now_or_never().flatten()
        } else {
            tokio::select! {
                biased;
                item = tables.next() => item,
                () = stop.wait() => tables.next().now_or_never().flatten(),
            }
        };
        item.map(|item| (item, (tables, stop)))
    })
    .boxed()
}

/// The shard, from 0, that a table belongs to.
fn shard_of(uri: &str, count: u32) -> u32 {
    let digest = Sha256::digest(uri.as_bytes());
    let head = digest.iter().take(8).fold(0_u64, |n, byte| n << 8 | u64::from(*byte));
    u32::try_from(head % u64::from(count.max(1))).unwrap_or_default()
}

/// The kinds, and the same ones with the ways of adoption that tables ask for.
pub(super) struct Kinds {
    plain: BTreeMap<String, Arc<Kind>>,
    adopting: Mutex<BTreeMap<(String, &'static str), Arc<Kind>>>,
}

impl Kinds {
    pub(super) fn of(migrator: &Migrator) -> Self {
        let kinds = migrator.kind_names().filter_map(|name| migrator.kind(name).ok());
        let plain = kinds.map(|kind| (kind.name().to_owned(), Arc::new(kind.clone()))).collect();
        Self { plain, adopting: Mutex::default() }
    }

    /// The kind as it is used for one table: a table that was merely found is adopted only where its
    /// kind says how it is told from a stranger's.
    pub(super) fn get(&self, migrator: &Migrator, name: &str, found: &Found) -> Result<Arc<Kind>, Error> {
        let Some(kind) = self.plain.get(name) else {
            return Err(migrator.kind(name).err().unwrap_or_else(|| Error::usage("there is no such kind")));
        };
        let is_sure = found.trust != Trust::Found || !kind.identified_by().is_empty();
        let adopt = if is_sure { found.adopt } else { Some(Adopt::Refuse) };
        let Some(adopt) = adopt.filter(|a| *a != kind.adopt()) else { return Ok(kind.clone()) };
        let mut adopting = self.adopting.lock().unwrap_or_else(PoisonError::into_inner);
        let made = || Arc::new(Kind::clone(kind).with_adopt(adopt));
        Ok(adopting.entry((name.to_owned(), adopt.as_str())).or_insert_with(made).clone())
    }
}

/// Warns where the catalog's own copy of the columns is not what the table has.
pub(super) fn compare_with_catalog(mut report: TableReport, found: &Found) -> TableReport {
    let columns = std::mem::take(&mut report.columns);
    let Some(copy) = &found.columns else { return report };
    if report.error.is_some() || columns.is_empty() {
        return report;
    }
    // Catalogs keep names in lower case.
    let lower = |names: &[String]| names.iter().map(|n| n.to_lowercase()).collect::<HashSet<_>>();
    let (has, keeps) = (lower(&columns), lower(copy));
    let missing = |of: &[String], there: &HashSet<String>| {
        let names = of.iter().filter(|n| !there.contains(&n.to_lowercase()));
        names.cloned().collect::<Vec<String>>()
    };
    let (lacks, extra) = (missing(&columns, &keeps), missing(copy, &has));
    let parts: Vec<String> = [("lacks", lacks), ("has, unlike the table,", extra)]
        .into_iter()
        .filter(|(_, names)| !names.is_empty())
        .map(|(what, names)| format!("{what} {}", crate::model::text::list(&names)))
        .collect();
    if !parts.is_empty() {
        report.warnings.push(format!(
            "{CATALOG_STALE}: the catalog's own copy of the columns {}; refresh it with the tool that \
             registered the table",
            parts.join(" and ")
        ));
    }
    report
}
