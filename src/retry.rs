//! The time budget of one table's work, and the pauses between attempts.

use std::sync::Arc;
use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBuilder};

use crate::migrator::moments::{self, Moments};

/// How long lost races are tried again, counted from the first attempt.
#[derive(Debug, Clone)]
pub(crate) struct Budget {
    limit: Duration,
    started: Duration,
    moments: Arc<dyn Moments>,
}

impl Budget {
    pub(crate) fn start(limit: Duration, moments: Arc<dyn Moments>) -> Self {
        Self { limit, started: moments.elapsed(), moments }
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.moments.elapsed().saturating_sub(self.started)
    }

    /// What is left; zero once it is spent.
    pub(crate) fn left(&self) -> Duration {
        self.limit.saturating_sub(self.elapsed())
    }

    pub(crate) fn is_spent(&self) -> bool {
        self.left().is_zero()
    }

    /// Time that was spent on something else does not count.
    pub(crate) fn leave_out(&mut self, time: Duration) {
        self.started = self.started.saturating_add(time);
    }

    /// Waits so long, but not beyond the budget's end.
    pub(crate) async fn pause(&self, time: Duration) {
        self.moments.sleep(time.min(self.left())).await;
    }

    /// Pauses between attempts.
    pub(crate) fn pauses(&self) -> impl Iterator<Item = Duration> + Send + use<> {
        pauses(self.moments.jitter())
    }

    /// The work's end, or none where what is left of the budget, or `least`, was over first.
    pub(crate) async fn within<T>(&self, least: Duration, work: impl Future<Output = T>) -> Option<T> {
        moments::timeout(self.moments.as_ref(), self.left().max(least), work).await
    }
}

/// Pauses that grow from 20 ms to 2 s, with jitter, so that writers which lost the same race do not
/// meet again.
fn pauses(jitter: Option<u64>) -> impl Iterator<Item = Duration> + Send + use<> {
    let pauses = ExponentialBuilder::default()
        .with_min_delay(Duration::from_millis(20))
        .with_max_delay(Duration::from_secs(2))
        .with_factor(2.0)
        .with_jitter()
        .without_max_times();
    jitter.map_or(pauses, |seed| pauses.with_jitter_seed(seed)).build()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_are_bounded() {
        let all: Vec<Duration> = pauses(None).take(50).collect();
        assert_eq!(all.len(), 50, "they never run out");
        assert!(
            all.iter().all(|p| *p >= Duration::from_millis(20) && *p <= Duration::from_secs(4)),
            "{all:?}"
        );
        assert!(all[40] > all[0]);
    }

    #[test]
    fn a_budget_is_spent_when_its_time_is_over() {
        let start = |limit| Budget::start(limit, Arc::new(moments::Real));
        assert!(start(Duration::ZERO).is_spent());
        let long = start(Duration::from_secs(3600));
        assert!(!long.is_spent() && long.left() <= Duration::from_secs(3600));
        let mut short = start(Duration::from_millis(20));
        std::thread::sleep(Duration::from_millis(30));
        assert!(short.is_spent());
        short.leave_out(short.elapsed());
        assert!(!short.is_spent() || short.elapsed() >= Duration::from_millis(20));
    }
}
