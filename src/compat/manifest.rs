//! `manifest.json`: what a corpus is, who made it, what stands in it, and the hash of every file.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{Finding, Options, files};
use crate::error::Error;
use crate::model::digest::{self, ChainDigest};
use crate::model::kind::Kind;
use crate::model::saved_plan;
use crate::model::version::Namespace;

pub(super) const MANIFEST: &str = "manifest.json";
/// The manifest's own hash, as `sha256sum --check` reads it.
pub(super) const SEAL: &str = "manifest.json.sha256";

/// The format that this release writes; later ones only add keys.
const FORMAT: u32 = 1;

/// What a corpus is.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Manifest {
    format: u32,
    /// The release whose tables these are.
    pub release: String,
    /// The version of this crate that wrote them.
    pub crate_version: String,
    /// The namespace of the stamps.
    pub namespace: String,
    /// The command that wrote them.
    #[serde(default)]
    pub command: Option<String>,
    /// The commit that the program was built from.
    #[serde(default)]
    pub commit: Option<String>,
    /// The SHA-256 of the program.
    #[serde(default)]
    pub binary_sha256: Option<String>,
    /// The compiler that built it.
    #[serde(default)]
    pub rustc: Option<String>,
    /// The version of deltalake in it.
    #[serde(default)]
    pub deltalake: String,
    /// The encodings that it writes.
    pub(super) schemes: Schemes,
    pub(super) kinds: Vec<KindEntry>,
    /// What stands in the corpus.
    pub tables: Vec<TableEntry>,
    pub(super) plans: Vec<PlanEntry>,
    pub(super) files: Vec<FileEntry>,
}

/// The encodings of a release.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Schemes {
    pub(super) digest: String,
    pub(super) plan: u32,
}

/// A kind as the release knew it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct KindEntry {
    pub(super) name: String,
    pub(super) newest: u32,
    /// The digest of its chain.
    pub(super) digest: String,
}

/// A table of a corpus, and what the release said of it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TableEntry {
    /// Its folder, from the corpus's.
    pub path: String,
    /// Its kind.
    pub kind: String,
    /// What was done to it, for people.
    pub story: String,
    /// `current`, `planned`, or `refused`.
    pub outcome: String,
    /// Why it was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The version that it has, or is taken to have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u32>,
    /// Its floor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_version: Option<u32>,
    /// The newest version of its log.
    pub log_version: u64,
    /// How many rows it has.
    pub rows: usize,
}

/// What a saved plan must come to.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct PlanEntry {
    pub(super) table: String,
    pub(super) ends: PlanEnd,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum PlanEnd {
    /// The table is as it was: it is carried out.
    Applies,
    /// The table was changed since.
    Stale,
    /// Somebody carried it out before.
    Done,
}

/// A file with its hash.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct FileEntry {
    pub(super) path: String,
    pub(super) size: u64,
    pub(super) sha256: String,
}

impl Manifest {
    pub(super) fn new(namespace: &Namespace, kinds: &[Kind], options: &Options) -> Self {
        let Options { release, kind_files: _, lock: _, command, commit, binary_sha256, rustc } = options;
        let filled = |text: &Option<String>| text.clone().filter(|t| !t.is_empty());
        let entry = |kind: &Kind| KindEntry {
            name: kind.name().to_owned(),
            newest: kind.newest().get(),
            digest: ChainDigest::of(kind, kind.newest()).to_string(),
        };
        Self {
            format: FORMAT,
            release: release.clone(),
            crate_version: env!("CARGO_PKG_VERSION").to_owned(),
            namespace: namespace.to_string(),
            command: filled(command),
            commit: filled(commit),
            binary_sha256: filled(binary_sha256),
            rustc: filled(rustc),
            deltalake: deltalake::crate_version().to_owned(),
            schemes: Schemes { digest: digest::SCHEME.to_owned(), plan: saved_plan::FORMAT },
            kinds: kinds.iter().map(entry).collect(),
            tables: Vec::new(),
            plans: Vec::new(),
            files: Vec::new(),
        }
    }

