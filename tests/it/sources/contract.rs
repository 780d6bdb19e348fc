//! What every source of tables owes, whatever stands behind it.

use std::time::Duration;

use delta_migrate::catalog::{Found, Source};
use delta_migrate::{Error, ErrorCode};
use futures::StreamExt as _;
use futures::stream::BoxStream;

type Make<'a> = &'a dyn Fn() -> Box<dyn Source>;

/// Holds a source to the contract. `make` gives it anew, `expected` are the locations of the tables
/// behind it, one for each place that names one, and `secrets` are texts that it must not tell.
///
/// That nothing is written is for the caller to see, who knows where.
pub(crate) async fn holds(make: Make<'_>, expected: &[String], secrets: &[&str]) {
    let expected = sorted(expected.to_vec());
    let source = make();
    // Never polled, and dropped.
    drop(source.tables());
    assert_eq!(found(source.tables()).await, expected, "the first stream");
    assert_eq!(found(source.tables()).await, expected, "a second stream");
    let (one, other) = futures::join!(found(source.tables()), found(source.tables()));
    assert_eq!((&one, &other), (&expected, &expected), "two streams at once");

    for taken in 1..=expected.len().min(3) {
        let mut stream = source.tables();
        for _ in 0..taken {
            let table = in_time(stream.next()).await.unwrap().unwrap();
            assert!(expected.contains(&table.uri), "`{}` was given by a stream that was dropped", table.uri);
        }
        drop(stream);
        assert_eq!(found(source.tables()).await, expected, "after one that was dropped after {taken}");
    }
    assert_eq!(found(make().tables()).await, expected, "the source made anew");

    assert!(!source.name().trim().is_empty());
    assert_tells_none(secrets, &source.name());
    for table in all(source.tables()).await {
        let table = table.unwrap();
        assert_tells_none(secrets, &format!("{table:?} {table:#?} {}", table.uri));
    }
}

/// Holds a source, some of which can't be read, to the contract: so many errors, each told once with
/// what and why, and every other table.
pub(crate) async fn goes_on_after_an_error(
    make: Make<'_>,
    expected_rest: &[String],
    errors: usize,
    secrets: &[&str],
) {
    let source = make();
    for round in ["the first stream", "a second stream"] {
        let (tables, failed): (Vec<_>, Vec<_>) =
            all(source.tables()).await.into_iter().partition(Result::is_ok);
        let tables: Vec<String> = tables.into_iter().map(|t| t.unwrap().uri).collect();
        assert_eq!(sorted(tables), sorted(expected_rest.to_vec()), "{round}");
        let failed: Vec<Error> = failed.into_iter().map(|e| e.map(|t| t.uri).unwrap_err()).collect();
        assert_eq!(failed.len(), errors, "{round}: {failed:?}");
        for error in failed {
            assert!(matches!(error.code(), ErrorCode::Storage | ErrorCode::Usage), "{round}: {error:?}");
            assert!(error.message().len() > 10 && !error.message().contains('\n'), "{round}: {error}");
            assert!(error.hint().is_some_and(|hint| hint.len() > 10), "{round}: {error}");
            assert!(error.committed().is_empty());
            assert_tells_none(secrets, &format!("{error} {error:?} {:?} {:?}", error.hint(), error.causes()));
        }
    }
}

fn assert_tells_none(secrets: &[&str], text: &str) {
    for secret in secrets {
        assert!(!text.contains(secret), "`{secret}` in {text}");
    }
}

fn sorted(mut texts: Vec<String>) -> Vec<String> {
    texts.sort();
    texts
}

/// The locations, sorted; an error is none.
async fn found(stream: BoxStream<'_, Result<Found, Error>>) -> Vec<String> {
    sorted(all(stream).await.into_iter().map(|table| table.unwrap().uri).collect())
}

async fn all(stream: BoxStream<'_, Result<Found, Error>>) -> Vec<Result<Found, Error>> {
    in_time(stream.collect()).await
}

async fn in_time<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), work).await.unwrap()
}
