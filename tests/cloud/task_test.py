"""task_test.py PROGRAM: the tasks of an environment on the workers of its TPU, and how their runs are found again, with a
fake of Google's services and workers behind a real sshd. Status 77: not possible here."""

import signal
import subprocess
import unittest
import urllib.request

import remote_test
from google_fake_support import assert_all_valid, mutations
from remote_test import World, wait_for

TPU = "sluice-lab-tpu"
ENVIRONMENT = """
[env]
name = "lab"
project = "p"
zones = ["us-central2-b"]
[tpu]
type = "v4-32"
"""
BUCKET = """
[bucket]
name = "bucket-of-lab"
"""


class Tasks(World):
    NODES = {TPU: range(4)}

    def task(self, *arguments, tasks="", bucket=BUCKET, start=False):
        """`sluice task run` with the environment's file in the folder where it is looked for."""
        (self.work / "sluice-env.toml").write_text(f"{ENVIRONMENT}{bucket}[tasks]\n{tasks}\n")
        return (self.start if start else self.run_program)("task", "run", *arguments)

    def task_done(self, *arguments, **how):
        status, out, err = self.task(*arguments, **how)
        self.assertEqual(status, 0, err)
        return out

    def lines(self, out):
        """[worker] -> what it wrote."""
        return [line.split("] ", 1)[1] for line in sorted(out.splitlines(), key=lambda line: line.split("[")[1])]

    def test_install_and_test_run_on_all_workers(self):
        out = self.task_done("install", tasks="""install = '''echo "$TPU_WORKER_ID of $BUCKET" | tee installed'''""")
        self.assertEqual(self.lines(out), [f"{n} of gs://bucket-of-lab" for n in range(4)])
        for n in range(4):
            self.assertEqual((self.workers.home(n) / "installed").read_text(), f"{n} of gs://bucket-of-lab\n")
        test = "test = 'cat installed; [ $TPU_WORKER_ID != 2 ] || exit 5'"
        status, out, err = self.task("test", tasks=test)
        self.assertEqual(status, 5, err)
        self.assertIn("exit status 5", err)
        status, out, err = self.task("test", "--worker", "0,3", tasks=test)
        self.assertEqual(status, 0, err)
        self.assertEqual(len(out.splitlines()), 2)
        assert_all_valid(self.google.log())

    def git(self, folder, *arguments):
        return subprocess.run(["git", "-C", folder, "-c", "user.name=Me", "-c", "user.email=me@example.com",
                               *arguments], check=True, capture_output=True, text=True).stdout

    def test_update_pulls_each_repository(self):
        origin = self.work / "origin"
        origin.mkdir()
        self.git(origin, "init", "-q")
        self.git(origin, "commit", "-q", "--allow-empty", "-m", "one")
        for n in range(4):
            self.git(self.workers.home(n), "clone", "-q", origin, "the code")
        self.git(origin, "commit", "-q", "--allow-empty", "-m", "two")
        self.task_done("update")
        for n in range(4):
            self.assertEqual(self.git(self.workers.home(n) / "the code", "log", "-1", "--format=%s"), "two\n")
        self.git(self.workers.home(1) / "the code", "commit", "-q", "--allow-empty", "-m", "its own")
        self.git(origin, "commit", "-q", "--allow-empty", "-m", "three")
        status, _, err = self.task("update")
        self.assertNotEqual(status, 0)
        self.assertIn(f"worker 1 ({self.workers.address(1)}): exit status", err)
        self.assertIn("fast-forward", err)
        self.assertEqual(self.git(self.workers.home(1) / "the code", "log", "-1", "--format=%s"), "its own\n")

    def put(self, name):
        where = f"{self.google.url}/upload/storage/v1/b/bucket-of-lab/o?uploadType=media&name={name}"
        request = urllib.request.Request(where, method="POST", data=b"1", headers={"Content-Type": "text/plain"})
        urllib.request.urlopen(request).close()

    def test_resume_gets_the_latest_checkpoint(self):
        tasks = """run = '''echo "from ${CHECKPOINT:-the beginning}"'''"""
        status, _, err = self.task("resume", tasks=tasks)
        self.assertEqual(status, 1)
        self.assertIn("bucket-of-lab", err)
        self.google.google("POST", "/storage/v1/b?project=p", {"name": "bucket-of-lab", "location": "US-CENTRAL2"})
        status, _, err = self.task("resume", tasks=tasks)
        self.assertEqual(status, 1)
        self.assertIn("there is no checkpoint in gs://bucket-of-lab to resume from", err)
        for name in ("runs%2Fb%2Flast", "runs%2Fa%2Flast", "runs%2Fc%2Fmetrics.jsonl"):
            self.put(name)
        self.assertEqual(self.lines(self.task_done("run", tasks=tasks)), ["from the beginning"] * 4)
        self.assertEqual(self.lines(self.task_done("resume", tasks=tasks)), ["from gs://bucket-of-lab/runs/a"] * 4)
        out = self.task_done("resume", tasks=tasks + """\nresume = 'echo "again: $CHECKPOINT in $BUCKET"'""")
        self.assertEqual(self.lines(out), ["again: gs://bucket-of-lab/runs/a in gs://bucket-of-lab"] * 4)
        out = self.task_done("run", "--log-bucket", "gs://bucket-of-lab/logs", tasks=tasks)
        names = [entry["name"] for entry in self.google.google("GET", "/storage/v1/b/bucket-of-lab/o")[1]["items"]]
        self.assertEqual(len([name for name in names if name.startswith("logs/") and "worker-" in name]), 4)
        assert_all_valid(self.google.log())

    def begin_detached(self, line):
        """A run that waits for the file `go` on each worker, and then does `line`."""
        for n in range(4):
            (self.workers.home(n) / "go").unlink(missing_ok=True)
        tasks = f"run = '''echo begun; until [ -e go ]; do sleep 0.1; done; {line}'''"
        self.assertIn("all workers run", self.task_done("run", "--detach", tasks=tasks))

    def go(self):
        for n in range(4):
            (self.workers.home(n) / "go").touch()

    def attach(self):
        process = self.start("tpu", "attach", TPU)
        self.assertIn("attached; Ctrl-C ends it", process.stderr.readline())
        return process

    def test_a_detached_task_is_found_by_the_tpu(self):
        self.begin_detached("echo going on $TPU_WORKER_ID")
        self.assertEqual(self.lines(self.done("tpu", "logs", TPU)), ["begun"] * 4)
        follower = self.start("tpu", "logs", TPU, "--worker", "1", "--follow")
        attached = self.attach()
        self.go()
        status, out, err = self.finish(attached)
        self.assertEqual(status, 0, err)
        self.assertEqual(self.lines(out), [f"going on {n}" for n in range(4)])
        self.assertEqual(self.finish(follower)[:2], (0, "begun\ngoing on 1\n"))
        self.assertEqual(self.finish(self.start("tpu", "attach", TPU))[0], 0)  # it is over, and well

    def test_attach_ends_with_the_failure_and_by_ctrl_c(self):
        self.begin_detached("exit $((3 * (TPU_WORKER_ID == 2)))")
        attached = self.attach()
        self.go()
        status, _, err = self.finish(attached)
        self.assertEqual(status, 3, err)
        self.assertIn("exit status 3", err)
        self.begin_detached("echo never")
        attached = self.attach()
        attached.send_signal(signal.SIGINT)
        status, _, err = self.finish(attached)
        self.assertEqual(status, 130, err)
        self.assertNotIn("never", self.done("tpu", "logs", TPU))

    def test_attach_takes_the_place_of_a_client_that_was_killed(self):
        line = "echo begun; until [ -e over ]; do sleep 0.1; done; echo over; exit 6"
        process = self.task("run", tasks=f"run = '{line}'", start=True)
        for _ in range(4):
            self.assertIn("begun", process.stdout.readline())
        process.kill()
        self.finish(process)
        attached = self.start("tpu", "attach", TPU)
        self.assertIn("taking its client's place", attached.stderr.readline())
        for n in range(4):
            (self.workers.home(n) / "over").touch()
        status, out, err = self.finish(attached)
        self.assertEqual(status, 6, err)
        self.assertIn("] over\n", out)
        self.assertIn("exit status 6", err)

    def test_what_cannot_be(self):
        before = self.google.last_number()
        for arguments, how, words in [
                (("instal",), {}, "they are install, test, update, run, resume; did you mean install?"),
                (("test",), {}, 'add `test = "COMMAND"` to its section [tasks]'),
                (("resume",), {"tasks": "run = 'true'", "bucket": ""}, "no section [bucket], where a checkpoint could be"),
                (("run", "--file", "none.toml"), {}, "none.toml"),
                (("run", "--worker", "4"), {"tasks": "run = 'true'"}, "there is no worker 4"),
                (("run",), {"tasks": "runn = 'true'"}, "run")]:
            status, _, err = self.task(*arguments, **how)
            self.assertIn(status, (1, 2), err)
            self.assertIn(words, err)
            self.assertNotIn("terminate called", err)
        out = self.task_done("run", "--dry-run", tasks="run = 'echo hello'")
        self.assertIn("echo hello", out)
        self.assertIn(f"{TPU}-w-3", out)
        (self.work / "sluice-env.toml").write_text(ENVIRONMENT.replace("lab", "other") + "[tasks]\nrun = 'true'\n")
        status, _, err = self.run_program("task", "run", "run")
        self.assertEqual(status, 1)
        self.assertIn("sluice-other-tpu", err)
        self.assertIn("`sluice env apply sluice-env.toml` makes it", err)
        changes = [change for change in mutations(self.google.log(before)) if "metadata" not in str(change[2])]
        self.assertEqual(changes, [])


if __name__ == "__main__":
    remote_test.main()
