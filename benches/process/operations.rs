//! What the processes do, each one thing once.

use std::collections::BTreeMap;
use std::path::Path;

use delta_migrate::{Kind, Location, Migrator};
use deltalake::kernel::{DataType, StructField};
use object_store::{PutMode, PutPayload};
use serde_json::{Value, json};

use crate::table::{self, Result};

/// The kind of a table that was made elsewhere, for the child that measures it.
pub(crate) const KIND: &str = "DELTA_MIGRATE_BENCH_KIND";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
    /// A process that starts a runtime and does nothing.
    Nothing,
    NoOp,
    Lazy,
    Status,
    Migrate,
    RawCommit,
    ByHand,
    PythonByHand,
    Ten,
    TenByHand,
    PythonTenByHand,
}

impl Operation {
    pub(crate) const ALL: [Self; 11] = [
        Self::Nothing,
        Self::NoOp,
        Self::Lazy,
        Self::Status,
        Self::Migrate,
        Self::RawCommit,
        Self::ByHand,
        Self::PythonByHand,
        Self::Ten,
        Self::TenByHand,
        Self::PythonTenByHand,
    ];

    /// What a child is told. Another build of this bench must understand it too: never changed.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::NoOp => "no-op",
            Self::Lazy => "lazy",
            Self::Status => "status",
            Self::Migrate => "migrate",
            Self::RawCommit => "raw-commit",
            Self::ByHand | Self::PythonByHand => "by-hand",
            Self::Ten => "ten",
            Self::TenByHand | Self::PythonTenByHand => "ten-by-hand",
        }
    }

    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Nothing => "an empty process",
            Self::NoOp => "nothing to do: `Migrator::migrate`",
            Self::Lazy => "its floor, delta-rs's lazy `Snapshot::try_new`",
            Self::Status => "what is to do: `Migrator::status`",
            Self::Migrate => "one migration: `Migrator::migrate`",
            Self::RawCommit => "its floor, a lazy snapshot and a raw commit",
            Self::ByHand => "the same by hand: load, `add_columns`, `set_tbl_properties`",
            Self::PythonByHand => "the same by hand in Python",
            Self::Ten => "ten migrations: `Migrator::migrate`",
            Self::TenByHand => "the same by hand: load, twenty commits",
            Self::PythonTenByHand => "the same by hand in Python: twenty commits",
        }
    }

    pub(crate) fn is_ours(self) -> bool {
        matches!(self, Self::NoOp | Self::Status | Self::Migrate | Self::Ten)
    }

    pub(crate) fn is_python(self) -> bool {
        matches!(self, Self::PythonByHand | Self::PythonTenByHand)
    }

    /// Whether it reads the list of files.
    pub(crate) fn is_slow(self) -> bool {
        matches!(self, Self::ByHand | Self::TenByHand) || self.is_python()
    }

    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|operation| operation.name() == name)
    }

    pub(crate) async fn run(self, folder: &Path) -> Result<()> {
        match self {
            Self::Nothing => Ok(()),
            Self::NoOp => ours(folder, 0, "current").await,
            Self::Lazy => table::snapshot(folder).await.map(drop),
            Self::Status => status(folder).await,
            Self::Migrate => ours(folder, 1, "migrated").await,
            Self::RawCommit => raw_commit(folder).await,
            Self::ByHand => by_hand(folder, 1).await,
            Self::Ten => ours(folder, 10, "migrated").await,
            Self::TenByHand => by_hand(folder, 10).await,
            Self::PythonByHand | Self::PythonTenByHand => Err("that is not done in Rust".into()),
        }
    }
}

/// The kind's migrations that the table has not had, behind the first of them.
pub(crate) fn later_migrations() -> String {
    (2..=10)
        .map(|n| {
            format!(
                "[[migrations]]\ndescription = \"column {n}\"\n[migrations.add_columns]\nmore_{n} = \"string\"\n\
                 [migrations.set_properties]\n\"team.step\" = \"{n}\"\n"
            )
        })
        .collect()
}

/// A release that knows `ahead` migrations more than the table has.
fn migrator(ahead: u32) -> Result<Migrator> {
    match std::env::var(KIND) {
        Ok(kind) => table::migrator(Kind::from_toml(&kind)?, ahead),
        Err(_) => table::migrator(table::kind(&later_migrations())?, 1 + ahead),
    }
}

async fn ours(folder: &Path, ahead: u32, outcome: &str) -> Result<()> {
    let report = table::run(&migrator(ahead)?, folder).await?;
    table::expect(outcome, report.outcome.as_str())
}

async fn status(folder: &Path) -> Result<()> {
    let location = Location::new(table::text(folder)?, [].into())?;
    let report = migrator(1)?.status("facts", &location).await?;
    table::expect("planned", report.outcome.as_str())
}

/// The name of the column, and the properties, of each migration.
fn changes(n: u32) -> (String, [(String, String); 2]) {
    let own = if n == 1 {
        ("team.owner".to_owned(), "sink".to_owned())
    } else {
        ("team.step".to_owned(), n.to_string())
    };
    let column = if n == 1 { "tenant".to_owned() } else { format!("more_{n}") };
    (column, [own, ("my_sink.schema_version".to_owned(), (1 + n).to_string())])
}

async fn by_hand(folder: &Path, migrations: u32) -> Result<()> {
    let mut table = table::load(folder).await?;
    for n in 1..=migrations {
        let (column, properties) = changes(n);
        let column = StructField::nullable(column, DataType::STRING);
        table = table.add_columns().with_fields([column]).await?;
        let set = table.set_tbl_properties().with_properties(properties.into());
        table = set.with_raise_if_not_exists(false).await?;
    }
    Ok(())
}

/// The least that a migration can be: one new metadata action, without a look at what is in it.
async fn raw_commit(folder: &Path) -> Result<()> {
    let (log_store, snapshot) = table::snapshot(folder).await?;
    let (column, properties) = changes(1);
    let mut metadata = serde_json::to_value(snapshot.metadata())?;
    let schema = metadata.get("schemaString").and_then(Value::as_str).ok_or("no schema")?;
    let mut schema: Value = serde_json::from_str(schema)?;
    let fields = schema.get_mut("fields").and_then(Value::as_array_mut).ok_or("no fields")?;
    fields.push(json!({"name": column, "type": "string", "nullable": true, "metadata": {}}));
    let object = metadata.as_object_mut().ok_or("no object")?;
    object.insert("schemaString".to_owned(), Value::String(schema.to_string()));
    let configuration = object.get_mut("configuration").and_then(Value::as_object_mut);
    configuration
        .ok_or("no properties")?
        .extend(BTreeMap::from(properties).into_iter().map(|(k, v)| (k, v.into())));
    let info = json!({"commitInfo": {"timestamp": 1_764_547_200_000_u64, "operation": "SET TBLPROPERTIES"}});
    let lines = format!("{info}\n{}\n", json!({"metaData": metadata}));
    let path = format!("_delta_log/{:020}.json", snapshot.version() + 1);
    let store = log_store.object_store(None);
    store.put_opts(&path.into(), PutPayload::from(lines), PutMode::Create.into()).await?;
    Ok(())
}
