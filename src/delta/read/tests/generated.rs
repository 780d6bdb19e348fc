//! Logs made by a seeded generator, with checkpoints that delta-rs wrote, against the kernel's
//! reader and against what the generator knows.

use deltalake::DeltaTable;
use deltalake::checkpoints::create_checkpoint;
use deltalake::logstore::{LogStoreRef, StorageConfig, logstore_with};
use serde_json::Value;

use super::tables::{kernels_answer, our_answer};
use super::*;

/// xorshift64*; a failure is made again from its seed.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % n
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

/// What the log says so far, as the generator knows it.
#[derive(Default)]
struct Known {
    stamped: bool,
    evidence: Option<SchemaVersion>,
    id: String,
}

fn some_protocol(random: &mut Random) -> Value {
    match random.below(4) {
        0 => protocol(1, 2),
        1 => protocol(1, 4),
        2 => json!({"protocol": {"minReaderVersion": 3, "minWriterVersion": 7,
            "readerFeatures": ["v2Checkpoint"], "writerFeatures": ["v2Checkpoint", "appendOnly"]}}),
        _ => json!({"protocol": {"minReaderVersion": 3, "minWriterVersion": 7,
            "readerFeatures": [], "writerFeatures": ["invariants"]}}),
    }
}

fn commit(random: &mut Random, version: u64, known: &mut Known) -> Vec<Value> {
    let mut lines = Vec::new();
    for file in 0..random.below(4) {
        lines.push(add(version * 10 + file));
    }
    if version == 0 || random.one_in(6) {
        lines.push(some_protocol(random));
    }
    if version == 0 || random.one_in(5) {
        known.stamped = random.one_in(2);
        known.id = format!("id-{version}");
        let mut action = metadata(&known.id, json!({}));
        for n in 0..random.below(4) {
            action["metaData"]["configuration"][format!("p{n}")] = json!(format!("é\"{n}"));
        }
        if known.stamped {
            action["metaData"]["configuration"]["app.schema_version"] = json!("1");
        }
        if random.one_in(3) {
            action["metaData"]["description"] = json!("a \\ description");
        }
        lines.push(action);
    }
    if random.one_in(4) {
        let evidence = random.below(100);
        known.evidence = Some(SchemaVersion::new(evidence as u32));
        lines.push(txn(ID, evidence as i64));
    }
    if random.one_in(3) {
        lines.push(txn("other/app", 7));
    }
    let middle = random.below(lines.len() as u64 + 1) as usize;
    lines.rotate_left(middle);
    lines
}

async fn checkpoint(log_store: &LogStoreRef) {
    let mut table = DeltaTable::new(log_store.clone());
    table.load().await.unwrap();
    create_checkpoint(&table, None).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn agrees_with_the_kernel_and_the_generator_on_generated_logs() {
    for seed in 1..=12 {
        let mut random = Random(0x9E37_79B9_7F4A_7C15_u64.wrapping_mul(seed));
        let log = Log::new();
        let url = url::Url::parse("memory:///").unwrap();
        let log_store = logstore_with(log.store.clone(), &url, StorageConfig::default()).unwrap();
        let (mut known, mut before) = (Known::default(), None::<LogRead>);
        for version in 0..25 {
            let lines = commit(&mut random, version, &mut known);
            log.commit(version, &lines).await;
            if random.one_in(5) {
                checkpoint(&log_store).await;
                if random.one_in(3) {
                    log.remove("_last_checkpoint").await;
                }
                if random.one_in(3) && version > 0 {
                    log.remove(&commit_name(version - 1)).await;
                }
            }
            if random.one_in(3) {
                continue;
            }
            let at = format!("seed {seed}, version {version}");
            let read = table(log.store.as_ref()).await;
            assert_eq!(our_answer(&read), kernels_answer(&log_store).await.unwrap(), "{at}");
            assert_eq!(read.state.metadata.id, known.id, "{at}");
            let evidence = known.evidence.filter(|_| !known.stamped);
            assert_eq!(read.state.evidence, evidence, "{at}");
            if let Some(before) = before.filter(|_| random.one_in(2)) {
                let (on, since) =
                    read_on(log.store.as_ref(), before.clone(), Some(ID), &is_stamped).await.unwrap();
                // The commit may be gone that the earlier read would go on with.
                if on.state.log_version.get() == version {
                    assert_eq!(our_answer(&on), our_answer(&read), "{at}");
                    assert_eq!(on.state.evidence, evidence, "{at}");
                    assert_eq!(since.commits, version - before.state.log_version.get(), "{at}");
                }
            }
            before = Some(read);
        }
    }
}
