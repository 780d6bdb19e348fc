//! Walks a TOML text by hand, so that every mistake is found in one go, each with its place.
//!
//! Reading goes on after a mistake wherever it can be guessed what was meant: a misspelled key is
//! read as the key that it resembles, so that one slip is one report. Values are never repeated in a
//! report, because a configuration holds secrets.

use std::collections::BTreeSet;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::kind::nearest;
use super::text::count;
use crate::error::Error;

/// A value with the bytes it stands at.
pub(crate) type Value<'t> = Spanned<DeValue<'t>>;

/// Whether a sub-table is a value of its own; told also whether it comes from a dotted key.
type IsValue<'f, 't> = &'f dyn Fn(&DeTable<'t>, bool) -> bool;

/// A TOML text that is being read, and the mistakes found so far; without `Debug`, because the text may
/// hold secrets.
pub(crate) struct Walk<'t> {
    text: &'t str,
    /// Byte offset and text of each mistake: in the order of the file, none twice.
    mistakes: BTreeSet<(usize, String)>,
    /// The lines that are no TOML; nothing else is said about them.
    broken_lines: BTreeSet<usize>,
    /// How often something was wrong, whether or not it made a report.
    slips: usize,
    /// Whether parts of the text are no TOML.
    broken: bool,
    /// Whether a part could not be read that other parts may refer to.
    lost: bool,
}

/// A known key of a table with its value.
pub(crate) struct Entry<'a, 't> {
    pub(crate) key: &'static str,
    /// Where the key stands.
    pub(crate) at: usize,
    pub(crate) value: &'a Value<'t>,
}

/// A key that the author chose, with its value.
pub(crate) struct Leaf<'a, 't> {
    pub(crate) name: String,
    /// Where the key stands.
    pub(crate) at: usize,
    pub(crate) value: &'a Value<'t>,
}

/// Reads TOML, a byte order mark before it or not; what is no TOML is a mistake of the walk.
pub(crate) fn parse(text: &str) -> (DeTable<'_>, Walk<'_>) {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let (root, errors) = DeTable::parse_recoverable(text);
    let mut walk = Walk {
        text,
        mistakes: BTreeSet::new(),
        broken_lines: BTreeSet::new(),
        slips: errors.len(),
        broken: false,
        lost: false,
    };
    for error in errors {
        let span = error.span().unwrap_or_default();
        let found = text.get(span.clone()).unwrap_or_default();
        if error.message() == "duplicate key" {
            // The first of the two was read, so nothing is missing.
            let message = format!("the key `{found}` stands here a second time; wanted each key once");
            walk.mistakes.insert((span.start, message));
        } else {
            (walk.broken, walk.lost) = (true, true);
            walk.mistakes.insert((span.start, syntax_mistake(error.message(), found)));
        }
        walk.broken_lines.insert(walk.position(span.start).0);
    }
    (root.into_inner(), walk)
}

/// The parser's message in the words used here; `found` is the text that it speaks of.
fn syntax_mistake(message: &str, found: &str) -> String {
    // From its first letter the parser takes bare text for a misspelled `true`, `false`, `inf` or `nan`.
    let bare = found.starts_with(char::is_alphabetic)
        && (message.starts_with("invalid boolean") || message.starts_with("invalid float"));
    if bare || message.starts_with("string values must be quoted") {
        return "found text without quotes; wanted a string in quotes, or `true` or `false`".to_owned();
    }
    match message.split_once(", expected ") {
        Some((found, wanted)) => format!("{found}; wanted {}", wanted.replace(", ", " or ")),
        None => format!("{message}; wanted valid TOML"),
    }
}

/// Whether a table that may hold columns holds none.
fn lacks_columns(table: &DeTable<'_>, known: &[&str]) -> bool {
    ["columns", "add_columns"].iter().any(|key| known.contains(key) && !table.contains_key(*key))
}

impl<'t> Walk<'t> {
    /// Reports a mistake at a byte offset: what was found and what would be right.
    pub(crate) fn mistake(&mut self, at: usize, found: impl AsRef<str>, wanted: impl AsRef<str>) {
        self.slips += 1;
        if !self.broken_lines.contains(&self.position(at).0) {
            self.mistakes.insert((at, format!("{}; {}", found.as_ref(), wanted.as_ref())));
        }
    }

