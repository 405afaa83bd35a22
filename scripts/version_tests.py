"""What scripts/test_plugin and scripts/test_torch share: the tests whose answers depend on XLA's and LibTorch's versions,
and the tables of docs/versions.md.
"""

import os
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/versions.md"
# What computes on the device and says by itself whether the values are right.
TESTS = "^(conformance_|sluice_device|sluice_generate|sluice_metrics|sluice_replica|language_)"
# Compiled for TPUs alone, or about the samples themselves.
NOT_THESE = "^conformance_(ahead|samples|sees)"


def run(build, only, environment=None):
    """The names of the tests that passed and of those that failed; None and None where no test has such a name."""
    command = ["ctest", "--test-dir", str(build), "-j", str(os.cpu_count()), "-LE", "perf", "-R", only, "-E", NOT_THESE]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=dict(os.environ, **(environment or {}))) as process:
        said = []
        for line in process.stdout:
            print(line, end="", flush=True)
            said.append(line)
    results = [re.search(r"Test +#\d+: (\S+) \.*(\**\S+)", line) for line in said]
    results = [(found[1], found[2]) for found in results if found]
    if not results:
        return None, None
    return ([name for name, result in results if result == "Passed"],
            [name for name, result in results if result != "Passed" and "Skipped" not in result])


def write_row(head, key, row):
    """Puts a row into the table that begins with the line `head`, in the place of the row that has the text `key`."""
    lines = PAGE.read_text().splitlines()
    begin = lines.index(head) + 2
    end = begin
    while end < len(lines) and lines[end].startswith("|"):
        end += 1
    rows = [line for line in lines[begin:end] if key not in line] + [row]
    PAGE.write_text("\n".join(lines[:begin] + sorted(rows) + lines[end:]) + "\n")
