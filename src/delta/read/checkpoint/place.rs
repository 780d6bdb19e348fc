//! Where in a checkpoint the few rows stand that are sought, among those of a million files.
//!
//! Of one leaf, which each of them has, the definition levels are read, and nothing else of any column.

use std::ops::Range;
use std::sync::Arc;

use bytes::{Buf, Bytes};
use deltalake::parquet::arrow::arrow_reader::RowSelection;
use deltalake::parquet::column::reader::{ColumnReader, ColumnReaderImpl, get_column_reader};
use deltalake::parquet::data_type::DataType;
use deltalake::parquet::errors::ParquetError;
use deltalake::parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData, RowGroupMetaData};
use deltalake::parquet::file::reader::{ChunkReader, Length};
use deltalake::parquet::file::serialized_reader::SerializedPageReader;

use super::Chunks;

/// So many rows are looked at at once.
const ROWS: usize = 64 << 10;

/// Where the bytes of a column chunk stand.
pub(super) fn range(column: &ColumnChunkMetaData) -> Range<u64> {
    let (start, length) = column.byte_range();
    start..start.saturating_add(length)
}

/// The rows of the chosen groups in which one of the leaves is set; none where that can't be told, or where
/// there is none, so that all of them are looked at.
pub(super) fn selection(
    metadata: &ParquetMetaData,
    chunks: &Chunks,
    roots: &[(&'static str, &'static str)],
) -> Option<RowSelection> {
    let (mut places, mut before) = (Vec::new(), 0);
    for at in &chunks.groups {
        let group = metadata.row_groups().get(*at)?;
        let rows = usize::try_from(group.num_rows()).ok()?;
        let after = rows.checked_add(before)?;
        for root in roots {
            places.extend(in_group(group, rows, chunks, *root)?.into_iter().map(|row| before + row));
        }
        // A column with more rows than its group says nothing about any of them.
        if places.iter().any(|row| *row >= after) {
            return None;
        }
        before = after;
    }
    places.sort_unstable();
    places.dedup();
    let ranges = places.iter().map(|row| *row..*row + 1);
    (!places.is_empty()).then(|| RowSelection::from_consecutive_ranges(ranges, before))
}

fn in_group(
    group: &RowGroupMetaData,
    rows: usize,
    chunks: &Chunks,
    (root, leaf): (&str, &str),
) -> Option<Vec<usize>> {
    let is_leaf = |column: &&ColumnChunkMetaData| matches!(column.column_path().parts(), [r, l] if r == root && l == leaf);
    let column = group.columns().iter().find(is_leaf)?;
    let place = range(column);
    let holds = |(start, bytes): &&(u64, Bytes)| {
        *start <= place.start && place.end <= start.saturating_add(bytes.len() as u64)
    };
    let (start, bytes) = chunks.pieces.iter().find(holds)?;
    let file = Arc::new(Piece { start: *start, bytes: bytes.clone() });
    let found = set_rows(file, column, rows);
    found
        .inspect_err(|error| tracing::debug!(%error, "rows can't be told apart; all are read"))
        .ok()
        .flatten()
}

/// The rows in which a leaf is set; none for a leaf that always is, or stands in a list.
fn set_rows(
    file: Arc<Piece>,
    column: &ColumnChunkMetaData,
    rows: usize,
) -> Result<Option<Vec<usize>>, ParquetError> {
    let leaf = column.column_descr_ptr();
    let level = leaf.max_def_level();
    if level == 0 || leaf.max_rep_level() > 0 {
        return Ok(None);
    }
    let pages = Box::new(SerializedPageReader::new(file, column, rows, None)?);
    let found = match get_column_reader(leaf, pages) {
        ColumnReader::Int32ColumnReader(reader) => at_level(reader, level)?,
        ColumnReader::Int64ColumnReader(reader) => at_level(reader, level)?,
        ColumnReader::ByteArrayColumnReader(reader) => at_level(reader, level)?,
        _ => return Ok(None),
    };
    Ok(Some(found))
}

fn at_level<T: DataType>(mut reader: ColumnReaderImpl<T>, level: i16) -> Result<Vec<usize>, ParquetError> {
    let (mut found, mut before) = (Vec::new(), 0);
    let (mut levels, mut values) = (Vec::new(), Vec::new());
    loop {
        levels.clear();
        values.clear();
        let (rows, ..) = reader.read_records(ROWS, Some(&mut levels), None, &mut values)?;
        if rows == 0 {
            return Ok(found);
        }
        // Of most pieces none is: that is known faster than where one is.
        if levels.iter().copied().max() == Some(level) {
            found.extend((before..).zip(&levels).filter(|(_, l)| **l == level).map(|(row, _)| row));
        }
        before += rows;
    }
}

/// A piece of a file, in its place.
struct Piece {
    start: u64,
    bytes: Bytes,
}

impl Piece {
    fn from(&self, start: u64) -> Result<Bytes, ParquetError> {
        let at = start.checked_sub(self.start).and_then(|at| usize::try_from(at).ok());
        at.filter(|at| *at <= self.bytes.len())
            .map(|at| self.bytes.slice(at..))
            .ok_or_else(|| ParquetError::EOF(format!("byte {start} is not in memory")))
    }
}

impl Length for Piece {
    fn len(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }
}

impl ChunkReader for Piece {
    type T = bytes::buf::Reader<Bytes>;

    fn get_read(&self, start: u64) -> Result<Self::T, ParquetError> {
        Ok(self.from(start)?.reader())
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        let mut bytes = self.from(start)?;
        if length > bytes.len() {
            return Err(ParquetError::EOF(format!("{length} bytes from {start} on are not in memory")));
        }
        Ok(bytes.split_to(length))
    }
}
