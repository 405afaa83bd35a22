#!/usr/bin/env python3
"""A run with --save-top-k 3, killed by SIGKILL at random moments and resumed: whenever it is looked at again, its top-STEP
are exactly the checkpoints of the three best tests up to where it goes on, and at its end they have the weights of a run
that nobody killed.

Usage: top_checkpoints_test.py PROGRAM [--all]: 50 kills with --all, else 5."""
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

program, kills = sys.argv[1], 50 if "--all" in sys.argv[2:] else 5
os.environ["OMP_NUM_THREADS"] = "1"  # small nets: a second thread would only wait
seed = int(os.environ.get("SEED", time.time()))
random.seed(seed)
print("SEED", seed)
KEPT = 3


def command(folder, *more):
    return [program, "train", "--model", "mlp", "--fake-data", "--classes", "24", "--image-size", "8", "--train-size", "96",
            "--test-size", "40", "--batch-size", "16", "--device", "cpu", "--lr", "0.002", "--lr-schedule", "constant",
            "--epochs", "16", "--save-steps", "4", "--ema", "0.7", "--save-top-k", str(KEPT), "--logdir", str(folder),
            *more]


def start(folder, *more):
    """The process, once it has opened its data and begins to train."""
    process = subprocess.Popen(command(folder, *more), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    said = ""
    for line in process.stdout:
        said += line
        if line.startswith("model "):
            return process
    raise AssertionError(said)

def tests_of(folder):
    """The value of each test, by its step."""
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return {row["step"]: row["accuracy"] for row in rows if row["split"] == "test"
}

def kept(folder):
    return sorted(int(path.name[4:]) for path in folder.glob("top-*"))


def best(tests, step):
    """Of equal ones the earlier is the better."""
    order = sorted((at for at in tests if at <= step), key=lambda at: (-tests[at], at))
    return sorted(order[:KEPT])


with tempfile.TemporaryDirectory() as folder:
    whole, run = Path(folder, "whole"), Path(folder, "run")
    process = start(whole)
    began = time.monotonic()
    process.communicate()
    seconds = time.monotonic() - began
    assert process.returncode == 0
    tests = tests_of(whole)
    assert len(tests) == 16 and len(set(tests.values())) > KEPT, tests
    assert kept(whole) == best(tests, max(tests)), (kept(whole), tests)
    weights = {at: (whole / f"top-{at:09}/model.safetensors").read_bytes() for at in kept(whole)}

    done = ended = 0
    places = set()
    while done < kills:
        process = start(run, "--resume")
        time.sleep(random.uniform(0, seconds / 2))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        killed = process.returncode == -signal.SIGKILL
        done += killed
        looked = subprocess.run(command(run, "--resume", "--epochs", "0"), capture_output=True, text=True)
        assert looked.returncode == 0, looked.stderr
        state = run / "last/state.json"
        step = json.loads(state.read_text())["step"] if state.exists() else 0
        places.add(step)
        assert kept(run) == best(tests, step), (done, step, kept(run), tests)
        for at in kept(run):
            found = json.loads((run / f"top-{at:09}/state.json").read_text())
            assert (found["step"], found["value"]) == (at, tests[at]), found
        if not killed or step == max(tests):
            assert kept(run) == kept(whole)
            for at, bytes_of_whole in weights.items():
                assert (run / f"top-{at:09}/model.safetensors").read_bytes() == bytes_of_whole, at
            ended += 1
            shutil.rmtree(run)
    print(f"{done} kills, runs went on at {len(places)} places, {ended} of them to their end")
print("passed")
