//! Schedules that failed once and that only a schedule shows.

use super::drive::{learn, play};

const RELEASE: &str =
    r#"{"Migrator":{"known":3,"chain":"Ours","budget_ms":60000,"skew_ms":0,"runs":1,"create":true}}"#;

/// Plays a scenario, in which `RELEASE` stands for a release; no invariant is broken.
fn sound(scenario: &str) -> Vec<String> {
    learn();
    let scenario = serde_json::from_str(&scenario.replace("RELEASE", RELEASE)).unwrap();
    let played = play(&scenario, true);
    assert!(played.violations.is_empty(), "{:#?}\n{}", played.violations, played.trace.join("\n"));
    played.trace
}

/// The metadata had been read when the table was dropped and made again, the newest entry not yet:
/// it was the new table's, and so the old metadata went into the new table.
#[test]
fn what_is_read_is_one_table() {
    let trace = sound(
        r#"{"seed":87,"start":{"table":true,"checksums":false,"ops":["Append","Append",{"StampTo":2},"Diverge"]},
            "actors":[RELEASE,RELEASE,{"Writer":{"ops":["RecreateEqual"]}}],
            "faults":[],"choices":[0,0,26177,10973,34]}"#,
    );
    let at = |what: &str| trace.iter().position(|line| line.contains(what));
    assert!(
        at("stranger RecreateEqual") > at("get 00000000000000000000.json")
            && at("stranger Recreate").is_some()
    );
}

/// No time limit was on the checksum file, which is written after the commit.
#[test]
fn a_checksum_file_that_never_comes_is_not_waited_for_without_end() {
    let trace = sound(
        r#"{"seed":1,"start":{"table":true,"checksums":true,"ops":["Append"]},"actors":[RELEASE],
            "faults":[{"actor":0,"phase":"After","nth":1,"before":[],"kind":"RequestLost"}],"choices":[]}"#,
    );
    assert!(trace.iter().any(|line| line.contains(".crc -> RequestLost")), "{trace:#?}");
    assert!(trace.iter().any(|line| line.contains("outcome: \"migrated\"")), "{trace:#?}");
}

/// A put that had failed landed after all, in the place of the entry that had won, once the table was gone:
/// the log could not be read any more, and nothing was said to be changed.
#[test]
fn an_entry_that_lands_late_in_a_dropped_table_is_told() {
    let trace = sound(
        r#"{"seed":9274,"start":{"table":true,"checksums":false,"ops":["Append","Append"]},
            "actors":[{"Migrator":{"known":2,"chain":"Ours","budget_ms":60000,"skew_ms":0,"runs":1,"create":false}}],
            "faults":[{"actor":0,"phase":"Put","nth":0,"before":[],"kind":"ErrorLater"},
                {"actor":0,"phase":"After","nth":0,"before":["BadStamp"],"kind":{"Meanwhile":"Checkpoint"}},
                {"actor":0,"phase":"Before","nth":1,"before":[],"kind":{"Meanwhile":"Drop"}}],
            "choices":[0,0,0,0,0,0,0,0,0,0,0,0,0,35]}"#,
    );
    assert!(trace.iter().any(|line| line.contains("identity_changed")), "{trace:#?}");
}
