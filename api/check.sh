#!/usr/bin/env bash
# Compares what the library makes public with the files beside this script. CONTRIBUTING.md ("Compatibility") has the
# rules, and what the files hold.
#
#   bash api/check.sh                what differs; exit code 1 if anything does
#   bash api/check.sh --bless        writes the files anew
#   bash api/check.sh --since REV    what was public at that commit and is gone, though it was not deprecated there
#
# rustdoc's JSON is unstable, so stable Rust writes it only where RUSTC_BOOTSTRAP is set. It is set for rustdoc's run on
# this crate alone: the dependencies are those of every other build, and no other toolchain is needed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

all=cli,s3,azure,gcs,glue,unity
made=target/api/made
tool=target/api/debug/listing
files="library.txt features.txt traits.txt"

main() {
    case "${1:-}" in
    "") then=compare ;;
    --bless) then=bless ;;
    --since) then="since ${2:?name a commit}" ;;
    *) fail "usage: bash api/check.sh [--bless | --since REV]" ;;
    esac
    list
    $then
}

fail() {
    echo "$*"
    exit 1
}

# Lists today's code below target/.
list() {
    mkdir -p "$made"
    printf '#!/bin/sh\nRUSTC_BOOTSTRAP=1 exec rustdoc "$@"\n' >target/api/rustdoc
    chmod +x target/api/rustdoc
    cargo build -q --locked --manifest-path api/listing/Cargo.toml --target-dir target/api ||
        not_to_be_had "the tool in api/listing can't be built"
    json library --no-default-features
    json all --no-default-features --features "$all"
    # Apart from the others: a build of DataFusion with all stores and catalogs takes long.
    json data
    mkdir -p "$made/data"
    local code=0
    { "$tool" "$made/library.json" "$made/all.json" "$made" &&
        "$tool" "$made/library.json" "$made/data.json" "$made/data"; } || code=$?
    case "$code" in
    0) ;;
    3) not_to_be_had "this Rust writes another format of JSON; api/listing/Cargo.toml needs other versions" ;;
    *) exit "$code" ;;
    esac
    for file in features.txt traits.txt; do
        LC_ALL=C sort -u "$made/$file" "$made/data/$file" -o "$made/$file"
    done
}

json() {
    local name=$1 written=${CARGO_TARGET_DIR:-target}/doc/delta_migrate.json
    shift
    rm -f "$written"
    RUSTDOC=$PWD/target/api/rustdoc cargo rustdoc -q --lib "$@" -- -Z unstable-options --output-format json
    cp "$written" "$made/$name.json"
}

# A machine of one's own may lack what this takes; where changes land, it must be there.
not_to_be_had() {
    [ -z "${CI:-}" ] || fail "$*"
    echo "SKIPPED: the public API was not compared: $*"
    exit 0
}

compare() {
    local file differ=0
    for file in $files; do
        diff -u --label "api/$file" --label "today" "api/$file" "$made/$file" || differ=1
    done
    if [ "$differ" = 0 ]; then
        echo "the public API is what api/ says ($(cat $made/*.txt | wc -l) lines)"
        return
    fi
    cat <<'END'

What the library makes public is not what api/ says.
  - a line that is gone or changed: code that uses it may not compile any more. It is deprecated for a minor first
    (CONTRIBUTING.md, "Compatibility"); where that can't be done, CHANGELOG.md says what to write instead.
  + a new line: it gets a line in CHANGELOG.md.
Then: bash api/check.sh --bless, and commit api/ together with the change.
END
    return 1
}

bless() {
    local file
    for file in $files; do
        cp "$made/$file" "api/$file"
    done
    git --no-pager diff --stat -- api
}

# Lines of that commit's files that are gone. A line that has become deprecated is still there.
since() {
    local commit=$1 file gone
    git cat-file -e "$commit:api/library.txt" || fail "there is no api/ at $commit"
    gone=$(for file in $files; do
        git show "$commit:api/$file" | grep -v '^#\[deprecated(' |
            grep -vxFf <(sed 's/^#\[deprecated([^)]*)\] //' $made/*.txt) || true
    done)
    if [ -z "$gone" ]; then
        echo "nothing is gone that was not deprecated at $commit"
        return
    fi
    printf '%s\n\n%s\n' "$gone" "This was public at $commit, was not deprecated there, and is gone or changed."
    return 1
}

main "$@"
