//! The only door to deltalake: reading logs, committing, loaded tables.

#[cfg(feature = "cli")]
pub(crate) mod arrow_file;
pub(crate) mod arrow_schema;
pub(crate) mod checksum;
pub(crate) mod commit;
#[cfg(feature = "datafusion")]
pub(crate) mod data;
pub(crate) mod disk;
pub(crate) mod doctor;
pub(crate) mod history;
pub(crate) mod location;
pub(crate) mod read;
pub(crate) mod snapshot;
pub(crate) mod stores;
#[cfg(test)]
pub(crate) mod test_store;
pub(crate) mod timestamps;
