//! What is decided: values in, values out; no async, no I/O, no clock, no randomness.

pub(crate) mod assess;
pub(crate) mod checksum;
#[cfg(feature = "cli")]
pub(crate) mod consequences;
pub(crate) mod data;
pub(crate) mod diff;
pub(crate) mod digest;
pub(crate) mod entry;
pub(crate) mod evolve;
pub(crate) mod features;
pub(crate) mod finding;
pub(crate) mod history;
pub(crate) mod kind;
pub(crate) mod kind_file;
pub(crate) mod lockfile;
pub(crate) mod mapping;
pub(crate) mod migration;
pub(crate) mod path;
pub(crate) mod plan;
pub(crate) mod reconcile;
pub(crate) mod refusal;
#[cfg(feature = "cli")]
pub(crate) mod render;
pub(crate) mod report;
pub(crate) mod saved_plan;
pub(crate) mod scaffold;
pub(crate) mod schema_edit;
pub(crate) mod state;
#[cfg(test)]
pub(crate) mod testing;
pub(crate) mod text;
pub(crate) mod toml_walk;
pub(crate) mod types;
pub(crate) mod version;
