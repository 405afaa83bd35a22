#!/usr/bin/env python3
"""Compiles a decoder's training step over a mesh as JAX's users write it, and prints as JSON the memory of one device.

  over_mesh.py --topology v3:4x4 --model gpt2-xl
  over_mesh.py --topology v5p:4x2x2 --model llama-7b --length 2048

All devices are one axis, fsdp: weights and the moments of AdamW lie in blocks along their largest dimension that the
devices divide, and a batch has one row for each device. Layers are stacked and scanned, and jax.checkpoint computes them
again in the backward pass. Weights are f32, products bf16. `sluice compile --mesh fsdp=N … --json` is the other side;
TPU_LIBRARY_PATH names libtpu.so, and nothing runs on a device.
"""

import argparse
import json
import resource
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy  # noqa: E402
import optax  # noqa: E402
from jax import lax  # noqa: E402
from jax.experimental import topologies  # noqa: E402
from jax.sharding import Mesh, NamedSharding, PartitionSpec  # noqa: E402

from models import F32, Layers, dense, ids, layer_norm, norm, rms_norm, shape, token_loss  # noqa: E402

GPT2_XL = {"layers": 48, "width": 1600, "heads": 25, "feedforward": 6400, "vocabulary": 50257}
LLAMA_7B = {"layers": 32, "width": 4096, "heads": 32, "feedforward": 11008, "vocabulary": 32000}
WHOLE_ELEMENTS = 1 << 16  # as Sluice's: smaller parameters are whole on every device


def gpt2(length, layers, width, heads, feedforward, vocabulary):
    on = Layers(True)
    layer = {"norm1": norm(width), "qkv": dense(width, 3 * width), "out": dense(width, width), "norm2": norm(width),
             "up": dense(width, feedforward), "down": dense(feedforward, width)}
    params = {"tokens": shape(vocabulary, width), "positions": shape(length, width), "norm": norm(width), "layers": layer}

    def block(h, p):
        q, k, v = jnp.split(on.dense(p["qkv"], layer_norm(p["norm1"], h)).reshape(*h.shape[:2], 3 * heads, -1), 3, axis=2)
        h = h + on.dense(p["out"], on.attention(q, k, v, is_causal=True).reshape(h.shape))
        return h + on.dense(p["down"], jax.nn.gelu(on.dense(p["up"], layer_norm(p["norm2"], h)), approximate=True))

    def loss(params, rows):
        h = params["tokens"][rows[:, :-1]] + params["positions"]
        h = lax.scan(lambda h, p: (jax.checkpoint(block)(h, p), None), h, params["layers"])[0]
        return token_loss(on.low(layer_norm(params["norm"], h)) @ on.low(params["tokens"]).T, rows[:, 1:]).mean()

    return params, loss, layers


def rotated(x):
    half = x.shape[-1] // 2
    angles = jnp.arange(x.shape[1])[:, None] * 10000.0 ** (-jnp.arange(half) / half)
    cos, sin = jnp.cos(angles)[:, None], jnp.sin(angles)[:, None]
    a, b = x[..., :half], x[..., half:]
    return jnp.concatenate([a * cos - b * sin, b * cos + a * sin], -1)


def llama(length, layers, width, heads, feedforward, vocabulary):
    on = Layers(True)
    scale, product = {"scale": shape(width)}, lambda a, b: dense(a, b, bias=False)
    layer = {"norm1": scale, "q": product(width, width), "k": product(width, width), "v": product(width, width),
             "out": product(width, width), "norm2": scale, "gate": product(width, feedforward),
             "up": product(width, feedforward), "down": product(feedforward, width)}
    params = {"tokens": shape(vocabulary, width), "norm": scale, "layers": layer, "head": product(width, vocabulary)}

    def block(h, p):
        x = rms_norm(p["norm1"], h)
        q, k, v = (on.dense(p[name], x).reshape(*h.shape[:2], heads, -1) for name in "qkv")
        h = h + on.dense(p["out"], on.attention(rotated(q), rotated(k), v, is_causal=True).reshape(h.shape))
        x = rms_norm(p["norm2"], h)
        return h + on.dense(p["down"], jax.nn.silu(on.dense(p["gate"], x)) * on.dense(p["up"], x))

    def loss(params, rows):
        h = params["tokens"][rows[:, :-1]]
        h = lax.scan(lambda h, p: (jax.checkpoint(block)(h, p), None), h, params["layers"])[0]
        return token_loss(on.dense(params["head"], rms_norm(params["norm"], h)), rows[:, 1:]).mean()

    return params, loss, layers


