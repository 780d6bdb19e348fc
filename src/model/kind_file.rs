//! Reads a kind file: TOML -> [`Kind`], with every mistake's line and column.
//!
//! What TOML can tell (keys, types of values) is checked here, everything else where kinds are
//! built, so that a kind built in Rust meets the same checks. Both sorts are reported together,
//! without those that merely follow from another.

mod column;
mod migration;
mod places;

use toml::de::DeTable;

use self::places::Places;
use super::kind::{Adopt, Kind, KindBuilder, Place, build, nearest};
use super::migration::MigrationBuilder;
use super::text::list;
use super::toml_walk::{Value, Walk, parse};
use crate::error::Error;

/// The keys at the top of a kind file.
const KEYS: &[&str] =
    &["kind", "description", "partition_by", "identified_by", "adopt", "columns", "properties", "migrations"];

const QUOTE_NAME: &str = "write the name in quotes";
const QUOTE_PATH: &str = "write the path in quotes";

/// Reads the text of a kind file; `file` is what the error calls it.
///
/// # Errors
/// `Usage`: the message counts the mistakes in its first line, then has a line
/// `file:line:column: found; wanted` for each, in the order of the text.
pub(crate) fn read(text: &str, file: &str) -> Result<Kind, Error> {
    let (root, walk) = parse(text);
    let mut reader = Reader { walk, places: Places::default() };
    let draft = reader.kind(&root);
    let Reader { mut walk, places } = reader;
    let built = build(draft).map_err(|problems| places.report(problems, &mut walk));
    let built = built.map(|kind| {
        let origin = places.origin(file, kind.migrations().len(), &walk);
        kind.with_origin(origin)
    });
    match (built, walk.into_error(file)) {
        (Ok(kind), None) => Ok(kind),
        (_, Some(error)) => Err(error),
        (Err(()), None) => Err(Error::usage(format!("{file}: this is no kind file"))),
    }
}

/// Reads the way in which a table without a stamp is taken over.
pub(crate) fn read_adopt<'t>(walk: &mut Walk<'t>, value: &Value<'t>) -> Option<Adopt> {
    const WORDS: &[&str] = &["from_zero", "detect", "refuse"];
    let word = walk.string(value)?;
    let adopt = Adopt::parse(&word);
    if adopt.is_none() {
        let wanted = match nearest(&word, WORDS) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => format!("wanted one of {}", list(WORDS)),
        };
        walk.mistake(value.span().start, format!("`{word}` is no way to adopt a table"), wanted);
    }
    adopt
}

/// Carries the walk and the places of everything it has read.
struct Reader<'t> {
    walk: Walk<'t>,
    places: Places,
}

impl<'t> Reader<'t> {
    fn kind(&mut self, root: &DeTable<'t>) -> KindBuilder {
        let mut draft = KindBuilder::default();
        let mut named = false;
        for entry in self.walk.entries(root, KEYS) {
            let (place, value) = (Place::of(&[entry.key]), entry.value);
            self.places.put(&place, entry.at);
            match entry.key {
                "kind" => {
                    named = true;
                    draft.name = self.text(&place, value).unwrap_or_default();
                }
                "description" => draft.description = self.text(&place, value),
                "partition_by" => draft.partition_by = self.list(&place, value),
                "identified_by" => draft.identified_by = self.list(&place, value),
                "adopt" => draft.adopt = read_adopt(&mut self.walk, value).unwrap_or_default(),
                "columns" => draft.columns = self.base_columns(&place, value),
                "properties" => draft.properties = self.texts(&place, value, QUOTE_NAME, &[]),
                _ => draft.migrations = self.migrations(&place, value),
            }
        }
        if !named {
            let place = Place::of(&["kind"]);
            self.places.spoil(&place);
            if !self.walk.is_broken() {
                self.walk.mistake(0, "the file has no `kind`", "wanted a line such as `kind = \"facts\"`");
            }
        }
        draft
    }

    fn migrations(&mut self, place: &Place, value: &Value<'t>) -> Vec<MigrationBuilder> {
        let Some(items) = self.walk.tables(value, "[[migrations]]") else {
            self.walk.lose();
            return Vec::new();
        };
        let items = items.into_iter().enumerate();
        items.map(|(i, item)| self.migration(&place.child(i), item)).collect()
    }

    /// A string, with its place.
    fn text(&mut self, place: &Place, value: &Value<'t>) -> Option<String> {
        self.places.put_value(place, &self.walk, value);
        let text = self.walk.string(value);
        if text.is_none() {
            self.places.spoil(place);
        }
        text
    }

    /// An array of strings, each with its place.
    fn list(&mut self, place: &Place, value: &Value<'t>) -> Vec<String> {
        let items = self.walk.strings(value).unwrap_or_default();
        for (i, (_, item)) in items.iter().enumerate() {
            self.places.put_value(&place.child(i), &self.walk, item);
        }
        items.into_iter().map(|(text, _)| text).collect()
    }

    /// A table of strings by name or path, each with the places of its key and its value.
    ///
    /// A key of `above` whose value is no string was meant for the table above.
    fn texts(
        &mut self,
        place: &Place,
        value: &Value<'t>,
        wanted: &str,
        above: &[&str],
    ) -> Vec<(String, String)> {
        let Some(table) = self.walk.table(value, "wanted a table") else { return Vec::new() };
        let mut texts = Vec::new();
        for leaf in self.walk.leaves(table, wanted, &|_, _| false) {
            if self.is_misplaced(place, &leaf, above) {
                continue;
            }
            let place = place.child(&leaf.name);
            self.places.put(&place, leaf.at);
            if let Some(text) = self.text(&place.child("type"), leaf.value) {
                texts.push((leaf.name, text));
            }
        }
        texts
    }
}

#[cfg(test)]
mod tests;
