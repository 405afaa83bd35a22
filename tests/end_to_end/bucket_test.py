"""bucket_test.py PROGRAM [gs|s3]: buckets as a user meets them, against a real emulator of Cloud Storage, or moto for S3:
pack, list, copy, update, train to and from the bucket, resume; of gs:// also a process that is killed while it fills the cache.
Run by a Python with gcp-storage-emulator, or boto3 and moto."""

import contextlib
import filecmp
import functools
import http.client
import http.server
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

STORE = sys.argv[2] if len(sys.argv) > 2 else "gs"
try:
    if STORE == "gs":
        from gcp_storage_emulator.server import create_server
    else:
        import boto3
        from moto.server import ThreadedMotoServer
except ImportError as error:
    print(f"skipped: {error} (scripts/setup installs the Python packages of the tests)")
    sys.exit(77)

HERE = Path(__file__).resolve().parent
BUCKET = "b" if STORE == "gs" else "a-bucket"
ROOT = f"{STORE}://{BUCKET}"
failures = []


def check(condition, *what):
    if not condition:
        failures.append(" ".join(map(str, what)))
        print("FAILED:", *what)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Program:
    def __init__(self, path, port, work):
        self.path, self.work = path, work
        self.environment = dict(os.environ, STORAGE_EMULATOR_HOST=f"127.0.0.1:{port}", OMP_NUM_THREADS="1",
                                AWS_ENDPOINT_URL=f"http://127.0.0.1:{port}", AWS_ACCESS_KEY_ID="id",
                                AWS_SECRET_ACCESS_KEY="secret", SLUICE_CLOUD_RETRY="0.05:1:60")

    def __call__(self, *arguments, status=0):
        done = subprocess.run([self.path, *map(str, arguments)], env=self.environment, capture_output=True, text=True)
        check(done.returncode == status, "status", done.returncode, "instead of", status, ":", *arguments,
              done.stderr[-1500:])
        return done.stdout + done.stderr


def make_images(work):
    for name, count in (("train-images", 40), ("test-images", 7)):
        subprocess.run([sys.executable, HERE / "make_images.py", work / name, "3", str(count)], check=True)


def pack_and_copy(run, work):
    for part in ("train", "test"):
        run("data", "pack", work / f"{part}-images", f"{ROOT}/set", "--prefix", part, "--shard-size", 25)
        run("data", "pack", work / f"{part}-images", work / "local", "--prefix", part, "--shard-size", 25)
    listed = run("data", "ls", f"{ROOT}/set/train-*.tar")
    check("120 samples" in listed, "ls:", listed)
    refused = run("data", "pack", work / "train-images", f"{ROOT}/set", status=1)
    check("already holds 5 shards" in refused, "pack over a set:", refused)
    run("data", "cp", f"{ROOT}/set/*", work / "down")
    names = sorted(path.name for path in (work / "down").iterdir())
    check("sizes.json" in names and "classes.txt" in names, "objects of the set:", names)
    shards = [name for name in names if name.endswith(".tar")]
    equal, different, odd = filecmp.cmpfiles(work / "down", work / "local", shards, shallow=False)
    check(len(equal) == len(shards) == 6, "shards that differ:", different, odd)
    refused = run("data", "cp", work / "down" / shards[0], f"{ROOT}/set/", status=1)
    check("--overwrite" in refused, "cp over an object:", refused)
    run("data", "cp", f"{ROOT}/set/t*.tar", f"{ROOT}/copy/")
    check("6 shards" in run("data", "ls", f"{ROOT}/copy/{{train,test}}-*.tar"), "the copy")
    run("data", "index", f"{ROOT}/copy/*.tar")
    run("data", "cp", f"{ROOT}/copy/*", work / "indexed")
    names = {path.name for path in (work / "indexed").iterdir()}
    check({"sizes.json", "train-0000.idx", "test-0000.idx"} <= names, "index files in a bucket:", sorted(names))
    missing = run("data", "ls", f"{ROOT}/none/x.tar", status=1)
    check(f"{ROOT}/none/x.tar" in missing and "404" in missing, "a missing object:", missing)


def objects(run, pattern, folder):
    """The objects that match, copied into a fresh folder: {name: path}."""
    with tempfile.TemporaryDirectory(dir=folder) as fresh:
        run("data", "cp", pattern, fresh + "/")
        return {path.name: path.read_bytes() for path in Path(fresh).iterdir()}


