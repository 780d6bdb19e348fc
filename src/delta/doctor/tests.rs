use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use bytes::Bytes;
use deltalake::logstore::{StorageConfig, logstore_with};
use futures::StreamExt;
use futures::stream::BoxStream;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error as StoreError, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, ObjectStoreExt, PutMode, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};

use super::*;

/// What a store does wrong.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Fault {
    None,
    /// Conditions are ignored.
    Overwrites,
    /// So many conditional writes are refused, then one overwrites.
    OverwritesAfter(usize),
    /// The second of two is refused, after it was written.
    RefusesTooLate,
    /// Nothing can be removed.
    Keeps,
    /// Nothing can be written.
    ReadOnly,
    /// Nothing can be listed.
    NoList,
    /// Nothing is allowed.
    Closed,
    /// Every third write fails after it landed.
    LosesAnswers,
}

#[derive(Debug)]
struct Faulty {
    inner: InMemory,
    fault: Fault,
    puts: AtomicUsize,
}

impl fmt::Display for Faulty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Faulty({:?})", self.fault)
    }
}

fn denied(path: &Path) -> StoreError {
    StoreError::PermissionDenied { path: path.to_string(), source: "403 Forbidden: AccessDenied".into() }
}

#[async_trait::async_trait]
impl ObjectStore for Faulty {
    async fn put_opts(&self, path: &Path, bytes: PutPayload, options: PutOptions) -> Result<PutResult> {
        tokio::task::yield_now().await;
        let n = self.puts.fetch_add(1, Relaxed);
        let overwrite = self.inner.put_opts(path, bytes.clone(), PutOptions::default());
        match self.fault {
            Fault::Overwrites => overwrite.await,
            Fault::OverwritesAfter(after) if n == after => overwrite.await,
            Fault::RefusesTooLate => {
                assert_eq!(options.mode, PutMode::Create, "commits are made so");
                let there = self.inner.head(path).await.is_ok();
                let put = overwrite.await?;
                let source = "412".into();
                if there {
                    Err(StoreError::AlreadyExists { path: path.to_string(), source })
                } else {
                    Ok(put)
                }
            }
            Fault::ReadOnly | Fault::Closed => Err(denied(path)),
            Fault::LosesAnswers if n > 10 && n.is_multiple_of(3) => {
                let _ = self.inner.put_opts(path, bytes, options).await;
                Err(StoreError::Generic { store: "test", source: "connection reset".into() })
            }
            _ => self.inner.put_opts(path, bytes, options).await,
        }
    }

    async fn put_multipart_opts(
        &self,
        path: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(path, options).await
    }

    async fn get_opts(&self, path: &Path, options: GetOptions) -> Result<GetResult> {
        if self.fault == Fault::Closed {
            return Err(denied(path));
        }
        self.inner.get_opts(path, options).await
    }

    async fn get_ranges(&self, path: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.inner.get_ranges(path, ranges).await
    }

