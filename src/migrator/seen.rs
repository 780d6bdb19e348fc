//! What loaded tables said the last time they were looked at: a sink asks before each batch, and
//! reading a schema takes longer than comparing it.

use std::sync::{Arc, Mutex, PoisonError};

use deltalake::DeltaTable;
use deltalake::kernel::{Metadata, Protocol};

use crate::model::assess::Assessment;
use crate::model::report::TableReport;

/// More tables than this are looked at anew each time.
const MOST: usize = 64;

/// The newest looks, the last one first.
#[derive(Debug, Default)]
pub(super) struct Seen(Mutex<Vec<Arc<Look>>>);

#[derive(Debug)]
struct Look {
    kind: String,
    metadata: Metadata,
    protocol: Protocol,
    assessment: Assessment,
    /// Of a table with which nothing is to be done, once somebody asked for it.
    report: Option<TableReport>,
}

impl Seen {
    /// The assessment of a table whose metadata and protocol are those of an earlier look.
    pub(super) fn find(&self, kind: &str, table: &DeltaTable) -> Option<Assessment> {
        self.look(kind, table).map(|look| look.assessment.clone())
    }

    /// The report of such a table, as it was made then.
    pub(super) fn report(&self, kind: &str, table: &DeltaTable) -> Option<TableReport> {
        self.look(kind, table)?.report.clone()
    }

    fn look(&self, kind: &str, table: &DeltaTable) -> Option<Arc<Look>> {
        let snapshot = table.snapshot().ok()?;
        let (metadata, protocol) = (snapshot.metadata(), snapshot.protocol());
        let mut looks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let same =
            |look: &Arc<Look>| look.kind == kind && look.metadata == *metadata && look.protocol == *protocol;
        let at = looks.iter().position(same)?;
        let look = looks.remove(at);
        looks.insert(0, look.clone());
        Some(look)
    }

    /// Keeps an assessment, of this metadata and protocol, and a report.
    pub(super) fn keep(
        &self,
        kind: &str,
        table: &DeltaTable,
        assessment: &Assessment,
        report: Option<&TableReport>,
    ) {
        let Ok(snapshot) = table.snapshot() else { return };
        let look = Look {
            kind: kind.to_owned(),
            metadata: snapshot.metadata().clone(),
            protocol: snapshot.protocol().clone(),
            assessment: assessment.clone(),
            report: report.cloned(),
        };
        let mut looks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        looks.retain(|old| old.kind != look.kind || old.metadata.id() != look.metadata.id());
        looks.insert(0, Arc::new(look));
        looks.truncate(MOST);
    }
}
