#![allow(clippy::unwrap_used, clippy::panic)]

use proptest::prelude::*;

use super::*;
use crate::model::finding::FindingCode;
use crate::model::kind::KindBuilder;
use crate::model::migration::Migration;

const FILE: &str = "migrations.lock";

/// A kind whose migrations each add the named column; `x!` is one that was edited.
fn kind(columns: &[&str]) -> Kind {
    builder("facts", columns).build().unwrap()
}

fn builder(name: &str, columns: &[&str]) -> KindBuilder {
    columns.iter().fold(Kind::builder(name).description("d").column("id", "long"), |kind, column| {
        let (name, data_type) = match column.strip_suffix('!') {
            Some(name) => (name, "long"),
            None => (*column, "string"),
        };
        kind.migration(Migration::builder(format!("adds {name}")).add_column(name, data_type))
    })
}

fn lock(kinds: &[&Kind]) -> Lockfile {
    Lockfile::parse(&Lockfile::empty(FILE).extended(kinds.iter().copied()).to_string(), FILE)
}

/// What is found of one kind: code, and the versions that it was and is.
fn found(locked: &[&str], now: &[&str]) -> Vec<String> {
    let verified = lock(&[&kind(locked)]).verify([&kind(now)], Kinds::All);
    verified.findings.iter().map(short).collect()
}

fn short(finding: &Finding) -> String {
    let version = |frozen: &Option<Frozen>| frozen.as_ref().map_or("-".to_owned(), |f| f.version.to_string());
    format!("{} {}>{}", finding.code.as_str(), version(&finding.was), version(&finding.is))
}

#[test]
fn a_lock_is_written_in_order_one_line_a_migration() {
    let orders =
        builder("orders", &["a"]).description("two\nlines \u{2028} and \u{1b}[2J  ").build().unwrap();
    let facts = (1..=11).map(|n| format!("c{n}")).collect::<Vec<_>>();
    let facts = kind(&facts.iter().map(String::as_str).collect::<Vec<_>>());
    let text = lock(&[&orders, &facts]).to_string();
    insta::assert_snapshot!(text);
    assert_eq!(Lockfile::parse(&text, FILE).to_string(), text);
}

#[test]
fn appending_is_fine_and_is_told() {
    let verified = lock(&[&kind(&["a", "b"])]).verify([&kind(&["a", "b", "c"])], Kinds::All);
    assert_eq!(verified.findings, []);
    assert_eq!(verified.unlocked.iter().map(|u| u.frozen.version.get()).collect::<Vec<_>>(), [3]);
    assert!(!verified.mended);
}

#[test]
fn each_way_to_touch_a_shipped_chain_is_told_apart() {
    assert_eq!(found(&["a", "b"], &["a", "b!"]), ["edited_migration 2>2"]);
    assert_eq!(found(&["a", "b"], &["a!", "b", "c"]), ["edited_migration 1>1"]);
    assert_eq!(found(&["a", "b", "c"], &["a", "x", "c"]), ["edited_migration 2>2"]);
    assert_eq!(found(&["a", "b"], &["b", "a"]), ["moved_migration 1>2"]);
    assert_eq!(found(&["a", "b", "c", "d"], &["a", "c", "d", "b"]), ["moved_migration 2>4"]);
    assert_eq!(found(&["a", "b", "c"], &["a", "c"]), ["removed_migration 2>-"]);
    assert_eq!(found(&["a", "b", "c"], &["a", "b"]), ["removed_migration 3>-"]);
    assert_eq!(found(&["a"], &[]), ["removed_migration 1>-"]);
    assert_eq!(found(&["a", "b"], &["x", "a", "b"]), ["inserted_migration ->1"]);
    assert_eq!(
        found(&["a", "b"], &["a", "x", "y", "b", "z"]),
        ["inserted_migration ->2", "inserted_migration ->3"]
    );
    assert_eq!(found(&["a", "b"], &["a", "x"]), ["edited_migration 2>2"]);
}

