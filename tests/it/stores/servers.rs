//! S3 as moto knows it, Azure as Azurite does, and two S3s that do not keep their word.

use std::collections::BTreeMap;
use std::sync::Arc;

use delta_migrate::Location;
use object_store::path::Path as StorePath;
use object_store::{ObjectStore, ObjectStoreExt};
use serde_json::Value;

use super::{Place, outcome};
use crate::support::Ran;

/// Where a server is, or a line that says that the test was left out. A run that must not leave any out
/// says so with `DELTA_MIGRATE_TEST_REQUIRED=1`.
fn server(variable: &str, name: &str) -> Option<String> {
    let found = std::env::var(variable).ok().filter(|url| !url.is_empty());
    if found.is_none() {
        let is_set = |name: &str| std::env::var_os(name).is_some_and(|v| !v.is_empty());
        let required = std::env::var("DELTA_MIGRATE_TEST_REQUIRED").is_ok_and(|v| v == "1");
        assert!(!(required && is_set("CI")), "{variable} is not set, and this run must leave nothing out");
        // Past the test harness, which hides what a test that passes prints.
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), "SKIPPED: {variable} is not set, so nothing ran on {name}");
    }
    found
}

/// A prefix of its own for each test, so that servers may be used again.
fn own(bucket: &str) -> String {
    format!("{bucket}/{}/t", uuid::Uuid::new_v4())
}

#[cfg(feature = "s3")]
fn s3(variable: &str, name: &str, key: &str) -> Option<Place> {
    let endpoint = server(variable, name)?;
    let env = [
        ("AWS_ENDPOINT_URL", endpoint.as_str()),
        ("AWS_ALLOW_HTTP", "true"),
        ("AWS_REGION", "us-east-1"),
        ("AWS_ACCESS_KEY_ID", key),
        ("AWS_SECRET_ACCESS_KEY", key),
    ];
    Some(Place::new(own("s3://bucket"), &env))
}

#[cfg(feature = "s3")]
pub(super) fn moto() -> Option<Place> {
    s3("DELTA_MIGRATE_TEST_S3", "moto", "testing")
}

/// Takes the second of two conditional puts.
#[cfg(feature = "s3")]
fn s3rver() -> Option<Place> {
    s3("DELTA_MIGRATE_TEST_LIAR", "s3rver", "S3RVER")
}

/// Lets several of racing conditional puts win, now and then.
#[cfg(feature = "s3")]
fn s3s() -> Option<Place> {
    s3("DELTA_MIGRATE_TEST_S3S", "s3s-fs", "testing")
}

/// By account name and key from the environment, as for Azure itself; the key is Azurite's, and public.
#[cfg(feature = "azure")]
pub(super) fn azurite() -> Option<Place> {
    const KEY: &str =
        "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";
    let endpoint = server("DELTA_MIGRATE_TEST_AZURE", "Azurite")?;
    let env = [
        ("AZURE_STORAGE_ENDPOINT", format!("{endpoint}/devstoreaccount1")),
        ("AZURE_ALLOW_HTTP", "true".to_owned()),
        ("AZURE_STORAGE_ACCOUNT_NAME", "devstoreaccount1".to_owned()),
        ("AZURE_STORAGE_ACCOUNT_KEY", KEY.to_owned()),
    ];
    Some(Place { uri: own("az://container"), env: env.into() })
}

/// The log entries below a place, by name, read without the command.
pub(super) fn entries(place: &Place) -> BTreeMap<String, String> {
    let options = place.env.iter().map(|(k, v)| (k.to_lowercase(), v.clone())).collect();
    let url = url::Url::parse(&format!("{}/", place.uri)).unwrap();
    // Makes the stores of this build known.
    Location::new(&place.uri, std::collections::HashMap::clone(&options)).unwrap();
    let store: Arc<dyn ObjectStore> = deltalake::logstore::store_for(&url, options).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    runtime.block_on(async {
        let listed = store.list_with_delimiter(Some(&StorePath::from("_delta_log"))).await.unwrap();
        let mut all = BTreeMap::new();
        for meta in listed.objects {
            let bytes = store.get(&meta.location).await.unwrap().bytes().await.unwrap();
            let name = meta.location.filename().unwrap().to_owned();
            all.insert(name, String::from_utf8(bytes.to_vec()).unwrap());
        }
        all
    })
}

