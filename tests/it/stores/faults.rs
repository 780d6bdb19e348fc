//! S3 over a network that loses answers, resets connections, and is slow; and a server that throttles.
//! A proxy in front of moto does it, request by request.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::Place;
use super::servers::{entries, metadata, moto};
use crate::support::Ran;
use crate::support::http::{Request, Server};
use crate::support::proxy::{Fault, proxy, puts_entry};

/// A table at version 3 in moto, and a folder for kind files.
fn table() -> Option<(Place, TempDir)> {
    let place = moto()?;
    let folder = tempfile::tempdir().unwrap();
    let created = place.on(folder.path(), 3, &["apply"]);
    assert_eq!((created.code, &created.table()["outcome"]), (0, &"created".into()), "{created:?}");
    Some((place, folder))
}

/// The same place, reached through a proxy.
fn through(place: &Place, decide: impl Fn(&Request) -> Fault + Send + Sync + 'static) -> (Place, Server) {
    let mut place = place.clone();
    let (_, endpoint) = place.env.iter_mut().find(|(name, _)| *name == "AWS_ENDPOINT_URL").unwrap();
    let server = proxy(endpoint, decide);
    *endpoint = server.url();
    (place, server)
}

/// Decides about each put of a log entry, counted from 0; every other request is passed on.
fn through_puts(place: &Place, decide: impl Fn(usize) -> Fault + Send + Sync + 'static) -> (Place, Server) {
    let puts = AtomicUsize::new(0);
    through(place, move |request| match puts_entry(request) {
        true => decide(puts.fetch_add(1, Ordering::SeqCst)),
        false => Fault::None,
    })
}

fn puts(server: &Server) -> usize {
    server.asked().iter().filter(|request| puts_entry(request)).count()
}

/// The log holds the creation and one migrating commit, and the next run has nothing to do.
fn migrated_once(place: &Place, folder: &Path) {
    let entries = entries(place);
    let names: Vec<&String> = entries.keys().collect();
    assert_eq!(names, ["00000000000000000000.json", "00000000000000000001.json"]);
    let configuration = metadata(&entries[names[1]])["configuration"].clone();
    assert_eq!(configuration["app.schema_version"], "10");
    let again = place.on(folder, 10, &["apply"]);
    assert_eq!((again.code, &again.table()["outcome"]), (0, &"current".into()), "{again:?}");
}

/// The outcome is not known, and nothing else is said.
fn is_unknown(ran: &Ran) {
    let report = ran.table();
    let error = &report["error"];
    assert_eq!((ran.code, &report["outcome"]), (1, &"failed".into()), "{ran:?}");
    assert_eq!(error["code"], "outcome_unknown", "{ran:?}");
    assert!(!ran.stdout.contains("nothing was written"), "{ran:?}");
    assert!(error["hint"].as_str().unwrap().contains("run it again"), "{ran:?}");
    // How often it was tried, and for how long.
    let message = error["message"].as_str().unwrap();
    let (_, told) = message.split_once(": ").unwrap_or_else(|| panic!("{message}"));
    let words: Vec<&str> = told.split(' ').collect();
    assert!(words[0].parse::<u32>().unwrap() >= 1 && words[1].starts_with("attempt"), "{message}");
    assert!(words[2] == "in" && words[3].parse::<f64>().is_ok() && words[4].starts_with('s'), "{message}");
}

