"""Every real table as a kind file: the file is accepted, the table fits it, and a new table made from it is the same.

`kind from-table` on each table of a folder; what it could not take over it has to say, here as in the file. Then:
- `validate` accepts it;
- the table itself, on a copy, is `unversioned` work for the kind and nothing else: never `unknown_shape` or a refusal
  that its features do not explain, and `baseline --at 0` takes it over;
- a new table that `apply` creates from the file has the columns, nullability, comments, partitioning, description and
  properties of the old one, but for what was noted;
- the kind has nothing to add when it is compared with its own table; a column more in the table is one block, after
  which there is nothing to add again.
"""
import argparse, copy, json, os, re, subprocess, sys, tempfile
from common import NS, Tally, fresh, load_judge, refused, run, snapshot, untouched


def command(binary, *args):
    env = {k: v for k, v in os.environ.items() if not k.startswith("DELTA_MIGRATE")}
    p = subprocess.run([binary, *args], capture_output=True, text=True, timeout=300, env=env)
    return p.returncode, p.stdout, p.stderr


GONE = {"void"}


def plain(t):
    """A type without what kind files can't hold, and without what is a table's own; None where nothing is left."""
    if isinstance(t, str):
        return None if t in GONE or t.startswith(("interval", "geo")) else t.replace(" ", "")
    if t["type"] == "struct":
        fields = [g for g in map(field, t["fields"]) if g]
        return {"type": "struct", "fields": fields} if fields else None
    if t["type"] == "array":
        e = plain(t["elementType"])
        return e and {"type": "array", "elementType": e, "containsNull": t.get("containsNull", True)}
    k, v = plain(t["keyType"]), plain(t["valueType"])
    return k and v and {"type": "map", "keyType": k, "valueType": v, "valueContainsNull": t.get("valueContainsNull", True)}


def field(f):
    t = plain(f["type"])
    comment = (f.get("metadata") or {}).get("comment")
    return t and f["name"] and {"name": f["name"], "type": t, "nullable": f["nullable"], "comment": comment}


# Written by the creation itself.
BORN = ("delta.columnMapping.maxColumnId", NS + ".")


def compare(old, new, notes):
    """What a new table has otherwise than the old one and no note speaks of."""
    wrong = []
    a = [g for g in map(field, json.loads(old["schemaString"])["fields"]) if g]
    b = [g for g in map(field, json.loads(new["schemaString"])["fields"]) if g]
    if a != b:
        wrong.append(f"columns {json.dumps(b)[:250]} instead of {json.dumps(a)[:250]}")
    if old["partitionColumns"] != new["partitionColumns"] and not any("partitioning" in n for n in notes):
        wrong.append(f"partitioned by {new['partitionColumns']}, not {old['partitionColumns']}")
    if (old.get("description") or None) != (new.get("description") or None):
        wrong.append(f"description {new.get('description')!r}, not {old.get('description')!r}")
    noted = lambda key: any(n.startswith(f"property `{key}`") for n in notes)
    a = {k: v for k, v in (old.get("configuration") or {}).items() if not noted(k) and not k.startswith(BORN)}
    b = {k: v for k, v in (new.get("configuration") or {}).items() if not k.startswith(BORN)}
    if a != b:
        wrong.append(f"properties {b}, not {a}")
    for key in (old.get("configuration") or {}):
        if noted(key) and not re.match(r"delta\.|io\.|clustering", key):
            wrong.append(f"a property of somebody's own was left out: {key}")
    return wrong


def unsaid(old, notes):
    """Field metadata that the kind file can't hold and no note names."""
    text = "\n".join(notes)
    words = {"delta.generationExpression": "generation expression", "delta.invariants": "invariant",
             "CURRENT_DEFAULT": "default", "__CHAR_VARCHAR_TYPE_STRING": "of Spark's", "__COLLATIONS": "collation",
             "delta.typeChanges": "widened", "delta.identity.start": "identity",
             "delta.columnMapping.id": "ids and physical names"}
    return [f"{key} was left out without a word" for key, word in words.items()
            if f'"{key}"' in old["schemaString"] and word not in text]


