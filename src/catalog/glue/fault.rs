//! What went wrong between us and Glue, and whether running again may help.

use std::error::Error as StdError;

use aws_sdk_glue::config::http::HttpResponse;
use aws_sdk_glue::error::{ProvideErrorMetadata, SdkError};

use crate::error::{Error, ErrorCode, Stage};
use crate::model::text::{clean, shorten};

/// What was asked, for errors.
#[derive(Clone)]
pub(super) struct About {
    pub(super) asked: Asked,
    /// What must not show.
    pub(super) secrets: Vec<String>,
}

/// What was asked for.
#[derive(Clone)]
pub(super) enum Asked {
    Databases,
    /// The tables of a database that a pattern names.
    Named(String),
    /// The tables of a database that Glue listed.
    Listed(String),
    /// One table, by the name that errors call it.
    Table(String),
}

/// Why a request was turned down, by the codes of Glue and of AWS's front door.
enum Why {
    Denied,
    Credentials,
    Missing,
    Input,
    Key,
    /// Throttled, timed out, or out of order: or a code that nobody here knows.
    Passing,
}

fn why(code: &str) -> Why {
    match code {
        "AccessDeniedException" | "AccessDenied" | "NotAuthorized" | "OptInRequired" => Why::Denied,
        "UnrecognizedClientException"
        | "InvalidClientTokenId"
        | "InvalidSignatureException"
        | "SignatureDoesNotMatch"
        | "IncompleteSignature"
        | "IncompleteSignatureException"
        | "MissingAuthenticationToken"
        | "MissingAuthenticationTokenException"
        | "ExpiredToken"
        | "ExpiredTokenException"
        | "RequestExpired" => Why::Credentials,
        "EntityNotFoundException" => Why::Missing,
        "InvalidInputException" | "ValidationException" | "ValidationError" => Why::Input,
        "GlueEncryptionException" => Why::Key,
        _ => Why::Passing,
    }
}

impl About {
    /// Our error for one of the SDK.
    pub(super) fn error<E>(&self, error: &SdkError<E, HttpResponse>) -> Error
    where
        E: ProvideErrorMetadata + StdError + 'static,
    {
        let usage = |hint: String| self.told(ErrorCode::Usage).with_hint(hint);
        let Some(said) = error.as_service_error().map(ProvideErrorMetadata::meta) else {
            let hint = "is the endpoint Glue's, and can it be reached from here?";
            let cause = scrubbed(&chain(error), &self.secrets);
            return self.told(ErrorCode::Storage).with_hint(hint).with_source(cause);
        };
        let status = error.raw_response().map_or(0, |r| r.status().as_u16());
        let code = said.code().unwrap_or("no code");
        let needs = match self.asked {
            Asked::Databases => "glue:GetDatabases",
            Asked::Named(_) | Asked::Listed(_) => "glue:GetTables",
            Asked::Table(_) => "glue:GetTable",
        };
        let ours = match why(code) {
            Why::Denied => usage(format!("let the caller do `{needs}` here (IAM, and Lake Formation if it is in use)")),
            Why::Credentials => usage(
                "check or renew the access key: that of the storage options if they hold one, else that of the \
                 environment"
                    .to_owned(),
            ),
            Why::Missing => self.missing(),
            Why::Input => usage("check the names in the patterns and `catalog_id`".to_owned()),
            Why::Key => usage("let the caller use the key that the catalog is encrypted with (`kms:Decrypt`)".to_owned()),
            Why::Passing => self.told(ErrorCode::Storage),
        };
        let text = match said.message() {
            Some(message) => format!("{code}: {message}"),
            None => format!("{code} (HTTP {status})"),
        };
        ours.with_source(scrubbed(&text, &self.secrets))
    }

    fn missing(&self) -> Error {
        const PLACE: &str = "the region and the account whose catalog it should be in";
        match &self.asked {
            Asked::Databases => self.told(ErrorCode::Usage).with_hint(format!("check {PLACE}")),
            Asked::Named(_) => self
                .told(ErrorCode::Usage)
                .with_hint(format!("the database is not there: check its name, {PLACE}")),
            Asked::Listed(_) => self.told(ErrorCode::Storage).with_hint(
                "it was listed a moment ago: dropped since, or a link to a database that is gone, which can be \
                 left out with `exclude`",
            ),
            Asked::Table(name) => Error::new(ErrorCode::Missing, Stage::Read, "the catalog has no such table")
                .with_table(name)
                .with_hint(format!("check its name, {PLACE}")),
        }
    }

    /// An answer that makes no sense.
    pub(super) fn fault(&self, what: &str) -> Error {
        self.told(ErrorCode::Storage)
            .with_source(what.to_owned())
            .with_hint("this is the server's fault: is the endpoint really Glue's?")
    }

    fn told(&self, code: ErrorCode) -> Error {
        let stage = if code == ErrorCode::Usage { Stage::Setup } else { Stage::Read };
        match &self.asked {
            Asked::Databases => Error::new(code, stage, "the databases can't be listed"),
            Asked::Named(name) | Asked::Listed(name) => Error::new(
                code,
                stage,
                format!("the tables of the database `{}` can't be listed", clean(name)),
            ),
            Asked::Table(name) => {
                Error::new(code, stage, "the catalog can't be asked for it").with_table(name)
            }
        }
    }
}

/// The texts of an error and its causes, without what one says again.
pub(super) fn chain(error: &(dyn StdError + 'static)) -> String {
    let mut out: Vec<String> = Vec::new();
    let mut next = Some(error);
    while let Some(error) = next {
        let text = error.to_string();
        if !out.iter().any(|said| said.contains(&text)) {
            out.push(text);
        }
        next = error.source();
    }
    out.join(": ")
}

/// A text from outside without what is secret: an answer about a wrong signature repeats the request
/// that was signed, with the session token in it.
pub(super) fn scrubbed(text: &str, secrets: &[String]) -> String {
    let line = text.lines().next().unwrap_or_default();
    let lower = line.to_ascii_lowercase();
    let marks =
        ["aws4-hmac", "credential=", "signature=", "authorization=", "security-token", "secretaccesskey"];
    let end = marks.iter().filter_map(|mark| lower.find(mark)).min();
    let shown = match end.and_then(|end| line.get(..end)) {
        Some(before) => format!("{before}…"),
        None => line.to_owned(),
    };
    let shown =
        secrets.iter().filter(|s| !s.is_empty()).fold(shown, |text, secret| text.replace(secret, "…"));
    shorten(&shown, 300)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_signed_does_not_show() {
        let said = "The request signature we calculated does not match.\n\nThe Canonical String for this request \
                    should have been\n'POST\n/\nx-amz-security-token:TOKEN'";
        assert_eq!(scrubbed(said, &[]), "The request signature we calculated does not match.");
        let said = "'x' is no key=value pair in Authorization header: 'AWS4-HMAC-SHA256 Credential=AKIA1/2'";
        assert_eq!(scrubbed(said, &[]), "'x' is no key=value pair in Authorization header: '…");
        let secrets = [String::new(), "AKIA1".to_owned()];
        assert_eq!(scrubbed("the key AKIA1 is unknown", &secrets), "the key … is unknown");
    }
}
