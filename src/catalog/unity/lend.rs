//! Credentials that a Unity catalog lends for one table.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Value, json};

use super::answer::text;
use super::client::Client;
use super::failure::{Failure, Why};
use crate::catalog::Lender;
use crate::error::{Error, ErrorCode, Stage};

const FAILED: &str = "the catalog lends no credentials";
const GIVE: &str = "grant EXTERNAL USE SCHEMA to the token's user, or give credentials in [catalogs.storage]";

/// How the names of options end that say how to sign requests, in the spellings of all stores.
const CREDENTIALS: [&str; 14] = [
    "access_key",
    "access_key_id",
    "account_key",
    "application_credentials",
    "client_secret",
    "identity_endpoint",
    "master_key",
    "msi_endpoint",
    "sas_key",
    "service_account",
    "service_account_key",
    "service_account_path",
    "skip_signature",
    "use_azure_cli",
];

/// Whether storage options say themselves how to sign requests, so that nothing need be lent.
pub(super) fn holds_credentials(options: &BTreeMap<String, String>) -> bool {
    options.keys().map(|key| key.to_ascii_lowercase()).any(|key| {
        // `token`, `session_token`, `sas_token`, `bearer_token`, `web_identity_token_file` …
        key.ends_with("token") || key.ends_with("token_file") || CREDENTIALS.iter().any(|c| key.ends_with(c))
    })
}

/// Asks for credentials of one table, each time anew: they do not last.
pub(super) struct TableLender {
    pub(super) client: Arc<Client>,
    /// As messages show it.
    pub(super) table: String,
    /// Its `table_id`.
    pub(super) id: String,
    /// Without credentials; what is lent comes on top.
    pub(super) options: BTreeMap<String, String>,
}

#[async_trait]
impl Lender for TableLender {
    async fn lend(&self) -> Result<HashMap<String, String>, Error> {
        let mut options: HashMap<String, String> = self.options.clone().into_iter().collect();
        let question = json!({"table_id": self.id, "operation": "READ_WRITE"});
        match self.client.ask(&["temporary-table-credentials"], &question).await {
            Ok(answer) => options.extend(lent(&answer).map_err(|e| e.with_table(&self.table))?),
            Err(failure) if failure.is_not_offered() => {
                tracing::debug!(
                    table = self.table,
                    "the catalog lends nothing; the storage options are used"
                );
            }
            Err(failure) => return Err(refused(failure).with_table(&self.table)),
        }
        Ok(options)
    }
}

fn refused(failure: Failure) -> Error {
    let is_about_rights =
        matches!(&failure.why, Why::Refused { status, .. } if matches!(status.as_u16(), 400 | 403));
    // The listing went well, so this is about the one table and not about the set-up.
    let error = failure.into_error_of(ErrorCode::Storage, FAILED);
    if is_about_rights { error.with_hint(GIVE) } else { error }
}

