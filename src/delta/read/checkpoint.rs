//! Actions out of checkpoints: the footer and the few column chunks that hold them.

mod place;
mod rows;

use std::ops::Range;

use bytes::Bytes;
use deltalake::parquet::DecodeResult;
use deltalake::parquet::arrow::ProjectionMask;
use deltalake::parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use deltalake::parquet::arrow::push_decoder::{ParquetPushDecoder, ParquetPushDecoderBuilder, PushBuffers};
use deltalake::parquet::errors::ParquetError;
use deltalake::parquet::file::metadata::{PageIndexPolicy, ParquetMetaDataPushDecoder, RowGroupMetaData};
use object_store::{GetOptions, GetRange, ObjectMeta, ObjectStore};

use self::rows::{Rows, Sought};
use super::fault::{Fault, corrupt};
use super::listing::{Checkpoint, Format};
use super::scan::{self, Actions, Raw};
use crate::model::version::SchemaVersion;

/// How much of a file's end is asked for at once: enough for most footers, and for the whole of
/// small checkpoints.
const TAIL: u64 = 256 << 10;

/// Protocol, metadata and one application's transactions take far less, whatever the checkpoint.
const MOST_AT_ONCE: u64 = 1 << 30;

/// Reads one checkpoint, each footer at most once.
pub(super) struct Reader<'a> {
    store: &'a dyn ObjectStore,
    checkpoint: &'a Checkpoint,
    evidence_id: Option<&'a str>,
    /// One a file of the checkpoint, opened when it is needed.
    parts: Vec<Option<Part>>,
    /// The transaction in a JSON checkpoint, which is read as a whole; none before that.
    scanned: Option<Option<SchemaVersion>>,
}

/// A Parquet file whose footer was read.
#[derive(Clone)]
struct Part {
    footer: ArrowReaderMetadata,
    /// The end of the file, from this offset on.
    tail: (u64, Bytes),
}

impl<'a> Reader<'a> {
    pub(super) fn new(
        store: &'a dyn ObjectStore,
        checkpoint: &'a Checkpoint,
        evidence_id: Option<&'a str>,
    ) -> Self {
        let parts = checkpoint.files.iter().map(|_| None).collect();
        Self { store, checkpoint, evidence_id, parts, scanned: None }
    }

    /// Protocol and metadata, as far as they are asked for.
    pub(super) async fn actions(&mut self, protocol: bool, metadata: bool) -> Result<Actions, Fault> {
        let mut found = Actions::default();
        if self.checkpoint.format == Format::Json {
            return self.scan().await;
        }
        for at in 0..self.parts.len() {
            let sought = Sought::Actions {
                protocol: protocol && found.protocol.is_none(),
                metadata: metadata && found.metadata.is_none(),
            };
            if sought.roots().is_empty() {
                break;
            }
            let Some((file, rows)) = self.rows(at, sought).await? else { break };
            let raw =
                |text: Option<String>| text.map(|text| Raw { text, at: format!("`{}`", file.location) });
            found.protocol = found.protocol.or(raw(rows.protocol));
            found.metadata = found.metadata.or(raw(rows.metadata));
        }
        Ok(found)
    }

    /// The version of the evidence's `txn` action.
    pub(super) async fn evidence(&mut self) -> Result<Option<SchemaVersion>, Fault> {
        let Some(id) = self.evidence_id else { return Ok(None) };
        if self.checkpoint.format == Format::Json {
            return match self.scanned {
                Some(txn) => Ok(txn),
                None => Ok(self.scan().await?.txn),
            };
        }
        for at in 0..self.parts.len() {
            let Some((_, rows)) = self.rows(at, Sought::Txn(id.to_owned())).await? else { break };
            if rows.txn.is_some() {
                return Ok(rows.txn);
            }
        }
        Ok(None)
    }

    async fn scan(&mut self) -> Result<Actions, Fault> {
        let Some(file) = self.checkpoint.files.first() else { return Ok(Actions::default()) };
        let (actions, _) = scan::file(self.store, &file.location, Some(file.size), self.evidence_id).await?;
        self.scanned = Some(actions.txn);
        Ok(actions)
    }

