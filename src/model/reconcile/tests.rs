mod applied;

use serde_json::Value;

use super::*;
use crate::model::entry::{Moment, entry};
use crate::model::kind::Kind;
use crate::model::plan::Content;
use crate::model::state::{Metadata, keys};
use crate::model::testing::{features, namespace, of, table, version};
use crate::model::types::parse_type;

fn columns(text: &str) -> Vec<Field> {
    match parse_type(&format!("struct<{text}>")) {
        Ok(DataType::Struct(fields)) => fields,
        other => panic!("{text}: {other:?}"),
    }
}

fn schema(text: &str) -> Desired {
    Desired::of_columns(columns(text))
}

fn planned(desired: &Desired, state: &TableState) -> Plan {
    reconcile_plan(&namespace(), desired, Some(state)).unwrap()
}

fn refused(desired: &Desired, state: &TableState) -> Refusal {
    let refusal = reconcile_plan(&namespace(), desired, Some(state)).unwrap_err();
    let told = schema_diff(&namespace(), desired, state).refusal.unwrap();
    assert_eq!(told.code, refusal.code.as_str(), "`diff` tells what `reconcile` refuses");
    refusal
}

fn added_by(plan: &Plan) -> Vec<String> {
    let line = |change: &Change| match change {
        Change::AddColumn { path, type_text, .. } => format!("{path} {type_text}"),
        other => panic!("{other:?}"),
    };
    let listed: Vec<String> = plan.diff.as_ref().unwrap().adds.iter().map(line).collect();
    assert_eq!(listed, plan.changes().map(line).collect::<Vec<_>>(), "what is listed is what is done");
    listed
}

fn left_by(plan: &Plan) -> Vec<(DifferenceKind, String)> {
    let left = &plan.diff.as_ref().unwrap().left;
    left.iter().map(|d| (d.difference, d.path.clone().or(d.key.clone()).unwrap_or_default())).collect()
}

/// The actions of the plan's one commit.
fn actions(plan: &Plan, state: &TableState) -> Vec<Value> {
    let moment = Moment {
        millis: 5,
        in_commit_timestamp: 6,
        at: "1970-01-01T00:00:00Z".into(),
        commit_id: "c".into(),
        table_id: "t".into(),
        release: "r".into(),
    };
    let bytes = entry(plan, &plan.commits[0], Some(state), &moment, None).unwrap();
    String::from_utf8(bytes).unwrap().lines().map(|l| serde_json::from_str(l).unwrap()).collect()
}

/// The table after the plan's commit.
fn after(plan: &Plan, state: &TableState) -> TableState {
    let action = actions(plan, state).into_iter().find_map(|mut a| a.get_mut("metaData").map(Value::take));
    let metadata = Metadata::parse(&action.unwrap().to_string()).unwrap();
    TableState::new(state.log_version.next(), state.protocol.clone(), metadata, None).unwrap()
}

#[test]
fn what_is_missing_and_nullable_is_added_at_any_depth() {
    let state = table(
        "id: long, s: struct<a: long>, l: array<struct<x: long>>, m: map<string, struct<k: long>>",
        &[],
    );
    let wanted = schema(
        "id: long, s: struct<a: long, b: string>, l: array<struct<x: long, y: date>>, \
         m: map<string, struct<k: long, v: struct<deep: binary>>>, t: string comment 'tenant'",
    );
    let plan = planned(&wanted, &state);
    assert_eq!(
        added_by(&plan),
        ["s.b string", "l.element.y date", "m.value.v struct<deep: binary>", "t string"]
    );
    assert_eq!(left_by(&plan), []);
    assert_eq!((plan.mode(), plan.kind()), (Mode::MetadataOnly, ""));
    let state = after(&plan, &state);
    assert_eq!(
        state.columns,
        columns(
            "id: long, s: struct<a: long, b: string>, l: array<struct<x: long, y: date>>, \
         m: map<string, struct<k: long, v: struct<deep: binary>>>, t: string comment 'tenant'"
        )
    );
    let second = planned(&wanted, &state);
    assert!(second.is_empty() && second.mode() == Mode::NoChange && added_by(&second).is_empty());
}

