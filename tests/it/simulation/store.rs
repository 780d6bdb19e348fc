//! The bucket as an actor sees it: each request waits for its turn.

use std::fmt;
use std::ops::Range;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use chrono::{DateTime, Utc};
use delta_migrate::Moments;
use futures::future::{BoxFuture, FutureExt as _};
use futures::stream::{self, BoxStream, StreamExt as _};
use object_store::path::Path;
use object_store::{
    Attributes, CopyOptions, GetOptions, GetRange, GetResult, GetResultPayload, ListResult, MultipartUpload,
    ObjectMeta, ObjectStore, PutMode, PutMultipartOptions, PutOptions, PutPayload, PutResult, RenameOptions,
    Result,
};
use uuid::Uuid;

use super::answers;
use super::scenario::FaultKind;
use super::schedule::{Answer, Ask, Parked, Wait};
use super::world::World;

#[derive(Clone)]
pub(super) struct Shared(Arc<Mutex<World>>);

impl Shared {
    pub(super) fn new(world: World) -> Self {
        Self(Arc::new(Mutex::new(world)))
    }

    pub(super) fn world(&self) -> MutexGuard<'_, World> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Asks for something and waits for its turn.
    pub(super) fn ask(&self, actor: usize, ask: Ask) -> Turn {
        let mut world = self.world();
        let run = world.current_run(actor);
        if let (Some(run), Ask::Put { path, bytes }) = (run, &ask) {
            super::invariants::sent(&mut world, run, path, bytes);
        }
        let parked = Parked { actor, run, ask, wait: Wait::Turn, counted: false, waker: None };
        Turn { ticket: world.schedule.park(parked), shared: self.clone(), over: false }
    }
}

/// A request that waits for its answer.
pub(super) struct Turn {
    shared: Shared,
    ticket: u64,
    over: bool,
}

impl Future for Turn {
    type Output = Answer;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Answer> {
        let ticket = self.ticket;
        let mut world = self.shared.world();
        match world.schedule.take_answer(ticket) {
            Some(answer) => {
                drop(world);
                self.over = true;
                Poll::Ready(answer)
            }
            None => {
                if let Some(parked) = world.schedule.parked.get_mut(&ticket) {
                    parked.waker = Some(cx.waker().clone());
                }
                Poll::Pending
            }
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if !self.over {
            self.shared.world().schedule.give_up(self.ticket);
        }
    }
}

/// The store of one actor.
pub(super) struct SimStore {
    pub(super) shared: Shared,
    pub(super) actor: usize,
}

impl SimStore {
    fn never(&self, what: &str) {
        self.shared.world().violation(format!("a migrator asked the store for {what}"));
    }

    fn listing(
        &self,
        prefix: Option<&Path>,
        after: Option<String>,
    ) -> BoxStream<'static, Result<ObjectMeta>> {
        let prefix = format!("{}/", prefix.map(Path::as_ref).unwrap_or_default());
        let turn = self.shared.ask(self.actor, Ask::List { prefix: prefix.clone(), after });
        let listed = turn.map(move |answer| match answer {
            Answer::Listed { found, broken } => {
                let error = broken.then(|| Err(answers::error(FaultKind::Breaks, &prefix)));
                found.into_iter().map(Ok).chain(error).collect()
            }
            other => vec![Err(failure(other))],
        });
        stream::once(listed).flat_map(stream::iter).boxed()
    }
}

fn failure(answer: Answer) -> object_store::Error {
    match answer {
        Answer::Failed(error) => error,
        other => panic!("no answer to this request: {other:?}"),
    }
}

impl fmt::Debug for SimStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SimStore")
    }
}

impl fmt::Display for SimStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SimStore")
    }
}

#[async_trait::async_trait]
impl ObjectStore for SimStore {
    async fn put_opts(&self, location: &Path, payload: PutPayload, opts: PutOptions) -> Result<PutResult> {
        if opts.mode != PutMode::Create {
            self.never(&format!("a put of `{location}` that may overwrite"));
        }
        let ask = Ask::Put { path: location.to_string(), bytes: Bytes::from(payload) };
        match self.shared.ask(self.actor, ask).await {
            Answer::Created => Ok(PutResult { e_tag: None, version: None }),
            other => Err(failure(other)),
        }
    }

    async fn put_multipart_opts(&self, _: &Path, _: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        self.never("a put in parts");
        Err(object_store::Error::NotSupported { source: "no parts".into() })
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let ask = Ask::Get { path: location.to_string(), range: options.range };
        match self.shared.ask(self.actor, ask).await {
            Answer::Object { meta, bytes, start, broken } => {
                let range = start..start + bytes.len() as u64;
                let mut chunks = vec![Ok(bytes.clone())];
                if broken {
                    let half = bytes.slice(..bytes.len() / 2);
                    chunks = vec![Ok(half), Err(answers::error(FaultKind::Breaks, location.as_ref()))];
                }
                let payload = GetResultPayload::Stream(stream::iter(chunks).boxed());
                Ok(GetResult { payload, meta, range, attributes: Attributes::default() })
            }
            other => Err(failure(other)),
        }
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let mut out = Vec::new();
        for range in ranges {
            let options =
                GetOptions { range: Some(GetRange::Bounded(range.clone())), ..GetOptions::default() };
            out.push(self.get_opts(location, options).await?.bytes().await?);
        }
        Ok(out)
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        self.never("a deletion");
        locations
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.listing(prefix, None)
    }

    fn list_with_offset(
        &self,
        prefix: Option<&Path>,
        offset: &Path,
    ) -> BoxStream<'static, Result<ObjectMeta>> {
        self.listing(prefix, Some(offset.to_string()))
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        let prefix = format!("{}/", prefix.map(Path::as_ref).unwrap_or_default());
        match self.shared.ask(self.actor, Ask::Folder { prefix }).await {
            Answer::Folder { objects, folders } => {
                let common_prefixes = folders.into_iter().map(Path::from).collect();
                Ok(ListResult { common_prefixes, objects })
            }
            other => Err(failure(other)),
        }
    }

    async fn copy_opts(&self, _: &Path, _: &Path, _: CopyOptions) -> Result<()> {
        self.never("a copy");
        Ok(())
    }

    async fn rename_opts(&self, _: &Path, _: &Path, _: RenameOptions) -> Result<()> {
        self.never("a renaming");
        Ok(())
    }
}

/// The clock of one actor's computer, which may go wrong by `skew`; ids and jitter out of the seed.
#[derive(Clone)]
pub(super) struct SimMoments {
    pub(super) shared: Shared,
    pub(super) actor: usize,
    pub(super) skew: i64,
}

impl fmt::Debug for SimMoments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SimMoments")
    }
}

/// No pause between attempts is as long; time limits are.
const LONG: Duration = Duration::from_secs(5);

impl Moments for SimMoments {
    fn now(&self) -> DateTime<Utc> {
        self.shared.world().now(self.skew)
    }

    fn id(&self) -> Uuid {
        Uuid::from_u128(self.shared.world().id())
    }

    fn elapsed(&self) -> Duration {
        Duration::from_millis(self.shared.world().schedule.clock.unsigned_abs())
    }

    fn sleep(&self, time: Duration) -> BoxFuture<'static, ()> {
        let until = self.shared.world().schedule.clock + time.as_millis() as i64;
        self.shared.ask(self.actor, Ask::Sleep { until, long: time >= LONG }).map(drop).boxed()
    }

    fn jitter(&self) -> Option<u64> {
        Some(self.shared.world().id() as u64)
    }
}
