//! Writers that append all the time while rows are filled in.

use std::collections::HashMap;
use std::sync::atomic::AtomicBool;

use super::*;
use crate::support::random::Random;
use crate::support::rows::{append_as, arrow_schema, known_columns};

/// Appends until it is told to stop; gives the ids that were acknowledged, each with its log version.
async fn write_on(table: Arc<Table>, writer: i64, stop: Arc<AtomicBool>) -> Vec<(i64, u64)> {
    let mut random = Random::new(writer.unsigned_abs());
    let mut done = Vec::new();
    let mut id = writer * 1_000_000;
    while !stop.load(Ordering::SeqCst) {
        id += 1;
        let mut loaded = table.load().await;
        // Half of the writers know the old columns alone.
        let old = writer % 2 == 0 || arrow_schema(&loaded).field_with_name("tenant").is_err();
        let schema = if old { known_columns(&loaded, &["id", "code"]) } else { arrow_schema(&loaded) };
        let mut new = row(id);
        if !old {
            new["tenant"] = "theirs".into();
        }
        if let Ok(version) = append_as(&mut loaded, schema, &[new]).await {
            done.push((id, version));
        }
        tokio::time::sleep(Duration::from_millis(random.between(5, 60) as u64)).await;
    }
    done
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn nothing_acknowledged_is_lost_or_doubled_and_nothing_old_stays_empty() {
    for round in 0..2 {
        let table = Arc::new(table_of(base(), 6).await);
        let stop = Arc::new(AtomicBool::new(false));
        let writers: Vec<_> =
            (1..=4).map(|w| tokio::spawn(write_on(table.clone(), w + 10 * round, stop.clone()))).collect();
        tokio::time::sleep(Duration::from_millis(300)).await;
        let most = if round == 0 { 1 << 30 } else { ONE_FILE };
        let report = migrate_at(&table.location(), FILL, most).await.unwrap();
        tokio::time::sleep(Duration::from_millis(200)).await;
        stop.store(true, Ordering::SeqCst);
        let mut acknowledged: Vec<(i64, u64)> = (0..12).map(|id| (id, 0)).collect();
        for writer in writers {
            acknowledged.extend(writer.await.unwrap());
        }
        let stamp = report.log_version.unwrap().get();
        let found = rows(&table).await;
        let mut by_id: HashMap<i64, Vec<&Value>> = HashMap::new();
        for row in &found {
            by_id.entry(row["id"].as_i64().unwrap()).or_default().push(row);
        }
        let before = acknowledged.iter().filter(|(_, v)| *v < stamp).count();
        assert!(before > 12 && acknowledged.len() > before, "{before} of {}", acknowledged.len());
        for (id, version) in &acknowledged {
            let rows = by_id.get(id).map_or(&[][..], Vec::as_slice);
            assert_eq!(rows.len(), 1, "row {id} of {version}, stamp at {stamp}");
            let tenant = rows[0]["tenant"].as_str();
            assert!(*version > stamp || tenant.is_some(), "row {id} of {version} is empty, stamp at {stamp}");
            assert!(tenant.is_none_or(|t| t == "theirs" || t == filled(*id)["tenant"]), "{id}: {tenant:?}");
        }
        assert_eq!(found.len(), acknowledged.len());
        sound(&table);
        is_stamped(&table, "1");
    }
}
