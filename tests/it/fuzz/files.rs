//! Saved plans that were edited.

use delta_migrate::{PlanFile, SavedPlan, Target};
use proptest::prelude::*;

use super::mutate::{cases, mutated, mutations, watched};
use super::tables::{newest, stands, table, wait};
use crate::support::table::files_below;

proptest! {
    #![proptest_config(cases(200))]

    #[test]
    fn a_saved_plan(changes in mutations()) {
        let whole = table();
        let location = whole.location();
        let plan = wait(newest().plan("facts", &location, Target::Newest)).unwrap();
        let text = PlanFile::new(vec![SavedPlan::of(&plan, location.uri())]).to_json();
        let text = String::from_utf8_lossy(&mutated(text.as_bytes(), &changes)).into_owned();
        let before = files_below(whole.path());
        let at = whole.path().to_owned();
        let commits = watched(move || {
            let Ok(file) = PlanFile::from_json(&text) else { return 0 };
            let location = delta_migrate::Location::new(at.to_str().unwrap(), Default::default()).unwrap();
            let applied = file.tables.iter().map(|saved| wait(newest().apply_saved(saved, &location)));
            applied.map(|report| report.map_or(0, |r| r.commits)).sum()
        })?;
        let after = files_below(whole.path());
        prop_assert!(before.iter().all(|(path, bytes)| after.get(path) == Some(bytes)), "a file was changed");
        let entries = after.keys().filter(|p| !before.contains_key(*p) && p.extension().is_some_and(|e| e == "json"));
        prop_assert_eq!((entries.count(), commits <= 1), (usize::from(commits == 1), true));
        // Whatever the plan was, the table goes on as any other does.
        stands(whole.path())?;
    }
}
