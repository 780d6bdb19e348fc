//! Reads the configuration file: namespace, kinds, storage options and the list of tables.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use toml::de::DeTable;

use crate::delta::location::shown;
use crate::error::Error;
use crate::model::kind::Adopt;
use crate::model::kind_file::read_adopt;
use crate::model::toml_walk::{self, Value, Walk};
use crate::model::version::Namespace;

const KEYS: &[&str] = &["namespace", "kinds", "storage", "tables", "discover", "catalogs"];
const TABLE_KEYS: &[&str] = &["uri", "kind", "adopt", "storage"];

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

/// Reads a configuration; `file` is what the error calls it, `folder` is where it lies.
///
/// In the values of `[storage]` and `[tables.storage]` a `${NAME}` stands for the variable `NAME`, as
/// `env` tells it; what a variable holds is not expanded again. Two dollars in a row stay two dollars
/// and begin nothing.
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
                key => self.walk.mistake(
                    entry.value.span().start,
                    format!("[[{key}]] is not handled by this version"),
                    "list the tables under [[tables]]",
                ),
            }
        }
        if !named && !self.walk.is_broken() {
            self.walk.mistake(
                0,
                "the file has no `namespace`",
                "wanted a line such as `namespace = \"my_app\"`, the prefix of the stamps",
            );
        }
        Some(Config { namespace: namespace?, kinds, storage, tables })
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

    fn uri(&mut self, value: &Value<'t>) -> Option<String> {
        let uri = self.filled(value, "a URL, or a path relative to this file")?;
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

/// The keys of storage options: their values are secret.
fn keys(storage: &BTreeMap<String, String>) -> Vec<&String> {
    storage.keys().collect()
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { namespace, kinds, storage, tables } = self;
        f.debug_struct("Config")
            .field("namespace", namespace)
            .field("kinds", kinds)
            .field("storage", &keys(storage))
            .field("tables", tables)
            .finish()
    }
}

impl fmt::Debug for TableEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { uri, kind, adopt, storage } = self;
        f.debug_struct("TableEntry")
            .field("uri", uri)
            .field("kind", kind)
            .field("adopt", adopt)
            .field("storage", &keys(storage))
            .finish()
    }
}

#[cfg(test)]
mod tests;
