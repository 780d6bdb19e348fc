"""Places that do not let a commit through, for crashes.py: full disks, no permission, read-only mounts, no hard links.

Each is asked twice: the answer must be `storage`, say what to do about this very place, and leave every byte as it was;
and once the place is mended the same command must do its work. And what a loss of power may leave behind.
"""
import json, os, resource, shlex, shutil, stat, subprocess
import crash_trace
from crash_scenes import Scene, kind, nothing, report_of, special, special_kind, stamped
from common import DELTALAKE, engine, snapshot, untouched

NOBODY = 65534
ROOM, READ_ONLY, USER, LINKS = "make room", "mounted read-only", "who may create files", "need hard links"


WIDE = kind(0) + '[[migrations]]\ndescription = "many"\n[migrations.add_columns]\n' + "".join(f"dm_{n} = \"struct<a: long, b: string>\"\n" for n in range(200))


def scenes():
    return [
        Scene("behind", stamped(2), "migrated"),
        Scene("new", nothing, "created"),
        Scene("wide", stamped(0), "migrated", chain=WIDE, to=1),
        Scene("timed", special, "migrated", chain=special_kind(5), rows=False),
    ]


def places(bench):
    """All of them."""
    made = {s.name: s.build(bench.o.bin, os.path.join(bench.tmp, "places")) for s in scenes()}
    behind, new, large = made["behind"], made["new"], made["wide"]
    for error in ("EPERM", "EOPNOTSUPP", "ENOSYS"):
        without_links(bench, behind, error)
        without_links(bench, new, error)
    # A file system of 4 KiB blocks; the commits of `behind` and `new` take one, that of `wide` several.
    in_mount(bench, "a full disk", behind, "size=1m", "fill", ROOM)
    in_mount(bench, "a full disk", new, "size=1m", "fill", ROOM)
    in_mount(bench, "a disk that becomes full in the middle of the entry", large, "size=1m", "fill 2", ROOM)
    in_mount(bench, "a disk without inodes", behind, "nr_inodes=16", "inodes", ROOM)
    in_mount(bench, "a disk without inodes", new, "nr_inodes=8", "inodes", ROOM)
    in_mount(bench, "a read-only mount", behind, "size=1m", "mount -o remount,ro disk", READ_ONLY, "mount -o remount,rw disk")
    in_mount(bench, "a read-only mount", new, "size=1m", "mount -o remount,ro disk", READ_ONLY, "mount -o remount,rw disk")
    forbidden(bench, behind, "t/_delta_log", 0o555, USER)
    forbidden(bench, behind, "t/_delta_log", 0o444, "permissions")
    forbidden(bench, behind, "t/_delta_log", 0o311, "permissions")
    forbidden(bench, behind, "t/_delta_log", 0o000, "permissions")
    forbidden(bench, behind, "t", 0o000, "permissions")
    forbidden(bench, new, ".", 0o555, USER)
    for scene in (behind, new, large):
        file_size(bench, scene)
    power_lost(bench, behind, "", "migrated")
    power_lost(bench, behind, '{"commitInfo":{"timest', "corrupt_log")
    power_lost(bench, made["timed"], "", "corrupt_log")


def answer(scene, folder, code, out, err, hint, before):
    """Complaints about how the place was told, and about what is there now."""
    report = report_of(out)
    error = report.get("error") or {}
    said = f"exit {code}, {out[:900]} {err[-300:]}"
    wrong = [] if code == 1 and report.get("outcome") == "failed" and error.get("code") == "storage" and report["commits"] == 0 else [f"no failure: {said}"]
    if hint not in (error.get("hint") or ""):
        wrong.append(f"the hint does not say {hint!r}: {said}")
    return wrong + untouched(before, os.path.join(folder, scene.place), "a failed run")


def finish(bench, name, scene, folder, wrong):
    bench.tally.add(name, wrong + scene.converges(folder, bench.judge))
    shutil.rmtree(folder, ignore_errors=True)


def without_links(bench, scene, error):
    folder = bench.folder(scene)
    before = snapshot(os.path.join(folder, scene.place))
    done = crash_trace.strace(folder, scene.command(), ["-qq", "-e", "trace=link,linkat", "-e", f"inject=link,linkat:error={error}"])
    wrong = answer(scene, folder, done.code, done.out, done.err, LINKS, before)
    finish(bench, f"{scene.name}: no hard links ({error})", scene, folder, wrong)


FILL = """
fill() { # all blocks but so many
    dd if=/dev/zero of=disk/filler bs=4096 2>/dev/null || true
    if [ -n "${1:-}" ]; then truncate -s "-$((4096 * $1))" disk/filler; fi
}
inodes() { i=0; while : >"disk/filler$i"; do i=$((i + 1)); done 2>/dev/null; true; }
"""


