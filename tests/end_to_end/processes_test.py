"""processes_test.py PROGRAM [KILLS]: the trainer on several processes of several replicas, through the launcher.

Trains, goes on with another number of processes, is interrupted, and is killed at random moments (the seed is fixed):
each kill must end the run within seconds, and the run that goes on must end with the bytes of one that was never
stopped.
"""

import csv
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PROGRAM = sys.argv[1]
KILLS = int(sys.argv[2]) if len(sys.argv) > 2 else 2
failures = []
work = tempfile.TemporaryDirectory()
environment = dict(os.environ, OMP_NUM_THREADS="1", XDG_STATE_HOME=work.name, XDG_CACHE_HOME=work.name)


def check(condition, what, output=""):
    print(("ok " if condition else "FAILED ") + what, flush=True)
    if not condition:
        failures.append(what)
        print(output[-3000:])


def command(logdir, processes, devices, *more):
    train = [PROGRAM, "train", "--model", "cifar_resnet8", "--fake-data", "--classes", "4", "--image-size", "8",
             "--train-size", "256", "--test-size", "44", "--global-batch-size", "16", "--epochs", "2", "--lr", "0.02",
             "--log-steps", "4", "--save-steps", "4", "--devices", str(devices), "--logdir", str(logdir), "--resume",
             *more]
    return [PROGRAM, "run", "--processes", str(processes), "--", *train]


def run(*args, timeout=240):
    done = subprocess.run(command(*args), env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=timeout)
    return done.returncode, done.stdout


def weights(logdir):
    return (Path(logdir) / "last" / "model.safetensors").read_bytes()


def workers():
    """Processes that train, by their number among the workers."""
    found = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if (entry / "cmdline").read_bytes().split(b"\0")[1:2] != [b"train"]:
                continue
            variables = dict(pair.split(b"=", 1) for pair in (entry / "environ").read_bytes().split(b"\0") if b"=" in pair)
        except (OSError, IndexError):
            continue
        if variables.get(b"XDG_STATE_HOME") == work.name.encode():
            found[int(variables[b"SLUICE_PROCESS_ID"])] = int(entry.name)
    return found


def await_step(logdir, steps, process):
    """Waits until the run has logged that many lines."""
    metrics = Path(logdir) / "metrics.csv"
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and process.poll() is None:
        if metrics.exists() and len(metrics.read_text().splitlines()) > steps:
            return
        time.sleep(0.01)
    check(process.poll() is not None, f"{steps} lines were logged within 120 s")


# A run that is not stopped, and what it says.
whole = Path(work.name) / "whole"
status, output = run(whole, 2, 2)
check(status == 0, "2 processes of 2 replicas train", output)
for text in ["batch 4 × 4 replicas × accumulate 1 = 16", "Replica Train Samples=64", "Samples=44"]:
    check(text in output, f"the run says \"{text}\"", output)
check(output.count("Epoch 2 test end") == 1, "one process reports", output)
check(len(list(whole.glob("events*"))) == 1, "there is one TensorBoard log", str(list(whole.iterdir())))

# Each worker's own lines: what the run says are their means and sums.
own = Path(work.name) / "own"
status, output = run(own, 2, 2, "--log-workers", "all", "--epochs", "1")
lines = {(int(worker), int(step)): float(loss) for worker, step, loss in
         re.findall(r"\[(\d)\] \| Training Device=xla:0/\1 Epoch=1 Step=(\d+) Loss=([0-9.]+) Rate=", output)}
check(sorted(lines) == [(w, s) for w in (0, 1) for s in (4, 8, 12, 16)], "each worker has its lines", output)
check(len(re.findall(r"Epoch 1 train end .*Replica Train Samples=64,", output)) == 2, "and its end of the epoch", output)
with open(own / "metrics.csv") as file:
    rows = [row for row in csv.DictReader(file) if row["split"] == "train"]
for row in rows[:-1]:
    mean = sum(lines.get((worker, int(row["step"])), 0) for worker in (0, 1)) / 2
    check(abs(float(row["loss"]) - mean) < 2e-5, f"the loss of step {row['step']} is the workers' mean", str(lines))
    check(abs(float(row["examples_per_second"]) / float(row["rate"]) - 4) < 1e-6, "examples/sec is that of 4 replicas")
check(rows[-1]["loss"] == "" and 0 <= float(rows[-1]["accuracy"]) <= 100, "the training's accuracy is there", str(rows[-1]))

