//! The walk itself: which folder is next, and what became of the last one.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::path::PathBuf;

use futures::StreamExt as _;
use futures::stream::{self, BoxStream};
use tokio::runtime::Handle;
use tokio::task::{JoinError, JoinSet};

use super::{Inside, Look, Unseen, Walk, is_hidden, local, remote, unnameable};
use crate::catalog::Found;
use crate::error::{Error, ErrorCode, Stage};

/// More would not find the first table sooner, and would crowd out the work on those that were found.
const LISTINGS: usize = 16;

/// A folder to look at.
#[derive(Clone)]
struct Place {
    /// Its path below the root.
    below: String,
    /// The real folder, in the local file system.
    real: Option<PathBuf>,
}

/// What became of one look.
type Looked = (Place, Result<Look, Failed>);

type Failed = Box<dyn std::error::Error + Send + Sync>;

struct Crawl<'a> {
    walk: &'a Walk,
    runtime: Handle,
    /// The last one is next, so that the queue grows with the depth and not with the whole.
    todo: Vec<Place>,
    /// Links to folders wait until every folder that has a name of its own is done, so that it does
    /// not depend on the order of answers by which name a table is found.
    links: BTreeMap<String, PathBuf>,
    /// Real folders that were walked.
    walked: HashSet<PathBuf>,
    /// In tasks of their own: a listing holds one of the store's permits, and if it only went on
    /// when the stream is polled, a caller that waits for the same store could wait for ever.
    under_way: JoinSet<Looked>,
    ready: VecDeque<Result<Found, Error>>,
    /// How many tables were given, how many the globs left out, and how many folders they closed.
    given: usize,
    passed_over: usize,
    not_entered: usize,
}

pub(super) fn tables(walk: &Walk) -> BoxStream<'_, Result<Found, Error>> {
    let begun = stream::once(Crawl::begin(walk));
    begun
        .flat_map(|begun| match begun {
            Ok(crawl) => stream::unfold(crawl, async |mut c| c.next().await.map(|item| (item, c))).boxed(),
            Err(e) => stream::once(async { Err(e) }).boxed(),
        })
        .boxed()
}

impl<'a> Crawl<'a> {
    async fn begin(walk: &'a Walk) -> Result<Self, Error> {
        let runtime = Handle::try_current()
            .map_err(|e| Error::usage("a walk needs a tokio runtime around it").with_source(e))?;
        let url = &walk.folder.url;
        let real = match url.scheme() == "file" {
            false => None,
            true => {
                let root = url.to_file_path().map_err(|()| unnameable(&walk.shown("")))?;
                let real = runtime.spawn_blocking(move || local::real(&root)).await;
                Some(real.map_err(cut_off)?.map_err(|e| no_root(walk, e))?)
            }
        };
        Ok(Self {
            walk,
            runtime,
            walked: real.iter().cloned().collect(),
            todo: vec![Place { below: String::new(), real }],
            links: BTreeMap::new(),
            under_way: JoinSet::new(),
            ready: VecDeque::new(),
            given: 0,
            passed_over: 0,
            not_entered: 0,
        })
    }

    async fn next(&mut self) -> Option<Result<Found, Error>> {
        loop {
            if let Some(item) = self.ready.pop_front() {
                return Some(item);
            }
            while self.under_way.len() < LISTINGS
                && let Some(place) = self.todo.pop()
            {
                self.look(place);
            }
            match self.under_way.join_next().await {
                Some(Ok((place, Ok(Look::Table)))) => self.table(&place),
                Some(Ok((place, Ok(Look::Other(inside))))) => {
                    self.not_entered += usize::from(!self.walk.rules.reaches_below(&place.below));
                    self.go_on(&place, inside);
                }
                Some(Ok((place, Err(e)))) => self.failed(&place, e),
                Some(Err(e)) => self.ready.push_back(Err(cut_off(e))),
                None => match self.links.pop_first() {
                    Some((below, real)) => self.add(below, Some(real)),
                    None => {
                        self.tell_what_was_passed_over();
                        return None;
                    }
                },
            }
        }
    }

    fn look(&mut self, place: Place) {
        let into = self.walk.rules.reaches_below(&place.below);
        if let Some(real) = place.real.clone() {
            let look = move || (place, local::look(&real, into).map_err(Failed::from));
            self.under_way.spawn_blocking_on(look, &self.runtime);
            return;
        }
        let (store, at) = (self.walk.folder.store.clone(), self.walk.at(&place.below));
        let look = async move {
            let looked = match at {
                Ok(at) => remote::look(store.as_ref(), &at, into).await.map_err(Failed::from),
                Err(e) => Err(Failed::from(e)),
            };
            (place, looked)
        };
        self.under_way.spawn_on(look, &self.runtime);
    }

