"""program_test.py PROGRAM: `sluice run --program`: an archive on its way to hosts. Behind a false ssh (false_ssh.py) each
host is a home folder of its own; it can cut a connection or damage what it carries."""

import hashlib
import io
import json
import os
import signal
import subprocess
import sys
import tarfile
import time
import unittest
from pathlib import Path

from support import LauncherTest, wait_for


class Program(LauncherTest):
    def setUp(self):
        super().setUp()
        tools = self.work / "tools"
        tools.mkdir()
        (tools / "ssh").write_text(
            f"#!/bin/sh\nexec {sys.executable} -B {Path(__file__).with_name('false_ssh.py')} \"$@\"\n")
        (tools / "ssh").chmod(0o755)
        self.environment["PATH"] = f"{tools}:{self.environment['PATH']}"
        self.environment["FALSE_HOSTS"] = str(self.work)
        self.plan({})
        self.archive = self.pack("one", b"one")

    def plan(self, by_host):
        (self.work / "plan.json").write_text(json.dumps(by_host))

    def pack(self, name, word, top="sluice-1-linux-x86_64", file="bin/hello"):
        """An archive of 2 MB whose program prints a word."""
        plain = io.BytesIO()
        with tarfile.open(fileobj=plain, mode="w") as tar:
            for path, text, mode in ((file, b"#!/bin/sh\necho " + word + b" $SLUICE_PROCESS_ID from $0\n", 0o755),
                                     ("lib/large", os.urandom(2_000_000), 0o644)):
                entry = tarfile.TarInfo(f"{top}/{path}")
                entry.size, entry.mode = len(text), mode
                tar.addfile(entry, io.BytesIO(text))
        path = self.work / f"{name}.tar.zst"
        subprocess.run(["zstd", "-q", "-f", "-o", path], input=plain.getvalue(), check=True)
        return path

    def sum(self, archive):
        return hashlib.sha256(archive.read_bytes()).hexdigest()

    def programs(self, host):
        return self.work / host / ".cache/sluice/programs"

    def run_on(self, hosts, *arguments, archive=None):
        return self.run_program("--hosts", hosts, "--program", archive or self.archive, *arguments, "--", "hello")

    def assert_ran(self, done, hosts, word="one", archive=None):
        status, out, err = done
        self.assertEqual(status, 0, err)
        for worker, host in enumerate(hosts.split(",")):
            folder = self.programs(host) / self.sum(archive or self.archive)
            self.assertIn(f"{host} [{worker}] {word} {worker} from {folder}/bin/hello\n", out)
            self.assertFalse(list(folder.parent.glob("*.part")) + list(folder.parent.glob("*.new")))
        self.assert_nothing_left()

    def carried(self, host):
        """Bytes that each connection to the host has carried so far."""
        calls = self.work / host
        return [int((calls / f"call-{n}").read_text()) for n in range(len(list(calls.glob("call-*"))))]

    def test_sent_once(self):
        (self.work / "one.tar.zst.sha256").write_text(f"{self.sum(self.archive)}  one.tar.zst\n")
        done = self.run_on("a,b,c", "--ssh-parallel", 2, "--setup", "hello >setup")
        self.assert_ran(done, "a,b,c")
        self.assertIn("sent to 3, there already on 0 of 3 hosts", done[2])
        self.assertIn("one 1 from", (self.work / "b/setup").read_text())
        self.assertEqual([size > 2_000_000 for size in self.carried("a")], [True, False, False])
        done = self.run_on("a,b,c,d")
        self.assert_ran(done, "a,b,c,d")
        self.assertIn("sent to 1, there already on 3 of 4 hosts", done[2])
        self.assertLess(max(self.carried("a")[3:]), 100_000)
        self.assertGreater(self.carried("d")[0], 2_000_000)

    def test_a_host_without_zstd(self):
        tools = self.work / "a/tools"
        tools.mkdir(parents=True)
        for folder in ("/usr/bin", "/bin"):
            for tool in os.listdir(folder):
                if tool != "zstd" and not (tools / tool).exists():
                    (tools / tool).symlink_to(f"{folder}/{tool}")
        done = self.run_on("a,b")
        self.assert_ran(done, "a,b")
        self.assertFalse(list((self.state / "sluice/runs").glob("*/program.tar")))

    def test_a_broken_connection_goes_on_where_it_was(self):
        self.plan({"b": [["cut", 900_000], ["refuse", 0], ["cut", 600_000]]})
        done = self.run_on("a,b")
        self.assert_ran(done, "a,b")
        self.assertIn("b: the connection broke; continuing where it was", done[2])
        # Four connections for the archive, the last with the rest alone, and one for the worker.
        carried = self.carried("b")
        self.assertEqual(len(carried), 5)
        self.assertLess(carried[3], 600_000)

    def test_the_next_run_goes_on_too(self):
        self.plan({"a": [["slow", 0]]})
        process = self.start("--hosts", "a", "--program", self.archive, "--", "hello")
        wait_for("some of it", lambda: any(part.stat().st_size > 300_000 for part in self.programs("a").glob("*.part")))
        process.send_signal(signal.SIGINT)
        status, _, err = self.finish(process)
        self.assertEqual(status, 130, err)
        self.assert_nothing_left()
        (part,) = self.programs("a").glob("*.part")
        kept = part.stat().st_size
        self.assertLess(kept, 2_000_000)
        self.assert_ran(self.run_on("a"), "a")
        self.assertLess(self.carried("a")[1], self.archive.stat().st_size - kept + 100_000)

    def test_a_connection_that_never_works(self):
        self.plan({"b": [["refuse", 0]] * 9})
        status, out, err = self.run_on("a,b")
        self.assertEqual((status, out), (1, ""), err)
        self.assertIn('--program failed:\n  b: cannot reach b by ssh: "ssh: connect to host b port 22: Connection refused"', err)

    def test_damage_on_the_way(self):
        self.plan({"a": [["flip", 1_000_000]]})
        done = self.run_on("a,b")
        self.assert_ran(done, "a,b")
        self.assertIn("a: the program arrived damaged", done[2])
        self.plan({"c": [["flip", 1_000_000], ["flip", 1_000_000]]})
        status, out, err = self.run_on("b,c")
        self.assertEqual((status, out), (1, ""), err)
        self.assertIn("c: the program arrives damaged, twice now: its SHA-256 there is ", err)
        self.assertIn(f"expected {self.sum(self.archive)}", err)
        self.assertEqual(list(self.programs("c").glob("*.part")), [])

    def test_a_damaged_archive_is_not_sent(self):
        good = self.archive.read_bytes()
        for name, text, message in (("short", good[:-1000], "it ends in the middle"),
                                    ("changed", good[:3000] + b"\0\0\0\0" + good[3004:], " is damaged: "),
                                    ("text", b"hello\n", "is not packed with zstd"),
                                    ("empty", b"", "ends in the middle")):
            path = self.work / f"{name}.tar.zst"
            path.write_bytes(text)
            status, _, err = self.run_on("a", archive=path)
            self.assertEqual(status, 1, name)
            self.assertIn(message, err)
        (self.work / "one.tar.zst.sha256").write_text("0123  one.tar.zst\n")
        status, _, err = self.run_on("a")
        self.assertEqual(status, 1)
        self.assertIn(f"its SHA-256 is {self.sum(self.archive)}, expected 0123", err)
        status, _, err = self.run_on("a", archive=self.pack("other", b"x", file="program"))
        self.assertIn("has no FOLDER/bin", err)
        status, _, err = self.run_on("a", archive=self.work / "none.tar.zst")
        self.assertIn("No such file", err)
        self.assertFalse((self.work / "a").exists())

    def test_on_this_machine(self):
        self.environment["XDG_CACHE_HOME"] = str(self.work / "cache")
        for sent in (1, 0):
            status, out, err = self.run_program("--processes", 2, "--program", self.archive, "--", "hello")
            self.assertEqual(status, 0, err)
            self.assertIn(f"one 1 from {self.work}/cache/sluice/programs/{self.sum(self.archive)}/bin/hello\n", out)
            self.assertIn(f"sent to {sent}, there already on {1 - sent} of 1 host", err)

    def test_old_programs_make_room(self):
        archives = [self.pack(f"n{i}", b"n%d" % i) for i in range(5)]
        for i, archive in enumerate(archives):
            self.assert_ran(self.run_on("a", archive=archive), "a", f"n{i}", archive)
            past = time.time() - 1000 + i
            os.utime(self.programs("a") / self.sum(archive), (past, past))
            if i == 3:  # used once more
                self.assert_ran(self.run_on("a", archive=archives[1]), "a", "n1", archives[1])
        left = {path.name for path in self.programs("a").iterdir()}
        self.assertEqual(left, {self.sum(archives[i]) for i in (1, 3, 4)})

    def test_two_runs_at_once(self):
        self.plan({"a": [["slow", 0]]})
        first = self.start("--hosts", "a", "--program", self.archive, "--", "hello")
        wait_for("its beginning", lambda: list(self.programs("a").glob("*.part")))
        second = self.start("--hosts", "a", "--program", self.archive, "--", "hello")
        outputs = [self.finish(process) for process in (first, second)]
        for status, out, err in outputs:
            self.assertEqual(status, 0, err)
            self.assertIn("one 0 from", out)
        self.assertIn("there already on 1 of 1 host", outputs[1][2])

    def test_dry_run(self):
        status, out, err = self.run_on("a", "--dry-run")
        self.assertEqual(status, 0, err)
        self.assertIn(f"sum={self.sum(self.archive)}\nsize={self.archive.stat().st_size}\n", out)
        self.assertIn(f"/sluice/programs/{self.sum(self.archive)}", out)
        self.assertFalse((self.work / "a").exists())


if __name__ == "__main__":
    unittest.main()
