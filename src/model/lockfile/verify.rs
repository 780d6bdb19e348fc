//! Compares a lock with kinds: is it a prefix, and if not, what happened to the migrations?

mod align;

use std::collections::BTreeMap;

use serde::Serialize;

use self::align::{Fate, fates};
use super::{Line, Lockfile, Verified, chain};
use crate::model::finding::{Finding, FindingCode, Frozen};
use crate::model::kind::Kind;
use crate::model::version::SchemaVersion;

/// Which kinds are compared with a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kinds {
    /// All there are: a kind that only the lock knows has vanished.
    All,
    /// Some of them, as a sink has: other kinds of the lock are none of its business.
    Some,
}

/// A base shape or migration that the lock does not hold yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Unlocked {
    pub(crate) kind: String,
    #[serde(flatten)]
    pub(crate) frozen: Frozen,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) line: Option<usize>,
}

pub(super) fn verify(lock: &Lockfile, kinds: Vec<&Kind>, which: Kinds) -> Verified {
    let kinds: BTreeMap<&str, &Kind> = kinds.into_iter().map(|kind| (kind.name(), kind)).collect();
    let mut verified = Verified { findings: lock.findings.clone(), unlocked: Vec::new(), mended: false };
    if verified.findings.iter().any(|f| f.code == FindingCode::LaterLock) {
        return verified;
    }
    if which != Kinds::Some {
        let vanished = lock.kinds.iter().filter(|(name, _)| !kinds.contains_key(name.as_str()));
        verified.findings.extend(vanished.map(|(name, lines)| vanished_kind(lock, name, lines)));
    }
    for kind in kinds.values() {
        One { lock, kind, lines: lock.kinds.get(kind.name()) }.verify(&mut verified);
    }
    verified
}

fn vanished_kind(lock: &Lockfile, name: &str, lines: &BTreeMap<SchemaVersion, Line>) -> Finding {
    let number = lines.values().map(|l| l.number).min();
    Finding {
        kind: Some(name.to_owned()),
        file: Some(lock.file.clone()),
        line: number,
        lock_line: number,
        was: lines.iter().next().map(|(version, line)| line.frozen(*version)),
        ..Finding::new(
            FindingCode::VanishedKind,
            format!("kind `{name}` has shipped, and no kind file holds it any more"),
            "bring its kind file back (and its `kind = …` line as it was): tables of it are out there",
        )
    }
}

impl Line {
    fn frozen(&self, version: SchemaVersion) -> Frozen {
        Frozen { version, digest: self.digest.clone(), description: self.description.clone() }
    }

    /// The line, or a rival of it if that is what the kind has: a fork is a finding by itself.
    fn choose(&self, version: SchemaVersion, is: Option<&Frozen>) -> (Frozen, usize) {
        let rival = self.rivals.iter().find(|(digest, _)| is.is_some_and(|is| is.digest == *digest));
        match rival.filter(|_| is.is_none_or(|is| is.digest != self.digest)) {
            Some((digest, number)) => (Frozen { digest: digest.clone(), ..self.frozen(version) }, *number),
            None => (self.frozen(version), self.number),
        }
    }
}

/// One kind against its lines.
struct One<'a> {
    lock: &'a Lockfile,
    kind: &'a Kind,
    lines: Option<&'a BTreeMap<SchemaVersion, Line>>,
}

/// What a lock says of a version, and where.
type Locked = (Frozen, usize);

