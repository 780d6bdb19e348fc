//! stdout is data; everything else goes to stderr.

use std::io::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::Serialize;
use serde_json::json;

use super::Exit;
use super::args::Format;
use crate::error::Error;
use crate::model::render::{self, Palette};
use crate::model::report::{BatchReport, ErrorReport};

/// Where a command's results go, and in which form.
pub(crate) struct Output {
    format: Format,
    failed: AtomicBool,
}

impl Output {
    pub(crate) fn new(format: Format) -> Self {
        Self { format, failed: AtomicBool::new(false) }
    }

    pub(crate) fn is_json(&self) -> bool {
        self.format.is_json()
    }

    /// Colours are taken out again where stdout is no terminal or `NO_COLOR` is set.
    pub(crate) fn palette(&self) -> Palette {
        if self.is_json() { Palette::PLAIN } else { Palette::COLOUR }
    }

    /// Text for people or shells on stdout.
    pub(crate) fn text(&self, text: &str) {
        if let Err(error) =
            anstream::stdout().write_all(text.as_bytes()).and_then(|()| anstream::stdout().flush())
            && !self.failed.swap(true, Ordering::Relaxed)
            && error.kind() != std::io::ErrorKind::BrokenPipe
        {
            self.note(&format!("stdout can't be written: {error}"));
        }
    }

    /// A remark for people on stderr; one that can't be written is lost.
    pub(crate) fn note(&self, text: &str) {
        let _ = writeln!(anstream::stderr(), "{text}");
    }

    /// Whether results were lost because stdout could not be written.
    pub(crate) fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    /// A JSON document on stdout.
    pub(crate) fn json(&self, value: &impl Serialize) {
        self.text(&format!("{}\n", serde_json::to_string_pretty(value).unwrap_or_default()));
    }

    /// A batch in the chosen form, and the exit code that it means.
    pub(crate) fn batch(&self, report: &BatchReport) -> Exit {
        if self.is_json() {
            self.json(report);
        } else {
            self.text(&render::batch(report, self.palette()));
        }
        exit_of(report)
    }

    /// Results could not be delivered.
    pub(crate) fn fail(&self, text: &str) {
        self.failed.store(true, Ordering::Relaxed);
        self.note(text);
    }

    /// An error that came before any table.
    pub(crate) fn setup_error(&self, error: &Error) {
        if self.is_json() {
            self.json(&json!({ "error": ErrorReport::of(error) }));
        }
        let mut text = format!("\u{1b}[31merror\u{1b}[0m: {error}");
        for cause in error.causes() {
            text.push_str(&format!("\n  because: {cause}"));
        }
        if let Some(hint) = error.hint() {
            text.push_str(&format!("\n  → {hint}"));
        }
        self.note(&text);
    }
}

/// The exit code that a batch means.
pub(crate) fn exit_of(report: &BatchReport) -> Exit {
    if report.has_errors() { Exit::Errors } else { Exit::Fine }
}
