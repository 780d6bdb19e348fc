//! What every source of tables owes, and what each owes beside it.

#[cfg(feature = "unity")]
mod unity;
