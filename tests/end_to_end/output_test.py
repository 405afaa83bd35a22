"""output_test.py PROGRAM: every verb with its standard output on a full disk (status 1 and one line that says so) and in a
pipe that its reader has closed (a quiet end). TABLE has all verbs that the program's completion lists. A test fails
where a verb has no entry there."""

import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "cloud"))
from google_fake_support import GoogleFake, test_python  # noqa: E402

PROGRAM = str(Path(sys.argv.pop(1)).resolve())
TORCH = (Path(PROGRAM).parent / "sluice-torch").exists()
NOUNS = {"bench", "env", "tpu", "task", "data", "text"}
ZONE = "us-central1-b"
ENVIRONMENT = f'[env]\nname = "e"\nproject = "p"\nzones = ["{ZONE}"]\nowner = "me"\nttl = "8h"\n\n[bucket]\n'

# What writes to standard output, in an order in which each finds what it needs.
PLAIN = [
    ("data pack", "data pack images set --shard-size 1"), ("data append", "data append set images"),
    ("data update", "data update set/train-0000.tar new"), ("data ls", "data ls a.tar"), ("data verify", "data verify a.tar"),
    ("data stats", "data stats a.tar"), ("data cat", "data cat a.tar"), ("data index", "data index a.tar"),
    ("data idx", "data idx idx/images idx/labels out-idx"), ("data cp", "data cp a.tar b.tar"),
    ("text tokenizer", "text tokenizer text --vocab-size 258 --out learnt.json"),
    ("text encode", "text encode tokenizer.json <text"), ("text decode", "text decode tokenizer.json <tokens"),
    ("text pack", "text pack text packed --tokenizer tokenizer.json"),
    ("text verify", "text verify packed/train-0000.bin --vocab-size 9"), ("run", "run --processes 1 -- echo hello"),
    ("run ls", "run ls"), ("run logs", "run logs"), ("top", "top --once"), ("doctor", "doctor"),
    ("completion", "completion fish"), ("", "--help")]
CLOUD = [
    ("env plan", "env plan"), ("env apply", "env apply --yes"), ("env update", "env update --yes"), ("env show", "env show"),
    ("env list", "env list"), ("tpu create", f"tpu create b --type v5litepod-8 --zones {ZONE}"), ("tpu list", "tpu list"),
    ("tpu show", "tpu show b"), ("tpu wait", "tpu wait b"), ("tpu types", "tpu types"), ("tpu quota", "tpu quota"),
    ("cost", "cost"), ("sweep", "sweep"), ("keep", "keep b --dry-run -- run -- true"),
    ("tpu run", "tpu run b --dry-run -- true"), ("task run", "task run test --dry-run"), ("tpu stop", "tpu stop b"),
    ("tpu start", "tpu start b"), ("tpu delete", "tpu delete b --yes"), ("env destroy", "env destroy --yes")]
WITH_TORCH = [
    ("train", "train --model cifar_resnet8 --fake-data --classes 4 --image-size 8 --batch-size 4 --fast-dev-run 1 --json"),
    ("devices", "devices")]
# Whose pipe is closed, too: what writes while it works, and one of each other kind.
STREAMS = {"data ls", "data verify", "data stats", "data cat", "text encode", "text decode", "run", "run ls", "top", "",
           "tpu types", "train"}
# What is not tried, and why.
ELSEWHERE = {
    "env init": "writes its file and standard error", "env import": "writes its file and standard error",
    "run attach": "tests/pod/trouble_test.py", "run stop": "writes standard error",
    "tpu ssh": "the output is ssh's", "tpu scp": "the output is scp's", "tpu logs": "run logs",
    "tpu attach": "run attach", "tpu ps": "needs hosts that answer", "tpu kill": "needs hosts that answer",
    "tpu guard": "needs hosts that answer", "profile": "needs a training that runs",
    "data digits": "as data pack", "data cifar10": "as data pack", "data mds": "as data pack",
    "text import": "as text pack", "text export": "as text pack",
    "text sample": "as devices: one end of all verbs with LibTorch", "text score": "as text sample",
    "export": "as devices", "bench step": "as devices", "compile": "as devices", "estimate": "as devices",
    "mlflow": "as devices"}


