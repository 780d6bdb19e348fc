//! x
mod error;
mod model;

pub use error::{Error, ErrorCode, Stage};
pub use model::kind::{Adopt, Kind, KindBuilder};
pub use model::migration::{Migration, MigrationBuilder};
pub use model::state::InvalidStamp;
pub use model::version::{InvalidNamespace, LogVersion, MinVersion, Namespace, SchemaVersion};
