//! What became of a table, from its log and from its rows.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::chain::{Chain, KIND};
use super::pod::{Diary, KNOWN};
use super::shape::{schema, widened};

/// The actions of one name in an entry.
fn actions<'a>(entry: &'a [Value], name: &str) -> Vec<&'a Value> {
    entry.iter().filter_map(|action| action.get(name)).collect()
}

/// What the stamps say, entry by entry.
#[derive(Debug, Default)]
struct Said {
    /// The digest at the end, of which every other one is the beginning.
    digest: String,
    version: usize,
    floor: u32,
    id: String,
    history: Vec<Value>,
}

/// Every entry of the log keeps what is promised; what is claimed in reports is what stands there.
pub(super) fn judge_log(chain: &Chain, entries: &[Vec<Value>], diaries: &[Diary]) {
    let mut said = Said { digest: newest_digest(entries), ..Said::default() };
    let mut reached = BTreeMap::new();
    for (at, entry) in entries.iter().enumerate() {
        let info = actions(entry, "commitInfo");
        assert_eq!(info.len(), 1, "{at}: {entry:?}");
        match actions(entry, "metaData").as_slice() {
            [] => {
                let known = info[0][KNOWN].as_u64().unwrap();
                assert!(known >= u64::from(said.floor), "{at}: release {known} wrote below {}", said.floor);
                assert!(!actions(entry, "add").is_empty(), "{at}: {entry:?}");
            }
            [metadata] => {
                assert!(actions(entry, "add").is_empty() && actions(entry, "remove").is_empty(), "{at}");
                let before = said.version;
                said = migrated(chain, at, entry, metadata, said);
                reached.insert(at as u64, (before, said.version));
            }
            _ => panic!("{at}: {entry:?}"),
        }
    }
    assert_eq!(said.version, chain.newest(), "the end");
    assert_eq!(said.floor, *chain.floors.last().unwrap(), "the end");

    let claims: Vec<_> = diaries.iter().flat_map(|d| &d.claimed).collect();
    let claimed: BTreeMap<u64, _> = claims.iter().map(|(at, versions)| (*at, versions)).collect();
    assert_eq!(claims.len(), claimed.len(), "two say that they made one commit: {claims:?}");
    assert!(claimed.keys().eq(reached.keys()), "reports say {claimed:?}, and there is {reached:?}");
    for (at, versions) in claimed {
        assert!(
            versions.is_none_or(|versions| versions == reached[&at]),
            "{at}: {versions:?}, not {reached:?}"
        );
    }
    // Each version was reached once, and none was left out.
    let steps: Vec<usize> = reached.values().flat_map(|(from, to)| from + 1..=*to).collect();
    assert_eq!(steps, (1..=chain.newest()).collect::<Vec<_>>());
    for known in diaries.iter().flat_map(|d| &d.refused) {
        assert!(*known < said.floor as usize, "release {known} was refused, and the floor never forbade it");
    }
}

fn newest_digest(entries: &[Vec<Value>]) -> String {
    let last = entries.iter().rev().flat_map(|entry| actions(entry, "metaData")).next().unwrap();
    last["configuration"]["app.schema_digest"].as_str().unwrap().to_owned()
}

/// One migrating commit after what was said before it.
fn migrated(chain: &Chain, at: usize, entry: &[Value], metadata: &Value, before: Said) -> Said {
    let configuration = metadata["configuration"].as_object().unwrap();
    let text = |key: &str| configuration.get(key).map(|v| v.as_str().unwrap());
    let number = |key: &str| text(key).map(|t| t.parse::<u32>().unwrap());
    let version = number("app.schema_version").unwrap() as usize;
    let floor = number("app.min_version").unwrap_or(0);

    assert!(at == 0 || version > before.version, "{at}: the stamp went from {} to {version}", before.version);
    assert!(floor >= before.floor, "{at}: the floor fell from {} to {floor}", before.floor);
    assert_eq!(floor, chain.floors[version], "{at}");
    assert_eq!(text("app.kind"), Some(KIND), "{at}");
    // One part for the base shape, one for each migration.
    let parts: Vec<&str> = before.digest.split(',').take(version + 1).collect();
    assert_eq!(parts.len(), version + 1, "{at}: {}", before.digest);
    assert_eq!(text("app.schema_digest"), Some(parts.join(",").as_str()), "{at}");

    let history: Vec<Value> = serde_json::from_str(text("app.schema_history").unwrap()).unwrap();
    let (last, earlier) = history.split_last().unwrap();
    assert_eq!(earlier, before.history, "{at}");
    assert_eq!(
        (last["from"].as_u64(), last["to"].as_u64()),
        (Some(before.version as u64), Some(version as u64))
    );
    let how = if at == 0 { "created" } else { "migrated" };
    assert_eq!(last["how"], how, "{at}");

    let info = actions(entry, "commitInfo")[0];
    assert_eq!(info["operation"], "MIGRATE", "{at}: {info}");
    let evidence = actions(entry, "txn");
    assert_eq!(evidence.len(), 1, "{at}");
    assert_eq!(
        (&evidence[0]["appId"], &evidence[0]["version"]),
        (&"app/facts".into(), &version.into()),
        "{at}"
    );

    let shape = &chain.shapes[version];
    let columns: Value = serde_json::from_str(metadata["schemaString"].as_str().unwrap()).unwrap();
    assert_eq!(columns, schema(&shape.columns), "{at}: the columns of version {version}");
    let properties: BTreeMap<String, String> = configuration
        .iter()
        .filter(|(key, _)| !key.starts_with("app."))
        .map(|(key, value)| (key.clone(), value.as_str().unwrap().to_owned()))
        .collect();
    assert_eq!(properties, shape.properties, "{at}");
    assert_eq!(metadata["description"].as_str(), shape.description.as_deref(), "{at}");
    let id = metadata["id"].as_str().unwrap().to_owned();
    assert!(at == 0 || id == before.id, "{at}: another table");
    Said { digest: before.digest, version, floor, id, history }
}

/// Every row that was acknowledged is there, once, and no other; NULL where its writer knew nothing.
pub(super) fn judge_rows(chain: &Chain, diaries: &[Diary], mut found: Vec<Value>) {
    let columns = &chain.shapes[chain.newest()].columns;
    let id = |row: &Value| row["id"].as_u64().unwrap();
    let rows = diaries.iter().flat_map(|d| &d.rows).map(|(_, row)| row);
    let mut wanted: Vec<Value> = rows.map(|row: &Map<String, Value>| widened(columns, row).into()).collect();
    wanted.sort_by_key(id);
    found.sort_by_key(id);
    let ids = |rows: &[Value]| rows.iter().map(id).collect::<Vec<_>>();
    assert_eq!(ids(&found), ids(&wanted), "the rows that are there, and those that were acknowledged");
    assert_eq!(ids(&wanted).iter().collect::<BTreeSet<_>>().len(), wanted.len());
    for (found, wanted) in found.iter().zip(&wanted) {
        assert_eq!(found, wanted);
    }
}
