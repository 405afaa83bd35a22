#!/usr/bin/env python3
"""The training steps of `sluice bench step` in PyTorch eager, for --beside.

  sluice bench step --model resnet50 --batch-size 128 --no-eager --beside 'python3 bench/torch_step.py resnet50 128'
  sluice bench step --model gpt2 --batch-size 1 --beside 'python3 bench/torch_step.py gpt2 1 --compile'

The models are those of sluice/bench/cases.cc: same layers, sizes, loss and optimizer. f32 products of a GPU may use
TF32, as XLA's do; --bf16 runs the forward pass under autocast. Speaks the protocol of sluice/bench/other_side.h.
"""

import argparse
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F


class Block(nn.Module):
    """A residual block: 1×1, 3×3, 1×1 with four times the width, or two of 3×3."""

    def __init__(self, channels, width, stride, bottleneck):
        super().__init__()
        out = width * (4 if bottleneck else 1)
        plan = ([(channels, width, 1, 1), (width, width, 3, stride), (width, out, 1, 1)] if bottleneck else
                [(channels, width, 3, stride), (width, out, 3, 1)])
        layers = []
        for i, (a, b, kernel, step) in enumerate(plan):
            layers += [nn.Conv2d(a, b, kernel, step, kernel // 2, bias=False), nn.BatchNorm2d(b)]
            if i + 1 < len(plan):
                layers.append(nn.ReLU(inplace=True))
        self.body = nn.Sequential(*layers)
        self.shortcut = nn.Identity()
        if stride != 1 or channels != out:
            self.shortcut = nn.Sequential(nn.Conv2d(channels, out, 1, stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, x):
        return F.relu(self.body(x) + self.shortcut(x))


def resnet(blocks, bottleneck, small, classes):
    layers = [nn.Conv2d(3, 64, 3 if small else 7, 1 if small else 2, 1 if small else 3, bias=False), nn.BatchNorm2d(64),
              nn.ReLU(inplace=True)]
    if not small:
        layers.append(nn.MaxPool2d(3, 2, 1))
    channels = 64
    for stage, count in enumerate(blocks):
        width = 64 << stage
        for block in range(count):
            layers.append(Block(channels, width, 2 if stage > 0 and block == 0 else 1, bottleneck))
            channels = width * (4 if bottleneck else 1)
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, classes))


class Transformer(nn.Module):
    def __init__(self, layers=6, width=256, heads=8, feedforward=1024, vocabulary=1000, length=128, classes=10):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.positions = nn.Parameter(torch.zeros(length, width))
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(width, heads, feedforward, dropout=0.0, activation="gelu", batch_first=True)
            for _ in range(layers))
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        x = self.tokens(x) + self.positions
        for layer in self.layers:
            x = layer(x)
        return self.head(x.mean(1))


def images(side):
    return lambda batch: torch.randn(batch, 3, side, side)


class NextTokenLoss(nn.Module):
    """GPT-2 of the package transformers: ids [batch, length + 1] to the mean loss of the next tokens."""

    def __init__(self, length):
        super().__init__()
        import transformers
        config = transformers.GPT2Config(resid_pdrop=0, embd_pdrop=0, attn_pdrop=0, n_positions=max(1024, length))
        self.model = transformers.GPT2LMHeadModel(config)

    def forward(self, x):
        logits = self.model(x[:, :-1], use_cache=False).logits
        return F.cross_entropy(logits.flatten(0, 1).float(), x[:, 1:].flatten())


def case_of(name, side, length):
    """(model, input of a batch, classes, whether it trains with Adam); of classes 0 the model gives its loss"""
    if name == "gpt2":
        return NextTokenLoss(length), lambda batch: torch.randint(0, 50257, (batch, length + 1)), 0, True
    if name == "resnet50":
        return resnet((3, 4, 6, 3), True, False, 1000), images(side), 1000, False
    if name == "resnet18_cifar":
        return resnet((2, 2, 2, 2), False, True, 10), images(side), 10, False
    if name == "mlp":
        layers = [nn.Linear(784, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10)]
        return nn.Sequential(*layers), lambda batch: torch.randn(batch, 784), 10, False
    return Transformer(), lambda batch: torch.randint(0, 1000, (batch, 128)), 10, True


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", choices=("resnet50", "resnet18_cifar", "mlp", "transformer6", "gpt2"))
    parser.add_argument("batch", type=int)
    parser.add_argument("--image-size", type=int, default=32)
    parser.add_argument("--length", type=int, default=256, help="tokens in a row of gpt2")
    parser.add_argument("--compile", action="store_true", help="torch.compile the model")
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--bf16", action="store_true", help="the forward pass in bf16 (autocast)")
    parser.add_argument("--channels-last", action="store_true")
    parser.add_argument("--warmup", type=int, default=5)
    options = parser.parse_args()

    torch.manual_seed(1)
    if options.threads:
        torch.set_num_threads(options.threads)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    torch.backends.cudnn.benchmark = True
    device = torch.device(options.device)
    model, make, classes, adam = case_of(options.model, options.image_size, options.length)
    form = torch.channels_last if options.channels_last else torch.contiguous_format
    model = model.to(device=device)
    x, y = make(options.batch).to(device), torch.randint(0, max(classes, 1), (options.batch,), device=device)
    if x.dim() == 4:
        model, x = model.to(memory_format=form), x.contiguous(memory_format=form)
    parameters = model.parameters()
    optimizer = (torch.optim.Adam(parameters, lr=1e-3) if adam else
                 torch.optim.SGD(parameters, lr=1e-2, momentum=0.9))

    run = torch.compile(model) if options.compile else model

    def steps(count):
        begin = time.perf_counter()
        for _ in range(count):
            optimizer.zero_grad()
            with torch.autocast(device.type, torch.bfloat16, enabled=options.bf16):
                loss = F.cross_entropy(run(x), y) if classes else run(x)
            loss.backward()
            optimizer.step()
        if device.type == "cuda":
            torch.cuda.synchronize()
        return (time.perf_counter() - begin) / count

    steps(options.warmup)
    print(f"ready {torch.cuda.max_memory_allocated()}" if device.type == "cuda" else "ready", flush=True)
    for line in sys.stdin:
        print(f"{steps(int(line)):.9f}", flush=True)


if __name__ == "__main__":
    main()
