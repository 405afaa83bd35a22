"""Writes what sluice/models/models_test.cc compares with: names, shapes and outputs of the published definitions.

Needs torch and torchvision. Usage: model_oracle.py FOLDER (sluice/models/testdata).
"""
import math
import os
import sys

import torch

# A torchvision built for another torch misses its own operators; its models need none of them.
_library = torch.library.Library("torchvision", "DEF")
for _name in ["nms", "qnms", "deform_conv2d", "_deform_conv2d_backward", "roi_align", "_roi_align_backward",
              "roi_pool", "_roi_pool_backward", "ps_roi_align", "_ps_roi_align_backward", "ps_roi_pool",
              "_ps_roi_pool_backward"]:
    try:
        _library.define(f"{_name}(Tensor x) -> Tensor")
    except RuntimeError:
        pass
import torchvision  # noqa: E402


def fill(tensors):
    """The same numbers as fill() in the test: they depend on names, shapes and positions alone."""
    for k, (name, t) in enumerate(tensors):
        if not t.is_floating_point():
            continue
        n = t.numel()
        wave = torch.sin(torch.arange(n, dtype=torch.float64) * 0.7 + k)
        if name.endswith("running_var"):
            values = 1 + 0.5 * wave
        elif t.dim() > 1:
            values = wave * math.sqrt(2.0 / (n / t.shape[0]))
        else:
            values = (1.0 if name.endswith("weight") else 0.0) + 0.1 * wave
        t.copy_(values.reshape(t.shape))


def image(*shape):
    n = math.prod(shape)
    return torch.sin(torch.arange(n, dtype=torch.float64) * 0.01).reshape(shape).float()


def numbers(t):
    return " ".join(f"{v:.6g}" for v in t.flatten().tolist())


class Transformer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.position = torch.nn.Parameter(torch.zeros(7, 1, 16))
        self.embedding = torch.nn.Embedding(11, 16)
        layer = torch.nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, activation="gelu")
        self.encoder = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.fc = torch.nn.Linear(16, 3)

    def forward(self, tokens):
        h = self.embedding(tokens).transpose(0, 1) + self.position[: tokens.shape[1]]
        padded = tokens == 0
        h = self.encoder(h, src_key_padding_mask=padded)
        kept = (~padded).float().t().unsqueeze(2)
        return self.fc((h * kept).sum(0) / kept.sum(0))


def main(folder):
    os.makedirs(folder, exist_ok=True)
    for name in ["resnet18", "resnet34", "resnet50", "resnet101", "resnet152"]:
        model = getattr(torchvision.models, name)(weights=None)
        state = model.state_dict()
        lines = [f"{k} {' '.join(map(str, v.shape))}".rstrip() for k, v in sorted(state.items())]
        with open(os.path.join(folder, name + ".txt"), "w") as out:
            out.write("\n".join(lines) + "\n")
    with torch.no_grad(), open(os.path.join(folder, "outputs.txt"), "w") as out:
        for name in ["resnet18", "resnet50"]:
            model = getattr(torchvision.models, name)(weights=None, num_classes=10).double()
            fill(sorted(model.state_dict().items()))
            model.eval()
            out.write(f"{name} {numbers(model(image(2, 3, 64, 64).double()))}\n")
        model = Transformer().double()
        fill(sorted(model.state_dict().items()))
        tokens = torch.tensor([[1, 2, 3, 4, 5], [6, 7, 10, 0, 0]])
        out.write(f"transformer {numbers(model.train()(tokens))}\n")


main(sys.argv[1])
