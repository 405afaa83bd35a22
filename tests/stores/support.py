"""What the tests of stores share: the program, servers on free ports, and what must not be printed."""

import contextlib
import hashlib
import http.server
import json
import os
import random
import subprocess
import threading

failures = []


def check(condition, *what):
    if not condition:
        failures.append(" ".join(map(str, what)))
        print("FAILED:", *what, flush=True)


class Program:
    """The program with an environment that has no credentials but those it is given."""

    def __init__(self, path, secrets=(), **variables):
        keep = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "AZURE_", "HF_"))}
        self.path, self.secrets = path, secrets
        self.environment = dict(keep, SLUICE_CLOUD_RETRY="0.01:0.1:20", **variables)

    def __call__(self, *arguments, status=0, **variables):
        environment = {name: value for name, value in {**self.environment, **variables}.items() if value is not None}
        done = subprocess.run([self.path, *map(str, arguments)], env=environment, capture_output=True, text=True)
        said = done.stdout + done.stderr
        check(done.returncode == status, "status", done.returncode, "instead of", status, ":", *arguments, said[-1500:])
        for secret in self.secrets:
            check(secret not in said, "a secret is printed by", *arguments, ":", said)
        return said


class Server(http.server.ThreadingHTTPServer):
    """Serves in a thread; `address` is its URL."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, handler):
        super().__init__(("127.0.0.1", 0), handler)
        self.address = f"http://127.0.0.1:{self.server_port}"
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, *_):
        pass  # a client that went away

    def close(self):
        self.shutdown()
        self.server_close()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def body(self):
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def reply(self, status, body=b"", headers=(), cut=None):
        """`cut`: only so many bytes of the body, then the connection ends."""
        self.send_response_only(status)
        names = {name.lower() for name, _ in headers}
        for name, value in headers:
            self.send_header(name, value)
        if "content-length" not in names:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body if cut is None else body[:cut])
        if cut is not None:
            self.close_connection = True

    def log_message(self, *_):
        pass


def logs_of_a_run(run, bucket, work):
    """While a run's logs grow, they go to a store. Returns their bytes."""
    lines, state = 300, {"XDG_STATE_HOME": str(work / "state_of_runs")}
    count = f'i=0; while [ $i -lt {lines} ]; do i=$((i+1)); echo "line $i of $SLUICE_PROCESS_ID"; sleep 0.01; done'
    running = threading.Thread(target=run, args=("run", "--processes", 2, "--log-bucket", f"{bucket}/logs/", "--", "sh", "-c",
                                                 count), kwargs=state)
    running.start()
    runs = []
    while running.is_alive() and not runs:
        runs = json.loads(run("run", "ls", "--json", **state))
    run("run", "copy-logs", runs[0]["id"], f"{bucket}/logs", "--seconds", 0.2, **state)  # beside the run's own copier
    running.join()
    for worker in range(2):
        name = f"worker-{worker}.log"
        copy = work / name
        run("data", "cp", f"{bucket}/logs/{runs[0]['id']}/{name}", copy)
        wanted = "".join(f"line {line} of {worker}\n" for line in range(1, lines + 1))
        check(copy.exists() and copy.read_text() == wanted, "the log of worker", worker, "in", bucket)
    said = run("run", "--processes", 1, "--log-bucket", "hf://owner/name", "--", "true", status=2, **state)
    check("expected gs://BUCKET/PREFIX, s3://BUCKET/PREFIX or az://" in said, "logs to the hub:", said)
    return sum(len(f"line {line} of {worker}\n") for worker in range(2) for line in range(1, lines + 1))


def large_log_of_a_run(run, bucket, work, size):
    """A log of `size` bytes gets 40 more lines, a few at a time. Returns its bytes."""
    state = {"XDG_STATE_HOME": str(work / "state_of_large_runs")}
    script = f"head -c {size} /dev/zero | tr '\\0' x; echo; i=0; " \
             "while [ $i -lt 40 ]; do i=$((i+1)); echo line $i; sleep 0.1; done"
    running = threading.Thread(target=run, args=("run", "--processes", 1, "--", "sh", "-c", script), kwargs=state)
    running.start()
    runs = []
    while running.is_alive() and not runs:
        runs = json.loads(run("run", "ls", "--json", **state))
    run("run", "copy-logs", runs[0]["id"], f"{bucket}/large", "--seconds", 0.3, **state)
    running.join()
    name, copy = "worker-0.log", work / "large.log"
    run("data", "cp", f"{bucket}/large/{runs[0]['id']}/{name}", copy)
    wanted = "x" * size + "\n" + "".join(f"line {line}\n" for line in range(1, 41))
    check(copy.read_text() == wanted, "the large log in", bucket)
    return len(wanted)


def part_of(content, header):
    """What a Range header asks for: (status, bytes, headers)."""
    if not header:
        return 200, content, []
    first, last = header.removeprefix("bytes=").split("-")
    first, last = int(first), min(int(last or len(content)), len(content) - 1)
    if first > last:
        return 416, b"", [("Content-Range", f"bytes */{len(content)}")]
    return 206, content[first:last + 1], [("Content-Range", f"bytes {first}-{last}/{len(content)}")]


def random_file(path, size, seed):
    path.write_bytes(random.Random(seed).randbytes(size))
    return path


def md5(path):
    return hashlib.md5(path.read_bytes()).hexdigest()


closing = contextlib.closing
