"""programs_in_bucket_test.py PROGRAM POD_PLUGIN: compiled programs in a bucket, against a real emulator of Cloud Storage. The
hosts of an emulated slice compile each program once, and a later start on other hosts compiles none. Run by a Python
with gcp-storage-emulator."""

import os
import re
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

try:
    from gcp_storage_emulator.server import create_server
except ImportError as error:
    print(f"skipped: {error} (scripts/setup installs the Python packages of the tests)")
    sys.exit(77)

PROGRAM, POD_PLUGIN = (str(Path(path).resolve()) for path in sys.argv[1:3])
PLACE = "gs://b/programs"
TRAINING = ["train", "--model", "mlp", "--fake-data", "--classes", "4", "--image-size", "8", "--train-size", "32",
            "--test-size", "16", "--batch-size", "4", "--epochs", "1", "--log-steps", "2"]
failures = []


def check(condition, what, output=""):
    print(("ok " if condition else "FAILED ") + what, flush=True)
    if not condition:
        failures.append(what)
        print(str(output)[-3000:])


class Slice:
    """Two hosts of two TPUs each. A start has its own hosts: home folders that nobody has seen before."""

    def __init__(self, root, port):
        self.root, self.starts = root, 0
        self.environment = dict(os.environ, STORAGE_EMULATOR_HOST=f"127.0.0.1:{port}", SLUICE_CLOUD_RETRY="0.05:1:60",
                                OMP_NUM_THREADS="1", TPU_LIBRARY_PATH=POD_PLUGIN, SLUICE_CACHE_DIR=PLACE)
        self.environment.pop("XDG_CACHE_HOME", None)

    def run(self, *command, **variables):
        done = subprocess.run([PROGRAM, *command], env=dict(self.environment, **variables), capture_output=True,
                              text=True, timeout=300)
        check(done.returncode == 0, " ".join(command[:3]), done.stdout + done.stderr)
        return done.stdout + done.stderr

    def train(self, *more):
        """The programs that the first host compiled, and that it loaded."""
        self.starts += 1
        home = self.root / f"home-{self.starts}"
        (home / "pod").mkdir(parents=True)
        output = self.run("run", "--processes", "2", "--env", "TPU_WORKER_ID={worker}", "--", PROGRAM, *TRAINING,
                          "--plugin", "tpu", "--report", "--logdir", str(home / "run"), *more, HOME=str(home),
                          TPU_WORKER_HOSTNAMES="127.0.0.1,127.0.0.1", EMULATED_POD_DIR=str(home / "pod"),
                          EMULATED_POD_DEVICES="2")
        found = re.search(r"(\d+) compiled, (\d+) from the disk cache", output)
        check(found is not None, "the report counts compiles", output)
        return (int(found[1]), int(found[2])) if found else (0, 0)

    def programs(self):
        folder = Path(tempfile.mkdtemp(dir=self.root))
        self.run("data", "cp", f"{PLACE}/*", str(folder) + "/", SLUICE_CACHE_DIR="off")
        return {path.name: path.read_bytes() for path in folder.iterdir()}


def main():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = create_server("127.0.0.1", port, in_memory=True, default_bucket="b")
    server.start()
    try:
        with tempfile.TemporaryDirectory() as root:
            slice_ = Slice(Path(root), port)
            compiled, loaded = slice_.train()
            check(compiled > 0, "the first start compiles", (compiled, loaded))
            programs = slice_.programs()
            check(len(programs) == compiled + loaded, "both hosts have one name for each program",
                  (sorted(programs), compiled, loaded))
            check(all(name.endswith(".program") for name in programs), "nothing else is there", sorted(programs))
            again = slice_.train()
            check(again == (0, compiled + loaded), "a start on other hosts compiles nothing", again)
            check(slice_.programs() == programs, "and changes nothing in the bucket")
            other = slice_.train("--batch-size", "2")
            check(other[0] > 0, "another batch has other programs", other)
    finally:
        server.stop()
    sys.exit(f"failed: {failures}" if failures else 0)


main()
