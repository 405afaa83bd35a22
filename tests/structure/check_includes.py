"""check_includes.py ROOT: the rooms include each other only downwards, and only what each may know."""

import re
import sys
from pathlib import Path

# In the order in which they may include each other: a room sees those before it.
ROOMS = ["base", "cloud", "google", "mesh", "stablehlo", "pjrt", "profile", "estimate", "collectives", "kernels", "ops", "patterns", "device",
         "replica", "data", "text", "models", "monitor", "session", "generate", "metrics", "train", "pod", "provision", "bench", "cli"]
# What a room must not see although it stands further up.
HIDDEN_ROOMS = {
    "cloud": [],
    "pjrt": ["google", "stablehlo"],
    "google": [],
    "profile": ["google"],
    "estimate": ["google", "cloud", "profile"],
    "collectives": ["profile", "google", "cloud", "estimate"],
    "kernels": ["google", "cloud", "estimate", "collectives"],
    "patterns": ["profile", "google", "cloud", "pjrt", "estimate", "collectives", "kernels"],
    "ops": ["profile", "google", "cloud", "pjrt", "estimate", "collectives", "kernels"],
    "device": ["google", "cloud", "estimate"],
    "replica": ["profile", "google", "cloud", "estimate", "kernels"],
    "data": ["profile", "google", "stablehlo", "pjrt", "estimate", "collectives", "kernels", "patterns", "ops", "device", "replica"],
    "text": ["profile", "google", "stablehlo", "pjrt", "estimate", "collectives", "kernels", "patterns", "ops", "device", "replica"],
    "models": ["profile", "google", "cloud", "stablehlo", "pjrt", "estimate", "collectives", "kernels", "patterns", "ops", "device", "replica", "data", "text"],
    "monitor": ["profile", "google", "stablehlo", "estimate", "collectives", "kernels", "patterns", "ops", "device", "replica", "data", "text", "models"],
    "session": ["google", "collectives", "kernels", "patterns", "ops"],
    "generate": ["google", "cloud", "stablehlo", "pjrt", "profile", "estimate", "collectives", "kernels", "patterns", "ops", "replica", "data", "text", "monitor", "session"],
    "metrics": ["google", "cloud", "stablehlo", "pjrt", "profile", "estimate", "collectives", "kernels", "patterns", "ops", "data", "text", "models", "monitor", "generate"],
    "train": ["google", "estimate", "collectives", "kernels", "patterns", "ops"],
    "pod": ["profile", "google", "stablehlo", "pjrt", "collectives", "kernels", "ops", "patterns", "device", "replica", "data", "text", "models", "monitor", "session", "generate", "metrics", "train"],
    "provision": ["profile", "stablehlo", "pjrt", "collectives", "kernels", "ops", "patterns", "device", "replica", "data", "text", "models", "monitor", "session", "generate", "metrics", "train"],
    "bench": ["google", "cloud", "profile", "estimate", "collectives", "kernels", "ops", "patterns", "data", "text", "monitor", "generate", "metrics", "pod", "provision"],
}
# Headers of hidden rooms that a room may see nevertheless.
SEEN = {"models": ["sluice/device/recompute.h", "sluice/device/sharding/upload_equal.h"]}
WITHOUT_LIBTORCH = ["base", "cloud", "google", "mesh", "stablehlo", "pjrt", "profile", "estimate", "collectives", "kernels", "patterns", "ops", "data", "text", "monitor", "pod", "provision"]
# Rooms of which the others see only these headers, so that the rest may include what LibTorch hides.
ENTRIES = {"kernels": ["install.h", "memory.h"]}
# The folders of a room, in the order in which they may include each other. Headers beside the folders serve all of
# them and include none; facades stand on top of the folders, and so do the source files beside them.
FOLDERS = {"data": ["shards", "images", "augment", "decode", "order", "pipeline", "tools"], "kernels": ["gemm", "rows", "recurrent", "convolution"],
           "ops": ["special", "indexing", "images", "linear_algebra", "attention", "layers"], "provision": ["remote", "environment"],
           "models": ["language"], "text": ["characters", "models", "steps", "tools"]}
FACADES = {"data": ["dataset.h", "dataset_settings.h", "mixture.h"]}
# The one place where the data room meets LibTorch.
ADAPTERS = re.compile(r"^sluice/data/(torch_\w+|\w+_torch|adapter)(_test)?\.(h|cc)$")
LIBTORCH = re.compile(r"^(torch|ATen|c10|caffe2)/")
# LibTorch ships headers of these in other versions: only a source file of a target without LibTorch may use them.
HIDDEN_BY_LIBTORCH = re.compile(r"^(fmt|spdlog|google/protobuf|oneapi|dnnl)\b")
INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]', re.MULTILINE)


def place_in_room(room, file):
    """How high a file, given by its path in the room, stands: 0 beside the folders, 1 … in them, above them a facade."""
    folder, slash, _ = file.partition("/")
    if slash:
        return 1 + FOLDERS[room].index(folder) if folder in FOLDERS[room] else None
    return len(FOLDERS[room]) + 1 if file in FACADES.get(room, []) or file.endswith(".cc") else 0


