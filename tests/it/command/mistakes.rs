//! Mistakes of configuration and usage, and secrets.

use super::Lake;
use crate::support::{Ran, command};

/// What the configuration says instead, in a lake of its own; exit code 2 and nothing done.
fn mistaken(config: &str) -> Ran {
    let lake = Lake::copy();
    std::fs::write(lake.path().join("delta-migrate.toml"), config).unwrap();
    let before = crate::support::table::files_below(&lake.path());
    let ran = lake.run(&["apply"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{config}: {ran:?}");
    assert!(ran.stderr.starts_with("error: "), "{config}: {ran:?}");
    assert!(crate::support::table::files_below(&lake.path()) == before, "{config}");
    let json = lake.run(&["apply", "--format", "json"]).json();
    assert_eq!(json["error"]["code"], "usage", "{config}");
    ran
}

#[test]
fn mistakes_in_the_configuration_are_told_with_their_place() {
    let table = "[[tables]]\nuri = \"tables/orders_us\"\nkind = \"orders\"\n";
    let good = "namespace = \"shop\"\n";
    for (config, place, wanted) in [
        (table.to_owned(), "delta-migrate.toml:1:1", "namespace"),
        (format!("namespace = \"delta\"\n{table}"), "delta-migrate.toml:1:", "delta"),
        (format!("{good}tabels = 1\n{table}"), "delta-migrate.toml:2:1", "tables"),
        (format!("{good}{table}{table}"), "delta-migrate.toml:6:", "twice"),
        (format!("{good}[[tables]]\nuri = \"x\"\n"), "delta-migrate.toml:2:", "kind"),
        (format!("{good}[[tables\n{table}"), "delta-migrate.toml:2:", "]"),
        (format!("{good}{table}adopt = \"perhaps\"\n"), "delta-migrate.toml:5:", "from_zero"),
        (
            format!("{good}[storage]\nkey = \"${{NO_SUCH_VARIABLE}}\"\n{table}"),
            "delta-migrate.toml:3:",
            "not set",
        ),
        (format!("{good}[[discover]]\ninclude = \"x\"\n"), "delta-migrate.toml:2:", "root"),
        (format!("{good}[[catalogs]]\ntype = \"hive\"\n"), "delta-migrate.toml:3:8", "unity"),
        (
            format!(
                "{good}[[catalogs]]\ntype = \"unity\"\nendpoint = \"https://uc\"\ntoken = \"${{NO_SUCH_TOKEN}}\""
            ),
            "delta-migrate.toml:5:10",
            "not set",
        ),
    ] {
        let ran = mistaken(&config);
        assert!(ran.stderr.contains(place), "{config}: {}", ran.stderr);
        assert!(ran.stderr.contains(wanted), "{config}: {}", ran.stderr);
    }
}

#[test]
fn what_the_configuration_names_must_be_there() {
    let table = "[[tables]]\nuri = \"tables/orders_us\"\nkind = \"orders\"\n";
    for (config, wanted) in [
        ("namespace = \"shop\"\n".to_owned(), "names no tables"),
        (format!("namespace = \"shop\"\nkinds = \"nowhere/\"\n{table}"), "nowhere"),
        (format!("namespace = \"shop\"\nkinds = \"tables/\"\n{table}"), "no kind file"),
        (format!("namespace = \"shop\"\n{}", table.replace("\"orders\"", "\"odrers\"")), "customers"),
        (format!("namespace = \"shop\"\n{}", table.replace("tables/", "nonsense://")), "no store"),
        ("namespace = \"shop\"\n[[discover]]\nroot = \"tables\"\nkind = \"odrers\"".to_owned(), "customers"),
    ] {
        let ran = mistaken(&config);
        assert!(ran.stderr.contains(wanted), "{config}: {}", ran.stderr);
    }
}

#[test]
fn all_mistakes_of_all_kind_files_are_told_at_once() {
    let lake = Lake::copy();
    for (file, from, to) in [
        ("kinds/orders.toml", "\"timestamp\"", "\"timestmap\""),
        ("kinds/orders.toml", "currency = { type", "order_id = { type"),
        ("kinds/metrics.toml", "ingested_by", "\"a.b.c\""),
    ] {
        let path = lake.path().join(file);
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains(from));
        std::fs::write(path, text.replacen(from, to, 1)).unwrap();
    }
    let ran = lake.run(&["status"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{ran:?}");
    for wanted in
        ["orders.toml:13:", "`timestmap`", "orders.toml:41:", "`order_id`", "metrics.toml:9:", "`a.b`"]
    {
        assert!(ran.stderr.contains(wanted), "{wanted}: {}", ran.stderr);
    }
}

#[test]
fn usage_that_can_not_be_right_ends_with_2() {
    let lake = Lake::copy();
    for (args, wanted) in [
        (&["status", "-c", "nowhere.toml"][..], "nowhere.toml"),
        (&["status", "--kind", "orders"], "none was named"),
        (&["status", "--kind", "nothing", "orders_us"], "nothing"),
        (&["status", "--namespace", "del ta"], "namespace"),
        (&["status", "--namespace", "app", "--kind-file", "kinds/orders.toml"], "no table was named"),
        (&["status", "--kind-file", "nowhere.toml", "orders_us"], "nowhere.toml"),
        (&["status", "--concurrency", "0"], "concurrency"),
        (&["apply", "--plan", "p.json", "--target", "1"], "--target"),
        (&["status", "--format", "xml"], "xml"),
        (&["new", "a b"], "a b"),
        (&["new", "../escape"], "escape"),
    ] {
        let ran = lake.run(args);
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{args:?}: {ran:?}");
        assert!(ran.stderr.contains(wanted), "{args:?}: {}", ran.stderr);
    }
}

#[test]
fn secrets_are_never_printed() {
    let lake = Lake::copy();
    let config = lake.path().join("delta-migrate.toml");
    let text = std::fs::read_to_string(&config).unwrap();
    let storage =
        "[storage]\naws_secret_access_key = \"${LAKE_SECRET}\"\ntoken = \"hunter2-plain\"\n\n[[tables]]";
    let own = "\n[[tables]]\nuri = \"tables/mine\"\nkind = \"orders\"\n\
               [tables.storage]\nsas = \"hunter2-table\"\n";
    std::fs::write(&config, text.replacen("[[tables]]", storage, 1) + own).unwrap();
    for args in [
        &["status", "-vv"][..],
        &["plan", "-vv", "--format", "json"],
        &["apply", "-vv"],
        &["history", "orders_us", "-vv"],
        &["apply", "--storage-option", "hunter2-no-equals"],
        &[
            "status",
            "--storage-option",
            "key=hunter2-option",
            "-vv",
            "memory://user:hunter2-url@x/t?sig=hunter2-url",
        ],
        &["status", "--kind", "orders", "memory://user:hunter2-url@x:port/t?sig=hunter2-url"],
        &["status", "--kind", "orders", "s3://user:hunter2-url@bucket/t?sig=hunter2-url"],
    ] {
        let ran =
            Ran::of(command(&lake.path()).env("LAKE_SECRET", "hunter2-env").args(args).output().unwrap());
        for text in [&ran.stdout, &ran.stderr] {
            let at = text.find("hunter2").map(|i| &text[i.saturating_sub(200)..(i + 60).min(text.len())]);
            assert_eq!(at, None, "{args:?}");
        }
    }
    // A variable that is not set is told by its name.
    let ran = Ran::of(command(&lake.path()).env_remove("LAKE_SECRET").arg("status").output().unwrap());
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("LAKE_SECRET") && !ran.stderr.contains("hunter2"), "{}", ran.stderr);
}
