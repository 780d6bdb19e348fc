use super::*;

fn problems(builder: KindBuilder) -> String {
    builder.build().unwrap_err().to_string()
}

fn base() -> KindBuilder {
    Kind::builder("facts")
        .required_column("app_id", "string")
        .column("payload", "struct<lsn: binary>")
        .column("items", "array<struct<sku: string>>")
}

#[test]
fn shapes_are_derived_from_base_and_chain() {
    let kind = base()
        .migration(
            Migration::builder("1")
                .add_column("payload.rows", "long")
                .add_column("items.element.price", "double"),
        )
        .migration(Migration::builder("2").relax_nullability("app_id").comment("payload.rows", "how many"))
        .build()
        .unwrap();
    let newest = kind.shape_at(kind.newest());
    let types: Vec<String> = newest.columns.iter().map(|f| format!("{} {}", f.name, f.data_type)).collect();
    assert_eq!(
        types,
        [
            "app_id string",
            "payload struct<lsn: binary, rows: long comment 'how many'>",
            "items array<struct<sku: string, price: double>>",
        ]
    );
    assert!(newest.columns[0].nullable);
    assert!(!kind.shape_at(SchemaVersion::new(1)).columns[0].nullable);
}

#[test]
fn the_floor_is_the_highest_raising_migration() {
    let add = |name: &str| Migration::builder(name).add_column(name, "long");
    let kind = base()
        .migration(add("a"))
        .migration(add("b").raises_min_version())
        .migration(add("c"))
        .build()
        .unwrap();
    let floor = |v| kind.floor_at(SchemaVersion::new(v)).map(MinVersion::get);
    assert_eq!([floor(0), floor(1), floor(2), floor(3)], [None, None, Some(2), Some(2)]);
}

#[test]
fn every_mistake_is_reported_at_once() {
    let text = problems(
        base()
            .column("APP_ID", "string")
            .column("n", "int64")
            .partition_by(["app", "items"])
            .identified_by(["nothing"])
            .migration(Migration::builder("1"))
            .migration(
                Migration::builder("2")
                    .add_column("payload", "string")
                    .add_column("items.price", "double")
                    .add_column("gone.x", "long")
                    .add_column("x", "struct<a: long not null>")
                    .comment("missing", "?")
                    .relax_nullability("payload")
                    .set_property("delta.enableChangeDataFeed", "true"),
            ),
    );
    insta::assert_snapshot!(text);
}

#[test]
fn a_required_column_is_refused_with_the_ways_out() {
    let mut migration = Migration::builder("1").add_column("tenant", "string");
    migration.add_columns[0].nullable = false;
    let text = problems(base().migration(migration));
    assert!(text.contains("make it nullable; or add it nullable and fill it"), "{text}");
}

#[test]
fn a_misspelled_feature_is_a_mistake_of_the_kind() {
    let text = problems(base().migration(Migration::builder("1").enable_feature("deletionVector")));
    assert!(text.contains("did you mean `deletionVectors`?"), "{text}");
    let known = base().migration(Migration::builder("1").enable_feature("rowTracking")).build();
    assert!(known.is_ok(), "what no step can enable is refused by the plan");
}

#[test]
fn data_steps_built_in_rust_are_those_of_a_file() {
    let built = Kind::builder("facts").column("a", "string").column("n", "int").migration(
        Migration::builder("data")
            .destructive()
            .enable_feature("checkConstraints")
            .update("a", "'x'", "a IS NULL")
            .retype_column("n", "string")
            .add_constraint("there", "a IS NOT NULL"),
    );
    let read = Kind::from_toml(
        "kind = \"facts\"\n[columns]\na = \"string\"\nn = \"int\"\n[[migrations]]\ndescription = \"data\"\n\
         destructive = true\nenable_features = [\"checkConstraints\"]\nretype_columns = { n = \"string\" }\n\
         add_constraints = { there = \"a IS NOT NULL\" }\n[migrations.update]\nset = { a = \"'x'\" }\n\
         where = \"a IS NULL\"\n",
    );
    assert_eq!(built.build().unwrap().migrations(), read.unwrap().migrations());
}
