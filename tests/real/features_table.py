#!/usr/bin/env python3
"""Tables made here: all safe features at once, and every refused thing.

usage: features_table.py --bin BIN --tools DIR [--only everything|duckdb|both|refused] [--keep DIR]

everything  a table that lists every feature with a rule of "nothing" or a duty, most of them in use (a v2 checkpoint,
            deletion vector, row ids, clustering domain, generated, identity, defaulted, widened and variant columns),
            goes through three migrations in three runs (`--target 1`, 2, 3), each judged by check_commit.py of DIR
duckdb      the same with what DuckDB can read, which must read the same rows after each run, the added columns NULL
both        the same with what deltalake can read too (no widened column, no vacuumProtocolCheck), and both must
refused     writer version 8, delta.checkpointPolicy=v2 without the feature, catalogManaged, redirect, geospatial, an
            unknown feature and others: exit 1, named, nothing written; the same table without it migrates
Exit 1 on any failure.
"""
import argparse, base64, datetime, json, os, shutil, struct, sys, tempfile
import pyarrow as pa
import pyarrow.parquet as pq
from common import DELTALAKE, DUCKDB, NS, Tally, base_columns, engine, fresh, load_judge, refused, run, snapshot, untouched

READERS = ["columnMapping", "deletionVectors", "timestampNtz", "typeWidening", "v2Checkpoint", "vacuumProtocolCheck"]
WRITERS = ["appendOnly", "changeDataFeed", "checkConstraints", "invariants", "generatedColumns", "allowColumnDefaults", "identityColumns",
           "rowTracking", "domainMetadata", "clustering", "inCommitTimestamp"]
MORE_READERS = ["variantType", "variantType-preview", "variantShredding", "variantShredding-preview", "typeWidening-preview"]
MORE_WRITERS = ["checkpointProtection", "materializePartitionColumns", "collations", "collations-preview", "icebergCompatV1", "icebergCompatV2",
                "icebergCompatV3"]
CONFIG = {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "40", "delta.enableDeletionVectors": "true",
          "delta.enableChangeDataFeed": "true", "delta.enableInCommitTimestamps": "true", "delta.enableRowTracking": "true",
          "delta.rowTracking.materializedRowIdColumnName": "_row-id-col-1", "delta.rowTracking.materializedRowCommitVersionColumnName": "_row-commit-col-1",
          "delta.checkpointPolicy": "v2", "delta.enableTypeWidening": "true", "delta.constraints.positive": "amount >= 0", "app.note": "it's \"kept\""}
ICT = int(datetime.datetime(2024, 5, 1, tzinfo=datetime.timezone.utc).timestamp() * 1000)
Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
B85 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"


def deleted(*rows):
    """An inline deletion vector (PROTOCOL.md, Deletion Vector Format); two rows make a multiple of four bytes."""
    bitmap = struct.pack("<IIHHI", 12346, 1, 0, len(rows) - 1, 16) + struct.pack(f"<{len(rows)}H", *rows)
    data = struct.pack("<IqI", 1681511377, 1, 0) + bitmap
    text = base64.b85encode(data).decode().translate(str.maketrans(B85, Z85))
    return {"storageType": "i", "pathOrInlineDv": text, "sizeInBytes": len(data), "cardinality": len(rows)}


def write_log(root, version, actions):
    os.makedirs(os.path.join(root, "_delta_log"), exist_ok=True)
    name = version if isinstance(version, str) else f"{version:020d}.json"
    with open(os.path.join(root, "_delta_log", name), "w", encoding="utf-8") as f:
        f.write("".join((a if isinstance(a, str) else json.dumps(a, ensure_ascii=False)) + "\n" for a in actions))


def columns(level):
    """The schema's fields, with ids and physical names p1, p2, …"""
    ids = iter(range(1, 40))

    def field(name, t, nullable=True, **metadata):
        n = next(ids)
        extra = {k if k.isupper() else k.replace("__", "."): v for k, v in metadata.items()}
        extra.update({"delta.columnMapping.id": n, "delta.columnMapping.physicalName": f"p{n}"})
        return {"name": name, "type": t() if callable(t) else t, "nullable": nullable, "metadata": extra}
    of = lambda *fields: {"type": "struct", "fields": list(fields)}
    out = [
        field("id", "long", delta__identity__start=1, delta__identity__step=1, delta__identity__highWaterMark=5, delta__identity__allowExplicitInsert=False),
        field("full name", "string", False, delta__invariants=json.dumps({"expression": {"expression": "`full name` <> ''"}}), comment="with a space"),
        field("amount", "long", **({} if level == "both" else {"delta__typeChanges": [{"toType": "long", "fromType": "integer"}]})),
        field("at", "timestamp"), field("local", "timestamp_ntz"),
        field("eventDate", "date", delta__generationExpression="CAST(at AS DATE)"),
        field("flag", "string", CURRENT_DEFAULT="'new'"),
        field("info", lambda: of(
            field("a", "long", False),
            field("tags", lambda: {"type": "array", "elementType": of(field("k", "string")), "containsNull": False}),
            field("m", lambda: {"type": "map", "keyType": "string", "valueType": of(field("v", "long")), "valueContainsNull": True})), True)]
    if level == "everything":
        out += [field("doc", "variant"), field("nothing", "void"), field("sorted", "string", __COLLATIONS={"sorted": "ICU.de_DE"})]
    return out


