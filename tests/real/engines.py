#!/usr/bin/env python3
"""Other engines as older releases: they know nothing of what a migration added, and go on.

usage: engines.py --bin BIN [--only SUBSTRING] [--engines deltalake,DuckDB,Sail,Polars] [--required]

For each kind of engine_workers.py a table is made at version 0, each engine appends to it, the command migrates it,
and then
  read       each engine reads all rows; those written before have NULL in all that is new
  append     each engine appends a row without the new columns, and without asking what the table has
  insert     the same in SQL (INSERT with a list of columns, or by name), where an engine has two ways
  fill       each engine appends a row with NULL for what it does not know, having asked
  at the end all stamps are as the migration left them, so is all other metadata, `status` says current, `history` is
             whole, and each engine reads all rows of all engines
  fate       UPDATE, DELETE, MERGE, overwrites, a REPLACE, a column of the engine's own, a writer that looked at the
             table before the migration: what becomes of the stamps (FATES below), and the command's way out
  loop       while an engine appends in a loop, and then all of them at once, the table goes through four migrations;
             every acknowledged row is there once, every refused one is not
What an engine can't do stands in LIMITS, with what it says. That is asserted too: a limit that is gone is a failure
of this script, so that the list stays true. Exit 1 on any failure.
"""
import argparse, glob, json, os, re, shutil, signal, subprocess, sys, tempfile, time
from common import NS, Tally, fresh, run, snapshot, untouched
from engine_workers import KINDS, NAMES, NEWEST, Worker, expected, start_sail, toml

SEEN_WITH = {"deltalake": "1.6.6", "DuckDB": "1.5.5", "Sail": "0.7.2", "Polars": "2.1.0"}

# (engine, operation, kinds or None for all, what it says). `write` is an append before the migration. None of these
# is about who migrated: the engines say the same of tables that engines made and widened (README.md has the one exception).
MAPPING = ("mapped", "mapped_nested")
NOT_IN_MERGE = "Schema evolution on column-mapped tables is not yet supported"
BY_COLUMNS = r"Attempted to access index \d+ within vector of size"
IMPLIED = "Feature 'checkConstraints' is not supported"
FLAT = ("plain", "partitioned", "described", "mapped", "change_feed", "deletion_vectors", "commit_times", "floor")
CHANGED = "Metadata changed since last commit"  # as it should be: it must look again
LIMITS = [
    ("deltalake", "read", ("map_value", "nested_polars"), "Cannot cast column"),
    ("deltalake", "append", ("map_value",), "Unsupported CAST from Map"),
    ("deltalake", "append", MAPPING, NOT_IN_MERGE),
    ("deltalake", "write", ("commit_times",), "Unsupported table features required: .InCommitTimestamp"),
    ("deltalake", "append", ("commit_times",), "Unsupported table features required: .InCommitTimestamp"),
    ("deltalake", "fill", ("commit_times",), "Unsupported table features required: .InCommitTimestamp"),
    ("deltalake", "held_append", None, CHANGED),
    ("deltalake", "held_own_column", None, CHANGED),
    ("DuckDB", "write", ("partitioned",), "DeltaInsert::Sink expects a single row"),  # rows of two partitions; one is fine
    ("DuckDB", "write", ("map_value",), "can't be cast to the destination type MAP"),
    ("DuckDB", "fill", ("map_value",), "can't be cast to the destination type MAP"),
    ("DuckDB", "write", MAPPING + ("change_feed",), IMPLIED),
    ("DuckDB", "fill", MAPPING + ("change_feed",), IMPLIED),
    ("DuckDB", "append", None, BY_COLUMNS),
    ("DuckDB", "insert", None, BY_COLUMNS),
    ("DuckDB", "own_column", None, "does not have a column with name"),
    ("DuckDB", "update", None, "Can only update base table"),
    ("DuckDB", "delete", None, "Can only delete from base table"),
    ("DuckDB", "merge", None, "Can only merge into base tables"),
    ("Sail", "append", ("nested", "mapped_nested", "map_value"), "Schema mismatch for field"),
    ("Sail", "insert", None, r"input schema for INSERT has \d+ fields, but table schema has"),
    ("Sail", "write", ("change_feed",), "Table features must be specified, please specify: ChangeDataFeed"),
    ("Sail", "append", ("change_feed",), "Table features must be specified, please specify: ChangeDataFeed"),
    ("Sail", "fill", ("change_feed",), "Table features must be specified, please specify: ChangeDataFeed"),
    ("Polars", "read", MAPPING, "requires reader version 2 .column mapping., which polars does not support"),
    ("Polars", "append", ("map_value",), "Unsupported CAST from Map"),
    ("Polars", "append", MAPPING, NOT_IN_MERGE),
    ("Polars", "write", ("commit_times",), "Unsupported table features required: .InCommitTimestamp"),
    ("Polars", "append", ("commit_times",), "Unsupported table features required: .InCommitTimestamp"),
    ("Polars", "fill", ("commit_times",), "Unsupported table features required: .InCommitTimestamp"),
]
FATES = {
    **{(name, operation): "current" for name in NAMES for operation in ("update", "delete", "merge", "overwrite", "own_column", "held_append", "held_own_column")},
    **{(name, "overwrite_schema"): "drifted" for name in NAMES if name != "DuckDB"},
    ("Sail", "replace_as"): "current", ("Sail", "replace"): "stamp_lost", ("deltalake", "replace"): "stamp_lost",
}
for gone in [("Sail", "held_append"), ("Sail", "held_own_column"), ("DuckDB", "held_own_column"), ("DuckDB", "overwrite"),
             ("Polars", "update"), ("Polars", "delete"), ("Polars", "merge"), ("Polars", "held_append"), ("Polars", "held_own_column")]:
    del FATES[gone]
