#!/usr/bin/env python3
"""Take a copy of every table in a folder of real tables through every metadata step and judge it from its bytes.

usage: sweep_steps.py TABLES_DIR --bin BIN --tools DIR [--only SUBSTRING] [--strict] [--keep DIR]

TABLES_DIR/index.json says for each table whether a metadata-only commit is right (`migrate`), must be refused
(`refuse`), or may be either. DIR holds check_commit.py. The kind file of each table is made from the table's own
schema: a chain of four migrations with relaxed nullability (columns, nested fields, array elements, map values),
columns added at the top and inside structs (directly, in an array, in a map), comments, description, properties
set and unset, a feature enabled, and a raised floor. Beside check_commit's verdict, the schema is compared with
the one expected here, key by key in order. A second run, `status --check` and `plan` must write nothing.
--strict first gives each copy one more commit that makes every column, nested field, element and value required,
writes comments and unknown keys into the fields' metadata and sets properties: what the real tables rarely have.
--keep DIR leaves the kind file and the table (before, after) of each failure there. Exit 1 on any failure.
"""
import argparse, copy, json, os, shutil, sys, tempfile
from common import NS, Tally, base_columns, dotted, fresh, load_judge, parts, q, refused, run, snapshot, type_text, untouched

NASTY = "a 'quoted' \"text\" \\ with\nlines,\ttabs, <&>, ünïcödé 漢字 😀 \u2028"
KNOWN = {"delta.logRetentionDuration": "interval 31 days", "delta.checkpointInterval": "17",
         "delta.deletedFileRetentionDuration": "interval 8 days", "delta.dataSkippingNumIndexedCols": "5"}
MAPPING = ("delta.columnMapping.id", "delta.columnMapping.physicalName", "delta.columnMapping.nested.ids")
prim = lambda name, t: {"name": name, "type": t, "nullable": True, "metadata": {}}
LIST = {"type": "array", "elementType": {"type": "struct", "fields": [
    prim("a", "long"), prim("b", {"type": "map", "keyType": "string", "valueType": "date", "valueContainsNull": True})]},
    "containsNull": True}


