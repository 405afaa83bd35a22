"""The fake of Google's services as other tests use it.

    with GoogleFake({"projects": ["p"]}) as google:
        subprocess.run([...], env={**os.environ, **google.environment()})
        assert_all_valid(google.log())
        assert google.is_empty(), google.left()
"""

import functools
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
DEADLINE = 60  # seconds for what takes a moment; only a failure waits so long


@functools.lru_cache
def test_python():
    """The Python that has google-api-python-client: this one, or the one of the tests; None if there is none."""
    candidates = [sys.executable, os.environ.get("SLUICE_TEST_PYTHON", ""),
                  str(FOLDER.parent.parent / ".deps" / "python" / "bin" / "python3")]
    for python in candidates:
        if python and Path(python).exists() and subprocess.run(
                [python, "-c", "import importlib.util as u, sys; sys.exit(u.find_spec('googleapiclient') is None)"],
                check=False).returncode == 0:
            return python
    return None


class GoogleFake:
    """One fake in a process of its own. `config` as README.md describes it."""

    def __init__(self, config=None, python=None):
        self.folder = tempfile.TemporaryDirectory(prefix="sluice-google-")
        self.log_path = Path(self.folder.name) / "requests.jsonl"
        config_path = Path(self.folder.name) / "config.json"
        config_path.write_text(json.dumps(config or {}))
        self.process = subprocess.Popen(
            [python or test_python(), "-B", str(FOLDER / "fake_google.py"), str(config_path), "--log",
             str(self.log_path), "--until-eof"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        if not line.startswith("listening "):
            raise RuntimeError(f"the fake does not start: {line!r}")
        self.port = int(line.split()[1])
        self.url = f"http://127.0.0.1:{self.port}"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        self.process.stdin.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        self.folder.cleanup()

    def environment(self, token=None):
        """The variables that send Sluice's requests here; the machine's own credentials stay out. `token`: sent with each
        request, so that a test can look for it where it must not be."""
        return {"SLUICE_GOOGLE_ENDPOINT": self.url, "NO_GCE_CHECK": "true", "CLOUDSDK_CONFIG": self.folder.name,
                "GOOGLE_APPLICATION_CREDENTIALS": "", **({"SLUICE_GOOGLE_TOKEN": token} if token else {})}

    def call(self, verb, path, body=None):
        """An endpoint under /_fake/."""
        request = urllib.request.Request(f"{self.url}/_fake/{path}", method=verb,
                                         data=None if body is None else json.dumps(body).encode())
        try:
            with urllib.request.urlopen(request, timeout=DEADLINE) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            raise RuntimeError(f"/_fake/{path}: {error.read().decode()}") from error

    def google(self, verb, path, body=None):
        """(status, JSON) of a plain request to Google's API."""
        request = urllib.request.Request(self.url + path, method=verb, headers={"Content-Type": "application/json"},
                                         data=None if body is None else json.dumps(body).encode())
        try:
            with urllib.request.urlopen(request, timeout=DEADLINE) as answer:
                text = answer.read()
                return answer.status, json.loads(text) if text else None
        except urllib.error.HTTPError as error:
            text = error.read()
            return error.code, json.loads(text) if text else None

    def reset(self, config=None):
        """A new world in the same process; the log goes on."""
        self.call("POST", "reset", config or {})

    def log(self, after=0):
        """The requests so far, after number `after`."""
        return load_log(self.log_path, after)

    def last_number(self):
        log = self.log()
        return log[-1]["n"] if log else 0

    def state(self, bodies=False):
        return self.call("GET", "state" + ("?all=1" if bodies else ""))

    def things(self, kind=""):
        """{name: entry of the state} of what exists, those of one kind ("tpu.nodes")."""
        return {thing["name"]: thing for thing in self.state(bodies=True)["things"] if thing["kind"].startswith(kind)}

    def is_empty(self):
        return self.call("GET", "empty")["empty"]

    def left(self):
        """What exists beyond what was given, and given things that are gone."""
        answer = self.call("GET", "empty")
        return answer["left"] + [f"lost: {name}" for name in answer["lost"]]

    def preempt(self, name, state="PREEMPTED"):
        self.call("POST", "preempt", {"name": name, "state": state})

    def set(self, **config):
        self.call("POST", "set", config)

    def advance(self, seconds):
        self.call("POST", "clock", {"advance": seconds})

    def faults(self, *entries):
        """Adds faults, see google_fake/faults.py; returns the number of the next request."""
        return self.call("POST", "faults", list(entries))["next"]

    def clear_faults(self):
        self.call("POST", "faults", {"clear": True})

    def run_killed_at(self, number, command, handled=True, **options):
        """Runs a command and kills it with SIGKILL when it waits for the answer to its request `number` (counted from
        1; `handled`: the fake has done what the request asks). Returns None if it was killed, else the finished
        subprocess.CompletedProcess: it made fewer requests."""
        first = self.faults()
        self.faults({"request": first + number - 1, "kind": "hold", "handled": handled})
        out, err = tempfile.TemporaryFile("w+"), tempfile.TemporaryFile("w+")
        process = subprocess.Popen(command, stdout=out, stderr=err, stdin=subprocess.DEVNULL, start_new_session=True,
                                   **options)
        killed = False
        end = time.monotonic() + DEADLINE
        while process.poll() is None and not killed:
            if time.monotonic() > end:
                os.killpg(process.pid, signal.SIGKILL)
                raise AssertionError(f"{command} neither ended nor made {number} requests in {DEADLINE} s: "
                                     f"{texts(out, err)}")
            if self.call("GET", "held")["held"]:
                os.killpg(process.pid, signal.SIGKILL)
                killed = True
            else:
                time.sleep(0.01)
        process.wait()
        self.clear_faults()
        while killed and self.call("GET", "held")["held"]:
            time.sleep(0.01)
        output = texts(out, err)
        return None if killed else subprocess.CompletedProcess(command, process.returncode, *output)


def texts(*files):
    """What was written, and the files are closed."""
    found = []
    for file in files:
        with file:
            file.seek(0)
            found.append(file.read())
    return found


def load_log(path, after=0):
    """Entries {n, time, method, path, query, body, service, method_id, faults, status, had_authorization, …}."""
    if not Path(path).exists():
        return []
    whole, _, _ = Path(path).read_text().rpartition("\n")  # behind it the fake is still writing
    entries = [json.loads(line) for line in whole.splitlines()]
    return sorted((entry for entry in entries if entry["n"] > after), key=lambda entry: entry["n"])


def assert_all_valid(log):
    """Every request was one that Google's discovery documents allow."""
    wrong = [f"{entry['n']} {entry['method']} {entry['path']} {entry['query']} {json.dumps(entry['body'])}: {fault}"
             for entry in log for fault in entry["faults"]]
    if wrong:
        raise AssertionError("requests that Google would not understand:\n" + "\n".join(wrong))


def mutations(log):
    """What changed something: [(method id, path, body)]."""
    return [(entry["method_id"], entry["path"], entry["body"]) for entry in log if entry["method"] != "GET" and
            not entry["method_id"].endswith((".wait", ".getGuestAttributes", ".testIamPermissions",
                                             ".listManagedInstances"))]
