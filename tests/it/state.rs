//! STATE.md: what outlives a release, held against the code and against what releases left.

mod changelog;
mod command_line;
mod corpora;
mod documents;
mod files;
mod page;
mod readers;
mod seen;
mod sources;
mod tables;
mod words;

pub(crate) use files::give_ids;
use std::collections::BTreeSet;

use self::changelog::newest;

/// A version of this crate, comparable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Release(u32, u32, u32);

impl Release {
    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('.').map(|part| part.parse().ok());
        let release = Self(parts.next()??, parts.next()??, parts.next()??);
        parts.next().is_none().then_some(release)
    }
}

#[track_caller]
fn assert_none(faults: Vec<String>) {
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

#[test]
fn every_table_of_the_page_is_held_against_the_code() {
    let held = [
        &documents::WRITTEN[..],
        &documents::READ_BACK,
        &tables::WRITTEN,
        &files::SECTIONS,
        &corpora::SECTIONS,
        &words::SECTIONS,
        &command_line::SECTIONS,
    ];
    let held: BTreeSet<&str> = held.concat().into_iter().collect();
    let there: BTreeSet<&str> = page::sections().keys().map(String::as_str).collect();
    assert_eq!(there.symmetric_difference(&held).collect::<Vec<_>>(), Vec::<&&str>::new());
    assert!(held.len() > 40, "{held:?}");
}

#[test]
fn every_key_is_of_a_release_that_the_changelog_knows() {
    let all = page::sections().iter().flat_map(|(section, rows)| rows.iter().map(move |row| (section, row)));
    let early = all.filter(|(_, row)| row.since > newest());
    assert_none(early.map(|(section, row)| format!("{section}: `{}`", row.key)).collect());
}
