#!/usr/bin/env python3
"""Writes the training steps of `sluice bench step` as JAX lowers them, for --against.

  python3 bench/jax_step.py resnet50 128 resnet50.mlir [--image-size 224] [--bf16]
  python3 bench/jax_step.py gpt2 8 gpt2.mlir --length 1024 --bf16
  sluice bench step --model resnet50 --batch-size 128 --against resnet50.mlir

The models are those of sluice/bench/cases.cc in plain jax.numpy: same layers, sizes, loss and optimizer, weights donated.
--bf16: products and convolutions in bf16, everything else in f32, as LibTorch's autocast does it.
Needs the package jax; nothing is run here.
"""

import argparse
import functools

import jax
import jax.numpy as jnp
from jax import lax

F32 = jnp.float32
BF16 = False  # set by --bf16


def shape(*dims, dtype=F32):
    return jax.ShapeDtypeStruct(dims, dtype)


def cross_entropy(logits, labels):
    picked = jnp.take_along_axis(jax.nn.log_softmax(logits.astype(F32)), labels[:, None], axis=1)
    return -jnp.mean(picked)


def low(x):
    """An operand of a product."""
    return x.astype(jnp.bfloat16) if BF16 else x


def linear(p, x):
    return low(x) @ low(p["weight"]).T + low(p["bias"])


def linear_shapes(inputs, outputs):
    return {"weight": shape(outputs, inputs), "bias": shape(outputs)}


# --- MLP -------------------------------------------------------------------------------------------------------------


def mlp():
    params = [linear_shapes(784, 1024), linear_shapes(1024, 1024), linear_shapes(1024, 10)]

    def forward(params, state, x):
        for layer in params[:-1]:
            x = jax.nn.relu(linear(layer, x))
        return linear(params[-1], x), state

    return params, {}, forward, lambda batch: shape(batch, 784)


# --- ResNets (NCHW, as LibTorch) ---------------------------------------------------------------------------------------


def conv(weight, x, stride, padding):
    return lax.conv_general_dilated(low(x), low(weight), (stride, stride), [(padding, padding)] * 2,
                                    dimension_numbers=("NCHW", "OIHW", "NCHW"))


def batch_norm(p, s, x):
    kept, x = x.dtype, x.astype(F32)
    mean = jnp.mean(x, (0, 2, 3))
    var = jnp.mean(x * x, (0, 2, 3)) - mean * mean  # as flax's BatchNorm, in one pass
    count = x.size // x.shape[1]
    new = {"mean": 0.9 * s["mean"] + 0.1 * mean, "var": 0.9 * s["var"] + 0.1 * var * count / (count - 1)}
    scale = p["weight"] * lax.rsqrt(var + 1e-5)
    return ((x - mean[:, None, None]) * scale[:, None, None] + p["bias"][:, None, None]).astype(kept), new


def resnet(blocks, bottleneck, small, classes, side=32):
    params, state, plan = {}, {}, []

    def add(name, inputs, outputs, kernel):
        params[name] = {"conv": shape(outputs, inputs, kernel, kernel), "weight": shape(outputs), "bias": shape(outputs)}
        state[name] = {"mean": shape(outputs), "var": shape(outputs)}

    add("stem", 3, 64, 3 if small else 7)
    channels = 64
    for stage, count in enumerate(blocks):
        width = 64 << stage
        out = width * (4 if bottleneck else 1)
        for block in range(count):
            name, stride = f"{stage}.{block}", 2 if stage > 0 and block == 0 else 1
            if bottleneck:
                convs = [(channels, width, 1, 1), (width, width, 3, stride), (width, out, 1, 1)]
            else:
                convs = [(channels, width, 3, stride), (width, out, 3, 1)]
            for i, (a, b, kernel, _) in enumerate(convs):
                add(f"{name}.{i}", a, b, kernel)
            shortcut = stride != 1 or channels != out
            if shortcut:
                add(f"{name}.down", channels, out, 1)
            plan.append((name, convs, stride, shortcut))
            channels = out
    params["fc"] = linear_shapes(channels, classes)

    def forward(params, state, x):
        new = {}

        def unit(name, x, stride, kernel):
            p = params[name]
            y, new[name] = batch_norm(p, state[name], conv(p["conv"], x, stride, kernel // 2))
            return y

        x = jax.nn.relu(unit("stem", x, 1 if small else 2, 3 if small else 7))
        if not small:
            x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 1, 3, 3), (1, 1, 2, 2), [(0, 0), (0, 0), (1, 1), (1, 1)])
        for name, convs, stride, shortcut in plan:
            y = x
            for i, (_, _, kernel, step) in enumerate(convs):
                y = unit(f"{name}.{i}", y, step, kernel)
                if i + 1 < len(convs):
                    y = jax.nn.relu(y)
            x = jax.nn.relu(y + (unit(f"{name}.down", x, stride, 1) if shortcut else x))
        return linear(params["fc"], jnp.mean(x, (2, 3))), new

    return params, state, forward, lambda batch: shape(batch, 3, side, side)


# --- Transformer -------------------------------------------------------------------------------------------------------


def layer_norm(p, x):
    x = x.astype(F32)
    mean = jnp.mean(x, -1, keepdims=True)
    var = jnp.mean(x * x, -1, keepdims=True) - mean * mean  # as flax's LayerNorm
    return (x - mean) * lax.rsqrt(var + 1e-5) * p["weight"] + p["bias"]


