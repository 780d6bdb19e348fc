//! Who asks, and what of it comes from the environment.

use delta_migrate::catalog::{GlueCatalog, Source as _};

use super::fake::{Fake, Trick};
use super::{all, databases, lines, options};
use crate::support::Ran;
use crate::support::command::command;
use crate::support::lake::Lake;

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

/// What the command says of the catalog's tables with these variables alone.
fn with_environment(variables: &[(&str, &str)]) -> String {
    let lake = Lake::new();
    lake.configure("[[catalogs]]\ntype = \"glue\"\ntables = \"db0.*\"\n");
    let nowhere = [("HOME", "/nonexistent"), ("AWS_EC2_METADATA_DISABLED", "true")];
    let mut command = command(&lake.path(""));
    command.args(["status", "--shard", "1/1"]).env_clear();
    let ran = Ran::of(command.envs(nowhere).envs(variables.iter().copied()).output().unwrap());
    assert_eq!(ran.code, 1, "{ran:?}");
    ran.stdout + &ran.stderr
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_options_do_not_say_is_taken_from_the_environment_or_told_to_be_missing() {
    let fake = Fake::start(databases(&[1]), 9, |_| Trick::Serve).await;
    let none = [("AWS_ENDPOINT_URL_GLUE", fake.url.as_str())];
    let told = with_environment(&none);
    assert!(told.contains("the Glue catalog's region is not known\n    → set `region`"), "{told}");
    let region = [none[0], ("AWS_REGION", "eu-west-1")];
    let told = with_environment(&region);
    assert!(told.contains("there are no credentials to ask Glue with") && told.contains("→ set"), "{told}");
    assert_eq!(fake.asked(), Vec::<String>::new());
    let key = [("AWS_ACCESS_KEY_ID", "AKIDENV"), ("AWS_SECRET_ACCESS_KEY", "x")];
    let told = with_environment(&[region[0], region[1], key[0], key[1]]);
    assert!(told.contains("s3://lake/d0t000"), "{told}");
    assert!(fake.headers().contains("Credential=AKIDENV/"));
    assert!(fake.headers().contains("/eu-west-1/glue/"));
}
