//! What stores say when something is wrong, in the variants and words of object_store's clients.

use object_store::Error;

use super::scenario::FaultKind;

/// The error that a fault answers with.
pub(super) fn error(kind: FaultKind, path: &str) -> Error {
    let generic = |store: &'static str, text: &str| Error::Generic { store, source: text.to_owned().into() };
    let exists = |text: &str| Error::AlreadyExists { path: path.to_owned(), source: text.to_owned().into() };
    let failed = |text: &str| Error::Precondition { path: path.to_owned(), source: text.to_owned().into() };
    match kind {
        FaultKind::RefusedAzure => generic(
            "MicrosoftAzure",
            "Error performing PUT, after 10 retries - Server returned non-2xx status code: 503 Service Unavailable: \
             <?xml version=\"1.0\"?><Error><Code>ServerBusy</Code></Error>",
        ),
        FaultKind::RefusedGcs => generic(
            "GCS",
            "Error performing PUT, after 10 retries - Server returned non-2xx status code: 503 Service Unavailable: \
             <?xml version='1.0'?><Error><Code>ServiceUnavailable</Code></Error>",
        ),
        FaultKind::Forbidden => Error::PermissionDenied {
            path: path.to_owned(),
            source: "Server returned non-2xx status code: 403 Forbidden: AccessDenied".into(),
        },
        FaultKind::ExistsNothing => {
            exists("Server returned non-2xx status code: 409 Conflict: ConditionalRequestConflict")
        }
        FaultKind::BlobExistsNothing => {
            exists("Server returned non-2xx status code: 409 Conflict: BlobAlreadyExists")
        }
        FaultKind::RetryPrecondition | FaultKind::PreconditionNothing => {
            failed("Server returned non-2xx status code: 412 Precondition Failed: ConditionNotMet")
        }
        FaultKind::RetryCollides => exists("Server returned non-2xx status code: 412 Precondition Failed"),
        FaultKind::Breaks => generic("S3", "HTTP error: error decoding response body: connection reset"),
        _ => generic(
            "S3",
            "Error performing PUT, after 10 retries - Server returned non-2xx status code: 503 Slow Down: \
             <Error><Code>SlowDown</Code></Error>",
        ),
    }
}

/// The store's honest answer to a put of what is there.
pub(super) fn there(path: &str) -> Error {
    Error::AlreadyExists { path: path.to_owned(), source: "412 Precondition Failed".into() }
}

pub(super) fn nowhere(path: &str) -> Error {
    Error::NotFound { path: path.to_owned(), source: "404 Not Found".into() }
}
