//! STATE.md as a program reads it: of each heading the tables below it, of each row the key in its
//! first column, the release in its second, and the other cells.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::OnceLock;

use super::Release;

/// One row of a table.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) key: String,
    pub(super) since: Release,
    pub(super) cells: Vec<String>,
}

impl Row {
    /// Whether the page says that the key is always written.
    pub(super) fn is_always(&self) -> bool {
        let (first, last) = (&self.cells[0], self.absent());
        first.starts_with("always") || first.starts_with("by every commit") || last == "always"
    }

    /// What a reader does without it.
    pub(super) fn absent(&self) -> &str {
        self.cells.last().unwrap()
    }

    /// Whether only a build with DataFusion writes it, and this is none.
    pub(super) fn is_of_another_build(&self) -> bool {
        !cfg!(feature = "datafusion") && self.cells.iter().any(|cell| cell.contains("feature `datafusion`"))
    }

    /// Whether a reader insists on it.
    pub(super) fn is_asked_for(&self) -> bool {
        self.absent().starts_with("refused")
    }
}

/// The rows by the heading above them.
pub(super) fn sections() -> &'static BTreeMap<String, Vec<Row>> {
    static PAGE: OnceLock<BTreeMap<String, Vec<Row>>> = OnceLock::new();
    PAGE.get_or_init(|| {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("STATE.md");
        read(&std::fs::read_to_string(file).unwrap())
    })
}

/// The rows of a section, which must be there.
pub(super) fn rows(section: &str) -> &'static [Row] {
    sections().get(section).unwrap_or_else(|| panic!("STATE.md has no table below `{section}`"))
}

/// The keys of a section.
pub(super) fn keys(section: &str) -> Vec<&'static str> {
    rows(section).iter().map(|row| row.key.as_str()).collect()
}

pub(super) fn row(section: &str, key: &str) -> Option<&'static Row> {
    sections().get(section)?.iter().find(|row| row.key == key)
}

fn read(text: &str) -> BTreeMap<String, Vec<Row>> {
    let mut sections: BTreeMap<String, Vec<Row>> = BTreeMap::new();
    let mut heading = "";
    for line in text.lines() {
        if let Some(title) = line.strip_prefix('#') {
            heading = title.trim_start_matches('#').trim();
        } else if let Some(cells) = line.strip_prefix("| `") {
            let cells: Vec<&str> = cells.trim_end_matches('|').split(" | ").map(str::trim).collect();
            let key = cells[0].strip_suffix('`').unwrap_or_else(|| panic!("no key: {line}")).to_owned();
            let since = Release::parse(cells[1]).unwrap_or_else(|| panic!("no release: {line}"));
            let rows = sections.entry(heading.to_owned()).or_default();
            assert!(rows.iter().all(|row| row.key != key), "`{key}` stands twice below `{heading}`");
            rows.push(Row { key, since, cells: cells[2..].iter().map(|c| (*c).to_owned()).collect() });
        } else if line.starts_with('|') {
            // The head of a table; its last column says what the page promises of an absent key.
            let is_head = [
                "key", "word", "code", "property", "variable", "encoding", "part", "file", "command",
                "option", "---",
            ];
            let first = line.trim_start_matches('|').split('|').next().unwrap().trim();
            assert!(is_head.contains(&first), "a row without a key in backticks: {line}");
        }
    }
    sections
}

#[test]
fn the_page_is_read_as_it_is_written() {
    let text = "# A\n\n## `b`\n| key | since | shape | if it is absent |\n|---|---|---|---|\n\
                | `x[].y` | 0.1.0 | text | always |\n| `z` | 1.20.3 | a `q` | refused: `w` |\n";
    let page = read(text);
    let rows = &page["`b`"];
    assert_eq!((page.len(), rows.len(), rows[0].key.as_str()), (1, 2, "x[].y"));
    assert!(rows[0].is_always() && !rows[0].is_asked_for() && !rows[1].is_always());
    assert!(rows[1].is_asked_for() && rows[0].since < rows[1].since);
    assert_eq!(rows[1].cells, ["a `q`", "refused: `w`"]);
}
