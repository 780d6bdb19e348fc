use super::*;
use crate::error::ErrorCode;

fn map(pairs: &[(&str, &str)]) -> Options {
    pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
}

fn url(text: &str) -> Url {
    Url::parse(text).unwrap()
}

#[test]
fn spellings_of_one_store_become_one() {
    for (written, wanted) in [
        ("s3a://b/t/", "s3://b/t/"),
        ("s3n://b/t/", "s3://b/t/"),
        ("s3://b/t/", "s3://b/t/"),
        ("az://c/t/", "az://c/t/"),
        ("abfss://c/t/", "az://c/t/"),
        ("azure://c/t/", "az://c/t/"),
        ("adl://c/t/", "az://c/t/"),
        ("abfs://c@a.dfs.core.windows.net/t/", "abfss://c@a.dfs.core.windows.net/t/"),
        ("az://c@a.dfs.core.windows.net/t/", "abfss://c@a.dfs.core.windows.net/t/"),
        ("adl://c@a/t/", "adl://c@a/t/"),
        ("gs://b/t/", "gs://b/t/"),
        ("file:///t/", "file:///t/"),
    ] {
        assert_eq!(normalised(url(written)).as_str(), wanted);
    }
}

#[test]
fn a_scheme_without_its_feature_names_it() {
    for (text, message, feature) in [
        ("s3://b/t", "this build has no S3", "`--features s3`"),
        ("s3n://b/t", "this build has no S3", "`--features s3`"),
        ("abfss://c@a/t", "this build has no Azure storage", "`--features azure`"),
        ("gs://b/t", "this build has no Google Cloud Storage", "`--features gcs`"),
        ("hdfs://b/t", "no store for `hdfs://` in this build", "s3://bucket"),
    ] {
        let error = unknown_scheme(&url(text));
        assert_eq!((error.code(), error.message()), (ErrorCode::Usage, message));
        assert!(error.hint().unwrap().contains(feature), "{error:?}");
    }
}

#[test]
fn a_lock_provider_is_refused_for_s3_alone() {
    let (none, set) = (map(&[]), map(&[("AWS_S3_LOCKING_PROVIDER", "dynamodb")]));
    let refused = |text: &str, options: &Options, env: &Options| no_lock(&url(text), options, env).is_err();
    assert!(refused("s3://b/t", &set, &none) && refused("s3://b/t", &none, &set));
    assert!(!refused("s3://b/t", &none, &none));
    assert!(!refused("s3://b/t", &map(&[("aws_s3_locking_provider", "")]), &none));
    for other in ["file:///t", "memory:///t", "az://c/t", "gs://b/t"] {
        assert!(!refused(other, &set, &set), "{other}");
    }
}

#[test]
fn conditional_puts_that_are_turned_off_are_refused() {
    let none = map(&[]);
    for set in [&[("conditional_put", "disabled")], &[("AWS_CONDITIONAL_PUT", " Disabled ")]] {
        for (options, env) in [(map(set), none.clone()), (none.clone(), map(set))] {
            let error = check(&url("s3://b/t"), &options, &env).unwrap_err();
            assert_eq!(error.code(), ErrorCode::Usage);
            assert!(error.message().contains("conditional_put"), "{error}");
        }
    }
    let env = map(&[("AWS_CONDITIONAL_PUT", "disabled")]);
    check(&url("s3://b/t"), &map(&[("aws_conditional_put", "etag")]), &env).unwrap();
    check(&url("az://b/t"), &none, &env).unwrap();
}

#[test]
fn an_endpoint_without_encryption_has_to_be_allowed() {
    let none = map(&[]);
    for (text, endpoint, allow) in [
        ("s3://b/t", "AWS_ENDPOINT_URL", "AWS_ALLOW_HTTP"),
        ("s3://b/t", "endpoint", "allow_http"),
        ("s3://b/t", "aws_endpoint_url_s3", "aws_allow_http"),
        ("az://c/t", "AZURE_STORAGE_ENDPOINT", "AZURE_ALLOW_HTTP"),
    ] {
        let set = map(&[(endpoint, "http://127.0.0.1:9")]);
        let error = check(&url(text), &none, &set).unwrap_err();
        assert!(error.hint().unwrap().contains("_ALLOW_HTTP=true"), "{error:?}");
        check(&url(text), &map(&[(allow, "true")]), &set).unwrap();
        for wrong in
            ["http://user:pw@h", "https://pw@h", "https://h?sig=pw", "h:9000", "pw", "http://", " http://h"]
        {
            let error = check(&url(text), &map(&[(allow, "true"), (endpoint, wrong)]), &none).unwrap_err();
            assert!(error.message().starts_with("the endpoint can't be used"), "{error:?}");
            assert!(!format!("{error:?}").contains("pw"), "{error:?}");
        }
        check(&url(text), &map(&[(endpoint, "https://127.0.0.1:9")]), &set).unwrap();
        check(&url(text), &map(&[(allow, "false")]), &set).unwrap_err();
    }
    let emulator = map(&[("AZURE_STORAGE_USE_EMULATOR", "true"), ("azure_endpoint", "http://127.0.0.1:1")]);
    check(&url("az://c/t"), &none, &emulator).unwrap();
}

#[test]
fn retries_end_before_a_tables_budget_unless_somebody_says_otherwise() {
    let all = with_defaults(&map(&[("retry_timeout", "90s")]));
    assert_eq!(all, map(&[("max_retries", "5"), ("retry_timeout", "90s")]));
}

#[test]
fn no_value_of_an_option_stays_in_a_text() {
    let options = map(&[("key", "s3cr3t"), ("account", r#"{"private_key":"hidden","n":1}"#), ("on", "y")]);
    let env = map(&[("AWS_SECRET_ACCESS_KEY", "fromenv"), ("HOME", "/root")]);
    let clean = |text: &str| without_secrets(text, &options, &env);
    assert_eq!(
        clean("failed to parse \"s3cr3t\" as usize in /root"),
        "failed to parse \"…\" as usize in /root"
    );
    assert_eq!(
        clean("invalid type: string \"hidden\", expected x"),
        "invalid type: string \"…\", expected x"
    );
    assert_eq!(clean("bad fromenv, very"), "bad …, very");
}
