//! The time budget of one table's work, and the pauses between attempts.

use std::time::{Duration, Instant};

use backon::{BackoffBuilder, ExponentialBuilder};

/// How long lost races are tried again, counted from the first attempt.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Budget {
    limit: Duration,
    started: Instant,
}

impl Budget {
    pub(crate) fn start(limit: Duration) -> Self {
        Self { limit, started: Instant::now() }
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// What is left; zero once it is spent.
    pub(crate) fn left(&self) -> Duration {
        self.limit.saturating_sub(self.elapsed())
    }

    pub(crate) fn is_spent(&self) -> bool {
        self.left().is_zero()
    }
}

/// Pauses that grow from 20 ms to 2 s, with jitter, so that writers which lost the same race do not
/// meet again.
pub(crate) fn pauses() -> impl Iterator<Item = Duration> + Send {
    ExponentialBuilder::default()
        .with_min_delay(Duration::from_millis(20))
        .with_max_delay(Duration::from_secs(2))
        .with_factor(2.0)
        .with_jitter()
        .without_max_times()
        .build()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_are_bounded() {
        let all: Vec<Duration> = pauses().take(50).collect();
        assert_eq!(all.len(), 50, "they never run out");
        assert!(
            all.iter().all(|p| *p >= Duration::from_millis(20) && *p <= Duration::from_secs(4)),
            "{all:?}"
        );
        assert!(all[40] > all[0]);
    }

    #[test]
    fn a_budget_is_spent_when_its_time_is_over() {
        assert!(Budget::start(Duration::ZERO).is_spent());
        let long = Budget::start(Duration::from_secs(3600));
        assert!(!long.is_spent() && long.left() <= Duration::from_secs(3600));
    }
}
