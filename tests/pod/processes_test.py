"""processes_test.py PROGRAM: `sluice run --processes` with plain commands: how runs end, and what they leave."""

import json
import os
import re
import shutil
import signal
import time
import unittest

import support
from support import LauncherTest, marked_processes, wait_for


def sh(script):
    return ("--", "sh", "-c", script)


IGNORES_SIGNALS = "trap '' INT TERM; echo ready; while :; do sleep 0.1; done"


class Ends(LauncherTest):
    def test_success(self):
        status, out, err = self.run_program("--processes", 4, "--env", "A=it's", *sh(
            'echo "worker $RANK of $WORLD_SIZE $A"; echo error >&2; printf unfinished'))
        self.assertEqual(status, 0, err)
        run = self.only_run()
        for worker in range(4):
            text = f"worker {worker} of 4 it's\nerror\nunfinished"
            self.assertEqual((run / f"worker-{worker}.log").read_text(), text)
            for line in text.split("\n"):
                self.assertIn(f"127.0.0.1 [{worker}] {line}\n", out)
        self.assertEqual((run / "merged.log").read_text(), out)
        self.assertEqual(json.loads((run / "run.json").read_text())["state"], "succeeded")
        self.assertEqual(list((self.state / "sluice/workers").glob("*")), [], "the supervisors' folders")
        self.assert_nothing_left()

    def test_the_first_failure_is_found_and_stops_the_rest(self):
        # The others fail because of worker 2, and only after it.
        status, out, err = self.run_program("--processes", 4, *sh(
            '[ $RANK = 2 ] && { echo "no such file"; exit 3; }; [ $RANK = 3 ] && exec sleep 1000; '
            'while [ ! -e $XDG_STATE_HOME/sluice/workers/$SLUICE_RUN_ID/0-2/ended ]; do sleep 0.01; done; exit 1'))
        self.assertEqual(status, 3, err)
        last = err[err.rindex("sluice run: run "):]
        self.assertIn("failed: worker 2 (127.0.0.1): exit status 3\n    no such file\n", last)
        self.assertLess(last.index("worker 2"), min([last.find(f"worker {n}") for n in (0, 1, 3)
                                                     if f"worker {n}" in last] or [len(last)]))
        self.assert_nothing_left()

    def test_a_folder_that_another_worker_of_the_host_removes(self):
        # As if a worker that has ended removed the run's folder just when this one has looked for it.
        tools = self.work / "tools"
        tools.mkdir()
        (tools / "mkdir").write_text(f"#!/bin/sh\n{shutil.which('mkdir')} \"$@\" || exit\n[ \"$1\" = -p ] || exit 0\n"
                                     f"[ -e {self.work}/once ] || {{ touch {self.work}/once; rmdir \"$2\"; }}\n")
        (tools / "mkdir").chmod(0o755)
        self.environment["PATH"] = f"{tools}:{self.environment['PATH']}"
        status, _, err = self.run_program("--processes", 1, "--", "true")
        self.assertEqual(status, 0, err)
        self.assertTrue((self.work / "once").exists())

    def test_a_worker_killed_by_a_signal(self):
        status, _, err = self.run_program("--processes", 2, *sh("[ $RANK = 1 ] && kill -KILL $$; exec sleep 1000"))
        self.assertEqual(status, 137)
        self.assertIn("worker 1 (127.0.0.1): killed by signal 9 (SIGKILL)", err)
        self.assert_nothing_left()

    def test_a_command_that_is_not_there(self):
        status, _, err = self.run_program("--processes", 1, "--max-restarts", 2, "--", "nothing-of-this-name")
        self.assertEqual(status, 127)
        self.assertIn("the command was not found", err)
        self.assertNotIn("restart 1", err)

    def test_logs_take_a_bounded_space(self):
        # The bytes on the disk do not grow with the output: two sizes, one limit.
        for mebibytes in (2, 6):
            line = "x" * 63
            status, _, err = self.run_program("--processes", 1, "--log-size", 1, *sh(
                f"echo first; yes {line} | head -c {mebibytes << 20}; echo last"))
            self.assertEqual(status, 0, err)
            run = self.only_run()
            for log in ("worker-0", "merged"):
                sizes = [path.stat().st_size for path in run.glob(f"{log}*.log")]
                self.assertEqual(len(sizes), 4)
                self.assertLessEqual(sum(sizes), 1 << 20)
            status, out, err = self.run_program("logs", "--worker", 0)
            self.assertTrue(out.startswith("first\n") and out.endswith("last\n"))
            self.assertEqual(set(out.splitlines()), {"first", line, "last"})
            kept = sum(path.stat().st_size for path in run.glob("worker-0*.log"))
            missing = re.search(r"([0-9.]+) MB of this log are not kept \(--log-size\)", err)
            self.assertAlmostEqual(float(missing.group(1)), ((mebibytes << 20) + 11 - kept) / 1e6, delta=0.1)
            shutil.rmtree(run)
        self.assert_nothing_left()

    def test_what_a_worker_leaves_running_is_ended(self):
        status, _, err = self.run_program("--processes", 1, *sh("sleep 1000 & setsid sleep 1001 & exit 0"))
        self.assertEqual(status, 0, err)
        self.assert_nothing_left()

    def test_a_supervisor_that_was_killed(self):
        process = self.start("--processes", 2, *sh("echo ready; exec sleep 1000"))
        self.wait_for_lines(2, "ready")
        # The worker may say that it is ready before its supervisor has written its own number.
        numbers = wait_for("a supervisor", lambda: list((self.state / "sluice/workers").glob("*/0-1/supervisor")))[0]
        os.kill(int(numbers.read_text().split()[0]), signal.SIGKILL)
        status, _, err = self.finish(process)
        self.assertEqual(status, 1)
        self.assertIn("worker 1 (127.0.0.1): it is lost: its supervisor was killed", err)
        self.assert_nothing_left()

    def test_a_host_that_was_started_again(self):
        # Everything is gone, and the numbers of the processes are others' now: here this test's own.
        status, _, err = self.run_program("--detach", "--processes", 1, *sh("echo ready; exec sleep 1000"))
        self.assertEqual(status, 0, err)
        self.wait_for_lines(1, "ready")
        wait_for("the end of all", lambda: self.kill_marked() or not marked_processes(self.mark))
        folder = next((self.state / "sluice/workers").glob("*/0-0"))
        (folder / "supervisor").write_text(f"{os.getpid()} 1\n")
        (folder / "pid").write_text(f"{os.getpgid(0)}\n")
        status, _, err = self.run_program("attach")
        self.assertEqual(status, 1, err)
        self.assertIn("it is lost", err)
        self.assert_nothing_left()

    def test_a_reader_that_leaves(self):
        process = self.start("--processes", 1, *sh("while :; do echo line; sleep 0.01; done"))
        process.stdout.readline()
        process.stdout.close()
        self.assertEqual(process.wait(support.DEADLINE), 143)
        process.stderr.close()
        self.assert_nothing_left()

    def test_setup_runs_once_and_before(self):
        status, out, err = self.run_program("--processes", 2, "--setup", "echo once >>setup; echo set up", *sh(
            "cat setup"))
        self.assertEqual(status, 0, err)
        self.assertEqual((self.work / "setup").read_text(), "once\n")
        self.assertEqual(out.count("once"), 2)
        status, out, err = self.run_program("--processes", 2, "--setup", "echo broken; exit 4", "--", "echo", "never")
        self.assertEqual(status, 4)
        self.assertIn("--setup: worker 0 (127.0.0.1): exit status 4\n    broken\n", err)
        self.assertNotIn("never", out)

    def test_wrong_usage(self):
        for arguments in ([], ["--processes", 2], ["--", "true"], ["--processes", 0, "--", "true"],
                          ["--processes", 1, "--hosts", "a", "--", "true"],
                          ["--processes", 1, "--env", "1=2", "--", "true"],
                          ["--processes", 1, "--sync", ".", "--", "true"], ["--hosts", "a,,b", "--", "true"],
                          ["--hosts", "a", "--coordinator", "a:x", "--", "true"], ["--process", 2, "--", "true"],
                          ["--processes", 2, "train", "--epochs", 3], ["ls", "--nothing"]):
            status, _, err = self.run_program(*arguments)
            self.assertEqual(status, 2, f"{arguments}: {err}")
        self.assertFalse((self.state / "sluice/runs").exists())

    def test_a_command_may_have_any_words(self):
        # Names of verbs, flags of ours and a second -- are the command's own.
        status, out, err = self.run_program("--processes", 1, "--env", "A=1", "--env", "B=2", "--", "echo", "ls", "--env",
                                            "-x", "--", "stop", "--help", "a  b", "")
        self.assertEqual((status, out), (0, "127.0.0.1 [0] ls --env -x -- stop --help a  b \n"), err)

    def test_dry_run_starts_nothing(self):
        status, out, err = self.run_program("--hosts", "me@a,b", "--dry-run", "--ssh-option", "Port=2222", "--",
                                            "train", "--lr", "0.1", "--", "it's")
        self.assertEqual(status, 0, err)
        self.assertIn("ssh -T -o 'Port=2222' -o 'BatchMode=yes'", out)
        self.assertIn("export TPU_WORKER_HOSTNAMES=a,b\n", out)
        self.assertIn("exec train --lr 0.1 -- 'it'\\''s'\n", out)
        self.assertFalse((self.state / "sluice/runs").exists())

    def test_hosts_by_their_addresses_of_ipv6(self):
        for hosts in ("me@fd00::1,fd00::2", "me@[fd00::1],[fd00::2]"):
            for coordinator, meeting, master in (([], "[fd00::1]:8476", "fd00::1"), (["fd00::9"], "[fd00::9]:8476", "fd00::9"),
                                                 (["[fd00::9]:8477"], "[fd00::9]:8477", "fd00::9")):
                where = ["--coordinator", *coordinator] if coordinator else []
                status, out, err = self.run_program("--hosts", hosts, *where, "--dry-run", "--", "train")
                self.assertEqual(status, 0, err)
                told = dict(re.findall(r"export (\w+)=(.*)", out))
                self.assertEqual({name: told[name].strip("'") for name in ("SLUICE_COORDINATOR_ADDRESS", "MASTER_ADDR",
                                                                           "TPU_WORKER_HOSTNAMES")},
                                 {"SLUICE_COORDINATOR_ADDRESS": meeting, "MASTER_ADDR": master,
                                  "TPU_WORKER_HOSTNAMES": "fd00::1,fd00::2"})
                self.assertIn(" me@fd00::1 ", out)
        for arguments in (["--hosts", "[fd00::1]:22"], ["--hosts", "a", "--coordinator", "[fd00::1"],
                          ["--hosts", "a", "--coordinator", "a:b:c"]):
            status, _, err = self.run_program(*arguments, "--dry-run", "--", "train")
            self.assertEqual(status, 2, err)
            self.assertIn("expected", err)


