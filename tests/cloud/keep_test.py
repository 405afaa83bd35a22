"""keep_test.py PROGRAM [--all] [CLASS…]: `sluice keep` on workers behind a real sshd, which are taken away.

Whatever takes the TPU, the run ends as one that nothing disturbed: with what a small program has counted, for each loss
there is; and with the weights of `sluice train`, bit for bit, for some (--all: each). Status 77: not possible here."""

import os
import signal
import subprocess
import sys
import unittest
from pathlib import Path

from google_fake_support import assert_all_valid, mutations
from remote_test import PROGRAM, World, main, wait_for

ALL = "--all" in sys.argv
SUSPENDED = {"state": "SUSPENDED", "stateInitiator": "SERVICE", "suspendedData": {}}
FAILED = {"state": "FAILED", "stateInitiator": "SERVICE",
          "failedData": {"error": {"code": 13, "message": "an internal error"}}}

# Counts, and hashes what it has counted, so that a lost or repeated step shows; saves when it is told to end.
COUNTING = """
save() { echo "$n $sum" >"$store.tmp" && mv "$store.tmp" "$store"; }
trap 'save; exit 143' INT TERM
store=$1/checkpoint-$RANK n=0 sum=0
[ -e "$store" ] && read -r n sum <"$store"
echo "from $n, restart $SLUICE_RESTART"
while [ "$n" -lt 60 ]; do
  n=$((n + 1)) sum=$(((sum * 31 + n) % 1000003))
  [ $((n % 10)) = 0 ] && save
  [ "$n" = 25 ] && [ "$SLUICE_RESTART" = 0 ] && : >"$1/half-$RANK" && sleep 1000
  sleep 0.01
done
echo "$n $sum" >"$1/result-$RANK"
"""

# The training stands still at its first checkpoint, so that it is lost in its middle however slow or fast it is; told to
# end, it goes on, and saves.
TRAINING = """
store=$1; shift
"$@" --logdir "$store/log" --resume & training=$!
trap 'kill -CONT $training; kill -INT $training; wait $training; exit 143' INT TERM
if [ "$SLUICE_RESTART" = 0 ] && [ "$RANK" = 0 ]; then
  until [ -e "$store/log/last/state.json" ]; do kill -0 $training || exit 1; sleep 0.02; done
  kill -STOP $training
  : >"$store/half-0"
fi
wait $training
"""


def places(losses):
    """{name: numbers of its workers}: those that are called two-… have two."""
    found, free = {}, 0
    for name in losses:
        count = 2 if name.startswith("two-") else 1
        found[name] = range(free, free + count)
        free += count
    return found


def batched(names, size):
    """So many side by side: what must answer within seconds does, also on a small machine."""
    names = list(names)
    return [names[i:i + size] for i in range(0, len(names), size)]


class KeptWorld(World):
    """Each slice is named for the loss that it meets."""
    LOSSES = {}  # name -> how it is lost: a node's state, "vanish", a queue entry's state, "maintenance", None

    def begin(self, name, script, *words, before=()):
        store = self.work / f"bucket-{name}"
        store.mkdir(exist_ok=True)
        return store, self.start(
            "keep", name, "--poll", "0.3", "--patience", "0.5", "--save-time", "20", *before, "--", "run", "--lease", "2",
            "--ssh-option", "ServerAliveInterval=1", "--ssh-option", "ConnectTimeout=2", "--", "sh", "-c", script,
            "training", store, *words)

    def reach_middle(self, name, process, files):
        try:
            wait_for(f"the middle of {name}", lambda: process.poll() is not None or all(path.exists() for path in files))
        except AssertionError as error:
            process.kill()
            raise AssertionError(f"{error}: {process.communicate()}") from error
        if process.poll() is not None:
            raise AssertionError(f"{name} has ended: {process.communicate()}")

    def lose(self, name):
        """One of its machines goes, with all that ran there, and the cloud says so in one of its ways."""
        how, machine, thing = self.LOSSES[name], self.NODES[name][-1], f"nodes/{name}"
        if name in self.GROUPS:
            machine, thing = self.last_of_group(name)
        if how == "maintenance":  # of which there is notice
            self.google.call("POST", "maintenance", {"name": thing, "starts": 60})
            return
        self.workers.stop(machine)
        node = f"{name}-{self.SLICES[name] - 1}" if name in self.SLICES else name
        if isinstance(how, dict):  # the queue entry alone is left
            self.google.call("POST", "edit", {"name": f"nodes/{node}", "remove": True})
            self.google.call("POST", "edit", {"name": f"queuedResources/{name}", "body": {"state": how}})
        else:
            self.google.preempt(thing if name in self.GROUPS else node, how)
        self.workers.start(machine)

    def last_of_group(self, name):
        """Its last worker's number here, and what the cloud calls that machine."""
        machines = {thing["body"]["name"]: thing["body"] for thing in self.google.things("compute.instances").values()
                    if thing["body"]["name"].rsplit("-", 1)[0] == name}
        last = max(machines)
        address = machines[last]["networkInterfaces"][0]["networkIP"]
        return next(n for n in self.NODES[name] if self.workers.address(n) == address), f"instances/{last}"