fn actions(entry: &str) -> Vec<Value> {
    entry.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

pub(super) fn metadata(entry: &str) -> Value {
    let all = actions(entry);
    all.iter().find_map(|a| a.get("metaData")).unwrap_or_else(|| panic!("{entry}")).clone()
}

fn creates_and_migrates(place: &Place) {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let missing = place.on(folder, 3, &["status"]);
    assert_eq!(missing.table()["outcome"], "planned", "{missing:?}");
    let created = place.on(folder, 3, &["apply"]);
    assert_eq!((created.code, &created.table()["outcome"]), (0, &"created".into()), "{created:?}");
    let migrated = place.on(folder, 10, &["apply"]);
    assert_eq!((migrated.code, &migrated.table()["outcome"]), (0, &"migrated".into()), "{migrated:?}");
    let again = place.on(folder, 10, &["apply"]);
    assert_eq!((again.code, &again.table()["outcome"]), (0, &"current".into()), "{again:?}");

    let entries = entries(place);
    let names: Vec<&String> = entries.keys().filter(|n| n.ends_with(".json")).collect();
    assert_eq!(names, ["00000000000000000000.json", "00000000000000000001.json"]);
    let (first, second) = (metadata(&entries[names[0]]), metadata(&entries[names[1]]));
    assert_eq!(first["configuration"]["app.schema_version"], "3");
    assert_eq!(second["configuration"]["app.schema_version"], "10");
    assert_eq!(first["id"], second["id"]);
    let schema: Value = serde_json::from_str(second["schemaString"].as_str().unwrap()).unwrap();
    let columns: Vec<&str> =
        schema["fields"].as_array().unwrap().iter().map(|f| f["name"].as_str().unwrap()).collect();
    assert_eq!(columns, ["id", "code", "payload", "detail", "tenant", "tags", "score"]);
}

/// What twenty processes that start at the same time made of a table.
#[derive(Debug)]
struct Race {
    /// How many say that they made the creation, and the migration.
    winners: [usize; 2],
    /// Runs that did not end with exit code 0.
    failed: Vec<Ran>,
    /// The log entries afterwards.
    entries: Vec<String>,
}

impl Race {
    /// Twenty processes create the table at version 3, then twenty bring it to version 10.
    fn run(place: &Place) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut race = Self { winners: [0, 0], failed: Vec::new(), entries: Vec::new() };
        for (round, (version, outcome)) in [(3, "created"), (10, "migrated")].into_iter().enumerate() {
            let (fine, failed): (Vec<Ran>, Vec<Ran>) =
                place.at_once(folder.path(), version, 20).into_iter().partition(|ran| ran.code == 0);
            let outcomes: Vec<Value> = fine.iter().map(|ran| ran.table()["outcome"].clone()).collect();
            race.winners[round] = outcomes.iter().filter(|o| **o == outcome).count();
            assert!(outcomes.iter().all(|o| *o == outcome || *o == "current"), "{outcomes:?}");
            race.failed.extend(failed);
        }
        race.entries = entries(place).into_keys().filter(|name| name.ends_with(".json")).collect();
        race
    }

    /// One commit, whoever makes it; the others find that nothing is left to do.
    fn is_fair(&self) -> bool {
        let Self { winners, failed, entries } = self;
        *winners == [1, 1]
            && failed.is_empty()
            && *entries == ["00000000000000000000.json", "00000000000000000001.json"]
    }
}

/// Whether two of a race's processes were told that they won: what no commit survives.
fn two_win(race: &Race) -> bool {
    race.winners.iter().any(|n| *n > 1)
}

/// Under load moto lets two racers win about once in 1,250 rounds: it looks and writes in two steps.
/// One such race is no fault of ours; two in a row, on tables of their own, would be.
fn races_are_fair(place: impl Fn() -> Option<Place>) {
    let Some(first) = place() else { return };
    let race = Race::run(&first);
    if !race.is_fair() {
        assert!(two_win(&race), "{race:#?}");
        let again = Race::run(&place().unwrap());
        assert!(again.is_fair(), "{race:#?}, and then {again:#?}");
    }
}

/// The negative control: on a store that breaks its word the same race is seen to go wrong, and it is the
/// company that does it: alone, a process creates its table there as anywhere.
#[cfg(feature = "s3")]
fn races_are_unfair(place: impl Fn() -> Option<Place>) {
    // A busy machine seldom lets two arrive at the same time.
    const ROUNDS: usize = 120;
    let Some(alone) = place() else { return };
    let folder = tempfile::tempdir().unwrap();
    let created = alone.on(folder.path(), 3, &["apply"]);
    assert_eq!((created.code, &created.table()["outcome"]), (0, &"created".into()), "{created:?}");
    assert_eq!(entries(&alone).len(), 1);
    let seen = (0..ROUNDS).any(|_| two_win(&Race::run(&place().unwrap())));
    assert!(seen, "{ROUNDS} races on a store that breaks its word, and each was fair");
}

/// Under load moto itself lets two of a thousand rounds' racers win now and then: it looks and writes
/// in two steps. One such run is no fault of the doctor's; two in a row would be.
fn doctor_is_fine(place: &Place) {
    let mut ran = place.doctor(&[]);
    if ran.code == 1 && outcome(&ran.json(), "racing_creates") == "failed" {
        ran = place.doctor(&[]);
    }
    assert_eq!((ran.code, &ran.json()["ok"]), (0, &true.into()), "{ran:?}");
    assert_eq!(outcome(&ran.json(), "delete"), "ok", "{ran:?}");
}

