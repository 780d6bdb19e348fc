mod duties;

use super::*;
use crate::model::entry::{Moment, entry};
use crate::model::migration::Migration;
use crate::model::testing::{features, namespace, table, version};

fn kind() -> Kind {
    Kind::builder("facts")
        .description("rows")
        .required_column("id", "long")
        .property("delta.enableChangeDataFeed", "true")
        .migration(Migration::builder("one").add_commented_column("a", "string", "A"))
        .migration(Migration::builder("two").add_column("b", "struct<c: long>").raises_min_version())
        .migration(
            Migration::builder("three").relax_nullability("id").set_property("k", "v").table_description("d"),
        )
        .build()
        .unwrap()
}

fn planned(state: &TableState, target: Target) -> Result<Plan, Refusal> {
    plan(&namespace(), &kind(), Some(state), target)
}

fn moment() -> Moment {
    Moment {
        millis: 1_764_543_600_000,
        in_commit_timestamp: 1_764_543_600_001,
        at: "2025-11-30T23:00:00Z".into(),
        commit_id: "commit-id".into(),
        table_id: "new-table-id".into(),
        release: "sink 1.4.0".into(),
    }
}

fn lines(plan: &Plan, state: Option<&TableState>) -> String {
    String::from_utf8(entry(plan, &plan.commits[0], state, &moment(), None).unwrap()).unwrap()
}

#[test]
fn all_pending_migrations_are_one_commit() {
    let state = table("id: long not null", &[("app.schema_version", "0"), ("other", "x")]);
    let made = planned(&state, Target::Newest).unwrap();
    assert_eq!(
        (made.from.get(), made.to.get(), made.mode, made.commits.len()),
        (0, 3, Mode::MetadataOnly, 1)
    );
    insta::assert_snapshot!(lines(&made, Some(&state)).replace(env!("CARGO_PKG_VERSION"), "VERSION"));
}

