//! What a commit leaves in a table, held against the commits of the scenarios.

use super::assert_none;
use super::documents::seen;
use super::seen::{COMMIT, PROPERTIES, RECONCILE, TXN};

/// The page says of each key when it is written.
pub(super) const WRITTEN: [&str; 4] = [PROPERTIES, TXN, COMMIT, RECONCILE];

#[test]
fn the_page_lists_what_commits_leave_and_nothing_else() {
    assert_none(WRITTEN.iter().flat_map(|section| seen().differences(section)).collect());
}

#[test]
fn the_page_says_which_of_it_every_commit_leaves() {
    assert_none(WRITTEN.iter().flat_map(|section| seen().absences(section)).collect());
}
