//! What a program that links the library can write down and look at.

use std::sync::Arc;

use delta_migrate::catalog::TableList;
use delta_migrate::deltalake::DeltaTable;
use delta_migrate::{Batch, Change, Location, Plan, Stores, Target};

use crate::support::{FACTS, Table, facts, kind_file, migrator};

async fn plan(table: &Table, kind: &str) -> Plan {
    let location = Location::new(table.arg(), Default::default()).unwrap();
    migrator(kind).plan("facts", &location, Target::Newest).await.unwrap()
}

#[tokio::test]
async fn a_plan_shows_what_it_changes() {
    let plan = plan(&facts().table(), &kind_file(4)).await;
    let shown: Vec<String> = plan
        .changes()
        .map(|change| match change {
            Change::AddColumn { path, type_text, .. } => format!("+ {path} {type_text}"),
            Change::Comment { path, .. } => format!("# {path}"),
            Change::RelaxNullability { path } => format!("? {path}"),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(
        shown,
        ["+ detail string", "+ payload.warnings array<string>", "# detail", "# payload.lsn", "? code"]
    );
}

#[tokio::test]
async fn the_plan_of_a_creation_changes_nothing_that_is_there() {
    let plan = plan(&Table::missing(), FACTS).await;
    assert!(!plan.is_empty());
    assert_eq!(plan.changes().count(), 0);
}

#[test]
fn a_batch_shows_its_sources_and_no_secret() {
    let stores = Arc::new(Stores::new(3));
    let secret = [("aws_secret_access_key".to_owned(), "hunter2".to_owned())];
    let found = delta_migrate::catalog::Found::at("s3://lake/t", secret.into());
    let batch = Batch::new(Arc::new(migrator(FACTS)), stores).source(TableList::new(vec![found]));
    let shown = format!("{batch:?}");
    assert!(shown.contains("list of tables") && shown.contains("\"facts\""), "{shown}");
    assert!(!shown.contains("hunter2"), "{shown}");
}

#[tokio::test]
async fn the_table_that_is_handed_out_is_of_the_deltalake_that_is_re_exported() {
    let location = Location::new("memory:///facts", Default::default()).unwrap();
    let table: DeltaTable = migrator(FACTS).open_at("facts", &location).await.unwrap().into_table();
    assert_eq!(table.version(), Some(0));
}

/// As a program wrote it for 0.1.0.
#[test]
#[allow(deprecated)]
fn what_is_deprecated_still_works() {
    use delta_migrate::{How, InvalidStamp};
    assert_eq!(serde_json::to_string(&How::Created).unwrap(), "\"created\"");
    let InvalidStamp { property, value, wanted } = InvalidStamp {
        property: "app.schema_version".to_owned(),
        value: "x".to_owned(),
        wanted: "wanted a whole number",
    };
    assert_eq!([property.as_str(), &value, wanted], ["app.schema_version", "x", "wanted a whole number"]);
}
