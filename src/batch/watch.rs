//! What the work on one table can tell the run that it is a part of, and learn from it.

use std::sync::Arc;

use super::Observer;
use super::stop::Stop;

tokio::task_local! {
    static WATCH: Watch;
}

/// The run that a table's work belongs to; only data steps take so long that they ask.
#[cfg_attr(not(feature = "datafusion"), allow(dead_code))]
#[derive(Clone)]
pub(super) struct Watch {
    pub(super) uri: String,
    pub(super) stop: Stop,
    pub(super) observer: Arc<dyn Observer>,
}

/// How far a data step has come with a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Went {
    /// Files that were gone through, of those that the step looks at.
    pub files: u64,
    /// All of them.
    pub of_files: u64,
    /// Their bytes, as far as they were gone through.
    pub bytes: u64,
    /// The bytes of all of them.
    pub of_bytes: u64,
    /// Rows that were written.
    pub rows: u64,
}

impl Watch {
    pub(super) async fn over<T>(self, work: impl Future<Output = T>) -> T {
        WATCH.scope(self, work).await
    }
}

/// The way to end the run that this is a part of, if it is a part of one.
#[cfg(feature = "datafusion")]
pub(crate) fn stop() -> Option<Stop> {
    WATCH.try_with(|watch| watch.stop.clone()).ok()
}

/// Tells the run's observer.
#[cfg(feature = "datafusion")]
pub(crate) fn went(went: Went) {
    let _ = WATCH.try_with(|watch| watch.observer.went_through(&watch.uri, went));
}

#[cfg(feature = "datafusion")]
impl Stop {
    /// Whether somebody asked for the run's end.
    pub(crate) fn is_asked(&self) -> bool {
        self.reason() == Some(super::stop::Why::Asked)
    }
}
