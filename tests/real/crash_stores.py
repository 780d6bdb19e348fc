#!/usr/bin/env python3
"""The command killed, cut off or misled at each of its requests to an object store; then run again.

usage: crash_stores.py --bin BIN [--tools DIR] [--required]

DELTA_MIGRATE_TEST_S3 is the endpoint of an S3 (moto) with a bucket `bucket`; servers.sh run sets it. A proxy of our own
stands before it. At each request it kills the command before the store has acted, or after; drops the connection
before or after; answers 503 before or after; and from the commit's put on drops everything. What is there afterwards
must be the table as it was, or with the one whole commit; what the command says must be true; a run without faults
ends with exactly one commit.
"""
import argparse, collections, http.client, http.server, json, os, shutil, subprocess, sys, tempfile, threading, urllib.parse
import xml.etree.ElementTree
from concurrent.futures import ThreadPoolExecutor
import crash_scenes
from common import Tally, load_judge, snapshot
from crashes import true_answer

BUCKET = "bucket"
Answer = collections.namedtuple("Answer", "code out err")


class Proxy(http.server.ThreadingHTTPServer):
    """Passes requests on, and does one thing at the n-th of them."""
    daemon_threads = True

    def __init__(self, endpoint):
        self.endpoint = urllib.parse.urlsplit(endpoint).netloc
        self.what, self.at, self.child, self.seen, self.hit, self.lock = None, 0, None, [], False, threading.Lock()
        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, request, client_address):
        pass   # a client that was killed


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def handle_one(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        proxy = self.server
        with proxy.lock:
            number = len(proxy.seen)
            proxy.seen.append(f"{self.command} {urllib.parse.urlsplit(self.path).path.rsplit('/', 1)[-1]}")
            now = proxy.what and (number >= proxy.at if proxy.what.endswith("always") else number == proxy.at)
            what = proxy.what if now else ""
            proxy.hit = proxy.hit or bool(now)
        if what.startswith(("killed before", "dropped before", "503 before")):
            return self.act(what)
        upstream = http.client.HTTPConnection(proxy.endpoint, timeout=60)
        upstream.request(self.command, self.path, body, dict(self.headers.items()))
        answer = upstream.getresponse()
        content = answer.read()
        upstream.close()
        if what:
            return self.act(what)
        self.send_response_only(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in ("transfer-encoding", "content-length", "connection"):
                self.send_header(name, value)
        self.send_header("Content-Length", answer.getheader("Content-Length") if self.command == "HEAD" else str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = handle_one

    def act(self, what):
        if what.startswith("killed"):
            self.server.child.kill()
        if what.startswith("503"):
            self.send_response_only(503)
            self.send_header("Content-Length", "0")
            self.end_headers()
        else:
            self.close_connection = True
            self.connection.close()


class Store:
    """The bucket, asked without the proxy."""

    def __init__(self, endpoint):
        self.endpoint = urllib.parse.urlsplit(endpoint).netloc

    def ask(self, method, path, body=None):
        connection = http.client.HTTPConnection(self.endpoint, timeout=60)
        # moto wants to be told who asks, and believes it.
        who = "AWS4-HMAC-SHA256 Credential=testing/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0"
        connection.request(method, f"/{BUCKET}{path}", body, {"Authorization": who})
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        if answer.status >= 300:
            raise RuntimeError(f"{method} {path}: {answer.status} {content[:200]}")
        return content

    def upload(self, folder, prefix):
        for name in snapshot(folder):
            with open(os.path.join(folder, name), "rb") as f:
                self.ask("PUT", "/" + urllib.parse.quote(f"{prefix}/{name}"), f.read())

    def download(self, prefix, folder):
        shutil.rmtree(folder, ignore_errors=True)
        listing = xml.etree.ElementTree.fromstring(self.ask("GET", f"?list-type=2&prefix={urllib.parse.quote(prefix + '/', safe='')}"))
        for key in (e.text for e in listing.iter() if e.tag.endswith("Key")):
            path = os.path.join(folder, key[len(prefix) + 1:])
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as f:
                f.write(self.ask("GET", "/" + urllib.parse.quote(key)))


class Place:
    """One scene's table below a prefix of its own, behind a proxy of its own."""

    def __init__(self, o, scene, folder, store, prefix):
        self.scene, self.folder, self.store, self.prefix = scene, folder, store, prefix
        self.proxy = Proxy(o.endpoint)
        scene.copy(folder)
        store.upload(scene.before, prefix)
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("AWS_", "DELTA_MIGRATE"))}
        self.env = {**kept, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.proxy.server_port}", "AWS_ALLOW_HTTP": "true",
                    "AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing"}

    def run(self, what=None, at=0, more=()):
        proxy = self.proxy
        proxy.what, proxy.at, proxy.seen, proxy.hit = what, at, [], False
        args = [*self.scene.command()[:-1], *more, f"s3://{BUCKET}/{self.prefix}"]
        with proxy.lock:
            proxy.child = subprocess.Popen(args, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=self.env)
        out, err = proxy.child.communicate(timeout=180)
        return Answer(proxy.child.returncode, out, err)

    def look(self):
        """Fetches the table, and judges it: complaints, and whether the commit is there."""
        table = os.path.join(self.folder, self.scene.place)
        self.store.download(self.prefix, table)
        return self.scene.whole(self.folder)

    def converges(self, judge):
        scene = self.scene
        _, landed = self.look()
        done = self.run()
        report = crash_scenes.report_of(done.out)
        wanted = "current" if landed else scene.outcome
        wrong = [] if done.code == 0 and report.get("outcome") == wanted else [f"the rerun, wanted {wanted}: {done}"]
        found, landed = self.look()
        wrong += found + ([] if landed else ["after the rerun there is no commit"]) + scene.readable(self.folder, landed)
        table = os.path.join(self.folder, scene.place)
        if judge and scene.exists and landed:
            wrong += judge.judge(scene.before, table, crash_scenes.NS, "migrated", scene.to, (), crash_scenes.MAY)
        still = snapshot(table)
        done = self.run()
        self.look()
        if done.code or crash_scenes.report_of(done.out).get("outcome") != "current" or snapshot(table) != still:
            wrong.append(f"one more run: {done}")
        return wrong

    def close(self):
        self.proxy.shutdown()
        self.proxy.server_close()
        shutil.rmtree(self.folder, ignore_errors=True)


