//! What must hold whenever a migrator writes, and of what it says when it ends.

use bytes::Bytes;
use serde_json::Value;

use super::checkpoint;
use super::kinds;
use super::log::State;
use super::oracle::{assess, is_pending};
use super::run::{Ended, Landing, Run};
use super::scenario::{FaultKind, Op};
use super::world::{World, entry_version};
use crate::support::judge::{Before, judge};

/// A migrator sends a file.
pub(super) fn sent(world: &mut World, run: usize, path: &str, bytes: &Bytes) {
    let Some(version) = entry_version(path) else { return };
    let run = &mut world.runs[run];
    run.sent.push((version, run.look));
    if version > 0 && run.look.is_none() {
        world.violation(format!(
            "entry {version} was sent without a look at the newest entry after the last pause"
        ));
    }
    if !bytes.ends_with(b"\n") {
        world.violation("an entry without a line end");
    }
}

/// Whether a request that nobody waits for any more makes a table anew that stood there and was dropped
/// since its run began. No client can take such a request back, and what the run said was true.
fn is_reborn(world: &World, at: usize) -> bool {
    let run = &world.runs[at];
    let since = world.timeline.get(run.from..).unwrap_or_default();
    let stood = since.iter().position(Option::is_some);
    run.ended.is_some() && stood.is_some_and(|first| since[first..].iter().any(Option::is_none))
}

/// An entry of a migrator stands where none stood.
pub(super) fn landed(
    world: &mut World,
    at: usize,
    version: u64,
    bytes: &Bytes,
    actions: &[Value],
    next: Option<&State>,
) {
    if world.spoilt.is_some() {
        world.runs[at].spoilt = true;
        return;
    }
    let before = world.state.clone();
    let id = actions.iter().find_map(|a| a["metaData"]["id"].as_str()).unwrap_or_default();
    let same = before.as_ref().is_none_or(|b| b.id() == id);
    let landing = match (&before, next) {
        (None, Some(_)) if is_reborn(world, at) => Landing::Dropped,
        (None, Some(_)) => Landing::Effective,
        (Some(_), Some(_)) if same => Landing::Effective,
        (Some(before), None) if version <= before.version => Landing::Stale,
        _ => Landing::Foreign,
    };
    // What was sent for a table that is gone when the run has ended says nothing against the run.
    if landing != Landing::Foreign || world.runs[at].ended.is_none() {
        world.runs[at].landed.push((version, landing));
    }
    match landing {
        Landing::Effective => effective(world, at, version, bytes, actions, before.as_deref()),
        Landing::Stale | Landing::Dropped => {}
        Landing::Foreign => {
            // Delta has no compare-and-swap on the id: only a table that was replaced after the last
            // look may be written into.
            let mut sent = world.runs[at].sent.iter().filter(|(v, _)| *v == version);
            let window =
                world.replaced.is_some_and(|now| sent.any(|(_, look)| look.is_none_or(|look| now >= look)));
            if !window {
                world.violation(format!(
                    "entry {version} was written into another table, which was there at the last look"
                ));
            }
            world.spoilt = Some(format!("entry {version} was made for another table"));
            world
                .runs
                .iter_mut()
                .enumerate()
                .for_each(|(n, run)| run.spoilt |= n != at && run.ended.is_none());
        }
    }
}

