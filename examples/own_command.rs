//! A project's own `delta-migrate`: the same command, with kinds that the program brings along.
//!
//! ```sh
//! cargo run --example own_command -- plan data/events
//! cargo run --example own_command -- apply data/events
//! ```

use std::error::Error;
use std::process::ExitCode;

use delta_migrate::{Kind, Migration, Migrator, Namespace};

fn main() -> Result<ExitCode, Box<dyn Error>> {
    Ok(delta_migrate::cli::run(migrator()?))
}

/// The namespace is the prefix of the stamps: tables carry it from now on.
fn migrator() -> Result<Migrator, Box<dyn Error>> {
    let namespace = Namespace::new("my_sink")?;
    Ok(Migrator::builder(namespace).kind(events()?).release("my-sink 1.4.0").build()?)
}

/// The kind that a kind file could hold as well. What has shipped is never edited: the next change
/// is one more migration at the end.
fn events() -> Result<Kind, delta_migrate::Error> {
    Kind::builder("events")
        .description("One row per event")
        .required_column("app_id", "string")
        .column("batch_id", "long")
        .column("day", "date")
        .partition_by(["day"])
        .identified_by(["app_id", "batch_id"])
        .migration(Migration::builder("detail of an event").add_commented_column("detail", "string", "JSON"))
        .migration(
            Migration::builder("tenant; older releases would mix tenants up")
                .raises_min_version()
                .add_column("tenant", "string"),
        )
        .build()
}
