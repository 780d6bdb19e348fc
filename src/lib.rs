//! guide
#[cfg(feature = "cli")]
pub mod cli;
mod delta;
mod error;
mod migrator;
mod model;
mod retry;

pub use delta::history::{HistoryReport, LoggedMigration};
pub use delta::location::Location;
pub use error::{Error, ErrorCode, Stage};
pub use migrator::{IfMissing, Migrator, MigratorBuilder, Opened, StartupPolicy};
pub use model::assess::{Assessment, Difference, FoundKind};
pub use model::evolve::Change;
pub use model::history::How;
pub use model::kind::{Adopt, Kind, KindBuilder};
pub use model::migration::{Migration, MigrationBuilder};
pub use model::plan::{Mode, Plan, Repair, Target};
pub use model::report::{BatchReport, ErrorReport, MigrationReport, Outcome, Summary, TableReport};
pub use model::saved_plan::{PlanFile, SavedPlan};
pub use model::state::InvalidStamp;
pub use model::version::{InvalidNamespace, LogVersion, MinVersion, Namespace, SchemaVersion};
