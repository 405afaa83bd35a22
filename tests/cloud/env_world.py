"""An environment between a program and a fake of Google's services, for the tests of `sluice env`."""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from google_fake_support import GoogleFake, test_python

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
# With a group of Compute Engine's machines, which takes newer disks.
GROUP = SMALL.replace("v5litepod-8", "tpu7x-16").replace(
    "[machines]", 'runtime = "projects/x/global/images/y"\n\n[machines]').replace(
    'machine = "e2-standard-8"\n', "").replace("e2-", "c3-")
# The lasting names of what it makes.
EVERYTHING = {"sluice-e-network", "sluice-e-internal", "sluice-e-ssh", "sluice-e-nfs", "sluice-e-disk",
              "sluice-e-machine-0", "sluice-e-machine-1", "sluice-p-e", "sluice-e-tpu"}
ALL = "--all" in sys.argv
ARGUMENTS = [argument for argument in sys.argv[1:] if argument != "--all"]
PROGRAM = str(Path(ARGUMENTS[0]).resolve()) if ARGUMENTS else "none"


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

    def run(self, *arguments, status=0, **more):
        return self.sluice("env", *arguments, status=status, **more)

    def sluice(self, *arguments, status=0, **more):
        result = subprocess.run([PROGRAM, *arguments], env={**self.environment(), **more}, cwd=self.path, check=False,
                                capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)
        if status is not None and result.returncode != status:
            raise AssertionError(f"sluice {arguments}: status {result.returncode}, expected {status}\n"
                                 f"{result.stdout}\n{result.stderr}")
        return result

    def start(self, *arguments):
        """In the background, with errors in its output."""
        return subprocess.Popen(self.command(*arguments), env=self.environment(), cwd=self.path, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)

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


def ends(world):
    """{what: when its mark says that it ends}."""
    found = {}
    for name, thing in world.fake.things().items():
        body = thing["body"]
        labels = body.get("labels") or (json.loads(body["description"]) if "sluice-" in body.get("description", "") else {})
        if "sluice-expires" in labels:
            found[name.split("/", 2)[-1]] = labels["sluice-expires"]
    return found


def check_whole(test, world, names=frozenset(EVERYTHING)):
    found = world.names()
    test.assertEqual(set(found), set(names))
    test.assertTrue(all(len(kinds) == 1 for kinds in found.values()), found)
    tpu = [thing for thing in world.fake.things("tpu.nodes").values()]
    test.assertEqual([node["state"] for node in tpu], ["READY"])


def main():
    """Of a file of such tests: its tests, or status 77."""
    if test_python() is None:
        print("google-api-python-client is not installed (scripts/python-test.txt)")
        sys.exit(77)
    if not ARGUMENTS or ARGUMENTS[0] == "none":
        print("the program is not built in this configuration")
        sys.exit(77)
    unittest.main(argv=[sys.argv[0], *ARGUMENTS[1:]], verbosity=2)
