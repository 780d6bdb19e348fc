//! Functions of the author's own as steps of a migration.

use std::error::Error as StdError;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use deltalake::DeltaTable;
use deltalake::datafusion::prelude::SessionContext;
use deltalake::kernel::Transaction;
use deltalake::kernel::transaction::CommitProperties;

use super::{failed, sql};
use crate::batch::Stop;
use crate::delta::location::Location;
use crate::error::{Error, ErrorCode, Stage};
use crate::model::migration::{Function, MigrationBuilder};
use crate::model::version::SchemaVersion;

/// What a function may fail with.
pub type StepError = Box<dyn StdError + Send + Sync>;

type Call = dyn Fn(StepContext, DeltaTable) -> Pin<Box<dyn Future<Output = Result<(), StepError>> + Send>>
    + Send
    + Sync;

/// As the model keeps it, without knowing what it is.
struct Held(Box<Call>);

/// What a function of a migration gets beside the table.
///
/// Handed to it by [`MigrationBuilder::run`].
#[derive(Clone)]
pub struct StepContext {
    session: SessionContext,
    kind: String,
    version: SchemaVersion,
    transaction: String,
    notes: Arc<Mutex<Vec<String>>>,
    stop: Option<Stop>,
}

impl StepContext {
    /// A DataFusion session with deltalake's planner and functions.
    pub fn session(&self) -> &SessionContext {
        &self.session
    }

    /// The table's kind.
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// The version of the migration that the function is a step of.
    pub fn version(&self) -> SchemaVersion {
        self.version
    }

    /// Commit properties for deltalake's operations: with the application transaction of this step
    /// (PROTOCOL.md, Transaction Identifiers), no checkpoint, no clean-up of the log.
    ///
    /// The transaction's id is `<namespace>/<kind>/<name of the function>`, its version that of the
    /// migration. A function that writes one commit can look with
    /// [`StepContext::transaction_id`] whether an earlier run did it already.
    pub fn commit_properties(&self) -> CommitProperties {
        let version = i64::from(self.version.get());
        CommitProperties::default()
            .with_application_transaction(Transaction::new(&self.transaction, version))
            .with_create_checkpoint(false)
            .with_cleanup_expired_logs(Some(false))
    }

    /// The id of the application transaction.
    pub fn transaction_id(&self) -> &str {
        &self.transaction
    }

    /// A line for the table's report, among its warnings.
    pub fn note(&self, text: impl Into<String>) {
        if let Ok(mut notes) = self.notes.lock() {
            notes.push(text.into());
        }
    }

    /// Whether somebody wants the run to end; a function that takes long should then return.
    pub fn is_cancelled(&self) -> bool {
        self.stop.as_ref().is_some_and(Stop::is_asked)
    }

    /// Comes when somebody wants the run to end.
    pub async fn cancelled(&self) {
        match &self.stop {
            Some(stop) => stop.wait().await,
            None => std::future::pending().await,
        }
    }
}

impl fmt::Debug for StepContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StepContext")
            .field("kind", &self.kind)
            .field("version", &self.version)
            .field("transaction", &self.transaction)
            .finish_non_exhaustive()
    }
}

impl MigrationBuilder {
    /// A step of the author's own, for what no other step does. It runs after `update`, and needs leave
    /// to rewrite ([`StartupPolicy::ApplyAll`](crate::StartupPolicy::ApplyAll), `--allow-rewrite`).
    ///
    /// The columns that the migration adds and its floor have landed when the function is called, with
    /// the table loaded at its newest log version; the stamp lands after it. It makes its own commits.
    ///
    /// **It must be safe to run twice**: a crash between its last commit and the stamp runs it again, and
    /// so may another process at the same time. `compat check` runs it twice. Rows that others append
    /// while it runs are not seen by it.
    ///
    /// The name stands in the chain's digest in place of what the function does: never use one name for
    /// two functions, and never change what a shipped one does.
    ///
    /// # Examples
    /// ```
    /// use delta_migrate::deltalake::datafusion::prelude::{col, lit};
    /// use delta_migrate::{Kind, Migration};
    ///
    /// let kind = Kind::builder("facts").column("id", "long").column("note", "string").migration(
    ///     Migration::builder("empty notes become null").raises_min_version().run(
    ///         "empty_notes",
    ///         async |context, table| {
    ///             let update = table.update().with_predicate(col("note").eq(lit("")));
    ///             let update = update.with_update("note", "NULL");
    ///             let (_, done) = update.with_commit_properties(context.commit_properties()).await?;
    ///             context.note(format!("{} empty notes", done.num_updated_rows));
    ///             Ok(())
    ///         },
    ///     ),
    /// );
    /// assert_eq!(kind.build()?.newest().get(), 1);
    /// # Ok::<(), delta_migrate::Error>(())
    /// ```
    pub fn run<F, R>(mut self, name: impl Into<String>, function: F) -> Self
    where
        F: Fn(StepContext, DeltaTable) -> R + Send + Sync + 'static,
        R: Future<Output = Result<(), StepError>> + Send + 'static,
    {
        let call: Box<Call> = Box::new(move |context, table| Box::pin(function(context, table)));
        self.run.push(Function { name: name.into(), call: Arc::new(Held(call)) });
        self
    }
}

/// Where a function runs.
pub(super) struct Place<'a> {
    pub(super) location: &'a Location,
    pub(super) namespace: &'a str,
    pub(super) kind: &'a str,
    pub(super) version: SchemaVersion,
    pub(super) stop: Option<Stop>,
}

/// Runs a function on the table as it is now; gives what it noted.
pub(super) async fn run(place: &Place<'_>, function: &Function) -> Result<Vec<String>, Error> {
    let Some(Held(call)) = function.call.downcast_ref::<Held>() else {
        return Err(Error::new(ErrorCode::DataStep, Stage::Commit, "a function can't be called"));
    };
    let mut table = DeltaTable::new(place.location.log_store().clone());
    table.load().await.map_err(|e| failed("the table can't be loaded", e))?;
    let notes = Arc::new(Mutex::new(Vec::new()));
    let context = StepContext {
        session: sql::session(),
        kind: place.kind.to_owned(),
        version: place.version,
        transaction: format!("{}/{}/{}", place.namespace, place.kind, function.name),
        notes: notes.clone(),
        stop: place.stop.clone(),
    };
    call(context, table).await.map_err(|cause| {
        Error::new(ErrorCode::DataStep, Stage::Commit, format!("the function `{}` failed", function.name))
            .with_hint(
                "its own commits stay; mend what it says, and run it again: it is run from its beginning",
            )
            .with_source(cause)
    })?;
    let notes = notes.lock().map(|notes| notes.clone()).unwrap_or_default();
    Ok(notes)
}
