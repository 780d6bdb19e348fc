//! Where a table lies, as a Unity catalog writes it.

use url::Url;

use crate::delta::location::shown;
use crate::error::Error;

/// A location that a store can be opened for.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) uri: String,
    pub(super) is_local: bool,
    /// The store's own endpoint, where the location tells it.
    pub(super) endpoint: Option<String>,
}

/// A `storage_location`.
///
/// # Errors
/// `Usage`: there is none, or no store can be opened for it.
pub(super) fn of(location: Option<&str>) -> Result<Place, Error> {
    let text = location.map(str::trim).filter(|t| !t.is_empty()).ok_or_else(|| {
        Error::usage("the catalog tells no location of it").with_hint(
            "the token's user may lack the privilege to see it: grant it, or put the table into `exclude`",
        )
    })?;
    let plain = |uri: String, is_local| Place { uri, is_local, endpoint: None };
    if text.starts_with('/') {
        return Ok(plain(text.to_owned(), true));
    }
    let (scheme, rest) = text.split_once(':').unwrap_or_default();
    match (scheme.to_ascii_lowercase().as_str(), rest) {
        // Java writes `file:/path`.
        ("file", rest) if rest.starts_with('/') => {
            Ok(plain(format!("file://{}", rest.strip_prefix("//").unwrap_or(rest)), true))
        }
        // Hadoop's names for the same store.
        ("s3" | "s3a" | "s3n", rest) if rest.starts_with("//") => Ok(plain(format!("s3:{rest}"), false)),
        (scheme @ ("gs" | "az" | "adl" | "azure" | "abfs" | "abfss"), rest) if rest.starts_with("//") => {
            Ok(plain(format!("{scheme}:{rest}"), false))
        }
        ("r2", _) => r2(text),
        _ => Err(unknown(text)),
    }
}

/// `r2://bucket@account.r2.cloudflarestorage.com/path`: S3 by another name, with its endpoint in it.
fn r2(text: &str) -> Result<Place, Error> {
    let url = Url::parse(text).map_err(|_| unknown(text))?;
    match (url.username(), url.host_str()) {
        ("", _) | (_, None) => Err(unknown(text)),
        (bucket, Some(host)) => Ok(Place {
            uri: format!("s3://{bucket}{}", url.path()),
            is_local: false,
            endpoint: Some(format!("https://{host}")),
        }),
    }
}

fn unknown(text: &str) -> Error {
    let scheme = text.split_once(':').map(|(s, _)| s).filter(|s| s.len() < 20);
    let told = match scheme {
        Some(_) if text.contains("://") => shown(text),
        Some(scheme) => format!("{scheme}:…"),
        None => "…".to_owned(),
    };
    Error::usage(format!("its location `{}` is in no store that is known", crate::model::text::clean(&told)))
        .with_hint("known are s3, gs, abfss and its kin, r2, and local files; put the table into `exclude`")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorCode;

    #[test]
    fn locations_are_written_as_stores_know_them() {
        for (text, uri, is_local) in [
            ("s3://b/t", "s3://b/t", false),
            ("s3a://b/t", "s3://b/t", false),
            ("S3N://b/t", "s3://b/t", false),
            ("gs://b/t", "gs://b/t", false),
            ("abfss://c@a.dfs.core.windows.net/t", "abfss://c@a.dfs.core.windows.net/t", false),
            ("file:///tmp/t", "file:///tmp/t", true),
            ("file:/tmp/t", "file:///tmp/t", true),
            ("file:///tmp/a%20b", "file:///tmp/a%20b", true),
            ("/tmp/t", "/tmp/t", true),
        ] {
            let wanted = Place { uri: uri.to_owned(), is_local, endpoint: None };
            assert_eq!(of(Some(text)).unwrap(), wanted, "{text}");
        }
        let place = of(Some("r2://b@acc.r2.cloudflarestorage.com/t/u")).unwrap();
        assert_eq!(place.uri, "s3://b/t/u");
        assert_eq!(place.endpoint.as_deref(), Some("https://acc.r2.cloudflarestorage.com"));
    }

    #[test]
    fn a_location_that_leads_nowhere_is_told_without_a_secret() {
        let texts =
            ["", " ", "dbfs:/x", "t", "wasbs://u:SECRET@h/x?sig=SECRET", "s3:b/t", "r2://b/t", "file:t"];
        for text in texts.map(Some).into_iter().chain([None]) {
            let error = of(text).unwrap_err();
            assert_eq!(error.code(), ErrorCode::Usage, "{text:?}");
            assert!(error.hint().is_some() && !format!("{error:?}").contains("SECRET"), "{error:?}");
        }
    }
}
