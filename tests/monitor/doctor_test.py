"""doctor_test.py SLUICE: what `sluice doctor` finds on machines that a folder stands for (SLUICE_MACHINE_ROOT), beside a fake
of Google's services and of the metadata server, and what `--fix` ends."""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TESTS / "common"), str(TESTS / "cloud")]
from google_fake_support import GoogleFake, test_python  # noqa: E402
from metadata_server import MetadataServer  # noqa: E402
from waiting import DEADLINE, wait_for  # noqa: E402

SLUICE = str(Path(sys.argv.pop(1)).resolve())
READ = ["storage.objects.get", "storage.objects.list"]
WRITE = ["storage.objects.create", "storage.objects.delete"]


class Doctor(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="sluice-doctor-")
        self.addCleanup(folder.cleanup)
        self.work = Path(folder.name).resolve()
        self.root = self.work / "root"
        (self.root / "dev").mkdir(parents=True)
        self.environment = {name: value for name, value in os.environ.items()
                            if not name.startswith(("TPU_", "SLUICE_", "GCE_", "GOOGLE_", "CLOUDSDK_"))}
        # No credentials, no metadata server, and no request leaves the machine.
        self.environment |= {"SLUICE_MACHINE_ROOT": str(self.root), "NO_GCE_CHECK": "true", "CLOUDSDK_CONFIG": str(self.work),
                             "XDG_CACHE_HOME": str(self.work / "cache")}

    def add_chips(self, count=4):
        for chip in range(count):
            (self.root / f"dev/accel{chip}").touch()

    def run_doctor(self, *arguments, status=None, prefix=(), **environment):
        done = subprocess.run([*prefix, SLUICE, "doctor", *map(str, arguments)], env={**self.environment, **environment},
                              text=True, cwd=self.work, stdin=subprocess.DEVNULL, capture_output=True, timeout=2 * DEADLINE)
        if status is not None:
            self.assertEqual(done.returncode, status, done.stdout[-3000:] + done.stderr[-2000:])
        return done

    def find(self, *arguments, **options):
        """{check: [(level, found, advice)]}"""
        done = self.run_doctor("--json", *arguments, **options)
        (host,) = json.loads(done.stdout)["hosts"]
        found = {}
        for finding in host["findings"]:
            found.setdefault(finding["check"], []).append((finding["level"], finding["found"], finding["advice"]))
        problems = sum(one[0] == "problem" for all_of_one in found.values() for one in all_of_one)
        self.assertEqual(done.returncode, 1 if problems else 0)
        for all_of_one in found.values():
            for level, _, advice in all_of_one:
                self.assertTrue(level == "ok" or advice, all_of_one)  # every finding says what to do
        return found

    def use_metadata(self, answers=None, date=None):
        metadata = MetadataServer({"instance/zone": "projects/1/zones/us-central2-b", "instance/maintenance-event": "NONE",
                             "instance/preempted": "FALSE", "instance/attributes/accelerator-type": "v4-32",
                             "instance/attributes/agent-worker-number": "2", **(answers or {})}, date)
        self.addCleanup(metadata.close)
        self.environment["GCE_METADATA_HOST"] = metadata.host

    def test_a_machine_without_faults(self):
        done = self.run_doctor()
        self.assertRegex(done.stdout, r"ok +chips +no TPU, no GPU\n")
        self.assertRegex(done.stdout, r"ok +variables +no variable is mistyped\n")
        self.assertRegex(done.stdout, r"metadata +this machine is not in Google's cloud\n")
        self.assertRegex(done.stdout, r"\n\d+ problems?, \d+ notes?\n$")

    def test_a_mistyped_variable(self):
        found = self.find(SLUICE_PLUGINS="cpu", XRT_TPU_CONFIG="localservice;0;localhost:51011")
        self.assertIn(("problem", "SLUICE_PLUGINS is set, and nothing here reads it",
                       "did you mean SLUICE_PLUGIN? (docs/environment.md has all of them)"), found["variables"])
        self.assertEqual({one[0] for one in found["variables"]}, {"problem", "note"})

    def test_a_tpu_without_its_library(self):
        self.add_chips()
        (found,) = self.find(TPU_LIBRARY_PATH="/no/such/libtpu.so")["libtpu"]
        self.assertEqual(found[0], "problem")
        self.assertIn("there is no plugin at /no/such/libtpu.so", found[1])

    def test_a_library_that_is_none(self):
        self.add_chips()
        library = self.work / "libtpu.so"
        library.write_text("not a library")
        (found,) = self.find(TPU_LIBRARY_PATH=str(library))["libtpu"]
        self.assertEqual(found[0], "problem")
        self.assertIn("cannot load the plugin", found[2])

    def test_a_port_that_is_taken(self):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = listener.getsockname()[1]
            found = self.find(TPU_RUNTIME_METRICS_PORTS=str(port))["ports"]
        self.assertTrue(any(f"port {port} (libtpu's metrics) is taken by process {os.getpid()}" in one[1] for one in found), found)

    def test_few_open_files(self):
        found = self.find(prefix=("prlimit", "--nofile=512:512"))["limits"]
        self.assertIn(("note", "512 open files"), [one[:2] for one in found])

    def test_a_log_folder_without_rights(self):
        if os.geteuid() == 0:
            # What root may not do either: the folder below a file's name is looked for above it.
            found = self.find("--logdir", self.work / "runs/one")["disk"]
            self.assertTrue(any(one[1].startswith(f"{self.work}/runs/one: ") for one in found))
            return
        (self.work / "closed").mkdir(mode=0o500)
        found = self.find("--logdir", self.work / "closed")["disk"]
        self.assertTrue(any("may not write" in one[1] for one in found), found)

    def test_the_machine_in_googles_cloud(self):
        self.use_metadata()
        found = self.find()
        self.assertEqual(found["metadata"], [("ok", "us-central2-b, v4-32, worker 2", "")])
        self.assertEqual(found["clock"][0][:2], ("ok", "the clock agrees with the metadata server"))

    def test_a_wrong_clock_a_preemption_and_maintenance(self):
        self.use_metadata({"instance/preempted": "TRUE", "instance/maintenance-event": "TERMINATE_ON_HOST_MAINTENANCE"},
                          date="Tue, 01 Jan 2030 00:00:00 GMT")
        found = self.find()
        self.assertEqual([one[0] for one in found["metadata"]], ["ok", "problem", "note"])
        self.assertEqual(found["clock"][0][0], "problem")
        self.assertIn(" s behind the metadata server", found["clock"][0][1])

    def test_a_metadata_server_that_is_gone(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            address = f"127.0.0.1:{free.getsockname()[1]}"
        found = self.find(GCE_METADATA_HOST=address)
        self.assertEqual(found["metadata"][0][0], "problem")
        self.assertIn("--net host", found["metadata"][0][2])

    def test_credentials(self):
        self.assertEqual(self.find()["credentials"][0][0], "note")
        broken = self.work / "key.json"
        broken.write_text("{}")
        (found,) = self.find(GOOGLE_APPLICATION_CREDENTIALS=str(broken))["credentials"]
        self.assertEqual(found[0], "problem")
        self.assertIn(str(broken), found[1])
        self.assertIn("gcloud auth application-default login", found[2])

    def google(self, **config):
        if test_python() is None:
            self.skipTest("google-api-python-client is not installed")
        google = GoogleFake({"projects": ["p"], "zones": {"us-central2-b": {}, "europe-west4-a": {}}, **config})
        self.addCleanup(google.stop)
        for name, place in (("near", "US-CENTRAL2"), ("far", "EUROPE-WEST4")):
            status, answer = google.google("POST", "/storage/v1/b?project=p", {"name": name, "location": place})
            self.assertEqual(status, 200, answer)
        self.environment["STORAGE_EMULATOR_HOST"] = google.url
        return google

    def test_buckets(self):
        google = self.google()
        self.use_metadata()
        found = self.find("--bucket", "gs://near/train-0.tar", "--bucket", "far")["bucket"]
        self.assertIn(("ok", "gs://near: it can be read and written", ""), found)
        self.assertIn(("ok", "gs://near is in US-CENTRAL2, this machine in us-central2", ""), found)
        (far,) = [one for one in found if "gs://far is in" in one[1]]
        self.assertEqual(far[0], "problem")
        self.assertIn("use a bucket in us-central2", far[2])
        (missing,) = self.find("--bucket", "gs://nobody-has-this")["bucket"]
        self.assertEqual(missing[0], "problem")
        google.call("POST", "set", {"denied_permissions": WRITE})
        self.assertIn(("note", "gs://near: it can be read, and not written"),
                      [one[:2] for one in self.find("--bucket", "near")["bucket"]])
        google.call("POST", "set", {"denied_permissions": READ + WRITE})
        self.assertIn(("problem", "gs://near: it cannot be read"), [one[:2] for one in self.find("--bucket", "near")["bucket"]])

    def test_buckets_of_others(self):
        (found,) = self.find("--logdir", "s3://there/runs")["bucket"]
        self.assertEqual(found, ("note", "s3://there/runs: not examined, as it is not of Cloud Storage",
                                 "whether it can be read: sluice data ls s3://there/runs"))

    def test_the_buckets_and_folders_of_a_config(self):
        self.google()
        config = self.work / "train.toml"
        config.write_text('train = ["gs://near/a-{0000..0009}.tar", "/local/b.tar"]\nlogdir = "logs/here"\n[train_more]\ntest = "gs://far/t.tar"\n')
        found = self.find("--config", config)
        self.assertEqual([one[1] for one in found["bucket"]],
                         ["gs://far: it can be read and written", "gs://near: it can be read and written"])
        self.assertTrue(any(one[1].startswith("logs/here: ") for one in found["disk"]), found["disk"])
        config.write_text("train = [")
        self.assertIn("train.toml:1: ", self.run_doctor("--config", config, status=2).stderr)

    def hold(self, chip):
        """A process that holds a chip."""
        process = subprocess.Popen([sys.executable, "-c", "import sys; f = open(sys.argv[1]); print(flush=True); sys.stdin.read()",
                                    self.root / f"dev/accel{chip}"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        process.stdout.readline()
        return process

    def test_fix_ends_what_holds_a_chip_after_asking(self):
        self.add_chips()
        process = self.hold(1)
        (held,) = self.find()["holder"]
        self.assertIn(f"is held by process {process.pid} ", held[1])
        done = self.run_doctor("--fix", status=2)  # nobody can be asked
        self.assertIn("Nothing was done: say --yes", done.stderr)
        self.assertIsNone(process.poll())
        other = subprocess.Popen(["sleep", "1000"])
        self.addCleanup(other.wait)
        self.addCleanup(other.kill)
        done = self.run_doctor("--fix", "--yes", "--grace", "3", status=0)
        self.assertRegex(done.stdout, rf"\b{process.pid}\b")
        self.assertIsNotNone(wait_for("its end", lambda: process.poll() is not None))
        self.assertIsNone(other.poll())  # and nothing else
        self.assertIn("no process of yours holds a chip", self.run_doctor("--fix", "--yes", status=0).stderr)

    def test_flags_that_do_not_fit(self):
        self.run_doctor("--yes", status=2)
        self.run_doctor("--fix", "--json", status=2)
        self.assertIn("only buckets of Cloud Storage can be examined", self.run_doctor("--bucket", "s3://there/x", status=2).stderr)
        self.assertIn("found a folder", self.run_doctor("--config", self.work, status=2).stderr)

    def test_hosts(self):
        tools = self.work / "tools"
        tools.mkdir()
        (tools / "ssh").write_text(f'#!/bin/sh\nexec {sys.executable} -B {TESTS}/pod/false_ssh.py "$@"\n')
        (tools / "ssh").chmod(0o755)
        (self.work / "plan.json").write_text(json.dumps({"b": [["refuse", 0]] * 9}))
        (self.work / "a/.local/bin").mkdir(parents=True)
        (self.work / "a/.local/bin/sluice").symlink_to(SLUICE)
        hosts = {"FALSE_HOSTS": str(self.work), "PATH": f"{tools}:{os.environ['PATH']}", "SLUICE_PLUGINS": "x"}
        done = self.run_doctor("--hosts", "a,b", status=1, **hosts)
        self.assertRegex(done.stdout, r"(?s)^a\n.*problem +variables +SLUICE_PLUGINS.*\nb\nproblem +host +cannot reach b by ssh")
        both = json.loads(self.run_doctor("--hosts", "a,b", "--json", status=1, **hosts).stdout)["hosts"]
        self.assertEqual([host["host"] for host in both], ["a", "b"])

    def test_it_begins_at_once(self):
        """The first finding comes before anything is loaded or asked: with a network that hangs it is there."""
        process = subprocess.Popen([SLUICE, "doctor"], env=self.environment, stdout=subprocess.PIPE, text=True, cwd=self.work)
        self.addCleanup(process.wait)
        self.assertRegex(process.stdout.readline(), "chips")
        process.send_signal(signal.SIGKILL)
        process.stdout.close()


if __name__ == "__main__":
    unittest.main()
