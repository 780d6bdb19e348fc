//! From arguments and configuration to a migrator and the sources of tables to work on.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::args::{Global, Tables};
use super::config::{self, Config};
use super::kinds::read_kinds;
use super::sources;
use crate::catalog::{Access, Found, Source, TableList, Trust};
use crate::delta::location::{self, Location, shown};
use crate::delta::stores::Stores;
use crate::error::Error;
use crate::migrator::Migrator;
use crate::model::data::Values;
use crate::model::kind::Kind;
use crate::model::plan::Target;
use crate::model::text;
use crate::model::version::{Namespace, SchemaVersion};

/// What a command works with.
pub(crate) struct Context {
    config: Option<Config>,
    storage: BTreeMap<String, String>,
    kind: Option<String>,
    /// By `--kind` or `--kind-file`.
    kind_is_given: bool,
    migrator: Arc<Migrator>,
}

/// One table that a person decides about.
pub(crate) struct One {
    pub(crate) kind: String,
    pub(crate) location: Location,
}

pub(crate) const CONFIG_FILE: &str = "delta-migrate.toml";

impl Context {
    /// The same, with leave to read and rewrite files.
    pub(crate) fn allowed_to_rewrite(self, show_values: bool) -> Self {
        let values = if show_values { Values::Shown } else { Values::Hidden };
        let migrator = match Arc::try_unwrap(self.migrator) {
            Ok(migrator) => Arc::new(migrator.allowed_to_rewrite(values)),
            Err(shared) => shared,
        };
        Self { migrator, ..self }
    }

    /// Reads configuration and kinds, as far as the arguments do not stand in for them.
    pub(crate) fn load(
        global: &Global,
        own: Option<Migrator>,
        budget: Option<Duration>,
    ) -> Result<Self, Error> {
        let config = read_config(global, own.is_some())?;
        let storage = storage_of(global, config.as_ref())?;
        let migrator = match own {
            Some(own) => own,
            None => stock_migrator(global, config.as_ref())?,
        };
        let migrator = Arc::new(match budget {
            Some(budget) => migrator.with_budget(budget),
            None => migrator,
        });
        let kind_is_given = global.kind.is_some() || !global.kind_file.is_empty();
        Ok(Self { config, storage, kind: global.kind.clone(), kind_is_given, migrator })
    }

    /// The same where kinds don't matter: only a namespace is asked for.
    pub(crate) fn load_without_kinds(
        global: &Global,
        own: Option<Migrator>,
        budget: Option<Duration>,
    ) -> Result<Self, Error> {
        let config = read_config(global, true)?;
        let own = match own {
            Some(own) => own,
            None => Migrator::builder(namespace_of(global, config.as_ref())?).build()?,
        };
        let storage = storage_of(global, config.as_ref())?;
        let migrator = Arc::new(match budget {
            Some(budget) => own.with_budget(budget),
            None => own,
        });
        Ok(Self { config, storage, kind: None, kind_is_given: false, migrator })
    }

    pub(crate) fn migrator(&self) -> &Arc<Migrator> {
        &self.migrator
    }

    /// The tables of the command line, else what the configuration says.
    pub(crate) fn sources(
        &self,
        tables: &Tables,
        stores: &Arc<Stores>,
    ) -> Result<Vec<Box<dyn Source>>, Error> {
        if let Some(kind) = &self.kind {
            self.migrator.kind(kind)?;
        }
        // What is no location in any store of this build is told before the first table.
        let list = |tables: Vec<Found>| {
            for Found { uri, access, .. } in &tables {
                if let Access::Options(options) = access {
                    stores.location(uri, options)?;
                }
            }
            Ok::<Box<dyn Source>, Error>(Box::new(TableList::new(tables)))
        };
        if !tables.tables.is_empty() {
            let named: Result<Vec<Found>, Error> = tables.tables.iter().map(|t| self.named(t)).collect();
            return Ok(vec![list(named?)?]);
        }
        if self.kind.is_some() {
            return Err(Error::usage("--kind is for tables on the command line, and none was named")
                .with_hint("name the tables; those of the configuration have their kinds there"));
        }
        let config = self.config.as_ref().ok_or_else(|| {
            Error::usage("no table was named, and there is no configuration file")
                .with_hint("name a table, or list tables under [[tables]] in delta-migrate.toml")
        })?;
        self.check_kinds(config)?;
        let mut sources: Vec<Box<dyn Source>> = Vec::new();
        if !config.tables.is_empty() {
            sources.push(list(config.tables.iter().map(|t| self.listed(t)).collect())?);
        }
        for entry in &config.discover {
            sources.push(sources::walk(entry, &self.storage, stores)?);
        }
        sources.extend(self.catalogs()?);
        if sources.is_empty() {
            return Err(Error::usage("the configuration names no tables").with_hint(
                "name a table, list tables under [[tables]], or say where to find them: [[discover]], [[catalogs]]",
            ));
        }
        Ok(sources)
    }

