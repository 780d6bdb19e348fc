//! Reads the configuration file: namespace, kinds, storage options, and where tables are found.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use toml::de::DeTable;

use crate::catalog::NamePattern;
use crate::delta::location::shown;
use crate::error::Error;
use crate::model::kind::Adopt;
use crate::model::kind_file::read_adopt;
use crate::model::toml_walk::{self, Value, Walk};
use crate::model::version::Namespace;

const KEYS: &[&str] = &["namespace", "kinds", "storage", "tables", "discover", "catalogs"];
const TABLE_KEYS: &[&str] = &["uri", "kind", "adopt", "storage"];
const DISCOVER_KEYS: &[&str] = &["root", "include", "exclude", "kind", "storage"];
const CATALOG_KEYS: &[&str] =
    &["type", "endpoint", "token", "region", "catalog_id", "tables", "exclude", "kind", "storage"];

/// What the configuration file says, with every path joined to its folder.
pub(crate) struct Config {
    /// The prefix of the stamps.
    pub(crate) namespace: Namespace,
    /// The folder of kind files; `kinds/` beside the file by default.
    pub(crate) kinds: PathBuf,
    /// Storage options of every table; secret.
    pub(crate) storage: BTreeMap<String, String>,
    /// The tables, in the order of the file.
    pub(crate) tables: Vec<TableEntry>,
    /// The walks, in the order of the file.
    pub(crate) discover: Vec<DiscoverEntry>,
    /// The catalogs, in the order of the file.
    pub(crate) catalogs: Vec<CatalogEntry>,
}

/// One `[[tables]]` entry.
pub(crate) struct TableEntry {
    /// A URL as it is written, or a path joined to the configuration's folder.
    pub(crate) uri: String,
    /// The name of its kind.
    pub(crate) kind: String,
    /// How it is taken over if it has no stamp, where that differs from its kind's way.
    pub(crate) adopt: Option<Adopt>,
    /// Its own storage options, which come before the common ones; secret.
    pub(crate) storage: BTreeMap<String, String>,
}

/// One `[[discover]]` entry.
pub(crate) struct DiscoverEntry {
    /// A URL as it is written, or a path joined to the configuration's folder.
    pub(crate) root: String,
    /// Globs for the tables' paths below the root; none means all.
    pub(crate) include: Vec<String>,
    pub(crate) exclude: Vec<String>,
    /// None: the table's own stamp says it.
    pub(crate) kind: Option<String>,
    /// Its own storage options, which come before the common ones; secret.
    pub(crate) storage: BTreeMap<String, String>,
}

/// One `[[catalogs]]` entry.
pub(crate) struct CatalogEntry {
    pub(crate) service: Service,
    pub(crate) endpoint: Option<String>,
    /// Secret.
    pub(crate) token: Option<String>,
    pub(crate) region: Option<String>,
    pub(crate) catalog_id: Option<String>,
    /// Patterns; none means all.
    pub(crate) tables: Vec<String>,
    pub(crate) exclude: Vec<String>,
    /// None: the table's own stamp says it.
    pub(crate) kind: Option<String>,
    /// Its own storage options, which come before the common ones; secret.
    pub(crate) storage: BTreeMap<String, String>,
}

/// The catalogs that are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Service {
    Glue,
    Unity,
}