def train(run, work):
    def flags(place):
        return ["train", "--model", "mlp", "--train", f"{place}/train-*.tar", "--test", f"{place}/test-*.tar",
                "--classes", 3, "--crop", 12, "--batch-size", 16, "--device", "cpu", "--log-steps", 2,
                "--lr-schedule", "constant"]  # the default one depends on the number of epochs

    remote, runs = flags(f"{ROOT}/set"), f"{ROOT}/runs/one"
    run(*flags(work / "local"), "--epochs", 2, "--logdir", work / "whole")
    first = run(*remote, "--epochs", 1, "--logdir", runs)
    check(f"{runs}/last" in first, "the last lines name the bucket:", first[-400:])
    root = objects(run, f"{runs}/*", work)
    check({"last", "best", "metrics.csv", "metrics.jsonl"} <= set(root), "the log folder has", sorted(root))
    check(any(name.startswith("events.out.tfevents") for name in root), "events in", sorted(root))
    earlier = root["last"].decode().strip()
    run("data", "cp", f"{runs}/{earlier}/*", f"{ROOT}/runs/without-last/checkpoint-1/")
    for place in ("cut", "broken"):
        run("data", "cp", f"{runs}/{earlier}/model.safetensors", f"{ROOT}/runs/{place}/checkpoint-1/")
    run("data", "cp", f"{runs}/best", f"{ROOT}/runs/broken/")
    second = run(*remote, "--epochs", 2, "--logdir", runs, "--resume")
    check(f"Going on from {runs}" in second, "resumed:", second[-400:])
    root = objects(run, f"{runs}/*", work)
    last = root["last"].decode().strip()
    weights = objects(run, f"{runs}/{last}/*", work)
    check({"model.safetensors", "state.safetensors", "state.json"} <= set(weights), "a checkpoint has", sorted(weights))
    whole = (work / "whole/last/model.safetensors").read_bytes()
    check(weights.get("model.safetensors") == whole, "the weights of the resumed run differ from the uninterrupted one's")
    steps = [line.split(",")[1:3] for line in root["metrics.csv"].decode().splitlines()]
    local = [line.split(",")[1:3] for line in (work / "whole/metrics.csv").read_text().splitlines()]
    check(steps == local, "rows of metrics.csv:", steps, local)
    # Old checkpoints are gone: what is there is named by last or best.
    named = {root["last"].decode().strip(), root["best"].decode().strip()}
    states = run("data", "cp", f"{runs}/checkpoint-*/state.json", work / "states/", status=0 if len(named) == 1 else 1)
    check(len(named) == 1 or "two of the files" in states, "checkpoints that are left:", states)
    # Another folder goes on from the bucket.
    for start in (runs, f"{runs}/last", f"{runs}/{last}"):
        third = run(*remote, "--epochs", 2, "--logdir", work / "other", "--resume", start)
        check(f"Going on from {start}" in third, "resumed from", start, ":", third[-400:])
    without_last(run, work, remote, whole)
    nothing = run(*remote, "--epochs", 1, "--resume", f"{ROOT}/runs/none", "--logdir", work / "x", status=1)
    check("there is no checkpoint in" in nothing, "resume from nothing:", nothing[-400:])


def without_last(run, work, remote, whole):
    """What a run that is killed with its first checkpoint leaves: a whole folder without `last`, or a part of one. Where
    there is `best`, there was a whole one."""
    for place, said in (("without-last", "continuing from checkpoint-1, the newest whole checkpoint there"),
                        ("cut", "checkpoint-1 lacks state.safetensors and state.json, as after a run that was killed")):
        folder = f"{ROOT}/runs/{place}"
        again = run(*remote, "--epochs", 2, "--logdir", folder, "--resume")
        check(f"{folder}/last is missing" in again and said in again, place, ":", again[-1500:])
        check(("Going on from" in again) == (place == "without-last"), place, "begins:", again[-1500:])
        last = objects(run, f"{folder}/*", work)["last"].decode().strip()
        weights = objects(run, f"{folder}/{last}/*", work)["model.safetensors"]
        check(weights == whole, place, "ends with other weights than a run that nothing disturbed")
    broken = run(*remote, "--epochs", 2, "--logdir", f"{ROOT}/runs/broken", "--resume", status=1)
    check("runs/broken/last is missing, and no checkpoint there is whole: checkpoint-1 lacks state.safetensors and state.json: "
          "bring them back" in broken, "a run without its checkpoint:", broken[-1500:])
    check(objects(run, f"{ROOT}/runs/broken/checkpoint-1/*", work).keys() == {"model.safetensors"}, "what was there stays")


