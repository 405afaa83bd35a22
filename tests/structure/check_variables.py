"""check_variables.py ROOT: the environment variables SLUICE_…

- sluice/base/variables.cc has those that sources and scripts read and that the docs name: all of them, and no others;
- the table in docs/environment.md has each of them once;
- a test names each of them;
- nothing but sluice/base/environment.cc calls getenv, so that all are read in one way (tests may)."""

import re
import sys
from pathlib import Path

LIST = "sluice/base/variables.cc"
TABLE = "docs/environment.md"
READER = "sluice/base/environment.cc"
NAME = r"SLUICE_[A-Z0-9]+(?:_[A-Z0-9]+)*"
# How each kind of file names a variable that it reads or sets.
IN_SOURCES = re.compile(rf'"({NAME})"')
IN_SCRIPTS = re.compile(rf"""\$\{{?({NAME})|environ(?:\.get\(|\[)["']({NAME})""")
IN_DOCS = re.compile(rf"(?<![\w-])({NAME})")
IN_TESTS = re.compile(rf"(?<!\w)({NAME})")
ROW = re.compile(rf"^\| `({NAME})` \|", re.M)
GETENV = re.compile(r"\b(?:secure_)?getenv\s*\(")
# `make dist` packs for minutes: its only use is too slow to be tried.
UNTESTED = {"SLUICE_DIST_LEVEL"}
# Of CMake, of the sources, and of the tests.
OTHERS = re.compile(r"SLUICE_(TRY|OK|TORCH|TESTS|JEMALLOC|WERROR|SANITIZE|UPDATE_GOLDEN|TEST_\w+)$")


def is_test(path):
    return (path.name.endswith(("_test.cc", "_test.py", "_test.sh")) or path.name.startswith("test_")
            or "testing" in path.parts)


def sources(root):
    folders = [root / folder for folder in ("sluice", "bench", "apps", "examples")]
    return [path for folder in folders for ending in ("*.cc", "*.h") for path in sorted(folder.rglob(ending))
            if not is_test(path)]


def mentions(root):
    """(name, file) of every variable that is read, set or documented."""
    for path in sources(root):
        if path != root / LIST:
            yield from ((name, path) for name in IN_SOURCES.findall(path.read_text()))
    for path in [*(root / "scripts").iterdir(), *(root / "recipes").iterdir(), root / "Makefile"]:
        if path.is_file():
            yield from ((a or b, path) for a, b in IN_SCRIPTS.findall(path.read_text()))
    for path in [root / "README.md", *(root / "docs").rglob("*.md"), *(root / "recipes").rglob("*.toml")]:
        yield from ((name, path) for name in IN_DOCS.findall(path.read_text()))


def tested(root):
    """The variables that tests name."""
    files = [path for path in (root / "tests").rglob("*") if path.is_file()]
    files += [path for path in (root / "sluice").rglob("*") if path.is_file() and is_test(path)]
    texts = [path.read_text(errors="replace") for path in files if path.suffix in (".cc", ".h", ".py", ".sh")]
    return {name for text in texts for name in IN_TESTS.findall(text)}


def faults(root):
    known = set(IN_SOURCES.findall((root / LIST).read_text()))
    found = {}
    for name, path in mentions(root):
        if not OTHERS.match(name):
            found.setdefault(name, path)
    read = {name for name, path in mentions(root) if path.suffix != ".md"}
    rows = ROW.findall((root / TABLE).read_text())
    for name in sorted(set(found) - known):
        yield f"{found[name].relative_to(root)}: {name} is not in {LIST}: add it there"
    for name in sorted(known - read):
        yield f"{LIST}: nothing reads {name}: take it out"
    for name in sorted(known):
        if rows.count(name) != 1:
            yield f"{TABLE}: {name} has {rows.count(name)} rows: give it one"
    for name in sorted(known - tested(root) - UNTESTED):
        yield f"{LIST}: no test names {name}: add one"
    for path in sources(root):
        if path != root / READER and GETENV.search(path.read_text()):
            yield f"{path.relative_to(root)} calls getenv: call base::environment ({READER})"


def main(root):
    found = list(faults(root))
    print("\n".join(found))
    print(f"{len(found)} faults")
    sys.exit(bool(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
