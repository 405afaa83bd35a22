"""Runs of tests/replica/mesh_process.cc in several processes, the hosts of an emulated pod (tests/pjrt/pod), for the tests of
checkpoints. The command line of a test begins with PROGRAM POD_PLUGIN."""

import csv
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from checkpoint_files import floats, tensors

PROGRAM, POD_PLUGIN = sys.argv[1:3]
failures = []
work = tempfile.TemporaryDirectory(prefix="sluice-shards-")


def check(condition, what, output=""):
    print(("ok " if condition else "FAILED ") + what, flush=True)
    if not condition:
        failures.append(what)
        print("\n".join(str(output).splitlines()[-30:]), flush=True)


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Run:
    """The processes of one run in `folder`: up to the end of epoch `until` with a checkpoint every `save_steps` steps, or
    of the scenario `words` up to step `until` on `replicas`."""

    def __init__(self, folder, mesh, processes, devices, until, save_steps=0, slices=1, scenario="epochs", replicas=1):
        self.pod = tempfile.TemporaryDirectory(prefix="sluice-pod-")
        coordinator = f"127.0.0.1:{free_port()}"
        self.running, self.messages = [], []
        hosts = processes // slices
        Path(folder).mkdir(exist_ok=True)
        for index in range(processes):
            environment = dict(os.environ, SLUICE_CACHE="0", OMP_NUM_THREADS="1")
            if processes > 1:
                environment.update(
                    SLUICE_PROCESS_ID=str(index), SLUICE_PROCESS_COUNT=str(processes),
                    SLUICE_COORDINATOR_ADDRESS=coordinator, SLUICE_PLUGIN=POD_PLUGIN, EMULATED_POD_DIR=self.pod.name,
                    EMULATED_POD_DEVICES=str(devices), TPU_WORKER_ID=str(index % hosts),
                    TPU_WORKER_HOSTNAMES=",".join(["127.0.0.1"] * hosts))
            if slices > 1:
                environment.update(MEGASCALE_NUM_SLICES=str(slices), MEGASCALE_SLICE_ID=str(index // hosts),
                                   MEGASCALE_COORDINATOR_ADDRESS="127.0.0.1:8080")
            self.messages.append(open(f"{self.pod.name}/messages-{index}", "w+"))
            third = replicas if scenario == "words" else save_steps
            command = [PROGRAM, scenario, mesh, str(folder), str(until), str(devices), str(third)]
            # A write beyond the limit of fill_disk() is an error, not a signal.
            self.running.append(subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL,
                                                 stdout=self.messages[-1], stderr=subprocess.STDOUT,
                                                 preexec_fn=lambda: signal.signal(signal.SIGXFSZ, signal.SIG_IGN),
                                                 restore_signals=False))

    def fill_disk(self, index, size):
        """From now on the process writes no file of more bytes."""
        resource.prlimit(self.running[index].pid, resource.RLIMIT_FSIZE, (size, size))

    def kill(self, index):
        if self.running[index].poll() is None:
            self.running[index].kill()

    def has_said(self, text):
        """Whether process 0 has printed this."""
        return text in Path(self.messages[0].name).read_text(errors="replace")

    def end(self, timeout=600):
        """The statuses and all that was printed."""
        try:
            for process in self.running:
                process.wait(timeout=timeout)
        except subprocess.TimeoutExpired:
            for process in self.running:
                process.kill()
        output = ""
        for index, file in enumerate(self.messages):
            file.seek(0)
            output += f"--- process {index}\n" + file.read()
            file.close()
        return [process.wait() for process in self.running], output


def train(*args, **more):
    return Run(*args, **more).end()


def losses(folder):
    """step → loss, of the training steps."""
    with open(Path(folder) / "run" / "metrics.csv") as file:
        return {int(row["step"]): float(row["loss"]) for row in csv.DictReader(file)
                if row["split"] == "train" and row["loss"]}


def near(found, wanted):
    return found.keys() == wanted.keys() and all(
        abs(one - other) <= 1e-5 + 1e-4 * abs(other) for key in wanted
        for one, other in ([(found[key], wanted[key])] if isinstance(wanted[key], float)
                           else zip(found[key], wanted[key])))


def last(folder):
    return Path(folder) / "run" / "last"


def position(folder):
    """Where the run goes on: epoch, batch and step of its checkpoint; -1 each without one."""
    try:
        state = json.loads((last(folder) / "state.json").read_text())
        return state["epoch"], state["batch"], state["step"]
    except (OSError, ValueError):
        return -1, -1, -1


def counts(folder):
    """The numbers of tensors of a checkpoint, which must be whole."""
    return len(tensors(last(folder))), len(tensors(last(folder), "state"))


def wait_for_save(run, folder, after):
    """Waits for a checkpoint of a later step, or for the end of the run."""
    deadline = time.monotonic() + 600
    while time.monotonic() < deadline and run.running[0].poll() is None and position(folder)[2] <= after:
        time.sleep(0.002)


def same_values(found, wanted):
    return all(near(floats(last(found), kind), floats(last(wanted), kind)) for kind in ("model", "state"))
