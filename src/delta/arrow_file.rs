//! The Arrow schema of a file, from its head or foot; no row is read.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use deltalake::arrow::datatypes::Schema;
use deltalake::arrow::error::ArrowError;
use deltalake::arrow::ipc::reader::{FileReader, StreamReader};
use deltalake::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use crate::error::Error;

/// The schema of an Arrow IPC file or stream, or of a Parquet file.
///
/// # Errors
/// `Usage`: the file can't be read, or is none of the three.
pub(crate) fn schema_of_file(path: &Path) -> Result<Schema, Error> {
    let shown = path.display().to_string();
    let cannot = |e: std::io::Error| Error::usage(format!("`{shown}` can't be read")).with_source(e);
    let open = || File::open(path).map_err(cannot);
    let mut head = Vec::new();
    open()?.take(6).read_to_end(&mut head).map_err(cannot)?;
    let none = |e: ArrowError| {
        Error::usage(format!("`{shown}` is no Arrow IPC file or stream, and no Parquet file")).with_source(e)
    };
    let schema = if head.starts_with(b"PAR1") {
        ParquetRecordBatchReaderBuilder::try_new(open()?)
            .map(|r| r.schema().clone())
            .map_err(|e| none(e.into()))
    } else if head.starts_with(b"ARROW1") {
        FileReader::try_new(open()?, None).map(|r| r.schema()).map_err(none)
    } else {
        StreamReader::try_new(open()?, None).map(|r| r.schema()).map_err(none)
    };
    schema.map(|schema| schema.as_ref().clone())
}