fn effective(
    world: &mut World,
    at: usize,
    version: u64,
    bytes: &Bytes,
    actions: &[Value],
    before: Option<&State>,
) {
    let run = &world.runs[at];
    let (known, chain, create) = (run.known, run.chain, run.create);
    let mut wrong = Vec::new();
    let mut check = |right: bool, what: String| {
        if !right {
            wrong.push(format!("entry {version}: {what}"));
        }
    };
    let assessment = assess(before, known, chain);
    check(
        is_pending(assessment),
        format!("written by a release that knows {known} although the table is {assessment}"),
    );
    check(before.is_some() || create, "a table was created that nobody asked for".to_owned());
    let text = std::str::from_utf8(bytes).unwrap();
    if let Some(before) = before {
        let from = before.stamp().unwrap_or(0);
        // An entry that was written again after a clean-up has another timestamp than the one that counts.
        let overlaid = world.runs.iter().any(|run| lands(run, Landing::Stale).any(|v| v == before.version));
        let may = kinds::may(chain, from, known);
        let then = Before {
            protocol: before.protocol.clone(),
            metadata: before.metadata.clone(),
            timestamp: before.timestamp.filter(|_| !overlaid),
        };
        judge(&then, text, &may).into_iter().for_each(|what| check(false, what));
    }
    let first = State::first(0, actions);
    let after = before.map_or(first, |b| b.with(version, actions));
    let from = before.and_then(State::stamp).unwrap_or(0);
    check(after.stamp() == Some(known), format!("the stamp is {:?}, not {known}", after.stamp()));
    let info = actions[0]["commitInfo"].clone();
    let parameter = |key: &str| info["operationParameters"][key].as_str().map(str::to_owned);
    check(info["operation"] == "MIGRATE", "the operation".to_owned());
    check(parameter("from") == Some(from.to_string()), format!("from {:?}, not {from}", parameter("from")));
    check(parameter("to") == Some(known.to_string()), format!("to {:?}, not {known}", parameter("to")));
    let floor = before.and_then(State::floor).max((known >= kinds::RAISES).then_some(kinds::RAISES));
    check(after.floor() == floor, format!("the floor is {:?}, not {floor:?}", after.floor()));
    check(after.property("app.kind") == Some("facts"), "the kind stamp".to_owned());
    let digest = kinds::digest(chain, known);
    check(after.property("app.schema_digest") == Some(&digest), "the digest".to_owned());
    let (old, new) = (before.map(State::history).unwrap_or_default(), after.history());
    check(
        new.len() == old.len() + 1 && new.starts_with(&old),
        "the history is not the old one and one more".to_owned(),
    );
    if let Some(entry) = new.last() {
        check(entry["from"] == from && entry["to"] == known, format!("the history says {entry}"));
    }
    check(assess(Some(&after), known, chain) == "current", "the table is not current afterwards".to_owned());
    let again = world.runs[at].landed.iter().filter(|(_, l)| *l == Landing::Effective).count() > 1;
    check(!again, "a second commit of one run".to_owned());
    wrong.into_iter().for_each(|what| world.violation(what));
}

/// A migrator wrote something that is no log entry: only the checksum file of its commit may be.
pub(super) fn side_file(world: &mut World, path: &str, bytes: &Bytes) {
    let version = path.strip_suffix(".crc").and_then(|p| p.rsplit('/').next()?.parse::<u64>().ok());
    let Some(version) = version else { return world.violation(format!("a migrator wrote `{path}`")) };
    let Some(state) = world.state.clone().filter(|s| version <= s.version) else {
        world.spoilt = Some("a checksum file of a table that was dropped".to_owned());
        world.runs.iter_mut().for_each(|run| run.spoilt |= run.ended.is_none());
        return;
    };
    // What was committed meanwhile, or another table, has a checksum of its own.
    if version != state.version || world.spoilt.is_some() {
        return;
    }
    let found: Value = serde_json::from_slice(bytes).unwrap();
    let wanted = state.checksum();
    if found["metadata"]["id"] != wanted["metadata"]["id"] {
        // The table was dropped and made again between the commit and this file.
        world.spoilt = Some("a checksum file of another table".to_owned());
        world.runs.iter_mut().for_each(|run| run.spoilt |= run.ended.is_none());
        return;
    }
    let wrong: Vec<&String> = wanted
        .as_object()
        .unwrap()
        .iter()
        .filter(|(k, v)| found[k.as_str()] != **v)
        .map(|(k, _)| k)
        .collect();
    if !wrong.is_empty() {
        world.violation(format!("the checksum file of version {version} is wrong about {wrong:?}"));
    }
}

/// What runs said, once nothing is under way any more.
pub(super) fn reports(world: &mut World) {
    for at in 0..world.runs.len() {
        let wrong = match &world.runs[at].ended {
            None => vec!["a run never ended".to_owned()],
            Some(ended) => report(world, &world.runs[at], ended),
        };
        for what in wrong {
            world.violation(format!("run {at}: {what}"));
        }
    }
}