/// Reads a configuration; `file` is what the error calls it, `folder` is where it lies.
///
/// In storage options, locations, and a catalog's settings a `${NAME}` stands for the variable `NAME`,
/// as `env` tells it; what a variable holds is not expanded again. Two dollars in a row stay two
/// dollars and begin nothing.
///
/// # Errors
/// `Usage`: the message counts the mistakes in its first line, then has a line
/// `file:line:column: found; wanted` for each, in the order of the text. It never holds a value of
/// a storage option.
pub(crate) fn parse(
    text: &str,
    file: &str,
    folder: &Path,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<Config, Error> {
    let (root, walk) = toml_walk::parse(text);
    let mut reader = Reader { walk, folder, env };
    let config = reader.config(&root);
    match (config, reader.walk.into_error(file)) {
        (Some(config), None) => Ok(config),
        (_, Some(error)) => Err(error),
        (None, None) => Err(Error::usage(format!("{file}: this is no configuration file"))),
    }
}

struct Reader<'t, 'e> {
    walk: Walk<'t>,
    folder: &'e Path,
    env: &'e dyn Fn(&str) -> Option<String>,
}

impl<'t> Reader<'t, '_> {
    /// None only if something was reported.
    fn config(&mut self, root: &DeTable<'t>) -> Option<Config> {
        let (mut namespace, mut named) = (None, false);
        let mut kinds = self.folder.join("kinds/");
        let (mut storage, mut tables) = (BTreeMap::new(), Vec::new());
        let (mut discover, mut catalogs) = (Vec::new(), Vec::new());
        for entry in self.walk.entries(root, KEYS) {
            match entry.key {
                "namespace" => {
                    named = true;
                    namespace = self.namespace(entry.value);
                }
                "kinds" => {
                    if let Some(path) = self.filled(entry.value, "the folder of the kind files") {
                        kinds = self.folder.join(path);
                    }
                }
                "storage" => storage = self.storage(entry.value),
                "tables" => tables = self.tables(entry.value),
                "discover" => discover = self.each(entry.value, "[[discover]]", Self::discover),
                _ => catalogs = self.each(entry.value, "[[catalogs]]", Self::catalog),
            }
        }
        if !named && !self.walk.is_broken() {
            self.walk.mistake(
                0,
                "the file has no `namespace`",
                "wanted a line such as `namespace = \"my_app\"`, the prefix of the stamps",
            );
        }
        Some(Config { namespace: namespace?, kinds, storage, tables, discover, catalogs })
    }

    fn namespace(&mut self, value: &Value<'t>) -> Option<Namespace> {
        let name = self.walk.string(value)?;
        let found = format!("`{name}` is no namespace");
        match Namespace::new(name) {
            Ok(namespace) => Some(namespace),
            Err(invalid) => {
                self.walk.mistake(value.span().start, found, invalid.wanted);
                None
            }
        }
    }

    fn tables(&mut self, value: &Value<'t>) -> Vec<TableEntry> {
        let mut tables: Vec<TableEntry> = Vec::new();
        for item in self.walk.tables(value, "[[tables]]").unwrap_or_default() {
            if let Some((table, at)) = self.table(item) {
                if tables.iter().any(|other| other.uri == table.uri) {
                    let found = format!("the table `{}` is listed twice", shown(&table.uri));
                    self.walk.mistake(at, found, "list each table once");
                }
                tables.push(table);
            }
        }
        tables
    }

    /// A table and where its location stands; none only if something was reported.
    fn table(&mut self, item: &Value<'t>) -> Option<(TableEntry, usize)> {
        let table = self.walk.table(item, "wanted a table such as `{ uri = \"…\", kind = \"…\" }`")?;
        let (mut uri, mut kind) = (None, None);
        let (mut adopt, mut storage) = (None, BTreeMap::new());
        let entries = self.walk.entries(table, TABLE_KEYS);
        let missing = ["uri", "kind"].into_iter().filter(|key| entries.iter().all(|e| e.key != *key));
        let missing: Vec<&str> = missing.collect();
        for entry in entries {
            match entry.key {
                "uri" => uri = self.uri(entry.value).map(|uri| (uri, entry.value.span().start)),
                "kind" => kind = self.filled(entry.value, "the name of the table's kind"),
                "adopt" => adopt = read_adopt(&mut self.walk, entry.value),
                _ => storage = self.storage(entry.value),
            }
        }
        if !self.walk.is_broken() {
            for key in missing {
                let found = format!("the table has no `{key}`");
                self.walk.mistake(item.span().start, found, format!("wanted a line `{key} = \"…\"`"));
            }
        }
        let (uri, at) = uri?;
        Some((TableEntry { uri, kind: kind?, adopt, storage }, at))
    }

    /// Every table of an array; those with mistakes are left out.
    fn each<T>(
        &mut self,
        value: &Value<'t>,
        header: &str,
        read: fn(&mut Self, &Value<'t>) -> Option<T>,
    ) -> Vec<T> {
        let items = self.walk.tables(value, header).unwrap_or_default();
        items.into_iter().filter_map(|item| read(self, item)).collect()
    }

    fn discover(&mut self, item: &Value<'t>) -> Option<DiscoverEntry> {
        let table = self.walk.table(item, "wanted a table such as `{ root = \"…\" }`")?;
        let (mut root, mut kind) = (None, None);
        let (mut include, mut exclude, mut storage) = (Vec::new(), Vec::new(), BTreeMap::new());
        let entries = self.walk.entries(table, DISCOVER_KEYS);
        let has_root = entries.iter().any(|e| e.key == "root");
        for entry in entries {
            match entry.key {
                "root" => root = self.uri(entry.value),
                "include" => include = self.patterns(entry.value, &check_glob),
                "exclude" => exclude = self.patterns(entry.value, &check_glob),
                "kind" => kind = self.filled(entry.value, "the name of the tables' kind"),
                _ => storage = self.storage(entry.value),
            }
        }
        if !has_root && !self.walk.is_broken() {
            let wanted = "wanted a line `root = \"…\"`: the folder to look for tables in";
            self.walk.mistake(item.span().start, "the walk has no `root`", wanted);
        }
        Some(DiscoverEntry { root: root?, include, exclude, kind, storage })
    }

    fn catalog(&mut self, item: &Value<'t>) -> Option<CatalogEntry> {
        let table = self.walk.table(item, "wanted a table such as `{ type = \"glue\" }`")?;
        let mut service = None;
        let mut read = CatalogEntry {
            service: Service::Glue,
            endpoint: None,
            token: None,
            region: None,
            catalog_id: None,
            tables: Vec::new(),
            exclude: Vec::new(),
            kind: None,
            storage: BTreeMap::new(),
        };
        let entries = self.walk.entries(table, CATALOG_KEYS);
        if let Some(entry) = entries.iter().find(|e| e.key == "type") {
            service = self.service(entry.value);
        } else if !self.walk.is_broken() {
            let wanted = "wanted a line `type = \"glue\"` or `type = \"unity\"`";
            self.walk.mistake(item.span().start, "the catalog has no `type`", wanted);
        }
        let has_endpoint = entries.iter().any(|e| e.key == "endpoint");
        let parts = if service == Some(Service::Unity) { 3 } else { 2 };
        for entry in entries {
            let at = entry.value.span().start;
            let foreign = match (service, entry.key) {
                (Some(Service::Glue), "token") => {
                    Some("glue asks for AWS credentials: give them in [catalogs.storage]")
                }
                (Some(Service::Unity), "region" | "catalog_id") => Some("leave it out: that is Glue's"),
                _ => None,
            };
            if let Some(wanted) = foreign {
                self.walk.mistake(at, format!("`{}` means nothing to this catalog", entry.key), wanted);
            }
            let check = |text: &str| check_name(text, parts);
            match entry.key {
                "type" => {}
                "endpoint" => read.endpoint = self.expanded(entry.value, "the catalog's URL"),
                "token" => read.token = self.expanded(entry.value, "a token such as `\"${UC_TOKEN}\"`"),
                "region" => read.region = self.expanded(entry.value, "a region such as `eu-central-1`"),
                "catalog_id" => read.catalog_id = self.expanded(entry.value, "the id of an account"),
                "tables" => read.tables = self.patterns(entry.value, &check),
                "exclude" => read.exclude = self.patterns(entry.value, &check),
                "kind" => read.kind = self.filled(entry.value, "the name of the tables' kind"),
                _ => read.storage = self.storage(entry.value),
            }
        }
        if service == Some(Service::Unity) && !has_endpoint && !self.walk.is_broken() {
            let wanted = "wanted a line `endpoint = \"https://…\"`";
            self.walk.mistake(item.span().start, "the catalog has no `endpoint`", wanted);
        }
        Some(CatalogEntry { service: service?, ..read })
    }

    fn service(&mut self, value: &Value<'t>) -> Option<Service> {
        let text = self.walk.string(value)?;
        match text.as_str() {
            "glue" => Some(Service::Glue),
            "unity" => Some(Service::Unity),
            other => {
                let found = format!("there is no type of catalog `{other}`");
                self.walk.mistake(value.span().start, found, "wanted `glue` or `unity`");
                None
            }
        }
    }

    /// One pattern, or several; those that are none are reported.
    fn patterns(&mut self, value: &Value<'t>, check: &dyn Fn(&str) -> Result<(), String>) -> Vec<String> {
        let found: Vec<(String, usize)> = match value.get_ref() {
            toml::de::DeValue::Array(_) => {
                let strings = self.walk.strings(value).unwrap_or_default();
                strings.into_iter().map(|(text, value)| (text, value.span().start)).collect()
            }
            _ => self.walk.string(value).into_iter().map(|text| (text, value.span().start)).collect(),
        };
        let mut patterns = Vec::new();
        for (text, at) in found {
            match check(&text) {
                Ok(()) => patterns.push(text),
                Err(why) => self.walk.mistake(at, format!("`{text}` is no pattern"), why),
            }
        }
        patterns
    }

    /// A string that says something, with its variables replaced.
    fn expanded(&mut self, value: &Value<'t>, what: &str) -> Option<String> {
        let text = self.filled(value, what)?;
        let text = self.expand(value, &text);
        if text.trim().is_empty() {
            self.walk.mistake(value.span().start, "the text is empty", format!("wanted {what}"));
            return None;
        }
        Some(text)
    }

    fn uri(&mut self, value: &Value<'t>) -> Option<String> {
        let uri = self.expanded(value, "a URL, or a path relative to this file")?;
        if uri.contains("://") {
            return Some(uri);
        }
        let path = self.folder.join(uri).into_os_string().into_string();
        path.map_err(|_| {
            self.walk.mistake(
                value.span().start,
                "the folder of this file has a name that is not UTF-8",
                "wanted a URL such as `file:///…`, or another folder",
            );
        })
        .ok()
    }

    /// A string that says something.
    fn filled(&mut self, value: &Value<'t>, what: &str) -> Option<String> {
        let text = self.walk.string(value)?;
        if text.trim().is_empty() {
            self.walk.mistake(value.span().start, "the text is empty", format!("wanted {what}"));
            return None;
        }
        Some(text)
    }

    fn storage(&mut self, value: &Value<'t>) -> BTreeMap<String, String> {
        let Some(table) = self.walk.table(value, "wanted a table of storage options") else {
            return BTreeMap::new();
        };
        let mut options = BTreeMap::new();
        for leaf in self.walk.leaves(table, "write the name in quotes", &|_, _| false) {
            if let Some(text) = self.walk.string(leaf.value) {
                options.insert(leaf.name, self.expand(leaf.value, &text));
            }
        }
        options
    }

    /// The text with every `${NAME}` replaced; what can't be replaced is reported and left out.
    fn expand(&mut self, value: &Value<'t>, text: &str) -> String {
        let mut out = String::new();
        let mut rest = text;
        while let Some(dollar) = rest.find('$') {
            out.push_str(&rest[..dollar]);
            let offset = text.len() - rest.len() + dollar;
            let at = self.walk.plain_text(value).map_or(value.span().start, |start| start + offset);
            let after = &rest[dollar + 1..];
            rest = if let Some(more) = after.strip_prefix('$') {
                out.push_str("$$");
                more
            } else if let Some(inner) = after.strip_prefix('{') {
                let Some((name, more)) = inner.split_once('}') else {
                    self.walk.mistake(at, "`${` is not closed", "wanted `${NAME}`");
                    return out;
                };
                // What is no name may be a part of a secret, so it is not repeated.
                if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
                    self.walk.mistake(at, "`${…}` holds no name of a variable", "wanted `${NAME}`");
                } else if let Some(found) = (self.env)(name) {
                    out.push_str(&found);
                } else {
                    let found = format!("the environment variable `{name}` is not set");
                    self.walk.mistake(at, found, "set it, or leave the option out");
                }
                more
            } else {
                out.push('$');
                after
            };
        }
        out.push_str(rest);
        out
    }
}

fn check_glob(text: &str) -> Result<(), String> {
    globset::Glob::new(text).map(drop).map_err(|e| format!("wanted a glob such as `**/cdc_*`: {}", e.kind()))
}

fn check_name(text: &str, parts: usize) -> Result<(), String> {
    let wanted = || format!("wanted {} parts, such as `{}`", parts, vec!["*"; parts].join("."));
    NamePattern::parse(text, parts).map(drop).map_err(|_| wanted())
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Storage options, tokens and what a variable put into a location are secret.
        let Self { namespace, kinds, storage, tables, discover, catalogs } = self;
        f.debug_struct("Config")
            .field("namespace", namespace)
            .field("kinds", kinds)
            .field("storage", &storage.keys())
            .field("tables", &tables.len())
            .field("discover", &discover.len())
            .field("catalogs", &catalogs.len())
            .finish()
    }
}

#[cfg(test)]
mod tests;
