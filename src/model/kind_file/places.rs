//! From the key path of a kind file to the bytes at which it stands.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::kind::{Origin, Place, Problem};
use crate::model::toml_walk::{Value, Walk};

/// Where everything that was read stands, and what is known to be wrong.
#[derive(Debug, Default)]
pub(super) struct Places {
    spots: BTreeMap<Place, Spot>,
    spoiled: BTreeSet<Place>,
}

#[derive(Debug, Clone, Copy)]
struct Spot {
    at: usize,
    /// Where the text inside the quotes begins, if offsets into it can be added.
    text: Option<usize>,
}

impl Places {
    /// A place that stands at a byte offset.
    pub(super) fn put(&mut self, place: &Place, at: usize) {
        self.spots.insert(place.clone(), Spot { at, text: None });
    }

    /// A place that is a value.
    pub(super) fn put_value<'t>(&mut self, place: &Place, walk: &Walk<'t>, value: &Value<'t>) {
        let spot = Spot { at: value.span().start, text: walk.plain_text(value) };
        self.spots.insert(place.clone(), spot);
    }

    /// A place at which a mistake was reported already: another one there would only follow from it.
    pub(super) fn spoil(&mut self, place: &Place) {
        self.spoiled.insert(place.clone());
    }

    /// Reports problems as mistakes, each at the longest known beginning of its place.
    pub(super) fn report(&self, problems: Vec<Problem>, walk: &mut Walk<'_>) {
        for problem in problems {
            let follows = walk.is_lossy() && !stands_alone(&problem.place);
            if !follows && !self.spoiled.contains(&problem.place) {
                walk.mistake(self.locate(&problem), &problem.found, &problem.wanted);
            }
        }
    }

    /// The lines at which the base shape and each migration begin.
    pub(super) fn origin(&self, file: &str, migrations: usize, walk: &Walk<'_>) -> Origin {
        let line = |parts: &[&str]| Some(walk.line(self.spots.get(&Place::of(parts))?.at));
        Origin {
            file: Some(file.to_owned()),
            base: line(&["columns"]).or_else(|| line(&["kind"])),
            migrations: (0..migrations)
                .map(|i| line(&["migrations", &i.to_string()]).unwrap_or_default())
                .collect(),
        }
    }

    fn locate(&self, problem: &Problem) -> usize {
        let parts = &problem.place.0;
        let known = (0..=parts.len()).rev().find_map(|n| {
            let spot = self.spots.get(&Place::of(&parts[..n]))?;
            Some((spot, n == parts.len()))
        });
        match known {
            Some((Spot { text: Some(text), .. }, true)) if problem.offset > 0 => text + problem.offset,
            Some((spot, _)) => spot.at,
            None => 0,
        }
    }
}

/// Whether a problem at that place comes from the text there alone, whatever else the kind holds.
///
/// Where a part of the file was not read, only these can be told from mere consequences.
fn stands_alone(place: &Place) -> bool {
    let parts: Vec<&str> = place.0.iter().map(String::as_str).collect();
    matches!(
        parts.as_slice(),
        ["kind"]
            | ["columns", ..]
            | ["migrations", _, "min_version_waived" | "set_properties" | "unset_properties", ..]
            | ["migrations", _, "add_columns" | "widen_types" | "retype_columns", _, "type" | "nullable"]
    )
}
