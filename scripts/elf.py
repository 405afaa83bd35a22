"""What the headers of ELF files say, read by binutils' objdump: used by scripts/bundle.py and scripts/check_dist.py."""

import re
import subprocess
from pathlib import Path

# What every Debian 12 and Ubuntu 22.04 has, down to the smallest root: the C library, and GCC's, which apt needs.
BASE_SYSTEM = {
    "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1", "libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2",
    "librt.so.1", "libresolv.so.2", "libgcc_s.so.1", "libstdc++.so.6",
}


class Elf:
    """needed: names; soname; run_path: folders; requires: {library: {versions of symbols}}; defines: {versions}."""

    def __init__(self, path):
        text = subprocess.run(["objdump", "-p", str(path)], capture_output=True, text=True, check=True).stdout
        entry = re.compile(r"^  (NEEDED|SONAME|RPATH|RUNPATH) +(\S+)$", re.M)
        dynamic = entry.findall(text)
        self.needed = [value for name, value in dynamic if name == "NEEDED"]
        self.soname = next((value for name, value in dynamic if name == "SONAME"), None)
        self.run_path = [folder for name, value in dynamic if name.endswith("PATH") for folder in value.split(":")]
        definitions, _, references = text.partition("Version References:")
        _, _, definitions = definitions.partition("Version definitions:")
        self.defines = {line.split()[3] for line in definitions.splitlines() if len(line.split()) >= 4}
        self.requires = {}
        for line in references.splitlines():
            if line.startswith("  required from "):
                versions = self.requires.setdefault(line.split()[-1].rstrip(":"), set())
            elif line.startswith("    0x"):
                versions.add(line.split()[3])


def is_elf(path):
    path = Path(path)
    if path.is_symlink() or not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


def elf_files(prefix):
    """The ELF files below a folder, links left out, in order."""
    return [path for path in sorted(Path(prefix).rglob("*")) if is_elf(path)]
