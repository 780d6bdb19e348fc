//! What a run is doing: a bar on a terminal, a plain line every few seconds elsewhere, and the file
//! of events.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{IsTerminal as _, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use chrono::{SecondsFormat, Utc};
use indicatif::{HumanBytes, ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::batch::{Observer, Went};
use crate::model::report::{BatchReport, Event, TableReport};
use crate::model::text;

/// A table that takes longer than this is named.
const SLOW: Duration = Duration::from_secs(2);

/// How often a plain line is written.
const LINE_EVERY: Duration = Duration::from_secs(5);

/// How often the bar is brought up to date.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Watches a run and tells people and files.
pub(crate) struct Progress {
    command: &'static str,
    bar: ProgressBar,
    seen: Mutex<Seen>,
    events: Option<Mutex<File>>,
    events_lost: AtomicBool,
}

#[derive(Default)]
struct Seen {
    found: u64,
    finished: u64,
    /// By outcome.
    counts: BTreeMap<&'static str, u64>,
    running: BTreeMap<String, Running>,
    /// Whether a table tells how far it is.
    tells: bool,
}

struct Running {
    since: Instant,
    went: Option<Went>,
}

impl Progress {
    pub(crate) fn new(command: &'static str, events: Option<File>) -> Self {
        let style = ProgressStyle::with_template("{bar:20} {pos}/{len} tables  {wide_msg}\n{prefix}");
        let bar = ProgressBar::hidden();
        bar.set_length(0);
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        Self {
            command,
            bar,
            seen: Mutex::default(),
            events: events.map(Mutex::new),
            events_lost: AtomicBool::new(false),
        }
    }

    /// Tells people until it is dropped; never ends by itself.
    pub(crate) async fn tell(&self, note: impl Fn(&str)) {
        let is_terminal = std::io::stderr().is_terminal();
        let mut next = Instant::now() + LINE_EVERY;
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            let (found, finished, counts, slowest, tells) = {
                let seen = self.seen();
                (seen.found, seen.finished, seen.counts(), seen.slowest(Instant::now()), seen.tells)
            };
            // One table alone needs no bar, unless its files are gone through.
            if is_terminal && (found > 1 || tells) && self.bar.is_hidden() {
                self.bar.set_draw_target(ProgressDrawTarget::stderr());
            }
            if !is_terminal && Instant::now() >= next {
                next = Instant::now() + LINE_EVERY;
                let of = text::count(usize::try_from(found).unwrap_or(usize::MAX), "table");
                let parts = [counts.as_str(), slowest.as_str()].into_iter().filter(|p| !p.is_empty());
                let told = parts.collect::<Vec<_>>().join("; ");
                let lead = if told.is_empty() { "" } else { ": " };
                note(&format!("{finished} of {of} done{lead}{told}"));
            }
            self.bar.set_message(counts);
            // A line of its own, so that a narrow terminal shows it too.
            self.bar.set_prefix(slowest);
        }
    }

    pub(crate) fn end(&self) {
        self.bar.finish_and_clear();
    }

    /// Whether an event could not be written.
    pub(crate) fn has_lost_events(&self) -> bool {
        self.events_lost.load(Ordering::Relaxed)
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn event(&self, report: &TableReport) {
        let Some(events) = &self.events else { return };
        let at = Utc::now().to_rfc3339_opts(SecondsFormat::Millis, true);
        let Ok(line) = serde_json::to_string(&Event { at, command: self.command, report }) else { return };
        let mut file = events.lock().unwrap_or_else(PoisonError::into_inner);
        // One write a line, so that jobs may share a file.
        if file.write_all(format!("{line}\n").as_bytes()).is_err() {
            self.events_lost.store(true, Ordering::Relaxed);
        }
    }
}

impl Observer for Progress {
    fn found(&self) {
        self.seen().found += 1;
        self.bar.inc_length(1);
    }

    fn started(&self, uri: &str) {
        self.seen().running.insert(uri.to_owned(), Running { since: Instant::now(), went: None });
    }

    fn went_through(&self, uri: &str, went: Went) {
        let mut seen = self.seen();
        seen.tells = true;
        if let Some(running) = seen.running.get_mut(uri) {
            running.went = Some(went);
        }
    }

    fn finished(&self, report: &TableReport) {
        self.event(report);
        let mut seen = self.seen();
        seen.finished += 1;
        *seen.counts.entry(report.outcome.as_str()).or_default() += 1;
        self.bar.inc(1);
    }

    fn ended(&self, uri: &str) {
        self.seen().running.remove(uri);
    }
}

impl Seen {
    /// How many tables ended how: `3 migrated, 2 refused`.
    fn counts(&self) -> String {
        let counts: Vec<String> = self.counts.iter().map(|(outcome, n)| format!("{n} {outcome}")).collect();
        counts.join(", ")
    }

    /// The tables that take longest: `slowest: /lake/a (12 s)`; empty where none takes long.
    fn slowest(&self, now: Instant) -> String {
        let running = self.running.iter();
        let mut slow: Vec<(Duration, &String, Option<Went>)> = running
            .map(|(uri, running)| (now.saturating_duration_since(running.since), uri, running.went))
            .filter(|(took, _, _)| *took >= SLOW)
            .collect();
        slow.sort_by(|a, b| (b.0, b.1).cmp(&(a.0, a.1)));
        let named: Vec<String> = slow
            .iter()
            .take(2)
            .map(|(took, uri, went)| {
                let went = went.map(far).unwrap_or_default();
                format!("{} ({} s{went})", text::clean(uri), took.as_secs())
            })
            .collect();
        if named.is_empty() { String::new() } else { format!("slowest: {}", named.join(", ")) }
    }
}

/// How far a data step is: `, 40 of 100 files, 1.2 of 3.0 GB, 4000000 rows written`.
fn far(went: Went) -> String {
    let Went { files, of_files, bytes, of_bytes, rows } = went;
    format!(
        ", {files} of {of_files} files, {} of {}, {rows} rows written",
        HumanBytes(bytes),
        HumanBytes(of_bytes)
    )
}

/// The sources that did not give everything, for people.
pub(crate) fn source_lines(report: &BatchReport) -> Vec<String> {
    let mut lines = Vec::new();
    for source in &report.sources {
        for error in &source.errors {
            let mut line = format!("! {}: {}", source.source, text::clean(&error.message));
            for cause in &error.causes {
                line.push_str(&format!("\n    because: {}", text::clean(cause)));
            }
            if let Some(hint) = &error.hint {
                line.push_str(&format!("\n    → {hint}"));
            }
            lines.push(line);
        }
        let told = source.errors.len() as u64;
        let more = u64::from(source.failures).saturating_sub(told);
        if more > 0 {
            lines.push(format!("! {}: {more} more parts could not be read", source.source));
        }
        if !source.complete {
            lines.push(format!("! {}: interrupted before its end", source.source));
        } else if source.tables == 0 && source.failures == 0 {
            lines.push(format!("! {}: found no table", source.source));
        }
    }
    lines
}
