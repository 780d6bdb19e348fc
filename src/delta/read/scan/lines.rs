//! The scanner: bytes in, actions out; lines that don't matter are never parsed nor kept.

use std::borrow::Cow;
use std::io::BufRead;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::evidence;
use crate::model::version::SchemaVersion;

/// Longer lines are not read: no engine writes a schema of that size, and memory has to be bounded.
const MAX_LINE: usize = 256 << 20;

/// A first key that is not found within so many bytes is not looked for any more; the line is kept.
const MAX_HEAD: usize = 4 << 10;

/// Actions that say nothing about protocol and metadata (PROTOCOL.md, Actions).
const PASSED_OVER: &[&[u8]] =
    &[b"add", b"remove", b"cdc", b"commitInfo", b"domainMetadata", b"sidecar", b"checkpointMetadata"];

/// The last action of each kind, with the line it stands in.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) protocol: Option<(u64, String)>,
    pub(super) metadata: Option<(u64, String)>,
    pub(super) txn: Option<SchemaVersion>,
}

/// A line that can't be read, although it may matter.
#[derive(Debug)]
pub(super) struct BadLine {
    pub(super) line: u64,
    pub(super) why: String,
}

/// Takes a file in pieces of any size.
#[derive(Debug)]
pub(super) struct LineScanner {
    evidence_id: Option<String>,
    most: usize,
    line: u64,
    state: State,
    /// The beginning of a line that went on beyond its piece.
    kept: Vec<u8>,
    /// The last byte of a line that is skipped, but for white space.
    last: Option<u8>,
    found: Found,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// The first key is not known yet.
    Undecided,
    Keep,
    Skip,
}

impl LineScanner {
    /// `txn` actions count only if their application id is `evidence_id`.
    pub(super) fn new(evidence_id: Option<&str>) -> Self {
        Self {
            evidence_id: evidence_id.map(str::to_owned),
            most: MAX_LINE,
            line: 1,
            state: State::Undecided,
            kept: Vec::new(),
            last: None,
            found: Found::default(),
        }
    }

    #[cfg(test)]
    pub(super) fn with_longest_line(mut self, most: usize) -> Self {
        self.most = most;
        self
    }

    pub(super) fn push(&mut self, mut piece: &[u8]) -> Result<(), BadLine> {
        while !piece.is_empty() {
            let (part, rest) = split_line(piece);
            piece = rest;
            if self.state == State::Undecided {
                self.decide(part);
            }
            let ended = part.ends_with(b"\n");
            match (self.state, ended) {
                (State::Skip, _) => self.last = part.trim_ascii_end().last().copied().or(self.last),
                (_, true) if self.kept.is_empty() => self.parse(part)?,
                (_, ended) => {
                    if self.kept.len() + part.len() > self.most {
                        return Err(self.bad(format!("the line is longer than {} bytes", self.most)));
                    }
                    self.kept.extend_from_slice(part);
                    if ended {
                        let line = std::mem::take(&mut self.kept);
                        self.parse(&line)?;
                    }
                }
            }
            if ended {
                self.kept.clear();
                self.last = None;
                self.state = State::Undecided;
                self.line += 1;
            }
        }
        Ok(())
    }

    /// The last line may lack its newline. A file that a loss of power or a full disk cut short ends in
    /// the middle of a line: other readers stop at it, so that nothing may be built upon it.
    pub(super) fn finish(mut self) -> Result<Found, BadLine> {
        if self.state != State::Skip {
            let line = std::mem::take(&mut self.kept);
            self.parse(&line)?;
        } else if self.last != Some(b'}') {
            return Err(self.bad("the file ends in the middle of an action"));
        }
        Ok(self.found)
    }

    fn decide(&mut self, part: &[u8]) {
        let head = if self.kept.is_empty() {
            Cow::Borrowed(part)
        } else {
            let more = part.get(..MAX_HEAD).unwrap_or(part);
            Cow::Owned([self.kept.as_slice(), more].concat())
        };
        self.state = match first_key(&head) {
            Head::Unknown if head.len() < MAX_HEAD => State::Undecided,
            Head::Key(b"txn") if self.evidence_id.is_none() => State::Skip,
            Head::Key(key) if PASSED_OVER.contains(&key) => State::Skip,
            Head::Unknown | Head::Key(_) | Head::Odd => State::Keep,
        };
        if self.state == State::Skip {
            self.kept.clear();
        }
    }