    /// The catalogs of the configuration.
    pub(crate) fn catalogs(&self) -> Result<Vec<Box<dyn Source>>, Error> {
        let entries = self.config.iter().flat_map(|c| &c.catalogs);
        entries.map(|entry| sources::catalog(entry, &self.storage)).collect()
    }

    /// Every kind that the configuration names must be there; all that are not are told together.
    fn check_kinds(&self, config: &Config) -> Result<(), Error> {
        let Config { namespace: _, kinds: _, storage: _, tables, discover, catalogs } = config;
        let unknown = |kind: &&String| self.migrator.kind(kind).is_err();
        let mut lines = Vec::new();
        for table in tables.iter().filter(|t| unknown(&&t.kind)) {
            let uri = shown(&table.uri);
            lines.push(format!("table `{uri}` is of kind `{}`, which there is not", table.kind));
        }
        for (entry, kind) in discover.iter().filter_map(|d| Some((d, d.kind.as_ref().filter(unknown)?))) {
            let root = shown(&entry.root);
            lines.push(format!("the walk of `{root}` says kind `{kind}`, which there is not"));
        }
        for kind in catalogs.iter().filter_map(|c| c.kind.as_ref().filter(unknown)) {
            lines.push(format!("a catalog says kind `{kind}`, which there is not"));
        }
        if lines.is_empty() || self.kind.is_some() {
            return Ok(());
        }
        let names: Vec<&str> = self.migrator.kind_names().collect();
        Err(Error::usage(lines.join("\n")).with_hint(format!("there is {}", text::list(&names))))
    }

    /// A version beyond a kind's chain is a mistake of the command line, not of any table.
    pub(crate) fn check_target(&self, target: Target, tables: &Tables) -> Result<(), Error> {
        let Target::Version(version) = target else { return Ok(()) };
        let mut kinds: BTreeSet<String> = BTreeSet::new();
        if tables.tables.is_empty() {
            if let Some(Config { tables, discover, catalogs, .. }) = &self.config {
                let rules = discover.iter().map(|d| &d.kind).chain(catalogs.iter().map(|c| &c.kind));
                kinds.extend(tables.iter().map(|t| t.kind.clone()).chain(rules.flatten().cloned()));
            }
        } else {
            for table in &tables.tables {
                kinds.extend(self.named(table)?.kind);
            }
        }
        for kind in self.kind.iter().chain(kinds.iter().filter(|_| self.kind.is_none())) {
            self.check_target_of(self.migrator.kind(kind)?, version)?;
        }
        Ok(())
    }

    fn check_target_of(&self, kind: &Kind, version: SchemaVersion) -> Result<(), Error> {
        let (name, newest) = (kind.name(), kind.newest());
        if version <= newest {
            return Ok(());
        }
        let message = format!("--target {version} is beyond kind `{name}`, whose newest version is {newest}");
        Err(Error::usage(message).with_hint("name a version that the kind's chain has"))
    }

    /// One table of the command line.
    pub(crate) fn named(&self, table: &str) -> Result<Found, Error> {
        if let Some(entry) = self.listed_as(table) {
            return Ok(self.listed(entry));
        }
        let kind = self.kind_of();
        if let Some(kind) = &kind {
            self.migrator.kind(kind)?;
        }
        self.check_is_no_short_name(table)?;
        // What is no location is a mistake of the command line.
        location::named(table)?;
        let mut found = Found::at(table, self.options(self.storage_below(table)));
        found.kind = kind;
        // A mistyped name beside a configuration of one kind must not make a table.
        found.trust = if self.kind_is_given { Trust::Named } else { Trust::Asked };
        Ok(found)
    }

    /// One table that a person decides about; its own stamp says its kind where nothing else does.
    pub(crate) async fn one(&self, table: &str) -> Result<One, Error> {
        let found = self.named(table)?;
        let location = self.location_of(table)?;
        let kind = match found.kind {
            Some(kind) => kind,
            None => match crate::batch::stamped_kind_of(&self.migrator, &location).await {
                Ok(kind) => kind,
                Err(error) => {
                    return Err(Error::usage(error.to_string()).with_hint(error.hint().unwrap_or_default()));
                }
            },
        };
        self.migrator.kind(&kind)?;
        Ok(One { kind, location })
    }

    /// A location whose kind does not matter.
    pub(crate) fn location_of(&self, table: &str) -> Result<Location, Error> {
        let (uri, own) = match self.listed_as(table) {
            Some(entry) => (entry.uri.as_str(), Some(&entry.storage)),
            None => (table, self.storage_below(table)),
        };
        let options: HashMap<String, String> = self.options(own).into_iter().collect();
        Location::new(uri, options)
    }

