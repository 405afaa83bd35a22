"""from_gcloud_test.py PROGRAM ROOT: docs/from_gcloud.md says what is so.

A table after the line <!-- test: gcloud --> is run row by row: the first command on the left by gcloud, where it is
installed, against one fake of Google's services, all commands of Sluice on the right against another. After each
row both have the same slices, buckets and objects, and commands that only look name the same things. ssh and scp reach
real sshds where a network namespace can be made. All other commands of Sluice on the page have verbs and flags that
docs/flags.md has. Status 77: not possible here."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from google_fake_support import GoogleFake, assert_all_valid, test_python
from workers import Workers, enter_network, why_not

PROGRAM, ROOT = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
PAGE = ROOT / "docs/from_gcloud.md"
MARK = "<!-- test: gcloud -->"
COMMAND = re.compile(r"`([^`]+)`")
ZONE = "us-central2-b"
WORKERS = 2
ENVIRONMENT = f"""
[env]
name = "train"
project = "p"
zones = ["{ZONE}"]
ttl = "8h"

[bucket]
"""
# gcloud's commands that its requests or its terminal keep from running against the fake, and why.
NOT_RUN = {
    "watch ": "it repeats the row before for ever",
    "gcloud compute tpus accelerator-types": "it asks version 1 of the API, which the fake does not have",
    "gcloud compute tpus tpu-vm ssh": "it also asks OS Login, which is not sent to the fake",
    "gcloud compute tpus tpu-vm scp": "it also asks OS Login, which is not sent to the fake",
}
# What a row that only looks must name, on both sides.
NAMED = {"tpus tpu-vm list": ["my-tpu", "my-spot", "my-node"], "tpu-vm describe": ["v4-8", "READY"],
         "storage ls": ["a.tar", "b.tar"]}
COUNTS = {"run": 0, "compared": 0, "things": 0}


def rows(text):
    """[(left, [right])] of the marked tables: commands."""
    found = []
    for part in text.split(MARK)[1:]:
        for line in part.lstrip("\n").splitlines()[2:]:
            if not line.startswith("|"):
                break
            left, right = re.split(r"(?<!\\) \| ", line.strip("| "), maxsplit=1)
            commands = [command for command in COMMAND.findall(right) if command.startswith("sluice ")]
            assert commands and COMMAND.match(left), line
            found.append((COMMAND.match(left)[1], commands))
    return found


class Side:
    """One fake, and a folder in which commands run."""

    def __init__(self, work, name, workers):
        self.folder = work / name
        (self.folder / "set").mkdir(parents=True)
        (self.folder / "home").mkdir()
        (self.folder / "notes.txt").write_text("notes\n")
        (self.folder / "sluice-env.toml").write_text(ENVIRONMENT)
        for shard in "ab":
            member = self.folder / f"{shard}.cls"
            member.write_text("3")
            subprocess.run(["tar", "--format=ustar", "--mtime=@0", "-cf", f"set/{shard}.tar", member.name],
                           cwd=self.folder, check=True)
        hosts = {"my-tpu": workers.described(range(1))} if workers else {}
        self.google = GoogleFake({"projects": ["p"], "timing": {"default": {"polls": 0, "seconds": 0.05}},
                                  "hosts_of": hosts})
        self.environment = {**os.environ, "HOME": str(self.folder / "home"), "USER": "root",
                            "XDG_STATE_HOME": str(self.folder / "state")}

    def run(self, command):
        COUNTS["run"] += 1
        done = subprocess.run(["bash", "-c", command], cwd=self.folder, env=self.environment, text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300)
        assert done.returncode == 0, f"{command}\nends with {done.returncode}:\n{done.stdout}"
        return done.stdout

    def essence(self):
        """What exists, without what differs by nature: numbers, times, labels, and entries of the queue."""
        nodes = {name.split("/")[-1]: (one["body"]["acceleratorType"], one["body"]["runtimeVersion"], one["state"],
                                       bool(one["body"].get("schedulingConfig", {}).get("spot")))
                 for name, one in self.google.things("tpu.nodes").items()}
        objects = {}
        for name in self.google.things("storage.bucket"):
            status, answer = self.google.google("GET", f"/storage/v1/{name}/o")
            assert status == 200, answer
            objects[name] = {one["name"]: (one["size"], one["md5Hash"]) for one in answer.get("items", [])}
        return {"nodes": nodes, "objects": objects}


class Gcloud(Side):
    def __init__(self, work, workers):
        super().__init__(work, "gcloud", workers)
        url = self.google.url + "/"
        self.environment.update({
            "CLOUDSDK_CONFIG": str(self.folder / "config"), "CLOUDSDK_AUTH_DISABLE_CREDENTIALS": "true",
            "CLOUDSDK_CORE_PROJECT": "p", "CLOUDSDK_CORE_DISABLE_PROMPTS": "1",
            "CLOUDSDK_CORE_DISABLE_USAGE_REPORTING": "1",
            "CLOUDSDK_COMPONENT_MANAGER_DISABLE_UPDATE_CHECK": "1", "CLOUDSDK_API_ENDPOINT_OVERRIDES_TPU": url,
            "CLOUDSDK_API_ENDPOINT_OVERRIDES_STORAGE": url + "storage/v1/"})

    def why_not(self, command):
        for start, reason in NOT_RUN.items():
            if command.startswith(start):
                return reason
        return None if shutil.which(command.split()[0]) else "it is not installed"


class Sluice(Side):
    def __init__(self, work, workers):
        super().__init__(work, "sluice", workers)
        if workers:
            workers.follow(self.google)
        self.environment.update({**self.google.environment(), "SLUICE_GOOGLE_PROJECT": "p",
                                 "SLUICE_CLOUD_RETRY": "0.05:0.2:5", "PATH": f"{PROGRAM.parent}:{os.environ['PATH']}"})


def check_rows(table, gcloud, sluice, workers):
    same = True  # whether each row so far was run on both sides
    for left, right in table:
        reason = gcloud.why_not(left)
        looked = "" if reason else gcloud.run(left)
        for command in right:
            if not workers and re.match(r"sluice tpu (ssh|scp)", command):
                print(f"left out (no namespace for its hosts): {command}")
                continue
            out = sluice.run(command)
            for verb, names in NAMED.items():
                if f" {verb} " in left + " " and (command == right[0]):
                    assert all(name in out for name in names), f"{command}: {names} are not in\n{out}"
                    assert reason or verb == "tpus tpu-vm list" or all(name in looked for name in names), looked
            if "tpu ssh" in command:
                assert out.splitlines()[-1] == "42", out
            if "tpu scp" in command:
                assert (workers.home(0) / "notes.txt").read_text() == "notes\n"
        same = same and (reason is None or not changes(left))
        print(f"ok {left}" + (f" (not run: {reason})" if reason else ""))
        if same:
            COUNTS["compared"] += 1
            COUNTS["things"] += len(gcloud.essence()["nodes"]) + sum(map(len, gcloud.essence()["objects"].values()))
            assert gcloud.essence() == sluice.essence(), f"{left}\n{gcloud.essence()}\n{right}\n{sluice.essence()}"
        elif changes(left):
            assert sluice.essence() != check_rows.before, f"{right} changes nothing"
        check_rows.before = sluice.essence()


check_rows.before = None


def changes(command):
    return re.search(r" (create|delete|stop|start|cp) ", command) is not None


def known_flags():
    """{verb: its flags}, of docs/flags.md."""
    verbs = {}
    for part in re.split(r"^## sluice ", (ROOT / "docs/flags.md").read_text(), flags=re.MULTILINE)[1:]:
        verbs[part.splitlines()[0].strip()] = set(re.findall(r"^\| `(--[\w-]+)`", part, re.MULTILINE))
    return verbs


def check_flags(text):
    verbs, faults, count = known_flags(), [], 0
    for command in COMMAND.findall(text):
        if not command.startswith("sluice "):
            continue
        count += 1
        words = shlex.split(command.split(" -- ")[0])[1:]
        length = next((n for n in (3, 2, 1) if " ".join(words[:n]) in verbs), 0)
        verb = " ".join(words[:length])
        wrong = [word for word in words[length:] if word.startswith("--") and word not in verbs.get(verb, set())]
        if length == 0 or wrong:
            faults.append(f"{command}: there is no {wrong or 'such verb'}")
    assert not faults, "\n".join(faults)
    print(f"{count} commands of Sluice have known verbs and flags")
    return count


def main():
    text = PAGE.read_text()
    assert check_flags(text) > 30
    missing = why_not()
    if missing:
        print(f"no hosts for ssh: {missing}")
    else:
        enter_network()
    with tempfile.TemporaryDirectory(prefix="sluice-from-gcloud-") as folder:
        work = Path(folder)
        workers = None if missing else Workers(work, WORKERS, "SLUICE_TEST_MARK=from_gcloud")
        gcloud, sluice = Gcloud(work, workers), Sluice(work, workers)
        try:
            table = rows(text)
            assert len(table) > 15, table
            check_rows(table, gcloud, sluice, workers)
            assert_all_valid(sluice.google.log())
            assert not shutil.which("gcloud") or COUNTS["things"] > 20, COUNTS  # there was something to compare
        finally:
            gcloud.google.stop()
            sluice.google.stop()
            if workers:
                workers.close()
    print("{run} commands run, {compared} rows compared, with {things} slices and objects".format(**COUNTS))


if __name__ == "__main__":
    if test_python() is None:
        print("google-api-python-client is not installed")
        sys.exit(77)
    main()
