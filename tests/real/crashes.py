#!/usr/bin/env python3
"""The command killed, told to stop, or failed by the system at each of its calls on a local table; then run again.

usage: crashes.py --bin BIN [--tools DIR] [--required] [--only WORD …] [--jobs N]

For each scene of crash_scenes.py strace first writes down every system call on the table (and on stdout). Then, on a
fresh copy each time: SIGKILL at each call that can change something; SIGTERM at each of them; an error as the answer
of each call, once and from then on. What the command says must be true, the table must be as it was or carry the one
whole commit, deltalake must read it, and a run without faults must end with exactly one commit, the same as if nothing
had happened, judged by check_commit.py of DIR as well where that is given. Then places.py's: full disks, read-only
folders and mounts, no permission, no hard links; syncing; clocks that jump.

Without strace nothing can be tested: that is said in one line and is an exit of 0, or of 1 with --required.
"""
import argparse, collections, itertools, json, os, queue, shutil, sys, tempfile, threading, time
from concurrent.futures import ThreadPoolExecutor
import crash_clocks, crash_places, crash_scenes, crash_trace
from common import Tally, load_judge, snapshot, untouched

# What some calls answer besides EIO, ENOSPC, EACCES and EROFS.
MORE_ERRORS = {"linkat": ("EPERM", "EOPNOTSUPP", "EMLINK", "EEXIST", "EINTR"), "write": ("EINTR", "EDQUOT", "EFBIG"),
               "openat": ("EMFILE", "EINTR"), "fsync": ("EINVAL", "EOPNOTSUPP", "EINTR")}


def changes(calls):
    """The calls that can change the table, and those that write the report."""
    return [c for c in calls if c.creates or c.name in crash_trace.CHANGES and (c.name != "close" or "#" in c.path)]


class Bench:
    """Runs many cases at a time, each in a folder of its own."""

    def __init__(self, o, tmp, tally, judge):
        self.o, self.tmp, self.tally, self.judge = o, tmp, tally, judge
        self.lock, self.left, self.seen = threading.Lock(), collections.Counter(), collections.Counter()
        self.numbers = itertools.count()

    def folder(self, scene):
        return scene.copy(os.path.join(self.tmp, f"case-{next(self.numbers)}"))

    def case(self, name, scene, work):
        """`work` gives complaints about a fresh copy of the scene."""
        folder = self.folder(scene)
        try:
            wrong = work(folder)
        except Exception as e:
            wrong = [f"{type(e).__name__}: {e}"]
        with self.lock:
            self.tally.add(name, wrong)
            for left in scene.left(folder):
                self.left[left.rsplit("#")[0][-4:] + "#"] += 1
        if not wrong or not self.o.keep:
            shutil.rmtree(folder, ignore_errors=True)

    def note(self, what, name):
        with self.lock:
            self.seen[what] += 1
            if self.o.verbose:
                print(f"{name}: {what}", flush=True)


def hit(folder, scene, call, what, always=False):
    """A run in which it really happened; threads share the work differently each time."""
    for _ in range(5):
        done = crash_trace.inject(folder, scene.command(), call, what, always)
        if done.was_hit:
            return done
        scene.copy(folder)
    return None


def killed(bench, scene, call):
    name = f"{scene.name}: killed at {named(call)}"

    def work(folder):
        done = hit(folder, scene, call, "signal=SIGKILL")
        if not done:
            return ["the call was never reached"]
        wrong, landed = scene.whole(folder)
        if done.code != -9:
            wrong.append(f"exit {done.code}, not killed")
        bench.note(f"killed, {'with' if landed else 'without'} the commit", name)
        return wrong + scene.readable(folder, landed) + scene.converges(folder, bench.judge)
    bench.case(name, scene, work)


def told_to_stop(bench, scene, call):
    def work(folder):
        done = hit(folder, scene, call, "signal=SIGTERM")
        if not done:
            return ["the call was never reached"]
        wrong, landed = scene.whole(folder)
        report = crash_scenes.report_of(done.out)
        if not landed:
            wrong.append("what was begun was not finished")
        if call.path == "out":
            # The tables are done, and nobody may be reading the report.
            wrong += [] if done.code in (0, 130) else [f"exit {done.code}"]
        elif done.code or report.get("outcome") != scene.outcome or report.get("commits") != 1:
            wrong.append(f"exit {done.code}, {json.dumps(report)[:300]} {done.err[-300:]}")
        return wrong + scene.converges(folder, bench.judge)
    bench.case(f"{scene.name}: SIGTERM at {named(call)}", scene, work)


def failed(bench, scene, call, error, always):
    name = f"{scene.name}: {error} {'always' if always else 'once'} at {named(call)}"

    def work(folder):
        done = hit(folder, scene, call, f"error={error}", always)
        if not done:
            bench.note("an error that no run met", name)
            # Which thread looks at what is chance; what writes is not.
            return [] if call.name in crash_trace.LOOKS and not call.creates else ["the call was never reached"]
        before = snapshot(scene.before)
        wrong, landed = scene.whole(folder)
        found, what = true_answer(scene, folder, done, landed, before)
        bench.note(what, name)
        wrong += found
        return wrong + scene.converges(folder, bench.judge)
    bench.case(name, scene, work)


