#!/usr/bin/env bash
# Lets a real older release and this one run on the same tables, as separate processes.
#
#   bash compat/older_release.sh 0.1.0             the commit is the one that compat/0.1.0/manifest.json names
#   COMMIT=abc123 bash compat/older_release.sh x   any commit
#
# Set FEATURES to build both with other features; OLD and NEW are folders with `delta-migrate` and `examples/sink`
# that are there already.
# The old one is built in a git worktree below target/, shares its dependencies with this one, and is kept.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

old=${1:?name the older release, such as 0.1.0}
root=$PWD
work=$root/target/older/$old
features=${FEATURES:-}
failures=0

main() {
    rm -rf "$work/try"
    mkdir -p "$work/try/kinds"
    local commit=${COMMIT:-}
    if [ -z "$commit" ] && [ -z "${OLD:-}" ]; then
        commit=$(json "compat/$old/manifest.json" commit)
        [ -n "$commit" ] || { echo "compat/$old/manifest.json names no commit; give one with COMMIT=…"; exit 2; }
    fi
    old_bins=${OLD:-$(build_old "$commit")}
    new_bins=${NEW:-$(build "$root" "$root/target")}
    old_bin=$old_bins/delta-migrate new_bin=$new_bins/delta-migrate
    echo "old: $("$old_bin" --version) ${commit:+($commit)}"
    echo "new: $("$new_bin" --version) ($(git rev-parse --short HEAD))"
    cd "$work/try"

    kind 0 >kinds/old.toml       # what the older release knows
    kind 1 >kinds/new.toml       # a migration that lets it go on
    kind 2 >kinds/floor.toml     # one that shuts it out

    echo "-- born by the old release, with its plan and report kept"
    run 0 old old apply t
    wants "created" "$(field outcome)"
    run 0 old new plan t -o plan.json

    echo "-- the new release carries it; the old one reads, says that it is ahead, and writes nothing"
    run 0 new new apply t
    wants "migrated 0 1" "$(field outcome from to)"
    before=$(checksum t)
    run 0 old old status t
    wants "ahead" "$(field outcome)"
    run 0 old old apply t
    wants "ahead 0 ahead 1 0" "$(field outcome commits assessment.state assessment.table assessment.known)"
    wants "$before" "$(checksum t)"
    tells "ahead"

    echo "-- the old release's plan of the same migration has nothing left to do"
    run 0 new new apply --plan plan.json
    wants "0" "$(field commits)"

    echo "-- the old one goes on writing: an append that knows only the old columns"
    append t
    run 0 old old status t
    wants "ahead" "$(field outcome)"
    run 0 new new status t
    wants "current" "$(field outcome)"

    echo "-- the floor is raised: the old release is refused, and writes nothing"
    run 0 new floor apply t
    wants "migrated 1 2" "$(field outcome from to)"
    before=$(checksum t)
    for command in status plan apply; do
        run 1 old old "$command" t
        wants "refused too_new" "$(field outcome error.code)"
        tells "too_new"
    done
    wants "$before" "$(checksum t)"

    sinks

    echo "-- a table that the new release created is one that the old one knows"
    run 0 new old apply born_new
    wants "created" "$(field outcome)"
    run 0 old old status born_new
    wants "current" "$(field outcome)"
    run 0 old new apply born_new
    wants "migrated 0 1" "$(field outcome from to)"
    run 0 new floor apply born_new
    wants "migrated 1 2" "$(field outcome from to)"

    echo "-- both at once, on one table: one commit a migration, whoever wins"
    run 0 old old apply race
    for _ in 1 2 3 4 5; do
        command_of old new apply race >/dev/null 2>&1 &
        command_of new new apply race >/dev/null 2>&1 &
    done
    wait
    run 0 new new status race
    wants "current 1" "$(field outcome log_version)"

    if grep -qE '^(\[migrations\.)?(update|retype_columns|add_constraints)\b' "$root/compat/$old/kinds/"*.toml 2>/dev/null; then
        echo "-- its corpus is left to the tests: this build moves no data"
    elif [ -f "$root/compat/$old/manifest.json" ]; then
        echo "-- its corpus"
        "$new_bin" -c "$root/compat/delta-migrate.toml" compat check "$root/compat/$old" || failures=$((failures + 1))
    fi
    if [ "$failures" -gt 0 ]; then
        echo "$failures found"
        exit 1
    fi
    echo "all as it should be"
}

# The older release inside of a program: a sink that opens the table, appends, and is refused in the end.
sinks() {
    local events="$root/examples/events" lines
    echo "-- a sink of the old release creates its table and writes; the new release adds a column"
    head -n 4 "$events.ndjson" >four
    sink 0 old four
    wants "4 lines read, 4 rows written, 4 in the table" "$(tail -n 1 out)"
    cp "$events.toml" kinds/longer.toml
    printf '\n[[migrations]]\ndescription = "tenant"\nadd_columns = { tenant = "string" }\n' >>kinds/longer.toml
    sinks_table 0 longer
    wants "migrated" "$(field outcome)"
    echo "-- it goes on: says that the table is ahead, appends what it knows, and repeats nothing"
    sink 0 old "$events.ndjson"
    lines=$(grep -c . "$events.ndjson")
    wants "$lines lines read, $((lines - 4)) rows written, $lines in the table" "$(tail -n 1 out)"
    grep -q ahead out || note "the sink does not say that the table is ahead: $(cat out err)"
    sinks_table 0 longer
    wants "current" "$(field outcome)"
    echo "-- so does a sink of the new release, on the same table"
    sink 0 new "$events.ndjson"
    wants "$lines lines read, 0 rows written, $lines in the table" "$(tail -n 1 out)"
    echo "-- the floor is raised: the old sink is refused before it writes"
    printf '\n[[migrations]]\ndescription = "floor"\nraises_min_version = true\nadd_columns = { region = "string" }\n' \
        >>kinds/longer.toml
    sinks_table 0 longer
    before=$(checksum sink)
    { cat "$events.ndjson"; head -n 1 "$events.ndjson"; } >more
    sink 1 old more
    grep -q "may write" err || note "the sink does not say why: $(cat out err)"
    wants "$before" "$(checksum sink)"
}