/// Waits until a request that is still under way has done what it does.
fn wait_for_entry(place: &Place, count: usize) {
    let began = Instant::now();
    while entries(place).len() < count {
        assert!(began.elapsed() < Duration::from_secs(60), "the entry never came");
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn an_answer_that_is_lost_after_the_server_acted_is_one_commit() {
    for fault in [Fault::AnswerLost, Fault::AnswerCut, Fault::ResetAfter] {
        let Some((place, folder)) = table() else { return };
        let (proxied, server) = through_puts(&place, move |n| if n == 0 { fault } else { Fault::None });
        let ran = proxied.on(folder.path(), 10, &["apply"]);
        let report = ran.table();
        assert_eq!((ran.code, &report["outcome"]), (0, &"migrated".into()), "{fault:?}: {ran:?}");
        assert_eq!((&report["commits"], &report["log_version"]), (&1.into(), &1.into()), "{fault:?}");
        assert_eq!(report["attempts"], 1, "{fault:?}: it is no lost race");
        assert!(puts(&server) >= 1);
        migrated_once(&place, folder.path());
    }
}

#[test]
fn an_answer_that_is_lost_while_creating_is_one_table() {
    for fault in [Fault::AnswerLost, Fault::AnswerCut, Fault::ResetAfter] {
        let Some(place) = moto() else { return };
        let folder = tempfile::tempdir().unwrap();
        let (proxied, _server) = through_puts(&place, move |n| if n == 0 { fault } else { Fault::None });
        let ran = proxied.on(folder.path(), 10, &["apply"]);
        assert_eq!((ran.code, &ran.table()["outcome"]), (0, &"created".into()), "{fault:?}: {ran:?}");
        assert_eq!(entries(&place).len(), 1, "{fault:?}");
    }
}

#[test]
fn a_request_that_the_server_never_saw_is_sent_again() {
    for fault in [Fault::ResetBefore, Fault::Throttled] {
        let Some((place, folder)) = table() else { return };
        let (proxied, server) = through_puts(&place, move |n| if n < 2 { fault } else { Fault::None });
        let ran = proxied.on(folder.path(), 10, &["apply"]);
        let report = ran.table();
        assert_eq!((ran.code, &report["outcome"]), (0, &"migrated".into()), "{fault:?}: {ran:?}");
        assert_eq!((&report["commits"], puts(&server)), (&1.into(), 3), "{fault:?}");
        migrated_once(&place, folder.path());
    }
}

/// Of any three requests two are refused, whoever sends them.
#[test]
fn racing_runs_come_through_a_storm_of_503() {
    let Some((place, folder)) = table() else { return };
    let asked = AtomicUsize::new(0);
    let (proxied, server) = through(&place, move |_| match asked.fetch_add(1, Ordering::SeqCst) % 3 {
        2 => Fault::None,
        _ => Fault::Throttled,
    });
    let all = proxied.at_once(folder.path(), 10, 6);
    assert!(all.iter().all(|ran| ran.code == 0), "{all:#?}");
    let migrated = all.iter().filter(|ran| ran.table()["outcome"] == "migrated").count();
    assert_eq!(migrated, 1, "{all:#?}");
    assert!(server.asked().len() > 60, "{}", server.asked().len());
    migrated_once(&place, folder.path());
}

/// The put succeeds and its answer is lost; then the server has no time to show the entry.
#[test]
fn an_entry_that_a_busy_server_does_not_show_is_looked_at_again() {
    let Some((place, folder)) = table() else { return };
    let (puts, looks) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let (proxied, server) = through(&place, move |request| {
        if puts_entry(request) && puts.fetch_add(1, Ordering::SeqCst) == 0 {
            return Fault::AnswerLost;
        }
        let is_look = request.method == "GET" && request.path.ends_with("/00000000000000000001.json");
        // More often than the client of the store tries by itself.
        if is_look && looks.fetch_add(1, Ordering::SeqCst) < 8 { Fault::Throttled } else { Fault::None }
    });
    let ran = proxied.on(folder.path(), 10, &["apply"]);
    assert_eq!((ran.code, &ran.table()["outcome"]), (0, &"migrated".into()), "{ran:?}");
    assert!(server.asked().iter().filter(|r| r.path.ends_with("/00000000000000000001.json")).count() > 9);
    migrated_once(&place, folder.path());
}

/// Every kind of fault, at reads and listings as well.
#[test]
fn racing_runs_come_through_a_bad_network() {
    const FAULTS: [Fault; 5] =
        [Fault::AnswerLost, Fault::AnswerCut, Fault::ResetAfter, Fault::ResetBefore, Fault::Throttled];
    let Some((place, folder)) = table() else { return };
    let asked = AtomicUsize::new(0);
    let (proxied, _server) = through(&place, move |_| {
        let n = asked.fetch_add(1, Ordering::SeqCst);
        if n % 4 == 1 { FAULTS[n / 4 % FAULTS.len()] } else { Fault::None }
    });
    let all = proxied.at_once(folder.path(), 10, 6);
    // A listing whose answer breaks off can't be read on; that run says so, and has done nothing.
    let failed: Vec<_> = all.iter().filter(|ran| ran.code != 0).map(Ran::table).collect();
    assert!(failed.iter().all(|report| report["error"]["code"] == "storage"), "{failed:#?}");
    let migrated = all.iter().filter(|ran| ran.table()["outcome"] == "migrated").count();
    assert!(migrated <= 1, "{all:#?}");
    let ran = place.on(folder.path(), 10, &["apply"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    migrated_once(&place, folder.path());
}

/// Every request takes its time; none too much.
#[test]
fn a_slow_store_is_waited_for() {
    let Some((place, folder)) = table() else { return };
    let (proxied, _server) = through(&place, |_| Fault::Late(Duration::from_millis(400)));
    let ran = proxied.on(folder.path(), 10, &["apply", "--timeout=30"]);
    assert_eq!((ran.code, &ran.table()["outcome"]), (0, &"migrated".into()), "{ran:?}");
    migrated_once(&place, folder.path());
}

/// The server acts when nobody waits for it any more.
#[test]
fn a_put_that_outlives_the_budget_leaves_the_outcome_unknown() {
    let Some((place, folder)) = table() else { return };
    let (proxied, _server) = through_puts(&place, |_| Fault::Late(Duration::from_secs(5)));
    is_unknown(&proxied.on(folder.path(), 10, &["apply", "--timeout=1"]));
    wait_for_entry(&place, 2);
    migrated_once(&place, folder.path());
}

#[test]
fn a_store_that_throttles_for_longer_than_the_budget_leaves_the_outcome_unknown() {
    let Some((place, folder)) = table() else { return };
    let (proxied, server) = through_puts(&place, |_| Fault::Throttled);
    is_unknown(&proxied.on(folder.path(), 10, &["apply", "--timeout=2"]));
    assert!(puts(&server) > 1);
    assert_eq!(entries(&place).len(), 1);
    let ran = place.on(folder.path(), 10, &["apply"]);
    assert_eq!((ran.code, &ran.table()["outcome"]), (0, &"migrated".into()), "{ran:?}");
    migrated_once(&place, folder.path());
}

/// A request whose answer never came may be under way still, whatever the next one is told: a clear
/// refusal says nothing about the one before.
#[test]
fn a_refusal_after_an_unanswered_put_does_not_say_that_nothing_was_written() {
    let late = Duration::from_secs(4);
    for fault in [Fault::LostThenLate(late), Fault::ResetThenLate(late)] {
        let Some((place, folder)) = table() else { return };
        let (proxied, server) = through_puts(&place, move |n| if n == 0 { fault } else { Fault::Forbidden });
        let ran = proxied.on(folder.path(), 10, &["apply"]);
        assert_eq!((puts(&server), entries(&place).len()), (2, 1), "{fault:?}: the server was too quick");
        is_unknown(&ran);
        wait_for_entry(&place, 2);
        migrated_once(&place, folder.path());
    }
}

/// A refusal of the only put that was sent is one.
#[test]
fn a_store_that_forbids_the_put_says_that_nothing_was_written() {
    let Some((place, folder)) = table() else { return };
    let (proxied, server) = through_puts(&place, |_| Fault::Forbidden);
    let ran = proxied.on(folder.path(), 10, &["apply"]);
    let error = &ran.table()["error"];
    assert_eq!((ran.code, &error["code"], puts(&server)), (1, &"storage".into(), 1), "{ran:?}");
    assert!(error["hint"].as_str().unwrap().contains("nothing was written"), "{ran:?}");
    assert_eq!(entries(&place).len(), 1);
}

/// What is read can't be read; nothing is put.
#[test]
fn a_store_that_throttles_every_read_is_a_failure_that_writes_nothing() {
    let Some((place, folder)) = table() else { return };
    let (proxied, server) = through(&place, |_| Fault::Throttled);
    let ran = proxied.on(folder.path(), 10, &["apply", "--timeout=2"]);
    let error = &ran.table()["error"];
    assert_eq!((ran.code, &error["code"]), (1, &"storage".into()), "{ran:?}");
    assert!(error["message"].as_str().unwrap().contains("too busy to answer: "), "{ran:?}");
    assert!(error["causes"].to_string().contains("503"), "{ran:?}");
    assert_eq!((puts(&server), entries(&place).len()), (0, 1));
}
