"""output_test.py PROGRAM: verbs whose standard output is on a full disk (status 1 and one line that says so) or a pipe that
its reader has closed (a quiet end)."""

import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest
from pathlib import Path

PROGRAM = str(Path(sys.argv.pop(1)).resolve())
TRAIN = "train --model cifar_resnet8 --fake-data --classes 4 --image-size 8 --batch-size 4 --fast-dev-run 1 --json"


class Output(unittest.TestCase):
    def setUp(self):
        self.work = Path(tempfile.mkdtemp(prefix="sluice-output-"))
        self.addCleanup(shutil.rmtree, self.work, True)
        with tarfile.open(self.work / "a.tar", "w") as tar:
            for i in range(100):
                member = tarfile.TarInfo(f"{i}.cls")
                member.size = 1
                tar.addfile(member, io.BytesIO(b"1"))
        (self.work / "text").write_text("a b\n" * 20_000)
        (self.work / "tokens").write_text("0 1\n" * 20_000)
        (self.work / "tokenizer.json").write_text(json.dumps({
            "version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None,
            "pre_tokenizer": {"type": "Whitespace"}, "post_processor": None, "decoder": None,
            "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "u": 2}, "merges": [], "unk_token": "u"}}))

    def verbs(self):
        for line in ("data ls a.tar", "data verify a.tar", "data stats a.tar",
                     "data cat a.tar", "text encode tokenizer.json <text",
                     "text decode tokenizer.json <tokens", "run ls", "--help"):
            yield line

    def run_with(self, line, output):
        words, _, source = line.partition("<")
        with open(self.work / source if source else os.devnull, "rb") as given:
            return subprocess.run([PROGRAM, *words.split()], cwd=self.work, stdin=given, stdout=output,
                                  stderr=subprocess.PIPE, text=True,
                                  env={**os.environ, "XDG_STATE_HOME": str(self.work / "state")})

    def loses(self, line):
        with open("/dev/full", "wb") as full:
            lost = self.run_with(line, full)
        self.assertEqual(lost.returncode, 1, lost.stderr)
        self.assertEqual(lost.stderr.count("cannot write standard output"), 1, lost.stderr)

    @unittest.skipUnless((Path(PROGRAM).parent / "sluice-torch").exists(), "built without LibTorch")
    def test_train(self):
        self.loses(TRAIN)

    def test_all(self):
        for line in self.verbs():
            with self.subTest(line):
                self.loses(line)
                read, write = os.pipe()
                os.close(read)
                closed = self.run_with(line, write)
                os.close(write)
                self.assertIn(closed.returncode, (0, -13), closed.stderr)
                self.assertNotIn("standard output", closed.stderr)


if __name__ == "__main__":
    unittest.main()