/// The storage options that an answer stands for.
///
/// # Errors
/// `Storage`: it holds nothing that a store of this crate takes.
fn lent(answer: &Value) -> Result<Vec<(String, String)>, Error> {
    let part = |key: &str| answer.get(key).filter(|v| v.is_object());
    let wrong =
        |why: &str| Error::new(ErrorCode::Storage, Stage::Read, format!("{FAILED} that can be used: {why}"));
    let one = |part: &Value, field: &str, option: &str| {
        let value = text(part, field).ok_or_else(|| wrong(&format!("`{field}` is missing")))?;
        Ok((option.to_owned(), value))
    };
    if let Some(keys) = part("aws_temp_credentials").or_else(|| part("r2_temp_credentials")) {
        let mut options = vec![
            one(keys, "access_key_id", "aws_access_key_id")?,
            one(keys, "secret_access_key", "aws_secret_access_key")?,
        ];
        options.extend(text(keys, "session_token").map(|token| ("aws_session_token".to_owned(), token)));
        options.extend(text(keys, "endpoint").map(|endpoint| ("aws_endpoint".to_owned(), endpoint)));
        return Ok(options);
    }
    if let Some(sas) = part("azure_user_delegation_sas") {
        return Ok(vec![one(sas, "sas_token", "azure_storage_sas_token")?]);
    }
    if let Some(aad) = part("azure_aad") {
        return Ok(vec![one(aad, "aad_token", "azure_storage_token")?]);
    }
    if part("gcp_oauth_token").is_some() {
        // object_store takes a bearer token for Google's store from a program only, not from options.
        return Err(wrong("a token for Google Cloud Storage is no storage option").with_hint(
            "give `google_application_credentials` or `google_service_account_key` in [catalogs.storage]",
        ));
    }
    Err(wrong("they are of no kind that is known").with_hint("give credentials in [catalogs.storage]"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(answer: Value) -> BTreeMap<String, String> {
        lent(&answer).unwrap().into_iter().collect()
    }

    fn map<const N: usize>(pairs: [(&str, &str); N]) -> BTreeMap<String, String> {
        pairs.into_iter().map(|(k, v)| (k.to_owned(), v.to_owned())).collect()
    }

    #[test]
    fn what_is_lent_becomes_storage_options() {
        let keys = json!({"access_key_id": "a", "secret_access_key": "s", "session_token": "t", "new": 1});
        let aws = [("aws_access_key_id", "a"), ("aws_secret_access_key", "s"), ("aws_session_token", "t")];
        assert_eq!(
            of(json!({"aws_temp_credentials": keys, "expiration_time": 1, "url": "s3://b"})),
            map(aws)
        );
        assert_eq!(of(json!({"aws_temp_credentials": null, "r2_temp_credentials": keys})), map(aws));
        let sas = json!({"azure_user_delegation_sas": {"sas_token": "?sv=1&sig=x"}});
        assert_eq!(of(sas), map([("azure_storage_sas_token", "?sv=1&sig=x")]));
        assert_eq!(of(json!({"azure_aad": {"aad_token": "x"}})), map([("azure_storage_token", "x")]));
    }

    #[cfg(all(feature = "s3", feature = "azure"))]
    #[test]
    fn the_options_are_names_that_the_stores_know() {
        use object_store::aws::AmazonS3ConfigKey;
        use object_store::azure::AzureConfigKey;
        for key in
            ["aws_access_key_id", "aws_secret_access_key", "aws_session_token", "aws_endpoint", "aws_region"]
        {
            assert!(key.parse::<AmazonS3ConfigKey>().is_ok(), "{key}");
        }
        for key in ["azure_storage_sas_token", "azure_storage_token"] {
            assert!(key.parse::<AzureConfigKey>().is_ok(), "{key}");
        }
    }

    #[test]
    fn what_can_not_be_used_is_told_without_a_secret() {
        for answer in [
            json!({}),
            json!({"aws_temp_credentials": {"access_key_id": "SECRET"}}),
            json!({"azure_user_delegation_sas": {"sas_token": ""}}),
            json!({"gcp_oauth_token": {"oauth_token": "SECRET"}}),
            json!({"oracle": {"token": "SECRET"}}),
        ] {
            let error = lent(&answer).unwrap_err();
            assert_eq!(error.code(), ErrorCode::Storage, "{answer}");
            assert!(!format!("{error:?}").contains("SECRET"), "{error:?}");
        }
        let error = lent(&json!({"gcp_oauth_token": {"oauth_token": "x"}})).unwrap_err();
        assert!(error.hint().unwrap().contains("[catalogs.storage]"));
    }

    #[test]
    fn options_with_credentials_are_known_in_all_spellings() {
        for key in [
            "AWS_ACCESS_KEY_ID",
            "secret_access_key",
            "aws_session_token",
            "AWS_WEB_IDENTITY_TOKEN_FILE",
            "azure_storage_account_key",
            "azure_storage_sas_token",
            "azure_storage_sas_key",
            "bearer_token",
            "azure_client_secret",
            "google_service_account",
            "GOOGLE_APPLICATION_CREDENTIALS",
            "aws_skip_signature",
        ] {
            assert!(holds_credentials(&map([(key, "x")])), "{key}");
        }
        for key in
            ["aws_region", "AWS_ENDPOINT_URL", "azure_storage_account_name", "timeout", "aws_allow_http"]
        {
            assert!(!holds_credentials(&map([(key, "x")])), "{key}");
        }
    }
}
