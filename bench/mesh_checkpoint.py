"""mesh_checkpoint.py PROGRAM POD_PLUGIN [PROCESSES…]: what a checkpoint of a mesh costs, on an emulated pod (tests/pjrt).

PROGRAM is bench_mesh_checkpoint, POD_PLUGIN libsluice_pod_plugin.so; 2 and 4 processes without a list. A decoder of 38
million parameters with AdamW trains over fsdp=4 and is saved meanwhile, then read over several meshes. Prints JSON:
  save: seconds of a step and of the writing; by how many median steps the longest step around a save is longer than the
    median; the host's memory that a save needs, and the bytes that a process writes ÷ the mean of all
  resume: bytes read ÷ the bytes of the blocks that a process's devices hold, by mesh
Each figure is the largest of the processes.
"""

import json
import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

# (rules when it was saved, rules when it is read, mesh when it is read, name)
READS = [("own", "own", "fsdp=4", "the same mesh"),
         ("own", "own", "data=2,fsdp=2", "half as many blocks"),
         ("own", "own", "tensor=4", "the other dimensions"),
         ("rows", "rows", "fsdp=4", "rows, the same mesh"),
         ("rows", "rows", "data=2,fsdp=2", "rows → longer rows"),
         ("rows", "columns", "fsdp=4", "rows → columns"),
         ("columns", "rows", "fsdp=4", "columns → rows")]


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def run(program, plugin, processes, *arguments, **variables):
    """What each process has printed."""
    with tempfile.TemporaryDirectory(prefix="sluice-bench-") as pod:
        coordinator = f"127.0.0.1:{free_port()}"
        running = []
        for index in range(processes):
            environment = dict(
                os.environ, SLUICE_PROCESS_ID=str(index), SLUICE_PROCESS_COUNT=str(processes), OMP_NUM_THREADS="1",
                SLUICE_COORDINATOR_ADDRESS=coordinator, SLUICE_PLUGIN=plugin, EMULATED_POD_DIR=pod, TPU_WORKER_ID=str(index),
                EMULATED_POD_DEVICES=str(4 // processes), TPU_WORKER_HOSTNAMES=",".join(["127.0.0.1"] * processes), **variables)
            running.append(subprocess.Popen([program, *arguments], env=environment, text=True, stdin=subprocess.DEVNULL,
                                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT))
        outputs = [process.communicate()[0] for process in running]
        found = [json.loads(line[7:]) for output in outputs for line in output.splitlines() if line.startswith("RESULT ")]
        if len(found) != processes or any(process.returncode for process in running):
            sys.exit("\n".join(outputs))
        return found


def largest(found):
    return {name: float(f"{max(one[name] for one in found):.3g}") for name in found[0] if name != "process"}


def evenness(folder, processes):
    """The bytes of a process's files ÷ the mean: the least and the most."""
    sizes = [sum(path.stat().st_size for path in folder.glob(f"*-{p + 1:05}-of-{processes:05}.safetensors"))
             for p in range(processes)]
    return [round(one * processes / sum(sizes), 3) for one in (min(sizes), max(sizes))]


def measure(program, plugin, processes, work):
    saves, reads = {}, {}
    for saved, read, mesh, name in READS:
        folder = Path(work) / f"{processes}-{saved}"
        if saved not in saves:
            found = run(program, plugin, processes, "save", "fsdp=4", str(folder), saved)
            saves[saved] = {**largest(found), "written_over_mean": evenness(folder, processes)}
        reads[name] = largest(run(program, plugin, processes, "resume", mesh, str(folder), read))
    return {"processes": processes, "mesh": "fsdp=4", "save": saves["own"], "save_of_rows": saves["rows"], "resume": reads}


def main():
    program, plugin = (str(Path(path).resolve()) for path in sys.argv[1:3])
    with tempfile.TemporaryDirectory(prefix="sluice-bench-") as work:
        print(json.dumps({"mesh_checkpoints": [measure(program, plugin, processes, work)
                                               for processes in [int(one) for one in sys.argv[3:]] or [2, 4]]}, indent=1))


if __name__ == "__main__":
    main()
