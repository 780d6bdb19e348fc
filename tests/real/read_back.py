#!/usr/bin/env python3
"""Read every table back by deltalake and DuckDB after a migration, then append and checkpoint by deltalake.

usage: read_back.py TABLES_DIR --bin BIN [--lake DIR] [--only SUBSTRING] [--jobs N] [--skips]

TABLES_DIR is a folder of real tables with index.json; --lake is the demo lake (fixtures/lake by default). Each
table is copied, its rows are read, one migration adds a column, and then
  read        the rows are the same and the new column is all NULL, in each engine that could read the table before
  old append  deltalake appends one row of NULLs and defaults without the new column, as a writer that does not know it
              (schema_mode="merge": deltalake takes no batch that lacks a column otherwise)
  append      deltalake appends one row of the whole schema; after each of the two, `status` says `current` and each
              engine reads one row more
  checkpoint  deltalake's create_checkpoint() succeeds, `status` still says `current`, and each engine still reads
              all of these rows
What an engine can't do with the table as it was is skipped with the engine's own reason, found out on a second
copy that is never migrated. Prints a table of counts; --skips lists each skip. Exit 1 on any failure.
"""
import argparse, collections, concurrent.futures, json, os, re, sys, tempfile
from common import APPEND, CHECKPOINT, DELTALAKE, DUCKDB, Tally, engine, fresh, q, run

COLUMN = "dm_probe"
KIND = f'kind = "probe"\n[[migrations]]\ndescription = "one column"\n[migrations.add_columns]\n{COLUMN} = "string"\n'
WHAT = ("read", "old append", "append", "checkpoint")
ENGINES = {"deltalake": DELTALAKE, "DuckDB": DUCKDB}


def work(src, binary):
    """[(engine, what, wrong or None, reason of a skip or None)] for one table."""
    out = []
    with tempfile.TemporaryDirectory() as tmp:
        kind = os.path.join(tmp, "probe.toml")
        with open(kind, "w", encoding="utf-8") as f:
            f.write(KIND)
        table, control = fresh(src, os.path.join(tmp, "t")), None
        before = {name: engine(code, table, COLUMN) for name, code in ENGINES.items()}
        code, report, err = run(binary, "apply", kind, table)
        if report.get("outcome") != "migrated":
            why = "delta-migrate refuses the table: " + (report.get("error") or {}).get("code", f"exit {code} {err[-200:]}")
            return [(name, what, None, why) for name in ENGINES for what in WHAT]
        can = {name for name, b in before.items() if "error" not in b}

        def read(what, rows_more):
            for name in ENGINES:
                if name not in can:
                    out.append((name, what, None, f"{name} can't read the table as it was: {before[name]['error']}"))
                    continue
                now, was, wrong = engine(ENGINES[name], table, COLUMN), before[name], []
                if "error" in now:
                    wrong.append(f"{name} can't read it any more: {now['error']}")
                else:
                    if now["rows"] != was["rows"] + rows_more:
                        wrong.append(f"{now['rows']} rows instead of {was['rows'] + rows_more}")
                    if not rows_more and now["digest"] != was["digest"]:
                        wrong.append("rows differ")
                    if now["filled"] or now["added"] != [COLUMN]:
                        wrong.append(f"the new column is not there with NULL everywhere: {now}")
                out.append((name, what, "; ".join(wrong), None))

        def current(what):
            """Says what `status` has against the table."""
            code, report, err = run(binary, "status", kind, table)
            if code != 0 or report.get("outcome") != "current":
                out.append(("deltalake", what, f"status: exit {code} {json.dumps(report)[:300]} {err[-200:]}", None))

        def same(what, program, of, without):
            """Whether deltalake did it; where it could not before either, a skip."""
            nonlocal control
            done = engine(program, table, without)
            if "error" not in done:
                return True
            control = control or fresh(src, os.path.join(tmp, "control"))
            alone = engine(program, control, without)
            for name in ENGINES:
                if "error" in alone:
                    out.append((name, what, None, f"deltalake can't {of} the table as it was: {alone['error']}"))
                elif name == "deltalake":
                    out.append((name, what, f"deltalake could {of} before, now: {done['error']}", None))
                else:
                    out.append((name, what, None, f"deltalake's {of} failed"))
            return False

        read("read", 0)
        appended = 0
        for what, without in (("old append", COLUMN), ("append", "")):
            if same(what, APPEND, "append to", without):
                appended += 1
                current(what)
                read(what, appended)
        if same("checkpoint", CHECKPOINT, "checkpoint", ""):
            current("checkpoint")
            read("checkpoint", appended)
    return out


def short(reason):
    """A reason without what differs from table to table."""
    text = re.sub(r"'?(file://)?/tmp/\S*|\"[^\"]*/[^\"]*\"", "…", re.split(r"\n|Stack Trace", reason)[0])
    return re.sub(r"(metadata for file ).*", r"\1…", text)[:150]


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("tables")
    ap.add_argument("--bin", required=True)
    ap.add_argument("--lake", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "fixtures", "lake"))
    ap.add_argument("--only")
    ap.add_argument("--jobs", type=int, default=2)
    ap.add_argument("--skips", action="store_true")
    o = ap.parse_args()
    with open(os.path.join(o.tables, "index.json"), encoding="utf-8") as f:
        sources = [(e["name"], os.path.join(o.tables, e["name"])) for e in json.load(f)]
    lake = os.path.join(o.lake, "tables")
    sources += [(f"lake/{n}", os.path.join(lake, n)) for n in sorted(os.listdir(lake))]
    sources = [s for s in sources if not o.only or o.only in s[0]]
    tally, cells, reasons = Tally(), collections.defaultdict(collections.Counter), collections.Counter()
    with concurrent.futures.ThreadPoolExecutor(o.jobs) as pool:
        for (name, _), results in zip(sources, pool.map(lambda s: work(s[1], o.bin), sources)):
            for who, what, wrong, why in results:
                if why is not None:
                    tally.skip(name, why)
                    reasons[what, short(why)] += 1
                    cells[who, what]["skipped"] += 1
                    if o.skips:
                        print(f"skipped {name}, {who}, {what}: {short(why)}")
                else:
                    tally.add(f"{name}, {who}, {what}", [wrong] if wrong else [])
                    cells[who, what]["failed" if wrong else "passed"] += 1
    print(f"\n{'engine':<12}{'':<12}{'passed':>8}{'failed':>8}{'skipped':>9}")
    for who in ENGINES:
        for what in WHAT:
            c = cells[who, what]
            print(f"{who:<12}{what:<12}{c['passed']:>8}{c['failed']:>8}{c['skipped']:>9}")
    print("\nreasons of skips, by what was skipped:")
    for (what, why), n in sorted(reasons.items(), key=lambda x: (x[0][0], -x[1])):
        print(f"{n:>4} {what}: {why}")
    sys.exit(tally.close())


main()
