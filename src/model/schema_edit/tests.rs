use super::*;

/// Spaces, odd key orders, unknown keys, escapes and big numbers, as other writers may leave them.
const SCHEMA: &str = r#"{ "type" : "struct", "fields": [
  {"metadata":{"delta.generationExpression":"CAST(x AS DATE)","n":12345678901234567890},"name":"eventDate","nullable":true,"type":"date","future":{"a":[1, 2]}},
  {"name":"d\u00e4ta","type":{"type":"array","elementType":{"type":"map","keyType":"string","valueContainsNull":false,"valueType":{"type":"struct","fields":[ ]}},"containsNull":false},"nullable":false}
]}"#;

fn path(text: &str) -> ColumnPath {
    text.parse().unwrap()
}

/// What is left of `new` when `part` is cut out once.
fn without(new: &str, part: &str) -> String {
    assert_eq!(new.matches(part).count(), 1, "{new}");
    new.replacen(part, "", 1)
}

#[test]
fn a_field_is_appended_and_nothing_else_moves() {
    let new = append_field(SCHEMA, &[], r#"{"name":"x"}"#).unwrap();
    assert_eq!(without(&new, r#",{"name":"x"}"#), SCHEMA);
    let nested = append_field(SCHEMA, path("däta.element.value").segments(), r#"{"name":"x"}"#).unwrap();
    assert_eq!(without(&nested, r#"{"name":"x"}"#), SCHEMA);
    assert!(serde_json::from_str::<serde_json::Value>(&nested).is_ok());
    assert_eq!(append_field(SCHEMA, path("eventDate").segments(), "{}"), None);
}

#[test]
fn a_comment_keeps_every_other_key() {
    let new = set_comment(SCHEMA, &path("eventdate"), "the \"day\"").unwrap();
    assert_eq!(without(&new, r#","comment":"the \"day\"""#), SCHEMA);
    let again = set_comment(&new, &path("eventDate"), "y").unwrap();
    assert_eq!(without(&again, r#","comment":"y""#), SCHEMA);
    let bare = set_comment(SCHEMA, &path("däta"), "z").unwrap();
    assert_eq!(without(&bare, r#","metadata":{"comment":"z"}"#), SCHEMA);
}

#[test]
fn nullability_is_relaxed_in_place() {
    let new = set_nullable(SCHEMA, &path("däta")).unwrap();
    assert_eq!(new, SCHEMA.replace(r#""nullable":false"#, r#""nullable":true"#));
    let element = set_nullable(SCHEMA, &path("däta.element")).unwrap();
    assert_eq!(element, SCHEMA.replace(r#""containsNull":false"#, r#""containsNull":true"#));
    let value = set_nullable(SCHEMA, &path("däta.element.value")).unwrap();
    assert_eq!(value, SCHEMA.replace(r#""valueContainsNull":false"#, r#""valueContainsNull":true"#));
    assert_eq!(set_nullable(SCHEMA, &path("däta.element.key")), None);
    assert_eq!(set_nullable(SCHEMA, &path("gone")), None);
}

#[test]
fn a_name_or_a_type_is_replaced_in_its_place() {
    let new = set_name(SCHEMA, &path("däta"), "a \"b\"").unwrap();
    assert_eq!(new, SCHEMA.replace(r#""d\u00e4ta""#, r#""a \"b\"""#));
    let new = set_type(SCHEMA, &path("eventdate"), "\"timestamp_ntz\"").unwrap();
    assert_eq!(new, SCHEMA.replace(r#""type":"date""#, r#""type":"timestamp_ntz""#));
    let new = set_type(SCHEMA, &path("däta.element.key"), "\"long\"").unwrap();
    assert_eq!(new, SCHEMA.replace(r#""keyType":"string""#, r#""keyType":"long""#));
    for gone in ["gone", "eventDate.key", "däta.value"] {
        assert_eq!(set_name(SCHEMA, &path(gone), "x"), None, "{gone}");
        assert_eq!(set_type(SCHEMA, &path(gone), "x"), None, "{gone}");
        assert_eq!(remove_field(SCHEMA, &path(gone)), None, "{gone}");
    }
    assert_eq!(set_name(SCHEMA, &path("däta.element"), "x"), None);
}

#[test]
fn a_field_is_taken_out_with_one_comma() {
    let three = r#"{"type":"struct","fields":[ {"name":"a"} , {"name":"b"} ,{"name":"c"}]}"#;
    let left = |name: &str| remove_field(three, &path(name)).unwrap();
    assert_eq!(left("a"), r#"{"type":"struct","fields":[ {"name":"b"} ,{"name":"c"}]}"#);
    assert_eq!(left("B"), r#"{"type":"struct","fields":[ {"name":"a"} ,{"name":"c"}]}"#);
    assert_eq!(left("c"), r#"{"type":"struct","fields":[ {"name":"a"} , {"name":"b"}]}"#);
    let one = r#"{"type":"struct","fields":[ {"name":"a"} ]}"#;
    assert_eq!(remove_field(one, &path("a")).unwrap(), r#"{"type":"struct","fields":[  ]}"#);
}

#[test]
fn lists_in_metadata_grow_at_their_end() {
    let new = append_field_metadata(SCHEMA, &path("däta"), "l", "{\"a\":1}").unwrap();
    assert_eq!(without(&new, r#","metadata":{"l":[{"a":1}]}"#), SCHEMA);
    let again = append_field_metadata(&new, &path("däta"), "l", "2").unwrap();
    assert_eq!(again, new.replace(r#"[{"a":1}]"#, r#"[{"a":1},2]"#));
    assert_eq!(append_field_metadata(SCHEMA, &path("eventDate"), "n", "2"), None);
    assert_eq!(field_metadata(&again, &path("däta"), "l"), Some(r#"[{"a":1},2]"#));
}

#[test]
fn metadata_is_carried_over_but_for_what_changed() {
    let raw = r#"{"id":"i","future":[ 1 ],"name":null,"format":{"provider":"parquet","options":{"a":"b"}},"schemaString":"{}","partitionColumns":["p"],"configuration":{"delta.x":"\u0041","gone":"1","app.v":"1"},"createdTime":17}"#;
    let changes = [("app.v", Some("2")), ("gone", None), ("new", Some("q\"\n"))];
    let changes = changes.iter().map(|(k, v)| (k.to_string(), v.map(str::to_owned))).collect();
    let new = rewrite_metadata(raw, "{\"s\":1}", None, &changes).unwrap();
    assert_eq!(
        new,
        r#"{"id":"i","future":[ 1 ],"name":null,"format":{"provider":"parquet","options":{"a":"b"}},"schemaString":"{\"s\":1}","partitionColumns":["p"],"configuration":{"delta.x":"\u0041","app.v":"2","new":"q\"\n"},"createdTime":17}"#
    );
    let described = rewrite_metadata(raw, "{}", Some("words"), &IndexMap::new()).unwrap();
    assert!(described.ends_with(r#""createdTime":17,"description":"words"}"#), "{described}");
    let no_configuration = rewrite_metadata(r#"{"id":"i"}"#, "{}", None, &changes).unwrap();
    assert_eq!(
        no_configuration,
        r#"{"id":"i","schemaString":"{}","configuration":{"app.v":"2","new":"q\"\n"}}"#
    );
}
