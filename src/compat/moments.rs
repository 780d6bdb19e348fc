//! A clock and ids that are the same in every run.

use std::sync::atomic::{AtomicU64, Ordering};

use chrono::{DateTime, Utc};
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use crate::migrator::Moments;

/// When every table of a corpus begins: 2026-01-01T00:00:00Z.
const START: i64 = 1_767_225_600;

/// Moments that follow from a name: a second later each time, an id that no other name gives.
#[derive(Debug)]
pub(super) struct Fixed {
    seed: String,
    count: AtomicU64,
}

impl Fixed {
    pub(super) fn new(seed: impl Into<String>) -> Self {
        Self { seed: seed.into(), count: AtomicU64::new(0) }
    }

    fn next(&self) -> u64 {
        self.count.fetch_add(1, Ordering::Relaxed)
    }
}

impl Moments for Fixed {
    fn now(&self) -> DateTime<Utc> {
        let seconds = i64::try_from(self.next()).unwrap_or_default();
        DateTime::from_timestamp(START + seconds, 0).unwrap_or_default()
    }

    fn id(&self) -> Uuid {
        let digest = Sha256::digest(format!("{}\n{}", self.seed, self.next()).as_bytes());
        let mut bytes = [0; 16];
        bytes.iter_mut().zip(digest.iter()).for_each(|(to, from)| *to = *from);
        uuid::Builder::from_random_bytes(bytes).into_uuid()
    }
}