MODELS = {"gpt2-xl": (gpt2, GPT2_XL), "llama-7b": (llama, LLAMA_7B)}


def spec_of(dims, devices, first=0):
    """A parameter's layout; dimensions before `first` (the layers of a stack) are whole."""
    if numpy.prod(dims[first:]) <= WHOLE_ELEMENTS:
        return PartitionSpec()
    fitting = [d for d in range(first, len(dims)) if dims[d] % devices == 0]
    if not fitting:
        return PartitionSpec()
    best = max(fitting, key=lambda d: (dims[d], -d))
    return PartitionSpec(*["fsdp" if d == best else None for d in range(len(dims))])


def laid_out(params, layers, mesh):
    """The shapes of the weights, those of the layers stacked, each with its layout."""
    devices = mesh.devices.size

    def place(leaf, stacked):
        dims = ((layers,) if stacked else ()) + leaf.shape
        return jax.ShapeDtypeStruct(dims, leaf.dtype, sharding=NamedSharding(mesh, spec_of(dims, devices, int(stacked))))

    return {name: jax.tree.map(lambda leaf: place(leaf, name == "layers"), part) for name, part in params.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--topology", required=True, help="libtpu's name of a slice, such as v3:4x4")
    parser.add_argument("--model", choices=MODELS, required=True)
    parser.add_argument("--length", type=int, default=1024)
    options = parser.parse_args()
    devices = topologies.get_topology_desc(platform="tpu", topology_name=options.topology).devices
    mesh = Mesh(numpy.array(devices), "fsdp")
    make, sizes = MODELS[options.model]
    params, loss, layers = make(options.length, **sizes)
    params = laid_out(params, layers, mesh)
    optimizer = optax.adamw(1e-4, weight_decay=0.1)
    whole = NamedSharding(mesh, PartitionSpec())
    by_shape = {(leaf.shape, leaf.dtype): leaf.sharding for leaf in jax.tree.leaves(params)}
    slots = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=by_shape.get((leaf.shape, leaf.dtype), whole)),
                         jax.eval_shape(optimizer.init, params))
    rows = ids(len(devices), options.length + 1)
    rows = jax.ShapeDtypeStruct(rows.shape, rows.dtype, sharding=NamedSharding(mesh, PartitionSpec("fsdp")))

    def step(params, slots, rows):
        value, grads = jax.value_and_grad(loss)(params, rows)
        updates, slots = optimizer.update(grads, slots, params)
        return optax.apply_updates(params, updates), slots, value

    of = lambda tree: jax.tree.map(lambda leaf: leaf.sharding, tree)
    start, before = time.monotonic(), resource.getrusage(resource.RUSAGE_SELF)
    compiled = jax.jit(step, donate_argnums=(0, 1), out_shardings=(of(params), of(slots), whole)).lower(params, slots, rows).compile()
    after = resource.getrusage(resource.RUSAGE_SELF)
    memory = compiled.memory_analysis()
    print(json.dumps({
        "jax": jax.__version__, "devices": len(devices), "parameters": sum(int(numpy.prod(p.shape)) for p in jax.tree.leaves(params)),
        "memory": memory.argument_size_in_bytes + memory.output_size_in_bytes - memory.alias_size_in_bytes + memory.temp_size_in_bytes,
        "temporary": memory.temp_size_in_bytes, "code": memory.generated_code_size_in_bytes,
        "compile_seconds": round(time.monotonic() - start, 1),
        "processor_seconds": round(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, 1)}))


if __name__ == "__main__":
    main()