class Case:
    """A kind file for one table, and what must become of the table's metadata."""

    def __init__(self, protocol, meta):
        self.schema = json.loads(meta["schemaString"])
        self.config = dict(meta.get("configuration") or {})
        self.relaxed, self.added, self.comments, self.may, self.flags = [], {}, {}, ["description"], []
        v1 = self.config.get("delta.enableIcebergCompatV1", "").lower() == "true"
        usable = {f["name"] for f in self.schema["fields"] if type_text(f["type"])}
        below = [x for x in parts(self.schema) if x[0][0] in usable and self.named(x[0])]
        # Every required part, but nothing inside a map's key.
        flag = {"field": "nullable", "element": "containsNull", "value": "valueContainsNull"}
        for path, what, holder, in_key in below:
            if not in_key and holder.get(flag[what]) is False:
                self.relaxed.append(path)
                holder[flag[what]] = True
                self.may.append(f"nullable:{'.'.join(path)}")
                if what != "field":
                    self.flags.append(f"{flag[what]} of {'.'.join(path[:-1])} changed")
        old = [x[0] for x in below if x[1] == "field"]
        # Columns: at the top, and in the first struct of each sort.
        self.add((), prim("dm_string", "string"), "said 'when' it was added")
        for name, t in [("dm_long", "long"), ("dm_decimal", "decimal(38,18)"),
                        ("dm_struct", {"type": "struct", "fields": [prim("x", "integer"), prim("Y z".replace(" ", "_"), "binary")]})]:
            self.add((), prim(name, t))
        if not v1:
            self.add((), prim("dm_list", LIST))
        first = {}
        for path, what, holder, in_key in below:
            t = holder["type"] if what == "field" else holder["elementType" if what == "element" else "valueType"]
            if not in_key and isinstance(t, dict) and t["type"] == "struct":
                sort = what if what != "field" else "element" if "element" in path else "value" if "value" in path else "struct"
                first.setdefault(sort, (path, t))
        for sort, (path, t) in first.items():
            self.add(path, prim(f"dm_in_{sort}", "string"), None, t)
        self.nested = sorted(first)
        self.add((), prim("dm_ntz", "timestamp_ntz"), late=True)
        # Comments: every second old field, and added ones.
        for n, path in enumerate(old):
            if n % 2 == 0:
                self.comment(path, f"{NASTY} {n}")
                self.may.append(f"comment:{'.'.join(path)}")
        self.comment(("dm_string",), "and 'what' it is, later")
        self.comment(("dm_struct", "x"), "inside an added column")
        self.properties()
        self.protocol = protocol

    def named(self, path):
        return all(path) and not any("\n" in s for s in path)

    def add(self, at, field, comment=None, holder=None, late=False):
        field = copy.deepcopy(field)
        if comment:
            field["metadata"]["comment"] = comment
        (holder or self.schema)["fields"].append(field)
        self.added[at + (field["name"],)] = (type_text(field["type"]), comment, late)

    def comment(self, path, text):
        t = self.schema
        for i, s in enumerate(path):
            field = None
            if t["type"] == "struct":
                field = next(f for f in t["fields"] if f["name"] == s)
                t = field["type"]
            else:
                t = t[{"element": "elementType", "key": "keyType", "value": "valueType"}[s]]
        if not isinstance(field.get("metadata"), dict):
            field["metadata"] = {}
        field["metadata"]["comment"] = text
        self.comments[path] = text

    def properties(self):
        custom = sorted(k for k in self.config if not k.lower().startswith("delta."))
        known = [k for k in KNOWN if k in self.config]
        self.set = {"dm.note": NASTY, "delta.logRetentionDuration": KNOWN["delta.logRetentionDuration"], "dm.empty": ""}
        self.set.update({k: KNOWN[k] for k in known})
        self.set.update({k: "changed: " + NASTY for k in custom[:1]})
        self.unset = custom[-1:] + ["dm.not.there"]
        self.config.update(self.set)
        for k in self.unset:
            self.config.pop(k, None)
        self.may += [f"property:{k}" for k in [*self.set, *self.unset]]

    def kind(self, before):
        out = [f'kind = "probe"\nadopt = "from_zero"\n{base_columns(json.loads(before["schemaString"])["fields"])}']
        relax = "[" + ", ".join(q(dotted(p)) for p in self.relaxed) + "]"
        columns = lambda late: "".join(
            f"{q(dotted(p))} = " + (f"{{ type = {q(t)}, comment = {q(c)} }}\n" if c else f"{q(t)}\n")
            for p, (t, c, l) in self.added.items() if l == late)
        pairs = lambda d: "".join(f"{q(k)} = {q(v)}\n" for k, v in d.items())
        out.append('[[migrations]]\ndescription = "columns"\n' + (f"relax_nullability = {relax}\n" if self.relaxed else "")
                   + "[migrations.add_columns]\n" + columns(False))
        out.append('[[migrations]]\ndescription = "texts"\ntable_description = ' + q(NASTY) + "\n[migrations.comments]\n"
                   + pairs({dotted(k): v for k, v in self.comments.items()}) + "[migrations.set_properties]\n"
                   + pairs({**self.set, "dm.passing": "for one migration"}))
        out.append('[[migrations]]\ndescription = "floor"\nraises_min_version = true\n')
        out.append('[[migrations]]\ndescription = "clean up"\nenable_features = ["timestampNtz", "domainMetadata"]\nunset_properties = ['
                   + ", ".join(map(q, ["dm.passing", *self.unset])) + "]\n[migrations.add_columns]\n" + columns(True))
        return "\n".join(out)

    def verdict(self, check, before, after, old):
        """What is wrong with the table after the migration."""
        added = [".".join(p) for p in self.added]
        wrong = [w for w in check.judge(before, after, NS, "migrated", 4, added, self.may) if w not in self.flags]
        _, protocol, meta = check.state(after)
        schema = json.loads(meta["schemaString"])
        mine = {".".join(p): None for p in self.added}
        for path, field in check.walk(schema):
            if any(".".join(path[:n]) in mine for n in range(1, len(path) + 1)):
                for key in MAPPING:
                    field.get("metadata", {}).pop(key, None)
        if json.dumps(schema) != json.dumps(self.schema):
            a, b = json.dumps(schema), json.dumps(self.schema)
            at = next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
            wrong.append(f"schema differs from the expected one: …{a[max(0, at - 60):at + 100]}… instead of …{b[max(0, at - 60):at + 100]}…")
        config = {k: v for k, v in (meta.get("configuration") or {}).items() if not k.startswith(NS + ".")}
        wrong += [f"property {k}: {config.get(k)!r} instead of {self.config.get(k)!r}" for k in sorted(set(config) | set(self.config))
                  if config.get(k) != self.config.get(k) and k != "delta.columnMapping.maxColumnId"]
        if meta.get("description") != NASTY:
            wrong.append(f"description is {meta.get('description')!r}")
        stamps = {k: (meta.get("configuration") or {}).get(f"{NS}.{k}") for k in ("min_version", "kind")}
        if stamps != {"min_version": "3", "kind": "probe"}:
            wrong.append(f"stamps are {stamps}")
        want = check.implied(old) | {"timestampNtz", "domainMetadata"}
        if set(protocol.get("writerFeatures") or []) != want or protocol["minWriterVersion"] != 7:
            wrong.append(f"writer features are {protocol}, wanted {sorted(want)}")
        readers = set(old.get("readerFeatures") or []) | ({"columnMapping"} if old["minReaderVersion"] == 2 else set()) | {"timestampNtz"}
        if set(protocol.get("readerFeatures") or []) != readers or protocol["minReaderVersion"] != 3:
            wrong.append(f"reader features are {protocol}, wanted {sorted(readers)}")
        wrong += duties(check, before, after, protocol)
        for key in ("readerFeatures", "writerFeatures"):
            if len(protocol.get(key) or []) != len(set(protocol.get(key) or [])):
                wrong.append(f"{key} holds a name twice")
        return wrong


