//! Tables of an AWS Glue data catalog.

mod ask;
mod connect;
mod fault;
mod table;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use aws_sdk_glue::types::Table;
use futures::stream::{self, BoxStream};
use futures::{Stream, StreamExt as _};
use url::Url;

use self::ask::Caller;
use self::fault::Asked;
use self::table::Verdict;
use super::names::NamePattern;
use super::{Found, Source};
use crate::delta::location::shown;
use crate::error::{Error, ErrorCode, Stage};
use crate::model::text::{clean, list};

/// Glue lets an account make few requests a second; more at once is only throttled.
const DATABASES_AT_ONCE: usize = 4;

/// Which catalog, and which of its tables.
///
/// Requests are signed with the access key of `storage`, spelled as it is for S3
/// (`aws_access_key_id`, `aws_secret_access_key`, `aws_session_token`, with or without `aws_`, in
/// any case); where there is none, with what AWS's own tools would take: the environment, the
/// profile, a web identity, the container's or the machine's role. Other ways in to S3 that
/// `storage` may hold, such as a role to assume, are for the tables alone.
///
/// The permissions that are needed: `glue:GetTables`; `glue:GetDatabases` where a pattern leaves
/// the database open; `glue:GetTable` where a pattern names one table.
///
/// Begin with `GlueOptions::default()`, and set what differs.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct GlueOptions {
    /// Patterns for tables, each of 2 parts, such as `sales.*`; none: every table.
    pub tables: Vec<String>,
    /// Patterns for tables to leave out. A database that is left out whole (`scratch.*`) is not
    /// asked for its tables.
    pub exclude: Vec<String>,
    /// The kind of every table that is found; none: the table's own stamp says it.
    pub kind: Option<String>,
    /// Storage options of every table; secret.
    pub storage: BTreeMap<String, String>,
    /// The region; none: that of `storage`, else as the environment says.
    pub region: Option<String>,
    /// The service's URL; none: as the environment says (`AWS_ENDPOINT_URL_GLUE`), else AWS itself.
    pub endpoint: Option<String>,
    /// The account whose catalog it is; none: the caller's own.
    pub catalog_id: Option<String>,
}

/// Tables of an AWS Glue data catalog.
///
/// Given are the tables whose parameters call them Delta: `spark.sql.sources.provider` where there
/// is one, else `table_type` or `classification`. Views, links to tables of another catalog, and
/// tables over the manifests of a Delta table are passed over; where a pattern names one table and
/// it is one of these, that is an error of the table.
#[derive(Debug)]
pub struct GlueCatalog {
    options: GlueOptions,
    tables: Vec<NamePattern>,
    exclude: Vec<NamePattern>,
}

/// What is asked of the catalog.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Ask {
    /// The tables of a database that a pattern names.
    Named(String),
    /// The tables of a database that was listed.
    Listed(String),
    /// One table, by database and name.
    Table(String, String),
}

impl GlueCatalog {
    /// A catalog; nothing is asked yet.
    ///
    /// # Errors
    /// [`ErrorCode::Usage`]: a pattern or the endpoint can't be used.
    ///
    /// # Examples
    /// ```
    /// use delta_migrate::catalog::{GlueCatalog, GlueOptions, Source as _};
    ///
    /// let mut options = GlueOptions::default();
    /// options.tables = vec!["sales.*".to_owned()];
    /// options.region = Some("eu-central-1".to_owned());
    /// let catalog = GlueCatalog::new(options)?;
    /// assert_eq!(catalog.name(), "glue catalog in eu-central-1, `sales.*`");
    /// # Ok::<(), delta_migrate::Error>(())
    /// ```
    pub fn new(options: GlueOptions) -> Result<Self, Error> {
        let patterns =
            |texts: &[String]| texts.iter().map(|t| NamePattern::parse(t, 2)).collect::<Result<_, _>>();
        options.endpoint.as_deref().map(check_endpoint).transpose()?;
        Ok(Self { tables: patterns(&options.tables)?, exclude: patterns(&options.exclude)?, options })
    }

