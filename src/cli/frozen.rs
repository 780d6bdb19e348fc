//! Kinds and the lock file that holds what of them has shipped.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::args::Global;
use super::config::{self, Config};
use super::context::{CONFIG_FILE, Context};
use super::kinds::{read_kinds, shown};
use super::output::Output;
use crate::error::Error;
use crate::migrator::Migrator;
use crate::model::kind::Kind;
use crate::model::lockfile::{Kinds, LOCK_FILE, Lockfile, Verified};
use crate::model::version::Namespace;

/// What has shipped, and what there is.
pub(crate) struct Frozen {
    pub(crate) kinds: Vec<Kind>,
    pub(crate) path: PathBuf,
    /// None if there is no such file.
    pub(crate) lock: Option<Lockfile>,
    which: Kinds,
}

impl Frozen {
    /// The SQL of data steps, each expression against the columns that it meets. Without DataFusion it is
    /// not read.
    #[cfg(feature = "datafusion")]
    pub(crate) fn check_sql(&self) -> Result<(), Error> {
        let mut lines = Vec::new();
        for kind in &self.kinds {
            for (version, key, what) in crate::delta::data::sql::mistakes(kind) {
                let origin = kind.origin();
                let place = match (&origin.file, origin.line(version)) {
                    (Some(file), Some(line)) => format!("{file}:{line}"),
                    _ => format!("kind `{}`", kind.name()),
                };
                lines.push(format!("{place}: migration {version}, {key}: {what}"));
            }
        }
        match lines.is_empty() {
            true => Ok(()),
            false => Err(Error::usage(lines.join("\n"))),
        }
    }

    /// Without DataFusion it is not read.
    #[cfg(not(feature = "datafusion"))]
    pub(crate) fn check_sql(&self) -> Result<(), Error> {
        let _ = self;
        Ok(())
    }

    /// Reads kinds and lock, without anything that only tables need.
    pub(crate) fn load(global: &Global, own: Option<Migrator>) -> Result<Self, Error> {
        let config = read_config(global)?;
        if config.is_none() && global.kind_file.is_empty() && own.is_none() {
            return Err(Error::usage(format!("there is no `{CONFIG_FILE}` here"))
                .with_hint("name one with -c FILE, or kind files with --kind-file FILE"));
        }
        let which = which(global, own.is_some());
        let kinds = match own {
            Some(own) => own.kinds().cloned().collect(),
            None => read_kinds(global, config.as_ref())?,
        };
        // What no migrator would take is no kind to freeze. Without a namespace one stands in.
        let namespace = match (&global.namespace, &config) {
            (Some(name), _) => Namespace::new(name).map_err(|e| Error::usage(e.to_string()))?,
            (None, Some(config)) => config.namespace.clone(),
            (None, None) => Namespace::new("validate").map_err(|e| Error::usage(e.to_string()))?,
        };
        kinds.iter().cloned().fold(Migrator::builder(namespace), |b, kind| b.kind(kind)).build()?;
        let path = lock_path(global);
        Ok(Self { kinds, lock: read_lock(&path)?, path, which })
    }

    /// The lock file as messages call it.
    pub(crate) fn file(&self) -> String {
        shown(&self.path)
    }

    /// Whether the lock is a prefix of the kinds; one that is not there is empty.
    pub(crate) fn verify(&self) -> Verified {
        self.lock_or_empty().verify(&self.kinds, self.which)
    }

    pub(crate) fn lock_or_empty(&self) -> Lockfile {
        self.lock.clone().unwrap_or_else(|| Lockfile::empty(&self.file()))
    }
}

/// Kinds that were picked, or that a program brings along, may be some of those in the lock.
fn which(global: &Global, has_own: bool) -> Kinds {
    if has_own || !global.kind_file.is_empty() { Kinds::Some } else { Kinds::All }
}

/// Why nothing may be written with kinds that do not fit what has shipped; no lock file is no reason.
///
/// # Errors
/// `Usage`: the lock is no prefix of the kinds, or can't be read.
pub(crate) fn check(global: &Global, has_own: bool, context: &Context) -> Result<(), Error> {
    let Some(lock) = read_lock(&lock_path(global))? else { return Ok(()) };
    lock.verify(context.migrator().kinds(), which(global, has_own)).into_result()
}

/// The same as a remark, for commands that write nothing.
pub(crate) fn warn(global: &Global, has_own: bool, context: &Context, output: &Output) {
    if let Err(error) = check(global, has_own, context) {
        output.note(&format!("! {}; `apply` will refuse", error.message().replace('\n', "\n  ")));
        output.note("→ `delta-migrate validate` shows was and is, and the way out");
    }
}

fn lock_path(global: &Global) -> PathBuf {
    if let Some(path) = &global.lock_file {
        return path.clone();
    }
    let folder = global.config.as_deref().and_then(Path::parent).unwrap_or(Path::new(""));
    folder.join(LOCK_FILE)
}

/// The lock file's text, for a corpus; none where there is no such file.
pub(crate) fn text(global: &Global) -> Result<Option<String>, Error> {
    let path = lock_path(global);
    match std::fs::read_to_string(&path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::usage(format!("`{}` can't be read", shown(&path))).with_source(error)),
    }
}

fn read_lock(path: &Path) -> Result<Option<Lockfile>, Error> {
    match std::fs::read(path) {
        // Bytes that are no text are findings with a line, as everything else that is wrong in it.
        Ok(bytes) => Ok(Some(Lockfile::parse(&String::from_utf8_lossy(&bytes), &shown(path)))),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::usage(format!("`{}` can't be read", shown(path))).with_source(error)),
    }
}

/// The configuration, if there is one. No table is opened, so a secret that is not set is no mistake.
fn read_config(global: &Global) -> Result<Option<Config>, Error> {
    let path = global.config.clone().unwrap_or_else(|| CONFIG_FILE.into());
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if global.config.is_none() && error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => {
            return Err(Error::usage(format!("`{}` can't be read", path.display())).with_source(error));
        }
    };
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let env = |name: &str| Some(std::env::var(name).unwrap_or_else(|_| "unset".to_owned()));
    config::parse(&text, &path.display().to_string(), folder, &env).map(Some)
}
