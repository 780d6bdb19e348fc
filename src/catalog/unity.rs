//! Tables of a Unity catalog: of Databricks, or of the open-source server.

mod answer;
mod client;
mod endpoint;
mod failure;
mod lend;
mod pages;
mod place;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::future::ready;
use std::sync::Arc;

use futures::StreamExt as _;
use futures::stream::{self, BoxStream};

use super::names::NamePattern;
use super::{Access, Found, Source, Trust};
use crate::error::{Error, ErrorCode, Stage};
use crate::model::text::clean;
use answer::Table;
use client::Client;
use endpoint::Endpoint;
use lend::TableLender;
use pages::{Level, pages};

/// How many schemas are listed at the same time: more would run into a server's rate limits.
const SCHEMAS_AT_ONCE: usize = 4;

/// Which catalog, and which of its tables.
///
/// Begin with `UnityOptions::default()`, and set `endpoint`, `tables`, and what else differs.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct UnityOptions {
    /// Patterns for tables, each of 3 parts; at least one.
    pub tables: Vec<String>,
    /// Patterns for tables to leave out.
    pub exclude: Vec<String>,
    /// The kind of every table that is found; none: the table's own stamp says it.
    pub kind: Option<String>,
    /// Storage options of every table; secret. If they hold credentials, the catalog is not asked to
    /// lend any.
    pub storage: BTreeMap<String, String>,
    /// The server's URL, with or without `/api/2.1/unity-catalog`.
    pub endpoint: String,
    /// The token to send; secret. None for a server that asks for none. It goes over `https` or to
    /// this machine, never over a network in clear text.
    pub token: Option<String>,
}

/// Tables of a Unity catalog.
///
/// Delta tables of the types `EXTERNAL` and `MANAGED` are given; views and other things that a
/// catalog holds are passed over. A part of a pattern without `*` is not listed but asked for by its
/// name. A catalog or a schema that can't be read is one error; the others go on.
///
/// Each table comes with credentials that the catalog lends for it (`READ_WRITE`) when its turn
/// comes. None are asked for where [`UnityOptions::storage`] holds some, or for local files. A server
/// that offers no such thing (404, 405, 501) leaves the table to the storage options and the
/// environment; one that refuses (400, 403) is an error. Tokens for Google Cloud Storage can't be
/// used: there the storage options must hold credentials.
pub struct UnityCatalog {
    tables: Vec<NamePattern>,
    exclude: Vec<NamePattern>,
    kind: Option<String>,
    storage: BTreeMap<String, String>,
    /// As messages show it.
    name: String,
    client: Arc<Client>,
}

impl UnityCatalog {
    /// A catalog; nothing is asked yet.
    ///
    /// # Errors
    /// [`ErrorCode::Usage`](crate::ErrorCode::Usage): there is no pattern for tables; a pattern, the
    /// endpoint or the token can't be used; a token would go over a network in clear text.
    pub fn new(options: UnityOptions) -> Result<Self, Error> {
        let UnityOptions { tables: texts, exclude, kind, storage, endpoint, token } = options;
        if texts.is_empty() {
            return Err(Error::usage("a unity catalog is given without patterns for tables")
                .with_hint("wanted catalog.schema.table, such as `prod.cdc.*`"));
        }
        let patterns =
            |texts: &[String]| texts.iter().map(|t| NamePattern::parse(t, 3)).collect::<Result<Vec<_>, _>>();
        let (tables, exclude) = (patterns(&texts)?, patterns(&exclude)?);
        let endpoint = Endpoint::parse(&endpoint)?;
        let name = format!("unity catalog at {} ({})", endpoint.host(), clean(&texts.join(", ")));
        let client = Arc::new(Client::new(endpoint, token.as_deref())?);
        Ok(Self { tables, exclude, kind, storage, name, client })
    }

