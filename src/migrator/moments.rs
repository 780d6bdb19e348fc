//! Where times, ids and pauses come from.

use std::fmt;
use std::pin::pin;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use futures::future::{BoxFuture, Either, FutureExt as _, select};
use uuid::Uuid;

/// The clock and the source of ids. Only the compat corpus and simulations have others than the computer's,
/// so that the same build does the same each time; no program may choose them: a commit id that is
/// used twice makes another writer's commit look like our own. So this is no part of the API.
pub trait Moments: fmt::Debug + Send + Sync {
    /// The time that commits and histories say.
    fn now(&self) -> DateTime<Utc>;

    /// A UUID that nobody had before.
    fn id(&self) -> Uuid;

    /// The time that budgets are measured by: since some moment, and never less than before.
    fn elapsed(&self) -> Duration {
        static BEGAN: LazyLock<Instant> = LazyLock::new(Instant::now);
        BEGAN.elapsed()
    }

    /// Ends when so much time has gone by.
    fn sleep(&self, time: Duration) -> BoxFuture<'static, ()> {
        tokio::time::sleep(time).boxed()
    }

    /// What the jitter of pauses follows from; chance where it is none.
    fn jitter(&self) -> Option<u64> {
        None
    }
}

/// The computer's clock, and chance.
#[derive(Debug)]
pub(crate) struct Real;

impl Moments for Real {
    fn now(&self) -> DateTime<Utc> {
        Utc::now()
    }

    fn id(&self) -> Uuid {
        Uuid::new_v4()
    }
}

/// The work's end, or none where the time was over first.
pub(crate) async fn timeout<T>(
    moments: &dyn Moments,
    limit: Duration,
    work: impl Future<Output = T>,
) -> Option<T> {
    match select(pin!(work), moments.sleep(limit)).await {
        Either::Left((done, _)) => Some(done),
        Either::Right(((), _)) => None,
    }
}
