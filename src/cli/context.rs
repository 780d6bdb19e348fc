//! From arguments and configuration to a migrator and the tables to work on.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::StreamExt;

use super::args::{Global, Tables};
use super::config::{self, Config};
use super::output::Output;
use crate::delta::location::{Location, shown};
use crate::error::{Error, ErrorCode, Stage};
use crate::migrator::{IfMissing, Migrator, missing};
use crate::model::kind::{Adopt, Kind};
use crate::model::plan::{Mode, Plan, Target};
use crate::model::report::{BatchReport, TableReport};
use crate::model::text;
use crate::model::version::Namespace;

/// What a command works with.
pub(crate) struct Context {
    config: Option<Config>,
    storage: BTreeMap<String, String>,
    kind: Option<String>,
    /// By `--kind` or `--kind-file`.
    kind_is_given: bool,
    migrators: Migrators,
}

/// One migrator, and one more for each way of adoption that a table asks for.
struct Migrators {
    plain: Arc<Migrator>,
    adopting: BTreeMap<&'static str, Arc<Migrator>>,
}

/// One table to work on.
#[derive(Clone)]
pub(crate) struct Job {
    pub(crate) kind: String,
    pub(crate) location: Location,
    pub(crate) migrator: Arc<Migrator>,
    /// Created only where location and kind were both given.
    pub(crate) if_missing: IfMissing,
}

impl Job {
    /// What would be done, or why nothing may be.
    pub(crate) async fn plan(&self, target: Target) -> Result<Plan, Error> {
        let plan = self.migrator.plan(&self.kind, &self.location, target).await?;
        if plan.mode() == Mode::Create && self.if_missing == IfMissing::Refuse {
            return Err(missing().at(Stage::Plan).with_table(self.location.uri()));
        }
        Ok(plan)
    }
}

const CONFIG_FILE: &str = "delta-migrate.toml";

impl Context {
    /// Reads configuration and kinds, as far as the arguments do not stand in for them.
    pub(crate) fn load(
        global: &Global,
        own: Option<Migrator>,
        budget: Option<Duration>,
    ) -> Result<Self, Error> {
        let config = read_config(global, own.is_some())?;
        let mut storage = config.as_ref().map(|c| c.storage.clone()).unwrap_or_default();
        for option in &global.storage_option {
            let (key, value) =
                option.split_once('=').filter(|(key, _)| !key.is_empty()).ok_or_else(|| {
                    // The text is not repeated: it may be a secret.
                    Error::usage("--storage-option wants KEY=VALUE")
                        .with_hint("the text before the first `=` is the key")
                })?;
            storage.insert(key.to_owned(), value.to_owned());
        }
        let migrators = match own {
            Some(own) => {
                let own = Arc::new(match budget {
                    Some(budget) => own.with_budget(budget),
                    None => own,
                });
                Migrators { plain: own, adopting: BTreeMap::new() }
            }
            None => stock_migrators(global, config.as_ref(), budget)?,
        };
        let kind_is_given = global.kind.is_some() || !global.kind_file.is_empty();
        Ok(Self { config, storage, kind: global.kind.clone(), kind_is_given, migrators })
    }

    pub(crate) fn migrator(&self) -> &Arc<Migrator> {
        &self.migrators.plain
    }

    /// The tables of the command line, else those of the configuration.
    pub(crate) fn jobs(&self, tables: &Tables) -> Result<Vec<Job>, Error> {
        let named: Result<Vec<Job>, Error> = match tables.tables.as_slice() {
            [] => {
                let config = self.config.as_ref().ok_or_else(|| {
                    Error::usage("no table was named, and there is no configuration file")
                        .with_hint("name a table, or list tables under [[tables]] in delta-migrate.toml")
                })?;
                if config.tables.is_empty() {
                    return Err(Error::usage("the configuration lists no tables")
                        .with_hint("name a table, or list tables under [[tables]]"));
                }
                self.check_kinds(config)?;
                config.tables.iter().map(|t| self.listed(t)).collect()
            }
            named => named.iter().map(|t| self.named(t)).collect(),
        };
        let mut seen = std::collections::BTreeSet::new();
        Ok(named?.into_iter().filter(|j| seen.insert(j.location.uri().to_owned())).collect())
    }

    /// Every kind that the configuration names must be there; all that are not are told together.
    fn check_kinds(&self, config: &Config) -> Result<(), Error> {
        let unknown = |t: &&config::TableEntry| self.migrator().kind(&t.kind).is_err();
        let lines: Vec<String> = config
            .tables
            .iter()
            .filter(unknown)
            .map(|t| format!("table `{}` is of kind `{}`, which there is not", shown(&t.uri), t.kind))
            .collect();
        if lines.is_empty() || self.kind.is_some() {
            return Ok(());
        }
        let names: Vec<&str> = self.migrator().kind_names().collect();
        Err(Error::usage(lines.join("\n")).with_hint(format!("there is {}", text::list(&names))))
    }