    fn delete_stream(&self, paths: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        match self.fault {
            Fault::Keeps => paths.map(|path| Err(denied(&path?))).boxed(),
            _ => self.inner.delete_stream(paths),
        }
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        match self.fault {
            Fault::NoList | Fault::Closed => {
                let source = "403 Forbidden: AccessDenied".into();
                futures::stream::iter([Err(StoreError::Generic { store: "test", source })]).boxed()
            }
            _ => self.inner.list(prefix),
        }
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}

/// What the examination of such a store says, and how many objects it leaves.
async fn examined(fault: Fault) -> (Diagnosis, usize) {
    let store = Arc::new(Faulty { inner: InMemory::new(), fault, puts: AtomicUsize::new(0) });
    let url = Url::parse("memory:///t/").unwrap();
    let log_store = logstore_with(store.clone(), &url, StorageConfig::default()).unwrap();
    let location = Location::from_log_store(log_store);
    let found = examine(&location, None, None, Vec::new(), std::future::pending()).await;
    (found, store.inner.list(None).count().await)
}

fn outcomes(found: &Diagnosis) -> HashMap<&str, (CheckOutcome, &str)> {
    found.checks.iter().map(|c| (c.check, (c.outcome, c.message.as_str()))).collect()
}

fn failed(found: &Diagnosis) -> Vec<&str> {
    found.checks.iter().filter(|c| c.is_failed()).map(|c| c.check).collect()
}

#[tokio::test]
async fn a_store_that_keeps_its_word_is_fine_and_left_as_it_was() {
    let (found, left) = examined(Fault::None).await;
    assert!(found.ok && left == 0, "{found:#?}");
    let ok = |name: &str, message: &str| {
        assert_eq!(outcomes(&found)[name], (CheckOutcome::Ok, message));
    };
    ok("list", "nothing lies there yet");
    ok("read", "a missing object is said to be missing");
    ok("conditional_create", "5 objects created, 5 second writes refused");
    ok("racing_creates", "50 rounds of 20 racing writers, one winner each");
    ok("delete", "55 scratch objects removed, nothing is left");
    assert!(found.median_write_ms.is_some());
    assert!(found.checks.iter().all(|c| c.hint.is_none()));
}

#[tokio::test]
async fn a_store_that_overwrites_is_found_out() {
    for (fault, check, message) in [
        (Fault::Overwrites, "conditional_create", "the second of two writes of one object was taken"),
        (Fault::OverwritesAfter(7), "conditional_create", "the second of two writes of one object was taken"),
        (Fault::RefusesTooLate, "conditional_create", "a write that was refused replaced the object"),
        // The tenth write is the last of the pairs; then the rounds begin.
        (
            Fault::OverwritesAfter(10 + 37 * 20 + 13),
            "racing_creates",
            "in 1 of 50 rounds of 20 racing writers several won",
        ),
    ] {
        let (found, left) = examined(fault).await;
        assert_eq!((found.ok, failed(&found), left), (false, vec![check], 0), "{fault:?}: {found:#?}");
        assert_eq!(outcomes(&found)[check].1, message, "{fault:?}");
        let hint = found.checks.iter().find(|c| c.check == check).unwrap().hint.clone().unwrap();
        assert!(hint.contains("If-None-Match"), "{hint}");
    }
}

#[tokio::test]
async fn what_is_not_allowed_is_told_check_by_check() {
    let (found, left) = examined(Fault::ReadOnly).await;
    assert_eq!((failed(&found), left), (vec!["conditional_create"], 0));
    let (found, left) = examined(Fault::NoList).await;
    // It can't be seen that nothing is left.
    assert_eq!((failed(&found), left), (vec!["list", "delete"], 0));
    let (found, _) = examined(Fault::Closed).await;
    assert_eq!(failed(&found), ["list", "read"]);
    assert_eq!(outcomes(&found)["delete"], (CheckOutcome::Skipped, "nothing was written"));
    assert!(
        found.checks.iter().filter(|c| c.is_failed()).all(|c| c
            .hint
            .as_ref()
            .unwrap()
            .contains("s3:ListBucket"))
    );
}

#[tokio::test]
async fn scratch_objects_that_can_not_be_removed_are_told() {
    let (found, left) = examined(Fault::Keeps).await;
    assert_eq!((failed(&found), left), (vec!["delete"], 55));
    let check = found.checks.iter().find(|c| c.check == "delete").unwrap();
    assert_eq!(check.message, "55 scratch objects may be left: 403 Forbidden: AccessDenied");
    assert!(check.hint.as_ref().unwrap().contains("memory:///t/_delta_migrate_doctor/"), "{check:?}");
}

#[tokio::test]
async fn rounds_with_lost_answers_prove_nothing_and_accuse_nobody() {
    let (found, left) = examined(Fault::LosesAnswers).await;
    assert_eq!((failed(&found), left), (vec!["racing_creates"], 0), "{found:#?}");
    let message = outcomes(&found)["racing_creates"].1;
    assert_eq!(message, "only 0 of 50 rounds of 20 racing writers had a clear end: connection reset");
}

#[tokio::test]
async fn an_interrupt_still_removes_what_was_written() {
    let store = Arc::new(Faulty { inner: InMemory::new(), fault: Fault::None, puts: AtomicUsize::new(0) });
    let url = Url::parse("memory:///t/").unwrap();
    let location =
        Location::from_log_store(logstore_with(store.clone(), &url, StorageConfig::default()).unwrap());
    let seen = store.clone();
    let after_some = async move {
        while seen.puts.load(Relaxed) < 100 {
            tokio::task::yield_now().await;
        }
    };
    let found = examine(&location, None, None, Vec::new(), after_some).await;
    assert!(store.puts.load(Relaxed) < 300, "it went on");
    assert_eq!((found.ok, failed(&found)), (false, vec!["interrupted"]), "{found:#?}");
    assert_eq!(store.inner.list(None).count().await, 0);
}

#[tokio::test]
async fn a_local_folder_is_left_as_it_was_and_never_made() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("file"), b"x").unwrap();
    let of = async |path: &std::path::Path| {
        diagnose(path.to_str().unwrap(), &BTreeMap::new(), std::future::pending()).await
    };
    let found = of(folder.path()).await.unwrap();
    assert!(found.ok, "{found:#?}");
    assert_eq!(outcomes(&found)["hard_links"], (CheckOutcome::Ok, "the file system has them"));
    assert_eq!(outcomes(&found)["list"].1, "something lies there");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    for (name, says) in [("gone", "does not exist"), ("file", "is no folder")] {
        let error = of(&folder.path().join(name)).await.unwrap_err();
        assert_eq!(error.code(), crate::ErrorCode::Usage);
        assert!(error.message().ends_with(says), "{error}");
    }
    assert!(!folder.path().join("gone").exists());
}

#[tokio::test]
async fn a_store_that_can_not_be_opened_fails_its_first_check() {
    let found = diagnose("hdfs://a/b", &BTreeMap::new(), std::future::pending()).await.unwrap();
    assert_eq!((found.ok, failed(&found)), (false, vec!["open"]));
    assert_eq!(found.checks.len(), 2, "{found:#?}");
    assert!(diagnose("", &BTreeMap::new(), std::future::pending()).await.is_err());
}
