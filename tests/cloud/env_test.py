"""`sluice env` against the fake of Google's services: env_test.py SLUICE [--all] [CLASS…].

--all: the sweeps kill the program at every request, and spoil every one; without it every third and every sixth, with
an offset from the date."""

import concurrent.futures
import datetime
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from google_fake_support import GoogleFake, assert_all_valid, mutations, test_python

ZONE = "us-central1-b"
WORLD = {"projects": ["p"], "zones": {ZONE: {"types": ["v5litepod-8", "v5litepod-16", "v6e-8", "v3-32"]}, "us-east5-b": {}}, "timing": {"default": {"polls": 1}},
         "scripts": [{"name": "sluice-e-prepare", "after": 0, "times": 1000,
                      "guest_attributes": {"sluice/status": "0", "sluice/tail": "done"}}]}
SMALL = f"""
[env]
name = "e"
project = "p"
zones = ["{ZONE}"]
owner = "me"
ttl = "8h"

[tpu]
type = "v5litepod-8"

[machines]
type = "e2-standard-8"
count = 2

[nfs]
size = 1024

[disk]
size = 100
script = "fill.sh"
machine = "e2-standard-8"

[bucket]
"""
# The lasting names of what it makes.
EVERYTHING = {"sluice-e-network", "sluice-e-internal", "sluice-e-ssh", "sluice-e-nfs", "sluice-e-disk",
              "sluice-e-machine-0", "sluice-e-machine-1", "sluice-p-e", "sluice-e-tpu"}
PROGRAM = None
ALL = False


class World:
    """A fake, a folder with the files, and the program between them."""

    def __init__(self, config=None, toml=SMALL):
        self.fake = GoogleFake({**WORLD, **(config or {})})
        self.folder = tempfile.TemporaryDirectory(prefix="sluice-env-")
        self.path = Path(self.folder.name)
        (self.path / "fill.sh").write_text("#!/bin/sh\ntouch data\n")
        self.write(toml)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.fake.stop()
        self.folder.cleanup()

    def write(self, toml):
        (self.path / "sluice-env.toml").write_text(toml)

    def environment(self):
        return {**os.environ, **self.fake.environment(), "SLUICE_CLOUD_RETRY": "0.005:0.02:20", "USER": "me",
                "XDG_STATE_HOME": str(self.path / "state"), "HOME": self.folder.name}

    def command(self, *arguments):
        return [PROGRAM, "env", *arguments]

    def run(self, *arguments, status=0):
        result = subprocess.run(self.command(*arguments), env=self.environment(), cwd=self.path, check=False,
                                capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)
        if status is not None and result.returncode != status:
            raise AssertionError(f"sluice env {arguments}: status {result.returncode}, expected {status}\n"
                                 f"{result.stdout}\n{result.stderr}")
        return result

    def killed_at(self, number, *arguments):
        return self.fake.run_killed_at(number, self.command(*arguments), env=self.environment(), cwd=self.path)

    def names(self):
        """Of what exists beyond what was given, without boot disks, subnetworks and queue entries."""
        found = {}
        for name, thing in self.fake.things().items():
            kind = thing["kind"].split(".")[-1]
            short = name.rsplit("/", 1)[1]
            if thing["given"] or kind in ("subnetworks", "queuedResources") or (
                    kind == "disks" and short != "sluice-e-disk"):
                continue
            found.setdefault(short, []).append(kind)
        return found


def check_whole(test, world, names=frozenset(EVERYTHING)):
    found = world.names()
    test.assertEqual(set(found), set(names))
    test.assertTrue(all(len(kinds) == 1 for kinds in found.values()), found)
    tpu = [thing for thing in world.fake.things("tpu.nodes").values()]
    test.assertEqual([node["state"] for node in tpu], ["READY"])


