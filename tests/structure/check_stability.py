"""check_stability.py ROOT [--renew]: what docs/stability.md promises is as docs/stability.txt records it.

Recorded are the public headers, each with a hash of its declarations (comments, includes and white space do not count),
the flags of docs/flags.md and the variables of sluice/base/variables.cc. A difference is a fault until --renew writes the
list again. --renew refuses unless the newest section of CHANGELOG.md has changed since the list was written: a user reads
there what has changed.
"""

import hashlib
import re
import sys
from pathlib import Path

LIST = "docs/stability.txt"
FIRST_HEADERS = ["sluice/sluice.h", "sluice/data/dataset.h"]  # what cmake/sluice_package.cmake installs, with their includes
HEAD = "# What docs/stability.md promises. Written by: python3 tests/structure/check_stability.py . --renew\n"
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*["<]([^">]+)[">].*$', re.M)
COMMENT_OR_TEXT = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'', re.DOTALL)
FLAG_ROW = re.compile(r"^\| (`--[^|]*?) \|", re.M)


def short_hash(text):
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def public_headers(root):
    todo, done = list(FIRST_HEADERS), set()
    while todo:
        header = todo.pop()
        if header not in done and (root / header).exists():
            done.add(header)
            todo += [one for one in INCLUDE.findall((root / header).read_text()) if one.startswith("sluice/")]
    return sorted(done)


def declarations(text):
    """A header's text without comments, includes and the white space that means nothing."""
    text = COMMENT_OR_TEXT.sub(lambda found: " " if found[0].startswith("/") else found[0], INCLUDE.sub("", text))
    return re.sub(r"\s*([^\w\s])\s*", r"\1", re.sub(r"\s+", " ", text)).strip()


def flags(page):
    for section in re.split(r"^## ", page, flags=re.M)[1:]:
        verb = section.split("\n", 1)[0]
        for names in FLAG_ROW.findall(section):
            yield from (f"flag {verb} {name}" for name in re.findall(r"--[\w-]+", names))


def found_in(root):
    """{name: hash or ""} of all that is promised."""
    found = {f"header {header}": short_hash(declarations((root / header).read_text())) for header in public_headers(root)}
    found |= {flag: "" for flag in flags((root / "docs/flags.md").read_text())}
    names = re.findall(r'^ +"(SLUICE_\w+)",', (root / "sluice/base/variables.cc").read_text(), re.M)
    return found | {f"variable {name}": "" for name in names}


def newest_section(root):
    sections = re.split(r"^(?=## )", (root / "CHANGELOG.md").read_text(), flags=re.M)
    return short_hash(sections[1] if len(sections) > 1 else "")


def recorded(root):
    """What the list says, and the hash of the changelog's newest section when it was written; ({}, "") without a list."""
    if not (root / LIST).exists():
        return {}, ""
    entries = {}
    for line in (root / LIST).read_text().splitlines():
        if line and not line.startswith("#"):
            name, _, value = line.partition(" = ")
            entries[name] = value
    return entries, entries.pop("changelog", "")


def differences(now, then):
    for name in sorted(set(now) | set(then)):
        if name not in then:
            yield f"{name}: is new"
        elif name not in now:
            yield f"{name}: is gone"
        elif now[name] != then[name]:
            yield f"{name}: its declarations have changed"


def renew(root, now, then, section):
    if list(differences(now, then)) and section and section == newest_section(root):
        print("check_stability: the newest section of CHANGELOG.md has not changed since the list was written: "
              "say there what users must know of these changes, then renew the list")
        return 1
    lines = [f"{name} = {value}\n" if value else f"{name}\n" for name, value in sorted(now.items())]
    (root / LIST).write_text(HEAD + f"changelog = {newest_section(root)}\n" + "".join(lines))
    print(f"{LIST}: {len(lines)} entries")
    return 0


def main(arguments):
    root = Path(arguments[0]).resolve()
    now, (then, section) = found_in(root), recorded(root)
    changed = list(differences(now, then))
    print("\n".join(changed))
    if "--renew" in arguments:
        return renew(root, now, then, section)
    for kind, least in (("header", 20), ("flag", 200), ("variable", 30)):
        count = sum(name.startswith(kind) for name in now)
        if count < least and "--small" not in arguments:
            changed.append(kind)
            print(f"only {count} entries of the kind {kind} were found: have its files another form now?")
    if changed:
        print(f"{LIST} says otherwise. If the change is meant, write it into CHANGELOG.md's newest section, then run: "
              "python3 tests/structure/check_stability.py . --renew")
    print(f"{len(now)} entries, {len(changed)} faults")
    return int(bool(changed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
