"""mesh_test.py PROGRAM POD_PLUGIN [--all]: one mesh over the devices of two processes, against one device.

PROGRAM is tests/replica/mesh_process.cc. The processes are the hosts of an emulated pod (tests/pjrt/pod); what they
are compared with is one process on one device of XLA's CPU plugin.
--all also trains five models for fifty steps on three meshes of eight devices.
"""

import os
import re
import socket
import subprocess
import sys
import tempfile

from checkpoint_files import floats

PROGRAM, POD_PLUGIN = sys.argv[1:3]
LONG_MESHES = ["data=2,fsdp=2,tensor=2", "fsdp=8", "fsdp=4,tensor=2"] if "--all" in sys.argv else []
failures = []


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def run(scenario, mesh, processes=2, devices=2, slices=1, changes=None):
    """The statuses and the outputs of the processes, and the weights of their checkpoint."""
    with tempfile.TemporaryDirectory(prefix="sluice-mesh-") as folder:
        coordinator = f"127.0.0.1:{free_port()}"
        os.mkdir(f"{folder}/pod")
        running = []
        for index in range(processes):
            environment = dict(os.environ, SLUICE_CACHE="0", OMP_NUM_THREADS="1")
            if processes > 1:
                environment.update(
                    SLUICE_PROCESS_ID=str(index), SLUICE_PROCESS_COUNT=str(processes),
                    SLUICE_COORDINATOR_ADDRESS=coordinator, SLUICE_PLUGIN=POD_PLUGIN, EMULATED_POD_DIR=f"{folder}/pod",
                    EMULATED_POD_DEVICES=str(devices), TPU_WORKER_ID=str(index % (processes // slices)),
                    TPU_WORKER_HOSTNAMES=",".join(["127.0.0.1"] * (processes // slices)))
            if slices > 1:
                environment.update(
                    MEGASCALE_NUM_SLICES=str(slices), MEGASCALE_SLICE_ID=str(index * slices // processes),
                    MEGASCALE_COORDINATOR_ADDRESS="127.0.0.1:8080")
            environment.update((changes or {}).get(index, {}))
            # A log line must not come into the middle of a line of numbers, so stderr is a file.
            with open(f"{folder}/messages-{index}", "w") as messages:
                running.append(subprocess.Popen([PROGRAM, scenario, mesh, folder], env=environment, text=True,
                                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=messages))
        outputs = []
        for process in running:
            try:
                outputs.append(process.communicate(timeout=600)[0])
            except subprocess.TimeoutExpired:
                for other in running:
                    other.kill()
                outputs.append(process.communicate()[0] + "\n(killed: it hung)")
        for index in range(processes):
            with open(f"{folder}/messages-{index}") as messages:
                outputs[index] += messages.read()
        return [process.returncode for process in running], outputs, floats(f"{folder}/run/last")


def check(condition, what, outputs):
    print(f"{'ok' if condition else 'FAILED'} {what}")
    if condition:
        return
    failures.append(what)
    for index, output in enumerate(outputs):
        print(f"--- process {index}\n" + "\n".join(output.splitlines()[-15:]))


def numbers(output):
    """What a training has printed: a list of numbers for each loss and each weight."""
    found = {}
    for line in output.splitlines():
        if line.startswith("loss ") or line.startswith("weight "):
            kind, _process, name, *values = line.split()
            found[f"{kind} {name}"] = [float(value) for value in values]
    return found


def close(found, wanted, most=1e-5):
    return bool(wanted) and found.keys() == wanted.keys() and all(
        abs(one - other) <= most * max(abs(other), 1e-3)
        for name in wanted for one, other in zip(found[name], wanted[name]))


def close_values(found, wanted):
    """As close() says of many steps: relative to each value's largest number, and in f32 to a step's size."""
    return bool(wanted) and found.keys() == wanted.keys() and all(
        abs(one - other) <= 1e-5 * max(max(map(abs, wanted[name])), 1e-3)
        for name in wanted for one, other in zip(found[name], wanted[name]))


_, alone, _ = run("train", "", processes=1)
wanted = numbers(alone[0])
check(len(wanted) == 15, f"one device gives six losses and nine weights: {len(wanted)}", alone)
for mesh in ["fsdp=4", "data=2,fsdp=2"]:
    statuses, outputs, _ = run("train", mesh)
    check(statuses == [0, 0] and all(close(numbers(output), wanted) for output in outputs),
          f"{mesh} in two processes trains as one device does", outputs)

# Two slices: of one process with two devices each, and of two processes with one device each.
for processes, devices in [(2, 2), (4, 1)]:
    statuses, outputs, _ = run("train", "data=2,fsdp=2", processes, devices, slices=2)
    check(statuses == [0] * processes and all(close(numbers(output), wanted) for output in outputs),
          f"data=2,fsdp=2 over two slices in {processes} processes trains as one device does", outputs)
    check(not any("spans slices" in output for output in outputs), "data alone spans the slices", outputs)
statuses, outputs, _ = run("train", "fsdp=4", slices=2)
check(statuses == [0, 0] and "fsdp=4 of the mesh fsdp=4 spans slices: devices 0 and 2 exchange weights" in outputs[0],
      "an fsdp that spans slices gives a warning", outputs)
statuses, outputs, _ = run("train", "data=2,fsdp=2", slices=2, changes={0: {"SLUICE_JOIN_TIMEOUT": "5"}, 1: {"MEGASCALE_SLICE_ID": "0"}})
check(1 in statuses and "MEGASCALE_SLICE_ID is 0, but process 1 of 2 (sluice run) belongs to slice 1" in outputs[1],
      "a slice's number that does not fit the process is an error", outputs)
statuses, outputs, _ = run("train", "data=2,fsdp=2", slices=2,
                           changes={0: {"TPU_ACCELERATOR_TYPE": "v5p-8"}, 1: {"TPU_ACCELERATOR_TYPE": "v5p-16"}})
check(statuses == [1, 1] and all("do not fit together" in output and "v5p-16" in output for output in outputs),
      "slices of two types are an error in both processes", outputs)

# Five models for fifty steps, four devices in each process.
if LONG_MESHES:
    _, alone, _ = run("long", "", processes=1)
    wanted = numbers(alone[0])
    check(sum(name.startswith("loss ") for name in wanted) == 6 * 50, "one device trains five models for fifty steps", alone)
for mesh in LONG_MESHES:
    statuses, outputs, _ = run("long", mesh, devices=4)
    check(statuses == [0, 0] and all(close_values(numbers(output), wanted) for output in outputs),
          f"five models over {mesh} in two processes train as on one device", outputs)

statuses, outputs, _ = run("reads", "data=2,fsdp=2")
check(statuses == [0, 0] and "all reads are right" in outputs[0], "reads and refusals with two processes", outputs)

statuses, outputs, _ = run("leader-reads", "fsdp=4")
check(1 in statuses and "host read of a value that lies over several processes" in "".join(outputs),
      "a read by one process alone is an error that names it", outputs)

_, alone, _ = run("start", "", processes=1)
wanted = numbers(alone[0])
for mesh in ["fsdp=4", "data=2,fsdp=2"]:
    statuses, outputs, _ = run("start", mesh)
    check(statuses == [0, 0] and "all starts are right" in outputs[0] and wanted
          and all(numbers(output) == wanted for output in outputs),
          f"a model without values starts over {mesh} as on one device, bit for bit", alone + outputs)
statuses, outputs, _ = run("weights", "fsdp=4")
check(statuses == [0, 0] and "all weights are right" in outputs[0],
      "each process reads its own blocks of files and of a bucket", outputs)

# Two replicas with the same samples: the mean of their gradients is that of the whole batch.
_, replicas, before = run("trainer", "", processes=1)
statuses, outputs, after = run("trainer", "data=2,fsdp=2")
check(statuses == [0, 0] and before and after, "a run of the trainer in two processes", replicas + outputs)
if before and after:
    check(before.keys() == after.keys() and all(
        abs(one - other) <= 1e-5 + 1e-4 * abs(other) for name in before for one, other in zip(after[name], before[name])),
          "its checkpoint has the weights of replicas", outputs)
    results = [re.search(r"^result (\S+)", output, re.MULTILINE) for output in replicas + outputs]
    check(all(results) and all(abs(float(result[1]) - float(results[0][1])) < 1e-4 for result in results),
          "its test has their loss", replicas + outputs)

sys.exit(1 if failures else 0)
