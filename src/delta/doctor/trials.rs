//! The questions that are put to a store.

use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::future::join_all;

use super::cause::{Sort, Trouble};
use super::scratch::Scratch;
use super::{Check, Family};

/// How many objects are written twice in a row.
const PAIRS: usize = 5;

/// A store that looks before it writes, without holding on to what it saw, lets several racers win
/// only now and then.
const ROUNDS: usize = 50;
const RACERS: usize = 20;

/// No more rounds are begun after this long; so many must have been fought by then.
const ENOUGH: Duration = Duration::from_secs(120);
const LEAST_ROUNDS: usize = 10;

/// The size of a small commit.
const SIZE: usize = 4096;

const NOT_HELD: &str = "two writers could both write one log entry here, and a commit would be lost: keep \
                        tables on a store that creates an object only where there is none (answers 412 to a \
                        PUT with `If-None-Match: *`, as S3 itself does); no setting of this command helps";

/// Puts every question whose answer can still matter.
pub(super) async fn run(
    scratch: &Scratch,
    family: Option<Family>,
    checks: &mut Vec<Check>,
    writes: &mut Vec<Duration>,
) {
    let (list, absent) = list(scratch, family).await;
    let read = read(scratch, family).await;
    let unreachable = absent || (list.is_failed() && read.is_failed());
    checks.extend([list, read]);
    let skip = |name| Check::skipped(name, "an earlier check failed");
    checks.push(match family {
        Some(Family::Local) if unreachable => skip("hard_links"),
        Some(Family::Local) => hard_links(scratch).await,
        _ => Check::skipped("hard_links", "only local file systems have them"),
    });
    let create = if unreachable {
        skip("conditional_create")
    } else {
        conditional_create(scratch, family, writes).await
    };
    // A store that is known to overwrite has nothing to win in a race.
    let go_on = create.outcome == super::CheckOutcome::Ok;
    checks.push(create);
    checks.push(if go_on { racing_creates(scratch, family).await } else { skip("racing_creates") });
}

/// Also says whether there is no bucket at all.
async fn list(scratch: &Scratch, family: Option<Family>) -> (Check, bool) {
    match scratch.list().await {
        Ok(true) => (Check::ok("list", "something lies there"), false),
        Ok(false) => (Check::ok("list", "nothing lies there yet"), false),
        Err(trouble) => {
            let message = format!("it can't be listed: {}", trouble.text());
            (Check::failed("list", message, trouble.hint(family)), trouble.sort() == Sort::Absent)
        }
    }
}

/// A missing object must be told from one that can't be read.
async fn read(scratch: &Scratch, family: Option<Family>) -> Check {
    match scratch.get(&scratch.path("missing")).await {
        Err(trouble) if trouble.is_not_found() => Check::ok("read", "a missing object is said to be missing"),
        Ok(_) => Check::failed(
            "read",
            "an object that nobody wrote can be read",
            "see what answers at the endpoint: it is no object store, or a cache in front of one",
        ),
        Err(trouble) => {
            let message = format!("a missing object is not said to be missing: {}", trouble.text());
            Check::failed("read", message, trouble.hint(family))
        }
    }
}

/// Local commits are files that are written aside and then linked into place.
async fn hard_links(scratch: &Scratch) -> Check {
    const NAME: &str = "hard_links";
    let (Some(file), Some(link)) = (scratch.file("file"), scratch.file("link")) else {
        return Check::skipped(NAME, "it is no folder");
    };
    let trial = move || -> std::io::Result<()> {
        if let Some(folder) = file.parent() {
            std::fs::create_dir_all(folder)?;
        }
        std::fs::write(&file, b"delta-migrate doctor")?;
        let linked = std::fs::hard_link(&file, &link);
        let removed = std::fs::remove_file(&file);
        linked.and_then(|()| std::fs::remove_file(&link)).and(removed)
    };
    match tokio::task::spawn_blocking(trial).await {
        Ok(Ok(())) => Check::ok(NAME, "the file system has them"),
        Ok(Err(error)) => Check::failed(
            NAME,
            format!("no file could be made and linked: {error}"),
            "allow this user to write the folder, or take a file system with hard links (ext4, XFS, NTFS, NFS \
             have them; FAT, exFAT and some network or FUSE mounts do not): commits need them",
        ),
        Err(_) => Check::failed(NAME, "the trial broke off", "run it again"),
    }
}

