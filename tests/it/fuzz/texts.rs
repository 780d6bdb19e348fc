//! Texts that are read without a table: kind files and lock files.

use std::path::Path;

use delta_migrate::{Kind, Migrator, Namespace};
use proptest::prelude::*;

use super::mutate::{cases, mutated, mutations, watched};
use crate::support::FACTS;

fn sample(name: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("compat").join(name)).unwrap()
}

/// Texts of every step, every type and every feature.
fn kinds() -> Vec<String> {
    let names = ["any", "changes", "everything", "features", "frozen", "mapped", "partitioned", "types"];
    let texts = names.iter().map(|name| sample(&format!("kinds/{name}.toml")));
    texts.chain([FACTS.to_owned()]).collect()
}

proptest! {
    #![proptest_config(cases(600))]

    #[test]
    fn a_kind_file(which in any::<prop::sample::Index>(), changes in mutations()) {
        let text = String::from_utf8_lossy(&mutated(which.get(&kinds()).as_bytes(), &changes)).into_owned();
        watched(move || {
            // What can be read can be used: its shape at each version, its digest, its lock.
            if let Ok(kind) = Kind::from_toml_file(&text, "kind.toml") {
                let migrator = Migrator::builder(Namespace::new("app").unwrap()).kind(kind.clone()).build();
                drop(migrator.map(|m| m.kind(kind.name()).unwrap().newest()));
            }
        })?;
    }

    #[test]
    fn a_lock_file(changes in mutations()) {
        let lock = sample("0.1.0/migrations.lock");
        let bytes = mutated(lock.as_bytes(), &changes);
        let same = bytes == lock.as_bytes();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let built = watched(move || {
            let build = |kind: String| {
                let kind = Kind::from_toml(&kind).unwrap();
                Migrator::builder(Namespace::new("app").unwrap()).kind(kind).lock(text.clone()).build().is_ok()
            };
            kinds().into_iter().take(8).map(build).collect::<Vec<bool>>()
        })?;
        prop_assert!(!same || built.iter().all(|ok| *ok), "the lock as it was is refused");
    }
}
