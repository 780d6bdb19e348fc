#!/usr/bin/env python3
"""Other engines behind one interface, each in a process of its own, and the kinds of tables that they are tried on.

`Worker(name)` starts this file as `engine_workers.py NAME`; that process takes one request a line on stdin (a method
of its engine with its arguments) and answers one line of JSON, `error` where the engine said no. Engines abort and
invalidate themselves now and then; here that costs one answer. engines.py is what uses it.
"""
import ctypes, datetime, decimal, json, os, signal, socket, subprocess, sys, tempfile, time

NAMES = ("deltalake", "DuckDB", "Sail", "Polars")
NS = "real"

# --- kinds: name -> (head, base columns, [columns that migration 1 adds], more of migration 1) ----------------------

PLAIN = {"id": "long", "name": "string", "amount": "decimal(10,2)", "day": "date", "seen": "timestamp", "ok": "boolean", "ratio": "double"}
ADDED = {"channel": "string", "tags": "array<string>", "price": "decimal(12,3)", "until": "timestamp"}
MAPPED = '[properties]\n"delta.columnMapping.mode" = "name"\n'
NESTED = {"id": "long", "payload": "struct<rows: long, note: string>", "items": "array<struct<sku: string>>"}
KINDS = {
    "plain": ("", PLAIN, ADDED, ""),
    "partitioned": ('partition_by = ["region"]\n', {"id": "long", "region": "string", "name": "string"}, ADDED, ""),
    "nested": ("", NESTED, {"payload.warnings": "array<string>", "payload.more": "struct<a: long>", "items.element.qty": "long"}, ""),
    "nested_polars": ("", NESTED, {"items.element.qty": "long"}, ""),  # its old rows are written by Polars alone
    "map_value": ("", {"id": "long", "attrs": "map<string, struct<a: long>>"}, {"attrs.value.b": "string"}, ""),
    "described": ('[properties]\n"team.owner" = "orders"\n', {"id": "long", "name": '{ type = "string", comment = "who" }'},
                  {"channel": '{ type = "string", comment = "where \\"from\\"" }'},
                  'table_description = "Orders"\ncomments = { id = "key" }\nset_properties = { "team.contact" = "x@y" }\n'),
    "mapped": (MAPPED, PLAIN, ADDED, ""),
    "mapped_nested": (MAPPED, NESTED, {"payload.warnings": "array<string>", "items.element.qty": "long"}, ""),
    "change_feed": ('[properties]\n"delta.enableChangeDataFeed" = "true"\n', PLAIN, ADDED, ""),
    "deletion_vectors": ('[properties]\n"delta.enableDeletionVectors" = "true"\n', PLAIN, ADDED, ""),
    "commit_times": ('[properties]\n"delta.enableInCommitTimestamps" = "true"\n', PLAIN, ADDED, ""),
    "floor": ("", PLAIN, ADDED, "raises_min_version = true\n"),
}
NEWEST = 4  # every kind: migration 1 as above, then a plain column each


def toml(kind):
    head, base, added, more = KINDS[kind]
    typed = lambda t: t if t.startswith("{") else json.dumps(t)
    cols = lambda c: "".join(f"{json.dumps(n)} = {typed(t)}\n" for n, t in c.items())
    props = head[head.index("[properties]"):] if "[properties]" in head else ""
    text = f'kind = "{kind}"\nidentified_by = ["id"]\n{head.replace(props, "") if props else head}[columns]\n{cols(base)}{props}'
    text += f'[[migrations]]\ndescription = "one"\n{more}[migrations.add_columns]\n{cols(added)}'
    for n in range(2, NEWEST + 1):
        text += f'[[migrations]]\ndescription = "column {n}"\n[migrations.add_columns]\nextra_{n} = "string"\n'
    return text


