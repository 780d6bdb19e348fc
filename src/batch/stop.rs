//! The way to end a run early.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use tokio::sync::Notify;

use crate::error::{Error, ErrorCode, Stage};

/// Ends a run early: what was begun is finished, nothing else is begun.
#[derive(Debug, Clone)]
pub struct Stop(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    why: AtomicU8,
    asked: AtomicBool,
    waiting: Notify,
}

/// Why a run ends early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Why {
    Asked,
    Failure,
}

impl Stop {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Inner { why: AtomicU8::new(0), asked: AtomicBool::new(false), waiting: Notify::new() }))
    }

    /// Ends the run; false if somebody had asked for that before.
    pub fn now(&self) -> bool {
        self.because(Why::Asked);
        !self.0.asked.swap(true, Ordering::SeqCst)
    }

    pub(super) fn after_a_failure(&self) {
        self.because(Why::Failure);
    }

    fn because(&self, why: Why) {
        let _ = self.0.why.compare_exchange(0, why as u8 + 1, Ordering::SeqCst, Ordering::SeqCst);
        self.0.waiting.notify_waiters();
    }

    /// What becomes of a table that is not begun.
    #[cfg(feature = "cli")]
    pub(crate) fn error(&self) -> Option<Error> {
        self.reason().map(Why::error)
    }

    pub(super) fn reason(&self) -> Option<Why> {
        match self.0.why.load(Ordering::SeqCst) {
            0 => None,
            1 => Some(Why::Asked),
            _ => Some(Why::Failure),
        }
    }

    /// Comes when the run is to end.
    pub(crate) async fn wait(&self) {
        let mut waiting = std::pin::pin!(self.0.waiting.notified());
        // Registered before the look, so that no call in between is missed.
        waiting.as_mut().enable();
        if self.reason().is_none() {
            waiting.await;
        }
    }
}

impl Why {
    pub(super) fn error(self) -> Error {
        let message = match self {
            Self::Asked => "interrupted before its turn",
            Self::Failure => "not begun, because another table was refused or failed",
        };
        Error::new(ErrorCode::Interrupted, Stage::Setup, message)
            .with_hint("run it again: what is done is not done twice")
    }
}
