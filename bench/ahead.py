#!/usr/bin/env python3
"""Compares the TPU programs of training steps with JAX's for the same model, as libtpu's compiler counts them.

  python3 bench/ahead.py --program build/release/apps/sluice > ahead.json
  python3 bench/ahead.py --recipes gpt2 --slices v5litepod-8,v6e-8 --jax-python jax/bin/python

Needs no TPU: libtpu (scripts/setup --libtpu, or TPU_LIBRARY_PATH) compiles for devices that are not here. The JAX side is
bench/jax_step.py and needs the package jax, in the Python of --jax-python. One object a recipe and slice is printed: what
each side needs on one device, and "ratio", Sluice's figures divided by JAX's. Large models take minutes a slice and side.

The figures: bytes_accessed and flops are the compiler's count; memory is arguments + outputs - what is overwritten +
temporaries; code is what is loaded onto the device; compile_seconds are this machine's.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# A model of `sluice compile` and its flags; jax_step.py has the same ones.
RECIPES = {
    "mlp": ("mlp", 128, []),
    "resnet50": ("resnet50", 128, ["--image-size", "224"]),
    "resnet50-bf16": ("resnet50", 128, ["--image-size", "224", "--bf16"]),
    "transformer6": ("transformer6", 64, []),
    "gpt2": ("gpt2", 8, ["--length", "1024", "--bf16"]),
}
SLICES = ["v3-8", "v5litepod-8", "v5p-8", "v6e-8"]
FIGURES = ["flops", "bytes_accessed", "memory", "temporary", "code", "compile_seconds"]


def run(command, environment=None):
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))} ended with status {done.returncode}:\n{done.stderr[-2000:]}")
    return done.stdout


def of_sluice(program, model, batch, flags, slice_):
    """The figures of the step, and libtpu's name of the slice."""
    words = ["--precision" if flag == "--bf16" else flag for flag in flags]
    if "--precision" in words:
        words.insert(words.index("--precision") + 1, "bf16")
    found = json.loads(run([program, "compile", "--topology", slice_, "--model", model, "--batch-size", str(batch), "--json",
                            *words]))["slices"][0]
    if "error" in found or not found["compiled"]["fits"]:
        sys.exit(f"{model} on {slice_}: {found.get('error', 'does not fit')}")
    figures = {**found["compiled"], **found["measured"]}
    return {name: figures[name] for name in FIGURES}, found["topology"]


def of_jax(python, libtpu, model, batch, flags, topology):
    # libtpu looks for a slice around it unless it is told that there is none; only the named topology counts.
    environment = dict(os.environ, TPU_LIBRARY_PATH=str(libtpu), TPU_SKIP_MDS_QUERY="1", ALLOW_MULTIPLE_LIBTPU_LOAD="1",
                       TPU_WORKER_HOSTNAMES="localhost", TPU_ACCELERATOR_TYPE="v3-8", TPU_LOG_DIR="disabled", JAX_PLATFORMS="cpu")
    for name in ("XLA_FLAGS", "LIBTPU_INIT_ARGS"):
        environment.pop(name, None)
    answer = json.loads(run([python, ROOT / "bench/jax_step.py", model, str(batch), "--topology", topology, *flags],
                            environment).splitlines()[-1])
    return {name: answer[name] for name in FIGURES}, answer["jax"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recipes", default=",".join(RECIPES), help="of " + ", ".join(RECIPES))
    parser.add_argument("--slices", default=",".join(SLICES))
    parser.add_argument("--program", type=Path, default=ROOT / "build/release/apps/sluice")
    parser.add_argument("--jax-python", default=sys.executable)
    parser.add_argument("--libtpu", type=Path,
                        default=os.environ.get("TPU_LIBRARY_PATH", ROOT / ".deps/libtpu/libtpu/libtpu.so"))
    options = parser.parse_args()
    unknown = set(options.recipes.split(",")) - set(RECIPES)
    if unknown:
        parser.error(f"there is no recipe {', '.join(sorted(unknown))}; known: {', '.join(RECIPES)}")
    rows = []
    for recipe in options.recipes.split(","):
        model, batch, flags = RECIPES[recipe]
        for slice_ in options.slices.split(","):
            ours, topology = of_sluice(options.program, model, batch, flags, slice_)
            theirs, version = of_jax(options.jax_python, options.libtpu, model, batch, flags, topology)
            ratio = {name: round(ours[name] / theirs[name], 3) for name in FIGURES if theirs[name]}
            rows.append({"recipe": recipe, "batch": batch, "slice": slice_, "sluice": ours, "jax": theirs,
                         "jax_version": version, "ratio": ratio})
            print(f"{recipe} on {slice_}: bytes {ratio['bytes_accessed']}, memory {ratio['memory']} of JAX's", file=sys.stderr)
    print(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