def parquet(path, level):
    """Five rows under physical names; `amount` is narrower than the schema says, unless level is `both`."""
    utc = datetime.timezone.utc
    ids = lambda n: {"PARQUET:field_id": str(n)}
    names = {"id": 1, "full name": 2, "amount": 3, "at": 4, "local": 5, "eventDate": 6, "flag": 7}
    types = {"id": pa.int64(), "full name": pa.string(), "amount": pa.int64() if level == "both" else pa.int32(), "at": pa.timestamp("us", "UTC"), "local": pa.timestamp("us"),
             "eventDate": pa.date32(), "flag": pa.string()}
    # Inside a field with children the ids follow the order in which columns() gives them out.
    inner = {f["name"]: f for f in next(f for f in columns("both") if f["name"] == "info")["type"]["fields"]}
    info = next(f for f in columns("both") if f["name"] == "info")
    p = lambda f: f["metadata"]["delta.columnMapping.physicalName"]
    n = lambda f: ids(f["metadata"]["delta.columnMapping.id"])
    k, v = inner["tags"]["type"]["elementType"]["fields"][0], inner["m"]["type"]["valueType"]["fields"][0]
    element, value = pa.struct([pa.field(p(k), pa.string(), metadata=n(k))]), pa.struct([pa.field(p(v), pa.int64(), metadata=n(v))])
    holder = pa.struct([pa.field(p(inner["a"]), pa.int64(), False, n(inner["a"])), pa.field(p(inner["tags"]), pa.list_(element), metadata=n(inner["tags"])),
                        pa.field(p(inner["m"]), pa.map_(pa.string(), value), metadata=n(inner["m"]))])
    schema = pa.schema([pa.field(f"p{names[x]}", types[x], x != "full name", ids(names[x])) for x in names] + [pa.field(p(info), holder, metadata=n(info))])
    rows = [{"p1": i, "p2": f"name {i}", "p3": i * 10, "p4": datetime.datetime(2024, 5, i, 23, tzinfo=utc), "p5": datetime.datetime(2024, 5, i, 1),
             "p6": datetime.date(2024, 5, i), "p7": None if i == 3 else "old",
             p(info): {p(inner["a"]): i, p(inner["tags"]): [{p(k): "x"}], p(inner["m"]): [("y", {p(v): i})]}} for i in range(1, 6)]
    pq.write_table(pa.Table.from_pylist(rows, schema), path)


