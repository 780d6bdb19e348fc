//! How a request of the examination fails, in words.

use std::time::Duration;

use object_store::Error as StoreError;

use super::Family;
use crate::model::text;

/// How long one request may take, the store's own retries included.
pub(super) const LIMIT: Duration = Duration::from_secs(40);

/// Why a request came to nothing.
#[derive(Debug)]
pub(super) enum Trouble {
    Store(StoreError),
    /// No answer within [`LIMIT`].
    Late,
}

impl Trouble {
    pub(super) fn is_not_found(&self) -> bool {
        matches!(self, Self::Store(StoreError::NotFound { .. }))
    }

    /// The store says that the object was there before.
    pub(super) fn is_refusal(&self) -> bool {
        matches!(self, Self::Store(StoreError::AlreadyExists { .. } | StoreError::Precondition { .. }))
    }

    /// The innermost cause, in a line.
    pub(super) fn text(&self) -> String {
        let Self::Store(error) = self else { return format!("no answer within {} s", LIMIT.as_secs()) };
        let mut cause: &(dyn std::error::Error + 'static) = error;
        while let Some(next) = cause.source() {
            cause = next;
        }
        let text = text::without_markup(&cause.to_string());
        let line = text.lines().next().unwrap_or_default();
        text::shorten(line.strip_prefix("Server returned non-2xx status code: ").unwrap_or(line), 300)
    }

    pub(super) fn sort(&self) -> Sort {
        match self {
            Self::Late => Sort::Other,
            Self::Store(StoreError::PermissionDenied { .. }) => Sort::Forbidden,
            Self::Store(StoreError::Unauthenticated { .. } | StoreError::NotSupported { .. }) => {
                Sort::Stranger
            }
            Self::Store(StoreError::NotFound { .. }) => Sort::Absent,
            Self::Store(StoreError::NotImplemented { .. }) => Sort::Unknown,
            // A listing's answer is not sorted by object_store.
            Self::Store(_) => match self.text().get(..4) {
                Some("401 ") => Sort::Stranger,
                Some("403 ") => Sort::Forbidden,
                Some("404 ") => Sort::Absent,
                _ => Sort::Other,
            },
        }
    }

    /// What is missing and what to set.
    pub(super) fn hint(&self, family: Option<Family>) -> String {
        let credentials = family.map_or("see the store's own documentation", Family::credentials);
        match self.sort() {
            Sort::Forbidden if family == Some(Family::Local) => {
                "give this user the permission to list, read and write the folder".to_owned()
            }
            Sort::Forbidden => format!(
                "the credentials must be the right ones, and be allowed to list, read, write and delete below \
                 the location (S3: s3:ListBucket, without which it says 403 for what is missing, s3:GetObject, \
                 s3:PutObject, s3:DeleteObject); {credentials}"
            ),
            Sort::Stranger => credentials.to_owned(),
            Sort::Absent => "see that the bucket or container is there and that its name is right".to_owned(),
            Sort::Unknown => "take another store: this one has no such request".to_owned(),
            Sort::Other if family == Some(Family::Local) => {
                "commits are files that are written aside and linked into place: the folder must be writable \
                 and have space and hard links"
                    .to_owned()
            }
            Sort::Other => format!("see that the store can be reached from here; {credentials}"),
        }
    }
}

/// What a trouble means for the one who has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sort {
    Forbidden,
    /// No credentials, or none that the store knows.
    Stranger,
    /// The bucket or container itself, where it is asked for a listing or a write.
    Absent,
    /// The store has no such request.
    Unknown,
    Other,
}

/// Waits for an answer, not for ever.
pub(super) async fn within<T>(request: impl Future<Output = Result<T, StoreError>>) -> Result<T, Trouble> {
    match tokio::time::timeout(LIMIT, request).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(error)) => Err(Trouble::Store(error)),
        Err(_) => Err(Trouble::Late),
    }
}
