# The commands of this repository; `just` lists them.

_default:
    @just --list --unsorted

lake := "target/lake/delta-migrate.toml"

# Copy the demo lake and bring it up to date, twice; some of its tables are refused, so each run exits with 1
demo:
    mkdir -p target && rm -rf target/lake && cp -r fixtures/lake target/lake
    -cargo run -q -- -c {{ lake }} plan
    -cargo run -q -- -c {{ lake }} apply
    -cargo run -q -- -c {{ lake }} apply

# All tests
test:
    cargo test

# Races and faults under so many seeded schedules
simulate schedules="20000" seed="1":
    DELTA_MIGRATE_SCHEDULES={{ schedules }} DELTA_MIGRATE_SEED={{ seed }} cargo test --config 'profile.dev.opt-level=1' \
        --config 'profile.dev.package."*".opt-level=0' --test it simulation::explore -- --nocapture

# Formatting and lints, with and without the default features
lint:
    cargo fmt --check
    cargo clippy --all-targets -- -D warnings
    cargo clippy --all-targets --no-default-features -- -D warnings
    cargo clippy --all-targets --no-default-features --features cli,s3,azure,gcs,glue,unity -- -D warnings

# What the library makes public, compared with api/; `just api --bless` after an intended change
api *args:
    bash api/check.sh {{ args }}

# Licences, advisories and sources of the dependencies (needs cargo-deny)
deny:
    cargo deny check

# Speed and memory against delta-rs, as ratios
bench:
    cargo bench

# The crate's documentation; its front page is the guide
doc:
    RUSTDOCFLAGS="-D warnings" cargo doc --no-deps --open

# Everything that has to pass before a change lands
ci:
    bash .ci/run