    /// A saved plan's table, in the store that the configuration says.
    pub(crate) fn planned(&self, uri: &str, kind: &str) -> Found {
        let mut found = match self.listed_as(uri) {
            Some(entry) => self.listed(entry),
            None => Found::at(uri, self.options(self.storage_below(uri))),
        };
        found.kind = Some(kind.to_owned());
        // A plan that says `create` was made by somebody who named location and kind.
        found.trust = Trust::Named;
        found
    }

    /// Whether the configuration itself says in which store a table lies, or there is no catalog
    /// that could say it.
    pub(crate) fn knows_store_of(&self, uri: &str) -> bool {
        let has_catalogs = self.config.as_ref().is_some_and(|c| !c.catalogs.is_empty());
        !has_catalogs || self.listed_as(uri).is_some() || self.storage_below(uri).is_some()
    }

    /// The configuration's entry for a table: the same location, or its folder's name alone.
    fn listed_as(&self, table: &str) -> Option<&config::TableEntry> {
        let entries = &self.config.as_ref()?.tables;
        let one_spelling = location::named(table).ok();
        let same = |entry: &&config::TableEntry| {
            let both = (entry.uri.trim_end_matches('/'), table.trim_end_matches('/'));
            both.0 == both.1 || (one_spelling.is_some() && location::named(&entry.uri).ok() == one_spelling)
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

    /// The storage options of the first walk that the table lies below.
    fn storage_below(&self, table: &str) -> Option<&BTreeMap<String, String>> {
        let table = location::canonical(table).ok()?;
        let below = |root: &str| {
            let root = location::canonical(root).ok()?;
            Some(table.strip_prefix(root.trim_end_matches('/'))?.starts_with('/'))
        };
        let walks = &self.config.as_ref()?.discover;
        walks.iter().find(|walk| below(&walk.root) == Some(true)).map(|walk| &walk.storage)
    }

    fn listed(&self, entry: &config::TableEntry) -> Found {
        let mut found = Found::at(&entry.uri, self.options(Some(&entry.storage)));
        found.kind = Some(self.kind.clone().unwrap_or_else(|| entry.kind.clone()));
        found.adopt = entry.adopt;
        found.trust = Trust::Named;
        found
    }

    fn options(&self, own: Option<&BTreeMap<String, String>>) -> BTreeMap<String, String> {
        sources::merged(&self.storage, own)
    }

    /// The kind of a table that is only named: the one that was given, or the only one that there is.
    /// Else the table's own stamp says it.
    fn kind_of(&self) -> Option<String> {
        let mut names = self.migrator.kind_names();
        let only = names.next().filter(|_| names.next().is_none());
        self.kind.clone().or(only.map(str::to_owned))
    }

    /// Reports shorten the locations of tables that were found. Such a name must not be taken for a
    /// path, at which a new table would be made.
    fn check_is_no_short_name(&self, table: &str) -> Result<(), Error> {
        let finds = self.config.as_ref().is_some_and(|c| !c.discover.is_empty() || !c.catalogs.is_empty());
        if !finds || table.contains("://") || Path::new(table).is_absolute() || Path::new(table).exists() {
            return Ok(());
        }
        Err(Error::usage(format!("`{table}` is neither listed under [[tables]] nor a path that exists"))
            .with_hint("name a table that is found by its whole location, as `--format json` shows it; a new one by its absolute path"))
    }
}

/// The storage options of every table: the configuration's, and above them those of the command line.
pub(crate) fn storage_of(
    global: &Global,
    config: Option<&Config>,
) -> Result<BTreeMap<String, String>, Error> {
    let mut storage = config.map(|c| c.storage.clone()).unwrap_or_default();
    for option in &global.storage_option {
        let (key, value) = option.split_once('=').filter(|(key, _)| !key.is_empty()).ok_or_else(|| {
            // The text is not repeated: it may be a secret.
            Error::usage("--storage-option wants KEY=VALUE")
                .with_hint("the text before the first `=` is the key")
        })?;
        storage.insert(key.to_owned(), value.to_owned());
    }
    Ok(storage)
}

pub(crate) fn read_config(global: &Global, has_kinds: bool) -> Result<Option<Config>, Error> {
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

fn namespace_of(global: &Global, config: Option<&Config>) -> Result<Namespace, Error> {
    match (&global.namespace, config) {
        (Some(name), _) => Namespace::new(name).map_err(|e| Error::usage(e.to_string())),
        (None, Some(config)) => Ok(config.namespace.clone()),
        (None, None) => Err(Error::usage("which namespace?").with_hint("say it with --namespace NAME")),
    }
}

fn stock_migrator(global: &Global, config: Option<&Config>) -> Result<Migrator, Error> {
    let mut builder = Migrator::builder(namespace_of(global, config)?);
    for kind in read_kinds(global, config)? {
        builder = builder.kind(kind);
    }
    builder.build()
}