#[cfg(feature = "s3")]
#[test]
fn a_table_on_s3_is_created_and_migrated() {
    let Some(place) = moto() else { return };
    creates_and_migrates(&place);
    // Another spelling of the same place.
    let spelled = Place { uri: place.uri.replace("s3://", "s3a://"), ..place.clone() };
    let folder = tempfile::tempdir().unwrap();
    let ran = spelled.on(folder.path(), 10, &["status"]);
    assert_eq!(
        (&ran.table()["outcome"], &ran.table()["uri"]),
        (&"current".into(), &place.uri.as_str().into())
    );
}

#[cfg(feature = "s3")]
#[test]
fn many_migrators_on_s3_make_one_commit() {
    races_are_fair(moto);
}

#[cfg(feature = "s3")]
#[test]
fn many_migrators_on_a_store_that_takes_every_write_are_seen_to_win_together() {
    races_are_unfair(s3rver);
}

#[cfg(feature = "s3")]
#[test]
fn many_migrators_on_a_store_that_lets_several_racers_win_are_seen_to_win_together() {
    races_are_unfair(s3s);
}

#[cfg(feature = "s3")]
#[test]
fn doctor_is_fine_with_moto() {
    let Some(place) = moto() else { return };
    doctor_is_fine(&place);
    let elsewhere = Place { uri: "s3://no-such-bucket/t".to_owned(), ..place };
    let ran = elsewhere.doctor(&[]);
    assert_eq!((ran.code, outcome(&ran.json(), "list")), (1, "failed".to_owned()), "{ran:?}");
    assert!(ran.stdout.contains("NoSuchBucket") && ran.stdout.contains("its name is right"), "{ran:?}");
    assert_eq!(outcome(&ran.json(), "conditional_create"), "skipped");
}

/// The options come from the configuration or the command line alone.
#[cfg(feature = "s3")]
#[test]
fn options_of_the_configuration_lead_to_s3_too() {
    let Some(mut place) = moto() else { return };
    let env = std::mem::take(&mut place.env);
    let lines: Vec<String> =
        env.iter().map(|(k, v)| format!("{} = {}", k.to_lowercase(), Value::from(v.as_str()))).collect();
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("delta-migrate.toml");
    std::fs::write(&config, format!("namespace = \"app\"\n[storage]\n{}\n", lines.join("\n"))).unwrap();
    doctor_with(&place, &["--config", config.to_str().unwrap()]);
    let options: Vec<String> = env.iter().map(|(k, v)| format!("--storage-option={k}={v}")).collect();
    doctor_with(&place, &options.iter().map(String::as_str).collect::<Vec<_>>());
}

#[cfg(feature = "s3")]
fn doctor_with(place: &Place, args: &[&str]) {
    let ran = place.doctor(args);
    assert_eq!((ran.code, &ran.json()["ok"]), (0, &true.into()), "{ran:?}");
}

#[cfg(feature = "s3")]
#[test]
fn doctor_finds_out_a_store_that_takes_every_write() {
    let Some(place) = s3rver() else { return };
    let ran = place.doctor(&[]);
    assert_eq!((ran.code, outcome(&ran.json(), "conditional_create")), (1, "failed".to_owned()), "{ran:?}");
    assert_eq!(outcome(&ran.json(), "delete"), "ok", "{ran:?}");
}

/// Of its 50 rounds at least a fifth have several winners, so that a run in some 70,000 may miss it.
#[cfg(feature = "s3")]
#[test]
fn doctor_finds_out_a_store_that_lets_several_racers_win() {
    let Some(place) = s3s() else { return };
    let ran = place.doctor(&[]);
    assert_eq!((ran.code, outcome(&ran.json(), "racing_creates")), (1, "failed".to_owned()), "{ran:?}");
    assert_eq!(outcome(&ran.json(), "conditional_create"), "ok", "{ran:?}");
}

#[cfg(feature = "azure")]
#[test]
fn a_table_on_azure_is_created_and_migrated() {
    let Some(place) = azurite() else { return };
    creates_and_migrates(&place);
    let spelled = Place { uri: place.uri.replace("az://", "abfss://"), ..place.clone() };
    let folder = tempfile::tempdir().unwrap();
    let ran = spelled.on(folder.path(), 10, &["status"]);
    assert_eq!(
        (&ran.table()["outcome"], &ran.table()["uri"]),
        (&"current".into(), &place.uri.as_str().into())
    );
}

#[cfg(feature = "azure")]
#[test]
fn many_migrators_on_azure_make_one_commit() {
    races_are_fair(azurite);
}

/// As its users call it: by the switch for the emulator.
#[cfg(feature = "azure")]
#[test]
fn doctor_is_fine_with_azurite() {
    let Some(place) = azurite() else { return };
    doctor_is_fine(&place);
    let endpoint = server("DELTA_MIGRATE_TEST_AZURE", "Azurite").unwrap();
    let env = [("AZURE_STORAGE_USE_EMULATOR", "true"), ("AZURITE_BLOB_STORAGE_URL", endpoint.as_str())];
    doctor_is_fine(&Place::new(place.uri, &env));
}