def schema(kind, new):
    """The Arrow schema that a release of the base shape writes, or one that knows all migrations."""
    import pyarrow as pa
    s, l = pa.string(), pa.int64()
    ts = pa.timestamp("us", "UTC")
    plain = [("id", l), ("name", s), ("amount", pa.decimal128(10, 2)), ("day", pa.date32()), ("seen", ts), ("ok", pa.bool_()), ("ratio", pa.float64())]
    added = [("channel", s), ("tags", pa.list_(s)), ("price", pa.decimal128(12, 3)), ("until", ts)] if new else []
    old = not new
    warn = [] if old else [("warnings", pa.list_(s))]
    if kind == "partitioned":
        fields = [("id", l), ("region", s), ("name", s)] + added
    elif "nested" in kind:
        if kind == "nested_polars":
            warn = []
        more = [("more", pa.struct([("a", l)]))] if new and kind == "nested" else []
        fields = [("id", l), ("payload", pa.struct([("rows", l), ("note", s)] + warn + more)),
                  ("items", pa.list_(pa.struct([("sku", s)] + ([] if old else [("qty", l)]))))]
    elif kind == "map_value":
        fields = [("id", l), ("attrs", pa.map_(s, pa.struct([("a", l)] + ([] if old else [("b", s)]))))]
    elif kind == "described":
        fields = [("id", l), ("name", s)] + added[:1]
    else:
        fields = plain + added
    return pa.schema(fields + [(f"extra_{n}", s) for n in range(2, NEWEST + 1) if new])


def batch(kind, ids, age="old"):
    """Rows for these ids as a release would write them that is `old`, or `new`, or old and adds a column of its `own`,
    or old and asks the table for its columns, to have NULL `filled` in."""
    import pyarrow as pa
    utc = datetime.timezone.utc
    row = lambda i: {
        "id": i, "name": None if i % 5 == 4 else f"näme {i}", "amount": decimal.Decimal(i * 125) / 100, "ok": i % 2 == 0, "ratio": i / 8,
        "day": datetime.date(2024, 2, 1 + i % 28), "seen": datetime.datetime(2024, 3, 1, 12, 0, i % 60, 123456, utc), "region": f"r{i % 2}",
        "payload": {"rows": i, "note": f"n{i}", "warnings": [f"w{i}", None], "more": {"a": i}}, "items": [{"sku": f"s{i}", "qty": i}, {"sku": None, "qty": None}],
        "attrs": [("k", {"a": i, "b": f"b{i}"})], "channel": f"c{i}", "tags": [f"t{i}"], "price": decimal.Decimal(i) / 8,
        "until": datetime.datetime(2030, 1, 1, 0, 0, i % 60, 0, utc), "extra_2": "x", "extra_3": None, "extra_4": f"e{i}", "surprise": i}
    if age == "filled":
        return pa.Table.from_pylist(batch(kind, ids).to_pylist(), schema=schema(kind, True))
    want = schema(kind, age == "new")
    return pa.Table.from_pylist([row(i) for i in ids], schema=want.append(pa.field("surprise", pa.int64())) if age == "own" else want)


def expected(kind, old=(), new=()):
    """What a reader has to see in the migrated table: rows of old writers with NULL in all that is new."""
    return normal(batch(kind, old, "filled").to_pylist() + batch(kind, new, "new").to_pylist())


def normal(rows):
    """Rows as comparable JSON, sorted by id."""
    def one(v):
        if isinstance(v, dict):
            return {k: one(x) for k, x in v.items()}
        if isinstance(v, (list, tuple)):
            # A map comes as a list of pairs, or as one of {key, value}.
            return [one([x["key"], x["value"]] if isinstance(x, dict) and set(x) == {"key", "value"} else x) for x in v]
        if isinstance(v, datetime.datetime):
            return v.astimezone(datetime.timezone.utc).isoformat() if v.tzinfo else f"{v.isoformat()} without a zone"
        return str(v) if isinstance(v, (decimal.Decimal, datetime.date)) else v.hex() if isinstance(v, bytes) else v
    return sorted((one(r) for r in rows), key=lambda r: r["id"])


