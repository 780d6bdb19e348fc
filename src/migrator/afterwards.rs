//! The look after a commit: whether the entry that landed counts, and in the table that was read.

use indexmap::IndexMap;

use super::Migrator;
use super::run::{Aim, changed};
use crate::delta::location::Location;
use crate::delta::read::{self, LogRead, Now};
use crate::error::{Error, ErrorCode, Stage};
use crate::model::digest::ChainDigest;
use crate::model::history;
use crate::model::state::{TableState, keys};
use crate::model::version::LogVersion;

/// Looks again at the entry that the commit at `version` was built upon.
///
/// # Errors
/// - [`ErrorCode::IdentityChanged`]: another table stands there.
/// - [`ErrorCode::OutcomeUnknown`]: the log was cleaned up behind a checkpoint that may not know of the
///   commit, or can't be read now.
pub(super) async fn check(
    migrator: &Migrator,
    aim: Aim<'_>,
    location: &Location,
    found: Option<&LogRead>,
    version: LogVersion,
    entry: &[u8],
) -> Result<(), Error> {
    let store = location.store();
    let is_gone = match found {
        Some(read) => match migrator.patiently(|| read::now(store.as_ref(), &read.tip)).await {
            Ok(Now::Other) if read.tip.is_entry() => return Err(changed().with_committed(version.get())),
            // A checkpoint may stay where later entries are cleaned up, and anybody may write it again.
            Ok(now) => now == Now::Gone || !read.tip.is_entry(),
            // After the entry stands, no failure can take it back.
            Err(error) => {
                tracing::warn!(table = location.uri(), %version, %error, "the commit landed, but could not be looked at again");
                false
            }
        },
        // The place of a table's first entry is free once more behind a checkpoint only.
        None => migrator.patiently(|| read::has_checkpoint(store.as_ref())).await.unwrap_or(false),
    };
    if !is_gone {
        return Ok(());
    }
    let evidence = aim.evidence(&migrator.namespace);
    let again = match migrator.read_for(location, evidence.as_deref()).await {
        Ok(Some(again)) => again,
        Ok(None) => return Err(changed().with_committed(version.get())),
        // A log that our entry left with a gap is another table's.
        Err(error) if error.code() == ErrorCode::CorruptLog => {
            return Err(changed().with_committed(version.get()).with_source(error));
        }
        Err(error) => {
            return Err(unclear(version, "the log can't be read now").with_source(error));
        }
    };
    // The id says little: where our entry is the newest, it is the one that we repeated.
    if let Some(read) = found {
        let cleaned_up = again.checkpoint.is_some_and(|c| c >= read.tip.log_version);
        if !cleaned_up || again.state.metadata.id != read.state.metadata.id {
            return Err(changed().with_committed(version.get()));
        }
    }
    let follows = again.checkpoint.is_none_or(|c| c < version) && again.state.log_version >= version;
    if follows || aim.is_recorded() && holds(migrator, &again.state, entry) {
        return Ok(());
    }
    // Others went on, wrote a checkpoint and cleaned up before the put: its place was free again.
    Err(unclear(version, "a checkpoint behind it may not know of it"))
}

fn unclear(version: LogVersion, why: &str) -> Error {
    let message = format!("log entry {version} was written, but the entry before it is gone, and {why}");
    Error::new(ErrorCode::OutcomeUnknown, Stage::Commit, message)
        .with_hint("run it again: it finds out whether the entry counts, and does nothing twice")
        .with_committed(version.get())
}

/// Whether the record of a table has what an entry added to it, by the same chain: another program may call
/// itself the same, and migrate in the same second.
fn holds(migrator: &Migrator, state: &TableState, entry: &[u8]) -> bool {
    let ours = entry.split(|b| *b == b'\n').find_map(|line| {
        let action: serde_json::Value = serde_json::from_slice(line).ok()?;
        let configuration = action.get("metaData")?.get("configuration")?.clone();
        serde_json::from_value::<IndexMap<String, String>>(configuration).ok()
    });
    let Some(ours) = ours else { return false };
    let theirs = &state.metadata.configuration;
    let history = migrator.namespace.property(keys::HISTORY);
    let entries = |of: &IndexMap<String, String>| history::entries(of.get(&history)?);
    let added = entries(&ours).and_then(|mut entries| entries.pop());
    let is_there = added.zip(entries(theirs)).is_some_and(|(added, theirs)| theirs.contains(&added));
    let stamp = migrator.namespace.property(keys::DIGEST);
    let digest = |of: &IndexMap<String, String>| ChainDigest::from_stamp(of.get(&stamp)?).ok()?;
    let is_other = digest(&ours).zip(digest(theirs)).and_then(|(ours, theirs)| ours.parts_from(&theirs));
    is_there && is_other.is_none()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::model::features::Protocol;
    use crate::model::state::Metadata;
    use crate::model::version::Namespace;

    fn metadata(digest: &str, at: &str) -> String {
        let entry = json!([{ "from": 0, "to": 1, "at": at, "by": "job 1", "how": "migrated" }]);
        let configuration =
            json!({ "app.schema_digest": digest, "app.schema_history": entry.to_string(), "x": "y" });
        let schema = r#"{"type":"struct","fields":[]}"#;
        let format = json!({ "provider": "parquet", "options": {} });
        json!({ "id": "a", "format": format, "schemaString": schema, "partitionColumns": [], "configuration": configuration })
            .to_string()
    }

    fn is_held(ours: &str, theirs: &str) -> bool {
        let migrator = Migrator::builder(Namespace::new("app").unwrap()).build().unwrap();
        let protocol = Protocol::parse(r#"{"minReaderVersion":1,"minWriterVersion":2}"#).unwrap();
        let state =
            TableState::new(LogVersion::new(3), protocol, Metadata::parse(theirs).unwrap(), None).unwrap();
        holds(&migrator, &state, format!("{{\"commitInfo\":{{}}}}\n{{\"metaData\":{ours}}}\n").as_bytes())
    }

    #[test]
    fn a_record_has_an_entry_only_of_the_same_chain() {
        let ours = metadata("1:00000000,11111111", "2026-01-01T00:00:00Z");
        assert!(is_held(&ours, &ours));
        assert!(is_held(&ours, &metadata("1:00000000,11111111,22222222", "2026-01-01T00:00:00Z")));
        assert!(is_held(&ours, &metadata("2:of a later release", "2026-01-01T00:00:00Z")));
        assert!(!is_held(&ours, &metadata("1:00000000,11111111", "2026-01-01T00:00:01Z")));
        assert!(!is_held(&ours, &metadata("1:00000000,33333333", "2026-01-01T00:00:00Z")));
    }
}
