//! Runs over many tables: reports, events, plans, what each source gave.

use std::path::Path;

use serde_json::Value;
use tokio::runtime::Runtime;

use super::entries;
use crate::state::seen::{EVENTS, MANY, PLANS, SETUP, Seen};
use crate::support::lake::Lake;
use crate::support::{FACTS, column, facts, kind_file};

pub(super) fn see(seen: &mut Seen, runtime: &Runtime) {
    assert!(crate::state::page::row(EVENTS, "at").is_some());
    let lake = Lake::new();
    for (name, version) in [("behind", 2), ("further", 7), ("current", 10)] {
        runtime.block_on(lake.table(&format!("lake/{name}"), version));
    }
    lake.too_new("lake/too_new");
    lake.corrupt("lake/corrupt");
    facts().write(&lake.path("lake/unstamped"));
    // Changes of every sort: what is there already, what has another value before.
    let mut other = facts().property("owner", "team a").property("legacy", "x");
    other.schema["fields"].as_array_mut().unwrap().push(column("detail", "string"));
    other.write(&lake.path("named"));
    std::fs::write(lake.path("kinds/features.toml"), FEATURES).unwrap();
    lake.configure(
        "[[tables]]\nuri = \"named\"\nkind = \"facts\"\n[[tables]]\nuri = \"new\"\nkind = \"features\"\n\
         [[discover]]\nroot = \"lake\"\n[[discover]]\nroot = \"nowhere\"\n",
    );
    report(seen, &lake, &["status"]);
    report(seen, &lake, &["plan", "-o", "plan.json"]);
    seen.add(PLANS, &json(&lake.path("plan.json")));
    report(seen, &lake, &["apply", "--target", "0", "new"]);
    constrain(&lake.path("new"));
    report(seen, &lake, &["plan", "new"]);
    report(seen, &lake, &["apply", "--max-changed", "0"]);
    report(seen, &lake, &["apply", "--events", "events.jsonl"]);
    for line in std::fs::read_to_string(lake.path("events.jsonl")).unwrap().lines() {
        seen.add_event(&serde_json::from_str(line).unwrap());
    }
    report(seen, &lake, &["apply"]);
    report(seen, &lake, &["apply", "--plan", "plan.json"]);
    for name in ["lake/behind", "lake/further", "lake/current", "named", "new"] {
        seen.add_log(&entries(&lake.path(name)), "app");
    }
    // A release that knows less.
    std::fs::write(lake.path("short.toml"), kind_file(9)).unwrap();
    report(seen, &lake, &["status", "--namespace", "app", "--kind-file", "short.toml", "lake/current"]);
    // A history of a table that there is not has no kind.
    report(seen, &lake, &["history", "lake/nothing"]);
    for args in [&["status", "-c", "nowhere.toml"][..], &["status", "lake/current", "--kind", "nothing"]] {
        let (code, document) = lake.json(args);
        assert_eq!(code, 2, "{document}");
        seen.add(SETUP, &document);
    }
}

const FEATURES: &str = r#"
kind = "features"
[columns]
id = "long"
code = "string"
n = "integer"
[properties]
"delta.columnMapping.mode" = "name"
[[migrations]]
description = "change data"
raises_min_version = true
enable_features = ["changeDataFeed", "typeWidening", "allowColumnDefaults"]
[[migrations]]
description = "names and types"
raises_min_version = true
destructive = true
drop_constraints = ["positive"]
rename_columns = { id = "key" }
widen_types = { n = "long" }
set_defaults = { n = "0" }
drop_columns = ["code"]
"#;

/// Another program gives the newest table a constraint.
fn constrain(folder: &Path) {
    let file = |version: u64| folder.join(format!("_delta_log/{version:020}.json"));
    let text = std::fs::read_to_string(file(0)).unwrap();
    let actions = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let mut metadata = actions.into_iter().find(|a| a.get("metaData").is_some()).unwrap();
    metadata["metaData"]["configuration"]["delta.constraints.positive"] = "n > 0".into();
    std::fs::write(file(1), format!("{metadata}\n")).unwrap();
}

fn report(seen: &mut Seen, lake: &Lake, args: &[&str]) {
    let (_, document) = lake.json(args);
    assert!(document.get("tables").is_some(), "{args:?}: {document}");
    seen.add(MANY, &document);
}

fn json(file: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap()
}

#[test]
fn the_chain_has_every_step_that_is_carried_out() {
    let steps = crate::state::page::rows("Steps").iter().filter(|row| row.absent().starts_with("since"));
    // Data steps are carried out by hand.
    let steps = steps.filter(|row| !row.absent().contains("`datafusion`"));
    let steps = steps.map(|row| row.key.trim_start_matches("migrations[].").split('.').next().unwrap());
    for step in steps {
        assert!(FACTS.contains(step) || FEATURES.contains(step), "{step}");
    }
}
