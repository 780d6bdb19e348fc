use super::*;
use crate::model::kind::Kind;
use crate::model::migration::Migration;
use crate::model::plan::{Target, plan};
use crate::model::testing::{namespace, table};

fn made(state: Option<&TableState>) -> Vec<Value> {
    let kind = Kind::builder("facts")
        .column("id", "long")
        .migration(Migration::builder("m").add_column("a", "string"));
    let plan = plan(&namespace(), &kind.build().unwrap(), state, Target::Newest).unwrap();
    let moment = Moment {
        millis: 5,
        in_commit_timestamp: 6,
        at: "1970-01-01T00:00:00Z".into(),
        commit_id: "c".into(),
        table_id: "t".into(),
        release: "r".into(),
    };
    let bytes = entry(&plan, &plan.commits[0], state, &moment, None).unwrap();
    let text = String::from_utf8(bytes).unwrap();
    assert!(text.ends_with('\n'));
    text.lines().map(|l| serde_json::from_str(l).unwrap()).collect()
}

fn names(actions: &[Value]) -> Vec<&str> {
    actions.iter().map(|a| a.as_object().unwrap().keys().next().unwrap().as_str()).collect()
}

#[test]
fn commit_info_comes_first_and_each_action_is_a_line() {
    let state = table("id: long", &[]);
    assert_eq!(names(&made(Some(&state))), ["commitInfo", "metaData", "txn"]);
    assert_eq!(names(&made(None)), ["commitInfo", "protocol", "metaData", "txn"]);
}

#[test]
fn delta_rs_can_read_every_action() {
    let state = table("id: long", &[]);
    for action in made(Some(&state)).into_iter().chain(made(None)) {
        let read: Result<deltalake::kernel::Action, _> = serde_json::from_value(action.clone());
        assert!(read.is_ok(), "{action}: {read:?}");
    }
}

#[test]
fn operation_parameters_are_strings_as_spark_wants_them() {
    let actions = made(Some(&table("id: long", &[])));
    let parameters = actions[0]["commitInfo"]["operationParameters"].as_object().unwrap();
    assert!(parameters.values().all(Value::is_string), "{parameters:?}");
    assert_eq!(parameters["migrations"], r#"[{"version":1,"description":"m"}]"#);
}

#[test]
fn metadata_keeps_what_it_does_not_know() {
    let state = table("id: long", &[("delta.x", "1")]);
    let old: Value = serde_json::from_str(state.metadata.raw.as_deref().unwrap()).unwrap();
    let new = &made(Some(&state))[1]["metaData"];
    for key in ["id", "name", "format", "partitionColumns", "createdTime", "future"] {
        assert_eq!(new[key], old[key], "{key}");
    }
    assert_eq!(new["configuration"]["delta.x"], "1");
}
