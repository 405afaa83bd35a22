"""check_security.py ROOT: each promise of SECURITY.md names a test that attacks it, and each test that it names exists."""

import re
import sys
from pathlib import Path

SUITE = re.compile(r"^TEST(?:_F|_P)?\((\w+),", re.M)


def suites(root):
    files = [path for folder in ("sluice", "tests") for path in (root / folder).rglob("*_test.cc")]
    return {name for path in files for name in SUITE.findall(path.read_text())}


def in_ctest(root, name):
    """Whether a folder of tests/ adds a test of that name: security_files is `files` of tests/security."""
    folder, _, rest = name.partition("_")
    listing = root / "tests" / folder / "CMakeLists.txt"
    if not rest or not listing.exists():
        return False
    has_inputs = folder == "fuzz" and (root / "tests/fuzz/corpus" / rest).is_dir()
    return has_inputs or re.search(rf"\b({folder}_)?{rest}\b", listing.read_text()) is not None


def faults(root):
    known = suites(root)
    rows = [line for line in (root / "SECURITY.md").read_text().splitlines() if line.startswith("| ")]
    promises = [row for row in rows if not row.startswith(("| ---", "| What may be"))]
    for row in promises:
        what, _, tests = (cell.strip() for cell in row.strip("| ").split(" | "))
        names = re.findall(r"`([^`]+)`", tests)
        if not names:
            yield f"{what}: names no test"
        for name in names:
            if name not in known and not in_ctest(root, name):
                yield f"{what}: there is no test {name}"
    if len(promises) < 15:
        yield f"only {len(promises)} promises were found: has the table another form now?"


def main():
    found = list(faults(Path(sys.argv[1]).resolve()))
    print("\n".join(found))
    print(f"{len(found)} faults")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
