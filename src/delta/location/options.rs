//! What a location's scheme and storage options say before any request is made.

use std::collections::BTreeMap;

use url::Url;

use crate::error::Error;

/// Options for a store; secret.
pub(crate) type Options = BTreeMap<String, String>;

/// How long one request is tried again. object_store's own 10 times within 180 s are longer than a
/// table's whole budget, so that a dead endpoint would end as "no answer" instead of its cause.
const RETRIES: [(&str, &str); 2] = [("max_retries", "5"), ("retry_timeout", "20s")];

const LOCKING_PROVIDER: &str = "aws_s3_locking_provider";
const CONDITIONAL_PUT: [&str; 2] = ["aws_conditional_put", "conditional_put"];

/// A family of stores, by the scheme of its URLs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Family {
    Local,
    Memory,
    S3,
    Azure,
    Gcs,
}

impl Family {
    pub(crate) fn of(url: &Url) -> Option<Self> {
        match url.scheme() {
            "file" => Some(Self::Local),
            "memory" => Some(Self::Memory),
            "s3" | "s3a" | "s3n" => Some(Self::S3),
            "az" | "abfs" | "abfss" | "adl" | "azure" => Some(Self::Azure),
            "gs" => Some(Self::Gcs),
            _ => None,
        }
    }

    /// For messages.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Local => "the local file system",
            Self::Memory => "memory",
            Self::S3 => "S3",
            Self::Azure => "Azure storage",
            Self::Gcs => "Google Cloud Storage",
        }
    }

    /// The cargo feature that builds it in; none where every build has it.
    fn feature(self) -> Option<&'static str> {
        match self {
            Self::Local | Self::Memory => None,
            Self::S3 => Some("s3"),
            Self::Azure => Some("azure"),
            Self::Gcs => Some("gcs"),
        }
    }

    /// Where its credentials come from.
    pub(crate) fn credentials(self) -> &'static str {
        match self {
            Self::Local => "the permissions of the folder decide",
            Self::Memory => "it needs none",
            Self::S3 => {
                "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (and AWS_SESSION_TOKEN), AWS_PROFILE, or a \
                 role of the machine; the bucket's region is AWS_REGION, another server AWS_ENDPOINT_URL"
            }
            Self::Azure => {
                "set AZURE_STORAGE_ACCOUNT_NAME with AZURE_STORAGE_ACCOUNT_KEY or AZURE_STORAGE_SAS_KEY, or \
                 AZURE_CLIENT_ID, AZURE_CLIENT_SECRET and AZURE_TENANT_ID, or a managed identity"
            }
            Self::Gcs => {
                "set GOOGLE_APPLICATION_CREDENTIALS to a file of credentials, or GOOGLE_SERVICE_ACCOUNT_KEY \
                 to a service account's JSON, or a service account of the machine"
            }
        }
    }
}

/// One spelling for the URLs that mean the same store.
pub(super) fn normalised(url: Url) -> Url {
    let scheme = match url.scheme() {
        "s3a" | "s3n" => "s3",
        // With the container as its user the host names the account; without, the host is the container.
        "az" | "abfs" if !url.username().is_empty() => "abfss",
        "abfs" | "abfss" | "adl" | "azure" if url.username().is_empty() => "az",
        _ => return url,
    };
    let mut other = url.clone();
    match other.set_scheme(scheme) {
        Ok(()) => other,
        Err(()) => url,
    }
}

/// No store of this build takes the URL.
pub(super) fn unknown_scheme(url: &Url) -> Error {
    match Family::of(url).and_then(|family| Some((family, family.feature()?))) {
        Some((family, feature)) => Error::usage(format!("this build has no {}", family.name()))
            .with_hint(format!("build it with `--features {feature}`: `{}://` needs it", url.scheme())),
        None => Error::usage(format!("no store for `{}://` in this build", url.scheme())).with_hint(
            "write s3://bucket/…, az://container/…, abfss://container@account.dfs.core.windows.net/…, \
             gs://bucket/…, or a local path; a Rust program can hand over a table in another store",
        ),
    }
}

/// The options with the defaults of this crate.
pub(super) fn with_defaults(options: &Options) -> Options {
    let mut all = options.clone();
    for (key, value) in RETRIES {
        all.entry(key.to_owned()).or_insert_with(|| value.to_owned());
    }
    all
}

/// The process's environment, as far as it is text.
pub(super) fn environment() -> Options {
    let text = |(key, value): (std::ffi::OsString, std::ffi::OsString)| {
        Some((key.into_string().ok()?, value.into_string().ok()?))
    };
    std::env::vars_os().filter_map(text).collect()
}

/// Other writers may lock where we can't; then our commits and theirs would not see each other.
pub(crate) fn check_no_lock(url: &Url, options: &Options) -> Result<(), Error> {
    no_lock(url, options, &environment())
}

fn no_lock(url: &Url, options: &Options, env: &Options) -> Result<(), Error> {
    let provider = value(&[LOCKING_PROVIDER], options, env).filter(|v| !v.trim().is_empty());
    if provider.is_none() || Family::of(url) != Some(Family::S3) {
        return Ok(());
    }
    let message = "`AWS_S3_LOCKING_PROVIDER` is set, but commits here are conditional puts, which writers \
                   that lock elsewhere do not see";
    Err(Error::usage(message)
        .with_hint("stop the writers that lock, or move them to conditional puts, then unset it"))
}

