use super::*;

fn scan_in(text: &[u8], evidence: Option<&str>, piece: usize) -> Result<Found, BadLine> {
    let mut scanner = LineScanner::new(evidence);
    for piece in text.chunks(piece.max(1)) {
        scanner.push(piece)?;
    }
    scanner.finish()
}

/// Whatever the pieces, the answer is the same.
fn scan(text: &str, evidence: Option<&str>) -> Result<Found, BadLine> {
    let whole = scan_in(text.as_bytes(), evidence, text.len());
    for piece in [1, 2, 3, 7, 64] {
        let other = scan_in(text.as_bytes(), evidence, piece);
        assert_eq!(format!("{other:?}"), format!("{whole:?}"), "in pieces of {piece}");
    }
    whole
}

fn protocol_of(text: &str) -> Option<(u64, String)> {
    scan(text, None).unwrap().protocol
}

#[test]
fn keeps_the_text_of_the_last_action_of_each_kind() {
    let text = concat!(
        "{\"commitInfo\":{}}\n",
        "{\"metaData\": { \"id\" : \"a\",  \"zz\":[1.0e0] } }\r\n",
        "\n  \t\n",
        "{\"protocol\":{\"a\":1}}\n",
        "{\"protocol\":{\"a\":2}}"
    );
    let found = scan(text, None).unwrap();
    assert_eq!(found.metadata, Some((2, "{ \"id\" : \"a\",  \"zz\":[1.0e0] }".to_owned())));
    assert_eq!(found.protocol, Some((6, "{\"a\":2}".to_owned())));
}

#[test]
fn never_parses_lines_that_do_not_matter() {
    for key in
        ["add", "remove", "cdc", "commitInfo", "domainMetadata", "sidecar", "checkpointMetadata", "txn"]
    {
        let text = format!(" {{ \"{key}\" :{{ not json, \"protocol\":{{}} }}\n{{\"protocol\":{{}}}}\n");
        assert_eq!(protocol_of(&text), Some((2, "{}".to_owned())), "{key}");
    }
    assert_eq!(scan_in(b"{\"add\":\"\xff\xfe\"}\n", None, 3).unwrap().protocol, None);
}

#[test]
fn a_file_that_was_cut_short_is_told() {
    let whole = "{\"protocol\":{}}\n{\"commitInfo\":{\"operation\":\"WRITE\"}}";
    for end in ["", "\n", " ", " \r\n\n"] {
        assert_eq!(protocol_of(&format!("{whole}{end}")), Some((1, "{}".to_owned())), "{end:?}");
    }
    for cut in ["{\"commitInfo\":{\"timest", "{\"add\":{\"path\":\"x\", ", "{\"add\":{\"path\":\"x\"}\0\0"] {
        let bad = scan(&format!("{{\"protocol\":{{}}}}\n{cut}"), None).unwrap_err();
        assert_eq!((bad.line, bad.why.as_str()), (2, "the file ends in the middle of an action"), "{cut}");
    }
}

