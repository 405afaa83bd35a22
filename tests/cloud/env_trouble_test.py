"""`sluice env` where requests, operations and the program itself fail, and beside another: env_trouble_test.py SLUICE
[--all] [CLASS…].

--all: the sweeps kill the program at every request, and spoil every one in every way; without it a third and an eleventh
of these, others each day."""

import concurrent.futures
import datetime
import itertools
import json
import sys
import time
import unittest

from env_world import ALL, GROUP, SMALL, WORLD, World, check_whole, ends, main
from google_fake_support import assert_all_valid, mutations


# With a timer, whose end moves with the labels.
IDLE = SMALL.replace('ttl = "8h"', 'ttl = "8h"\nidle = "1h"')


KILLED = {"kind": "killed"}
LOST = {"kind": "lost"}
SPOILS = [{"kind": "status", "code": 429, "retry_after": 0}, {"kind": "status", "code": 503}, {"kind": "reset"}, LOST]


def some_of(cases, step):
    """Those that the sweeps take."""
    cases = list(cases)
    return cases if ALL else cases[datetime.date.today().toordinal() % step::step]


def side_by_side(jobs):
    """Two at a time, each with a fake of its own."""
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        return list(pool.map(lambda job: job(), jobs))


class SweepTest(unittest.TestCase):
    """Whatever goes wrong at whichever request: run again, and the end is the same."""

    def sweep(self, prepare, arguments, check, spoils, toml=SMALL):
        """prepare(world) makes the world; then each request of `arguments` meets each of `spoils`."""
        def count():
            with World(toml=toml) as world:
                prepare(world)
                after = world.fake.last_number()
                world.run(*arguments)
                return world.fake.last_number() - after

        total = count()
        cases = list(itertools.product(range(1, total + 1), spoils))
        chosen = some_of(cases, 3 if spoils == [KILLED] else 11)

        def part(some):
            failures = []
            with World(toml=toml) as world:
                for number, spoil in some:
                    world.fake.reset({**WORLD, "log": str(world.fake.log_path)})
                    world.write(toml)
                    prepare(world)
                    before = world.fake.last_number()
                    try:
                        if spoil is KILLED:
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
                        failures.append(f"request {number}, {spoil}: {error}")
            return failures
        failures = sum(side_by_side([lambda some=some: part(some) for some in (chosen[0::2], chosen[1::2])]), [])
        print(f"{self.id()}: {len(chosen)} of {len(cases)} cases", file=sys.stderr)
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

    def moved(self, world):
        """All but what cannot be marked says the end of the file."""
        check_whole(self, world)
        found = {name: end for name, end in ends(world).items() if "/networks/" not in name and "/queuedResources/" not in name}
        self.assertEqual(len(set(found.values())), 1, found)
        self.assertEqual(len(found), 10, found)  # with the boot disks of two machines
        node = next(iter(world.fake.things("tpu.nodes").values()))["body"]
        end = datetime.datetime.strptime(next(iter(found.values())), "%Y%m%dt%H%M%Sz").replace(tzinfo=datetime.timezone.utc)
        self.assertEqual(int(node["metadata"]["sluice-deadline"]), int(end.timestamp()))
        created = datetime.datetime.strptime(node["labels"]["sluice-created"], "%Y%m%dt%H%M%Sz")
        self.assertEqual(end.replace(tzinfo=None) - created, datetime.timedelta(hours=16))
        after = world.fake.last_number()
        world.run("apply")
        self.assertEqual(mutations(world.fake.log(after)), [])

    @staticmethod
    def before_marks(world):
        world.run("apply")
        world.write(IDLE.replace('"8h"', '"16h"'))

    @staticmethod
    def before_update(world):
        world.run("apply")
        world.write(SMALL.replace("v5litepod-8", "v5litepod-16"))

    @staticmethod
    def before_marks_of_group(world):
        world.run("apply")
        world.write(GROUP.replace('"8h"', '"16h"'))

    def moved_group(self, world):
        """All but what cannot be marked says the end of the file, and the plan has nothing more to do."""
        fixed = ("/networks/", "/instanceGroupManagers/", "/instanceTemplates/", "/resourcePolicies/")
        found = {name: end for name, end in ends(world).items() if not any(part in name for part in fixed)}
        self.assertEqual(len(set(found.values())), 1, found)
        self.assertEqual(len([name for name in found if "/instances/sluice-e-tpu-" in name]), 2, found)
        plan = json.loads(world.run("plan", "--json").stdout)
        self.assertEqual({step["act"] for step in plan["steps"]}, {"same"}, plan["steps"])

    def test_apply_killed(self):
        self.sweep(self.nothing, ["apply"], self.whole, [KILLED])

    def test_destroy_killed(self):
        self.sweep(self.made, ["destroy", "--yes"], self.empty, [KILLED])

    def test_update_killed(self):
        self.sweep(self.before_update, ["update", "--only", "tpu", "--yes"], self.larger, [KILLED])

    def test_marking_killed(self):
        self.sweep(self.before_marks, ["apply"], self.moved, [KILLED], toml=IDLE)

    def test_marking_a_group_killed(self):
        self.sweep(self.before_marks_of_group, ["apply"], self.moved_group, [KILLED], toml=GROUP)

    def test_marking_with_lost_answers(self):
        self.sweep(self.before_marks, ["apply"], self.moved, [LOST], toml=IDLE)

    def test_apply_spoilt(self):
        self.sweep(self.nothing, ["apply"], self.whole, SPOILS)

    def test_destroy_spoilt(self):
        self.sweep(self.made, ["destroy", "--yes"], self.empty, SPOILS)

    def test_update_spoilt(self):
        self.sweep(self.before_update, ["update", "--only", "tpu", "--yes"], self.larger, SPOILS)


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
        side_by_side([lambda case=case: one(*case) for case in some_of(cases, 6)])

    def test_a_create_that_never_ends(self):
        with World({"never_ending": [{"method": "nodes.create|queuedResources.create|disks.insert|instances.create",
                                      "times": 10}]}) as world:
            world.run("apply")
            check_whole(self, world)