/// Refuses settings that no commit, or no request at all, could go with.
pub(super) fn check(url: &Url, options: &Options, env: &Options) -> Result<(), Error> {
    check_text(url, options, env)?;
    let (endpoint, allow_http, emulator): (&[&str], &[&str], &[&str]) = match Family::of(url) {
        Some(Family::S3) => {
            if value(&CONDITIONAL_PUT, options, env)
                .is_some_and(|v| v.trim().eq_ignore_ascii_case("disabled"))
            {
                let message = "`conditional_put` is `disabled`, but every commit is a conditional put";
                return Err(Error::usage(message)
                    .with_hint("take `conditional_put` out of the options and AWS_CONDITIONAL_PUT out of the environment"));
            }
            (
                &["aws_endpoint_url_s3", "aws_endpoint_url", "aws_endpoint", "endpoint_url", "endpoint"],
                &["aws_allow_http", "allow_http"],
                &[],
            )
        }
        Some(Family::Azure) => (
            &["azure_storage_endpoint", "azure_endpoint", "endpoint"],
            &["azure_allow_http", "allow_http"],
            &["azure_storage_use_emulator", "use_emulator"],
        ),
        _ => return Ok(()),
    };
    if let Some(text) = value(endpoint, options, env).filter(|v| !v.is_empty()) {
        check_endpoint(text)?;
    }
    let is_on = |names: &[&str]| value(names, options, env).is_some_and(is_true);
    if !is_on(allow_http)
        && !is_on(emulator)
        && value(endpoint, options, env).is_some_and(|v| v.trim().to_ascii_lowercase().starts_with("http://"))
    {
        let name = allow_http.first().map(|n| n.to_ascii_uppercase()).unwrap_or_default();
        return Err(Error::usage(
            "the endpoint is an http:// address, and unencrypted requests are not allowed",
        )
        .with_hint(format!("use https://, or set {name}=true where the network is trusted")));
    }
    Ok(())
}

/// Values that can be no part of a request: object_store panics on them, in the middle of a run.
fn check_text(url: &Url, options: &Options, env: &Options) -> Result<(), Error> {
    let prefix = match Family::of(url) {
        Some(Family::S3) => "aws_",
        Some(Family::Azure) => "azure_",
        Some(Family::Gcs) => "google_",
        _ => return Ok(()),
    };
    let of_env = env.iter().filter(|(key, _)| key.to_ascii_lowercase().starts_with(prefix));
    // A service account's JSON may have lines.
    let one_line =
        |key: &str| !["key", "credentials"].iter().any(|end| key.ends_with(end)) || prefix != "google_";
    for (key, value) in options.iter().chain(of_env) {
        if one_line(&key.to_ascii_lowercase()) && value.chars().any(char::is_control) {
            return Err(Error::usage(format!(
                "the value of `{key}` holds a line break or another control character"
            ))
            .with_hint("take it out: secrets that were read from a file often end with a line break"));
        }
    }
    Ok(())
}

/// The endpoint itself is not repeated: it may hold a password.
fn check_endpoint(text: &str) -> Result<(), Error> {
    let wrong = |why: &str| {
        Err(Error::usage(format!("the endpoint can't be used: {why}"))
            .with_hint("write it as http://host:port or https://host, without user and password; credentials have options of their own"))
    };
    if text.trim() != text {
        return wrong("there is white space around it");
    }
    let lower = text.to_ascii_lowercase();
    if !lower.starts_with("http://") && !lower.starts_with("https://") {
        return wrong("it does not begin with http:// or https://");
    }
    match Url::parse(text) {
        Err(e) => wrong(&e.to_string()),
        Ok(url) if url.password().is_some() || !url.username().is_empty() => {
            wrong("it holds a user or a password")
        }
        Ok(url) if url.query().is_some() || url.fragment().is_some() => wrong("it holds a query"),
        Ok(_) => Ok(()),
    }
}

/// An option under any of its names: what was given comes before the environment.
fn value<'a>(names: &[&str], options: &'a Options, env: &'a Options) -> Option<&'a str> {
    let find = |all: &'a Options| {
        let named = |name: &&str| all.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
        names.iter().find_map(named).map(|(_, value)| value.as_str())
    };
    find(options).or_else(|| find(env))
}

fn is_true(text: &str) -> bool {
    ["1", "true", "on", "yes", "y"].iter().any(|yes| text.trim().eq_ignore_ascii_case(yes))
}

/// A dependency's text without the values of options and of the environment's credentials: whole, or
/// any part of one that stands in quotes.
pub(super) fn without_secrets(text: &str, options: &Options, env: &Options) -> String {
    const SHORT: usize = 4;
    let ours = |key: &&String| {
        let key = key.to_ascii_lowercase();
        ["aws_", "azure_", "google_"].iter().any(|prefix| key.starts_with(prefix))
    };
    let from_env = env.iter().filter(|(key, _)| ours(key)).map(|(_, value)| value);
    let secrets: Vec<&String> = options.values().chain(from_env).filter(|v| v.len() >= SHORT).collect();
    let whole = secrets.iter().fold(text.to_owned(), |text, secret| text.replace(secret.as_str(), "…"));
    let hidden = |(i, part): (usize, &str)| {
        let is_quoted = i % 2 == 1 && part.len() >= SHORT;
        let is_secret =
            is_quoted && secrets.iter().any(|secret| secret.contains(part.trim_end_matches('\\')));
        if is_secret { "…".to_owned() } else { part.to_owned() }
    };
    whole.split('"').enumerate().map(hidden).collect::<Vec<_>>().join("\"")
}

#[cfg(test)]
mod tests;
