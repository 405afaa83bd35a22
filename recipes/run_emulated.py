#!/usr/bin/env python3
"""Runs the recipe resnet50_cifar10 on one machine, as 4 processes of 8 replicas (or as told), and checks the counts.

The shards are copies of a few: those of --data (train-*.tar and test-*.tar of --shard-size samples each, as `sluice data
cifar10` makes them), or made images. Copies are hard links. What stands behind -- goes to `sluice train` and wins.

With --pod-plugin libsluice_pod_plugin.so (of tests/pjrt) the processes are the hosts of an emulated pod, whose programs
have the replicas of all of them; without it each runs XLA's CPU plugin and they add up gradients over sockets.
"""

import argparse
import itertools
import os
import random
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path

import check_log

HERE = Path(__file__).resolve().parent
CLASSES = 10
SIDE = 32


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    job = check_log.Job()
    parser.add_argument("--program", default=HERE.parent / "build/release/apps/sluice", type=Path)
    parser.add_argument("--pod-plugin", type=Path, help="the emulated pod's plugin")
    parser.add_argument("--out", type=Path, help="folder for shards and run (default: a temporary one)")
    parser.add_argument("--data", type=Path, help="folder of shards to copy (default: made images)")
    parser.add_argument("--model", default="lenet")
    parser.add_argument("--lr", default="0.05")
    for name, what in [("shards", "training shards"), ("shard-size", "samples in each"), ("processes", "hosts"),
                       ("devices", "replicas of each"), ("workers", "of the original's DataLoader"),
                       ("batch-size", "of a replica"), ("epochs", ""), ("log-steps", ""),
                       ("steps-per-epoch", "at most, 0: all")]:
        parser.add_argument(f"--{name}", type=int, default=getattr(job, name.replace("-", "_")), help=what)
    parser.add_argument("--test-shards", type=int, default=50)
    own, rest = sys.argv[1:], []
    if "--" in own:
        own, rest = own[:own.index("--")], own[own.index("--") + 1:]
    return parser.parse_args(own), rest


