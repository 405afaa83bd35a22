"""What the launcher's tests share: a program under test, a state folder of its own, and a mark by which every process
that a run leaves behind is found."""

import glob
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest
import uuid
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "common"))
from waiting import DEADLINE, wait_for  # noqa: E402

PROGRAM = str(Path(sys.argv.pop(1)).resolve())


def marked_processes(mark):
    """Process id and command of all whose environment has the mark, zombies apart."""
    found = {}
    for path in glob.glob("/proc/[0-9]*/environ"):
        try:
            if mark.encode() in Path(path).read_bytes():
                found[int(path.split("/")[2])] = Path(path.replace("environ", "cmdline")).read_bytes().replace(
                    b"\0", b" ").decode(errors="replace")[:120]
        except OSError:
            pass
    return found


class LauncherTest(unittest.TestCase):
    def setUp(self):
        self.work = Path(tempfile.mkdtemp(prefix="sluice-pod-"))
        self.addCleanup(shutil.rmtree, self.work, True)
        self.state = self.work / "state"
        self.mark = f"SLUICE_TEST_MARK={uuid.uuid4()}"
        name, value = self.mark.split("=")
        self.environment = {**os.environ, name: value, "XDG_STATE_HOME": str(self.state)}
        self.addCleanup(self.kill_marked)

    def kill_marked(self):
        for process in marked_processes(self.mark):
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                pass

    def start(self, *arguments, prefix=()):
        process = subprocess.Popen([*prefix, PROGRAM, "run", *map(str, arguments)], cwd=self.work, env=self.environment,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        return process

    def finish(self, process):
        out, err = process.communicate(timeout=2 * DEADLINE)
        return process.returncode, out, err

    def run_program(self, *arguments):
        return self.finish(self.start(*arguments))

    def assert_nothing_left(self):
        try:
            wait_for("all processes to end", lambda: not marked_processes(self.mark), 20)
        except AssertionError:
            self.fail(f"left behind: {marked_processes(self.mark)}")

    def only_run(self):
        """The folder of the one run there is."""
        runs = wait_for("a run", lambda: list((self.state / "sluice/runs").glob("*")))
        self.assertEqual(len(runs), 1)
        return runs[0]

    def wait_for_lines(self, count, pattern):
        """Until so many lines of the merged log have the pattern."""
        merged = self.only_run() / "merged.log"
        wait_for(f"{count} lines with {pattern}",
                 lambda: merged.exists() and merged.read_text(errors="replace").count(pattern) >= count)
