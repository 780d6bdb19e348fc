use super::*;
use crate::model::features::Protocol;
use crate::model::migration::Migration;
use crate::model::testing::{features, namespace, table, version};

const BASE: &str = "id: long not null, payload: struct<a: long>";
const AT_2: &str = "id: long not null, payload: struct<a: long, b: string>, x: integer";

/// Base shape, then `x`, then `payload.b`, then comments alone.
fn kind() -> Kind {
    Kind::builder("facts")
        .required_column("id", "long")
        .column("payload", "struct<a: long>")
        .identified_by(["payload"])
        .migration(Migration::builder("x").add_column("x", "integer"))
        .migration(Migration::builder("b").add_column("payload.b", "string").raises_min_version())
        .migration(Migration::builder("words").comment("x", "y"))
        .build()
        .unwrap()
}

fn assessed(columns: &str, properties: &[(&str, &str)]) -> Assessment {
    assess(&namespace(), &kind(), Some(&table(columns, properties)))
}

#[test]
fn a_location_without_a_table_is_missing() {
    assert_eq!(assess(&namespace(), &kind(), None), Assessment::Missing);
}

#[test]
fn versions_are_compared_with_the_chain() {
    assert_eq!(
        assessed(BASE, &[("app.schema_version", "0")]),
        Assessment::Behind { from: version(0), to: version(3) }
    );
    assert_eq!(assessed(AT_2, &[("app.schema_version", "3")]), Assessment::Current { version: version(3) });
    assert_eq!(
        assessed(AT_2, &[("app.schema_version", "9"), ("app.min_version", "3")]),
        Assessment::Ahead { table: version(9), known: version(3) }
    );
    assert_eq!(assessed(BASE, &[]), Assessment::Unversioned);
    assert_eq!(assessed(BASE, &[("other.schema_version", "3")]), Assessment::Unversioned);
}

#[test]
fn the_first_state_that_holds_counts() {
    let mut lost = table(
        "z: long",
        &[
            ("app.schema_version", "abc"),
            ("app.kind", "other"),
            ("app.min_version", "9"),
            ("app.schema_digest", "1:00000000"),
        ],
    );
    lost.evidence = Some(version(2));
    lost.protocol = features(&["unheardOf"]);
    let ns = namespace();
    let state = |table: &TableState| assess(&ns, &kind(), Some(table));
    assert!(matches!(state(&lost), Assessment::InvalidStamp { .. }));
    lost.metadata.configuration.insert("app.schema_version".into(), "1".into());
    assert!(matches!(state(&lost), Assessment::NotThisKind { .. }));
    lost.metadata.configuration.insert("app.kind".into(), "facts".into());
    assert!(matches!(state(&lost), Assessment::TooNew { .. }));
    lost.metadata.configuration.insert("app.min_version".into(), "3".into());
    assert!(matches!(state(&lost), Assessment::Diverged { .. }));
    lost.metadata.configuration.shift_remove("app.schema_digest");
    assert!(matches!(state(&lost), Assessment::Drifted { .. }));
    lost.metadata.configuration.shift_remove("app.schema_version");
    assert!(matches!(state(&lost), Assessment::StampLost { .. }));
    lost.evidence = None;
    assert!(matches!(state(&lost), Assessment::Unsupported { .. }));
}

#[test]
fn features_matter_only_where_a_write_is_needed() {
    let mut state = table(AT_2, &[("app.schema_version", "3")]);
    state.protocol = features(&["unheardOf"]);
    assert_eq!(assess(&namespace(), &kind(), Some(&state)), Assessment::Current { version: version(3) });
    state.metadata.configuration.insert("app.schema_version".into(), "2".into());
    let found = assess(&namespace(), &kind(), Some(&state));
    assert_eq!(found, Assessment::Unsupported { features: vec!["unheardOf".to_owned()] });
}

#[test]
fn the_kind_stamp_decides_and_else_the_columns_do() {
    let found = assessed(BASE, &[("app.kind", "bronze"), ("app.schema_version", "0")]);
    assert_eq!(
        found,
        Assessment::NotThisKind { expected: "facts".into(), found: FoundKind::Stamp("bronze".into()) }
    );
    let found = assessed("id: long", &[]);
    let missing = FoundKind::WithoutColumns(vec!["payload".to_owned()]);
    assert_eq!(found, Assessment::NotThisKind { expected: "facts".into(), found: missing });
    let stamped = assessed("id: long", &[("app.kind", "facts"), ("app.schema_version", "0")]);
    assert!(matches!(stamped, Assessment::Drifted { .. }), "the stamp outweighs the columns: {stamped:?}");
}