class Stops(LauncherTest):
    def test_ctrl_c_lets_the_workers_save(self):
        process = self.start("--processes", 3, *sh(
            "trap 'echo saved; exit 130' INT; echo ready; while :; do sleep 0.1; done"))
        self.wait_for_lines(3, "ready")
        process.send_signal(signal.SIGINT)
        status, out, err = self.finish(process)
        self.assertEqual(status, 130, err)
        self.assertEqual(out.count("saved"), 3)
        self.assert_nothing_left()

    def test_ctrl_c_reaches_python(self):
        process = self.start("--processes", 1, "--", "/usr/bin/env", "python3", "-c",
                             "import time\ntry:\n  print('ready', flush=True); time.sleep(1000)\n"
                             "except KeyboardInterrupt: print('interrupted')")
        self.wait_for_lines(1, "ready")
        process.send_signal(signal.SIGINT)
        status, out, _ = self.finish(process)
        self.assertEqual(status, 130)
        self.assertIn("interrupted", out)

    def test_ctrl_c_ends_within_ten_seconds_what_ignores_it(self):
        process = self.start("--processes", 2, *sh(IGNORES_SIGNALS))
        self.wait_for_lines(2, "ready")
        started = time.monotonic()
        process.send_signal(signal.SIGINT)
        status, _, _ = self.finish(process)
        self.assertEqual(status, 130)
        self.assertLess(time.monotonic() - started, 10)
        self.assert_nothing_left()

    def test_a_second_ctrl_c_kills(self):
        process = self.start("--processes", 2, "--grace", 1000, *sh(IGNORES_SIGNALS))
        self.wait_for_lines(2, "ready")
        process.send_signal(signal.SIGINT)
        wait_for("its answer", lambda: "told to stop" in process.stderr.readline())
        time.sleep(0.2)  # within 0.05 s two signals are one occasion (sluice/pod/signals.cc), and nobody presses so fast
        process.send_signal(signal.SIGINT)
        status, _, _ = self.finish(process)
        self.assertEqual(status, 130)
        self.assert_nothing_left()

    def test_a_second_ctrl_c_kills_where_files_are_slow(self):
        tools = self.work / "tools"
        tools.mkdir()
        for name in ("mv", "rm"):
            tool = tools / name
            tool.write_text(f"#!/bin/sh\nsleep 0.4\nexec {shutil.which(name)} \"$@\"\n")
            tool.chmod(0o755)
        self.environment["PATH"] = f"{tools}:{self.environment['PATH']}"
        self.test_a_second_ctrl_c_kills()

    def test_sigterm(self):
        process = self.start("--processes", 1, *sh("echo ready; exec sleep 1000"))
        self.wait_for_lines(1, "ready")
        process.send_signal(signal.SIGTERM)
        self.assertEqual(self.finish(process)[0], 143)
        self.assert_nothing_left()

    def test_a_hang(self):
        status, _, err = self.run_program("--processes", 2, "--heartbeat-timeout", 2, *sh(
            'while :; do touch "$SLUICE_HEARTBEAT_FILE"; [ $RANK = 1 ] && sleep 1000; sleep 0.2; done'))
        self.assertEqual(status, 1)
        self.assertIn("worker 1 (127.0.0.1): it hangs: no heartbeat for 2 s", err)
        self.assert_nothing_left()

    def test_a_clock_that_is_set_back_is_no_hang(self):
        status, _, err = self.run_program("--processes", 1, "--heartbeat-timeout", 1, *sh(
            'now=$(date +%s); for i in $(seq 15); do touch -d "@$((now - 60 * i))" "$SLUICE_HEARTBEAT_FILE"; sleep 0.2; done'))
        self.assertEqual(status, 0, err)

    def test_without_a_first_heartbeat_nothing_hangs(self):
        status, _, err = self.run_program("--processes", 1, "--heartbeat-timeout", 1, "--", "sleep", "3")
        self.assertEqual(status, 0, err)

    def test_the_workers_of_a_killed_client_end(self):
        process = self.start("--processes", 2, "--lease", 2, *sh("echo ready; exec sleep 1000"))
        self.wait_for_lines(2, "ready")
        process.kill()
        self.finish(process)
        self.assert_nothing_left()
        status, _, err = self.run_program("attach")
        self.assertEqual(status, 1)
        self.assertIn("its client was gone for 2 s", err)


