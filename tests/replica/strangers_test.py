"""strangers_test.py PROGRAM: a training of two processes on one machine, and strangers who come to each of its sockets.

Every socket must listen on the loopback interface alone. A stranger may not end the run, write into its log, or read
what the processes tell each other; and the key of the run must stand on no command line, in no log and in no record.
"""

import glob
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

PROGRAM = sys.argv[1]
MARK = b"STRANGER-WAS-HERE"
failures = []
work = Path(tempfile.mkdtemp(prefix="sluice-strangers-"))


def check(condition, what, output=""):
    print(("ok " if condition else "FAILED ") + what, flush=True)
    if not condition:
        failures.append(what)
        print(output[-3000:])


def workers():
    """The environment of each process that trains, by its process id."""
    found = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
            variables = dict(pair.split(b"=", 1) for pair in (entry / "environ").read_bytes().split(b"\0") if b"=" in pair)
        except OSError:
            continue
        if words[1:2] == [b"train"] and variables.get(b"XDG_STATE_HOME") == os.fsencode(work):
            found[int(entry.name)] = variables
    return found


def listening(processes):
    """(address in hexadecimal, port) of each socket on which one of them listens."""
    inodes = set()
    for process in processes:
        for link in glob.glob(f"/proc/{process}/fd/*"):
            try:
                inodes.update(re.findall(r"^socket:\[(\d+)\]$", os.readlink(link)))
            except OSError:
                pass
    found = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            rows = [line.split() for line in Path(table).read_text().splitlines()[1:]]
        except OSError:
            continue
        for row in rows:
            if row[3] == "0A" and row[9] in inodes:
                address, port = row[1].split(":")
                found.add((address, int(port, 16)))
    return found


def word(order, *parts):
    return order + b"".join(struct.pack("<I", len(part)) + part for part in parts)


def sealed(message):
    return struct.pack("<I", len(message)) + message + bytes(16)


def c10d(text):
    return struct.pack("<Q", len(text)) + text


# What a stranger may try: orders of the store before any handshake and behind a false one, those of LibTorch's TCPStore
# (a value under a guessed key, all keys), HTTP, nothing, and much of nothing.
ENDS = word(b"s", b"value ended", b"lost process 1: " + MARK)
ATTEMPTS = [sealed(ENDS), bytes(64) + sealed(ENDS), os.urandom(64) + sealed(ENDS) * 100,
            b"\x09" + struct.pack("<I", 0x3C85F7CE) + b"\x00" + c10d(b"/meeting") + c10d(MARK), b"\x0a",
            b"GET /" + MARK + b" HTTP/1.1\r\nHost: " + MARK + b"\r\n\r\n",
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + MARK * 1000, MARK + b"\r\n\x1b[2J\n" * 1000, b"\xff" * 100_000, b""]


def visit(port, attempt, seconds=1.0):
    """What a stranger hears."""
    heard = b""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=5) as stranger:
            stranger.settimeout(seconds)
            stranger.sendall(attempt)
            while len(heard) < 1 << 20:
                more = stranger.recv(65536)
                if not more:
                    break
                heard += more
    except OSError:
        pass
    return heard


def attack(meeting, ports):
    # So many that say nothing that each server has to choose.
    idle = []
    for port in ports:
        for _ in range(300):
            try:
                idle.append(socket.create_connection(("127.0.0.1", port), timeout=5))
            except OSError:
                break
    heard = {port: b"".join(visit(port, attempt) for attempt in ATTEMPTS) for port in ports}
    for each in idle:
        each.close()
    # The greeting has eight letters and a number that is new each time; there is nothing else to hear.
    words = re.sub(rb"sluice1\n.{32}", b"", heard[meeting], flags=re.DOTALL)
    check(heard[meeting].count(b"sluice1\n") > 3 and words == b"",
          f"at the meeting point a stranger hears the greeting and nothing else: {words[:80]}")
    return b"".join(heard.values())


def everything_written():
    return b"".join(path.read_bytes() for path in work.rglob("*") if path.is_file() and path.stat().st_size < 1 << 24)


def await_meeting(run):
    """The two processes, once both log steps."""
    deadline = time.monotonic() + 240
    while time.monotonic() < deadline and run.poll() is None:
        metrics = work / "log" / "metrics.csv"
        if metrics.exists() and len(metrics.read_text().splitlines()) > 1:
            return workers()
        time.sleep(0.1)
    return {}


def main():
    command = [PROGRAM, "run", "--processes", "2", "--", PROGRAM, "train", "--model", "mlp", "--fake-data", "--classes", "4",
               "--image-size", "8", "--train-size", "256", "--test-size", "16", "--batch-size", "8", "--epochs", "100000",
               "--log-steps", "4", "--logdir", str(work / "log"), "--status-port", "0",
               "--profiler-port", "0"]
    environment = dict(os.environ, OMP_NUM_THREADS="1", XDG_STATE_HOME=str(work), XDG_CACHE_HOME=str(work / "cache"),
                       SLUICE_TRANSPORT="sockets")
    run = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, text=True)
    lines = []
    reader = threading.Thread(target=lambda: lines.extend(run.stdout), daemon=True)
    reader.start()
    try:
        found = await_meeting(run)
        check(len(found) == 2, f"two processes train: {sorted(found)}", "".join(lines))
        if len(found) != 2:
            return
        places = {int(variables[b"SLUICE_COORDINATOR_ADDRESS"].rsplit(b":", 1)[1]) for variables in found.values()}
        keys = {variables.get(b"SLUICE_RUN_KEY", b"") for variables in found.values()}
        check(len(places) == 1 and len(keys) == 1 and len(keys.copy().pop()) == 64, "they have one meeting point and one key")
        meeting, key = places.pop(), keys.pop()
        sockets = listening(found)
        ports = {port for _, port in sockets}
        check(meeting in ports and len(ports) == 4, f"the meeting point, the status port and two profiler's: {sorted(ports)}")
        loopback = ("0100007F", "0" * 24 + "01000000")
        check(all(address in loopback for address, _ in sockets), f"all listen on the loopback interface: {sorted(sockets)}")

        before = len((work / "log" / "metrics.csv").read_text().splitlines())
        heard = attack(meeting, sorted(ports))
        check(key not in heard and bytes.fromhex(key.decode()) not in heard, "nobody is told the key")
        check(f"127.0.0.1:{meeting}".encode() not in heard, "nobody is told where the processes meet")
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and run.poll() is None and \
                len((work / "log" / "metrics.csv").read_text().splitlines()) < before + 5:
            time.sleep(0.1)
        check(run.poll() is None and set(workers()) == set(found) and
              len((work / "log" / "metrics.csv").read_text().splitlines()) >= before + 5, "the training goes on", "".join(lines))
        commands = b"".join(Path(path).read_bytes() for path in glob.glob("/proc/[0-9]*/cmdline") if os.path.exists(path))
        check(key not in commands, "the key stands on no command line")

        run.send_signal(signal.SIGINT)
        run.wait(timeout=120)
        reader.join(timeout=10)
        output = "".join(lines).encode()
        check(run.returncode == 130, f"it ends when it is told to: {run.returncode}", output.decode())
        written = everything_written() + output
        check(MARK not in written, "no word of a stranger is written anywhere")
        check(b"\x1b[2J" not in output, "no letter of a stranger reaches the terminal")
        check(key not in written, "the key stands in no log and in no record")
    finally:
        run.kill()
        for process in workers():
            os.kill(process, signal.SIGKILL)
        subprocess.run(["rm", "-rf", str(work)], check=False)


main()
print(f"{len(failures)} failed")
sys.exit(1 if failures else 0)