def update(run, work):
    """Another class for a sample, in the bucket as on a disk; a run that goes on says that its set has changed."""
    flags = ["--model", "mlp", "--train", f"{ROOT}/set/train-*.tar", "--classes", 3, "--crop", 12, "--batch-size", 16,
             "--device", "cpu", "--lr-schedule", "constant", "--logdir", work / "changing"]
    run("train", *flags, "--epochs", 1)
    fixed = work / "fixed"
    run("data", "cat", f"{ROOT}/set/train-*.tar", "--key", "0000030", "--out", fixed)
    label = fixed / "0000030.cls"
    label.write_text(str((int(label.read_text()) + 1) % 3))
    for place in (f"{ROOT}/set", work / "local"):
        said = run("data", "update", f"{place}/train-*.tar", fixed)
        check("1 sample changed (2 members replaced, 0 added) in 1 shard, which was written again" in said, "update:", said)
        said = run("data", "verify", f"{place}/train-*.tar")
        check("120 samples" in said and "no problems" in said, "the set that was updated:", said)
    check(objects(run, f"{ROOT}/set/train-*.tar", work) ==
          {path.name: path.read_bytes() for path in (work / "local").glob("train-*.tar")}, "the updated shards differ")
    again = run("train", *flags, "--epochs", 2, "--resume")
    check("epoch 2 reads other data than the run began with: the shards have the same names and numbers of samples, but "
          "other contents than they had" in again, "an epoch of a set that was changed:", again[-1500:])


def profiles(run, work):
    """Each process brings its own files to the bucket."""
    run("run", "--processes", 2, "--", run.path, "train", "--model", "mlp", "--fake-data", "--classes", 4, "--image-size", 8,
        "--train-size", 160, "--test-size", 16, "--batch-size", 16, "--epochs", 1, "--profile", "2:4", "--logdir", f"{ROOT}/runs/two")
    found = objects(run, f"{ROOT}/runs/two/plugins/profile/*/*", work)
    endings = sorted(name[name.rindex("-") + 1:] for name in found)
    expected = sorted(f"{process}.{ending}" for process in (0, 1) for ending in ("layers.json", "txt", "trace.json.gz", "xplane.pb"))
    check(endings == expected, "profiles in the bucket:", sorted(found))
    check(all(b"Steps 2 to 3: " in text for name, text in found.items() if name.endswith(".txt")), "their steps")


def weights(run, work):
    """Weights straight from the bucket, of a run, a checkpoint and a file, and from a web server."""
    runs, folder = f"{ROOT}/runs/one", work / "exported"
    folder.mkdir()
    flags = ["train", "--model", "mlp", "--train", f"{work}/local/train-*.tar", "--classes", 3, "--crop", 12, "--batch-size",
             16, "--device", "cpu", "--epochs", 0]
    run("export", f"{runs}/best", folder / "from_best.safetensors")
    run("export", runs, folder / "from_run.safetensors")
    run("export", f"{runs}/last", f"{ROOT}/weights/mlp.pt")
    run("export", f"{ROOT}/weights/mlp.pt", folder / "from_file.safetensors")
    with contextlib.closing(FileServer(folder)) as server:
        run("export", f"{server.url}/from_file.safetensors", folder / "from_web.safetensors")
        refused = run("export", f"{server.url}/nothing.pt", folder / "x.pt", status=1)
        check("404" in refused and "/nothing.pt" in refused, "weights that are not there:", refused)
        run(*flags, "--weights", f"{server.url}/from_web.safetensors", "--logdir", work / "started")
    last = {(folder / name).read_bytes() for name in
            ("from_run.safetensors", "from_file.safetensors", "from_web.safetensors")}
    check(len(last) == 1, "the weights differ by the way that they came")
    check((folder / "from_best.safetensors").stat().st_size == len(last.pop()), "the best weights' size")
    run(*flags, "--weights", f"{runs}/best", "--logdir", work / "started")
    run(*flags, "--weights", f"{ROOT}/weights/mlp.pt", "--logdir", work / "started")
    nothing = run(*flags, "--weights", f"{ROOT}/none.pt", "--logdir", work / "started", status=1)
    check(f"neither a file of weights nor a checkpoint at {ROOT}/none.pt" in nothing, "no weights:", nothing)
    no_weights = run("export", f"{ROOT}/set/classes.txt", folder / "x.pt", status=1)
    check(f"{ROOT}/set/classes.txt: " in no_weights, "an object that is no weights:", no_weights)


