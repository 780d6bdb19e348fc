//! Which properties and features of a table a kind can give to a new one.

use std::collections::BTreeSet;

use indexmap::IndexMap;

use crate::model::features::{AtBirth, Protocol, at_birth, protocol_at_birth};
use crate::model::mapping::MAX_COLUMN_ID;
use crate::model::state::keys;
use crate::model::text::{clean, list, shorten};
use crate::model::types::Field;
use crate::model::version::Namespace;

/// Properties that say something about one table, not about its kind; prefixes end with a dot.
const OF_ONE_TABLE: [&str; 8] = [
    "delta.clusteringColumns",
    "delta.lastCommitTimestamp",
    "delta.lastUpdateVersion",
    "delta.universalFormat.",
    "clusteringColumns",
    "io.unitycatalog.",
    "ucTableId",
    "view.",
];

/// The properties of a table, by name.
#[derive(Debug, Default)]
pub(super) struct Properties {
    pub(super) kept: IndexMap<String, String>,
    pub(super) notes: Vec<String>,
}

impl Properties {
    pub(super) fn of(configuration: &IndexMap<String, String>, own: Option<&Namespace>) -> Self {
        let stamped = namespaces(configuration, own);
        let mut sorted: Vec<(&String, &String)> = configuration.iter().collect();
        sorted.sort_unstable();
        let (mut out, mut stamps) = (Self::default(), BTreeSet::new());
        for (key, value) in sorted {
            // Counted anew with the ids of a new table's columns.
            if key == MAX_COLUMN_ID {
                continue;
            }
            if let Some(namespace) = stamped.iter().find(|n| n.owns(key)) {
                stamps.insert(namespace.as_str());
            } else if let Some(why) = why_not(key, value) {
                let (key, value) = (clean(key), shorten(value, 100));
                out.notes.push(format!("property `{key}` = `{value}` is left out: {why}"));
            } else {
                out.kept.insert(key.clone(), value.clone());
            }
        }
        if !stamps.is_empty() {
            let names: Vec<&str> = stamps.into_iter().collect();
            let note =
                format!("properties of namespace {} are left out: stamps are never copied", list(&names));
            out.notes.push(note);
        }
        out
    }
}

/// Every namespace whose stamps the table carries.
fn namespaces(configuration: &IndexMap<String, String>, own: Option<&Namespace>) -> Vec<Namespace> {
    // `kind` alone is too common a word to tell a stamp by.
    let telling = [keys::SCHEMA_VERSION, keys::MIN_VERSION, keys::DIGEST, keys::HISTORY];
    let prefix = |key: &String| {
        let (prefix, last) = key.rsplit_once('.')?;
        telling.contains(&last).then(|| Namespace::new(prefix).ok())?
    };
    configuration.keys().filter_map(prefix).chain(own.cloned()).collect()
}

fn why_not(key: &str, value: &str) -> Option<String> {
    let of_one_table = |name: &str| key == name || (name.ends_with('.') && key.starts_with(name));
    if key.is_empty() {
        return Some("it has no name".to_owned());
    }
    if OF_ONE_TABLE.into_iter().any(of_one_table) {
        return Some("it is about that table alone".to_owned());
    }
    match at_birth(key, value) {
        AtBirth::Nothing | AtBirth::Gives(_) => None,
        AtBirth::Refused(feature) => {
            Some(format!("no table is born with it; it is of the table feature `{}`", clean(feature)))
        }
    }
}

/// A note on the features that the table lists and a new one would not have.
pub(super) fn features_left_out(
    protocol: &Protocol,
    columns: &[Field],
    properties: &IndexMap<String, String>,
) -> Option<String> {
    let born = protocol_at_birth(columns, properties, &[]).ok();
    let has = |feature: &str| born.as_ref().is_some_and(|p| p.has(feature));
    let listed = [&protocol.reader_features, &protocol.writer_features].into_iter().flatten().flatten();
    let lost: BTreeSet<&String> = listed.filter(|f| !has(f)).collect();
    let names: Vec<&String> = lost.into_iter().collect();
    (!names.is_empty()).then(|| {
        format!(
            "of the table's features {} left out: a new table gets the oldest protocol that will do, and more by \
             `enable_features`",
            match names.as_slice() {
                [one] => format!("{} is", list(&[one])),
                more => format!("{} are", list(more)),
            }
        )
    })
}
