//! `<ns>.schema_history`: the record of who migrated the table, kept in the table itself.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::version::{MinVersion, SchemaVersion};

/// How a version came to a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum How {
    /// Born at that version.
    Created,
    /// Carried there by its chain.
    Migrated,
    /// Taken over without a stamp.
    Adopted,
    /// Put right by hand.
    Repaired,
    /// Given the columns that a schema has; no stamp is touched, so that no history says it.
    Reconciled,
}

impl How {
    /// The word in the history.
    #[cfg(feature = "cli")]
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Migrated => "migrated",
            Self::Adopted => "adopted",
            Self::Repaired => "repaired",
            Self::Reconciled => "reconciled",
        }
    }
}

/// One entry, as it is written; readers of later releases may find more keys.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Entry<'a> {
    pub(crate) from: SchemaVersion,
    pub(crate) to: SchemaVersion,
    /// RFC 3339, UTC, whole seconds.
    pub(crate) at: &'a str,
    /// The release.
    pub(crate) by: &'a str,
    pub(crate) how: How,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) why: Option<&'a str>,
    /// The floor, where this commit changed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) floor: Option<MinVersion>,
}

/// The newest entries within this many characters are kept.
const MOST: usize = 3_000;

/// The entries of a history, oldest first; none if the text is no JSON array of objects.
pub(crate) fn entries(text: &str) -> Option<Vec<Value>> {
    let entries: Vec<Value> = serde_json::from_str(text).ok()?;
    entries.iter().all(Value::is_object).then_some(entries)
}

/// Appends an entry; the oldest ones make room, but never the one that raised the floor last.
pub(crate) fn append(existing: &[Value], entry: &Entry<'_>) -> String {
    let mut all = existing.to_vec();
    all.push(serde_json::to_value(entry).unwrap_or_default());
    // Each entry costs its own characters and a comma or bracket.
    let length = |v: &Value| v.to_string().chars().count() + 1;
    let floor = raising(&all);
    let mut left = MOST.saturating_sub(1 + floor.and_then(|i| all.get(i)).map_or(0, length));
    let mut kept = Vec::new();
    for (i, value) in all.iter().enumerate().rev() {
        if Some(i) == floor {
            kept.push(value);
            continue;
        }
        let newest = i + 1 == all.len();
        match left.checked_sub(length(value)) {
            Some(rest) => left = rest,
            None if newest => left = 0,
            // Nothing older is kept, so that the record has one gap at most.
            None => {
                left = 0;
                continue;
            }
        }
        kept.push(value);
    }
    kept.reverse();
    serde_json::to_string(&kept).unwrap_or_default()
}

/// The entry that raised the floor last. One that lowered it carries a floor as well.
fn raising(entries: &[Value]) -> Option<usize> {
    let floor = |v: &Value| v.get("floor").and_then(Value::as_u64);
    let (mut now, mut found) = (0, None);
    for (i, raised) in entries.iter().enumerate().filter_map(|(i, v)| Some((i, floor(v)?))) {
        if raised > now {
            found = Some(i);
        }
        now = raised;
    }
    found
}

/// The release that raised the floor to `floor`, as far as the history remembers.
pub(crate) fn raised_by(history: Option<&str>, floor: MinVersion) -> Option<String> {
    let entries = entries(history?)?;
    let entry = entries.get(raising(&entries)?)?;
    let same = entry.get("floor").and_then(Value::as_u64) == Some(u64::from(floor.get()));
    entry.get("by").filter(|_| same)?.as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(to: u32, by: &str, floor: Option<u32>) -> Entry<'_> {
        Entry {
            from: SchemaVersion::ZERO,
            to: SchemaVersion::new(to),
            at: "2026-11-30T23:00:00Z",
            by,
            how: How::Migrated,
            why: None,
            floor: floor.map(MinVersion::new),
        }
    }

    #[test]
    fn an_entry_has_the_keys_that_readers_know() {
        let text = append(&[], &Entry { why: Some("by hand"), ..entry(3, "my-sink 1.4.0", Some(3)) });
        assert_eq!(
            text,
            r#"[{"from":0,"to":3,"at":"2026-11-30T23:00:00Z","by":"my-sink 1.4.0","how":"migrated","why":"by hand","floor":3}]"#
        );
    }

    #[test]
    fn old_entries_make_room_but_the_floor_is_remembered() {
        let mut text = append(&[], &entry(1, "raiser 1", Some(1)));
        for n in 2..200 {
            text = append(&entries(&text).unwrap(), &entry(n, "plain", None));
        }
        assert!(text.chars().count() <= MOST, "{}", text.len());
        assert_eq!(raised_by(Some(&text), MinVersion::new(1)).as_deref(), Some("raiser 1"));
        let all = entries(&text).unwrap();
        assert_eq!(all.last().unwrap()["to"], 199);
        assert_eq!(
            all[1]["to"].as_u64().unwrap() + all.len() as u64 - 2,
            199,
            "the newest are kept in a row"
        );
    }

    #[test]
    fn foreign_keys_survive_and_broken_histories_are_told() {
        let text = append(&entries(r#"[{"to":1,"future":{"x":1}}]"#).unwrap(), &entry(2, "b", None));
        assert!(text.starts_with(r#"[{"to":1,"future":{"x":1}},"#), "{text}");
        for broken in ["", "{}", "[1]", "[{]", "null"] {
            assert_eq!(entries(broken), None, "{broken}");
        }
    }

    #[test]
    fn the_release_that_lowered_the_floor_did_not_raise_it() {
        let text = append(&[], &entry(9, "raiser", Some(9)));
        let text = append(&entries(&text).unwrap(), &entry(9, "mender", Some(5)));
        assert_eq!(raised_by(Some(&text), MinVersion::new(5)), None);
        let text = append(&entries(&text).unwrap(), &entry(9, "raiser 2", Some(6)));
        assert_eq!(raised_by(Some(&text), MinVersion::new(6)).as_deref(), Some("raiser 2"));
    }
}
