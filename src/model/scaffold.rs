//! Scaffolding: kind files and migrations written from tables and schemas that exist.

#[cfg(feature = "cli")]
mod append;
mod block;
mod describable;
#[cfg(feature = "cli")]
mod field_metadata;
#[cfg(feature = "cli")]
mod kind_text;
mod next;
#[cfg(feature = "cli")]
mod remain;
mod toml_text;

#[cfg(feature = "cli")]
pub(crate) use append::append;
#[cfg(feature = "cli")]
pub(crate) use kind_text::{KindText, kind_text};
pub use next::NextMigration;
pub(crate) use next::next_migration;
#[cfg(feature = "cli")]
pub(crate) use toml_text::quoted;

#[cfg(test)]
#[cfg(feature = "cli")]
mod tests;
