#![allow(clippy::unwrap_used, clippy::panic)]

use super::*;
use crate::model::migration::Step;

/// The example of product.md, §2.
const EXAMPLE: &str = r#"kind = "facts"
description = "One row per micro-batch"
partition_by = ["app_id"]
identified_by = ["app_id", "batch_id"]   # columns that only a table of this kind has

[columns]                                # base shape, in order
app_id   = { type = "string", nullable = false, comment = "Stream that wrote the row" }
batch_id = "long"
payload  = "struct<lsn: binary, rows: long>"

[properties]                             # at birth; feature-enabling ones bring the protocol they need
"delta.enableChangeDataFeed" = "true"

[[migrations]]                           # 1
description = "detail of an event row"
[migrations.add_columns]
detail = { type = "string", comment = "JSON" }
"payload.warnings" = "array<string>"     # nested: parent must be a struct

[[migrations]]                           # 2
description = "comments only"
source = "ADR 0023, amendment 8"
[migrations.comments]
detail = "JSON; text before 1.0"

[[migrations]]                           # 3
description = "tenant, filled in"
raises_min_version = true                # older releases would miswrite the rows
[migrations.add_columns]
tenant = "string"
[migrations.update]                      # data step
set = { tenant = "split_part(app_id, '.', 1)" }
where = "tenant IS NULL"                 # required, and false for a row once it is set
"#;

fn mistakes(text: &str) -> String {
    read(text, "kinds/facts.toml").unwrap_err().message().to_owned()
}

/// The mistakes of a text that has a name already, without the file's name before them.
fn places(rest: &str) -> Vec<String> {
    let message = mistakes(&format!("kind = \"facts\"\n{rest}"));
    message.lines().skip(1).map(|line| line.replacen("kinds/facts.toml:", "", 1)).collect()
}

fn shape(kind: &Kind) -> Vec<String> {
    let newest = kind.shape_at(kind.newest());
    newest.columns.iter().map(|f| format!("{} {}", f.name, f.data_type)).collect()
}

#[test]
fn the_example_is_read_whole() {
    let kind = read(EXAMPLE, "kinds/facts.toml").unwrap();
    assert_eq!((kind.name(), kind.description()), ("facts", Some("One row per micro-batch")));
    assert_eq!(kind.partition_by(), ["app_id"]);
    assert_eq!(
        kind.identified_by().iter().map(ToString::to_string).collect::<Vec<_>>(),
        ["app_id", "batch_id"]
    );
    assert_eq!(kind.properties()["delta.enableChangeDataFeed"], "true");
    assert!(!kind.columns()[0].nullable);
    assert_eq!(kind.columns()[0].comment.as_deref(), Some("Stream that wrote the row"));
    assert_eq!(
        shape(&kind),
        [
            "app_id string",
            "batch_id long",
            "payload struct<lsn: binary, rows: long, warnings: array<string>>",
            "detail string",
            "tenant string",
        ]
    );
    let migrations = kind.migrations();
    assert_eq!(migrations[1].source(), Some("ADR 0023, amendment 8"));
    let raising: Vec<bool> = migrations.iter().map(|m| m.raises_min_version()).collect();
    assert_eq!(raising, [false, false, true]);
    let Step::Update { set, predicate } = &migrations[2].steps[1] else { panic!("{:?}", migrations[2]) };
    assert_eq!(set["tenant"], "split_part(app_id, '.', 1)");
    assert_eq!(predicate, "tenant IS NULL");
}

#[test]
fn every_key_of_a_migration_is_read_into_its_step() {
    let text = r#"
kind = "all"
adopt = "detect"
[columns]
a = "int"
b = "int"
c = { type = "long", nullable = false }
d = "string"
[[migrations]]
description = "everything"
min_version_waived = "nobody writes yet"
destructive = true
drop_constraints = ["positive"]
enable_features = ["typeWidening"]
rename_columns = { a = "x" }
widen_types = { b = "long" }
relax_nullability = ["c"]
add_columns = { e = "date" }
comments = { e = "the day" }
table_description = "all of it"
set_properties = { "p.q" = "1" }
unset_properties = ["r"]
update = { set = { e = "current_date()" }, where = "e IS NULL" }
set_defaults = { e = "current_date()" }
retype_columns = { c = "string" }
add_constraints = { "b.c" = "b > 0" }
drop_columns = ["d"]
"#;
    let kind = read(text, "all.toml").unwrap();
    let steps: Vec<&str> = kind.migrations()[0].steps.iter().map(Step::name).collect();
    let keys: Vec<&str> = migration::KEYS.iter().copied().filter(|k| steps.contains(k)).collect();
    assert_eq!(steps, keys);
    assert_eq!(steps.len(), 15);
    assert_eq!(shape(&kind), ["x integer", "b long", "c string", "e date"]);
    assert_eq!(kind.migrations()[0].min_version_waived(), Some("nobody writes yet"));
    assert!(kind.migrations()[0].is_destructive());
    assert_eq!(kind.adopt(), Adopt::Detect);
}

