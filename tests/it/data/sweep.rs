//! Every table of a corpus that other engines wrote: a column is added and filled in, and all else stays.

use std::io::Write as _;
use std::path::PathBuf;

use deltalake::arrow::array::RecordBatch;
use deltalake::arrow::util::display::{ArrayFormatter, FormatOptions};

use super::*;

const ANY: &str = r#"
kind = "facts"
[[migrations]]
description = "new"
[migrations.add_columns]
dm_new = "string"
[migrations.update]
set = { dm_new = "'x'" }
where = "dm_new IS NULL"
"#;

fn say(line: &str) {
    // Not captured, unlike the macros.
    let mut out = std::io::stderr();
    writeln!(out, "{line}").unwrap();
}

/// Rows as the kernel reads them, each value as Arrow shows it.
async fn scanned(table: &Table) -> Result<Vec<BTreeMap<String, String>>, String> {
    let loaded = deltalake::open_table(table.url()).await.map_err(|e| e.to_string())?;
    let mut rows =
        tokio::spawn(crate::support::rows::scan_as(loaded, shown)).await.map_err(|_| "no scan".to_owned())?;
    rows.sort();
    Ok(rows)
}

fn shown(batch: &RecordBatch) -> Vec<BTreeMap<String, String>> {
    let options = FormatOptions::default().with_null("∅");
    let schema = batch.schema();
    let columns: Vec<(&String, ArrayFormatter<'_>)> = schema
        .fields()
        .iter()
        .zip(batch.columns())
        .map(|(field, column)| (field.name(), ArrayFormatter::try_new(column.as_ref(), &options).unwrap()))
        .collect();
    let row = |n: usize| columns.iter().map(|(name, c)| ((*name).clone(), c.value(n).to_string())).collect();
    (0..batch.num_rows()).map(row).collect()
}

fn copied(from: &std::path::Path) -> Table {
    let copy = Table::missing();
    for (file, bytes) in files_below(from) {
        let to = copy.path().join(file.strip_prefix(from).unwrap());
        match file.is_dir() {
            true => std::fs::create_dir_all(to).unwrap(),
            false => std::fs::write(to, bytes).unwrap(),
        }
    }
    copy
}

#[tokio::test]
async fn every_table_of_the_corpus_that_can_be_rewritten() {
    let default = || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../shared/tables");
    let corpus = std::env::var_os("DELTA_MIGRATE_TABLES").map_or_else(default, PathBuf::from);
    let Ok(entries) = std::fs::read_dir(&corpus) else {
        say(&format!("skipped: there are no tables at {}", corpus.display()));
        return;
    };
    let mut tables: Vec<PathBuf> = entries.map(|e| e.unwrap().path()).filter(|p| p.is_dir()).collect();
    tables.sort();
    let (mut done, mut wrong) = (0, Vec::new());
    let only = std::env::var("DELTA_MIGRATE_ONLY").ok();
    for path in tables {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if only.as_ref().is_some_and(|only| *only != name) {
            continue;
        }
        let table = copied(&path);
        let before = table.files();
        let rows_before = scanned(&table).await;
        match migrate_at(&table.location(), ANY, 1 << 14).await {
            Err(error) => {
                let same = before.iter().all(|(file, bytes)| table.files().get(file) == Some(bytes));
                let entries = |files: &BTreeMap<PathBuf, Vec<u8>>| {
                    files.keys().filter(|f| f.to_string_lossy().contains("_delta_log")).count()
                };
                let written = entries(&table.files()) != entries(&before);
                if !same || written || rows_before.is_ok() && !error.is_refusal() {
                    wrong.push(format!("{name}: {} {error:?}", error.code()));
                }
            }
            Ok(report) => match (rows_before, scanned(&table).await) {
                (Ok(before), Ok(mut after)) => {
                    let unfilled = after.iter().filter(|r| r["dm_new"] != "x").count();
                    for row in &mut after {
                        row.remove("dm_new");
                    }
                    after.sort();
                    if unfilled > 0 || before != after {
                        wrong.push(format!(
                            "{name}: {unfilled} of {} rows unfilled, {} before; {:?} {:?}",
                            after.len(),
                            before.len(),
                            before.iter().find(|r| !after.contains(r)),
                            after.iter().find(|r| !before.contains(r)),
                        ));
                    } else {
                        done += 1;
                        let is_plain = |v: u64| {
                            let text = std::fs::read_to_string(table.log_file(v)).unwrap();
                            !text.is_empty() && text.lines().all(|l| !l.is_empty())
                        };
                        if table.versions().iter().copied().eq(0..=table.newest())
                            && (0..=table.newest()).all(is_plain)
                        {
                            sound(&table);
                        }
                    }
                    let rewrite = report.rewrite.unwrap();
                    if rewrite.rows != Some(before.len() as u64) {
                        wrong.push(format!("{name}: {rewrite:?} of {} rows", before.len()));
                    }
                }
                (before, after) => {
                    let what = |r: Result<Vec<_>, String>| r.map(|r: Vec<BTreeMap<_, _>>| r.len());
                    wrong.push(format!("{name}: {:?} {:?}", what(before), what(after)));
                }
            },
        }
    }
    say(&format!("{done} tables were rewritten"));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(only.is_some() || done > 50, "only {done}");
}
