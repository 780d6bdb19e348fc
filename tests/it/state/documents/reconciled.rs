//! Tables that are compared with a schema, and with a kind, in every way in which they can differ.

use std::fs::File;

use deltalake::arrow::datatypes::{DataType, Field, Schema};
use deltalake::arrow::ipc::writer::FileWriter;
use serde_json::{Value, json};

use super::entries;
use crate::state::seen::{HISTORY, MANY, Seen};
use crate::support::command::on;
use crate::support::{Log, Table, column, required, run};

const KIND: &str = r#"
kind = "facts"
description = "all facts"
partition_by = ["day"]
[columns]
id = "string"
day = "date"
[properties]
owner = "team a"
"delta.appendOnly" = "true"
[[migrations]]
description = "more"
enable_features = ["timestampNtz"]
[migrations.add_columns]
said = { type = "string", comment = "what" }
plain = "string"
[migrations.add_constraints]
positive = "id > 0"
"#;

pub(super) fn see(seen: &mut Seen) {
    let table = Log::new(vec![column("id", "long")]).property("owner", "team b").table();
    let mut report = Value::Null;
    for args in [&["diff"][..], &["reconcile"]] {
        report = done(seen, &table, on(&table, KIND, &[args, &[table.arg()]].concat()).json());
    }
    assert_eq!(report["outcome"], "reconciled", "{report}");
    seen.add(HISTORY, &on(&table, KIND, &["history", table.arg()]).json());

    let mut said = column("said", "string");
    said["metadata"] = json!({ "comment": "this" });
    let log = Log::new(vec![said, column("value", "long"), required("must", "long"), column("more", "date")])
        .features(&[], &["inCommitTimestamp", "rowTracking", "domainMetadata"])
        .property("delta.enableInCommitTimestamps", "true")
        .property("delta.rowTracking.materializedRowIdColumnName", "_row-id")
        .property("delta.rowTracking.materializedRowCommitVersionColumnName", "_row-version");
    let comment = [("comment".to_owned(), "that".to_owned())].into();
    let field = |name: &str, data_type| Field::new(name, data_type, true);
    let said = field("said", DataType::Utf8).with_metadata(comment);
    let mut fields = vec![
        said,
        field("value_2", DataType::Int64),
        field("must", DataType::Int64),
        field("nothing", DataType::Null),
        field("new", DataType::Boolean),
    ];
    let timed = log.table();
    let mut first = timed.commit(0);
    first[0]["commitInfo"]["inCommitTimestamp"] = 1.into();
    let text: String = first.iter().map(|a| format!("{a}\n")).collect();
    std::fs::write(timed.log_file(0), text).unwrap();
    assert_eq!(with_schema(seen, &timed, &fields)["outcome"], "reconciled");
    fields.push(Field::new("needed", DataType::Int64, false));
    let refused = with_schema(seen, &timed, &fields);
    assert_eq!(refused["error"]["code"], "required_column", "{refused}");
}

fn with_schema(seen: &mut Seen, table: &Table, fields: &[Field]) -> Value {
    let schema = Schema::new(fields.to_vec());
    FileWriter::try_new(File::create(table.beside("a.arrow")).unwrap(), &schema).unwrap().finish().unwrap();
    let args = ["reconcile", "facts", "--schema", "a.arrow", "--namespace", "app", "--format", "json"];
    done(seen, table, run(&table.beside(""), &args).json())
}

/// What a command said, and what it left in the log.
fn done(seen: &mut Seen, table: &Table, document: Value) -> Value {
    seen.add(MANY, &document);
    seen.add_log(&entries(table.path()), "app");
    document["tables"][0].clone()
}
