//! Documents that the command and the library write, in scenarios that bring about every key.

mod by_hand;
mod chains;
mod lakes;
mod reconciled;

use std::path::Path;
use std::sync::OnceLock;

use serde_json::Value;

use super::assert_none;
use super::seen::{
    ASSESSMENT, DIFF, ERROR, EVENTS, FINDING, GENERATE, HISTORY, LOCK, MANIFEST, MANY, ONE, PLAN, PLANS,
    SETUP, Seen, UNLOCKED, VALIDATE,
};

/// What is written for other programs: the page says of each key when it is there.
pub(super) const WRITTEN: [&str; 19] = [
    MANY,
    ONE,
    ERROR,
    SETUP,
    ASSESSMENT,
    DIFF,
    EVENTS,
    HISTORY,
    DOCTOR,
    LOCK,
    VALIDATE,
    FINDING,
    UNLOCKED,
    NEW,
    FROM_TABLE,
    ADD_MIGRATION,
    GENERATE,
    CHECK,
    super::seen::ENTRY,
];

/// What a later release reads: the page says what it makes of a key that is not there.
pub(super) const READ_BACK: [&str; 3] = [PLANS, PLAN, MANIFEST];

const DOCTOR: &str = "`doctor`";
const NEW: &str = "`new`";
const FROM_TABLE: &str = "`kind from-table`";
const ADD_MIGRATION: &str = "`kind add-migration`";
const CHECK: &str = "`compat check`";

/// Keys that only a program with kinds of its own leaves out; the stock command has kind files.
const OF_OWN_PROGRAMS: [&str; 3] = ["`file`", "`line`", "`file`"];

/// What all scenarios wrote.
pub(super) fn seen() -> &'static Seen {
    static SEEN: OnceLock<Seen> = OnceLock::new();
    SEEN.get_or_init(|| {
        let mut seen = Seen::default();
        let runtime = tokio::runtime::Runtime::new().unwrap();
        lakes::see(&mut seen, &runtime);
        by_hand::see(&mut seen, &runtime);
        reconciled::see(&mut seen);
        chains::see(&mut seen);
        seen
    })
}

/// Every log entry of a table's folder.
fn entries(folder: &Path) -> Vec<Vec<Value>> {
    let files = std::fs::read_dir(folder.join("_delta_log")).unwrap().map(|e| e.unwrap().path());
    let files = files.filter(|path| path.extension().is_some_and(|e| e == "json"));
    let lines = |text: String| text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    files.map(|path| lines(std::fs::read_to_string(path).unwrap())).collect()
}

#[test]
fn the_page_lists_what_documents_hold_and_nothing_else() {
    let faults = WRITTEN.iter().chain(&READ_BACK).flat_map(|section| seen().differences(section));
    assert_none(faults.collect());
}

#[test]
fn the_page_says_of_each_key_whether_it_is_always_there() {
    let is_own = |fault: &String| {
        let own = fault.starts_with(FINDING) || fault.starts_with(UNLOCKED);
        own && OF_OWN_PROGRAMS.iter().any(|key| fault.contains(key)) && fault.contains("was always there")
    };
    let faults = WRITTEN.iter().flat_map(|section| seen().absences(section));
    let faults: Vec<String> = faults.filter(|fault| !is_own(fault)).collect();
    assert_none(faults);
    assert_none(READ_BACK.iter().flat_map(|section| seen().gaps(section)).collect());
}
