//! Nothing secret is ever told, whatever is asked and whatever fails.

use crate::support::Ran;
use crate::support::command::command;
use crate::support::lake::Lake;

const SECRETS: [&str; 9] = [
    "AKIASECRETONE",
    "secret-two",
    "secret-three",
    "secret-four",
    "secret-five",
    "secret-six",
    "secret-seven",
    "secret-eight",
    "secret-nine",
];

/// Storage options, tokens, user info and signed URLs, wherever a configuration takes them; nobody
/// answers at any of the endpoints.
const CONFIG: &str = r#"
[storage]
aws_access_key_id = "AKIASECRETONE"
aws_secret_access_key = "${TWO}"
aws_endpoint = "http://127.0.0.1:9/"
aws_allow_http = "true"
aws_region = "eu-central-1"
max_retries = "0"

[[tables]]
uri = "s3://user:secret-three@bucket/one?X-Amz-Signature=secret-four"
kind = "facts"
[tables.storage]
aws_session_token = "secret-five"

[[tables]]
uri = "lake/here"
kind = "facts"
storage = { some_sas_token = "secret-six" }

[[discover]]
root = "s3://bucket/bronze?sig=secret-four"
storage = { aws_secret_access_key = "secret-nine" }

[[catalogs]]
type = "glue"
endpoint = "http://127.0.0.1:9/"
region = "eu-central-1"
tables = "db.*"
storage = { aws_secret_access_key = "secret-seven" }

[[catalogs]]
type = "unity"
endpoint = "http://127.0.0.1:9/"
token = "secret-eight"
tables = "a.b.*"
"#;

#[tokio::test]
async fn no_secret_reaches_a_stream_or_a_file() {
    let lake = Lake::new();
    lake.table("lake/here", 2).await;
    lake.configure(CONFIG);
    let events = lake.path("events.jsonl");
    let (report, plan) = (lake.path("report.json"), lake.path("plan.json"));
    let outputs = ["--report", report.to_str().unwrap(), "--events", events.to_str().unwrap()];
    let signed = "s3://user:secret-three@bucket/two?X-Amz-Signature=secret-four";
    let commands: &[&[&str]] = &[
        &["status"],
        &["plan", "-o", plan.to_str().unwrap()],
        &["apply", "--timeout", "2"],
        &["apply", "--plan", plan.to_str().unwrap()],
        &["status", "--kind", "facts", signed],
        &["apply", "--kind", "facts", "--storage-option", "aws_session_token=secret-five", signed],
        &["history", signed],
        &["doctor", signed],
        &["repair", "--kind", "facts", signed, "--restamp", "1", "--why", "x"],
        &["status", "nonsense://user:secret-three@x/y?sig=secret-four"],
    ];
    let mut told = String::new();
    for (args, format) in commands.iter().flat_map(|c| [(c, "human"), (c, "json")]) {
        let files: &[&str] = match args[0] {
            "status" | "plan" | "apply" => &outputs,
            _ => &[],
        };
        for log in ["", "trace", "delta_migrate=trace,hyper=trace,object_store=trace,deltalake_aws=trace"] {
            // The first run alone says what came of it; with logs it is the logs that are looked at.
            if !log.is_empty() && format == "json" {
                continue;
            }
            let mut command = command(&lake.path(""));
            command.args(*args).args(files).args(["--format", format, "-vv"]);
            command
                .env("TWO", "secret-two")
                .env("DELTA_MIGRATE_LOG", log)
                .env("AWS_EC2_METADATA_DISABLED", "true");
            let ran = Ran::of(command.output().unwrap());
            assert!(!ran.stdout.is_empty() || !ran.stderr.is_empty(), "{args:?}");
            told.push_str(&format!("{args:?}\n{}\n{}\n", ran.stdout, ran.stderr));
        }
    }
    for file in [&report, &plan, &events] {
        told.push_str(&std::fs::read_to_string(file).unwrap_or_else(|e| panic!("{e}: {file:?}\n{told}")));
    }
    // The runs got as far as the stores and said so.
    assert!(told.contains("bucket/one") && told.contains("127.0.0.1"), "{told}");
    // What was given on the command line is named in this text by ourselves.
    let told: String = told.lines().filter(|l| !l.starts_with('[')).collect::<Vec<_>>().join("\n");
    for secret in SECRETS {
        let at = told.find(secret);
        assert!(at.is_none(), "{secret}: {}", &told[at.unwrap().saturating_sub(300)..at.unwrap() + 40]);
    }
}