class Keep(KeptWorld):
    LOSSES = {"preempted": "PREEMPTED", "terminated": "TERMINATED", "stopped": "STOPPED", "repairing": "REPAIRING",
              "unknown": "UNKNOWN", "hidden": "HIDDEN", "vanished": "vanish", "maintained": "maintenance",
              "suspended": SUSPENDED, "failed": FAILED, "queued-preempted": "PREEMPTED", "queued-hidden": "HIDDEN",
              "two-hosts": "PREEMPTED", "two-slices": "vanish", "undisturbed": None,
              # Groups of machines: one that stops, one that is taken away, one of two.
              "group-stopped": "TERMINATED", "group-taken": "vanish", "two-of-group": "TERMINATED",
              "group-maintained": "maintenance"}
    SLICES = {"two-slices": 2}
    GROUPS = {"group-stopped": [], "group-taken": ["--spot", "--ttl", "8h"], "two-of-group": ["--spot"],
              "group-maintained": []}
    QUEUED = ("suspended", "failed", "queued-preempted", "queued-hidden")
    NODES = places(LOSSES)
    WORKERS = sum(map(len, NODES.values()))

    def test_the_end_is_that_of_an_undisturbed_run(self):
        for some in batched(self.LOSSES, 5):
            self.lose_and_compare(some)
        log = self.google.log()
        assert_all_valid(log)
        made = [method.rsplit(".", 2)[-2] for method, _, _ in mutations(log) if method.endswith((".create", ".insert"))]
        queued = len(self.QUEUED) + len(self.SLICES)
        self.assertEqual(made.count("queuedResources"), 2 * queued)
        self.assertEqual(made.count("nodes"), 2 * (len(self.LOSSES) - queued - len(self.GROUPS)) - 1)
        self.assertEqual(made.count("instanceGroupManagers"), 2 * len(self.GROUPS))
        templates = [body for method, _, body in mutations(log) if method == "compute.instanceTemplates.insert"]
        for name in self.GROUPS:
            first, second = (self.lasting(body["properties"]) for body in templates if body["name"] == f"sluice-{name}")
            self.assertEqual(second, first)

    @staticmethod
    def lasting(properties):
        """Of a template what is the same when it is made again: not the seconds until its end, nor how networks are named."""
        scheduling = {name: value for name, value in properties["scheduling"].items() if name != "maxRunDuration"}
        disks = [disk.get("initializeParams", disk) for disk in properties["disks"]]
        return {**properties, "scheduling": scheduling, "disks": disks, "networkInterfaces": [
            {"accessConfigs": interface.get("accessConfigs")} for interface in properties["networkInterfaces"]]}

    def lose_and_compare(self, names):
        kept = {name: self.begin(name, COUNTING) for name in names}
        for name in names:
            store, process = kept[name]
            self.reach_middle(name, process, [store / f"half-{rank}" for rank in range(len(self.NODES[name]))])
            if name == "undisturbed":
                # Its program waits in the middle like the others: told to end, and run again by hand.
                process.send_signal(signal.SIGINT)
                self.assertEqual(self.finish(process)[0], 130)
                kept[name] = self.begin(name, "SLUICE_RESTART=1\n" + COUNTING)
            else:
                self.lose(name)
        expected = 0
        for n in range(1, 61):
            expected = (expected * 31 + n) % 1000003
        for name, (store, process) in kept.items():
            status, out, err = self.finish(process)
            self.assertEqual(status, 0, f"{name}: {err}")
            if self.LOSSES[name]:
                # Who was told saved at once; who was lost has what was saved before.
                self.assertIn("from 25" if name.endswith("maintained") else "from 20", out)
                self.assertIn("restart 1", out, f"{name}: {err}")
            if name in self.SLICES:
                self.assertIn(f"the slice is TERMINATED (slice 1 of 2, {name}-1): ending the run", err)
                self.assertIn("deleting and re-creating it and the others of its 2 slices, which are made together", err)
            for rank in range(len(self.NODES[name])):
                self.assertEqual((store / f"result-{rank}").read_text(), f"60 {expected}\n", name)


