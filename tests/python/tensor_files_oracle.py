"""Writes the files of tensors that sluice/session/tensor_file_test.cc reads, with Python's own packages.

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
    torch.save(Evil(), path("evil.pt"))
    torch.save([1, 2], path("list.pt"))


main(sys.argv[1])