/// Two writes in a row of one object: the second must be refused and change nothing.
async fn conditional_create(scratch: &Scratch, family: Option<Family>, writes: &mut Vec<Duration>) -> Check {
    const NAME: &str = "conditional_create";
    for pair in 0..PAIRS {
        let path = scratch.path(&format!("pair-{pair}"));
        let (first, second) = (content("first"), content("second"));
        let began = Instant::now();
        match scratch.create(&path, first.clone()).await {
            Ok(()) => writes.push(began.elapsed()),
            Err(trouble) => {
                let message = format!("an object can't be created where there is none: {}", trouble.text());
                return Check::failed(NAME, message, trouble.hint(family));
            }
        }
        let began = Instant::now();
        match scratch.create(&path, second).await {
            Err(trouble) if trouble.is_refusal() => writes.push(began.elapsed()),
            Ok(()) => {
                return Check::failed(NAME, "the second of two writes of one object was taken", NOT_HELD);
            }
            Err(trouble) => {
                let message = format!("the second of two writes was not refused as one: {}", trouble.text());
                return Check::failed(NAME, message, trouble.hint(family));
            }
        }
        match scratch.get(&path).await {
            Ok(found) if found == first => {}
            Ok(_) => return Check::failed(NAME, "a write that was refused replaced the object", NOT_HELD),
            Err(trouble) => {
                let message = format!("what was written can't be read: {}", trouble.text());
                return Check::failed(NAME, message, trouble.hint(family));
            }
        }
    }
    Check::ok(NAME, format!("{PAIRS} objects created, {PAIRS} second writes refused"))
}

/// What became of the rounds of a race.
#[derive(Default)]
struct Rounds {
    fought: usize,
    /// Several were told that they won.
    several: usize,
    /// The object is not what the winner wrote.
    replaced: usize,
    /// All were told that they lost, and there is no object.
    nobody: usize,
    /// An answer was lost or failed, so that the round proves nothing.
    unclear: usize,
    /// Of the last of these.
    trouble: Option<Trouble>,
}

async fn racing_creates(scratch: &Scratch, family: Option<Family>) -> Check {
    const NAME: &str = "racing_creates";
    let (mut rounds, began) = (Rounds::default(), Instant::now());
    for round in 0..ROUNDS {
        if began.elapsed() > ENOUGH {
            break;
        }
        race(scratch, round, &mut rounds).await;
    }
    let Rounds { fought, several, replaced, nobody, unclear, trouble } = rounds;
    let faults: Vec<String> = [
        (several, "several won"),
        (replaced, "the object is not what the winner wrote"),
        (nobody, "nobody won"),
    ]
    .into_iter()
    .filter(|(times, _)| *times > 0)
    .map(|(times, what)| format!("in {times} of {fought} rounds of {RACERS} racing writers {what}"))
    .collect();
    if !faults.is_empty() {
        return Check::failed(NAME, faults.join("; "), NOT_HELD);
    }
    let clear = fought - unclear;
    if clear < LEAST_ROUNDS {
        let why = trouble.as_ref().map(|t| format!(": {}", t.text())).unwrap_or_default();
        let message =
            format!("only {clear} of {fought} rounds of {RACERS} racing writers had a clear end{why}");
        let hint = match trouble {
            Some(trouble) => trouble.hint(family),
            None => "the store is too slow to be examined so: run it again where it is near".to_owned(),
        };
        return Check::failed(NAME, message, hint);
    }
    let rest = if unclear > 0 { format!(" ({unclear} more were unclear)") } else { String::new() };
    Check::ok(NAME, format!("{clear} rounds of {RACERS} racing writers, one winner each{rest}"))
}

/// One object, twenty writers, each with content of its own.
async fn race(scratch: &Scratch, round: usize, rounds: &mut Rounds) {
    let path = scratch.path(&format!("race-{round}"));
    let contents: Vec<Bytes> = (0..RACERS).map(|n| content(&format!("{round}-{n}"))).collect();
    let answers = join_all(contents.iter().map(|bytes| scratch.create(&path, bytes.clone()))).await;
    rounds.fought += 1;
    let mut winners = Vec::new();
    let mut clear = true;
    for (answer, bytes) in answers.into_iter().zip(&contents) {
        match answer {
            Ok(()) => winners.push(bytes),
            Err(trouble) if trouble.is_refusal() => {}
            Err(trouble) => {
                clear = false;
                rounds.trouble = Some(trouble);
            }
        }
    }
    match (scratch.get(&path).await, winners.as_slice()) {
        (_, [_, _, ..]) => rounds.several += 1,
        (Ok(found), [winner]) if found != **winner => rounds.replaced += 1,
        (Ok(_), [_]) => {}
        (Err(trouble), [_]) if trouble.is_not_found() => rounds.replaced += 1,
        (Err(trouble), []) if trouble.is_not_found() && clear => rounds.nobody += 1,
        // One of them won, and its answer was lost: a retry of its own met the object.
        (answer, _) => {
            clear = false;
            rounds.trouble = answer.err().or(rounds.trouble.take());
        }
    }
    if !clear {
        rounds.unclear += 1;
    }
    // What can't be removed now is removed at the end, or told.
    let _ = scratch.delete(&path).await;
}

/// Bytes that tell who wrote them.
fn content(who: &str) -> Bytes {
    let mut text = format!("delta-migrate doctor {who}\n");
    text.extend(std::iter::repeat_n('.', SIZE.saturating_sub(text.len())));
    Bytes::from(text)
}