#[test]
fn a_missing_table_is_born_at_the_target_with_the_protocol_it_needs() {
    let made = plan(&namespace(), &kind(), None, Target::Newest).unwrap();
    assert_eq!((made.mode, made.to.get()), (Mode::Create, 3));
    insta::assert_snapshot!(lines(&made, None).replace(env!("CARGO_PKG_VERSION"), "VERSION"));
    let older = plan(&namespace(), &kind(), None, Target::Version(version(1))).unwrap();
    let text = lines(&older, None);
    assert!(text.contains(r#""app.schema_version":"1""#) && !text.contains("min_version"), "{text}");
}

#[test]
fn the_floor_is_the_greater_of_the_tables_and_the_chains() {
    let floor = |stamps: &[(&str, &str)], target| {
        let commit = planned(&table("id: long", stamps), target).unwrap().commits.remove(0);
        (commit.floor.map(MinVersion::get), commit.floor_changes)
    };
    let at_0 = ("app.schema_version", "0");
    assert_eq!(floor(&[at_0], Target::Newest), (Some(2), true));
    assert_eq!(floor(&[at_0, ("app.min_version", "3")], Target::Newest), (Some(3), false));
    assert_eq!(floor(&[at_0], Target::Version(version(1))), (None, false));
    assert_eq!(floor(&[at_0], Target::BelowFloor), (None, false));
}

#[test]
fn targets_stop_early_and_never_go_back() {
    let reach = |stamp: &str, columns: &str, target| {
        planned(&table(columns, &[("app.schema_version", stamp)]), target)
            .map(|p| (p.to.get(), p.commits.len()))
    };
    assert_eq!(reach("0", "id: long", Target::Version(version(2))), Ok((2, 1)));
    assert_eq!(reach("0", "id: long", Target::BelowFloor), Ok((1, 1)));
    assert_eq!(reach("1", "id: long, a: string", Target::BelowFloor), Ok((1, 0)));
    assert_eq!(reach("1", "id: long, a: string", Target::Version(version(0))), Ok((1, 0)));
    let beyond = reach("0", "id: long", Target::Version(version(4))).unwrap_err();
    assert_eq!(beyond.code, ErrorCode::Usage);
}

#[test]
fn what_is_there_already_is_left_alone_or_refused() {
    let stamped = |columns: &str| table(columns, &[("app.schema_version", "0")]);
    let made = planned(&stamped("id: long, a: string, b: struct<c: long, d: date>"), Target::Newest).unwrap();
    let changes: Vec<&Change> = made.commits[0].migrations.iter().flat_map(|m| &m.changes).collect();
    assert_eq!(changes[0], &Change::LeaveColumn { path: "a".into() });
    assert_eq!(changes[1], &Change::LeaveColumn { path: "b".into() });
    assert!(
        !lines(&made, Some(&stamped("id: long, a: string, b: struct<c: long, d: date>")))
            .contains("\\\"A\\\"")
    );
    for columns in ["id: long, a: long", "id: long, a: string not null", "id: long, b: struct<d: long>"] {
        assert_eq!(
            planned(&stamped(columns), Target::Newest).unwrap_err().code,
            ErrorCode::TypeConflict,
            "{columns}"
        );
    }
}

#[test]
fn a_name_that_differs_in_case_alone_is_refused() {
    let state = table("id: long, A: string", &[("app.schema_version", "0")]);
    assert_eq!(planned(&state, Target::Newest).unwrap_err().code, ErrorCode::InvalidName);
}

#[test]
fn names_that_the_table_can_not_take_are_refused() {
    let adding = |name: &str, properties: &[(&str, &str)]| {
        let kind =
            Kind::builder("k").migration(Migration::builder("m").add_column(name, "struct<x: long>")).build();
        plan(&namespace(), &kind.unwrap(), Some(&table("id: long", properties)), Target::Newest)
            .map_err(|r| r.code)
    };
    for name in ["a b", "a,b", "a;b", "a{b", "a}b", "a(b", "a)b", "a=b", "a\tb", "a\nb"] {
        assert_eq!(adding(name, &[]).unwrap_err(), ErrorCode::InvalidName, "{name}");
    }
    assert!(adding("_change_type", &[]).is_ok());
    let feed = [("delta.enableChangeDataFeed", "true")];
    assert_eq!(adding("_Commit_Version", &feed).unwrap_err(), ErrorCode::InvalidName);
    let nested = Kind::builder("k").migration(Migration::builder("m").add_column("n", "struct<`a b`: long>"));
    let nested = plan(&namespace(), &nested.build().unwrap(), Some(&table("id: long", &[])), Target::Newest);
    assert_eq!(nested.unwrap_err().code, ErrorCode::InvalidName);
}

#[test]
fn types_that_need_a_feature_are_refused_without_it() {
    let kind =
        Kind::builder("k").migration(Migration::builder("m").add_column("t", "map<string, timestamp_ntz>"));
    let kind = kind.build().unwrap();
    let mut state = table("id: long", &[]);
    let refused = plan(&namespace(), &kind, Some(&state), Target::Newest).unwrap_err();
    assert_eq!(refused.code, ErrorCode::UnsupportedFeature);
    assert!(refused.message.contains("timestampNtz"), "{}", refused.message);
    state.protocol = features(&["timestampNtz"]);
    assert!(plan(&namespace(), &kind, Some(&state), Target::Newest).is_ok());
}

#[test]
fn a_field_inside_a_map_is_warned_of_and_one_of_that_name_is_not() {
    let warned = |columns: &str, path: &str| {
        let kind = Kind::builder("k").column(path.split('.').next().unwrap(), columns);
        let kind = kind.migration(Migration::builder("m").add_column(path, "long")).build().unwrap();
        let state = table(&format!("m: {columns}"), &[]);
        let made = plan(&namespace(), &kind, Some(&state), Target::Newest).unwrap();
        made.warnings.iter().any(|w| w.contains("inside a map"))
    };
    assert!(warned("map<string, struct<a: long>>", "m.value.b"));
    assert!(warned("array<map<string, struct<a: long>>>", "m.element.value.b"));
    assert!(!warned("struct<value: struct<a: long>>", "m.value.b"));
}

#[test]
fn a_history_that_can_not_be_read_is_not_replaced_silently() {
    let state = table("id: long", &[("app.schema_version", "0"), ("app.schema_history", "not json")]);
    assert_eq!(planned(&state, Target::Newest).unwrap_err().code, ErrorCode::InvalidStamp);
    let restamp = plan_repair(&namespace(), &kind(), Some(&state), Repair::Restamp(version(0)), "w").unwrap();
    assert!(restamp.warnings.iter().any(|w| w.contains("history")), "{:?}", restamp.warnings);
}

#[test]
fn a_kind_without_columns_creates_nothing() {
    let kind = Kind::builder("k").migration(Migration::builder("m").raises_min_version()).build().unwrap();
    assert_eq!(plan(&namespace(), &kind, None, Target::Newest).unwrap_err().code, ErrorCode::UnknownShape);
}

#[test]
fn repairs_fit_the_state_they_are_for() {
    let ns = namespace();
    let repair = |state: &TableState, repair| plan_repair(&ns, &kind(), Some(state), repair, "why");
    let drifted = table("id: long", &[("app.schema_version", "2"), ("app.min_version", "2")]);
    let made = repair(&drifted, Repair::ReaddColumns).unwrap();
    assert_eq!((made.from.get(), made.to.get(), made.commits[0].how), (2, 2, How::Repaired));
    assert_eq!(made.commits[0].migrations[0].changes.len(), 2);
    let retyped = table("id: long, a: long, b: struct<c: long>", &[("app.schema_version", "2")]);
    assert_eq!(repair(&retyped, Repair::ReaddColumns).unwrap_err().code, ErrorCode::Drifted);
    assert_eq!(repair(&drifted, Repair::Restamp(version(2))).unwrap_err().code, ErrorCode::UnknownShape);
    let raised = table("id: long", &[("app.schema_version", "0"), ("app.min_version", "99")]);
    assert_eq!(repair(&raised, Repair::Restamp(version(0))).unwrap_err().code, ErrorCode::TooNew);
    let lowered = repair(&raised, Repair::LowerFloor(MinVersion::new(1))).unwrap();
    assert_eq!(
        (lowered.commits[0].floor, lowered.commits[0].digest.as_ref()),
        (Some(MinVersion::new(1)), None)
    );
    assert_eq!(repair(&raised, Repair::LowerFloor(MinVersion::new(99))).unwrap_err().code, ErrorCode::Usage);
    let mut floor_only = table("id: long", &[("app.min_version", "99")]);
    let lower = Repair::LowerFloor(MinVersion::new(1));
    assert_eq!(repair(&floor_only, lower).unwrap_err().code, ErrorCode::Unversioned);
    floor_only.evidence = Some(version(2));
    assert_eq!(repair(&floor_only, lower).unwrap_err().code, ErrorCode::StampLost);
    let other = table("id: long", &[("app.kind", "other"), ("app.schema_version", "x")]);
    assert_eq!(repair(&other, Repair::Restamp(version(0))).unwrap_err().code, ErrorCode::NotThisKind);
    let both = table("id: long", &[("app.min_version", "99"), ("app.schema_version", "x")]);
    assert_eq!(repair(&both, Repair::Restamp(version(0))).unwrap_err().code, ErrorCode::TooNew);
    let unreadable = table("id: long", &[("app.min_version", "abc"), ("app.schema_version", "0")]);
    let made = repair(&unreadable, Repair::Restamp(version(0))).unwrap();
    assert_eq!(made.commits[0].floor, Some(MinVersion::new(0)), "what can't be read does not stay");
}

#[test]
fn columns_are_added_again_only_where_a_stamp_promises_them() {
    let known = Kind::builder("facts").column("id", "long").identified_by(["id"]).build().unwrap();
    let readd = |state: &TableState, kind: &Kind| {
        plan_repair(&namespace(), kind, Some(state), Repair::ReaddColumns, "why").map_err(|r| r.code)
    };
    assert_eq!(readd(&table("id: long", &[]), &kind()).unwrap_err(), ErrorCode::Unversioned);
    let stranger = table("other: long", &[("app.schema_version", "0"), ("app.kind", "facts")]);
    assert_eq!(readd(&stranger, &known).unwrap_err(), ErrorCode::NotThisKind, "the kind stamp may be wrong");
}

#[test]
fn a_baseline_is_for_tables_without_a_stamp() {
    let at = |state: &TableState, n| plan_baseline(&namespace(), &kind(), Some(state), version(n));
    let made = at(&table("id: long, a: string", &[]), 1).unwrap();
    assert_eq!((made.to.get(), made.commits[0].how, made.commits[0].floor), (1, How::Adopted, None));
    assert_eq!(at(&table("id: long", &[]), 1).unwrap_err().code, ErrorCode::UnknownShape);
    assert!(at(&table("id: long", &[("app.schema_version", "0")]), 0).unwrap().is_empty());
    assert_eq!(
        at(&table("id: long", &[("app.schema_version", "0")]), 1).unwrap_err().code,
        ErrorCode::Diverged
    );
    let mut lost = table("id: long", &[]);
    lost.evidence = Some(version(1));
    assert_eq!(at(&lost, 0).unwrap_err().code, ErrorCode::StampLost);
}