def true_answer(scene, folder, done, landed, before):
    """Complaints about what the command said, held against what is there; and how it ended, in words."""
    has = "with the commit" if landed else "without the commit"
    report = crash_scenes.report_of(done.out)
    if "panicked" in done.err:
        return [f"panic: {done.err[:600]}"], "a panic"
    if not report:
        wrong = [f"exit {done.code} without a report: {done.err[-300:]}"] if done.code in (0, 3) else []
        return wrong, f"no report, exit {done.code}, {has}"
    error = report.get("error") or {}
    warned = " with a warning" if any("not_synced" in w for w in report["warnings"]) else ""
    what = f"{error.get('code') or report['outcome']}{warned}, exit {done.code}, {has}"
    said = f"exit {done.code}, {json.dumps(report)[:700]} {done.err[-200:]}"
    if done.code == 0:
        fine = report["outcome"] == scene.outcome and report["commits"] == 1 and landed
        return [] if fine else [f"not true: {said}"], what
    wrong = []
    if done.code != 1 or report["outcome"] not in ("refused", "failed"):
        wrong.append(f"no failure: {said}")
    if landed and error.get("code") != "outcome_unknown" and not report["commits"]:
        wrong.append(f"the commit is there, and the report does not say so: {said}")
    if report["commits"] and not landed:
        wrong.append(f"there is no commit: {said}")
    text = " ".join([error.get("message", ""), error.get("hint") or "", *error.get("causes", [])])
    if "nothing was" in text:
        found = untouched(before, os.path.join(folder, scene.place), "it said that nothing was written, but it")
        wrong += [w for w in found if not crash_scenes.LEFT_OVER.search(w)]
    if error.get("code") not in ("storage", "outcome_unknown", "conflict"):
        wrong.append(f"a failing disk is no `{error.get('code')}`: {said}")
    if not error.get("hint"):
        wrong.append(f"no next step: {said}")
    return wrong, what


def named(call):
    return f"{call.name} {call.path} ({call.count})"


def errors_of(call, is_change):
    """What a call may answer: (error, whether it stays so)."""
    if is_change:
        yield from itertools.product(("EIO", "ENOSPC"), (False, True))
        yield from ((e, False) for e in ("EACCES", "EROFS") + MORE_ERRORS.get(call.name, ()))
    elif call.name != "close":
        # Rust's library panics where a folder can't be closed; no disk says that.
        yield from (("EIO", False), ("EACCES", True))


def cases(scene, calls):
    """Every (function, arguments) for one scene."""
    kills = changes(calls)
    yield from ((killed, (c,)) for c in kills)
    yield from ((told_to_stop, (c,)) for c in kills)
    seen = set()
    for call in calls:
        if call in kills:
            yield from ((failed, (call, *error)) for error in errors_of(call, True))
        elif (call.name, call.path) not in seen and scene.looks:
            # Which thread looks at what is chance, and calls are counted by thread.
            seen.add((call.name, call.path))
            yield from ((failed, (call._replace(count=1), *error)) for error in errors_of(call, False))


def interrupt(bench, tmp):
    """All scenes: the calls are written down, then everything that can happen at each of them happens."""
    with ThreadPoolExecutor(bench.o.jobs) as pool:
        made = list(pool.map(lambda s: s.build(bench.o.bin, tmp), [s for s in crash_scenes.scenes() if wanted(bench.o, s.name)]))
        work, counts = [], {}
        for scene in made:
            folder = bench.folder(scene)
            done, calls = crash_trace.record(folder, scene.command(), (scene.place.split("/")[0], "out"))
            assert done.code == 0 and changes(calls), f"{scene.name}: nothing was written down"
            crash_clocks.syncs(bench, scene)
            counts[scene.name] = (len(changes(calls)), len(calls))
            calls = list(dict.fromkeys(calls))
            work += [pool.submit(f, bench, scene, *args) for f, args in cases(scene, calls)]
        for done in work:
            done.result()
    print("calls that change something / calls on the table:", ", ".join(f"{name} {a}/{b}" for name, (a, b) in counts.items()))


def wanted(o, name):
    return not o.only or any(word in name for word in o.only)


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--bin", required=True)
    ap.add_argument("--tools")
    ap.add_argument("--required", action="store_true", help="what this machine lacks is a failure")
    ap.add_argument("--only", nargs="*", default=[], help="scenes whose name holds one of these words")
    ap.add_argument("--jobs", type=int, default=2 * (os.cpu_count() or 1))
    ap.add_argument("--verbose", action="store_true", help="say how each run ended")
    ap.add_argument("--keep", action="store_true", help="leave the folders of failed cases behind")
    o = ap.parse_args()
    if not shutil.which("strace"):
        print("SKIPPED: strace is not there (Debian: apt-get install strace), so nothing was interrupted")
        sys.exit(1 if o.required else 0)
    tally = Tally()
    tmp = os.path.realpath(tempfile.mkdtemp(prefix="delta-migrate-crashes."))
    try:
        os.chmod(tmp, 0o755)   # for those whom permissions bind
        crash_trace.known_calls()
        o.bin = shutil.copy(os.path.abspath(o.bin), os.path.join(tmp, "delta-migrate"))
        bench = Bench(o, tmp, tally, load_judge(o.tools) if o.tools else None)
        began = time.time()
        if wanted(o, "places"):
            crash_places.places(bench)
        if wanted(o, "clocks"):
            crash_clocks.clocks(bench)
        interrupt(bench, tmp)
        print(f"interrupted in {time.time() - began:.0f} s; how the runs ended:")
        for what, n in sorted(bench.seen.items()):
            print(f"    {n:>5}  {what}")
        print("left beside the log after the rerun (readers skip them):", ", ".join(f"{n} {what}N" for what, n in bench.left.items()) or "nothing")
    finally:
        if not o.keep:
            shutil.rmtree(tmp, ignore_errors=True)
    sys.exit(tally.close())


if __name__ == "__main__":
    main()
