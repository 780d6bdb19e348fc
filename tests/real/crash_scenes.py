"""The work that crashes.py interrupts: tables as deltalake and the command left them, what is run on them, what has to come of it."""
import glob, json, os, re, shutil, subprocess
import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from common import DELTALAKE, DUCKDB, NS, engine, snapshot, untouched
from crash_trace import environment

BASE = """kind = "facts"
[columns]
id = "long"
name = "string"
payload = "struct<lsn: long>"
"""
CHAIN = [
    '[migrations.add_columns]\ndm_one = "string"\n',
    '[migrations.comments]\nid = "who"\n[migrations.set_properties]\n"delta.logRetentionDuration" = "interval 90 days"\n',
    '[migrations.add_columns]\ndm_three = "array<struct<a: long>>"\n"payload.dm_rows" = "long"\n',
    'raises_min_version = true\n[migrations.add_columns]\ndm_four = "decimal(20,2)"\n',
    'table_description = "facts of all streams"\n[migrations.add_columns]\ndm_five = "date"\n',
]
MAY = ["comment:id", "property:delta.logRetentionDuration", "description"]
LEFT_OVER = re.compile(r"_delta_log/\d{20}\.(json|crc)#\d+")


def kind(version, head=""):
    """The kind as a release knew it that had this many migrations."""
    return head + BASE + "".join(f'[[migrations]]\ndescription = "{n}"\n{text}' for n, text in enumerate(CHAIN[:version], 1))


