"""test_report.py [--fast-limit SECONDS] BUILD_FOLDER…: the ten slowest tests, what was skipped and why, and the totals,
from the reports that scripts/run_tests collected.

A GoogleTest binary counts by its cases, any other test as one. A binary that failed without a failed case (a crash, a
timeout) counts as one failure more. --fast-limit, after a run of the tests labelled fast, names the programs that took
longer.
"""

import argparse
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

SHOWN = 10


def outcome_of(case):
    if case.find("failure") is not None or case.find("error") is not None or case.get("status") == "fail":
        return "failed"
    if case.find("skipped") is not None or case.get("status") in ("notrun", "disabled"):
        return "skipped"
    return "passed"


def reason_of(case):
    """Why a test was skipped: the last line that it said. GoogleTest puts it into the message, ctest knows the output."""
    skipped = case.find("skipped")
    if skipped is None:
        return "it did not run"
    text = case.findtext("system-out") or skipped.get("message") or ""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "it did not say why"


def parsed(path):
    """The report's root, or None for one that a crash left behind half-written."""
    try:
        return ElementTree.parse(path).getroot()
    except ElementTree.ParseError:
        return None


def google_test_cases(reports, name):
    cases = []
    for path in reports.glob("*.xml"):
        root = parsed(path) if path.stem == name or path.stem.startswith(name + "_run") else None
        if root is not None:
            cases += [(outcome_of(case), float(case.get("time", 0)), f"{case.get('classname')}.{case.get('name')}",
                       reason_of(case)) for case in root.iter("testcase")]
    return cases


def rows_of(folder):
    """(outcome, seconds, name, why it was skipped) of each test of one build folder."""
    reports = Path(folder) / "reports"
    if not (reports / "ctest.junit").exists():
        return []
    rows = []
    for test in ElementTree.parse(reports / "ctest.junit").getroot().iter("testcase"):
        outcome = outcome_of(test)
        cases = google_test_cases(reports, test.get("name"))
        rows += [(*case[:2], f"{folder} {case[2]}", case[3]) for case in cases]
        if not cases or (outcome == "failed" and all(case[0] != "failed" for case in cases)):
            rows.append((outcome, float(test.get("time", 0)), f"{folder} {test.get('name')}", reason_of(test)))
    return rows


def longer_than(folder, limit):
    """(seconds, name) of the folder's programs that took longer than `limit`."""
    path = Path(folder) / "reports/ctest.junit"
    for test in parsed(path).iter("testcase") if path.exists() else ():
        if float(test.get("time", 0)) > limit:
            yield float(test.get("time")), f"{folder} {test.get('name')}"


def main(folders, limit):
    for seconds, name in sorted((one for folder in folders for one in longer_than(folder, limit)), reverse=True):
        print(f"took more than {limit:g} s, so its label should be slow: {seconds:.1f} s  {name}")
    rows = [row for folder in folders for row in rows_of(folder)]
    print(f"the {SHOWN} slowest tests:")
    for _, seconds, name, _ in sorted(rows, key=lambda row: -row[1])[:SHOWN]:
        print(f"  {seconds:7.1f} s  {name}")
    for outcome, _, name, reason in rows:
        if outcome == "failed":
            print(f"failed: {name}")
        if outcome == "skipped":
            print(f"skipped: {name}: {reason}")
    counts = {outcome: sum(row[0] == outcome for row in rows) for outcome in ("passed", "failed", "skipped")}
    print("{passed} passed, {failed} failed, {skipped} skipped".format(**counts))
    sys.exit(counts["failed"] > 0 or counts["passed"] == 0)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+")
    parser.add_argument("--fast-limit", type=float, default=float("inf"))
    options = parser.parse_args()
    main(options.folders, options.fast_limit)
