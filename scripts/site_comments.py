"""site_comments.py HEADER: the header as Doxygen reads it, which takes only /// for documentation.

A comment of `//` lines before a declaration, and one behind it, documents it; the first comment is the file's.
"""

import re
import sys


def for_doxygen(text):
    lines, in_head = [], True
    for line in text.splitlines():
        if in_head and not line.startswith("//"):
            in_head = False
        if in_head and not lines:
            lines += ["/// \\file", "///"]
        whole = re.match(r"^(\s*)//(?!/) ?(.*)$", line)
        behind = re.match(r"^(.*[;,{)]\s*)//(?!/) ?(.*)$", line) if not whole else None
        if whole:
            lines.append(f"{whole[1]}/// {whole[2]}")
        elif behind and '"' not in behind[2]:
            lines.append(f"{behind[1]}///< {behind[2]}")
        else:
            lines.append(line)
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(for_doxygen(open(sys.argv[1], encoding="utf-8").read()))