# --- engines; each method takes a path, and a batch where it writes -------------------------------------------------

class Engine:
    def write(self, path, rows):
        """Append as a writer that knows every column of the table."""
        return self.append(path, rows)

    def loop(self, how, path, kind, first, stop, least):
        """Append a row at a time, a new id for each try, until the file `stop` is there and `least` more have landed."""
        acked, refused, after = [], [], 0
        for i in range(first, first + 10_000):
            try:
                getattr(self, how)(path, batch(kind, [i]))
                acked.append(i)
            except Exception as e:
                refused.append([i, f"{type(e).__name__}: {e}"[:300]])
                time.sleep(0.02)
            if os.path.exists(stop):
                after += bool(acked and acked[-1] == i)
                if after >= least or len(refused) > 400:
                    break
        return {"acked": acked, "refused": refused}


class Deltalake(Engine):
    def __init__(self):
        import deltalake
        self.d, self.version, self.handle = deltalake, deltalake.__version__, None

    def read(self, path):
        import pyarrow as pa
        t = self.d.DeltaTable(path)
        return pa.table(self.d.QueryBuilder().register("t", t).execute("select * from t").read_all()).to_pylist()

    def write(self, path, rows):
        self.d.write_deltalake(path, rows, mode="append")

    def append(self, path, rows):
        self.d.write_deltalake(path, rows, mode="append", schema_mode="merge")

    own_column = append

    def hold(self, path):
        self.handle = self.d.DeltaTable(path)

    def held_append(self, path, rows):
        self.d.write_deltalake(self.handle, rows, mode="append")

    def held_own_column(self, path, rows):
        self.d.write_deltalake(self.handle, rows, mode="append", schema_mode="merge")

    def update(self, path):
        self.d.DeltaTable(path).update(predicate="id = 1", updates={"name": "'changed'"})

    def delete(self, path):
        self.d.DeltaTable(path).delete("id = 2")

    def merge(self, path, rows):
        names = {f"t.{n}": f"s.{n}" for n in rows.schema.names}
        (self.d.DeltaTable(path).merge(rows, "t.id = s.id", source_alias="s", target_alias="t")
         .when_matched_update(names).when_not_matched_insert(names).execute())

    def overwrite(self, path, rows):
        self.d.write_deltalake(path, rows, mode="overwrite", schema_mode="merge")

    def overwrite_schema(self, path, rows):
        self.d.write_deltalake(path, rows, mode="overwrite", schema_mode="overwrite")

    def replace(self, path, rows):
        self.d.DeltaTable.create(path, rows.schema, mode="overwrite")
        self.write(path, rows)


