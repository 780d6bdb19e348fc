//! What the library and the command promise, proved on the bytes of logs and on rows read back.

mod adopt;
mod cases;
mod command;
mod features;
mod migrate;
mod plans;
mod purity;
mod races;
mod requests;
mod sink;
mod states;
mod support;
mod wild;
