"""scripts/check_dist.py PREFIX [--forbid PATH …]: whether a bundle runs where it has to.

PREFIX is an unpacked archive. Its ELF files may need of the base system what Ubuntu 22.04 has (glibc 2.35, libstdc++ of
GCC 12) and of each other what is there; each has a licence, finds its libraries relative to itself, and no file holds
one of the forbidden paths (those of the machine that built it). Sluice's own are hardened. Prints all faults; the exit status is 0 without any.
"""

import argparse
import mmap
import re
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
from elf import BASE_SYSTEM, Elf, elf_files, hardening_faults  # noqa: E402

# The newest versions of symbols that Ubuntu 22.04's libraries define.
NEWEST = {"GLIBC": (2, 35), "GLIBCXX": (3, 4, 30), "CXXABI": (1, 3, 13), "GCC": (12, 0, 0)}
# What is built here, so hardened (cmake/sluice_hardening.cmake); the other libraries are as their packages have them.
OWN = ["bin/*", "lib/libsluice*.so*"]
RELATIVE = re.compile(r"^\$ORIGIN(/|$)")


def number(version):
    return tuple(int(part) for part in version.split("."))


def version_faults(elf):
    for library, versions in sorted(elf.requires.items()):
        for name, _, version in (entry.partition("_") for entry in sorted(versions)):
            if library not in BASE_SYSTEM or name not in NEWEST or version == "PRIVATE":
                continue
            # GLIBC_ABI_DT_RELR and the like are promises of glibc 2.36 and later.
            if not re.fullmatch(r"[\d.]+", version) or number(version) > NEWEST[name]:
                newest = ".".join(map(str, NEWEST[name]))
                yield f"needs {name}_{version} of {library}; Ubuntu 22.04 has {name}_{newest}"


def library_faults(path, elf, bundled):
    """bundled: {name: [Elf]} of all files in the prefix."""
    for name in elf.needed:
        if name in BASE_SYSTEM:
            continue
        if name not in bundled:
            yield f"needs {name}, which is neither in the bundle nor in the base system"
            continue
        absent = {version for version in elf.requires.get(name, ()) if version not in bundled[name].defines}
        if absent:
            yield f"needs {', '.join(sorted(absent))} of {name}; the bundled one does not define it"
        if not any((path.parent / folder.replace("$ORIGIN", ".") / name).exists() for folder in elf.run_path):
            yield f"does not find {name} in its run path '{':'.join(elf.run_path)}'"
    for folder in elf.run_path:
        if not RELATIVE.match(folder):
            yield f"has the run path {folder}: expected one that begins with $ORIGIN"


def licence_faults(prefix, files):
    table = prefix / "share/doc/sluice/libraries.txt"
    if not table.exists():
        yield f"{table.relative_to(prefix)}: missing"
        return
    rows = [line.split("\t") for line in table.read_text().splitlines() if not line.startswith("#")]
    folder_of = {name: folder for name, folder, _ in rows}
    for path in files:
        name = str(path.relative_to(prefix))
        folder = folder_of.get(name)
        if folder is None:
            yield f"{name}: is not in {table.relative_to(prefix)}"
        elif not any(
                text.is_file() and text.stat().st_size for text in (table.parent / "licenses" / folder).glob("*")):
            yield f"{name}: has no licence in {table.parent.relative_to(prefix)}/licenses/{folder}"


def holds(path, text):
    if path.stat().st_size == 0:
        return False
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as bytes_of:
        return bytes_of.find(text.encode()) >= 0


def faults(prefix, forbidden):
    files = elf_files(prefix)
    elves = {path: Elf(path) for path in files}
    bundled = {elf.soname or path.name: elf for path, elf in elves.items()}
    for path, elf in elves.items():
        for fault in [*version_faults(elf), *library_faults(path, elf, bundled)]:
            yield f"{path.relative_to(prefix)}: {fault}"
    for path in (path for pattern in OWN for path in sorted(prefix.glob(pattern)) if path in elves):
        for fault in hardening_faults(path):
            yield f"{path.relative_to(prefix)}: {fault}"
    yield from licence_faults(prefix, files)
    for path in sorted(prefix.rglob("*")):
        if path.is_symlink():
            if path.readlink().is_absolute() or not path.exists():
                yield f"{path.relative_to(prefix)}: a link to {path.readlink()}"
        elif path.is_file():
            for text in forbidden:
                if holds(path, text):
                    yield f"{path.relative_to(prefix)}: holds the path {text}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("prefix", type=Path)
    parser.add_argument("--forbid", nargs="*", default=[], metavar="PATH")
    arguments = parser.parse_args()
    if not elf_files(arguments.prefix):
        sys.exit(f"check_dist: there is no ELF file in {arguments.prefix}")
    found = list(faults(arguments.prefix, arguments.forbid))
    for fault in found:
        print(f"check_dist: {fault}")
    if found:
        sys.exit(1)
    print(f"check_dist: {len(elf_files(arguments.prefix))} ELF files need glibc 2.35, GCC 12's libstdc++ and each other")


if __name__ == "__main__":
    main()
