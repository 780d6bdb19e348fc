//! Writes a corpus: tables with a life behind them, and what this release says of them.

use std::path::Path;
use std::sync::Arc;

use serde_json::Value;

use super::columns::grown;
use super::manifest::{Manifest, PlanEnd, PlanEntry, TableEntry};
use super::moments::Fixed;
use super::rows::told;
use super::said::Said;
use super::steps::{changed_values, runs_functions, through, unsupported};
use super::table::{Table, drop_stamps};
use super::{Options, files, lock, unreadable};
use crate::error::{Error, ErrorCode, Stage};
use crate::migrator::{IfMissing, Migrator, StartupPolicy};
use crate::model::kind::{Adopt, Kind};
use crate::model::lockfile::LOCK_FILE;
use crate::model::migration::Step;
use crate::model::plan::{Repair, Target};
use crate::model::report::TableReport;
use crate::model::saved_plan::SavedPlan;
use crate::model::state::keys;
use crate::model::version::{MinVersion, Namespace, SchemaVersion};

/// A floor that no chain comes near.
const FAR_FLOOR: u32 = 1_000_000;

/// Writes the corpus of a release into a new or empty folder: see the [module](crate::compat) for what it holds.
///
/// The same build, kinds and options give the same bytes each time.
///
/// # Errors
/// [`ErrorCode::Usage`](crate::ErrorCode::Usage): the folder holds something or can't be written, two
/// kinds have one name, or the release's name is too long. Every refusal of a chain that this build
/// can't carry out, `unsupported_step` above all.
pub async fn generate(
    kinds: &[Kind],
    namespace: &Namespace,
    folder: impl AsRef<Path>,
    options: &Options,
) -> Result<Manifest, Error> {
    let root = folder.as_ref();
    let maker = Maker { root, namespace, release: &options.release };
    // Whatever can be refused is, before the first byte.
    kinds.iter().fold(maker.builder(), |b, kind| b.kind(kind.clone())).build()?;
    if let Some((kind, what)) = kinds.iter().find_map(|kind| Some((kind, unsupported(kind)?))) {
        let message = format!("kind `{}`: {what}, which this build can't carry out", kind.name());
        let error = Error::new(ErrorCode::UnsupportedStep, Stage::Plan, message);
        return Err(error.with_hint("build it with the feature `datafusion`; nothing was written"));
    }
    files::make_empty(root)?;
    let mut manifest = Manifest::new(namespace, kinds, options);
    let mut said = Said::new(maker);
    for kind in kinds {
        let mut lives = Lives { maker, kind, tables: Vec::new(), plans: Vec::new() };
        lives.live().await?;
        let Lives { tables, plans, .. } = lives;
        for (life, saved) in plans {
            let (ends, table) = (life, saved.uri.clone());
            manifest.plans.push(PlanEntry { table, ends });
            said.plans.push(saved);
        }
        for Life { table, story, rows, .. } in tables {
            let entry = said.look(kind, &table, &story, rows.len(), &mut manifest.plans).await?;
            let text = serde_json::to_string_pretty(&rows).unwrap_or_default() + "\n";
            files::write(&root.join(rows_of(&entry)), text.as_bytes())?;
            manifest.tables.push(entry);
        }
        said.look_at_missing(kind, &mut manifest.plans).await?;
    }
    said.write(kinds).await?;
    for (name, text) in &options.kind_files {
        let name = Path::new(name).file_name().ok_or_else(|| Error::usage("a kind file without a name"))?;
        files::write(&root.join("kinds").join(name), text.as_bytes())?;
    }
    let lock = options.lock.clone().unwrap_or_else(|| lock::text(kinds));
    files::write(&root.join(LOCK_FILE), lock.as_bytes())?;
    manifest.seal(root)?;
    Ok(manifest)
}

/// The file that holds a table's rows.
pub(super) fn rows_of(entry: &TableEntry) -> String {
    format!("rows{}.json", entry.path.strip_prefix("tables").unwrap_or(&entry.path))
}

/// What every table of a corpus is made with.
#[derive(Clone, Copy)]
pub(super) struct Maker<'a> {
    pub(super) root: &'a Path,
    pub(super) namespace: &'a Namespace,
    pub(super) release: &'a str,
}

