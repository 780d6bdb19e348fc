//! Kind files, and migrations for them, from what exists: the command, and what it leaves behind.

mod arrow;

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::support::table::files_below;
use crate::support::{Log, Ran, Table, column, required, run, struct_type};

/// A table with comments, nesting, partitioning, properties, and things that a kind file can't say.
fn orders() -> Table {
    let item = json!({ "type": "array", "containsNull": false, "elementType": struct_type(vec![column("sku", "string")]) });
    let mut day = column("day", "date");
    day["metadata"] = json!({ "delta.generationExpression": "CAST(at AS DATE)" });
    let mut id = required("id", "long");
    id["metadata"] = json!({ "comment": "who \"it\" is\nin two lines" });
    let items = column("items", item);
    let mut log =
        Log::new(vec![id, day, items, column("a.b", "decimal(38,18)")]).versions(1, 4).partitioned(&["day"]);
    for (key, value) in [
        ("delta.enableChangeDataFeed", "true"),
        ("owner", "team b"),
        ("delta.constraints.c", "id > 0"),
        ("other.schema_version", "3"),
        ("other.kind", "orders"),
    ] {
        log = log.property(key, value);
    }
    log.metadata("description", "All \"orders\"").table()
}

fn here(table: &Table, args: &[&str]) -> Ran {
    run(&table.beside(""), args)
}

fn kind_path(table: &Table) -> PathBuf {
    table.beside("orders.toml")
}

fn shown(table: &Table, args: &[&str], ran: &Ran) -> String {
    let folder = table.beside("");
    let folder = folder.to_str().unwrap().trim_end_matches('/');
    let mut text = format!("$ delta-migrate {}\n{}", args.join(" "), ran.stdout);
    ran.stderr.lines().for_each(|line| text.push_str(&format!("stderr: {line}\n")));
    text.push_str(&format!("exit code {}\n", ran.code));
    text.replace(folder, "[HERE]")
}

macro_rules! assert_shown {
    ($name:expr, $text:expr) => {
        let mut settings = insta::Settings::clone_current();
        settings.set_omit_expression(true);
        settings.set_prepend_module_to_snapshot(false);
        settings.bind(|| insta::assert_snapshot!($name, $text));
    };
}

#[test]
fn a_kind_file_is_written_from_a_table_without_any_configuration() {
    let table = orders();
    let before = files_below(table.path());
    let args = ["kind", "from-table", "facts", "--name", "orders"];
    let ran = here(&table, &args);
    assert_shown!("kind_from_table", shown(&table, &args, &ran));
    let file = here(&table, &[&args[..], &["-o", "orders.toml"]].concat());
    assert_eq!((file.code, file.stdout.as_str()), (0, "wrote orders.toml\n"), "{file:?}");
    assert_eq!(file.stderr, ran.stderr);
    assert_eq!(std::fs::read_to_string(kind_path(&table)).unwrap(), ran.stdout);

    let json = here(&table, &["kind", "from-table", "facts", "--format", "json"]).json();
    assert_eq!(json["kind"], "facts", "by default the last part of the location: {json}");
    assert_eq!(json["file"], Value::Null);
    assert!(json["text"].as_str().unwrap().contains("kind = \"facts\"\n"), "{json}");
    assert_eq!(json["notes"].as_array().unwrap().len(), ran.stderr.lines().count(), "{json}");
    assert!(files_below(table.path()) == before, "the table's folder was changed");
}

