use super::*;

#[test]
fn identifiers_are_told_from_texts() {
    for sql in [
        "code > 0",
        "CODE>0",
        "upper(Code)",
        "`code` = 1",
        "a.`CODE`",
        "\"code\" = 1",
        "x+code",
        "(code)",
        "code",
    ] {
        assert!(mentions(sql, "code"), "{sql}");
    }
    for sql in
        ["codes > 0", "my_code = 1", "name = 'code'", "name = 'it''s code'", "`the code` = 1", "", "code2"]
    {
        assert!(!mentions(sql, "code"), "{sql}");
    }
    assert!(mentions("größe > 1", "GRÖSSE") || mentions("größe > 1", "GRÖßE"));
    assert!(mentions("`a b` > 1", "a b") && !mentions("a b", "a b"));
    assert!(mentions("`a``b` > 1", "a`b"));
}

/// Where quotes can't be told for sure, a name counts wherever it stands.
#[test]
fn in_doubt_a_name_is_a_reference() {
    for sql in [
        "name = 'it\\'s' and code = 'x'",
        "name = r'\\' and code = 'x'",
        "a > 0 /* don't */ and code > 0 and b = 'c'",
        "a > 0 -- don't\n and code = 'x'",
        "name = 'open and code",
    ] {
        assert!(mentions(sql, "code"), "{sql}");
    }
}

#[test]
fn invariants_are_json_around_sql() {
    assert!(invariant_mentions("{\"expression\":{\"expression\":\"code > 3\"}}", "code"));
    assert!(!invariant_mentions("{\"expression\":{\"expression\":\"x > 3\"}}", "expression"));
    assert!(invariant_mentions("code > 3", "code"));
}
