//! A build that moves no data says so, and does all the rest.

use super::frozen::sample_kind;
use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn a_build_that_moves_no_data_writes_no_half_a_corpus_and_says_what_it_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let (_, filled) = sample_kind("filled");
    let kinds = [kind(3), filled.clone()];
    let corpus = folder.path().join("1.0");
    let options = Options::new("my-sink 1.0");
    let error = compat::generate(&kinds, &namespace(), &corpus, &options).await.unwrap_err();
    assert_eq!(error.code(), delta_migrate::ErrorCode::UnsupportedStep);
    assert!(error.message().contains("kind `filled`: migration 1 moves data (`add_constraints`)"), "{error}");
    assert!(error.hint().unwrap().contains("feature `datafusion`"), "{error}");
    assert!(!corpus.exists(), "something was written");

    let shipped = [kind(3), filled.cut_at(SchemaVersion::ZERO)];
    compat::generate(&shipped, &namespace(), &corpus, &options).await.unwrap();
    let checked = compat::check(&corpus, &kinds, &namespace()).await.unwrap();
    assert_eq!(checked.findings.len(), 1, "{checked}");
    let finding = &checked.findings[0];
    assert_eq!(finding.place, "1.0: kind `filled`");
    assert_eq!(finding.wanted, "a build with the feature `datafusion`");
    assert!(finding.found.contains("its tables were left out"), "{finding}");
    assert!(checked.tables > 15, "the other kind's tables are carried: {checked}");
}
