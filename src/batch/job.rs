//! One table to work on, once its kind is known.

use std::sync::Arc;

use super::tasks::Kinds;
use crate::catalog::{Access, Found, Trust};
use crate::delta::location::Location;
use crate::delta::read::LogRead;
use crate::delta::stores::Stores;
use crate::error::{Error, ErrorCode, Stage};
use crate::migrator::{IfMissing, Migrator, missing};
use crate::model::kind::Kind;
use crate::model::plan::{Mode, Plan, Target};
use crate::model::report::TableReport;
use crate::model::state::keys;
use crate::model::text;

/// A table with its kind, and with what was read to find that out.
pub(crate) struct Job {
    pub(crate) migrator: Arc<Migrator>,
    pub(crate) kind: Arc<Kind>,
    pub(crate) location: Location,
    /// Created only where location and kind were both given.
    if_missing: IfMissing,
    read: Option<LogRead>,
}

/// What became of the look for a table's kind.
pub(crate) enum Opening {
    Job(Box<Job>),
    /// It is not ours.
    LeftOut {
        kind: String,
        reason: String,
    },
}

impl Job {
    /// Opens the store and finds out the kind: the rule's, else the table's own stamp.
    pub(super) async fn open(
        migrator: &Arc<Migrator>,
        kinds: &Kinds,
        stores: &Stores,
        found: &Found,
    ) -> Result<Opening, Error> {
        let location = match &found.access {
            Access::Options(options) => stores.location(&found.uri, options)?,
            Access::Lent(lender) => Stores::unshared(&found.uri, lender.lend().await?)?,
        };
        let (name, read) = match &found.kind {
            Some(name) => (name.clone(), None),
            None => match stamped_kind(migrator, &location).await? {
                Stamp::Kind(name, read) => (name, read.map(|read| *read)),
                Stamp::None(_) if found.trust != Trust::Found => return Err(which_kind(migrator, &location)),
                Stamp::None(reason) => return Ok(Opening::LeftOut { kind: String::new(), reason }),
            },
        };
        if found.kind.is_none() && migrator.kind(&name).is_err() {
            let reason = format!("its stamp says kind `{name}`, which is not among the kinds of this run");
            return Ok(Opening::LeftOut { kind: name, reason });
        }
        let if_missing = match found.trust {
            Trust::Named => IfMissing::Create,
            Trust::Asked | Trust::Found => IfMissing::Refuse,
        };
        let kind = kinds.get(migrator, &name, found)?;
        Ok(Opening::Job(Box::new(Self { migrator: migrator.clone(), kind, location, if_missing, read })))
    }

    /// What would be done, or why nothing may be.
    pub(crate) async fn plan(self, target: Target) -> Result<Plan, Error> {
        let plan = self.migrator.plan_from(&self.kind, &self.location, target, self.read).await?;
        if plan.mode() == Mode::Create && self.if_missing == IfMissing::Refuse {
            return Err(missing().at(Stage::Plan).with_table(self.location.uri()));
        }
        Ok(plan)
    }

    pub(crate) async fn status(self, target: Target) -> Result<TableReport, Error> {
        let (uri, newest) = (self.location.uri().to_owned(), self.kind.newest());
        Ok(TableReport::of_plan(&uri, &self.plan(target).await?, newest))
    }

    pub(crate) async fn migrate(self, target: Target) -> Result<TableReport, Error> {
        let Self { migrator, kind, location, if_missing, read } = self;
        migrator.migrate_from(&kind, &location, target, if_missing, read).await
    }
}

/// The kind that a table's own stamp says.
#[cfg(feature = "cli")]
pub(crate) async fn stamped_kind_of(migrator: &Migrator, location: &Location) -> Result<String, Error> {
    match stamped_kind(migrator, location).await? {
        Stamp::Kind(kind, _) => Ok(kind),
        Stamp::None(_) => Err(which_kind(migrator, location)),
    }
}

/// A table that somebody named without a kind, and that has no kind stamp.
fn which_kind(migrator: &Migrator, location: &Location) -> Error {
    let names: Vec<&str> = migrator.kind_names().collect();
    let message = format!("it has no kind stamp: which kind is it? there is {}", text::list(&names));
    Error::new(ErrorCode::Unversioned, Stage::Assess, message)
        .with_hint("say it with --kind, or list the table under [[tables]]")
        .with_table(location.uri())
}

enum Stamp {
    /// With what was read, where that is all that the kind's migrator would read.
    Kind(String, Option<Box<LogRead>>),
    None(String),
}

async fn stamped_kind(migrator: &Migrator, location: &Location) -> Result<Stamp, Error> {
    let namespace = migrator.namespace();
    let Some(read) = migrator.read_of_any_kind(location).await? else {
        return Err(missing().at(Stage::Read).with_table(location.uri()));
    };
    let stamps = &read.state.metadata.configuration;
    let version = namespace.property(keys::SCHEMA_VERSION);
    let Some(kind) = stamps.get(&namespace.property(keys::KIND)).cloned() else {
        let has = match stamps.contains_key(&version) {
            true => format!("it has a `{version}` but no kind stamp"),
            false => format!("it has no stamp of namespace `{namespace}`"),
        };
        let reason = format!("{has}, and the rule that found it names no `kind`");
        return Ok(Stamp::None(reason));
    };
    let is_all = stamps.contains_key(&version);
    Ok(Stamp::Kind(kind, is_all.then(|| Box::new(read))))
}