class Scene:
    """One piece of work. `prepare(scene)` makes the table in its folder; `args` are the command's."""

    def __init__(self, name, prepare, outcome, to=5, args=("apply",), chain=None, place="t", newest=5, rows=True, looks=False):
        self.name, self.prepare, self.outcome, self.to, self.args = name, prepare, outcome, to, list(args)
        self.chain, self.place, self.rows = chain or kind(newest), place, rows
        self.looks = looks   # whether errors are the answers of calls that only look, too

    def build(self, binary, folder):
        """Makes the template, runs the work once without faults, and keeps what came of it to compare with."""
        self.binary, self.template = binary, os.path.join(folder, self.name)
        os.makedirs(self.template)
        self.prepare(self)
        self.write_kind(self.chain)
        self.before = os.path.join(self.template, self.place)
        self.exists = os.path.isdir(self.before)
        self.version = 1 + max(log_versions(self.before), default=-1)
        if "--plan" in self.args:
            self.call("plan", "-o", "plan.json", self.place)
        self.read_before = engine(DELTALAKE, self.before) if self.exists else {}
        if "error" in self.read_before:
            raise RuntimeError(f"{self.name}: deltalake can't read what was prepared: {self.read_before}")
        reference = self.copy(os.path.join(folder, self.name + "-reference"))
        p = subprocess.run(self.command(), cwd=reference, capture_output=True, text=True, env=environment())
        self.reference = self.entry(reference)
        self.reference_checksum = self.checksum(reference)
        table = os.path.join(reference, self.place)
        self.read_after = engine(DELTALAKE, table)
        report = report_of(p.stdout)
        if p.returncode or report.get("outcome") != self.outcome or self.reference is None or "error" in self.read_after:
            raise RuntimeError(f"{self.name} without faults: exit {p.returncode}, {json.dumps(report)[:800]} {p.stderr[-500:]} {self.read_after}")
        return self

    def write_kind(self, text, name="kind.toml"):
        with open(os.path.join(self.template, name), "w", encoding="utf-8") as f:
            f.write(text)

    def call(self, *args):
        """The command without faults, in the template."""
        p = subprocess.run([self.binary, *args[:1], "--namespace", NS, "--kind-file", "kind.toml", *args[1:]],
                           cwd=self.template, capture_output=True, text=True, env=environment())
        if p.returncode:
            raise RuntimeError(f"{self.name}: {args}: {p.stdout} {p.stderr}")

    def command(self, binary=None):
        where = [] if "--plan" in self.args else [self.place]
        return [binary or self.binary, self.args[0], "--format", "json", "--namespace", NS, "--kind-file", "kind.toml", *self.args[1:], *where]

    def copy(self, folder):
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self.template, folder)
        plan = os.path.join(folder, "plan.json")
        if os.path.exists(plan):
            with open(plan, encoding="utf-8") as f:
                text = f.read().replace(self.template + "/", folder + "/")
            with open(plan, "w", encoding="utf-8") as f:
                f.write(text)
        return folder

    def path(self, folder, suffix="json"):
        return os.path.join(folder, self.place, "_delta_log", f"{self.version:020}.{suffix}")

    def entry(self, folder):
        """The commit without what chance and the clock put into it; None where there is none."""
        return without_chance(self.path(folder))

    def checksum(self, folder):
        return without_chance(self.path(folder, "crc"))

    def rerun(self, folder):
        p = subprocess.run(self.command(), cwd=folder, capture_output=True, text=True, env=environment(), timeout=120)
        return p.returncode, report_of(p.stdout), p.stderr

    # --- judging ---

    def whole(self, folder):
        """Complaints about a table that is either as it was or carries the one whole commit; and whether it has it."""
        table = os.path.join(folder, self.place)
        before, now = snapshot(self.before), snapshot(table)
        ours = {os.path.relpath(self.path(folder, s), table) for s in ("json", "crc")}
        wrong = [f"{n} was changed or removed" for n in before if now.get(n) != before[n]]
        wrong += [f"{n} is new" for n in sorted(set(now) - set(before) - ours) if not LEFT_OVER.fullmatch(n)]
        entry, checksum = self.entry(folder), self.checksum(folder)
        if entry is not None and entry != self.reference:
            wrong.append(f"the commit is not what it is without faults: {entry[:600]}")
        if checksum is not None and (entry is None or checksum != self.reference_checksum):
            wrong.append(f"the checksum file is not what it is without faults: {checksum[:300]}")
        return wrong, entry is not None

    def left(self, folder):
        return sorted(n for n in snapshot(os.path.join(folder, self.place)) if LEFT_OVER.fullmatch(n))

    def readable(self, folder, landed, programs=(DELTALAKE,)):
        """Complaints of other engines about the table as it is."""
        if not (landed or self.exists):
            return []
        wanted = self.read_after if landed else self.read_before
        wrong = []
        for program in programs:
            found = engine(program, os.path.join(folder, self.place))
            if "error" in found:
                wrong.append(f"an engine can't read the table: {found['error'][:300]}")
            elif program is DELTALAKE and found != wanted or found["rows"] != wanted["rows"]:
                wrong.append(f"an engine reads {found}, not {wanted}")
        return wrong

    def converges(self, folder, judge):
        """Complaints about a rerun, and about one more, after whatever happened."""
        wrong, landed = self.whole(folder)
        wrong = [f"before the rerun: {w}" for w in wrong]
        code, report, err = self.rerun(folder)
        wanted = "current" if landed else self.outcome
        if code or report.get("outcome") != wanted:
            wrong.append(f"the rerun: exit {code}, {json.dumps(report)[:500]}, wanted {wanted}; {err[-300:]}")
        found, landed = self.whole(folder)
        wrong += [f"after the rerun: {w}" for w in found] + ([] if landed else ["after the rerun there is no commit"])
        table = os.path.join(folder, self.place)
        if judge and self.exists and landed:
            # It knows no leftovers.
            found = judge.judge(self.before, table, NS, "migrated", self.to, (), MAY)
            wrong += [f"check_commit: {w}" for w in found if not LEFT_OVER.search(w)]
        wrong += self.readable(folder, landed, (DELTALAKE, DUCKDB) if self.left(folder) and self.rows else (DELTALAKE,))
        still = snapshot(table)
        code, report, err = self.rerun(folder)
        if code or report.get("outcome") != "current":
            wrong.append(f"one more run: exit {code}, {json.dumps(report)[:300]}; {err[-300:]}")
        return wrong + untouched(still, table, "one more run")


def without_chance(path):
    try:
        with open(path, encoding="utf-8") as f:
            text = f.read()
    except FileNotFoundError:
        return None
    for pattern, word in ((r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "ID"), (r"\b\d{13}\b", "MILLIS"), (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "TIME")):
        text = re.sub(pattern, word, text)
    return text