# Who drops the comments of the columns that it writes when it adds one of its own. A stamp promises no comments.
DROPS_COMMENTS = {("Sail", "own_column")}


def limit(engine, operation, kind):
    found = [says for e, o, kinds, says in LIMITS if (e, o) == (engine, operation) and (kinds is None or kind in kinds)]
    return found[0] if found else None


# --- what the log says, read without the command --------------------------------------------------------------------

def state(table):
    """(metadata, protocol, {application: version}) by replaying the JSON commits."""
    meta, protocol, txns = None, None, {}
    for name in sorted(glob.glob(os.path.join(table, "_delta_log", "*.json"))):
        with open(name, encoding="utf-8") as f:
            for action in map(json.loads, filter(None, map(str.strip, f))):
                meta, protocol = action.get("metaData", meta), action.get("protocol", protocol)
                if "txn" in action:
                    txns[action["txn"]["appId"]] = action["txn"]["version"]
    return {**meta, "schemaString": json.loads(meta["schemaString"])}, protocol, txns


def versions(table):
    return len(glob.glob(os.path.join(table, "_delta_log", "*.json")))


def stamps(table, kind):
    meta, _, txns = state(table)
    return {k: v for k, v in meta["configuration"].items() if k.startswith(NS + ".")}, txns.get(f"{NS}/{kind}")


