//! Older releases on a table that today's code migrated: the chain cut at each length.

use super::carry::{Carrier, Copy, TODAY, hashes};
use super::columns::Known;
use crate::error::{Error, ErrorCode};
use crate::migrator::{IfMissing, Migrator};
use crate::model::assess::Assessment;
use crate::model::plan::Target;
use crate::model::state::keys;
use crate::model::version::SchemaVersion;

impl Carrier<'_> {
    /// Lets every older release go on writing: it warns once and appends, or is refused where the
    /// floor says so, and there only.
    pub(super) async fn older(&mut self, copy: &mut Copy<'_>) -> Result<(), Error> {
        let stamps = |copy: &Copy<'_>, carrier: &Self| -> Result<[Option<String>; 2], Error> {
            let log = copy.table.log()?;
            let property = |key: &str| log.property(&carrier.namespace.property(key));
            Ok([property(keys::SCHEMA_VERSION), property(keys::MIN_VERSION)])
        };
        let before = stamps(copy, self)?;
        let floor = before[1].as_ref().and_then(|f| f.parse::<u32>().ok());
        for known in 0..copy.kind.newest().get() {
            let migrator = self.migrator(copy.kind, SchemaVersion::new(known))?;
            self.older_releases += 1;
            if floor.is_some_and(|floor| known < floor) {
                self.shut_out(&migrator, copy, known).await?;
            } else {
                self.goes_on(&migrator, copy, known).await?;
            }
        }
        if stamps(copy, self)? != before {
            let hint = "a release never lowers a version or a floor";
            self.tell(&copy.place, format!("stamps {:?}", stamps(copy, self)?), format!("{before:?}"), hint);
        }
        Ok(())
    }

    async fn shut_out(&mut self, migrator: &Migrator, copy: &Copy<'_>, known: u32) -> Result<(), Error> {
        let hint = "a release that knows less than the floor must not write";
        let before = hashes(&copy.table)?;
        let (kind, location) = (copy.kind.name(), copy.table.location()?);
        let applied = migrator.migrate(kind, &location, Target::Newest, IfMissing::Refuse).await.map(drop);
        let opened = migrator.open_at(kind, &location).await.map(drop);
        for (what, done) in [("applies", applied), ("opens it for a sink", opened)] {
            let found = match done {
                Err(error) if error.code() == ErrorCode::TooNew => continue,
                Err(error) => error.code().to_string(),
                Ok(()) => "no error".to_owned(),
            };
            let who = format!("a release that knows {known} {what}: {found}");
            self.tell(&copy.place, who, "`too_new`", hint);
        }
        if hashes(&copy.table)? != before {
            self.tell(
                &copy.place,
                format!("a release that knows {known} wrote"),
                "every byte as it was",
                hint,
            );
        }
        Ok(())
    }

    async fn goes_on(&mut self, migrator: &Migrator, copy: &mut Copy<'_>, known: u32) -> Result<(), Error> {
        let who = format!("a release that knows {known} to go on writing");
        let hint = "a newer table whose floor allows it is written as it is";
        let before = hashes(&copy.table)?;
        let (kind, location) = (copy.kind.name(), copy.table.location()?);
        let opened = migrator.open_at(kind, &location).await;
        let Some(opened) = self.sound(&copy.place, &who, opened) else { return Ok(()) };
        let again = migrator.check(kind, opened.table());
        let Some(assessment) = self.sound(&copy.place, &who, again) else { return Ok(()) };
        if !matches!(assessment, Assessment::Ahead { .. }) {
            self.tell(&copy.place, format!("{assessment:?}"), "`ahead`", hint);
        }
        if migrator.warnings_given() != 1 {
            let found = format!("{} warnings to a release that knows {known}", migrator.warnings_given());
            self.tell(&copy.place, found, "one", "it is said once a version, not with each batch");
        }
        if hashes(&copy.table)? != before {
            self.tell(
                &copy.place,
                format!("a release that knows {known} migrated"),
                "every byte as it was",
                hint,
            );
        }
        let shape = |version| copy.kind.shape_at(version).columns;
        let columns = Known::new(shape(SchemaVersion::new(known)), shape(copy.kind.newest()));
        self.append(copy, TODAY + 1 + known, Some(&columns))
    }
}