    fn catalogs(&self) -> BoxStream<'_, Result<String, Error>> {
        self.names(Level::Catalogs, Vec::new())
    }

    fn schemas(&self, catalog: String) -> BoxStream<'_, Result<[String; 2], Error>> {
        let names = self.names(Level::Schemas { catalog: catalog.clone() }, vec![catalog.clone()]);
        names.map(move |name| Ok([catalog.clone(), name?])).boxed()
    }

    /// The names below a place that a pattern asks for: the literal ones, then those that are listed.
    fn names(&self, level: Level, place: Vec<String>) -> BoxStream<'_, Result<String, Error>> {
        let Wanted { literal, list } = self.wanted(&place);
        let given = stream::iter(literal.clone()).map(Ok);
        let mut seen = HashSet::new();
        let listed = if list { pages(&self.client, level).boxed() } else { stream::empty().boxed() };
        let listed = listed
            .map(|page| match page {
                Ok(items) => items.iter().filter_map(answer::name).map(Ok).collect(),
                Err(error) => vec![Err(error)],
            })
            .flat_map(stream::iter)
            .filter(move |name: &Result<String, Error>| {
                ready(name.as_ref().map_or(true, |n| !is_in(&literal, n) && seen.insert(n.clone())))
            });
        let is_open =
            move |name: &Result<String, Error>| name.as_ref().map_or(true, |name| self.is_open(&place, name));
        given.chain(listed).filter(move |name| ready(is_open(name))).boxed()
    }

    /// Whether tables at a name are asked for, and not all of them left out.
    fn is_open(&self, place: &[String], name: &str) -> bool {
        let path: Vec<&str> = place.iter().map(String::as_str).chain([name]).collect();
        self.tables.iter().any(|p| p.matches(&path)) && !self.exclude.iter().any(|p| p.covers(&path))
    }

    fn wanted(&self, place: &[String]) -> Wanted {
        let place: Vec<&str> = place.iter().map(String::as_str).collect();
        let mut wanted = Wanted { literal: Vec::new(), list: false };
        for pattern in self.tables.iter().filter(|p| p.matches(&place)) {
            match pattern.literal(place.len()) {
                None => wanted.list = true,
                Some(name) if is_in(&wanted.literal, name) => {}
                Some(name) => wanted.literal.push(name.to_owned()),
            }
        }
        wanted
    }

    /// The tables of a schema: those that a pattern names in full, then those that are listed.
    fn tables_of(&self, [catalog, schema]: [String; 2]) -> BoxStream<'_, Result<Found, Error>> {
        let place = [catalog.clone(), schema.clone()];
        let Wanted { literal, list } = self.wanted(&place);
        let full = |name: &str| format!("{catalog}.{schema}.{name}");
        let named: Vec<String> =
            literal.iter().filter(|name| self.is_open(&place, name)).map(|name| full(name)).collect();
        let given = stream::iter(named).then(|full| self.named(full));
        if !list {
            return given.boxed();
        }
        let mut seen = HashSet::new();
        let listed = pages(&self.client, Level::Tables { catalog, schema }).flat_map(move |page| {
            let found = match page {
                Err(error) => vec![Err(error)],
                Ok(items) => items
                    .iter()
                    .filter_map(|item| {
                        let Some(table) = Table::read(item) else { return Some(Err(nameless(&place))) };
                        let is_asked = table.is_ours()
                            && !is_in(&literal, &table.name)
                            && self.is_open(&place, &table.name)
                            && seen.insert(table.name.clone());
                        let full = format!("{}.{}.{}", place[0], place[1], table.name);
                        is_asked.then(|| self.found(table, &full))
                    })
                    .collect(),
            };
            stream::iter(found)
        });
        given.chain(listed).boxed()
    }

    /// The table that somebody named in full: what it is not is told, instead of passed over.
    async fn named(&self, full: String) -> Result<Found, Error> {
        let answer = self.client.get(&["tables", &full], &[]).await;
        let answer = answer.map_err(|f| f.into_error("the table can't be read").with_table(shown(&full)))?;
        let wrong = |what: &str| Error::usage(what).with_table(shown(&full));
        let table = Table::read(&answer).ok_or_else(|| wrong("the catalog's answer holds no table"))?;
        if !table.is_ours() {
            let (kind, format) = (table.kind.as_deref(), table.format.as_deref());
            let (kind, format) = (clean(kind.unwrap_or("none")), clean(format.unwrap_or("none")));
            let what = format!("it is of type `{kind}` and format `{format}`, no Delta table");
            return Err(wrong(&what).with_hint("wanted type EXTERNAL or MANAGED and format DELTA"));
        }
        self.found(table, &full)
    }

    fn found(&self, table: Table, full: &str) -> Result<Found, Error> {
        let place = place::of(table.location.as_deref()).map_err(|e| e.with_table(shown(full)))?;
        let mut options = self.storage.clone();
        if let Some(endpoint) = place.endpoint
            && !options.keys().any(|k| k.to_ascii_lowercase().contains("endpoint"))
        {
            options.insert("aws_endpoint".to_owned(), endpoint);
            options.entry("aws_region".to_owned()).or_insert_with(|| "auto".to_owned());
        }
        let access = match table.id {
            Some(id) if !place.is_local && !lend::holds_credentials(&options) => {
                Access::Lent(Arc::new(TableLender {
                    client: self.client.clone(),
                    table: shown(full),
                    id,
                    options,
                }))
            }
            _ => Access::Options(options),
        };
        Ok(Found {
            uri: place.uri,
            kind: self.kind.clone(),
            adopt: None,
            trust: Trust::Found,
            access,
            columns: table.columns,
        })
    }
}

/// What to look for below a place.
struct Wanted {
    literal: Vec<String>,
    list: bool,
}

/// Whether a name is there in any case.
fn is_in(names: &[String], name: &str) -> bool {
    names.iter().any(|n| n.eq_ignore_ascii_case(name))
}

/// How a message names a table whose location is not known.
fn shown(full: &str) -> String {
    format!("unity {}", clean(full))
}

fn nameless(schema: &[String]) -> Error {
    let message = format!("`{}` lists a table that can't be read, or has no name", clean(&schema.join(".")));
    Error::new(ErrorCode::Storage, Stage::Read, message)
}

impl Source for UnityCatalog {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn tables(&self) -> BoxStream<'_, Result<Found, Error>> {
        self.catalogs()
            .flat_map(|catalog| match catalog {
                Ok(catalog) => self.schemas(catalog),
                Err(error) => stream::once(ready(Err(error))).boxed(),
            })
            .map(|schema| match schema {
                Ok(schema) => self.tables_of(schema),
                Err(error) => stream::once(ready(Err(error))).boxed(),
            })
            .flatten_unordered(SCHEMAS_AT_ONCE)
            .boxed()
    }
}

impl fmt::Debug for UnityOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not the endpoint: it is not yet known to be free of user info.
        let Self { tables, exclude, kind, storage, endpoint: _, token } = self;
        f.debug_struct("UnityOptions")
            .field("tables", tables)
            .field("exclude", exclude)
            .field("kind", kind)
            .field("storage", &storage.keys().collect::<Vec<_>>())
            .field("token", &token.as_ref().map(|_| "…"))
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for UnityCatalog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnityCatalog").field("name", &self.name).finish_non_exhaustive()
    }
}
