//! The `delta-migrate` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    delta_migrate::cli::main()
}
