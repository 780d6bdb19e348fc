//! What needs no server: refusals, dead endpoints, and secrets that stay secret.

use super::{Place, outcome};
use crate::support::run;

const SECRET: &str = "pl4nt3dS3CRETkey";

#[test]
fn doctor_is_fine_with_a_folder_and_leaves_it_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let place = Place::new(folder.path().to_str().unwrap(), &[]);
    let ran = place.doctor(&[]);
    let report = ran.json();
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!((&report["command"], &report["ok"]), (&"doctor".into(), &true.into()));
    for check in ["open", "list", "read", "hard_links", "conditional_create", "racing_creates", "delete"] {
        assert_eq!(outcome(&report, check), "ok", "{report}");
    }
    assert!(report["median_write_ms"].is_number());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    let text = run(folder.path(), &["doctor", "."]);
    assert!(text.stdout.lines().last().unwrap().starts_with("fine: tables can be migrated here"), "{text:?}");
}

#[test]
fn doctor_refuses_what_can_not_be_examined() {
    let folder = tempfile::tempdir().unwrap();
    for args in
        [&["doctor", "gone"][..], &["doctor", ""], &["doctor", ".", "--storage-option", "x"], &["doctor"]]
    {
        assert_eq!(run(folder.path(), args).code, 2, "{args:?}");
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    let unknown = run(folder.path(), &["doctor", "hdfs://a/b"]);
    assert_eq!(unknown.code, 1, "{unknown:?}");
    assert!(unknown.stdout.contains("no store for `hdfs://` in this build"), "{unknown:?}");
}

#[cfg(not(feature = "s3"))]
#[test]
fn a_store_that_was_not_built_in_names_its_feature() {
    let ran = Place::new("s3a://b/t", &[]).doctor(&[]);
    assert_eq!((ran.code, outcome(&ran.json(), "open")), (1, "failed".to_owned()), "{ran:?}");
    assert!(ran.stdout.contains("this build has no S3") && ran.stdout.contains("--features s3"), "{ran:?}");
}

/// An address at which nobody listens.
#[cfg(feature = "s3")]
fn dead() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    format!("http://{}", listener.local_addr().unwrap())
}

