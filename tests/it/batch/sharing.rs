//! Parallel jobs.

use std::collections::BTreeSet;

use super::count;
use crate::support::lake::Lake;

#[tokio::test]
async fn shards_are_the_whole_once_and_stay_what_they_are() {
    let lake = Lake::new();
    lake.table("lake/t0", 2).await;
    for n in 1..60 {
        lake.copy("lake/t0", &format!("lake/t{n}"));
    }
    let mut seen: BTreeSet<String> = BTreeSet::new();
    for shard in ["1/3", "2/3", "3/3"] {
        let (code, report) = lake.json(&["apply", "--shard", shard]);
        let uris: Vec<String> = report["tables"]
            .as_array()
            .unwrap()
            .iter()
            .map(|t| t["uri"].as_str().unwrap().to_owned())
            .collect();
        assert!((10..=30).contains(&uris.len()), "{shard} has {}", uris.len());
        assert_eq!((code, count(&report, "migrated")), (0, uris.len()), "{report}");
        assert_eq!(report["sources"][0]["other_shards"], 60 - uris.len());
        let (_, again) = lake.json(&["status", "--shard", shard]);
        assert_eq!(again["tables"].as_array().unwrap().len(), uris.len());
        assert_eq!(count(&again, "current"), uris.len(), "a shard changed from run to run");
        for uri in uris {
            assert!(seen.insert(uri), "two shards have the same table");
        }
    }
    assert_eq!(seen.len(), 60);
}

#[test]
fn a_shard_that_there_is_not_is_a_mistake() {
    let lake = Lake::new();
    for shard in ["0/3", "4/3", "1/0", "a", "1", "-1/3", "1/x"] {
        let ran = lake.run(&["apply", &format!("--shard={shard}")]);
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{shard}: {ran:?}");
        assert!(ran.stderr.contains("2/4"), "{ran:?}");
    }
}

#[tokio::test]
async fn racing_runs_over_one_lake_end_with_one_commit_a_table() {
    let lake = Lake::new();
    lake.table("lake/t0", 2).await;
    for n in 1..10 {
        lake.copy("lake/t0", &format!("lake/t{n}"));
    }
    let runs: Vec<_> = std::thread::scope(|scope| {
        let run = || scope.spawn(|| lake.json(&["apply"]));
        let threads: Vec<_> = (0..8).map(|_| run()).collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    });
    let migrated: usize = runs.iter().map(|(_, report)| count(report, "migrated")).sum();
    assert_eq!(migrated, 10, "{runs:?}");
    assert!(runs.iter().all(|(code, _)| *code == 0), "{runs:?}");
    assert!(lake.entries().into_values().all(|n| n == 3), "{:?}", lake.entries());
}