    async fn rows(&mut self, at: usize, sought: Sought) -> Result<Option<(&'a ObjectMeta, Rows)>, Fault> {
        let (Some(file), Some(slot)) = (self.checkpoint.files.get(at), self.parts.get_mut(at)) else {
            return Ok(None);
        };
        let part = match slot {
            Some(part) => part.clone(),
            None => slot.insert(open(self.store, file).await?).clone(),
        };
        Ok(Some((file, part.rows(self.store, file, sought).await?)))
    }
}

/// Reads the footer; with one request where it fits in [`TAIL`].
async fn open(store: &dyn ObjectStore, file: &ObjectMeta) -> Result<Part, Fault> {
    let start = file.size.saturating_sub(TAIL);
    let options = GetOptions { range: Some(GetRange::Bounded(start..file.size)), ..GetOptions::default() };
    let mut decoder = ParquetMetaDataPushDecoder::try_new(file.size)
        .map_err(|e| unreadable(file, e))?
        .with_column_index_policy(PageIndexPolicy::Skip)
        // So that a page is decoded, and not a column of a million rows of which one is set.
        .with_offset_index_policy(PageIndexPolicy::Optional);
    let got = store.get_opts(&file.location, options).await.map_err(|e| Fault::get(&file.location, e))?;
    let size = got.meta.size;
    let tail = got.bytes().await.map_err(|e| Fault::get(&file.location, e))?;
    if size != file.size || tail.len() as u64 != file.size - start {
        return Err(Fault::Gone(file.location.clone()));
    }
    decoder.push_range(start..file.size, tail.clone()).map_err(|e| unreadable(file, e))?;
    loop {
        // The schema of the file decides, not what some writer embedded beside it.
        let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
        let (back, decoded) = decode(file, decoder, move |decoder| match decoder.try_decode()? {
            DecodeResult::Data(footer) => ArrowReaderMetadata::try_new(footer.into(), options).map(Ok),
            DecodeResult::NeedsData(ranges) => Ok(Err(ranges)),
            DecodeResult::Finished => Err(ParquetError::General("there is no footer".to_owned())),
        })
        .await?;
        match decoded {
            Ok(footer) => return Ok(Part { footer, tail: (start, tail) }),
            Err(ranges) => {
                decoder = back;
                let data = fetch(store, file, &ranges).await?;
                decoder.push_ranges(ranges, data).map_err(|e| unreadable(file, e))?;
            }
        }
    }
}

impl Part {
    /// The rows that are sought, out of the row groups that can hold one.
    async fn rows(self, store: &dyn ObjectStore, file: &ObjectMeta, sought: Sought) -> Result<Rows, Fault> {
        let mut rows = Rows::default();
        let Some(chunks) = self.chunks(store, file, &sought).await? else { return Ok(rows) };
        let state = (self, chunks, sought.clone());
        let (_, mut decoder) =
            decode(file, state, |(part, chunks, sought)| part.decoder(chunks, sought)).await?;
        loop {
            let (back, decoded) = decode(file, (decoder, rows, sought.clone()), |(decoder, rows, sought)| {
                loop {
                    match decoder.try_decode()? {
                        DecodeResult::NeedsData(ranges) => return Ok(Some(ranges)),
                        DecodeResult::Data(batch) => rows.take(&batch, sought)?,
                        DecodeResult::Finished => return Ok(None),
                    }
                }
            })
            .await?;
            (decoder, rows, _) = back;
            let Some(ranges) = decoded else { return Ok(rows) };
            let data = fetch(store, file, &ranges).await?;
            decoder.push_ranges(ranges, data).map_err(|e| unreadable(file, e))?;
        }
    }

    /// The columns that are sought, of the row groups that can hold such a row; none if there is none.
    async fn chunks(
        &self,
        store: &dyn ObjectStore,
        file: &ObjectMeta,
        sought: &Sought,
    ) -> Result<Option<Chunks>, Fault> {
        let roots = sought.roots();
        let schema = self.footer.parquet_schema();
        let is_sought = |at: &usize| {
            let path = schema.column(*at).path().clone();
            path.parts().first().is_some_and(|root| roots.iter().any(|(r, _)| r == root))
        };
        let leaves: Vec<usize> = (0..schema.num_columns()).filter(is_sought).collect();
        let metadata = self.footer.metadata();
        let groups = metadata.row_groups().iter().enumerate();
        let groups: Vec<usize> =
            groups.filter(|(_, group)| can_hold(group, &roots)).map(|(at, _)| at).collect();
        if leaves.is_empty() || groups.is_empty() {
            return Ok(None);
        }
        let (start, tail) = &self.tail;
        let is_far = |range: &Range<u64>| range.start < *start && range.start < range.end;
        let columns = groups
            .iter()
            .filter_map(|at| metadata.row_groups().get(*at))
            .flat_map(|group| leaves.iter().filter_map(|leaf| group.columns().get(*leaf)).map(place::range));
        let far: Vec<Range<u64>> = columns.filter(is_far).collect();
        let data = if far.is_empty() { Vec::new() } else { fetch(store, file, &far).await? };
        let mut pieces: Vec<(u64, Bytes)> = far.iter().map(|range| range.start).zip(data).collect();
        pieces.push((*start, tail.clone()));
        Ok(Some(Chunks { leaves, groups, pieces }))
    }

