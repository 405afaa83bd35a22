#!/usr/bin/env python3
"""Measures what each CPU kernel saves: a training step with all kernels, and without one of them, in turns.

    python3 bench/kernels.py build/release/bench/bench_kernel_steps [NAME ...] [--turns N]

Prints JSON: for each kernel the model, and the processor's time of a step without it divided by the time with
it (the least of all rounds of each side). A kernel stays in the project if this is 1.05 or more for one model.
So its other models are not measured, except with --all-models."""
import argparse
import json
import os
import subprocess
import sys
import tempfile

ENOUGH = 1.05
# Which models call a kernel.
ROWS = {
    "attention": ["transformer", "transformer_long", "transformer_dropout"],
    "batch_norm_gradient": ["resnet50", "resnet18_cifar"],
    "batch_norm_statistics": ["resnet50", "resnet18_cifar"],
    "bias_of_convolution": ["patches", "mnist", "volumes"],
    "bias_of_product": ["transformer", "mlp"],
    "columns": ["dcgan", "audio"],
    "convolution": ["resnet50", "mobilenet"],
    "depthwise": ["mobilenet"],
    "depthwise_planes": ["mobilenet"],
    "direct": ["resnet50", "mnist"],
    "few_pixels": ["resnet50_small"],
    "gelu": ["transformer", "patches"],
    "layer_norm": ["transformer", "transformer_long"],
    "max_pooling": ["resnet50", "mnist", "volumes"],
    "narrow_winograd": ["cifar_resnet8"],
    "onednn_products": ["mlp", "transformer", "resnet50"],
    "optimizer_update": ["resnet50_small", "transformer", "mlp"],
    "panels": ["mlp", "transformer", "resnet50"],
    "planes": ["audio", "patches", "volumes"],
    "pointwise": ["resnet50", "mobilenet"],
    "product": ["mlp", "transformer"],
    "product_update": ["mlp", "transformer", "mnist"],
    "recurrent": ["lstm", "gru", "rnn"],
    "relu_gradient_of_product": ["mlp"],
    "relu_of_batch_norm": ["resnet50", "resnet18_cifar"],
    "relu_of_product": ["mlp"],
    "residual_of_product": ["transformer"],
    "softmax": ["transformer_dropout", "mlp"],
    "sum_of_rows": ["transformer", "mlp"],
    "thin": ["resnet50", "mobilenet", "cifar_resnet8"],
    "winograd": ["resnet50", "resnet18_cifar"],
}


def step(program, model, without, cache):
    environment = dict(os.environ, SLUICE_WITHOUT_KERNELS=without, SLUICE_CACHE_DIR=cache)
    done = subprocess.run([program, model], env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{model} without {without or 'nothing'}: {done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])["least_processor_us"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", help="bench_kernel_steps of a release build")
    parser.add_argument("names", nargs="*", help="kernels to measure (default: all)")
    parser.add_argument("--all-models", action="store_true", help="also after a model with a ratio of 1.05")
    parser.add_argument("--turns", type=int, default=3, help="processes of each side")
    options = parser.parse_args()
    result = {}
    with tempfile.TemporaryDirectory() as cache:
        for name in options.names or ROWS:
            for model in ROWS[name]:
                times = {"": [], name: []}
                for _ in range(options.turns):
                    for without in times:
                        times[without].append(step(options.program, model, without, cache))
                ratio = round(min(times[name]) / min(times[""]), 3)
                result.setdefault(name, {})[model] = ratio
                print(name, model, ratio, file=sys.stderr, flush=True)
                if ratio >= ENOUGH and not options.all_models:
                    break
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