def duties(check, before, after, protocol):
    """In-commit timestamp, row-tracking tag and checksum file, which check_commit looks at little or not at all."""
    wrong, version, meta = [], check.state(after)[0], check.state(after)[2]
    log = lambda root, v, end: os.path.join(root, "_delta_log", f"{v:020d}.{end}")
    infos = []
    for v in (version - 1, version):
        acts = check.actions(log(after, v, "json")) if os.path.exists(log(after, v, "json")) else []
        infos.append(next((a["commitInfo"] for a in acts if "commitInfo" in a), {}))
    if (meta["configuration"].get("delta.enableInCommitTimestamps") == "true"
            and not infos[1].get("inCommitTimestamp", 0) > infos[0].get("inCommitTimestamp", 0)):
        wrong.append("the in-commit timestamp is not above the one before")
    if "rowTracking" in check.features(protocol) and (infos[1].get("tags") or {}).get("delta.rowTracking.preserved") != "true":
        wrong.append("commitInfo has no tag delta.rowTracking.preserved")
    sums = []
    for root, v in ((before, version - 1), (after, version)):
        try:
            with open(log(root, v, "crc"), encoding="utf-8") as f:
                sums.append(json.load(f))
        except (OSError, ValueError):
            sums.append(None)
    if sums[1] and not sums[0]:
        wrong.append("a checksum file was made up")
    elif sums[1]:
        for k in ("numFiles", "tableSizeBytes", "numMetadata", "numProtocol", "allFiles", "domainMetadata", "fileSizeHistogram"):
            if sums[0].get(k) != sums[1].get(k):
                wrong.append(f"checksum: {k} is {sums[1].get(k)!r}, was {sums[0].get(k)!r}")
        if sums[1]["metadata"].get("schemaString") != meta["schemaString"] or sums[1]["metadata"].get("configuration") != meta["configuration"]:
            wrong.append("checksum: the metadata is not the new one")
        if check.features(sums[1]["protocol"]) != check.features(protocol):
            wrong.append("checksum: the protocol is not the new one")
    return wrong


def strict(check, root):
    """One more commit: everything required, unknown keys, properties of the table's own."""
    version, protocol, meta = check.state(root)
    schema = json.loads(meta["schemaString"])
    for n, (path, what, holder, in_key) in enumerate(parts(schema)):
        holder[{"field": "nullable", "element": "containsNull", "value": "valueContainsNull"}[what]] = False
        if what == "field":
            holder.setdefault("metadata", {}).update({"x.unknown": {"deep": [1, None, 1.50]}, **({"comment": "old 'one'"} if n % 3 else {})})
            holder["x-unknown"] = "kept \u2028 \\"
    config = {"a.first": "1", "zz.last": NASTY, "Z.upper": "", **(meta.get("configuration") or {}), "delta.logRetentionDuration": "interval 3 days"}
    meta = {**meta, "schemaString": json.dumps(schema, separators=(", ", ":")), "configuration": config, "x-unknown": {"of": ["metaData"]}}
    stamp = {"inCommitTimestamp": 4102444800000} if config.get("delta.enableInCommitTimestamps") == "true" else {}
    lines = [{"commitInfo": {"timestamp": 1, "operation": "TEST", **stamp}}, {"metaData": meta}]
    with open(os.path.join(root, "_delta_log", f"{version + 1:020d}.json"), "w", encoding="utf-8") as f:
        f.write("".join(json.dumps(x, ensure_ascii=False) + "\n" for x in lines))


