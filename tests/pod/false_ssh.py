"""false_ssh.py [options] -- HOST COMMAND: stands for ssh, and runs the command here, in a home folder of the host's own
below $FALSE_HOSTS. plan.json there says what happens to a host's first connections, one after the other: ["cut", N] ends
one after N bytes, ["flip", N] changes byte N, ["slow", 0] takes its time, ["refuse", 0] makes none. HOST/call-N has how
many bytes connection N has carried."""

import json
import os
import select
import subprocess
import sys
import time
from pathlib import Path

host, command = sys.argv[-2:]
hosts = Path(os.environ["FALSE_HOSTS"])
home = hosts / host
home.mkdir(exist_ok=True)
call = len(list(home.glob("call-*")))


def note(count):
    (home / f"new-{call}").write_text(str(count))
    (home / f"new-{call}").rename(home / f"call-{call}")  # complete, whenever this process is killed


note(0)
plan = json.loads((hosts / "plan.json").read_text()).get(host, [])
kind, place = plan[call] if call < len(plan) else ("", 0)
if kind == "refuse":
    sys.exit(print(f"ssh: connect to host {host} port 22: Connection refused", file=sys.stderr) or 255)
environment = {**os.environ, "HOME": str(home), "XDG_STATE_HOME": str(home / "state")}
environment.pop("XDG_CACHE_HOME", None)
if (home / "tools").is_dir():
    environment["PATH"] = str(home / "tools")
if (home / "first").is_dir():  # of these tools the host has its own ones
    environment["PATH"] = f"{home / 'first'}:{environment['PATH']}"
child = subprocess.Popen(["/bin/sh", "-c", command], stdin=subprocess.PIPE, env=environment)
carried = 0
try:
    while child.poll() is None:
        if not select.select([0], [], [], 0.02)[0]:
            continue
        if not (block := os.read(0, 65536)):
            break
        if kind == "cut" and carried + len(block) > place:
            child.stdin.write(block[:place - carried])
            child.stdin.close()
            child.wait()
            sys.exit(print(f"Connection to {host} closed by remote host.", file=sys.stderr) or 255)
        if kind == "flip" and carried <= place < carried + len(block):
            block = bytearray(block)
            block[place - carried] ^= 1
        if kind == "slow":
            time.sleep(0.02)
        child.stdin.write(block)
        child.stdin.flush()
        carried += len(block)
        note(carried)
    child.stdin.close()
except BrokenPipeError:
    pass
sys.exit(child.wait())
