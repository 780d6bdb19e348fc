//! Servers that fail, lie, or never come to an end.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

/// The one error that a source gives.
async fn error_of(source: &UnityCatalog) -> Error {
    let mut found = all(source).await;
    assert_eq!(found.len(), 1, "{found:?}");
    let error = found.remove(0).unwrap_err();
    assert!(!seen(&error).contains("SECRET"), "{error:?}");
    error
}

/// Answers as told at first, then well.
fn late(times: usize, first: impl Fn() -> Answer + Send + Sync + 'static) -> Server {
    let asked = AtomicUsize::new(0);
    Server::start(move |request| match asked.fetch_add(1, Ordering::SeqCst) {
        n if n < times => first(),
        _ => lake(request),
    })
}

#[tokio::test]
async fn a_server_that_is_busy_is_asked_again() {
    let one = ["prod.cdc.orders"];
    for (name, answer) in [
        ("429", (|| Answer::new(429, "").header("retry-after", "0")) as fn() -> Answer),
        ("503", || Answer::new(503, "<html>busy</html>")),
        ("500", || Answer::json(500, &json!({"error_code": "INTERNAL"}))),
        ("cut", || Answer::new(200, "{").cut()),
    ] {
        let server = late(2, answer);
        assert_eq!(uris(&catalog(&server, &one)).await.len(), 1, "{name}");
        assert_eq!(server.asked().len(), 3, "{name}");
    }
    let server = late(1, || Answer::new(429, "").header("retry-after", "2"));
    let begun = std::time::Instant::now();
    assert_eq!(uris(&catalog(&server, &one)).await.len(), 1);
    assert!(begun.elapsed() >= Duration::from_secs(2), "it waits as long as the server says");
}

#[tokio::test]
async fn a_server_that_stays_busy_is_given_up_after_five_tries() {
    let server =
        late(100, || Answer::json(429, &json!({"error_code": "RESOURCE_EXHAUSTED", "message": "slow down"})));
    let error = error_of(&catalog(&server, &["prod.cdc.*"])).await;
    assert_eq!((error.code(), server.asked().len()), (ErrorCode::Storage, 5));
    assert!(error.message().contains("429 (RESOURCE_EXHAUSTED: slow down)"), "{error}");
    assert!(error.is_retryable());
}

#[tokio::test]
async fn a_server_that_is_not_there_is_told_without_secrets() {
    let server = Server::start(lake);
    // A port that is given to nobody who asks for any.
    let closed = "127.0.0.1:1";
    let mut options = options(&server, &["prod.cdc.*"]);
    options.endpoint = format!("http://{closed}");
    let error = error_of(&UnityCatalog::new(options).unwrap()).await;
    assert_eq!(error.code(), ErrorCode::Storage);
    assert!(error.message().contains("can't be reached") && error.hint().is_some(), "{error:?}");
    assert!(!seen(&error).contains("max_results"), "no URL in {error:?}");
}

#[tokio::test]
async fn refusals_are_told_once_with_the_way_out_and_without_the_token() {
    let long = format!("{TOKEN} is no token\n{}", "x".repeat(5000));
    for (status, code, hint) in [
        (401, ErrorCode::Usage, "token"),
        (403, ErrorCode::Storage, "USE SCHEMA"),
        (404, ErrorCode::Usage, "endpoint"),
        (400, ErrorCode::Usage, ""),
    ] {
        let body = json!({"error_code": format!("CODE_{TOKEN}"), "message": long, "details": [TOKEN]});
        let server = late(100, move || Answer::json(status, &body));
        let error = error_of(&catalog(&server, &["*.*.*"])).await;
        assert_eq!((error.code(), server.asked().len()), (code, 1), "{error:?}");
        assert!(error.hint().unwrap_or_default().contains(hint), "{error:?}");
        assert!(error.to_string().len() < 500 && !error.to_string().contains('\n'), "{error}");
        assert!(error.message().contains("is no token"), "{error}");
    }
    let server = late(100, || Answer::new(401, ""));
    let mut options = options(&server, &["*.*.*"]);
    options.token = None;
    let error = error_of(&UnityCatalog::new(options).unwrap()).await;
    assert_eq!(error.hint(), Some("give a `token`"));
}

