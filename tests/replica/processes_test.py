"""processes_test.py PROGRAM [POD_PLUGIN]: several processes that train together, well and badly.

PROGRAM is tests/replica/one_process.cc. The processes are started here, without the launcher. With a plugin that
emulates a pod (tests/pjrt/pod) their programs span the processes, as on a TPU slice; without, they run on XLA's CPU
plugin, whose collectives the host makes.
"""

import itertools
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time

PROGRAM = sys.argv[1]
POD_PLUGIN = sys.argv[2] if len(sys.argv) > 2 else ""
failures = []


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def has_ipv6():
    try:
        with socket.socket(socket.AF_INET6) as listener:
            listener.bind(("::1", 0))
        return True
    except OSError:
        return False


# Where the processes meet: each run takes the next one, so that every transport and every loss meets several.
MEETING_HOSTS = itertools.cycle(["127.0.0.1", *(["[::1]"] if has_ipv6() else []), "localhost"])


STOPPED = {"stops": 1, "leader-stops": 0}  # the process that is not running until the others have ended


def run(what, processes, devices, transport="", seconds=120, more=lambda index: {}):
    """Their statuses, their outputs, and how long the last one took. Without a transport: the best that works. `more`
    gives further variables of a process."""
    with tempfile.TemporaryDirectory(prefix="sluice-pod-") as pod:
        return run_in(pod, what, processes, devices, transport, seconds, more)


def pod_environment(folder, index, processes, devices):
    """What makes the plugin one host of a pod."""
    return {"SLUICE_PLUGIN": POD_PLUGIN, "EMULATED_POD_DIR": folder, "EMULATED_POD_DEVICES": str(devices),
            "TPU_WORKER_ID": str(index), "TPU_WORKER_HOSTNAMES": ",".join(["127.0.0.1"] * processes)}


def run_in(pod, what, processes, devices, transport, seconds, more):
    coordinator = f"{next(MEETING_HOSTS)}:{free_port()}"
    started = time.monotonic()
    running = []
    for index in range(processes):
        environment = dict(os.environ, SLUICE_PROCESS_ID=str(index), SLUICE_PROCESS_COUNT=str(processes),
                           SLUICE_COORDINATOR_ADDRESS=coordinator, SLUICE_CACHE="0", SLUICE_TRANSPORT=transport,
                           SLUICE_LOST_AFTER="5" if what in STOPPED else "", OMP_NUM_THREADS="1",
                           **(pod_environment(pod, index, processes, devices) if POD_PLUGIN else {}))
        environment.update(more(index))
        running.append(subprocess.Popen([PROGRAM, what, f"--sluice-devices={devices}"], env=environment, text=True,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT))
    outputs = [""] * processes
    for index in sorted(range(processes), key=lambda index: index == STOPPED.get(what)):
        if index == STOPPED.get(what):
            running[index].send_signal(signal.SIGCONT)
        try:
            outputs[index] = running[index].communicate(timeout=max(1, seconds - (time.monotonic() - started)))[0]
        except subprocess.TimeoutExpired:
            for other in running:
                other.kill()
            outputs[index] = running[index].communicate()[0] + "\n(killed: it hung)"
    return [process.returncode for process in running], outputs, time.monotonic() - started


def check(condition, what, outputs):
    if condition:
        print(f"ok {what}")
        return
    failures.append(what)
    print(f"FAILED {what}")
    for index, output in enumerate(outputs):
        print(f"--- process {index}\n" + "\n".join(output.splitlines()[-15:]))


def weights(outputs):
    found = re.search(r"replicas (\d+) weights ([\d.e+-]+)", outputs[0])
    return (int(found[1]), float(found[2])) if found else (0, float("nan"))


def metrics(outputs):
    """The lines of counts, which are exact, and the mean."""
    lines = re.findall(r"^metric (.*)$", outputs[0], re.MULTILINE)
    means = [float(line.split()[1]) for line in lines if line.startswith("mean ")]
    return [line for line in lines if not line.startswith("mean ")], (means or [float("nan")])[0]


_, alone, _ = run("train", 1, 1)
counts, mean = metrics(alone)
check(len(counts) == 4, f"metrics are printed: {counts}", alone)
_, one = weights(alone)
for processes, devices, transport in [(1, 4, ""), (2, 2, "shared"), (2, 2, "sockets"), (4, 1, "")]:
    if POD_PLUGIN and transport == "sockets":  # a pod has no transport of the host's: one of the two is enough
        continue
    statuses, outputs, _ = run("train", processes, devices, transport)
    replicas, value = weights(outputs)
    check(statuses == [0] * processes and replicas == 4 and abs(value - one) < 1e-4 * abs(one),
          f"{processes} processes of {devices} replicas train as one does ({transport}): {value} and {one}", outputs)
    same_counts, same_mean = metrics(outputs)
    check(same_counts == counts and abs(same_mean - mean) < 1e-5 * mean,
          f"so do the metrics: {same_mean} and {mean}, {same_counts}", outputs)
    check(all("weights" not in output and "Loss=" not in output for output in outputs[1:]),
          "only the leader prints", outputs)
    losses = re.findall(r"Loss=([\d.]+)", outputs[0]), re.findall(r"Loss=([\d.]+)", alone[0])
    check(len(losses[0]) == 3 and all(abs(float(a) - float(b)) < 2e-4 for a, b in zip(*losses)),
          f"the logged losses are those of the whole batch: {losses}", outputs)