#[test]
fn columns_are_read_in_every_form_and_in_the_order_of_the_file() {
    let text = r#"
kind = "forms"
columns.z.type = "long"
columns."a.b" = "string"
[columns.m]
type = "date"
nullable = false
[[migrations]]
description = "nested"
[migrations.add_columns."`a.c`"]
type = "string"
comment = "a name with a dot"
"#;
    let kind = read(text, "forms.toml").unwrap();
    assert_eq!(shape(&kind), ["z long", "a.b string", "m date", "a.c string"]);
    assert!(!kind.columns()[2].nullable);
    assert_eq!(kind.shape_at(kind.newest()).columns[3].comment.as_deref(), Some("a name with a dot"));
}

#[test]
fn the_fixture_kinds_are_read() {
    let kinds = [
        (include_str!("../../../fixtures/lake/kinds/orders.toml"), "orders", 4),
        (include_str!("../../../fixtures/lake/kinds/customers.toml"), "customers", 2),
        (include_str!("../../../fixtures/lake/kinds/metrics.toml"), "metrics", 1),
    ];
    for (text, name, newest) in kinds {
        let kind = read(text, name).unwrap();
        assert_eq!((kind.name(), kind.newest().get()), (name, newest));
    }
}

#[test]
fn every_mistake_is_reported_with_its_place() {
    insta::assert_snapshot!(mistakes(include_str!("testdata/mistakes.toml")));
}

#[test]
fn what_is_no_toml_is_reported_with_the_rest() {
    insta::assert_snapshot!(mistakes(include_str!("testdata/no_toml.toml")));
}

#[test]
fn a_file_with_one_mistake_counts_one() {
    assert_eq!(
        mistakes(
            "kind = \"facts\"\n[[migrations]]\ndescription = \"x\"\n  [migrations.add_column]\n  a = \"int\"\n"
        ),
        "kinds/facts.toml: 1 mistake\n\
         kinds/facts.toml:4:15: unknown key `add_column`; did you mean `add_columns`?"
    );
    assert_eq!(
        mistakes(""),
        "kinds/facts.toml: 1 mistake\n\
         kinds/facts.toml:1:1: the file has no `kind`; wanted a line such as `kind = \"facts\"`"
    );
}

#[test]
fn a_byte_order_mark_is_no_column() {
    assert_eq!(read("\u{feff}kind = \"facts\"\n", "f").unwrap().name(), "facts");
    let error = read("\u{feff}kinds = \"facts\"\n", "f").unwrap_err();
    assert_eq!(error.message(), "f: 1 mistake\nf:1:1: unknown key `kinds`; did you mean `kind`?");
}

#[test]
fn windows_line_ends_move_no_mistake() {
    let text = include_str!("testdata/mistakes.toml");
    assert!(!text.contains('\r'));
    assert_eq!(mistakes(&text.replace('\n', "\r\n")), mistakes(text));
    let example = EXAMPLE.replace('\n', "\r\n");
    assert_eq!(read(&example, "f").unwrap(), read(EXAMPLE, "f").unwrap());
}

#[test]
fn columns_count_characters_and_point_into_the_text() {
    let lines = places(
        "[columns]\n\
         \"größe\" = { comment = \"ß€😀\", type = \"struct<a: long, b: strin>\" }\n\
         'ü' = 'map<string, int64>'\n\
         m = \"\"\"array<int64>\"\"\"\n\
         e = \"array<\\u0069nt64>\"\n",
    );
    let starts: Vec<&str> = lines.iter().map(|line| line.split(' ').next().unwrap()).collect();
    // The last one has an escape: offsets into its text are not offsets into the file.
    assert_eq!(starts, ["3:57:", "4:20:", "5:14:", "6:5:"]);
}

