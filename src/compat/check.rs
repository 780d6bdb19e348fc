//! Checks a corpus against today's kinds and code.

use std::path::Path;

use tracing::instrument::WithSubscriber as _;
use tracing::subscriber::NoSubscriber;

use super::carry::Carrier;
use super::files::Scratch;
use super::manifest::{KindEntry, MANIFEST, Manifest};
use super::steps::unsupported;
use super::{Checked, Finding, documents, files, lock};
use crate::error::Error;
use crate::model::digest::{self, ChainDigest};
use crate::model::kind::Kind;
use crate::model::version::{Namespace, SchemaVersion};

/// Checks the corpus of a release with today's kinds: see the [module](crate::compat) for what that means.
///
/// Its folder is only read. Where a file is not as it was written, that alone is told: nothing that
/// came of such files would say anything about today's code.
///
/// # Errors
/// [`ErrorCode::Usage`](crate::ErrorCode::Usage): the folder is no corpus or can't be read, the
/// system's folder for temporary files can't be written. What is wrong with tables and documents is a
/// finding, not an error.
pub async fn check(
    folder: impl AsRef<Path>,
    kinds: &[Kind],
    namespace: &Namespace,
) -> Result<Checked, Error> {
    let folder = folder.as_ref();
    let label =
        folder.file_name().map_or_else(|| "corpus".into(), |name| name.to_string_lossy()).into_owned();
    let mut checked =
        Checked { release: label.clone(), files: 0, tables: 0, older_releases: 0, findings: Vec::new() };
    checked.findings = Manifest::verify_seal(folder, &label)?;
    if !checked.findings.is_empty() {
        return Ok(checked);
    }
    let manifest = Manifest::read(folder)?;
    checked.release.clone_from(&manifest.release);
    checked.files = manifest.files.len() + 2;
    checked.findings = manifest.verify(folder, &label)?;
    if manifest.namespace != namespace.as_str() {
        checked.findings.push(Finding::new(
            format!("{label}/{MANIFEST}"),
            format!("namespace `{namespace}`"),
            format!("namespace `{}`", manifest.namespace),
            "stamps are looked for under the namespace that wrote them: put it back as it was",
        ));
    }
    if !checked.findings.is_empty() {
        return Ok(checked);
    }
    checked.findings = kind_files(folder, &label)?;
    checked.findings.extend(lock::check(folder, &label, &manifest, kinds)?);
    let mut carried = Vec::new();
    for entry in &manifest.kinds {
        match same_chain(&label, entry, &manifest.schemes.digest, kinds) {
            Ok(kind) => match unsupported(kind) {
                None => carried.push(kind),
                Some(what) => checked.findings.push(Finding::new(
                    format!("{label}: kind `{}`", kind.name()),
                    format!("{what}, and a build that can't do that; its tables were left out"),
                    "a build with the feature `datafusion`",
                    "turn the feature on where the check runs: for a test, under [dev-dependencies]",
                )),
            },
            Err(finding) => checked.findings.push(finding),
        }
    }
    let scratch = Scratch::new()?;
    let mut carrier = Carrier::new(folder, &label, namespace, scratch.path());
    for entry in &manifest.tables {
        if let Some(kind) = carried.iter().find(|k| k.name() == entry.kind) {
            // That older releases are warned is counted; said of every table, it would be noise.
            carrier.table(kind, entry).with_subscriber(NoSubscriber::default()).await?;
            checked.tables += 1;
        }
    }
    checked.older_releases = carrier.older_releases;
    checked.findings.extend(carrier.findings);
    let documents = documents::Documents { folder, label: &label, namespace, manifest: &manifest };
    checked.findings.extend(documents.check(&carried).await?);
    Ok(checked)
}

/// Kind files of the release that can't be read any more.
fn kind_files(folder: &Path, label: &str) -> Result<Vec<Finding>, Error> {
    let mut findings = Vec::new();
    let texts = files::below(folder)?.into_iter();
    for (name, path) in texts.filter(|(name, _)| name.starts_with("kinds/") && name.ends_with(".toml")) {
        if let Err(error) = Kind::from_toml_file(&files::read_text(&path)?, &name) {
            let hint = "a kind file that a release read is read by every later one";
            let found = error.message().to_owned();
            findings.push(Finding::new(
                format!("{label}/{name}"),
                found,
                "a kind file that can be read",
                hint,
            ));
        }
    }
    Ok(findings)
}

/// Today's kind, if its chain begins with the one that the release shipped.
fn same_chain<'k>(
    label: &str,
    entry: &KindEntry,
    scheme: &str,
    kinds: &'k [Kind],
) -> Result<&'k Kind, Finding> {
    let KindEntry { name, newest, digest } = entry;
    let finding = |found: String, wanted: String, hint: &str| {
        Err(Finding::new(format!("{label}: kind `{name}`"), found, wanted, hint))
    };
    let shipped = format!("the chain of {newest} migrations that the release shipped");
    let Some(kind) = kinds.iter().find(|k| k.name() == name) else {
        let hint = "tables of the kind are out there: bring the kind back; one that nobody writes any more stays too";
        return finding("no such kind".to_owned(), shipped, hint);
    };
    if kind.newest().get() < *newest {
        let hint =
            "a migration that was shipped is never removed: put it back; what it did is undone by a new one";
        return finding(format!("a chain of {}", kind.newest()), shipped, hint);
    }
    if scheme != digest::SCHEME {
        return Ok(kind);
    }
    let today = ChainDigest::of(kind, SchemaVersion::new(*newest));
    let was = ChainDigest::from_stamp(digest).ok().flatten();
    match was.as_ref().map(|was| today.parts_from(was)) {
        Some(None) => Ok(kind),
        Some(Some(SchemaVersion::ZERO)) => finding(
            "another base shape".to_owned(),
            shipped,
            "put the base shape back as it was; what is to change is a new migration",
        ),
        Some(Some(at)) => finding(
            format!("another migration {at}"),
            shipped,
            "put the migration back as it was; what is to change is a new migration at the end",
        ),
        None => finding(
            format!("a digest `{digest}` that can't be read"),
            shipped,
            "a digest that a release wrote is read by every later one",
        ),
    }
}
