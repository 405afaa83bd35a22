"""remote_test.py PROGRAM: what `sluice tpu ssh | scp | run | ps | kill | guard` do on workers behind a real sshd, with a fake
of Google's services. Status 77: not possible here. `sluice keep`: keep_test.py."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import uuid
from pathlib import Path

from google_fake_support import GoogleFake, assert_all_valid, test_python
from workers import Metadata, Workers, enter_network, why_not

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "common"))
from waiting import DEADLINE, wait_for  # noqa: E402

PROGRAM = str(Path(sys.argv[1]).resolve()) if len(sys.argv) > 1 else ""
ZONE = "us-central2-b"
TOKEN = "ya29.secret-of-the-user"
FAST = {"timing": {"default": {"polls": 0, "seconds": 0.05}}}


class World(unittest.TestCase):
    """One fake, its workers and a home of the user's for all tests of a class."""
    WORKERS = 4
    NODES = {"v4": range(4)}  # name -> its workers
    TYPES = {1: "v4-8", 2: "v4-16", 4: "v4-32"}
    QUEUED = ()  # of NODES those that a queue entry makes
    SLICES = {}  # name -> its slices, of one worker each, which a queue entry makes
    GROUPS = {}  # name -> flags of `sluice tpu create`: those that are groups of Compute Engine's machines
    GROUP_TYPES = {1: "tpu7x-8", 2: "tpu7x-16"}

    @classmethod
    def setUpClass(cls):
        cls.work = Path(tempfile.mkdtemp(prefix="sluice-remote-"))
        cls.addClassCleanup(shutil.rmtree, cls.work, True)
        cls.mark = f"SLUICE_TEST_MARK={uuid.uuid4()}"
        cls.workers = Workers(cls.work, cls.WORKERS, cls.mark)
        cls.addClassCleanup(cls.workers.close)
        cls.metadata = Metadata()
        cls.addClassCleanup(cls.metadata.close)
        hosts = {name: cls.workers.described(numbers) for name, numbers in cls.NODES.items()}
        for name, count in cls.SLICES.items():
            hosts.update({f"{name}-{number}": [hosts[name][number]] for number in range(count)})
        for name in cls.GROUPS:
            hosts[f"{name}-[a-z0-9]{{4}}"] = hosts.pop(name)
        cls.google = GoogleFake({"projects": ["p"], **FAST, "hosts_of": hosts})
        cls.addClassCleanup(cls.google.stop)
        cls.workers.follow(cls.google)
        (cls.work / "me").mkdir()
        cls.environment = {**os.environ, **cls.google.environment(), "HOME": str(cls.work / "me"), "USER": "root",
                           "XDG_STATE_HOME": str(cls.work / "me/state"), "SLUICE_GOOGLE_PROJECT": "p",
                           "SLUICE_GOOGLE_TOKEN": TOKEN, "GCE_METADATA_HOST": cls.metadata.host,
                           "SLUICE_CLOUD_RETRY": "0.05:0.2:5",
                           "STORAGE_EMULATOR_HOST": cls.google.url.removeprefix("http://")}
        for name in cls.NODES:
            cls.make_group(name) if name in cls.GROUPS else cls.make_node(name)

    @classmethod
    def make_node(cls, name):
        parent, slices = f"projects/p/locations/{ZONE}", cls.SLICES.get(name, 1)
        node = {"acceleratorType": cls.TYPES[len(cls.NODES[name]) // slices], "runtimeVersion": "tpu-ubuntu2204-base",
                "networkConfig": {"enableExternalIps": True}, "labels": {"sluice-env": f"tpu-{name}"}}
        which = {"nodeId": name} if slices == 1 else {"multisliceParams": {"nodeCount": slices, "nodeIdPrefix": name}}
        if name in cls.QUEUED or slices > 1:
            status, answer = cls.google.google("POST", f"/v2/{parent}/queuedResources?queuedResourceId={name}", {
                "tpu": {"nodeSpec": [{"parent": parent, "node": node, **which}]}})
        else:
            status, answer = cls.google.google("POST", f"/v2/{parent}/nodes?nodeId={name}", node)
        assert status == 200, answer
        names = [name] if slices == 1 else [f"{name}-{number}" for number in range(slices)]
        wait_for(f"{name} to be READY", lambda: all(cls.node(one).get("state") == "READY" for one in names))

    @classmethod
    def make_group(cls, name):
        subprocess.run([PROGRAM, "tpu", "create", name, "--type", cls.GROUP_TYPES[len(cls.NODES[name])], "--zones", ZONE,
                        "--runtime", "projects/ubuntu-os-cloud/global/images/family/ubuntu-2204-lts", *cls.GROUPS[name]],
                       env=cls.environment, check=True, capture_output=True, text=True, timeout=DEADLINE)

    @classmethod
    def node(cls, name):
        cls.google.google("GET", f"/v2/projects/p/locations/{ZONE}/queuedResources")  # time passes by looks
        return cls.google.google("GET", f"/v2/projects/p/locations/{ZONE}/nodes/{name}")[1]

    def start(self, *arguments, **changes):
        process = subprocess.Popen([PROGRAM, *map(str, arguments)], cwd=self.work, env={**self.environment, **changes},
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.end, process)
        return process

    def end(self, process):
        """Of one that a failed test leaves behind."""
        if process.poll() is None:
            process.kill()
            process.wait()
        process.stdout.close()
        process.stderr.close()

    def finish(self, process):
        out, err = process.communicate(timeout=DEADLINE)
        private = (self.work / "me/.ssh/google_compute_engine").read_text().splitlines()[1:3] \
            if (self.work / "me/.ssh/google_compute_engine").exists() else []
        for secret in (TOKEN, Metadata.TOKEN, *private):
            self.assertNotIn(secret, out + err)
        return process.returncode, out, err

    def run_program(self, *arguments, **changes):
        return self.finish(self.start(*arguments, **changes))

    def done(self, *arguments, **changes):
        status, out, err = self.run_program(*arguments, **changes)
        self.assertEqual(status, 0, err)
        return out


class Reach(World):
    WORKERS = 6
    NODES = {"v4": range(4), "group": range(4, 6)}
    GROUPS = {"group": []}

    def test_machines_of_a_group(self):
        """Compute Engine's: each has a key, and host keys of its own."""
        out = self.done("tpu", "run", "group", "--", "sh", "-c", "echo $TPU_WORKER_ID of $TPU_WORKER_HOSTNAMES")
        machines = self.google.things("compute.instances")
        addresses = [machines[name]["body"]["networkInterfaces"][0]["networkIP"] for name in sorted(machines)]
        for n in range(2):
            self.assertIn(f"[{n}] {n} of {','.join(addresses)}\n", out)
        public = (self.work / "me/.ssh/google_compute_engine.pub").read_text().strip()
        for machine in machines.values():
            self.assertIn({"key": "ssh-keys", "value": f"root:{public}"}, machine["body"]["metadata"]["items"])
            self.assertIn(f"compute.{machine['body']['id']} ", (self.work / "me/state/sluice/tpu/known_hosts").read_text())
        before = self.google.last_number()
        home = self.workers.home([self.workers.address(n) for n in (4, 5)].index(addresses[1]) + 4)
        self.assertEqual(self.done("tpu", "ssh", "group", "--worker", "1", "--", "echo $HOME"), f"{home}\n")
        self.assertEqual({entry["method"] for entry in self.google.log(before)}, {"GET"})
        self.assertIn("not for tpu7x-16", self.run_program("tpu", "guard", "group", "--ttl", "1h")[2])
        assert_all_valid(self.google.log())

    def test_a_shell_line_after_the_key_is_in_the_metadata(self):
        before = self.google.last_number()
        self.assertEqual(self.done("tpu", "ssh", "v4", "--", "echo $HOME"), f"{self.workers.home(0)}\n")
        patches = [entry for entry in self.google.log(before) if entry["method"] == "PATCH"]
        public = (self.work / "me/.ssh/google_compute_engine.pub").read_text().strip()
        if patches:  # by whichever test came first
            self.assertEqual(patches[0]["query"], {"updateMask": "metadata"})
            self.assertEqual(list(patches[0]["body"]), ["metadata"])
        self.assertEqual(self.node("v4")["metadata"]["ssh-keys"], f"root:{public}")
        before = self.google.last_number()
        self.assertEqual(self.done("tpu", "ssh", "v4", "--zone", ZONE, "--worker", "2", "--", "sh", "-c",
                                   "echo $HOME 'a  b'"), f"{self.workers.home(2)} a  b\n")
        methods = {entry["method"] for entry in self.google.log(before)}
        self.assertEqual(methods, {"GET"})  # neither the key nor the host keys are asked for again
        self.assertEqual(self.run_program("tpu", "ssh", "v4", "--", "exit 3")[0], 3)
        assert_all_valid(self.google.log())

    def test_a_command_ends_with_its_client(self):
        process = self.start("tpu", "ssh", "v4", "--", "echo begun; exec sleep 1234567")
        self.assertEqual(process.stdout.readline(), "begun\n")
        process.kill()
        self.finish(process)
        wait_for("the command's end", lambda: b"1234567" not in self.commands(), 20)

    def commands(self):
        found = b""
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                found += path.read_bytes()
            except OSError:
                pass
        return found

    def test_files_and_folders_go_both_ways(self):
        folder = self.work / "my folder"
        (folder / "inner").mkdir(parents=True)
        (folder / "inner/file").write_text("one\n")
        (self.work / "single").write_text("two\n")
        self.done("tpu", "scp", folder, self.work / "single", "v4:", "--worker", "all")
        for n in range(4):
            self.assertEqual((self.workers.home(n) / "my folder/inner/file").read_text(), "one\n")
            (self.workers.home(n) / "single").write_text(f"of {n}\n")
        back = self.work / "back"
        self.done("tpu", "scp", "v4:single", "v4:my folder", back, "--worker", "1,3")
        self.assertEqual((back / "worker-3/single").read_text(), "of 3\n")
        self.assertEqual((back / "worker-1/my folder/inner/file").read_text(), "one\n")
        self.done("tpu", "scp", "root@v4:single", self.work / "here")
        self.assertEqual((self.work / "here").read_text(), "of 0\n")
        status, _, err = self.run_program("tpu", "scp", "v4:none", self.work / "here")
        self.assertEqual(status, 1)
        self.assertIn("worker 0: scp ended with status 1", err)

    def test_runs_on_all_workers_in_their_order(self):
        out = self.done("tpu", "run", "v4", "--log-bucket", self.bucket() + "/logs", "--", "sh", "-c",
                        'echo "$TPU_WORKER_ID at $HOME of $TPU_WORKER_HOSTNAMES, $SLUICE_COORDINATOR_ADDRESS"')
        addresses = [self.workers.address(n) for n in range(4)]
        for n in range(4):
            self.assertIn(f"{addresses[n]} [{n}] {n} at {self.workers.home(n)} of {','.join(addresses)}, "
                          f"{addresses[0]}:8476\n", out)
        self.assertEqual(sorted(self.done("tpu", "logs", "v4").splitlines()), sorted(out.splitlines()))
        run = json.loads(self.done("run", "ls", "--json"))[0]
        objects = self.google.google("GET", "/storage/v1/b/logs-of-p/o")[1]["items"]
        self.assertIn("/".join(["logs", run["id"], "worker-3.log"]), {entry["name"] for entry in objects})
        self.assertFalse([entry["name"] for entry in objects if entry["name"].endswith(".part")])
        status, out, err = self.run_program("run", "--tpu", "v4", "--worker", "1-2", "--", "sh", "-c",
                                            "[ $RANK = 1 ] && exit 9; exec sleep 1000")
        self.assertEqual(status, 9, err)
        self.assertIn(f"worker 1 ({addresses[2]}): exit status 9", err)

    def bucket(self):
        self.google.google("POST", "/storage/v1/b?project=p", {"name": "logs-of-p", "location": "US-CENTRAL2"})
        return "gs://logs-of-p"

    def test_a_growing_log_is_put_together_in_the_bucket(self):
        bucket = self.bucket()
        process = self.start("run", "--processes", "1", "--log-bucket", bucket, "--", "sh", "-c",
                             "i=0; while [ $i -lt 400 ]; do i=$((i+1)); echo line $i; sleep 0.005; done")
        wait_for("the run", lambda: "copy-logs" in self.commands().decode(errors="replace"))
        run = json.loads(self.done("run", "ls", "--json"))[0]["id"]
        self.done("run", "copy-logs", run, bucket, "--seconds", "0.2")
        status, _, err = self.finish(process)
        self.assertEqual(status, 0, err)
        request = subprocess.run(["curl", "-s", f"{self.google.url}/storage/v1/b/logs-of-p/o/{run}%2Fworker-0.log?alt=media"],
                                 capture_output=True, text=True, check=True)
        self.assertEqual(request.stdout, "".join(f"line {i + 1}\n" for i in range(400)))

    def test_a_bucket_goes_away_in_the_middle_of_a_run(self):
        for command, workers, status in ((("run", "--processes", 1), 1, 0), (("run", "--processes", 1), 1, 9),
                                         (("keep", "v4", "--poll", "0.3", "--", "run"), 4, 0)):
            with self.subTest(command, status=status), GoogleFake({"projects": ["p"]}) as bucket:
                bucket.google("POST", "/storage/v1/b?project=p", {"name": "logs", "location": "US-CENTRAL2"})
                state, go = self.work / f"state-{command[0]}-{status}", self.work / f"go-{command[0]}-{status}"
                process = self.start(*command, "--log-bucket", "gs://logs", "--", "sh", "-c",
                                     f"echo begun $SLUICE_RESTART; until [ -e {go} ]; do sleep 0.05; done; echo over; exit {status}",
                                     XDG_STATE_HOME=str(state), SLUICE_CLOUD_RETRY="0.01:0.05:0.5",
                                     STORAGE_EMULATOR_HOST=bucket.url.removeprefix("http://"))
                wait_for("the workers", lambda: sum(path.read_text().count("begun")
                                                    for path in state.rglob("worker-*.log")) == workers)
                bucket.stop()
                go.touch()
                ended, _, err = self.finish(process)
                self.assertEqual(ended, status, err)
                folder, = state.glob("sluice/runs/*-*")  # one run alone: it was not started again
                self.assertIn("the logs are not all in gs://logs: ", err)
                self.assertIn(f"all of them are in {folder}", err)
                for number in range(workers):
                    self.assertEqual((folder / f"worker-{number}.log").read_text(), "begun 0\nover\n")

    def test_ps_and_kill(self):
        process = self.start("tpu", "run", "v4", "--worker", "1,2", "--", "sh", "-c",
                             "mkdir -p dev; : >dev/accel0; exec 5>dev/accel0; echo holding; exec sleep 1000")
        wait_for("the holders", lambda: process.stdout.readline() and process.stdout.readline())
        table = json.loads(self.done("tpu", "ps", "v4", "--json"))
        self.assertEqual([len(entry["holders"]) for entry in table], [0, 1, 1, 0])
        holder = table[1]["holders"][0]
        self.assertEqual((holder["user"], holder["own"], holder["command"]), ("root", True, "sleep 1000"))
        self.assertEqual(holder["devices"], [f"{self.workers.home(1)}/dev/accel0"])
        self.assertEqual([len(entry["runs"]) for entry in table], [0, 1, 1, 0])
        status, out, err = self.run_program("tpu", "kill", "v4")
        self.assertEqual(status, 1)
        self.assertIn("--yes", err)
        self.assertIn("sleep 1000", out)
        self.assertIsNone(process.poll())
        self.assertIn("sleep 1000", self.done("tpu", "kill", "v4", "--yes", "--grace", "2"))
        self.assertEqual([len(entry["holders"]) for entry in json.loads(self.done("tpu", "ps", "v4", "--json"))], [0] * 4)
        self.finish(process)

    def test_a_changed_host_key_is_refused(self):
        self.done("tpu", "ssh", "v4", "--worker", "3", "--", "true")
        self.workers.stop(3)
        kept = {path: path.read_bytes() for path in self.work.glob("host_key3*")}
        self.workers.make_host_key(3)
        self.workers.start(3)
        try:
            status, _, err = self.run_program("tpu", "ssh", "v4", "--worker", "3", "--", "true")
            self.assertEqual(status, 255)
            self.assertIn("REMOTE HOST IDENTIFICATION HAS CHANGED", err)
            status, _, err = self.run_program("tpu", "run", "v4", "--", "true")
            self.assertEqual(status, 1)
            self.assertIn("its host key has changed: if that is right, remove the old one with `ssh-keygen -f", err)
        finally:
            self.workers.stop(3)
            for path, content in kept.items():
                path.write_bytes(content)
            self.workers.start(3)

    def test_what_cannot_be(self):
        for arguments, words in [
                (("tpu", "ssh", "none", "--", "true"), "none"),
                (("tpu", "ssh", "v4", "--worker", "4", "--", "true"), "there is no worker 4; the slice has workers 0 to 3"),
                (("tpu", "scp", "a", "b"), "NAME:PATH"),
                (("run", "--tpu", "v4", "--hosts", "a", "--", "true"), "one of --tpu NAME"),
                (("run", "--tpu", "v4", "--log-bucket", "gs://no-such-bucket", "--", "true"), "no-such-bucket"),
                (("keep", "v4", "--", "run", "--detach", "--", "true"), "--detach is not for a run that is kept"),
                (("keep", "v4", "--", "run", "--lese", "2", "--", "true"), "unknown flag --lese; did you mean --lease? See sluice run --help."),
                (("keep", "v4", "--", "run", "--lease", "two", "--", "true"), "--lease: expected a whole number above 0, found 'two'"),
                (("keep", "v4", "--", "run", "--sync", "/none", "--", "true"), "--sync /none is not a folder"),
                (("keep", "v4", "--", "run", "--image", "x", "--", "true"), "--image is for --sbatch or --jobset"),
                (("keep", "v4", "--", "run", "echo", "--", "true"), 'expected flags and then --, found "echo"'),
                (("keep", "v4", "--spot", "--", "run", "--", "true"), "--spot is for a TPU that keep creates: give --type too"),
                (("keep", "v4", "--zones", "moon", "--", "run", "--", "true"), "'moon' is not a zone"),
                (("keep", "none", "--", "run", "--", "true"), "sluice tpu create none")]:
            status, _, err = self.run_program(*arguments)
            self.assertIn(status, (1, 2), err)
            self.assertIn(words, err)
        dry = self.done("run", "--tpu", "v4", "--dry-run", "--", "echo", "hello")
        self.assertIn("v4-w-3", dry)


class Slices(World):
    """Several slices run one program: the slices of a queue entry, and single slices by their names."""
    WORKERS = 6
    NODES = {"pair": range(2), "a": [2], "b": [3], "other": range(4, 6)}
    SLICES = {"pair": 2}
    WHERE = ("sh", "-c", "echo worker $TPU_WORKER_ID of $TPU_WORKER_HOSTNAMES, slice ${MEGASCALE_SLICE_ID-none} of "
             "${MEGASCALE_NUM_SLICES-none} at ${MEGASCALE_COORDINATOR_ADDRESS-none} $MEGASCALE_PORT, $TPU_ACCELERATOR_TYPE")

    def assert_two_slices(self, out, numbers):
        first, second = (self.workers.address(number) for number in numbers)
        for slice_id, own in enumerate((first, second)):
            self.assertIn(f"{own} [{slice_id}] worker 0 of {own}, slice {slice_id} of 2 at {first}:8080 8080, v4-8\n", out)

    def test_each_worker_learns_its_slice(self):
        self.assert_two_slices(self.done("tpu", "run", "pair", "--", *self.WHERE), (0, 1))
        self.assert_two_slices(self.done("run", "--tpu", "b,a", "--", *self.WHERE), (3, 2))
        for name in ("a", "b", "b,a"):
            self.assertIn("slice 1 of 2", self.done("tpu", "logs", name))
        chosen = self.workers.address(1)
        self.assertIn(f"{chosen} [0] worker 0 of {chosen}, slice none of none at none , \n",
                      self.done("run", "--tpu", "pair", "--use-slices", "1", "--", *self.WHERE))
        self.assertIn("worker 1 of slice 1", self.done("run", "--tpu", "pair", "--dry-run", "--", "true"))
        assert_all_valid(self.google.log())

    def test_slices_that_do_not_fit(self):
        for arguments, words in [
                (("run", "--tpu", "a,other"), "the slices of a run must be of one type: a is a v4-8, and other is a v4-16"),
                (("run", "--tpu", "a,a"), "the TPU a comes twice"),
                (("run", "--tpu", "pair", "--use-slices", "2"), "pair in us-central2-b has no slice 2: it has slices 0 to 1"),
                (("run", "--tpu", "a", "--use-slices", "1"), "has no slice 1: it has one slice, 0"),
                (("run", "--tpu", "a,b", "--use-slices", "1"), "chooses among the slices of one name"),
                (("run", "--tpu", "a", "--slices", "2"), "--slices divides --hosts"),
                (("run", "--hosts", "x,y,z", "--slices", "2"), "3 hosts cannot be divided among 2 slices"),
                (("run", "--processes", "2", "--use-slices", "0"), "--use-slices is for --tpu NAME")]:
            status, _, err = self.run_program(*arguments, "--", "true")
            self.assertIn(status, (1, 2), err)
            self.assertIn(words, err)
        status, _, err = self.run_program("keep", "pair", "--min-slices", "3", "--", "run", "--", "true")
        self.assertEqual(status, 1, err)
        self.assertIn("--min-slices 3: the TPU pair has only 2 slices", err)

    def test_a_lost_slice_is_named_and_left_out(self):
        self.google.preempt("pair-1", "PREEMPTED")
        try:
            status, _, err = self.run_program("run", "--tpu", "pair", "--", "true")
            self.assertEqual(status, 1)
            self.assertIn("PREEMPTED", err)
            self.assertIn("pair-1", err)
            status, _, err = self.run_program("run", "--tpu", "pair", "--use-slices", "0,1", "--", "true")
            self.assertIn("pair-1 in us-central2-b is PREEMPTED, expected READY", err)
            self.assertIn("worker 0 of", self.done("run", "--tpu", "pair", "--use-slices", "0", "--", *self.WHERE))
        finally:
            self.google.call("POST", "edit", {"name": "nodes/pair-1", "body": {"state": "READY"}})


class Guard(World):
    WORKERS = 4
    NODES = {"ttl": [0], "idle": [1], "forbidden": [2], "busy": [3]}

    def test_limits_hold_without_the_client(self):
        speed = {"SLUICE_TEST_GUARD_SPEED": "1000"}
        status, _, err = self.run_program("tpu", "guard", "ttl", "--ttl", "30m", **speed)
        self.assertEqual(status, 0, err)
        status, _, err = self.run_program("tpu", "guard", "idle", "--idle", "20m", **speed)
        self.assertEqual(status, 0, err)
        wait_for("both to be deleted", lambda: not {"ttl", "idle"} & self.names())
        deletions = [entry for entry in self.google.log() if entry["method"] == "DELETE"]
        self.assertLessEqual({"ttl", "idle"}, {entry["path"].rsplit("/", 1)[1] for entry in deletions})
        self.assertTrue(all(entry["had_authorization"] for entry in deletions))
        self.google.set(denied_permissions=["tpu.nodes.delete"])
        status, _, err = self.run_program("tpu", "guard", "forbidden", "--ttl", "8h")
        self.assertEqual(status, 1)
        self.assertIn("machine@p.iam.gserviceaccount.com lacks tpu.nodes.delete", err)
        self.google.set(denied_permissions=[])
        self.done("tpu", "guard", "forbidden", "--stop")
        for path in self.work.glob("home*/state/sluice/guard/*"):
            if path.is_file():
                self.assertNotIn(Metadata.TOKEN, path.read_text())
        assert_all_valid(self.google.log())

    def names(self):
        return {name.rsplit("/", 1)[1] for name in self.google.things("tpu.nodes")}

    def test_a_run_is_not_idle(self):
        # Minutes of the guard's clock are 60 ms: the run outlasts its limit many times.
        process = self.start("tpu", "run", "busy", "--", "sh", "-c", "echo begun; sleep 4")
        self.assertIn("begun", process.stdout.readline())
        self.done("tpu", "guard", "busy", "--idle", "20m", SLUICE_TEST_GUARD_SPEED="1000")
        self.assertEqual(self.finish(process)[0], 0)
        wait_for("its end once it is idle", lambda: "busy" not in self.names())


def main():
    """Of a file of such tests: its tests, or status 77."""
    reason = why_not()
    if reason is None and test_python() is None:
        reason = "google-api-python-client is not installed"
    if reason:
        print(f"skipped: {reason}")
        sys.exit(77)
    enter_network()
    sys.argv.pop(1)
    unittest.main()


if __name__ == "__main__":
    main()
