//! Bytes that no writer meant: whatever is read answers or refuses, and never panics, hangs or writes.
//!
//! `PROPTEST_CASES=20000 cargo test --test it fuzz::` looks further; a failure prints the mutations,
//! shrunk to the fewest that still fail.

mod files;
mod mutate;
mod tables;
mod texts;
