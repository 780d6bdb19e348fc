//! A run over a catalog, and what is said where the catalog's own copy of the columns is old.

use serde_json::{Value, json};

use super::count;
use crate::support::http::{Answer, Request, Server};
use crate::support::lake::{Lake, by_name};

/// A catalog `prod.cdc` whose tables lie in the lake: by name, with the columns that it keeps.
fn server(lake: &Lake, tables: &[(&str, &[&str])]) -> Server {
    let entry = |(name, columns): &(&str, &[&str])| {
        let columns: Vec<Value> = columns.iter().map(|c| json!({"name": c, "type_name": "STRING"})).collect();
        json!({
            "name": name, "full_name": format!("prod.cdc.{name}"), "table_id": name, "table_type": "EXTERNAL",
            "data_source_format": "DELTA", "columns": columns,
            "storage_location": format!("file://{}", lake.path(&format!("lake/{name}")).display()),
        })
    };
    let tables: Vec<Value> = tables.iter().map(entry).collect();
    Server::start(move |request: &Request| match request.path.as_str() {
        "/api/2.1/unity-catalog/tables" => Answer::json(200, &json!({ "tables": tables })),
        _ => Answer::new(404, "nothing here"),
    })
}

const NEWEST: [&str; 7] = ["id", "code", "payload", "detail", "tenant", "tags", "score"];

#[tokio::test]
async fn tables_of_a_catalog_are_brought_up_to_date_and_an_old_copy_of_their_columns_is_told() {
    let lake = Lake::new();
    for (name, version) in [("behind", 2), ("stale", 10), ("fresh", 10)] {
        lake.table(&format!("lake/{name}"), version).await;
    }
    let server = server(
        &lake,
        &[
            ("behind", &["id", "code", "payload", "detail"]),
            ("stale", &["ID", "code", "payload", "detail", "tenant", "tags", "old"]),
            ("fresh", &NEWEST),
            ("gone", &["id"]),
        ],
    );
    lake.configure(&format!(
        "[[catalogs]]\ntype = \"unity\"\nendpoint = \"{}\"\ntables = \"prod.cdc.*\"\n",
        server.url()
    ));
    let stale = |table: &Value| -> Vec<String> {
        let warnings = table["warnings"].as_array().unwrap().iter().map(|w| w.as_str().unwrap().to_owned());
        warnings.filter(|w| w.starts_with("catalog_stale")).collect()
    };
    // What is pending is no fault of the catalog's yet.
    let (code, status) = lake.json(&["status"]);
    assert_eq!((code, count(&status, "planned"), count(&status, "refused")), (1, 1, 1), "{status}");
    assert_eq!(stale(&by_name(&status)["behind"]), Vec::<String>::new());

    let (code, report) = lake.json(&["apply"]);
    assert_eq!((code, count(&report, "migrated"), count(&report, "current")), (1, 1, 2), "{report}");
    let tables = by_name(&report);
    assert_eq!(tables["gone"]["error"]["code"], "missing");
    let lacks = "catalog_stale: the catalog's own copy of the columns lacks";
    let told = stale(&tables["behind"]);
    assert!(told[0].starts_with(&format!("{lacks} `tenant`, `tags` and `score`;")), "{told:?}");
    let told = stale(&tables["stale"]);
    assert!(told[0].starts_with(&format!("{lacks} `score` and has, unlike the table, `old`;")), "{told:?}");
    assert_eq!(stale(&tables["fresh"]), Vec::<String>::new());

    let human = lake.run(&["apply"]);
    assert!(human.stdout.contains("! catalog_stale"), "{human:?}");
}

#[tokio::test]
async fn a_saved_plan_finds_its_tables_in_the_catalog_again() {
    let lake = Lake::new();
    for name in ["a", "b"] {
        lake.table(&format!("lake/{name}"), 2).await;
    }
    let both = server(&lake, &[("a", &["id"]), ("b", &["id"])]);
    let configure = |server: &Server| {
        lake.configure(&format!(
            "[[catalogs]]\ntype = \"unity\"\nendpoint = \"{}\"\ntables = \"prod.cdc.*\"\n",
            server.url()
        ));
    };
    configure(&both);
    assert_eq!(lake.run(&["plan", "-o", "plan.json"]).code, 0);
    let less = server(&lake, &[("b", &["id"])]);
    configure(&less);
    let (code, report) = lake.json(&["apply", "--plan", "plan.json"]);
    assert_eq!((code, count(&report, "migrated"), count(&report, "refused")), (1, 1, 1), "{report}");
    assert_eq!(by_name(&report)["a"]["error"]["code"], "stale_plan", "{report}");
    configure(&both);
    let (code, report) = lake.json(&["apply", "--plan", "plan.json"]);
    assert_eq!((code, count(&report, "migrated"), count(&report, "refused")), (0, 1, 0), "{report}");
    assert!(report.get("sources").is_none(), "every table was named by the plan: {report}");
    assert_eq!(by_name(&report)["a"]["outcome"], "migrated", "{report}");
}