def sweep(o, check, entry, tmp):
    src, out = os.path.join(o.tables, entry["name"]), os.path.join(tmp, "kind.toml")
    if os.path.exists(out):
        os.remove(out)
    start, wrong = snapshot(src), []
    code, stdout, err = command(o.bin, "kind", "from-table", src, "--name", "probe", "-o", out, "--format", "json")
    wrong += untouched(start, src, "kind from-table")
    if code:
        said = json.loads(stdout).get("error", {}).get("code")
        status = run_status(o, src)
        if os.path.exists(out):
            wrong.append("a kind file beside an error")
        # What does not open is refused by every command alike.
        if code != 1 or said != status or entry["expect"] == "migrate":
            wrong.append(f"exit {code}, {said}; status says {status}: {err[-300:]}")
        return wrong, None
    made = json.loads(stdout)
    notes = made["notes"]
    with open(out, encoding="utf-8") as f:
        text = f.read()
    code, again, err = command(o.bin, "kind", "from-table", src, "--name", "probe")
    if again != text or made["text"] != text:
        wrong.append("stdout and the file differ")
    if [n for n in err.splitlines() if n] != ["note: " + n for n in notes] or any("# " + n not in text for n in notes):
        wrong.append(f"the notes are not told as they stand in the file: {err[-300:]}")
    code, _, err = command(o.bin, "kind", "from-table", src, "--name", "probe", "-o", out)
    if code != 2:
        wrong.append(f"an existing file was replaced: exit {code}")
    code, stdout, err = command(o.bin, "validate", "--namespace", NS, "--kind-file", out, "--format", "json")
    if code or not json.loads(stdout)["ok"]:
        wrong.append(f"validate: exit {code}: {stdout[-300:]} {err[-300:]}")
    # The table fits.
    dst = fresh(src, os.path.join(tmp, "t"))
    _, protocol, meta = check.state(dst)
    wrong += unsaid(meta, notes)
    code, report, err = run(o.bin, "status", out, dst)
    error = (report.get("error") or {}).get("code")
    if error not in (None, "unsupported_feature") or (error and entry["expect"] == "migrate"):
        wrong.append(f"status: {json.dumps(report)[:300]} {err[-300:]}")
    code, report, err = run(o.bin, "baseline", out, dst, "--at", "0")
    if report.get("outcome") != "migrated" and error is None:
        wrong.append(f"baseline: {json.dumps(report)[:300]} {err[-300:]}")
    # A new table is the same.
    new = os.path.join(tmp, "new")
    fresh_gone(new)
    code, report, err = run(o.bin, "apply", out, new)
    if report.get("outcome") == "created":
        wrong += compare(meta, check.state(new)[2], notes)
    elif not any("no table can be created with it" in n for n in notes) and json.loads(meta["schemaString"])["fields"]:
        wrong.append(f"not created: {json.dumps(report)[:300]} {err[-300:]}")
    # There is nothing to add, and one column more is one block.
    code, stdout, err = command(o.bin, "kind", "add-migration", out, "--from-table", src, "--format", "json")
    got = json.loads(stdout)
    if code or got["version"] is not None or [n for n in got["notes"] if "of type void" not in n and "no word" not in n and "no field" not in n]:
        wrong.append(f"add-migration from the table itself: {got} {err[-300:]}")
    wrong += one_more(o, check, out, src, tmp)
    return wrong, notes


def one_more(o, check, kind, src, tmp):
    dst, wrong = fresh(src, os.path.join(tmp, "more")), []
    version, _, meta = check.state(dst)
    schema = json.loads(meta["schemaString"])
    schema["fields"].append({"name": "dm_more", "type": "string", "nullable": True, "metadata": {"comment": "it's \"new\""}})
    meta = {**meta, "schemaString": json.dumps(schema)}
    with open(os.path.join(dst, "_delta_log", f"{version + 1:020d}.json"), "w", encoding="utf-8") as f:
        f.write(json.dumps({"commitInfo": {"timestamp": 1, "operation": "TEST"}}) + "\n" + json.dumps({"metaData": meta}) + "\n")
    before = open(kind, "rb").read()
    code, _, err = command(o.bin, "kind", "add-migration", kind, "--from-table", dst)
    after = open(kind, "rb").read()
    if code or not after.startswith(before) or after.count(b"[[migrations]]") != 1 or b"dm_more = { type" not in after:
        wrong.append(f"add-migration: exit {code}, {after[len(before):][:300]!r} {err[-300:]}")
    code, stdout, err = command(o.bin, "kind", "add-migration", kind, "--from-table", dst)
    if code or not stdout.startswith("nothing to add") or open(kind, "rb").read() != after:
        wrong.append(f"add-migration again: exit {code}, {stdout[-300:]} {err[-300:]}")
    return wrong


def run_status(o, src):
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as f:
        f.write('kind = "probe"\n[[migrations]]\ndescription = "x"\nadd_columns = { dm_x = "string" }\n')
        f.flush()
        return (run(o.bin, "status", f.name, src)[1].get("error") or {}).get("code")


def fresh_gone(path):
    import shutil
    shutil.rmtree(path, ignore_errors=True)


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("tables", nargs="?", default=os.environ.get("DELTA_MIGRATE_TABLES", "../shared/tables"))
    ap.add_argument("--bin", required=True)
    ap.add_argument("--tools", required=True)
    ap.add_argument("--only")
    ap.add_argument("--notes", action="store_true", help="print every note")
    o = ap.parse_args()
    if not os.path.isdir(o.tables):
        print(f"SKIPPED: {o.tables} is not there, so no kind file was made from a real table")
        return
    check, tally, files, noted = load_judge(o.tools), Tally(), 0, 0
    with open(os.path.join(o.tables, "index.json"), encoding="utf-8") as f:
        entries = json.load(f)
    with tempfile.TemporaryDirectory() as tmp:
        for entry in entries:
            if o.only and o.only not in entry["name"]:
                continue
            wrong, notes = sweep(o, check, entry, tmp)
            tally.add(entry["name"], wrong)
            files += notes is not None
            noted += bool(notes)
            for note in notes or [] if o.notes else []:
                print(f"{entry['name']}: {note}")
    print(f"{files} kind files, {noted} of them with notes")
    sys.exit(tally.close())


main()
