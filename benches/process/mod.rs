//! Whole processes: which tables there are, what is done with them, and how it is measured.

pub(crate) mod forms;
pub(crate) mod measure;
pub(crate) mod operations;
pub(crate) mod scenarios;
pub(crate) mod startup;
