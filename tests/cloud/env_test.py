"""`sluice env` against the fake of Google's services: env_test.py SLUICE [CLASS…]. What may go wrong in between:
env_trouble_test.py."""

import datetime
import json
import os
import pty
import re
import subprocess
import unittest

from env_world import EVERYTHING, GROUP, PROGRAM, SMALL, WORLD, ZONE, World, check_whole, ends, main
from google_fake_support import assert_all_valid, mutations


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

    def test_without_credentials_it_is_as_if_there_were_nothing(self):
        def requests(text):
            found = re.findall(r"^(?:POST|PUT|PATCH|DELETE) https?://[^/]+(\S+)", text, re.M)
            return [re.sub("requestId=[-0-9a-f]+", "", request) for request in found]

        with World() as world:
            asked = world.run("apply", "--dry-run")
            after = world.fake.last_number()
            nobody = {"SLUICE_GOOGLE_ENDPOINT": "", "GOOGLE_CLOUD_PROJECT": "", "SLUICE_GOOGLE_PROJECT": ""}
            for verb in ("apply", "update"):
                unasked = world.run(verb, "--dry-run", **nobody)
                self.assertEqual(requests(unasked.stdout), requests(asked.stdout))
                self.assertEqual(len(requests(unasked.stdout)), 12)
                self.assertIn("note: there are no credentials of Google's here", unasked.stderr)
                self.assertIn("these are the steps for a new project", unasked.stderr)
                self.assertNotIn("is as sluice-env.toml says", unasked.stderr)
            plan = json.loads(world.run("plan", "--json", **nobody).stdout)
            whole = json.loads(world.run("plan", "--json").stdout)
            self.assertEqual((plan["steps"], plan["dollars_an_hour"]), (whole["steps"], whole["dollars_an_hour"]))
            self.assertEqual((plan["asked"], whole["asked"]), (False, True))
            self.assertIn("sluice-e-tpu", world.run("plan", **nobody).stdout)
            # What is done, and what is only known by asking, needs them.
            for words in (("apply",), ("destroy", "--dry-run"), ("show",)):
                self.assertIn("it needs credentials", world.run(*words, status=1, **nobody).stderr)
            named = {**nobody, "GOOGLE_APPLICATION_CREDENTIALS": "/nonexistent.json"}
            self.assertIn("cannot open /nonexistent.json", world.run("apply", "--dry-run", status=1, **named).stderr)
            world.write(SMALL.replace('ttl = "8h"', 'ttl = "8h"\nmax_cost = 10'))
            self.assertIn("more than env.max_cost", world.run("plan", status=1, **nobody).stderr)
            self.assertEqual(mutations(world.fake.log(after)), [])

    def on_terminal(self, world, answer, *arguments):
        """Its status and what it says, where an answer is typed at a terminal."""
        ours, theirs = pty.openpty()
        process = subprocess.Popen(world.command(*arguments), env=world.environment(), cwd=world.path, text=True,
                                   stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        os.close(theirs)
        os.write(ours, answer)
        said = process.communicate(timeout=120)[0]
        os.close(ours)
        return process.returncode, said

    def test_on_a_terminal_it_shows_the_plan_and_asks(self):
        with World() as world:
            status, said = self.on_terminal(world, b"n\n", "apply", "--only", "network")
            self.assertEqual(status, 1, said)
            self.assertEqual(mutations(world.fake.log()), [])
            for words in ("sluice-e-network", "It will cost $0.00 an hour", "Go on? [y/N]"):
                self.assertIn(words, said)
            status, said = self.on_terminal(world, b"y\n", "apply", "--only", "network")
            self.assertEqual(status, 0, said)
            self.assertIn("sluice-e-network", world.names())
            for words in (("apply", "--only", "network"), ("apply", "--dry-run"), ("apply", "--yes")):  # nothing to ask
                status, said = self.on_terminal(world, b"n\n", *words)
                self.assertEqual(status, 0, said)
                self.assertNotIn("Go on?", said)
            check_whole(self, world)

    def test_only_what_is_asked_for_is_priced(self):
        with World(toml=SMALL.replace('ttl = "8h"', 'ttl = "8h"\nmax_cost = 10')) as world:
            self.assertIn("It will cost $0.00 an hour", world.run("apply", "--only", "network").stdout)
            self.assertIn("more than env.max_cost 10", world.run("apply", "--only", "tpu", status=1).stderr)

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


class HyperdiskTest(unittest.TestCase):
    """v6e takes no other disk, and several readers only once its access mode says so."""
    TOML = SMALL.replace("v5litepod-8", "v6e-8").replace('machine = "e2-standard-8"\n', "").replace("e2-", "c3-")

    def check(self, world):
        check_whole(self, world)
        disk = world.fake.things("compute.disks")[f"projects/p/zones/{ZONE}/disks/sluice-e-disk"]["body"]
        self.assertEqual((disk["type"].rsplit("/", 1)[1], disk["accessMode"]), ("hyperdisk-ml", "READ_ONLY_MANY"))
        assert_all_valid(world.fake.log())
        after = world.fake.last_number()
        world.run("apply")
        self.assertEqual(mutations(world.fake.log(after)), [])

    def test_is_shared_once_it_is_filled(self):
        with World(toml=self.TOML) as world:
            world.run("apply")
            self.check(world)
            order = [method for method, path, _ in mutations(world.fake.log()) if "disk" in path or "prepare" in path]
            self.assertEqual(order, ["compute.disks.insert", "compute.disks.setLabels", "compute.instances.delete",
                                     "compute.disks.update"])
            # Another one that somebody took the mode from gets it again.
            world.run("destroy", "--yes", "--only", "tpu,machines")
            world.fake.call("POST", "edit", {"name": "disks/sluice-e-disk", "body": {"accessMode": "READ_WRITE_SINGLE"}})
            world.run("apply")
            self.check(world)
            world.run("destroy", "--yes")
            self.assertTrue(world.fake.is_empty(), world.fake.left())

    def test_of_a_snapshot(self):
        snapshot = {"name": "projects/p/global/snapshots/filled", "body": {"name": "filled"}}
        with World({"resources": [snapshot]}, self.TOML.replace('script = "fill.sh"', 'snapshot = "filled"')) as world:
            world.run("apply")
            self.check(world)

    def test_machines_that_cannot_have_it(self):
        with_e2 = self.TOML.replace("[bucket]", 'machine = "e2-standard-8"\n\n[bucket]')
        for toml, words in ((self.TOML.replace("c3-", "n1-"), "n1-standard-8 of machines.type"),
                            (with_e2, "e2-standard-8 of disk.machine")):
            with World(toml=toml) as world:
                self.assertIn(words + ": N1 and E2 have no Hyperdisk", world.run("apply", status=2).stderr)
                self.assertEqual(world.fake.log(), [])


class GroupTest(unittest.TestCase):
    """tpu7x is a group of Compute Engine's machines."""
    def check(self, world):
        plan = json.loads(world.run("plan", "--json").stdout)
        self.assertEqual({step["act"] for step in plan["steps"]}, {"same"}, plan["steps"])
        tpu = [piece for piece in json.loads(world.run("show", "--json").stdout)["pieces"] if piece["part"] == "tpu"]
        self.assertEqual([(one["type"], one["state"], len(one["hosts"])) for one in tpu], [("tpu7x-16", "READY", 2)])
        assert_all_valid(world.fake.log())
        return tpu[0]

    def test_from_nothing_and_back(self):
        with World(toml=GROUP) as world:
            world.run("apply")
            self.check(world)
            for name, machine in world.fake.things("compute.instances").items():
                readers = [disk for disk in machine["body"]["disks"] if disk["mode"] == "READ_ONLY"]
                self.assertEqual(len(readers), 1, name)
            world.run("destroy", "--yes")
            self.assertTrue(world.fake.is_empty(), world.fake.left())

    def test_its_end_moves(self):
        with World(toml=GROUP) as world:
            world.run("apply")
            first = self.check(world)["expires"]
            world.write(GROUP.replace('"8h"', '"4h"'))
            steps = json.loads(world.run("plan", "--json").stdout)["steps"]
            why, = [step["why"] for step in steps if step["act"] == "mark" and step["part"] == "tpu"]
            self.assertIn("Google itself deletes it at the time set when it was created", why)
            world.run("apply")
            moved = self.check(world)["expires"]
            self.assertEqual(datetime.datetime.fromisoformat(first) - datetime.datetime.fromisoformat(moved), datetime.timedelta(hours=4))
            # What goes by the mark goes by the new one.
            listed = world.sluice("tpu", "list", "--json", "--project", "p")
            self.assertEqual([one["expires"] for one in json.loads(listed.stdout)["slices"]], [moved])

    def test_a_machine_that_is_lost(self):
        with World(toml=GROUP.replace("tpu7x-16\"", 'tpu7x-16"\ncapacity = "spot"')) as world:
            world.run("apply")
            self.check(world)
            name = next(name for name in world.fake.things("compute.instances") if "-tpu-" in name)
            world.fake.preempt(name, "vanish")
            steps = json.loads(world.run("plan", "--json").stdout)["steps"]
            self.assertEqual([(step["act"], step["why"]) for step in steps if step["part"] == "tpu"],
                             [("delete", "it is PREEMPTED"), ("create", "tpu7x-16 spot")])
            world.run("apply", "--yes")
            self.check(world)


class UpdateTest(unittest.TestCase):
    def test_who_may_reach_ssh(self):
        with World() as world:
            world.run("apply")
            after = world.fake.last_number()
            world.write(SMALL.replace('owner = "me"', 'owner = "me"\nssh_from = ["203.0.113.7/32"]'))
            result = world.run("apply")
            self.assertIn("it lets in 35.235.240.0/20, the file says 203.0.113.7/32,35.235.240.0/20: "
                          "update --only network makes it again", result.stdout)
            self.assertEqual(mutations(world.fake.log(after)), [])
            world.run("update", "--yes")
            self.assertEqual([(method, body and body["sourceRanges"]) for method, _, body in mutations(world.fake.log(after))],
                             [("compute.firewalls.delete", None),
                              ("compute.firewalls.insert", ["203.0.113.7/32", "35.235.240.0/20"])])
            after = world.fake.last_number()
            world.run("update", "--yes")
            self.assertEqual(mutations(world.fake.log(after)), [])
            check_whole(self, world)

    def test_a_disk_that_is_not_filled_is_given_to_nobody(self):
        with World({"scripts": [{"name": "prepare", "times": 1, "guest_attributes": {"sluice/status": "3"}},
                                WORLD["scripts"][0]]}) as world:
            world.run("apply", status=1)  # the script failed
            after = world.fake.last_number()
            world.write(SMALL.replace("size = 100\n", "size = 90\n"))
            self.assertIn("is not filled yet", world.run("apply", status=1).stderr)
            self.assertEqual(mutations(world.fake.log(after)), [])
            world.run("update", "--yes")
            check_whole(self, world)

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


class ExpiryTest(unittest.TestCase):
    """The end of an environment's time moves in place."""

    def move(self, ttl):
        toml = SMALL.replace('ttl = "8h"', 'ttl = "8h"\nidle = "1h"')
        with World(toml=toml) as world:
            world.run("apply")
            before = ends(world)
            self.assertEqual(len(set(before.values())), 1, before)
            world.write(toml.replace('ttl = "8h"\n', ttl))
            after = world.fake.last_number()
            steps = json.loads(world.run("plan", "--json").stdout)["steps"]
            self.assertEqual([step["part"] for step in steps if step["act"] == "mark"],
                             ["firewall", "firewall", "nfs", "disk", "machine", "machine", "bucket", "tpu"])
            why = [step["why"] for step in steps if step["act"] == "mark"][-1]
            self.assertIn("Google itself deletes it at the time set when it was created", why)
            world.run("update", "--yes")
            touched = mutations(world.fake.log(after))
            self.assertEqual([method for method, _, _ in touched if "insert" in method or "delete" in method], [])
            now = ends(world)
            network = [name for name in before if "/networks/" in name]  # nothing of it can be changed
            queue = [name for name in before if "/queuedResources/" in name]
            node = world.fake.things("tpu.nodes")[f"projects/p/locations/{ZONE}/nodes/sluice-e-tpu"]["body"]
            after = world.fake.last_number()
            world.run("apply")
            self.assertEqual(mutations(world.fake.log(after)), [])
            check_whole(self, world)
            assert_all_valid(world.fake.log())
            for name in network + queue:
                del before[name]
                now.pop(name, None)
            return before, now, node["metadata"]["sluice-deadline"]

    def test_a_longer_time(self):
        before, now, deadline = self.move('ttl = "16h"\n')
        self.assertEqual(set(before), set(now))
        self.assertEqual(len(set(now.values())), 1, now)
        end = {when: datetime.datetime.strptime(when, "%Y%m%dt%H%M%Sz").replace(tzinfo=datetime.timezone.utc)
               for when in (*before.values(), *now.values())}
        name = next(iter(before))
        self.assertEqual(end[now[name]] - end[before[name]], datetime.timedelta(hours=8))
        self.assertEqual(int(deadline), int(end[now[name]].timestamp()))

    def test_no_end_any_more(self):
        _, now, deadline = self.move("")
        self.assertEqual((now, deadline), ({}, "0"))


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

    def test_the_list_of_slices_takes_the_project_of_the_file(self):
        with World({"projects": ["p", "q"]}) as world:
            world.run("apply")
            listed = world.sluice("tpu", "list", SLUICE_GOOGLE_PROJECT="q")
            self.assertIn("sluice-e-tpu", listed.stdout)
            self.assertIn("The project is p, as sluice-env.toml here says.", listed.stderr)
            self.assertIn("No TPU slices.", world.sluice("tpu", "list", "--project", "q").stdout)

    def test_a_time_that_has_passed_and_a_file_that_is_not_there(self):
        self.refused({}, SMALL.replace('"8h"', '"2020-01-01T00:00:00Z"'), "this time has passed", status=2)
        with World() as world:
            self.assertIn("values.env", world.run("import", "values.env", status=2).stderr)

    def test_a_misspelt_key(self):
        self.refused({}, SMALL.replace("[nfs]\nsize", "[nfs]\nsice"), "did you mean size?", status=2)

    def test_what_the_file_says_wrong_asks_nobody(self):
        for old, new, text in (('"p"', '"YOUR-PROJECT"', "env.project is still YOUR-PROJECT"),
                               ('"8h"', '"8 hours"', "expected a time span above 0 such as 90m")):
            self.assertIn(old, SMALL)
            self.assertEqual(self.refused({}, SMALL.replace(old, new), text, status=2), [])
        with World({}, SMALL) as world:
            self.assertIn("foo", world.run("destroy", "--keep", "foo", "--yes", status=2).stderr)
            self.assertEqual(world.fake.log(), [])

    def test_a_past_ttl(self):
        self.refused({}, SMALL.replace('"8h"', '"2020-01-01T00:00:00Z"'), "this time has passed", status=2)

    def test_a_service_that_is_off(self):
        self.refused({"services": {"tpu.googleapis.com": False}}, SMALL, "gcloud services enable tpu.googleapis.com")

    def test_what_a_service_that_is_off_hides(self):
        off = ["compute.googleapis.com", "file.googleapis.com", "tpu.googleapis.com"]
        note = "nothing is listed of a service that the project has not enabled: p "
        with World({"services": {name: False for name in off}}) as world:
            for verb in (["cost", "--project", "p"], ["sweep", "--project", "p"], ["env", "list", "--project", "p"],
                         ["env", "show"], ["env", "destroy", "--yes"]):
                with self.subTest(verb):
                    said = world.sluice(*verb)
                    self.assertEqual(sorted(line.split(note)[1] for line in said.stderr.splitlines() if note in line), off)
                    if verb[-1] != "--yes":
                        self.assertEqual(sorted(json.loads(world.sluice(*verb, "--json").stdout)["not_enabled"]),
                                         [f"p {name}" for name in off])

    def test_a_permission_that_is_missing(self):
        self.refused({"denied_permissions": ["tpu.nodes.delete"]}, SMALL, "tpu.nodes.delete")

    def test_a_zone_without_the_type(self):
        self.refused({"zones": {ZONE: {"types": ["v3-8"]}, "us-east5-b": {"types": ["v5litepod-8"]}}}, SMALL,
                     "zones that have it: us-east5-b")

    def test_quota(self):
        self.refused({"quotas": [{"metric": "CPUS", "region": "us-central1", "limit": 8}]}, SMALL, "limit 8, used 0")

    def test_tpu_quota(self):
        def limit(count):
            return {"generation": "v5e", "region": "us-central1", "limit": count}
        other = {"name": f"projects/p/locations/{ZONE}/nodes/other", "state": "PREEMPTED",
                 "body": {"acceleratorType": "v5litepod-16", "runtimeVersion": "v2-alpha-tpuv5-lite"}}
        name = "quota tpu-v5e in us-central1: "
        self.refused({"quotas": [limit(4)]}, SMALL, name + "limit 4, used 0, wanted 8 more")
        self.refused({"quotas": [limit(0)]}, SMALL, name + "limit 0, used 0, wanted 8 more")
        self.refused({"quotas": [limit(20)], "resources": [other]}, SMALL, name + "limit 20, used 16, wanted 8 more")
        # What an update deletes makes room; what runs already needs none.
        with World({"quotas": [limit(16)]}) as world:
            world.run("apply")
            world.run("apply")
            world.write(SMALL.replace("v5litepod-8", "v5litepod-16"))
            world.run("update", "--only", "tpu", "--yes")
            check_whole(self, world)

    def test_tpu_quota_of_one_zone_of_two(self):
        toml = SMALL.replace(f'["{ZONE}"]', f'["{ZONE}", "us-east5-b"]').replace("[disk]\nsize = 100\nscript = \"fill.sh\"\nmachine = \"e2-standard-8\"\n", "")
        with World({"quotas": [{"generation": "v5e", "region": "us-central1", "limit": 0}],
                    "zones": {ZONE: {"types": ["v5litepod-8"]}, "us-east5-b": {"types": ["v5litepod-8"]}}}, toml) as world:
            self.assertIn("note: quota tpu-v5e in us-central1", world.run("apply").stderr)
            self.assertEqual([name.split("/")[3] for name in world.fake.things("tpu.nodes")], ["us-east5-b"])

    def test_names_that_google_does_not_have(self):
        for before, after, text in (
                ('type = "e2-standard-8"', 'type = "e2-standrad-8"',
                 f"machines.type: {ZONE} has no e2-standrad-8 among its machineTypes; did you mean e2-standard-8?"),
                ('machine = "e2-standard-8"', 'machine = "e2-standard-9"', f"disk.machine: {ZONE} has no e2-standard-9"),
                ("[disk]", '[disk]\ntype = "pd-blanced"', "among its diskTypes; did you mean pd-balanced?"),
                ("[env]", '[env]\nnetwork = "defualt"', "env.network: p has no defualt among its networks; did you mean default?"),
                (f'"{ZONE}"', '"us-central1-q"', "env.zones: there is no zone us-central1-q; did you mean us-central1-")):
            with self.subTest(after):
                self.refused({}, SMALL.replace(before, after), text)

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


if __name__ == "__main__":
    main()
