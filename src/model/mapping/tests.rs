use super::*;
use crate::model::testing::{features, of};
use crate::model::types::parse_type;

fn state(schema: &str, max: Option<&str>) -> TableState {
    let mut configuration = Map::new();
    configuration.insert("delta.columnMapping.mode".into(), "name".into());
    if let Some(max) = max {
        configuration.insert(MAX_COLUMN_ID.into(), max.into());
    }
    let raw = json!({ "id": "t", "schemaString": schema, "configuration": configuration });
    of(&raw.to_string(), features(&["columnMapping"]))
}

fn with_ids(ids: &[(i64, &str)]) -> String {
    let fields: Vec<Value> = ids
        .iter()
        .map(|(id, nested)| {
            let nested: Value = serde_json::from_str(nested).unwrap();
            json!({ "name": format!("c{id}"), "type": "long", "nullable": true,
                    "metadata": { ID: id, PHYSICAL_NAME: format!("p{id}"), NESTED_IDS: nested } })
        })
        .collect();
    json!({ "type": "struct", "fields": fields }).to_string()
}

#[test]
fn ids_start_above_every_id_of_the_table() {
    let highest = |schema: &str, max| Mapping::of(&state(schema, max), false).highest();
    assert_eq!(highest(&with_ids(&[(3, "{}"), (1, "{}")]), None), 3, "derived where the property is missing");
    assert_eq!(highest(&with_ids(&[(3, "{}")]), Some("9")), 9);
    assert_eq!(highest(&with_ids(&[(3, "{}")]), Some("2")), 3, "a property that is too low");
    assert_eq!(highest(&with_ids(&[(3, r#"{"p3.element":12}"#)]), Some("3")), 12, "nested ids count");
    let trouble = |schema: &str, max| Mapping::of(&state(schema, max), false).trouble();
    assert_eq!(trouble(&with_ids(&[(3, "{}")]), Some("9")), None);
    for wrong in ["abc", "9223372036854775807", "-2147483649", "1.0", ""] {
        assert!(trouble(&with_ids(&[(3, "{}")]), Some(wrong)).is_some(), "{wrong}");
    }
    assert!(trouble(&with_ids(&[(i64::MAX, "{}")]), None).is_some());
    assert!(trouble(&with_ids(&[(3, r#"{"p3.element":"5"}"#)]), None).is_some());
    assert!(trouble(&with_ids(&[(i64::from(i32::MAX), "{}")]), None).is_none(), "until one is asked for");
}

#[test]
fn every_field_inside_gets_an_id_and_a_physical_name() {
    let mut mapping = Mapping::of(&state(&with_ids(&[(1, "{}")]), None), false);
    let data_type = parse_type("array<array<struct<a: long, b: map<struct<k: long>, string>>>>").unwrap();
    let json = mapping.field_json(&Field::nullable("x", data_type));
    let inner = &json["type"]["elementType"]["elementType"]["fields"];
    let ids = [&json, &inner[0], &inner[1], &inner[1]["type"]["keyType"]["fields"][0]];
    let ids: Vec<i64> = ids.iter().map(|f| f["metadata"][ID].as_i64().unwrap()).collect();
    assert_eq!(ids, [2, 3, 4, 5]);
    assert_eq!(mapping.highest(), 5);
    let name = json["metadata"][PHYSICAL_NAME].as_str().unwrap();
    let uuid: uuid::Uuid = name.strip_prefix("col-").unwrap().parse().unwrap();
    assert_eq!((uuid.get_version_num(), uuid.get_variant()), (8, uuid::Variant::RFC4122));
    assert_ne!(name, inner[0]["metadata"][PHYSICAL_NAME].as_str().unwrap());
    assert!(json["metadata"].get(NESTED_IDS).is_none());
}

#[test]
fn iceberg_compatible_tables_give_ids_to_elements_too() {
    let mut mapping = Mapping::of(&state(&with_ids(&[(1, "{}")]), None), true);
    let json =
        mapping.field_json(&Field::nullable("x", parse_type("array<map<string, struct<a: long>>>").unwrap()));
    let physical = json["metadata"][PHYSICAL_NAME].as_str().unwrap();
    let nested = json["metadata"][NESTED_IDS].as_object().unwrap();
    let keys: Vec<&str> = nested.keys().map(|k| k.strip_prefix(physical).unwrap()).collect();
    assert_eq!(keys, [".element", ".element.key", ".element.value"]);
    let mut ids: Vec<i64> = nested.values().filter_map(Value::as_i64).collect();
    ids.push(json["metadata"][ID].as_i64().unwrap());
    ids.push(json["type"]["elementType"]["valueType"]["fields"][0]["metadata"][ID].as_i64().unwrap());
    ids.sort_unstable();
    assert_eq!(ids, [2, 3, 4, 5, 6], "distinct from each other");
}

#[test]
fn physical_names_differ_from_commit_to_commit() {
    let name = |state: &TableState| Mapping::of(state, false).physical_name(7);
    let before = state(&with_ids(&[(1, "{}")]), None);
    let mut after = before.clone();
    after.log_version = after.log_version.next();
    assert_eq!(name(&before), name(&before));
    assert_ne!(name(&before), name(&after), "a RESTORE can bring an id back, but never a name");
}
