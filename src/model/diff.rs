//! In what two schemas differ, by column path.

use std::collections::BTreeSet;

use super::path::ColumnPath;
use super::types::{DataType, Field, Primitive, find};

/// A difference and where it is.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Walked<'a> {
    pub(crate) at: ColumnPath,
    pub(crate) differs: Differs<'a>,
}

/// One way in which what is wanted differs from what is there.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Differs<'a> {
    /// A field that is wanted is not there.
    New(&'a Field),
    /// A field that is there is not wanted.
    Gone(&'a Field),
    /// A field that is there is not wanted, and one that is wanted is likely the same under another name.
    Renamed { new: ColumnPath, old: &'a Field, field: &'a Field, why: Likeness },
    /// It is required, and is wanted nullable.
    Relaxed,
    /// It is nullable, and is wanted required.
    Narrowed,
    /// Another comment is wanted.
    Comment { have: Option<&'a str>, wanted: &'a str },
    /// Keys of a map are of another type.
    Key { have: &'a DataType, wanted: &'a DataType },
    /// It is of another type.
    Type { have: &'a DataType, wanted: &'a DataType },
}

/// All differences, at any depth: of what is wanted in its order, then what is gone. Names are the same
/// regardless of letter case, and nothing is wanted of a comment that is not there, nor of the type of a
/// column that only ever held null.
pub(crate) fn walk<'a>(have: &'a [Field], wanted: &'a [Field]) -> Vec<Walked<'a>> {
    let mut walk = Walk::default();
    walk.fields(have, wanted, None);
    walk.0
}

#[derive(Default)]
struct Walk<'a>(Vec<Walked<'a>>);

impl<'a> Walk<'a> {
    fn differs(&mut self, at: ColumnPath, differs: Differs<'a>) {
        self.0.push(Walked { at, differs });
    }

    /// Compares the fields of one struct, or the top-level columns.
    fn fields(&mut self, have: &'a [Field], wanted: &'a [Field], at: Option<&ColumnPath>) {
        let path = |name: &str| at.map_or_else(|| ColumnPath::of([name]), |at| at.child(name));
        let gone: Vec<(usize, &Field)> =
            have.iter().enumerate().filter(|(_, f)| find(wanted, &f.name).is_none()).collect();
        let mut renamed = BTreeSet::new();
        for (index, field) in wanted.iter().enumerate() {
            let new = path(&field.name);
            if let Some(old) = find(have, &field.name) {
                self.same_field(old, field, path(&old.name));
                continue;
            }
            let free = gone.iter().filter(|(_, old)| !renamed.contains(&old.name));
            let alike = free.filter_map(|(i, old)| Some((likeness((*i, old), (index, field))?, *old)));
            match alike.min_by_key(|(likeness, _)| *likeness) {
                None => self.differs(new, Differs::New(field)),
                Some((why, old)) => {
                    renamed.insert(&old.name);
                    self.differs(path(&old.name), Differs::Renamed { new, old, field, why });
                }
            }
        }
        for (_, field) in gone.iter().filter(|(_, f)| !renamed.contains(&f.name)) {
            self.differs(path(&field.name), Differs::Gone(field));
        }
    }

    fn same_field(&mut self, old: &'a Field, wanted: &'a Field, at: ColumnPath) {
        self.nullability(old.nullable, wanted.nullable, &at);
        let have = old.comment.as_deref();
        if let Some(wanted) = wanted.comment.as_deref().filter(|c| have != Some(c)) {
            self.differs(at.clone(), Differs::Comment { have, wanted });
        }
        self.types(&old.data_type, &wanted.data_type, &at);
    }

    fn types(&mut self, old: &'a DataType, wanted: &'a DataType, at: &ColumnPath) {
        match (old, wanted) {
            (DataType::Struct(have), DataType::Struct(wanted)) => self.fields(have, wanted, Some(at)),
            (
                DataType::Array { element: old, contains_null: had },
                DataType::Array { element: wanted, contains_null: has },
            ) => {
                let at = at.child("element");
                self.nullability(*had, *has, &at);
                self.types(old, wanted, &at);
            }
            (
                DataType::Map { key: old_key, value: old, value_contains_null: had },
                DataType::Map { key, value: wanted, value_contains_null: has },
            ) => {
                // Rows are found by their keys: what a key consists of is no addition.
                if !old_key.same_as(key) {
                    self.differs(at.child("key"), Differs::Key { have: old_key, wanted: key });
                }
                let at = at.child("value");
                self.nullability(*had, *has, &at);
                self.types(old, wanted, &at);
            }
            (old, wanted) if old.same_as(wanted) => {}
            // A column that only ever held null.
            (_, DataType::Primitive(Primitive::Void)) => {}
            (have, wanted) => self.differs(at.clone(), Differs::Type { have, wanted }),
        }
    }

    fn nullability(&mut self, old: bool, wanted: bool, at: &ColumnPath) {
        match (old, wanted) {
            (false, true) => self.differs(at.clone(), Differs::Relaxed),
            (true, false) => self.differs(at.clone(), Differs::Narrowed),
            _ => {}
        }
    }
}

/// Why a column that is gone and a new one of the same type are likely one under two names; the
/// surest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Likeness {
    Comment,
    Name,
    /// They stand at the same place, and nothing else speaks for it.
    Place,
}

fn likeness(gone: (usize, &Field), new: (usize, &Field)) -> Option<Likeness> {
    let ((old_index, old), (new_index, new)) = (gone, new);
    if !old.data_type.same_as(&new.data_type) {
        return None;
    }
    let (a, b) = (old.name.to_lowercase(), new.name.to_lowercase());
    let longer = a.chars().count().max(b.chars().count());
    if old.comment.is_some() && old.comment == new.comment {
        Some(Likeness::Comment)
    } else if a.contains(&b) || b.contains(&a) || strsim::damerau_levenshtein(&a, &b) * 3 <= longer {
        Some(Likeness::Name)
    } else {
        (old_index == new_index).then_some(Likeness::Place)
    }
}
