//! What Glue can answer instead of tables.

use std::collections::BTreeMap;

use delta_migrate::ErrorCode;
use delta_migrate::catalog::GlueCatalog;
use serde_json::json;

use super::fake::{Fake, Request, Trick};
use super::{all, databases, options, secret_free, table, uris};

fn refused(code: &str, message: &str) -> Trick {
    Trick::Answer(400, json!({"__type": code, "Message": message}))
}

#[tokio::test]
async fn throttled_once_is_asked_again_and_throttled_for_long_is_a_failure() {
    let throttle = |r: &Request| match r.line.as_str() {
        "GetTables db0 2" if r.times == 1 => refused("ThrottlingException", "Rate exceeded"),
        "GetTables db1 1" => refused("ThrottlingException", "Rate exceeded"),
        "GetTables db2 1" => Trick::Answer(503, json!({"message": "out of order"})),
        _ => Trick::Serve,
    };
    let fake = Fake::start(databases(&[3, 1, 1]), 2, throttle).await;
    let (found, errors) = all(options(&fake, &["db0.*", "db1.*", "db2.*"])).await;
    assert_eq!(uris(&found), ["s3://lake/d0t000", "s3://lake/d0t001", "s3://lake/d0t002"]);
    let times = |line: &str| fake.asked().iter().filter(|l| *l == line).count();
    assert_eq!((times("GetTables db0 1"), times("GetTables db0 2")), (1, 2));
    assert_eq!(errors.len(), 2, "{errors:?}");
    for error in &errors {
        assert_eq!((error.code(), error.is_retryable(), error.table()), (ErrorCode::Storage, true, None));
    }
    let said: Vec<String> = errors.iter().map(|e| format!("{e}: {}", e.causes().join(": "))).collect();
    let throttled = "the tables of the database `db1` can't be listed: ThrottlingException: Rate exceeded";
    assert!(said.iter().any(|s| s == throttled), "{said:?}");
    assert!(
        said.iter().any(|s| s.contains("`db2`") && (s.contains("503") || s.contains("out of order"))),
        "{said:?}"
    );
}

#[tokio::test]
async fn pages_that_go_round_in_circles_come_to_an_end() {
    let circle = |r: &Request| match r.line.as_str() {
        "GetTables db0 1" => Trick::Circle(&["a"]),
        "GetTables db1 1" => Trick::Circle(&["a", "b", "c"]),
        _ => Trick::Serve,
    };
    let fake = Fake::start(databases(&[1, 1, 1]), 9, circle).await;
    let (found, errors) = all(options(&fake, &["db0.*", "db1.*", "db2.*"])).await;
    assert_eq!(uris(&found), ["s3://lake/d2t000"]);
    assert_eq!(errors.len(), 2, "{errors:?}");
    for error in &errors {
        assert_eq!(error.code(), ErrorCode::Storage);
        assert_eq!(error.causes(), ["its pages go round in circles"]);
    }
    assert_eq!(fake.asked().len(), 2 + 4 + 1);
    let fake = Fake::start(databases(&[1]), 9, |r| match r.line.starts_with("GetDatabases") {
        true => Trick::Circle(&["a", "b"]),
        false => Trick::Serve,
    });
    let (found, errors) = all(options(&fake.await, &[])).await;
    assert_eq!((found.len(), errors.len()), (0, 1));
}

#[tokio::test]
async fn a_database_that_can_not_be_read_is_one_error_and_the_others_go_on() {
    let deny = |r: &Request| match r.line.as_str() {
        "GetTables db1 1" => refused(
            "AccessDeniedException",
            "User: arn:aws:iam::1:user/u is not authorized to perform: glue:GetTables",
        ),
        "GetTables db3 1" => refused("EntityNotFoundException", "Database db3 not found."),
        _ => Trick::Serve,
    };
    let fake = Fake::start(databases(&[1, 1, 1, 1]), 9, deny).await;
    let (found, errors) = all(options(&fake, &["db?.*", "gone.*", "db2.gone"])).await;
    assert_eq!(uris(&found), ["s3://lake/d0t000", "s3://lake/d2t000"]);
    assert_eq!(errors.len(), 3, "{errors:?}");
    let about = |part: &str| errors.iter().find(|e| e.to_string().contains(part)).unwrap();
    let denied = about("`db1`");
    assert_eq!((denied.code(), denied.table()), (ErrorCode::Usage, None));
    assert!(denied.hint().unwrap().contains("`glue:GetTables`"));
    let cause =
        "AccessDeniedException: User: arn:aws:iam::1:user/u is not authorized to perform: glue:GetTables";
    assert_eq!(denied.causes(), [cause]);
    assert_eq!(about("`db3`").code(), ErrorCode::Storage);
    assert!(about("`db3`").hint().unwrap().contains("`exclude`"));
    let gone = about("`gone`");
    assert_eq!((gone.code(), gone.table()), (ErrorCode::Usage, None));
    assert!(gone.hint().unwrap().contains("the database is not there"), "{gone:?}");
}

