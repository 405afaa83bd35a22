"""check_words.py ROOT: no leftovers, no paths of one machine, no hosts of package registries in the project's files."""

import re
import subprocess
import sys
from pathlib import Path

FORBIDDEN = {
    r"\bTODO\b|\bFIXME\b|\bXXX\b|\bHACK\b": "a leftover: finish it or leave it out",
    r"(?<![\w.])/(work|root|home/(?!user\b))/?\w": "a path of one machine",
    r"\b(pypi\.org|pythonhosted\.org|deb\.debian\.org|crates\.io|registry\.npmjs\.org)\b": "a registry's host",
    r"^(<<<<<<<|>>>>>>>) ": "a merge conflict",
}
# PyTorch's own address is where its published packages are; these files may name it.
PYTORCH_ADDRESS = r"\bdownload\.pytorch\.org\b"
MAY_NAME_PYTORCH = {"scripts/fetch_wheels.py", "scripts/setup_test_python", "docs/install.md"}
TEXT = {".h", ".cc", ".py", ".md", ".txt", ".cmake", ".in", ".json", ".toml", ".sh", ".sample", ".mlir", ""}


def files_of(root):
    listed = subprocess.run(["git", "-C", str(root), "ls-files", "--cached", "--others", "--exclude-standard"],
                            capture_output=True, text=True)
    names = listed.stdout.split("\n") if listed.returncode == 0 else [
        str(path.relative_to(root)) for path in root.rglob("*") if not path.parts[len(root.parts)].startswith(
            (".deps", ".git", "build", "out"))]
    return [name for name in names if name and (root / name).is_file() and Path(name).suffix in TEXT]


def faults_of(name, text):
    rules = dict(FORBIDDEN)
    if name not in MAY_NAME_PYTORCH:
        rules[PYTORCH_ADDRESS] = "say it in docs/install.md"
    for number, line in enumerate(text.splitlines(), 1):
        for pattern, reason in rules.items():
            if re.search(pattern, line):
                yield f"{name}:{number}: {reason}: {line.strip()[:120]}"


def self_test():
    assert list(faults_of("a.cc", "// TO" + "DO: later"))
    assert list(faults_of("a.md", "see /ro" + "ot/x"))
    assert not list(faults_of("a.cc", "int todo = 0;  // a/home/b"))


def main(root):
    self_test()
    names = [name for name in files_of(root) if Path(name).name != Path(__file__).name]
    if len(names) < 10:
        sys.exit(f"only {len(names)} files under {root}: is this the project's root?")
    faults = [fault for name in names for fault in faults_of(name, (root / name).read_text(errors="replace"))]
    print("\n".join(faults))
    print(f"{len(names)} files, {len(faults)} faults")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
