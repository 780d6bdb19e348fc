//! Small changes of bytes, and what runs them under watch.

use std::sync::mpsc;
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

/// How long one case may take before it counts as hanging; none comes near it.
const WATCH: Duration = Duration::from_secs(120);

/// Cases of one test, unless `PROPTEST_CASES` says otherwise.
pub(super) fn cases(number: u32) -> ProptestConfig {
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(number);
    ProptestConfig { cases, failure_persistence: None, max_shrink_iters: 500, ..ProptestConfig::default() }
}

/// One change of a text or file.
#[derive(Debug, Clone)]
pub(super) enum Mutation {
    Flip(Index, u8),
    Set(Index, u8),
    Delete(Index, usize),
    Insert(Index, Vec<u8>),
    Copy(Index, Index, usize),
    Truncate(Index),
    Number(Index, &'static str),
    /// A word of the text is replaced by another one of it.
    Word(Index, Index),
}

/// What breaks readers of numbers and texts.
const VALUES: [&str; 14] = [
    "-1",
    "4294967296",
    "18446744073709551616",
    "99999999999999999999999999999999999999999",
    "1e400",
    "0x7f",
    "null",
    "[]",
    "{}",
    "\"\"",
    "\u{0}",
    "\u{202e}",
    "\\ud800",
    "true",
];

pub(super) fn mutations() -> impl Strategy<Value = Vec<Mutation>> {
    let at = any::<Index>;
    let one = prop_oneof![
        (at(), 0..8u8).prop_map(|(i, bit)| Mutation::Flip(i, 1 << bit)),
        (at(), any::<u8>()).prop_map(|(i, byte)| Mutation::Set(i, byte)),
        (at(), 1..40usize).prop_map(|(i, n)| Mutation::Delete(i, n)),
        (at(), vec(any::<u8>(), 1..8)).prop_map(|(i, bytes)| Mutation::Insert(i, bytes)),
        (at(), at(), 1..200usize).prop_map(|(i, j, n)| Mutation::Copy(i, j, n)),
        at().prop_map(Mutation::Truncate),
        (at(), prop::sample::select(VALUES.to_vec())).prop_map(|(i, text)| Mutation::Number(i, text)),
        (at(), at()).prop_map(|(i, j)| Mutation::Word(i, j)),
    ];
    vec(one, 1..6)
}

pub(super) fn mutated(bytes: &[u8], mutations: &[Mutation]) -> Vec<u8> {
    let mut out = bytes.to_vec();
    for mutation in mutations.iter().filter(|_| !bytes.is_empty()) {
        if out.is_empty() {
            return out;
        }
        let len = out.len();
        match mutation {
            Mutation::Flip(i, bits) => out[i.index(len)] ^= bits,
            Mutation::Set(i, byte) => out[i.index(len)] = *byte,
            Mutation::Delete(i, n) => drop(out.drain(i.index(len)..(i.index(len) + n).min(len))),
            Mutation::Insert(i, bytes) => drop(out.splice(i.index(len)..i.index(len), bytes.iter().copied())),
            Mutation::Copy(i, j, n) => {
                let piece = out[i.index(len)..(i.index(len) + n).min(len)].to_vec();
                drop(out.splice(j.index(len)..j.index(len), piece));
            }
            Mutation::Truncate(i) => out.truncate(i.index(len)),
            Mutation::Number(i, text) => {
                let numbers = pieces(&out, |b| b.is_ascii_digit());
                if !numbers.is_empty() {
                    drop(out.splice(i.get(&numbers).clone(), text.bytes()));
                }
            }
            Mutation::Word(i, j) => {
                let words = pieces(&out, |b| b.is_ascii_alphanumeric() || b"_.`\"".contains(&b));
                if !words.is_empty() {
                    let word = out[j.get(&words).clone()].to_vec();
                    drop(out.splice(i.get(&words).clone(), word));
                }
            }
        }
    }
    out
}

/// Where the runs of such bytes are.
fn pieces(bytes: &[u8], is_in: impl Fn(u8) -> bool) -> Vec<std::ops::Range<usize>> {
    let mut out = Vec::new();
    let mut start = None;
    for (i, byte) in bytes.iter().chain([&b'\n']).enumerate() {
        match (start, i < bytes.len() && is_in(*byte)) {
            (None, true) => start = Some(i),
            (Some(s), false) => {
                out.push(s..i);
                start = None;
            }
            _ => {}
        }
    }
    out
}

/// Runs a case on a thread of its own: a panic there, or no answer, fails the test.
pub(super) fn watched<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, TestCaseError> {
    let (send, receive) = mpsc::channel();
    let thread = std::thread::spawn(move || drop(send.send(work())));
    match receive.recv_timeout(WATCH) {
        Ok(value) => Ok(value),
        Err(mpsc::RecvTimeoutError::Timeout) => Err(TestCaseError::fail("it hangs")),
        Err(mpsc::RecvTimeoutError::Disconnected) => {
            let panic = thread.join().unwrap_err();
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(|s| (*s).to_owned()));
            Err(TestCaseError::fail(format!("it panicked: {}", text.unwrap_or_default())))
        }
    }
}
