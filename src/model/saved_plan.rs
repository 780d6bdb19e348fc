//! A plan as a file holds it: what to do with which state of a table, to be carried out later.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::assess::Assessment;
use super::migration::Step;
use super::plan::{Mode, Plan, PlannedCommit, Rewrite, Target};
use super::refusal::Refusal;
use super::report::BatchReport;
use super::text;
use super::version::{LogVersion, SchemaVersion};
use crate::error::{Error, ErrorCode};

/// The format that this release writes; later ones only add keys.
pub(crate) const FORMAT: u32 = 1;

/// Saved plans of several tables, as `plan -o` writes them.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PlanFile {
    format: u32,
    /// The program that wrote the file.
    #[serde(default)]
    created_by: String,
    /// One plan a table that was not refused.
    pub tables: Vec<SavedPlan>,
}

impl PlanFile {
    /// A file of these plans.
    pub fn new(tables: Vec<SavedPlan>) -> Self {
        let created_by = concat!("delta-migrate ", env!("CARGO_PKG_VERSION")).to_owned();
        Self { format: FORMAT, created_by, tables }
    }

    /// Reads a file's text.
    ///
    /// # Errors
    /// [`ErrorCode::Usage`]: it is no plan file, or one of a later format.
    pub fn from_json(text: &str) -> Result<Self, Error> {
        let hint = "make it anew with `delta-migrate plan -o FILE`";
        let file: Self = serde_json::from_str(text)
            .map_err(|e| Error::usage("the plan file can't be read").with_hint(hint).with_source(e))?;
        if file.format > FORMAT {
            let message =
                format!("the plan file has format {}; this release reads up to {FORMAT}", file.format);
            return Err(Error::usage(message).with_hint(hint));
        }
        Ok(file)
    }

    /// The file's text.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default()
    }
}

/// A report with the plans beside it, in the order of the tables: the document of `plan`.
#[derive(Serialize)]
pub(crate) struct WithPlans<'a> {
    #[serde(flatten)]
    pub(crate) report: &'a BatchReport,
    pub(crate) plans: &'a [SavedPlan],
}

/// One table's plan in a file.
///
/// Only the base and the target are read back; the commits stand there for people, and are worked
/// out anew from the kinds when the plan is applied.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SavedPlan {
    /// The table's location, without credentials.
    pub uri: String,
    /// Its kind.
    pub kind: String,
    /// The namespace of the stamps.
    pub namespace: String,
    /// The version that the table had.
    pub from: SchemaVersion,
    /// The version that it is to have.
    pub to: SchemaVersion,
    /// What it costs.
    pub mode: Mode,
    /// The digest of the chain up to `to`.
    chain: String,
    /// The log version that the plan was made for; none where there was no table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    log_version: Option<LogVersion>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    table_id: Option<String>,
    /// Changes with the table's id, protocol, schema and configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    fingerprint: Option<String>,
    /// What data steps would read and rewrite, at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rewrite: Option<Rewrite>,
    /// What would be committed.
    #[serde(default)]
    commits: Value,
    #[serde(default)]
    warnings: Vec<String>,
}

impl SavedPlan {
    /// A plan as it is saved, for the table at `uri`.
    pub fn of(plan: &Plan, uri: &str) -> Self {
        let base = plan.base.as_ref();
        Self {
            uri: uri.to_owned(),
            kind: plan.kind.clone(),
            namespace: plan.namespace.to_string(),
            from: plan.from,
            to: plan.to,
            mode: plan.mode,
            chain: plan.chain.to_string(),
            log_version: base.map(|b| b.log_version),
            table_id: base.map(|b| b.table_id.clone()),
            fingerprint: base.map(|b| b.fingerprint.clone()),
            rewrite: plan.rewrite,
            commits: plan.commits.iter().map(commit_json).collect(),
            warnings: plan.warnings.clone(),
        }
    }

    /// Whether there was nothing to do when the plan was made.
    pub fn is_noop(&self) -> bool {
        self.mode == Mode::NoChange
    }

    /// How many commits it was to take.
    pub(crate) fn commits(&self) -> usize {
        self.commits.as_array().map_or(0, Vec::len)
    }

    /// Whether files are read or rewritten.
    #[cfg(feature = "cli")]
    pub(crate) fn moves_data(&self) -> bool {
        self.mode == Mode::Rewrite
    }

    /// A chain that ends before the plan's version is compared as far as it goes, and found stale.
    pub(crate) fn target(&self, newest: SchemaVersion) -> Target {
        Target::Version(self.to.min(newest))
    }

    /// Lets a plan that was made anew pass if it is the saved one, or if nothing is left to do.
    pub(crate) fn check(&self, made: Plan) -> Result<Plan, Refusal> {
        let base = made.base.as_ref();
        let same_id = base.map(|b| &b.table_id) == self.table_id.as_ref();
        let done = made.is_empty() && made.to >= self.to && (same_id || self.table_id.is_none());
        if done
            && matches!(
                made.assessment,
                Assessment::Current { .. } | Assessment::Ahead { .. } | Assessment::Behind { .. }
            )
        {
            return Ok(made);
        }
        let what = if base.is_none() && self.table_id.is_some() {
            Some("the table is gone")
        } else if base.is_some() && self.table_id.is_none() {
            Some("a table was created")
        } else if !same_id {
            Some("the table is another one (its id differs)")
        } else if base.map(|b| &b.fingerprint) != self.fingerprint.as_ref() {
            Some("the table's protocol, schema or configuration changed")
        } else if made.chain.to_string() != self.chain || made.to != self.to || made.from != self.from {
            Some("the kind's chain, or the plan's versions, changed")
        } else if made.mode != self.mode {
            Some("the work is of another mode now")
        } else {
            None
        };
        match what {
            None => Ok(made),
            Some(what) => Err(Refusal::new(
                ErrorCode::StalePlan,
                format!("{what} since the plan was made"),
                "make the plan anew with `delta-migrate plan -o FILE` and look at it again",
            )),
        }
    }
}

/// A commit for people and programs that read a plan.
pub(crate) fn commit_json(commit: &PlannedCommit) -> Value {
    let PlannedCommit { how, from, to, floor, floor_changes, digest: _, why, migrations, content: _, data } =
        commit;
    let mut out = json!({ "how": how, "from": from, "to": to, "migrations": migrations });
    if let Some(map) = out.as_object_mut() {
        if let Some(floor) = floor.filter(|_| *floor_changes) {
            map.insert("floor".to_owned(), json!(floor));
        }
        if let Some(why) = why {
            map.insert("why".to_owned(), json!(why));
        }
        if let Some(data) = data {
            map.insert("data".to_owned(), data.steps.iter().map(Step::name).collect());
        }
    }
    out
}

/// One line of what a saved plan does.
impl std::fmt::Display for SavedPlan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { uri, kind, from, to, mode, .. } = self;
        write!(f, "{uri} ({kind}): version {from} to {to}, {}", text::spaced(mode.as_str()))
    }
}

#[cfg(test)]
mod tests;
