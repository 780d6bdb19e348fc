//! Ctrl-C, and SIGTERM, as schedulers send it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How long a report may take that is being printed when a signal comes.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Signals, heard from the moment that this is made: from then on they end nothing by themselves.
pub(super) struct Signals {
    #[cfg(unix)]
    heard: Vec<tokio::signal::unix::Signal>,
}

#[cfg(unix)]
impl Signals {
    pub(super) fn listen() -> Self {
        use tokio::signal::unix::{SignalKind, signal};
        let kinds = [SignalKind::interrupt(), SignalKind::terminate()];
        Self { heard: kinds.into_iter().filter_map(|kind| signal(kind).ok()).collect() }
    }

    /// Waits for the next one; `false` where none can be heard.
    async fn next(&mut self) -> bool {
        if self.heard.is_empty() {
            return false;
        }
        futures::future::select_all(self.heard.iter_mut().map(|s| Box::pin(s.recv()))).await.0.is_some()
    }
}

#[cfg(not(unix))]
impl Signals {
    pub(super) fn listen() -> Self {
        Self {}
    }

    async fn next(&mut self) -> bool {
        tokio::signal::ctrl_c().await.is_ok()
    }
}

/// Does some work, in which the first signal calls `first` and a second one ends the process; that
/// leaves every table with its commit or without. `first` says whether it was the first indeed.
pub(super) async fn hearing<T>(
    first: impl Fn() -> bool + Send + 'static,
    work: impl Future<Output = T>,
) -> T {
    let mut signals = Signals::listen();
    let ended = Arc::new(AtomicBool::new(false));
    let over = ended.clone();
    tokio::spawn(async move {
        while signals.next().await {
            if !first() {
                std::process::exit(130);
            }
            // Once the tables are done only the report is left. A signal that came before may be heard
            // only now, and what was done has to be told; but nobody may be reading it.
            if over.load(Ordering::SeqCst) {
                let _ = tokio::time::timeout(LAST_WORDS, signals.next()).await;
                std::process::exit(130);
            }
            tracing::warn!("interrupted: the tables that were begun are finished; once more to end at once");
        }
    });
    let done = work.await;
    ended.store(true, Ordering::SeqCst);
    done
}

/// Does one table's work to its end, unless a second signal comes.
pub(super) async fn to_the_end<T>(work: impl Future<Output = T>) -> T {
    let heard = AtomicBool::new(false);
    hearing(move || !heard.swap(true, Ordering::SeqCst), work).await
}