def make(root, level):
    """One table: a commit each for schema, rows and deletes, and (everything) a v2 checkpoint that replaces the first two."""
    os.makedirs(root)
    parquet(os.path.join(root, "part-0.parquet"), level)
    everything = level == "everything"
    readers = [f for f in READERS if level != "both" or f not in ("typeWidening", "vacuumProtocolCheck")] + (MORE_READERS if everything else [])
    config = {k: v for k, v in CONFIG.items() if level != "both" or k != "delta.enableTypeWidening"}
    writers = sorted({*readers, *WRITERS, *(MORE_WRITERS if everything else [])})
    protocol = {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": readers, "writerFeatures": writers}}
    meta = {"metaData": {"id": "5fba94ed-9794-4965-ba6e-6ee3c0d22af9", "name": "all", "description": "all features", "format": {"provider": "parquet", "options": {}},
                         "schemaString": json.dumps({"type": "struct", "fields": columns(level)}), "partitionColumns": [],
                         "createdTime": 1700000000000, "configuration": config}}
    domain = lambda d, c: {"domainMetadata": {"domain": d, "configuration": json.dumps(c), "removed": False}}
    domains = [domain("delta.clustering", {"clusteringColumns": [["p1"]]}), domain("delta.rowTracking", {"rowIdHighWaterMark": 4}), domain("app.own", {"x": 1})]
    add = {"path": "part-0.parquet", "partitionValues": {}, "size": os.path.getsize(os.path.join(root, "part-0.parquet")), "modificationTime": ICT,
           "dataChange": True, "stats": json.dumps({"numRecords": 5}), "baseRowId": 0, "defaultRowCommitVersion": 1, "clusteringProvider": "liquid"}
    dv = {**add, "deletionVector": deleted(1, 3), "stats": json.dumps({"numRecords": 5, "tightBounds": False})}
    gone = {"path": add["path"], "deletionTimestamp": ICT, "dataChange": True, "partitionValues": {}, "size": add["size"], "extendedFileMetadata": True,
            "baseRowId": 0, "defaultRowCommitVersion": 1}
    info = lambda v: {"commitInfo": {"inCommitTimestamp": ICT + v, "timestamp": ICT + v, "operation": "TEST", "operationParameters": {}}}
    write_log(root, 0, [info(0), protocol, meta, *domains])
    write_log(root, 1, [info(1), {"add": add}])
    write_log(root, 2, [info(2), {"remove": gone}, {"add": dv}, {"txn": {"appId": "stream", "version": 7}}])
    if everything:
        write_log(root, f"{2:020d}.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json",
                  [{"checkpointMetadata": {"version": 2}}, protocol, meta, *domains, {"add": {**dv, "dataChange": False}}, {"txn": {"appId": "stream", "version": 7}}])
        for v in (0, 1):
            os.remove(os.path.join(root, "_delta_log", f"{v:020d}.json"))


CHAIN = [('''[[migrations]]
description = "columns"
[migrations.add_columns]
"dm_a text" = { type = "string", comment = "c" }
dm_list = "array<struct<a: long, b: map<string, date>>>"
dm_ntz = "map<string, timestamp_ntz>"
"info.dm_in" = "decimal(38,18)"
"info.tags.element.dm_in" = "string"
''', ["dm_a text", "dm_list", "dm_ntz", "info.dm_in", "info.tags.element.dm_in"], []),
         ('''[[migrations]]
description = "texts"
relax_nullability = ["full name", "info.a", "info.tags.element"]
table_description = "said again"
[migrations.comments]
eventDate = "generated"
id = "identity"
"info.m.value.v" = "deep"
[migrations.set_properties]
"app.more" = "1"
''', [], ["comment:eventDate", "comment:id", "comment:info.m.value.v", "nullable:full name", "nullable:info.a", "description", "property:app.more"]),
         ('''[[migrations]]
description = "floor"
raises_min_version = true
unset_properties = ["app.more", "app.note"]
[migrations.add_columns]
"info.m.value.dm_in" = "struct<x: array<timestamp_ntz>>"
''', ["info.m.value.dm_in"], ["property:app.more", "property:app.note"])]


def all_features(o, check, tally, tmp, name):
    table, kind = os.path.join(tmp, name), os.path.join(tmp, f"{name}.toml")
    make(table, name)
    with open(kind, "w", encoding="utf-8") as f:
        f.write(f'kind = "probe"\n{base_columns(columns("both"))}' + "".join(text for text, _, _ in CHAIN))
    engines = {"deltalake": DELTALAKE, "DuckDB": DUCKDB}
    rows = {e: engine(code, table) for e, code in engines.items()}
    for e, r in rows.items():
        if "error" in r and (name == "everything" or (name, e) == ("duckdb", "deltalake")):
            tally.skip(f"{name}, {e}", r["error"])
            print(f"skipped {name}, read by {e}: {r['error'][:200]}")
        else:
            tally.add(f"{name}, {e} before", [r["error"]] if "error" in r else [] if r["rows"] == 3 else [f"{r['rows']} rows instead of 3"])
    for n, (_, added, may) in enumerate(CHAIN, 1):
        before = fresh(table, os.path.join(tmp, "before"))
        code, report, err = run(o.bin, "apply", kind, table, "--target", str(n))
        if report.get("outcome") != "migrated":
            tally.add(f"{name}, migration {n}", [f"exit {code}: {json.dumps(report.get('error'))} {err}"])
            return
        # check_commit knows no --may for the flags of arrays and maps.
        wrong = [w for w in check.judge(before, table, NS, "migrated", n, added, may) if n != 2 or w != "containsNull of info.tags changed"]
        version, _, meta = check.state(table)
        acts = check.actions(os.path.join(table, "_delta_log", f"{version:020d}.json"))
        info = acts[0].get("commitInfo", {})
        if not info.get("inCommitTimestamp", 0) > ICT + 2:
            wrong.append(f"in-commit timestamp {info.get('inCommitTimestamp')}")
        if (info.get("tags") or {}).get("delta.rowTracking.preserved") != "true":
            wrong.append("no tag delta.rowTracking.preserved")
        if n == 2 and '"containsNull":true' not in meta["schemaString"].replace(" ", ""):
            wrong.append("info.tags.element is still required")
        if any("protocol" in a for a in acts):
            wrong.append("a protocol action that nobody asked for")
        tally.add(f"{name}, migration {n}", wrong)
        done = snapshot(table)
        code, report, err = run(o.bin, "apply", kind, table, "--target", str(n))
        tally.add(f"{name}, migration {n} again", untouched(done, table, "a second run") + ([] if code == 0 else [f"exit {code}"]))
        for e, was in rows.items():
            if "error" not in was:
                now = engine(engines[e], table)
                if e == "deltalake" and "Cannot cast column" in now.get("error", "") and n == 3:
                    # deltalake 1.6.6 can't read a file whose map values lack a field, not even one that it wrote itself.
                    tally.skip(f"{name}, {e} after migration {n}", now["error"])
                    print(f"skipped {name}, read by {e} after migration {n}: {now['error'][:100]}…")
                    continue
                same = now.get("digest") == was["digest"] and now.get("filled") == 0 and now["added"] == ["dm_a text", "dm_list", "dm_ntz"]
                tally.add(f"{name}, {e} after migration {n}", [] if same else [f"{json.dumps(was)} -> {json.dumps(now)}"])
    if o.keep:
        fresh(table, os.path.join(o.keep, name))


REFUSED = {  # name: (protocol, configuration, what the message must name)
    "writer version 8": ({"minReaderVersion": 3, "minWriterVersion": 8}, {}, "writer version 8"),
    "reader version 4": ({"minReaderVersion": 4, "minWriterVersion": 7}, {}, "reader version 4"),
    "v2 policy without the feature": ({}, {"delta.checkpointPolicy": "v2"}, "v2Checkpoint"),
    "mapping mode without the feature": ({}, {"delta.columnMapping.mode": "name"}, "columnMapping"),
    "in-commit timestamps without the feature": ({}, {"delta.enableInCommitTimestamps": "true"}, "inCommitTimestamp"),
    **{f: ({"both": [f]}, {}, f) for f in ("catalogManaged", "catalogOwned", "catalogOwned-preview", "redirectReaderWriter-preview", "geospatial",
                                           "timestampNanos", "adaptiveMetadata", "frobnicate", "frobnicate'\"\n漢")},
    **{f: ({"writers": [f]}, {}, f) for f in ("redirectWriterOnly-preview", "coordinatedCommits-preview", "icebergWriterCompatV1", "frobnicateWriter")},
}


def refusals(o, check, tally, tmp):
    schema = json.dumps({"type": "struct", "fields": [{"name": "a", "type": "long", "nullable": True, "metadata": {}}]})
    kind = os.path.join(tmp, "refused.toml")
    with open(kind, "w", encoding="utf-8") as f:
        f.write('kind = "probe"\n[[migrations]]\ndescription = "one column"\n[migrations.add_columns]\ndm_probe = "string"\n')
    for name, (more, config, named) in [("nothing", ({}, {}, None)), *REFUSED.items()]:
        root, more = os.path.join(tmp, "refused"), dict(more)
        shutil.rmtree(root, ignore_errors=True)
        both, writers = more.pop("both", []), more.pop("writers", [])
        protocol = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": both, "writerFeatures": ["appendOnly", "invariants", *both, *writers], **more}
        write_log(root, 0, [{"commitInfo": {"inCommitTimestamp": ICT, "timestamp": ICT, "operation": "TEST"}}, {"protocol": protocol},
                            {"metaData": {"id": "1", "format": {"provider": "parquet", "options": {}}, "schemaString": schema, "partitionColumns": [], "configuration": config}}])
        before, wrong = snapshot(root), []
        for command in ("status", "plan", "apply"):
            code, report, err = run(o.bin, command, kind, root)
            if named is None:
                wrong += [] if code == 0 else [f"{command}: exit {code} {report} {err}"]
                continue
            error = report.get("error") or {}
            wrong += [f"{command}: {w}" for w in refused(code, report, err)]
            # Messages are one line each: a line break in a name is shown as an escape.
            if named.replace("\n", "\\n") not in error.get("message", ""):
                wrong.append(f"{command}: the message does not name it: {error}")
            if error.get("code") != "unsupported_feature":
                wrong.append(f"{command}: code is {error.get('code')}")
            wrong += untouched(before, root, command)
        tally.add(f"refused: {name}", wrong)


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--bin", required=True)
    ap.add_argument("--tools", required=True)
    ap.add_argument("--only", choices=["everything", "duckdb", "both", "refused"])
    ap.add_argument("--keep")
    o = ap.parse_args()
    check, tally = load_judge(o.tools), Tally()
    with tempfile.TemporaryDirectory() as tmp:
        for name in ("everything", "duckdb", "both"):
            if o.only in (None, name):
                all_features(o, check, tally, tmp, name)
        if o.only in (None, "refused"):
            refusals(o, check, tally, tmp)
    sys.exit(tally.close())


if __name__ == "__main__":
    main()
