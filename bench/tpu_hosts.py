"""tpu_hosts.py PROGRAM [HOSTS] [ROUNDS]: `sluice tpu run` beside pdsh on emulated hosts, each with its sshd: seconds from
the start to the first line of output and to the end, in turns. Prints one JSON object. Needs root and pdsh."""

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests/cloud"))
from google_fake_support import GoogleFake  # noqa: E402
from workers import Workers, enter_network, why_not  # noqa: E402

ZONE = "us-central2-b"


def timed(command, environment, count):
    """(seconds to the first line, to the end) of a command that writes a line on each host."""
    with tempfile.TemporaryFile("w+") as messages:
        begun = time.monotonic()
        process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=messages, text=True)
        first = process.stdout.readline()
        first_at = time.monotonic() - begun
        lines = process.stdout.read()
        status = process.wait()
        ended_at = time.monotonic() - begun
        if status != 0 or (first + lines).count("ready") != count:
            messages.seek(0)
            sys.exit(f"{command[0]} ended with {status}: {messages.read()}{first}{lines}")
    return first_at, ended_at


def main():
    program, count = str(Path(sys.argv[1]).resolve()), int(sys.argv[2]) if len(sys.argv) > 2 else 64
    rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 5
    work = Path(tempfile.mkdtemp(prefix="sluice-bench-"))
    workers = Workers(work, count, "SLUICE_TEST_MARK=bench")
    google = GoogleFake({"projects": ["p"], "zones": {ZONE: {"types": [f"v4-{count * 8}"]}},
                         "timing": {"default": {"polls": 0, "seconds": 0}},
                         "hosts_of": {"big": workers.described(range(count))}})
    try:
        workers.follow(google)
        status, answer = google.google("POST", f"/v2/projects/p/locations/{ZONE}/nodes?nodeId=big", {
            "acceleratorType": f"v4-{count * 8}", "runtimeVersion": "tpu-ubuntu2204-base"})
        if status != 200:
            sys.exit(f"the fake refuses the node: {answer}")
        node = f"/v2/projects/p/locations/{ZONE}/nodes/big"
        while google.google("GET", node)[1].get("state") != "READY":
            time.sleep(0.1)
        environment = {**os.environ, **google.environment(), "HOME": str(work), "USER": "root",
                       "XDG_STATE_HOME": str(work / "state"), "SLUICE_GOOGLE_PROJECT": "p"}
        ours = [program, "tpu", "run", "big", "--zone", ZONE, "--", "echo", "ready"]
        timed(ours, environment, count)  # the key and the host keys are there from now on
        config = next(work.glob("state/sluice/tpu/*/ssh_config"))
        pdsh = ["pdsh", "-R", "ssh", "-f", "32", "-w", f"big-w-[0-{count - 1}]", "echo ready"]
        theirs = {**environment, "PDSH_SSH_ARGS": f"-F {config} -oBatchMode=yes %h"}
        times = {"sluice": [], "pdsh": []}
        for _ in range(rounds):
            times["sluice"].append(timed(ours, environment, count))
            times["pdsh"].append(timed(pdsh, theirs, count))
        medians = {name: [statistics.median(column) for column in zip(*rows)] for name, rows in times.items()}
        print(json.dumps({"hosts": count, "rounds": rounds,
                          "first_line_seconds": {name: round(row[0], 3) for name, row in medians.items()},
                          "end_seconds": {name: round(row[1], 3) for name, row in medians.items()},
                          "first_line_ratio": round(medians["sluice"][0] / medians["pdsh"][0], 2)}))
    finally:
        google.stop()
        workers.close()
        shutil.rmtree(work, True)


if __name__ == "__main__":
    if why_not() or not shutil.which("pdsh"):
        sys.exit(f"not possible here: {why_not() or 'pdsh is not installed'}")
    enter_network()
    main()