#[test]
fn comments_and_descriptions_may_be_mended() {
    let builder = |description: &str, comment: &str| {
        let migration = Migration::builder(description).add_commented_column("a", "string", comment);
        Kind::builder("facts").column("id", "long").migration(migration).build().unwrap()
    };
    let lock = lock(&[&builder("tpyo", "x")]);
    let verified = lock.verify([&builder("tpyo", "y")], Kinds::All);
    assert!(verified.findings.is_empty() && !verified.mended);
    let verified = lock.verify([&builder("typo", "y")], Kinds::All);
    assert!(verified.findings.is_empty() && verified.mended);
    assert!(lock.extended([&builder("typo", "y")]).to_string().contains(" typo\n"));
}

#[test]
fn of_migrations_with_one_digest_the_description_tells_which_is_which() {
    let of = |texts: &[&str]| {
        let add = |kind: KindBuilder, text: &&str| {
            kind.migration(Migration::builder(*text).table_description("the same digest whatever it says"))
        };
        texts.iter().fold(Kind::builder("facts").column("id", "long"), add).build().unwrap()
    };
    let verified = |now: &[&str]| lock(&[&of(&["x", "y"])]).verify([&of(now)], Kinds::All);
    // They do the same, so their order says nothing to any table.
    assert!(verified(&["y", "x"]).findings.is_empty() && verified(&["y", "x"]).mended);
    assert_eq!(verified(&["y"]).findings.iter().map(short).collect::<Vec<_>>(), ["removed_migration 1>-"]);
    assert_eq!(verified(&["x"]).findings.iter().map(short).collect::<Vec<_>>(), ["removed_migration 2>-"]);
}

#[test]
fn base_shapes_and_kinds_are_held_too() {
    let other = Kind::builder("facts").column("id", "string").build().unwrap();
    let verified = lock(&[&kind(&[])]).verify([&other], Kinds::All);
    assert_eq!(verified.findings.iter().map(short).collect::<Vec<_>>(), ["changed_base 0>0"]);

    let orders = builder("orders", &["a"]).build().unwrap();
    let both = lock(&[&kind(&["a"]), &orders]);
    let verified = both.verify([&kind(&["a"])], Kinds::All);
    assert_eq!(verified.findings.iter().map(short).collect::<Vec<_>>(), ["vanished_kind 0>-"]);
    assert_eq!(verified.findings[0].line, Some(8));
    assert!(both.verify([&kind(&["a"])], Kinds::Some).findings.is_empty());
    assert!(
        both.extended([&kind(&["a", "b"])]).to_string().contains("\norders 1 "),
        "others' lines are kept"
    );
}

#[test]
fn windows_editors_comments_and_blank_lines_are_tolerated() {
    let text = lock(&[&kind(&["a"])]).to_string();
    let odd = format!("\u{feff}{}", text.replace('\n', "\r\n\r\n  # a remark\r\n"))
        .replace("facts 1 ", "  facts\t1   ");
    let read = Lockfile::parse(&odd, FILE);
    assert_eq!(read.to_string(), text);
    assert!(read.verify([&kind(&["a"])], Kinds::All).findings.is_empty());
    // Lines in another order, and one twice, as a union merge leaves them.
    let mut lines: Vec<&str> = text.lines().rev().collect();
    lines.push(lines[0]);
    assert!(Lockfile::parse(&lines.join("\n"), FILE).findings.is_empty());
}

#[test]
fn what_is_wrong_with_the_file_itself_is_told_with_its_line() {
    let findings = |text: &str| {
        let lock = Lockfile::parse(text, FILE);
        let lines: Vec<String> = lock.findings.iter().map(ToString::to_string).collect();
        lines.join("\n")
    };
    insta::assert_snapshot!(findings(
        "facts base ce7f451b d\nfacts x 60628a05\nfacts 01 60628a05\nfacts 0 60628a05\nfacts 1\nfacts 1 60628A05\n\
         fa/cts 1 60628a05\nfacts 2 60628a05 two\nfacts 99999999999 60628a05\norders 1 60628a05 one\n"
    ));
    insta::assert_snapshot!(findings(
        "facts base ce7f451b d\nfacts 1 60628a05 ours\nfacts 1 7d5ee533 theirs\nfacts 2 60628a05 x\n"
    ));
    insta::assert_snapshot!(findings(
        "facts base ce7f451b d\n<<<<<<< HEAD\nfacts 1 60628a05 ours\n||||||| base\n=======\nfacts 1 7d5ee533 \
         theirs\n>>>>>>> branch\n<<<<<<< HEAD\n>>>>>>> x\n"
    ));
    insta::assert_snapshot!(findings("# scheme: 2 (kind)\nfacts whatever\n"));
}

