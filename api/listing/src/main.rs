//! `listing LIBRARY.json ALL.json FOLDER`: rustdoc's JSON of the library, without features and with
//! all of them, as three files for people to read and for `api/check.sh` to compare.
//!
//! - `library.txt`: what a sink has (`default-features = false`)
//! - `features.txt`: what the features add to it
//! - `traits.txt`: who implements what, with all features; derived or written by hand is the same
//!
//! Left out is what says nothing: methods that a trait prescribes, blanket implementations, and auto
//! traits other than `Send` and `Sync`.

use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::path::Path;
use std::process::ExitCode;

use public_api::{PublicApi, PublicItem};
use rustdoc_types::{Crate, Id, ItemEnum};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Exit code: this Rust writes another format of the JSON.
const OTHER_FORMAT: u8 = 3;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [library, all, folder] = arguments.as_slice() else {
        eprintln!("usage: listing LIBRARY.json ALL.json FOLDER");
        return ExitCode::from(2);
    };
    match write(library, all, Path::new(folder)) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("listing: {error}");
            ExitCode::FAILURE
        }
    }
}

fn write(library: &str, all: &str, folder: &Path) -> Result<ExitCode> {
    for file in [library, all] {
        let (found, wanted) = (format_of(file)?, rustdoc_types::FORMAT_VERSION);
        if found != wanted {
            eprintln!("listing: {file} has format {found}; api/listing/Cargo.toml reads {wanted}");
            return Ok(ExitCode::from(OTHER_FORMAT));
        }
    }
    let (library, all) = (Api::read(library)?, Api::read(all)?);
    if let Some(line) = library.items.iter().find(|line| !all.items.contains(line)) {
        return Err(format!("a feature takes away or changes what is there without it: {line}").into());
    }
    let added = all.items.iter().filter(|line| !library.items.contains(line));
    put(&folder.join("features.txt"), added)?;
    put(&folder.join("library.txt"), &library.items)?;
    put(&folder.join("traits.txt"), &all.traits)?;
    Ok(ExitCode::SUCCESS)
}

fn put<'a>(path: &Path, lines: impl IntoIterator<Item = &'a String>) -> Result<()> {
    let mut text = String::new();
    for line in lines {
        text.push_str(line);
        text.push('\n');
    }
    Ok(fs::write(path, text)?)
}

fn format_of(file: &str) -> Result<u32> {
    #[derive(serde::Deserialize)]
    struct Head {
        format_version: u32,
    }
    let head: Head = serde_json::from_str(&fs::read_to_string(file)?)?;
    Ok(head.format_version)
}

/// What one build of the library makes public.
struct Api {
    items: Vec<String>,
    traits: BTreeSet<String>,
}

impl Api {
    fn read(file: &str) -> Result<Self> {
        let json: Crate = serde_json::from_str(&fs::read_to_string(file)?)?;
        let public: PublicApi =
            public_api::Builder::from_rustdoc_json(file).omit_blanket_impls(true).build()?;
        let (mut items, mut traits, mut seen) = (Vec::new(), BTreeSet::new(), HashSet::new());
        for item in public.items() {
            match place(item, &json) {
                Place::Item => {
                    let line = line(item, &json);
                    if seen.insert(line.clone()) {
                        items.push(line);
                    }
                }
                Place::Trait => traits.extend(implementation(&item.to_string())),
                Place::Nowhere => {}
            }
        }
        Ok(Self { items, traits })
    }
}

enum Place {
    Item,
    Trait,
    Nowhere,
}

/// Where an item is listed.
fn place(item: &PublicItem, json: &Crate) -> Place {
    let implements = |id: Id| match json.index.get(&id).map(|item| &item.inner) {
        Some(ItemEnum::Impl(implementation)) => Some(implementation.trait_.is_some()),
        _ => None,
    };
    match (implements(item.id()), item.parent_id().and_then(implements)) {
        (Some(true), _) => Place::Trait,
        (Some(false), _) | (None, Some(true)) => Place::Nowhere,
        (None, _) => Place::Item,
    }
}

/// The item; whether it is deprecated, for then it may go in the next minor; and whether a trait's
/// method comes with a body, for then an implementor need not write it.
fn line(item: &PublicItem, json: &Crate) -> String {
    let mut line = item.to_string();
    let Some(what) = json.index.get(&item.id()) else { return line };
    if let Some(deprecation) = &what.deprecation {
        let since = deprecation.since.as_deref().unwrap_or("?");
        line.insert_str(0, &format!("#[deprecated(since = \"{since}\")] "));
    }
    let parent = item.parent_id().and_then(|id| json.index.get(&id)).map(|parent| &parent.inner);
    if let (ItemEnum::Function(function), Some(ItemEnum::Trait(_))) = (&what.inner, parent)
        && function.has_body
    {
        line.push_str(" { … }");
    }
    line
}

/// `impl core::fmt::Debug for Kind` as `Kind: core::fmt::Debug`; none for what is left out.
fn implementation(text: &str) -> Option<String> {
    const NOISE: [&str; 6] =
        ["Freeze", "RefUnwindSafe", "StructuralPartialEq", "Unpin", "UnsafeUnpin", "UnwindSafe"];
    let Some((what, whose)) = text.split_once(" for delta_migrate::") else {
        return Some(text.to_owned());
    };
    let what = what.trim_start_matches("impl");
    let noise = NOISE.iter().any(|name| what.ends_with(&format!("::{name}")));
    (!noise).then(|| format!("delta_migrate::{whose}: {}", what.trim_start()))
}
