//! Whose request at the log is next follows from a seed: pods wait at the store until all of them
//! wait (or are done), then one is let through. So an order of steps can be had again.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{StreamExt as _, stream};
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    ObjectStoreExt as _, PutMode, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use tokio::sync::oneshot;

use crate::support::random::Random;

/// The pods of one table, and which of them goes on.
pub(super) struct Turns {
    state: Mutex<State>,
}

struct State {
    random: Random,
    /// How likely the pod that had the last turn has the next one too, in eighths.
    inertia: usize,
    last: usize,
    pods: Vec<Pod>,
    /// Every request at the log that took a turn, in its order.
    trace: Vec<String>,
    /// What no pod may do.
    offences: Vec<String>,
}

#[derive(Default)]
struct Pod {
    waiting: BTreeMap<(String, usize), oneshot::Sender<()>>,
    asked: usize,
    under_way: usize,
    is_stopped: bool,
    is_over: bool,
}

impl Turns {
    pub(super) fn new(pods: usize, mut random: Random) -> Arc<Self> {
        let inertia = *random.pick(&[0, 0, 4, 7]);
        let pods = (0..pods).map(|_| Pod::default()).collect();
        let (trace, offences) = (Vec::new(), Vec::new());
        Arc::new(Self { state: Mutex::new(State { random, inertia, last: 0, pods, trace, offences }) })
    }

    /// Waits until it is this pod's turn. The request is over when the guard is dropped.
    async fn turn(self: &Arc<Self>, pod: usize, what: String) -> Turn {
        let (sender, receiver) = oneshot::channel();
        let turn = {
            let mut state = self.state.lock().unwrap();
            let me = &mut state.pods[pod];
            me.asked += 1;
            let key = (what, me.asked);
            me.waiting.insert(key.clone(), sender);
            me.is_stopped = me.under_way == 0;
            state.go_on();
            Turn { turns: Arc::clone(self), pod, key }
        };
        receiver.await.unwrap();
        turn
    }

    fn note(&self, pod: usize, text: &str) {
        self.state.lock().unwrap().trace.push(format!("pod {pod}: {text}"));
    }

    fn offence(&self, pod: usize, text: String) {
        self.state.lock().unwrap().offences.push(format!("pod {pod}: {text}"));
    }

    /// Every request at the log in its order, and what no pod may have done.
    pub(super) fn trace(&self) -> (Vec<String>, Vec<String>) {
        let state = self.state.lock().unwrap();
        (state.trace.clone(), state.offences.clone())
    }

    /// The pod is over when the guard is dropped, be it by a panic.
    pub(super) fn pod(self: &Arc<Self>, pod: usize) -> Over {
        Over { turns: Arc::clone(self), pod }
    }
}

impl State {
    /// Lets one pod through if all wait.
    fn go_on(&mut self) {
        if self.pods.iter().any(|p| !p.is_over && !p.is_stopped) {
            return;
        }
        let ready: Vec<usize> = (0..self.pods.len()).filter(|i| !self.pods[*i].is_over).collect();
        if ready.is_empty() {
            return;
        }
        let stays = ready.contains(&self.last) && self.random.below(8) < self.inertia;
        let chosen = if stays { self.last } else { *self.random.pick(&ready) };
        self.last = chosen;
        let pod = &mut self.pods[chosen];
        // Of several requests of one pod the first by name, whichever came first.
        let ((what, _), sender) = pod.waiting.pop_first().unwrap();
        pod.is_stopped = false;
        pod.under_way += 1;
        self.trace.push(format!("pod {chosen}: {what}"));
        // One that was given up meanwhile says so when it is dropped.
        let _ = sender.send(());
    }
}

