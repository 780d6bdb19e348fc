#!/usr/bin/env bash
# Real object stores on the loopback interface, for tests/it/stores.rs:
#
#   tests/real/servers.sh install              into target/ci-servers; what is there already stays
#   tests/real/servers.sh run COMMAND [ARG…]   starts all of them on free ports, sets the variables below,
#                                              runs the command, ends what it started, and exits as it did
#
#   DELTA_MIGRATE_TEST_S3      moto: S3 as it should be
#   DELTA_MIGRATE_TEST_AZURE   Azurite: Azure storage as it should be
#   DELTA_MIGRATE_TEST_LIAR    s3rver: takes the second of two conditional writes
#   DELTA_MIGRATE_TEST_S3S     s3s-fs: lets several of racing conditional writes win, now and then
#   DELTA_MIGRATE_TEST_GLUE    moto again, which is a Glue catalog as well
#
# On each S3 there is the bucket `bucket`, on Azurite the container `container`. The credentials are
# testing / testing, for s3rver S3RVER / S3RVER, for Azurite its well-known account. Nothing is left behind but target/ci-servers.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

home=$PWD/target/ci-servers
started=()
data=""
command=""

install() {
    mkdir -p "$home"
    if ! "$home/py/bin/python" -c 'import moto, flask, flask_cors' 2>/dev/null; then
        rm -rf "$home/py"
        python3 -m venv "$home/py"
        "$home/py/bin/python" -m pip install -q --disable-pip-version-check 'moto[s3,glue]==5.2.*' flask flask-cors
    fi
    if [ ! -x "$home/node_modules/.bin/azurite-blob" ] || [ ! -x "$home/node_modules/.bin/s3rver" ]; then
        npm install --silent --no-audit --no-fund --prefix "$home" azurite@3.35.0 s3rver@3.7.1
    fi
    if [ ! -x "$home/bin/s3s-fs" ]; then
        cargo install --quiet s3s-fs --version '0.14.*' --features binary --root "$home" --target-dir "$home/build"
        rm -rf "$home/build"
    fi
    echo "servers are installed in target/ci-servers"
}

free_port() {
    python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

# Starts a server in a session of its own, so that its children end with it.
start() {
    local name=$1
    shift
    setsid "$@" >"$data/$name.log" 2>&1 </dev/null &
    started+=($!)
}

# Waits until a port is listened at; a server that ended or never came up is an error with its log.
await() {
    local name=$1 port=$2
    for _ in $(seq 150); do
        if (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then
            return
        fi
        sleep 0.2
    done
    echo "$name did not come up on port $port:"
    cat "$data/$name.log"
    return 1
}

stop() {
    local pid
    if [ -n "$command" ]; then
        kill -TERM "$command" 2>/dev/null || true
    fi
    for pid in "${started[@]}"; do
        kill -TERM -- "-$pid" 2>/dev/null || true
    done
    for pid in "${started[@]}"; do
        for _ in $(seq 25); do
            kill -0 "$pid" 2>/dev/null || break
            sleep 0.1
        done
        kill -KILL -- "-$pid" 2>/dev/null || true
        wait "$pid" 2>/dev/null || true
    done
    if [ -n "$data" ]; then
        rm -rf "$data"
    fi
}

# Azurite's account and its key are the same everywhere, and no secret.
make_container() {
    "$home/py/bin/python" - "$1" <<'PY'
import base64, email.utils, hashlib, hmac, http.client, sys
account, port = "devstoreaccount1", sys.argv[1]
key = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
now = email.utils.formatdate(usegmt=True)
signed = "PUT" + "\n" * 12 + f"x-ms-date:{now}\nx-ms-version:2021-08-06\n/{account}/{account}/container\nrestype:container"
mac = hmac.new(base64.b64decode(key), signed.encode(), hashlib.sha256).digest()
headers = {
    "x-ms-date": now,
    "x-ms-version": "2021-08-06",
    "Authorization": f"SharedKey {account}:{base64.b64encode(mac).decode()}",
}
connection = http.client.HTTPConnection("127.0.0.1", int(port), timeout=10)
connection.request("PUT", f"/{account}/container?restype=container", headers=headers)
answer = connection.getresponse()
if answer.status != 201:
    sys.exit(f"Azurite made no container: {answer.status} {answer.read().decode()}")
PY
}

run() {
    trap stop EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM
    data=$(mktemp -d "${TMPDIR:-/tmp}/delta-migrate-servers.XXXXXX")
    mkdir -p "$data/azurite" "$data/s3rver" "$data/s3s/bucket"
    local moto azurite liar s3s
    moto=$(free_port) azurite=$(free_port) liar=$(free_port) s3s=$(free_port)
    start moto "$home/py/bin/moto_server" -H 127.0.0.1 -p "$moto"
    start azurite "$home/node_modules/.bin/azurite-blob" --blobHost 127.0.0.1 --blobPort "$azurite" \
        -l "$data/azurite" --silent --skipApiVersionCheck
    start s3rver "$home/node_modules/.bin/s3rver" -a 127.0.0.1 -p "$liar" -d "$data/s3rver" --silent \
        --configure-bucket bucket
    start s3s "$home/bin/s3s-fs" --host 127.0.0.1 --port "$s3s" --access-key testing --secret-key testing "$data/s3s"
    await moto "$moto"
    await azurite "$azurite"
    await s3rver "$liar"
    await s3s "$s3s"
    curl -sS -f -X PUT "http://127.0.0.1:$moto/bucket" >/dev/null
    make_container "$azurite"

    export DELTA_MIGRATE_TEST_S3=http://127.0.0.1:$moto
    export DELTA_MIGRATE_TEST_GLUE=http://127.0.0.1:$moto
    export DELTA_MIGRATE_TEST_AZURE=http://127.0.0.1:$azurite
    export DELTA_MIGRATE_TEST_LIAR=http://127.0.0.1:$liar
    export DELTA_MIGRATE_TEST_S3S=http://127.0.0.1:$s3s
    # Bash runs no trap while it waits for a command in the foreground.
    "$@" <&0 &
    command=$!
    wait "$command"
}

case ${1:-} in
install) install ;;
run)
    shift
    [ $# -gt 0 ] || { echo "run what?" >&2; exit 2; }
    run "$@"
    ;;
*)
    sed -n '2,/^set /p' "${BASH_SOURCE[0]}" | sed '$d; s/^# \{0,1\}//' >&2
    exit 2
    ;;
esac
