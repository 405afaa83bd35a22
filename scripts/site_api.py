"""site_api.py OUT: Doxygen's pages of the public headers, in OUT/html, and OUT/tags.xml.

Public is what <sluice/sluice.h> and <sluice/data/dataset.h> include, as cmake/sluice_package.cmake installs it.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FIRST = ["sluice/sluice.h", "sluice/data/dataset.h"]
MAIN_PAGE = """# Sluice's public headers

Classes, functions and files are in the menu. [The rest of the documentation](../index.html) says how they are used.
"""
SETTINGS = """
PROJECT_NAME = Sluice
PROJECT_BRIEF = "The public headers"
OUTPUT_DIRECTORY = {out}
GENERATE_TAGFILE = {out}/tags.xml
INPUT = {out}/main.md {headers}
FILTER_PATTERNS = "*.h={python} {root}/scripts/site_comments.py"
FULL_PATH_NAMES = YES
STRIP_FROM_PATH = {root}
STRIP_FROM_INC_PATH = {root}
USE_MDFILE_AS_MAINPAGE = {out}/main.md
PREDEFINED = SLUICE_API_BEGIN= SLUICE_API_END= SLUICE_API=
MACRO_EXPANSION = YES
EXPAND_ONLY_PREDEF = YES
MARKDOWN_SUPPORT = YES
JAVADOC_AUTOBRIEF = YES
EXTRACT_ALL = YES
HIDE_UNDOC_RELATIONS = YES
GENERATE_LATEX = NO
GENERATE_TREEVIEW = YES
HAVE_DOT = NO
CLASS_GRAPH = NO
SEARCHENGINE = YES
SERVER_BASED_SEARCH = NO
VERBATIM_HEADERS = YES
HTML_TIMESTAMP = NO
QUIET = YES
WARN_IF_UNDOCUMENTED = NO
WARN_IF_DOC_ERROR = NO
"""


def public_headers():
    todo, done = list(FIRST), []
    while todo:
        header = todo.pop()
        if header not in done and (ROOT / header).exists():
            done.append(header)
            todo += re.findall(r'^#include ["<](sluice/[^">]+)', (ROOT / header).read_text(), re.MULTILINE)
    return sorted(done)


def main(out):
    out.mkdir(parents=True, exist_ok=True)
    (out / "main.md").write_text(MAIN_PAGE)
    headers = public_headers()
    settings = SETTINGS.format(out=out, root=ROOT, python=sys.executable, headers=" ".join(str(ROOT / one) for one in headers))
    subprocess.run(["doxygen", "-"], input=settings, text=True, check=True)
    print(f"{len(headers)} public headers")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
