"""check_variables.py ROOT: sluice/base/variables.cc has the environment variables SLUICE_… that sources and scripts read,
and that the docs name: all of them, and no others."""

import re
import sys
from pathlib import Path

LIST = "sluice/base/variables.cc"
NAME = r"SLUICE_[A-Z0-9]+(?:_[A-Z0-9]+)*"
# How each kind of file names a variable that it reads or sets.
IN_SOURCES = re.compile(rf'"({NAME})"')
IN_SCRIPTS = re.compile(rf"""\$\{{?({NAME})|environ(?:\.get\(|\[)["']({NAME})""")
IN_DOCS = re.compile(rf"(?<![\w-])({NAME})")
# Of CMake, of the sources, and of the tests.
OTHERS = re.compile(r"SLUICE_(TRY|OK|TORCH|TESTS|JEMALLOC|WERROR|SANITIZE|TEST_\w+)$")


def is_test(path):
    return path.name.endswith("_test.cc") or path.name.startswith("test_") or "testing" in path.parts


def mentions(root):
    """(name, file) of every variable that is read, set or documented."""
    for path in [*(root / "sluice").rglob("*.cc"), *(root / "sluice").rglob("*.h"), *(root / "bench").rglob("*.cc")]:
        if not is_test(path) and path != root / LIST:
            yield from ((name, path) for name in IN_SOURCES.findall(path.read_text()))
    for path in [*(root / "scripts").iterdir(), *(root / "recipes").iterdir(), root / "Makefile"]:
        if path.is_file():
            yield from ((a or b, path) for a, b in IN_SCRIPTS.findall(path.read_text()))
    for path in [root / "README.md", *(root / "docs").rglob("*.md"), *(root / "recipes").rglob("*.toml")]:
        yield from ((name, path) for name in IN_DOCS.findall(path.read_text()))


def faults(root):
    known = set(IN_SOURCES.findall((root / LIST).read_text()))
    found = {}
    for name, path in mentions(root):
        if not OTHERS.match(name):
            found.setdefault(name, path)
    read = {name for name, path in mentions(root) if path.suffix != ".md"}
    for name in sorted(set(found) - known):
        yield f"{found[name].relative_to(root)}: {name} is not in {LIST}: add it there"
    for name in sorted(known - read):
        yield f"{LIST}: nothing reads {name}: take it out"


def main(root):
    found = list(faults(root))
    print("\n".join(found))
    print(f"{len(found)} faults")
    sys.exit(bool(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
