//! What became of each locked migration: the longest common subsequence of lock and chain stays, what
//! lies between is edited, moved, removed or inserted.

use super::Locked;
use crate::model::finding::Frozen;

/// What became of a migration.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Fate<'a> {
    /// It stands in the chain as it does in the lock, though others may have changed its number.
    Kept {
        was: &'a Locked,
        is: &'a Frozen,
    },
    /// It stands after everything that is locked.
    Pending(&'a Frozen),
    Edited {
        was: &'a Locked,
        is: &'a Frozen,
    },
    Moved {
        was: &'a Locked,
        is: &'a Frozen,
    },
    /// `next` stands where it stood, if that one's number changed with it.
    Removed {
        was: &'a Locked,
        next: Option<&'a Frozen>,
    },
    /// It is new, and pushed `before`, which the lock has as `was`, to another number.
    Inserted {
        is: &'a Frozen,
        before: &'a Frozen,
        was: &'a Locked,
    },
}

/// The fate of every migration of lock and chain; none but `Kept` and `Pending` exactly if the lock is a
/// prefix of the chain.
pub(super) fn fates<'a>(locked: &'a [Locked], chain: &'a [Frozen]) -> Vec<Fate<'a>> {
    let prefix = locked.len() <= chain.len()
        && locked
            .iter()
            .zip(chain)
            .all(|((was, _), is)| was.digest == is.digest && was.version == is.version);
    if prefix {
        let kept = locked.iter().zip(chain).map(|(was, is)| Fate::Kept { was, is });
        return kept.chain(chain.iter().skip(locked.len()).map(Fate::Pending)).collect();
    }
    let common = common(locked, chain);
    let mut fates = Vec::new();
    let (mut lost, mut new) = (Vec::new(), Vec::new());
    let (mut i, mut j) = (0, 0);
    for (a, b) in common.iter().copied().chain([(locked.len(), chain.len())]) {
        pair(&locked[i..a], &chain[j..b], &mut fates, &mut lost, &mut new);
        if let (Some(was), Some(is)) = (locked.get(a), chain.get(b)) {
            fates.push(Fate::Kept { was, is });
        }
        (i, j) = (a + 1, b + 1);
    }
    for was in lost {
        // The same migration elsewhere was moved there.
        if let Some(at) = new.iter().position(|is: &&Frozen| is.digest == was.0.digest) {
            fates.push(Fate::Moved { was, is: new.remove(at) });
        } else {
            let mut kept = common.iter().map(|(a, b)| (&locked[*a], &chain[*b]));
            let next =
                kept.find(|(other, is)| other.0.version > was.0.version && other.0.version != is.version);
            fates.push(Fate::Removed { was, next: next.map(|(_, is)| is) });
        }
    }
    for is in new {
        let mut kept = common.iter().map(|(a, b)| (&locked[*a], &chain[*b]));
        fates.push(match kept.find(|(_, other)| other.version > is.version) {
            Some((was, before)) => Fate::Inserted { is, before, was },
            None => Fate::Pending(is),
        });
    }
    fates.sort_by_key(|fate| match fate {
        Fate::Kept { was, .. }
        | Fate::Edited { was, .. }
        | Fate::Moved { was, .. }
        | Fate::Removed { was, .. } => (was.0.version, 0),
        Fate::Pending(is) | Fate::Inserted { is, .. } => (is.version, 1),
    });
    fates
}

/// Pairs what lies between two kept migrations: by description, then in order, as edits; the rest is
/// lost, or new. What stands elsewhere as well is no edit but a move, and is left to that.
fn pair<'a>(
    locked: &'a [Locked],
    chain: &'a [Frozen],
    fates: &mut Vec<Fate<'a>>,
    lost: &mut Vec<&'a Locked>,
    new: &mut Vec<&'a Frozen>,
) {
    let mut rest: Vec<&Frozen> = chain.iter().collect();
    let mut unpaired = Vec::new();
    for was in locked {
        match rest.iter().position(|is| is.description == was.0.description) {
            Some(at) => fates.push(Fate::Edited { was, is: rest.remove(at) }),
            None => unpaired.push(was),
        }
    }
    let edits = unpaired.len().min(rest.len());
    let is = rest.drain(..edits);
    fates.extend(unpaired.drain(..edits).zip(is).map(|(was, is)| Fate::Edited { was, is }));
    lost.append(&mut unpaired);
    new.append(&mut rest);
}

/// The longest common subsequence by digest, as positions; of several, the one in which most
/// descriptions agree, because migrations without effect on rows have one digest.
fn common(locked: &[Locked], chain: &[Frozen]) -> Vec<(usize, usize)> {
    let (n, m) = (locked.len(), chain.len());
    let mut best = vec![vec![0_u32; m + 1]; n + 1];
    let score = |i: usize, j: usize| {
        let (was, is) = (&locked[i].0, &chain[j]);
        (was.digest == is.digest).then(|| 2 * n as u32 + u32::from(was.description == is.description))
    };
    for i in (0..n).rev() {
        for j in (0..m).rev() {
            let with = score(i, j).map_or(0, |s| s + best[i + 1][j + 1]);
            best[i][j] = with.max(best[i + 1][j]).max(best[i][j + 1]);
        }
    }
    let (mut i, mut j, mut out) = (0, 0, Vec::new());
    while i < n && j < m {
        match score(i, j) {
            Some(s) if s + best[i + 1][j + 1] == best[i][j] => {
                out.push((i, j));
                (i, j) = (i + 1, j + 1);
            }
            _ if best[i + 1][j] >= best[i][j + 1] => i += 1,
            _ => j += 1,
        }
    }
    out
}
