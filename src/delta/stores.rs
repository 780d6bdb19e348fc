//! The stores of many tables: one client for all that lie in a bucket.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex};

use object_store::ObjectStore;
use object_store::limit::LimitStore;
use object_store::path::Path;
use url::Url;

use super::location::{self, Location};
use crate::error::Error;

/// Opens stores, each once: tables that lie in one bucket and have the same storage options share a
/// client, its connections, and a bound on the requests that are under way.
pub struct Stores {
    requests: usize,
    open: Mutex<HashMap<Key, Arc<dyn ObjectStore>>>,
}

/// What tells one store from another: scheme, user and host of the URL, and the options.
type Key = (String, BTreeMap<String, String>);

/// A folder in a store.
pub(crate) struct Folder {
    /// The whole store, from its root.
    pub(crate) store: Arc<dyn ObjectStore>,
    /// Where in the store the folder is.
    pub(crate) path: Path,
    pub(crate) url: Url,
}

impl Stores {
    /// Stores with at most so many requests under way in each.
    pub fn new(requests: usize) -> Self {
        Self { requests: requests.max(1), open: Mutex::default() }
    }

    /// A table by path or URL.
    ///
    /// # Errors
    /// As [`Location::new`].
    pub fn location(&self, uri: &str, options: &BTreeMap<String, String>) -> Result<Location, Error> {
        let url = location::parse(uri)?;
        let store = self.store(&url, options)?;
        location::in_store(&url, store, options)
    }

    /// A table whose credentials are its own: no other table shares its client, and nothing of it
    /// is kept.
    pub(crate) fn unshared(uri: &str, options: HashMap<String, String>) -> Result<Location, Error> {
        Location::new(uri, options)
    }

    /// A folder to look for tables in.
    pub(crate) fn folder(&self, uri: &str, options: &BTreeMap<String, String>) -> Result<Folder, Error> {
        let url = location::parse(uri)?;
        let (store, path) = (self.store(&url, options)?, location::path_in_store(&url)?);
        Ok(Folder { store, path, url })
    }

    fn store(&self, url: &Url, options: &BTreeMap<String, String>) -> Result<Arc<dyn ObjectStore>, Error> {
        // User and port are part of it: Azure writes the container where others write a user.
        let end = url.path().len() + url.query().map_or(0, |q| q.len() + 1);
        let authority = url.as_str().get(..url.as_str().len().saturating_sub(end)).unwrap_or_default();
        let key = (authority.to_owned(), options.clone());
        let mut open = self.open.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(store) = open.get(&key) {
            return Ok(store.clone());
        }
        let store: Arc<dyn ObjectStore> =
            Arc::new(LimitStore::new(location::root_store(url, options)?, self.requests));
        open.insert(key, store.clone());
        Ok(store)
    }
}

impl fmt::Debug for Stores {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Options are secret.
        f.debug_struct("Stores").field("requests", &self.requests).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_one_client(a: (&str, &str), b: (&str, &str)) -> bool {
        let stores = Stores::new(4);
        let store = |(uri, option): (&str, &str)| {
            let options = BTreeMap::from([("some_option".to_owned(), option.to_owned())]);
            stores.folder(uri, &options).unwrap().store
        };
        Arc::ptr_eq(&store(a), &store(b))
    }

    #[test]
    fn tables_of_one_bucket_with_the_same_options_share_a_client() {
        assert!(is_one_client(("memory:///t", "x"), ("memory:///u/v", "x")));
        assert!(is_one_client(("/lake/t", "x"), ("/elsewhere/u", "x")));
        assert!(!is_one_client(("memory:///t", "x"), ("memory:///t", "y")));
        assert!(!is_one_client(("/lake/t", "x"), ("memory:///t", "x")));
    }
}
