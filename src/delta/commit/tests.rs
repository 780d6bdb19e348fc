use super::*;

fn entry(lines: &[&str], id: &str) -> Entry {
    judge(lines.join("\n").as_bytes(), id)
}

#[test]
fn an_entry_is_ours_by_its_id_alone() {
    let ours = r#"{"commitInfo":{"operation":"MIGRATE","txnId":"a"}}"#;
    let theirs = r#"{"commitInfo":{"operation":"WRITE","engineInfo":"Spark/4","txnId":"b"}}"#;
    assert_eq!(entry(&[r#"{"add":{"path":"x"}}"#, ours], "a"), Entry::Ours);
    assert_eq!(entry(&[ours], "b"), Entry::Theirs { winner: "MIGRATE".into() });
    assert_eq!(entry(&[theirs], "a"), Entry::Theirs { winner: "WRITE by Spark/4".into() });
    for nameless in ["", "not json", r#"{"add":{"path":"\"commitInfo\" txnId a"}}"#] {
        assert!(matches!(entry(&[nameless], "a"), Entry::Theirs { .. }), "{nameless}");
    }
}

#[test]
fn only_answers_that_prove_it_are_final() {
    let source = |source| Some(TransactionError::ObjectStore { source });
    let boxed = || "x".to_owned().into();
    let denied = source(StoreError::PermissionDenied { path: "p".into(), source: boxed() });
    let local = source(StoreError::Generic { store: "LocalFileSystem", source: boxed() });
    let remote = source(StoreError::Generic { store: "S3", source: boxed() });
    assert!(is_final(denied.as_ref()) && is_final(local.as_ref()));
    assert!(!is_final(remote.as_ref()) && !is_final(None));
    // What all puts of one entry come to.
    let code = |failures: Vec<Option<TransactionError>>| {
        let mut sends = Sends::default();
        failures.iter().for_each(|failure| sends.note(failure.as_ref()));
        let last = failures.into_iter().last().unwrap();
        gave_up(LogVersion::new(1), last, &sends, &Budget::start(Duration::ZERO)).code()
    };
    let remote = || source(StoreError::Generic { store: "S3", source: boxed() });
    let exists = || Some(TransactionError::VersionAlreadyExists(1));
    let denied = |text: &str| source(StoreError::PermissionDenied { path: "p".into(), source: text.into() });
    assert_eq!(code(vec![remote()]), ErrorCode::OutcomeUnknown);
    assert_eq!(code(vec![None]), ErrorCode::OutcomeUnknown);
    assert_eq!(code(vec![exists()]), ErrorCode::Storage);
    assert_eq!(code(vec![local]), ErrorCode::Storage);
    assert_eq!(code(vec![exists(), denied("403")]), ErrorCode::Storage);
    // A put that was not answered may be under way still, whatever is said about the next one.
    for open in [None, remote()] {
        assert_eq!(code(vec![open, exists(), denied("403")]), ErrorCode::OutcomeUnknown);
    }
    let repeated = "Error performing PUT x in 1s, after 1 retries, max_retries: 5, retry_timeout: 20s  - 403";
    assert_eq!(code(vec![denied(repeated)]), ErrorCode::OutcomeUnknown);
}
