//! What the library and the command promise, proved on the bytes of logs and on rows read back.

// Clippy knows the functions with `#[test]` as tests, not what they call.
#![allow(clippy::unwrap_used, clippy::panic)]

mod adopt;
mod batch;
mod cases;
mod command;
mod compat;
mod features;
mod lock;
mod migrate;
mod orders;
mod plans;
mod purity;
mod races;
mod requests;
mod scaffold;
mod sink;
mod sources;
mod states;
mod stores;
mod support;
mod wild;
