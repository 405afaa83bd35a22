"""mesh_test.py PROGRAM POD_PLUGIN [--all]: one mesh over the devices of two processes, against one device.

PROGRAM is tests/replica/mesh_process.cc. The processes are the hosts of an emulated pod (tests/pjrt/pod); what they
are compared with is one process on one device of XLA's CPU plugin.
--all also trains five models for fifty steps on three meshes of eight devices.
"""

import json
import os
import re
import socket
import struct
import subprocess
import sys
import tempfile

PROGRAM, POD_PLUGIN = sys.argv[1:3]
LONG_MESHES = ["data=2,fsdp=2,tensor=2", "fsdp=8", "fsdp=4,tensor=2"] if "--all" in sys.argv else []
failures = []


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def run(scenario, mesh, processes=2, devices=2):
    """The statuses and the outputs of the processes, and the names and contents of the files of their folder."""
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
                    EMULATED_POD_DEVICES=str(devices), TPU_WORKER_ID=str(index),
                    TPU_WORKER_HOSTNAMES=",".join(["127.0.0.1"] * processes))
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
        last = f"{folder}/run/last/model.safetensors"
        weights = open(last, "rb").read() if os.path.exists(last) else b""
        return [process.returncode for process in running], outputs, weights


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


def floats(safetensors):
    """The names and the values of a file's f32 tensors."""
    size = struct.unpack("<Q", safetensors[:8])[0]
    table = json.loads(safetensors[8:8 + size])
    table.pop("__metadata__", None)
    values = {}
    for name, facts in table.items():
        begin, end = facts["data_offsets"]
        if facts["dtype"] == "F32":
            values[name] = struct.unpack(f"<{(end - begin) // 4}f", safetensors[8 + size + begin:8 + size + end])
    return values


_, alone, _ = run("train", "", processes=1)
wanted = numbers(alone[0])
check(len(wanted) == 15, f"one device gives six losses and nine weights: {len(wanted)}", alone)
for mesh in ["fsdp=4", "data=2,fsdp=2"]:
    statuses, outputs, _ = run("train", mesh)
    check(statuses == [0, 0] and all(close(numbers(output), wanted) for output in outputs),
          f"{mesh} in two processes trains as one device does", outputs)

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

# Two replicas with the same samples: the mean of their gradients is that of the whole batch.
_, replicas, expected = run("trainer", "", processes=1)
statuses, outputs, found = run("trainer", "data=2,fsdp=2")
check(statuses == [0, 0] and expected and found, "a run of the trainer in two processes", replicas + outputs)
if expected and found:
    before, after = floats(expected), floats(found)
    check(before.keys() == after.keys() and all(
        abs(one - other) <= 1e-5 + 1e-4 * abs(other) for name in before for one, other in zip(after[name], before[name])),
          "its checkpoint has the weights of replicas", outputs)
    results = [re.search(r"^result (\S+)", output, re.MULTILINE) for output in replicas + outputs]
    check(all(results) and all(abs(float(result[1]) - float(results[0][1])) < 1e-4 for result in results),
          "its test has their loss", replicas + outputs)

sys.exit(1 if failures else 0)
