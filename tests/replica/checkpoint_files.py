"""Reads the tensors of a checkpoint, from one file or from pieces, without Sluice's own code."""

import json
import os
import struct
from pathlib import Path

BYTES = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "U8": 1, "BOOL": 1}


def read_file(path):
    """The metadata and the tensors of a safetensors file: name → (type, shape, bytes)."""
    content = Path(path).read_bytes()
    size = struct.unpack("<Q", content[:8])[0]
    table = json.loads(content[8:8 + size])
    metadata = table.pop("__metadata__", {})
    tensors = {}
    for name, facts in table.items():
        begin, end = facts["data_offsets"]
        assert end <= len(content) - 8 - size, f"{path} is cut"
        tensors[name] = facts["dtype"], facts["shape"], content[8 + size + begin:8 + size + end]
    return metadata, tensors


def place(whole, shape, width, start, sizes, block):
    """Copies a block into the bytes of the whole tensor; `width` is the bytes of an element."""
    if not shape:
        whole[:] = block
        return
    row = sizes[-1] * width
    strides = [width] * len(shape)
    for i in range(len(shape) - 2, -1, -1):
        strides[i] = strides[i + 1] * shape[i + 1]
    for number in range(len(block) // row if row else 0):
        at, rest = start[-1] * width, number
        for i in range(len(shape) - 2, -1, -1):
            at += (start[i] + rest % sizes[i]) * strides[i]
            rest //= sizes[i]
        whole[at:at + row] = block[number * row:(number + 1) * row]


def tensors(folder, kind="model"):
    """name → (type, shape, bytes). Fails if the checkpoint is not whole."""
    one, index = Path(folder) / f"{kind}.safetensors", Path(folder) / f"{kind}.safetensors.index.json"
    if one.exists():
        return read_file(one)[1]
    index = json.loads(index.read_text())
    files = {file: read_file(Path(folder) / file) for file in set(index["weight_map"].values())}
    assert all(metadata["sluice.save"] == index["metadata"]["sluice.save"] for metadata, _ in files.values())
    found = {}
    for name, facts in index["tensors"].items():
        width = BYTES[facts["dtype"]]
        count = 1
        for size in facts["shape"]:
            count *= size
        whole, filled = bytearray(count * width), 0
        for piece, where in facts["pieces"].items():
            dtype, shape, block = files[index["weight_map"][piece]][1][piece]
            assert (dtype, shape) == (facts["dtype"], where["shape"]), f"{piece} is {dtype} of {shape}"
            place(whole, facts["shape"], width, where["start"], where["shape"], block)
            filled += len(block)
        assert filled == len(whole), f"{name} has {len(whole)} bytes, its pieces {filled}"
        found[name] = facts["dtype"], facts["shape"], bytes(whole)
    return found


def write_whole(folder, kind):
    """Replaces the pieces of a checkpoint in place by one file."""
    header, data = {"__metadata__": {"format": "pt"}}, b""
    for name, (dtype, shape, content) in tensors(folder, kind).items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(header).encode()
    (Path(folder) / f"{kind}.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)
    for path in [*Path(folder).glob(f"{kind}-*-of-*.safetensors"), Path(folder) / f"{kind}.safetensors.index.json"]:
        path.unlink()


def floats(folder, kind="model"):
    """The values of a checkpoint's f32 tensors; none if there is no checkpoint."""
    if not os.path.exists(Path(folder) / "state.json"):
        return {}
    return {name: struct.unpack(f"<{len(content) // 4}f", content)
            for name, (dtype, _, content) in tensors(folder, kind).items() if dtype == "F32"}


def parts(folder, kind="model"):
    """The sizes of the files that several processes wrote, in their order."""
    return [path.stat().st_size for path in sorted(Path(folder).glob(f"{kind}-*-of-*.safetensors"))]
