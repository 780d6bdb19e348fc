//! Who asks Glue, and where it is.

use std::collections::BTreeMap;
use std::time::Duration;

use aws_config::identity::IdentityCache;
use aws_config::{BehaviorVersion, Region};
use aws_sdk_glue::Client;
use aws_sdk_glue::config::timeout::TimeoutConfig;
use aws_sdk_glue::config::{Config, Credentials, ProvideCredentials as _};

use super::GlueOptions;
use super::ask::Caller;
use super::fault::{chain, scrubbed};
use crate::error::{Error, ErrorCode, Stage};

/// How long the search for credentials or a region may take. A machine without a role has nobody who
/// answers at the metadata address.
const LOOKED_FOR: Duration = Duration::from_secs(10);

/// How long one attempt of a request may take; a page takes a second or two.
const ATTEMPT: Duration = Duration::from_secs(60);

/// As object_store spells them, the usual one first.
const ACCESS_KEY: &[&str] = &["aws_access_key_id", "access_key_id"];
const SECRET_KEY: &[&str] = &["aws_secret_access_key", "secret_access_key"];
const TOKEN: &[&str] = &["aws_session_token", "aws_token", "session_token", "token"];
const REGION: &[&str] = &["aws_region", "region", "aws_default_region", "default_region"];

/// Finds out who asks and where, before the first request.
///
/// # Errors
/// `Usage`: no region, no credentials, or half an access key.
pub(super) async fn connect(options: &GlueOptions) -> Result<Caller, Error> {
    let key = access_key(&options.storage)?;
    let mut loader = aws_config::defaults(BehaviorVersion::latest());
    if let Some(region) = region(options) {
        loader = loader.region(Region::new(region.to_owned()));
    }
    if let Some(key) = key {
        loader = loader.credentials_provider(key);
    }
    let sdk = tokio::time::timeout(LOOKED_FOR, loader.load()).await.map_err(|_| no_region())?;
    if sdk.region().is_none_or(|region| region.as_ref().is_empty()) {
        return Err(no_region());
    }
    // Asked here, so that it is told once and not again for each database.
    let provider = sdk.credentials_provider().ok_or_else(no_credentials)?;
    let looked = tokio::time::timeout(LOOKED_FOR, provider.provide_credentials()).await;
    let found = looked
        .map_err(|_| no_credentials().with_source("nobody answered in time"))?
        .map_err(|e| no_credentials().with_source(scrubbed(&chain(&e), &[])))?;
    let secrets = [Some(found.access_key_id()), Some(found.secret_access_key()), found.session_token()];
    let timeouts = TimeoutConfig::builder().operation_attempt_timeout(ATTEMPT).build();
    let mut config = Config::from(&sdk)
        .to_builder()
        .timeout_config(timeouts)
        .identity_cache(IdentityCache::lazy().load_timeout(LOOKED_FOR).build());
    if let Some(endpoint) = given(options.endpoint.as_deref()) {
        config = config.endpoint_url(endpoint);
    }
    Ok(Caller {
        client: Client::from_conf(config.build()),
        catalog_id: given(options.catalog_id.as_deref()).map(str::to_owned),
        secrets: secrets.into_iter().flatten().map(str::to_owned).collect(),
    })
}

/// The region that the options say.
pub(super) fn region(options: &GlueOptions) -> Option<&str> {
    given(options.region.as_deref()).or_else(|| option(&options.storage, REGION))
}

/// A setting that is empty is none.
pub(super) fn given(setting: Option<&str>) -> Option<&str> {
    setting.map(str::trim).filter(|text| !text.is_empty())
}

fn option<'a>(storage: &'a BTreeMap<String, String>, names: &[&str]) -> Option<&'a str> {
    names.iter().find_map(|name| {
        let mut set = storage.iter().filter(|(key, _)| key.eq_ignore_ascii_case(name));
        set.find_map(|(_, value)| given(Some(value)))
    })
}

fn access_key(storage: &BTreeMap<String, String>) -> Result<Option<Credentials>, Error> {
    let half = |set: &str, missing: &str| {
        Error::usage(format!("the storage options hold `{set}` without `{missing}`"))
            .with_hint("set both, or none to use the environment's")
    };
    match (option(storage, ACCESS_KEY), option(storage, SECRET_KEY)) {
        (Some(id), Some(secret)) => {
            let token = option(storage, TOKEN).map(str::to_owned);
            Ok(Some(Credentials::new(id, secret, token, None, "storage options")))
        }
        (None, None) => Ok(None),
        (Some(_), None) => Err(half("aws_access_key_id", "aws_secret_access_key")),
        (None, Some(_)) => Err(half("aws_secret_access_key", "aws_access_key_id")),
    }
}

fn no_region() -> Error {
    Error::usage("the Glue catalog's region is not known")
        .with_hint("set `region` of the catalog, `aws_region` of its storage options, or `AWS_REGION`")
}

fn no_credentials() -> Error {
    Error::new(ErrorCode::Usage, Stage::Setup, "there are no credentials to ask Glue with").with_hint(
        "set `aws_access_key_id` and `aws_secret_access_key` in the storage options, or give the environment \
         what AWS's own tools take: variables, a profile, a web identity or a role",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn storage(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
    }

    #[test]
    fn an_access_key_is_found_in_every_spelling() {
        for prefix in ["aws_", "AWS_", "", "Aws_"] {
            let key = |name: &str| format!("{prefix}{name}");
            let (id, secret, token) = (key("access_key_id"), key("SECRET_ACCESS_KEY"), key("session_token"));
            let key = access_key(&storage(&[(&id, "i"), (&secret, "s"), (&token, "t")])).unwrap().unwrap();
            let found = (key.access_key_id(), key.secret_access_key(), key.session_token());
            assert_eq!(found, ("i", "s", Some("t")));
        }
        let empty = storage(&[("aws_access_key_id", ""), ("aws_secret_access_key", " "), ("other", "x")]);
        assert!(access_key(&empty).unwrap().is_none());
    }

    #[test]
    fn half_an_access_key_is_refused() {
        for half in ["aws_access_key_id", "AWS_SECRET_ACCESS_KEY"] {
            let error = access_key(&storage(&[(half, "hidden")])).unwrap_err();
            assert_eq!(error.code(), ErrorCode::Usage);
            assert!(!format!("{error:?}").contains("hidden"));
        }
    }

    #[test]
    fn the_catalogs_own_region_comes_first() {
        let mut options = GlueOptions { storage: storage(&[("AWS_REGION", "b")]), ..Default::default() };
        assert_eq!(region(&options), Some("b"));
        options.region = Some("a".to_owned());
        assert_eq!(region(&options), Some("a"));
        options.region = Some(String::new());
        assert_eq!(region(&options), Some("b"));
        options.storage = storage(&[("region", ""), ("default_region", "c")]);
        assert_eq!(region(&options), Some("c"));
    }
}
