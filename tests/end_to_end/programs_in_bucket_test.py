"""programs_in_bucket_test.py PROGRAM POD_PLUGIN: compiled programs in a bucket, of the fake of Google's services (the
emulator in Python ignores ifGenerationMatch, which locks need). One of the four hosts of an emulated slice compiles
each program for all, and a later start on other hosts compiles none."""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "cloud"))
from google_fake_support import GoogleFake, test_python  # noqa: E402

if test_python() is None:
    print("skipped: no google-api-python-client (scripts/setup installs the Python packages of the tests)")
    sys.exit(77)

PROGRAM, POD_PLUGIN = (str(Path(path).resolve()) for path in sys.argv[1:3])
PLACE = "gs://my-bucket/programs"
HOSTS = 4
TRAINING = ["train", "--model", "mlp", "--fake-data", "--classes", "4", "--image-size", "8", "--train-size", "32",
            "--test-size", "16", "--batch-size", "4", "--epochs", "1", "--log-steps", "2"]
failures = []


def check(condition, what, output=""):
    print(("ok " if condition else "FAILED ") + what, flush=True)
    if not condition:
        failures.append(what)
        print(str(output)[-3000:])


class Slice:
    """Four hosts of one TPU each. A start has its own hosts: home folders that nobody has seen before."""

    def __init__(self, root, google):
        self.root, self.starts = root, 0
        self.environment = dict(os.environ, **google.environment(), SLUICE_CLOUD_RETRY="0.05:1:60", OMP_NUM_THREADS="1",
                                TPU_LIBRARY_PATH=POD_PLUGIN, SLUICE_CACHE_DIR=PLACE)
        self.environment.pop("XDG_CACHE_HOME", None)

    def run(self, *command, **variables):
        done = subprocess.run([PROGRAM, *command], env=dict(self.environment, **variables), capture_output=True,
                              text=True, timeout=300)
        check(done.returncode == 0, " ".join(command[:3]), done.stdout + done.stderr)
        return done.stdout + done.stderr

    def train(self, *more):
        """The programs that the first host compiled, that it loaded, and that all hosts compiled."""
        self.starts += 1
        homes = self.root / f"start-{self.starts}"
        for name in ("pod", *map(str, range(HOSTS))):
            (homes / name).mkdir(parents=True)
        output = self.run("run", "--processes", str(HOSTS), "--env", "TPU_WORKER_ID={worker}",
                          "--env", f"HOME={homes}/{{worker}}", "--env", f"SLUICE_DUMP={homes}/{{worker}}/dump",
                          "--", PROGRAM, *TRAINING, "--plugin", "tpu", "--report",
                          "--logdir", str(homes / "run"), *more,
                          TPU_WORKER_HOSTNAMES=",".join(HOSTS * ["127.0.0.1"]), EMULATED_POD_DIR=str(homes / "pod"),
                          EMULATED_POD_DEVICES="1", SLUICE_LOG="debug")
        found = re.search(r"(\d+) compiled, (\d+) from the disk cache", output)
        check(found is not None, "the report counts compiles", output)
        everywhere = len(re.findall(r"program for '.*': \d+ operations, lowered in \S+ s, compiled in", output))
        return (int(found[1]), int(found[2]), everywhere) if found else (0, 0, 0)

    def recorded(self):
        """The programs' texts that `sluice compile` gets from this training, without running it."""
        folder = Path(tempfile.mkdtemp(dir=self.root))
        self.run(*TRAINING, "--logdir", str(folder / "run"), SLUICE_AHEAD=f"{HOSTS}:TPU v3::{folder}/step.mlir",
                 SLUICE_CACHE_DIR="off")
        return {path.read_text() for path in folder.glob("step.mlir*")}

    def dumped(self, what):
        """The texts of the programs with this name that the first host of the last start launched."""
        folder = self.root / f"start-{self.starts}" / "0" / "dump"
        return {path.read_text() for path in folder.glob(f"*-{what}.mlir")}

    def programs(self):
        folder = Path(tempfile.mkdtemp(dir=self.root))
        self.run("data", "cp", f"{PLACE}/*", str(folder) + "/", SLUICE_CACHE_DIR="off")
        return {path.name: path.read_bytes() for path in folder.iterdir()}


def main():
    with GoogleFake({"projects": ["p"]}) as google, tempfile.TemporaryDirectory() as root:
        status, _ = google.google("POST", "/storage/v1/b?project=p", {"name": "my-bucket"})
        check(status == 200, "the bucket", status)
        slice_ = Slice(Path(root), google)
        compiled, loaded, everywhere = slice_.train()
        recorded = slice_.recorded()
        for what in ("step", "evaluate"):
            texts = slice_.dumped(what)
            check(texts and texts <= recorded, f"each program '{what}' is recorded without running it",
                  (len(texts), len(recorded), len(texts & recorded)))
        programs = slice_.programs()
        check(len(programs) == compiled + loaded, "all hosts have one name for each program",
              (sorted(programs), compiled, loaded))
        check(everywhere == len(programs), "each program is compiled by one host", (everywhere, len(programs)))
        check(all(name.endswith(".program") for name in programs), "nothing else is there", sorted(programs))
        again = slice_.train()
        check(again == (0, compiled + loaded, 0), "a start on other hosts compiles nothing", again)
        check(slice_.programs() == programs, "and changes nothing in the bucket")
        other = slice_.train("--batch-size", "2")
        check(other[2] > 0, "another batch has other programs", other)
    sys.exit(f"failed: {failures}" if failures else 0)


main()
