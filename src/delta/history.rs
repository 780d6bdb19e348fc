//! Who migrated a table when: from the commits that are left of its log, and from its own record.

use std::fmt;

use futures::{StreamExt, TryStreamExt, stream};
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt as _};
use serde::Serialize;
use serde_json::Value;

use super::location::Location;
use super::read::{self, Found};
use crate::error::{Error, ErrorCode, Stage};
use crate::model::entry::{MIGRATE, RECONCILE};
use crate::model::history::entries;
use crate::model::state::keys;
use crate::model::text::{clean, shorten};
use crate::model::version::{LogVersion, Namespace};

/// How many commits are fetched at the same time.
const IN_FLIGHT: usize = 16;

/// Who migrated a table, when.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct HistoryReport {
    /// The table's location, without credentials.
    pub uri: String,
    /// The namespace whose stamps were looked at.
    pub namespace: String,
    /// The table's own record (`<ns>.schema_history`), oldest first; it outlives log retention.
    pub record: Vec<Value>,
    /// The record's text where it is no JSON array of objects.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unreadable: Option<String>,
    /// The migrating commits that are still in the log, oldest first.
    pub log: Vec<LoggedMigration>,
}

/// The document of `history`: like every other it says which command it is from.
#[derive(Serialize)]
pub(crate) struct WithCommand {
    pub(crate) command: &'static str,
    #[serde(flatten)]
    pub(crate) history: HistoryReport,
}

/// A migrating commit in the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct LoggedMigration {
    /// The commit.
    pub log_version: LogVersion,
    /// When, in milliseconds since the epoch.
    pub timestamp: Option<i64>,
    /// The kind.
    pub kind: String,
    /// `created`, `migrated`, `adopted` or `repaired`; `reconciled` for columns that were added without
    /// a version.
    pub how: String,
    /// The version before.
    pub from: String,
    /// The version afterwards.
    pub to: String,
    /// Who migrated.
    pub release: String,
    /// What each migration was for.
    pub migrations: Vec<String>,
    /// Why a repair was needed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The columns that `reconcile` added, each with its type.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<String>,
}

/// Reads the record and every commit that the log still holds.
pub(crate) async fn read_history(namespace: &Namespace, location: &Location) -> Result<HistoryReport, Error> {
    let store = location.store();
    let found = read::read(store.as_ref(), None, &|_| true, None).await?;
    let Found::Table(found) = found else {
        return Err(
            Error::new(ErrorCode::Missing, Stage::Read, "there is no table").with_hint("check the location")
        );
    };
    let record = found.state.metadata.configuration.get(&namespace.property(keys::HISTORY));
    let (record, unreadable) = match record.map(|text| (text, entries(text))) {
        None => (Vec::new(), None),
        Some((_, Some(entries))) => (entries, None),
        Some((text, None)) => (Vec::new(), Some(text.clone())),
    };
    let versions = commit_versions(store.as_ref()).await?;
    let log: Vec<Option<LoggedMigration>> = stream::iter(versions)
        .map(|version| logged(store.as_ref(), namespace, version))
        .buffered(IN_FLIGHT)
        .try_collect()
        .await?;
    Ok(HistoryReport {
        uri: location.uri().to_owned(),
        namespace: namespace.to_string(),
        record,
        unreadable,
        log: log.into_iter().flatten().collect(),
    })
}

async fn commit_versions(store: &dyn ObjectStore) -> Result<Vec<u64>, Error> {
    let prefix = Path::from("_delta_log");
    let version = |path: &Path| -> Option<u64> {
        let name = path.filename()?.strip_suffix(".json")?;
        (name.len() == 20).then(|| name.parse().ok()).flatten()
    };
    let mut versions: Vec<u64> = store
        .list(Some(&prefix))
        .try_filter_map(|meta| {
            let inside = meta.location.parts().count() == 2;
            let found = if inside { version(&meta.location) } else { None };
            async move { Ok(found) }
        })
        .try_collect()
        .await
        .map_err(failed)?;
    versions.sort_unstable();
    Ok(versions)
}

fn failed(source: object_store::Error) -> Error {
    Error::new(ErrorCode::Storage, Stage::Read, "the log can't be read").with_source(source)
}

