"""hosts_test.py PROGRAM: `sluice run --hosts` by OpenSSH, on hosts in network namespaces. Status 77: not possible here."""

import os
import signal
import subprocess
import sys
import time
import unittest

from network import COUNT, Network, why_not
from support import LauncherTest, marked_processes, wait_for


class Hosts(LauncherTest):
    def setUp(self):
        super().setUp()
        self.network = Network(self.work, self.mark)
        self.addCleanup(self.network.close)

    def start(self, *arguments):
        if arguments[0] == "--hosts":
            arguments = ("--ssh-config", self.work / "ssh_config", *arguments)
        return super().start(*arguments, prefix=("ip", "netns", "exec", self.network.client))

    def on_all(self, *arguments):
        return ("--hosts", self.network.addresses(), *arguments)

    def test_each_worker_runs_on_its_host(self):
        status, out, err = self.run_program(*self.on_all("--env", "A=it's\nb", "--", "sh", "-c",
            'set -- $(hostname -I); echo "$TPU_WORKER_ID at $1 of $TPU_WORKER_HOSTNAMES in $PWD, '
            '$SLUICE_COORDINATOR_ADDRESS"; printf "%s\\n" "$A"'))
        self.assertEqual(status, 0, err)
        for worker in range(COUNT):
            address = self.network.address(worker + 1)
            self.assertIn(f"{address} [{worker}] {worker} at {address} of {self.network.addresses()} in "
                          f"{self.network.home(worker + 1)}, {self.network.address(1)}:8476\n", out)
            self.assertIn(f"{address} [{worker}] it's\n{address} [{worker}] b\n", out)
        self.assert_nothing_left()

    def needs_ipv6(self):
        if not self.network.has_ipv6:
            self.skipTest("this machine's kernel has no IPv6")

    def test_hosts_by_ipv6_meet_there(self):
        self.needs_ipv6()
        names = [self.network.address_6(n) for n in range(1, COUNT + 1)]
        meet = self.work / "meet.py"
        meet.write_text(f"""
import os, socket
place, rank = os.environ["SLUICE_COORDINATOR_ADDRESS"], int(os.environ["RANK"])
host, port = place[1:].split("]:")
assert os.environ["MASTER_ADDR"] == host and os.environ["MASTER_PORT"] == port, os.environ["MASTER_ADDR"]
if rank == 0:
    with socket.create_server((host, int(port)), family=socket.AF_INET6) as meeting:
        print("met", sorted(meeting.accept()[0].recv(100).decode() for _ in range({COUNT - 1})), flush=True)
else:
    for _ in range(600):
        try:
            socket.create_connection((host, int(port)), 1).sendall(str(rank).encode())
            break
        except OSError:
            __import__("time").sleep(0.05)
print(rank, "of", os.environ["TPU_WORKER_HOSTNAMES"])
""")
        # With brackets, without, and with a user.
        hosts = f"[{names[0]}],{names[1]},root@[{names[2]}]"
        for coordinator in ((), ("--coordinator", f"[{names[0]}]:7001")):
            with self.subTest(coordinator):
                status, out, err = self.run_program("--hosts", hosts, *coordinator, "--", sys.executable, meet)
                self.assertEqual(status, 0, err)
                self.assertIn(f"{names[0]} [0] met {[str(n) for n in range(1, COUNT)]}\n", out)
                for worker in range(COUNT):
                    self.assertIn(f"{names[worker]} [{worker}] {worker} of {','.join(names)}\n", out)
        self.assert_nothing_left()

    def test_an_ipv6_host_that_is_away_or_has_another_key(self):
        self.needs_ipv6()
        nobody = self.network.address_6(99)
        status, _, err = self.run_program("--hosts", f"[{self.network.address_6(1)}],[{nobody}]", "--ssh-option",
                                          "ConnectTimeout=1", "--", "sleep", "1000")
        self.assertEqual(status, 1)
        self.assertIn(f'cannot reach {nobody} by ssh: "ssh: connect to host {nobody} port 22: ', err)
        known = self.work / "known_hosts"
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.work / "other_key"], check=True)
        known.write_text(f"{self.network.address_6(1)} {(self.work / 'other_key.pub').read_text()}")
        status, _, err = self.run_program("--hosts", f"[{self.network.address_6(1)}]", "--", "true")
        self.assertEqual(status, 1)
        self.assertIn("REMOTE HOST IDENTIFICATION HAS CHANGED", err)
        command = err.split("with `")[1].split("`")[0]
        self.assertIn(self.network.address_6(1), command)
        subprocess.run(["sh", "-c", command], check=True, capture_output=True)
        self.assertEqual(known.read_text(), "")  # what is proposed removes the key
        self.assert_nothing_left()

    def test_one_process_for_each_chip_of_the_hosts(self):
        status, out, err = self.run_program(*self.on_all(
            "--processes-per-host", 4, "--tpu-topology", "3x4", "--ssh-parallel", 2, "--", "sh", "-c",
            'set -- $(hostname -I); echo "$CLOUD_TPU_TASK_ID on $1 port $TPU_PROCESS_PORT of host $TPU_WORKER_ID in '
            '$TPU_PROCESS_BOUNDS, $SLUICE_COORDINATOR_ADDRESS"; echo "$TPU_PROCESS_ADDRESSES"'))
        self.assertEqual(status, 0, err)
        places = [(self.network.address(n), port) for n in range(1, COUNT + 1) for port in range(8476, 8480)]
        addresses = ",".join(f"{address}:{port}" for address, port in places)
        for worker, (address, port) in enumerate(places):
            self.assertIn(f"{address} [{worker}] {worker} on {address} port {port} of host {worker // 4} in 3,4,1, "
                          f"{self.network.address(1)}:8474\n{address} [{worker}] {addresses}\n", out)
        self.assert_nothing_left()

    def test_the_first_failure_stops_the_rest(self):
        status, _, err = self.run_program(*self.on_all("--", "sh", "-c",
            "[ $RANK = 1 ] && { echo broken; exit 9; }; exec sleep 1000"))
        self.assertEqual(status, 9)
        self.assertIn(f"worker 1 ({self.network.address(2)}): exit status 9\n    broken\n", err)
        self.assert_nothing_left()

    def test_ctrl_c_ends_all_remote_processes(self):
        process = self.start(*self.on_all("--", "sh", "-c",
            "trap '' INT TERM; sleep 1000 & echo ready; while :; do sleep 0.1; done"))
        self.wait_for_lines(COUNT, "ready")
        started = time.monotonic()
        process.send_signal(signal.SIGINT)
        status, _, err = self.finish(process)
        self.assertEqual(status, 130, err)
        self.assertLess(time.monotonic() - started, 10)
        self.assert_nothing_left()

    def test_a_killed_client(self):
        process = self.start(*self.on_all("--lease", 3, "--", "sh", "-c", "echo ready; exec sleep 1000"))
        self.wait_for_lines(COUNT, "ready")
        process.kill()
        self.finish(process)
        self.assert_nothing_left()

    def test_a_connection_that_breaks_is_made_again(self):
        process = self.start(*self.on_all("--", "sh", "-c",
            'i=0; while [ ! -e end ] || [ $i -lt 100 ]; do i=$((i+1)); echo "line $i"; sleep 0.01; done; echo "lines $i"'))
        self.wait_for_lines(30, "[1] line")  # the second host's own
        for session in self.network.sessions(2):
            os.kill(session, signal.SIGKILL)
        # The worker has gone on, and what it wrote meanwhile has come.
        wait_for("the loss", lambda: "the connection broke" in process.stderr.readline())
        for n in range(1, COUNT + 1):
            (self.network.home(n) / "end").touch()
        status, _, err = self.finish(process)
        self.assertEqual(status, 0, err)
        for worker in range(COUNT):  # every line once
            lines = (self.only_run() / f"worker-{worker}.log").read_text().splitlines()
            count = int(lines.pop().split()[1])
            self.assertEqual(lines, [f"line {i + 1}" for i in range(count)])
        self.assert_nothing_left()

    def test_a_host_that_is_cut_off(self):
        process = self.start(*self.on_all("--lease", 4, "--ssh-option", "ServerAliveInterval=1", "--ssh-option",
                                          "ConnectTimeout=2", "--", "sh", "-c", "echo ready; exec sleep 1000"))
        self.wait_for_lines(COUNT, "ready")
        self.network.cut(2)
        status, _, err = self.finish(process)
        self.assertEqual(status, 1, err)
        self.assertIn(f"worker 1 ({self.network.address(2)}): no connection for", err)
        self.assert_nothing_left()  # its own supervisor has ended the worker beyond the cut

    def test_hosts_that_cannot_be_reached_are_named(self):
        nobody = f"{self.network.address(1).rsplit('.', 1)[0]}.99"
        status, out, err = self.run_program("--hosts", f"{self.network.address(1)},{nobody}", "--ssh-option",
                                            "ConnectTimeout=1", "--", "sleep", "1000")
        self.assertEqual(status, 1)
        self.assertIn(f'cannot reach {nobody} by ssh: "ssh: connect to host {nobody} port 22: ', err)
        self.assert_nothing_left()

    def test_a_key_that_is_refused_and_a_host_key_that_is_unknown(self):
        status, _, err = self.run_program("--hosts", self.network.address(1), "--ssh-user", "nobody", "--", "true")
        self.assertEqual(status, 1)
        self.assertIn("Permission denied", err)
        self.assertIn("--ssh-user", err)
        (self.work / "known_hosts").write_text("")
        status, _, err = self.run_program("--hosts", self.network.address(1), "--", "true")
        self.assertEqual(status, 1)
        self.assertIn("Host key verification failed", err)
        self.assertIn("accept-new", err)

    def test_a_key_file_that_is_away_or_that_others_may_read(self):
        config = self.work / "ssh_config"
        (self.work / "key").chmod(0o644)
        status, _, err = self.run_program("--hosts", self.network.address(1), "--", "true")
        self.assertEqual(status, 1)
        self.assertIn("bad permissions", err)
        self.assertIn("chmod 600", err)
        config.write_text(config.read_text().replace(f"{self.work}/key", f"{self.work}/away"))
        status, _, err = self.run_program("--hosts", self.network.address(1), "--", "true")
        self.assertEqual(status, 1)
        self.assertIn(f"there is no key to show: {self.work}/away does not exist", err)

    def test_a_folder_is_copied_and_set_up(self):
        source = self.work / "my project"
        (source / ".git").mkdir(parents=True)
        (source / ".git/large").write_text("x")
        (source / "run.sh").write_text("#!/bin/sh\ncat setup text; ls -A\n")
        (source / "run.sh").chmod(0o755)
        (source / "text").write_text("copied\n")
        status, out, err = self.run_program(*self.on_all("--sync", source, "--setup", "echo set up $RANK >setup", "--",
                                                         "./run.sh"))
        self.assertEqual(status, 0, err)
        for worker in range(COUNT):
            lines = [line.split("] ")[1] for line in out.splitlines() if f" [{worker}] " in line]
            self.assertEqual(lines, [f"set up {worker}", "copied", "run.sh", "setup", "text"])
        status, _, err = self.run_program(*self.on_all("--sync", source, "--chdir", "/proc/none", "--", "true"))
        self.assertEqual(status, 1)
        for n in range(1, COUNT + 1):
            self.assertIn(self.network.address(n), err)
        self.assert_nothing_left()

    def test_a_program_is_brought_along(self):
        top = self.work / "made/program-1/bin"
        top.mkdir(parents=True)
        (top / "hello").write_text("#!/bin/sh\necho hello from $0\n")
        (top / "hello").chmod(0o755)
        (top / "large").write_bytes(os.urandom(20_000_000))
        archive = self.work / "program.tar.zst"
        subprocess.run(["tar", "-C", self.work / "made", "-I", "zstd", "-cf", archive, "program-1"], check=True)
        for sent in (COUNT, 0):
            status, out, err = self.run_program(*self.on_all("--program", archive, "--", "hello"))
            self.assertEqual(status, 0, err)
            self.assertIn(f"sent to {sent}, there already on {COUNT - sent} of {COUNT} hosts", err)
            for n in range(1, COUNT + 1):
                self.assertIn(f"hello from {self.network.home(n)}/.cache/sluice/programs/", out)
        self.assert_nothing_left()

    def test_detached_and_stopped_from_another_terminal(self):
        status, out, err = self.run_program(*self.on_all("--detach", "--", "sh", "-c", "echo ready; exec sleep 1000"))
        self.assertEqual(status, 0, err)
        self.wait_for_lines(COUNT, "ready")
        self.assertEqual(self.run_program("logs")[1].count("ready"), COUNT)
        self.assertTrue(marked_processes(self.mark))
        self.assertEqual(self.run_program("stop")[0], 0)
        self.assert_nothing_left()

    def test_many_workers_behind_one_sshd(self):
        # It takes three connections at once that are not yet let in.
        hosts = ",".join([self.network.address(1)] * 8)
        status, out, err = self.run_program("--hosts", hosts, "--ssh-parallel", 2, "--", "sh", "-c",
                                            "echo $LOCAL_RANK of $LOCAL_WORLD_SIZE on host $GROUP_RANK")
        self.assertEqual(status, 0, err)
        for n in range(8):
            self.assertIn(f"[{n}] {n} of 8 on host 0\n", out)


if __name__ == "__main__":
    reason = why_not()
    if reason:
        print(f"skipped: {reason}")
        sys.exit(77)
    unittest.main()
