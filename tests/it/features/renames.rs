//! `rename_columns` and `drop_columns`: names change, data and ids stay, and nothing that refers to a
//! column is left behind.

use std::path::{Path, PathBuf};

use deltalake::arrow::datatypes::DataType;
use serde_json::{Value, json};

use super::mapping::{MAX, mapped};
use super::{Sound, based, sound, sound_after};
use crate::support::checkpoint::write_rows;
use crate::support::command::on;
use crate::support::judge::Before;
use crate::support::rows::{scan, shown};
use crate::support::table::copied;
use crate::support::{Log, Table, column, refused_everywhere, struct_type};

const BASE: &str = "code = \"string\"\npayload = \"struct<lsn: long, note: string>\"\n";

fn fields() -> Vec<Value> {
    let inner = struct_type(vec![mapped("lsn", "long", 4), mapped("note", "string", 5)]);
    vec![mapped("id", "long", 1), mapped("code", "string", 2), mapped("payload", inner, 3)]
}

fn log() -> Log {
    Log::new(fields()).versions(2, 5).property("delta.columnMapping.mode", "name").property(MAX, "5")
}

fn kind(steps: &str) -> String {
    based(BASE, &format!("destructive = true\n{steps}"))
}

/// Two rows under physical names.
fn fill(table: &Table) {
    let rows = [json!({ "p1": 1, "p2": "a" }), json!({ "p1": 2, "p2": null })];
    let columns = vec![("p1", DataType::Int64), ("p2", DataType::Utf8)];
    let add = write_rows(table, "part-0.parquet", columns, &rows);
    table.commit_raw(&[add]);
}

async fn rows(table: &Table) -> Vec<Value> {
    let mut rows = scan(table.load().await).await;
    rows.sort_by_key(ToString::to_string);
    rows
}

fn named(rows: &[Value], old: &str, new: Option<&str>) -> Vec<Value> {
    let mut rows = rows.to_vec();
    for row in &mut rows {
        let row = row.as_object_mut().unwrap();
        let value = row.remove(old).unwrap();
        if let Some(new) = new {
            row.insert(new.to_owned(), value);
        }
    }
    rows
}