class Case:
    """A kind's file and table, and the rows that have to be in it."""

    def __init__(self, suite, kind, table):
        self.suite, self.kind, self.table, self.old, self.new = suite, kind, table, [], []
        self.file = os.path.join(suite.tmp, f"{kind}.toml")
        with open(self.file, "w", encoding="utf-8") as f:
            f.write(toml(kind))

    def command(self, name, *more):
        return run(self.suite.bin, name, self.file, self.table, *more)

    def wants(self, outcome, name, *more):
        """Complaints unless the command ends with this outcome, or refuses with this code."""
        code, report, err = self.command(name, *more)
        seen = (report.get("error") or {}).get("code") or report.get("outcome")
        return [] if seen == outcome and code == (0 if "error" not in report else 1) else [f"{name} {more}: exit {code}, {json.dumps(report)[:400]} {err[-300:]}"]

    def history(self, hows):
        """Complaints unless the record in the table and the log's entries are these, and nobody else's."""
        args = [self.suite.bin, "history", "--format", "json", "--namespace", NS, "--kind-file", self.file, self.table]
        said = json.loads(subprocess.run(args, capture_output=True, text=True, timeout=60).stdout or "{}")
        wrong = []
        for part in ("record", "log"):
            seen = sorted((e["how"], int(e["from"]), int(e["to"])) for e in said.get(part, []))
            if seen != sorted(hows):
                wrong.append(f"history, {part}: {seen}, wanted {sorted(hows)}")
        return wrong

    def reads(self, want=None, engines=None):
        """Complaints of any engine that can read this kind and does not read just these rows."""
        want, wrong = want or expected(self.kind, self.old, self.new), []
        for name in engines or self.suite.workers:
            if not limit(name, "read", self.kind):
                wrong += differ(name, self.suite.ask(name, "read", self.table), want)
        return wrong

    def put(self, name, operation, ids, age="old"):
        """An engine writes; what it is known not to do must fail as it is known to, and leave the table alone."""
        says, before = limit(name, operation, self.kind), versions(self.table)
        said = self.suite.ask(name, operation if operation != "fill" or name == "DuckDB" and self.kind in FLAT else "write",
                              self.table, [self.kind, ids, "filled" if operation == "fill" and not (name == "DuckDB" and self.kind in FLAT) else age])
        wrong = self.suite.judge(f"{self.kind}, {name}, {operation}", said, says)
        if "error" not in said:
            (self.new if age == "new" else self.old).extend(ids)
        elif versions(self.table) != before:
            wrong.append("it failed and yet there is a commit")
        return said, wrong


def differ(name, said, want):
    if "error" in said:
        return [f"{name} can't read it: {said['error'][:400]}"]
    if said["ok"] == want:
        return []
    lost, more = [r for r in want if r not in said["ok"]], [r for r in said["ok"] if r not in want]
    return [f"{name} reads {len(said['ok'])} rows instead of {len(want)}; wanted {json.dumps(lost)[:300]}; has {json.dumps(more)[:300]}"]


