#![allow(clippy::unwrap_used)]

use super::*;

fn env(name: &str) -> Option<String> {
    match name {
        "SECRET" => Some("hunter2".to_owned()),
        "NESTED" => Some("${SECRET}".to_owned()),
        _ => None,
    }
}

fn read(text: &str) -> Result<Config, Error> {
    parse(text, "delta-migrate.toml", Path::new("/lake"), &env)
}

fn mistakes(text: &str) -> String {
    read(text).unwrap_err().message().to_owned()
}

#[test]
fn the_fixture_is_read() {
    let config = read(include_str!("../../../fixtures/lake/delta-migrate.toml")).unwrap();
    assert_eq!(config.namespace.as_str(), "shop");
    assert_eq!(config.kinds, Path::new("/lake/kinds"));
    assert_eq!(config.tables.len(), 10);
    assert_eq!(config.tables[0].uri, "/lake/tables/orders_eu");
    assert_eq!(config.tables[9].kind, "customers");
    assert!(config.storage.is_empty());
}

#[test]
fn locations_are_joined_to_the_folder_unless_they_are_urls() {
    let config = read(
        r#"
        namespace = "app"
        kinds = "../kinds"
        [[tables]]
        uri = "s3://lake/facts"
        kind = "facts"
        adopt = "refuse"
        [[tables]]
        uri = "/abs/olute"
        kind = "facts"
        "#,
    )
    .unwrap();
    assert_eq!(config.kinds, Path::new("/lake/../kinds"));
    let uris: Vec<&str> = config.tables.iter().map(|t| t.uri.as_str()).collect();
    assert_eq!(uris, ["s3://lake/facts", "/abs/olute"]);
    assert_eq!((config.tables[0].adopt, config.tables[1].adopt), (Some(Adopt::Refuse), None));
}

#[test]
fn variables_are_expanded_once_in_options_locations_and_settings_of_catalogs() {
    let config = read(
        r#"
        namespace = "app"
        [storage]
        plain = "eu-central-1"
        one = "a ${SECRET} b ${SECRET}"
        "fs.s3a.key" = "${NESTED}"
        dollars = "$ $$ $${SECRET} $$${SECRET} $SECRET"
        [[tables]]
        uri = "t/${SECRET}"
        kind = "facts"
        storage = { own = "${SECRET}" }
        [[discover]]
        root = "s3://${SECRET}/bronze"
        kind = "${SECRET}"
        [[catalogs]]
        type = "unity"
        endpoint = "https://${SECRET}"
        token = "${SECRET}"
        tables = "prod.cdc.*"
        "#,
    )
    .unwrap();
    assert_eq!(config.storage["plain"], "eu-central-1");
    assert_eq!(config.storage["one"], "a hunter2 b hunter2");
    assert_eq!(config.storage["fs.s3a.key"], "${SECRET}");
    assert_eq!(config.storage["dollars"], "$ $$ $${SECRET} $$hunter2 $SECRET");
    assert_eq!(config.tables[0].storage["own"], "hunter2");
    assert_eq!(config.tables[0].uri, "/lake/t/hunter2");
    let (walk, catalog) = (&config.discover[0], &config.catalogs[0]);
    assert_eq!((walk.root.as_str(), walk.kind.as_deref()), ("s3://hunter2/bronze", Some("${SECRET}")));
    assert_eq!(catalog.endpoint.as_deref(), Some("https://hunter2"));
    assert_eq!(catalog.token.as_deref(), Some("hunter2"));
    assert_eq!(
        (catalog.service, catalog.tables.as_slice()),
        (Service::Unity, &["prod.cdc.*".to_owned()][..])
    );
}

#[test]
fn every_mistake_is_reported_with_its_place() {
    let message = mistakes(
        r#"namespace = "Delta"
kind = "kinds/"
adopt = "detect"

[storage]
region = "${AWS_REGION}"
key = "x${SECRET}y${AWS_KEY}"
open = "${SECRET"
odd = "${no name}"
retries = 3
fs.s3a.endpoint = "http://localhost"

[[tables]]
url = "tables/a"
kind = ""
adopt = "from_scratch"
[tables.storage]
token = "${TOKEN}"

[[tables]]
uri = "tables/b"
kind = "facts"

[[tables]]
uri = "tables/b"
kind = "facts"
owner = "us"

[[tables]]

[[discover]]
root = "s3://lake/bronze/"
include = ["**/cdc_*", "[a"]

[[discover]]
include = "a/*"
exclude = 7

[[catalogs]]
type = "unity"
tables = "prod.*"
token = "${UC_TOKEN}"
region = "eu-central-1"

[[catalogs]]
type = "glue"
tables = ["cdc.*", "a.b.c"]
token = "x"

[[catalogs]]
type = "hive"

[[catalogs]]
kind = "facts"
"#,
    );
    insta::assert_snapshot!(message);
}

#[test]
fn one_mistake_is_one_report() {
    for (text, wanted) in [
        (
            "",
            "1:1: the file has no `namespace`; wanted a line such as `namespace = \"my_app\"`, the prefix of the stamps",
        ),
        ("namespace = 1", "1:13: found an integer; wanted a string: put it in quotes"),
        (
            "namespace = \"a\"\n[tables]\nuri = \"t\"\nkind = \"k\"",
            "2:1: found a table; wanted an array of tables: write [[tables]] over each",
        ),
        ("namespace = \"a\"\nstorage = [1]", "2:11: found an array; wanted a table of storage options"),
        ("namespace = ", "1:13: "),
    ] {
        let message = mistakes(text);
        let start = format!("delta-migrate.toml: 1 mistake\ndelta-migrate.toml:{wanted}");
        assert!(message.starts_with(&start), "{message}");
    }
}

#[test]
fn secrets_are_never_shown() {
    let text = "namespace = \"app\"\n[storage]\nkey = \"a ${SECRET}\"\nother = \"hunter2\"\n\
                [[tables]]\nuri = \"t\"\nkind = \"k\"\nstorage = { own = \"hunter2\" }\n";
    let shown = format!("{:?} {:#?}", read(text).unwrap(), read(text).unwrap());
    assert!(shown.contains("\"key\""), "{shown}");
    assert!(!shown.contains("hunter2"), "{shown}");
    for wrong in [
        "a = hunter2",
        "a = \"hunter2",
        "a = \"hunter2\" \"hunter2\"",
        "a = { hunter2 = \"hunter2\" ",
        "a = [\"hunter2\"]",
        "a = { b = \"hunter2\" }",
        "a = \"${hunter2 \" ",
        "a = \"${hunter2 ?}\"",
        "a = \"hunter2\\q\"",
        "a = 12341234",
        "a = 2026-12-12hunter2",
    ] {
        let message = mistakes(&format!("namespace = \"app\"\n[storage]\n{wrong}\n"));
        assert!(!message.contains("hunter2") && !message.contains("1234"), "{wrong}\n{message}");
    }
}