fn report(world: &World, run: &Run, ended: &Ended) -> Vec<String> {
    let mut wrong = Vec::new();
    if run.spoilt {
        return wrong;
    }
    let effective: Vec<u64> = lands(run, Landing::Effective).collect();
    let foreign: Vec<u64> = lands(run, Landing::Foreign).collect();
    // The states that the run may have seen; a listing that lies may show older ones.
    let seen = &world.timeline[if run.was_lied_to() { 0 } else { run.from }..=run.to];
    let stood = |name: &str| seen.iter().any(|s| assess(s.as_deref(), run.known, run.chain) == name);
    let replaced = {
        let tables = seen.iter().map(|s| s.as_ref().map(|s| s.table));
        let mut tables: Vec<_> = tables.collect();
        tables.dedup();
        tables.len() > 1 && tables != [None, tables[1]]
    };
    let mut check = |right: bool, what: String| {
        if !right {
            wrong.push(what);
        }
    };
    match ended {
        Ended::Crashed => {}
        Ended::Done { outcome, version, commits } => match outcome.as_str() {
            "created" | "migrated" => {
                check(*commits == 1, format!("{outcome} with {commits} commits"));
                // The record does not tell a twin's migration, made by the same release in the same second. Its
                // digest tells other chains from it, but for those that part later.
                let made = |r: &Run| kinds::digest(r.chain, r.known);
                let twin = others(world, run)
                    .any(|o| made(o) == made(run) && lands(o, Landing::Effective).count() > 0);
                let there = |l: Landing| match l {
                    Landing::Effective | Landing::Dropped => true,
                    Landing::Stale => run.blind || twin,
                    Landing::Foreign => run.blind,
                };
                let said = run.landed.iter().any(|(v, l)| Some(*v) == *version && there(*l));
                check(
                    said && effective.len() <= 1,
                    format!("said {outcome} at version {version:?}, but {:?} is in the log", run.landed),
                );
            }
            "current" | "ahead" => {
                // What was sent for a table that was dropped may have made another one of it.
                check(
                    replaced || effective.is_empty() && foreign.is_empty(),
                    format!("said {outcome}, but {:?} landed", run.landed),
                );
                check(stood(outcome) || replaced, format!("said {outcome}, which the table never was"));
            }
            other => check(false, format!("an outcome `{other}`")),
        },
        Ended::Failed { code, committed, said, message } => {
            // An entry that was cleaned up and written again by another migrator looks like its own.
            let overlaid =
                |v: &u64| others(world, run).any(|o| lands(o, Landing::Stale).any(|stale| stale == *v));
            let quiet = foreign.is_empty() && effective.iter().all(overlaid);
            let known = committed.iter().all(|v| run.landed.iter().any(|(landed, _)| landed == v));
            check(
                known,
                format!("`{code}` says that {committed:?} was committed, but {:?} is in the log", run.landed),
            );
            for claim in ["nothing was written", "nothing was changed"] {
                check(
                    !said.contains(claim) || quiet,
                    format!("`{code}` says that {claim}, but {:?} landed", run.landed),
                );
            }
            let told = match code.as_str() {
                "outcome_unknown" | "identity_changed" => true,
                _ => quiet || !committed.is_empty(),
            };
            check(told, format!("`{code}` ({message}) does not tell that {:?} landed", run.landed));
            check(
                may_fail(world, run, code, committed, &stood, replaced),
                format!("`{code}` ({message}) without a reason; faults: {:?}", run.faults),
            );
        }
    }
    wrong
}

fn others<'a>(world: &'a World, run: &'a Run) -> impl Iterator<Item = &'a Run> {
    world.runs.iter().filter(|other| !std::ptr::eq(*other, run))
}

/// The versions of a run's entries that came to stand so.
fn lands(run: &Run, landing: Landing) -> impl Iterator<Item = u64> + '_ {
    run.landed.iter().filter(move |(_, l)| *l == landing).map(|(version, _)| *version)
}