    fn parse(&mut self, line: &[u8]) -> Result<(), BadLine> {
        #[derive(Deserialize)]
        struct Line<'a> {
            #[serde(borrow)]
            protocol: Option<&'a RawValue>,
            #[serde(borrow, rename = "metaData")]
            metadata: Option<&'a RawValue>,
            #[serde(borrow)]
            txn: Option<&'a RawValue>,
        }
        if line.len() > self.most {
            return Err(self.bad(format!("the line is longer than {} bytes", self.most)));
        }
        let text = std::str::from_utf8(line).map_err(|_| self.bad("the line is not UTF-8"))?;
        if text.trim().is_empty() {
            return Ok(());
        }
        let parsed: Line<'_> = serde_json::from_str(text).map_err(|e| self.bad(json_error(&e)))?;
        if let Some(protocol) = parsed.protocol {
            self.found.protocol = Some((self.line, protocol.get().to_owned()));
        }
        if let Some(metadata) = parsed.metadata {
            self.found.metadata = Some((self.line, metadata.get().to_owned()));
        }
        if let (Some(txn), Some(_)) = (parsed.txn, &self.evidence_id) {
            self.txn(txn)?;
        }
        Ok(())
    }

    fn txn(&mut self, raw: &RawValue) -> Result<(), BadLine> {
        #[derive(Deserialize)]
        struct Txn<'a> {
            #[serde(borrow, rename = "appId")]
            app_id: Option<Cow<'a, str>>,
            #[serde(borrow)]
            version: Option<&'a RawValue>,
        }
        let txn: Txn<'_> = serde_json::from_str(raw.get()).map_err(|e| self.bad(json_error(&e)))?;
        if txn.app_id.as_deref() != self.evidence_id.as_deref() {
            return Ok(());
        }
        let version = txn.version.map(|v| serde_json::from_str::<serde_json::Number>(v.get()));
        let Some(Ok(version)) = version else {
            return Err(self.bad("the txn action has no number for a version"));
        };
        self.found.txn = Some(evidence(version.as_i64()));
        Ok(())
    }

    fn bad(&self, why: impl Into<String>) -> BadLine {
        BadLine { line: self.line, why: why.into() }
    }
}

/// serde_json's text without its own line and column, which are those of the line alone.
fn json_error(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let why = text.split(" at line ").next().unwrap_or_default();
    format!("the line is not an action in JSON ({why}, column {})", error.column())
}

/// Up to and including the first newline, and the rest.
fn split_line(piece: &[u8]) -> (&[u8], &[u8]) {
    // The search of the standard library is vectorised in debug builds as well.
    let mut rest = piece;
    let end = rest.skip_until(b'\n').unwrap_or(piece.len());
    piece.split_at_checked(end).unwrap_or((piece, &[]))
}

#[derive(Debug, PartialEq, Eq)]
enum Head<'a> {
    /// The object's first key; its value is not null.
    Key(&'a [u8]),
    /// The bytes end before that is known.
    Unknown,
    /// Something that only a parser can judge.
    Odd,
}

/// The first key of the object that a line begins with.
fn first_key(line: &[u8]) -> Head<'_> {
    let mut rest = line;
    for wanted in [b'{', b'"'] {
        rest = rest.trim_ascii_start();
        match rest.split_first() {
            None => return Head::Unknown,
            Some((found, after)) if *found == wanted => rest = after,
            Some(_) => return Head::Odd,
        }
    }
    let Some(end) = rest.iter().position(|b| matches!(b, b'"' | b'\\')) else { return Head::Unknown };
    let (key, after) = rest.split_at_checked(end).unwrap_or((rest, &[]));
    let Some(after) = after.strip_prefix(b"\"") else { return Head::Odd };
    match after.trim_ascii_start().split_first() {
        None => Head::Unknown,
        // `{"add":null,"metaData":{…}}`: some writers spell out the actions that a line is not.
        Some((b':', value)) => match value.trim_ascii_start().first() {
            None => Head::Unknown,
            Some(b'n') => Head::Odd,
            Some(_) => Head::Key(key),
        },
        Some(_) => Head::Odd,
    }
}

#[cfg(test)]
mod tests;