#[test]
fn everything_else_is_reported_and_left() {
    let state = table(
        "a: long, b: string not null, c: string, d: long comment 'x', m: map<string, long>, user_name: string",
        &[],
    );
    let wanted = schema(
        "a: string, b: string, c: string not null, d: long comment 'y', m: map<long, long>, username: string, e: date",
    );
    let plan = planned(&wanted, &state);
    assert_eq!(added_by(&plan), ["e date"]);
    let wanted_left = [
        (DifferenceKind::Type, "a"),
        (DifferenceKind::Nullability, "b"),
        (DifferenceKind::Nullability, "c"),
        (DifferenceKind::Comment, "d"),
        (DifferenceKind::Type, "m.key"),
        (DifferenceKind::RenamedColumn, "user_name"),
    ];
    assert_eq!(left_by(&plan), wanted_left.map(|(kind, at)| (kind, at.to_owned())));
    let now = after(&plan, &state);
    assert_eq!(now.columns[..6], state.columns[..], "what was there is as it was");
    let second = planned(&wanted, &now);
    assert!(second.is_empty());
    assert_eq!(left_by(&second), left_by(&plan), "and is told on every run");
}

#[test]
fn further_columns_stay_and_letter_case_is_no_difference() {
    let state = table("ID: long, theirs: string", &[]);
    let plan = planned(&schema("id: long, ours: string"), &state);
    // At the same place, of the same type: two programs that each add a column.
    assert_eq!(added_by(&plan), ["ours string"]);
    assert_eq!(left_by(&plan), [(DifferenceKind::ExtraColumn, "theirs".to_owned())]);
    let diff = SchemaDiff { adds: Vec::new(), ..plan.diff.unwrap() };
    assert!(diff.is_empty() && diff.is_match());
}

#[test]
fn a_likely_rename_is_added_only_if_somebody_says_that_it_is_none() {
    let state = table("id: long, value: long", &[]);
    let wanted = schema("id: long, value_2: long");
    let plan = planned(&wanted, &state);
    assert!(plan.is_empty(), "{:?}", added_by(&plan));
    assert!(plan.diff.unwrap().left[0].text.contains("`--add value_2`"));
    let plan = planned(&wanted.clone().adding("value_2").unwrap(), &state);
    assert_eq!(added_by(&plan), ["value_2 long"]);
    assert_eq!(left_by(&plan), [(DifferenceKind::ExtraColumn, "value".to_owned())]);
    assert_eq!(wanted.adding("value_3").unwrap_err().code(), ErrorCode::Usage);
}

#[test]
fn a_required_column_is_refused_before_anything() {
    let state = table("id: long, s: struct<a: long>", &[]);
    for (text, named) in [
        ("id: long, fine: string, must: long not null", "`must` (long)"),
        ("id: long, fine: string, s: struct<a: long, must: long not null>", "`s.must` (long)"),
        ("id_2: long not null", "`id_2` (long)"),
    ] {
        let refusal = refused(&schema(text), &state);
        assert_eq!(refusal.code, ErrorCode::RequiredColumn, "{text}");
        assert!(refusal.message.contains(named), "{}", refusal.message);
    }
}

#[test]
fn a_new_struct_is_nullable_inside_and_the_difference_is_told() {
    let state = table("id: long", &[]);
    let wanted = schema("id: long, s: struct<a: long not null, l: array<long not null>>");
    let plan = planned(&wanted, &state);
    assert_eq!(added_by(&plan), ["s struct<a: long, l: array<long>>"]);
    let at = |path: &str| (DifferenceKind::Nullability, path.to_owned());
    assert_eq!(left_by(&plan), [at("s.a"), at("s.l.element")]);
    assert_eq!(left_by(&planned(&wanted, &after(&plan, &state))), left_by(&plan));
}

#[test]
fn what_no_column_can_be_of_is_told_and_a_column_of_nulls_fits_any() {
    let void = |name: &str| Field::nullable(name, DataType::Primitive(Primitive::Void));
    let empty = Field::nullable("e", DataType::Struct(Vec::new()));
    let wanted = Desired::of_columns(vec![void("id"), void("n"), empty]);
    let plan = planned(&wanted, &table("id: long", &[]));
    assert!(plan.is_empty());
    let at = |path: &str| (DifferenceKind::UnaddableColumn, path.to_owned());
    assert_eq!(left_by(&plan), [at("n"), at("e")]);
}

