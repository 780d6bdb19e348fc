//! What the library and the command promise, proved on the bytes of logs and on rows read back.

// Clippy knows the functions with `#[test]` as tests, not what they call.
#![allow(clippy::unwrap_used, clippy::panic)]

mod adopt;
mod batch;
mod cases;
mod command;
mod compat;
#[cfg(feature = "datafusion")]
mod data;
mod features;
mod fuzz;
mod library;
mod limits;
mod lock;
mod migrate;
mod orders;
mod plans;
mod policy;
mod purity;
mod races;
mod reconcile;
mod requests;
mod scaffold;
mod simulation;
mod sink;
mod sources;
mod state;
mod states;
mod stores;
mod support;
mod wild;
