//! Where tables come from.

#[cfg(feature = "glue")]
mod glue;
