//! Any mix of releases on one table, in any order: releases that know 0 to N migrations of one chain
//! are deployed on several pods at the same time, up and down, and write. No row is lost, no stamp is
//! lowered, no release writes that the floor forbids, and in the end the table is at N.
//!
//! Each order follows from its seed: the chain, the releases of each pod, the rows, and whose request
//! at the log is next. A failure says its seed; that one alone runs with
//!
//! ```sh
//! DELTA_MIGRATE_TEST_SEED=17 cargo test --test it orders
//! ```

mod chain;
mod judge;
mod pod;
mod shape;
mod turns;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use futures::{FutureExt as _, StreamExt as _, stream};
use object_store::ObjectStore;
use object_store::local::LocalFileSystem;
use object_store::memory::InMemory;
use tempfile::TempDir;

use self::chain::{Chain, KIND};
use self::pod::{Diary, Pod, claim};
use self::turns::{Door, Turns};
use crate::support::log::entries;
use crate::support::random::Random;
use crate::support::rows::scan;
use crate::support::scheme::Named;

/// What happened, for the tests that want more than that nothing went wrong.
#[derive(Debug, Default)]
struct Counts {
    orders: usize,
    commits: usize,
    rows: usize,
    refused: usize,
    conflicts: usize,
    lost_races: usize,
}

/// Where an order takes place.
enum Place {
    /// In memory, request by request as the seed says.
    Turns,
    /// In a folder, as the operating system has it.
    Files(TempDir),
}

/// One order: its chain, its pods, its end.
struct Order {
    chain: Arc<Chain>,
    turns: Arc<Turns>,
    pods: Vec<Pod>,
    deployments: Vec<Vec<usize>>,
    store: Arc<dyn ObjectStore>,
    /// How the table is called once all pods are done.
    end: String,
    /// What has to live as long as the order does.
    _doors: Vec<Named>,
    _place: Place,
}

impl Order {
    fn new(seed: u64, place: Place) -> Self {
        let mut random = Random::new(seed);
        let chain = Arc::new(Chain::new(&mut random));
        let count = random.between(4, 6);
        // Each release of the chain, and some of them again.
        let mut releases: Vec<usize> = (0..=chain.newest()).collect();
        let more = random.between(0, 3);
        releases.extend((0..more).map(|_| random.between(0, chain.newest())));
        random.shuffle(&mut releases);
        let mut deployments = vec![Vec::new(); count];
        for (i, release) in releases.into_iter().enumerate() {
            deployments[i % count].push(release);
        }
        let turns = Turns::new(count, random.clone());
        let store: Arc<dyn ObjectStore> = match &place {
            Place::Turns => Arc::new(InMemory::new()),
            Place::Files(folder) => Arc::new(LocalFileSystem::new_with_prefix(folder.path()).unwrap()),
        };
        let mut doors = Vec::new();
        let mut uri = |name: String, door: &dyn Fn() -> Arc<dyn ObjectStore>| match &place {
            Place::Files(folder) => folder.path().join("t").to_str().unwrap().to_owned(),
            Place::Turns => {
                let door = Named::new(format!("{name}-{seed}"), door());
                let uri = door.uri("t");
                doors.push(door);
                uri
            }
        };
        let mut pods = Vec::new();
        for number in 0..count {
            let door = || Arc::new(Door::new(Arc::clone(&store), &turns, number)) as Arc<dyn ObjectStore>;
            let uri = uri(format!("pod-{number}"), &door);
            pods.push(Pod::new(number, uri, &chain, Random::new(seed * 100 + number as u64)));
        }
        let end = uri("end".to_owned(), &|| Arc::clone(&store));
        Self { chain, turns, pods, deployments, store, end, _doors: doors, _place: place }
    }

