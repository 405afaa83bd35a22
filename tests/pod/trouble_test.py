"""trouble_test.py PROGRAM: `sluice run` where something is wrong around it: full disks, killed helpers, clocks that differ,
ports that are taken, a client that dies early, workers that write to the terminal what it would obey."""

import json
import os
import pty
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import unittest
import uuid
from pathlib import Path

from false_bucket import Bucket
from support import DEADLINE, LauncherTest, marked_processes, wait_for


def sh(script):
    return ("--", "sh", "-c", script)


def sleepers(seconds):
    """The processes `sleep SECONDS`, whatever their environment."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if path.read_bytes() == f"sleep\0{seconds}\0".encode():
                found.append(int(path.parent.name))
        except OSError:
            pass
    return found


class TroubleTest(LauncherTest):
    """Hosts are folders of this machine, behind false_ssh.py."""

    def setUp(self):
        super().setUp()
        self.hosts, self.tools = self.work / "hosts", self.work / "tools"
        self.hosts.mkdir()
        self.tools.mkdir()
        self.plan({})
        self.tool(self.tools, "ssh", f'exec {sys.executable} {Path(__file__).parent / "false_ssh.py"} "$@"')
        self.environment |= {"FALSE_HOSTS": str(self.hosts), "PATH": f"{self.tools}:{os.environ['PATH']}"}

    def plan(self, plan):
        (self.hosts / "plan.json").write_text(json.dumps(plan))

    def tool(self, folder, name, script):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(0o755)

    def listed(self):
        status, out, err = self.run_program("ls", "--json")
        self.assertEqual(status, 0, err)
        return json.loads(out)

    def worker_folder(self):
        return wait_for("a supervisor", lambda: list((self.state / "sluice/workers").glob("*/0-0/supervisor")))[0].parent


class Disks(TroubleTest):
    def on_small_disk(self, folder, size, *arguments, then="exec"):
        """A run that finds a file system of this size at the folder; only it sees that."""
        folder.mkdir(parents=True, exist_ok=True)
        own = ("unshare", "--mount") if os.geteuid() == 0 else ("unshare", "--user", "--map-root-user", "--mount")
        if subprocess.run([*own, "mount", "-t", "tmpfs", "tmpfs", folder], capture_output=True).returncode != 0:
            self.skipTest("no file system can be mounted here")
        script = f'mount -t tmpfs -o size={size} tmpfs "$0" && {then} "$@"'
        if then != "exec":
            script += f'; status=$?; "$1" run ls --json >{self.work}/listed; exit $status'
        return self.start(*arguments, prefix=(*own, "sh", "-c", script, folder))

    def on_host(self, *arguments, size="400k"):
        return self.on_small_disk(self.hosts / "a/state", size, "--hosts", "a", *arguments)

    def test_of_a_host_while_the_worker_writes(self):
        status, _, err = self.finish(self.on_host(*sh("head -c 3000000 /dev/zero | tr '\\0' x; echo over; exit 7")))
        self.assertEqual(status, 7, err)
        self.assertIn("worker 0 (a): no space is left on that host", err)
        self.assert_nothing_left()

    def test_of_a_host_and_ctrl_c(self):
        for last in (signal.SIGINT, signal.SIGKILL):  # of the client
            process = self.on_host("--lease", 1, "--grace", 2, *sh(
                f"cat /dev/zero >$XDG_STATE_HOME/fill; touch {self.work}/ready; exec sleep 1000"))
            wait_for("the worker", (self.work / "ready").exists)
            process.send_signal(last)
            status, _, err = self.finish(process)
            self.assertEqual(status, 130 if last == signal.SIGINT else -signal.SIGKILL, err)
            self.assert_nothing_left()
            (self.work / "ready").unlink()
            shutil.rmtree(self.hosts / "a")

    def test_of_a_host_from_the_beginning(self):
        status, _, err = self.finish(self.on_host("--", "true", size="16k"))
        self.assertEqual(status, 1)
        self.assertIn("on this host (is its disk full?)", err)
        self.assert_nothing_left()

    def test_of_a_host_that_gets_a_folder(self):
        folder = self.work / "to-copy"
        folder.mkdir()
        (folder / "large").write_bytes(os.urandom(1_000_000))
        status, _, err = self.finish(self.on_small_disk(self.hosts / "a", "400k", "--hosts", "a", "--sync", folder,
                                                        "--chdir", "there", "--", "true"))
        self.assertEqual(status, 1, err)
        self.assertRegex(err, r"a: tar: .*\. The disk is full in there of that host \(--chdir\): free some space there")
        self.assert_nothing_left()

    def test_of_this_machine(self):
        for after, expected in (("", 3), ("; rm $XDG_STATE_HOME/fill", 4)):
            status, _, err = self.finish(self.on_small_disk(self.state, "700k", "--processes", 1, *sh(
                f"cat /dev/zero >$XDG_STATE_HOME/fill; echo over{after}; exit {expected}")))
            self.assertEqual(status, expected, err)
            self.assert_nothing_left()

    def test_of_the_client(self):
        process = self.on_small_disk(self.state, "600k", "--hosts", "a", *sh(
            "head -c 1000000 /dev/zero | tr '\\0' x; exit 3"), then="")
        status, out, err = self.finish(process)
        self.assertEqual(status, 3, err)
        self.assertEqual(out.count("x"), 1_000_000)
        self.assertIn("cannot write the log of worker 0 any longer: No space left on device", err)
        self.assertIn("the rest of it is on a, in ", err)
        log = list((self.hosts / "a/state/sluice/workers").glob("*/0-0/log"))
        self.assertEqual([path.stat().st_size for path in log], [1_000_000])
        self.assertEqual([(run["state"], run["exit_status"]) for run in json.loads((self.work / "listed").read_text())],
                         [("failed", 3)])
        self.assert_nothing_left()


class Contained(TroubleTest):
    """No process of a worker stays, whichever of those that look after it are killed."""

    def setUp(self):
        super().setUp()
        self.seconds = f"{100_000 + os.getpid()}.{uuid.uuid4().int % 10**9}"
        self.addCleanup(lambda: [os.kill(pid, signal.SIGKILL) for pid in sleepers(self.seconds)])
        self.daemon = f"(env -i setsid sleep {self.seconds} &); "

    def assert_nothing_left(self):
        super().assert_nothing_left()
        wait_for("the daemon's end", lambda: not sleepers(self.seconds), 10)

    def test_a_daemon_that_cleaned_its_environment(self):
        status, _, err = self.run_program("--processes", 1, *sh(self.daemon + "exit 0"))
        self.assertEqual(status, 0, err)
        self.assert_nothing_left()
        process = self.start("--processes", 1, "--grace", 1, *sh(
            f"trap '' INT TERM; {self.daemon} echo ready; while :; do sleep 0.1; done"))
        self.wait_for_lines_of_last(1, "ready")
        self.assertTrue(sleepers(self.seconds))
        process.send_signal(signal.SIGINT)
        self.assertEqual(self.finish(process)[0], 130)
        self.assert_nothing_left()

    def wait_for_lines_of_last(self, count, pattern):
        wait_for(pattern, lambda: sum(path.read_text().count(pattern) for path in
                                      (self.state / "sluice/runs").glob("*/merged.log")) >= count)

    def helpers(self):
        """By their names, the processes that look after the one worker."""
        supervisor, _, watcher, ticker = (self.worker_folder() / "supervisor").read_text().split()
        keeper = Path(f"/proc/{supervisor}/stat").read_text().rsplit(")", 1)[1].split()[1]
        return {"keeper": int(keeper), "supervisor": int(supervisor), "watcher": int(watcher), "ticker": int(ticker)}

    def test_killed_helpers(self):
        for name, reason in (("watcher", "a process of its supervisor was killed"),
                             ("ticker", "a process of its supervisor was killed"),
                             ("supervisor", "it is lost: its supervisor was killed")):
            with self.subTest(name):
                process = self.start("--processes", 1, "--lease", 3, *sh(self.daemon + "echo ready; exec sleep 1000"))
                wait_for("the daemon", lambda: sleepers(self.seconds))
                os.kill(self.helpers()[name], signal.SIGKILL)
                status, _, err = self.finish(process)
                self.assertEqual(status, 1, err)
                self.assertIn(reason, err)
                self.assert_nothing_left()

    def test_two_helpers_killed_together(self):
        process = self.start("--processes", 1, *sh(self.daemon + "echo ready; exec sleep 1000"))
        wait_for("the daemon", lambda: sleepers(self.seconds))
        helpers = self.helpers()
        for name in ("watcher", "ticker"):
            os.kill(helpers[name], signal.SIGSTOP)  # so that none sees the other's end
        for name in ("watcher", "ticker"):
            os.kill(helpers[name], signal.SIGKILL)
        status, _, err = self.finish(process)
        self.assertEqual(status, 1, err)
        self.assertIn("a process of its supervisor was killed", err)
        self.assert_nothing_left()

    def test_a_killed_ticker_of_a_detached_run(self):
        status, _, err = self.run_program("--detach", "--processes", 1, *sh(self.daemon + "exec sleep 1000"))
        self.assertEqual(status, 0, err)
        run = json.loads((self.only_run() / "run.json").read_text())
        os.kill(run["client"], signal.SIGKILL)
        os.kill(self.helpers()["ticker"], signal.SIGKILL)
        self.assert_nothing_left()
        self.assertIn("a process of its supervisor was killed", self.run_program("attach")[2])

    def test_a_killed_keeper(self):
        process = self.start("--processes", 1, *sh(self.daemon + "echo ready; while [ ! -e end ]; do sleep 0.1; done"))
        wait_for("the daemon", lambda: sleepers(self.seconds))
        os.kill(self.helpers()["keeper"], signal.SIGKILL)
        (self.work / "end").touch()
        status, _, err = self.finish(process)
        self.assertEqual(status, 0, err)
        self.assert_nothing_left()

    def test_where_it_is_impossible_that_is_said(self):
        tools = self.work / "few"
        tools.mkdir()
        for name in ("cat cut date dd find grep head mkdir mkfifo mv rm rmdir setsid sh sleep sort tail touch tr env").split():
            (tools / name).symlink_to(shutil.which(name))
        self.environment["PATH"] = str(tools)
        status, _, err = self.run_program("--processes", 3, *sh("setsid sleep 1000 & exit 0"))
        self.assertEqual(status, 0, err)
        self.assertEqual(err.count("this host cannot contain what a worker starts"), 1, err)
        self.assert_nothing_left()


class Around(TroubleTest):
    def test_clocks_that_are_hours_apart(self):
        self.tool(self.hosts / "a/first", "date", 'exec /bin/date -d "3 hours" "$@"')
        self.tool(self.hosts / "c/first", "date", 'exec /bin/date -d "2 days ago" "$@"')
        status, _, err = self.run_program("--hosts", "a,b,c", *sh(
            f'case $RANK in 0) exit 3 ;; *) first={self.hosts}/a/state/sluice/workers/$SLUICE_RUN_ID/0-0/ended; '
            f'while [ ! -e $first ]; do sleep 0.01; done; sleep 0.3; exit 4 ;; esac'))
        self.assertEqual(status, 3, err)
        for host, ahead, how in (("a", 3 * 3600, "ahead of"), ("c", -2 * 24 * 3600, "behind")):
            found = re.search(f"the clock of {host} is ([0-9]+) s {how} this machine's; times of failures are corrected", err)
            self.assertTrue(found, err)
            self.assertLess(abs(int(found.group(1)) - abs(ahead)), 30)
        for ending in self.listed_endings():
            self.assertLess(abs(ending["time"] - time.time()), 60)

    def listed_endings(self):
        return [ending for ending in json.loads((self.only_run() / "run.json").read_text())["endings"] if ending]

    def slow_sync(self):
        (self.work / "folder").mkdir(exist_ok=True)
        (self.work / "folder/large").write_bytes(os.urandom(20_000_000))
        self.plan({"a": [["slow", 0]] * 9})
        return self.start("--hosts", "a", "--sync", self.work / "folder", "--", "true")

    def calls(self):
        return [path for path in self.hosts.glob("a/call-*") if path.read_text() not in ("", "0")]

    def test_ctrl_c_while_a_folder_is_copied(self):
        process = self.slow_sync()
        wait_for("the copying", lambda: len(self.calls()) > 1)  # after the host was asked what it lacks
        self.assertTrue((self.only_run() / "sync.tar").exists())
        process.send_signal(signal.SIGINT)
        status, _, err = self.finish(process)
        self.assertEqual(status, 130, err)
        self.assertEqual(list(self.only_run().glob("sync*")), [])

    def test_ctrl_c_while_a_folder_is_packed(self):
        self.tool(self.tools, "tar", f'[ "$4" = /dev/null ] && exec {shutil.which("tar")} "$@"; '
                                      f'touch {self.work}/packing "$4"; exec sleep 1000')
        process = self.slow_sync()
        wait_for("the packing", (self.work / "packing").exists)
        process.send_signal(signal.SIGINT)
        status, _, err = self.finish(process)
        self.assertEqual(status, 130, err)
        self.assertEqual(list(self.only_run().glob("sync*")), [])
        self.assert_nothing_left()

    def test_a_client_that_was_killed_before_the_workers_ran(self):
        process = self.slow_sync()
        wait_for("the copying", self.calls)
        process.kill()
        self.finish(process)
        (run,) = self.listed()
        self.assertEqual((run["state"], run["cause"]), ("failed", "its client ended before the workers were started"))

    def test_a_client_that_was_killed_long_ago(self):
        process = self.start("--processes", 1, "--lease", 1, *sh("echo ready; exec sleep 1000"))
        self.wait_for_lines(1, "ready")
        process.kill()
        self.finish(process)
        self.assertEqual(self.listed()[0]["state"], "unattended")
        self.assert_nothing_left()
        os.utime(self.only_run() / "lock", (time.time() - 100,) * 2)
        (run,) = self.listed()
        self.assertEqual(run["state"], "failed")
        self.assertIn("its client was gone for 1 s", run["cause"])
        self.assertEqual(self.run_program("attach")[0], 1)
        self.assertIn("its client was gone for 1 s", self.listed()[0]["cause"])

    def test_a_port_that_is_taken(self):
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            port = listener.getsockname()[1]
            first = self.start("--hosts", "a,b", "--coordinator", f"a:{port}", *sh("echo ready; exec sleep 1000"))
            self.wait_for_lines(2, "ready")
            run = self.only_run().name
            status, _, err = self.run_program("--hosts", "a,b", "--coordinator", f"a:{port}", "--", "true")
            self.assertEqual(status, 0, err)
            self.assertEqual(err.count(f"port {port} on a is taken: the workers of run {run} meet there, too"), 1, err)
            self.assertIn("--coordinator a:8474", err)
            first.send_signal(signal.SIGINT)
            self.assertNotIn("is taken", self.finish(first)[2])
            listener.listen()
            err = self.run_program("--hosts", "a,b", "--coordinator", f"a:{port}", "--", "true")[2]
            self.assertIn(f"port {port} on a is taken: a program listens there", err)

    def test_a_supervisor_that_does_not_begin(self):
        for starter in ("perl", "setsid"):  # with and without a keeper
            self.tool(self.tools, starter, "exit 0")
        status, _, err = self.run_program("--processes", 1, "--", "true")
        self.assertEqual(status, 1, err)
        self.assertIn("it is not known on this host (", err)
        self.assertIn("its supervisor has not begun and says nothing; is the host overloaded, or its disk full?", err)

    def test_a_host_without_perl(self):
        """Workers start and end there as elsewhere; that a daemon may stay behind is said."""
        programs = self.work / "bin"
        programs.mkdir()
        for folder in os.environ["PATH"].split(":"):
            for path in Path(folder).glob("*"):
                if not path.name.startswith("perl") and not (programs / path.name).exists():
                    (programs / path.name).symlink_to(path)
        self.environment["PATH"] = f"{self.tools}:{programs}"
        self.assertIsNone(shutil.which("perl", path=self.environment["PATH"]))
        status, out, err = self.run_program("--hosts", "a,b", *sh("sleep 1000 & echo of $RANK; exit $((RANK * 3))"))
        self.assertEqual(status, 3, err)
        self.assertIn("a [0] of 0\n", out)
        self.assertIn("cannot contain what a worker starts (that needs perl", err)
        shutil.rmtree(self.only_run())
        process = self.start("--hosts", "a,b", "--grace", 2, *sh("trap 'echo saved; exit 7' INT; echo ready; sleep 1000 & wait"))
        self.wait_for_lines(2, "ready")
        process.send_signal(signal.SIGINT)
        status, out, err = self.finish(process)
        self.assertEqual((status, out.count("saved")), (130, 2), err)
        self.assert_nothing_left()


class Copies(TroubleTest):
    """What --sync sends grows with what has changed, not with the folder or the number of runs."""

    def copy(self, folder, hosts="a,b", *more):
        """Copies the folder, and returns the bytes that each host was sent."""
        before = {path: path.stat().st_mtime_ns for path in self.hosts.glob("*/call-*")}
        status, _, self.said = self.run_program("--hosts", hosts, "--sync", folder, "--chdir", "there", *more, "--", "true")
        self.assertEqual(status, 0, self.said)
        return {host: sum(int(path.read_text()) for path in (self.hosts / host).glob("call-*") if path not in before)
                for host in hosts.split(",")}

    def folder(self, files):
        folder = self.work / f"folder-{files}"
        (folder / "sub/deep").mkdir(parents=True)
        for n in range(files):
            (folder / f"sub/file {n}").write_bytes(os.urandom(20_000))
        (folder / "sub/deep/link").symlink_to("../file 0")
        (folder / "sub/line\nline").write_text("a name in two lines\n")
        time.sleep(2.1)  # what is newer may still change without a sign of it
        return folder

    def equal(self, folder, host):
        there = self.hosts / host / "there"
        self.assertEqual(subprocess.run(["diff", "-r", "--no-dereference", folder, there], capture_output=True, text=True)
                         .stdout, "")

    def test_only_what_has_changed_is_sent(self):
        sent = {}
        for files in (20, 80):
            folder = self.folder(files)
            first = self.copy(folder)
            self.assertGreater(first["a"], files * 20_000)
            unchanged = self.copy(folder)
            (folder / "sub/file 3").write_bytes(os.urandom(20_000))
            (folder / "sub/deep/link").unlink()
            (folder / "sub/deep/link").symlink_to("../file 1")
            one = self.copy(folder)
            (self.hosts / "a/there/sub/file 4").write_text("changed on the host")
            (self.hosts / "a/there/sub/file 5").unlink()
            there = self.copy(folder)
            for host in "ab":
                self.equal(folder, host)
            sent[files] = {"one": one["a"] - unchanged["a"], "two": there["a"] - unchanged["a"]}
            self.assertLess(unchanged["a"], first["a"] / 10)
            self.assertLess(there["b"], there["a"] - 30_000)
            shutil.rmtree(self.hosts / "a")
            shutil.rmtree(self.hosts / "b")
        # The file that was new at the copy before is sent once more, with the two of the host.
        for what, files in (("one", 1), ("two", 3)):
            self.assertLess(sent[80][what], files * 20_000 + 10_000)
            self.assertLess(sent[20][what], files * 20_000 + 10_000)

    def test_a_link_in_place_of_a_folder_is_not_followed(self):
        folder = self.folder(5)
        self.copy(folder, "a")
        aside = self.hosts / "a/aside"
        (self.hosts / "a/there/sub").rename(aside)
        (self.hosts / "a/there/sub").symlink_to(aside)
        (folder / "sub/file 0").write_text("new")
        self.copy(folder, "a")
        self.equal(folder, "a")
        self.assertNotEqual((aside / "file 0").read_bytes(), b"new")

    def test_a_host_without_room_for_notes_gets_everything(self):
        folder = self.folder(5)
        (self.hosts / "a/state").mkdir(parents=True)
        (self.hosts / "a/state/sluice").write_text("no folder")
        for _ in range(2):
            status, _, err = self.run_program("--hosts", "a", "--sync", folder, "--chdir", "there", *sh("true"))
            self.assertIn(status, (0, 1), err)  # the supervisor has no place there
            self.equal(folder, "a")

    def bucket(self):
        if shutil.which("curl") is None:
            self.skipTest("there is no curl")
        bucket = Bucket()
        self.addCleanup(bucket.server_close)
        self.addCleanup(bucket.shutdown)
        self.environment |= bucket.variables()
        return bucket

    def test_what_is_sent_does_not_grow_with_the_hosts(self):
        folder, sent = self.folder(20), {}
        for count in (2, 8):
            bucket = self.bucket()
            hosts = [f"h{count}{n}" for n in range(count)]
            scripts = self.copy(folder, ",".join(hosts), "--sync-bucket", "gs://b/staged")
            for host in hosts:
                self.equal(folder, host)
                # Scripts, and the list, which is short here. The supervisor's script is most of it.
                self.assertLess(scripts[host], 100_000)
            self.assertEqual((bucket.reads, bucket.objects), (count, {}), self.said)
            self.assertTrue(all(name.startswith("staged/") for name in bucket.names), bucket.names)
            sent[count] = bucket.uploaded
            self.assertNotIn("from here", self.said)
        self.assertGreater(sent[2], 400_000)
        self.assertLess(sent[8], 1.01 * sent[2])

    def test_a_host_that_cannot_read_the_bucket_is_named_and_sent_everything_from_here(self):
        folder, bucket = self.folder(20), self.bucket()
        self.tool(self.hosts / "b/first", "curl", "echo 'no route' >&2; exit 7")
        sent = self.copy(folder, "a,b,c", "--sync-bucket", "gs://b/")
        self.assertRegex(self.said, r"b cannot read --sync-bucket \(.*no route.*from here")
        for host in "abc":
            self.equal(folder, host)
            self.assertEqual(sent[host] > 400_000, host == "b", sent)
        self.assertEqual(bucket.reads, 2)
        self.assertEqual(list(self.hosts.glob("*/state/sluice/synced/*/*.copy")), [])
        for trouble in ("has_token", "damages"):
            setattr(bucket, trouble, not getattr(bucket, trouble))
            for host in "abc":
                shutil.rmtree(self.hosts / host, ignore_errors=True)
            self.copy(folder, "a,b", "--sync-bucket", "gs://b/")
            self.assertEqual(self.said.count("from here"), 2, self.said)
            self.equal(folder, "b")
            bucket.has_token = True

    def test_a_bucket_that_cannot_be_written_is_an_error(self):
        folder, bucket = self.folder(20), self.bucket()
        bucket.refuses_uploads = True
        status, _, err = self.run_program("--hosts", "a,b", "--sync", folder, "--sync-bucket", "gs://b/", *sh("true"))
        self.assertEqual(status, 1, err)
        self.assertIn("storage.objects.create denied", err)
        for url in ("s3://b/x", "b"):
            status, _, err = self.run_program("--hosts", "a,b", "--sync", folder, "--sync-bucket", url, *sh("true"))
            self.assertEqual(status, 2, err)
            self.assertIn("expected gs://BUCKET/PREFIX", err)


class Shells(TroubleTest):
    """What the hosts' sh may be beside dash."""

    def runs_by(self, shell):
        if not shutil.which(shell):
            self.skipTest(f"{shell} is not installed")
        (self.tools / "sh").symlink_to(shutil.which(shell))
        status, out, err = self.run_program("--hosts", "a,b", *sh("(env -i setsid sleep 1000 &); echo $RANK; exit $RANK"))
        self.assertEqual(status, 1, err)
        self.assertIn("a [0] 0\n", out)
        self.assertNotIn("cannot contain", err)
        process = self.start("--processes", 2, "--grace", 1, *sh(
            "trap 'echo saved' INT; echo ready; while :; do sleep 0.1; done"))
        wait_for("the workers", lambda: [path for path in (self.state / "sluice/runs").glob("*/merged.log")
                                         if path.read_text().count("ready") == 2])
        process.send_signal(signal.SIGINT)
        status, out, err = self.finish(process)
        self.assertEqual((status, len({line for line in out.splitlines() if "saved" in line})), (130, 2), err)
        self.assert_nothing_left()

    def test_bash(self):
        self.runs_by("bash")

    def test_busybox(self):
        self.runs_by("busybox")