    /// What to ask without a list of databases.
    fn named(&self) -> BTreeSet<Ask> {
        let asks = self.tables.iter().filter_map(|pattern| {
            // Glue keeps names in lower case.
            let database = pattern.literal(0)?.to_lowercase();
            match pattern.literal(1) {
                Some(table) if !self.is_searched(&database) => {
                    let table = table.to_lowercase();
                    (!self.is_excluded(&database, &table)).then_some(Ask::Table(database, table))
                }
                _ => (!self.is_left_out(&database)).then_some(Ask::Named(database)),
            }
        });
        asks.collect()
    }

    /// Whether a pattern leaves the database open.
    fn lists_databases(&self) -> bool {
        self.tables.is_empty() || self.tables.iter().any(|p| p.literal(0).is_none())
    }

    /// Whether a pattern that names no one table takes tables of this database.
    fn is_searched(&self, database: &str) -> bool {
        let names_one = |p: &NamePattern| p.literal(0).is_some() && p.literal(1).is_some();
        self.tables.is_empty() || self.tables.iter().any(|p| !names_one(p) && p.matches(&[database]))
    }

    /// Whether a pattern leaves out every table of this database.
    fn is_left_out(&self, database: &str) -> bool {
        let texts = self.options.exclude.iter();
        texts.zip(&self.exclude).any(|(text, p)| text.ends_with(".*") && p.matches(&[database]))
    }

    fn is_excluded(&self, database: &str, table: &str) -> bool {
        self.exclude.iter().any(|p| p.matches(&[database, table]))
    }

    fn is_meant(&self, database: &str, table: &str) -> bool {
        let is_taken = self.tables.is_empty() || self.tables.iter().any(|p| p.matches(&[database, table]));
        is_taken && !self.is_excluded(database, table)
    }

    fn all(&self, caller: Caller) -> impl Stream<Item = Result<Found, Error>> + Send + '_ {
        let caller = Arc::new(caller);
        let named = self.named();
        let listed = match self.lists_databases() {
            true => {
                let known = named.clone();
                let names = caller.databases().flat_map(|page| match page {
                    Ok(names) => stream::iter(names.into_iter().map(Ok).collect::<Vec<_>>()),
                    Err(e) => stream::iter(vec![Err(e)]),
                });
                let is_new = move |name: &String| {
                    let is_known = known.contains(&Ask::Named(name.to_lowercase()));
                    !is_known && self.is_searched(name) && !self.is_left_out(name)
                };
                names
                    .filter(move |name| std::future::ready(name.as_ref().map_or(true, &is_new)))
                    .map(|name| name.map(Ask::Listed))
                    .boxed()
            }
            false => stream::empty().boxed(),
        };
        let asks = stream::iter(named.into_iter().map(Ok)).chain(listed);
        asks.flat_map_unordered(DATABASES_AT_ONCE, move |ask| match ask {
            Ok(ask) => self.answer(&caller, ask),
            Err(e) => stream::iter([Err(e)]).boxed(),
        })
    }

    fn answer(&self, caller: &Arc<Caller>, ask: Ask) -> BoxStream<'_, Result<Found, Error>> {
        match ask {
            Ask::Table(database, name) => {
                let caller = caller.clone();
                let one = async move {
                    match table::judge(&caller.table(&database, &name).await?) {
                        Verdict::Delta { uri, columns } => Ok(self.found(uri, columns)),
                        Verdict::Nowhere => Err(no_location(&database, &name)),
                        Verdict::Other(what) => Err(no_delta(&database, &name, what)),
                    }
                };
                stream::once(one).boxed()
            }
            Ask::Named(database) => self.tables_of(caller, Asked::Named(database.clone()), database),
            Ask::Listed(database) => self.tables_of(caller, Asked::Listed(database.clone()), database),
        }
    }

    fn tables_of(
        &self,
        caller: &Caller,
        asked: Asked,
        database: String,
    ) -> BoxStream<'_, Result<Found, Error>> {
        let pages = caller.tables(asked, &database);
        pages.flat_map(move |page| stream::iter(self.found_in(&database, page))).boxed()
    }

    fn found_in(&self, database: &str, page: Result<Vec<Table>, Error>) -> Vec<Result<Found, Error>> {
        let page = match page {
            Ok(page) => page,
            Err(e) => return vec![Err(e)],
        };
        let (mut out, mut passed_over) = (Vec::new(), BTreeMap::<&str, usize>::new());
        for table in page.iter().filter(|table| self.is_meant(database, &table.name)) {
            match table::judge(table) {
                Verdict::Delta { uri, columns } => out.push(Ok(self.found(uri, columns))),
                Verdict::Nowhere => out.push(Err(no_location(database, &table.name))),
                Verdict::Other(what) => *passed_over.entry(what).or_default() += 1,
            }
        }
        let (listed, taken) = (page.len(), out.len());
        tracing::debug!(database, listed, taken, ?passed_over, "a page of a Glue database");
        out
    }

    fn found(&self, uri: String, columns: Option<Vec<String>>) -> Found {
        let GlueOptions { kind, storage, .. } = &self.options;
        Found { kind: kind.clone(), columns, ..Found::at(uri, storage.clone()) }
    }
}

