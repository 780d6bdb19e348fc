//! One run over many tables: settings, progress, interruption, report.

use std::fs::OpenOptions;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;
use std::sync::Arc;

use serde::Serialize;

use super::Exit;
use super::args::Tables;
use super::output::{Output, exit_of};
use super::progress::{Progress, source_lines};
use super::signals::hearing;
use crate::batch::Batch;
use crate::catalog::Source;
use crate::delta::stores::Stores;
use crate::error::Error;
use crate::migrator::Migrator;
use crate::model::report::BatchReport;

/// A run that is set up.
pub(crate) struct Running<'a> {
    pub(crate) batch: Batch,
    output: &'a Output,
    progress: Arc<Progress>,
    report: Option<&'a Path>,
}

/// The stores of a run: a bucket gets as many requests at once as tables are worked on.
pub(crate) fn stores(tables: &Tables) -> Arc<Stores> {
    Arc::new(Stores::new(usize::from(tables.concurrency)))
}

impl<'a> Running<'a> {
    /// Checks what can be checked before the first table.
    pub(crate) fn new(
        command: &'static str,
        migrator: &Arc<Migrator>,
        stores: Arc<Stores>,
        sources: Vec<Box<dyn Source>>,
        tables: &'a Tables,
        output: &'a Output,
    ) -> Result<Self, Error> {
        let append =
            |file: &Path| {
                OpenOptions::new().create(true).append(true).open(file).map_err(|e| {
                    Error::usage(format!("`{}` can't be written", file.display())).with_source(e)
                })
            };
        let events = tables.events.as_deref().map(append).transpose()?;
        if let (Some(mut file), Some(path)) = (events.as_ref(), tables.events.as_deref())
            && !ends_with_a_line(path)
        {
            // A line that a full disk cut short must not swallow the next one.
            let _ = file.write_all(b"\n");
        }
        // A report that can't be written is told before the work, not after it.
        tables.report.as_deref().map(append).transpose()?;
        let progress = Arc::new(Progress::new(command, events));
        let mut batch = Batch::new(migrator.clone(), stores)
            .sources(sources)
            .concurrency(tables.concurrency)
            .observer(progress.clone());
        if tables.fail_fast {
            batch = batch.fail_fast();
        }
        if let Some((index, count)) = tables.shard {
            batch = batch.shard(index, count)?;
        }
        Ok(Self { batch, output, progress, report: tables.report.as_deref() })
    }

    /// Does the work; meanwhile people are told, and the first signal lets the tables end that are being
    /// worked on and starts no other.
    pub(crate) async fn run(&self, work: impl Future<Output = BatchReport>) -> BatchReport {
        let told = async {
            tokio::select! {
                report = work => report,
                () = self.progress.tell(|line| self.output.note(line)) => BatchReport::new("", Vec::new()),
            }
        };
        let stop = self.batch.stop();
        let report = hearing(move || stop.now(), told).await;
        self.progress.end();
        report
    }

    /// Prints the report, and gives the exit code that it means.
    pub(crate) fn print(&self, report: &BatchReport) -> Exit {
        self.file(report);
        self.tell_sources(report);
        self.output.batch(report)
    }

    /// The same for a document that holds more than the report, and is printed otherwise.
    pub(crate) fn print_as(
        &self,
        document: &impl Serialize,
        report: &BatchReport,
        human: impl FnOnce(),
    ) -> Exit {
        self.file(document);
        self.tell_sources(report);
        if self.output.is_json() {
            self.output.json(document);
        } else {
            human();
        }
        exit_of(report)
    }

    fn tell_sources(&self, report: &BatchReport) {
        if !self.output.is_json() {
            source_lines(report).iter().for_each(|line| self.output.note(line));
        }
    }

    fn file(&self, document: &impl Serialize) {
        if self.progress.has_lost_events() {
            self.output.fail("the events could not be written in full");
        }
        let Some(file) = self.report else { return };
        let text = serde_json::to_string_pretty(document).unwrap_or_default() + "\n";
        if let Err(error) = std::fs::write(file, text) {
            self.output.fail(&format!("`{}` can't be written: {error}", file.display()));
        }
    }
}

fn ends_with_a_line(path: &Path) -> bool {
    let last = || {
        let mut file = std::fs::File::open(path)?;
        file.seek(SeekFrom::End(-1))?;
        let mut byte = [0];
        file.read_exact(&mut byte).map(|()| byte == *b"\n")
    };
    // An empty file has no last byte, and what can't be sought has no lines to end.
    last().unwrap_or(true)
}