class Suite:
    def __init__(self, o, tmp):
        self.bin, self.tmp, self.tally, self.only = o.bin, tmp, Tally(), o.only
        self.workers, self.sail, self.limits = {}, None, {}
        for name in o.engines.split(","):
            env = {}
            try:
                if name == "Sail":
                    self.sail, port = start_sail(open(os.path.join(tmp, "sail.log"), "w"))
                    env["SAIL_PORT"] = str(port)
                worker = Worker(name, env)
                version = worker.ask("version")
            except (OSError, RuntimeError) as e:
                version = {"error": str(e)}
            if "error" in version:
                if o.required:
                    self.tally.add(name, [version["error"]])
                else:
                    self.tally.skip(name, version["error"])
                    print(f"skipped {name}: {version['error']}")
                continue
            self.workers[name] = worker
            note = "" if version["ok"] == SEEN_WITH[name] else f" (what it can't do was listed for {SEEN_WITH[name]})"
            print(f"{name} {version['ok']}{note}", flush=True)

    def ask(self, name, *request):
        return self.workers[name].ask(*request)

    def judge(self, name, said, says):
        """Complaints about an answer, where the engine is known to say `says` (None: to do it)."""
        error = said.get("error")
        if says and error is None:
            return [f"it can do that now: take it out of LIMITS ({says})"]
        if says and not re.search(says, error):
            return [f"it says something else than {says!r}: {error[:300]}"]
        if says:
            self.limits[name] = says
        return [] if says or error is None else [error[:500]]

    def add(self, name, wrong):
        if not wrong:
            print(f"{'cannot' if name in self.limits else 'ok':<8}{name}{': ' + self.limits[name] if name in self.limits else ''}", flush=True)
        self.tally.add(name, wrong)

    def close(self):
        for w in self.workers.values():
            w.close()
        if self.sail is not None:
            self.sail.kill()
            self.sail.wait()

    # --- the cases ---

    def wanted(self, name):
        return not self.only or self.only in name

    def writers(self, kind):
        """Polars' lists are read by deltalake no more once a field is added in them, so its rows stand in a kind of their own."""
        return [n for n in self.workers if (n == "Polars") == (kind == "nested_polars") or "nested" not in kind]

    def migrated(self, kind, table, hands=None):
        """A table with rows 1…, migrated, with rows 101… of the new release: (case, complaints)."""
        case, n = Case(self, kind, table), 0
        wrong = case.wants("created", "apply", "--target", "0")
        for name in hands or self.writers(kind):
            n += 3
            said, bad = case.put(name, "write", [n - 2, n - 1, n])
            self.add(f"{kind}, {name}, write", bad)
        wrong += case.wants("migrated", "apply")
        for name in self.workers:
            if "error" not in self.ask(name, "write", table, [kind, [101, 102], "new"]):
                case.new += [101, 102]
                break
        else:
            wrong.append("no engine could write new rows")
        return case, wrong

    def mixed(self, kind):
        case, wrong = self.migrated(kind, os.path.join(self.tmp, kind))
        self.add(f"{kind}, migrated", wrong + case.wants("current", "status"))
        before, rows = (state(case.table), stamps(case.table, kind)), expected(kind, case.old, case.new)
        self.add(f"{kind}, stamps are there", [] if before[1][0].get(f"{NS}.schema_version") == str(NEWEST) == str(before[1][1])
                 and len(before[1][0]) == (5 if kind == "floor" else 4) else [f"{before[1]}"])
        for name in self.workers:
            said = self.ask(name, "read", case.table)
            says = limit(name, "read", kind)
            self.add(f"{kind}, {name}, read", self.judge(f"{kind}, {name}, read", said, says) if says else differ(name, said, rows))
        for i, name in enumerate(self.writers(kind)):
            for j, operation in enumerate(("append", "fill") + (("insert",) if name in ("DuckDB", "Sail") else ())):
                said, bad = case.put(name, operation, [1000 + 10 * i + j])
                if "error" not in said:
                    bad += case.wants("current", "status")
                    now = state(case.table)
                    bad += [f"{what} changed: {a} to {b}" for what, a, b in zip(("metadata", "protocol", "stamp's txn"), before[0], now) if a != b]
                self.add(f"{kind}, {name}, {operation}", bad)
        self.add(f"{kind}, history", case.history([("created", 0, 0), ("migrated", 0, NEWEST)]))
        for name in self.workers:
            if not limit(name, "read", kind):
                self.add(f"{kind}, {name}, all {len(case.old) + len(case.new)} rows", case.reads(engines=[name]))
        self.add(f"{kind}, a second apply writes nothing", self.still(case, "current", "apply"))

    def still(self, case, outcome, *command):
        before = snapshot(case.table)
        return case.wants(outcome, *command) + untouched(before, case.table, command[0])

    def fates(self, kind, names, operations):
        start = os.path.join(self.tmp, f"{kind}-start")
        case, wrong = self.migrated(kind, start, ["Sail"] if "Sail" in self.workers else None)
        self.add(f"{kind}, table for the fates", wrong)
        rows = expected(kind, case.old, case.new)
        by_id = {r["id"]: r for r in rows}
        for name in names:
            for operation in operations:
                if (name, operation) not in FATES or operation.startswith("held"):
                    continue
                fate = f"{kind}, {name}, {operation}"
                # A folder of its own: Sail remembers tables by their path, and mixes them up with later ones there.
                case.table = fresh(start, os.path.join(self.tmp, fate.replace(", ", "-")))
                before = state(case.table)[0]
                more = expected(kind, [41])
                if operation in ("update", "delete"):
                    said = self.ask(name, operation, case.table)
                    want = [{**r, "name": "changed"} if r["id"] == 1 and operation == "update" else r for r in rows if r["id"] != 2 or operation != "delete"]
                elif operation == "merge":
                    said, want = self.ask(name, operation, case.table, [kind, [1, 41, 101]]), rows + more
                elif operation == "own_column":
                    said, want = self.ask(name, operation, case.table, [kind, [41], "own"]), [{**r, "surprise": None} for r in rows] + [{**more[0], "surprise": 41}]
                else:
                    said, want = self.ask(name, operation, case.table, [kind, [41]]), more
                says, want = limit(name, operation, kind), sorted(want, key=lambda r: r["id"])
                wrong = self.judge(fate, said, says)
                if "error" in said:
                    self.add(fate, wrong + (case.wants("current", "status") if says else []))
                    continue
                ends = FATES[name, operation]
                wrong += case.wants(ends, "status")
                hows = [("created", 0, 0), ("migrated", 0, NEWEST)]
                if ends == "current":
                    wrong += [] if stamps(case.table, kind) == stamps(start, kind) else [f"the stamps changed: {stamps(case.table, kind)}"]
                    wrong += self.lost(before, state(case.table)[0], KINDS[kind][1] if (name, operation) in DROPS_COMMENTS else ())
                else:
                    wrong += self.still(case, ends, "apply")
                if ends == "drifted":
                    wrong += case.wants("repaired", "repair", "--readd-columns", "--why", f"{operation} by {name}")
                    hows += [("repaired", NEWEST, NEWEST)]
                elif ends == "stamp_lost":
                    wrong += case.wants("repaired", "repair", "--restamp", "0", "--why", f"{operation} by {name}") + case.wants("migrated", "apply")
                wrong += case.wants("current", "status") + case.reads(want, [n for n in self.workers if n not in (name, "Polars")] or [name])
                self.add(f"{fate}: {ends}", wrong)

    def lost(self, was, now, bare):
        """What an engine's own metadata lost of the table's: anything but new fields, and the comments of the columns `bare`."""
        counts = lambda m: {**m, "configuration": {k: v for k, v in m["configuration"].items() if k != "delta.columnMapping.maxColumnId"}}
        was, now = counts(was), counts(now)
        wrong = [f"{k}: {was.get(k)!r} to {now.get(k)!r}" for k in sorted(set(was) | set(now)) if k != "schemaString" and (was.get(k) or None) != (now.get(k) or None)]
        fields = {f["name"]: f for f in now["schemaString"]["fields"]}
        for field in was["schemaString"]["fields"]:
            if field["name"] in bare:
                field = {**field, "metadata": {k: v for k, v in field["metadata"].items() if k != "comment"}}
            if fields.get(field["name"]) != field:
                wrong.append(f"field {field} to {fields.get(field['name'])}; if it keeps comments now, take it out of DROPS_COMMENTS")
        return wrong

    def in_flight(self, name):
        """A writer that looked at the table before the migration, and appends afterwards as it knew it."""
        for operation in ("held_append", "held_own_column"):
            if (name, operation) not in FATES:
                continue
            case = Case(self, "plain", os.path.join(self.tmp, f"held-{name}-{operation}"))
            wrong = case.wants("created", "apply", "--target", "0") + case.put(name, "write", [1])[1]
            wrong += [f"hold: {said}" for said in [self.ask(name, "hold", case.table)] if "error" in said]
            wrong += case.wants("migrated", "apply")
            says = limit(name, operation, "plain")
            said = self.ask(name, operation, case.table, ["plain", [2], "own" if "own" in operation else "old"])
            wrong += self.judge(f"plain, {name}, {operation}", said, says)
            if "error" not in said:
                case.old.append(2)
            self.add(f"plain, {name}, {operation}", wrong + case.wants("current", "status") + case.reads())

    def by_position(self):
        """DuckDB's INSERT takes its list of columns for the table's order: strings that stand otherwise are swapped."""
        case, wrong = self.migrated("plain", os.path.join(self.tmp, "by-position"), ["deltalake"])
        said = self.ask("DuckDB", "reversed", case.table, ["plain", [41], "new"])
        row = expected("plain", [], [41])[0]
        row["extra_2"], row["extra_4"] = row["extra_4"], row["extra_2"]
        wrong += [said["error"]] if "error" in said else case.wants("current", "status")
        self.add("plain, DuckDB, columns named in another order are swapped", wrong + case.reads(expected("plain", case.old, case.new)[:-2] + sorted(
            [row] + expected("plain", [], case.new), key=lambda r: r["id"])))

    def loops(self, kind, names):
        """The engines append in loops while the table goes through its migrations one by one."""
        case = Case(self, kind, os.path.join(self.tmp, "-".join(["loop", kind, *names])))
        stop, wrong = case.table + ".stop", case.wants("created", "apply", "--target", "0")
        for i, name in enumerate(names):
            self.workers[name].send("loop", "fill" if name == "DuckDB" else "append", case.table, kind, 10_000 * (i + 1), stop, 2)
        least = versions(case.table)
        for n in range(1, NEWEST + 1):
            least, until = versions(case.table) + 2 * len(names), time.time() + 20
            while versions(case.table) < least and time.time() < until:
                time.sleep(0.01)
            wrong += case.wants("migrated", "apply", "--target", str(n))
        with open(stop, "w"):
            pass
        told = []
        for name in names:
            said = self.workers[name].answer().get("ok") or {"acked": [], "refused": [["", "the loop died"]]}
            case.old += said["acked"]
            told.append(f"{name} {len(said['acked'])} rows" + (f" ({len(said['refused'])} refused)" if said["refused"] else ""))
            if len(said["acked"]) < 2:  # DuckDB never tries again by itself, and loses most races
                wrong.append(f"{name} appended only {len(said['acked'])}: {said['refused'][-1:]}")
            self.refusals = getattr(self, "refusals", []) + [(name, r[1]) for r in said["refused"]]
        wrong += case.wants("current", "status") + case.reads()
        wrong += case.history([("created", 0, 0)] + [("migrated", n - 1, n) for n in range(1, NEWEST + 1)])
        self.add(f"{kind}, loop: {', '.join(told)}", wrong)


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--bin", required=True)
    ap.add_argument("--only", help="only kinds whose name has this in it")
    ap.add_argument("--engines", default=",".join(NAMES))
    ap.add_argument("--required", action="store_true", help="an engine that is not there is a failure")
    o = ap.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with tempfile.TemporaryDirectory() as tmp:
        suite = Suite(o, tmp)
        try:
            for kind in filter(suite.wanted, KINDS):
                suite.mixed(kind)
            operations = sorted({operation for _, operation in FATES})
            for kind in filter(suite.wanted, ("plain", "partitioned", "mapped", "described")):
                suite.fates(kind, [n for n in suite.workers if kind == "plain" or n == "Sail"], operations)
            if suite.wanted("plain"):
                for name in suite.workers:
                    suite.in_flight(name)
                    suite.loops("plain", [name])
                suite.loops("plain", list(suite.workers))
                if {"DuckDB", "deltalake"} <= set(suite.workers):
                    suite.by_position()
        finally:
            suite.close()
        for name, why in sorted(set(getattr(suite, "refusals", []))):
            print(f"refused in a loop, {name}: {why[:150]}")
        sys.exit(suite.tally.close())


if __name__ == "__main__":
    main()
