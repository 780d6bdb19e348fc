//! A small streaming sink: lines of JSON from standard input become rows of a Delta table, each
//! exactly once, and the table is brought up to date before the first one.
//!
//! ```text
//! cargo run --example sink -- target/sink < examples/events.ndjson
//! ```
//!
//! Run it again and nothing is written; add lines to the input and run it, and only they are. A
//! second argument says how many lines make a batch (4 by default); it may change between runs.
//!
//! - The table's columns, and what later releases added to them, stand in `events.toml`.
//! - Each batch is one commit. It carries an application transaction with the number of lines that
//!   are in the table by then, so rows and position are stored together or not at all.
//! - Before each batch the snapshot is refreshed and checked, from memory. A release that is shut
//!   out by a newer one (`min_version`) stops there, with every earlier batch in the table.
#![allow(clippy::print_stdout, clippy::print_stderr)] // it is a program for a terminal

use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;

use delta_migrate::{Kind, Migrator, Namespace};
use deltalake::DeltaTable;
use deltalake::arrow::array::{RecordBatch, new_null_array};
use deltalake::arrow::datatypes::SchemaRef;
use deltalake::arrow::json::ReaderBuilder;
use deltalake::kernel::Transaction;
use deltalake::kernel::transaction::CommitProperties;
use deltalake::writer::{DeltaWriter as _, RecordBatchWriter};
use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, BufReader, stdin};

/// The kind of the table, which is also the name in its file.
const KIND: &str = "events";

/// What this release fills in. Columns that only newer releases know are left NULL.
const COLUMNS: &[&str] = &["id", "at", "name", "points", "player"];

/// How often a batch is tried when other writers get in between.
const ATTEMPTS: u32 = 5;

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

#[tokio::main]
async fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let size = args.nth(1).map_or(Ok(4), |size| size.parse());
    let (Some(location), Ok(size)) = (std::env::args().nth(1), size) else {
        eprintln!("usage: sink TABLE [LINES_PER_BATCH] < EVENTS");
        return ExitCode::from(2);
    };
    match run(&location, size).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            if let Some(hint) = error.downcast_ref::<delta_migrate::Error>().and_then(|e| e.hint()) {
                eprintln!("hint: {hint}");
            }
            ExitCode::FAILURE
        }
    }
}

async fn run(location: &str, size: usize) -> Result<()> {
    let kind = Kind::from_toml_file(include_str!("events.toml"), "events.toml")?;
    let mut sink = Sink::open(location, kind, COLUMNS).await?;
    let before = sink.stored().await?;
    let lines = sink.drain(BufReader::new(stdin()), size).await?;
    let stored = sink.stored().await?;
    println!("{lines} lines read, {} rows written, {stored} in the table", stored - before);
    Ok(())
}

/// A stream's way into its table.
struct Sink {
    migrator: Migrator,
    table: DeltaTable,
    columns: &'static [&'static str],
}

