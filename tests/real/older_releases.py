"""What older releases do with a migrated table, with the Python package deltalake as the older release.

`delta-migrate validate` says, for each step, what a release that does not know it would do. Here each step
is applied by the command to a table, `write_deltalake` appends, merges and overwrites as a writer of the
columns from before, a query reads, and what happens is compared with what was said. The package is built
with DataFusion, so it writes some features that builds without it don't: those are said to stop writers,
and may not stop this one.

    python tests/real/older_releases.py --bin target/debug/delta-migrate
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder, write_deltalake

KIND = """kind = "facts"
[columns]
id      = { type = "long", nullable = false }
code    = { type = "string", nullable = false }
payload = "struct<lsn: long>"
items   = "array<struct<sku: string>>"
tags    = "map<string, struct<by: string>>"
[[migrations]]
description = "the one that older releases don't know"
"""

OLD = pa.schema([
    pa.field("id", pa.int64(), nullable=False),
    pa.field("code", pa.string(), nullable=False),
    pa.field("payload", pa.struct([("lsn", pa.int64())])),
    pa.field("items", pa.list_(pa.struct([("sku", pa.string())]))),
    pa.field("tags", pa.map_(pa.string(), pa.struct([("by", pa.string())]))),
])

FEATURES = [
    "allowColumnDefaults", "appendOnly", "changeDataFeed", "checkConstraints", "deletionVectors",
    "domainMetadata", "generatedColumns", "invariants", "timestampNtz", "typeWidening", "v2Checkpoint",
    "vacuumProtocolCheck", "variantType",
]
STEPS = [
    'add_columns = { detail = "string" }',
    'add_columns = { "payload.warnings" = "array<string>" }',
    'add_columns = { "items.element.discount" = "decimal(9,2)" }',
    'add_columns = { "tags.value.why" = "string" }',
    'relax_nullability = ["code"]',
    'comments = { code = "what it is" }',
    'table_description = "what the table is"',
    'set_properties = { owner = "b", "delta.logRetentionDuration" = "interval 90 days" }',
    'unset_properties = ["legacy"]',
] + [f'enable_features = ["{name}"]' for name in FEATURES]

# A writer that sends its own columns alone must merge, on an overwrite too.
WRITES = {
    "merge": {"mode": "append", "schema_mode": "merge"},
    "overwrite": {"mode": "overwrite", "schema_mode": "merge"},
}


def rows(number):
    row = {"id": number, "code": "c", "payload": {"lsn": 1}, "items": [{"sku": "s"}], "tags": [("k", {"by": "me"})]}
    return pa.Table.from_pylist([row], schema=OLD)


def run(binary, folder, *args):
    command = [binary, "--namespace", "app", "--kind-file", "facts.toml", "--format", "json", *args]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    return json.loads(done.stdout)


def migrated(binary, step):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="older-"))
    (folder / "facts.toml").write_text(KIND + step + "\n")
    write_deltalake(str(folder / "facts"), rows(1))
    report = run(binary, folder, "apply", "facts")
    assert report["tables"][0]["outcome"] == "migrated", report
    return folder


def scan(table):
    return pa.table(QueryBuilder().register("t", table).execute("select * from t").read_all()).num_rows


def executed(binary, step):
    seen = {}
    for operation, options in WRITES.items():
        folder = migrated(binary, step)
        table = str(folder / "facts")
        before = DeltaTable(table).schema().to_json()
        try:
            write_deltalake(table, rows(2), **options)
        except Exception as error:
            seen[operation] = "cannot_write"
            continue
        kept = json.loads(DeltaTable(table).schema().to_json()) == json.loads(before)
        outcome = run(binary, folder, "status", "facts")["tables"][0]["outcome"]
        seen[operation] = "fine" if kept and outcome == "current" else "miswrites"
    folder = migrated(binary, step)
    try:
        scan(DeltaTable(str(folder / "facts")))
        seen["read"] = "fine"
    except Exception:
        seen["read"] = "cannot_read"
    said = run(binary, folder, "validate")["consequences"][0]["steps"][0]
    return seen, said


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    binary = str(pathlib.Path(parser.parse_args().bin).resolve())
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    for step in STEPS:
        seen, said = executed(binary, step)
        for operation, what in seen.items():
            expected = said[operation] if said[operation] not in ("nothing_new", "reads_null") else "fine"
            if what == expected:
                counts["passed"] += 1
            elif step.startswith("enable_features") and expected == "cannot_write" and what == "fine":
                # Built with DataFusion, and so with more features than every build has.
                counts["skipped"] += 1
            else:
                counts["failed"] += 1
                print(f"FAILED {step}: {operation}: {what}, said {said[operation]}")
    print("{passed} passed, {failed} failed, {skipped} skipped".format(**counts))
    sys.exit(1 if counts["failed"] or not counts["passed"] else 0)


main()
