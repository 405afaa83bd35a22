#!/usr/bin/env python3
"""What starting and supervising workers costs: start_workers.py PROGRAM [WORKERS [ROUNDS [IDLE_SECONDS]]]

In turns, `sluice run --processes WORKERS -- true` and GNU parallel (Debian's package `parallel`) with as many jobs at
once: seconds from the start to the end, when nothing of either is left. Then one quiet worker for IDLE_SECONDS: the
processor time of its supervisor, of its connection and of the client, as a part of one core. Medians over the rounds are
printed as JSON.
"""

import json
import os
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def seconds_of(command, environment):
    begun = time.monotonic()
    subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    return time.monotonic() - begun


def own_time(pid):
    """Processor seconds of a process and of its children that have ended."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def marked(mark):
    """All processes with the mark, by what they are."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (folder / "environ").read_bytes():
                found[int(folder.name)] = (folder / "cmdline").read_bytes()
        except OSError:
            pass
    return found


def idle_parts(program, environment, seconds):
    """Of one core: what looks after a worker that is quiet, and the client, without the worker itself."""
    mark = f"SLUICE_BENCH={os.getpid()}"
    environment = {**environment, "SLUICE_BENCH": str(os.getpid())}
    run = subprocess.Popen([program, "run", "--processes", "1", "--", "sleep", "1000"], env=environment,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(2)
    before = {pid: own_time(pid) for pid in marked(mark.encode())}
    time.sleep(seconds)
    after = {pid: own_time(pid) for pid in marked(mark.encode()) if pid in before}
    run.send_signal(signal.SIGINT)
    run.wait()
    spent = {pid: (after[pid] - before[pid]) / seconds for pid in after}
    client = spent.pop(run.pid)
    return {"supervisor": sum(spent.values()), "client": client}


def main(program, workers=64, rounds=5, idle_seconds=60):
    count = int(workers)
    if not shutil.which("parallel"):
        sys.exit("GNU parallel is not installed (Debian's package parallel)")
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, resource.getrlimit(resource.RLIMIT_NOFILE)[1]),) * 2)
    took = {"sluice run": [], "parallel": []}
    with tempfile.TemporaryDirectory() as state:
        environment = {**os.environ, "XDG_STATE_HOME": state}
        for _ in range(int(rounds)):
            took["sluice run"].append(seconds_of([program, "run", "--processes", str(count), "--", "true"], environment))
            took["parallel"].append(seconds_of(
                ["parallel", "--will-cite", f"-j{count}", "-N0", "true", ":::", *map(str, range(count))], environment))
        idle = idle_parts(program, environment, float(idle_seconds)) if float(idle_seconds) else {}
    ratios = [a / b for a, b in zip(took["sluice run"], took["parallel"])]
    print(json.dumps({"workers": count, "rounds": int(rounds),
                      "seconds": {side: round(statistics.median(all), 2) for side, all in took.items()},
                      "sluice run ÷ parallel": round(statistics.median(ratios), 2),
                      "idle, % of a core": {side: round(100 * part, 3) for side, part in idle.items()}},
                     ensure_ascii=False))


if __name__ == "__main__":
    main(*sys.argv[1:])
