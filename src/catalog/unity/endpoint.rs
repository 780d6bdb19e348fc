//! Where a Unity catalog's server is.

use std::net::IpAddr;

use url::{Host, Url};

use crate::delta::location::shown;
use crate::error::Error;

const API: &str = "api/2.1/unity-catalog";

/// The URL below which the API's paths are; without user info, query and fragment.
#[derive(Debug, Clone)]
pub(super) struct Endpoint(Url);

impl Endpoint {
    /// Reads a URL, with or without the API's path.
    ///
    /// # Errors
    /// `Usage`: it is no such URL, or holds credentials.
    pub(super) fn parse(text: &str) -> Result<Self, Error> {
        let text = text.trim();
        let wrong = |why: &str| {
            Error::usage(format!("`{}` is no endpoint of a unity catalog: {why}", shown(text)))
                .with_hint("wanted the server's URL, such as `https://host`")
        };
        // The text itself may be a secret that was put in the wrong place.
        let mut url = Url::parse(text).map_err(|_| {
            Error::usage("the endpoint of a unity catalog is no URL")
                .with_hint("wanted the server's URL, such as `https://host`")
        })?;
        if !matches!(url.scheme(), "https" | "http") {
            return Err(wrong("it is not https or http"));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(Error::usage("the endpoint of a unity catalog holds a user or a password")
                .with_hint("leave it out of the URL, and give a `token`"));
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(wrong("it has a part behind `?` or `#`"));
        }
        let path = url.path().trim_end_matches('/');
        let root = path.strip_suffix(API).map_or(path, |root| root.trim_end_matches('/')).to_owned();
        url.set_path(&format!("{root}/{API}"));
        Ok(Self(url))
    }

    /// Host and port, as people write them.
    pub(super) fn host(&self) -> String {
        let host = self.0.host_str().unwrap_or_default();
        self.0.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
    }

    /// Whether what is sent can't be read on the way.
    pub(super) fn is_private(&self) -> bool {
        self.0.scheme() == "https" || self.is_this_machine()
    }

    pub(super) fn is_this_machine(&self) -> bool {
        match self.0.host() {
            Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
            Some(Host::Ipv4(ip)) => IpAddr::from(ip).is_loopback(),
            Some(Host::Ipv6(ip)) => IpAddr::from(ip).is_loopback(),
            None => false,
        }
    }

    /// The URL of a resource, each part of its path escaped.
    pub(super) fn at(&self, path: &[&str], query: &[(&str, &str)]) -> Url {
        let mut url = self.0.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.extend(path);
        }
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        url
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorCode;

    #[test]
    fn an_endpoint_may_be_written_in_many_ways() {
        for (text, wanted) in [
            ("https://host", "https://host/api/2.1/unity-catalog/schemas"),
            ("https://host/", "https://host/api/2.1/unity-catalog/schemas"),
            (" https://host:8443/uc/ ", "https://host:8443/uc/api/2.1/unity-catalog/schemas"),
            ("https://host/api/2.1/unity-catalog", "https://host/api/2.1/unity-catalog/schemas"),
            ("https://host/uc/api/2.1/unity-catalog/", "https://host/uc/api/2.1/unity-catalog/schemas"),
        ] {
            assert_eq!(Endpoint::parse(text).unwrap().at(&["schemas"], &[]).as_str(), wanted, "{text}");
        }
        let at =
            Endpoint::parse("https://host").unwrap().at(&["tables", "a/b?.c"], &[("page_token", "x&y=")]);
        assert_eq!(at.as_str(), "https://host/api/2.1/unity-catalog/tables/a%2Fb%3F.c?page_token=x%26y%3D");
    }

    #[test]
    fn what_is_no_endpoint_is_refused_without_showing_a_secret() {
        for text in [
            "",
            "host",
            "ftp://host",
            "https://",
            "https://dapiSECRET@host",
            "https://user:SECRET@host",
            "https://host/?token=SECRET",
            "dapiSECRET",
            "https://host/#SECRET",
        ] {
            let error = Endpoint::parse(text).unwrap_err();
            assert_eq!(error.code(), ErrorCode::Usage, "{text}");
            assert!(!format!("{error:?} {error} {:?}", error.causes()).contains("SECRET"), "{error:?}");
        }
    }

    #[test]
    fn only_this_machine_and_https_are_private() {
        let private = |text: &str| Endpoint::parse(text).unwrap().is_private();
        for text in [
            "https://host",
            "http://localhost:8080",
            "http://127.0.0.2",
            "http://[::1]:80",
            "http://uc.localhost",
        ] {
            assert!(private(text), "{text}");
        }
        for text in
            ["http://host", "http://10.0.0.1", "http://localhost.example.com", "http://127.example.com"]
        {
            assert!(!private(text), "{text}");
        }
        assert_eq!(Endpoint::parse("http://localhost:8080/x").unwrap().host(), "localhost:8080");
    }
}