    fn table(&mut self, place: &Place) {
        if self.walk.rules.counts(&place.below) {
            self.given += 1;
            self.ready.push_back(self.walk.found(&place.below));
        } else {
            self.passed_over += 1;
        }
    }

    /// Globs that match nothing are a mistake more often than a wish.
    fn tell_what_was_passed_over(&mut self) {
        let seen = std::mem::take(&mut self.passed_over) + std::mem::take(&mut self.not_entered);
        if self.given == 0 && seen > 0 {
            let source = self.walk.shown("");
            let passed_over = crate::model::text::count(seen, "folder");
            tracing::warn!(
                source,
                "`include` and `exclude` mean no table, and {passed_over} were passed over; `*` is one name, \
                 `**/x` an x at any depth"
            );
        }
    }

    fn go_on(&mut self, place: &Place, inside: Inside) {
        let Inside { mut folders, links, unseen } = inside;
        folders.sort_unstable_by(|a, b| b.cmp(a));
        for name in folders {
            if let Some(below) = self.wanted(place, &name) {
                self.add(below, place.real.as_ref().map(|folder| folder.join(&name)));
            }
        }
        for (name, real) in links {
            if let Some(below) = self.wanted(place, &name) {
                self.links.insert(below, real);
            }
        }
        for (name, why) in unseen {
            if let Some(below) = self.wanted(place, &name) {
                let shown = self.walk.shown(&below);
                self.ready.push_back(Err(match why {
                    Unseen::Name => unnameable(&shown),
                    Unseen::Link(e) => storage(format!("the link `{shown}` can't be followed"), e),
                }));
            }
        }
    }

    /// The path below the root of something in a folder, if it is to be looked at.
    fn wanted(&mut self, folder: &Place, name: &str) -> Option<String> {
        let below = match folder.below.as_str() {
            "" => name.to_owned(),
            folder => format!("{folder}/{name}"),
        };
        if is_hidden(name) {
            return None;
        }
        let reaches = self.walk.rules.reaches(&below);
        self.not_entered += usize::from(!reaches);
        reaches.then_some(below)
    }

    fn add(&mut self, below: String, real: Option<PathBuf>) {
        if real.as_ref().is_none_or(|folder| self.walked.insert(folder.clone())) {
            self.todo.push(Place { below, real });
        }
    }

    fn failed(&mut self, place: &Place, source: Failed) {
        let is_gone = is_not_found(source.as_ref());
        // Below the root somebody just took it away.
        if !is_gone || place.below.is_empty() {
            let message = format!("the folder `{}` can't be listed", self.walk.shown(&place.below));
            self.ready.push_back(Err(storage(message, source)));
        }
    }
}

fn is_not_found(error: &(dyn std::error::Error + Send + Sync + 'static)) -> bool {
    let of_store = error.downcast_ref::<object_store::Error>();
    let of_system = error.downcast_ref::<std::io::Error>();
    matches!(of_store, Some(object_store::Error::NotFound { .. }))
        || of_system.is_some_and(|e| e.kind() == std::io::ErrorKind::NotFound)
}

fn no_root(walk: &Walk, source: std::io::Error) -> Error {
    let shown = walk.shown("");
    let (what, hint) = match source.kind() {
        std::io::ErrorKind::NotFound => ("does not exist", "correct the path, or create the folder"),
        std::io::ErrorKind::NotADirectory => {
            ("is a file, not a folder", "give the folder below which the tables lie")
        }
        _ => return storage(format!("the folder `{shown}` can't be listed"), source),
    };
    Error::usage(format!("the root `{shown}` {what}")).with_hint(hint).with_source(source)
}

fn storage(message: String, source: impl Into<Failed>) -> Error {
    Error::new(ErrorCode::Storage, Stage::Read, message)
        .with_hint("run it again, and check permissions if it stays so; or leave it out with `exclude`")
        .with_source(source)
}

/// A task that did not end.
fn cut_off(source: JoinError) -> Error {
    let message = "looking at a folder was cut off";
    Error::new(ErrorCode::Interrupted, Stage::Read, message).with_source(source)
}
