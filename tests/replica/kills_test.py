"""kills_test.py PROGRAM POD_PLUGIN [SAVING [LOADING [SEED]]]: kill -9 of any process of a run while a checkpoint is written
(30 times) and while one is read (10 times). After each the last checkpoint is whole; at the end the run has the losses and
the weights of one that was never stopped."""

import hashlib
import random
import shutil
import sys
import time
from pathlib import Path

from mesh_runs import Run, check, counts, failures, last, losses, near, position, same_values, train, work

SAVING, LOADING, SEED = (int(value) for value in sys.argv[3:] + ["30", "10", "7"][len(sys.argv) - 3:])
PROCESSES, DEVICES, EPOCHS, STEPS = 2, 2, 20, 8
MESH = "fsdp=4"
generator = random.Random(SEED)
folder = Path(work.name) / "killed"


def start(until):
    return Run(folder, MESH, PROCESSES, DEVICES, until, save_steps=1)


def kill_one(run):
    """Kills any process. The others end with an error, some at once, some by themselves."""
    victim = generator.randrange(PROCESSES)
    run.kill(victim)
    alone = generator.random() < 0.2
    if not alone:
        time.sleep(generator.uniform(0, 0.3))
        for index in range(PROCESSES):
            run.kill(index)
    status, output = run.end()
    return victim, not alone or 0 not in status, output


def fresh_folders():
    """The temporary folders of saves, also of those that were killed."""
    return {path.name for path in (folder / "run").glob(".last*")}


def wait_for(run, condition, seconds=600):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and run.running[0].poll() is None:
        if condition():
            return True
        time.sleep(0.001)
    return False


def seconds_of_saves():
    """How long a temporary folder is there while a checkpoint is written, in a run of its own."""
    run, found = start(1), []
    while wait_for(run, fresh_folders):
        begun = time.monotonic()
        if wait_for(run, lambda: not fresh_folders()):
            found.append(time.monotonic() - begun)
    status, output = run.end()
    check(status == [0] * PROCESSES and found, f"{len(found)} saves are seen", output)
    shutil.rmtree(folder)
    return sorted(found)[len(found) // 2] if found else 0.1


def hash_of(path):
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in path.iterdir()}


took = seconds_of_saves()
saved, during, all_counts = -1, 0, None
for kill in range(SAVING):
    run = start(EPOCHS)
    before = fresh_folders()
    seen = wait_for(run, lambda: position(folder)[2] > saved if saved < 0 else fresh_folders() - before)
    time.sleep(generator.uniform(0, took))
    during += bool(fresh_folders() - before)
    victim, ended, output = kill_one(run)
    try:
        step, found = position(folder)[2], counts(folder)
        all_counts = all_counts or found
        check(seen and ended and step >= max(saved, 1) and found == all_counts,
              f"kill {kill} of process {victim} while saving: the checkpoint of step {step} is whole", output)
        saved = max(saved, step)
    except Exception as error:  # pylint: disable=broad-except
        check(False, f"kill {kill} of process {victim} while saving: {error!r}", output)
check(during >= SAVING // 2, f"{during} of {SAVING} kills came while a checkpoint was being written")

# The moment when a run reads its checkpoint is learnt from one that is not disturbed.
run, begun = start(EPOCHS), time.monotonic()
check(wait_for(run, lambda: run.has_said("Going on from")), "a run reads its checkpoint")
reads_at = time.monotonic() - begun
kill_one(run)
for kill in range(LOADING):
    before = hash_of(last(folder))
    step = position(folder)[2]
    run, begun = start(EPOCHS), time.monotonic()
    if kill % 2 == 0:  # the weights are on the devices, and the optimizer's state is read
        wait_for(run, lambda: run.has_said("Going on from"))
        time.sleep(generator.uniform(0, 0.05))
    else:
        wait_for(run, lambda: time.monotonic() - begun > reads_at - generator.uniform(0, 0.3))
    victim, ended, output = kill_one(run)
    same = position(folder)[2] > step or hash_of(last(folder)) == before
    check(ended and same and counts(folder) == all_counts, f"kill {kill} of process {victim} while loading", output)

until = position(folder)[2] // STEPS + 1
status, output = train(folder, MESH, PROCESSES, DEVICES, until, save_steps=1)
check(status == [0] * PROCESSES, f"the run goes on to the end of epoch {until}", output)
whole = Path(work.name) / "whole"
status, output = train(whole, MESH, PROCESSES, DEVICES, until)
check(status == [0] * PROCESSES and near(losses(folder), losses(whole)) and same_values(folder, whole),
      "with the losses and the weights of one that was never stopped", output)
check(not fresh_folders(), "and nothing is left beside `last`")

sys.exit(1 if failures else 0)
