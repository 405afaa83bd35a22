"""shards_test.py PROGRAM POD_PLUGIN: checkpoints that several processes write, each its own blocks.

A run that goes on with another mesh, another number of processes or one device must have the losses and the weights of
one that was never stopped. Processes are killed while they save (the seed is fixed); kills_test.py kills more of them.
"""

import random
import shutil
import sys
import time
from pathlib import Path

from checkpoint_files import floats, parts, tensors, write_whole
from mesh_runs import (Run, check, counts, failures, last, losses, near, position, same_values, train, wait_for_save,
                       work)

STEPS = 8  # of an epoch


def half_of(mesh, processes, devices):
    """A run that has ended after its first epoch."""
    folder = Path(work.name) / "half"
    shutil.rmtree(folder, ignore_errors=True)
    status, output = train(folder, mesh, processes, devices, 1)
    check(status == [0] * processes, f"{mesh} in {processes} processes trains an epoch", output)
    return folder


def go_on(half, mesh, processes, devices, change=None):
    """The same run after the second epoch."""
    folder = Path(work.name) / f"on-{len(list(Path(work.name).iterdir()))}"
    shutil.copytree(half, folder)
    if change:
        change(last(folder))
    status, output = train(folder, mesh, processes, devices, 2)
    check(status == [0] * processes and "Going on from" in output, f"{mesh} in {processes} processes goes on", output)
    return folder


def same_end(found, wanted, what):
    check(near(losses(found), losses(wanted)), f"{what}: the losses", (losses(found), losses(wanted)))
    check(same_values(found, wanted), f"{what}: the averages, the weights and the optimizer's state")
    states = [tensors(last(folder), "state")["random.cpu"] for folder in (found, wanted)]
    check(states[0] == states[1], f"{what}: the random numbers")


def make_whole(folder):
    for kind in ("model", "state"):
        write_whole(folder, kind)


# The data that a process reads depends on the number of processes, so runs are compared for each number.
whole = Path(work.name) / "whole"
status, output = train(whole, "fsdp=4", 2, 2, 2)
check(status == [0, 0] and len(losses(whole)) == 2 * STEPS, "two processes train two epochs", output)
wanted, weights = losses(whole), floats(last(whole))

half = half_of("fsdp=4", 2, 2)
sizes = [sum(parts(last(half), kind)[p] for kind in ("model", "state")) for p in range(2)]
mean = sum(sizes) / 2
check(all(abs(size - mean) <= 0.2 * mean for size in sizes), "both processes write about half", sizes)
same_end(go_on(half, "data=2,fsdp=2", 2, 2), whole, "fsdp=4 → data=2,fsdp=2")
# One process and one device, from pieces and from the same values in one file.
for mesh, devices in ("", 1), ("fsdp=4", 4):
    same_end(go_on(half, mesh, 1, devices), go_on(half, mesh, 1, devices, make_whole),
             f"two processes → {devices} devices of one")
half = half_of("fsdp=2,tensor=2", 2, 2)
same_end(go_on(half, "fsdp=4", 2, 2), whole, "fsdp=2,tensor=2 → fsdp=4")
half = half_of("fsdp=4", 1, 4)
check((last(half) / "model.safetensors").exists(), "one process writes one file")
same_end(go_on(half, "fsdp=2,tensor=2", 2, 2), go_on(half, "data=2,fsdp=2", 2, 2), "one process → two")

# kill -9 while they save, of each process in turn.
generator = random.Random(7)
folder = Path(work.name) / "killed"
saved = -1
for kill in range(4):
    run = Run(folder, "fsdp=4", 2, 2, 2, save_steps=1)
    wait_for_save(run, folder, saved)
    time.sleep(generator.uniform(0, 0.15))
    run.kill(kill % 2)
    time.sleep(generator.uniform(0, 0.3))  # the other one may go on meanwhile
    run.kill(1 - kill % 2)
    _, output = run.end()
    try:
        step = position(folder)[2]
        check(step > saved and counts(folder) == counts(whole),
              f"after kill {kill} there is the whole checkpoint of step {step}", output)
        saved = step
    except Exception as error:  # pylint: disable=broad-except
        check(False, f"after kill {kill} there is a whole checkpoint: {error!r}", output)
status, output = train(folder, "fsdp=4", 2, 2, 2, save_steps=1)
check(status == [0, 0], "the run that was killed goes on to its end", output)
check(near(losses(folder), wanted) and near(floats(last(folder)), weights), "with the losses of one that was never stopped", output)
check(sorted(path.name for path in (folder / "run").glob(".last*")) == [], "and nothing is left beside `last`")

# A disk that fills in process 1 only. (Its devices' memory is a file, too, which has its size by then.)
full = Path(work.name) / "full"
train(full, "fsdp=4", 2, 2, 1)
run = Run(full, "fsdp=4", 2, 2, 2, save_steps=1)
wait_for_save(run, full, STEPS)
run.fill_disk(1, 1 << 20)
status, output = run.end()
check(0 not in status and "process 1: " in output and "-00002-of-00002.safetensors" in output,
      "a save that process 1 cannot write says so", output)
check(counts(full) == counts(whole), "and the old checkpoint stays")

sys.exit(1 if failures else 0)
