//! The settings of a migrator.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::moments::Moments;
use super::seen::Seen;
use super::{Migrator, StartupPolicy};
use crate::error::Error;
use crate::model::data::Settings;
use crate::model::kind::Kind;
use crate::model::lockfile::{self, LOCK_FILE, Lockfile};
use crate::model::version::Namespace;

/// Settings of a [`Migrator`].
#[derive(Debug)]
pub struct MigratorBuilder {
    pub(super) namespace: Namespace,
    pub(super) kinds: Vec<Kind>,
    pub(super) release: String,
    pub(super) policy: StartupPolicy,
    pub(super) budget: Duration,
    pub(super) lock: Option<String>,
    pub(super) moments: Arc<dyn Moments>,
    pub(super) data: Settings,
}

impl MigratorBuilder {
    /// Adds a kind; its name must be new.
    pub fn kind(mut self, kind: Kind) -> Self {
        self.kinds.push(kind);
        self
    }

    /// Who migrates, for the tables' histories: the program and its version, at most 64 characters.
    /// By default `delta-migrate <its version>`.
    pub fn release(mut self, release: impl Into<String>) -> Self {
        self.release = release.into();
        self
    }

    /// What opening a table may do to it; [`StartupPolicy::ApplyMetadata`] by default.
    pub fn policy(mut self, policy: StartupPolicy) -> Self {
        self.policy = policy;
        self
    }

    /// How long lost races are tried again, from a table's first attempt; 60 seconds by default.
    pub fn budget(mut self, budget: Duration) -> Self {
        self.budget = budget;
        self
    }

    /// The text of the lock file that `delta-migrate lock` wrote, for a program that brings its kinds
    /// along: [`MigratorBuilder::build`] refuses kinds whose shipped migrations were edited, moved or
    /// removed. Migrations that are not in the lock yet are fine, and so are kinds of the lock that
    /// this migrator does not have.
    ///
    /// # Examples
    /// ```
    /// use delta_migrate::{ErrorCode, Kind, Migration, Migrator, Namespace};
    ///
    /// # let lock = "facts base 4b1c3b1b\nfacts 1 00000000 detail of a row\n";
    /// # /*
    /// let lock = include_str!("../migrations.lock");
    /// # */
    /// let facts = Kind::builder("facts")
    ///     .column("app_id", "string")
    ///     .migration(Migration::builder("detail of a row").add_column("detail", "string"));
    /// let built = Migrator::builder(Namespace::new("my_sink")?).kind(facts.build()?).lock(lock).build();
    ///
    /// // Somebody edited what has shipped.
    /// let error = built.unwrap_err();
    /// assert_eq!(error.code(), ErrorCode::Usage);
    /// assert!(error.message().contains("edited_migration: migration 1 of kind `facts`"), "{error}");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn lock(mut self, text: impl Into<String>) -> Self {
        self.lock = Some(text.into());
        self
    }

    /// Where times, ids and pauses come from.
    #[doc(hidden)]
    pub fn moments(mut self, moments: Arc<dyn Moments>) -> Self {
        self.moments = moments;
        self
    }

    /// How many bytes of files a data step rewrites in one commit. Only tests need another number.
    #[doc(hidden)]
    pub fn most_in_a_commit(mut self, bytes: u64) -> Self {
        self.data.most_in_a_commit = bytes;
        self
    }

    /// Checks the settings.
    ///
    /// # Errors
    /// [`ErrorCode::Usage`](crate::ErrorCode::Usage): two kinds of one name, a kind that sets properties of the namespace,
    /// a release of more than 64 characters, or a lock that is no prefix of the kinds.
    pub fn build(self) -> Result<Migrator, Error> {
        let Self { namespace, kinds, release, policy, budget, lock, moments, data } = self;
        if release.is_empty() || release.chars().count() > 64 || release.chars().any(char::is_control) {
            return Err(Error::usage(format!("release `{release}` must be 1 to 64 characters on one line")));
        }
        let mut by_name = BTreeMap::new();
        for kind in kinds {
            if let Some(key) = kind.property_keys().find(|k| namespace.owns(k)) {
                return Err(Error::usage(format!(
                    "kind `{}` sets property `{key}`, which belongs to delta-migrate in namespace `{namespace}`",
                    kind.name()
                ))
                .with_hint("take it out; stamps are written by delta-migrate alone"));
            }
            if let Some(other) = by_name.insert(kind.name().to_owned(), kind) {
                return Err(Error::usage(format!("there are two kinds named `{}`", other.name())));
            }
        }
        if let Some(lock) = lock {
            let lock = Lockfile::parse(&lock, LOCK_FILE);
            lock.verify(by_name.values(), lockfile::Kinds::Some).into_result()?;
        }
        let warned = Mutex::default();
        let seen = Seen::default();
        Ok(Migrator { namespace, kinds: by_name, release, policy, budget, moments, data, seen, warned })
    }
}
