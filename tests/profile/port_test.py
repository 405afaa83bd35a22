"""port_test.py SLUICE: the profiler's port of a running training, asked by xprof's own client, by gRPC with the messages that
xprof describes, and by `sluice profile`."""

import contextlib
import io
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path

try:
    import grpc
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
    from xprof.convert import _pywrap_profiler_plugin as xprof
    from xprof.convert import raw_to_tool_data
    from xprof.profile_data import ProfileData
except ImportError as error:
    print(f"skipped: {error} (scripts/setup installs the Python packages of the tests)")
    sys.exit(77)

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "common"))
from waiting import DEADLINE, wait_for  # noqa: E402

SLUICE = str(Path(sys.argv.pop(1)).resolve())
TRAIN = ["train", "--model", "mlp", "--fake-data", "--classes", "4", "--image-size", "8", "--train-size", "6400", "--test-size", "16",
         "--batch-size", "16", "--epochs", "100000", "--log-steps", "1000000"]


def file_description(name, library):
    """The serialised FileDescriptorProto of this name that a program has in it."""
    start = b"\n" + bytes([len(name)]) + name.encode()
    place = -1
    while (place := library.find(start, place + 1)) >= 0:
        best, end = None, place
        while True:  # field by field, as long as they are a file's
            key, at = library[end], end + 1
            if key & 7 == 0 and key >> 3 in (10, 11, 14):
                while library[at] >= 128:
                    at += 1
                at += 1
            elif key & 7 == 2 and 1 <= key >> 3 <= 12:
                size = shift = 0
                while True:
                    size |= (library[at] & 127) << shift
                    shift += 7
                    at += 1
                    if library[at - 1] < 128:
                        break
                at += size
            else:
                break
            end = at
            best = library[place:end]
        if best:
            description = descriptor_pb2.FileDescriptorProto.FromString(best)
            if description.message_type:
                return description
    raise AssertionError(f"{name} is not in xprof's library")


def load_messages():
    library = Path(xprof.LIB_PATH).read_bytes()
    pool = descriptor_pool.DescriptorPool()
    for name in ("xplane", "profiler_options", "profiler_service_monitor_result", "profiler_service"):
        pool.Add(file_description(f"tsl/profiler/protobuf/{name}.proto", library))
    service = pool.FindServiceByName("tensorflow.ProfilerService")
    methods = {method.name: (message_factory.GetMessageClass(method.input_type), message_factory.GetMessageClass(method.output_type))
               for method in service.methods}
    return methods, message_factory.GetMessageClass(pool.FindMessageTypeByName("tensorflow.profiler.XSpace"))


MESSAGES, XSPACE = load_messages()


def call(address, method, timeout=DEADLINE, **fields):
    """The answer's message; raises grpc.RpcError."""
    request, response = MESSAGES[method]
    with grpc.insecure_channel(address, options=[("grpc.enable_http_proxy", 0), ("grpc.max_receive_message_length", -1)]) as channel:
        return channel.unary_unary(f"/tensorflow.ProfilerService/{method}", request_serializer=request.SerializeToString,
                                   response_deserializer=response.FromString)(request(**fields), timeout=timeout)


def steps_of(data):
    """The step numbers in a ProfileData, and when the first of them began in nanoseconds since 1970."""
    found = [(event.start_ns, int(dict(event.stats)["step_num"])) for plane in data.planes for line in plane.lines
             for event in line.events if "_r" in dict(event.stats)]
    return [number for _, number in sorted(found)], min(begin for begin, _ in found)


class PortTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="sluice-port-")
        self.addCleanup(folder.cleanup)
        self.work = Path(folder.name).resolve()
        (self.work / "status").mkdir(mode=0o700)
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith(("TPU_", "SLUICE_"))}
        self.environment |= {"SLUICE_STATUS_DIR": str(self.work / "status"), "XDG_STATE_HOME": str(self.work / "state"),
                             "OMP_NUM_THREADS": "1", "SLUICE_PLUGIN": "cpu",
                             "SLUICE_MACHINE_ROOT": os.environ.get("SLUICE_MACHINE_ROOT", "/")}

    def start(self, *arguments, addresses=1):
        """A training, and where its processes take profiles."""
        process = subprocess.Popen([SLUICE, *arguments], env=self.environment, cwd=self.work, text=True, start_new_session=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT)  # `sluice run` passes all on to its output
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(self.kill, process)
        self.said, found = [], {}
        for line in process.stdout:
            self.said.append(line)
            if place := re.search(r"profiler: process (\d+) at (\S+)", line):
                found[int(place[1])] = place[2]
                if len(found) == addresses:
                    break
        self.assertEqual(len(found), addresses, self.said)
        threading.Thread(target=lambda: self.said.extend(process.stdout), daemon=True).start()
        wait_for("the first steps", lambda: all(self.step(address) > 5 for address in found.values()))
        return process, [address for _, address in sorted(found.items())]

    @staticmethod
    def kill(process):
        # Told to stop, `sluice run` ends its workers, which are in sessions of their own and write into the folder.
        process.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(DEADLINE)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)

    def step(self, address):
        return int(re.search(r"Step: (\d+)", call(address, "Monitor").data)[1])

    def profile(self, *arguments, status=0):
        done = subprocess.run([SLUICE, "profile", *map(str, arguments)], env=self.environment, cwd=self.work, text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=DEADLINE)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def files(self, folder, ending):
        return sorted((self.work / folder).glob(f"plugins/profile/*/*{ending}"))

    def test_one_process(self):
        process, (address,) = self.start(*TRAIN, "--profiler-port", "0")
        with self.subTest("gRPC: a profile of some time"):
            answer = call(address, "Profile", duration_ms=3000, session_id="s", host_name=address, repository_root=str(self.work / "repository"))
            self.assertFalse(answer.empty_trace)
            files = {tool.name: tool.data for tool in answer.tool_data}
            self.assertEqual(sorted(files), ["layers.json", "trace.json.gz", "txt", "xplane.pb"])
            numbers, _ = steps_of(ProfileData.from_serialized_xspace(files["xplane.pb"]))
            self.assertGreater(len(numbers), 3)
            self.assertEqual(numbers, list(range(numbers[0], numbers[-1] + 1)))
            self.assertIn(b"The thread that trains, a step: ", files["txt"])
            self.assertFalse((self.work / "repository").exists(), "who asks writes")
            self.assertIn("/host:CPU", [plane.name for plane in call(address, "Profile", duration_ms=50, emit_xspace=True).xspace.planes])
        with self.subTest("gRPC: two at once, and Terminate"):
            first = {}

            def take():
                # The short one, asked for below, may come first.
                while "answer" not in first:
                    with contextlib.suppress(grpc.RpcError):
                        first["answer"] = call(address, "Profile", duration_ms=60_000, session_id="long")
            thread = threading.Thread(target=take, daemon=True)
            thread.start()

            def refused():
                try:
                    call(address, "Profile", duration_ms=1, session_id="short")
                except grpc.RpcError as error:
                    return error
                return None
            error = wait_for("the second to be refused", refused)
            self.assertEqual(error.code(), grpc.StatusCode.UNAVAILABLE)
            self.assertEqual(error.details(), "a profile of this process is being taken; try again when it is done")
            self.assertIn("a profile of this process is being taken", self.profile(address.rpartition(":")[2], status=1))
            now = self.step(address)
            wait_for("some steps", lambda: self.step(address) > now + 2)
            call(address, "Terminate", session_id="long")
            thread.join()
            self.assertFalse(first["answer"].empty_trace)
        with self.subTest("xprof: trace()"):
            with contextlib.redirect_stdout(io.StringIO()):
                xprof.trace(address, str(self.work / "captured"), "", True, 3000, 1)
            (path,) = self.files("captured", ".xplane.pb")
            page, _ = raw_to_tool_data.xspace_to_tool_data([str(path)], "overview_page", {})
            self.assertGreater(len(json.loads(page)[1]["rows"]), 0)
            self.assertNotIn("step marker", str(page).lower())
        with self.subTest("xprof: monitor()"):
            text = xprof.monitor(address, 500, 2, True)
            for word in ("Timestamp: ", "Step: ", "Step time: ", "Device idle: ", "Waiting for input: "):
                self.assertIn(word, text)
        with self.subTest("sluice profile"):
            port = address.rpartition(":")[2]
            said = self.profile(port, "--steps", 4, "--out", "four")
            self.assertRegex(said, r"1 process, at step \d+; taking the steps \d+ to \d+")
            (path,) = self.files("four", ".xplane.pb")
            numbers, _ = steps_of(ProfileData.from_file(str(path)))
            first = int(re.search(r"the steps (\d+) to", said)[1])
            self.assertEqual(numbers, list(range(first, first + 4)))
            self.assertEqual(len(self.files("four", ".trace.json.gz")), 1)
            self.assertIn(f"Steps {first} to {first + 3}", self.files("four", ".txt")[0].read_text())
            self.profile(port, "--duration", "2s", "--out", "time")
            self.assertEqual(len(self.files("time", ".xplane.pb")), 1)
        with self.subTest("wrong requests"):
            self.assertIn("has begun already", self.profile(port, "--steps", "1:3", status=1))
            for steps in ("0", "5:5", "x", "9:3"):
                self.assertIn("--steps", self.profile(port, "--steps", steps, status=2))
            for duration in ("0", "1h", "11m", "nan"):
                self.assertIn("--duration", self.profile(port, "--duration", duration, status=2))
            self.profile(status=2)
            self.profile("99999", status=2)
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                nobody = free.getsockname()[1]
            self.assertIn("was it started with --profiler-port", self.profile(nobody, status=1))
            taken = subprocess.run([SLUICE, *TRAIN, "--profiler-port", port], env=self.environment, cwd=self.work, text=True,
                                   capture_output=True, timeout=DEADLINE)
            self.assertEqual(taken.returncode, 1)
            self.assertIn("Address already in use; choose another port", taken.stderr)
            for wrong in (subprocess.run([SLUICE, *TRAIN, *more], env={**self.environment, **variables}, cwd=self.work, text=True,
                                         capture_output=True, timeout=DEADLINE)
                          for more, variables in ((["--profiler-port", "99999"], {}), ([], {"SLUICE_PROFILER_PORT": "99999"}))):
                self.assertEqual(wrong.returncode, 2)
                self.assertIn("--profiler-port: expected a port up to 65535", wrong.stderr)
        with self.subTest("the run ends before"):
            result = {}
            waiting = threading.Thread(target=lambda: result.update(said=self.profile(port, "--steps", "100000000:100000003", status=1)))
            waiting.start()
            time.sleep(1)
            process.send_signal(signal.SIGTERM)
            self.assertEqual(process.wait(DEADLINE), 143)
            waiting.join()
            self.assertRegex(result["said"], r"the training has ended, at step \d+, before the step 100000000")

    def test_a_run_of_four(self):
        """The same steps of all of them, found by the run's name."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        port = min(port, 65000)
        _, addresses = self.start("run", "--processes", "4", "--", SLUICE, *TRAIN, "--profiler-port", str(port), addresses=4)
        self.assertEqual(addresses, [f"127.0.0.1:{port + i}" for i in range(4)])
        (run,) = json.loads(subprocess.run([SLUICE, "run", "ls", "--json"], env=self.environment, text=True, capture_output=True,
                                           check=True).stdout)
        said = self.profile("--run", run.get("run") or run.get("id") or run.get("name"), "--steps", 3, "--out", "run")
        first = int(re.search(r"the steps (\d+) to \d+, 4 processes", said)[1])
        paths = self.files("run", ".xplane.pb")
        self.assertEqual(len(paths), 4)
        self.assertEqual(len({path.parent for path in paths}), 1)
        begins = []
        for path in paths:
            numbers, begin = steps_of(ProfileData.from_file(str(path)))
            self.assertEqual(numbers, [first, first + 1, first + 2])
            begins.append(begin)
        print(f"their first steps begin within {(max(begins) - min(begins)) / 1e6:.3f} ms", flush=True)
        # By time: all begin at one moment of the clock.
        self.profile(",".join(addresses), "--duration", "3s", "--out", "time")
        starts = [XSPACE.FromString(path.read_bytes()).planes[0].lines[0].timestamp_ns for path in self.files("time", ".xplane.pb")]
        self.assertEqual(len(starts), 4)
        apart = (max(starts) - min(starts)) / 1e6
        print(f"their captures begin within {apart:.3f} ms", flush=True)
        # 1 ms where a processor is free for each of them; here others may hold it for a slice of the scheduler.
        self.assertLess(apart, 50)


if __name__ == "__main__":
    unittest.main()