def fault_within(room, file, included):
    """What is wrong with a file of a room including another one of it; tests and their helpers may include all."""
    if file.endswith("_test.cc") or file.split("/")[-1].startswith("test_"):
        return None
    own, other = place_in_room(room, file), place_in_room(room, included)
    if own is None or other is None:
        return f"there is no such folder; those of {room} are {', '.join(FOLDERS[room])}"
    return f"{file} stands below {included} in the room {room} and must not know it" if own < other else None


def faults_of(name, text):
    """What is wrong with the includes of the file `name` (a path from the root)."""
    room = name.split("/")[1] if name.startswith("sluice/") and name.count("/") >= 2 else None
    is_test = name.endswith("_test.cc")
    for quote, included in INCLUDE.findall(text):
        where = f'{name}: #include "{included}": '
        if included.startswith("../") or included.startswith("./"):
            yield where + 'name the file from the root ("sluice/room/file.h")'
        is_entry = room not in ENTRIES or name.split("/")[-1] in ENTRIES[room]
        if HIDDEN_BY_LIBTORCH.match(included) and name.endswith(".h") and is_entry:
            yield where + "not in a header: LibTorch ships another version of it"
        if included.startswith("sluice/") and quote == "<" and room:
            yield where + "own files are included with quotes"
        if room not in ROOMS:
            continue
        if LIBTORCH.match(included) and room in WITHOUT_LIBTORCH and not is_test and not ADAPTERS.match(name):
            yield where + f"the room {room} does not know LibTorch"
        other = included.split("/")[1] if included.startswith("sluice/") and included.count("/") >= 2 else None
        if other == room and room in FOLDERS:
            fault = fault_within(room, name.split("/", 2)[2], included.split("/", 2)[2])
            if fault:
                yield where + fault
        if other is None or other == room:
            continue
        if other not in ROOMS:
            yield where + f"there is no room {other}"
        elif other in ENTRIES and included.split("/")[-1] not in ENTRIES[other]:
            yield where + f"of the room {other} the others see only {', '.join(ENTRIES[other])}"
        elif ROOMS.index(other) > ROOMS.index(room):
            yield where + f"the room {room} stands above {other} and must not know it"
        elif included in SEEN.get(room, []):
            continue
        elif other in HIDDEN_ROOMS.get(room, []) and not (other == "stablehlo" and "type.h" in included):
            yield where + f"the room {room} must not know {other}"


def self_test():
    """The check finds what it is for."""
    assert list(faults_of("sluice/base/a.h", '#include "sluice/data/b.h"\n'))
    assert list(faults_of("sluice/ops/a.cc", "#include <ATen/ATen.h>\n"))
    assert list(faults_of("sluice/ops/a.cc", '#include "sluice/pjrt/client.h"\n'))
    assert list(faults_of("sluice/models/a.cc", '#include "sluice/device/device.h"\n'))
    assert not list(faults_of("sluice/models/a.cc", '#include "sluice/device/recompute.h"\n'))
    assert list(faults_of("sluice/base/a.h", "#include <spdlog/spdlog.h>\n"))
    assert list(faults_of("sluice/device/a.cc", '#include "sluice/kernels/onednn.h"\n'))
    assert list(faults_of("sluice/kernels/install.h", "#include <dnnl.h>\n"))
    assert list(faults_of("sluice/data/shards/a.h", '#include "sluice/data/decode/b.h"\n'))
    assert list(faults_of("sluice/data/decode/a.cc", '#include "sluice/data/dataset.h"\n'))
    assert list(faults_of("sluice/data/batch.h", '#include "sluice/data/decode/b.h"\n'))
    assert list(faults_of("sluice/data/dataset.cc", '#include "sluice/data/drawer/b.h"\n'))
    assert list(faults_of("sluice/kernels/gemm/a.cc", '#include "sluice/kernels/rows/b.h"\n'))
    assert not list(faults_of("sluice/data/order/a.cc", '#include "sluice/data/decode/b.h"\n#include "sluice/data/batch.h"\n'))
    assert not list(faults_of("sluice/data/dataset.cc", '#include "sluice/data/order/b.h"\n'))
    assert not list(faults_of("sluice/data/order/a_test.cc", '#include "sluice/data/dataset.h"\n'))
    assert not list(faults_of("sluice/kernels/a.h", "#include <dnnl.h>\n"))
    assert not list(faults_of("sluice/device/a.cc", '#include <torch/torch.h>\n#include "sluice/ops/row.h"\n'))


def main(root):
    self_test()
    files = [path for folder in ("sluice", "apps", "bench", "examples", "tests") for suffix in ("h", "cc")
             for path in sorted((root / folder).rglob(f"*.{suffix}"))]
    if len(files) < 10:
        sys.exit(f"only {len(files)} source files under {root}: is this the project's root?")
    faults = [fault for path in files for fault in faults_of(str(path.relative_to(root)), path.read_text())]
    print("\n".join(faults))
    print(f"{len(files)} files, {len(faults)} faults")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
