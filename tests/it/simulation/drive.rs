//! Runs the actors of a scenario, one step after the other, on one thread.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::Duration;

use delta_migrate::{IfMissing, Kind, Location, Migrator, Namespace, Target};
use deltalake::logstore::{StorageConfig, logstore_with};
use url::Url;

use super::counts::Counts;
use super::invariants;
use super::kinds::{self, NEWEST};
use super::reader;
use super::run::{Ended, Run};
use super::scenario::{Actor, Chain, Scenario};
use super::schedule::{Answer, Ask};
use super::store::{Shared, SimMoments, SimStore};
use super::world::{TABLE, World};

type Program = Pin<Box<dyn Future<Output = ()>>>;

/// What came of a scenario.
pub(super) struct Played {
    pub(super) violations: Vec<String>,
    pub(super) counts: Counts,
    pub(super) trace: Vec<String>,
    pub(super) steps: u64,
}

/// More steps than any honest schedule takes.
const MOST_STEPS: u64 = 20_000;

pub(super) fn play(scenario: &Scenario, tracing: bool) -> Played {
    let _runtime = runtime().enter();
    let shared = Shared::new(World::new(Arc::new(scenario.clone()), tracing));
    let mut at = 0;
    let actors = scenario.actors.iter().enumerate().map(|(actor, what)| program(&shared, actor, what, None));
    drive(&shared, 0, actors.collect(), &mut at);
    flush(&shared);
    let mut world = shared.world();
    world.runs.iter_mut().for_each(|run| run.faults.sort_unstable());
    invariants::reports(&mut world);
    invariants::end(&mut world);
    let sound = world.violations.is_empty() && world.spoilt.is_none();
    drop(world);
    if sound {
        converge(&shared);
    }
    let mut world = shared.world();
    // Another reader is slow, so that it is asked now and then.
    if sound && scenario.seed.is_multiple_of(64) {
        reader::differences(&world, runtime()).into_iter().for_each(|what| world.violation(what));
    }
    let ends: Vec<String> = world.runs.iter().map(name_of).collect();
    for name in ends {
        *world.counts.ended.entry(name).or_default() += 1;
    }
    Played {
        violations: std::mem::take(&mut world.violations),
        counts: std::mem::take(&mut world.counts),
        trace: world.schedule.trace.take().unwrap_or_default(),
        steps: world.schedule.step,
    }
}

fn name_of(run: &Run) -> String {
    match &run.ended {
        Some(Ended::Done { outcome, .. }) => outcome.clone(),
        Some(Ended::Failed { code, committed, .. }) if committed.is_empty() => code.clone(),
        Some(Ended::Failed { code, .. }) => format!("{code} (committed)"),
        Some(Ended::Crashed) => "crashed".to_owned(),
        None => "never ended".to_owned(),
    }
}

/// Decoding a checkpoint takes place on a thread of its own.
fn runtime() -> &'static tokio::runtime::Runtime {
    static RUNTIME: OnceLock<tokio::runtime::Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap())
}

struct Flag {
    up: AtomicBool,
    thread: Thread,
}

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.up.store(true, Ordering::SeqCst);
        self.thread.unpark();
    }
}

/// Lets actors, numbered from `first` on, go on until each has ended.
fn drive(shared: &Shared, first: usize, programs: Vec<Program>, at: &mut usize) {
    let mut actors: Vec<(Option<Program>, Arc<Flag>)> = programs
        .into_iter()
        .map(|p| (Some(p), Arc::new(Flag { up: AtomicBool::new(true), thread: std::thread::current() })))
        .collect();
    loop {
        poll(&mut actors);
        if actors.iter().all(|(program, _)| program.is_none()) {
            return;
        }
        let mut world = shared.world();
        let waits = |place: usize| world.schedule.holds(first + place);
        let elsewhere =
            actors.iter().enumerate().any(|(place, (program, _))| program.is_some() && !waits(place));
        if elsewhere {
            drop(world);
            std::thread::park_timeout(Duration::from_millis(100));
            continue;
        }
        let Some(ticket) = world.schedule.pick(at) else {
            return world.violation("nobody can go on");
        };
        if world.schedule.step > MOST_STEPS {
            return world.violation("it never ends");
        }
        let crashed = world.grant(ticket);
        drop(world);
        if let Some(actor) = crashed {
            // Its requests are given up as it is dropped.
            let place = actor - first;
            actors[place].0 = None;
            actors[place].0 = restart(shared, actor);
            actors[place].1.up.store(true, Ordering::SeqCst);
        }
    }
}

