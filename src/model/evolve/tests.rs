#![allow(clippy::unwrap_used, clippy::panic)]

use indexmap::IndexMap;
use serde_json::json;

use super::*;
use crate::Kind;
use crate::model::testing::{features, of};

/// A table with column mapping whose only data columns these are.
fn mapped(fields: &[(&str, &str)], properties: &[(&str, &str)]) -> TableState {
    let field = |(n, (name, data_type)): (usize, &(&str, &str))| {
        let metadata = json!({
            "delta.columnMapping.id": n + 1,
            "delta.columnMapping.physicalName": format!("p{n}"),
        });
        json!({ "name": name, "type": data_type, "nullable": true, "metadata": metadata })
    };
    let fields: Vec<_> = fields.iter().enumerate().map(field).collect();
    let mut configuration: IndexMap<&str, &str> = properties.iter().copied().collect();
    configuration.insert("delta.columnMapping.mode", "name");
    let raw = json!({
        "id": "i", "format": { "provider": "parquet", "options": {} }, "partitionColumns": [],
        "schemaString": json!({ "type": "struct", "fields": fields }).to_string(),
        "configuration": configuration,
    });
    of(&raw.to_string(), features(&["columnMapping", "typeWidening"]))
}

fn migration(steps: &str) -> Vec<Step> {
    let text = format!(
        "kind = \"k\"\n[columns]\na = \"integer\"\nb = \"string\"\n[[migrations]]\ndescription = \"d\"\n\
         destructive = true\n{steps}\n"
    );
    Kind::from_toml(&text).unwrap().migrations()[0].steps.clone()
}

/// A table that a chain meets after somebody did the step by hand, and its stamp was set back.
#[test]
fn what_somebody_did_already_is_left_alone() {
    let state = mapped(&[("z", "integer"), ("c", "long")], &[("delta.columnMapping.maxColumnId", "2")]);
    let mut evolution = Evolution::of(&state);
    let changes =
        evolution.apply(&migration("rename_columns = { a = \"z\" }\ndrop_columns = [\"b\"]")).unwrap();
    assert_eq!(changes, [Change::LeaveColumn { path: "z".into() }]);
    assert_eq!(evolution.schema_text, state.metadata.schema_text);
    assert!(evolution.properties.is_empty(), "{:?}", evolution.properties);
    let error = Evolution::of(&state).apply(&migration("rename_columns = { a = \"y\" }")).unwrap_err();
    assert_eq!(error.code, ErrorCode::Drifted);
}

/// A name is never given twice, and never taken while an engine asks for it by that name.
#[test]
fn steps_of_one_migration_see_what_came_before_them() {
    let state = mapped(&[("a", "integer"), ("b", "string")], &[("delta.enableTypeWidening", "true")]);
    let steps = "rename_columns = { a = \"n\", b = \"a\" }\nwiden_types = { n = \"long\" }\nadd_columns = { b = \"date\" }\n\
                 drop_columns = [\"a\"]";
    let mut evolution = Evolution::of(&state);
    let changes = evolution.apply(&migration(steps)).unwrap();
    let names: Vec<&str> = evolution.columns().iter().map(|f| f.name.as_str()).collect();
    assert_eq!(names, ["n", "b"]);
    assert_eq!(
        changes[1..3],
        [
            Change::RenameColumn { path: "b".into(), to: "a".into() },
            Change::WidenType { path: "n".into(), type_text: "long".into(), was: "integer".into() },
        ]
    );
    assert_eq!(changes.len(), 5, "{changes:?}");
    // The new `b` is another column than the old one.
    assert!(evolution.schema_text.contains("\"delta.columnMapping.id\":3"), "{}", evolution.schema_text);
    assert_eq!(schema_from_json(&evolution.schema_text).unwrap(), evolution.columns());
}