class Restarts(LauncherTest):
    def test_a_failure_starts_all_again(self):
        status, out, err = self.run_program("--processes", 2, "--max-restarts", 3, *sh(
            'echo "attempt $SLUICE_RESTART"; [ $SLUICE_RESTART = 2 ] || [ $RANK = 0 ] || exit 5'))
        self.assertEqual(status, 0, err)
        for attempt in range(3):
            self.assertEqual(out.count(f"attempt {attempt}\n"), 2)
        run = self.only_run()
        self.assertEqual((run / "worker-1.restart-2.log").read_text(), "attempt 2\n")
        self.assertIn("restart 2 of 3", err)
        status, out, _ = self.run_program("logs", "--worker", 1)
        self.assertEqual(out, "attempt 0\nattempt 1\nattempt 2\n")
        self.assert_nothing_left()

    def test_not_without_end_and_not_for_wrong_usage(self):
        status, out, _ = self.run_program("--processes", 1, "--max-restarts", 1, *sh("echo go; exit 9"))
        self.assertEqual((status, out.count("go\n")), (9, 2))
        status, out, _ = self.run_program("--processes", 1, "--max-restarts", 1, *sh("echo go; exit 2"))
        self.assertEqual((status, out.count("go\n")), (2, 1))


class Placement(LauncherTest):
    """What the workers are told of their place."""

    NAMES = ("SLUICE_PROCESS_ID SLUICE_PROCESS_COUNT LOCAL_RANK LOCAL_WORLD_SIZE TPU_CHIPS_PER_PROCESS_BOUNDS "
             "TPU_PROCESS_BOUNDS TPU_PROCESS_ADDRESSES TPU_PROCESS_PORT CLOUD_TPU_TASK_ID TPU_VISIBLE_CHIPS "
             "TPU_VISIBLE_DEVICES SLUICE_JOIN_TIMEOUT").split()

    def told(self, *arguments):
        """The variables of each worker."""
        for name in self.NAMES + ["TPU_TOPOLOGY", "TPU_ACCELERATOR_TYPE"]:
            self.environment.pop(name, None)
        status, out, err = self.run_program(*arguments, *sh("env"))
        self.assertEqual(status, 0, err)
        workers = {}
        for line in out.splitlines():
            worker, text = line.split("[", 1)[1].split("] ", 1)
            name, _, value = text.partition("=")
            if name in self.NAMES:
                workers.setdefault(int(worker), {})[name] = value
        return [workers[n] for n in range(len(workers))]

    def test_one_process_for_each_chip_of_this_machine(self):
        addresses = ",".join(f"127.0.0.1:{port}" for port in range(8476, 8480))
        for arguments in (("--processes-per-host", 4, "--join-timeout", 20),
                          ("--processes", 4, "--processes-per-host", 4, "--tpu-topology", "2x2", "--join-timeout", 20)):
            for worker, told in enumerate(self.told(*arguments)):
                n = str(worker)
                self.assertEqual(told, {
                    "SLUICE_PROCESS_ID": n, "SLUICE_PROCESS_COUNT": "4", "LOCAL_RANK": n, "LOCAL_WORLD_SIZE": "4",
                    "TPU_CHIPS_PER_PROCESS_BOUNDS": "1,1,1", "TPU_PROCESS_BOUNDS": "2,2,1",
                    "TPU_PROCESS_ADDRESSES": addresses, "TPU_PROCESS_PORT": str(8476 + worker),
                    "CLOUD_TPU_TASK_ID": n, "TPU_VISIBLE_CHIPS": n, "TPU_VISIBLE_DEVICES": n,
                    "SLUICE_JOIN_TIMEOUT": "20"})

    def test_processes_that_are_told_of_no_chip(self):
        for arguments in (("--processes", 2), ("--processes-per-host", 2)):  # two: GPUs
            for told in self.told(*arguments):
                self.assertEqual([name for name in told if "TPU" in name], [])
                self.assertEqual(told["LOCAL_WORLD_SIZE"], "2")

    def test_hosts_of_a_slice(self):
        status, out, err = self.run_program("--hosts", "a,b", "--processes-per-host", 4, "--dry-run", "--", "./train")
        self.assertEqual(status, 0, err)
        self.assertEqual(out.count("export TPU_PROCESS_BOUNDS=2,4,1\n"), 8)
        self.assertEqual(out.count("export SLUICE_COORDINATOR_ADDRESS=a:8474\n"), 8)
        self.assertIn("# worker 6 on b,", out)
        self.environment["TPU_ACCELERATOR_TYPE"] = "v4-16"
        out = self.run_program("--hosts", "a,b", "--processes-per-host", 4, "--dry-run", "--", "./train")[1]
        self.assertEqual(out.count("export TPU_PROCESS_BOUNDS=2,2,2\n"), 8)
        out = self.run_program("--hosts", "a,b", "--processes-per-host", 4, "--tpu-topology", "V6e-8", "--dry-run", "--",
                               "./train")[1]
        self.assertEqual(out.count("export TPU_PROCESS_BOUNDS=2,4,1\n"), 8)
        self.environment["TPU_TOPOLOGY"] = "1x8"
        out = self.run_program("--hosts", "a,b", "--processes-per-host", 4, "--dry-run", "--", "./train")[1]
        self.assertEqual(out.count("export TPU_PROCESS_BOUNDS=1,8,1\n"), 8)

    def test_another_launchers_variables_lead_to_the_same_place(self):
        # What `sluice run` tells libtpu is read where its own variables are not there.
        status, out, err = self.run_program(
            "--env", f"PRINT={os.environ['SLUICE_PRINT_PLACEMENT']}", "--processes-per-host", 4, *sh(
                'unset SLUICE_PROCESS_ID SLUICE_PROCESS_COUNT SLUICE_COORDINATOR_ADDRESS; exec "$PRINT"'))
        self.assertEqual(status, 0, err)
        for n in range(4):
            self.assertIn(f"[{n}] process {n} of 4, meeting at 127.0.0.1:8474 (Cloud TPU)\n", out)

    def test_values_that_differ_by_worker(self):
        status, out, err = self.run_program("--processes", 2, "--env", "TPU_WORKER_ID={worker}", "--env",
                                            "A={host}/{local}{}", *sh("echo $TPU_WORKER_ID $A"))
        self.assertEqual(status, 0, err)
        for n in range(2):
            self.assertIn(f"[{n}] {n} 127.0.0.1/{n}{{}}\n", out)

    def test_wrong_usage(self):
        for arguments, message in (
                (("--processes", 4, "--processes-per-host", 2), "must be equal"),
                (("--hosts", "a,b", "--processes", 4), "several on each host: --processes-per-host"),
                (("--hosts", "a,b", "--tpu-topology", "4x4"), "give --processes-per-host too"),
                (("--hosts", "a,b", "--processes-per-host", 4, "--tpu-topology", "4x4"), "4x4 has 16 chips, but"),
                (("--hosts", "a,b", "--processes-per-host", 4, "--tpu-topology", "square"), "expected the chips along"),
                (("--hosts", "a,b,a", "--processes-per-host", 4), "host a comes twice"),
                (("--hosts", "a", "--processes-per-host", 4, "--coordinator", "a:8479"), "are the TPU runtimes' own"),
                (("--processes-per-host", 0), "processes-per-host")):
            status, _, err = self.run_program(*arguments, "--", "true")
            self.assertEqual(status, 2, err)
            self.assertIn(message, err)
        self.environment["TPU_ACCELERATOR_TYPE"] = "v3-32"
        status, _, err = self.run_program("--processes-per-host", 4, "--", "true")
        self.assertEqual(status, 2, err)
        self.assertIn("has 16 chips, but hosts × processes per host are 4", err)
        self.assertIn("(from TPU_ACCELERATOR_TYPE, which the flag would overrule)", err)


