//! How a table stands to a release, worked out from the README alone.

use serde_json::Value;

use super::kinds;
use super::log::State;
use super::scenario::Chain;

/// The assessment's name; where several hold, the first of the README's list.
pub(super) fn assess(state: Option<&State>, known: u32, chain: Chain) -> &'static str {
    let Some(state) = state else { return "missing" };
    let number = |key: &str| state.property(key).map(str::parse::<u32>);
    let version = number("app.schema_version");
    let floor = number("app.min_version");
    if matches!(version, Some(Err(_))) || matches!(floor, Some(Err(_))) {
        return "invalid_stamp";
    }
    let (version, floor) = (version.and_then(Result::ok), floor.and_then(Result::ok));
    let schema = state.schema();
    let other = match state.property("app.kind") {
        Some(kind) => kind != "facts",
        None => !has(&schema, "id"),
    };
    if other {
        return "not_this_kind";
    }
    if floor.is_some_and(|floor| floor > known) {
        return "too_new";
    }
    let ours = kinds::digest(chain, known);
    let same = |digest: &str| digest.split(',').zip(ours.split(',')).all(|(a, b)| a == b);
    if !state.property("app.schema_digest").is_none_or(same) {
        return "diverged";
    }
    let lacks = |version| kinds::promised(chain, version).iter().any(|path| !has(&schema, path));
    let pending = match version {
        None if state.txns.contains_key("app/facts") => return "stamp_lost",
        None => "unversioned",
        Some(version) if lacks(version.min(known)) => return "drifted",
        Some(version) if version > known => return "ahead",
        Some(version) if version == known => return "current",
        Some(_) => "behind",
    };
    if state.has_feature("somethingNew") { "unsupported" } else { pending }
}

/// Every name that there is.
pub(super) const ASSESSMENTS: [&str; 12] = [
    "missing",
    "invalid_stamp",
    "not_this_kind",
    "too_new",
    "diverged",
    "unversioned",
    "stamp_lost",
    "drifted",
    "unsupported",
    "ahead",
    "behind",
    "current",
];

/// Whether a release may write to a table that stands so.
pub(super) fn is_pending(assessment: &str) -> bool {
    matches!(assessment, "missing" | "unversioned" | "behind")
}

fn has(schema: &Value, path: &str) -> bool {
    let mut data_type = schema;
    for step in path.split('.') {
        if step == "value" {
            data_type = &data_type["valueType"];
            continue;
        }
        let field =
            data_type["fields"].as_array().and_then(|fields| fields.iter().find(|f| f["name"] == step));
        let Some(field) = field else { return false };
        data_type = &field["type"];
    }
    true
}
