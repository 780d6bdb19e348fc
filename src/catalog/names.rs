//! Which names of a catalog are meant: patterns such as `prod.cdc.*`.

use globset::{GlobBuilder, GlobMatcher};

use crate::error::Error;

/// A pattern for dotted names, part by part; `*` and `?` stand for characters of one part. Upper
/// and lower case count alike, as in the catalogs themselves.
#[derive(Debug, Clone)]
pub(crate) struct NamePattern {
    parts: Vec<(String, GlobMatcher)>,
}

impl NamePattern {
    /// Reads a pattern of so many parts; a part that holds a dot is written in backticks.
    ///
    /// # Errors
    /// `Usage`: it has another number of parts, or one is no glob.
    pub(crate) fn parse(text: &str, parts: usize) -> Result<Self, Error> {
        let wrong = |why: String| {
            let wanted =
                ["catalog", "schema", "table"].get(3_usize.saturating_sub(parts)..).unwrap_or_default();
            Error::usage(format!("`{text}` is no pattern for tables: {why}")).with_hint(format!(
                "wanted {}, such as `{}`",
                wanted.join("."),
                vec!["*"; parts].join(".")
            ))
        };
        let found = split(text);
        if found.len() != parts || found.iter().any(|p| p.trim().is_empty()) {
            return Err(wrong(format!("it has {} parts", found.len())));
        }
        let compiled = found.into_iter().map(|part| {
            let glob = GlobBuilder::new(&part).case_insensitive(true).literal_separator(false).build();
            glob.map(|g| (part, g.compile_matcher())).map_err(|e| wrong(e.kind().to_string()))
        });
        Ok(Self { parts: compiled.collect::<Result<_, _>>()? })
    }
}

/// A configuration is checked in every build; names are matched where there are catalogs.
#[cfg_attr(not(all(feature = "glue", feature = "unity")), allow(dead_code))]
impl NamePattern {
    /// Whether the first parts of a name match the pattern's first parts.
    pub(crate) fn matches(&self, name: &[&str]) -> bool {
        name.iter().zip(&self.parts).all(|(name, (_, glob))| glob.is_match(name))
    }

    /// Whether every name that begins with these parts matches.
    pub(crate) fn covers(&self, name: &[&str]) -> bool {
        self.matches(name) && self.parts.iter().skip(name.len()).all(|(text, _)| text == "*")
    }

    /// A part that stands for just one name, which then need not be listed.
    pub(crate) fn literal(&self, part: usize) -> Option<&str> {
        let (text, _) = self.parts.get(part)?;
        (!text.contains(['*', '?', '[', '{', '\\'])).then_some(text.as_str())
    }
}

fn split(text: &str) -> Vec<String> {
    let (mut parts, mut quoted) = (vec![String::new()], false);
    for c in text.chars() {
        match (c, parts.last_mut()) {
            ('`', _) => quoted = !quoted,
            ('.', _) if !quoted => parts.push(String::new()),
            (c, Some(part)) => part.push(c),
            (_, None) => {}
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_matched_one_by_one_and_in_any_case() {
        let pattern = NamePattern::parse("prod.cdc_?.*", 3).unwrap();
        assert!(pattern.matches(&["Prod", "cdc_1", "orders.v2"]));
        assert!(pattern.matches(&["prod"]));
        assert!(!pattern.matches(&["prod", "cdc"]));
        assert!(!pattern.matches(&["dev", "cdc_1", "orders"]));
        assert!(pattern.covers(&["prod", "cdc_1"]) && !pattern.covers(&["prod"]));
        assert_eq!((pattern.literal(0), pattern.literal(1)), (Some("prod"), None));
        assert_eq!(NamePattern::parse("`a.b`.*", 2).unwrap().literal(0), Some("a.b"));
    }

    #[test]
    fn a_pattern_of_other_parts_is_refused() {
        for text in ["", "a", "a.b.c", ".b", "a.[b"] {
            let error = NamePattern::parse(text, 2).unwrap_err();
            assert_eq!(error.code(), crate::ErrorCode::Usage, "{text}");
            assert!(error.hint().unwrap().contains("schema.table"), "{error:?}");
        }
    }
}
