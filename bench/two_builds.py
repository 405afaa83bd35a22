#!/usr/bin/env python3
"""Compares the training steps and the compile times of two builds of Sluice, in turns.

    python3 bench/two_builds.py OLD/apps/sluice NEW/apps/sluice [--model NAME:BATCH[:FLAGS] ...]
    python3 bench/two_builds.py sluice sluice --new-environment SLUICE_EXACT=1

Each turn starts `sluice bench step` of both builds, one after the other, with an empty cache of programs. The
second form compares one build with itself under another setting. Prints JSON: for each model, the median of
the step (milliseconds) and of the compile time (seconds) of each side, and the median over the turns of the
ratio new ÷ old. The programs need release builds, and a machine that does nothing else."""
import argparse
import json
import os
import shlex
import statistics
import subprocess
import sys
import tempfile

MODELS = [
    "mlp:128::60",
    "lenet:128::40",
    "cifar_resnet8:128::20",
    "resnet18_cifar:64::5",
    "resnet50:32::10",
    "resnet50:4:--image-size 224:8",
    "transformer6:8::10",
    "lstm:128::10",
    "gpt2-mini:4::8",
    "llama-mini:4::8",
    "vit_b_16:2:--image-size 224:4",
    "dcgan:32::10",
]


def measure(program, model, batch, flags, rounds, environment):
    with tempfile.TemporaryDirectory() as cache:
        command = [program, "bench", "step", "--model", model, "--batch-size", batch, "--rounds", rounds]
        command += ["--no-eager"] + shlex.split(flags)
        done = subprocess.run(command, env=dict(os.environ, SLUICE_CACHE_DIR=cache, **environment),
                              capture_output=True, text=True)
    if done.returncode != 0:
        return {"error": done.stderr.strip().splitlines()[-1:]}
    found = json.loads(done.stdout)["xla"]
    return {"step_ms": found["step_ms"], "compile_s": found["compile_s"], "host_ms": found["host_ms"],
            "operations": found["operations"]}


def row(options, text):
    model, batch, flags, rounds = (text.split(":") + ["", "", ""])[:4]
    sides = {"old": [], "new": []}
    errors = {}
    for turn in range(options.turns):
        order = ["old", "new"] if turn % 2 == 0 else ["new", "old"]
        for side in order:
            environment = dict(pair.split("=", 1) for pair in getattr(options, side + "_environment"))
            found = measure(getattr(options, side), model, batch or "32", flags, rounds or "10", environment)
            if "error" in found:
                errors[side] = found["error"]
            else:
                sides[side].append(found)
    result = {"model": model, "batch_size": int(batch or 32), "flags": flags}
    if errors:
        return dict(result, errors=errors)
    for key in ("step_ms", "compile_s", "host_ms"):
        values = {side: [one[key] for one in found] for side, found in sides.items()}
        result[key] = {side: round(statistics.median(v), 3) for side, v in values.items()}
        result[key]["new/old"] = round(
            statistics.median(n / o for n, o in zip(values["new"], values["old"]) if o > 0), 3)
    result["operations"] = {side: found[0]["operations"] for side, found in sides.items()}
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", help="the program `sluice` of the build to compare with")
    parser.add_argument("new", help="the program `sluice` of the other build")
    parser.add_argument("--model", action="append", help="MODEL:BATCH:FLAGS:ROUNDS; repeatable")
    parser.add_argument("--old-name", default="before", help="what the table calls the first build, such as its commit")
    parser.add_argument("--turns", type=int, default=3, help="processes of each side")
    parser.add_argument("--old-environment", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--new-environment", action="append", default=[], metavar="NAME=VALUE")
    options = parser.parse_args()
    rows = []
    for text in options.model or MODELS:
        rows.append(row(options, text))
        print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
    print(json.dumps({"two_builds": len(rows), "old": options.old_name, "turns": options.turns, "rows": rows}, indent=1))


if __name__ == "__main__":
    main()
