//! How long a store is waited for.

use std::time::{Duration, Instant};

use super::Migrator;
use crate::delta::read::fault::is_busy;
use crate::error::{Error, ErrorCode, Stage};
use crate::model::text;
use crate::retry::{Budget, pauses};

/// A budget for lost races may be shorter than one honest read.
const LEAST_READ: Duration = Duration::from_secs(10);

impl Migrator {
    /// The time for one table begins.
    pub(super) fn start(&self) -> Budget {
        Budget::start(self.budget)
    }

    /// A store that never answers must not hold up a sink's start, or the tables behind this one. One
    /// that has no time is asked again while the budget lasts.
    pub(super) async fn in_time<T, F>(&self, budget: &Budget, mut work: impl FnMut() -> F) -> Result<T, Error>
    where
        F: Future<Output = Result<T, Error>>,
    {
        let (began, time) = (Instant::now(), self.budget.max(LEAST_READ));
        let (mut waits, mut attempts) = (pauses(), 0);
        let late = |message: String| {
            Error::new(ErrorCode::Storage, Stage::Read, message)
                .with_hint("run it again, or give it more time")
        };
        loop {
            attempts += 1;
            let answer = tokio::time::timeout(time.saturating_sub(began.elapsed()), work()).await;
            let late_answer = |_| Err(late(format!("the store did not answer within {} s", time.as_secs())));
            match answer.unwrap_or_else(late_answer) {
                Err(error) if is_busy(&error) && budget.is_spent() => {
                    let attempts = text::count(attempts, "attempt");
                    let seconds = began.elapsed().as_secs_f64();
                    let message = format!("the store was too busy to answer: {attempts} in {seconds:.1} s");
                    return Err(late(message).with_source(error));
                }
                Err(error) if is_busy(&error) => tracing::debug!(%error, "the store is busy"),
                done => return done,
            }
            tokio::time::sleep(waits.next().unwrap_or_default().min(budget.left())).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::model::version::Namespace;

    fn migrator(budget: Duration) -> Migrator {
        Migrator::builder(Namespace::new("app").unwrap()).budget(budget).build().unwrap()
    }

    fn failure(text: &'static str) -> Error {
        Error::new(ErrorCode::Storage, Stage::Read, "`x` can't be read from the store").with_source(text)
    }

    /// Work that fails so often with this text; what came of it, and how often it was begun.
    async fn work(budget: Duration, failures: usize, text: &'static str) -> (Result<(), Error>, usize) {
        let (migrator, calls) = (migrator(budget), Cell::new(0));
        let work = || {
            calls.set(calls.get() + 1);
            let done = if calls.get() > failures { Ok(()) } else { Err(failure(text)) };
            std::future::ready(done)
        };
        let done = migrator.in_time(&migrator.start(), work).await;
        (done, calls.get())
    }

    const BUSY: &str = "Server returned non-2xx status code: 503 Service Unavailable: SlowDown";

    #[tokio::test]
    async fn a_busy_store_is_asked_again_while_the_budget_lasts() {
        let (done, calls) = work(Duration::from_secs(60), 3, BUSY).await;
        assert_eq!((done.is_ok(), calls), (true, 4));
        let (done, calls) = work(Duration::from_millis(100), usize::MAX, BUSY).await;
        let error = done.unwrap_err();
        assert_eq!(error.code(), ErrorCode::Storage);
        assert!(calls > 1 && error.message().contains(&format!(": {calls} attempts in ")), "{error}");
        assert!(error.causes().iter().any(|cause| cause.contains("503")), "{:?}", error.causes());
    }

    #[tokio::test]
    async fn another_failure_is_told_at_once() {
        for text in ["403 Forbidden", "connection refused", "500 Internal Server Error"] {
            let (done, calls) = work(Duration::from_secs(60), 1, text).await;
            assert_eq!((done.unwrap_err().message(), calls), ("`x` can't be read from the store", 1));
        }
    }
}
