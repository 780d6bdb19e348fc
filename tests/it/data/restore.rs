//! A RESTORE brings old rows back; whatever it leaves of markers, the rows are filled in again.

use super::*;

/// What deltalake's RESTORE does: the files and the metadata of an older version.
async fn restore(table: &Table, version: u64) {
    table.load().await.restore().with_version_to_restore(version).await.unwrap();
}

#[tokio::test]
async fn restored_to_before_the_fill_the_rows_are_filled_again() {
    let table = table_of(base().stamped(0), 2).await;
    let before = table.newest();
    migrate_at(&table.location(), FILL, ONE_FILE).await.unwrap();
    is_filled(&table, 0..4).await;
    // Before the columns, behind the columns, behind the first file.
    for version in before..table.newest() {
        let copy = copy_of(&table);
        restore(&copy, version).await;
        assert_ne!(rows(&copy).await, filled_all(0..4), "{version}");
        append(&copy, &[row(4), row(5)]).await;
        let report = migrate_at(&copy.location(), FILL, ONE_FILE).await.unwrap();
        assert_eq!(report.outcome.as_str(), "migrated", "{version}");
        is_filled(&copy, 0..6).await;
        assert_eq!(migrate(&copy, FILL).await.unwrap().outcome.as_str(), "current");
    }
}

/// Old files come back while the fill is under way; its columns and its floor stay.
#[tokio::test]
async fn a_restore_of_the_files_alone_in_the_middle_of_a_fill_is_filled_again() {
    let table = Arc::new(table_of(base(), 3).await);
    let old = active(&table);
    let rival = table.clone();
    let store = crate::support::store::TrickStore::on_put(move |n| {
        // The columns and the first file have landed.
        if n == 2 {
            let now = active(&rival);
            let back = old.iter().filter(|(k, _)| !now.contains_key(*k)).map(|(_, a)| json!({ "add": a }));
            let gone = now.iter().filter(|(k, _)| !old.contains_key(*k)).map(|(_, a)| {
                json!({ "remove": { "path": a["path"], "dataChange": true, "deletionTimestamp": 0 } })
            });
            let actions: Vec<Value> = back.chain(gone).collect();
            assert_eq!(actions.len(), 2);
            rival.commit_raw(&actions);
        }
        crate::support::store::Trick::Pass
    });
    migrate_at(&table.location_in(&store), FILL, ONE_FILE).await.unwrap();
    is_filled(&table, 0..6).await;
}

/// Behind the first stamp there is no telling what the table is; a person says it.
#[tokio::test]
async fn restored_to_before_the_first_stamp_it_waits_for_a_word_and_is_filled_again() {
    use crate::support::command::on;
    let table = table_of(base(), 2).await;
    let before = table.newest();
    migrate(&table, FILL).await.unwrap();
    restore(&table, before).await;
    let error = migrate(&table, FILL).await.unwrap_err();
    assert_eq!(error.code(), delta_migrate::ErrorCode::StampLost);
    assert!(error.hint().unwrap().contains("RESTORE"), "{error:?}");
    let ran = on(&table, FILL, &["repair", "--restamp", "0", "--why", "restored", table.arg()]);
    assert_eq!(ran.code, 0, "{ran:?}");
    migrate(&table, FILL).await.unwrap();
    assert_eq!(rows(&table).await, filled_all(0..4));
    is_stamped(&table, "1");
}
