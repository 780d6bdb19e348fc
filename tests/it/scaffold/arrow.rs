//! Migrations from the schemas of Arrow and Parquet files.

use std::collections::HashMap;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use deltalake::arrow::datatypes::{DataType, Field, Fields, Schema, TimeUnit};
use deltalake::arrow::ipc::writer::{FileWriter, StreamWriter};
use deltalake::parquet::arrow::ArrowWriter;

use crate::support::{Ran, Table, run};

const KIND: &str = "kind = \"facts\"\n[columns]\nid = \"long\"\n";

fn schema() -> Schema {
    let list =
        Field::new("item", DataType::Struct(Fields::from(vec![Field::new("x", DataType::Int8, true)])), true);
    let entries = Field::new(
        "key_value",
        DataType::Struct(Fields::from(vec![
            Field::new("key", DataType::Utf8, false),
            Field::new("value", DataType::Decimal128(38, 18), true),
        ])),
        false,
    );
    let zone = Some("+00:00".into());
    Schema::new(vec![
        Field::new("id", DataType::Int64, true),
        Field::new("note", DataType::LargeUtf8, true)
            .with_metadata(HashMap::from([("comment".to_owned(), "what\nit is".to_owned())])),
        Field::new("list", DataType::List(Arc::new(list)), true),
        Field::new("map", DataType::Map(Arc::new(entries), false), true),
        Field::new("at", DataType::Timestamp(TimeUnit::Microsecond, zone), true),
        Field::new("word", DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8)), true),
        Field::new("day", DataType::Date32, true),
        Field::new("must", DataType::Float32, false),
    ])
}

const BLOCK: &str = r#"[[migrations]]  # 1
description = "from a batch"
[migrations.add_columns]
note = { type = "string", comment = "what\nit is" }
list = "array<struct<x: byte>>"
map = "map<string, decimal(38,18)>"
at = "timestamp"
word = "string"
day = "date"
"#;

fn add(folder: &Path, file: &str) -> Ran {
    std::fs::write(folder.join("kind.toml"), KIND).unwrap();
    let args = ["kind", "add-migration", "kind.toml", "--from-arrow", file, "--description", "from a batch"];
    run(folder, &args)
}

#[test]
fn the_schema_is_read_from_parquet_and_from_arrow_files_and_streams() {
    let table = Table::missing();
    let folder = table.beside("");
    let (schema, create) = (schema(), |name: &str| File::create(folder.join(name)).unwrap());
    ArrowWriter::try_new(create("a.parquet"), Arc::new(schema.clone()), None).unwrap().close().unwrap();
    FileWriter::try_new(create("a.arrow"), &schema).unwrap().finish().unwrap();
    StreamWriter::try_new(create("a.arrows"), &schema).unwrap().finish().unwrap();
    for file in ["a.parquet", "a.arrow", "a.arrows"] {
        let ran = add(&folder, file);
        assert_eq!(ran.code, 0, "{file}: {ran:?}");
        assert!(ran.stderr.contains("note: `must` is new and required"), "{file}: {ran:?}");
        let text = std::fs::read_to_string(folder.join("kind.toml")).unwrap();
        assert_eq!(text, format!("{KIND}\n{BLOCK}"), "{file}");
    }
}

#[test]
fn what_has_no_schema_or_foreign_types_is_refused() {
    let table = Table::missing();
    let folder = table.beside("");
    let odd = Schema::new(vec![
        Field::new("t", DataType::Time64(TimeUnit::Microsecond), true),
        Field::new("half", DataType::Float16, true),
    ]);
    FileWriter::try_new(File::create(folder.join("odd.arrow")).unwrap(), &odd).unwrap().finish().unwrap();
    for (name, bytes) in
        [("empty", &b""[..]), ("text", b"a,b\n1,2\n"), ("cut.parquet", b"PAR1"), ("cut.arrow", b"ARROW1")]
    {
        std::fs::write(folder.join(name), bytes).unwrap();
    }
    for (file, wanted) in [
        ("nowhere", "can't be read"),
        ("empty", "no Arrow IPC file"),
        ("text", "no Arrow IPC file"),
        ("cut.parquet", "no Parquet file"),
        ("cut.arrow", "no Arrow IPC file"),
        ("odd.arrow", "`half` is of Arrow type Float16"),
    ] {
        let ran = add(&folder, file);
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{file}: {ran:?}");
        assert!(ran.stderr.contains(wanted) && !ran.stderr.contains("panicked"), "{file}: {ran:?}");
        assert_eq!(std::fs::read_to_string(folder.join("kind.toml")).unwrap(), KIND, "{file}");
    }
}
