//! A corpus that is not what it was, or that today's code does not live up to.

use serde_json::{Value, json};

use super::Corpus;

/// The only finding, or all in one text.
fn joined(findings: &[String]) -> String {
    findings.join("\n")
}

#[tokio::test(flavor = "multi_thread")]
async fn one_byte_flipped_in_any_file_is_found_and_the_file_named() {
    let corpus = Corpus::of(1).await;
    let files: Vec<_> = corpus.bytes().into_iter().filter(|(_, bytes)| !bytes.is_empty()).collect();
    assert!(files.len() > 40, "{}", files.len());
    for (n, (path, bytes)) in files.iter().enumerate() {
        // Another place in each file: first, last, and all over.
        let at = match n % 3 {
            0 => 0,
            1 => bytes.len() - 1,
            _ => (n * 7919) % bytes.len(),
        };
        let mut flipped = bytes.clone();
        flipped[at] ^= 1 << (n % 8);
        let file = corpus.path().join(path);
        std::fs::write(&file, &flipped).unwrap();
        let findings = corpus.findings(1).await;
        assert_eq!(findings.len(), 1, "{}: {findings:?}", path.display());
        let place = format!("1.0/{}: found", path.to_str().unwrap());
        // Of the manifest and its hash either may be the one that changed.
        let is_seal = path.to_str().unwrap().starts_with("manifest.json");
        assert!(
            findings[0].starts_with(&place) || is_seal && findings[0].starts_with("1.0/manifest.json"),
            "{findings:?}"
        );
        std::fs::write(&file, bytes).unwrap();
    }
    assert_eq!(corpus.findings(1).await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_gone_or_was_put_in_is_found() {
    let corpus = Corpus::of(1).await;
    let file = corpus.file("tables/facts/born_1/_delta_log/00000000000000000001.json");
    let bytes = std::fs::read(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    let gone = joined(&corpus.findings(1).await);
    assert!(gone.contains("born_1/_delta_log/00000000000000000001.json: found no file"), "{gone}");
    std::fs::write(&file, bytes).unwrap();
    std::fs::write(corpus.file("tables/facts/born_1/part.parquet"), "x").unwrap();
    let extra = joined(&corpus.findings(1).await);
    assert!(extra.contains("born_1/part.parquet: found a file; wanted no file"), "{extra}");
}

/// What 1.0 wrote and today's code does not write any more looks, from here, like a key that only
/// the old document has.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_a_release_wrote_and_today_s_code_dropped_is_found() {
    let corpus = Corpus::of(2).await;
    assert_eq!(corpus.findings(2).await, Vec::<String>::new());
    for name in ["status", "plan", "apply", "status_older_release"] {
        corpus.rewrite_json(&format!("said/{name}.json"), |report| {
            report["tables"][0]["since"] = json!(1);
        });
    }
    corpus.rewrite_json("said/plan_file.json", |file| file["tables"][0]["digest_of_all"] = json!("x"));
    for name in ["events", "history"] {
        corpus.rewrite(&format!("said/{name}.jsonl"), |text| text.replacen('{', "{\"dropped\":1,", 1));
    }
    let log = "tables/facts/born_1/_delta_log/00000000000000000000.json";
    corpus.rewrite(log, |text| {
        let text = text.replacen("\"txnId\"", "\"dropped\":1,\"txnId\"", 1);
        text.replacen("{\\\"from\\\"", "{\\\"lost\\\":1,\\\"from\\\"", 1)
    });
    let findings = joined(&corpus.findings(2).await);
    for wanted in [
        "1.0/said/status.json: found no key `tables[].since`",
        "1.0/said/plan.json: found no key `tables[].since`",
        "1.0/said/apply.json: found no key `tables[].since`",
        "1.0/said/status_older_release.json: found no key `tables[].since`",
        "1.0/said/plan_file.json: found no key `tables[].digest_of_all`",
        "1.0/said/events.jsonl: found no key `dropped`",
        "1.0/said/history.jsonl: found no key `dropped`",
        "1.0/tables: found no key `commitInfo.dropped`",
        "1.0/tables: found no key `schema_history[].lost`",
    ] {
        assert!(findings.contains(wanted), "{wanted}\n{findings}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_a_reader_needs_is_missed_in_a_saved_plan_and_in_a_history() {
    let corpus = Corpus::of(2).await;
    let plan = std::fs::read_to_string(corpus.file("said/plan_file.json")).unwrap();
    for (key, wanted) in [
        ("fingerprint", "born_1: found stale_plan"),
        ("table_id", "born_1: found stale_plan"),
        ("chain", "the plan file can't be read"),
        ("namespace", "the plan file can't be read"),
        ("uri", "the plan file can't be read"),
    ] {
        corpus.rewrite_json("said/plan_file.json", |file| {
            for table in file["tables"].as_array_mut().unwrap() {
                table.as_object_mut().unwrap().shift_remove(key);
            }
        });
        let findings = joined(&corpus.findings(2).await);
        assert!(findings.contains(wanted), "{key}: {wanted}\n{findings}");
        corpus.rewrite("said/plan_file.json", |_| plan.clone());
    }
    // A record that today's code could not read would stop every migration.
    let log = "tables/facts/born_1/_delta_log/00000000000000000000.json";
    corpus.rewrite(log, |text| text.replacen("[{\\\"from\\\"", "{{\\\"from\\\"", 1));
    let findings = joined(&corpus.findings(2).await);
    assert!(findings.contains("1.0/tables/facts/born_1: found status `invalid_stamp`"), "{findings}");
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_stamps_floors_and_words_that_mean_something_else_today_are_found() {
    let corpus = Corpus::of(3).await;
    corpus.rewrite_json("rows/facts/stepwise.json", |rows| rows[0]["payload"]["n"] = json!("0.01"));
    corpus.rewrite_json("rows/facts/born_3.json", |rows| drop(rows.as_array_mut().unwrap().pop()));
    corpus.rewrite_json("said/status.json", |report| {
        let tables = report["tables"].as_array_mut().unwrap();
        let table = tables.iter_mut().find(|t| t["uri"] == "tables/facts/too_new").unwrap();
        table["error"]["code"] = json!("too_old");
    });
    corpus.rewrite_json("manifest.json", |manifest| {
        let mut change = |name: &str, key: &str, value: Value| {
            let tables = manifest["tables"].as_array_mut().unwrap();
            let path = format!("tables/facts/{name}");
            tables.iter_mut().find(|t| t["path"] == *path).unwrap()[key] = value;
        };
        change("born_1", "version", json!(2));
        change("0_to_2", "min_version", json!(7));
        change("0_to_1", "min_version", json!(7));
        change("drifted", "code", json!("diverged"));
        change("0_to_3", "log_version", json!(9));
        let plans = manifest["plans"].as_array_mut().unwrap();
        plans.iter_mut().find(|p| p["table"] == "tables/facts/2_to_3").unwrap()["ends"] = json!("stale");
        plans.iter_mut().find(|p| p["table"] == "tables/facts/missing").unwrap()["table"] = json!("nowhere");
    });
    let findings = joined(&corpus.findings(3).await);
    for wanted in [
        "1.0/tables/facts/stepwise: found as the release left them: 4 rows, among them",
        "1.0/tables/facts/born_3: found as the release left them: 1 rows",
        "1.0/said/status.json: tables/facts/too_new: found",
        "1.0/tables/facts/born_1: found version 1; wanted version 2",
        "1.0/tables/facts/0_to_1: found floor Some(2); wanted Some(7)",
        "1.0/tables/facts/drifted: found status `drifted`",
        "1.0/tables/facts/0_to_3: found 0 commits, log version",
        "1.0/said/plan_file.json: tables/facts/2_to_3: found current, 0 commits; wanted to be refused",
        "1.0/said/plan_file.json: found no plan for `nowhere`",
    ] {
        assert!(findings.contains(wanted), "{wanted}\n{findings}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_file_that_is_not_understood_or_says_something_else_is_found() {
    let corpus = Corpus::of(2).await;
    let lock = std::fs::read_to_string(corpus.file("migrations.lock")).unwrap();
    assert_eq!(lock.lines().filter(|l| l.starts_with("facts ")).count(), 3, "{lock}");
    let with = |n: usize, change: &dyn Fn(&str) -> String| -> String {
        let lines = lock.lines().enumerate();
        let line =
            |(i, l): (usize, &str)| if l.starts_with("facts ") && i == n { change(l) } else { l.into() };
        lines.map(line).collect::<Vec<String>>().join("\n") + "\n"
    };
    let base = lock.lines().position(|l| l.starts_with("facts base")).unwrap();
    for (text, wanted) in [
        (
            with(base + 1, &|l| l.replacen(" 1 ", " 1 0", 1)),
            "1.0/migrations.lock: found 1.0/migrations.lock:",
        ),
        (with(base + 2, &|_| String::new()), "1.0/migrations.lock: found no line for `facts` 2 "),
        (with(base, &|l| l.replace("base", "root")), "1.0/migrations.lock: found 1.0/migrations.lock:"),
        (lock.replace("facts ", "deeds "), "vanished_kind"),
    ] {
        corpus.rewrite("migrations.lock", |_| text.clone());
        let findings = joined(&corpus.findings(3).await);
        assert!(findings.contains(wanted), "{wanted}\n{findings}\n{text}");
    }
    corpus.rewrite("migrations.lock", |_| lock.clone());
    assert_eq!(corpus.findings(3).await, Vec::<String>::new());
}