#[test]
fn of_a_fork_the_line_that_fits_is_believed() {
    let (ours, theirs) = (kind(&["a", "ours"]), kind(&["a", "theirs"]));
    let text = format!("{}{}", lock(&[&ours]), lock(&[&theirs]));
    for kind in [&ours, &theirs] {
        let verified = Lockfile::parse(&text, FILE).verify([kind], Kinds::All);
        let codes: Vec<FindingCode> = verified.findings.iter().map(|f| f.code).collect();
        assert_eq!(codes, [FindingCode::ForkedLock]);
    }
}

#[test]
fn a_lock_of_a_later_scheme_is_one_finding() {
    let text = lock(&[&kind(&["a"])]).to_string().replace("scheme: 1", "scheme: 2");
    let verified = Lockfile::parse(&text, FILE).verify([&kind(&["b"])], Kinds::All);
    assert_eq!(verified.findings.len(), 1);
    assert_eq!(verified.findings[0].code, FindingCode::LaterLock);
}

/// A chain of distinct migrations, some of them edited, in any order.
fn chain_of() -> impl Strategy<Value = Vec<String>> {
    let columns = ["a", "b", "c", "d", "e", "f"].map(str::to_owned).to_vec();
    (proptest::sample::subsequence(columns, 0..=6), any::<u8>())
        .prop_map(|(columns, edits)| {
            let edit = |(i, c): (usize, String)| if edits >> i & 1 == 1 && edits > 128 { c + "!" } else { c };
            columns.into_iter().enumerate().map(edit).collect::<Vec<_>>()
        })
        .prop_shuffle()
}

proptest! {
    #[test]
    fn bytes_of_any_sort_are_read_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let text = String::from_utf8_lossy(&bytes);
        let lock = Lockfile::parse(&text, FILE);
        let verified = lock.verify([&kind(&["a"])], Kinds::All);
        prop_assert!(verified.findings.iter().all(|f| f.line != Some(0)));
        let again = Lockfile::parse(&lock.to_string(), FILE);
        prop_assert_eq!(again.to_string(), lock.to_string());
    }

    #[test]
    fn damaged_locks_are_read_without_a_panic(at in 0_usize..400, byte in any::<u8>(), cut in 0_usize..400) {
        let mut bytes = lock(&[&kind(&["a", "b", "c"])]).to_string().into_bytes();
        let at = at % bytes.len();
        bytes[at] = byte;
        bytes.truncate(bytes.len() - cut % bytes.len());
        let text = String::from_utf8_lossy(&bytes);
        let _ = Lockfile::parse(&text, FILE).verify([&kind(&["a", "b!"])], Kinds::All).findings;
    }

    #[test]
    fn a_lock_is_fine_exactly_if_it_is_a_prefix(locked in chain_of(), now in chain_of(), own in any::<bool>()) {
        let now = if own { [locked.clone(), vec!["z".to_owned()]].concat() } else { now };
        let words = |words: &[String]| kind(&words.iter().map(String::as_str).collect::<Vec<_>>());
        let verified = lock(&[&words(&locked)]).verify([&words(&now)], Kinds::All);
        prop_assert_eq!(verified.findings.is_empty(), now.starts_with(&locked), "{:?}", verified.findings);
        if verified.findings.is_empty() {
            prop_assert_eq!(verified.unlocked.len(), now.len() - locked.len());
        }
    }
}
