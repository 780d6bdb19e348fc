//! Tables, kinds, stores and the command, for tests.

pub(crate) mod checkpoint;
pub(crate) mod command;
#[cfg(any(feature = "s3", feature = "unity"))]
pub(crate) mod http;
pub(crate) mod judge;
pub(crate) mod kinds;
pub(crate) mod lake;
pub(crate) mod log;
#[cfg(feature = "s3")]
pub(crate) mod proxy;
pub(crate) mod random;
pub(crate) mod rows;
pub(crate) mod scheme;
pub(crate) mod store;
pub(crate) mod table;
pub(crate) mod warnings;

pub(crate) use command::{Ran, apply, command, refused_everywhere, run};
pub(crate) use kinds::{FACTS, facts, kind_file, migrator, migrator_of};
pub(crate) use log::{Log, column, required, struct_type};
pub(crate) use table::Table;
