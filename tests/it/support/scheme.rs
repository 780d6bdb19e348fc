//! Stores of a test's own under URLs of a test's own, for code that wants a URL: whoever opens
//! `test-store://name/…` gets the store that was given that name.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Once, PoisonError};

use deltalake::logstore::{
    LogStore, LogStoreFactory, ObjectStoreFactory, ObjectStoreRef, StorageConfig, default_logstore,
    logstore_factories, object_store_factories,
};
use deltalake::{DeltaResult, DeltaTableError};
use object_store::ObjectStore;
use object_store::path::Path;
use url::Url;

const SCHEME: &str = "test-store://";

static STORES: Mutex<Option<HashMap<String, Arc<dyn ObjectStore>>>> = Mutex::new(None);

/// A store under a name; it is forgotten when this is dropped.
pub(crate) struct Named(String);

impl Named {
    pub(crate) fn new(name: impl Into<String>, store: Arc<dyn ObjectStore>) -> Self {
        static ONCE: Once = Once::new();
        ONCE.call_once(|| {
            let scheme = Url::parse(SCHEME).unwrap();
            object_store_factories().insert(scheme.clone(), Arc::new(Factory));
            logstore_factories().insert(scheme, Arc::new(Factory));
        });
        let name = name.into();
        let mut stores = STORES.lock().unwrap_or_else(PoisonError::into_inner);
        let before = stores.get_or_insert_default().insert(name.clone(), store);
        assert!(before.is_none(), "two stores are named {name}");
        Self(name)
    }

    /// A table in the store.
    pub(crate) fn uri(&self, path: &str) -> String {
        format!("{SCHEME}{}/{path}", self.0)
    }
}

impl Drop for Named {
    fn drop(&mut self) {
        if let Some(stores) = STORES.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            stores.remove(&self.0);
        }
    }
}

struct Factory;

impl ObjectStoreFactory for Factory {
    fn parse_url_opts(&self, url: &Url, _: &StorageConfig) -> DeltaResult<(ObjectStoreRef, Path)> {
        let stores = STORES.lock().unwrap_or_else(PoisonError::into_inner);
        let store = stores.as_ref().and_then(|all| all.get(url.host_str()?)).cloned();
        let store = store.ok_or_else(|| DeltaTableError::InvalidTableLocation(url.to_string()))?;
        Ok((store, Path::from_url_path(url.path())?))
    }
}

impl LogStoreFactory for Factory {
    fn with_options(
        &self,
        prefixed: ObjectStoreRef,
        root: ObjectStoreRef,
        location: &Url,
        options: &StorageConfig,
    ) -> DeltaResult<Arc<dyn LogStore>> {
        Ok(default_logstore(prefixed, root, location, options))
    }
}
