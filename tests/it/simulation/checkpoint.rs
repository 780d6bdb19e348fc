//! Checkpoints of other programs: v2 as JSON where the table allows it, else classic.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::json;

use super::log::{self, State};
use super::world::{TABLE, World, entry_path, entry_version, hint_path};

/// Writes a checkpoint of the newest version, and the hint that names it.
pub(super) fn write(world: &mut World, state: &Arc<State>) {
    let version = state.version;
    let mut actions = state.actions();
    let (name, bytes) = if state.has_feature("v2Checkpoint") {
        actions.insert(0, json!({ "checkpointMetadata": { "version": version } }));
        let lines: Vec<String> = actions.iter().map(ToString::to_string).collect();
        let uuid = uuid::Uuid::from_u128(world.id());
        (format!("{version:020}.checkpoint.{uuid}.json"), Bytes::from(lines.join("\n") + "\n"))
    } else {
        let bytes = crate::support::checkpoint::checkpoint_bytes(&actions);
        (format!("{version:020}.checkpoint.parquet"), Bytes::from(bytes))
    };
    let path = format!("{TABLE}/_delta_log/{name}");
    world.checkpoints.insert(path.clone(), state.clone());
    world.write(path, bytes);
    world.write(hint_path(), json!({ "version": version, "size": actions.len() }).to_string().into());
}

/// The table as any reader finds it: the newest checkpoint and the entries after it. None where the
/// log has a gap or no beginning.
pub(super) fn read(world: &World) -> Option<State> {
    let newest = world.checkpoints.iter().filter(|(path, _)| world.objects.contains_key(*path));
    let newest = newest.max_by_key(|(_, state)| state.version).map(|(_, state)| State::clone(state));
    let entry = |version| world.objects.get(&entry_path(version)).map(|o| log::parse(&o.bytes));
    let mut state = match newest {
        Some(state) => state,
        None => State::first(world.state.as_ref()?.table, &entry(0)?),
    };
    while let Some(actions) = entry(state.version + 1) {
        state = state.with(state.version + 1, &actions);
    }
    let last = world.objects.keys().filter_map(|path| entry_version(path)).max();
    last.is_none_or(|last| last <= state.version).then_some(state)
}