/// A request: it waits, then it is under way.
struct Turn {
    turns: Arc<Turns>,
    pod: usize,
    key: (String, usize),
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut state = self.turns.state.lock().unwrap();
        let pod = &mut state.pods[self.pod];
        if pod.waiting.remove(&self.key).is_none() {
            pod.under_way -= 1;
            pod.is_stopped = pod.under_way == 0 && !pod.waiting.is_empty();
        } else if pod.waiting.is_empty() {
            // It gave up waiting and goes on by itself.
            pod.is_stopped = false;
        }
        state.go_on();
    }
}

pub(super) struct Over {
    turns: Arc<Turns>,
    pod: usize,
}

impl Drop for Over {
    fn drop(&mut self) {
        let mut state = self.turns.state.lock().unwrap();
        state.pods[self.pod].is_over = true;
        state.go_on();
    }
}

/// A pod's door to the store of the table.
pub(super) struct Door {
    inner: Arc<dyn ObjectStore>,
    turns: Arc<Turns>,
    pod: usize,
}

impl Door {
    pub(super) fn new(inner: Arc<dyn ObjectStore>, turns: &Arc<Turns>, pod: usize) -> Self {
        Self { inner, turns: Arc::clone(turns), pod }
    }

    /// Data files are nobody else's, so that only requests at the log take turns.
    async fn turn(&self, verb: &str, path: &Path) -> Option<Turn> {
        if !path.as_ref().contains("_delta_log") {
            return None;
        }
        let name = path.filename().unwrap_or_default();
        Some(self.turns.turn(self.pod, format!("{verb} {name}")).await)
    }

    fn offence(&self, what: &str, path: &Path) {
        self.turns.offence(self.pod, format!("{what} {path}"));
    }
}

impl fmt::Debug for Door {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Door")
    }
}

impl fmt::Display for Door {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Door")
    }
}

/// A listing is one request: what it shows is what there was at one moment.
async fn collected(
    turns: Arc<Turns>,
    pod: usize,
    what: String,
    listing: BoxStream<'static, Result<ObjectMeta>>,
) -> Vec<Result<ObjectMeta>> {
    let _turn = turns.turn(pod, what).await;
    listing.collect().await
}

#[async_trait::async_trait]
impl ObjectStore for Door {
    async fn put_opts(&self, location: &Path, payload: PutPayload, opts: PutOptions) -> Result<PutResult> {
        let turn = self.turn("put", location).await;
        if turn.is_some() && opts.mode != PutMode::Create {
            self.offence("overwrites", location);
        }
        let done = self.inner.put_opts(location, payload, opts).await;
        if turn.is_some() {
            self.turns.note(self.pod, if done.is_ok() { "  it is there" } else { "  somebody was first" });
        }
        done
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        opts: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(location, opts).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        // What is there already stays as it is: whoever is next, the answer is the same. A pod that reads
        // many entries at once then has them in no order.
        let is_there = self.inner.head(location).await.is_ok();
        let _turn = if is_there { None } else { self.turn("get", location).await };
        self.inner.get_opts(location, options).await
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let _turn = self.turn("get-ranges", location).await;
        self.inner.get_ranges(location, ranges).await
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        self.offence("deletes", &Path::default());
        self.inner.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        let what = format!("list {}", prefix.unwrap_or(&Path::default()));
        let listing = collected(Arc::clone(&self.turns), self.pod, what, self.inner.list(prefix));
        stream::once(listing).flat_map(stream::iter).boxed()
    }

    fn list_with_offset(
        &self,
        prefix: Option<&Path>,
        offset: &Path,
    ) -> BoxStream<'static, Result<ObjectMeta>> {
        let what = format!("list {}", prefix.unwrap_or(&Path::default()));
        let listing = self.inner.list_with_offset(prefix, offset);
        let listing = collected(Arc::clone(&self.turns), self.pod, what, listing);
        stream::once(listing).flat_map(stream::iter).boxed()
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        let _turn = self.turn("list", prefix.unwrap_or(&Path::default())).await;
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.offence("copies over", to);
        self.inner.copy_opts(from, to, options).await
    }
}