class LifeTest(unittest.TestCase):
    def test_from_nothing_and_back(self):
        with World() as world:
            plan = json.loads(world.run("plan", "--json").stdout)
            self.assertEqual({step["act"] for step in plan["steps"]}, {"create", "fill"})
            self.assertEqual([step["part"] for step in plan["steps"]],
                             ["network", "firewall", "firewall", "nfs", "disk", "preparation", "machine", "machine",
                              "bucket", "tpu"])
            self.assertAlmostEqual(plan["dollars_to_end"], plan["dollars_an_hour"] * 8, places=1)
            self.assertEqual(world.names(), {})
            world.run("apply")
            check_whole(self, world)
            log = world.fake.log()
            assert_all_valid(log)
            rules = [body for method, _, body in mutations(log) if method == "compute.firewalls.insert"]
            self.assertEqual({range for rule in rules for range in rule["sourceRanges"]},
                             {"35.235.240.0/20", "10.128.0.0/9"})
            self.assertEqual([rule["allowed"] for rule in rules if "35.235.240.0/20" in rule["sourceRanges"]],
                             [[{"IPProtocol": "tcp", "ports": ["22"]}]])
            self.assertFalse([body for _, _, body in mutations(log) if "0.0.0.0" in json.dumps(body)])
            shown = json.loads(world.run("show", "--json").stdout)
            self.assertEqual({piece["name"] for piece in shown["pieces"]}, EVERYTHING)
            after = world.fake.last_number()
            world.run("apply")
            self.assertEqual(mutations(world.fake.log(after)), [])
            listed = json.loads(world.run("list", "--json", "--project", "p").stdout)
            self.assertEqual([(one["env"], one["owner"], one["pieces"]) for one in listed["environments"]],
                             [("e", "me", 9)])
            world.run("destroy", status=2)
            check_whole(self, world)
            world.run("destroy", "--yes")
            self.assertTrue(world.fake.is_empty(), world.fake.left())
            assert_all_valid(world.fake.log())
            world.run("destroy", "--yes")

    def test_disk_is_read_only_and_its_machine_goes(self):
        with World() as world:
            world.run("apply")
            for machine in world.fake.things("compute.instances").values():
                self.assertEqual([disk["mode"] for disk in machine["body"]["disks"] if not disk.get("boot")],
                                 ["READ_ONLY"])
                self.assertIn("maxRunDuration", machine["body"]["scheduling"])
            node = next(iter(world.fake.things("tpu.nodes").values()))["body"]
            self.assertEqual(node["dataDisks"][0]["mode"], "READ_ONLY")
            self.assertIn("compute.instances.delete", [method for method, _, _ in mutations(world.fake.log())])

    def test_dry_run_sends_nothing(self):
        with World() as world:
            out = world.run("apply", "--dry-run").stdout
            self.assertEqual(mutations(world.fake.log()), [])
            for piece in ("POST", "/global/networks", "/firewalls", "/instances?instanceId=sluice-e-nfs", "/disks",
                          "sluice-e-prepare", "sluice-e-machine-1", "sluice-e-tpu", "35.235.240.0/20"):
                self.assertIn(piece, out)
            self.assertEqual(world.names(), {})

    def test_keeps_what_it_is_told_to(self):
        with World() as world:
            world.run("apply")
            text = world.run("destroy", "--yes", "--keep", "disk,bucket").stderr
            self.assertEqual(set(world.names()), {"sluice-e-disk", "sluice-p-e"})
            self.assertIn("stays: disk sluice-e-disk", text)

    def test_a_bucket_with_data_stays(self):
        with World() as world:
            world.run("apply")
            world.fake.google("POST", "/upload/storage/v1/b/sluice-p-e/o?uploadType=media&name=model", {"a": 1})
            self.assertIn("it holds data", world.run("destroy", "--yes").stderr)
            self.assertEqual(set(world.names()), {"sluice-p-e"})
            world.run("destroy", "--yes", "--only", "bucket")
            self.assertTrue(world.fake.is_empty(), world.fake.left())

    def test_two_side_by_side(self):
        with World({"scripts": [{"name": "prepare", "times": 100, "guest_attributes": {"sluice/status": "0"}}]}) as world:
            world.run("apply")
            world.write(SMALL.replace('name = "e"', 'name = "f"'))
            world.run("apply")
            world.run("destroy", "--yes")
            world.write(SMALL)
            check_whole(self, world)