class DuckDB(Engine):
    def __init__(self):
        import duckdb, duckdb_extension_delta
        root = os.path.dirname(duckdb_extension_delta.__file__)
        self.extension = [os.path.join(d, n) for d, _, ns in os.walk(root) for n in ns if n == "delta.duckdb_extension"][0]
        self.duckdb, self.version, self.held = duckdb, duckdb.__version__, None

    def connect(self, path):
        """A connection each time: an internal error invalidates it."""
        db = self.duckdb.connect()
        db.execute(f"LOAD '{self.extension}'; SET TimeZone = 'UTC'; ATTACH '{path}' AS t (TYPE delta)")
        return db

    def read(self, path):
        import pyarrow as pa
        found = self.connect(path).execute(f"SELECT * FROM delta_scan('{path}')").fetch_record_batch()
        return pa.Table.from_batches(found, found.schema).to_pylist()

    def put(self, db, rows):
        names = ", ".join(f'"{n}"' for n in rows.schema.names)
        db.register("b", rows)
        db.execute(f"INSERT INTO t ({names}) SELECT {names} FROM b")

    def append(self, path, rows):
        self.put(self.connect(path), rows)

    own_column = append

    def insert(self, path, rows):
        """By name."""
        db = self.connect(path)
        db.register("b", rows)
        db.execute("INSERT INTO t BY NAME SELECT * FROM b")

    def fill(self, path, rows):
        """Ask the table for its columns and insert NULL into those that the batch has not."""
        db, known = self.connect(path), rows.schema.names
        db.register("b", rows)
        names = [r[0] for r in db.execute("DESCRIBE SELECT * FROM t").fetchall()]
        db.execute("INSERT INTO t SELECT " + ", ".join(f'"{n}"' if n in known else "NULL" for n in names) + " FROM b")

    def reversed(self, path, rows):
        """An INSERT that names two columns of one type the other way round than the table has them."""
        names = rows.schema.names
        i, j = names.index("extra_2"), names.index("extra_4")
        names[i], names[j] = names[j], names[i]
        self.append(path, rows.select(names))

    def hold(self, path):
        """A transaction that has seen the table."""
        self.held = self.connect(path)
        self.held.execute("BEGIN")
        self.held.execute("SELECT count(*) FROM t").fetchall()

    def held_append(self, path, rows):
        self.put(self.held, rows)
        self.held.execute("COMMIT")

    def update(self, path):
        self.connect(path).execute("UPDATE t SET name = 'changed' WHERE id = 1")

    def delete(self, path):
        self.connect(path).execute("DELETE FROM t WHERE id = 2")

    def merge(self, path, rows):
        db = self.connect(path)
        db.register("b", rows)
        db.execute("MERGE INTO t USING b ON t.id = b.id WHEN MATCHED THEN UPDATE SET name = b.name")


class Sail(Engine):
    def __init__(self):
        import importlib.metadata, warnings
        warnings.simplefilter("ignore")
        from pyspark.sql import SparkSession
        self.version = importlib.metadata.version("pysail")
        self.spark = SparkSession.builder.remote("sc://127.0.0.1:" + os.environ["SAIL_PORT"]).getOrCreate()
        self.spark.conf.set("spark.sql.session.timeZone", "UTC")

    def read(self, path):
        return self.spark.read.format("delta").load(path).toArrow().to_pylist()

    def put(self, path, rows, mode, **options):
        self.spark.createDataFrame(rows).write.format("delta").mode(mode).options(**options).save(path)

    def append(self, path, rows):
        self.put(path, rows, "append")

    def own_column(self, path, rows):
        self.put(path, rows, "append", mergeSchema="true")

    append_merge = own_column

    def sql(self, path, query, rows=None):
        """Runs SQL in which {t} is the table and b the rows."""
        if rows is not None:
            self.spark.createDataFrame(rows).createOrReplaceTempView("b")
        name = "t" + os.path.abspath(path).encode().hex()[-60:]
        if "{name}" in query:
            self.spark.sql(f"CREATE TABLE IF NOT EXISTS {name} USING delta LOCATION '{path}'").toArrow()
        self.spark.sql(query.replace("{t}", f"delta.`{path}`").replace("{name}", name)).toArrow()

    def insert(self, path, rows):
        names = ", ".join(rows.schema.names)
        self.sql(path, f"INSERT INTO {{name}} ({names}) SELECT {names} FROM b", rows)

    def update(self, path):
        self.sql(path, "UPDATE {t} SET name = 'changed' WHERE id = 1")

    def delete(self, path):
        self.sql(path, "DELETE FROM {t} WHERE id = 2")

    def merge(self, path, rows):
        names = rows.schema.names
        sets, values = ", ".join(f"{n} = b.{n}" for n in names), ", ".join("b." + n for n in names)
        self.sql(path, f"MERGE INTO {{t}} t USING b ON t.id = b.id WHEN MATCHED THEN UPDATE SET {sets} "
                       f"WHEN NOT MATCHED THEN INSERT ({', '.join(names)}) VALUES ({values})", rows)

    def overwrite(self, path, rows):
        self.put(path, rows, "overwrite")

    def overwrite_schema(self, path, rows):
        self.put(path, rows, "overwrite", overwriteSchema="true")

    def replace_as(self, path, rows):
        self.sql(path, f"CREATE OR REPLACE TABLE {{name}} USING delta LOCATION '{path}' AS SELECT * FROM b", rows)

    def replace(self, path, rows):
        words = {"int64": "bigint", "date32[day]": "date", "timestamp[us, tz=UTC]": "timestamp", "bool": "boolean", "decimal128(10, 2)": "decimal(10,2)"}
        cols = ", ".join(f"{f.name} {words.get(str(f.type), f.type)}" for f in rows.schema)
        self.sql(path, f"CREATE OR REPLACE TABLE {{name}} ({cols}) USING delta LOCATION '{path}'")
        self.append(path, rows)