fn poll(actors: &mut [(Option<Program>, Arc<Flag>)]) {
    loop {
        let mut any = false;
        for (program, flag) in actors.iter_mut() {
            if !flag.up.swap(false, Ordering::SeqCst) {
                continue;
            }
            any = true;
            let Some(running) = program else { continue };
            let waker = Waker::from(flag.clone());
            if let Poll::Ready(()) = running.as_mut().poll(&mut Context::from_waker(&waker)) {
                *program = None;
            }
        }
        if !any {
            return;
        }
    }
}

/// A process that died is started again, as long as it has runs to make.
fn restart(shared: &Shared, actor: usize) -> Option<Program> {
    let mut world = shared.world();
    let run = world.current_run(actor)?;
    end(&mut world, run, Ended::Crashed);
    let made = world.runs.iter().filter(|run| run.actor == actor).count() as u32;
    let what = world.scenario.actors.get(actor)?.clone();
    drop(world);
    let Actor::Migrator { runs, .. } = &what else { return None };
    let left = runs.checked_sub(made).filter(|left| *left > 0)?;
    Some(program(shared, actor, &what, Some(left)))
}

/// What is under way when everybody has ended lands now, or never.
fn flush(shared: &Shared) {
    let tickets: Vec<u64> = shared.world().schedule.parked.keys().copied().collect();
    for ticket in tickets {
        let mut world = shared.world();
        if (world.scenario.seed ^ ticket).is_multiple_of(4) {
            world.schedule.parked.remove(&ticket);
        } else {
            world.grant(ticket);
        }
    }
}

fn program(shared: &Shared, actor: usize, what: &Actor, runs: Option<u32>) -> Program {
    let shared = shared.clone();
    match what.clone() {
        Actor::Migrator { known, chain, budget_ms, skew_ms, runs: all, create } => {
            let budget = Duration::from_millis(budget_ms);
            Box::pin(async move {
                for _ in 0..runs.unwrap_or(all) {
                    migrate(&shared, actor, (known, chain, create), budget, skew_ms).await;
                }
            })
        }
        Actor::Writer { ops } => Box::pin(async move {
            for op in ops {
                for _ in 0..4 {
                    let prepared = shared.ask(actor, Ask::Prepare { op }).await;
                    let Answer::Prepared(Some((table, version, actions))) = prepared else { break };
                    let done = shared.ask(actor, Ask::Commit { table, version, actions }).await;
                    if matches!(done, Answer::Committed(true)) {
                        break;
                    }
                }
            }
        }),
    }
}

