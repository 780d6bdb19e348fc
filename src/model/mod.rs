//! What is decided: values in, values out; no async, no I/O, no clock, no randomness.

pub(crate) mod digest;
pub(crate) mod features;
pub(crate) mod kind;
pub(crate) mod kind_file;
pub(crate) mod migration;
pub(crate) mod path;
pub(crate) mod state;
pub(crate) mod text;
pub(crate) mod types;
pub(crate) mod version;
