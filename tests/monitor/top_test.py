"""top_test.py SLUICE CLASS: `sluice top` beside a fake of libtpu's metrics service (Metrics), on hosts and of runs (Places),
and beside a training (Training)."""

import json
import os
import pty
import re
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.request
from pathlib import Path

try:
    import grpc
    from fake_metrics import DUTY, TOTAL, USED, FakeMetrics
except ImportError:
    grpc = None

TESTS = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TESTS / "common"))
from waiting import DEADLINE, wait_for  # noqa: E402

SLUICE = str(Path(sys.argv.pop(1)).resolve())
GIB = 2**30


class TopTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="sluice-top-")
        self.addCleanup(folder.cleanup)
        self.work = Path(folder.name).resolve()
        self.status = self.work / "status"
        self.status.mkdir(mode=0o700)
        self.root = self.work / "root"
        (self.root / "dev").mkdir(parents=True)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            nobody = free.getsockname()[1]
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith(("TPU_", "SLUICE_"))}
        self.environment |= {"SLUICE_STATUS_DIR": str(self.status), "SLUICE_MACHINE_ROOT": str(self.root),
                             "TPU_RUNTIME_METRICS_PORTS": str(nobody), "XDG_STATE_HOME": str(self.work / "state"),
                             "OMP_NUM_THREADS": "1"}

    def add_chips(self, count):
        for chip in range(count):
            (self.root / f"dev/accel{chip}").touch()

    def record(self, process, **fields):
        """A record as a training process writes it, of a container of which nothing but the record is known."""
        record = {"process": process, "namespaces": "pid:[1]", "began": 1, "program": "train", "host": "h", "run": "",
                  "index": 0, "count": 1, "replicas": 8, "device": "xla:0", "coordinator": "", "profiler": "",
                  "step": 1200, "epoch": 3, "step_ms": 41.25, "rate": 3100.0,
                  "shares": {"input": 0.71, "trace": 0.04, "device": 0.25}, "mfu": None, "time": time.time()}
        (self.status / f"{process}.json").write_text(json.dumps({**record, **fields}))

    def run_sluice(self, *arguments, status=0, **environment):
        done = subprocess.run([SLUICE, *map(str, arguments)], env={**self.environment, **environment}, text=True,
                              cwd=self.work, stdin=subprocess.DEVNULL, capture_output=True, timeout=DEADLINE)
        self.assertEqual(done.returncode, status, done.stdout[-2000:] + done.stderr[-2000:])
        return done

    def top(self, *arguments, **options):
        """The hosts that `sluice top --once --json` shows."""
        return json.loads(self.run_sluice("top", "--once", "--json", *arguments, **options).stdout)["hosts"]

    def screen(self, *arguments, until, keys=b"q"):
        """What the full screen shows, at the least what `until` finds; then the keys are pressed. And the exit status."""
        process, terminal = pty.fork()
        if process == 0:
            os.chdir(self.work)
            os.execve(SLUICE, [SLUICE, "top", *arguments], {**self.environment, "TERM": "xterm", "COLUMNS": "160", "LINES": "30"})
        shown, end, pressed = "", time.monotonic() + DEADLINE, False
        while time.monotonic() < end:
            if select.select([terminal], [], [], 0.5)[0]:
                try:
                    shown += os.read(terminal, 65536).decode(errors="replace")
                except OSError:  # the other side is gone
                    break
            if not pressed and re.search(until, shown):
                os.write(terminal, keys)
                pressed = True
        os.close(terminal)
        return shown, os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


