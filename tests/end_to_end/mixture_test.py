#!/usr/bin/env python3
"""A mixture of three sets, killed at random moments and resumed, ends with the weights of an uninterrupted run.

Usage: mixture_test.py PROGRAM [--all]: 30 kills with --all, else 6."""
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent
program, kills = sys.argv[1], 30 if "--all" in sys.argv[2:] else 6
os.environ["OMP_NUM_THREADS"] = "1"  # small nets: a second thread would only wait


def sluice(*args, **more):
    return subprocess.run([program, *map(str, args)], check=True, text=True, capture_output=True, **more)


with tempfile.TemporaryDirectory() as folder:
    work = Path(folder)
    for name, each in ("large", 60), ("middle", 25), ("small", 4):
        subprocess.run([sys.executable, HERE / "make_images.py", work / f"{name}-images", "3", str(each)], check=True)
        sluice("data", "pack", work / f"{name}-images", work / name)
    flags = ["train", "--model", "mlp", "--classes", "3", "--device", "cpu", "--crop", "12", "--flip", "--batch-size", "8",
             "--shuffle", "50", "--epochs", "8", "--epoch-samples", "250", "--log-steps", "10", "--lr", "0.01",
             "--save-steps", "3", "--mix-from", "100=0.2,0.2,0.6", "--mix-from", "177=1,1,1", "--test",
             f"{work}/small/*.tar"]
    for name, share in ("large", 0.6), ("middle", 0.3), ("small", 0.1):
        flags += ["--mix", f"{work}/{name}/*.tar={share}"]

    began = time.monotonic()
    log = sluice(*flags, "--logdir", work / "whole").stdout
    seconds = time.monotonic() - began
    assert "took 149 samples of" in log or "took 148 samples of" in log, log
    whole = [(work / "whole/last" / name).read_bytes() for name in ("model.safetensors", "state.safetensors")]

    done = runs = continued = 0
    while done < kills:
        runs += 1
        logdir = work / f"killed-{runs}"
        resumed = 0
        while True:
            command = [program, *flags, "--logdir", logdir, "--resume"]
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            # Only as many kills as are asked for, and a run that never gets anywhere is let go on.
            late = seconds if done < kills and resumed < 12 else None
            try:
                out, _ = process.communicate(timeout=random.uniform(0.1, 0.8) * late if late else 600)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
                process.communicate()
                done += 1
                resumed += 1
                continue
            assert process.returncode == 0, out
            break
        continued += "Going on from" in out
        killed = [(logdir / "last" / name).read_bytes() for name in ("model.safetensors", "state.safetensors")]
        assert killed == whole, f"the weights differ after {resumed} kills"
    assert continued > 0, "no run went on from a checkpoint"
    print(f"passed: {done} kills in {runs} runs, the same weights after each")
