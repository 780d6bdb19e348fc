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
    // After these the request may be under way still.
    assert!(!says_no(remote.as_ref()) && !says_no(None));
    // After these it is not.
    let precondition = source(StoreError::Precondition { path: "x".into(), source: boxed() });
    for no in [Some(TransactionError::VersionAlreadyExists(1)), precondition, local] {
        assert!(says_no(no.as_ref()), "{no:?}");
        assert_eq!(gave_up(LogVersion::new(1), no.unwrap()).code(), ErrorCode::Storage);
    }
}

#[test]
fn what_a_disk_says_gives_the_way_out() {
    let hint = |os: i32| {
        let source = StoreError::Generic {
            store: "LocalFileSystem",
            source: Box::new(Wrapped(std::io::Error::from_raw_os_error(os))),
        };
        let failure = TransactionError::ObjectStore { source };
        let error = gave_up(LogVersion::new(1), failure);
        assert_eq!(error.code(), ErrorCode::Storage);
        error.hint().unwrap().to_owned()
    };
    let cases = [
        (28, "make room"),            // ENOSPC
        (122, "make room"),           // EDQUOT
        (27, "make room"),            // EFBIG
        (30, "mounted read-only"),    // EROFS
        (13, "who may create files"), // EACCES
        (1, "need hard links"),       // EPERM
        (95, "need hard links"),      // EOPNOTSUPP
        (38, "need hard links"),      // ENOSYS
        (5, "on local disks"),        // EIO
    ];
    if cfg!(target_os = "linux") {
        for (os, part) in cases {
            let hint = hint(os);
            assert!(hint.starts_with("nothing was written; ") && hint.contains(part), "{os} {hint}");
        }
    }
}

/// An error with a cause, as the store's own is.
#[derive(Debug, thiserror::Error)]
#[error("the store says no")]
struct Wrapped(#[source] std::io::Error);
