"""Clocks that jump, for crashes.py: the computer's clock as libfaketime shows it to the command; syncing, as strace sees it.

What counts durations is another clock, which no one sets; libfaketime leaves it alone here, as it is in real life.
"""
import glob, json, os, re, shutil, subprocess, threading
import crash_trace
from common import NS
from crash_scenes import CHAIN, log_versions, report_of, special_kind
from crash_trace import environment

DAYS = ("-9000d", "+9000d", "+0")


def library():
    found = [p for pattern in ("/usr/lib/*/faketime/libfaketimeMT.so.1", "/usr/lib/faketime/libfaketimeMT.so.1", "/usr/local/lib/faketime/libfaketimeMT.so.1") for p in glob.glob(pattern)]
    return found[0] if found else None


class Table:
    """A table with in-commit timestamps, and a clock that can be set while the command runs."""

    def __init__(self, bench, name):
        self.bench, self.folder = bench, os.path.join(bench.tmp, "clock-" + name)
        self.log, self.clock = os.path.join(self.folder, "t", "_delta_log"), os.path.join(self.folder, "clock")
        os.makedirs(self.folder)
        for n in range(len(CHAIN) + 1):
            with open(os.path.join(self.folder, f"kind-{n}.toml"), "w", encoding="utf-8") as f:
                f.write(special_kind(n))

    def set(self, offset):
        """All at once: the command may be reading it."""
        with open(self.clock + ".new", "w", encoding="utf-8") as f:
            f.write(offset + "\n")
        os.rename(self.clock + ".new", self.clock)

    def command(self, version, *more):
        return [self.bench.o.bin, "apply", "--format", "json", "--namespace", NS, "--kind-file", f"kind-{version}.toml", *more, "t"]

    def environment(self):
        return {"LD_PRELOAD": library(), "FAKETIME_TIMESTAMP_FILE": self.clock, "FAKETIME_NO_CACHE": "1", "FAKETIME_DONT_FAKE_MONOTONIC": "1", "NO_FAKE_STAT": "1"}

    def run(self, version, offset):
        self.set(offset)
        p = subprocess.run(self.command(version), cwd=self.folder, capture_output=True, text=True, env={**environment(), **self.environment()}, timeout=120)
        return p.returncode, report_of(p.stdout), p.stderr

    def slowly(self, version, *more):
        """With half a second before each commit, in which others act."""
        preload = [x for k, v in self.environment().items() for x in ("-E", f"{k}={v}")]
        options = [*preload, "-qq", "-e", "trace=linkat", "-e", "inject=linkat:delay_enter=500000"]
        return crash_trace.strace(self.folder, self.command(version, *more), options)

    def path(self, version):
        return os.path.join(self.log, f"{version:020}.json")

    def timestamps(self):
        found = []
        for version in sorted(log_versions(os.path.join(self.folder, "t"))):
            with open(self.path(version), encoding="utf-8") as f:
                found.append(json.loads(f.readline())["commitInfo"]["inCommitTimestamp"])
        return found

    def append(self, version):
        """Another writer's commit, if nobody was faster."""
        info = {"timestamp": 1, "operation": "WRITE", "inCommitTimestamp": self.timestamps()[-1] + 1}
        with open(self.path(version) + ".theirs", "w", encoding="utf-8") as f:
            f.write(json.dumps({"commitInfo": info}) + "\n")
        try:
            os.link(self.path(version) + ".theirs", self.path(version))
        except FileExistsError:
            pass
        os.remove(self.path(version) + ".theirs")

    def rival(self, most, jump):
        """A writer that is faster than the command, so many times, and sets the clock each time."""
        done = threading.Event()

        def work():
            won = 0
            while won < most and not done.wait(0.005):
                version = 1 + max(log_versions(os.path.join(self.folder, "t")))
                if os.path.exists(self.path(version) + "#1"):
                    self.append(version)
                    self.set(jump[won % len(jump)])
                    won += 1
        thread = threading.Thread(target=work)
        thread.start()
        return lambda: (done.set(), thread.join())