/// Whether what happened explains a code.
fn may_fail(
    world: &World,
    run: &Run,
    code: &str,
    committed: &[u64],
    stood: &dyn Fn(&str) -> bool,
    replaced: bool,
) -> bool {
    use FaultKind as F;
    let cleaned = world.timeline[run.from..=run.to].len() > 1
        || run.faults.iter().any(|f| matches!(f, F::Meanwhile(_)));
    let stale = world.runs.iter().any(|r| r.landed.iter().any(|(_, l)| *l == Landing::Stale));
    match code {
        "storage" => !run.faults.is_empty() || cleaned || run.slow,
        "outcome_unknown" if committed.is_empty() => {
            // An entry that was cleaned up before it was looked at tells nothing; nor does one whose
            // predecessor went with its table.
            let gone = replaced || world.clean_ups.iter().any(|at| (run.from..=run.to).contains(at));
            !run.sent.is_empty() && (!run.faults.is_empty() || run.slow || gone)
        }
        // It was written, but cleaned up around.
        "outcome_unknown" => stale || cleaned,
        "conflict" => cleaned || run.was_lied_to(),
        // A stale entry of another migrator looks like another table's.
        "identity_changed" => replaced || stale,
        "corrupt_log" => run.was_lied_to() || replaced || world.lost_timestamp(run),
        "not_a_table" => run.was_lied_to() || replaced,
        "missing" => !run.create && (stood("missing") || run.was_lied_to()) || replaced,
        "unsupported_feature" => stood("unsupported") || replaced,
        // Two tables may have been read as one; nothing comes of it.
        _ => stood(code) || replaced,
    }
}

/// The table as a reader finds it in the end is what was committed to it.
pub(super) fn end(world: &mut World) {
    if world.spoilt.is_some() {
        return;
    }
    let (Some(state), found) = (world.state.clone(), checkpoint::read(world)) else { return };
    let Some(found) = found else { return world.violation("the log has a gap in the end") };
    let parts = [
        ("version", found.version == state.version),
        ("protocol", found.protocol == state.protocol),
        ("metadata", found.metadata == state.metadata),
        ("rows", found.files == world.rows),
    ];
    for (what, right) in parts {
        if !right {
            world.violation(format!("in the end, the {what} that a reader finds is not what was committed"));
        }
    }
}

/// What a run of the newest release without faults must come to, given how the table stood.
pub(super) fn expected(world: &World) -> &'static str {
    let assessment = world.assess(kinds::NEWEST, super::scenario::Chain::Ours);
    let timeless = world.state.as_ref().is_some_and(|s| s.is_timestamped() && !world.has_timestamp(s));
    match assessment {
        "missing" => "created",
        "unversioned" | "behind" if timeless => "corrupt_log",
        "unversioned" | "behind" => "migrated",
        "unsupported" => "unsupported_feature",
        other => other,
    }
}

impl World {
    /// Whether the in-commit timestamp of the newest entry is still to be found.
    fn has_timestamp(&self, state: &State) -> bool {
        let path = super::world::entry_path(state.version);
        // In the place of an entry that was cleaned up may stand one of a writer that knew no timestamps.
        let says =
            |o: &super::world::Object| String::from_utf8_lossy(&o.bytes).contains("\"inCommitTimestamp\":");
        match self.objects.get(&path) {
            Some(entry) => says(entry),
            None => self.objects.contains_key(&path.replace(".json", ".crc")),
        }
    }

    /// Whether the newest entry of a table with in-commit timestamps was cleaned up.
    fn lost_timestamp(&self, run: &Run) -> bool {
        let cleaned = |op: &Op| *op == Op::CleanUpAll;
        let scenario = &self.scenario;
        let stamped = self.timeline[..=run.to].iter().any(|s| s.as_ref().is_some_and(|s| s.is_timestamped()));
        let by_fault = scenario
            .faults
            .iter()
            .any(|f| f.kind == FaultKind::Meanwhile(Op::CleanUpAll) || f.before.iter().any(cleaned));
        let by_writer = scenario.actors.iter().any(|a| match a {
            super::scenario::Actor::Writer { ops } => ops.iter().any(cleaned),
            super::scenario::Actor::Migrator { .. } => false,
        });
        stamped && (by_fault || by_writer || scenario.start.ops.iter().any(cleaned))
    }
}