class FileServer:
    """The files of a folder over HTTP, on a free port."""

    def __init__(self, folder):
        handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=folder)
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


class Gate:
    """Stands before the emulator: lets the first bytes of each shard through and holds the others."""

    def __init__(self, port, first_bytes):
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port)) as emulator:
                    emulator.request("GET", self.path, headers=dict(self.headers))
                    reply = emulator.getresponse()
                    body = reply.read()
                self.send_response_only(reply.status)
                for name, value in reply.getheaders():
                    if name.lower() not in ("content-length", "transfer-encoding", "connection"):
                        self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                held = "alt=media" in self.path and ".tar" in self.path
                self.wfile.write(body[:first_bytes] if held else body)
                if held:
                    self.rfile.read(1)  # until the client is gone

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.address = f"127.0.0.1:{self.server.server_port}"

    def close(self):
        self.server.shutdown()
        self.server.server_close()


def kill_while_caching(run, port, work, folder, kind):
    """`kind`: shards that several streams share are read in parts, with index files or without; a file of the cache has
    those that are there."""
    cache = work / f"cache-{folder}"
    command = [run.path, "train", "--model", "mlp", "--train", f"{ROOT}/{folder}/train-*.tar", "--classes", "3", "--crop",
               "12", "--batch-size", "16", "--device", "cpu", "--epochs", "1", "--logdir", str(work / "cached"), "--cache",
               str(cache)]
    for first_bytes in (0, 1000, 20000):
        with contextlib.closing(Gate(port, first_bytes)) as gate:
            victim = subprocess.Popen(command, env=dict(run.environment, STORAGE_EMULATOR_HOST=gate.address),
                                      stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            parts, end = f"*.{victim.pid}-*.part", time.monotonic() + 120
            while time.monotonic() < end and victim.poll() is None and not any(cache.glob(parts)):
                time.sleep(0.001)
            victim.send_signal(signal.SIGKILL)
            check(victim.wait() == -signal.SIGKILL, "the run ended before it was killed:", victim.returncode)
            check(any(cache.glob(parts)), "no object was half in the cache when the run was killed")
    # Whatever remained, a full run is right, and a second one finds everything whole.
    for _ in range(2):
        run(*command[1:])
    whole = sorted(path.read_bytes() for path in cache.glob(f"*.{kind}"))
    shards = sorted(path.read_bytes() for path in (work / "local").glob("train-*.tar"))
    # Behind a copy stands a checksum of four bytes for each 256 KiB, and one of these; of parts also a byte for each.
    blocks = [-(-len(shard) // (256 << 10)) for shard in shards]
    sizes = [len(shard) + 4 * (count + 1) + (count if kind == "parts" else 0) for shard, count in zip(shards, blocks)]
    check([len(kept) for kept in whole] == sizes and all(map(bytes.startswith, whole, shards)),
          "the cache holds", [len(kept) for kept in whole], "expected", sizes, "among", sorted(path.name for path in cache.iterdir()))
    check(not list(cache.glob("*.part")), "parts are left in the cache")


def start_store(port):
    if STORE == "gs":
        server = create_server("127.0.0.1", port, in_memory=True, default_bucket=BUCKET)
    else:
        server = ThreadedMotoServer(ip_address="127.0.0.1", port=port, verbose=False)
    server.start()
    if STORE == "s3":
        boto3.client("s3", endpoint_url=f"http://127.0.0.1:{port}", region_name="us-east-1", aws_access_key_id="id",
                     aws_secret_access_key="secret").create_bucket(Bucket=BUCKET)
    return server


def main(program):
    port = free_port()
    server = start_store(port)
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        stack.callback(server.stop)
        work = Path(folder)
        run = Program(program, port, work)
        make_images(work)
        pack_and_copy(run, work)
        train(run, work)
        update(run, work)
        weights(run, work)
        if STORE == "gs":
            profiles(run, work)
            kill_while_caching(run, port, work, "set", "parts")
            run("data", "cp", f"{ROOT}/set/train-*.tar", f"{ROOT}/set/sizes.json", f"{ROOT}/whole/")
            kill_while_caching(run, port, work, "whole", "parts")
    print(f"{len(failures)} failures" if failures else "passed")
    sys.exit(bool(failures))


if __name__ == "__main__":
    main(sys.argv[1])
