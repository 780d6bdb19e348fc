use super::*;
use crate::model::kind::Kind;
use crate::model::migration::Migration;
use crate::model::plan::plan;
use crate::model::state::TableState;
use crate::model::testing::{namespace, table};

fn kind(columns: &[&str]) -> Kind {
    columns
        .iter()
        .fold(Kind::builder("facts").column("id", "long"), |k, c| {
            k.migration(Migration::builder(*c).add_column(*c, "long"))
        })
        .build()
        .unwrap()
}

fn saved(kind: &Kind, state: Option<&TableState>) -> SavedPlan {
    let made = plan(&namespace(), kind, state, Target::Newest).unwrap();
    let text = PlanFile::new(vec![SavedPlan::of(&made, "t")]).to_json();
    PlanFile::from_json(&text).unwrap().tables.remove(0)
}

fn applied(saved: &SavedPlan, kind: &Kind, state: Option<&TableState>) -> Result<usize, ErrorCode> {
    let made = plan(&namespace(), kind, state, saved.target(kind.newest())).map_err(|r| r.code)?;
    saved.check(made).map(|p| p.commits.len()).map_err(|r| r.code)
}

#[test]
fn appended_rows_do_not_make_a_plan_stale_and_all_else_does() {
    let kind = kind(&["a", "b"]);
    let stamps = [("app.schema_version", "0"), ("p", "q")];
    let mut state = table("id: long", &stamps);
    let saved = saved(&kind, Some(&state));
    state.log_version = LogVersion::new(99);
    assert_eq!(applied(&saved, &kind, Some(&state)), Ok(1));
    let other = |change: &dyn Fn(&mut TableState)| {
        let mut state = table("id: long", &stamps);
        change(&mut state);
        applied(&saved, &kind, Some(&state))
    };
    let stale = Err(ErrorCode::StalePlan);
    assert_eq!(other(&|s| s.metadata.id = "x".into()), stale);
    assert_eq!(other(&|s| drop(s.metadata.configuration.insert("p".into(), "r".into()))), stale);
    assert_eq!(other(&|s| s.metadata.schema_text.push(' ')), stale);
    assert_eq!(other(&|s| s.protocol.min_writer = 3), stale);
}

#[test]
fn a_plan_is_for_one_chain() {
    let state = table("id: long", &[("app.schema_version", "0")]);
    let saved = saved(&kind(&["a", "b"]), Some(&state));
    assert_eq!(applied(&saved, &kind(&["a", "c"]), Some(&state)), Err(ErrorCode::StalePlan));
    assert_eq!(
        applied(&saved, &kind(&["a", "b", "c"]), Some(&state)),
        Ok(1),
        "a longer chain holds the same plan"
    );
}

#[test]
fn a_plan_that_was_carried_out_has_nothing_left_to_do() {
    let kind = kind(&["a"]);
    let before = table("id: long", &[("app.schema_version", "0")]);
    let after = table("id: long, a: long", &[("app.schema_version", "1")]);
    assert_eq!(applied(&saved(&kind, Some(&before)), &kind, Some(&after)), Ok(0));
    assert_eq!(applied(&saved(&kind, None), &kind, Some(&after)), Ok(0), "somebody else created it");
    assert_eq!(applied(&saved(&kind, Some(&before)), &kind, None), Err(ErrorCode::StalePlan));
    assert_eq!(applied(&saved(&kind, None), &kind, Some(&before)), Err(ErrorCode::StalePlan));
}

#[test]
fn a_stale_plan_says_what_changed() {
    let kind = kind(&["a"]);
    let before = table("id: long", &[("app.schema_version", "0")]);
    let gone = plan(&namespace(), &kind, None, Target::Newest).unwrap();
    assert!(saved(&kind, Some(&before)).check(gone).unwrap_err().message.contains("is gone"));
}

#[test]
fn files_of_a_later_format_and_garbage_are_refused() {
    for text in ["", "[]", "{}", r#"{"format":2,"tables":[]}"#, r#"{"format":1}"#] {
        assert_eq!(PlanFile::from_json(text).unwrap_err().code(), ErrorCode::Usage, "{text}");
    }
    assert!(PlanFile::from_json(r#"{"format":1,"tables":[],"future":1}"#).is_ok());
}