class UpdateTest(unittest.TestCase):
    def test_only_the_tpu(self):
        with World() as world:
            world.run("apply")
            after = world.fake.last_number()
            world.write(SMALL.replace("v5litepod-8", "v5litepod-16"))
            self.assertIn("deletes and creates", world.run("apply").stdout)
            self.assertEqual(mutations(world.fake.log(after)), [])
            world.run("update", "--only", "tpu", status=2)
            world.run("update", "--only", "tpu", "--yes")
            touched = mutations(world.fake.log(after))
            self.assertTrue(touched)
            self.assertEqual([method for method, _, _ in touched if not method.startswith("tpu.")], [])
            node = next(iter(world.fake.things("tpu.nodes").values()))["body"]
            self.assertEqual(node["acceleratorType"], "v5litepod-16")

    def test_machines_and_growth(self):
        with World() as world:
            world.run("apply")
            after = world.fake.last_number()
            world.write(SMALL.replace("count = 2", "count = 3").replace("size = 100\n", "size = 150\n"))
            world.run("update", "--only", "machines,disk", "--yes")
            self.assertEqual([method for method, _, _ in mutations(world.fake.log(after))],
                             ["compute.disks.resize", "compute.instances.insert"])
            disk = world.fake.things("compute.disks")[f"projects/p/zones/{ZONE}/disks/sluice-e-disk"]
            self.assertEqual(disk["body"]["sizeGb"], "150")
            world.write(SMALL)
            world.run("update", "--only", "machines", "--yes")
            check_whole(self, world)

    def test_a_changed_script_fills_the_disk_again(self):
        with World() as world:
            world.run("apply")
            (world.path / "fill.sh").write_text("#!/bin/sh\ntouch more\n")
            self.assertIn("script", world.run("apply").stdout)
            self.assertIn("add machines to --only", world.run("update", "--only", "disk,tpu", status=1).stderr)
            world.run("update", "--only", "disk,machines,tpu", "--yes")
            check_whole(self, world)


class RefusalTest(unittest.TestCase):
    def refused(self, config, toml, text, status=1, files=None):
        with World(config, toml) as world:
            result = world.run("apply", status=status)
            self.assertIn(text, result.stderr)
            self.assertEqual(mutations(world.fake.log()), [])
            return world.fake.log()

    def test_max_cost_asks_nobody(self):
        log = self.refused({}, SMALL.replace('ttl = "8h"', 'ttl = "8h"\nmax_cost = 10'), "more than env.max_cost")
        self.assertEqual([entry["method"] for entry in log if entry["method"] == "POST"], [])

    def test_a_misspelt_key(self):
        self.refused({}, SMALL.replace("[nfs]\nsize", "[nfs]\nsice"), "did you mean size?", status=2)

    def test_a_past_ttl(self):
        self.refused({}, SMALL.replace('"8h"', '"2020-01-01T00:00:00Z"'), "this time has passed")

    def test_a_service_that_is_off(self):
        self.refused({"services": {"tpu.googleapis.com": False}}, SMALL, "gcloud services enable tpu.googleapis.com")

    def test_a_permission_that_is_missing(self):
        self.refused({"denied_permissions": ["tpu.nodes.delete"]}, SMALL, "tpu.nodes.delete")

    def test_a_zone_without_the_type(self):
        self.refused({"zones": {ZONE: {"types": ["v3-8"]}, "us-east5-b": {"types": ["v5litepod-8"]}}}, SMALL,
                     "zones that have it: us-east5-b")

    def test_quota(self):
        self.refused({"quotas": [{"metric": "CPUS", "region": "us-central1", "limit": 8}]}, SMALL, "limit 8, used 0")

    def test_a_foreign_disk(self):
        disk = {"name": f"projects/p/zones/{ZONE}/disks/sluice-e-disk", "body": {"name": "sluice-e-disk", "sizeGb": "10", "type": f"projects/p/zones/{ZONE}/diskTypes/pd-standard"}}
        self.refused({"resources": [disk]}, SMALL, "was not made by Sluice")

    def test_another_owner(self):
        with World() as world:
            world.run("apply", "--only", "bucket")
            world.write(SMALL.replace('"me"', '"you"'))
            self.assertIn("of me exists", world.run("apply", status=1).stderr)
            self.assertIn("is me's", world.run("destroy", "--yes", status=1).stderr)

    def test_by_hand_is_left_alone(self):
        given = [{"name": f"projects/p/zones/{ZONE}/disks/by-hand", "body": {"name": "by-hand", "sizeGb": "10", "type": f"projects/p/zones/{ZONE}/diskTypes/pd-standard"}},
                 {"name": "b/by-hand", "body": {"name": "by-hand"}}]
        with World({"resources": given}) as world:
            world.run("apply")
            world.run("destroy", "--yes")
            self.assertTrue(world.fake.is_empty(), world.fake.left())

    def test_a_script_that_fails(self):
        scripts = [{"name": "prepare", "times": 1, "guest_attributes": {"sluice/status": "3",
                                                                       "sluice/tail": "no such bucket"}},
                   {"name": "prepare", "times": 1, "serial": "copying\nsluice-prepare: exit status 0\n"}]
        with World({"scripts": scripts}) as world:
            text = world.run("apply", status=1).stderr
            self.assertIn("ended with status 3", text)
            self.assertIn("no such bucket", text)
            self.assertNotIn("sluice-e-prepare", world.names())
            world.run("apply")
            check_whole(self, world)

    def test_a_bucket_name_of_somebody_else(self):
        with World({"taken_buckets": ["sluice-p-e"]}) as world:
            self.assertIn("taken by somebody else", world.run("apply", "--only", "bucket", status=1).stderr)

    def test_an_active_run(self):
        with World() as world:
            world.run("apply")
            folder = world.path / "state" / "sluice" / "runs" / "1125-000000-aaaa"
            self.write_run(world, folder)
            self.assertIn("1125-000000-aaaa", world.run("destroy", "--yes", status=1).stderr)
            check_whole(self, world)
            world.run("destroy", "--yes", "--force")
            self.assertTrue(world.fake.is_empty(), world.fake.left())

    @staticmethod
    def write_run(world, folder):
        """A record as `sluice run --hosts ADDRESS --dry-run`'s run would leave it."""
        address = json.loads(world.run("show", "--json").stdout)["pieces"][-1]["hosts"][0]["internal_ip"]
        subprocess.run([PROGRAM, "run", "--hosts", address, "--ssh-config", "/nonexistent", "--", "true"], check=False,
                       env=world.environment(), capture_output=True, timeout=60)
        made = next(path for path in folder.parent.iterdir())
        record = json.loads((made / "run.json").read_text())
        text = json.dumps(record).replace(made.name, folder.name)
        record = json.loads(text)
        record["state"] = "running"
        folder.mkdir()
        (folder / "run.json").write_text(json.dumps(record))