#[test]
fn the_release_that_raised_the_floor_is_named() {
    let history = r#"[{"by":"sink 1","floor":2},{"by":"sink 2","floor":9},{"by":"sink 3"}]"#;
    let found = assessed(BASE, &[("app.min_version", "9"), ("app.schema_history", history)]);
    let Assessment::TooNew { raised_by, min_version, known } = &found else { panic!("{found:?}") };
    assert_eq!((raised_by.as_deref(), min_version.get(), known.get()), (Some("sink 2"), 9, 3));
    assert!(found.refusal().unwrap().message.contains("sink 2"));
}

#[test]
fn a_chain_that_parts_is_named_at_the_migration_also_ahead_of_us() {
    let ours = ChainDigest::of(&kind(), version(3)).to_string();
    let ahead = format!("{ours},deadbeef");
    let stamps = [("app.schema_version", "4"), ("app.schema_digest", ahead.as_str())];
    assert!(matches!(assessed(AT_2, &stamps), Assessment::Ahead { .. }));
    let mut parts: Vec<&str> = ours.trim_start_matches("1:").split(',').collect();
    parts[2] = "deadbeef";
    let other = format!("1:{}", parts.join(","));
    let found = assessed(AT_2, &[("app.schema_version", "3"), ("app.schema_digest", &other)]);
    assert_eq!(found, Assessment::Diverged { at: version(2), description: Some("b".to_owned()) });
}

#[test]
fn drift_is_what_is_missing_or_incompatible_and_nothing_else() {
    let at_3 = [("app.schema_version", "3")];
    let harmless = "ID: long, extra: date, payload: struct<b: string, a: long, more: long>, x: long";
    assert_eq!(
        assessed(harmless, &at_3),
        Assessment::Current { version: version(3) },
        "widened, relaxed, extended"
    );
    let found = assessed("id: long, payload: struct<a: long>, x: string", &at_3);
    let Assessment::Drifted { differences, .. } = &found else { panic!("{found:?}") };
    let lines: Vec<String> = differences.iter().map(Difference::text).collect();
    assert_eq!(lines, ["`payload.b` (string) is missing", "`x` is string, not integer"]);
}

#[test]
fn detection_takes_the_lowest_of_equal_versions() {
    let kind = kind().with_adopt(Adopt::Detect);
    let at = |columns: &str| adoption(&kind, &table(columns, &[])).map(|v| v.get()).map_err(|r| r.code);
    assert_eq!(at(BASE), Ok(0));
    assert_eq!(at("id: long, payload: struct<a: long>, x: integer"), Ok(1));
    assert_eq!(at(AT_2), Ok(2), "comments leave no trace");
    assert_eq!(at("id: long"), Err(ErrorCode::UnknownShape));
    let renaming = Kind::from_toml(
        "kind = \"k\"\nadopt = \"detect\"\n[columns]\na = \"long\"\n[[migrations]]\ndescription = \"r\"\n\
         destructive = true\nrename_columns = { a = \"b\" }",
    )
    .unwrap();
    let refused = adoption(&renaming, &table("a: long", &[])).unwrap_err();
    assert_eq!(refused.code, ErrorCode::Unversioned);
}

#[test]
fn adoption_from_zero_needs_the_base_shape() {
    let refused = adoption(&kind(), &table("id: string, payload: struct<a: long>", &[])).unwrap_err();
    assert_eq!(refused.code, ErrorCode::UnknownShape);
    assert!(refused.message.contains("`id` is string, not long"), "{}", refused.message);
    let kept = adoption(&kind().with_adopt(Adopt::Refuse), &table(BASE, &[])).unwrap_err();
    assert_eq!(kept.code, ErrorCode::Unversioned);
}

#[test]
fn every_refusal_says_what_to_do() {
    let protocol = Protocol { min_reader: 1, min_writer: 8, ..features(&[]) };
    let mut unsupported = table(BASE, &[]);
    unsupported.protocol = protocol;
    let mut lost = table(BASE, &[]);
    lost.evidence = Some(version(1));
    for state in [
        table(BASE, &[("app.schema_version", "-1")]),
        table("z: long", &[]),
        table(BASE, &[("app.min_version", "4")]),
        table(BASE, &[("app.schema_digest", "1:00000000")]),
        table(BASE, &[("app.schema_version", "3")]),
        unsupported,
        lost,
    ] {
        let refusal = assess(&namespace(), &kind(), Some(&state)).refusal().unwrap();
        assert!(!refusal.hint.is_empty() && !refusal.message.is_empty(), "{refusal:?}");
    }
}
