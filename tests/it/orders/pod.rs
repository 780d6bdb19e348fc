//! One pod: release after release is deployed on it, up and down, and each writes rows as it knows them.

use std::collections::HashMap;
use std::sync::Arc;

use delta_migrate::{
    Error, ErrorCode, IfMissing, Location, Migrator, Opened, SchemaVersion, TableReport, Target,
};
use deltalake::arrow::datatypes::Schema;
use deltalake::kernel::StructType;
use deltalake::kernel::engine::arrow_conversion::TryIntoArrow as _;
use deltalake::kernel::transaction::{CommitConflictError, CommitProperties, TransactionError};
use deltalake::writer::{DeltaWriter as _, RecordBatchWriter};
use deltalake::{DeltaTable, DeltaTableError};
use serde_json::{Map, Value};

use super::chain::{Chain, KIND};
use super::shape::{row, schema};
use crate::support::random::Random;
use crate::support::rows::from_json;

/// The key in a commitInfo under which a writer says what it knows.
pub(super) const KNOWN: &str = "known";

/// A pod and what it has seen.
pub(super) struct Pod {
    number: usize,
    uri: String,
    chain: Arc<Chain>,
    random: Random,
    diary: Diary,
    /// How many rows it made, so that each has a number of its own.
    made: usize,
}

pub(super) type Claim = (u64, Option<(usize, usize)>);

#[derive(Debug, Default)]
pub(super) struct Diary {
    /// Rows whose append succeeded, each with the version that its writer knew.
    pub(super) rows: Vec<(usize, Map<String, Value>)>,
    /// The log versions that reports claim, with the schema versions before and after; an error after a
    /// commit names just the log version.
    pub(super) claimed: Vec<Claim>,
    /// Releases that were refused because of the floor: at the start, and before or after a batch.
    pub(super) refused: Vec<usize>,
    /// Appends that lost against a commit of metadata.
    pub(super) conflicts: usize,
}

impl Pod {
    pub(super) fn new(number: usize, uri: String, chain: &Arc<Chain>, random: Random) -> Self {
        Self { number, uri, chain: Arc::clone(chain), random, diary: Diary::default(), made: 0 }
    }

    /// Deploys these releases, one after the other.
    pub(super) async fn live(mut self, deployments: Vec<usize>) -> Diary {
        let mut held = None;
        for known in deployments {
            let migrator = self.chain.release(known);
            let opened = match held.take() {
                // A sink that has its table open still, as old as that may be.
                Some(table) if self.random.one_in(3) => migrator.bring_up_to_date(KIND, table).await,
                _ => self.start(&migrator).await,
            };
            let opened = match opened {
                Ok(opened) => opened,
                Err(error) => {
                    assert_eq!(error.code(), ErrorCode::TooNew, "release {known}: {error:?}");
                    self.diary.claimed.extend(error.committed().iter().map(|at| (*at, None)));
                    self.diary.refused.push(known);
                    continue;
                }
            };
            let report = opened.report().clone();
            assert!(
                ["created", "migrated", "current", "ahead"].contains(&report.outcome.as_str()),
                "release {known}: {report}"
            );
            self.diary.claimed.extend(claim(&report));
            let mut table = opened.into_table();
            let (version, floor) = stamps(&table);
            assert!(version >= known && floor <= known, "release {known} got a table at {version}, {floor}");
            for _ in 0..*self.random.pick(&[0, 1, 1, 2]) {
                if !self.batch(known, &migrator, &mut table).await {
                    break;
                }
            }
            held = Some(table);
        }
        self.diary
    }

    /// The ways to open a table that a program may hold already as well as make.
    async fn start(&mut self, migrator: &Migrator) -> Result<Opened, Error> {
        if self.random.one_in(3) {
            // As a deployment does that migrates in a step of its own.
            let location = Location::new(&self.uri, HashMap::new()).unwrap();
            let report = migrator.migrate(KIND, &location, Target::Newest, IfMissing::Create).await?;
            self.diary.claimed.extend(claim(&report));
        }
        migrator.open_or_create(KIND, &self.uri, HashMap::new()).await
    }

    /// Writes one batch as a sink does; false where the floor stopped it.
    async fn batch(&mut self, known: usize, migrator: &Migrator, table: &mut DeltaTable) -> bool {
        let chain = Arc::clone(&self.chain);
        let columns = &chain.shapes[known].columns;
        let mut rows = Vec::new();
        for _ in 0..self.random.between(1, 3) {
            let mut row = row(columns, &mut self.random);
            row["id"] = (self.number * 1000 + self.made).into();
            self.made += 1;
            rows.push(row);
        }
        loop {
            if self.random.one_in(4) {
                table.update_incremental(None).await.unwrap();
            }
            if let Err(error) = migrator.check(KIND, table) {
                assert_eq!(error.code(), ErrorCode::TooNew, "release {known}: {error:?}");
                self.diary.refused.push(known);
                return false;
            }
            match append(table, known, &chain, &rows).await {
                Ok(()) => {
                    self.diary.rows.extend(rows.into_iter().map(|row| (known, row)));
                    return true;
                }
                // The transaction is lost; the sink looks at the table again, and does it anew.
                Err(DeltaTableError::Transaction {
                    source: TransactionError::CommitConflict(CommitConflictError::MetadataChanged),
                }) => {
                    self.diary.conflicts += 1;
                    table.update_incremental(None).await.unwrap();
                }
                Err(error) => panic!("release {known}: {error:?}"),
            }
        }
    }
}

/// The commit that a report tells of.
pub(super) fn claim(report: &TableReport) -> Option<Claim> {
    assert!(report.commits <= 1, "{report}");
    let number = |version: SchemaVersion| version.get() as usize;
    let versions = || (report.from.map_or(0, number), number(report.to.unwrap()));
    (report.commits == 1).then(|| (report.log_version.unwrap().get(), Some(versions())))
}

/// Version and floor as the loaded table has them.
fn stamps(table: &DeltaTable) -> (usize, usize) {
    let configuration = table.snapshot().unwrap().metadata().configuration().clone();
    let number = |key: &str| configuration.get(key).map_or(0, |v| v.parse().unwrap());
    (number("app.schema_version"), number("app.min_version"))
}

/// Appends with delta-rs, with the columns that the release knows and no others.
async fn append(
    table: &mut DeltaTable,
    known: usize,
    chain: &Chain,
    rows: &[Map<String, Value>],
) -> Result<(), DeltaTableError> {
    let columns: StructType = serde_json::from_value(schema(&chain.shapes[known].columns)).unwrap();
    let columns: Schema = (&columns).try_into_arrow().unwrap();
    let partitions = table.snapshot().unwrap().metadata().partition_columns().to_vec();
    let batch = from_json(Arc::new(columns.clone()), rows);
    let mut writer = RecordBatchWriter::try_new(table.table_url(), batch.schema(), Some(partitions), None)?
        .with_commit_properties(
            CommitProperties::default().with_metadata([(KNOWN.to_owned(), known.into())]),
        );
    writer.write(batch).await?;
    writer.flush_and_commit(table).await.map(drop)
}