def report_of(text):
    try:
        return json.loads(text)["tables"][0]
    except (ValueError, LookupError, TypeError):
        return {}


def log_versions(table):
    names = map(os.path.basename, glob.glob(os.path.join(glob.escape(table), "_delta_log", "*")))
    return [int(n[:20]) for n in names if re.match(r"\d{20}\.(json|checkpoint.parquet)$", n)]


# --- tables ---

SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string()), ("payload", pa.struct([("lsn", pa.int64())]))])


def rows(scene):
    """Two commits of deltalake, without a stamp."""
    path = os.path.join(scene.template, scene.place)
    for n in (1, 2):
        write_deltalake(path, pa.table([[n, n + 10], ["a", None], [{"lsn": n}, None]], schema=SCHEMA), mode="append")


def stamped(at):
    def prepare(scene):
        rows(scene)
        scene.write_kind(kind(at))
        scene.call("apply", scene.place)
    return prepare


def with_checksum(scene):
    stamped(2)(scene)
    table = os.path.join(scene.template, scene.place)
    protocol = metadata = None
    sizes = []
    for version in sorted(log_versions(table)):
        with open(os.path.join(table, "_delta_log", f"{version:020}.json"), encoding="utf-8") as f:
            for action in map(json.loads, f):
                protocol, metadata = action.get("protocol", protocol), action.get("metaData", metadata)
                sizes += [action["add"]["size"]] if "add" in action else []
    checksum = {"tableSizeBytes": sum(sizes), "numFiles": len(sizes), "numMetadata": 1, "numProtocol": 1, "metadata": metadata, "protocol": protocol}
    with open(os.path.join(table, "_delta_log", f"{version:020}.crc"), "w", encoding="utf-8") as f:
        json.dump(checksum, f)


def cleaned_up(scene):
    """A log that begins with a checkpoint: a version 0 that is not there says nothing."""
    stamped(2)(scene)
    table = os.path.join(scene.template, scene.place)
    DeltaTable(table).create_checkpoint()
    for version in sorted(log_versions(table))[:-1]:
        for path in glob.glob(os.path.join(table, "_delta_log", f"{version:020}.json")):
            if version < max(log_versions(table)):
                os.remove(path)


def drifted(scene):
    """A column that the stamp promises is gone: an overwrite took it away."""
    stamped(3)(scene)
    schema = pa.schema([f for f in SCHEMA] + [pa.field("dm_three", pa.list_(pa.struct([("a", pa.int64())])))])
    table = pa.table([[7], ["z"], [{"lsn": 7}], [[]]], schema=schema)
    path = os.path.join(scene.template, scene.place)
    write_deltalake(path, table, mode="overwrite", schema_mode="overwrite", configuration=None)


SPECIAL = '[properties]\n"delta.enableInCommitTimestamps" = "true"\n"delta.columnMapping.mode" = "name"\n'


def special_kind(version):
    return kind(version).replace("[[migrations]]", SPECIAL + "[[migrations]]", 1) if version else kind(0) + SPECIAL


def special(scene):
    """Ids, physical names and in-commit timestamps are given by each attempt anew."""
    scene.write_kind(special_kind(0))
    scene.call("apply", scene.place)


def nothing(scene):
    pass


def scenes():
    return [
        Scene("create", nothing, "created", place="t/new/deep", looks=True),
        Scene("one", stamped(2), "migrated", to=3, newest=3),
        Scene("many", stamped(0), "migrated"),
        Scene("checksum", with_checksum, "migrated", looks=True),
        Scene("checkpoint", cleaned_up, "migrated", looks=True),
        Scene("special", special, "migrated", chain=special_kind(5), rows=False, looks=True),
        Scene("adopt", rows, "migrated"),
        Scene("plan", stamped(1), "migrated", args=("apply", "--plan", "plan.json")),
        Scene("baseline", rows, "migrated", to=0, args=("baseline", "--at", "0")),
        Scene("repair", drifted, "repaired", to=3, args=("repair", "--readd-columns", "--why", "an overwrite took it"), newest=3, looks=True),
    ]
