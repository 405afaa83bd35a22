"""check_map.py ROOT: the map of the source is right.

Each row of docs/where.md names a function that its file defines, sluice/README.md has a paragraph for every room, and
every room has a README of its reading order. tests/docs/check_links.py follows their links.
"""

import re
import sys
from pathlib import Path

ROW = re.compile(r"^\| (.+?) \| `([\w:~()]+)` \| \[([^\]]+)\]\(\.\./([^)]+)\) \|$", re.MULTILINE)
MIN_ROWS, MAX_WORDS, README_LINES = 40, 1200, range(10, 26)


def body_of(text, kind):
    """What a class of the file has between its braces."""
    found = re.search(rf"^(?:class|struct) {kind}\b[^;{{]*\{{\n(.*?)^\}};", text, re.MULTILINE | re.DOTALL)
    return found[1] if found else ""


def defines(text, function, is_script=False):
    """Whether a source defines the function: a definition begins its line, or is a member in its class."""
    if is_script:
        return bool(re.search(rf"^{re.escape(function)}\(\)", text, re.MULTILINE))
    if re.search(rf"^[A-Za-z][^\n;=#]*(?<![\w:.>]){re.escape(function)}\(|^{re.escape(function)}\(", text, re.MULTILINE):
        return True
    kind, separator, name = function.rpartition("::")
    return bool(separator and re.search(rf"^  [^\n;=/]*\b{re.escape(name)}\([^;]*\{{", body_of(text, kind), re.MULTILINE))


def faults_of_table(root, page):
    rows = ROW.findall(page)
    if len(rows) < MIN_ROWS:
        yield f"docs/where.md: {len(rows)} rows of the form | behaviour | `function` | [file](../sluice/file) |: expected {MIN_ROWS}"
    lines = [line for line in page.splitlines() if line.startswith("| ") and not line.startswith(("| behaviour", "| ---"))]
    if len(lines) != len(rows):
        yield f"docs/where.md: {len(lines)} rows, and {len(rows)} of them name a function and a file: expected all"
    seen = set()
    for behaviour, function, shown, path in rows:
        file = root / path
        if behaviour in seen:
            yield f"docs/where.md: two rows for '{behaviour}'"
        seen.add(behaviour)
        if path != f"sluice/{shown}":
            yield f"docs/where.md: '{behaviour}' shows {shown} and links to {path}"
        elif not file.is_file():
            yield f"docs/where.md: '{behaviour}': there is no file {path}; name the file that has `{function}` now"
        elif not defines(file.read_text(), function, is_script=file.suffix == ".sh"):
            yield (f"docs/where.md: '{behaviour}': {path} does not define `{function}`; "
                   f"name the function that does this now, and its file")


def faults_of_rooms(root, rooms, the_map):
    words = len(the_map.split())
    if words > MAX_WORDS:
        yield f"sluice/README.md has {words} words: expected at most {MAX_WORDS}"
    named = re.findall(r"^\*\*\[(\w+)\]\((\w+)/README\.md\)\*\*", the_map, re.MULTILINE)
    if sorted(named) != sorted((room, room) for room in rooms):
        yield f"sluice/README.md: expected one paragraph for each of {sorted(rooms)}, found {sorted(name for name, _ in named)}"
    for room in rooms:
        readme = root / "sluice" / room / "README.md"
        if not readme.is_file():
            yield f"sluice/{room} has no README.md: say in which order its files are read"
            continue
        text = readme.read_text()
        if not text.startswith(f"# {room}: "):
            yield f"sluice/{room}/README.md: expected the title '# {room}: …'"
        if text.count("\n") not in README_LINES:
            yield (f"sluice/{room}/README.md has {text.count(chr(10))} lines: "
                   f"expected {README_LINES.start} to {README_LINES.stop - 1}")


def self_test():
    source = ("int cut(int a);\nbase::Status Keeper::replace_slice(const View& view) {\n  drop(view);\n}\n"
              "Cache::Cache() {}\nclass Recorder {\n  void operator()(int a) {\n    use(a);\n  }\n  int other(int a);\n};\n")
    for function in ("cut", "Keeper::replace_slice", "Cache::Cache", "Recorder::operator()"):
        assert defines(source, function), function
    for function in ("drop", "replace_slice", "Keeper::cut", "Recorder::other", "Recorder::use", "Status"):
        assert not defines(source, function), function
    assert defines("end_left() {\n", "end_left", is_script=True) and not defines("  end_left\n", "end_left", is_script=True)
    assert len(list(faults_of_table(Path("/nowhere"), "| a | `b` | [c.cc](../sluice/c.cc) |\n"))) == 2, "few rows, no file"
    assert len(list(faults_of_rooms(Path("/nowhere"), ["a"], "word " * (MAX_WORDS + 1)))) == 3, "long, no paragraph, no README"


def main(root):
    self_test()
    rooms = sorted(path.name for path in (root / "sluice").iterdir() if path.is_dir() and not path.name.startswith((".", "__")))
    page = (root / "docs/where.md").read_text()
    faults = [*faults_of_table(root, page), *faults_of_rooms(root, rooms, (root / "sluice/README.md").read_text())]
    print("\n".join(faults))
    print(f"{len(ROW.findall(page))} behaviours, {len(rooms)} rooms, {len(faults)} faults")
    sys.exit(bool(faults) or not rooms)


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