#[test]
fn the_commit_touches_no_stamp() {
    let stamps = [
        ("app.schema_version", "1"),
        ("app.min_version", "1"),
        ("app.kind", "facts"),
        ("app.schema_history", "[{\"to\":1}]"),
        ("app.more", "x"),
        ("other.kind", "y"),
    ];
    let kind = Kind::from_toml(
        "kind = \"facts\"\n[columns]\nid = \"long\"\n[[migrations]]\ndescription = \"a\"\nadd_columns = { a = \"string\" }\n\
         [[migrations]]\ndescription = \"b\"\nadd_columns = { b = \"string\" }\n",
    );
    let desired = Desired::of_kind(&kind.unwrap());
    let state = table("id: long, a: string", &stamps);
    let plan = planned(&desired, &state);
    assert_eq!(added_by(&plan), ["b string"]);
    assert!(plan.warnings.iter().any(|w| w.contains("1 migration of kind `facts`")), "{:?}", plan.warnings);
    let actions = actions(&plan, &state);
    let names: Vec<&String> = actions.iter().flat_map(|a| a.as_object().unwrap().keys()).collect();
    assert_eq!(names, ["commitInfo", "metaData"]);
    let info = &actions[0]["commitInfo"];
    assert_eq!(info["operation"], RECONCILED);
    let parameters = serde_json::json!({
        "namespace": "app", "kind": "facts", "columns": "[{\"path\":\"b\",\"type\":\"string\"}]", "release": "r",
    });
    assert_eq!(info["operationParameters"], parameters);
    let mut wanted: Value = serde_json::from_str(state.metadata.raw.as_deref().unwrap()).unwrap();
    wanted["schemaString"] = actions[1]["metaData"]["schemaString"].clone();
    assert_eq!(actions[1]["metaData"], wanted, "but for the schema all is as it was");
    let history = namespace().property(keys::HISTORY);
    assert_eq!(after(&plan, &state).metadata.configuration[&history], "[{\"to\":1}]");
}

const RECONCILED: &str = "RECONCILE";

#[test]
fn a_table_of_another_kind_and_unreadable_stamps_are_refused() {
    let kind = Kind::builder("facts").column("id", "long").column("new", "long").build().unwrap();
    let of_kind = Desired::of_kind(&kind);
    let of_schema = schema("id: long, new: long");
    for (desired, stamps, code) in [
        (&of_kind, &[("app.kind", "events")][..], ErrorCode::NotThisKind),
        (&of_kind, &[("app.schema_version", "x")], ErrorCode::InvalidStamp),
        (&of_kind, &[("app.min_version", "1")], ErrorCode::TooNew),
        (&of_kind, &[("app.schema_version", "0"), ("app.schema_digest", "1:00000000")], ErrorCode::Diverged),
        (&of_schema, &[("app.kind", "facts")], ErrorCode::NotThisKind),
        (&of_schema, &[("app.schema_version", "0")], ErrorCode::NotThisKind),
        (&of_schema, &[("app.schema_version", "-1")], ErrorCode::InvalidStamp),
        (&of_schema, &[("app.min_version", "1")], ErrorCode::TooNew),
    ] {
        let refusal = refused(desired, &table("id: long", stamps));
        assert_eq!(refusal.code, code, "{stamps:?}: {refusal:?}");
    }
    let missing = reconcile_plan(&namespace(), &of_schema, None).unwrap_err();
    assert_eq!(missing.code, ErrorCode::Missing);
    let gate = Kind::builder("facts").column("id", "long").column("new", "long").identified_by(["new"]);
    let desired = Desired::of_kind(&gate.build().unwrap());
    assert_eq!(refused(&desired, &table("id: long", &[])).code, ErrorCode::NotThisKind);
    // Other programs' stamps are no stamps here.
    let foreign = table("id: long", &[("other.kind", "x"), ("other.schema_version", "7")]);
    assert_eq!(added_by(&planned(&of_schema, &foreign)), ["new long"]);
}