PLAIN = 'kind = "probe"\n[[migrations]]\ndescription = "one column"\n[migrations.add_columns]\ndm_string = "string"\n'


def sweep(o, check, entry, tmp):
    src = os.path.join(o.tables, entry["name"])
    if o.strict and entry["expect"] == "migrate":
        src = fresh(src, os.path.join(tmp, "strict"))
        strict(check, src)
    dst = fresh(src, os.path.join(tmp, "t"))
    start, wrong, kind = snapshot(dst), [], os.path.join(tmp, "probe.toml")
    try:
        _, protocol, meta = check.state(src)
        case = Case(protocol, meta) if protocol and meta else None
    except Exception:
        if entry["expect"] == "migrate":
            raise
        case = None
    with open(kind, "w", encoding="utf-8") as f:
        f.write(case.kind(meta) if case else PLAIN)
    code, report, err = run(o.bin, "status", kind, dst, "--check")
    if entry["expect"] == "migrate" and code != 3:
        wrong.append(f"status --check before: exit {code}: {json.dumps(report.get('error'))} {err[-300:]}")
    wrong += untouched(start, dst, "status")
    run(o.bin, "plan", kind, dst)
    wrong += untouched(start, dst, "plan")
    code, report, err = run(o.bin, "apply", kind, dst)
    if report.get("outcome") == "migrated":
        if entry["expect"] == "refuse":
            wrong.append("was migrated, must be refused")
        if code != 0:
            wrong.append(f"exit {code} after success")
        wrong += case.verdict(check, src, dst, protocol) if case else check.judge(src, dst, NS, "migrated", 1, ["dm_string"])
        done = snapshot(dst)
        for command, more in (("apply", ()), ("status", ("--check",)), ("plan", ())):
            code, report, err = run(o.bin, command, kind, dst, *more)
            if code != 0 or report.get("outcome") != "current":
                wrong.append(f"{command} afterwards: exit {code}, {json.dumps(report)[:200]} {err[-200:]}")
            wrong += untouched(done, dst, command)
    else:
        if entry["expect"] == "migrate":
            wrong.append(f"not migrated: exit {code} {json.dumps(report.get('error'))[:400]} {err[-400:]}")
        wrong += refused(code, report, err) + untouched(start, dst, "the refusal")
    if wrong and o.keep:
        place = os.path.join(o.keep, entry["name"])
        shutil.rmtree(place, ignore_errors=True)
        os.makedirs(place)
        shutil.copy(kind, place)
        shutil.copytree(src, os.path.join(place, "before"))
        shutil.copytree(dst, os.path.join(place, "after"))
    return wrong, case


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("tables")
    ap.add_argument("--bin", required=True)
    ap.add_argument("--tools", required=True)
    ap.add_argument("--only")
    ap.add_argument("--strict", action="store_true")
    ap.add_argument("--keep")
    o = ap.parse_args()
    check, tally, used = load_judge(o.tools), Tally(), {}
    with open(os.path.join(o.tables, "index.json"), encoding="utf-8") as f:
        entries = json.load(f)
    with tempfile.TemporaryDirectory() as tmp:
        for entry in entries:
            if o.only and o.only not in entry["name"]:
                continue
            wrong, case = sweep(o, check, entry, tmp)
            tally.add(entry["name"], wrong)
            for what in (case.nested + ["relaxed column"] * any(len(p) == 1 for p in case.relaxed)
                         + ["relaxed nested field"] * any(len(p) > 1 and p[-1] not in ("element", "value") for p in case.relaxed)
                         + ["relaxed element or value"] * bool(case.flags)
                         + ["own property"] * (len(case.unset) > 1) if case else []):
                used[what] = used.get(what, 0) + 1
    print("tables with: " + ", ".join(f"{k} {v}" for k, v in sorted(used.items())))
    sys.exit(tally.close())


main()
