"""Whether the log of a run of the recipe has the counts of the first training job.

The rules are that job's, not the program's: each replica has every N-th shard, each of its workers every W-th of
those; a worker's last batch is smaller; a replica takes a batch from each worker in turn; an epoch ends after
SAMPLES // (BATCH × N) steps and one more.
"""

import csv
import re
from dataclasses import dataclass


@dataclass
class Job:
    """What a run was told. Counts are of samples where nothing else is said."""

    shards: int = 640
    shard_size: int = 2000
    samples: int = 1280000  # that an epoch is believed to have
    test_samples: int = 100000
    processes: int = 4
    devices: int = 8  # of one process
    workers: int = 8
    batch_size: int = 128  # of one replica
    epochs: int = 2
    log_steps: int = 10
    steps_per_epoch: int = 0  # at most; 0: all


def batches(job, replica):
    """The sizes of the batches that a replica takes in an epoch."""
    replicas = job.processes * job.devices
    own = range(replica, job.shards, replicas)
    left = [len(own[worker::job.workers]) * job.shard_size for worker in range(job.workers)]
    sizes = []
    while any(left):
        for worker, samples in enumerate(left):
            if samples:
                sizes.append(min(samples, job.batch_size))
                left[worker] -= sizes[-1]
    steps = job.samples // (job.batch_size * replicas) + 1
    return sizes[:min(steps, job.steps_per_epoch or steps)]


def expected(job):
    """(steps of an epoch, samples that each replica trains on)."""
    each = {(len(sizes), sum(sizes)) for sizes in (batches(job, r) for r in range(job.processes * job.devices))}
    assert len(each) == 1, f"the replicas would differ: {sorted(each)}"
    return each.pop()


def logged_steps(job, steps):
    """Counted within each epoch; one that is shorter has a line at its end."""
    return list(range(job.log_steps, steps + 1, job.log_steps)) or [steps]


def faults(job, log, metrics_path):
    """What is wrong with a log whose lines begin with `<ip> [<worker>]`, from a run with --log-workers all."""
    steps, samples = expected(job)

    def demand(what, found, wanted):
        if found != wanted:
            yield f"{what}: expected {wanted}, found {found}"

    yield from demand("steps an epoch", re.findall(r"; (\d+) steps an epoch", log), [str(steps)])
    lines = re.findall(r"^\S+ \[(\d+)\] \| Training Device=xla:0/(\d+) Epoch=(\d+) Step=(\d+) Loss=([\d.]+) "
                       r"Rate=([\d.]+) GlobalRate=([\d.]+) Time=\d\d:\d\d:\d\d(?: .*)?$", log, re.MULTILINE)
    yield from demand("lines of another worker", [line for line in lines if line[0] != line[1]], [])
    ends = re.findall(r"^\S+ \[(\d+)\] Epoch (\d+) train end \d\d:\d\d:\d\d, Epoch Time=\d+:\d\d:\d\d, "
                      r"Replica Train Samples=(\d+), Reduced GlobalRate=([\d.]+)$", log, re.MULTILINE)
    tests = dict(re.findall(r"Epoch (\d+) test end \S+, Samples=(\d+),", log))
    for epoch in range(1, job.epochs + 1):
        for worker in range(job.processes):
            found = [int(line[3]) for line in lines if (int(line[0]), int(line[2])) == (worker, epoch)]
            yield from demand(f"logged steps of worker {worker} in epoch {epoch}", found, logged_steps(job, steps))
        found = sorted((int(worker), int(count)) for worker, number, count, _ in ends if int(number) == epoch)
        yield from demand(f"Replica Train Samples in epoch {epoch}", found, [(w, samples) for w in range(job.processes)])
        yield from demand(f"samples of the test in epoch {epoch}", tests.get(str(epoch)), str(job.test_samples))
    for line in ("Total Train Time: ", "Max Accuracy: ", "Avg. Global Rate: "):
        yield from demand(f"lines \"{line}\"", log.count(line), 1)
    yield from metrics_faults(job, steps, metrics_path)


def metrics_faults(job, steps, path):
    with open(path) as file:
        rows = [row for row in csv.DictReader(file) if row["split"] == "train"]
    accuracies = [float(row["accuracy"]) for row in rows if row["accuracy"]]
    if len(accuracies) != job.epochs or not all(0 <= accuracy <= 100 for accuracy in accuracies):
        yield f"metrics.csv: expected the training's accuracy of {job.epochs} epochs, found {accuracies}"
    replicas = job.processes * job.devices
    for row in rows:
        if row["rate"] and abs(float(row["examples_per_second"]) / float(row["rate"]) / replicas - 1) > 1e-6:
            yield f"metrics.csv: examples_per_second is not that of {replicas} replicas: {row}"
    last = [int(row["step"]) for row in rows][-1:]
    if last != [steps * job.epochs]:
        yield f"metrics.csv: expected {steps * job.epochs} steps in all, found {last}"
    losses = [float(row["loss"]) for row in rows if row["loss"]]
    if steps * job.epochs > 100 and not losses[-1] < losses[0]:
        yield f"the loss did not fall: {losses[0]} … {losses[-1]}"


def self_test():
    assert expected(Job()) == (313, 39664)
    assert logged_steps(Job(), 313)[-1] == 310
    assert [batches(Job(), 0).count(size) for size in (128, 112, 32)] == [308, 1, 4]


self_test()
