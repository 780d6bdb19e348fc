//! What is logged, and what never is.

use tracing::{Level, Metadata};
use tracing_subscriber::filter::{FilterExt as _, filter_fn};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer as _};

use super::args::Global;

/// Logs go to stderr; `DELTA_MIGRATE_LOG` takes a filter such as `delta_migrate=debug`.
///
/// A program that wants another log sets its own subscriber before it calls [`run`](super::run).
pub(super) fn to_stderr(global: &Global) {
    let default = match global.verbose {
        0 => "delta_migrate=warn",
        1 => "delta_migrate=debug",
        _ => "delta_migrate=trace",
    };
    let filter = EnvFilter::try_from_env("DELTA_MIGRATE_LOG").unwrap_or_else(|_| EnvFilter::new(default));
    let colour = matches!(
        anstream::AutoStream::choice(&std::io::stderr()),
        anstream::ColorChoice::Always | anstream::ColorChoice::AlwaysAnsi
    );
    let lines =
        tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_ansi(colour).without_time();
    // A second start in one process (a test, say) keeps the first subscriber.
    let _ = tracing_subscriber::registry()
        .with(lines.with_filter(filter.and(filter_fn(may_be_shown))))
        .try_init();
}

/// Other crates say no more than `info`, whatever filter is asked for: below it deltalake, the AWS SDK
/// and HTTP clients print locations, options, requests and whole stores, secrets included. A directive
/// of the filter could not promise that, since one for a module beats one for its crate.
fn may_be_shown(of: &Metadata<'_>) -> bool {
    let ours = of.target() == "delta_migrate" || of.target().starts_with("delta_migrate::");
    ours || *of.level() <= Level::INFO
}
