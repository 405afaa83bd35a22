"""processes_test.py PROGRAM: several processes that train together, well and badly.

PROGRAM is tests/replica/one_process.cc. The processes are started here, without the launcher.
"""

import os
import re
import signal
import socket
import subprocess
import sys
import time

PROGRAM = sys.argv[1]
failures = []


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


STOPPED = {"stops": 1, "leader-stops": 0}  # the process that is not running until the others have ended


def run(what, processes, devices, transport="", seconds=120):
    """Their statuses, their outputs, and how long the last one took. Without a transport: the best that works."""
    coordinator = f"127.0.0.1:{free_port()}"
    started = time.monotonic()
    running = []
    for index in range(processes):
        environment = dict(os.environ, SLUICE_PROCESS_ID=str(index), SLUICE_PROCESS_COUNT=str(processes),
                           SLUICE_COORDINATOR_ADDRESS=coordinator, SLUICE_CACHE="0", SLUICE_TRANSPORT=transport,
                           SLUICE_LOST_AFTER="5" if what in STOPPED else "", OMP_NUM_THREADS="1")
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


_, alone, _ = run("train", 1, 1)
_, one = weights(alone)
for processes, devices, transport in [(1, 4, ""), (2, 2, "shared"), (2, 2, "gloo"), (4, 1, "")]:
    statuses, outputs, _ = run("train", processes, devices, transport)
    replicas, value = weights(outputs)
    check(statuses == [0] * processes and replicas == 4 and abs(value - one) < 1e-4 * abs(one),
          f"{processes} processes of {devices} replicas train as one does ({transport}): {value} and {one}", outputs)
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
        ("throws", "gloo", ["the second process gives up"], 60),
        ("dies", "shared", ["lost process 1 of 2"], 60), ("dies", "gloo", ["lost process 1 of 2"], 60),
        ("stops", "shared", ["lost process 1 of 2 (no sign of life for 5 s)"], 60),
        ("stops", "gloo", ["lost process 1 of 2 (no sign of life for 5 s)"], 60),
        ("leader-stops", "shared", ["lost process 0 of 2 (no answer"], 60),
        ("leader-stops", "gloo", ["lost process 0 of 2 (no answer"], 60)]:
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

print(f"{len(failures)} failed")
sys.exit(1 if failures else 0)