impl Maker<'_> {
    fn builder(&self) -> crate::migrator::MigratorBuilder {
        Migrator::builder(self.namespace.clone()).release(self.release).policy(StartupPolicy::ApplyAll)
    }

    /// A release that knows the kind up to `known`.
    pub(super) fn migrator(
        &self,
        kind: &Kind,
        known: SchemaVersion,
        moments: &Arc<Fixed>,
    ) -> Result<Migrator, Error> {
        let builder = self.builder().kind(kind.clone().cut_at(known)).moments(moments.clone());
        Ok(builder.build()?.for_a_corpus(false))
    }

    pub(super) fn table(&self, kind: &Kind, name: &str) -> Table {
        Table::new(self.root, &format!("tables/{}/{name}", kind.name()))
    }
}

/// A table that is being made.
struct Life {
    table: Table,
    story: String,
    /// The rows as the table shows them at its last stage.
    rows: Vec<Value>,
    appended: u32,
    moments: Arc<Fixed>,
}

/// The tables of one kind.
struct Lives<'a> {
    maker: Maker<'a>,
    kind: &'a Kind,
    tables: Vec<Life>,
    plans: Vec<(PlanEnd, SavedPlan)>,
}

impl Lives<'_> {
    async fn live(&mut self) -> Result<(), Error> {
        let newest = self.kind.newest().get();
        self.adopted(newest).await?;
        // An empty shape fits any table, but none can be created of it.
        let has_columns = |n: &u32| !self.kind.shape_at(SchemaVersion::new(*n)).columns.is_empty();
        let Some(first) = (0..=newest).find(has_columns) else { return Ok(()) };
        for n in first..=newest {
            self.grow(&format!("born_{n}"), &[n]).await?;
        }
        for n in first + 1..=newest {
            self.grow(&format!("{first}_to_{n}"), &[first, n]).await?;
        }
        for n in first + 2..=newest {
            self.grow(&format!("{}_to_{n}", n - 1), &[n - 1, n]).await?;
        }
        if newest > first + 1 {
            self.grow("stepwise", &(first..=newest).collect::<Vec<u32>>()).await?;
        }
        for n in first + 1..=newest {
            self.interrupted(first, n).await?;
        }
        self.planned(first, newest).await?;
        self.repaired(newest).await?;
        self.refused(newest).await
    }

    fn begin(&self, name: &str, story: impl Into<String>) -> Life {
        let table = self.maker.table(self.kind, name);
        let moments = Arc::new(Fixed::new(&table.name));
        Life { table, story: story.into(), rows: Vec::new(), appended: 0, moments }
    }

    /// A table that was born and migrated by releases that knew so many migrations, with a row each.
    async fn grow(&mut self, name: &str, stages: &[u32]) -> Result<(), Error> {
        let life = self.grown(name, stages).await?;
        self.tables.push(life);
        Ok(())
    }

    async fn grown(&self, name: &str, stages: &[u32]) -> Result<Life, Error> {
        let words: Vec<String> = stages.iter().map(u32::to_string).collect();
        let mut life = self.begin(name, format!("born at {}", words.join(", migrated to ")));
        for known in stages {
            self.carry(&mut life, *known).await?;
            life.append()?;
        }
        Ok(life)
    }

    /// Lets a release that knows `known` migrations bring the table up to date.
    async fn carry(&self, life: &mut Life, known: u32) -> Result<(), Error> {
        let migrator = self.maker.migrator(self.kind, SchemaVersion::new(known), &life.moments)?;
        let location = life.table.location()?;
        let next = life.next()?;
        let report = migrator.migrate(self.kind.name(), &location, Target::Newest, IfMissing::Create).await?;
        life.table.settle(next, &life.moments)?;
        let from = report.from.map_or(0, SchemaVersion::get);
        life.rows.iter_mut().for_each(|row| *row = through(self.kind, from, known, row));
        life.filled(&self.kind.clone().cut_at(SchemaVersion::new(known)), from).await
    }

    /// Tables that another program had created: one that is left alone, and some that were taken over.
    async fn adopted(&mut self, newest: u32) -> Result<(), Error> {
        let mut life = self.begin("unstamped", "created by another program");
        self.foreign(&mut life).await?;
        self.tables.push(life);
        let versions = if newest == 0 { vec![0] } else { vec![0, newest] };
        for known in versions {
            let story = format!("created by another program, taken over at 0 and carried to {known}");
            let mut life = self.begin(&format!("adopted_{known}"), story);
            self.foreign(&mut life).await?;
            if self.kind.adopt() != Adopt::FromZero {
                let migrator = self.maker.migrator(self.kind, SchemaVersion::new(known), &life.moments)?;
                migrator.baseline(self.kind.name(), &life.table.location()?, SchemaVersion::ZERO).await?;
            }
            self.carry(&mut life, known).await?;
            life.append()?;
            self.tables.push(life);
        }
        Ok(())
    }

    async fn foreign(&self, life: &mut Life) -> Result<(), Error> {
        if self.kind.shape_at(SchemaVersion::ZERO).columns.is_empty() {
            life.table.create_foreign(&life.moments)?;
        } else {
            self.carry(life, 0).await?;
            life.table.disown(self.maker.namespace)?;
        }
        life.append()
    }

    /// Tables that were changed, or carried to the newest version, after a plan was saved for them.
    async fn planned(&mut self, first: u32, newest: u32) -> Result<(), Error> {
        if newest == first {
            return Ok(());
        }
        for (name, ends) in [("changed_since_plan", PlanEnd::Stale), ("carried_since_plan", PlanEnd::Done)] {
            let mut life = self.grown(name, &[first]).await?;
            let migrator = self.maker.migrator(self.kind, self.kind.newest(), &life.moments)?;
            let location = life.table.location()?;
            let plan = migrator.plan(self.kind.name(), &location, Target::Newest).await?;
            self.plans.push((ends, SavedPlan::of(&plan, location.uri())));
            if ends == PlanEnd::Done {
                life.story += &format!("; a plan to {newest} was saved, and then it was carried there");
                self.carry(&mut life, newest).await?;
            } else {
                life.story += &format!("; a plan to {newest} was saved, and then a property was changed");
                life.set_property("owner", "another program")?;
            }
            life.append()?;
            self.tables.push(life);
        }
        Ok(())
    }

    /// A table whose data step was interrupted: what has to land before it did, and its stamp did not.
    async fn interrupted(&mut self, first: u32, n: u32) -> Result<(), Error> {
        let known = SchemaVersion::new(n);
        let Some(migration) = self.kind.migrations().get(known.index() - 1) else { return Ok(()) };
        if !migration.steps.iter().any(Step::fills) {
            return Ok(());
        }
        let mut stages = vec![first];
        stages.extend((n - 1 > first).then_some(n - 1));
        let mut life = self.grown(&format!("interrupted_{n}"), &stages).await?;
        let next = life.next()?;
        let migrator = self.maker.migrator(self.kind, known, &life.moments)?.for_a_corpus(true);
        let location = life.table.location()?;
        let done = migrator.migrate(self.kind.name(), &location, Target::Newest, IfMissing::Refuse).await;
        match done {
            Err(error) if error.code() == ErrorCode::Interrupted => {}
            Err(error) => return Err(error),
            Ok(report) => return check_outcome(&life.table.name, &report, &["interrupted"]),
        }
        // A step that needs nothing beforehand leaves no trace.
        if life.next()? == next {
            return files::remove_all(&life.table.folder);
        }
        life.story += &format!("; the run to {n} was interrupted before it filled rows in");
        life.append()?;
        self.tables.push(life);
        Ok(())
    }

    async fn repaired(&mut self, newest: u32) -> Result<(), Error> {
        let mut life = self.grown("repaired", &[newest]).await?;
        life.story += "; a floor that was raised by mistake was lowered again";
        self.raise_floor(&life)?;
        let migrator = self.maker.migrator(self.kind, self.kind.newest(), &life.moments)?;
        let floor = self.kind.floor_at(self.kind.newest()).unwrap_or(MinVersion::new(0));
        let (location, why) = (life.table.location()?, "raised by mistake");
        migrator.repair(self.kind.name(), &location, Repair::LowerFloor(floor), why).await?;
        life.append()?;
        self.tables.push(life);
        Ok(())
    }

    fn raise_floor(&self, life: &Life) -> Result<(), Error> {
        life.set_property(&self.maker.namespace.property(keys::MIN_VERSION), &FAR_FLOOR.to_string())
    }

    async fn refused(&mut self, newest: u32) -> Result<(), Error> {
        let mut life = self.grown("too_new", &[newest]).await?;
        life.story += "; its floor was raised beyond every chain";
        self.raise_floor(&life)?;
        self.tables.push(life);

        let mut life = self.grown("stamp_lost", &[newest]).await?;
        life.story += "; another program dropped its properties";
        let namespace = self.maker.namespace;
        life.table.change_metadata(
            |m| {
                if let Some(properties) = m.get_mut("configuration") {
                    drop_stamps(properties, namespace);
                }
            },
            &life.moments,
        )?;
        self.tables.push(life);

        let shape = self.kind.shape_at(self.kind.newest());
        let data: Vec<_> = shape.columns.iter().filter(|c| !shape.partition_by.contains(&c.name)).collect();
        let Some(last) = data.last().filter(|_| data.len() > 1) else { return Ok(()) };
        let mut life =
            self.begin("drifted", format!("born at {newest}; another program dropped `{}`", last.name));
        self.carry(&mut life, newest).await?;
        life.table.change_metadata(|m| drop_column(m, &last.name), &life.moments)?;
        life.append()?;
        self.tables.push(life);
        Ok(())
    }
}