/// The migration in a commit, if there is one of the namespace.
async fn logged(
    store: &dyn ObjectStore,
    namespace: &Namespace,
    version: u64,
) -> Result<Option<LoggedMigration>, Error> {
    let path = Path::from(format!("_delta_log/{version:020}.json"));
    let bytes = match store.get(&path).await {
        Ok(found) => found.bytes().await.map_err(failed)?,
        // Cleaned up since the listing: it is no longer in the log.
        Err(object_store::Error::NotFound { .. }) => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    let operations = [MIGRATE, RECONCILE].map(|operation| format!("\"{operation}\""));
    let is_ours =
        |line: &&[u8]| operations.iter().any(|o| line.windows(o.len()).any(|window| window == o.as_bytes()));
    let lines = bytes.split(|b| *b == b'\n').filter(is_ours);
    Ok(lines
        .filter_map(|l| serde_json::from_slice(l).ok())
        .find_map(|l| of_commit_info(&l, namespace, version)))
}

fn of_commit_info(line: &Value, namespace: &Namespace, version: u64) -> Option<LoggedMigration> {
    let info = line.get("commitInfo")?;
    let parameters = info.get("operationParameters")?;
    let text = |key: &str| parameters.get(key).and_then(Value::as_str).map(str::to_owned);
    let operation = info.get("operation")?.as_str()?;
    if ![MIGRATE, RECONCILE].contains(&operation) || text("namespace")? != namespace.as_str() {
        return None;
    }
    let list = |key: &str| -> Vec<Value> {
        serde_json::from_str(&text(key).unwrap_or_default()).unwrap_or_default()
    };
    let how = match operation {
        RECONCILE => Some("reconciled".to_owned()),
        _ => text("how"),
    };
    let column = |c: &Value| Some(format!("{} {}", c.get("path")?.as_str()?, c.get("type")?.as_str()?));
    let described = |m: &Value| {
        let description = m.get("description").and_then(Value::as_str)?;
        Some(format!("{}: {description}", m.get("version")?))
    };
    Some(LoggedMigration {
        log_version: LogVersion::new(version),
        timestamp: info.get("timestamp").and_then(Value::as_i64),
        kind: text("kind").unwrap_or_default(),
        how: how.unwrap_or_default(),
        from: text("from").unwrap_or_default(),
        to: text("to").unwrap_or_default(),
        release: text("release").unwrap_or_default(),
        migrations: list("migrations").iter().filter_map(described).collect(),
        why: text("why"),
        columns: list("columns").iter().filter_map(column).collect(),
    })
}

impl fmt::Display for HistoryReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { uri, namespace, record, log, unreadable: _ } = self;
        writeln!(f, "{uri} (namespace {namespace})")?;
        writeln!(f, "\nThe table's own record, which outlives log retention:")?;
        if record.is_empty() {
            let why = self.unreadable.as_ref().map_or_else(
                || "none in this namespace".to_owned(),
                |text| format!("it can't be read: `{}`", shorten(text, 60)),
            );
            writeln!(f, "  {why}")?;
        }
        for entry in record {
            let text = |key: &str| match entry.get(key) {
                Some(Value::String(text)) => shorten(text, 300),
                Some(other) => shorten(&other.to_string(), 300),
                None => "?".to_owned(),
            };
            write!(
                f,
                "  {}  {:<8}  version {} → {}  by {}",
                text("at"),
                text("how"),
                text("from"),
                text("to"),
                text("by")
            )?;
            if entry.get("floor").is_some() {
                write!(f, "  (floor {})", text("floor"))?;
            }
            if entry.get("why").is_some() {
                write!(f, "  why: {}", text("why"))?;
            }
            writeln!(f)?;
        }
        writeln!(f, "\nCommits of this namespace that are still in the log:")?;
        if log.is_empty() {
            writeln!(f, "  none")?;
        }
        for commit in log {
            let LoggedMigration {
                log_version,
                timestamp,
                how,
                from,
                to,
                release,
                migrations,
                why,
                kind,
                columns,
            } = commit;
            let at = timestamp.and_then(chrono::DateTime::from_timestamp_millis);
            let at = at.map_or("?".to_owned(), |at| at.to_rfc3339_opts(chrono::SecondsFormat::Secs, true));
            let kind = if kind.is_empty() { String::new() } else { format!(" as {kind}") };
            let versions = match (from.as_str(), to.as_str()) {
                ("", "") => String::new(),
                (from, to) => format!(", version {from} → {to}"),
            };
            writeln!(f, "  {at}  log version {log_version}: {how}{kind}{versions}, by {release}")?;
            for column in columns {
                writeln!(f, "      + {}", clean(column))?;
            }
            for migration in migrations {
                writeln!(f, "      {}", clean(migration))?;
            }
            if let Some(why) = why {
                writeln!(f, "      why: {}", clean(why))?;
            }
        }
        Ok(())
    }
}
