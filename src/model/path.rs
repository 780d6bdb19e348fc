//! Column paths: `payload.warnings`, `items.element.discount`, `` `a.b`.c ``.

use std::fmt;
use std::str::FromStr;

/// The way to a column: a name at the top, then names inside structs, with `element`, `key` and
/// `value` as the steps into arrays and maps (PROTOCOL.md, Field Path).
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ColumnPath(Vec<String>);

/// A text that is no column path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}`: {wanted}")]
pub(crate) struct InvalidPath {
    text: String,
    pub(crate) wanted: &'static str,
}

impl ColumnPath {
    /// A path of the given segments, taken as they are.
    pub(crate) fn of(segments: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self(segments.into_iter().map(Into::into).collect())
    }

    /// The segments, outermost first; never empty.
    pub(crate) fn segments(&self) -> &[String] {
        &self.0
    }

    /// The path one step further down.
    pub(crate) fn child(&self, segment: &str) -> Self {
        let mut segments = self.0.clone();
        segments.push(segment.to_owned());
        Self(segments)
    }

    /// The last segment: the column's own name.
    pub(crate) fn name(&self) -> &str {
        self.0.last().map_or("", String::as_str)
    }

    /// The segments before the last one; empty at the top level.
    pub(crate) fn parent(&self) -> &[String] {
        self.0.split_last().map_or(&[], |(_, init)| init)
    }
}

impl FromStr for ColumnPath {
    type Err = InvalidPath;

    fn from_str(text: &str) -> Result<Self, InvalidPath> {
        let wrong = |wanted| InvalidPath { text: text.to_owned(), wanted };
        let (mut segments, mut rest) = (Vec::new(), text);
        loop {
            let after = if let Some(quoted) = rest.strip_prefix('`') {
                let (name, after) = read_quoted(quoted).ok_or_else(|| {
                    wrong("the backtick is not closed; write a name with a dot as `` `a.b` ``")
                })?;
                segments.push(name);
                after
            } else {
                let end = rest.find('.').unwrap_or(rest.len());
                segments.push(rest[..end].to_owned());
                &rest[end..]
            };
            if segments.last().is_some_and(String::is_empty) {
                return Err(wrong("a name between the dots is empty"));
            }
            match after.strip_prefix('.') {
                Some(more) => rest = more,
                None if after.is_empty() => return Ok(Self(segments)),
                None => return Err(wrong("after a closing backtick comes a dot or the end")),
            }
        }
    }
}

/// Reads up to the closing backtick; two backticks in a row stand for one.
fn read_quoted(text: &str) -> Option<(String, &str)> {
    let mut name = String::new();
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        if c != '`' {
            name.push(c);
        } else if chars.next_if(|(_, next)| *next == '`').is_some() {
            name.push('`');
        } else {
            return Some((name, &text[at + 1..]));
        }
    }
    None
}

/// A name as it stands in a path: in backticks where it holds a dot or a backtick.
pub(crate) fn quote_segment(name: &str) -> String {
    if name.is_empty() || name.contains(['.', '`']) {
        format!("`{}`", name.replace('`', "``"))
    } else {
        name.to_owned()
    }
}

impl fmt::Display for ColumnPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, segment) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str(".")?;
            }
            f.write_str(&quote_segment(segment))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_round_trip() {
        for text in ["a", "a.b", "items.element.discount", "`a.b`", "`a.b`.c", "`x``y`.z", "a b"] {
            let path: ColumnPath = text.parse().unwrap();
            assert_eq!(path.to_string(), text);
        }
        let path: ColumnPath = "`a.b`.c".parse().unwrap();
        assert_eq!(path.segments(), ["a.b", "c"]);
    }

    #[test]
    fn broken_paths_are_refused() {
        for text in ["", ".", "a.", ".a", "a..b", "`a", "`a`b", "``"] {
            assert!(text.parse::<ColumnPath>().is_err(), "{text}");
        }
    }
}