impl Sink {
    /// Creates the table, or brings it up to date, or refuses it untouched.
    async fn open(location: &str, kind: Kind, columns: &'static [&'static str]) -> Result<Self> {
        let migrator = Migrator::builder(Namespace::new("example_sink")?)
            .kind(kind)
            .release(concat!("example-sink ", env!("CARGO_PKG_VERSION")))
            .build()?;
        let opened = migrator.open_or_create(KIND, location, Default::default()).await?;
        println!("{}", opened.report());
        Ok(Self { table: opened.into_table(), migrator, columns })
    }

    /// How many lines of the input are in the table: the version of this stream's last transaction.
    async fn stored(&self) -> Result<i64> {
        let log_store = self.table.log_store();
        let version = self.table.snapshot()?.transaction_version(log_store.as_ref(), self.app_id()).await?;
        Ok(version.unwrap_or(0))
    }

    /// Streams that share a table need a name each.
    fn app_id(&self) -> &'static str {
        "example-sink/stdin"
    }

    /// Writes what the table does not have yet, `size` lines a commit; gives the input's length.
    async fn drain(&mut self, input: impl AsyncBufRead + Unpin, size: usize) -> Result<i64> {
        let (mut input, mut read, mut batch) = (input.lines(), 0, Vec::new());
        let stored = self.stored().await?;
        while let Some(line) = input.next_line().await? {
            read += 1;
            if read > stored {
                batch.push(line);
            }
            if batch.len() >= size.max(1) {
                self.write(&std::mem::take(&mut batch), read).await?;
            }
        }
        if !batch.is_empty() {
            self.write(&batch, read).await?;
        }
        Ok(read)
    }

    /// Writes one batch, after which `upto` lines are in the table.
    async fn write(&mut self, lines: &[String], upto: i64) -> Result<()> {
        let mut attempt = 1;
        loop {
            self.table.update_incremental(None).await?;
            // The whole price of a safe rolling upgrade: nothing is requested, nothing is waited for.
            self.migrator.check(KIND, &self.table)?;
            // After a failure it is the table that knows whether the batch is in.
            match self.stored().await? {
                stored if stored >= upto => return Ok(()),
                stored if stored == upto - i64::try_from(lines.len())? => {}
                stored => {
                    return Err(format!("line {stored} is the last in the table: who else writes?").into());
                }
            }
            // A writer for each batch, because the table may have got columns in between.
            let transaction = Transaction::new(self.app_id(), upto);
            let properties = CommitProperties::default().with_application_transaction(transaction);
            let mut writer = RecordBatchWriter::for_table(&self.table)?.with_commit_properties(properties);
            writer.write(rows(lines, &writer.arrow_schema(), self.columns)?).await?;
            match writer.flush_and_commit(&mut self.table).await {
                Ok(_) => return Ok(()),
                // A migration won, or no answer came: look at the table again.
                Err(error) if attempt < ATTEMPTS => eprintln!("trying again: {error}"),
                Err(error) => return Err(error.into()),
            }
            attempt += 1;
        }
    }
}

