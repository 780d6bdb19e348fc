use super::*;
use crate::model::kind::Kind;
use crate::model::migration::Migration;

fn kind(base_type: &str, migrations: &[(&str, &str, &str)]) -> Kind {
    let mut builder = Kind::builder("facts").column("app_id", "string").column("batch_id", base_type);
    for (description, path, type_text) in migrations {
        builder = builder.migration(Migration::builder(*description).add_column(*path, *type_text));
    }
    builder.build().unwrap()
}

fn digest(kind: &Kind) -> String {
    ChainDigest::of(kind, kind.newest()).to_string()
}

#[test]
fn the_encoding_is_pinned() {
    let kind = Kind::builder("facts")
        .required_column("app_id", "string")
        .column("payload", "struct<lsn: binary, rows: map<string, array<decimal(9,2)>>>")
        .partition_by(["app_id"])
        .property("delta.enableChangeDataFeed", "true")
        .migration(Migration::builder("a").add_column("payload.warnings", "array<string>"))
        .migration(Migration::builder("b").comment("payload", "x").table_description("y"))
        .migration(
            Migration::builder("c")
                .relax_nullability("app_id")
                .set_property("k", "v")
                .unset_property("u")
                .raises_min_version(),
        )
        .build()
        .unwrap();
    insta::assert_snapshot!(digest(&kind));
}

#[test]
fn cosmetics_do_not_count() {
    let one = kind("long", &[("a", "detail", "bigint")]);
    let other = Kind::builder("facts")
        .description("other words")
        .column("app_id", "string")
        .column("batch_id", "BIGINT")
        .migration(
            Migration::builder("mended text")
                .source("ADR 1")
                .add_commented_column("detail", "long", "mended"),
        )
        .build()
        .unwrap();
    assert_eq!(digest(&one), digest(&other));
}

#[test]
fn effects_count_and_the_first_difference_is_named() {
    let of = |kind: &Kind| ChainDigest::of(kind, kind.newest());
    let one = of(&kind("long", &[("a", "x", "long"), ("b", "y", "string")]));
    let at = |other: &Kind| one.parts_from(&of(other)).map(|v| v.get());
    assert_eq!(at(&kind("long", &[("a", "x", "long"), ("b", "y", "string")])), None);
    assert_eq!(at(&kind("integer", &[("a", "x", "long"), ("b", "y", "string")])), Some(0));
    assert_eq!(at(&kind("long", &[("a", "z", "long"), ("b", "y", "string")])), Some(1));
    assert_eq!(at(&kind("long", &[("a", "x", "long"), ("b", "y", "binary")])), Some(2));
    assert_eq!(at(&kind("long", &[("a", "x", "long")])), None, "a shorter chain is a prefix");
    let raising = Kind::builder("facts")
        .column("app_id", "string")
        .column("batch_id", "long")
        .migration(Migration::builder("a").add_column("x", "long").raises_min_version())
        .build()
        .unwrap();
    assert_eq!(at(&raising), Some(1), "the floor is an effect");
}

#[test]
fn stamps_round_trip_and_later_encodings_are_left_alone() {
    let stamp = digest(&kind("long", &[("a", "x", "long")]));
    assert_eq!(ChainDigest::from_stamp(&stamp).unwrap().unwrap().to_string(), stamp);
    assert_eq!(ChainDigest::from_stamp("2:whatever comes"), Ok(None));
    for broken in ["", "1:", "1:xyz", "1:0011223", "1:00112233,", "1:AABBCCDD", "abc", ":00112233"] {
        assert_eq!(ChainDigest::from_stamp(broken), Err(()), "{broken}");
    }
}