    /// One table of the command line.
    pub(crate) fn named(&self, table: &str) -> Result<Job, Error> {
        if let Some(entry) = self.listed_as(table) {
            return self.listed(entry);
        }
        let kind = self.kind_of(table)?;
        self.migrator().kind(&kind)?;
        let location = self.location(table, &BTreeMap::new())?;
        // A mistyped name beside a configuration of one kind must not make a table.
        let if_missing = if self.kind_is_given { IfMissing::Create } else { IfMissing::Refuse };
        Ok(Job { kind, location, migrator: self.migrator().clone(), if_missing })
    }

    /// A location whose kind does not matter.
    pub(crate) fn location_of(&self, table: &str) -> Result<Location, Error> {
        match self.listed_as(table) {
            Some(entry) => self.location(&entry.uri, &entry.storage),
            None => self.location(table, &BTreeMap::new()),
        }
    }

    /// The configuration's entry for a table: the same location, or its folder's name alone.
    fn listed_as(&self, table: &str) -> Option<&config::TableEntry> {
        let entries = &self.config.as_ref()?.tables;
        let as_path = |text: &str| std::path::absolute(Path::new(text.trim_end_matches('/'))).ok();
        let same = |entry: &&config::TableEntry| {
            let both = (entry.uri.trim_end_matches('/'), table.trim_end_matches('/'));
            both.0 == both.1 || (!table.contains("://") && as_path(both.0) == as_path(both.1))
        };
        let by_name = |entry: &&config::TableEntry| {
            // The folder's name alone, or the location as the configuration writes it.
            !table.contains("://") && entry.uri.trim_end_matches('/').ends_with(&format!("/{table}"))
        };
        let mut named = entries.iter().filter(by_name);
        entries.iter().find(same).or_else(|| match (named.next(), named.next()) {
            (Some(only), None) if !Path::new(table).exists() => Some(only),
            _ => None,
        })
    }

    fn listed(&self, entry: &config::TableEntry) -> Result<Job, Error> {
        let kind = self.kind.clone().unwrap_or_else(|| entry.kind.clone());
        let migrator = match entry.adopt.and_then(|a| self.migrators.adopting.get(adopt_key(a))) {
            Some(migrator) => migrator.clone(),
            None => self.migrator().clone(),
        };
        migrator.kind(&kind)?;
        let location = self.location(&entry.uri, &entry.storage)?;
        Ok(Job { kind, location, migrator, if_missing: IfMissing::Create })
    }

    fn location(&self, uri: &str, own: &BTreeMap<String, String>) -> Result<Location, Error> {
        let mut options: HashMap<String, String> = self.storage.clone().into_iter().collect();
        options.extend(own.clone());
        Location::new(uri, options)
    }

    fn kind_of(&self, table: &str) -> Result<String, Error> {
        if let Some(kind) = &self.kind {
            return Ok(kind.clone());
        }
        let names: Vec<&str> = self.migrator().kind_names().collect();
        match names.as_slice() {
            [only] => Ok((*only).to_owned()),
            _ => Err(Error::usage(format!(
                "which kind is `{}`? there is {}",
                shown(table),
                text::list(&names)
            ))
            .with_hint("say it with --kind, or list the table under [[tables]]")),
        }
    }
}

pub(super) fn read_config(global: &Global, has_kinds: bool) -> Result<Option<Config>, Error> {
    let without = !global.kind_file.is_empty() && global.namespace.is_some();
    let path = match &global.config {
        Some(path) => path.clone(),
        None if without => return Ok(None),
        None => PathBuf::from(CONFIG_FILE),
    };
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if global.config.is_none() && error.kind() == std::io::ErrorKind::NotFound => {
            if has_kinds {
                return Ok(None);
            }
            return Err(Error::usage(format!("there is no `{CONFIG_FILE}` here")).with_hint(
                "name one with -c FILE, or a single table with --namespace NAME --kind-file FILE TABLE",
            ));
        }
        Err(error) => {
            return Err(Error::usage(format!("`{}` can't be read", path.display())).with_source(error));
        }
    };
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let file = path.display().to_string();
    config::parse(&text, &file, folder, &|name| std::env::var(name).ok()).map(Some)
}

fn stock_migrators(
    global: &Global,
    config: Option<&Config>,
    budget: Option<Duration>,
) -> Result<Migrators, Error> {
    let namespace = match (&global.namespace, config) {
        (Some(name), _) => Namespace::new(name).map_err(|e| Error::usage(e.to_string()))?,
        (None, Some(config)) => config.namespace.clone(),
        (None, None) => {
            return Err(Error::usage("which namespace?").with_hint("say it with --namespace NAME"));
        }
    };
    let kinds = read_kinds(global, config)?;
    let build = |adopt: Option<Adopt>| {
        let mut builder = Migrator::builder(namespace.clone());
        for kind in &kinds {
            let kind = kind.clone();
            builder = builder.kind(match adopt {
                Some(adopt) => kind.with_adopt(adopt),
                None => kind,
            });
        }
        if let Some(budget) = budget {
            builder = builder.budget(budget);
        }
        builder.build().map(Arc::new)
    };
    let wanted: Vec<Adopt> = config.iter().flat_map(|c| &c.tables).filter_map(|t| t.adopt).collect();
    let mut adopting = BTreeMap::new();
    for adopt in wanted {
        adopting.insert(adopt_key(adopt), build(Some(adopt))?);
    }
    Ok(Migrators { plain: build(None)?, adopting })
}