/// Lines as rows of the table: the columns that this release knows are read, all others are NULL.
fn rows(lines: &[String], table: &SchemaRef, columns: &[&str]) -> Result<RecordBatch> {
    let known = table.fields().iter().enumerate().filter(|(_, f)| columns.contains(&f.name().as_str()));
    let known: Vec<usize> = known.map(|(at, _)| at).collect();
    let mut decoder =
        ReaderBuilder::new(Arc::new(table.project(&known)?)).with_batch_size(lines.len()).build_decoder()?;
    for line in lines {
        decoder.decode(line.as_bytes())?;
        decoder.decode(b"\n")?;
    }
    let read = decoder.flush()?.ok_or("there are only empty lines")?;
    let column = |field: &deltalake::arrow::datatypes::FieldRef| match read.column_by_name(field.name()) {
        Some(column) => Arc::clone(column),
        None => new_null_array(field.data_type(), read.num_rows()),
    };
    Ok(RecordBatch::try_new(Arc::clone(table), table.fields().iter().map(column).collect())?)
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use delta_migrate::{ErrorCode, SchemaVersion};
    use deltalake::arrow::array::{Array as _, AsArray as _};
    use deltalake::arrow::datatypes::Int64Type;
    use deltalake::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

    use super::*;

    const EVENTS: &str = include_str!("events.ndjson");

    fn kind() -> Kind {
        Kind::from_toml_file(include_str!("events.toml"), "events.toml").unwrap()
    }

    /// The first lines of the input.
    fn first(lines: usize) -> String {
        EVENTS.split_inclusive('\n').take(lines).collect()
    }

    /// Each row's id, with the columns that are not NULL in it; read from the files themselves.
    async fn stored_rows(folder: &str) -> Vec<(i64, Vec<String>)> {
        let url = deltalake::ensure_table_uri(folder).unwrap();
        let table = deltalake::open_table(url).await.unwrap();
        let mut rows = Vec::new();
        for uri in table.get_file_uris().unwrap() {
            let file = File::open(uri.trim_start_matches("file://")).unwrap();
            for batch in ParquetRecordBatchReaderBuilder::try_new(file).unwrap().build().unwrap() {
                let batch = batch.unwrap();
                let schema = batch.schema();
                for row in 0..batch.num_rows() {
                    let id = batch.column_by_name("id").unwrap().as_primitive::<Int64Type>().value(row);
                    let filled = schema.fields().iter().zip(batch.columns()).filter(|(_, c)| c.is_valid(row));
                    rows.push((id, filled.map(|(f, _)| f.name().clone()).collect()));
                }
            }
        }
        rows.sort();
        rows
    }

    fn ids(rows: &[(i64, Vec<String>)]) -> Vec<i64> {
        rows.iter().map(|(id, _)| *id).collect()
    }

    #[tokio::test]
    async fn a_second_run_of_the_same_input_writes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let location = folder.path().to_str().unwrap();
        let mut sink = Sink::open(location, kind(), COLUMNS).await.unwrap();
        assert_eq!(sink.drain(EVENTS.as_bytes(), 4).await.unwrap(), 10);
        // The creation and three batches.
        assert_eq!(sink.table.version(), Some(3));

        for size in [4, 3, 100] {
            let mut again = Sink::open(location, kind(), COLUMNS).await.unwrap();
            assert_eq!(again.drain(EVENTS.as_bytes(), size).await.unwrap(), 10);
            assert_eq!(again.table.version(), Some(3), "batches of {size}");
        }
        assert_eq!(ids(&stored_rows(location).await), (1..=10).collect::<Vec<_>>());
    }

    #[tokio::test]
    async fn an_input_that_grew_is_taken_up_where_it_was_left() {
        let folder = tempfile::tempdir().unwrap();
        let location = folder.path().to_str().unwrap();
        for (lines, size) in [(3, 2), (7, 3), (10, 4)] {
            let mut sink = Sink::open(location, kind(), COLUMNS).await.unwrap();
            sink.drain(first(lines).as_bytes(), size).await.unwrap();
            assert_eq!(ids(&stored_rows(location).await), (1..=lines as i64).collect::<Vec<_>>());
        }
    }

    #[tokio::test]
    async fn a_sink_that_runs_twice_at_once_stores_rows_once() {
        let folder = tempfile::tempdir().unwrap();
        let location = folder.path().to_str().unwrap();
        let mut one = Sink::open(location, kind(), COLUMNS).await.unwrap();
        let mut other = Sink::open(location, kind(), COLUMNS).await.unwrap();
        let done = tokio::join!(one.drain(EVENTS.as_bytes(), 2), other.drain(EVENTS.as_bytes(), 2));
        assert_eq!((done.0.unwrap(), done.1.unwrap()), (10, 10));
        assert_eq!(ids(&stored_rows(location).await), (1..=10).collect::<Vec<_>>());
    }

    #[tokio::test]
    async fn an_older_release_goes_on_until_the_floor_says_no() {
        let folder = tempfile::tempdir().unwrap();
        let location = folder.path().to_str().unwrap();
        let cut = |version| kind().cut_at(SchemaVersion::new(version));
        let (v0, v1) = (&COLUMNS[..3], &COLUMNS[..4]);

        let mut oldest = Sink::open(location, cut(0), v0).await.unwrap();
        oldest.drain(first(2).as_bytes(), 2).await.unwrap();
        // The next release adds a column; the one before runs on, here and after a restart.
        Sink::open(location, cut(1), v1).await.unwrap();
        oldest.drain(first(4).as_bytes(), 2).await.unwrap();
        let mut restarted = Sink::open(location, cut(0), v0).await.unwrap();
        restarted.drain(first(6).as_bytes(), 2).await.unwrap();

        // The newest one raises the floor: a running sink stops at its next batch, a new one at once.
        let mut newest = Sink::open(location, kind(), COLUMNS).await.unwrap();
        let code =
            |e: Box<dyn Error + Send + Sync>| e.downcast_ref::<delta_migrate::Error>().map(|e| e.code());
        for old in [&mut oldest, &mut restarted] {
            let refused = old.drain(EVENTS.as_bytes(), 2).await.unwrap_err();
            assert_eq!(code(refused), Some(ErrorCode::TooNew));
        }
        let refused = Sink::open(location, cut(1), v1).await.map(drop).unwrap_err();
        assert_eq!(code(refused), Some(ErrorCode::TooNew));

        newest.drain(EVENTS.as_bytes(), 2).await.unwrap();
        let rows = stored_rows(location).await;
        assert_eq!(ids(&rows), (1..=10).collect::<Vec<_>>());
        let filled = |id: usize| rows[id - 1].1.join(" ");
        assert_eq!(filled(4), "id at name");
        assert_eq!(filled(7), "id at name points player");
    }
}
