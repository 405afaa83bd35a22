"""scripts/build_budget.py and scripts/test_report.py: their sums, and when they fail."""

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"

NINJA_LOG = """# ninja log v5
0\t40000\t1\ta.o\taa
0\t40000\t1\ta.d\taa
40000\t50500\t1\tb.o\tbb
"""
JUNIT = """<testsuite name="x" tests="3" failures="1">
<testcase name="room_test" time="1.5" status="run"/>
<testcase name="script" time="7" status="run"/>
<testcase name="crashed" time="2" status="fail"><failure message=""/></testcase>
<testcase name="absent" time="0" status="notrun"><skipped message=""/></testcase>
</testsuite>"""
GOOGLE_TEST = """<testsuites><testsuite name="S">
<testcase name="A" status="run" time="0.5" classname="S"/>
<testcase name="B" status="notrun" time="0" classname="S"><skipped message="b_test.cc:7&#x0A;libtpu is missing"/></testcase>
</testsuite></testsuites>"""


def run(script, *arguments, **variables):
    return subprocess.run([sys.executable, str(SCRIPTS / script), *map(str, arguments)], capture_output=True, text=True,
                          env={**os.environ, **variables})


class RunPaths(unittest.TestCase):
    def test_what_the_loader_may_look_into(self):
        sys.path.insert(0, str(Path(__file__).resolve().parent))
        from check_run_paths import faults_of
        allowed = [Path("/build"), Path("/torch")]
        self.assertEqual(list(faults_of("x", ["$ORIGIN", "$ORIGIN/../lib", "/build/lib", "/torch/lib"], allowed)), [])
        for entry in ("", ".", "lib", "../lib", "$ORIGINAL/lib", "/tmp/lib", "/building/lib"):
            self.assertEqual(len(list(faults_of("x", [entry], allowed))), 1, entry)


class Scripts(unittest.TestCase):
    def setUp(self):
        work = tempfile.TemporaryDirectory()
        self.addCleanup(work.cleanup)
        self.folder = Path(work.name)
        (self.folder / ".ninja_log").write_text(NINJA_LOG)
        (self.folder / "reports").mkdir()

    def report(self, junit):
        (self.folder / "reports/ctest.junit").write_text(junit)
        (self.folder / "reports/room_test.xml").write_text(GOOGLE_TEST)
        return run("test_report.py", self.folder)

    def test_a_command_with_two_outputs_counts_once(self):
        done = run("build_budget.py", self.folder, SLUICE_BUILD_BUDGET="51")
        self.assertEqual(done.returncode, 0)
        self.assertIn("cost 50 core-seconds", done.stdout)

    def test_past_the_budget_is_a_failure(self):
        done = run("build_budget.py", self.folder, SLUICE_BUILD_BUDGET="50")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("over its budget", done.stderr)

    def test_a_slow_machine_has_more(self):
        yardstick = self.folder / "yardstick"
        (self.folder / ".ninja_log").write_text(NINJA_LOG.replace("50500", "5250500"))
        self.assertNotEqual(run("build_budget.py", self.folder).returncode, 0)
        yardstick.write_text("1.00\n10.00\n")
        done = run("build_budget.py", "--yardstick", yardstick, self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("cost 5250 core-seconds (budget 11818", done.stdout)
        self.assertEqual(run("build_budget.py", "--yardstick", yardstick).returncode, 0)
        self.assertEqual(len(yardstick.read_text().split()), 3)

    def test_a_crash_is_one_failure_and_cases_are_counted(self):
        done = self.report(JUNIT)
        self.assertEqual(done.stdout.splitlines()[-1], "2 passed, 1 failed, 2 skipped")
        self.assertIn("S.B: libtpu is missing\n", done.stdout)
        self.assertEqual(done.stdout.count("skipped: "), 2)
        self.assertNotEqual(done.returncode, 0)

    def test_all_good(self):
        good = JUNIT.replace("crashed", "fine").replace('status="fail"', 'status="run"').replace(
            '<failure message=""/>', "")
        done = self.report(good)
        self.assertEqual(done.stdout.splitlines()[-1], "3 passed, 0 failed, 2 skipped")
        self.assertEqual(done.returncode, 0)

    def test_what_is_too_long_for_its_label_is_named(self):
        self.report(JUNIT)
        done = run("test_report.py", "--fast-limit", 5, self.folder)
        self.assertIn("so its label should be slow: 7.0 s", done.stdout)
        self.assertEqual(done.stdout.count("should be slow"), 1)
        self.assertNotIn("should be slow", run("test_report.py", self.folder).stdout)

    def test_no_test_is_a_failure(self):
        done = run("test_report.py", self.folder)
        self.assertEqual(done.stdout.splitlines()[-1], "0 passed, 0 failed, 0 skipped")
        self.assertNotEqual(done.returncode, 0)


if __name__ == "__main__":
    unittest.main()
