//! A refusal as a value: what the pure core says no to, before anything is written.

use crate::error::{Error, ErrorCode, Stage};

/// Why a table is refused and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) code: ErrorCode,
    pub(crate) message: String,
    pub(crate) hint: String,
}

impl Refusal {
    pub(crate) fn new(code: ErrorCode, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { code, message: message.into(), hint: hint.into() }
    }

    pub(crate) fn at(self, stage: Stage) -> Error {
        Error::new(self.code, stage, self.message).with_hint(self.hint)
    }
}