class Detached(LauncherTest):
    def detach(self, script, *arguments):
        status, out, err = self.run_program("--detach", "--processes", 2, *arguments, *sh(script))
        self.assertEqual(status, 0, err)
        self.assertIn("all workers run", out)
        return self.only_run().name

    def listed(self):
        status, out, err = self.run_program("ls", "--json")
        self.assertEqual(status, 0, err)
        return json.loads(out)

    def test_it_goes_on_and_is_found_again(self):
        run = self.detach("echo ready; while [ ! -e end ]; do sleep 0.05; done; echo over; exit $RANK")
        self.assertEqual([(entry["id"], entry["state"]) for entry in self.listed()], [(run, "running")])
        self.assertIn(run, self.run_program("ls")[1])
        self.wait_for_lines(2, "ready")
        self.assertEqual(self.run_program("logs", "--worker", 1)[1], "ready\n")
        following = self.start("logs", run, "--follow")
        attached = self.start("attach", run[:5])
        wait_for("attaching", lambda: "attached" in attached.stderr.readline())
        (self.work / "end").touch()
        status, out, err = self.finish(attached)
        self.assertEqual(status, 1, err)
        self.assertIn("127.0.0.1 [1] over\n", out)
        status, out, _ = self.finish(following)
        self.assertEqual(sorted(out.splitlines()), sorted(f"127.0.0.1 [{n}] {word}" for n in (0, 1)
                                                          for word in ("ready", "over")))
        self.assertEqual(self.listed()[0]["state"], "failed")
        self.assertEqual(self.run_program("attach")[0], 1)
        self.assert_nothing_left()

    def test_stop(self):
        run = self.detach("trap 'echo saved; exit 130' INT; echo ready; while :; do sleep 0.1; done")
        self.wait_for_lines(2, "ready")
        status, _, err = self.run_program("stop", run)
        self.assertEqual(status, 0, err)
        self.assertEqual(self.listed()[0]["state"], "stopped")
        self.assertEqual(self.run_program("logs")[1].count("saved"), 2)
        self.assert_nothing_left()
        self.assertEqual(self.run_program("stop", run)[0], 0)

    def test_leaving_the_logs_leaves_the_run(self):
        self.detach("echo ready; exec sleep 1000")
        following = self.start("logs", "--follow")
        self.assertIn("ready", following.stdout.readline())
        following.send_signal(signal.SIGINT)
        self.assertEqual(self.finish(following)[0], 0)
        self.assertEqual(self.listed()[0]["state"], "running")
        attached = self.start("attach")
        wait_for("attaching", lambda: "attached" in attached.stderr.readline())
        attached.send_signal(signal.SIGINT)
        self.assertEqual(self.finish(attached)[0], 130)
        self.assert_nothing_left()

    def test_what_fails_before_it_runs_is_said(self):
        status, out, err = self.run_program("--detach", "--processes", 1, "--setup", "exit 6", "--", "true")
        self.assertEqual((status, out), (6, ""))
        self.assertIn("--setup: worker 0", err)

    def test_a_short_run(self):
        status, out, err = self.run_program("--detach", "--processes", 2, "--", "true")
        self.assertEqual(status, 0, err)
        wait_for("its end", lambda: self.listed()[0]["state"] == "succeeded")

    def kill_client(self, run):
        client = json.loads((self.state / f"sluice/runs/{run}/run.json").read_text())["client"]
        os.kill(client, signal.SIGKILL)
        wait_for("the client's end", lambda: self.listed()[0]["state"] == "unattended")

    def test_another_client_takes_the_place_of_a_dead_one(self):
        run = self.detach('i=0; while [ ! -e end ] || [ $i -lt 100 ]; do i=$((i+1)); echo "line $i"; sleep 0.01; done; '
                          'echo "lines $i"; exit 0')
        self.wait_for_lines(10, "line")
        self.kill_client(run)
        self.assertTrue(marked_processes(self.mark), "the workers go on")
        self.assertIn("has no client", self.run_program("logs")[2])
        attached = self.start("attach")
        wait_for("attaching", lambda: "taking its client's place" in attached.stderr.readline())
        (self.work / "end").touch()
        status, _, err = self.finish(attached)
        self.assertEqual(status, 0, err)
        for worker in range(2):  # every line once
            lines = (self.only_run() / f"worker-{worker}.log").read_text().splitlines()
            count = int(lines.pop().split()[1])
            self.assertEqual(lines, [f"line {i + 1}" for i in range(count)])
        self.assert_nothing_left()

    def test_stop_without_a_client(self):
        run = self.detach("echo ready; exec sleep 1000")
        self.kill_client(run)
        status, _, err = self.run_program("stop")
        self.assertEqual(status, 0, err)
        self.assertEqual(self.listed()[0]["state"], "stopped")
        self.assert_nothing_left()

    def test_unknown_runs(self):
        for verb in ("attach", "logs", "stop"):
            status, _, err = self.run_program(verb, "nothing")
            self.assertEqual(status, 1)
            self.assertIn("no run is named nothing", err)


if __name__ == "__main__":
    unittest.main()
