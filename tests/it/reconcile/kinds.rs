//! Tables with stamps, and kinds from schemas.

use super::*;

/// The namespace's properties.
fn stamps(table: &Table) -> Vec<(String, Value)> {
    let metadata = table.metadata();
    let all = metadata["configuration"].as_object().unwrap();
    all.iter().filter(|(key, _)| key.starts_with("app.")).map(|(k, v)| (k.clone(), v.clone())).collect()
}

#[tokio::test]
async fn stamps_stay_byte_for_byte_and_apply_finds_the_columns_there() {
    let table = facts().table();
    let old = migrator(&crate::support::kind_file(4));
    let location = table.location();
    old.migrate("facts", &location, Default::default(), Default::default()).await.unwrap();
    let before = stamps(&table);
    assert_eq!(before.len(), 4, "{before:?}");
    let new = migrator(FACTS);
    let desired = Desired::of_kind(new.kind("facts").unwrap());
    let done = new.reconcile(&desired, &location).await.unwrap();
    assert_eq!(paths(done.changes()), ["tenant", "tags", "score"]);
    assert_eq!((done.report().from.unwrap().get(), done.report().to.unwrap().get()), (4, 4));
    assert_eq!(stamps(&table), before);
    assert!(table.commit(2).iter().all(|action| action.get("txn").is_none()));
    assert!(new.reconcile(&desired, &location).await.unwrap().changes().is_empty());
    // The release that shipped version 4 goes on, and the chain is carried out later.
    let status = old.status("facts", &location).await.unwrap();
    assert_eq!(status.outcome.as_str(), "current");
    let report = new.migrate("facts", &location, Default::default(), Default::default()).await.unwrap();
    assert_eq!((report.from.unwrap().get(), report.to.unwrap().get()), (4, 10));
    let left: Vec<_> = done.diff().left.iter().map(|d| serde_json::to_value(d).unwrap()).collect();
    assert!(left.iter().any(|d| d["difference"] == "property" && d["key"] == "owner"), "{left:?}");
    let diff = new.diff(&desired, &location).await.unwrap();
    assert!(diff.is_match(), "{diff:?}");
}

#[tokio::test]
async fn refused_tables_keep_every_byte() {
    let kind = migrator(FACTS);
    let of_kind = Desired::of_kind(kind.kind("facts").unwrap());
    let mut required = facts();
    required.schema["fields"].as_array_mut().unwrap().remove(1);
    for (log, desired, code) in [
        (facts().property("app.kind", "events"), &of_kind, "not_this_kind"),
        (facts().property("app.schema_version", "x"), &of_kind, "invalid_stamp"),
        (facts().stamped(10).property("app.min_version", "11"), &of_kind, "too_new"),
        (facts().stamped(1), &desired(), "not_this_kind"),
        (facts().features(&["catalogManaged"], &["catalogManaged"]), &desired(), "unsupported_feature"),
        (required, &desired(), "required_column"),
    ] {
        let table = log.table();
        let (before, store) = (table.files(), TrickStore::counting());
        let error = kind.reconcile(desired, &table.location_in(&store)).await.unwrap_err();
        assert_eq!(error.code().as_str(), code, "{error}");
        assert!(error.hint().is_some_and(|hint| hint.len() > 20), "{error:?}");
        assert!(table.files() == before && puts(&store) == 0, "{code}");
        let diff = kind.diff(desired, &table.location()).await.unwrap();
        assert_eq!(diff.refusal.unwrap().code, code);
    }
}

#[tokio::test]
async fn a_commit_that_fell_behind_a_checkpoint_is_not_taken_for_recorded() {
    // The table has a record; a reconciliation adds nothing to it, so that it proves nothing.
    let table = Arc::new(facts().table());
    migrator(&crate::support::kind_file(4))
        .migrate("facts", &table.location(), Default::default(), Default::default())
        .await
        .unwrap();
    let other = table.clone();
    let store = TrickStore::on_put(move |n| {
        if n == 0 {
            // Others went on, wrote a checkpoint and cleaned up: the place is free, and nobody reads it.
            other.commit_nothing();
            crate::races::clean_up(&other);
        }
        Trick::Pass
    });
    let new = migrator(FACTS);
    let desired = Desired::of_kind(new.kind("facts").unwrap());
    let error = new.reconcile(&desired, &table.location_in(&store)).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::OutcomeUnknown, "{error}");
}

