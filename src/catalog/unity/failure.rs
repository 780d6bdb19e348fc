//! Why a Unity catalog gave no answer, and what to do about it.

use std::time::Duration;

use reqwest::StatusCode;

use crate::error::{Error, ErrorCode, Stage};
use crate::model::text::clean;

/// A request that failed; without token and URL.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) host: String,
    pub(super) why: Why,
    /// How long the server asks to wait.
    pub(super) wait: Option<Duration>,
}

#[derive(Debug)]
pub(super) enum Why {
    /// No answer, or half of one.
    Transport(reqwest::Error),
    /// An answer that is none of the API.
    NoApi,
    /// An answer without an end.
    TooLarge,
    /// The server's own words.
    Refused { status: StatusCode, code: Option<String>, message: Option<String>, had_token: bool },
}

impl Failure {
    /// Whether asking again may help.
    pub(super) fn may_pass(&self) -> bool {
        match &self.why {
            Why::Transport(_) => true,
            Why::NoApi | Why::TooLarge => false,
            Why::Refused { status, .. } => {
                *status == StatusCode::TOO_MANY_REQUESTS
                    || *status == StatusCode::REQUEST_TIMEOUT
                    || (status.is_server_error() && *status != StatusCode::NOT_IMPLEMENTED)
            }
        }
    }

    /// Whether the server does not have what was asked for at all.
    pub(super) fn is_not_offered(&self) -> bool {
        match &self.why {
            // A table that is gone is no lack of the server.
            Why::Refused { code: Some(code), .. } if code.starts_with("TABLE_") => false,
            Why::Refused { status, .. } => matches!(
                *status,
                StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED | StatusCode::NOT_IMPLEMENTED
            ),
            _ => false,
        }
    }

    /// The error, where `what` says what came to nothing.
    pub(super) fn into_error(self, what: &str) -> Error {
        let code = self.code();
        self.into_error_of(code, what)
    }

    /// The same with a code that the caller knows better.
    pub(super) fn into_error_of(self, code: ErrorCode, what: &str) -> Error {
        let hint = self.hint();
        let Self { host, why, wait: _ } = self;
        let because = match &why {
            Why::Transport(e) if e.is_timeout() => format!("`{host}` did not answer in time"),
            Why::Transport(e) if e.is_connect() => format!("`{host}` can't be reached"),
            Why::Transport(_) => format!("the connection to `{host}` broke"),
            Why::NoApi => format!("the answer of `{host}` is none of a unity catalog"),
            Why::TooLarge => format!("the answer of `{host}` is too large"),
            Why::Refused { status, code, message, .. } => {
                let said = [code, message].into_iter().flatten().map(|t| clean(t)).collect::<Vec<_>>();
                let said = if said.is_empty() { String::new() } else { format!(" ({})", said.join(": ")) };
                format!("`{host}` answers {}{said}", status.as_u16())
            }
        };
        let error = Error::new(code, Stage::Read, format!("{what}: {because}"));
        let error = match hint {
            Some(hint) => error.with_hint(hint),
            None => error,
        };
        match why {
            Why::Transport(e) => error.with_source(e),
            _ => error,
        }
    }

    fn code(&self) -> ErrorCode {
        match &self.why {
            Why::Transport(_) | Why::TooLarge => ErrorCode::Storage,
            Why::NoApi => ErrorCode::Usage,
            Why::Refused { .. } if self.may_pass() => ErrorCode::Storage,
            // A privilege is granted without any change to what is set up here.
            Why::Refused { status, .. } if *status == StatusCode::FORBIDDEN => ErrorCode::Storage,
            Why::Refused { .. } => ErrorCode::Usage,
        }
    }

    fn hint(&self) -> Option<&'static str> {
        match &self.why {
            Why::NoApi => Some("check the `endpoint`: it may be a login page, or another service"),
            Why::Transport(e) if e.is_connect() => Some("check the `endpoint`, and the network to it"),
            Why::Transport(_) | Why::TooLarge => None,
            Why::Refused { status, had_token, .. } => match (status.as_u16(), had_token) {
                (401, true) => {
                    Some("the `token` is not accepted: it may have expired, or be for another server")
                }
                (401, false) => Some("give a `token`"),
                (403, _) => Some(
                    "the token's user needs USE CATALOG, USE SCHEMA and SELECT; what is not to be read \
                     belongs into `exclude`",
                ),
                (404, _) => Some("check the `endpoint` and the names in `tables`"),
                (300..=399, _) => Some("the server sends elsewhere: name the final `endpoint`"),
                _ => None,
            },
        }
    }
}