    /// How often something was wrong so far; grows with each mistake.
    pub(crate) fn slips(&self) -> usize {
        self.slips
    }

    /// Whether parts of the text are no TOML, so that a key that seems to be missing may be there.
    pub(crate) fn is_broken(&self) -> bool {
        self.broken
    }

    /// Whether a part could not be read that other parts may refer to.
    pub(crate) fn is_lossy(&self) -> bool {
        self.lost
    }

    /// Says that a part could not be read that other parts may refer to.
    pub(crate) fn lose(&mut self) {
        self.lost = true;
    }

    /// All mistakes as one error, in the order of the text; none if there are none.
    pub(crate) fn into_error(self, file: &str) -> Option<Error> {
        if self.slips == 0 {
            return None;
        }
        let mut message = format!("{file}: {}", count(self.mistakes.len(), "mistake"));
        for (at, text) in &self.mistakes {
            let (line, column) = self.position(*at);
            message.push_str(&format!("\n{file}:{line}:{column}: {text}"));
        }
        Some(Error::usage(message))
    }

    /// The table's entries in the order of the text, but for those whose key is none of `known`.
    pub(crate) fn entries<'a>(
        &mut self,
        table: &'a DeTable<'t>,
        known: &[&'static str],
    ) -> Vec<Entry<'a, 't>> {
        let mut entries: Vec<Entry<'a, 't>> = Vec::new();
        for (written, value) in table.iter() {
            let (name, at) = (written.get_ref().as_ref(), written.span().start);
            if let Some(key) = known.iter().find(|k| **k == name) {
                entries.push(Entry { key, at, value });
                continue;
            }
            let meant = nearest(name, known).and_then(|near| known.iter().find(|k| **k == near));
            let wanted = match meant {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => format!("wanted one of {}", known.join(", ")),
            };
            self.mistake(at, format!("unknown key `{name}`"), wanted);
            match meant {
                Some(key) if !table.contains_key(*key) && entries.iter().all(|e| e.key != *key) => {
                    entries.push(Entry { key, at, value });
                }
                // It may be what should have held the columns that other parts name.
                _ if matches!(value.get_ref(), DeValue::Table(_)) && lacks_columns(table, known) => {
                    self.lose()
                }
                _ => {}
            }
        }
        entries
    }

