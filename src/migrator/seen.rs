//! What loaded tables said the last time they were looked at: a sink asks before each batch, and
//! reading a schema takes longer than comparing it.

use std::sync::{Arc, Mutex, PoisonError};

use deltalake::DeltaTable;
use deltalake::kernel::{Metadata, Protocol};

use crate::model::assess::Assessment;

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
}

impl Seen {
    /// The assessment of a table whose metadata and protocol are those of an earlier look.
    pub(super) fn find(&self, kind: &str, table: &DeltaTable) -> Option<Assessment> {
        let snapshot = table.snapshot().ok()?;
        let (metadata, protocol) = (snapshot.metadata(), snapshot.protocol());
        let mut looks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let same =
            |look: &Arc<Look>| look.kind == kind && look.metadata == *metadata && look.protocol == *protocol;
        let at = looks.iter().position(same)?;
        let look = looks.remove(at);
        looks.insert(0, look.clone());
        Some(look.assessment.clone())
    }

    /// Keeps an assessment, of this metadata and protocol.
    pub(super) fn keep(&self, kind: &str, table: &DeltaTable, assessment: &Assessment) {
        let Ok(snapshot) = table.snapshot() else { return };
        let look = Look {
            kind: kind.to_owned(),
            metadata: snapshot.metadata().clone(),
            protocol: snapshot.protocol().clone(),
            assessment: assessment.clone(),
        };
        let mut looks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        looks.retain(|old| old.kind != look.kind || old.metadata.id() != look.metadata.id());
        looks.insert(0, Arc::new(look));
        looks.truncate(MOST);
    }
}