def in_mount(bench, what, scene, options, spoil, hint, mend="rm -f disk/filler*"):
    """A tmpfs of this process alone, spoilt and mended."""
    name = f"{scene.name}: {what}"
    if subprocess.run([*namespace(), "mount", "-t", "tmpfs", "none", "/tmp"], capture_output=True).returncode:
        print(f"SKIPPED {name}: no file system can be mounted here")
        return bench.tally.skip(name, "no file system can be mounted here")
    folder = bench.folder(scene)
    os.mkdir(os.path.join(folder, "disk"))
    command = shlex.join(scene.command()[:-1] + ["disk/" + scene.place])
    table = "disk/" + scene.place
    script = f"""{FILL}
    mount -t tmpfs -o {options} none disk
    if [ -d {scene.place} ]; then cp -r {scene.place} disk/; fi
    {spoil}
    {command} >failed 2>failed.err; echo $? >failed.code
    if [ -d {table} ]; then cp -r {table} after; else mkdir after; fi
    {mend}
    {command} >done 2>done.err; echo $? >done.code
    rm -rf {scene.place}
    cp -r {table} {scene.place}
    """
    p = subprocess.run([*namespace(), "bash", "-c", script], cwd=folder, capture_output=True, text=True, env=crash_trace.environment())
    read = lambda n: open(os.path.join(folder, n), encoding="utf-8").read()
    try:
        os.rename(os.path.join(folder, "after"), os.path.join(folder, "kept"))
        shutil.copytree(os.path.join(folder, "kept"), os.path.join(folder, "spoilt", scene.place))
        wrong = answer(scene, os.path.join(folder, "spoilt"), int(read("failed.code")), read("failed"), read("failed.err"), hint, snapshot(scene.before))
        if int(read("done.code")) or report_of(read("done")).get("outcome") != scene.outcome:
            wrong.append(f"mended: exit {read('done.code')}, {read('done')[:500]} {read('done.err')[-300:]}")
    except OSError as e:
        wrong = [f"{e}: {p.stdout[-300:]} {p.stderr[-500:]}"]
    finish(bench, name, scene, folder, wrong)


def namespace():
    return ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-rm"]


def forbidden(bench, scene, path, mode, hint):
    """As somebody whom the permissions bind: root is let through everywhere."""
    folder = bench.folder(scene)
    user = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}
    for top, _, names in os.walk(folder) if user else ():
        for n in [".", *names]:
            os.chown(os.path.join(top, n), NOBODY, NOBODY)
    before = snapshot(os.path.join(folder, scene.place))
    spoilt = os.path.join(folder, path)
    was = stat.S_IMODE(os.stat(spoilt).st_mode)
    os.chmod(spoilt, mode)
    p = subprocess.run(scene.command(), cwd=folder, capture_output=True, text=True, env=crash_trace.environment(), **user)
    os.chmod(spoilt, was)
    wrong = answer(scene, folder, p.returncode, p.stdout, p.stderr, hint, before)
    finish(bench, f"{scene.name}: {path} with mode {mode:03o}", scene, folder, wrong)


def file_size(bench, scene):
    """A limit on the size of files: told as an error, or ended by the signal that comes with it."""
    for told in (True, False):
        folder = bench.folder(scene)
        before = snapshot(os.path.join(folder, scene.place))
        # Python ignores the signal, and hands that on unless told otherwise.
        p = subprocess.run(scene.command(), cwd=folder, capture_output=True, text=True, env=crash_trace.environment(), restore_signals=not told,
                           preexec_fn=lambda: (resource.setrlimit(resource.RLIMIT_FSIZE, (600, 600)), resource.setrlimit(resource.RLIMIT_CORE, (0, 0))))
        if told:
            wrong = answer(scene, folder, p.returncode, p.stdout, p.stderr, ROOM, before)
        else:
            wrong, landed = scene.whole(folder)
            wrong += [] if p.returncode < 0 and not landed else [f"exit {p.returncode}"]
        finish(bench, f"{scene.name}: files may have 600 bytes, {'told' if told else 'killed'}", scene, folder, wrong)


def power_lost(bench, scene, left, wanted):
    """Between link and sync, and only there, a loss of power may leave the entry's name without all of its bytes."""
    folder = bench.folder(scene)
    with open(scene.path(folder), "w", encoding="utf-8") as f:
        f.write(left)
    table = os.path.join(folder, scene.place)
    before = snapshot(table)
    code, report, err = scene.rerun(folder)
    said = f"exit {code}, {json.dumps(report)[:500]} {err[-300:]}"
    found = engine(DELTALAKE, table)
    if wanted == "corrupt_log":
        # Other readers stop at half an entry as well; without it the table is as it was.
        fine = code == 1 and report["error"]["code"] == wanted and (not left or "error" in found)
        wrong = [] if fine else [f"{said}; {found}"]
        wrong += untouched(before, table, "a refused run")
        os.remove(scene.path(folder))
        finish(bench, f"{scene.name}: {'half' if left else 'no bytes of'} an entry", scene, folder, wrong)
        return
    # An empty entry is one without actions, and the work is done on top of it.
    fine = code == 0 and report["outcome"] == wanted and report["log_version"] == scene.version + 1
    wrong = [] if fine and found == scene.read_after else [f"{said}; {found}"]
    changed = [w for w in untouched(before, table, "the rerun") if f"{scene.version + 1:020}.json" not in w]
    bench.tally.add(f"{scene.name}: an empty entry", wrong + changed)
    shutil.rmtree(folder, ignore_errors=True)
