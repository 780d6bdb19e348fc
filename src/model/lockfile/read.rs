//! Lock file text to lines, with everything that is wrong with the file by itself.

use super::{Line, Lockfile, SCHEME_LINE};
use crate::model::digest::{SCHEME, is_part};
use crate::model::finding::{Finding, FindingCode};
use crate::model::kind::is_kind_name;
use crate::model::text::{clean, shorten};
use crate::model::version::SchemaVersion;

const FIX: &str = "take the file as it was from version control, then run `delta-migrate lock`";
const MERGE: &str = "keep what has shipped; put the other branch's migration after it in the kind file, and delete \
                     its line here (and the conflict markers); then run `delta-migrate lock`";

pub(super) fn parse(text: &str, file: &str) -> Lockfile {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut reader =
        Reader { lock: Lockfile { file: file.to_owned(), ..Lockfile::default() }, in_conflict: false };
    for (number, line) in (1..).zip(text.lines()) {
        if !reader.line(number, line.trim()) {
            // Of a scheme that is not known, no line can be believed.
            reader.lock.kinds.clear();
            return reader.lock;
        }
    }
    reader.check_whole();
    reader.lock
}

struct Reader {
    lock: Lockfile,
    in_conflict: bool,
}

impl Reader {
    /// Reads one line; false if the file can't be read at all.
    fn line(&mut self, number: usize, line: &str) -> bool {
        if let Some(scheme) = line.strip_prefix(SCHEME_LINE) {
            let scheme = scheme.split_whitespace().next().unwrap_or_default();
            if scheme != SCHEME {
                let found =
                    format!("the lock is of scheme `{}`; this release knows {SCHEME}", shorten(scheme, 20));
                self.find(FindingCode::LaterLock, number, found, "upgrade this program");
                return false;
            }
        } else if self.is_marker(number, line) || line.is_empty() || line.starts_with('#') {
        } else if let Err(found) = self.entry(number, line) {
            self.find(FindingCode::BrokenLock, number, found, FIX);
        }
        true
    }

    /// Whether the line is one of git's conflict markers; a conflict is told once, at its first.
    fn is_marker(&mut self, number: usize, line: &str) -> bool {
        let of = |marker: &str| line == marker || line.starts_with(&format!("{marker} "));
        let (begins, ends) = (of("<<<<<<<"), of(">>>>>>>"));
        if !(begins || ends || of("=======") || of("|||||||")) {
            return false;
        }
        if !self.in_conflict {
            let found = "conflict markers: two branches extended the lock differently";
            self.find(FindingCode::ForkedLock, number, found, MERGE);
        }
        self.in_conflict = !ends;
        true
    }

    fn entry(&mut self, number: usize, line: &str) -> Result<(), String> {
        let wanted = "wanted `kind version digest description`";
        let mut rest = line;
        let mut word = || {
            let (word, after) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
            rest = after.trim_start();
            word
        };
        let (kind, version, digest) = (word(), word(), word());
        if !is_kind_name(kind) {
            return Err(format!("`{}` is no name of a kind; {wanted}", shorten(kind, 64)));
        }
        let parsed = match version {
            "base" => Some(SchemaVersion::ZERO),
            number => SchemaVersion::from_stamp(number).filter(|v| *v != SchemaVersion::ZERO),
        };
        let Some(version) = parsed else {
            let found = shorten(version, 20);
            return Err(format!("`{found}` is no version; {wanted}, with `base` or a number from 1"));
        };
        if !is_part(digest) {
            let found = shorten(digest, 20);
            return Err(format!("`{found}` is no digest; {wanted}, with a digest of 8 hexadecimal digits"));
        }
        let new = Line { digest: digest.to_owned(), description: clean(rest), number, rivals: Vec::new() };
        let lines = self.lock.kinds.entry(kind.to_owned()).or_default();
        match lines.get_mut(&version) {
            // A union merge leaves a line twice, which says nothing new.
            Some(first) if first.digest == new.digest => {}
            Some(first) => first.rivals.push((new.digest, number)),
            None => drop(lines.insert(version, new)),
        }
        Ok(())
    }

    /// What only the whole file shows: versions that stand there twice, and gaps.
    fn check_whole(&mut self) {
        let mut findings = Vec::new();
        let file = &self.lock.file;
        let marked = self.lock.findings.iter().any(|f| f.code == FindingCode::ForkedLock);
        for (kind, lines) in &self.lock.kinds {
            let mut expected = SchemaVersion::ZERO;
            for (version, line) in lines {
                let about = |code, number, message, hint: &str| Finding {
                    kind: Some(kind.clone()),
                    version: Some(*version),
                    ..at(file, code, number, message, hint)
                };
                if *version != expected {
                    let missing = match expected {
                        SchemaVersion::ZERO => "`base`".to_owned(),
                        expected => format!("version {expected}"),
                    };
                    let found = format!("kind `{kind}` goes on with version {version}; {missing} is missing");
                    findings.push(about(FindingCode::BrokenLock, line.number, found, FIX));
                }
                expected = SchemaVersion::new(version.get().saturating_add(1));
                for (digest, number) in line.rivals.iter().filter(|_| !marked) {
                    let what = match *version {
                        SchemaVersion::ZERO => "the base shape".to_owned(),
                        version => format!("version {version}"),
                    };
                    let found = format!(
                        "{what} of kind `{kind}` stands here a second time, as {digest}; line {} has {}: two \
                         branches extended the lock differently",
                        line.number, line.digest
                    );
                    findings.push(about(FindingCode::ForkedLock, *number, found, MERGE));
                }
            }
        }
        self.lock.findings.extend(findings);
        self.lock.findings.sort_by_key(|f| f.line);
    }

    fn find(&mut self, code: FindingCode, number: usize, message: impl Into<String>, hint: &str) {
        self.lock.findings.push(at(&self.lock.file, code, number, message.into(), hint));
    }
}

fn at(file: &str, code: FindingCode, number: usize, message: String, hint: &str) -> Finding {
    let (file, line) = (Some(file.to_owned()), Some(number));
    Finding { file, line, lock_line: line, ..Finding::new(code, message, hint) }
}