# Without a test, whose end all processes wait for, the checkpoint is the first to read what the epoch left.
status, output = run(Path(work.name) / "untested", 2, 2, "--test-size", "0", "--epochs", "1")
check(status == 0 and (Path(work.name) / "untested" / "last" / "model.safetensors").exists(), "a run without a test",
      output)

# Going on with other numbers of processes and devices.
status, output = run(whole, 1, 4, "--epochs", "3")
check(status == 0 and "Going on from" in output and "Epoch 3 test end" in output, "1 process of 4 goes on", output)
status, output = run(whole, 4, 1, "--epochs", "4")
check(status == 0 and "Going on from" in output and "Epoch 4 test end" in output, "4 processes of 1 go on", output)

# Averages of the weights go on with them, and the minutes of a checkpoint are over on all processes at the same step.
averaged, parts = Path(work.name) / "averaged", Path(work.name) / "parts"
flags = ["--lr-schedule", "constant", "--ema", "0.9", "--save-minutes", "0.001"]
for logdir, epochs in (averaged, "2"), (parts, "1"), (parts, "2"):
    status, output = run(logdir, 2, 2, *flags, "--epochs", epochs)
    check(status == 0, f"with averages, to the end of epoch {epochs}", output)
check(weights(averaged) == weights(parts), "averages of a resumed run are those of one that was not stopped")
status, output = run(Path(work.name) / "rates", 2, 2, "--find-lr")
check(status == 0 and "the loss falls fastest at" in output, "a sweep of learning rates", output)
# Trainings one behind the other in the same processes; 256 samples have no 12 batches of 8 × 4.
sweep = command(Path(work.name) / "sizes", 2, 2, "--find-batch-size")
at = sweep.index("--global-batch-size")
sweep[at:at + 2] = ["--batch-size", "2"]
sweep.remove("--resume")
done = subprocess.run(sweep, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                      text=True, timeout=240)
sizes = re.findall(r"BatchSize=(\d+), GlobalRate=", done.stdout)
check(done.returncode == 0 and sizes == ["2", "4"] and done.stdout.count("The sweep ended: 8 do not go") == 1,
      f"a sweep of batch sizes (status {done.returncode}, {sizes})", done.stdout)

# Ctrl-C: all stop behind the same step, the leader saves.
logdir = Path(work.name) / "interrupted"
process = subprocess.Popen(command(logdir, 2, 2, "--epochs", "200"), env=environment, stdin=subprocess.DEVNULL,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
await_step(logdir, 2, process)
process.send_signal(signal.SIGINT)
output, _ = process.communicate(timeout=120)
check(process.returncode == 130 and "Interrupted: saved" in output, f"Ctrl-C saves (status {process.returncode})", output)
check(not workers(), "no process is left")

# Killed at random, the run ends soon, and goes on to the same bytes.
reference = Path(work.name) / "reference"
status, output = run(reference, 2, 2)
check(status == 0, "the reference run", output)
rng = random.Random(4)
def kill_one(logdir, rng):
    """Trains into the folder and kills a worker at a random moment: what was done, how the run ended, and whether the
    worker still ran then."""
    process = subprocess.Popen(command(logdir, 2, 2), env=environment, stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    victim, lines, pause = rng.randrange(2), rng.randrange(0, 7), rng.random() * 0.3
    await_step(logdir, lines, process)
    time.sleep(pause)
    target = workers().get(victim)
    if target:
        os.kill(target, signal.SIGKILL)
    killed = time.monotonic()
    output, _ = process.communicate(timeout=240)
    seconds = time.monotonic() - killed
    what = f"worker {victim} after {lines} lines and {pause:.2f} s"
    return what, process.returncode, seconds, output, target is not None


for number in range(KILLS):
    for attempt in range(20):  # a fast machine may have ended the run by then
        logdir = Path(work.name) / f"killed-{number}-{attempt}"
        what, status, seconds, output, in_time = kill_one(logdir, rng)
        if in_time:
            break
    what = f"kill {number}: {what}"
    check(in_time, f"{what}: the run was over before each of 20 kills")
    check(status != 0 and seconds < 30 and not workers(),
          f"{what}: the run ended after {seconds:.1f} s with status {status}", output)
    status, output = run(logdir, 2, 2)
    check(status == 0 and weights(logdir) == weights(reference), f"{what}: it goes on to the same bytes", output)

print(f"{len(failures)} failed")
sys.exit(1 if failures else 0)