class Output(unittest.TestCase):
    def setUp(self):
        self.work = Path(tempfile.mkdtemp(prefix="sluice-output-"))
        self.addCleanup(shutil.rmtree, self.work, True)
        self.environment = {**os.environ, "XDG_STATE_HOME": str(self.work / "state"), "USER": "me"}

    def make_files(self):
        with tarfile.open(self.work / "a.tar", "w") as tar:
            for i in range(100):
                member = tarfile.TarInfo(f"{i}.cls")
                member.size = 1
                tar.addfile(member, io.BytesIO(b"1"))
        for name in ("images/cat/0.ppm", "images/dog/1.ppm"):
            path = self.work / name
            path.parent.mkdir(parents=True)
            path.write_bytes(b"P6 2 2 255\n" + bytes(12))
        (self.work / "new").mkdir()
        (self.work / "new" / "0000000.cls").write_text("1")
        (self.work / "idx").mkdir()
        (self.work / "idx" / "images").write_bytes(bytes([0, 0, 8, 3, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 2]) + bytes(4))
        (self.work / "idx" / "labels").write_bytes(bytes([0, 0, 8, 1, 0, 0, 0, 1, 0]))
        (self.work / "text").write_text("a b\n" * 20_000)
        (self.work / "tokens").write_text("0 1\n" * 20_000)
        (self.work / "tokenizer.json").write_text(json.dumps({
            "version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None,
            "pre_tokenizer": {"type": "Whitespace"}, "post_processor": None, "decoder": None,
            "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "u": 2}, "merges": [], "unk_token": "u"}}))

    def run_with(self, line, output):
        words, _, source = line.partition(" <")
        with open(self.work / source if source else os.devnull, "rb") as given:
            return subprocess.run([PROGRAM, *words.split()], cwd=self.work, stdin=given, stdout=output,
                                  stderr=subprocess.PIPE, text=True, env=self.environment, timeout=60)

    def loses(self, line):
        with open("/dev/full", "wb") as full:
            lost = self.run_with(line, full)
        self.assertEqual(lost.returncode, 1, lost.stderr)
        self.assertEqual(lost.stderr.count("cannot write standard output"), 1, lost.stderr)

    def closes(self, line, statuses=(0, -13)):
        read, write = os.pipe()
        os.close(read)
        closed = self.run_with(line, write)
        os.close(write)
        self.assertIn(closed.returncode, statuses, closed.stderr)
        self.assertNotIn("standard output", closed.stderr)

    def test_each_verb_has_an_entry(self):
        listed = subprocess.run([PROGRAM, "completion", "bash"], capture_output=True, text=True, env=self.environment).stdout
        verbs = set(re.findall(r"'([^']*)'", re.search(r"case \$next in\n(.*?)\) verb=", listed, re.DOTALL)[1]))
        self.assertGreater(len(verbs), 40)
        known = {verb for verb, _ in PLAIN + CLOUD + WITH_TORCH} | set(ELSEWHERE) | NOUNS
        self.assertEqual(verbs - known, set(), "add a line to a table above")
        if TORCH:
            self.assertEqual(known - verbs, {""})

    def test_plain(self):
        self.make_files()
        for verb, line in PLAIN:
            with self.subTest(verb):
                self.loses(line)
        for verb, line in PLAIN:
            if verb in STREAMS:
                with self.subTest(verb, pipe="closed"):
                    self.closes(line, (143,) if verb == "run" else (0, -13))  # run: docs/run.md

    @unittest.skipIf(test_python() is None, "google-api-python-client is not installed (scripts/python-test.txt)")
    def test_cloud(self):
        (self.work / "sluice-env.toml").write_text(ENVIRONMENT + '\n[tpu]\ntype = "v5litepod-8"\n\n[tasks]\ntest = "true"\n')
        with GoogleFake({"projects": ["p"], "zones": {ZONE: {"types": ["v5litepod-8"]}},
                         "timing": {"default": {"polls": 1}}}) as fake:
            self.environment |= {**fake.environment(), "SLUICE_GOOGLE_PROJECT": "p", "SLUICE_CLOUD_RETRY": "0.005:0.02:20",
                                 "HOME": str(self.work)}
            for verb, line in CLOUD:
                with self.subTest(verb):
                    self.loses(line)
                    if verb in STREAMS:
                        self.closes(line)

    @unittest.skipUnless(TORCH, "built without LibTorch")
    def test_with_torch(self):
        for verb, line in WITH_TORCH:
            with self.subTest(verb):
                self.loses(line)
                if verb in STREAMS:
                    self.closes(line)


if __name__ == "__main__":
    unittest.main()
