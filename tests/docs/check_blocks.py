"""check_blocks.py ROOT: the code on the pages is code that is compiled.

A block after the line <!-- from: FILE --> stands in FILE as it is, whatever its indentation there. A block after
<!-- from: FILE NAME --> is all that FILE has between the lines `// [NAME]` and `// [end]`.
"""

import re
import sys
import textwrap
from pathlib import Path

BLOCK = re.compile(r"^<!-- from: *(\S+)(?: +(\w+))? -->\n+```\w*\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def region(text, name):
    found = re.search(rf"^ *// \[{name}\]\n(.*?)^ *// \[end\]$", text, re.MULTILINE | re.DOTALL)
    return textwrap.dedent(found[1]) if found else None


def contains(text, block):
    """Whether the lines of `block` follow each other in `text`, all shifted by the same number of blanks."""
    lines, wanted = text.splitlines(), block.splitlines()
    for start in range(len(lines) - len(wanted) + 1):
        if textwrap.dedent("\n".join(lines[start:start + len(wanted)])) == textwrap.dedent("\n".join(wanted)):
            return True
    return False


def fault(root, file, name, block):
    path = root / file
    if not path.is_file():
        return f"there is no file {file}"
    if name is None:
        return None if contains(path.read_text(), block) else f"the block is not in {file}"
    found = region(path.read_text(), name)
    if found is None:
        return f"{file} has no region [{name}]"
    return None if found == block else f"the block differs from the region [{name}] of {file}:\n{found}"


def main(root):
    count, faults = 0, []
    for page in [root / "README.md", *sorted((root / "docs").rglob("*.md")), *sorted((root / "examples").rglob("*.md"))]:
        text = page.read_text()
        for found in BLOCK.finditer(text):
            count += 1
            wrong = fault(root, *found.groups())
            if wrong:
                line = text[:found.start()].count("\n") + 1
                faults.append(f"{page.relative_to(root)}:{line}: {wrong}")
    print("\n".join(faults))
    print(f"{count} blocks, {len(faults)} faults")
    sys.exit(bool(faults) or count == 0)


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
