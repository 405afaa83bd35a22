"""pack_gpu_kit.py BUILD OUT: the folder OUT with all that `OUT/run` needs on a machine with a GPU, but LibTorch and XLA's
plugin, which that machine has.

OUT has the scripts of bench/gpu_kit, the training steps of bench/torch_step.py and bench/jax_step.py, kit.json (what it
was made of) and programs.tar.xz: the programs, every shared library beyond the base system and LibTorch, the conformance
samples, the digits as shards, and the licences of it all. Needs Debian's dpkg-query, binutils and patchelf.
"""

import json
import lzma
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
from bundle import DEPS, DIGITS_NOTE, ROOT, package_of, set_run_path, system_libraries  # noqa: E402
from check_dist import version_faults  # noqa: E402
from elf import BASE_SYSTEM, Elf  # noqa: E402

PROGRAMS = ["apps/sluice", "apps/sluice-torch", "tests/conformance/sluice_conformance", "bench/first_step"]
LIBTORCH = {"libtorch_cpu.so", "libc10.so"}
MAX_BYTES = 40 << 20
SCRIPTS = ["bench/torch_step.py", "bench/jax_step.py"]


def fail(text):
    sys.exit(f"pack_gpu_kit: {text}")


def add_programs(build, folder):
    for name in PROGRAMS:
        target = folder / Path(name).name
        shutil.copyfile(build / name, target)
        target.chmod(0o755)
        subprocess.run(["strip", str(target)], check=True)


def add_licence(folder, package):
    source = Path("/usr/share/doc") / package / "copyright"
    if not source.exists():
        fail(f"{source} is missing: no licence of the package {package}")
    target = folder / "licenses" / package
    target.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target / "copyright")


def add_libraries(folder):
    """Each finds the others beside itself, and LibTorch where the loader is told to look."""
    places = system_libraries()
    todo = [name for path in folder.iterdir() if path.is_file() for name in Elf(path).needed]
    while todo:
        name = todo.pop()
        target = folder / name
        if name in BASE_SYSTEM | LIBTORCH or target.exists():
            continue
        if name not in places:
            fail(f"{name} is needed, and the loader of this machine does not know it")
        shutil.copyfile(os.path.realpath(places[name]), target)
        target.chmod(0o755)
        add_licence(folder, package_of(places[name]))
        todo += Elf(target).needed
    for line in (ROOT / "scripts/packages.txt").read_text().splitlines():
        if re.fullmatch(r"lib\S+-dev|nlohmann-json3-dev", line):
            add_licence(folder, line)
    for path in folder.iterdir():
        if path.is_file():
            set_run_path(path, "$ORIGIN")


def check(folder):
    for path in folder.iterdir():
        if not path.is_file():
            continue
        elf = Elf(path)
        faults = list(version_faults(elf))
        if elf.run_path != ["$ORIGIN"]:
            faults.append(f"expected the run path $ORIGIN, found {':'.join(elf.run_path) or 'none'}")
        if faults:
            fail(f"{path.name}: {'; '.join(faults)}")


def add_data(folder):
    shutil.copytree(ROOT / "tests/conformance/samples", folder / "samples")
    # The program is run where LibTorch need not be: making shards asks for none.
    subprocess.run([folder / "sluice", "data", "digits", DEPS / "digits/digits.csv.gz", folder / "digits"], check=True,
                   stdout=subprocess.DEVNULL)
    (folder / "licenses/digits").mkdir(parents=True)
    (folder / "licenses/digits/NOTICE").write_text(DIGITS_NOTE)
    (folder / "licenses/sluice").mkdir()
    shutil.copyfile(ROOT / "LICENSE", folder / "licenses/sluice/LICENSE")


def facts():
    answer = subprocess.run(["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--exclude=*"], capture_output=True,
                            text=True)
    version = re.search(r"^project\(sluice VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text(), re.M)[1]
    torch = (DEPS / "torch_gpu/share/cmake/Torch/TorchConfigVersion.cmake").read_text()
    return {"sluice": version, "commit": answer.stdout.strip() or "unknown",
            "torch": re.search(r'PACKAGE_VERSION "(\S+)"', torch)[1]}


def pack(folder, target):
    """The same files give the same bytes."""
    def plain(member):
        member.mtime, member.uid, member.gid, member.uname, member.gname = 0, 0, 0, "", ""
        return member

    # Programs that share code lie within one window of the compressor.
    filters = [{"id": lzma.FILTER_X86}, {"id": lzma.FILTER_LZMA2, "preset": 6, "dict_size": 64 << 20}]
    with lzma.open(target, "wb", format=lzma.FORMAT_XZ, filters=filters) as file, \
            tarfile.open(fileobj=file, mode="w") as archive:
        for path in sorted(folder.rglob("*")):
            archive.add(path, f"programs/{path.relative_to(folder)}", recursive=False, filter=plain)


def main(build, out):
    with tempfile.TemporaryDirectory(dir=out.parent, prefix=".gpu-kit-") as work:
        folder, kit = Path(work) / "programs", Path(work) / "kit"
        folder.mkdir()
        add_programs(build, folder)
        add_libraries(folder)
        check(folder)
        add_data(folder)
        shutil.copytree(ROOT / "bench/gpu_kit", kit, ignore=shutil.ignore_patterns("__pycache__"))
        for script in SCRIPTS:
            shutil.copy2(ROOT / script, kit / "scripts")
        (kit / "kit.json").write_text(json.dumps(facts()) + "\n")
        pack(folder, kit / "programs.tar.xz")
        size = sum(path.stat().st_size for path in kit.rglob("*") if path.is_file())
        if size > MAX_BYTES:
            fail(f"the kit has {size / (1 << 20):.1f} MiB, expected at most {MAX_BYTES >> 20}")
        kit.chmod(0o755)
        if out.exists():
            out.rename(Path(work) / "old")
        kit.rename(out)
    print(f"pack_gpu_kit: {size / (1 << 20):.1f} MiB in {out}")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        fail("expected BUILD and OUT, see the first lines of this file")
    main(Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve())