class ImportTest(unittest.TestCase):
    def test_becomes_a_plan(self):
        with World() as world:
            (world.path / "values.env").write_text(
                'ENV_BUILD_NAME="20200430" # unique\nPROJECT_ID="p"\nZONE="us-central1-b"\nMOUNT_POINT="/mnt/common"\n'
                'TPU_ACCELERATOR_TYPE="v3-32"\nMACHINE_TYPE="n1-standard-8"\nSHARED_FS="tpushare"\n'
                'SHARED_FS_CAPACITY="1024"\nSHARED_FS_TIER="STANDARD"\nSHARED_PD_DISK_ATTACH=true\n'
                'SHARED_PD_DISK_SIZE="2055"\nSHARED_PD_DISK_TYPE="pd-ssd"\nMIG_SEED_DATA_PREP_SCRIPT="fill.sh"\n')
            world.run("import", "values.env", "--out", "new.toml")
            plan = json.loads(world.run("plan", "new.toml", "--json", status=None).stdout)
            self.assertEqual(len([step for step in plan["steps"] if step["part"] == "machine"]), 4)
            self.assertEqual([step["why"] for step in plan["steps"] if step["part"] == "disk"], ["2055 GiB pd-ssd"])
            world.run("import", "values.env", "--out", "new.toml", status=2)


def numbers(count, step):
    """Which requests the sweeps take."""
    if ALL:
        return range(1, count + 1)
    return range(1 + datetime.date.today().toordinal() % step, count + 1, step)


def side_by_side(jobs):
    """Two at a time, each with a fake of its own."""
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        return list(pool.map(lambda job: job(), jobs))