class LeftSlices(KeptWorld):
    """One of two slices is taken back, and the run continues with the other."""
    LOSSES = {"two-left": "PREEMPTED"}
    SLICES = {"two-left": 2}
    NODES = places(LOSSES)
    WORKERS = 2

    def test_the_run_goes_on_with_what_is_left(self):
        store, process = self.begin("two-left", COUNTING, before=("--min-slices", "1"))
        self.reach_middle("two-left", process, [store / "half-0", store / "half-1"])
        self.lose("two-left")
        status, out, err = self.finish(process)
        self.assertEqual(status, 0, err)
        self.assertIn("the slice is PREEMPTED (slice 1 of 2, two-left-1): ending the run", err)
        self.assertIn("going on with 1 of 2 slices (0), as --min-slices 1 allows", err)
        self.assertIn("restart 1", out)
        self.assertTrue((store / "result-0").exists())
        self.assertFalse((store / "result-1").exists())
        made = [method for method, _, _ in mutations(self.google.log()) if method.endswith("queuedResources.create")]
        self.assertEqual(len(made), 1)  # the test's own
        assert_all_valid(self.google.log())


class Training(KeptWorld):
    """On two hosts each trains with half of the batches, and they average their gradients."""
    LOSSES = {"maintained": "maintenance", "suspended": SUSPENDED, "two-hosts": "PREEMPTED"}
    if ALL:
        LOSSES = {name: how for name, how in Keep.LOSSES.items() if how and name != "two-slices"}
        GROUPS = Keep.GROUPS
    QUEUED = tuple(name for name in LOSSES if name in Keep.QUEUED)
    NODES = places([*LOSSES, "whole", "two-whole"])
    WORKERS = sum(map(len, NODES.values()))

    def setUp(self):
        done = subprocess.run([PROGRAM, "train", "--help"], capture_output=True, text=True)
        if done.returncode != 0:
            self.skipTest("the program was built without LibTorch")

    def words(self, hosts):
        how = ["--device", "cpu", "--batch-size", "32"] if hosts == 1 else ["--devices", "1", "--global-batch-size", "32"]
        # What a sanitizer is told does not go through ssh by itself.
        told = [f"{name}={value}" for name, value in os.environ.items() if name.endswith("SAN_OPTIONS")]
        return ["env", *told, PROGRAM, "train", "--model", "mlp", "--fake-data", "--classes", "10", "--train-size", "512",
                "--test-size", "64", "--epochs", "3", "--save-steps", "8", "--log-steps", "64", *how]

    def files(self, folder):
        return {name: (Path(folder) / "last" / name).read_bytes() for name in ("model.safetensors", "state.safetensors")}

    def undisturbed(self, name):
        """On hosts of its own: how many cores a process has decides in which order XLA's CPU adds."""
        hosts, folder = len(self.NODES[name]), self.work / name
        status, _, err = self.run_program("run", "--tpu", name, "--", *self.words(hosts), "--logdir", folder)
        self.assertEqual(status, 0, err)
        return self.files(folder)

    def test_the_weights_are_those_of_an_undisturbed_run(self):
        whole = {len(self.NODES[name]): self.undisturbed(name) for name in ("whole", "two-whole")}
        for some in batched(self.LOSSES, 3):
            kept = {}
            for name in some:
                kept[name] = self.begin(name, TRAINING, *self.words(len(self.NODES[name])))
            for name, (store, process) in kept.items():
                self.reach_middle(name, process, [store / "half-0"])
                self.lose(name)
            for name, (store, process) in kept.items():
                status, out, err = self.finish(process)
                self.assertEqual(status, 0, f"{name}: {out}{err}")
                self.assertIn("Going on from", out, name)
                ended, wanted = self.files(store / "log"), whole[len(self.NODES[name])]
                self.assertEqual([file for file in wanted if ended[file] != wanted[file]], [], f"{name}: {out}")


if __name__ == "__main__":
    # enter_network() begins this program again.
    if ALL and os.environ.get("SLUICE_TEST_NETWORK") == "own":
        sys.argv.remove("--all")
    main()
