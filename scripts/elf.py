"""What the headers of ELF files say, read by binutils' objdump: used by scripts/bundle.py, scripts/check_dist.py and tests."""

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


def hardening_faults(path):
    """What a program or a shared library lacks of cmake/sluice_hardening.cmake. With a sanitizer there is no more than
    what the linker does, and the address may be fixed."""
    text = subprocess.run(["objdump", "-p", "-T", str(path)], capture_output=True, text=True, check=True).stdout
    flags = {name: int(value, 16) for name, value in re.findall(r"^  (FLAGS|FLAGS_1) +(0x[0-9a-f]+)$", text, re.M)}
    asked = set(re.findall(r"^[0-9a-f]+ .*\*UND\*.* (\S+)$", text, re.M))
    stack = re.search(r"^ +STACK off.*\n.* flags (\S+)$", text, re.M)
    is_program = re.search(r"^ +INTERP off", text, re.M)
    found = {
        "tables that cannot be written (-z relro)": re.search(r"^ +RELRO off", text, re.M),
        "all symbols bound at the start (-z now)": flags.get("FLAGS", 0) & 0x8 or flags.get("FLAGS_1", 0) & 0x1,
        "a stack that is not executed (-z noexecstack)": stack and "x" not in stack[1],
    }
    if not any(name.startswith(("__asan", "__tsan")) for name in asked):
        found["any address (-pie)"] = not is_program or flags.get("FLAGS_1", 0) & 0x08000000
        found["a guarded stack (-fstack-protector-strong)"] = "__stack_chk_fail" in asked
        found["checked copies (-D_FORTIFY_SOURCE=2)"] = any(re.fullmatch(r"__\w+_chk", name) for name in asked)
        found["checked containers (-D_GLIBCXX_ASSERTIONS)"] = any("__glibcxx_assert_fail" in name for name in asked)
    return [f"has not {name}" for name, holds in found.items() if not holds]