for what, transport, texts, allowed in [
        ("leader-reads", "", ["the processes no longer do the same", "'host read'"], 60),
        ("other-number", "", ["the processes no longer do the same", "run-time number"], 60),
        ("later-number", "", ["the processes no longer do the same", "run-time number"], 60),
        ("other-weights", "", ["differs between process 0 and process 1 when training begins", "0.weight"], 60),
        ("value-throws", "", ["the value says that it is over"], 60),
        ("throws", "shared", ["the second process gives up"], 60),
        ("throws", "sockets", ["the second process gives up"], 60),
        ("dies", "shared", ["worker 1 has died" if POD_PLUGIN else "lost process 1 of 2"], 60), ("dies", "sockets", ["lost process 1 of 2"], 60),
        ("stops", "shared", ["lost process 1 of 2 (no sign of life for 5 s)"], 60),
        ("stops", "sockets", ["lost process 1 of 2 (no sign of life for 5 s)"], 60),
        ("leader-stops", "shared", ["lost process 0 of 2 (no answer"], 60),
        ("leader-stops", "sockets", ["lost process 0 of 2 (no answer"], 60)]:
    if POD_PLUGIN and transport == "sockets":
        continue
    statuses, outputs, seconds = run(what, 2, 2, transport)
    expected = [1, -signal.SIGKILL if what == "dies" else 1]
    check(statuses == expected and all(text in "".join(outputs) for text in texts),
          f"{what} {transport}: every process ends with a message that names the cause (statuses {statuses})", outputs)
    check(seconds < allowed, f"{what}: within {allowed} s, it took {seconds:.1f}", outputs)
    check(not any("Aborted" in output or "hung" in output for output in outputs), f"{what}: nobody aborts", outputs)

statuses, outputs, _ = run("send-weights", 2, 2)
check(statuses == [0, 0] and abs(weights(outputs)[1] - one) < 1e-4 * abs(one), "process 0's weights are sent", outputs)

statuses, outputs, _ = run("logs", 4, 1)
check(statuses == [0] * 4 and outputs[0].count("Loss=") == 100, "a line for each step, though now one and now another "
      "process is behind", outputs)



def test_pod():
    """What a plugin and a launcher can disagree about, and GPUs."""
    trained = lambda statuses, outputs, replicas: (
        statuses == [0] * len(outputs) and weights(outputs)[0] == replicas and
        abs(weights(outputs)[1] - one) < 1e-4 * abs(one))
    statuses, outputs, _ = run("train", 2, 2, more=lambda index: {"EMULATED_POD_DEVICES": "4"})
    check(trained(statuses, outputs, 4), "the first two of four devices of each process", outputs)
    statuses, outputs, _ = run("train", 2, 2, more=lambda index: {"EMULATED_POD_PROCESS_INDEX": str(1 - index)})
    check(trained(statuses, outputs, 4) and "is number 1 to the plugin" in outputs[0],
          "the plugin counts the processes in another order than the launcher", outputs)
    statuses, outputs, seconds = run("train", 2, 2, more=lambda index: {
        "EMULATED_POD_PROCESS_INDEX": "0", "EMULATED_POD_PROCESSES": "1"})
    check(statuses == [1, 1] and all("started 2 processes" in text and "knows the devices of 1" in text
                                     for text in outputs), "the plugin knows one process where there are two", outputs)
    alone = {"SLUICE_PROCESS_ID": "", "SLUICE_PROCESS_COUNT": "", "SLUICE_COORDINATOR_ADDRESS": "",
             "TPU_WORKER_ID": "", "TPU_WORKER_HOSTNAMES": "", "EMULATED_POD_PROCESSES": "2"}
    statuses, outputs, _ = run("train", 2, 2, more=lambda index: dict(alone, EMULATED_POD_PROCESS_INDEX=str(index)))
    check(statuses == [1, 1] and all("was started alone" in text and "sluice run --hosts" in text for text in outputs),
          "a process of a slice that no launcher has started", outputs)
    statuses, outputs, _ = run("train", 2, 2, more=lambda index: {"EMULATED_POD_DEVICES": str(2 - index)})
    check(statuses == [1, 1] and "which is what this process has" in outputs[1], "a process with too few devices ends "
          "the others", outputs)
    with tempfile.TemporaryDirectory(prefix="sluice-gpu-") as folder:
        plugin = os.path.join(folder, "xla_cuda_plugin.so")  # whose name says what it is
        os.symlink(POD_PLUGIN, plugin)
        for try_get in "10":
            statuses, outputs, _ = run("train", 2, 2, more=lambda index: {
                "SLUICE_PLUGIN": plugin, "EMULATED_POD_PLATFORM": "cuda", "EMULATED_POD_KV_TRY_GET": try_get,
                "TPU_WORKER_ID": "", "TPU_WORKER_HOSTNAMES": ""})
            check(trained(statuses, outputs, 4), f"GPUs of two processes (try_get: {try_get})", outputs)


if POD_PLUGIN:
    test_pod()

print(f"{len(failures)} failed")
sys.exit(1 if failures else 0)