    /// The entries of a table whose keys are names or paths of the author's.
    ///
    /// To TOML a dot outside quotes opens a table; such a key is reported, with `wanted` and the whole
    /// name in quotes, and then read as if it stood in quotes. A sub-table is a value of its own if it is
    /// inline or empty, or if `is_value` says so of it (and of whether it comes from a dotted key).
    pub(crate) fn leaves<'a>(
        &mut self,
        table: &'a DeTable<'t>,
        wanted: &str,
        is_value: IsValue<'_, 't>,
    ) -> Vec<Leaf<'a, 't>> {
        let mut leaves = Vec::new();
        for (key, value) in table.iter() {
            let (name, at) = (key.get_ref().to_string(), key.span().start);
            match value.get_ref() {
                DeValue::Table(inner) if self.opens_table(value, inner, is_value) => {
                    self.nested(&name, at, inner, (wanted, is_value), &mut leaves);
                }
                _ => leaves.push(Leaf { name, at, value }),
            }
        }
        leaves
    }

    fn opens_table(&self, value: &Value<'t>, table: &DeTable<'t>, is_value: IsValue<'_, 't>) -> bool {
        let first = self.text.get(value.span().start..).and_then(|rest| rest.chars().next());
        first != Some('{') && !table.is_empty() && !is_value(table, first != Some('['))
    }

    fn nested<'a>(
        &mut self,
        name: &str,
        first: usize,
        table: &'a DeTable<'t>,
        rule: (&str, IsValue<'_, 't>),
        leaves: &mut Vec<Leaf<'a, 't>>,
    ) {
        for (key, value) in table.iter() {
            let whole = format!("{name}.{}", key.get_ref());
            let at = key.span().start;
            match value.get_ref() {
                DeValue::Table(inner) if self.opens_table(value, inner, rule.1) => {
                    self.nested(&whole, first, inner, rule, leaves);
                }
                _ => {
                    // Keys with the same beginning share the table that the first of them opened.
                    let same_line = self.position(first).0 == self.position(at).0;
                    let at = if same_line { first } else { at };
                    let found = format!("without quotes `{whole}` means a table `{name}`");
                    self.mistake(at, found, format!("{}: \"{whole}\"", rule.0));
                    leaves.push(Leaf { name: whole, at, value });
                }
            }
        }
    }

    /// A string.
    pub(crate) fn string(&mut self, value: &Value<'t>) -> Option<String> {
        match value.get_ref() {
            DeValue::String(text) => Some(text.to_string()),
            DeValue::Array(_) | DeValue::Table(_) => self.wrong(value, "wanted a string"),
            _ => self.wrong(value, "wanted a string: put it in quotes"),
        }
    }

    /// True or false; in quotes it is reported, and then read all the same.
    pub(crate) fn flag(&mut self, value: &Value<'t>) -> Option<bool> {
        match value.get_ref() {
            DeValue::Boolean(flag) => Some(*flag),
            DeValue::String(text) if matches!(text.as_ref(), "true" | "false") => {
                self.wrong::<()>(value, "wanted `true` or `false` without quotes");
                Some(text == "true")
            }
            _ => self.wrong(value, "wanted `true` or `false`"),
        }
    }

    /// An array of strings, each with its value.
    pub(crate) fn strings<'a>(&mut self, value: &'a Value<'t>) -> Option<Vec<(String, &'a Value<'t>)>> {
        match value.get_ref() {
            DeValue::Array(items) => {
                Some(items.iter().filter_map(|item| Some((self.string(item)?, item))).collect())
            }
            DeValue::String(_) => self.wrong(value, "wanted an array of strings: put it in brackets"),
            _ => self.wrong(value, "wanted an array of strings"),
        }
    }

    /// A table; `wanted` says how it is written.
    pub(crate) fn table<'a>(&mut self, value: &'a Value<'t>, wanted: &str) -> Option<&'a DeTable<'t>> {
        match value.get_ref() {
            DeValue::Table(table) => Some(table),
            _ => self.wrong(value, wanted),
        }
    }

    /// An array of tables, each element as it is; one table in its place is read as the only element.
    pub(crate) fn tables<'a>(&mut self, value: &'a Value<'t>, header: &str) -> Option<Vec<&'a Value<'t>>> {
        let wanted = format!("wanted an array of tables: write {header} over each");
        match value.get_ref() {
            DeValue::Array(items) => Some(items.iter().collect()),
            DeValue::Table(_) => {
                self.wrong::<()>(value, wanted);
                Some(vec![value])
            }
            _ => self.wrong(value, wanted),
        }
    }

    /// Reports a value of the wrong type.
    pub(crate) fn wrong<T>(&mut self, value: &Value<'t>, wanted: impl AsRef<str>) -> Option<T> {
        let found = match value.get_ref() {
            DeValue::String(_) => "found a string",
            DeValue::Integer(_) => "found an integer",
            DeValue::Float(_) => "found a number",
            DeValue::Boolean(_) => "found a boolean",
            DeValue::Datetime(_) => "found a date or time",
            DeValue::Array(_) => "found an array",
            DeValue::Table(_) => "found a table",
        };
        if value.span().is_empty() {
            // Put there by the parser for a value that is missing, which it has reported.
            self.slips += 1;
        } else {
            self.mistake(value.span().start, found, wanted);
        }
        None
    }

    /// Where a string's text begins, if it stands in the file as it is, without escapes.
    pub(crate) fn plain_text(&self, value: &Value<'t>) -> Option<usize> {
        let span = value.span();
        let (raw, text) = (self.text.get(span.clone())?, value.get_ref().as_str()?);
        let quotes = [1, 3].into_iter().find(|n| {
            raw.len().checked_sub(*n).is_some_and(|end| raw.get(*n..end).is_some_and(|t| t == text))
        })?;
        Some(span.start + quotes)
    }

    /// The line of a byte offset, from 1.
    pub(crate) fn line(&self, at: usize) -> usize {
        self.position(at).0
    }

    /// Line and column of a byte offset, both from 1; columns count characters.
    fn position(&self, at: usize) -> (usize, usize) {
        let before = &self.text[..self.text.floor_char_boundary(at)];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
    }
}
