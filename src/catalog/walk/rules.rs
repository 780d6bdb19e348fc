//! Which paths below the root count.

use globset::{GlobBuilder, GlobMatcher};

use crate::error::Error;

/// Globs on paths below the root, which have no leading slash.
#[derive(Default)]
pub(super) struct Rules {
    include: Vec<Include>,
    exclude: Vec<GlobMatcher>,
    /// `stem` of each `stem/**` that excludes: folders below which everything is excluded.
    exclude_below: Vec<GlobMatcher>,
}

struct Include {
    glob: GlobMatcher,
    /// The names that every match begins with.
    lead: Vec<String>,
    /// The number of names in every match, where the glob says it.
    depth: Option<usize>,
}

impl Rules {
    pub(super) fn include<'a>(&mut self, globs: impl IntoIterator<Item = &'a str>) -> Result<(), Error> {
        for text in globs {
            let glob = compile(text)?;
            let lead = text.split('/').take_while(|name| !name.contains(['*', '?', '[', '{', '\\']));
            // A slash within brackets or braces is no level; with none of them there is nothing to parse.
            let is_plain = !text.contains("**") && !text.contains(['[', '{', '\\']);
            self.include.push(Include {
                glob,
                lead: lead.map(str::to_owned).collect(),
                depth: is_plain.then(|| names(text)),
            });
        }
        Ok(())
    }

    pub(super) fn exclude<'a>(&mut self, globs: impl IntoIterator<Item = &'a str>) -> Result<(), Error> {
        for text in globs {
            self.exclude.push(compile(text)?);
            // What is no glob without its end just does not save anything.
            let stem = text.strip_suffix("/**").and_then(|stem| compile(stem).ok());
            self.exclude_below.extend(stem);
        }
        Ok(())
    }

    /// Whether a table at this path counts.
    pub(super) fn counts(&self, path: &str) -> bool {
        let is_root = path.is_empty();
        !any(&self.exclude, path)
            && (is_root || self.include.is_empty() || self.include.iter().any(|i| i.glob.is_match(path)))
    }

    /// Whether a folder at this path can be, or hold, a table that counts.
    pub(super) fn reaches(&self, path: &str) -> bool {
        !any(&self.exclude, path) && self.is_included_from(path, names(path))
    }

    /// Whether a folder at this path can hold, below it, a table that counts.
    pub(super) fn reaches_below(&self, path: &str) -> bool {
        !any(&self.exclude_below, path) && self.is_included_from(path, names(path) + 1)
    }

    /// Whether an include can match a path of at least `depth` names that begins with this one.
    fn is_included_from(&self, path: &str, depth: usize) -> bool {
        let can_match = |include: &Include| {
            let mut together = split(path).zip(&include.lead);
            include.depth.is_none_or(|d| depth <= d) && together.all(|(name, lead)| name == lead)
        };
        self.include.is_empty() || self.include.iter().any(can_match)
    }
}

fn any(globs: &[GlobMatcher], path: &str) -> bool {
    globs.iter().any(|glob| glob.is_match(path))
}

fn split(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter(|name| !name.is_empty())
}

fn names(path: &str) -> usize {
    split(path).count()
}

fn compile(text: &str) -> Result<GlobMatcher, Error> {
    let wrong = |why: &str| Error::usage(format!("`{text}` is no glob for paths below a root: {why}"));
    if text.split('/').any(|name| matches!(name, "" | "." | "..")) {
        return Err(wrong("a name in it is empty, `.` or `..`")
            .with_hint("write the path from the root on, without a slash at its ends, such as `**/cdc_*`"));
    }
    let glob = GlobBuilder::new(text).literal_separator(true).build();
    glob.map(|glob| glob.compile_matcher()).map_err(|e| wrong(&e.kind().to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorCode;

    fn rules(include: &[&str], exclude: &[&str]) -> Rules {
        let mut rules = Rules::default();
        rules.include(include.iter().copied()).unwrap();
        rules.exclude(exclude.iter().copied()).unwrap();
        rules
    }

    #[test]
    fn a_star_stays_in_a_folder_and_two_cross() {
        let one = rules(&["*/t"], &[]);
        assert!(one.counts("a/t") && !one.counts("a/b/t") && !one.counts("t"));
        let two = rules(&["**/t"], &[]);
        assert!(two.counts("a/t") && two.counts("a/b/t") && two.counts("t") && !two.counts("a/tt"));
        let several = rules(&["a/*", "b/{x,y}"], &["a/no*"]);
        assert!(several.counts("a/t") && several.counts("b/y"));
        assert!(!several.counts("b/z") && !several.counts("a/none"));
    }

    #[test]
    fn the_root_counts_unless_it_is_excluded() {
        assert!(rules(&["a/*"], &["b/**"]).counts(""));
        assert!(!rules(&[], &["**"]).counts(""));
    }

    #[test]
    fn what_is_excluded_is_not_entered() {
        let all = rules(&[], &["**/_tmp/**", "old"]);
        assert!(!all.reaches("old") && all.reaches("older") && all.reaches("a/old"));
        assert!(all.reaches("a/_tmp") && !all.reaches_below("a/_tmp") && !all.reaches("a/_tmp/x"));
        assert!(!all.reaches_below("_tmp") && all.reaches_below("") && all.reaches_below("a"));
    }

    #[test]
    fn what_no_include_can_match_is_not_entered() {
        let lead = rules(&["a/b/**"], &[]);
        assert!(lead.reaches_below("") && lead.reaches("a") && lead.reaches_below("a/b/c/d"));
        assert!(!lead.reaches("b") && !lead.reaches("a/c"));
        let level = rules(&["*/t?"], &[]);
        assert!(level.reaches_below("a") && level.reaches("a/b") && !level.reaches_below("a/b"));
        // A slash in braces is a level, too.
        let braces = rules(&["{a/b,c}/t"], &[]);
        assert!(braces.counts("a/b/t") && braces.reaches_below("a/b"));
    }

    #[test]
    fn a_bad_glob_is_named_with_the_reason() {
        for text in ["a[", "{a", "", "/a", "a/", "./a", "a/../b", "a//b", "s3://lake/a"] {
            for error in
                [Rules::default().include([text]), Rules::default().exclude([text])].map(Result::unwrap_err)
            {
                assert_eq!(error.code(), ErrorCode::Usage, "{text}");
                assert!(error.message().starts_with(&format!("`{text}` is no glob")), "{error}");
                assert!(error.message().split(": ").nth(1).is_some_and(|why| why.len() > 10), "{error}");
            }
        }
    }
}