class Polars(Engine):
    def __init__(self):
        import polars
        self.pl, self.version = polars, polars.__version__

    def read(self, path):
        return self.pl.scan_delta(path).collect().to_arrow().to_pylist()

    def put(self, path, rows, mode, **options):
        self.pl.from_arrow(rows).write_delta(path, mode=mode, delta_write_options=options)

    def write(self, path, rows):
        self.put(path, rows, "append")

    def append(self, path, rows):
        self.put(path, rows, "append", schema_mode="merge")

    own_column = append

    def overwrite(self, path, rows):
        self.put(path, rows, "overwrite", schema_mode="merge")

    def overwrite_schema(self, path, rows):
        self.put(path, rows, "overwrite", schema_mode="overwrite")


# --- processes ------------------------------------------------------------------------------------------------------

def with_parent():
    """In a child on Linux: end when the parent does, however that ends."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def start_sail(log):
    """`sail spark server` on a free port of the loopback interface: (process, port)."""
    sail = os.path.join(os.path.dirname(sys.executable), "sail")
    for _ in range(3):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        env = {**os.environ, "AWS_EC2_METADATA_DISABLED": "true"}
        p = subprocess.Popen([sail, "spark", "server", "--ip", "127.0.0.1", "--port", str(port)], stdin=subprocess.DEVNULL,
                             stdout=log, stderr=subprocess.STDOUT, env=env, preexec_fn=with_parent)
        until = time.time() + 30
        while p.poll() is None and time.time() < until:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                return p, port
            except OSError:
                time.sleep(0.1)
        p.kill()
        p.wait()
    raise RuntimeError("sail did not come up")


class Worker:
    """One engine in a process of its own; if it dies, that is an error, and the next request starts it anew."""

    def __init__(self, name, env):
        self.name, self.env, self.process = name, env, None

    def send(self, method, *args):
        if self.process is None or self.process.poll() is not None:
            self.process = subprocess.Popen([sys.executable, os.path.abspath(__file__), self.name], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                            stderr=subprocess.DEVNULL, text=True, env={**os.environ, **self.env}, preexec_fn=with_parent)
        self.process.stdin.write(json.dumps([method, args]) + "\n")
        self.process.stdin.flush()

    def answer(self):
        line = self.process.stdout.readline()
        return json.loads(line) if line else {"error": f"the process died ({self.process.wait()})"}

    def ask(self, method, *args):
        self.send(method, *args)
        return self.answer()

    def close(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()


def serve(name):
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever an engine prints is no answer
    engine = {"deltalake": Deltalake, "DuckDB": DuckDB, "Sail": Sail, "Polars": Polars}[name]()
    for line in sys.stdin:
        method, args = json.loads(line)
        try:
            if method == "version":
                said = engine.version
            elif not hasattr(engine, method):
                raise NotImplementedError(f"{name} has no {method}")
            else:
                # A batch is given as [kind, ids, age].
                said = getattr(engine, method)(*(batch(*a) if isinstance(a, list) else a for a in args))
            said = {"ok": normal(said) if method == "read" else said}
        except BaseException as e:
            said = {"error": f"{type(e).__name__}: {e}".split("\n\nStack Trace")[0]}
        print(json.dumps(said), file=answers, flush=True)
    os._exit(0)


if __name__ == "__main__":
    serve(sys.argv[1])