class Metrics(TopTest):
    def setUp(self):
        if grpc is None:
            self.skipTest("grpcio is not installed")
        super().setUp()

    def serve(self, values=None, **how):
        fake = FakeMetrics(values or {}, **how)
        self.addCleanup(fake.close)
        self.environment["TPU_RUNTIME_METRICS_PORTS"] = str(fake.port)
        return fake

    def test_its_values_are_shown(self):
        self.add_chips(2)
        fake = self.serve({USED: {1: 11 * GIB, 0: 10 * GIB}, TOTAL: {0: 32 * GIB, 1: 32 * GIB}, DUTY: {0: 93.5, 1: 0.0}})
        (host,) = self.top()
        self.assertTrue(host["tpu_program_running"])
        self.assertEqual(host["faults"], [])
        self.assertEqual(host["chips"], [
            {"device": 0, "duty_cycle_percent": 93.5, "memory_used_bytes": 10 * GIB, "memory_total_bytes": 32 * GIB},
            {"device": 1, "duty_cycle_percent": 0.0, "memory_used_bytes": 11 * GIB, "memory_total_bytes": 32 * GIB}])
        self.assertEqual(set(fake.asked), {USED, TOTAL, DUTY})
        text = self.run_sluice("top", "--once").stdout
        self.assertRegex(text, r"0 +93\.5 % +10\.0 of 32\.0 GiB")
        self.assertNotIn("no TPU program", text)

    def test_two_cores_of_a_chip_have_its_duty_cycle(self):
        self.serve({USED: dict.fromkeys(range(4), GIB), TOTAL: dict.fromkeys(range(4), 16 * GIB), DUTY: {0: 50.0, 1: 70.0}})
        self.assertEqual([chip["duty_cycle_percent"] for chip in self.top()[0]["chips"]], [50, 50, 70, 70])

    def test_one_process_per_chip(self):
        ports = []
        for device in range(2):
            self.serve({USED: {device: device * GIB}, TOTAL: {device: 32 * GIB}, DUTY: {device: 1.5}})
            ports.append(self.environment["TPU_RUNTIME_METRICS_PORTS"])
        (host,) = self.top(TPU_RUNTIME_METRICS_PORTS=",".join(ports))
        self.assertEqual([chip["memory_used_bytes"] for chip in host["chips"]], [0, GIB])

    def test_a_metric_that_this_libtpu_lacks(self):
        self.serve({USED: {0: GIB}, TOTAL: {0: 32 * GIB}})
        (host,) = self.top()
        self.assertEqual(host["faults"], [])
        self.assertIsNone(host["chips"][0]["duty_cycle_percent"])

    def test_gone(self):
        self.add_chips(4)
        fake = self.serve({USED: {0: GIB}, TOTAL: {0: GIB}})
        fake.close()
        (host,) = self.top()
        self.assertFalse(host["tpu_program_running"])
        self.assertEqual((host["chips"], host["faults"]), ([], []))
        self.assertIn("no TPU program is running", self.run_sluice("top", "--once").stdout)

    def test_hung(self):
        self.serve({USED: {0: GIB}}, wait=60)
        (host,) = self.top()
        self.assertTrue(host["tpu_program_running"])
        self.assertRegex(host["faults"][0], r"port \d+ gives no metrics of chips: .*(no answer within|[Tt]imed? ?out)")
        # A second for each port, and not one for each metric; a loaded machine takes what it takes.
        start = time.monotonic()
        self.top()
        self.assertLess(time.monotonic() - start, 30)

    def test_garbage(self):
        for answer in (b"\xff" * 40, b"\x0a\x05abc", b"x" * (2 << 20)):
            self.serve(answer=answer)
            (host,) = self.top()
            self.assertEqual(len(host["faults"]), 1, host)
            self.assertEqual(host["chips"], [])

    def test_an_error_of_the_service(self):
        self.serve(fails=grpc.StatusCode.INTERNAL)
        self.assertIn("the chips are busy", self.top()[0]["faults"][0])

    def test_something_else_listens_there(self):
        for said in (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", b"", b"\0" * 100):
            listener = socket.create_server(("127.0.0.1", 0))

            def serve(listener=listener, said=said):
                while True:
                    try:
                        connection, _ = listener.accept()
                    except OSError:
                        return
                    with connection:
                        connection.sendall(said)
            threading.Thread(target=serve, daemon=True).start()
            (host,) = self.top(TPU_RUNTIME_METRICS_PORTS=str(listener.getsockname()[1]))
            self.assertIn("gives no metrics of chips", host["faults"][0])
            listener.close()


class Places(TopTest):
    def test_processes_by_their_records(self):
        self.record(7)
        self.record(8, index=1, time=time.time() - 300)
        self.record(1 << 22, index=2, namespaces=os.readlink("/proc/self/ns/pid"))  # there is no such process
        self.record(9, index=3, step_p50_ms=41.5, step_p95_ms=43.94, mfu=0.52, memory_in_use=10 << 30, memory_peak=13 << 30)
        self.assertEqual([process["state"] for process in self.top()[0]["processes"]],
                         ["running", "silent", "killed", "running"])
        text = self.run_sluice("top", "--once").stdout
        self.assertRegex(text, r"0/1 +7 +running +3 +1200 +41\.2 +3100\.0 +- +71 % +4 % +25 % +-")
        self.assertRegex(text, r"3/1 +9 +running +3 +1200 +41\.5/43\.9 +3100\.0 +52 % +71 % +4 % +25 % +10\.0/13\.0 GiB")
        self.assertRegex(text, r"silent 30\d s")
        self.assertIn("killed", text)

    def test_garbage_for_a_record(self):
        self.record(7)
        (self.status / "8.json").write_text("{")
        (self.status / "9.json").write_bytes(b"\xff\xfe")
        self.assertEqual(len(self.top()[0]["processes"]), 1)

    def test_a_line_each_second(self):
        process = subprocess.Popen([SLUICE, "top", "--json"], env=self.environment, stdout=subprocess.PIPE, text=True)
        lines = [json.loads(process.stdout.readline()) for _ in range(2)]
        self.assertGreater(lines[1]["hosts"][0]["time"], lines[0]["hosts"][0]["time"])
        process.stdout.close()
        self.assertEqual(process.wait(DEADLINE), 0)  # its reader is gone

    def test_the_full_screen(self):
        self.record(7)
        shown, status = self.screen(until="3100.0")
        self.assertEqual(status, 0, shown)
        for text in ("sluice top", "STEP MS", "no TPU program is running"):
            self.assertIn(text, shown)
        self.assertTrue(shown.rstrip().endswith("\x1b[?1l\x1b>") or "\x1b[?1049l" in shown)  # the terminal as it was
        _, status = self.screen(until="3100.0", keys=b"\x03")
        self.assertEqual(status, 0)

    def test_without_a_terminal(self):
        self.assertIn("use --once or --json", self.run_sluice("top", status=2).stderr)

    def test_places_that_exclude_each_other(self):
        self.run_sluice("top", "--hosts", "a", "--tpu", "b", "--once", status=2)
        self.run_sluice("top", "--hosts", "a", "--run", "b", "--once", status=2)
        self.assertIn("no run is named", self.run_sluice("top", "--run", "x", "--once", status=1).stderr)

    def use_false_ssh(self, plan=None):
        """Hosts that are folders of this machine, each with its own records."""
        tools = self.work / "tools"
        tools.mkdir()
        (tools / "ssh").write_text(f'#!/bin/sh\nexec {sys.executable} -B {TESTS}/pod/false_ssh.py "$@"\n')
        (tools / "ssh").chmod(0o755)
        (self.work / "plan.json").write_text(json.dumps(plan or {}))
        self.environment |= {"FALSE_HOSTS": str(self.work), "PATH": f"{tools}:{os.environ['PATH']}"}

    def install(self, host, where=".local/bin"):
        folder = self.work / host / where
        folder.mkdir(parents=True)
        (folder / "sluice").symlink_to(SLUICE)

    def test_hosts(self):
        self.use_false_ssh({"c": [["refuse", 0]] * 20})
        self.install("a")
        self.install("b", ".cache/sluice/programs/0123/bin")
        self.record(7)
        hosts = self.top("--hosts", "a,b,c,d", status=1)
        self.assertEqual([host["host"] for host in hosts], ["a", "b", "c", "d"])
        for host in hosts[:2]:
            self.assertEqual(host["trouble"], "")
            self.assertEqual(host["processes"][0]["step"], 1200)
        self.assertIn("cannot reach c by ssh", hosts[2]["trouble"])
        self.assertIn("there is no sluice on PATH", hosts[3]["trouble"])
        self.assertEqual(len(self.top("--hosts", "a,b")), 2)
        shown, status = self.screen("--hosts", "a,c", until="3100.0(.|\n)*cannot reach c")
        self.assertEqual(status, 0, shown)

    def test_a_run_of_this_machine(self):
        started = subprocess.run([SLUICE, "run", "--detach", "--processes", "2", "--", "sh", "-c", "exec sleep 1000"],
                                 env=self.environment, capture_output=True, text=True, timeout=DEADLINE)
        self.assertEqual(started.returncode, 0, started.stderr)
        self.addCleanup(self.run_sluice, "run", "stop")
        (run,) = json.loads(self.run_sluice("run", "ls", "--json").stdout)
        name = run.get("run") or run.get("id") or run.get("name")
        self.record(7, run=name)
        self.record(8, run="another")
        (host,) = self.top("--run", name[:8])
        self.assertEqual([process["process"] for process in host["processes"]], [7])
        self.assertIn("1 of the run's 2 workers say how far they are", host["trouble"])
        text = self.run_sluice("top", "--run", name, "--once").stdout
        self.assertIn("1 of the run's 2 workers", text)

    def test_a_run_of_hosts(self):
        self.use_false_ssh()
        for host in ("a", "b"):
            self.install(host)
        self.run_sluice("run", "--hosts", "a,b", "--", "true")
        (run,) = json.loads(self.run_sluice("run", "ls", "--json").stdout)
        hosts = self.top("--run", run.get("run") or run.get("id") or run.get("name"))
        self.assertEqual([host["host"] for host in hosts], ["a", "b"])
        self.assertIn("is over: succeeded", hosts[0]["trouble"])


class Training(TopTest):
    def start(self, *more, **environment):
        process = subprocess.Popen(
            [SLUICE, "train", "--model", "mlp", "--fake-data", "--classes", "4", "--image-size", "8", "--train-size", "6400",
             "--test-size", "16", "--batch-size", "16", "--epochs", "100000", "--logdir", str(self.work / "run"), *more],
            env={**self.environment, "SLUICE_PLUGIN": "cpu", **environment}, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, cwd=self.work)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        threading.Thread(target=process.stdout.read, daemon=True).start()
        return process

    def moving(self, process):
        """What is shown of the process once it makes steps."""
        def look():
            found = [shown for shown in self.top()[0]["processes"] if shown["process"] == process.pid]
            return found[0] if found and found[0]["step_ms"] > 0 else None
        return wait_for("steps of the training", look)

    def test_while_it_works_and_when_it_is_killed(self):
        process = self.start()
        shown = self.moving(process)
        self.assertEqual((shown["state"], shown["program"], shown["count"]), ("running", "sluice-torch", 1))
        # 16 examples a step, of one replica.
        self.assertAlmostEqual(shown["rate"] * shown["step_ms"] / 1000, 16, delta=0.5)
        self.assertAlmostEqual(sum(shown["shares"].values()), 1, places=6)
        # Products of 64 → 1024 → 1024 → 4, forward and backward.
        rated = wait_for("the ends of steps", lambda: (s := self.moving(process))["flops_per_second"] and s)
        self.assertLess(0, rated["step_p50_ms"])
        self.assertLessEqual(rated["step_p50_ms"], rated["step_p95_ms"])
        flops = 2 * 16 * (2 * 64 * 1024 + 3 * 1024 * 1024 + 3 * 1024 * 4)
        self.assertLess(rated["flops_per_second"] * rated["step_p50_ms"] / 1000, 2 * flops)
        self.assertIsNone(rated["memory_in_use"])  # XLA's CPU plugin does not say
        self.assertGreater(wait_for("more steps", lambda: (s := self.moving(process))["step"] > shown["step"] and s)["step"],
                           shown["step"])
        process.send_signal(signal.SIGKILL)
        process.wait()
        (left,) = self.top()[0]["processes"]
        self.assertEqual(left["state"], "killed")

    def test_one_that_ends_leaves_nothing(self):
        process = self.start()
        self.moving(process)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(DEADLINE), 143)
        self.assertEqual(list(self.status.iterdir()), [])
        self.assertEqual(self.top()[0]["processes"], [])

    def test_no_record_where_none_is_wanted(self):
        process = self.start(SLUICE_STATUS_DIR="off")
        time.sleep(3)
        self.assertIsNone(process.poll())
        self.assertEqual(list(self.status.iterdir()), [])

    def test_the_leaders_port(self):
        process = self.start("--status-port", "0")
        for line in process.stderr:
            if found := re.search(r"status: /status and /metrics on port (\d+)", line):
                break
        shown = self.moving(process)

        def get(path):
            with urllib.request.urlopen(f"http://127.0.0.1:{found[1]}{path}", timeout=DEADLINE) as answer:
                return answer.read().decode()
        metrics = get("/metrics")
        self.assertGreaterEqual(int(re.search(r'^sluice_step\{process="0"\} (\d+)$', metrics, re.M)[1]), shown["step"])
        self.assertRegex(metrics, r'(?m)^sluice_examples_per_second\{process="0"\} [\d.]+$')
        (status,) = json.loads(get("/status"))["hosts"]
        self.assertEqual([one["process"] for one in status["processes"]], [process.pid])
        # A second one cannot have the port, and says so.
        taken = self.run_sluice("train", "--model", "mlp", "--fake-data", "--classes", "4", "--status-port", found[1], status=1,
                                SLUICE_PLUGIN="cpu")
        self.assertIn("Address already in use; choose another port", taken.stderr)
        wrong = self.run_sluice("train", "--model", "mlp", "--fake-data", "--classes", "4", "--status-port", "x:y", status=2)
        self.assertIn("expected a port up to 65535, such as 9100, or an address and a port", wrong.stderr)
        # The environment says the same, and the flag wins.
        self.assertIn("port 1.5", self.run_sluice("train", "--model", "mlp", "--fake-data", "--classes", "4", status=2,
                                                  SLUICE_STATUS_PORT="port 1.5").stderr)


if __name__ == "__main__":
    if grpc is None and "Metrics" in sys.argv:
        sys.exit(print("grpcio is not installed: skipped") or 77)
    unittest.main()
