"""Writes the files of tensors that sluice/session/files/tensor_file_test.cc reads, with Python's own packages.

Needs torch, numpy and safetensors. Usage: tensor_files_oracle.py FOLDER (sluice/session/testdata).
"""
import os
import sys

import safetensors.torch
import torch


def tensors():
    base = torch.arange(24, dtype=torch.float32).reshape(4, 6) / 8
    return {
        "f32": base,
        "f64": base.double() + 0.1,
        "f16": base.half(),
        "bf16": base.bfloat16(),
        "i64": torch.tensor([-(2**40), 0, 7]),
        "i32": torch.tensor([[1, -2], [3, 4]], dtype=torch.int32),
        "i16": torch.tensor([-300], dtype=torch.int16),
        "i8": torch.tensor([-3, 3], dtype=torch.int8),
        "u8": torch.tensor([0, 255], dtype=torch.uint8),
        "bool": torch.tensor([True, False]),
        "scalar": torch.tensor(2.5),
        "empty": torch.zeros(0, 3),
        "größe": torch.tensor([1.0]),
    }


def more_types():
    """What LibTorch has besides; values that all of a type's bits make."""
    pair = torch.tensor([1.5 - 2j, -0.25 + 4j, 3j])
    eighth = torch.tensor([0.5, -1.5, 16.0, 0.0])
    result = {
        "c64": pair,
        "u16": torch.tensor([0, 65535, 258], dtype=torch.uint16),
        "u32": torch.tensor([[4294967295], [66051]], dtype=torch.uint32),
        "u64": torch.tensor([2**63 + 5], dtype=torch.uint64),
        "f8_e4m3": eighth.to(torch.float8_e4m3fn),
        "f8_e4m3fnuz": eighth.to(torch.float8_e4m3fnuz),
        "f8_e5m2": eighth.to(torch.float8_e5m2),
        "f8_e5m2fnuz": eighth.to(torch.float8_e5m2fnuz),
        "f8_e8m0": torch.tensor([0.5, 1.0, 16.0]).to(torch.float8_e8m0fnu),
    }
    return result


class Evil:
    def __reduce__(self):
        return (os.system, ("touch /tmp/sluice-was-run",))


def main(folder):
    os.makedirs(folder, exist_ok=True)
    path = lambda name: os.path.join(folder, name)  # noqa: E731
    safetensors.torch.save_file(tensors(), path("all_types.safetensors"))
    shared = tensors()
    shared["view"] = shared["f32"].t()[1:3]  # strides and an offset into the same storage
    torch.save(shared, path("dict.pt"))
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.fill_(0.5)
    torch.save(model.state_dict(), path("state_dict.pt"))
    torch.save({"epoch": 3, "best_valid_acc": 36.84, "model_state_dict": model.state_dict()}, path("checkpoint.pt"))
    safetensors.torch.save_file(more_types(), path("more_types.safetensors"))
    four_bits = torch.tensor([0x12, 0x34], dtype=torch.uint8).view(torch.float4_e2m1fn_x2)
    safetensors.torch.save_file({"f4": four_bits}, path("four_bits.safetensors"))
    more = more_types()
    more["c128"] = more["c64"].to(torch.complex128) / 3
    more["c32"] = torch.view_as_complex(torch.view_as_real(more["c64"]).half())
    more["conjugate"] = more["c64"].conj()  # the storage of c64, and a flag
    more["negative"] = more["c64"].clone().conj().imag
    torch.save(more, path("more_types.pt"))
    torch.save(more, path("old_more_types.pt"), _use_new_zipfile_serialization=False)
    torch.save(shared, path("old_dict.pt"), _use_new_zipfile_serialization=False)
    torch.save(model.state_dict(), path("old_state_dict.pt"), _use_new_zipfile_serialization=False)
    torch.save(Evil(), path("old_evil.pt"), _use_new_zipfile_serialization=False)
    torch.save(Evil(), path("evil.pt"))
    torch.save([1, 2], path("list.pt"))


main(sys.argv[1])