def case(o, bench, scene, what, at, more=()):
    name = f"{scene.name}: {what} request {at}"
    place = None
    try:
        place = Place(o, scene, os.path.join(bench.tmp, f"{scene.name}-{what}-{at}".replace(" ", "-")), bench.store, f"{scene.name}/{what}/{at}".replace(" ", "-"))
        done = place.run(what, at, more)
        wrong, landed = place.look()
        if not place.proxy.hit:
            wrong.append(f"there was no such request: {place.proxy.seen}")
        request = place.proxy.seen[at] if at < len(place.proxy.seen) else "?"
        name += f" ({request})"
        if what.startswith("killed"):
            ended = f"killed, {'with' if landed else 'without'} the commit"
            wrong += [] if done.code == -9 else [f"not killed: {done}"]
        else:
            found, ended = true_answer(scene, place.folder, done, landed, snapshot(scene.before))
            wrong += found
        wrong += place.converges(bench.judge)
    except Exception as e:
        wrong, ended = [f"{type(e).__name__}: {e}"], "an exception"
    finally:
        if place:
            place.close()
    with bench.lock:
        bench.tally.add(name, wrong)
        bench.ended[ended] += 1
        if o.verbose:
            print(f"{name}: {ended}", flush=True)


class Bench:
    def __init__(self, o, tmp):
        self.tmp, self.store, self.tally, self.lock, self.ended = tmp, Store(o.endpoint), Tally(), threading.Lock(), collections.Counter()
        self.judge = load_judge(o.tools) if o.tools else None


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--bin", required=True)
    ap.add_argument("--tools")
    ap.add_argument("--required", action="store_true", help="a store that is not there is a failure")
    ap.add_argument("--verbose", action="store_true", help="say how each run ended")
    o = ap.parse_args()
    o.endpoint = os.environ.get("DELTA_MIGRATE_TEST_S3")
    if not o.endpoint:
        print("SKIPPED: DELTA_MIGRATE_TEST_S3 is not set, so no request was cut off")
        sys.exit(1 if o.required else 0)
    tmp = os.path.realpath(tempfile.mkdtemp(prefix="delta-migrate-crashes."))
    try:
        o.bin = os.path.abspath(o.bin)
        bench = Bench(o, tmp)
        scenes = [s.build(o.bin, os.path.join(tmp, "scenes")) for s in crash_scenes.scenes() if s.name in ("create", "checksum", "special")]
        with ThreadPoolExecutor(2 * (os.cpu_count() or 1)) as pool:
            work = []
            for scene in scenes:
                place = Place(o, scene, os.path.join(tmp, scene.name), bench.store, scene.name + "/whole")
                done = place.run()
                requests = list(place.proxy.seen)
                assert done.code == 0 and place.look() == ([], True), f"{scene.name} without faults: {done}"
                place.close()
                print(f"{scene.name}: {', '.join(requests)}")
                put = next(n for n, r in enumerate(requests) if r.startswith("PUT"))
                for what in ("killed before", "killed after", "dropped before", "dropped after", "503 before", "503 after"):
                    work += [pool.submit(case, o, bench, scene, what, n) for n in range(len(requests))]
                work += [pool.submit(case, o, bench, scene, f"dropped {when} and always", put, ("--timeout", "1")) for when in ("before", "after")]
            for one in work:
                one.result()
        for what, n in sorted(bench.ended.items()):
            print(f"    {n:>4}  {what}")
    finally:
        shutil.rmtree(tmp, ignore_errors=True)
    sys.exit(bench.tally.close())


main()