#[test]
fn an_existing_file_is_replaced_only_with_force() {
    let table = orders();
    let file = kind_path(&table);
    std::fs::write(&file, "mine").unwrap();
    let args = ["kind", "from-table", "facts", "-o", "orders.toml"];
    let ran = here(&table, &args);
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{ran:?}");
    assert!(ran.stderr.contains("is there already") && ran.stderr.contains("--force"), "{ran:?}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "mine");
    let ran = here(&table, &[&args[..], &["--force"]].concat());
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(std::fs::read_to_string(&file).unwrap().starts_with("# The shape of an existing table"));
    assert_eq!(here(&table, &["kind", "from-table", "facts", "--force"]).code, 2, "--force without a file");
}

#[test]
fn what_is_no_table_is_told_on_stderr_and_leaves_no_file() {
    let table = orders();
    std::fs::create_dir(table.beside("other")).unwrap();
    std::fs::write(table.beside("other/readme"), "x").unwrap();
    for (uri, code, exit) in [("nowhere", "missing", 1), ("other", "not_a_table", 1), ("x://y", "usage", 2)] {
        let ran = here(&table, &["kind", "from-table", uri, "-o", "orders.toml"]);
        assert_eq!((ran.code, ran.stdout.as_str()), (exit, ""), "{uri}: {ran:?}");
        assert!(ran.stderr.starts_with("error: ") && ran.stderr.contains("→"), "{uri}: {ran:?}");
        let json = here(&table, &["kind", "from-table", uri, "--format", "json"]).json();
        assert_eq!(json["error"]["code"], code, "{json}");
        assert!(!kind_path(&table).exists(), "{uri}");
    }
    let ran = here(&table, &["kind", "from-table", "facts", "--name", "no name"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{ran:?}");
}

#[test]
fn the_configuration_gives_storage_options_and_the_namespace_where_there_is_one() {
    let table = orders();
    let config = table.beside("delta-migrate.toml");
    std::fs::write(&config, "namespace = \"owner\"\n[storage]\nsecret = \"${NO_SUCH_VARIABLE}\"\n").unwrap();
    let ran = here(&table, &["kind", "from-table", "facts"]);
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.stderr.contains("NO_SUCH_VARIABLE"), "{ran:?}");
    std::fs::write(&config, "namespace = \"team\"\n").unwrap();
    assert_eq!(here(&table, &["kind", "from-table", "facts"]).code, 0);
    let ran = here(&table, &["kind", "from-table", "facts", "--storage-option", "s3cr3t"]);
    assert!(ran.code == 2 && !ran.stderr.contains("s3cr3t"), "{ran:?}");
}

#[test]
fn a_table_that_is_created_from_the_file_is_the_same_and_the_old_one_fits() {
    let table = orders();
    here(&table, &["kind", "from-table", "facts", "--name", "orders", "-o", "orders.toml"]);
    let of = ["--namespace", "app", "--kind-file", "orders.toml"];
    let ran = here(&table, &[&of[..], &["apply", "new"]].concat());
    assert_eq!(ran.code, 0, "{ran:?}");
    let log = std::fs::read_to_string(table.beside("new/_delta_log/00000000000000000000.json")).unwrap();
    let actions = log.lines().map(|l| serde_json::from_str::<Value>(l).unwrap());
    let new = actions.filter_map(|mut a| a.get_mut("metaData").map(Value::take)).next().unwrap();
    let old = table.metadata();
    let schema = |m: &Value| serde_json::from_str::<Value>(m["schemaString"].as_str().unwrap()).unwrap();
    let mut wanted = schema(&old);
    // What was noted as left out.
    wanted["fields"][1]["metadata"] = json!({});
    assert_eq!(schema(&new), wanted);
    assert_eq!(new["partitionColumns"], old["partitionColumns"]);
    assert_eq!(new["description"], old["description"]);
    let configuration = new["configuration"].as_object().unwrap();
    let own: Vec<(&String, &Value)> = configuration.iter().filter(|(k, _)| !k.starts_with("app.")).collect();
    let wanted = [("delta.enableChangeDataFeed", json!("true")), ("owner", json!("team b"))];
    assert_eq!(own.iter().map(|(k, v)| (k.as_str(), (*v).clone())).collect::<Vec<_>>(), wanted);

    let ran = here(&table, &[&of[..], &["baseline", "facts", "--at", "0"]].concat());
    assert_eq!(ran.code, 0, "{ran:?}");
    let ran = here(&table, &[&of[..], &["status", "facts", "--check"]].concat());
    assert_eq!(ran.code, 0, "{ran:?}");
}

/// Adds columns to the table behind everybody's back.
fn grow(table: &Table, change: impl FnOnce(&mut Vec<Value>)) {
    let mut metadata = table.metadata();
    let mut schema = table.schema();
    change(schema["fields"].as_array_mut().unwrap());
    metadata["schemaString"] = json!(schema.to_string());
    let version = table.newest() + 1;
    std::fs::write(table.log_file(version), format!("{}\n", json!({ "metaData": metadata }))).unwrap();
}

#[test]
fn what_a_table_has_beyond_the_kind_becomes_the_next_migration() {
    let table = orders();
    here(&table, &["kind", "from-table", "facts", "--name", "orders", "-o", "orders.toml"]);
    let file = kind_path(&table);
    let mine = std::fs::read_to_string(&file).unwrap().replace('\n', "\r\n");
    let mine = format!("{}\t# the author's\r\n  # last line", mine.trim_end());
    std::fs::write(&file, &mine).unwrap();
    grow(&table, |fields| {
        fields[0]["nullable"] = json!(true);
        fields[2]["type"]["elementType"]["fields"].as_array_mut().unwrap().push(column("price", "double"));
        fields.push(required("must", "string"));
        fields.push(column("note", "string"));
    });
    let args = ["kind", "add-migration", "orders.toml", "--from-table", "facts"];
    let dry = [&args[..], &["--dry-run"]].concat();
    let shown_dry = here(&table, &dry);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), mine, "--dry-run wrote");
    let ran = here(&table, &args);
    assert_shown!(
        "kind_add_migration",
        format!("{}\n{}", shown(&table, &dry, &shown_dry), shown(&table, &args, &ran))
    );
    let after = std::fs::read_to_string(&file).unwrap();
    let tail = after.strip_prefix(&mine).unwrap();
    assert_eq!(tail, format!("\r\n\r\n{}", shown_dry.stdout.replace('\n', "\r\n")));

    let again = here(&table, &args);
    assert_eq!(again.code, 0, "{again:?}");
    assert!(
        again.stdout.starts_with("nothing to add: kind `orders` has all of it at version 1"),
        "{again:?}"
    );
    assert!(again.stderr.contains("note: `must` is new and required"), "{again:?}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), after);

    // The table has it all already: it is stamped, and its columns are left alone.
    let of = ["--namespace", "app", "--kind-file", "orders.toml"];
    let ran = here(&table, &[&of[..], &["apply", "facts"]].concat());
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(table.column_names(), ["id", "day", "items", "a.b", "must", "note"]);
}

#[test]
fn a_file_that_cant_be_extended_is_left_as_it_is() {
    let table = orders();
    let file = kind_path(&table);
    let args = ["kind", "add-migration", "orders.toml", "--from-table", "facts"];
    assert_eq!(here(&table, &args).code, 2, "there is no file");
    for (text, wanted) in [
        ("kind = \"k\"\n[columns]\na = \"lnog\"\n", "orders.toml:3:"),
        ("kind = \"k\"\nmigrations = []\n", "nothing was written"),
    ] {
        std::fs::write(&file, text).unwrap();
        let ran = here(&table, &args);
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{ran:?}");
        assert!(ran.stderr.contains(wanted), "{ran:?}");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
    }
    std::fs::write(&file, "kind = \"k\"\n").unwrap();
    let none = here(&table, &["kind", "add-migration", "orders.toml"]);
    assert!(none.code == 2 && none.stderr.contains("--from-table"), "{none:?}");
    let both = here(&table, &[&args[..], &["--from-arrow", "x"]].concat());
    assert_eq!(both.code, 2, "{both:?}");
    let empty = here(&table, &[&args[..], &["--description", " "]].concat());
    assert!(empty.code == 2 && empty.stderr.contains("--description"), "{empty:?}");
    let missing = here(&table, &["kind", "add-migration", "orders.toml", "--from-table", "nowhere"]);
    assert_eq!((missing.code, missing.stdout.as_str()), (1, ""), "{missing:?}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "kind = \"k\"\n");
}

#[test]
fn the_readme_shows_what_the_commands_print() {
    let table = Table::missing();
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let readme = std::fs::read_to_string(root.join("README.md")).unwrap();
    let mut seen = 0;
    for line in readme.lines().filter_map(|l| l.strip_prefix("delta-migrate kind ")) {
        let lake = root.join("fixtures/lake").display().to_string();
        let line = line.replace("fixtures/lake", &lake);
        let args: Vec<&str> = ["kind"].into_iter().chain(line.split(' ')).collect();
        let ran = here(&table, &args);
        assert_eq!(ran.code, 0, "{ran:?}");
        let file = std::fs::read_to_string(kind_path(&table)).unwrap();
        let text = if line.starts_with("from-table") { file } else { ran.stdout };
        assert!(readme.contains(&format!("\n{text}```\n")), "README.md does not show: {text}");
        seen += 1;
    }
    assert_eq!(seen, 2);
}

#[test]
fn help_teaches_with_examples() {
    let table = Table::missing();
    for (name, args) in [
        ("kind_help", &["kind", "--help"][..]),
        ("kind_from_table_help", &["kind", "from-table", "--help"]),
        ("kind_add_migration_help", &["kind", "add-migration", "--help"]),
    ] {
        let ran = here(&table, args);
        assert_eq!(ran.code, 0, "{ran:?}");
        // The global options are the same everywhere.
        let text = ran.stdout.split("Global options:").map(|part| part.split("\nExamples:").last().unwrap());
        let text: Vec<&str> = text.collect();
        assert_shown!(name, text.join("Global options: …\n\nExamples:"));
    }
}