    /// A decoder of the rows that are sought, as far as it can be told where they stand.
    fn decoder(&self, chunks: &Chunks, sought: &Sought) -> Result<ParquetPushDecoder, ParquetError> {
        let mut buffers = PushBuffers::default();
        for (start, bytes) in &chunks.pieces {
            buffers.push_range(*start..*start + bytes.len() as u64, bytes.clone());
        }
        let mask = ProjectionMask::leaves(self.footer.parquet_schema(), chunks.leaves.iter().copied());
        let selection = place::selection(self.footer.metadata(), chunks, &sought.roots());
        let builder = ParquetPushDecoderBuilder::new_with_metadata(self.footer.clone())
            .with_buffers(buffers)
            .with_projection(mask)
            .with_row_groups(chunks.groups.clone());
        match selection {
            Some(selection) => builder.with_row_selection(selection),
            None => builder,
        }
        .build()
    }
}

/// Columns of a file, in memory.
struct Chunks {
    leaves: Vec<usize>,
    groups: Vec<usize>,
    /// Pieces of the file, each with where it begins.
    pieces: Vec<(u64, Bytes)>,
}

/// Whether a row group can hold one of the actions: not if its statistics say that the leaf which
/// every such action has is null in every row.
fn can_hold(group: &RowGroupMetaData, roots: &[(&'static str, &'static str)]) -> bool {
    roots.iter().any(|(root, leaf)| {
        let is_leaf = |path: &[String]| matches!(path, [r, l] if r == root && l == leaf);
        let column = group.columns().iter().find(|c| is_leaf(c.column_path().parts()));
        let nulls = column.and_then(|c| c.statistics()?.null_count_opt());
        nulls.is_none_or(|nulls| i64::try_from(nulls).is_ok_and(|nulls| nulls < group.num_rows()))
    })
}

async fn fetch(
    store: &dyn ObjectStore,
    file: &ObjectMeta,
    ranges: &[Range<u64>],
) -> Result<Vec<Bytes>, Fault> {
    let fits = |r: &Range<u64>| r.start <= r.end && r.end <= file.size;
    if !ranges.iter().all(fits) || ranges.iter().map(|r| r.end - r.start).sum::<u64>() > MOST_AT_ONCE {
        let why = ParquetError::General("the footer points to bytes that make no sense".to_owned());
        return Err(unreadable(file, why));
    }
    let data = store.get_ranges(&file.location, ranges).await;
    let data = data.map_err(|e| Fault::get(&file.location, e))?;
    let whole = ranges.iter().map(|r| r.end - r.start).eq(data.iter().map(|d| d.len() as u64));
    if whole { Ok(data) } else { Err(Fault::Gone(file.location.clone())) }
}

/// Decodes on a thread where it may take its time, and where a panic of the decoder on bytes that
/// make no sense ends as an error.
async fn decode<S: Send + 'static, T: Send + 'static>(
    file: &ObjectMeta,
    mut state: S,
    work: impl FnOnce(&mut S) -> Result<T, ParquetError> + Send + 'static,
) -> Result<(S, T), Fault> {
    let done = tokio::task::spawn_blocking(move || work(&mut state).map(|decoded| (state, decoded))).await;
    done.map_err(|e| Fault::thread(&file.location, e))?.map_err(|e| unreadable(file, e))
}

fn unreadable(file: &ObjectMeta, source: ParquetError) -> Fault {
    Fault::Unreadable(corrupt(format!("checkpoint `{}` can't be read", file.location)).with_source(source))
}

#[cfg(test)]
mod tests;