#[tokio::test]
async fn a_table_that_is_named_is_told_where_it_is_none() {
    let deny = |r: &Request| match r.line.as_str() {
        "GetTable db0 d0t001" => refused("AccessDeniedException", "no"),
        _ => Trick::Serve,
    };
    let mut databases = databases(&[2]);
    let parquet = table("parquet", json!({"classification": "parquet"}), Some("s3://lake/parquet"));
    databases.get_mut("db0").unwrap().extend([parquet, table("lost", json!({"table_type": "DELTA"}), None)]);
    let fake = Fake::start(databases, 9, deny).await;
    let tables = ["db0.d0t000", "db0.d0t001", "db0.gone", "db0.parquet", "db0.lost"];
    let (found, mut errors) = all(options(&fake, &tables)).await;
    assert_eq!(uris(&found), ["s3://lake/d0t000"]);
    errors.sort_by_key(|e| e.table().map(str::to_owned));
    let told: Vec<_> = errors.iter().map(|e| (e.table().unwrap(), e.code())).collect();
    assert_eq!(
        told,
        [
            ("glue db0.d0t001", ErrorCode::Usage),
            ("glue db0.gone", ErrorCode::Missing),
            ("glue db0.lost", ErrorCode::NotATable),
            ("glue db0.parquet", ErrorCode::NotATable),
        ]
    );
    assert!(errors[0].hint().unwrap().contains("`glue:GetTable`"));
}

#[tokio::test]
async fn a_catalog_that_can_not_be_listed_is_one_error() {
    let deny = |_: &Request| refused("AccessDeniedException", "not authorized to perform: glue:GetDatabases");
    let fake = Fake::start(databases(&[1]), 9, deny).await;
    let (found, errors) = all(options(&fake, &[])).await;
    assert_eq!((found.len(), errors.len()), (0, 1), "{errors:?}");
    assert_eq!(errors[0].code(), ErrorCode::Usage);
    assert!(errors[0].hint().unwrap().contains("`glue:GetDatabases`"));
}

#[tokio::test]
async fn an_answer_that_repeats_the_request_shows_no_secret() {
    let repeat = |r: &Request| match r.line.as_str() {
        "GetTables db0 1" => refused(
            "InvalidSignatureException",
            "The request signature does not match.\n\nThe Canonical String was\nx-amz-security-token:session-token-1",
        ),
        "GetTables db1 1" => {
            refused("UnrecognizedClientException", "session-token-1 of AKIDSOURCE is invalid")
        }
        _ => refused(
            "IncompleteSignatureException",
            "in 'AWS4-HMAC-SHA256 Credential=AKIDSOURCE/1, Signature=abc123'",
        ),
    };
    let fake = Fake::start(databases(&[1, 1, 1]), 9, repeat).await;
    let (_, errors) = all(options(&fake, &["db0.*", "db1.*", "db2.*"])).await;
    assert_eq!(errors.len(), 3);
    for error in &errors {
        assert_eq!(error.code(), ErrorCode::Usage);
        assert!(error.hint().unwrap().contains("access key"));
        assert!(!format!("{error:?}").contains("abc123"));
    }
}

#[tokio::test]
async fn a_server_that_is_not_there_is_a_failure() {
    let fake = Fake::start(BTreeMap::new(), 9, |_| Trick::Serve).await;
    let mut options = options(&fake, &["db0.*"]);
    drop(fake);
    let (_, errors) = all(options.clone()).await;
    assert_eq!((errors.len(), errors[0].code()), (1, ErrorCode::Storage), "{errors:?}");
    assert!(!errors[0].causes().is_empty(), "{errors:?}");
    options.endpoint = Some("https://user:top-secret-key@glue.example.com".to_owned());
    let error = GlueCatalog::new(options.clone()).unwrap_err();
    secret_free(&format!("{error} {error:?} {:?} {options:?}", error.hint()));
    for endpoint in ["", "glue.example.com", "ftp://glue.example.com", "localhost:5000", "https://"] {
        options.endpoint = Some(endpoint.to_owned());
        assert_eq!(GlueCatalog::new(options.clone()).unwrap_err().code(), ErrorCode::Usage, "{endpoint}");
    }
}
