"""What the scripts of this folder share: running the command, kind files as text, engines in processes of their own."""
import collections, hashlib, importlib.util, json, os, shutil, subprocess, sys, threading

NS = "real"


def load_judge(tools):
    """check_commit.py of the folder `tools`, imported by path."""
    spec = importlib.util.spec_from_file_location("check_commit", os.path.join(tools, "check_commit.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Tally:
    """Counts passed, failed and skipped; `close` prints the last line and gives the exit code."""

    def __init__(self):
        self.count, self.failures, self.skips = collections.Counter(), [], []

    def add(self, name, wrong):
        self.count["failed" if wrong else "passed"] += 1
        if wrong:
            self.failures.append((name, wrong))
            print(f"FAILED {name}", *(f"    {w[:600]}" for w in wrong), sep="\n", flush=True)

    def skip(self, name, why):
        self.count["skipped"] += 1
        self.skips.append((name, why))

    def close(self):
        if not self.count["passed"] and not self.count["failed"]:
            print("nothing was tested")
            self.count["failed"] += 1
        print(", ".join(f"{self.count[k]} {k}" for k in ("passed", "failed", "skipped")))
        return 1 if self.count["failed"] else 0


def snapshot(root):
    """Digest of every file below a folder."""
    out = {}
    for folder, _, names in os.walk(root):
        for name in names:
            path = os.path.join(folder, name)
            with open(path, "rb") as f:
                out[os.path.relpath(path, root)] = hashlib.sha256(f.read()).hexdigest()
    return out


def untouched(before, root, what):
    """What differs from an earlier snapshot."""
    now = snapshot(root)
    names = sorted(set(before) ^ set(now)) + sorted(n for n in set(before) & set(now) if before[n] != now[n])
    return [f"{what} changed {n}" for n in names]


def fresh(src, dst):
    shutil.rmtree(dst, ignore_errors=True)
    shutil.copytree(src, dst)
    return dst


def run(binary, command, kind_file, table, *more):
    """Runs one command on one table: (exit code, the table's report, stderr)."""
    args = [binary, command, "--format", "json", "--namespace", NS, "--kind-file", kind_file, *more, table]
    env = {k: v for k, v in os.environ.items() if not k.startswith("DELTA_MIGRATE")}
    p = subprocess.run(args, capture_output=True, text=True, timeout=300, env=env)
    try:
        report = json.loads(p.stdout)["tables"][0]
    except (ValueError, LookupError):
        report = {}
    return p.returncode, report, p.stderr.strip()


def refused(code, report, err):
    """Complaints about how a refusal was told."""
    wrong = [] if code == 1 else [f"exit {code} for a refusal: {err[-300:]}"]
    if report.get("outcome") not in ("refused", "failed") or not (report.get("error") or {}).get("code"):
        wrong.append(f"no refusal with an error code: {json.dumps(report)[:300]} {err[-300:]}")
    if "panicked" in err:
        wrong.append(f"panic: {err[-300:]}")
    return wrong


# --- kind files ------------------------------------------------------------------------------------------------

def q(text):
    """A TOML basic string."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def dotted(segments):
    return ".".join("`" + s.replace("`", "``") + "`" if not s or "." in s or "`" in s else s for s in segments)


def type_text(t):
    """A Delta type as delta-migrate's type text; None where that has no word for it (void, intervals).

    Fields of such a type are left out of a struct: a table may have more than its kind says.
    """
    if isinstance(t, str):
        known = t in ("string long integer short byte float double boolean binary date timestamp timestamp_ntz "
                      "variant").split() or t.startswith("decimal")
        return t if known else None
    part = lambda key: type_text(t[key])
    null = lambda key: "" if t.get(key, True) else " not null"
    if t["type"] == "array":
        return part("elementType") and f"array<{part('elementType')}{null('containsNull')}>"
    if t["type"] == "map":
        k, v = part("keyType"), part("valueType")
        return k and v and f"map<{k}, {v}{null('valueContainsNull')}>"
    fields = [(f, type_text(f["type"])) for f in t["fields"]]
    name = lambda n: "`" + n.replace("`", "``") + "`"
    return "struct<" + ", ".join(f"{name(f['name'])}: {x}{'' if f.get('nullable', True) else ' not null'}"
                                 for f, x in fields if x) + ">"


def base_columns(fields):
    """The [columns] table of a kind file: every column that the type text has a word for."""
    lines = []
    for f in fields:
        text = type_text(f["type"])
        if text:
            lines.append(f"{q(f['name'])} = {{ type = {q(text)}, nullable = {str(bool(f.get('nullable', True))).lower()} }}")
    return "[columns]\n" + "\n".join(lines) + "\n"


def parts(t, path=(), in_key=False):
    """Everything below a type: (path, what, holder, in_key); what is `field`, `element` or `value`."""
    if not isinstance(t, dict):
        return
    if t["type"] == "struct":
        for f in t["fields"]:
            yield path + (f["name"],), "field", f, in_key
            yield from parts(f["type"], path + (f["name"],), in_key)
    elif t["type"] == "array":
        yield path + ("element",), "element", t, in_key
        yield from parts(t["elementType"], path + ("element",), in_key)
    elif t["type"] == "map":
        yield from parts(t["keyType"], path + ("key",), True)
        yield path + ("value",), "value", t, in_key
        yield from parts(t["valueType"], path + ("value",), in_key)


# --- engines; a name that starts with dm_, at any depth, counts as added by a migration -----------------------------------------------------------------------

HEAD = """
import hashlib, json, os, sys
def say(**what):
    print(json.dumps(what), flush=True)
    os._exit(0)
filled = 0
def prune(v):
    global filled
    if isinstance(v, dict):
        for k in [k for k in v if k.startswith("dm_")]:
            filled += v.pop(k) is not None
        return {k: prune(x) for k, x in v.items()}
    return type(v)(map(prune, v)) if isinstance(v, (list, tuple)) else v
def digest(rows):
    return hashlib.sha256("\\n".join(sorted(map(repr, map(prune, rows)))).encode()).hexdigest()
path, skip = sys.argv[1], sys.argv[2]
quote = lambda n: '"' + n.replace('"', '""') + '"'
"""

DELTALAKE = HEAD + """
import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder
try:
    t = DeltaTable(path)
    names = [f.name for f in t.schema().fields]
    rows = pa.table(QueryBuilder().register("t", t).execute("select " + (", ".join(map(quote, names)) or "*") + " from t").read_all()).to_pylist()
    say(rows=len(rows), digest=digest(rows), filled=filled, added=[n for n in names if n.startswith("dm_")])
except BaseException as e:
    say(error=f"{type(e).__name__}: {e}")
"""

DUCKDB = HEAD + """
import duckdb, duckdb_extension_delta
import pyarrow as pa
try:
    db = duckdb.connect()
    root = os.path.dirname(duckdb_extension_delta.__file__)
    ext = [os.path.join(d, n) for d, _, ns in os.walk(root) for n in ns if n == "delta.duckdb_extension"][0]
    db.execute(f"LOAD '{ext}'")
    scan = "delta_scan('" + path.replace("'", "''") + "')"
    names = [r[0] for r in db.execute(f"describe select * from {scan}").fetchall()]
    # By Arrow, because fetchall() wants pytz for timestamps.
    found = db.execute("select " + (", ".join(map(quote, names)) or "*") + f" from {scan}").fetch_record_batch()
    rows = pa.Table.from_batches(found, found.schema).to_pylist()
    say(rows=len(rows), digest=digest(rows), filled=filled, added=[n for n in names if n.startswith("dm_")])
except BaseException as e:
    say(error=f"{type(e).__name__}: {e}")
"""

APPEND = HEAD + """
import datetime, decimal
import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
def default(t):
    if pa.types.is_struct(t): return {f.name: None if f.nullable else default(f.type) for f in t}
    if pa.types.is_list(t) or pa.types.is_large_list(t) or pa.types.is_map(t): return []
    if pa.types.is_decimal(t): return decimal.Decimal(1)
    if pa.types.is_date(t): return datetime.date(2024, 1, 2)
    if pa.types.is_timestamp(t): return datetime.datetime(2024, 1, 2)
    if pa.types.is_boolean(t): return True
    if pa.types.is_binary(t) or pa.types.is_large_binary(t): return b"x"
    if pa.types.is_string(t) or pa.types.is_large_string(t): return "x"
    return 1
try:
    t = DeltaTable(path)
    schema = pa.schema([f for f in pa.schema(t.schema().to_arrow()) if f.name != skip])
    row = pa.table([pa.array([None if f.nullable else default(f.type)], f.type) for f in schema], schema=schema)
    # A batch without a column of the table is taken only with schema_mode="merge"; it adds nothing here.
    write_deltalake(t, row, mode="append", schema_mode="merge" if skip else None)
    say(version=DeltaTable(path).version())
except BaseException as e:
    say(error=f"{type(e).__name__}: {e}")
"""

CHECKPOINT = HEAD + """
from deltalake import DeltaTable
try:
    t = DeltaTable(path)
    t.create_checkpoint()
    say(version=t.version())
except BaseException as e:
    say(error=f"{type(e).__name__}: {e}")
"""


# Importing the packages takes longer than most answers, so one process imports them and forks for each question.
NURSERY = """
import json, os, sys, tempfile, time
import duckdb, duckdb_extension_delta, pyarrow, deltalake
for line in sys.stdin:
    code, path, added = json.loads(line)
    with tempfile.TemporaryFile("w+") as out:
        child = os.fork()
        if child == 0:
            os.dup2(out.fileno(), 1)
            sys.argv = ["-c", path, added]
            try:
                exec(code, {})
            finally:
                os._exit(1)
        end = time.time() + 180
        while os.waitpid(child, os.WNOHANG)[0] == 0:
            if time.time() > end:
                os.kill(child, 9)
                os.waitpid(child, 0)
                break
            time.sleep(0.002)
        out.seek(0)
        said = out.read().strip().splitlines()
    print(said[-1] if said else json.dumps({"error": "the process died"}), flush=True)
"""
LOCAL = threading.local()


def engine(code, path, added=""):
    """Runs one of the programs above in a process of its own: its answer, with `error` where it failed or died."""
    if not hasattr(LOCAL, "nursery"):
        LOCAL.nursery = subprocess.Popen([sys.executable, "-c", NURSERY], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                         stderr=subprocess.DEVNULL, text=True)
    LOCAL.nursery.stdin.write(json.dumps([code, path, added]) + "\n")
    LOCAL.nursery.stdin.flush()
    line = LOCAL.nursery.stdout.readline()
    if not line:
        sys.exit("the process that runs deltalake and DuckDB is gone; are both installed? see README.md")
    return json.loads(line)
