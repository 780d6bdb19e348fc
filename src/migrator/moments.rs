//! Where a commit's time and ids come from.

use std::fmt;

use chrono::{DateTime, Utc};
use uuid::Uuid;

/// The clock and the source of ids. Only the compat corpus has others than [`Real`], so that the same
/// build writes the same bytes each time; nobody else may choose them: a commit id that is used twice
/// makes another writer's commit look like our own.
pub(crate) trait Moments: fmt::Debug + Send + Sync {
    fn now(&self) -> DateTime<Utc>;

    /// A UUID that nobody had before.
    fn id(&self) -> Uuid;
}

/// The computer's clock, and chance.
#[derive(Debug)]
pub(super) struct Real;

impl Moments for Real {
    fn now(&self) -> DateTime<Utc> {
        Utc::now()
    }

    fn id(&self) -> Uuid {
        Uuid::new_v4()
    }
}