def transformer(layers=6, width=256, heads=8, feedforward=1024, vocabulary=1000, length=128, classes=10):
    norm = {"weight": shape(width), "bias": shape(width)}
    params = {"tokens": shape(vocabulary, width), "positions": shape(length, width), "head": linear_shapes(width, classes),
              "layers": [{"qkv": linear_shapes(width, 3 * width), "out": linear_shapes(width, width),
                          "up": linear_shapes(width, feedforward), "down": linear_shapes(feedforward, width),
                          "norm1": norm, "norm2": norm} for _ in range(layers)]}

    def attention(p, x):
        batch = x.shape[0]
        q, k, v = jnp.split(linear(p["qkv"], x).reshape(batch, length, 3 * heads, width // heads), 3, axis=2)
        scores = jnp.einsum("blhd,bmhd->bhlm", q, k) * (width // heads) ** -0.5
        mixed = jnp.einsum("bhlm,bmhd->blhd", low(jax.nn.softmax(scores.astype(F32))), v)
        return linear(p["out"], mixed.reshape(batch, length, width))

    def forward(params, state, x):
        h = params["tokens"][x] + params["positions"]
        for p in params["layers"]:
            h = layer_norm(p["norm1"], h + attention(p, h))
            h = layer_norm(p["norm2"], h + linear(p["down"], jax.nn.gelu(linear(p["up"], h), approximate=False)))
        return linear(params["head"], jnp.mean(h, 1)), state

    return params, {}, forward, lambda batch: shape(batch, length, dtype=jnp.int32)


# --- GPT-2 (without dropout; the head is the table of tokens) ----------------------------------------------------------


def gpt2(length, layers=12, width=768, heads=12, vocabulary=50257):
    norm = {"weight": shape(width), "bias": shape(width)}
    params = {"tokens": shape(vocabulary, width), "positions": shape(max(1024, length), width), "norm": norm,
              "layers": [{"norm1": norm, "qkv": linear_shapes(width, 3 * width), "out": linear_shapes(width, width),
                          "norm2": norm, "up": linear_shapes(width, 4 * width), "down": linear_shapes(4 * width, width)}
                         for _ in range(layers)]}
    causal = jnp.tril(jnp.ones((length, length), bool))

    def attention(p, x):
        batch = x.shape[0]
        q, k, v = jnp.split(linear(p["qkv"], x).reshape(batch, length, 3 * heads, width // heads), 3, axis=2)
        scores = jnp.einsum("blhd,bmhd->bhlm", q, k).astype(F32) * (width // heads) ** -0.5
        mixed = jnp.einsum("bhlm,bmhd->blhd", low(jax.nn.softmax(jnp.where(causal, scores, -jnp.inf))), v)
        return linear(p["out"], mixed.reshape(batch, length, width))

    def forward(params, state, ids):
        h = params["tokens"][ids[:, :-1]] + params["positions"][:length]
        for p in params["layers"]:
            h = h + attention(p, layer_norm(p["norm1"], h))
            h = h + linear(p["down"], jax.nn.gelu(linear(p["up"], layer_norm(p["norm2"], h)), approximate=True))
        logits = low(layer_norm(params["norm"], h)) @ low(params["tokens"]).T
        return cross_entropy(logits.reshape(-1, vocabulary), ids[:, 1:].reshape(-1)), state

    return params, {}, forward, lambda batch: shape(batch, length + 1, dtype=jnp.int32)


# --- Steps -------------------------------------------------------------------------------------------------------------


def sgd(params, grads, velocity, _):
    velocity = jax.tree.map(lambda v, g: 0.9 * v + g, velocity, grads)
    return jax.tree.map(lambda p, v: p - 1e-2 * v, params, velocity), velocity


def adam(params, grads, moments, count):
    first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, moments[0], grads)
    second = jax.tree.map(lambda m, g: 0.999 * m + 0.001 * g * g, moments[1], grads)
    c1, c2 = 1 - 0.9**count, 1 - 0.999**count
    update = lambda p, m, v: p - 1e-3 * (m / c1) / (jnp.sqrt(v / c2) + 1e-8)
    return jax.tree.map(update, params, first, second), (first, second)


MODELS = {
    "mlp": (mlp, sgd),
    "resnet50": (functools.partial(resnet, (3, 4, 6, 3), True, False, 1000), sgd),
    "resnet18_cifar": (functools.partial(resnet, (2, 2, 2, 2), False, True, 10), sgd),
    "transformer6": (transformer, adam),
    "gpt2": (gpt2, adam),  # its forward gives the loss
}


def step_of(name, side, length, over=None):
    """The step and its arguments but the batch; `over`: the axis of the devices that share the step."""
    make, update = MODELS[name]
    sizes = {"side": side} if name.startswith("resnet") else {"length": length} if name == "gpt2" else {}
    params, state, forward, inputs = make(**sizes)
    slots = params if update is sgd else (params, params)

    def step(params, state, slots, count, x, y):
        def loss(params):
            result, new = forward(params, state, x)
            return result if name == "gpt2" else cross_entropy(result, y), new

        (value, state_after), grads = jax.value_and_grad(loss, has_aux=True)(params)
        if over:
            value, state_after, grads = lax.pmean((value, state_after, grads), over)
        params, slots = update(params, grads, slots, count)
        return params, state_after, slots, value

    return step, (params, state, slots, shape()), inputs


def write(options):
    step, arguments, inputs = step_of(options.model, options.image_size, options.length)
    lowered = jax.jit(step, donate_argnums=(0, 1, 2), keep_unused=True).lower(
        *arguments, inputs(options.batch), shape(options.batch, dtype=jnp.int32))
    with open(options.path, "w") as out:
        out.write(lowered.as_text())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", choices=MODELS)
    parser.add_argument("batch", type=int)
    parser.add_argument("path", metavar="OUT.mlir")
    parser.add_argument("--image-size", type=int, default=32)
    parser.add_argument("--length", type=int, default=256, help="tokens in a row of gpt2")
    parser.add_argument("--bf16", action="store_true")
    options = parser.parse_args()
    BF16 = options.bf16
    write(options)
