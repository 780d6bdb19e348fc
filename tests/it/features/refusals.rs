//! Tables that are refused by the name of what they ask: exit 1, nothing written, no panic.

use super::adding;
use crate::support::command::on;
use crate::support::{Log, Table, column, refused_everywhere};

fn log() -> Log {
    Log::new(vec![column("id", "long")])
}

/// Refused with these words, without a panic, and the error for people says it too.
fn refused(table: &Table, words: &[&str]) {
    let kind = adding("more = \"string\"");
    let error = refused_everywhere(table, &kind, "unsupported_feature");
    for word in words {
        assert!(error["message"].as_str().unwrap().contains(word), "{word}: {error}");
    }
    let ran = on(table, &kind, &["apply", "--format", "text", table.arg()]);
    // The later of two formats may be refused as a usage error; either way nothing panics.
    assert!(!ran.stderr.contains("panicked") && !ran.stderr.contains("RUST_BACKTRACE"), "{ran:?}");
}

#[test]
fn protocol_versions_that_nobody_knows_yet() {
    refused(&log().versions(1, 8).table(), &["writer version 8"]);
    refused(&log().versions(3, 8).table(), &["writer version 8"]);
    refused(&log().versions(99, 2).table(), &["reader version 99"]);
    let mut both = log().features(&[], &[]);
    both.protocol["minReaderVersion"] = 99.into();
    both.protocol["minWriterVersion"] = 2_000_000_000.into();
    refused(&both.table(), &["reader version 99", "writer version 2000000000"]);
}

#[test]
fn features_that_forbid_a_commit_to_the_file_system_or_are_not_known() {
    for name in [
        "catalogManaged",
        "catalogOwned",
        "catalogOwned-preview",
        "redirectReaderWriter-preview",
        "geospatial",
        "timestampNanos",
        "adaptiveMetadata",
        "an unknown feature",
        "ünbekannt",
    ] {
        refused(&log().features(&[name], &["appendOnly", name]).table(), &[name]);
    }
    for name in [
        "coordinatedCommits-preview",
        "redirectWriterOnly-preview",
        "icebergWriterCompatV1",
        "icebergWriterCompatV3",
        "somethingNew-preview",
        // Names are compared as they are written.
        "APPENDONLY",
    ] {
        refused(&log().features(&[], &["appendOnly", name]).table(), &[name]);
    }
    // A reader feature that the writer's list lacks counts as well.
    refused(&log().features(&["somethingNew"], &["appendOnly"]).table(), &["somethingNew"]);
    // All of them are named at once.
    let names = ["catalogManaged", "geospatial", "somethingNew"];
    refused(&log().features(&names, &names).table(), &names);
}

#[test]
fn properties_without_their_feature() {
    for (key, value) in [
        ("delta.checkpointPolicy", "v2"),
        ("delta.columnMapping.mode", "name"),
        ("delta.columnMapping.mode", "id"),
        ("delta.enableIcebergCompatV1", "true"),
        ("delta.enableIcebergCompatV2", "TRUE"),
        ("delta.enableIcebergCompatV3", "true"),
        ("delta.enableInCommitTimestamps", "true"),
    ] {
        refused(&log().property(key, value).table(), &[key, "without"]);
        refused(&log().features(&[], &["appendOnly"]).property(key, value).table(), &[key, "without"]);
    }
}

#[test]
fn a_type_that_no_table_of_the_protocol_has() {
    let geo = Log::new(vec![column("id", "long"), column("place", "geometry(OGC:CRS84)")]);
    refused(&geo.features(&["geospatial"], &["geospatial"]).table(), &["geospatial"]);
}