async fn migrate(shared: &Shared, actor: usize, release: (u32, Chain, bool), budget: Duration, skew: i64) {
    let (known, chain, create) = release;
    let run = {
        let mut world = shared.world();
        let from = world.timeline.len() - 1;
        let spoilt = world.spoilt.is_some();
        let mut run = Run::new(actor, known, chain, create, from);
        run.spoilt = spoilt;
        world.runs.push(run);
        world.runs.len() - 1
    };
    let url = Url::parse(&format!("memory:///{TABLE}")).unwrap();
    let store = Arc::new(SimStore { shared: shared.clone(), actor });
    let location = Location::from_log_store(logstore_with(store, &url, StorageConfig::default()).unwrap());
    let migrator = Migrator::builder(Namespace::new("app").unwrap())
        .kind(kind(chain, known))
        .release(format!("release {known}"))
        .budget(budget)
        .moments(Arc::new(SimMoments { shared: shared.clone(), actor, skew }))
        .build()
        .unwrap();
    let if_missing = if create { IfMissing::Create } else { IfMissing::Refuse };
    let ended = match migrator.migrate("facts", &location, Target::Newest, if_missing).await {
        Ok(report) => Ended::Done {
            outcome: report.outcome.as_str().to_owned(),
            version: report.log_version.map(|v| v.get()),
            commits: report.commits,
        },
        Err(error) => Ended::Failed {
            code: error.code().as_str().to_owned(),
            committed: error.committed().to_vec(),
            said: format!("{} {}", error.message(), error.hint().unwrap_or_default()),
            message: error.message().to_owned(),
        },
    };
    end(&mut shared.world(), run, ended);
}

fn end(world: &mut World, run: usize, ended: Ended) {
    world.schedule.note(|| format!("run {run} ended: {ended:?}"));
    world.runs[run].to = world.timeline.len() - 1;
    world.runs[run].ended = Some(ended);
}

fn kind(chain: Chain, known: u32) -> Kind {
    static KINDS: Mutex<BTreeMap<(bool, u32), Kind>> = Mutex::new(BTreeMap::new());
    let mut kinds = KINDS.lock().unwrap();
    let made = kinds.entry((chain == Chain::Ours, known));
    made.or_insert_with(|| Kind::from_toml(&kinds::kind_file(chain, known)).unwrap()).clone()
}

/// In the end the newest release, without a fault, comes to what the table's state deserves.
fn converge(shared: &Shared) {
    for again in [false, true] {
        let (wanted, actor, before) = {
            let world = shared.world();
            (invariants::expected(&world), world.scenario.actors.len(), world.objects.len())
        };
        let newest = Actor::Migrator {
            known: NEWEST,
            chain: Chain::Ours,
            budget_ms: 60_000,
            skew_ms: 0,
            runs: 1,
            create: true,
        };
        // Nobody else is there, so that there is nothing to choose.
        drive(shared, actor, vec![program(shared, actor, &newest, None)], &mut usize::MAX.wrapping_div(2));
        let mut world = shared.world();
        let ended = world.runs.last().map(name_of).unwrap_or_default();
        let (wrote, pending) = (world.objects.len() != before, matches!(wanted, "created" | "migrated"));
        if ended != wanted {
            world.violation(format!("a run in peace ended as `{ended}`, not `{wanted}`"));
        }
        if wrote != pending {
            world.violation(format!("a run in peace ended as `{ended}`; it wrote: {wrote}"));
        }
        if again && pending {
            world.violation("a second run in peace found something to do");
        }
    }
}

/// The digests of both chains, as a run in peace stamps them.
pub(super) fn learn() {
    let digest = |chain| {
        let _runtime = runtime().enter();
        let start = super::scenario::Start { table: false, checksums: false, ops: Vec::new() };
        let actor =
            Actor::Migrator { known: NEWEST, chain, budget_ms: 60_000, skew_ms: 0, runs: 1, create: true };
        let scenario =
            Scenario { seed: 1, start, actors: vec![actor], faults: Vec::new(), choices: Vec::new() };
        // What is judged needs the digests; what is learned here is read without a judge.
        let world = World::new(Arc::new(Scenario { actors: Vec::new(), ..scenario.clone() }), false);
        let shared = Shared::new(world);
        shared.world().learning = true;
        drive(&shared, 0, vec![program(&shared, 0, &scenario.actors[0], None)], &mut 0);
        let state = shared.world().state.clone().unwrap();
        state.property("app.schema_digest").unwrap().to_owned()
    };
    kinds::learn(|| [digest(Chain::Ours), digest(Chain::Other)]);
}
