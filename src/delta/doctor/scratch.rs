//! The objects that the examination writes, each of which it owes to remove.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt, PutMode, PutPayload};

use super::cause::{Trouble, within};
use super::{Check, Location};
use crate::model::text::count;

/// Readers of Delta tables, VACUUM and walks pass over names that begin with `_`.
const FOLDER: &str = "_delta_migrate_doctor";

/// How often what is still there is removed again.
const ATTEMPTS: usize = 3;
const PAUSE: Duration = Duration::from_millis(500);
const AT_ONCE: usize = 20;

/// A place for scratch objects in the store that commits would go to.
pub(super) struct Scratch {
    store: Arc<dyn ObjectStore>,
    /// The location, where it is a local folder.
    local: Option<PathBuf>,
    uri: String,
    id: String,
    /// What was written, or may have been.
    written: Mutex<BTreeSet<Path>>,
}

impl Scratch {
    pub(super) fn new(location: &Location, local: Option<PathBuf>) -> Self {
        Self {
            store: location.store(),
            local,
            uri: location.uri().to_owned(),
            id: uuid::Uuid::new_v4().to_string(),
            written: Mutex::default(),
        }
    }

    pub(super) fn path(&self, name: &str) -> Path {
        Path::from_iter([FOLDER.to_owned(), format!("{}-{name}", self.id)])
    }

    /// The file of a scratch object, where the store is the local file system.
    pub(super) fn file(&self, name: &str) -> Option<PathBuf> {
        let path = self.path(name);
        self.local.as_ref().map(|folder| path.parts().fold(folder.clone(), |at, part| at.join(part.as_ref())))
    }

    /// The first thing that lies at the location, if anything does.
    pub(super) async fn list(&self) -> Result<bool, Trouble> {
        let mut listed = self.store.list(None);
        within(async { listed.next().await.transpose() }).await.map(|first| first.is_some())
    }

    pub(super) async fn get(&self, path: &Path) -> Result<Bytes, Trouble> {
        within(async { self.store.get(path).await?.bytes().await }).await
    }

    /// Writes as a commit does: only where there is nothing.
    pub(super) async fn create(&self, path: &Path, bytes: Bytes) -> Result<(), Trouble> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner).insert(path.clone());
        let put = self.store.put_opts(path, PutPayload::from(bytes), PutMode::Create.into());
        within(put).await.map(|_| ())
    }

    /// Removes one object; that it is gone is seen at the end.
    pub(super) async fn delete(&self, path: &Path) -> Result<(), Trouble> {
        match within(self.store.delete(path)).await {
            Err(trouble) if trouble.is_not_found() => Ok(()),
            ended => ended,
        }
    }

    /// Removes everything that was written, and looks whether it is gone.
    pub(super) async fn remove(&self) -> Check {
        const NAME: &str = "delete";
        let written: Vec<Path> =
            self.written.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect();
        if written.is_empty() {
            self.remove_folder().await;
            return Check::skipped(NAME, "nothing was written");
        }
        let mut left = written.clone();
        let mut trouble = None;
        for attempt in 0..ATTEMPTS {
            if attempt > 0 {
                tokio::time::sleep(PAUSE).await;
            }
            let deleted = stream::iter(&left).map(|path| self.delete(path)).buffer_unordered(AT_ONCE);
            trouble = deleted.filter_map(async |ended| ended.err()).collect::<Vec<_>>().await.pop();
            match self.left().await {
                Ok(found) => left = found,
                Err(failed) if trouble.is_none() => trouble = Some(failed),
                Err(_) => {}
            }
            if left.is_empty() {
                break;
            }
        }
        self.remove_folder().await;
        match (trouble, left.len()) {
            (_, 0) => Check::ok(
                NAME,
                format!("{} removed, nothing is left", count(written.len(), "scratch object")),
            ),
            (trouble, left) => {
                let why = trouble.map(|t| format!(": {}", t.text())).unwrap_or_default();
                let message = format!("{} may be left{why}", count(left, "scratch object"));
                let folder = format!("{}/{FOLDER}/{}-*", self.uri, self.id);
                Check::failed(NAME, message, format!("remove `{folder}` by hand, and allow deletes"))
            }
        }
    }

    /// The scratch objects of this run that are still there.
    async fn left(&self) -> Result<Vec<Path>, Trouble> {
        let own = |path: &Path| path.filename().is_some_and(|name| name.starts_with(&self.id));
        let listed = self.store.list(Some(&Path::from(FOLDER))).map_ok(|meta| meta.location);
        let all: Vec<Path> = within(listed.try_collect()).await?;
        Ok(all.into_iter().filter(own).collect())
    }

    /// Where folders are real, ours goes as soon as it is empty.
    async fn remove_folder(&self) {
        match &self.local {
            Some(folder) => {
                let folder = folder.join(FOLDER);
                let _ = tokio::task::spawn_blocking(move || std::fs::remove_dir(folder)).await;
            }
            // Azure with a hierarchical namespace keeps folders; elsewhere there is nothing of that name.
            None if self.written.lock().unwrap_or_else(PoisonError::into_inner).is_empty() => {}
            None => {
                let _ = within(self.store.delete(&Path::from(FOLDER))).await;
            }
        }
    }
}