fn adopt_key(adopt: Adopt) -> &'static str {
    match adopt {
        Adopt::FromZero => "from_zero",
        Adopt::Detect => "detect",
        Adopt::Refuse => "refuse",
    }
}

/// All kind files; the mistakes of all of them are reported together.
fn read_kinds(global: &Global, config: Option<&Config>) -> Result<Vec<Kind>, Error> {
    let files = match (global.kind_file.as_slice(), config) {
        ([], Some(config)) => kind_files(&config.kinds)?,
        (files, _) => files.to_vec(),
    };
    let (mut kinds, mut mistakes) = (Vec::new(), Vec::new());
    for file in &files {
        let name = file.display().to_string();
        let text = match std::fs::read_to_string(file) {
            Ok(text) => text,
            Err(error) => {
                mistakes.push(format!("kind file `{name}` can't be read: {error}"));
                continue;
            }
        };
        match Kind::from_toml_file(&text, &name) {
            Ok(kind) => kinds.push(kind),
            Err(error) => mistakes.push(error.message().to_owned()),
        }
    }
    if mistakes.is_empty() { Ok(kinds) } else { Err(Error::usage(mistakes.join("\n"))) }
}

fn kind_files(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let wrong = |e: std::io::Error| {
        Error::usage(format!("the folder of kind files `{}` can't be read", folder.display()))
            .with_hint("set `kinds` in the configuration, or make a first one with `delta-migrate new KIND`")
            .with_source(e)
    };
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(wrong)? {
        let path = entry.map_err(wrong)?.path();
        // Editors and file systems keep hidden copies beside a file.
        let hidden = path.file_name().is_some_and(|n| n.to_string_lossy().starts_with('.'));
        if path.extension().is_some_and(|e| e == "toml") && !hidden {
            files.push(path);
        }
    }
    files.sort();
    if files.is_empty() {
        return Err(Error::usage(format!("there is no kind file in `{}`", folder.display()))
            .with_hint("make one with `delta-migrate new KIND`"));
    }
    Ok(files)
}

/// Works on every job, a few at a time, and reports them in their order.
pub(crate) async fn each<F, Fut>(
    command: &'static str,
    jobs: Vec<Job>,
    concurrency: u16,
    output: &Output,
    work: F,
) -> BatchReport
where
    F: Fn(Job) -> Fut,
    Fut: Future<Output = Result<TableReport, Error>>,
{
    let bar = output.progress(jobs.len());
    let stop = Arc::new(AtomicBool::new(false));
    let watch = tokio::spawn(watch_for_interrupt(stop.clone()));
    let work = futures::stream::iter(jobs)
        .map(|job| {
            let (kind, location, migrator) = (job.kind.clone(), job.location.clone(), job.migrator.clone());
            let work = work(job);
            let (bar, stop) = (bar.clone(), stop.clone());
            async move {
                let newest = migrator.kind(&kind).ok().map(Kind::newest);
                if stop.load(Ordering::Relaxed) {
                    return TableReport::skipped(location.uri(), &kind, newest, &interrupted());
                }
                let report =
                    work.await.unwrap_or_else(|e| TableReport::of_error(location.uri(), &kind, newest, &e));
                bar.inc(1);
                report
            }
        })
        .buffered(usize::from(concurrency))
        .collect();
    let reports = tokio::select! {
        reports = work => reports,
        () = output.progress_lines(&bar) => Vec::new(),
    };
    watch.abort();
    bar.finish_and_clear();
    BatchReport::new(command, reports)
}

/// The first Ctrl-C lets the tables end that are being worked on and starts no other; a second one
/// ends the process, which leaves every table with its commit or without.
async fn watch_for_interrupt(stop: Arc<AtomicBool>) {
    while tokio::signal::ctrl_c().await.is_ok() {
        if stop.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
        tracing::warn!("interrupted: the tables that were begun are finished; once more to end at once");
    }
}

fn interrupted() -> Error {
    Error::new(ErrorCode::Interrupted, Stage::Setup, "interrupted before its turn")
        .with_hint("run it again: what is done is not done twice")
}

/// A saved plan's table, in the store that the configuration says.
pub(crate) fn job_of_plan(context: &Context, uri: &str, kind: &str) -> Result<Job, Error> {
    let location = context.location_of(uri)?;
    let migrator = match context.listed_as(uri) {
        Some(entry) => context.listed(entry)?.migrator,
        None => context.migrator().clone(),
    };
    migrator.kind(kind).map_err(|e| {
        Error::new(ErrorCode::StalePlan, Stage::Setup, e.message().to_owned())
            .with_hint("make the plan anew with `delta-migrate plan -o FILE`, or bring the kind back")
            .with_table(uri)
    })?;
    Ok(Job { kind: kind.to_owned(), location, migrator, if_missing: IfMissing::Create })
}
