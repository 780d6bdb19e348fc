//! The kind that most tests use, and tables of it.

use std::time::Duration;

use delta_migrate::{Kind, Migrator, Namespace, StartupPolicy};
use serde_json::json;

use super::log::{Log, column, required, struct_type};

/// A chain of ten migrations with every step that this version takes.
pub(crate) const FACTS: &str = r#"
kind = "facts"
description = "One row per fact"

[columns]
id      = { type = "long", nullable = false }
code    = { type = "string", nullable = false }
payload = "struct<lsn: long>"

[[migrations]]                            # 1
description = "detail"
[migrations.add_columns]
detail = { type = "string", comment = "JSON" }

[[migrations]]                            # 2
description = "warnings inside the payload"
[migrations.add_columns]
"payload.warnings" = "array<string>"

[[migrations]]                            # 3
description = "comments"
[migrations.comments]
detail = "JSON; text before 1.0"
"payload.lsn" = "log sequence number"

[[migrations]]                            # 4
description = "code may be null"
relax_nullability = ["code"]

[[migrations]]                            # 5
description = "what the table is"
table_description = "All facts, with \"quotes\" and ü"

[[migrations]]                            # 6
description = "keep the log"
[migrations.set_properties]
"delta.logRetentionDuration" = "interval 90 days"
"owner" = "team b"

[[migrations]]                            # 7
description = "no legacy"
unset_properties = ["legacy", "never.there"]

[[migrations]]                            # 8
description = "tenant"
raises_min_version = true
[migrations.add_columns]
tenant = "string"

[[migrations]]                            # 9
description = "tags"
[migrations.add_columns]
tags = "map<string, struct<since: timestamp, by: string>>"

[[migrations]]                            # 10
description = "three levels down"
[migrations.add_columns]
"tags.value.why" = { type = "string", comment = "free text" }
score = "decimal(9,2)"
"#;

/// The kind, its chain cut after `version`, as a file.
pub(crate) fn kind_file(version: usize) -> String {
    let mut parts = FACTS.split("[[migrations]]");
    let head = parts.next().unwrap().to_owned();
    parts.take(version).fold(head, |text, part| text + "[[migrations]]" + part)
}

/// A table at version 0 of the kind, without a stamp.
pub(crate) fn facts() -> Log {
    Log::new(vec![
        required("id", "long"),
        required("code", "string"),
        column("payload", struct_type(vec![column("lsn", "long")])),
    ])
}

/// A row of version 0.
pub(crate) fn row(id: i64) -> serde_json::Value {
    json!({ "id": id, "code": format!("c{id}"), "payload": { "lsn": id * 10 } })
}

pub(crate) fn migrator(kind: &str) -> Migrator {
    migrator_of(kind, StartupPolicy::default(), Duration::from_secs(60))
}

pub(crate) fn migrator_of(kind: &str, policy: StartupPolicy, budget: Duration) -> Migrator {
    Migrator::builder(Namespace::new("app").unwrap())
        .kind(Kind::from_toml(kind).unwrap())
        .release("test 1.0")
        .policy(policy)
        .budget(budget)
        .build()
        .unwrap()
}