impl One<'_> {
    fn verify(&self, verified: &mut Verified) {
        let chain = chain(self.kind);
        let at = |version: SchemaVersion| chain.get(version.index());
        let locked: Vec<Locked> =
            self.lines.into_iter().flatten().map(|(v, line)| line.choose(*v, at(*v))).collect();
        let (base, migrations): (Vec<Locked>, Vec<Locked>) =
            locked.into_iter().partition(|(frozen, _)| frozen.version == SchemaVersion::ZERO);
        let mut chain = chain.into_iter();
        let is = chain.next();
        match (base.first(), is) {
            (Some((was, number)), Some(is)) if was.digest != is.digest => {
                verified.findings.push(self.changed_base(was, *number, is));
            }
            (Some((was, _)), Some(is)) => verified.mended |= was.description != is.description,
            (None, Some(is)) => verified.unlocked.push(self.unlocked(is)),
            (_, None) => {}
        }
        let chain: Vec<Frozen> = chain.collect();
        let gapless = (1..).zip(&migrations).all(|(n, (frozen, _))| frozen.version.get() == n);
        if !gapless {
            // A finding by itself; what became of the migration whose line is lost can't be told.
            return;
        }
        for fate in fates(&migrations, &chain) {
            match fate {
                Fate::Kept { was, is } => verified.mended |= was.0.description != is.description,
                Fate::Pending(is) => verified.unlocked.push(self.unlocked(is.clone())),
                Fate::Edited { was, is } => verified.findings.push(self.edited(was, is)),
                Fate::Moved { was, is } => verified.findings.push(self.moved(was, is)),
                Fate::Removed { was, next } => verified.findings.push(self.removed(was, next)),
                Fate::Inserted { is, before, was } => {
                    verified.findings.push(self.inserted(is, before, was));
                }
            }
        }
    }

    fn unlocked(&self, frozen: Frozen) -> Unlocked {
        let origin = self.kind.origin();
        Unlocked {
            kind: self.kind.name().to_owned(),
            line: origin.line(frozen.version),
            file: origin.file.clone(),
            frozen,
        }
    }

    fn finding(&self, code: FindingCode, at: SchemaVersion, message: String, hint: &str) -> Finding {
        let origin = self.kind.origin();
        Finding {
            kind: Some(self.kind.name().to_owned()),
            version: Some(at),
            file: origin.file.clone(),
            // Where nothing stands any more, the last thing that does.
            line: origin.line(at).or(origin.migrations.last().copied()).or(origin.base),
            ..Finding::new(code, message, hint)
        }
    }

    fn changed_base(&self, was: &Frozen, number: usize, is: Frozen) -> Finding {
        let message = format!(
            "the base shape of kind `{}` has shipped and was changed: its columns, partitioning or properties",
            self.kind.name()
        );
        let hint = "put it back as it was; tables change by one more [[migrations]] block at the end";
        let finding = self.finding(FindingCode::ChangedBase, SchemaVersion::ZERO, message, hint);
        Finding { lock_line: Some(number), was: Some(was.clone()), is: Some(is), ..finding }
    }

    fn edited(&self, (was, number): &Locked, is: &Frozen) -> Finding {
        let message =
            format!("migration {} of kind `{}` has shipped and was edited", was.version, self.kind.name());
        let hint = format!(
            "put it back as it was, and add what you want as one more [[migrations]] block at the end{}",
            self.never_shipped(*number)
        );
        let finding = self.finding(FindingCode::EditedMigration, is.version, message, &hint);
        Finding { lock_line: Some(*number), was: Some(was.clone()), is: Some(is.clone()), ..finding }
    }

    fn moved(&self, (was, number): &Locked, is: &Frozen) -> Finding {
        let message = format!(
            "migration {} of kind `{}` has shipped and was moved: it stands at {} now",
            was.version,
            self.kind.name(),
            is.version
        );
        let hint = "put the migrations back in the order in which they shipped; new ones go to the end";
        let finding = self.finding(FindingCode::MovedMigration, is.version, message, hint);
        let finding = Finding { version: Some(was.version), ..finding };
        Finding { lock_line: Some(*number), was: Some(was.clone()), is: Some(is.clone()), ..finding }
    }

    fn removed(&self, (was, number): &Locked, next: Option<&Frozen>) -> Finding {
        let renumbered = match next {
            Some(next) => format!(", and `{}` stands at {} now", next.description, next.version),
            None => String::new(),
        };
        let message = format!(
            "migration {} of kind `{}` has shipped and is gone{renumbered}",
            was.version,
            self.kind.name()
        );
        let hint = format!(
            "put it back where it was: tables have had it; what it did is undone by one more migration{}",
            self.never_shipped(*number)
        );
        let at = next.map_or(was.version, |next| next.version);
        let finding = self.finding(FindingCode::RemovedMigration, at, message, &hint);
        let finding = Finding { version: Some(was.version), ..finding };
        Finding { lock_line: Some(*number), was: Some(was.clone()), ..finding }
    }

    fn inserted(&self, is: &Frozen, before: &Frozen, (was, number): &Locked) -> Finding {
        let message = format!(
            "migration {} of kind `{}` was inserted before one that has shipped: `{}` was {} and stands at {} now",
            is.version,
            self.kind.name(),
            before.description,
            was.version,
            before.version
        );
        let hint = "move the new migration to the end of the chain";
        let finding = self.finding(FindingCode::InsertedMigration, is.version, message, hint);
        Finding { lock_line: Some(*number), is: Some(is.clone()), ..finding }
    }

    /// The way out that only the author can take: nobody else knows that no table has had it.
    fn never_shipped(&self, number: usize) -> String {
        format!(
            "; only if no release and no table ever had it, take it back: delete line {number} of {} and those \
             of later versions of `{}` by hand, then run `delta-migrate lock`",
            self.lock.file,
            self.kind.name()
        )
    }
}
