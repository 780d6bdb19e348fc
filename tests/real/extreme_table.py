#!/usr/bin/env python3
"""A table of extreme size survives three migrations byte for byte, except for what they add.

usage: extreme_table.py --bin BIN --tools DIR

2,000 columns, 60 levels of nesting, property values of 64 KB with quotes, line breaks, control characters and every
script; the schema's text is written as no serialiser writes it. Read from a commit with escapes, from one without, and
from a Parquet checkpoint. Three runs (`--target 1`, 2, 3) add a column at the top, a field in the deepest struct and a
comment. Each is judged by check_commit.py of DIR, and the new schema text without the inserted piece must be the old
text; name, description and every property must be the same text. Exit 1 on any failure.
"""
import argparse, json, os, shutil, sys, tempfile
import pyarrow as pa
import pyarrow.parquet as pq
from common import NS, Tally, base_columns, fresh, load_judge, q, run
from features_table import write_log


def extreme_schema():
    """A schema's text as no serialiser writes it, and the path of its deepest struct."""
    deep, path = '{"fields":[ {"metadata":{},"nullable":true,"type":"long","name":"leaf"} ] , "type":"struct"}', []
    for n in range(59, 0, -1):
        sort = n % 3
        if sort == 0:
            deep, path = f'{{"type" : "array","containsNull":true, "elementType":{deep},"x":1.50e+3}}', ["element", *path]
        elif sort == 1:
            deep, path = f'{{"keyType":"string","valueContainsNull":true,"valueType":{deep},"type":"map"}}', ["value", *path]
        else:
            deep = f'{{"type":"struct","fields":[{{"name":"s{n}","type":{deep},"nullable":true,"metadata":{{"\\u0064eep":"\\u00e9\\/", "n":0.10}},"own":[]}}],"own":{{}}}}'
            path = [f"s{n}", *path]
    names = [f"c{n}_" + chr(0x4e00 + n) for n in range(1999)]
    fields = [f'{{"name":{json.dumps(n, ensure_ascii=i % 2 == 0)},\t"type":"string","nullable":true,"metadata":{{"comment":"it\'s \\"{i}\\""}}}}' for i, n in enumerate(names)]
    fields.insert(700, f'{{"name":"deep","nullable":true,"metadata":{{}},"type":{deep}}}')
    return ' {"own" : null, "type":"struct","fields":[ ' + " ,".join(fields) + "\t]}", ["deep", *path]


def inserted(old, new):
    """The piece by which `new` is longer, or None where it is not just longer."""
    start = next((i for i, (a, b) in enumerate(zip(old, new)) if a != b), len(old))
    end = len(new) - (len(old) - start)
    return new[start:end] if new[:start] + new[end:] == old else None


def extreme(o, check, tally, tmp):
    text, path = extreme_schema()
    step = "a\"b'c\\d\ne\r\tf\x00\x1b\x7f\u0085\u2028\u2029\ufeff\uffff<>&"
    every = [c for c in range(0x20, 0x110000, 67) if not 0xd800 <= c <= 0xdfff]
    values = {f"app.big{i}": (step * i + "".join(map(chr, every[i::4])) * 99)[:65536] for i in range(4)}
    values.update({"app.'quoted' \"key\"\n漢": "", "": "empty key", "app.line": "\n" * 65536})
    meta = {"id": "x\ty", "name": values["app.big1"], "description": values["app.big2"], "format": {"provider": "parquet", "options": {}},
            "schemaString": text, "partitionColumns": ["c0_" + chr(0x4e00)], "createdTime": 1, "configuration": values}
    protocol = {"minReaderVersion": 1, "minWriterVersion": 2}
    kind = os.path.join(tmp, "extreme.toml")
    schema = json.loads(text)
    with open(kind, "w", encoding="utf-8") as f:
        f.write(f'kind = "probe"\n{base_columns([x for x in schema["fields"] if x["name"] == "deep"])}' + "".join(
            f'[[migrations]]\ndescription = "{n}"\n{text}\n' for n, text in enumerate((
                '[migrations.add_columns]\ndm_top = "string"', f'[migrations.add_columns]\n{q(".".join(path + ["dm_deep"]))} = "array<long>"',
                f'[migrations.comments]\n{q(".".join(path + ["leaf"]))} = "deep"'))))
    for source in ("commit, escaped", "commit, as it is", "checkpoint"):
        root = os.path.join(tmp, "extreme")
        shutil.rmtree(root, ignore_errors=True)
        actions = [{"protocol": protocol}, {"metaData": meta}]
        write_log(root, 0, [json.dumps(a, ensure_ascii="escaped" in source) for a in actions])
        if source == "checkpoint":
            text_map = pa.map_(pa.string(), pa.string())
            as_struct = pa.struct([("id", pa.string()), ("name", pa.string()), ("description", pa.string()), ("format", pa.struct([("provider", pa.string()), ("options", text_map)])),
                                   ("schemaString", pa.string()), ("partitionColumns", pa.list_(pa.string())), ("createdTime", pa.int64()), ("configuration", text_map)])
            row = {**meta, "format": {"provider": "parquet", "options": []}, "configuration": list(values.items())}
            both = pa.schema([("protocol", pa.struct([("minReaderVersion", pa.int32()), ("minWriterVersion", pa.int32())])), ("metaData", as_struct)])
            pq.write_table(pa.Table.from_pylist([{"protocol": protocol}, {"metaData": row}], both), os.path.join(root, "_delta_log", f"{0:020d}.checkpoint.parquet"))
            os.remove(os.path.join(root, "_delta_log", f"{0:020d}.json"))
        old, pieces = meta, []
        for n in (1, 2, 3):
            before = fresh(root, os.path.join(tmp, "before"))
            code, report, err = run(o.bin, "apply", kind, root, "--target", str(n))
            if report.get("outcome") != "migrated":
                tally.add(f"extreme, {source}, migration {n}", [f"exit {code}: {json.dumps(report.get('error'))[:500]} {err[-300:]}"])
                break
            added, may = [["dm_top"], [".".join(path + ["dm_deep"])], []][n - 1], [[], [], [f"comment:{'.'.join(path + ['leaf'])}"]][n - 1]
            wrong = check.judge(before, root, NS, "migrated", n, added, may)
            new = check.state(root)[2]
            piece = inserted(old["schemaString"], new["schemaString"])
            wrong += [] if piece else ["the schema's text differs in more than one inserted piece"]
            wrong += [f"metaData.{k} changed" for k in meta if k not in ("schemaString", "configuration") and new.get(k) != meta[k]]
            wrong += [f"property {k[:40]!r} changed" for k, v in values.items() if new["configuration"].get(k) != v]
            wrong += [f"property {k!r} is new" for k in new["configuration"] if k not in values and not k.startswith(NS + ".")]
            tally.add(f"extreme, {source}, migration {n}", wrong)
            old = new
            pieces.append(piece)
        print(f"extreme, {source}: inserted {pieces}")


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--bin", required=True)
    ap.add_argument("--tools", required=True)
    o = ap.parse_args()
    tally = Tally()
    with tempfile.TemporaryDirectory() as tmp:
        extreme(o, load_judge(o.tools), tally, tmp)
    sys.exit(tally.close())


main()
