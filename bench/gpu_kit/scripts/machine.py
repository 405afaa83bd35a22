"""What the machine has: the GPU and its driver, LibTorch, XLA's plugin, room on the disk. Nothing is imported or run for
it but nvidia-smi."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

# The oldest driver that CUDA's minor versions of this plugin run on (NVIDIA's table "CUDA Toolkit and Corresponding
# Driver Versions").
OLDEST_DRIVER = {"xla_cuda13": 580, "xla_cuda12": 525}
BF16_CAPABILITY = 8.0
SYSTEM_CUDA = Path("/usr/local/cuda")
ROOM = 600_000_000  # bytes, for the unpacked programs, PyTorch's and XLA's caches, logs


class Unusable(Exception):
    """Why the kit cannot run here, with what to do."""


def folder_of(package):
    """The folder of an installed package of this Python, or None. The package is not imported."""
    spec = importlib.util.find_spec(package)
    if spec is None:
        return None
    places = list(spec.submodule_search_locations or [])
    return Path(places[0]) if places else Path(spec.origin).parent


def major_and_minor(version):
    return re.findall(r"\d+", version)[:2]


def find_torch(built_with):
    """(folder of LibTorch's libraries, version as text). `built_with`: of the kit's programs."""
    wanted = ".".join(major_and_minor(built_with))
    folder = folder_of("torch")
    if folder is None:
        raise Unusable(f"this Python ({sys.executable}) has no package torch, whose LibTorch the programs use: "
                       f"set PYTHON to one with torch {wanted}")
    found = re.search(r"__version__ = '([^']+)'", (folder / "version.py").read_text())
    version = found[1] if found else "unknown"
    if major_and_minor(version) != major_and_minor(built_with):
        raise Unusable(f"expected torch {wanted}, with whose C++ library the kit is built, found torch {version} in {folder}: "
                       f"set PYTHON to a Python with torch {wanted}")
    library = folder / "lib/libtorch_cpu.so"
    if not library.exists():
        raise Unusable(f"expected LibTorch's library {library}, found none: is this torch installed whole?")
    return folder / "lib", version


def find_plugin(dry):
    """(file, name, version of its package)."""
    chosen = os.environ.get("SLUICE_PLUGIN", "")
    if "/" in chosen:
        if not Path(chosen).is_file():
            raise Unusable(f"SLUICE_PLUGIN={chosen}: expected a plugin's .so file, found none")
        return Path(chosen), Path(chosen).parent.name, ""
    wanted = (["xla_plugins.xla_cpu_pjrt/xla_cpu_pjrt.so"] if dry else
              ["jax_plugins.xla_cuda13/xla_cuda_plugin.so", "jax_plugins.xla_cuda12/xla_cuda_plugin.so"])
    for name in wanted:
        package, file = name.split("/")
        try:
            folder = folder_of(package)
        except ModuleNotFoundError:  # of the package above it
            continue
        if folder is not None and (folder / file).exists():
            return folder / file, package.split(".")[1], version_beside(folder, package)
    raise Unusable(f"this Python ({sys.executable}) has no XLA plugin ({', '.join(wanted)}): install "
                   f"{'xla-cpu-pjrt' if dry else 'jax-cuda13-pjrt'}, or set SLUICE_PLUGIN to a plugin's .so file")


def version_beside(folder, package):
    """Of the distribution that the package is from, by the name of its folder of metadata."""
    packages = folder.parents[len(package.split(".")) - 1]
    distribution = {"xla_cuda13": "jax_cuda13_pjrt", "xla_cuda12": "jax_cuda12_pjrt"}.get(package.split(".")[1],
                                                                                       package.split(".")[1])
    found = sorted(packages.glob(f"{distribution}-*.dist-info"))
    return found[-1].name[len(distribution) + 1:-len(".dist-info")] if found else ""


def has_cuda_tools(folder):
    return (folder / "bin/ptxas").exists() and (folder / "nvvm/libdevice/libdevice.10.bc").exists()


def find_cuda_tools(plugin, work):
    """The folder of a CUDA with what XLA's compiler needs: where Sluice looks for it, else made of the two files that
    PyTorch's package triton has. None where there is neither."""
    folders = [Path(os.environ[name]) for name in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(name)]
    folders += sorted((plugin.parent.parent.parent / "nvidia").glob("*"))
    assembler = shutil.which("ptxas")
    folders += [Path(assembler).resolve().parent.parent] if assembler else []
    folders.append(SYSTEM_CUDA)
    for folder in folders:
        if has_cuda_tools(folder):
            return folder
    triton = folder_of("triton")
    if triton is None:
        return None
    made = work / "cuda"
    for source, target in (("bin/ptxas", "bin/ptxas"), ("lib/libdevice.10.bc", "nvvm/libdevice/libdevice.10.bc")):
        (made / target).parent.mkdir(parents=True, exist_ok=True)
        (made / target).symlink_to(triton / "backends/nvidia" / source)
    return made if has_cuda_tools(made) else None


def query_gpus():
    """[{name, driver, memory_mib, capability}] as nvidia-smi says; [] where there is no GPU or no nvidia-smi."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return []
    fields = "name,driver_version,memory.total,compute_cap,clocks.max.sm"
    try:
        done = subprocess.run([program, f"--query-gpu={fields}", "--format=csv,noheader,nounits"], capture_output=True,
                              text=True, timeout=60, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired):
        return []
    gpus = []
    for line in done.stdout.splitlines() if done.returncode == 0 else []:
        name, driver, memory, capability, clock = [part.strip() for part in line.split(",")]
        gpus.append({"name": name, "driver": driver, "memory_mib": memory, "capability": capability, "max_mhz": clock})
    return gpus


def check_driver(gpus, plugin_name):
    oldest = OLDEST_DRIVER.get(plugin_name)
    if oldest is None or not gpus:
        return
    driver = gpus[0]["driver"]
    if int(driver.split(".")[0]) < oldest:
        raise Unusable(f"the driver {driver} is too old for the plugin {plugin_name}: expected {oldest} or later; update the "
                       f"driver, or install the plugin of an older CUDA (jax-cuda12-pjrt needs driver 525)")


def has_bf16(gpus):
    try:
        return not gpus or float(gpus[0]["capability"]) >= BF16_CAPABILITY
    except ValueError:
        return True


def check_room(folder):
    free = shutil.disk_usage(folder).free
    if free < ROOM:
        raise Unusable(f"{free / 1e6:.0f} MB are free on the disk of {folder}, expected {ROOM / 1e6:.0f} MB: free some, or "
                       "set TMPDIR or --out to a folder on another disk")