#[cfg(feature = "s3")]
fn dead_s3(more: &[(&'static str, &str)]) -> Place {
    let endpoint = dead();
    let env = [
        ("AWS_ACCESS_KEY_ID", "AKIAPLANTED"),
        ("AWS_SECRET_ACCESS_KEY", SECRET),
        ("AWS_SESSION_TOKEN", SECRET),
        ("AWS_REGION", "us-east-1"),
        ("AWS_ALLOW_HTTP", "true"),
        ("AWS_ENDPOINT_URL", &endpoint),
    ];
    Place::new("s3://bucket/t", &[&env[..], more].concat())
}

#[cfg(feature = "s3")]
#[test]
fn a_dead_endpoint_is_told_with_its_cause_long_before_the_budget_ends() {
    let (folder, began) = (tempfile::tempdir().unwrap(), std::time::Instant::now());
    let ran = dead_s3(&[]).on(folder.path(), 1, &["status"]);
    assert!(began.elapsed().as_secs() < 20, "{:?}", began.elapsed());
    assert_eq!((ran.code, &ran.table()["error"]["code"]), (1, &"storage".into()), "{ran:?}");
    assert!(ran.stdout.contains("Connection refused"), "{ran:?}");
    let doctor = dead_s3(&[]).doctor(&[]);
    assert_eq!((doctor.code, outcome(&doctor.json(), "list")), (1, "failed".to_owned()));
    assert_eq!(outcome(&doctor.json(), "conditional_create"), "skipped");
}

#[cfg(feature = "s3")]
#[test]
fn settings_that_no_commit_can_go_with_are_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    for (set, name) in [
        ([("AWS_CONDITIONAL_PUT", "disabled")], "conditional_put"),
        ([("AWS_S3_LOCKING_PROVIDER", "dynamodb")], "AWS_S3_LOCKING_PROVIDER"),
        ([("AWS_ALLOW_HTTP", "false")], "AWS_ALLOW_HTTP=true"),
        ([("AWS_ENDPOINT_URL", "http://user:hunter2@127.0.0.1:9")], "holds a user or a password"),
        ([("AWS_ENDPOINT_URL", "127.0.0.1:9000")], "does not begin with http"),
        ([("AWS_ENDPOINT_URL", "http://h:99999")], "can't be used"),
        ([("AWS_ENDPOINT_URL", " http://h")], "white space"),
        ([("AWS_SESSION_TOKEN", "hunter2\n")], "line break"),
    ] {
        let ran = dead_s3(&set).on(folder.path(), 1, &["apply"]);
        assert_eq!((ran.code, &ran.json()["error"]["code"]), (2, &"usage".into()), "{ran:?}");
        assert!(ran.stdout.contains(name), "{ran:?}");
        assert!(!format!("{ran:?}").contains("hunter2"), "{ran:?}");
    }
    let doctor = dead_s3(&[("AWS_S3_LOCKING_PROVIDER", "dynamodb")]).doctor(&[]);
    assert_eq!((doctor.code, outcome(&doctor.json(), "lock_provider")), (1, "failed".to_owned()));
}

/// Below `info` deltalake prints whole stores: object_store hides the credentials in them, not what a
/// proxy's address holds.
#[cfg(feature = "s3")]
#[test]
fn no_filter_of_the_log_shows_a_secret() {
    let folder = tempfile::tempdir().unwrap();
    let proxy = format!("{}/", dead().replace("http://", &format!("http://user:{SECRET}@")));
    for filter in ["trace", "debug", "deltalake_aws::storage=debug,aws_config=trace,hyper=trace"] {
        let place = dead_s3(&[("DELTA_MIGRATE_LOG", filter), ("AWS_PROXY_URL", &proxy)]);
        let option = format!("aws_secret_access_key={SECRET}x");
        for args in [&["status"][..], &["apply", "-vvv", "--storage-option", &option]] {
            let ran = place.on(folder.path(), 1, args);
            assert!(filter != "trace" || ran.stderr.contains("INFO object_store"), "the log is on: {ran:?}");
            assert!(!format!("{ran:?}").contains(SECRET), "{filter} {args:?}: {ran:?}");
        }
        let doctor = place.doctor(&["--storage-option", &option]);
        assert!(!format!("{doctor:?}").contains(SECRET), "{filter}: {doctor:?}");
    }
}

/// deltalake prints URLs as they were given.
#[test]
fn no_filter_of_the_log_shows_what_a_url_holds() {
    let folder = tempfile::tempdir().unwrap();
    for filter in ["trace", "deltalake_core::logstore::factories=debug"] {
        let place = Place::new(format!("memory:///t?token={SECRET}"), &[("DELTA_MIGRATE_LOG", filter)]);
        let ran = place.on(folder.path(), 1, &["status"]);
        assert_eq!(ran.table()["uri"], "memory:///t", "{ran:?}");
        assert!(!format!("{ran:?}").contains(SECRET), "{filter}: {ran:?}");
    }
}

#[cfg(feature = "gcs")]
#[test]
fn credentials_that_can_not_be_read_are_not_quoted() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("account.json");
    std::fs::write(&file, format!("{{\"type\": \"{SECRET}\"}}")).unwrap();
    let key = format!("{{\"private_key\": {{\"{SECRET}\": 1}}}}");
    for env in [
        ("GOOGLE_APPLICATION_CREDENTIALS", file.to_str().unwrap()),
        ("GOOGLE_SERVICE_ACCOUNT_KEY", key.as_str()),
    ] {
        let ran = Place::new("gs://b/t", &[env]).on(folder.path(), 1, &["status"]);
        assert_eq!(ran.code, 2, "{ran:?}");
        assert!(
            ran.stderr.contains("service account file") && !format!("{ran:?}").contains(SECRET),
            "{ran:?}"
        );
    }
}

#[cfg(feature = "azure")]
#[test]
fn a_storage_account_that_is_missing_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let ran = Place::new("az://container/t", &[]).on(folder.path(), 1, &["status"]);
    assert_eq!((ran.code, &ran.json()["error"]["code"]), (2, &"usage".into()), "{ran:?}");
    assert!(ran.stderr.contains("AZURE_STORAGE_ACCOUNT_NAME"), "{ran:?}");
}