    /// Hashes every file that is there, and writes the manifest and its own hash.
    pub(super) fn seal(&mut self, folder: &Path) -> Result<(), Error> {
        self.files.clear();
        for (path, at) in files::below(folder)? {
            let bytes = files::read(&at)?;
            let (size, sha256) = (bytes.len() as u64, files::sha256(&bytes));
            self.files.push(FileEntry { path, size, sha256 });
        }
        let text = serde_json::to_string_pretty(self).unwrap_or_default() + "\n";
        files::write(&folder.join(MANIFEST), text.as_bytes())?;
        let seal = format!("{}  {MANIFEST}\n", files::sha256(text.as_bytes()));
        files::write(&folder.join(SEAL), seal.as_bytes())
    }

    /// Reads the manifest of a corpus.
    ///
    /// # Errors
    /// [`ErrorCode::Usage`](crate::ErrorCode::Usage): there is none, or it is no manifest of a format
    /// that this release reads.
    pub fn read(folder: impl AsRef<Path>) -> Result<Self, Error> {
        let path = folder.as_ref().join(MANIFEST);
        let text = files::read_text(&path).map_err(|e| {
            e.with_hint(
                "name the folder that `compat generate` wrote; a corpus is complete once it has a manifest",
            )
        })?;
        let manifest: Self = serde_json::from_str(&text).map_err(|e| {
            Error::usage(format!("`{}` is no manifest of a corpus", path.display()))
                .with_hint("take the file back out of version control as it was committed")
                .with_source(e)
        })?;
        if manifest.format > FORMAT {
            let message =
                format!("the corpus has format {}; this release reads up to {FORMAT}", manifest.format);
            return Err(
                Error::usage(message).with_hint("check it with the release that wrote it, or a later one")
            );
        }
        Ok(manifest)
    }

    /// Compares the manifest with its own hash, before it is believed.
    pub(super) fn verify_seal(folder: &Path, release: &str) -> Result<Vec<Finding>, Error> {
        let manifest = folder.join(MANIFEST);
        if !manifest.is_file() {
            return Err(Error::usage(format!("there is no corpus in `{}`", folder.display())).with_hint(
                "name a folder that `compat generate` wrote; it is complete once it has a manifest.json",
            ));
        }
        let seal = files::read(&folder.join(SEAL)).unwrap_or_default();
        let now = format!("{}  {MANIFEST}\n", files::sha256(&files::read(&manifest)?));
        if seal == now.as_bytes() {
            return Ok(Vec::new());
        }
        let text = String::from_utf8_lossy(&seal).trim_end().to_owned();
        let is_hash = |t: &str| t.split_once("  ").is_some_and(|(h, n)| h.len() == 64 && n == MANIFEST);
        // One of the two was changed, and which can't be told from the two alone.
        Ok(vec![match is_hash(&text) {
            true => changed(release, MANIFEST, &format!("what {SEAL} says, {text}"), now.trim_end()),
            false => changed(release, SEAL, now.trim_end(), if text.is_empty() { "no hash" } else { &text }),
        }])
    }

    /// Compares every file with its hash; each that was changed, is missing, or was put in is told.
    pub(super) fn verify(&self, folder: &Path, release: &str) -> Result<Vec<Finding>, Error> {
        let mut findings = Vec::new();
        let mut found = files::below(folder)?;
        let mut tell = |path: &str, was: &str, now: &str| findings.push(changed(release, path, was, now));
        for FileEntry { path, size, sha256 } in &self.files {
            let Some(at) = found.remove(path) else {
                tell(path, "a file", "no file");
                continue;
            };
            let bytes = files::read(&at)?;
            let (was, now) = (told(*size, sha256), told(bytes.len() as u64, &files::sha256(&bytes)));
            if was != now {
                tell(path, &was, &now);
            }
        }
        found.remove(MANIFEST);
        found.remove(SEAL);
        for path in found.keys() {
            tell(path, "no file", "a file");
        }
        Ok(findings)
    }
}

fn told(size: u64, sha256: &str) -> String {
    format!("{size} bytes, sha256 {sha256}")
}

fn changed(release: &str, path: &str, was: &str, now: &str) -> Finding {
    let hint = "a corpus is never changed: take the file back out of version control as it was committed";
    Finding::new(format!("{release}/{path}"), now, was, hint)
}