MARKING = {"compute.firewalls.patch", "compute.disks.setLabels", "compute.instances.setLabels", "storage.buckets.patch",
           "file.projects.locations.instances.patch", "tpu.projects.locations.nodes.patch"}


class TwoAtOnceTest(unittest.TestCase):
    """Nothing locks an environment: names do. The second of two finds what the first has made, and takes it up."""

    def test_two_applies(self):
        self.two_applies({})

    def test_two_applies_while_the_script_takes_its_time(self):
        """The machine that fills the disk belongs to both, and the faster one deletes it."""
        script = {**WORLD["scripts"][0], "after": 0.3}
        self.two_applies({"scripts": [script]})

    def two_applies(self, config):
        with World(config) as world:
            world.run("apply")
            total = world.fake.last_number()
        chosen = some_of(range(total), 10)

        def part(some):
            failures = []
            with World() as world:
                for number in some:
                    world.fake.reset({**WORLD, **config, "log": str(world.fake.log_path)})
                    before = world.fake.last_number()
                    failure = self.apply_twice(world, before + number)
                    if failure:
                        failures.append(f"second one at request {number}: {failure}")
            return failures
        failures = sum(side_by_side([lambda: part(chosen[0::2]), lambda: part(chosen[1::2])]), [])
        print(f"{self.id()}: {len(chosen)} of {total} requests", file=sys.stderr)
        self.assertEqual(failures, [])

    def apply_twice(self, world, number):
        first = world.start("apply")
        while first.poll() is None and world.fake.last_number() < number:
            time.sleep(0.002)
        second = world.start("apply")
        said = [process.communicate(timeout=120)[0] for process in (first, second)]
        statuses = [first.returncode, second.returncode]
        if statuses != [0, 0]:
            return f"statuses {statuses}: {said}"
        try:
            check_whole(self, world)
            # Both may have begun with nothing, a second apart: then their marks differ by it, and the next apply
            # makes them alike.
            for expected in (MARKING, set()):
                after = world.fake.last_number()
                world.run("apply")
                self.assertLessEqual({method for method, _, _ in mutations(world.fake.log(after))}, expected)
            world.run("destroy", "--yes")
            self.assertTrue(world.fake.is_empty(), world.fake.left())
        except AssertionError as error:
            return f"{error}: {said}"
        return None


if __name__ == "__main__":
    main()
