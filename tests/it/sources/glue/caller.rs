//! Who asks, and what of it comes from the environment.

use std::time::{Duration, Instant};

use delta_migrate::catalog::{GlueCatalog, GlueOptions, Source as _};
use futures::StreamExt as _;

use super::fake::{Fake, Trick};
use super::{all, databases, lines, options};

#[tokio::test]
async fn requests_are_signed_with_the_storages_key_for_the_region_and_the_account() {
    let fake = Fake::start(databases(&[1]), 9, |_| Trick::Serve).await;
    let mut options = options(&fake, &["db0.*"]);
    options.catalog_id = Some("123456789012".to_owned());
    let name = GlueCatalog::new(options.clone()).unwrap().name();
    let host = fake.url.replace("http://", "");
    assert_eq!(name, format!("glue catalog 123456789012 in eu-central-1 at {host}, `db0.*`"));
    all(options.clone()).await;
    assert_eq!(fake.asked(), lines(&["GetTables 123456789012:db0 1"]));
    let sent = fake.headers();
    assert!(
        sent.contains("Credential=AKIDSOURCE/") && sent.contains("/eu-central-1/glue/aws4_request"),
        "{sent}"
    );
    assert!(sent.contains("x-amz-security-token: session-token-1"), "{sent}");
    options.region = Some("us-east-2".to_owned());
    all(options).await;
    assert!(fake.headers().contains("/us-east-2/glue/aws4_request"));
}

/// Runs [`in_an_environment`] with these variables alone.
fn with_environment(variables: &[(&str, &str)]) -> String {
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "sources::glue::caller::in_an_environment", "--ignored", "--nocapture"])
        .env_clear();
    let nowhere = [("HOME", "/nonexistent"), ("AWS_EC2_METADATA_DISABLED", "true")];
    let output = command.envs(nowhere).envs(variables.iter().copied()).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}");
    text
}

#[tokio::test]
#[ignore = "run by others in a process of its own"]
async fn in_an_environment() {
    let Ok(tables) = std::env::var("TEST_GLUE_TABLES") else { return };
    let catalog = GlueCatalog::new(GlueOptions { tables: vec![tables], ..Default::default() }).unwrap();
    for item in catalog.tables().collect::<Vec<_>>().await {
        match item {
            Ok(found) => println!("found {}", found.uri),
            Err(e) => println!("{} {e}; {}; {:?}", e.code(), e.hint().unwrap_or_default(), e.causes()),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_options_do_not_say_is_taken_from_the_environment_or_told_to_be_missing() {
    let fake = Fake::start(databases(&[1]), 9, |_| Trick::Serve).await;
    let began = Instant::now();
    let none = [("TEST_GLUE_TABLES", "db0.*"), ("AWS_ENDPOINT_URL_GLUE", fake.url.as_str())];
    let told = with_environment(&none);
    assert!(told.contains("usage the Glue catalog's region is not known; set `region`"), "{told}");
    let region = [none[0], none[1], ("AWS_REGION", "eu-west-1")];
    let told = with_environment(&region);
    assert!(told.contains("usage there are no credentials to ask Glue with; set"), "{told}");
    assert!(began.elapsed() < Duration::from_secs(20));
    assert_eq!(fake.asked(), Vec::<String>::new());
    let key = [("AWS_ACCESS_KEY_ID", "AKIDENV"), ("AWS_SECRET_ACCESS_KEY", "x")];
    let told = with_environment(&[region[0], region[1], region[2], key[0], key[1]]);
    assert!(told.contains("found s3://lake/d0t000"), "{told}");
    assert!(fake.headers().contains("Credential=AKIDENV/"));
    assert!(fake.headers().contains("/eu-west-1/glue/"));
}