#[test]
fn features_matter_where_something_is_written_alone() {
    let raw = table("id: long", &[]).metadata.raw.unwrap();
    let state = of(&raw, features(&["catalogManaged"]));
    assert!(planned(&schema("id: long"), &state).is_empty());
    assert_eq!(refused(&schema("id: long, a: long"), &state).code, ErrorCode::UnsupportedFeature);
    let state = table("id: long", &[]);
    let refusal = refused(&schema("id: long, at: timestamp_ntz, b: long"), &state);
    assert_eq!(refusal.code, ErrorCode::UnsupportedFeature);
    assert!(refusal.hint.contains("never upgrades a protocol"), "{}", refusal.hint);
    assert_eq!(refused(&schema("id: long, `a b`: long"), &state).code, ErrorCode::InvalidName);
    let state = of(&raw, features(&["timestampNtz"]));
    assert_eq!(added_by(&planned(&schema("id: long, at: timestamp_ntz"), &state)), ["at timestamp_ntz"]);
}

#[test]
fn what_a_kind_says_of_its_tables_is_reported() {
    let kind = Kind::from_toml(
        r#"
        kind = "facts"
        description = "all facts"
        partition_by = ["day"]
        [columns]
        id = "long"
        day = "date"
        [properties]
        owner = "team a"
        "delta.appendOnly" = "true"
        [[migrations]]
        description = "more"
        enable_features = ["timestampNtz"]
        [migrations.add_columns]
        a = "string"
        [migrations.add_constraints]
        positive = "id > 0"
        "#,
    );
    let desired = Desired::of_kind(&kind.unwrap());
    let plan = planned(&desired, &table("id: long", &[("owner", "team b")]));
    assert_eq!(added_by(&plan), ["a string"], "a partition column can't be added later");
    let left = [
        (DifferenceKind::Partitioning, "day"),
        (DifferenceKind::Partitioning, ""),
        (DifferenceKind::Description, ""),
        (DifferenceKind::Property, "owner"),
        (DifferenceKind::Property, "delta.appendOnly"),
        (DifferenceKind::Feature, "timestampNtz"),
        (DifferenceKind::Feature, "checkConstraints"),
        (DifferenceKind::Constraint, "positive"),
    ];
    assert_eq!(left_by(&plan), left.map(|(kind, at)| (kind, at.to_owned())));
}

#[test]
fn a_table_that_drifted_lost_its_stamp_or_is_ahead_gets_what_it_lacks() {
    let kind = Kind::builder("facts").column("id", "long").column("a", "long").build().unwrap();
    let desired = Desired::of_kind(&kind);
    let stamped = |version: &'static str| [("app.kind", "facts"), ("app.schema_version", version)];
    let plan = planned(&desired, &table("id: long", &stamped("0")));
    assert_eq!((plan.changes().count(), plan.from()), (1, version(0)));
    let plan = planned(&desired, &table("id: long", &stamped("4")));
    assert_eq!((plan.changes().count(), plan.from()), (1, version(4)));
    let plan = planned(&desired, &table("id: long, a: long", &stamped("4")));
    assert!(plan.is_empty());
    let lost = TableState { evidence: Some(version(1)), ..table("id: long", &[]) };
    assert_eq!(planned(&desired, &lost).changes().count(), 1);
}

#[test]
fn fields_of_mapped_tables_get_ids() {
    let raw = serde_json::json!({
        "id": "i", "format": { "provider": "parquet", "options": {} }, "partitionColumns": [],
        "schemaString": serde_json::json!({ "type": "struct", "fields": [{
            "name": "id", "type": "long", "nullable": true,
            "metadata": { "delta.columnMapping.id": 4, "delta.columnMapping.physicalName": "p" },
        }]}).to_string(),
        "configuration": { "delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "9" },
    });
    let state = of(&raw.to_string(), features(&["columnMapping"]));
    let plan = planned(&schema("id: long, s: struct<a: long>, `a b`: long"), &state);
    let now = after(&plan, &state);
    assert_eq!(now.metadata.configuration["delta.columnMapping.maxColumnId"], "12");
    let ids: Vec<&str> = now.metadata.schema_text.split("columnMapping.id\":").skip(1).collect();
    let mut ids: Vec<&str> = ids.iter().filter_map(|text| text.split([',', '}']).next()).collect();
    ids.sort_by_key(|id| id.parse::<u32>().unwrap());
    assert_eq!(ids, ["4", "10", "11", "12"]);
    assert!(matches!(plan.commits[0].content, Content::Evolve(_)));
}