class SweepTest(unittest.TestCase):
    """Whatever goes wrong at whichever request: run again, and the end is the same."""

    def sweep(self, prepare, arguments, check, spoil=None, toml=SMALL):
        """prepare(world) makes the world; then `arguments` is killed at (or spoilt by) each request."""
        def count():
            with World(toml=toml) as world:
                prepare(world)
                after = world.fake.last_number()
                world.run(*arguments)
                return world.fake.last_number() - after

        total = count()
        chosen = list(numbers(total, 3 if spoil is None else 6))
        halves = [chosen[0::2], chosen[1::2]]

        def part(some):
            failures = []
            with World(toml=toml) as world:
                for number in some:
                    world.fake.reset({**WORLD, "log": str(world.fake.log_path)})
                    world.write(toml)
                    prepare(world)
                    before = world.fake.last_number()
                    try:
                        if spoil is None:
                            ended = world.killed_at(number, *arguments)
                            self.assertTrue(ended is None or number > total - 3, "it was not killed")
                        else:
                            world.fake.faults({"request": world.fake.last_number() + number, **spoil})
                            world.run(*arguments, status=None)
                            world.fake.clear_faults()
                        world.run(*arguments)
                        check(world)
                        assert_all_valid(world.fake.log(before))
                    except AssertionError as error:
                        failures.append(f"request {number}: {error}")
            return failures
        failures = sum(side_by_side([lambda some=some: part(some) for some in halves]), [])
        print(f"{self.id()}: {len(chosen)} of {total} requests", file=sys.stderr)
        self.assertEqual(failures, [])

    def whole(self, world):
        check_whole(self, world)

    def empty(self, world):
        self.assertTrue(world.fake.is_empty(), world.fake.left())

    def larger(self, world):
        check_whole(self, world)
        node = next(iter(world.fake.things("tpu.nodes").values()))["body"]
        self.assertEqual(node["acceleratorType"], "v5litepod-16")

    @staticmethod
    def nothing(world):
        pass

    @staticmethod
    def made(world):
        world.run("apply")

    @staticmethod
    def before_update(world):
        world.run("apply")
        world.write(SMALL.replace("v5litepod-8", "v5litepod-16"))

    def test_apply_killed(self):
        self.sweep(self.nothing, ["apply"], self.whole)

    def test_destroy_killed(self):
        self.sweep(self.made, ["destroy", "--yes"], self.empty)

    def test_update_killed(self):
        self.sweep(self.before_update, ["update", "--only", "tpu", "--yes"], self.larger)

    def test_apply_with_429(self):
        self.sweep(self.nothing, ["apply"], self.whole, {"kind": "status", "code": 429, "retry_after": 0})

    def test_apply_with_503(self):
        self.sweep(self.nothing, ["apply"], self.whole, {"kind": "status", "code": 503})

    def test_apply_with_resets(self):
        self.sweep(self.nothing, ["apply"], self.whole, {"kind": "reset"})

    def test_apply_with_lost_answers(self):
        self.sweep(self.nothing, ["apply"], self.whole, {"kind": "lost"})

    def test_destroy_with_lost_answers(self):
        self.sweep(self.made, ["destroy", "--yes"], self.empty, {"kind": "lost"})


class OperationTest(unittest.TestCase):
    """Operations that end late with an error, with or without their effect, or never."""
    kinds = ["networks.insert", "firewalls.insert", "file.projects.locations.instances.create", "disks.insert",
             "compute.instances.insert", "nodes.create|queuedResources.create"]
    ends = ["networks.delete", "firewalls.delete", "file.projects.locations.instances.delete", "disks.delete",
            "compute.instances.delete", "nodes.delete|queuedResources.delete"]

    def test_late_errors(self):
        def one(method, code, leaves):
            failure = {"method": method, "times": 1, "code": code, **({"leaves": "resource"} if leaves else {})}
            with World({"late_failures": [failure]}) as world:
                world.run("apply", status=None)
                world.run("apply")
                check_whole(self, world)
                world.run("destroy", "--yes", status=None)
                world.run("destroy", "--yes")
                self.assertTrue(world.fake.is_empty(), (method, code, world.fake.left()))
        cases = [(method, code, leaves) for method in self.kinds + self.ends for code in (8, 9, 13)
                 for leaves in (False, True)]
        chosen = cases if ALL else cases[datetime.date.today().toordinal() % 6::6]
        side_by_side([lambda case=case: one(*case) for case in chosen])

    def test_a_create_that_never_ends(self):
        with World({"never_ending": [{"method": "nodes.create|queuedResources.create|disks.insert|instances.create",
                                      "times": 10}]}) as world:
            world.run("apply")
            check_whole(self, world)


if __name__ == "__main__":
    if test_python() is None:
        print("google-api-python-client is not installed (scripts/python-test.txt)")
        sys.exit(77)
    ALL = "--all" in sys.argv
    arguments = [argument for argument in sys.argv[1:] if argument != "--all"]
    if not arguments or arguments[0] == "none":
        print("the program is not built in this configuration")
        sys.exit(77)
    PROGRAM = str(Path(arguments[0]).resolve())
    unittest.main(argv=[sys.argv[0], *arguments[1:]], verbosity=2)