#[tokio::test]
async fn a_schema_or_a_catalog_that_is_forbidden_is_one_error_and_the_others_go_on() {
    let forbid = |what: &'static str| {
        Server::start(move |request| {
            let place = [request.param("catalog_name"), request.param("schema_name")];
            match place.into_iter().flatten().collect::<Vec<_>>().join(".") == what {
                true => {
                    Answer::json(403, &json!({"error_code": "PERMISSION_DENIED", "message": "no USE SCHEMA"}))
                }
                false => lake(request),
            }
        })
    };
    for (what, tables) in [("prod.b", 8), ("prod", 1)] {
        let server = forbid(what);
        let (good, bad): (Vec<_>, Vec<_>) =
            all(&catalog(&server, &["*.*.*"])).await.into_iter().partition(Result::is_ok);
        assert_eq!((good.len(), bad.len()), (tables, 1), "{what}");
        let error = bad.into_iter().next().unwrap().unwrap_err();
        assert_eq!((error.code(), error.table()), (ErrorCode::Storage, None));
        assert!(error.message().contains(&format!("`{what}`")), "{error}");
    }
}

#[tokio::test]
async fn pages_that_never_end_are_an_error_after_what_they_held() {
    for tokens in [&["x"] as &[&str], &["x", "y", "z"]] {
        let asked = AtomicUsize::new(0);
        let server = Server::start(move |_| {
            let n = asked.fetch_add(1, Ordering::SeqCst);
            let token = tokens[n % tokens.len()];
            Answer::json(200, &json!({"tables": [table(&format!("c.s.t{n}"))], "next_page_token": token}))
        });
        let found = all(&catalog(&server, &["c.s.*"])).await;
        assert_eq!(found.iter().filter(|f| f.is_ok()).count(), tokens.len() + 1);
        let error = found.into_iter().next_back().unwrap().unwrap_err();
        assert_eq!(error.code(), ErrorCode::Storage);
        assert!(error.message().contains("never end"), "{error}");
    }
    let asked = AtomicUsize::new(0);
    let server = Server::start(move |_| {
        let n = asked.fetch_add(1, Ordering::SeqCst);
        Answer::json(200, &json!({"next_page_token": n.to_string()}))
    });
    assert!(error_of(&catalog(&server, &["c.s.*"])).await.message().contains("never end"));
}

#[tokio::test]
async fn an_answer_that_is_none_of_the_api_is_told() {
    for body in ["<html>please log in SECRET</html>", "", "[]", r#"{"tables": "SECRET"}"#, r#""SECRET""#] {
        let server = late(100, move || Answer::new(200, body));
        let error = error_of(&catalog(&server, &["prod.cdc.*"])).await;
        assert_eq!((error.code(), server.asked().len()), (ErrorCode::Usage, 1), "{body}");
        assert!(error.hint().unwrap().contains("endpoint"), "{error:?}");
    }
}

#[tokio::test]
async fn an_answer_without_an_end_is_cut_off() {
    let server = late(100, || Answer::new(200, vec![b' '; 65 << 20]));
    let error = error_of(&catalog(&server, &["prod.cdc.*"])).await;
    assert!(error.message().contains("too large"), "{error}");
}

#[tokio::test]
async fn a_redirect_elsewhere_is_not_followed_and_sees_no_token() {
    let other = Server::start(lake);
    let url = other.url();
    let server = late(100, move || Answer::new(302, "").header("location", &format!("{url}/login?SECRET")));
    let error = error_of(&catalog(&server, &["prod.cdc.*"])).await;
    assert_eq!(error.code(), ErrorCode::Usage);
    assert!(other.asked().is_empty() && error.hint().unwrap().contains("endpoint"), "{error:?}");
    // Within the server it is.
    let server = Server::start(|request| match request.path.strip_prefix("/old") {
        Some(path) => {
            Answer::new(307, "").header("location", &format!("{path}?catalog_name=prod&schema_name=cdc"))
        }
        None => lake(request),
    });
    let mut options = options(&server, &["prod.cdc.*"]);
    options.endpoint = format!("{}/old", server.url());
    let found = UnityCatalog::new(options).unwrap();
    assert!(found.tables().next().await.unwrap().is_ok());
    // A server that sends in circles is left.
    let server = late(100, || Answer::new(302, "").header("location", "/again"));
    assert_eq!(error_of(&catalog(&server, &["prod.cdc.*"])).await.code(), ErrorCode::Usage);
}
