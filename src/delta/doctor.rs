//! What a store can and can't do, found out by asking it.

mod cause;
mod scratch;
mod trials;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::pin::pin;
use std::time::Duration;

use futures::future::{Either, select};
use serde::Serialize;
use url::Url;

use self::scratch::Scratch;
use super::location::options::{Family, check_no_lock};
use super::location::{self, Location};
use crate::error::Error;

/// What became of one check of [`diagnose`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CheckOutcome {
    /// The store does what is needed.
    Ok,
    /// It does not; the hint says what to set.
    Failed,
    /// There was nothing to find out, or an earlier check failed that it rests on.
    Skipped,
}

/// One thing that a store must be able to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Check {
    /// Its stable name: `open`, `lock_provider`, `list`, `read`, `hard_links`, `conditional_create`,
    /// `racing_creates`, `delete`, or `interrupted`; more may come.
    pub check: &'static str,
    /// What became of it.
    pub outcome: CheckOutcome,
    /// One fact, for people.
    pub message: String,
    /// What is missing and what to set, where it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl Check {
    fn new(check: &'static str, outcome: CheckOutcome, message: impl Into<String>) -> Self {
        Self { check, outcome, message: message.into(), hint: None }
    }

    fn ok(check: &'static str, message: impl Into<String>) -> Self {
        Self::new(check, CheckOutcome::Ok, message)
    }

    fn skipped(check: &'static str, message: impl Into<String>) -> Self {
        Self::new(check, CheckOutcome::Skipped, message)
    }

    fn failed(check: &'static str, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..Self::new(check, CheckOutcome::Failed, message) }
    }

    fn refused(check: &'static str, error: &Error) -> Self {
        let causes: Vec<String> = std::iter::once(error.message().to_owned()).chain(error.causes()).collect();
        Self {
            hint: error.hint().map(str::to_owned),
            ..Self::new(check, CheckOutcome::Failed, causes.join(": "))
        }
    }

    fn is_failed(&self) -> bool {
        self.outcome == CheckOutcome::Failed
    }
}

/// What [`diagnose`] found out about a store.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Diagnosis {
    /// The location, without credentials.
    pub uri: String,
    /// The checks, in the order in which they were made.
    pub checks: Vec<Check>,
    /// Milliseconds that a write took, in the middle of those that were made one after the other; none
    /// where none succeeded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub median_write_ms: Option<f64>,
    /// Whether no check failed: tables can be migrated there.
    pub ok: bool,
}

/// Finds out whether tables at a location can be migrated: lists, reads, proves that the store creates
/// an object only where there is none (two writes in a row, then 50 rounds of 20 that race), and
/// removes its scratch objects again.
///
/// These are `<uri>/_delta_migrate_doctor/<uuid>-…`, which readers of Delta tables and VACUUM pass over.
/// They are removed after a failure, too, and once `stop` resolves, which ends the examination.
/// A few minutes at most, some seconds on a store that answers.
///
/// # Errors
/// [`ErrorCode::Usage`](crate::ErrorCode::Usage): the text is no location, or a local folder that does
/// not exist. Whatever is wrong with the store itself is a failed check instead.
///
/// # Examples
/// ```
/// # async fn example() -> Result<(), delta_migrate::Error> {
/// let found = delta_migrate::diagnose("memory:///t", &Default::default(), std::future::pending()).await?;
/// assert!(found.ok);
/// # Ok(())
/// # }
/// # tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap().block_on(example()).unwrap();
/// ```
pub async fn diagnose(
    uri: &str,
    options: &BTreeMap<String, String>,
    stop: impl Future<Output = ()>,
) -> Result<Diagnosis, Error> {
    let url = location::parse(uri)?;
    check_folder(&url)?;
    let mut checks = Vec::new();
    let opened = location::root_store_beside_locks(&url, options)
        .and_then(|store| location::in_store(&url, store, options));
    let family = Family::of(&url);
    let name = family.map_or("a store", Family::name);
    match &opened {
        Ok(_) => checks.push(Check::ok("open", format!("{name}; nothing was asked yet"))),
        Err(error) => checks.push(Check::refused("open", error)),
    }
    checks.push(lock_provider(&url, family, options));
    let Ok(location) = opened else {
        return Ok(finished(location::redacted(&url), checks, Vec::new()));
    };
    Ok(examine(&location, family, folder_of(&url), checks, stop).await)
}

/// The checks of a store that is open, after those before.
async fn examine(
    location: &Location,
    family: Option<Family>,
    folder: Option<PathBuf>,
    mut checks: Vec<Check>,
    stop: impl Future<Output = ()>,
) -> Diagnosis {
    let scratch = Scratch::new(location, folder);
    let mut writes = Vec::new();
    let interrupted = {
        let work = pin!(trials::run(&scratch, family, &mut checks, &mut writes));
        matches!(select(pin!(stop), work).await, Either::Left(_))
    };
    if interrupted {
        checks.push(Check::failed("interrupted", "the examination was cut short", "run it again"));
    }
    checks.push(scratch.remove().await);
    finished(location.uri().to_owned(), checks, writes)
}

fn finished(uri: String, checks: Vec<Check>, mut writes: Vec<Duration>) -> Diagnosis {
    writes.sort();
    let median = writes.get(writes.len() / 2).map(|d| (d.as_secs_f64() * 10_000.0).round() / 10.0);
    let ok = !checks.iter().any(Check::is_failed);
    Diagnosis { uri, checks, median_write_ms: median, ok }
}

/// A folder is not made by looking at it.
fn check_folder(url: &Url) -> Result<(), Error> {
    let Some(folder) = folder_of(url).filter(|folder| !folder.is_dir()) else { return Ok(()) };
    let what = if folder.exists() { "is no folder" } else { "does not exist" };
    Err(Error::usage(format!("the folder `{}` {what}", location::redacted(url)))
        .with_hint("name a folder that is there: the table's, or the one that its tables will lie in"))
}

/// Without the slash at its end, behind which a file would not be seen.
fn folder_of(url: &Url) -> Option<PathBuf> {
    let path = (url.scheme() == "file").then(|| url.to_file_path().ok()).flatten();
    path.map(|path| path.components().collect())
}

fn lock_provider(url: &Url, family: Option<Family>, options: &BTreeMap<String, String>) -> Check {
    const NAME: &str = "lock_provider";
    if family != Some(Family::S3) {
        return Check::skipped(NAME, "only writers on S3 lock elsewhere");
    }
    match check_no_lock(url, options) {
        Ok(()) => Check::ok(NAME, "none is set here; see to it that no other writer of these tables has one"),
        Err(error) => Check::refused(NAME, &error),
    }
}

#[cfg(test)]
mod tests;