impl Life {
    /// The version that the next commit will have.
    fn next(&self) -> Result<u64, Error> {
        Ok(self.table.log()?.version.map_or(0, |version| version + 1))
    }

    /// Takes the values that the migrations after `from` gave to some columns; all others must be as they
    /// were.
    async fn filled(&mut self, kind: &Kind, from: u32) -> Result<(), Error> {
        let (changed, by_hand) = (changed_values(kind, from), runs_functions(kind, from));
        if self.rows.is_empty() || (changed.is_empty() && !by_hand) {
            return Ok(());
        }
        let (columns, found) = (self.table.log()?.columns()?, self.table.rows().await?);
        if !by_hand && told(&columns, &found, &changed) != told(&columns, &self.rows, &changed) {
            let name = &self.table.name;
            return Err(unreadable(format!("a data step left `{name}` with rows that it had not before")));
        }
        self.rows = found;
        Ok(())
    }

    /// Appends a row of the table's present columns.
    fn append(&mut self) -> Result<(), Error> {
        self.appended += 1;
        let row = self.table.append(self.appended, None, &self.moments)?;
        self.rows.extend(row);
        // Rows of earlier stages read NULL in what came later.
        let columns = self.table.log()?.columns()?;
        self.rows.iter_mut().for_each(|row| *row = grown(&columns, row));
        Ok(())
    }

