"""run_docs.py ROOT BINARY_FOLDER: runs the commands that the documentation marks.

A ```sh block after the line <!-- test --> is run from the project's root with the build's own `sluice` first on PATH,
in a copy of nothing: its output folder is $OUT, a fresh temporary folder. Every line of the block must succeed. A page
whose blocks are marked <!-- test: name --> shares one $OUT among those with the same name, in their order. A block
marked <!-- test: name needs libtpu --> is left out where libtpu is not installed.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

BLOCK = re.compile(r"^<!-- test(?:: *(\w+))?( needs libtpu)? -->\n+```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def pages(root):
    return [root / "README.md", *sorted((root / "docs").rglob("*.md"))]


def has_libtpu(root):
    return (root / ".deps/libtpu/libtpu/libtpu.so").exists() or bool(os.environ.get("TPU_LIBRARY_PATH"))


def run(script, root, program_folder, out):
    environment = dict(os.environ, OUT=str(out), PATH=f"{program_folder}:{os.environ['PATH']}")
    return subprocess.run(["bash", "-euo", "pipefail", "-c", script], cwd=root, env=environment,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def main(root, program_folder):
    counts = {"run": 0, "failed": 0}
    for page in pages(root):
        folders = {}
        for number, found in enumerate(BLOCK.finditer(page.read_text())):
            key = found[1] or number
            line = page.read_text()[:found.start()].count("\n") + 1
            if found[2] and not has_libtpu(root):
                print(f"left out (no libtpu) {page.relative_to(root)}:{line}")
                continue
            folder = folders.setdefault(key, tempfile.TemporaryDirectory())
            done = run(found[3], root, program_folder, Path(folder.name))
            counts["run"] += 1
            print(f"{'ok' if done.returncode == 0 else 'FAILED'} {page.relative_to(root)}:{line}")
            if done.returncode != 0:
                counts["failed"] += 1
                print(found[3] + "---\n" + done.stdout[-4000:])
        for folder in folders.values():
            folder.cleanup()
    print("{run} blocks, {failed} failed".format(**counts))
    sys.exit(counts["failed"] > 0 or counts["run"] == 0)


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve())
