"""build_budget.py BUILD_FOLDER…: what the builds cost, and a failure when it is more than the project allows itself.

Adds up the seconds that each command of the last builds took (two at a time on two cores, so core-seconds), as ninja
logged them. SLUICE_BUILD_BUDGET overrides the limit, for machines that do other work at the same time.
"""

import os
import sys
from pathlib import Path

# `make test` is to take at most 50 minutes on two cores with a cold compiler cache, tests included.
BUDGET_CORE_SECONDS = 4000
SHOWN = 10


def commands(folder):
    """{(start, end, hash): (seconds, first output)} of a build folder's last builds; a command may have many outputs."""
    rows = {}
    for line in (Path(folder) / ".ninja_log").read_text().splitlines():
        if not line.startswith("#"):
            start, end, _, output, digest = line.split("\t")
            rows.setdefault((start, end, digest), ((int(end) - int(start)) / 1000, f"{folder}/{output}"))
    return rows.values()


def main(folders):
    budget = float(os.environ.get("SLUICE_BUILD_BUDGET", BUDGET_CORE_SECONDS))
    rows = sorted((row for folder in folders if (Path(folder) / ".ninja_log").exists() for row in commands(folder)),
                  reverse=True)
    total = sum(seconds for seconds, _ in rows)
    print(f"the build cost {total:.0f} core-seconds (budget {budget:.0f}); the {SHOWN} dearest steps:")
    for seconds, output in rows[:SHOWN]:
        print(f"  {seconds:7.1f} s  {output}")
    if total > budget:
        sys.exit("the build is over its budget: narrow the includes or join files before adding more")


if __name__ == "__main__":
    main(sys.argv[1:])
