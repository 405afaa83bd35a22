"""pack_stops_test.py PROGRAM [--all]: `sluice data pack` and `append` to a bucket and to a disk, killed by SIGKILL at every
request to the bucket (every fifth without --all) and behind every shard on the disk, and started again: the same bytes as
of a run that nobody stopped, and nothing left over. Run by a Python with gcp-storage-emulator, an emulator of Cloud Storage."""

import contextlib
import http.client
import http.server
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

try:
    from gcp_storage_emulator.server import create_server
except ImportError:
    print("skipped: the Python package gcp-storage-emulator is not there (scripts/setup installs it)")
    sys.exit(77)

HERE = Path(__file__).resolve().parent
BUCKET = "b"
PROGRAM = Path(sys.argv[1]).resolve()
STEP = 1 if "--all" in sys.argv[2:] else 5


class Gate:
    """Stands before the emulator and counts requests; at a given one it kills the program, before or behind it."""

    def __init__(self, port):
        gate = self
        self.requests, self.kill_at, self.victim, self.lock = 0, None, None, threading.Lock()

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def pass_on(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                with gate.lock:
                    number, gate.requests = gate.requests, gate.requests + 1
                    kill = gate.kill_at is not None and number == gate.kill_at
                    if kill and number % 2 == 0:
                        gate.victim.send_signal(signal.SIGKILL)
                        return
                    if gate.kill_at is not None and number > gate.kill_at:
                        return
                with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port)) as emulator:
                    emulator.request(self.command, self.path, body, dict(self.headers))
                    reply = emulator.getresponse()
                    content = reply.read()
                if kill:
                    gate.victim.send_signal(signal.SIGKILL)
                    return
                self.send_response_only(reply.status)
                for name, value in reply.getheaders():
                    if name.lower() not in ("content-length", "transfer-encoding", "connection"):
                        self.send_header(name, value)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = pass_on

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.environment = dict(os.environ, STORAGE_EMULATOR_HOST=f"127.0.0.1:{self.server.server_port}",
                                SLUICE_CLOUD_RETRY="0.05:1:60")

    def start(self, command, kill_at=None):
        with self.lock:
            self.requests, self.kill_at = 0, kill_at
            self.victim = subprocess.Popen(command, env=self.environment, stdout=subprocess.PIPE,
                                           stderr=subprocess.STDOUT, text=True)
        out, _ = self.victim.communicate(timeout=120)
        return self.victim.returncode, out


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def objects(port):
    """Names and contents in the bucket."""
    found = {}
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port)) as emulator:
        emulator.request("GET", f"/storage/v1/b/{BUCKET}/o")
        names = [item["name"] for item in json.loads(emulator.getresponse().read()).get("items", [])]
        for name in names:
            emulator.request("GET", f"/download/storage/v1/b/{BUCKET}/o/{name.replace('/', '%2F')}?alt=media")
            found[name] = emulator.getresponse().read()
    return found


def of_set(port, name):
    return {key[len(name) + 1:]: value for key, value in objects(port).items() if key.startswith(name + "/")}


def check_bucket(gate, port, make, name):
    """`make(set)`: the commands that make a set; the last one is killed."""
    for command in make("whole-" + name):
        status, out = gate.start(command)
        assert status == 0, out
    whole, requests = of_set(port, "whole-" + name), gate.requests
    assert not any(".partial" in key for key in whole), sorted(whole)
    killed = continued = 0
    for at in range(0, requests, STEP):
        folder = f"{name}-{at}"
        *before, last = make(folder)
        for command in before:
            assert gate.start(command)[0] == 0
        status, _ = gate.start(last, kill_at=at)
        assert status == -signal.SIGKILL, (name, at, status)
        killed += 1
        if of_set(port, folder) == whole:
            continue  # all was there: only the answer to the last request was lost
        status, out = gate.start(last)
        assert status == 0, (name, at, out)
        continued += "were there from a run that was stopped" in out
        found = of_set(port, folder)
        assert sorted(found) == sorted(whole), (name, at, sorted(found), sorted(whole))
        assert found == whole, (name, at, [key for key in whole if found[key] != whole[key]])
    assert continued > 0, name
    print(f"{name} to a bucket: {killed} kills at {requests} requests, {continued} runs went on behind whole shards")


def check_disk(work, command, out):
    """Killed when each number of shards is there."""
    assert subprocess.run(command(out / "whole"), stdout=subprocess.DEVNULL).returncode == 0
    whole = {path.name: path.read_bytes() for path in (out / "whole").iterdir()}
    shards = len([name for name in whole if name.endswith(".tar")])
    went_on = 0
    for count in range(shards):
        folder = out / f"killed-{count}"
        victim = subprocess.Popen(command(folder), stdout=subprocess.DEVNULL)
        hidden = folder / ".train.partial"
        while victim.poll() is None and (not hidden.exists() or len(list(hidden.glob("*.tar"))) < count):
            time.sleep(0.0005)
        victim.send_signal(signal.SIGKILL)
        if victim.wait() == 0:
            continue
        done = subprocess.run(command(folder), capture_output=True, text=True)
        assert done.returncode == 0, (count, done.stderr)
        went_on += "were there from a run that was stopped" in done.stdout
        assert {path.name: path.read_bytes() for path in folder.iterdir()} == whole, count
    print(f"to a disk: {shards} kills, {went_on} runs went on behind whole shards")


def main():
    port = free_port()
    server = create_server("127.0.0.1", port, in_memory=True, default_bucket=BUCKET)
    server.start()
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        stack.callback(server.stop)
        work = Path(folder)
        for name, each in (("images", 8), ("more", 5)):
            subprocess.run([sys.executable, HERE / "make_images.py", work / name, "3", str(each)], check=True)
        (work / "more/class2").rename(work / "more/new")  # a class that the set does not have yet
        gate = Gate(port)

        def pack(place, verb="pack"):
            return [str(PROGRAM), "data", verb, str(work / "images"), place, "--shard-size", "6", "--workers", "1"]

        def append(place):
            return [str(PROGRAM), "data", "append", place, str(work / "more"), "--shard-size", "6", "--workers", "1"]

        check_bucket(gate, port, lambda name: [pack(f"gs://{BUCKET}/{name}")], "pack")
        check_bucket(gate, port, lambda name: [pack(f"gs://{BUCKET}/{name}"), append(f"gs://{BUCKET}/{name}")], "append")
        check_disk(work, lambda place: pack(str(place)), work / "disk")
        shutil.rmtree(work / "disk")
    print("passed")


if __name__ == "__main__":
    main()
