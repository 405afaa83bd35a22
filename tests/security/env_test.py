"""An environment's file that came with a cloned repository: env_test.py SLUICE. What it would send, run and open is
refused or said before it happens; tests/cloud has the fake of Google's services."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "cloud"))
from env_world import SMALL, World, main  # noqa: E402
from google_fake_support import mutations  # noqa: E402

SETUP = SMALL.replace("[machines]\n", '[machines]\nsetup = "SCRIPT"\nvariables = {TOKEN = "s3cret"}\n').replace(
    'owner = "me"\n', 'owner = "me"\nssh_from = ["0.0.0.0/0"]\n')


class FilesTest(unittest.TestCase):
    def test_a_key_is_not_sent(self):
        with World() as world:
            (world.path / ".ssh").mkdir()
            key = world.path / ".ssh/id_ed25519"
            key.write_text("PRIVATE KEY")
            (world.path / "link.sh").symlink_to(key)
            for script in ("~/.ssh/id_ed25519", str(key), ".ssh/id_ed25519", "link.sh", "/etc/hostname"):
                world.write(SETUP.replace("SCRIPT", script))
                for verb in ("plan", "apply", "update"):
                    refused = world.run(verb, status=2)
                    self.assertIn("--allow-script", refused.stderr)
                    self.assertNotIn("PRIVATE", refused.stderr + refused.stdout)
            self.assertEqual(world.fake.log(), [])
            # What sends nothing needs no script.
            world.run("show")
            world.run("destroy", "--dry-run")

    def test_what_is_sent_is_said(self):
        with World() as world:
            (world.path / "setup.sh").write_text("#!/bin/sh\ntrue\n")
            world.write(SETUP.replace("SCRIPT", "setup.sh"))
            for words in (("plan",), ("apply", "--dry-run")):
                said = world.run(*words).stderr
                for text in ("sends fill.sh (21 bytes)", "sends setup.sh (15 bytes) to the machines",
                             "machines.variables (TOKEN)", "0.0.0.0/0 opens port 22 (ssh) to the whole internet"):
                    self.assertIn(text, said)
                self.assertNotIn("s3cret", said)
            elsewhere = Path(world.folder.name + "-shared.sh")
            elsewhere.write_text("#!/bin/sh\n")
            self.addCleanup(elsewhere.unlink)
            world.write(SETUP.replace("SCRIPT", str(elsewhere)))
            world.run("plan", status=2)
            world.run("apply", "--allow-script", str(elsewhere))
            machines = world.fake.things("compute.instances").values()
            self.assertIn("#!/bin/sh\n", [item["value"] for machine in machines
                                           for item in machine["body"]["metadata"]["items"]])

    def test_names_of_variables_run_nothing(self):
        with World() as world:
            for name in ("A;touch WORK/x;B", "A$(id)", "1A"):
                world.write(SMALL.replace("[machines]\n", f'[machines]\nvariables = {{"{name}" = "1"}}\n'))
                self.assertIn("is not a name of a variable", world.run("apply", status=2).stderr)
            self.assertEqual(mutations(world.fake.log()), [])

    def test_the_share_is_for_the_network(self):
        with World() as world:
            world.run("apply")
            bodies = [body for method, _, body in mutations(world.fake.log()) if method == "file.projects.locations.instances.create"]
            rules = [rule for body in bodies for share in body["fileShares"] for rule in share["nfsExportOptions"]]
            self.assertEqual([rule["ipRanges"] for rule in rules], [["10.128.0.0/9"]])


if __name__ == "__main__":
    main()
