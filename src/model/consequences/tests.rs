#![allow(clippy::unwrap_used, clippy::panic)]

use super::*;

fn of(text: &str) -> Vec<StepConsequences> {
    let kind = Kind::from_toml(text).unwrap();
    let version = kind.newest();
    of_migration(&kind, version, kind.migrations().last().unwrap())
}

/// One line a step: the answers to append, merge, overwrite and read.
fn shown(text: &str) -> Vec<String> {
    let line = |s: StepConsequences| {
        format!("{}: {}", s.step, s.cells().map(|(_, answer)| answer.as_str()).join(", "))
    };
    of(text).into_iter().map(line).collect()
}

const BASE: &str = "kind = \"facts\"\n[columns]\nid = { type = \"long\", nullable = false }\n\
                    tags = \"map<string, struct<a: long>>\"\np = \"struct<a: long>\"\n[[migrations]]\ndescription = \"d\"\n";

#[test]
fn an_ordinary_migration_asks_for_no_floor() {
    let text = format!(
        "{BASE}table_description = \"x\"\nrelax_nullability = [\"id\"]\nunset_properties = [\"b\"]\n\
         set_properties = {{ a = \"1\" }}\ncomments = {{ id = \"c\" }}\nadd_columns = {{ c = \"long\", \"p.b\" = \"long\" }}\n"
    );
    assert_eq!(harmed(&of(&text)), []);
    assert_eq!(
        shown(&text),
        [
            "relax_nullability: nothing new, nothing new, nothing new, reads NULL",
            "add_columns: reads NULL, reads NULL, reads NULL, nothing new",
            "comments: nothing new, nothing new, nothing new, nothing new",
            "table_description: nothing new, nothing new, nothing new, nothing new",
            "set_properties: nothing new, nothing new, nothing new, nothing new",
            "unset_properties: nothing new, nothing new, nothing new, nothing new",
        ]
    );
}

#[test]
fn the_worst_of_a_steps_columns_counts() {
    let text = format!("{BASE}add_columns = {{ c = \"long\", \"tags.value.b\" = \"long\" }}\n");
    assert_eq!(shown(&text), ["add_columns: reads NULL, cannot write, cannot write, cannot read"]);
    assert_eq!(
        harmed(&of(&text)),
        [
            ("add_columns", "merge", Consequence::CannotWrite),
            ("add_columns", "overwrite", Consequence::CannotWrite),
            ("add_columns", "read", Consequence::CannotRead)
        ]
    );
}

#[test]
fn a_feature_stops_writers_that_do_not_know_it() {
    let features = |base: &str, features: &str| {
        let base = BASE.replace("[[migrations]]", &format!("[properties]\n{base}\n[[migrations]]"));
        shown(&format!("{base}enable_features = [{features}]\n")).remove(0)
    };
    let stopped = "enable_features: cannot write, cannot write, cannot write, nothing new";
    let fine = "enable_features: nothing new, nothing new, nothing new, nothing new";
    // The upgrade itself lists `invariants`.
    assert_eq!(features("", "\"timestampNtz\""), stopped);
    assert_eq!(
        features("", "\"appendOnly\""),
        "enable_features: nothing new, nothing new, cannot write, nothing new"
    );
    assert_eq!(features("", "\"invariants\""), fine);
    assert_eq!(
        features("", "\"typeWidening\""),
        "enable_features: cannot write, cannot write, cannot write, cannot read"
    );
    // A table that is upgraded already.
    let upgraded = "\"delta.enableDeletionVectors\" = \"true\"";
    assert_eq!(features(upgraded, "\"timestampNtz\", \"deletionVectors\""), fine);
    assert_eq!(features(upgraded, "\"domainMetadata\""), stopped);
    // Writer version 4 implies it.
    assert_eq!(features("\"delta.enableChangeDataFeed\" = \"true\"", "\"generatedColumns\""), fine);
}

#[test]
fn steps_that_change_what_rows_mean_ask_for_a_floor() {
    let text = format!(
        "{BASE}destructive = true\nupdate = {{ set = {{ id = \"1\" }}, where = \"id IS NULL\" }}\n\
         drop_columns = [\"p\"]\nadd_constraints = {{ c = \"id > 0\" }}\nset_defaults = {{ id = \"1\" }}\n"
    );
    assert_eq!(
        shown(&text),
        [
            "update: miswrites, miswrites, miswrites, nothing new",
            "set_defaults: miswrites, miswrites, miswrites, nothing new",
            "add_constraints: cannot write, cannot write, cannot write, nothing new",
            "drop_columns: miswrites, miswrites, miswrites, misreads",
        ]
    );
}
