use super::*;

fn parse(text: &str) -> DataType {
    parse_type(text).unwrap_or_else(|e| panic!("{text}: {e}"))
}

#[test]
fn spark_names_and_delta_names_are_the_same_types() {
    for (spark, delta) in [
        ("BIGINT", "long"),
        ("int", "integer"),
        ("smallint", "short"),
        ("tinyint", "byte"),
        ("real", "float"),
        ("decimal", "decimal(10,0)"),
        ("numeric(5)", "decimal(5,0)"),
        ("ARRAY< bigint >", "array<long>"),
        ("struct<a:int,b:map<string,double>>", "struct<a: integer, b: map<string, double>>"),
        ("struct<a int not null>", "struct<a: integer not null>"),
    ] {
        assert_eq!(parse(spark), parse(delta), "{spark}");
        assert_eq!(parse(spark).to_string(), delta);
    }
}

#[test]
fn type_text_round_trips() {
    for text in [
        "decimal(38,18)",
        "array<array<struct<a: long, b: string>>>",
        "map<string, timestamp_ntz not null>",
        "struct<`a.b`: variant, `x y`: binary not null comment 'it\\'s'>",
        "array<boolean not null>",
    ] {
        assert_eq!(parse(text).to_string(), text);
    }
}

#[test]
fn type_errors_point_at_the_place_and_name_what_was_meant() {
    for (text, offset, part) in [
        ("text", 0, "did you mean `string`"),
        ("struct<a: long, b: int64>", 19, "did you mean `long`"),
        ("array<string", 12, "to close `array<`"),
        ("map<string>", 10, "between the key's"),
        ("struct<a: long, A: string>", 16, "letter case"),
        ("decimal(39,2)", 8, "from 1 to 38"),
        ("long long", 5, "nothing may follow"),
        ("", 0, "wanted one of"),
        ("struct<>", 8, "give it a field"),
        ("struct<: long>", 7, "a field without a name"),
    ] {
        let error = parse_type(text).unwrap_err();
        assert_eq!(error.offset, offset, "{text}: {error}");
        assert!(error.to_string().contains(part), "{text}: {error}");
    }
}

#[test]
fn schema_json_round_trips_and_agrees_with_the_kernel() {
    let columns = vec![
        Field { name: "a".into(), data_type: parse("long"), nullable: false, comment: Some("x".into()) },
        Field::nullable("b", parse("array<struct<c: map<string, decimal(9,2)>, d: timestamp_ntz>>")),
        Field::nullable("v", parse("variant")),
        Field::nullable("e", parse("map<struct<k: date not null>, binary not null>")),
    ];
    let text = schema_json(&columns).to_string();
    assert_eq!(schema_from_json(&text).unwrap(), columns);
    let kernel: deltalake::kernel::StructType = serde_json::from_str(&text).unwrap();
    let again = serde_json::to_string(&kernel).unwrap();
    assert_eq!(schema_from_json(&again).unwrap(), columns);
}

#[test]
fn schemas_that_no_reader_can_use_are_refused() {
    let of = |field: &str| format!(r#"{{"type":"struct","fields":[{field}]}}"#);
    let field =
        |name: &str, t: &str| format!(r#"{{"name":"{name}","type":{t},"nullable":true,"metadata":{{}}}}"#);
    let error = schema_from_json(&of(&field("c", "\"char(10)\""))).unwrap_err();
    assert!(matches!(error, SchemaError::UnknownType { ref found, .. } if found == "char(10)"), "{error}");
    let two = [field("sf_gsp", "\"long\""), field("SF_GSP", "\"long\"")].join(",");
    assert!(matches!(schema_from_json(&of(&two)), Err(SchemaError::SameName { .. })));
    for broken in ["", "[]", "{}", r#"{"type":"struct"}"#, r#""long""#] {
        assert!(matches!(schema_from_json(broken), Err(SchemaError::Malformed(_))), "{broken}");
    }
}

#[test]
fn widened_types_fit_and_others_do_not() {
    for (declared, found) in [
        ("integer", "long"),
        ("byte", "double"),
        ("float", "double"),
        ("decimal(9,2)", "decimal(12,4)"),
        ("integer", "decimal(10,0)"),
        ("date", "timestamp_ntz"),
        ("struct<a: long>", "struct<a: long, b: string>"),
        ("array<integer not null>", "array<long>"),
    ] {
        assert!(parse(declared).fits(&parse(found)), "{declared} -> {found}");
    }
    for (declared, found) in [
        ("long", "integer"),
        ("long", "double"),
        ("decimal(9,2)", "decimal(9,3)"),
        ("integer", "decimal(9,0)"),
        ("timestamp", "timestamp_ntz"),
        ("string", "binary"),
        ("struct<a: long, b: string>", "struct<a: long>"),
    ] {
        assert!(!parse(declared).fits(&parse(found)), "{declared} -> {found}");
    }
}

#[test]
fn paths_are_resolved_through_structs_arrays_and_maps() {
    let columns = vec![Field::nullable("data", parse("array<map<string, struct<B: long>>>"))];
    let segments = |text: &str| text.parse::<ColumnPath>().unwrap().segments().to_vec();
    let found = resolve(&columns, &segments("data.element.value.b"));
    assert!(matches!(found, Some(Target::Field(f)) if f.name == "B"));
    assert!(matches!(resolve(&columns, &segments("data.element.key")), Some(Target::Part(_, false))));
    assert_eq!(resolve(&columns, &segments("data.b")), None);
}