def rises(found):
    return [] if all(a < b for a, b in zip(found, found[1:])) else [f"in-commit timestamps do not rise: {found}"]


def clocks(bench):
    """Between runs, and between the attempts of one run."""
    if not library():
        bench.tally.skip("clocks", "no libfaketime")
        print("SKIPPED: libfaketime is not there (Debian: apt-get install faketime), so no clock jumped")
        return bench.o.required and bench.tally.add("clocks", ["libfaketime is not there"])
    table = Table(bench, "runs")
    wrong = []
    for version, offset in enumerate(("+0", "-9000d", "+9000d", "+0", "-20000d", "+9001d")):
        code, report, err = table.run(version, offset)
        if code or report.get("outcome") != ("migrated" if version else "created"):
            wrong.append(f"clock at {offset}: exit {code}, {json.dumps(report)[:400]} {err[-300:]}")
    found = table.timestamps()
    day = 86_400_000
    if len(found) == 6 and not (found[1] == found[0] + 1 and found[2] - found[0] > 8999 * day and found[3] == found[2] + 1 and found[5] - found[2] > day / 2):
        wrong.append(f"the clock was not set, or not asked: {found}")
    bench.tally.add("clocks: set between runs", wrong + rises(found))
    for jump in (("-9000d",), ("+9000d",)):
        table = Table(bench, "attempts" + jump[0])
        table.run(0, "+0")
        end = table.rival(1, jump)
        done = table.slowly(1)
        end()
        report, found = report_of(done.out), table.timestamps()
        wrong = rises(found)
        if done.code or report.get("attempts") != 2 or report.get("log_version") != 2:
            wrong.append(f"exit {done.code}, {done.out[:500]} {done.err[-300:]}")
        elif "-" in jump[0] and found[2] != found[1] + 1 or "+" in jump[0] and found[2] - found[1] < 8999 * day:
            wrong.append(f"the clock was not asked again: {found}")
        bench.tally.add(f"clocks: set to {jump[0]} between two attempts", wrong)
    table = Table(bench, "budget")
    table.run(0, "+0")
    end = table.rival(1000, DAYS)
    done = table.slowly(1, "--timeout", "3")
    end()
    error = report_of(done.out).get("error") or {}
    told = re.match(r"every race was lost: (\d+) attempts in (\d+\.\d) s; won by ", error.get("message", ""))
    wrong = rises(table.timestamps())
    if done.code != 1 or error.get("code") != "conflict" or not told or int(told[1]) < 2 or float(told[2]) < 3:
        wrong.append(f"the time budget: exit {done.code}, {done.out[:700]} {done.err[-300:]}")
    bench.tally.add("clocks: set all the time while races are lost, the budget ends in its time", wrong)


def syncs(bench, scene):
    """The entry and the folders that name it reach the disk before anything is said; a run that does nothing syncs nothing."""
    folder = bench.folder(scene)
    done, calls = crash_trace.record(folder, scene.command(), (scene.place.split("/")[0], "out"))
    entry = os.path.relpath(scene.path(folder), folder)
    order = [(c.name, c.path) for c in calls]
    log = os.path.dirname(entry)
    named = [log] if scene.exists else [log, *above(log)]
    wanted = [("linkat", entry), ("fsync", entry), *(("fsync", f) for f in named), ("write", "out")]
    missing = [f"no {name} of {path}" for name, path in wanted if (name, path) not in order]
    at = [order.index(w) for w in wanted if w in order]
    wrong = missing + ([] if at == sorted(at) else [f"not in this order: {wanted}, but {order}"])
    again, calls = crash_trace.record(folder, scene.command(), (scene.place.split("/")[0],))
    wrong += [f"a run with nothing to do: {c.name} {c.path}" for c in calls if c.creates or c.name in crash_trace.CHANGES and c.name != "close"]
    bench.tally.add(f"{scene.name}: the commit is synced before it is told", wrong + ([] if done.code == again.code == 0 else ["it failed"]))
    shutil.rmtree(folder, ignore_errors=True)


def above(path):
    """The folders above a relative path, from the nearest on."""
    while os.path.dirname(path):
        path = os.path.dirname(path)
        yield path