    fn set_property(&self, key: &str, value: &str) -> Result<(), Error> {
        let set = |m: &mut Value| {
            if let Some(properties) = m.get_mut("configuration").and_then(Value::as_object_mut) {
                properties.insert(key.to_owned(), Value::from(value));
            }
        };
        self.table.change_metadata(set, &self.moments)
    }
}

fn drop_column(metadata: &mut Value, name: &str) {
    let Some(text) = metadata.get_mut("schemaString") else { return };
    let Ok(mut schema) = serde_json::from_str::<Value>(text.as_str().unwrap_or_default()) else { return };
    if let Some(fields) = schema.get_mut("fields").and_then(Value::as_array_mut) {
        fields.retain(|f| f.get("name").and_then(Value::as_str) != Some(name));
    }
    *text = Value::from(schema.to_string());
}

/// A table that was made to be sound and is not is a mistake of this program, told before the corpus
/// is frozen.
pub(super) fn check_outcome(name: &str, report: &TableReport, wanted: &[&str]) -> Result<(), Error> {
    let outcome = report.error.as_ref().map_or(report.outcome.as_str(), |e| e.code);
    if wanted.contains(&outcome) {
        return Ok(());
    }
    Err(unreadable(format!("`{name}` came out as {outcome}; wanted {}", wanted.join(" or "))))
}
