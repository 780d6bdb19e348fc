//! How an attempt at a read can fail, and the errors that come of it.

use object_store::path::Path;

use crate::error::{Error, ErrorCode, Stage};
use crate::model::state::StateError;
use crate::model::types::SchemaError;

/// Why one attempt at a read came to nothing.
#[derive(Debug)]
pub(super) enum Fault {
    /// A file that was listed is gone or is another one: somebody cleans up or writes it anew.
    Gone(Path),
    /// The listing does not add up; a listing taken while others write can look like that.
    Torn(Error),
    /// What a file holds can't be read, at whatever time it is tried.
    Unreadable(Error),
    /// Everything else.
    Failed(Error),
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl Fault {
    /// A `get` of a file that the listing showed.
    pub(super) fn get(path: &Path, source: object_store::Error) -> Self {
        match source {
            object_store::Error::NotFound { .. } => Self::Gone(path.clone()),
            source => Self::Failed(storage(path.as_ref(), source)),
        }
    }

    /// Work on a thread of its own that did not end.
    pub(super) fn thread(path: &Path, source: tokio::task::JoinError) -> Self {
        if source.is_panic() {
            return Self::Unreadable(corrupt(format!("`{path}` can't be decoded")).with_source(source));
        }
        let error = Error::new(ErrorCode::Interrupted, Stage::Read, format!("reading `{path}` was cut off"));
        Self::Failed(error.with_source(source))
    }
}

/// Whether the store says that it has no time just now (503, 429): it is asked again later. Its client
/// tells a status in its text alone.
pub(crate) fn is_busy(error: &(dyn std::error::Error + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        let text = error.to_string();
        if text.contains("503 Service Unavailable") || text.contains("429 Too Many Requests") {
            return true;
        }
        next = error.source();
    }
    false
}

/// The store failed at `what`.
pub(super) fn storage(what: &str, source: object_store::Error) -> Error {
    Error::new(ErrorCode::Storage, Stage::Read, format!("`{what}` can't be read from the store"))
        .with_hint(
            "nothing was changed; run it again, and check permissions and credentials if it stays so: \
             `delta-migrate doctor` with the location says what is missing",
        )
        .with_source(source)
}

/// The log breaks PROTOCOL.md.
pub(super) fn corrupt(message: impl Into<String>) -> Error {
    Error::new(ErrorCode::CorruptLog, Stage::Read, message)
        .with_hint("restore or repair the log with the engine that writes the table; nothing was changed")
}

/// What stands at `at` can't be used.
pub(crate) fn unusable(at: &str, error: StateError) -> Error {
    let code = match &error {
        StateError::Schema(SchemaError::UnknownType { .. }) => ErrorCode::UnsupportedFeature,
        StateError::Schema(SchemaError::SameName { .. }) => ErrorCode::InvalidName,
        StateError::Malformed { action, why } => {
            // The text is one line in a file; serde_json's own line and column would mislead.
            let why = why.split(" at line ").next().unwrap_or_default();
            return corrupt(format!("{at}: the {action} action can't be read: {why}"));
        }
        StateError::NullProperty(_) | StateError::Schema(SchemaError::Malformed(_)) => {
            return corrupt(format!("{at}: {error}"));
        }
    };
    Error::new(code, Stage::Read, format!("{at}: {error}"))
        .with_hint("the table needs another schema before it can be migrated; nothing was changed")
}