#[test]
fn a_line_that_spells_out_absent_actions_is_read_as_a_whole() {
    let line = r#"{"add":null,"remove" : null,"txn":null,"metaData":{"id":"a"},"protocol":null}"#;
    let found = scan(line, Some("x")).unwrap();
    assert_eq!(found.metadata, Some((1, r#"{"id":"a"}"#.to_owned())));
    assert_eq!(found.protocol, None);
    assert_eq!(found.txn, None);
}

#[test]
fn finds_keys_that_are_escaped_or_after_unknown_ones() {
    assert!(protocol_of(r#"{"protoc\u006fl":{}}"#).is_some());
    assert!(protocol_of(r#"{"news":1,"protocol":{}}"#).is_some());
    let padded = format!("{{{}\"protocol\":{{}}}}", " ".repeat(MAX_HEAD * 3));
    assert!(scan_in(padded.as_bytes(), None, 100).unwrap().protocol.is_some());
}

#[test]
fn bad_lines_are_named_by_number() {
    let bad = |text: &str| scan(text, Some("x")).unwrap_err();
    for wrong in ["{\"protocol\":{", "{\"metaData\":}", "nonsense", "{\"protocol\":{}} x", "{", "[]"] {
        let error = bad(&format!("{{\"add\":{{}}}}\n\n{wrong}\n"));
        assert_eq!(error.line, 3, "{wrong}");
        assert!(error.why.starts_with("the line is not an action in JSON ("), "{}", error.why);
        assert!(!error.why.contains(" at line "), "{}", error.why);
        assert_eq!(bad(wrong).line, 1, "{wrong} without a newline");
    }
    let error = scan_in(b"{\"protocol\":{\"a\":\"\xff\"}}", None, 5).unwrap_err();
    assert_eq!((error.line, error.why.as_str()), (1, "the line is not UTF-8"));
}

#[test]
fn a_line_that_matters_has_a_longest_length_and_others_have_none() {
    let long = |key: &str| format!("{{\"{key}\":{{\"a\":\"{}\"}}}}\n", "x".repeat(1000));
    for piece in [10, 5000] {
        let scan = |text: &str| {
            let mut scanner = LineScanner::new(None).with_longest_line(500);
            text.as_bytes().chunks(piece).try_for_each(|p| scanner.push(p))?;
            scanner.finish()
        };
        assert!(scan(&long("add")).is_ok());
        let error = scan(&(long("add") + &long("protocol"))).unwrap_err();
        assert_eq!((error.line, error.why.as_str()), (2, "the line is longer than 500 bytes"));
        assert!(scan(long("protocol").trim_end()).is_err());
    }
}

#[test]
fn takes_the_evidence_of_its_application_alone() {
    let text = concat!(
        "{\"txn\":{\"appId\":\"ns/k\",\"version\":3}}\n",
        "{\"txn\":{\"appId\":\"ns/k2\",\"version\":9}}\n",
        "{\"txn\":{\"appId\":\"other\",\"version\":\"no number\"}}\n",
    );
    assert_eq!(scan(text, Some("ns/k")).unwrap().txn, Some(SchemaVersion::new(3)));
    assert_eq!(scan(text, Some("ns")).unwrap().txn, None);
    assert_eq!(scan(text, None).unwrap().txn, None);
    let with = |version: &str| {
        scan(&format!("{{\"txn\":{{\"version\":{version},\"appId\":\"n\\u0073/k\"}}}}"), Some("ns/k"))
    };
    for (version, wanted) in [
        ("0", 0),
        ("4294967295", u32::MAX),
        ("4294967296", u32::MAX),
        ("-1", u32::MAX),
        ("18446744073709551615", u32::MAX),
        ("1e30", u32::MAX),
    ] {
        assert_eq!(with(version).unwrap().txn, Some(SchemaVersion::new(wanted)), "{version}");
    }
    for wrong in ["null", "\"3\"", "{}"] {
        assert_eq!(with(wrong).unwrap_err().why, "the txn action has no number for a version");
    }
}

#[test]
fn the_first_key_is_known_as_soon_as_it_can_be() {
    for (line, wanted) in [
        ("", Head::Unknown),
        ("  ", Head::Unknown),
        (" {", Head::Unknown),
        ("{ \"ad", Head::Unknown),
        ("{\"add\"", Head::Unknown),
        ("{\"add\" : ", Head::Unknown),
        ("{\t\"add\" : {", Head::Key(b"add")),
        ("{\"add\":1", Head::Key(b"add")),
        ("{\"add\":n", Head::Odd),
        ("{\"a\\u", Head::Odd),
        ("{}", Head::Odd),
        ("{\"add\" {", Head::Odd),
        ("x", Head::Odd),
    ] {
        assert_eq!(first_key(line.as_bytes()), wanted, "{line}");
    }
}