    async fn run(self) -> Counts {
        let Self { chain, turns, pods, deployments, store, end, _doors, _place } = self;
        let lives: Vec<_> = pods
            .into_iter()
            .zip(deployments)
            .enumerate()
            .map(|(number, (pod, releases))| {
                let over = turns.pod(number);
                tokio::spawn(async move {
                    let _over = over;
                    pod.live(releases).await
                })
            })
            .collect();
        let mut diaries: Vec<Diary> = Vec::new();
        for life in futures::future::join_all(lives).await {
            diaries.push(life.unwrap_or_else(|e| std::panic::resume_unwind(e.into_panic())));
        }
        let (_, offences) = turns.trace();
        assert!(offences.is_empty(), "{offences:?}");

        // In the end the newest release starts once.
        let newest = chain.release(chain.newest());
        let opened = newest.open_or_create(KIND, &end, HashMap::new()).await.unwrap();
        diaries.push(Diary { claimed: claim(opened.report()).into_iter().collect(), ..Diary::default() });
        judge::judge_log(&chain, &entries(store.as_ref(), "t").await, &diaries);
        judge::judge_rows(&chain, &diaries, scan(opened.into_table()).await);

        let sum = |of: fn(&Diary) -> usize| diaries.iter().map(of).sum::<usize>();
        let (trace, _) = turns.trace();
        Counts {
            orders: 1,
            commits: sum(|d| d.claimed.len()),
            rows: sum(|d| d.rows.len()),
            refused: sum(|d| d.refused.len()),
            conflicts: sum(|d| d.conflicts),
            lost_races: trace.iter().filter(|line| line.ends_with("somebody was first")).count(),
        }
    }
}

/// Runs one order; a failure is told with its seed.
async fn run(seed: u64, place: Place) -> Result<Counts, String> {
    let order = Order::new(seed, place);
    let (turns, chain) = (Arc::clone(&order.turns), Arc::clone(&order.chain));
    let releases = order.deployments.clone();
    match std::panic::AssertUnwindSafe(order.run()).catch_unwind().await {
        Ok(counts) => Ok(counts),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic");
            let (trace, _) = turns.trace();
            let last: Vec<&String> = trace.iter().rev().take(60).rev().collect();
            Err(format!(
                "seed {seed}: {text}\n\nits requests at the log, the last of {}: {last:#?}\nreleases of each pod: \
                 {releases:?}\nchain:\n{}\nit alone: DELTA_MIGRATE_TEST_SEED={seed} cargo test --test it orders\n",
                trace.len(),
                chain.toml
            ))
        }
    }
}

/// The seeds to run: those, or the one that somebody asks for.
fn seeds(all: std::ops::Range<u64>) -> Vec<u64> {
    match std::env::var("DELTA_MIGRATE_TEST_SEED").ok().filter(|text| !text.is_empty()) {
        Some(text) => vec![text.parse().unwrap()],
        None => all.collect(),
    }
}

/// Runs all orders, some at a time, and says of every one that failed which it was.
async fn run_all(seeds: Vec<u64>, place: fn() -> Place) -> Counts {
    let counts = Mutex::new(Counts::default());
    let failures = Mutex::new(Vec::new());
    let orders = seeds.into_iter().map(|seed| tokio::spawn(run(seed, place())));
    stream::iter(orders)
        .for_each_concurrent(4, async |order| match order.await.unwrap() {
            Ok(Counts { orders, commits, rows, refused, conflicts, lost_races }) => {
                let mut sum = counts.lock().unwrap();
                sum.orders += orders;
                sum.commits += commits;
                sum.rows += rows;
                sum.refused += refused;
                sum.conflicts += conflicts;
                sum.lost_races += lost_races;
            }
            Err(text) => failures.lock().unwrap().push(text),
        })
        .await;
    let failures = failures.into_inner().unwrap_or_else(PoisonError::into_inner);
    assert!(failures.is_empty(), "{} orders failed; the first:\n{}", failures.len(), failures[0]);
    counts.into_inner().unwrap_or_else(PoisonError::into_inner)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn releases_in_any_order_lose_no_row_lower_no_stamp_and_end_at_the_newest() {
    let seeds = seeds(0..500);
    let is_whole = seeds.len() == 500;
    let counts = run_all(seeds, || Place::Turns).await;
    // What the orders are about did happen.
    let Counts { orders, commits, rows, refused, conflicts, lost_races } = counts;
    if is_whole {
        assert_eq!(orders, 500);
        assert!(
            commits > 800 && rows > 2000 && refused > 300 && conflicts > 100 && lost_races > 800,
            "{counts:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn releases_in_any_order_on_local_files_do_so_too() {
    run_all(seeds(10_000..10_010), || Place::Files(tempfile::tempdir().unwrap())).await;
}

/// Otherwise a seed would tell nothing of the failure that it is given with.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_order_can_be_had_again_from_its_seed() {
    for seed in 20_000..20_008 {
        let mut traces = Vec::new();
        for _ in 0..2 {
            let order = Order::new(seed, Place::Turns);
            let turns = Arc::clone(&order.turns);
            order.run().await;
            traces.push(turns.trace().0);
        }
        assert!(traces[0].len() > 20, "{seed}: {:?}", traces[0]);
        assert_eq!(traces[0], traces[1], "seed {seed}");
    }
}
