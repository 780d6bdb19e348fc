"""strace for crashes.py: which calls a run makes on some paths, and runs in which one of them fails or kills."""
import collections, os, re, subprocess

# What can change a table, and what only looks at it.
CHANGES = ("creat write writev pwrite64 pwritev pwritev2 link linkat symlink symlinkat rename renameat renameat2 unlink unlinkat "
           "rmdir mkdir mkdirat truncate ftruncate fallocate fsync fdatasync sync_file_range copy_file_range sendfile chmod fchmod "
           "fchmodat utimensat close").split()
LOOKS = "openat open read readv pread64 preadv statx newfstatat stat lstat fstat getdents64 lseek readlink readlinkat".split()

Call = collections.namedtuple("Call", "name path count creates")   # path relative to the folder; count within its thread


class Run:
    """How a run under strace ended."""

    def __init__(self, code, out, err, trace):
        self.code, self.out, self.err, self.trace = code, out, err, trace

    @property
    def was_hit(self):
        return "(INJECTED" in self.trace or "--- SIG" in self.trace or self.code < 0


def known_calls():
    """The calls of the lists above that this machine's strace knows; others do not exist here."""
    p = subprocess.run(["strace", "-e", "trace=" + ",".join("?" + c for c in CHANGES + LOOKS), "true"], capture_output=True, text=True)
    if p.returncode:
        raise RuntimeError(f"strace does not work here: {p.stderr.strip()[-300:]}")


def strace(folder, command, options, env=None, timeout=120):
    """Runs a command in a folder; stdout and stderr go to its files `out` and `err`."""
    trace = os.path.join(folder, "trace")
    args = ["strace", "-f", "-y", "-o", trace, *options, *command]
    with open(os.path.join(folder, "out"), "wb") as out, open(os.path.join(folder, "err"), "wb") as err:
        p = subprocess.run(args, cwd=folder, stdout=out, stderr=err, stdin=subprocess.DEVNULL, env=env or environment(), timeout=timeout)
    read = lambda name: open(os.path.join(folder, name), encoding="utf-8", errors="replace").read()
    return Run(p.returncode, read("out"), read("err"), read("trace"))


def environment():
    return {k: v for k, v in os.environ.items() if not k.startswith("DELTA_MIGRATE")}


def record(folder, command, below=("t", "out")):
    """Runs a command without faults: the run, and its calls on the paths `below` in the folder, in order."""
    names = ",".join("?" + c for c in CHANGES + LOOKS)
    done = strace(folder, command, ["-e", "signal=none", "-e", "trace=" + names])
    counts, calls = collections.Counter(), []
    for line in done.trace.splitlines():
        call = parse(line, folder, below)
        if call:
            thread, name, path, creates = call
            counts[thread, name, path] += 1
            calls.append(Call(name, path, counts[thread, name, path], creates))
    return done, calls


def parse(line, folder, below):
    """A line of the trace as (thread, call, path, whether it may create a file), if it is on one of the paths."""
    found = re.match(r"(\d+) +(\w+)\((.*)", line)
    if not found:
        return None
    thread, name, rest = found.groups()
    # The call's own data may hold paths too; the report on stdout does.
    at = re.findall(r'"((?:[^"\\]|\\.)*)"' if name.startswith(("link", "rename", "symlink")) else r'^(?:AT_FDCWD<[^>]*>, )?"((?:[^"\\]|\\.)*)"|^\d+<([^>]*)>', rest)
    paths = [p for pair in at for p in ([pair] if isinstance(pair, str) else pair) if p]
    paths = [p[len(folder) + 1:] for p in paths if p.startswith(folder + "/")]
    paths = [p for p in paths if p.split("/")[0] in below]
    if not paths:
        return None
    return thread, name, paths[-1], name == "openat" and "O_CREAT" in rest


def inject(folder, command, call, what, always=False, env=None):
    """Runs a command in which `what` (as strace says it) happens at one call, or at it and those like it after."""
    when = f"{call.count}+" if always else str(call.count)
    path = os.path.join(folder, call.path)
    options = ["-qq", "-P", path, "-e", f"trace={call.name}", "-e", f"inject={call.name}:{what}:when={when}"]
    return strace(folder, command, options, env)
