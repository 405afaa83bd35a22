"""check_stability.py: it finds a changed header, flag and variable, and renews its list only with the changelog."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

CHECK = Path(__file__).with_name("check_stability.py")
FILES = {
    "sluice/sluice.h": '// All.\n#include "sluice/a.h"\nint all();\n',
    "sluice/a.h": '#pragma once\n// Adds.\nint add(int a, int b = 1);  // "b"\nconstexpr char kPath[] = "a//b";\n',
    "sluice/private.h": "int hidden();\n",
    "sluice/base/variables.cc": 'names = {\n      "SLUICE_ONE",\n      "SLUICE_TWO",\n};\n',
    "docs/flags.md": "# Flags\n\n## sluice train\n\n| flag | key |\n| --- | --- |\n| `--lr` | `lr` |\n| `--out, --no-out` | |\n",
    "CHANGELOG.md": "# Changelog\n\n## 2.0.0\n\n- A.\n\n## 1.0.0\n\n- Old.\n",
}


class Stability(unittest.TestCase):
    def setUp(self):
        work = tempfile.TemporaryDirectory()
        self.addCleanup(work.cleanup)
        self.root = Path(work.name)
        for name, text in FILES.items():
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            (self.root / name).write_text(text)
        self.assertEqual(self.run_check("--renew").returncode, 0)

    def run_check(self, *arguments):
        return subprocess.run([sys.executable, "-B", str(CHECK), str(self.root), "--small", *arguments],
                              capture_output=True, text=True)

    def change(self, name, old, new):
        text = (self.root / name).read_text()
        self.assertIn(old, text)
        (self.root / name).write_text(text.replace(old, new))

    def assert_found(self, *faults):
        done = self.run_check()
        self.assertEqual(done.returncode, int(bool(faults)), done.stdout + done.stderr)
        self.assertEqual(done.stdout.splitlines()[-1].split(", ")[1], f"{len(faults)} faults", done.stdout)
        for fault in faults:
            self.assertIn(fault + "\n", done.stdout)

    def test_what_is_recorded(self):
        self.assert_found()
        names = [line.split(" = ")[0] for line in (self.root / "docs/stability.txt").read_text().splitlines()[1:]]
        self.assertEqual(names, ["changelog", "flag sluice train --lr", "flag sluice train --no-out",
                                 "flag sluice train --out", "header sluice/a.h",
                                 "header sluice/sluice.h", "variable SLUICE_ONE", "variable SLUICE_TWO"])

    def test_comments_and_layout_are_free(self):
        self.change("sluice/a.h", "// Adds.\nint add(int a, int b = 1);", "/* Adds\n   two. */\nint  add(int a,\n    int b=1) ;")
        self.change("sluice/private.h", "hidden", "other")
        self.assert_found()

    def test_declarations_are_not(self):
        self.change("sluice/a.h", "b = 1", "b = 2")
        self.assert_found("header sluice/a.h: its declarations have changed")
        self.change("sluice/a.h", "b = 2", "b = 1")
        self.change("sluice/a.h", "a//b", "a//c")  # what looks like a comment in a text
        self.assert_found("header sluice/a.h: its declarations have changed")

    def test_headers_that_come_and_go(self):
        self.change("sluice/sluice.h", "sluice/a.h", "sluice/private.h")
        self.assert_found("header sluice/a.h: is gone", "header sluice/private.h: is new")

    def test_flags_and_variables(self):
        self.change("docs/flags.md", "--lr", "--rate")
        self.change("sluice/base/variables.cc", "SLUICE_TWO", "SLUICE_THREE")
        self.assert_found("flag sluice train --lr: is gone", "flag sluice train --rate: is new",
                          "variable SLUICE_THREE: is new", "variable SLUICE_TWO: is gone")

    def test_the_list_is_renewed_only_with_the_newest_section(self):
        self.change("docs/flags.md", "--lr", "--rate")
        self.change("CHANGELOG.md", "Old", "Older")
        refused = self.run_check("--renew")
        self.assertEqual(refused.returncode, 1)
        self.assertIn("has not changed", refused.stdout)
        self.assert_found("flag sluice train --lr: is gone", "flag sluice train --rate: is new")
        self.change("CHANGELOG.md", "- A.", "- A.\n- `--rate` replaces `--lr`.")
        self.assertEqual(self.run_check("--renew").returncode, 0)
        self.assert_found()

    def test_few_entries_mean_that_the_files_have_another_form(self):
        done = subprocess.run([sys.executable, "-B", str(CHECK), str(self.root)], capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn("only 2 entries of the kind variable", done.stdout)


if __name__ == "__main__":
    unittest.main()
