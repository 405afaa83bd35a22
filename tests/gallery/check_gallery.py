"""check_gallery.py ROOT: the programs of examples/gallery are LibTorch, apart from the lines that end in `// Sluice`.

These lines may call only the few functions that examples/gallery/README.md explains, no other line may name Sluice, and
gallery.h names it nowhere. Each program has 50 to 110 lines and is in CMakeLists.txt, in the test and in the README.
"""

import re
import sys
from pathlib import Path

MARK = re.compile(r"\s+// Sluice$")
ALLOWED = {"init", "create_state", "sync", "clip_grad_norm_", "pad_to", "forward_padded"}
INCLUDE = "#include <sluice/sluice.h>"


def faults_of_program(path):
    lines = path.read_text().splitlines()
    if not 50 <= len(lines) <= 110:
        yield f"{len(lines)} lines, expected 50 to 110"
    if lines.count(INCLUDE) != 1:
        yield f"expected {INCLUDE} once"
    for number, line in enumerate(lines, 1):
        code, marked = MARK.subn("", line)
        calls = re.findall(r"\bsluice::(\w+)", code)
        if marked and not calls:
            yield f"line {number} is marked and calls nothing of Sluice"
        if not marked and line != INCLUDE and "sluice" in code.lower():
            yield f"line {number} names Sluice and does not end in // Sluice"
        yield from (f"line {number} calls sluice::{call}, which the README does not explain"
                    for call in calls if call not in ALLOWED)
    if not any("sluice::init()" in line for line in lines) or not any("sluice::sync()" in line for line in lines):
        yield "expected sluice::init() and sluice::sync()"


def main(root):
    folder = root / "examples/gallery"
    programs = sorted(folder.glob("*.cc"))
    names = [path.stem for path in programs]
    faults = [f"{path.name}: {fault}" for path in programs for fault in faults_of_program(path)]
    if "sluice" in (folder / "gallery.h").read_text().lower():
        faults.append("gallery.h names Sluice")
    built = re.search(r"set\(programs ([^)]*)\)", (folder / "CMakeLists.txt").read_text())[1].split()
    parts = "".join(path.read_text() for path in sorted((root / "tests/gallery").glob("part_*.cc")))
    tested = re.findall(r'\{"(\w+)", (?:\1)::main\}', parts)
    page = (folder / "README.md").read_text()
    shown = re.findall(r"^\| \[(\w+)\]\(\1\.cc\) \|", page, re.MULTILINE)
    for what, found in (("CMakeLists.txt", built), ("tests/gallery", tested), ("the README's table", shown)):
        if sorted(found) != names:
            faults.append(f"{what} has {sorted(found)}, expected {names}")
    faults += [f"README.md does not explain sluice::{call}" for call in sorted(ALLOWED) if f"sluice::{call}" not in page]
    print("\n".join(faults))
    print(f"{len(names)} programs, {len(faults)} faults")
    sys.exit(bool(faults) or not names)


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
