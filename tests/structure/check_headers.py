"""check_headers.py ROOT LIST COMPILER [INCLUDE_FOLDER…]: every installed header compiles as the first of a file and asks
for nothing but the C++ library, LibTorch and other installed headers.

LIST is a file with one header a line, as paths from the root. The include folders are LibTorch's.
"""

import concurrent.futures
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

INCLUDE = re.compile(r'^\s*#\s*include\s*["<]([^">]+)[">]', re.MULTILINE)
ALLOWED = re.compile(r"^([a-z_]+|(torch|ATen|c10)/.*)$")  # <vector>, <torch/torch.h>


def text_faults(root, header, installed):
    text = (root / header).read_text()
    if "#pragma once" not in text:
        yield f"{header}: no #pragma once"
    for included in INCLUDE.findall(text):
        if included not in installed and not ALLOWED.match(included):
            yield f"{header}: includes {included}, which a user may not have"
    begins, ends = text.count("\nSLUICE_API_BEGIN"), text.count("\nSLUICE_API_END")
    if header != "sluice/base/export.h" and re.search(r"^namespace sluice", text, re.MULTILINE) and not begins == ends == 1:
        yield f"{header}: no SLUICE_API_BEGIN … SLUICE_API_END around its declarations (sluice/base/export.h)"


def closure(root, header, seen):
    """What the header includes, directly or through others of the project."""
    if header in seen:
        return seen
    seen.add(header)
    for included in INCLUDE.findall((root / header).read_text()) if (root / header).exists() else []:
        closure(root, included, seen)
    return seen


class Compiler:
    """Compiles a header as the only one of a source file, as a user's first include would be. Those that include
    <torch/torch.h> take half a minute each, nearly all of it LibTorch's: they are compiled together, from the first to the
    last and from the last to the first, so that of two headers each comes before the other once."""

    def __init__(self, root, compiler, folders, work):
        self.work = Path(work)
        self.command = [compiler, "-std=c++20", "-Wall", "-Wextra", "-Werror", f"-I{root}",
                        *[f"-isystem{folder}" for folder in folders], "-fsyntax-only"]

    def fault(self, headers):
        source = self.work / (headers[0].replace("/", "_") + ".cc")
        source.write_text("".join(f"#include <{header}>\n" for header in [*headers, headers[0]]))
        done = subprocess.run([*self.command, str(source)], capture_output=True, text=True)
        return f"{', '.join(headers)}: do not compile as the first of a file\n{done.stderr[:2000]}" if done.returncode else None


def groups(root, headers):
    of_torch = [header for header in headers if "torch/torch.h" in closure(root, header, set())]
    yield from filter(None, (of_torch, of_torch[::-1]))
    yield from ([header] for header in headers if header not in of_torch)


def main(root, list_file, compiler, folders):
    headers = Path(list_file).read_text().split()
    if not headers or not shutil.which(compiler):
        sys.exit(f"nothing to check: {len(headers)} headers in {list_file}, compiler {compiler}")
    if (root / "sluice/sluice.h").exists() and "sluice/sluice.h" not in headers:
        sys.exit("the umbrella sluice/sluice.h is not installed")
    faults = [fault for header in headers for fault in text_faults(root, header, headers)]
    with tempfile.TemporaryDirectory() as work, concurrent.futures.ThreadPoolExecutor(2) as pool:
        faults += filter(None, pool.map(Compiler(root, compiler, folders, work).fault, groups(root, headers)))
    print("\n".join(faults))
    print(f"{len(headers)} headers, {len(faults)} faults")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4:])