#[test]
fn what_follows_from_another_mistake_is_not_reported() {
    // Each text has the one mistake that is named, and parts that lean on what it spoils.
    let cases = [
        (
            "[columns]\na = 5\n[[migrations]]\ndescription = \"x\"\n[migrations.add_columns]\n\"a.b\" = \"int\"\n",
            "3:5: found an integer",
        ),
        (
            "[columns]\na = \"inte\"\n[[migrations]]\ndescription = \"x\"\nwiden_types = { a = \"long\" }\n[migrations.comments]\n\"a.b\" = \"?\"\n",
            "3:5: `inte` is no type",
        ),
        ("partition_by = [\"a\"]\n[column]\na = \"int\"\nb = \"int\"\n", "3:2: unknown key `column`"),
        ("partition_by = [\"a\"]\n[fields]\na = \"int\"\n", "3:2: unknown key `fields`"),
        (
            "[[migrations]]\ndescription = 7\n[migrations.add_columns]\na = \"int\"\n",
            "3:15: found an integer",
        ),
        (
            "[[migrations]]\ndescription = \"x\"\nadd_columns = [\"a\"]\n[[migrations]]\ndescription = \"y\"\ncomments = { a = \"?\" }\n",
            "4:15: found an array",
        ),
        (
            "[columns]\na = \"int\"\n[[migrations]]\ndescription = \"x\"\ndestructive = true\nrename_columns = { a = 1 }\n[[migrations]]\ndescription = \"y\"\ncomments = { b = \"?\" }\n",
            "7:24: found an integer",
        ),
        (
            "[columns]\na = \"int\"\n[[migrations]]\ndescription = \"x\"\ndestructive = \"yes\"\ndrop_columns = [\"a\"]\n",
            "6:15: found a string",
        ),
        ("[[migrations]]\ndescription = \"x\"\nupdate = { sett = { a = 1 }, where = \"a\" }\n", ""),
        (
            "[[migrations]]\ndescription = \"x\"\n[migrations.add_columns]\na = \"int\"\nraises_min_version = true\n",
            "6:1: `raises_min_version` stands below [migrations.add_columns]",
        ),
        (
            "[migrations]\ndescription = \"x\"\n[migrations.add_columns]\na = \"int\"\n",
            "2:1: found a table; wanted an array of tables: write [[migrations]] over each",
        ),
        ("migrations = [3]\n", "2:15: found an integer"),
        ("columns = { a = \"int\" }\npartition_by [\"b\"]\n[[migrations]]\ncomments = { c = \"?\" }\n", "3:"),
        ("partition_by = [\"a\"]\n[columns]\na =\nb = \"int\"\n", "4:4: "),
        ("adopt = \"form_zero\"\n", "2:9: `form_zero` is no way to adopt a table; did you mean `from_zero`?"),
    ];
    for (text, wanted) in cases {
        let lines = places(text);
        let one = if wanted.is_empty() { 2 } else { 1 };
        assert!(lines.len() == one && lines[0].starts_with(wanted), "{text}\n{lines:#?}");
    }
}

#[test]
fn paths_and_names_without_quotes_are_told_from_tables() {
    let lines = places(
        r#"
[properties]
delta.logRetentionDuration = "interval 1 day"
[columns]
payload = "struct<a: long>"
items.element = "long"
[[migrations]]
description = "x"
[migrations.add_columns]
payload.b = "long"
payload.c.d = { type = "long" }
typed.type = "long"
[migrations.add_columns.payload.e]
type = "long"
[migrations.add_columns.odd]
typ = "long"
"#,
    );
    insta::assert_snapshot!(lines.join("\n"));
}

/// Numbers that look random and are the same in every run.
fn random(state: &mut u64) -> usize {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    (*state >> 16) as usize
}

#[test]
fn damaged_files_are_refused_or_read_but_never_a_panic() {
    const PIECES: &[&str] = &[
        "\"",
        "'",
        "[",
        "]",
        "[[",
        "{",
        "}",
        "=",
        ".",
        ",",
        "\n",
        "\r",
        "#",
        "\\",
        "`",
        "é",
        "\u{feff}",
        "$",
        "\"\"\"",
        "0",
        "true",
        "1979-05-27",
        "[columns]\n",
        "[[migrations]]\n",
        "[migrations.add_columns]\n",
        "kind = ",
        "type = ",
        "a.b = ",
        "columns.x = 1\n",
        "struct<",
        "😀",
    ];
    let (mut state, mut refused, mut read_well) = (0x9e37_79b9_7f4a_7c15, 0, 0);
    for round in 0..1500 {
        let base = if round % 2 == 0 { EXAMPLE } else { include_str!("testdata/mistakes.toml") };
        let mut text: Vec<char> = base.chars().collect();
        for _ in 0..=random(&mut state) % 4 {
            let at = random(&mut state) % text.len();
            match random(&mut state) % 4 {
                0 => drop(text.remove(at)),
                1 => text.truncate(at.max(20)),
                2 => {
                    let end = (at + random(&mut state) % 40).min(text.len());
                    let piece: Vec<char> = text[at..end].to_vec();
                    let to = random(&mut state) % text.len();
                    text.splice(to..to, piece);
                }
                _ => {
                    let piece = PIECES[random(&mut state) % PIECES.len()];
                    text.splice(at..at, piece.chars());
                }
            }
        }
        let text: String = text.into_iter().collect();
        match read(&text, "f") {
            Ok(_) => read_well += 1,
            Err(error) => {
                refused += 1;
                let mut lines = error.message().lines();
                let first = lines.next().unwrap();
                let count: usize =
                    first.trim_start_matches("f: ").split(' ').next().unwrap().parse().unwrap();
                assert!(count > 0, "{text}");
                let placed = lines.filter(|line| line.starts_with("f:")).count();
                assert!(placed >= count, "{text}\n{error}");
            }
        }
    }
    assert!(refused > 100 && read_well > 100, "{refused} {read_well}");
}