# sink CODE WHO INPUT
sink() {
    local wanted=$1 code=0 bins=$new_bins
    [ "$2" = new ] || bins=$old_bins
    echo "   $2 sink: $3"
    "$bins/examples/sink" sink 4 <"$3" >out 2>err || code=$?
    [ "$code" = "$wanted" ] || note "exit code $code; wanted $wanted: $(cat out err)"
}

# sinks_table CODE CHAIN
sinks_table() {
    local code=0
    echo "   new ($2): apply sink"
    "$new_bin" --namespace example_sink --kind-file "kinds/$2.toml" --format json apply sink >out 2>err || code=$?
    [ "$code" = "$1" ] || note "exit code $code; wanted $1: $(cat out err)"
}

# The kind's chain, so many migrations long.
kind() {
    printf 'kind = "facts"\n[columns]\nid = "long"\nwhat = "string"\n'
    [ "$1" -lt 1 ] || printf '[[migrations]]\ndescription = "detail"\nadd_columns = { detail = "string" }\n'
    [ "$1" -lt 2 ] ||
        printf '[[migrations]]\ndescription = "tenant"\nraises_min_version = true\nadd_columns = { tenant = "string" }\n'
}

# build_old COMMIT: prints the folder of the binaries.
build_old() {
    local tree=$work/tree bins=$work/bin
    if [ "$(cat "$bins/commit" 2>/dev/null)" != "$1 $features" ]; then
        if [ ! -d "$tree" ]; then
            git worktree prune
            git worktree add --detach --force "$tree" "$1" >&2
        else
            git -C "$tree" checkout --detach --quiet "$1" >&2
        fi
        build "$tree" >/dev/null
        mkdir -p "$bins/examples"
        cp "$root/target/debug/delta-migrate" "$bins/"
        cp "$root/target/debug/examples/sink" "$bins/examples/"
        echo "$1 $features" >"$bins/commit"
    fi
    echo "$bins"
}

# build FOLDER: of whichever release it holds; the next build replaces the binaries.
build() {
    (cd "$1" && CARGO_TARGET_DIR=$root/target cargo build --locked --bin delta-migrate --example sink \
        --no-default-features --features "cli${features:+,$features}" >&2)
    echo "$root/target/debug"
}

# command_of WHO CHAIN ARG…
command_of() {
    local who=$1 chain=$2 bin=$new_bin
    shift 2
    [ "$who" = new ] || bin=$old_bin
    "$bin" --namespace app --kind-file "kinds/$chain.toml" --format json "$@"
}

# run CODE WHO CHAIN ARG…: the report goes to `out`, what is told to `err`.
run() {
    local wanted=$1 code=0
    shift
    echo "   $1 ($2): ${*:3}"
    command_of "$@" >out 2>err || code=$?
    [ "$code" = "$wanted" ] || note "exit code $code; wanted $wanted: $(cat out err)"
}

wants() {
    [ "$1" = "$2" ] || note "found \"$2\"; wanted \"$1\""
}

# tells WORD: a person is told so as well.
tells() {
    grep -q "$1" out err || note "nothing says \"$1\": $(cat out err)"
}

note() {
    failures=$((failures + 1))
    echo "   ! $1"
}

# field NAME…: of the only table of the last report.
field() {
    python3 - "$@" <<'PY'
import json, sys
table = json.load(open("out"))["tables"][0]
def at(path):
    value = table
    for key in path.split("."):
        value = (value or {}).get(key)
    return str(value)
print(" ".join(at(path) for path in sys.argv[1:]))
PY
}

json() {
    python3 -c 'import json, sys; print(json.load(open(sys.argv[1])).get(sys.argv[2]) or "")' "$1" "$2"
}

# An append of a writer that knows `id` and `what` alone: an entry with an empty file, which nobody reads here.
append() {
    python3 - "$1" <<'PY'
import json, pathlib, sys
log = pathlib.Path(sys.argv[1], "_delta_log")
version = max(int(f.stem) for f in log.glob("*.json")) + 1
pathlib.Path(sys.argv[1], "old.parquet").write_bytes(b"")
add = {"path": "old.parquet", "partitionValues": {}, "size": 0, "modificationTime": 0, "dataChange": True}
lines = [{"commitInfo": {"operation": "WRITE", "timestamp": 0}}, {"add": add}]
(log / f"{version:020}.json").write_text("".join(json.dumps(line) + "\n" for line in lines))
PY
}

checksum() {
    (cd "$1" && find . -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum | cut -c1-64)
}

main