def image(label, rng):
    """Stripes, of another width for each class, under noise."""
    shift, rows = rng.randrange(SIDE), bytearray()
    noise = rng.randbytes(SIDE * SIDE * 3)
    for y in range(SIDE):
        for x in range(SIDE):
            bright = 128 * (((x + shift) // (label + 1)) % 2)
            at = 3 * (y * SIDE + x)
            rows += bytes(bright + (noise[at + c] >> 1) for c in range(3))
    return b"P6\n%d %d\n255\n" % (SIDE, SIDE) + bytes(rows)


def make_images(folder, count, seed):
    rng = random.Random(seed)
    for number in range(count):
        label = number % CLASSES
        path = folder / f"class{label}"
        path.mkdir(parents=True, exist_ok=True)
        (path / f"{number:06d}.ppm").write_bytes(image(label, rng))


def make_shards(program, out, shard_size):
    """A training shard or two, and one for the test."""
    for part, shards in (("train", 2), ("test", 1)):
        images = out / f"{part}-images"
        make_images(images, shards * shard_size, seed=shards)
        subprocess.run([program, "data", "pack", images, out / "made", "--prefix", part, "--shard-size", str(shard_size)],
                       check=True, stdout=subprocess.DEVNULL)
        shutil.rmtree(images)
    return out / "made"


def copy_shards(source, out, part, count, shard_size):
    """`count` shards that are copies of those of `source`, in turn."""
    found = sorted(source.glob(f"{part}-*.tar"))
    whole = [path for path in found if samples_in(path) == shard_size]
    if not whole:
        sys.exit(f"{source}: expected shards {part}-*.tar of {shard_size} samples, found {len(found)} others")
    firsts = []
    for number, path in zip(range(count), itertools.cycle(whole)):
        copy = out / f"{part}-{number:04d}.tar"
        if number < len(whole):
            shutil.copyfile(path, copy)
            firsts.append(copy)
        else:
            os.link(firsts[number % len(whole)], copy)


def samples_in(path):
    with tarfile.open(path) as shard:
        return sum(name.endswith(".cls") for name in shard.getnames())


def command(options, rest, shards, logdir, job):
    train = [options.program, "train", "--config", HERE / "resnet50_cifar10.toml", "--model", options.model, "--lr", options.lr,
             "--train", f"{shards}/train-{{0000..{job.shards - 1:04d}}}.tar",
             "--test", f"{shards}/test-{{0000..{options.test_shards - 1:04d}}}.tar",
             "--shard-size", job.shard_size, "--original-workers", job.workers, "--original-samples", job.samples,
             "--batch-size", job.batch_size, "--epochs", job.epochs, "--steps-per-epoch", job.steps_per_epoch,
             "--log-steps", job.log_steps, "--log-workers", "all", "--devices", job.devices, "--logdir", logdir, *rest]
    # A pod's hosts know their number from the machine.
    number = ["--env", "TPU_WORKER_ID={worker}"] if options.pod_plugin else []
    return [str(word) for word in [options.program, "run", "--processes", job.processes, *number, "--", *train]]


def environment(options, job, folder):
    variables = dict(os.environ, XDG_STATE_HOME=str(folder / "state"))
    variables.setdefault("OMP_NUM_THREADS", "1")
    if options.pod_plugin:
        variables.update(SLUICE_PLUGIN=str(options.pod_plugin.resolve()), EMULATED_POD_DIR=str(folder / "pod"),
                         EMULATED_POD_DEVICES=str(job.devices),
                         TPU_WORKER_HOSTNAMES=",".join(["127.0.0.1"] * job.processes))
        # The replicas share this machine's cores, so that the last may come to a sum minutes after the first. Those
        # that wait hold threads of the plugin's pool; XNNPACK's would wait for these threads for ever.
        variables["XLA_FLAGS"] = " ".join([os.environ.get("XLA_FLAGS", ""), "--xla_cpu_use_xnnpack=false", *(
            f"--xla_cpu_collective_call_{event}_timeout_seconds=3600" for event in ("warn_stuck", "terminate"))])
        (folder / "pod").mkdir(exist_ok=True)
    return variables


def run(words, variables, log_path):
    """The output, which is shown as it comes."""
    text = []
    with subprocess.Popen(words, env=variables, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True) as process, open(log_path, "w") as log:
        for line in process.stdout:
            text.append(line)
            log.write(line)
            print(line, end="", flush=True)
    return process.returncode, "".join(text)


def main():
    options, rest = arguments()
    with tempfile.TemporaryDirectory() as temporary:
        out = (options.out or Path(temporary)).resolve()
        shards, logdir = out / "shards", out / "run"
        for folder in (shards, logdir):
            shutil.rmtree(folder, ignore_errors=True)
        shards.mkdir(parents=True)
        source = options.data or make_shards(options.program, out, options.shard_size)
        copy_shards(source, shards, "train", options.shards, options.shard_size)
        copy_shards(source, shards, "test", options.test_shards, options.shard_size)
        job = check_log.Job(
            samples=options.shards * options.shard_size, test_samples=options.test_shards * options.shard_size,
            **{name: getattr(options, name) for name in ("shards", "shard_size", "processes", "devices", "workers",
                                                         "batch_size", "epochs", "log_steps", "steps_per_epoch")})
        words = command(options, rest, shards, logdir, job)
        print(" ".join(words), flush=True)
        started = time.monotonic()
        status, log = run(words, environment(options, job, Path(temporary)), out / "log.txt")
        if status != 0:
            sys.exit(f"the run ended with status {status}")
        found = list(check_log.faults(job, log, logdir / "metrics.csv"))
        steps, samples = check_log.expected(job)
        print("\n".join(found))
        print(f"{len(found)} faults; {job.epochs} epochs of {steps} steps, {samples} samples a replica, "
              f"in {time.monotonic() - started:.0f} s")
        sys.exit(bool(found))


if __name__ == "__main__":
    main()