fn schema_text(table: &Table) -> String {
    table.metadata()["schemaString"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_rename_changes_one_name_and_no_other_byte() {
    for mode in ["name", "id"] {
        let table = log().property("delta.columnMapping.mode", mode).table();
        fill(&table);
        let (before, text) = (rows(&table).await, schema_text(&table));
        let steps = "rename_columns = { code = \"currency code\", \"payload.lsn\" = \"seq\" }";
        let done = sound(&table, &kind(steps), &["rename:code=currency code", "rename:payload.lsn=seq"]);
        let wanted = text.replace("\"code\"", "\"currency code\"").replace("\"lsn\"", "\"seq\"");
        assert_eq!(schema_text(&table), wanted);
        assert_eq!(table.property(MAX).as_deref(), Some("5"));
        if mode == "name" {
            let after = rows(&table).await;
            assert_eq!(after.len(), 2);
            assert_eq!(after[0]["currency code"], "a");
            let ids = |rows: &[Value]| rows.iter().map(|r| r["id"].clone()).collect::<Vec<_>>();
            assert_eq!(ids(&after), ids(&before));
        }
        broken(&done);
        assert_eq!(crate::support::apply(&table, &kind(steps)).table()["outcome"], "current");
    }
}

fn broken(done: &Sound) {
    done.caught_in_fields("`metadata` of `code` changed", |f| {
        f[1]["metadata"]["delta.columnMapping.physicalName"] = "currency code".into();
    });
    done.caught_in_fields("`code` is not called currency code", |f| f[1]["name"] = "other".into());
    done.caught_in_fields("`name` of `id` changed", |f| f[0]["name"] = "key".into());
}

#[tokio::test]
async fn a_dropped_column_is_gone_and_its_id_is_never_given_again() {
    for max in [Some("5"), None] {
        let mut fields = fields();
        fields.push(mapped("last", "string", 6));
        let log = Log::new(fields).versions(2, 5).property("delta.columnMapping.mode", "name");
        let table = max.map_or(log.clone(), |_| log.property(MAX, "6")).table();
        fill(&table);
        let before = rows(&table).await;
        let base = format!("{BASE}last = \"string\"\n");
        let chain = based(&base, "destructive = true\ndrop_columns = [\"last\", \"payload.note\", \"code\"]");
        let may = ["drop:last", "drop:payload.note", "drop:code", "property:delta.columnMapping.maxColumnId"];
        let done = sound(&table, &chain, &may);
        assert_eq!(table.property(MAX).as_deref(), Some("6"), "the highest id is still known");
        done.caught_in_metadata("maxColumnId is None", |m| {
            m["configuration"].as_object_mut().unwrap().remove(MAX);
        });
        done.caught_in_fields("`code` is there still", |f| f.push(mapped("code", "string", 2)));
        assert_eq!(table.column_names(), ["id", "payload"]);
        assert_eq!(table.field("payload")["type"], struct_type(vec![mapped("lsn", "long", 4)]));
        let wanted: Vec<Value> = named(&named(&before, "code", None), "last", None);
        let mut after = rows(&table).await;
        after.iter_mut().for_each(|r| drop(r.as_object_mut().unwrap().remove("payload")));
        let wanted = named(&wanted, "payload", None);
        assert_eq!(after, wanted);
        // A column of the same name is another one: what the files still hold is not seen again.
        let chain = format!(
            "{chain}[[migrations]]\ndescription = \"again\"\nadd_columns = {{ code = \"string\" }}\n"
        );
        sound(&table, &chain, &[]);
        assert_eq!(table.field("code")["metadata"]["delta.columnMapping.id"], 7);
        assert!(rows(&table).await.iter().all(|r| r["code"].is_null()));
    }
}

/// Spark's tables, with Spark's rows.
#[tokio::test]
async fn tables_of_spark_are_renamed_and_dropped_from() {
    let Some(folder) = copied("kernel--table-with-columnmapping-mode-name") else { return };
    let before = shown(&folder).await;
    assert!(!before.is_empty());
    let text = schema_text(&folder);
    let chain = "kind = \"facts\"\n[columns]\nByteType = \"byte\"\nStringType = \"string\"\n\
        nested_struct = \"struct<aa: string, ac: struct<aca: integer>>\"\n\
        [[migrations]]\ndescription = \"one\"\ndestructive = true\n\
        rename_columns = { StringType = \"text\", \"nested_struct.ac.aca\" = \"deep\" }\ndrop_columns = [\"ByteType\"]\n";
    let may = ["rename:StringType=text", "rename:nested_struct.ac.aca=deep", "drop:ByteType"];
    let before_state = Before::of(&folder);
    sound_after(&folder, chain, &may, before_state);
    let start = text.find("{\"name\":\"ByteType\"").unwrap();
    let end = text.find("{\"name\":\"ShortType\"").unwrap();
    let wanted = format!("{}{}", &text[..start], &text[end..])
        .replace("\"StringType\"", "\"text\"")
        .replace("\"aca\"", "\"deep\"");
    assert_eq!(schema_text(&folder), wanted);
    let mut wanted = before;
    for row in &mut wanted {
        row.remove("ByteType").unwrap();
        let text = row.remove("StringType").unwrap();
        row.insert("text".to_owned(), text);
        row.entry("nested_struct".to_owned()).and_modify(|s| *s = s.replace("aca:", "deep:"));
    }
    wanted.sort();
    assert_eq!(shown(&folder).await, wanted);
}

fn message(error: &Value) -> &str {
    error["message"].as_str().unwrap()
}

#[test]
fn without_column_mapping_nothing_is_renamed_or_dropped() {
    let plain = || {
        let inner = struct_type(vec![column("lsn", "long"), column("note", "string")]);
        Log::new(vec![column("id", "long"), column("code", "string"), column("payload", inner)])
    };
    for (step, word) in [
        ("rename_columns = { code = \"code_2\" }", "renamed"),
        ("drop_columns = [\"payload.note\"]", "dropped"),
    ] {
        for log in [plain(), plain().versions(2, 5).property("delta.columnMapping.mode", "none")] {
            let error = refused_everywhere(&log.table(), &kind(step), "unsupported_feature");
            assert!(
                message(&error).contains("no column mapping") && message(&error).contains(word),
                "{error}"
            );
        }
    }
}

#[test]
fn whatever_refers_to_a_column_holds_it() {
    let with = |key: &str, value: &str, on: usize| {
        let mut fields = fields();
        fields[on]["metadata"][key] = value.into();
        Log { schema: struct_type(fields), ..log() }
    };
    let invariant = json!({ "expression": { "expression": "length(CODE) > 1" } }).to_string();
    let cases = [
        (
            log().property("delta.constraints.positive", "id > 0 AND `code` <> ''"),
            "check constraint `positive`",
        ),
        (log().property("delta.dataSkippingStatsColumns", "id,code"), "`delta.dataSkippingStatsColumns`"),
        (with("delta.generationExpression", "upper(Code)", 0), "generated column `id`"),
        (with("delta.invariants", &invariant, 0), "the invariant of `id`"),
        (log().partitioned(&["code"]), "partition column"),
    ];
    for (log, who) in cases {
        for step in ["rename_columns = { code = \"code_2\" }", "drop_columns = [\"code\"]"] {
            let error = refused_everywhere(&log.clone().table(), &kind(step), "column_in_use");
            assert!(message(&error).contains(who), "{who}: {error}");
        }
        // The others are free.
        sound(
            &log.table(),
            &kind("rename_columns = { \"payload.lsn\" = \"seq\" }"),
            &["rename:payload.lsn=seq"],
        );
    }
    // What goes with the column does not hold it.
    let own = with("delta.invariants", &invariant, 1);
    sound(&own.clone().table(), &kind("drop_columns = [\"code\"]"), &["drop:code"]);
    refused_everywhere(&own.table(), &kind("rename_columns = { code = \"c\" }"), "column_in_use");
    // A constraint that the same migration drops is no obstacle.
    let log = log().property("delta.constraints.Positive", "code > 0");
    let steps = "drop_constraints = [\"positive\"]\nrename_columns = { code = \"c\" }";
    sound(&log.table(), &kind(steps), &["rename:code=c", "property:delta.constraints.Positive"]);
}

#[test]
fn clustered_tables_and_identity_columns_lose_nothing() {
    let clustered = || {
        let features = ["columnMapping", "clustering", "domainMetadata"];
        log().features(&["columnMapping"], &features)
    };
    let error = refused_everywhere(&clustered().table(), &kind("drop_columns = [\"code\"]"), "column_in_use");
    assert!(message(&error).contains("clustered"), "{error}");
    // The domain holds physical names, which a rename leaves alone.
    sound(&clustered().table(), &kind("rename_columns = { code = \"c\" }"), &["rename:code=c"]);

    let mut fields = fields();
    fields[1]["metadata"]["delta.identity.highWaterMark"] = 9_223_372_036_854_775_807_i64.into();
    let log = Log { schema: struct_type(fields), ..log() }.versions(2, 6);
    let error = refused_everywhere(&log.clone().table(), &kind("drop_columns = [\"code\"]"), "column_in_use");
    assert!(message(&error).contains("identity"), "{error}");
    sound(&log.table(), &kind("rename_columns = { code = \"c\" }"), &["rename:code=c"]);
}

#[test]
fn a_new_name_must_be_one_that_the_table_can_take() {
    let rename = |new: &str| kind(&format!("rename_columns = {{ code = \"{new}\" }}"));
    let mut more = fields();
    more.push(mapped("Amount", "long", 6));
    let log_of = |fields: Vec<Value>| Log { schema: struct_type(fields), ..log() };
    let error = refused_everywhere(&log_of(more).table(), &rename("amount"), "invalid_name");
    assert!(message(&error).contains("has `Amount` too"), "{error}");
    let feed = log().property("delta.enableChangeDataFeed", "true");
    refused_everywhere(&feed.table(), &rename("_change_type"), "invalid_name");
    refused_everywhere(&log().table(), &rename("a\\nb"), "invalid_name");
    // Letter case alone is a change of name too.
    sound(&log().table(), &rename("CODE"), &["rename:code=CODE"]);
    // A field that lacks its physical name would lose its data.
    let mut bare = fields();
    bare[1]["metadata"].as_object_mut().unwrap().remove("delta.columnMapping.physicalName");
    let error = refused_everywhere(&log_of(bare).table(), &rename("c"), "unsupported_feature");
    assert!(message(&error).contains("no physical name"), "{error}");
}

#[test]
fn the_last_column_stays() {
    let base = "code = \"string\"\npayload = \"struct<lsn: long>\"\n";
    let mut fields = fields();
    fields[2]["type"] = struct_type(vec![mapped("lsn", "long", 4)]);
    let of = |fields: Vec<Value>| Log { schema: struct_type(fields), ..log() };
    let drops = |columns: &str| {
        format!(
            "kind = \"facts\"\n[columns]\n{columns}[[migrations]]\ndescription = \"d\"\ndestructive = true\n"
        )
    };
    let only = format!("{}drop_columns = [\"code\"]\n", drops("code = \"string\"\n"));
    let error = refused_everywhere(&of(fields[1..2].to_vec()).table(), &only, "column_in_use");
    assert!(message(&error).contains("last column"), "{error}");
    let partitioned = of(fields[..2].to_vec()).partitioned(&["id"]);
    let error = refused_everywhere(&partitioned.table(), &only, "column_in_use");
    assert!(message(&error).contains("last column"), "{error}");
    // The kind can't ask for a struct without a field; a table can have fewer fields than the kind says.
    let told = on(
        &of(fields).table(),
        &based(base, "destructive = true\ndrop_columns = [\"payload.lsn\"]"),
        &["status", "x"],
    );
    assert_eq!(told.code, 2, "{told:?}");
    assert!(
        told.stderr.contains("drop the struct instead") || told.stdout.contains("drop the struct instead"),
        "{told:?}"
    );
}

#[test]
fn an_old_name_that_is_gone_is_not_guessed_at() {
    let chain = "kind = \"facts\"\n[columns]\nid = \"long\"\n\
        [[migrations]]\ndescription = \"a\"\nadd_columns = { more = \"string\" }\n\
        [[migrations]]\ndescription = \"one\"\ndestructive = true\nrename_columns = { more = \"less\" }\n";
    let mut fields = fields();
    fields.push(mapped("less", "string", 6));
    let of = |fields: Vec<Value>| Log { schema: struct_type(fields), ..log() };
    // The stamp promises the old name.
    refused_everywhere(&of(fields.clone()).stamped(1).table(), chain, "drifted");
    // From zero the chain would bring `more` and meet `less`.
    refused_everywhere(&of(fields).table(), chain, "invalid_name");
}

/// Who wrote the name in other letters had renamed it already.
#[test]
fn a_name_that_is_as_wanted_already_is_left_alone() {
    let mut fields = fields();
    fields[1]["name"] = "CODE".into();
    let table = Log { schema: struct_type(fields), ..log() }.table();
    let text = schema_text(&table);
    let chain = kind("rename_columns = { code = \"CODE\" }");
    let plan = on(&table, &chain, &["plan", table.arg()]).json()["plans"][0].clone();
    assert_eq!(
        plan["commits"][0]["migrations"][0]["changes"],
        json!([{ "change": "leave_column", "path": "CODE" }])
    );
    sound(&table, &chain, &[]);
    assert_eq!(schema_text(&table), text);
}

#[test]
fn plans_warn_of_what_is_lost() {
    let table = log().property("delta.enableChangeDataFeed", "true").table();
    let steps = "rename_columns = { code = \"c\" }\ndrop_columns = [\"payload.note\"]";
    let ran = on(&table, &kind(steps), &["plan", table.arg()]);
    let plan = ran.json()["plans"][0].clone();
    let changes = &plan["commits"][0]["migrations"][0]["changes"];
    assert_eq!(
        *changes,
        json!([
            { "change": "rename_column", "path": "code", "to": "c" },
            { "change": "drop_column", "path": "payload.note", "type": "string" },
        ])
    );
    let warnings = plan["warnings"].to_string();
    for words in [
        "drops `payload.note`",
        "renames `code`",
        "a stream that reads across",
        "change data feed",
        "fixed schema",
    ] {
        assert!(warnings.contains(words), "{words}: {warnings}");
    }
    let file = table.beside("kind.toml");
    let folder: PathBuf = table.beside("");
    let args = ["--namespace", "app", "--kind-file", file.to_str().unwrap(), "plan", table.arg()];
    let shown = crate::support::run(Path::new(&folder), &args).stdout;
    assert!(shown.contains("~ code is called c\n") && shown.contains("- payload.note string\n"), "{shown}");
}

/// A new table is born with the newest names, and without what was dropped.
#[tokio::test]
async fn a_new_table_has_the_newest_names_from_the_start() {
    let table = Table::missing();
    let chain = kind(
        "rename_columns = { code = \"c\", \"payload.lsn\" = \"seq\" }\ndrop_columns = [\"payload.note\"]",
    );
    assert_eq!(crate::support::apply(&table, &chain).table()["outcome"], "created");
    assert_eq!(table.column_names(), ["id", "c", "payload"]);
    assert_eq!(table.field("payload")["type"], struct_type(vec![column("seq", "long")]));
    assert_eq!(crate::support::apply(&table, &chain).table()["outcome"], "current");
}
