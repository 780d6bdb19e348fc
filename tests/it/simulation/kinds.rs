//! The chains of the simulated releases, and what a test needs to know of them without asking them.

use std::sync::OnceLock;

use serde_json::{Value, json};

use super::scenario::Chain;
use crate::support::{column, required, struct_type};

const OURS: &str = r#"
kind = "facts"
identified_by = ["id"]
[columns]
id      = { type = "long", nullable = false }
code    = "string"
payload = "struct<lsn: long>"

[[migrations]]                            # 1
description = "detail"
[migrations.add_columns]
detail = "string"

[[migrations]]                            # 2
description = "warnings inside the payload"
[migrations.add_columns]
"payload.warnings" = "array<string>"

[[migrations]]                            # 3
description = "comments"
[migrations.comments]
detail = "JSON"

[[migrations]]                            # 4
description = "tenant"
raises_min_version = true
[migrations.add_columns]
tenant = "string"

[[migrations]]                            # 5
description = "domains"
enable_features = ["domainMetadata"]
[migrations.set_properties]
"team" = "b"

[[migrations]]                            # 6
description = "tags"
[migrations.add_columns]
tags = "map<string, struct<since: timestamp>>"
"#;

pub(super) const NEWEST: u32 = 6;
/// From this version on the floor is this version.
pub(super) const RAISES: u32 = 4;
/// The version from which the other chain is another one.
const PARTS: u32 = 3;

/// The kind file of a release that knows so many migrations.
pub(super) fn kind_file(chain: Chain, known: u32) -> String {
    let text = match chain {
        Chain::Ours => OURS.to_owned(),
        Chain::Other => OURS.replace(
            "[migrations.comments]\ndetail = \"JSON\"",
            "[migrations.add_columns]\nnote = \"string\"",
        ),
    };
    let mut parts = text.split("[[migrations]]");
    let head = parts.next().unwrap().to_owned();
    parts.take(known as usize).fold(head, |text, part| text + "[[migrations]]" + part)
}

/// The fields of version 0.
pub(super) fn base_fields() -> Vec<Value> {
    vec![
        required("id", "long"),
        column("code", "string"),
        column("payload", struct_type(vec![column("lsn", "long")])),
    ]
}

/// The field that a migration of ours adds: the column that it goes into, and the field.
pub(super) fn added(version: u32) -> Option<(Option<&'static str>, Value)> {
    let strings = json!({ "type": "array", "elementType": "string", "containsNull": true });
    match version {
        1 => Some((None, column("detail", "string"))),
        2 => Some((Some("payload"), column("warnings", strings))),
        4 => Some((None, column("tenant", "string"))),
        6 => {
            let value = struct_type(vec![column("since", "timestamp")]);
            let tags =
                json!({ "type": "map", "keyType": "string", "valueType": value, "valueContainsNull": true });
            Some((None, column("tags", tags)))
        }
        _ => None,
    }
}

/// The paths of the columns that a table at a version must have.
pub(super) fn promised(chain: Chain, version: u32) -> Vec<&'static str> {
    let mut out = vec!["id", "code", "payload.lsn"];
    let later = [(1, "detail"), (2, "payload.warnings"), (4, "tenant"), (6, "tags.value.since")];
    out.extend(later.iter().filter(|(at, _)| *at <= version).map(|(_, path)| *path));
    if chain == Chain::Other && version >= PARTS {
        out.push("note");
    }
    out
}

/// What a migration over these versions may change besides adding columns; see `support::judge`.
pub(super) fn may(chain: Chain, from: u32, to: u32) -> Vec<&'static str> {
    let within = |version| from < version && version <= to;
    let mut out = Vec::new();
    if within(3) && chain == Chain::Ours {
        out.push("comment:detail");
    }
    if within(5) {
        out.extend(["protocol", "property:team"]);
    }
    out
}

static DIGESTS: OnceLock<[String; 2]> = OnceLock::new();

/// Remembers the digests of both chains at their newest versions.
pub(super) fn learn(digests: impl FnOnce() -> [String; 2]) {
    DIGESTS.get_or_init(digests);
}

/// The digest that a table of a chain has at a version.
pub(super) fn digest(chain: Chain, version: u32) -> String {
    let [ours, other] = DIGESTS.get().unwrap();
    let whole = if chain == Chain::Ours { ours } else { other };
    // The base shape's, then one a migration.
    whole.split(',').take(version as usize + 1).collect::<Vec<_>>().join(",")
}
