"""build_budget.py [--yardstick FILE] [BUILD_FOLDER…]: what the builds cost, and a failure when it is too much.

Adds up the seconds that each command of the last builds took (two at a time on two cores, so core-seconds), as ninja
logged them. The limit holds for a machine of a certain speed. Without folders, how fast this one is now is measured and
added to FILE; with folders, the slowest measurement in FILE stretches the limit. SLUICE_BUILD_BUDGET overrides it.
"""

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

# `make test` is to take at most 50 minutes on two cores with a cold compiler cache, tests included.
BUDGET_CORE_SECONDS = 5200
# What YARDSTICK takes on the machine for which that is meant, in seconds.
YARDSTICK_SECONDS = 4.4
YARDSTICK = """
#include <functional>
#include <iostream>
#include <map>
#include <regex>
bool found(const std::string& text) {
  static const std::regex pattern("a+b");
  return std::regex_search(text, pattern);
}
"""
COMPILE = ["c++", "-std=c++20", "-O1", "-fsanitize=address", "-x", "c++", "-c", "-", "-o", os.devnull]
SHOWN = 10


def measure_yardstick():
    """Seconds that the yardstick takes to compile, on each core at once."""
    started = time.monotonic()
    compilers = [subprocess.Popen(COMPILE, stdin=subprocess.PIPE) for _ in range(os.cpu_count())]
    for compiler in compilers:
        compiler.stdin.write(YARDSTICK.encode())
        compiler.stdin.close()
    if any([compiler.wait() for compiler in compilers]):
        sys.exit("the yardstick does not compile")
    return time.monotonic() - started


def slowness(path):
    """How many times as long as meant the yardstick took at worst; 1 where it was faster or not measured."""
    if path is None or not path.exists():
        return 1.0
    return max(1.0, max(map(float, path.read_text().split()), default=0) / YARDSTICK_SECONDS)


def commands(folder):
    """{(start, end, hash): (seconds, first output)} of a build folder's last builds; a command may have many outputs."""
    rows = {}
    for line in (Path(folder) / ".ninja_log").read_text().splitlines():
        if not line.startswith("#"):
            start, end, _, output, digest = line.split("\t")
            rows.setdefault((start, end, digest), ((int(end) - int(start)) / 1000, f"{folder}/{output}"))
    return rows.values()


def check(folders, factor):
    budget = float(os.environ.get("SLUICE_BUILD_BUDGET", factor * BUDGET_CORE_SECONDS))
    rows = sorted((row for folder in folders if (Path(folder) / ".ninja_log").exists() for row in commands(folder)),
                  reverse=True)
    total = sum(seconds for seconds, _ in rows)
    print(f"the build cost {total:.0f} core-seconds (budget {budget:.0f}, on a machine that takes {factor:.2f} times "
          f"as long as meant); the {SHOWN} dearest steps:")
    for seconds, output in rows[:SHOWN]:
        print(f"  {seconds:7.1f} s  {output}")
    if total > budget:
        sys.exit("the build is over its budget: narrow the includes or join files before adding more")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--yardstick", type=Path)
    parser.add_argument("folders", nargs="*")
    options = parser.parse_args()
    if options.folders:
        check(options.folders, slowness(options.yardstick))
    elif options.yardstick:
        with options.yardstick.open("a") as file:
            print(f"{measure_yardstick():.2f}", file=file)
    else:
        parser.error("expected --yardstick, or the folders of builds")


if __name__ == "__main__":
    main()