class Terminal(TroubleTest):
    TEXT = b"\x1b[1;31mred\x1b[0m \x1b]0;title\x07\x1b[2J \xc3\xa9\n"

    def on_terminal(self, *arguments):
        """What reaches the terminal."""
        ours, theirs = pty.openpty()
        process = subprocess.Popen([self.PROGRAM, "run", *map(str, arguments)], cwd=self.work, env=self.environment,
                                   stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs)
        os.close(theirs)
        shown = b""
        try:
            while block := os.read(ours, 4096):
                shown += block
        except OSError:
            pass
        os.close(ours)
        process.wait()
        return shown.replace(b"\r\n", b"\n")

    def setUp(self):
        super().setUp()
        import support
        self.PROGRAM = support.PROGRAM
        (self.work / "text").write_bytes(self.TEXT)

    def test_only_colours_reach_it(self):
        harmless = b"\x1b[1;31mred\x1b[0m ^[]0;title^G^[[2J \xc3\xa9\n"
        shown = self.on_terminal("--processes", 1, *sh("cat text; exit 3"))
        self.assertIn(b"[0] " + harmless, shown)
        self.assertEqual(shown.count(harmless), 2)  # at the end again, in what failed
        self.assertNotIn(b"\x1b]", shown)
        self.assertEqual((self.only_run() / "worker-0.log").read_bytes(), self.TEXT)
        self.assertIn(b"[0] " + harmless, (self.only_run() / "merged.log").read_bytes())
        self.assertEqual(self.on_terminal("logs", "--worker", 0), harmless)
        self.assertEqual(self.on_terminal("logs", "--worker", 0, "--raw"), self.TEXT)

    def test_a_closed_one_lets_the_workers_save(self):
        """SIGHUP, what systemd sends with it, and a write that fails are one request to stop."""
        for signals in ((), (signal.SIGHUP,), (signal.SIGTERM, signal.SIGHUP, signal.SIGTERM)):
            with self.subTest(signals):
                ours, theirs = pty.openpty()
                process = subprocess.Popen(
                    [self.PROGRAM, "run", "--processes", "2", *sh(
                        "trap 'echo saving; sleep 1; echo saved; touch saved-$RANK; exit 130' INT; "
                        "echo ready; while :; do echo more; sleep 0.05; done")],
                    cwd=self.work, env=self.environment, stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs)
                os.close(theirs)
                shown = b""
                while shown.count(b"ready") < 2:
                    shown += os.read(ours, 4096)
                os.close(ours)
                for number in signals:
                    process.send_signal(number)
                    time.sleep(0.1)
                self.assertEqual(process.wait(DEADLINE), 143)
                saved = sorted(path.name for path in self.work.glob("saved-*"))
                self.assertEqual(saved, ["saved-0", "saved-1"])
                for name in saved:
                    (self.work / name).unlink()
                self.assert_nothing_left()

    def test_a_full_disk_behind_the_output_ends_nothing(self):
        for arguments in ((), ("logs",), ("logs", "--worker", 0), ("attach",)):
            with self.subTest(arguments), open("/dev/full", "wb") as full:
                command = arguments or ("--processes", 1, *sh("echo begun; sleep 0.3; touch over"))
                done = subprocess.run([self.PROGRAM, "run", *map(str, command)], cwd=self.work, env=self.environment,
                                      stdin=subprocess.DEVNULL, stdout=full, stderr=subprocess.PIPE, text=True)
                if arguments == ("attach",):  # it is over, and there is nothing to write
                    self.assertEqual(done.returncode, 0, done.stderr)
                else:
                    self.assertEqual(done.returncode, 1, done.stderr)
                    self.assertIn("standard output", done.stderr)
                self.assertTrue((self.work / "over").exists())
        self.assertIn("begun", (self.only_run() / "merged.log").read_text())

    def test_raw(self):
        self.assertIn(b"[0] " + self.TEXT, self.on_terminal("--processes", 1, "--raw", *sh("cat text")))
        status, out, err = self.run_program("--processes", 1, "--raw", *sh("cat text"))  # not on a terminal
        self.assertEqual(status, 0, err)
        self.assertIn(self.TEXT.decode(), out)


if __name__ == "__main__":
    unittest.main()
