//! Credentials that the catalog lends.

use super::*;

fn vending(status: u16, body: Value) -> Server {
    Server::start(move |request| match request.path.strip_prefix(API) {
        Some("/temporary-table-credentials") => Answer::json(status, &body),
        _ => page(request, "tables", &[table("c.s.t")]),
    })
}

async fn only(source: &UnityCatalog) -> Found {
    all(source).await.into_iter().next().unwrap().unwrap()
}

fn storage(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
}

/// All tables of one schema, with these options of the stores.
fn source(server: &Server, storage: BTreeMap<String, String>) -> Result<UnityCatalog, Error> {
    let mut options = options(server, &["c.s.*"]);
    options.storage = storage;
    UnityCatalog::new(options)
}

async fn lend(source: &UnityCatalog) -> Result<BTreeMap<String, String>, Error> {
    match only(source).await.access {
        Access::Lent(lender) => Ok(lender.lend().await?.into_iter().collect()),
        _ => panic!("not lent"),
    }
}

#[tokio::test]
async fn credentials_are_asked_for_when_they_are_needed_and_each_time_anew() {
    let keys = json!({"access_key_id": "AKIA", "secret_access_key": "SECRETKEY", "session_token": "SESSION"});
    let server =
        vending(200, json!({"aws_temp_credentials": keys, "expiration_time": 1, "url": "s3://lake/c/s/t"}));
    let source = source(&server, storage(&[("aws_region", "eu-central-1")]));
    let found = only(&source.unwrap()).await;
    let asked =
        |server: &Server| server.asked().iter().filter(|r| r.method == "POST").cloned().collect::<Vec<_>>();
    assert_eq!(asked(&server).len(), 0, "not before the table's turn");
    let Access::Lent(lender) = &found.access else { panic!("not lent") };
    let lent: BTreeMap<String, String> = lender.lend().await.unwrap().into_iter().collect();
    let wanted = storage(&[
        ("aws_access_key_id", "AKIA"),
        ("aws_region", "eu-central-1"),
        ("aws_secret_access_key", "SECRETKEY"),
        ("aws_session_token", "SESSION"),
    ]);
    assert_eq!(lent, wanted);
    lender.lend().await.unwrap();
    let asked = asked(&server);
    assert_eq!(asked.len(), 2);
    let question: Value = serde_json::from_slice(&asked[0].body).unwrap();
    assert_eq!(question, json!({"table_id": "id-c.s.t", "operation": "READ_WRITE"}));
    assert_eq!(asked[0].headers["authorization"], format!("Bearer {TOKEN}"));
    let shown = format!("{found:?}");
    assert!(!shown.contains("SECRETKEY") && !shown.contains(TOKEN), "{shown}");
}

#[tokio::test]
async fn options_with_credentials_are_used_as_they_are() {
    let server = vending(200, json!({}));
    let given = storage(&[("AWS_ACCESS_KEY_ID", "x"), ("AWS_SECRET_ACCESS_KEY", "hunter2")]);
    let source = source(&server, given.clone());
    let found = only(&source.unwrap()).await;
    assert!(matches!(&found.access, Access::Options(options) if *options == given));
    assert!(!format!("{found:?}").contains("hunter2"));
}

#[tokio::test]
async fn a_server_that_lends_nothing_leaves_it_to_the_options() {
    for (status, body) in [
        (404, json!({"error_code": "ENDPOINT_NOT_FOUND", "message": "no API"})),
        (404, json!({"error_code": "NOT_FOUND"})),
        (405, json!({})),
        (501, json!({"error_code": "UNIMPLEMENTED"})),
    ] {
        let server = vending(status, body);
        let given = storage(&[("aws_region", "eu-central-1")]);
        let source = source(&server, given.clone());
        assert_eq!(lend(&source.unwrap()).await.unwrap(), given, "{status}");
    }
}

#[tokio::test]
async fn a_server_that_refuses_to_lend_is_the_tables_failure() {
    for (status, body, hint) in [
        (
            403,
            json!({"error_code": "PERMISSION_DENIED", "message": "no EXTERNAL USE SCHEMA"}),
            "EXTERNAL USE SCHEMA",
        ),
        (400, json!({"error_code": "FAILED_PRECONDITION", "message": "no storage"}), "[catalogs.storage]"),
        (404, json!({"error_code": "TABLE_DOES_NOT_EXIST", "message": "gone"}), ""),
        (401, json!({"message": format!("bad token {TOKEN}\nforged line")}), "token"),
        (200, json!({"gcp_oauth_token": {"oauth_token": "ya29.SECRET"}}), "google_application_credentials"),
        (200, json!({"aws_temp_credentials": {"secret_access_key": "SECRET"}}), ""),
        (200, json!("SECRET"), ""),
    ] {
        let server = vending(status, body);
        let error = lend(&catalog(&server, &["c.s.*"])).await.unwrap_err();
        assert_eq!((error.code(), error.table()), (ErrorCode::Storage, Some("unity c.s.t")), "{error:?}");
        assert!(error.hint().unwrap_or_default().contains(hint), "{error:?}");
        let seen = seen(&error);
        assert!(!seen.contains("SECRET") && !error.to_string().contains('\n'), "{seen}");
    }
}

#[cfg(feature = "azure")]
#[tokio::test]
async fn what_is_lent_opens_a_store() {
    let server = Server::start(|request| match request.path.strip_prefix(API) {
        Some("/temporary-table-credentials") => {
            Answer::json(200, &json!({"azure_user_delegation_sas": {"sas_token": "sv=1&sig=SECRET"}}))
        }
        _ => {
            let mut table = table("c.s.t");
            table["storage_location"] = json!("abfss://box@account.dfs.core.windows.net/t");
            page(request, "tables", &[table])
        }
    });
    let source = catalog(&server, &["c.s.*"]);
    let lent = lend(&source).await.unwrap();
    assert_eq!(lent, storage(&[("azure_storage_sas_token", "sv=1&sig=SECRET")]));
    let location = delta_migrate::Location::new(only(&source).await.uri, lent.into_iter().collect()).unwrap();
    assert!(!format!("{location:?}").contains("SECRET"));
}