impl Source for GlueCatalog {
    fn name(&self) -> String {
        let mut out = "glue catalog".to_owned();
        if let Some(id) = connect::given(self.options.catalog_id.as_deref()) {
            out.push_str(&format!(" {}", clean(id)));
        }
        if let Some(region) = connect::region(&self.options) {
            out.push_str(&format!(" in {}", clean(region)));
        }
        let endpoint = self.options.endpoint.as_deref().and_then(|text| Url::parse(text).ok());
        if let Some(host) = endpoint.as_ref().and_then(Url::host_str) {
            let port = endpoint.as_ref().and_then(Url::port).map(|p| format!(":{p}"));
            out.push_str(&format!(" at {host}{}", port.unwrap_or_default()));
        }
        if !self.options.tables.is_empty() {
            out.push_str(&format!(", {}", list(&self.options.tables)));
        }
        out
    }

    fn tables(&self) -> BoxStream<'_, Result<Found, Error>> {
        let caller = stream::once(connect::connect(&self.options));
        caller
            .flat_map(|caller| match caller {
                Ok(caller) => self.all(caller).boxed(),
                Err(e) => stream::iter([Err(e)]).boxed(),
            })
            .boxed()
    }
}

impl fmt::Debug for GlueOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { tables, exclude, kind, storage, region, endpoint, catalog_id } = self;
        f.debug_struct("GlueOptions")
            .field("tables", tables)
            .field("exclude", exclude)
            .field("kind", kind)
            .field("storage", &storage.keys().collect::<Vec<_>>())
            .field("region", region)
            .field("endpoint", &endpoint.as_deref().map(shown))
            .field("catalog_id", catalog_id)
            .finish()
    }
}

/// What errors call a table of the catalog.
fn full_name(database: &str, table: &str) -> String {
    clean(&format!("glue {database}.{table}"))
}

fn no_location(database: &str, table: &str) -> Error {
    let message = "the catalog calls it a Delta table, but has no location for it";
    Error::new(ErrorCode::NotATable, Stage::Read, message).with_table(full_name(database, table)).with_hint(
        "set the table's location in the catalog, drop the entry, or leave the table out with `exclude`",
    )
}

fn no_delta(database: &str, table: &str, what: &str) -> Error {
    Error::new(ErrorCode::NotATable, Stage::Read, format!("it is {what}, not a Delta table"))
        .with_table(full_name(database, table))
        .with_hint("take its name out of the patterns; a pattern with `*` passes over what is no Delta table")
}

fn check_endpoint(text: &str) -> Result<(), Error> {
    let wrong = |why| {
        Err(Error::usage(format!("the endpoint `{}` can't be used: {why}", shown(text)))
            .with_hint("wanted a URL such as `https://glue.eu-central-1.amazonaws.com`"))
    };
    match Url::parse(text) {
        Ok(url) if !matches!(url.scheme(), "http" | "https") || !url.has_host() => {
            wrong("it does not begin with http:// or https://")
        }
        Ok(url) if !url.username().is_empty() || url.password().is_some() => {
            Err(Error::usage("the endpoint of a Glue catalog can't hold a user or a password")
                .with_hint("set the access key in the catalog's storage options, or in the environment"))
        }
        Ok(_) => Ok(()),
        Err(_) => wrong("it is no URL"),
    }
}