#[test]
fn a_kind_takes_its_base_shape_from_a_schema() {
    let kind = Kind::builder("facts").columns_from(&schema()).build().unwrap();
    let text = "kind = \"facts\"\n[columns]\nid = { type = \"long\", nullable = false }\n\
                code = { type = \"string\", nullable = false }\npayload = \"struct<lsn: long, rows: integer>\"\n\
                tenant = { type = \"string\", comment = \"who\" }\n";
    assert_eq!(kind, Kind::from_toml(text).unwrap());
    // After columns that were written down, and with names that need quoting.
    let odd = Schema::new(vec![Field::new(
        "a b",
        DataType::Struct(Fields::from(vec![
            Field::new("x.y`z", DataType::Date32, false)
                .with_metadata([("comment".to_owned(), "it's \\ \"q\"".to_owned())].into()),
        ])),
        true,
    )]);
    let kind = Kind::builder("facts").column("first", "long").columns_from(&odd).build().unwrap();
    assert!(kind.matches_newest(&odd).is_err());
    let kind = Kind::builder("facts").columns_from(&odd).build().unwrap();
    kind.assert_matches_newest(&odd);
}

#[test]
fn what_delta_cant_hold_is_a_mistake_with_its_column() {
    let time = DataType::Time64(deltalake::arrow::datatypes::TimeUnit::Microsecond);
    let schema = Schema::new(vec![
        Field::new("fine", DataType::Int64, true),
        Field::new("at", time.clone(), true),
        Field::new("none", DataType::Null, true),
        Field::new("deep", DataType::Struct(Fields::from(vec![Field::new("t", time, true)])), true),
        Field::new("Fine", DataType::Int64, true),
    ]);
    let error = Kind::builder("facts").columns_from(&schema).build().unwrap_err();
    assert_eq!(error.code(), ErrorCode::Usage);
    for named in [
        "`at` is of Arrow type",
        "`none` is of Arrow type Null",
        "`deep.t` is of",
        "`Fine` stands beside `fine`",
    ] {
        assert!(error.message().contains(named), "{named}: {error}");
    }
    assert_eq!(error.message().lines().count(), 5, "{error}");
    let error = Desired::schema(&schema).unwrap_err();
    assert_eq!(error.code(), ErrorCode::Usage);
    assert!(error.message().contains("`Fine` stands beside `fine`"), "{error}");
    let mut deep = DataType::Int64;
    for _ in 0..400 {
        deep = DataType::Struct(Fields::from(vec![Field::new("f", deep, true)]));
    }
    let deep = Schema::new(vec![Field::new("d", deep, true)]);
    let error = Desired::schema(&deep).unwrap_err();
    assert_eq!(error.message(), "`d` is nested deeper than 100 levels");
}

#[test]
fn a_schema_that_grew_fails_the_test_with_the_migration_to_add() {
    let base = Kind::builder("facts").columns_from(&schema()).build().unwrap();
    base.assert_matches_newest(&schema());
    let mut fields: Vec<Field> = schema().fields().iter().map(|f| f.as_ref().clone()).collect();
    fields.push(Field::new("score", DataType::Decimal128(9, 2), true));
    fields[0] = Field::new("id", DataType::Utf8, false);
    let grown = Schema::new(fields);
    let error = base.matches_newest(&grown).unwrap_err();
    assert_eq!(error.code(), ErrorCode::Usage);
    assert_eq!(
        error.message(),
        "kind `facts` at version 0 is not the schema\n  \
         `id` is of type long in the kind, string here; another type is `retype_columns`, which rewrites the table; \
         or add a column of another name\n\
         append this to the chain:\n\n\
         [[migrations]]  # 1\ndescription = \"adds score\"\n[migrations.add_columns]\nscore = \"decimal(9,2)\"\n"
    );
    let panicked = std::panic::catch_unwind(|| base.assert_matches_newest(&grown)).unwrap_err();
    assert_eq!(panicked.downcast_ref::<String>().unwrap(), error.message());
}
