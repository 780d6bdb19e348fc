#!/usr/bin/env python3
"""A type that is widened reads as before in DuckDB: the values of old files, from int32 and decimals on.

usage: widened.py TABLES --bin BIN

The table is the one of TABLES whose columns Spark widened; `widen_types` widens them further, on a copy. All of its rows
are read before and after; a table without the feature gets it only where the migration names it. Exit 1 on any failure.
"""
import argparse, json, os, sys, tempfile
import duckdb, duckdb_extension_delta
from common import Tally, fresh, run, snapshot, untouched

TABLE = "delta--type-widening"
WIDER = {"decimal_decimal_same_scale": ("decimal(20,2)", "decimal(25,2)"), "byte_decimal": ("decimal(11,1)", "decimal(13,3)")}


def rows(path):
    db = duckdb.connect()
    root = os.path.dirname(duckdb_extension_delta.__file__)
    found = [os.path.join(d, n) for d, _, names in os.walk(root) for n in names if n == "delta.duckdb_extension"]
    db.execute(f"LOAD '{found[0]}'")
    read = db.execute(f"SELECT {', '.join(WIDER)}, int_long FROM delta_scan('{path}') ORDER BY int_long")
    return read.fetchall()


def kind(columns, step):
    lines = ["kind = \"wide\"", "[columns]", *(f'{name} = "{of}"' for name, of in columns.items())]
    return "\n".join([*lines, "[[migrations]]", 'description = "wider"', "raises_min_version = true", step, ""])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tables")
    parser.add_argument("--bin", required=True)
    options = parser.parse_args()
    tally = Tally()
    with tempfile.TemporaryDirectory() as folder:
        table = fresh(os.path.join(options.tables, TABLE), os.path.join(folder, "t"))
        wider = ", ".join(f'{name} = "{new}"' for name, (_, new) in WIDER.items())
        text = kind({name: old for name, (old, _) in WIDER.items()}, f"widen_types = {{ {wider} }}")
        before = rows(table)
        file = os.path.join(folder, "wide.toml")
        with open(file, "w") as out:
            out.write(text)
        code, report, err = run(options.bin, "apply", file, table)
        after = rows(table)
        wrong = [] if code == 0 else [f"exit {code}: {json.dumps(report)[:300]} {err[:300]}"]
        if not before or before != after:
            wrong.append(f"{before} became {after}")
        tally.add("old files have their values under wider types", wrong)

        plain = os.path.join(folder, "plain")
        for features, outcome in (("", "refused"), ('enable_features = ["typeWidening"]\n', "migrated")):
            create = kind({"n": "int"}, "comments = { n = \"before\" }")
            with open(file, "w") as out:
                out.write(create)
            if not os.path.exists(plain):
                run(options.bin, "apply", file, plain)
            with open(file, "w") as out:
                out.write(create + f'[[migrations]]\ndescription = "more"\nraises_min_version = true\n{features}widen_types = {{ n = "long" }}\n')
            stood = snapshot(plain)
            code, report, err = run(options.bin, "apply", file, plain)
            found = report.get("outcome")
            wrong = [] if found == outcome else [f"{found} instead of {outcome}: {json.dumps(report)[:300]} {err[:200]}"]
            if outcome == "refused":
                wrong += untouched(stood, plain, "a refusal")
            tally.add(f"a table without the feature is {outcome} where the migration {'names it' if features else 'does not name it'}", wrong)
    sys.exit(tally.close())


if __name__ == "__main__":
    main()
