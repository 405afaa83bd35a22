"""tpu_test.py SLUICE [SECONDS] [--all]: `sluice tpu`, `cost` and `sweep` against the fake of Google's services.

Whatever a run meets (it is killed at any request, an answer is lost, a server is busy, an operation fails late), the
same command run again ends in the same state, with nothing twice and nothing left over. SECONDS: how long a verb may take
until its first request; without it the time is only printed.
"""

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from google_fake_support import GoogleFake, assert_all_valid, mutations, test_python  # noqa: E402

SLUICE = Path(sys.argv[1])
NODE = ["tpu", "create", "a", "--type", "v3-32", "--zones", "us-central1-b"]
QUEUED = [*NODE, "--spot", "--ttl", "4h"]
SLICES = ["tpu", "create", "a", "--type", "v6e-16", "--zones", "us-east1-d,us-east5-b", "--slices", "2"]
DELETE = ["tpu", "delete", "a", "--yes"]
GROUP = ["tpu", "create", "a", "--type", "tpu7x-32", "--zones", "us-central1-b", "--runtime",
         "projects/ubuntu-os-cloud/global/images/family/ubuntu-2204-lts"]
OTHER = {"name": "projects/p/locations/us-central1-b/nodes/a",
         "body": {"acceleratorType": "v3-32", "runtimeVersion": "tpu-ubuntu2204-base"}, "state": "READY"}


class Cloud(GoogleFake):
    def command(self, *arguments):
        return [str(SLUICE), *arguments]

    def variables(self, **more):
        return {**os.environ, **self.environment(), "SLUICE_GOOGLE_PROJECT": "p", "USER": "ada",
                "SLUICE_CLOUD_RETRY": "0.005:0.02:20", **more}

    def run(self, *arguments, status=0, **more):
        done = subprocess.run(self.command(*arguments), env=self.variables(**more), capture_output=True, text=True,
                              timeout=60, stdin=subprocess.DEVNULL)
        assert done.returncode == status, f"{arguments}: status {done.returncode}, not {status}:\n{done.stdout}{done.stderr}"
        self.output = done.stdout + done.stderr
        return done

    def says(self, *texts):
        missing = [text for text in texts if text not in self.output]
        assert not missing, f"{missing} is not in:\n{self.output}"

    def json(self, *arguments, status=0):
        return json.loads(self.run(*arguments, "--json", status=status).stdout)

    def states(self):
        """{name: state} of nodes, queue entries and groups."""
        return {name.split("/", 2)[2]: thing["state"] for kind in ("tpu.", "compute.instanceGroupManagers")
                for name, thing in self.things(kind).items()}


def config(**more):
    return {"projects": ["p"], **more}


def ready(cloud, create):
    """The one slice a is READY, and nothing else is there."""
    slices = cloud.json("tpu", "list")["slices"]
    assert [(one["name"], one["state"]) for one in slices] == [("a", "READY")], (create, slices)
    nodes = [name for name in cloud.things("tpu.nodes")]
    assert len(nodes) == slices[0]["slices"] or create is GROUP, nodes


STEP = 1 if "--all" in sys.argv else 3
OFFSET = time.gmtime().tm_yday % STEP


def killed_at_requests(cloud):
    """kill -9 while request k is under way, before or after it is done: run again, and it is as if nothing had been.
    Every third request, from another first one each day; --all: every one."""
    count = 0
    for create in (NODE, QUEUED, SLICES):
        for command, before, check in ((create, None, lambda: ready(cloud, create)), (DELETE, create, lambda: None)):
            for handled in (True, False) if create is NODE else (True,):
                for k in range(1 + OFFSET, 100, STEP):
                    cloud.reset(config())
                    if before:
                        cloud.run(*before)
                    ended = cloud.run_killed_at(k, cloud.command(*command), handled=handled, env=cloud.variables())
                    if ended is not None:
                        assert ended.returncode == 0, ended
                        break
                    count += 1
                    cloud.run(*command)
                    check()
                    if before is None:
                        cloud.run(*DELETE)
                    assert cloud.is_empty(), (command, k, handled, cloud.left())
                assert k > 3, f"{command} made fewer than {k} requests"
    return f"{count} kills"


def group_killed_at_each_request(cloud):
    """The same of a slice that is a group of machines."""
    count = 0
    for command, before in ((GROUP, None), (DELETE, GROUP)):
        for k in range(1 + OFFSET, 100, STEP):
            cloud.reset(config())
            if before:
                cloud.run(*before)
            if cloud.run_killed_at(k, cloud.command(*command), env=cloud.variables()) is not None:
                break
            count += 1
            cloud.run(*command)
            if before is None:
                ready(cloud, GROUP)
                cloud.run(*DELETE)
            assert cloud.is_empty(), (command, k, cloud.left())
    return f"{count} kills"


def each_request_spoilt_once(cloud):
    """The first request of each kind and path is answered by 429, 503, a reset, or lost after it was done."""
    kinds = [{"kind": "status", "code": 429, "retry_after": 0}, {"kind": "status", "code": 503}, {"kind": "reset"},
             {"kind": "lost"}]
    for fault in kinds:
        for create in (NODE, QUEUED, SLICES, GROUP):
            cloud.reset(config(faults=[{"each": True, **fault}]))
            cloud.run(*create)
            cloud.clear_faults()
            ready(cloud, create)
            cloud.faults({"each": True, **fault})
            cloud.run(*DELETE)
            assert cloud.is_empty(), (fault, create, cloud.left())
    return f"{len(kinds) * 4} worlds"


def late_errors(cloud):
    """An operation that fails late is not the last word: what is there decides."""
    for code in (8, 9, 13):
        late = {"method": "nodes.create", "code": code}
        cloud.reset(config(late_failures=[{**late, "leaves": "resource"}]))
        cloud.run(*NODE)
        cloud.says("READY: kept")
        cloud.reset(config(late_failures=[{**late, "name": "us-central1-b"}]))
        cloud.run(*NODE[:-1], "us-central1-b,europe-west4-a")
        assert cloud.states() == {"locations/europe-west4-a/nodes/a": "READY"}, cloud.states()
        cloud.reset(config(late_failures=[late]))
        cloud.run(*NODE, status=1)
        assert cloud.is_empty(), cloud.left()
        cloud.reset(config(late_failures=[{"method": "queue.PROVISIONING", "code": code}]))
        cloud.run(*SLICES)
        ready(cloud, SLICES)
        cloud.set(late_failures=[{"method": "delete", "code": code, "each": True}])
        cloud.run(*DELETE)
        assert cloud.is_empty(), cloud.left()
    cloud.reset(config(never_ending=[{"method": "nodes.create"}]))
    cloud.run(*NODE)
    ready(cloud, NODE)


def hunting(cloud):
    """No capacity: the next zone; a region's quota: the next region; not allowed: it stops."""
    zones = {"us-central1-a": {"types": ["v3-32"], "capacity": {"v3": 0}},
             "us-central1-b": {"types": ["v3-32"], "capacity": {"v3": 0}}, "europe-west4-a": {"types": ["v3-32"]}}
    tries = ["tpu", "create", "a", "--type", "v3-32", "--zones"]
    cloud.reset(config(zones=zones))
    cloud.run(*tries, "us-central1-a,us-central1-b,europe-west4-a")
    cloud.says("no more capacity", "a is READY: v3-32 in europe-west4-a")
    ready(cloud, NODE)
    cloud.reset(config(zones=zones, quotas=[{"generation": "v3", "region": "us-central1", "limit": 8}]))
    first = cloud.last_number()
    cloud.run(*tries, "any")
    asked = [path.split("/")[5] for method, path, _ in mutations(cloud.log(first))]
    assert asked.count("us-central1-a") + asked.count("us-central1-b") <= 1, asked
    cloud.reset(config(zones=zones, quotas=[{"generation": "v3", "region": "us-central1", "limit": 8, "name": "Q"}]))
    cloud.run(*NODE, status=1)
    cloud.says("the quota Q is used up: limit 8 in region us-central1", "Used there now: 0, wanted 32 more")
    cloud.reset(config(faults=[{"method": "nodes.create", "kind": "status", "code": 403, "message": "no"}]))
    first = cloud.last_number()
    cloud.run(*NODE[:-1], "us-central1-b,europe-west4-a", status=1)
    assert len(mutations(cloud.log(first))) == 1, "it went on after 403"
    cloud.reset(config(zones=zones))
    cloud.run(*tries, "us-central1-a,us-central1-b", status=1)
    cloud.says("no zone of 2 has a v3-32")
    assert cloud.is_empty(), cloud.left()
    # A queue entry that waits is taken out again before the next zone is asked; alone it stays in the queue.
    cloud.run(*tries, "us-central1-a,europe-west4-a", "--queued", "--zone-wait", "0")
    assert set(cloud.states().values()) == {"READY", "ACTIVE"}, cloud.states()
    cloud.run(*DELETE)
    cloud.run(*tries, "us-central1-a", "--queued")
    cloud.says("It is in the queue")
    cloud.run("tpu", "wait", "a", "--timeout", "0.1", status=1)
    cloud.run(*DELETE)
    assert cloud.is_empty(), cloud.left()


def waiting_until(cloud):
    """It goes round until capacity comes back, or the time is over."""
    zones = {"us-central1-b": {"types": ["v3-32"], "capacity": {"v3": 0}}}
    cloud.reset(config(zones=zones))
    cloud.run(*NODE, "--wait-until", "1s", status=1)
    assert cloud.is_empty(), cloud.left()
    # Room for one, which another has at first.
    cloud.reset(config(zones={"us-central1-b": {"types": ["v3-32"], "capacity": {"v3": 16}}}, resources=[
        {**OTHER, "name": OTHER["name"][:-1] + "b"}]))
    timer = threading.Timer(0.3, lambda: cloud.google("DELETE", "/v2/" + OTHER["name"][:-1] + "b"))
    timer.start()
    cloud.run(*NODE, "--wait-until", "30s")
    timer.join()


def lists(cloud):
    """What is unreachable, foreign, dead, and in other projects."""
    cloud.reset(config(projects=["p", "q"], unreachable=["us-east1-d"], resources=[OTHER, {
        **OTHER, "name": "projects/q/locations/us-central1-b/nodes/dead", "state": "PREEMPTED"}]))
    listed = cloud.json("tpu", "list", "--project", "p,q", status=1)
    assert sorted(listed["unreachable"]) == ["p us-east1-d", "q us-east1-d"], listed["unreachable"]
    found = {one["name"]: one for one in listed["slices"]}
    assert found["a"]["ours"] is False and found["a"]["dollars_an_hour"] == 32, found
    assert found["dead"]["state"] == "PREEMPTED" and found["dead"]["dollars_an_hour"] == 0, found
    cloud.run("tpu", "list", status=1)
    cloud.says("did not answer", "us-east1-d", "(not ours)")
    # A zone that does not answer is asked for nothing: something of this name may be there.
    cloud.run("tpu", "create", "b", "--type", "v6e-16", "--zones", "us-east1-d", status=1)
    cloud.says("does not answer")
    # Somebody else's of the same name is refused, and never deleted.
    first = cloud.last_number()
    cloud.run(*NODE, status=1)
    cloud.says("was not made by Sluice")
    cloud.run(*DELETE, status=1)
    cloud.says("was not made by Sluice")
    cloud.run("sweep", "--yes", status=1)
    assert not mutations(cloud.log(first)), mutations(cloud.log(first))
    cloud.reset(config())
    cloud.run(*NODE, "--env", "e")
    cloud.run(*NODE, "--env", "f", status=1)
    cloud.says("belongs to the environment 'e'")
    cloud.run(*DELETE, status=1)
    cloud.says("say --env e")
    cloud.run("tpu", "create", "a", "--type", "v3-8", "--zones", "us-central1-b", "--env", "e", status=1)
    cloud.says("is a v3-32, not a v3-8")


def dead_slices(cloud):
    """A dead one of ours is made again by create; sweep lists it, and deletes it with --yes."""
    for create in (NODE, QUEUED):
        for state in ("PREEMPTED", "TERMINATED"):
            cloud.reset(config())
            cloud.run(*create)
            cloud.preempt("nodes/a", state)
            cloud.run("tpu", "wait", "a", status=1)
            cloud.run("sweep")
            cloud.says("Nothing was deleted", "SUSPENDED" if create is QUEUED else state)
            cloud.run(*create)
            ready(cloud, create)
            cloud.preempt("nodes/a", state)
            cloud.run("sweep", "--yes")
            assert cloud.is_empty(), cloud.left()
            cloud.run("sweep")
            cloud.says("Nothing is left over")


def groups_that_lose_machines(cloud):
    """A group is as dead as a node when one of its machines is gone for good; what is left of an earlier try is not used."""
    for flags, state, shown in ((["--spot"], "vanish", "PREEMPTED"), ([], "TERMINATED", "TERMINATED")):
        cloud.reset(config())
        cloud.run(*GROUP, *flags)
        cloud.preempt(min(cloud.things("compute.instances")), state)
        assert [one["state"] for one in cloud.json("tpu", "list")["slices"]] == [shown]
        cloud.run("tpu", "wait", "a", status=1)
        cloud.says("it does not come back by itself")
        cloud.run("sweep")
        cloud.says("Nothing was deleted", shown)
        cloud.run(*GROUP, *flags)
        cloud.says("deleting and re-creating it")
        ready(cloud, GROUP)
        cloud.run(*DELETE)
        assert cloud.is_empty(), cloud.left()
    # A template that is an hour old would give its machines an hour too much.
    cloud.reset(config())
    for k in range(1, 100):  # killed between template and group
        cloud.reset(config())
        cloud.run_killed_at(k, cloud.command(*GROUP, "--ttl", "8h"), env=cloud.variables())
        if cloud.things("compute.instanceTemplates"):
            break
    cloud.advance(3600)
    first = cloud.last_number()
    cloud.run(*GROUP, "--ttl", "7h")
    made = [method for method, _, _ in mutations(cloud.log(first))]
    assert made.count("compute.instanceTemplates.insert") == 1, made
    cloud.run("tpu", "create", "a", "--type", "tpu7x-8", *GROUP[5:], status=1)
    cloud.says("is a tpu7x-32, not a tpu7x-8")
    cloud.run("tpu", "create", 57 * "a", *GROUP[3:], status=2)
    cloud.says("at most 56")
    cloud.run("keep", "a", "--max-cost", "5", "--", "run", "--", "true", status=1)
    cloud.says("no list price of tpu7x-32")


def time_to_live(cloud):
    """Google itself ends what has a time to live; the queue entry that stays is swept."""
    cloud.reset(config())
    cloud.run(*QUEUED)
    entry, = cloud.things("tpu.queuedResources").values()
    assert "terminationTime" in entry["body"]["runDuration"], entry["body"]
    cloud.advance(5 * 3600)
    assert list(cloud.states().values()) == ["SUSPENDED"], cloud.states()
    cloud.run("sweep", "--yes")
    assert cloud.is_empty(), cloud.left()
    cloud.run(*QUEUED[:-2], "--ttl", "2020-01-01T00:00:00Z", status=2)
    cloud.says("has passed; now is")
    cloud.run(*NODE, "--flex-start", "3h", "--ttl", "2h")
    entry, = cloud.things("tpu.queuedResources").values()
    assert entry["body"]["runDuration"]["maxRunDuration"] in ("7199s", "7200s"), entry["body"]


def costs(cloud):
    """--max-cost asks for nothing; cost sums by environment and owner."""
    cloud.reset(config())
    first = cloud.last_number()
    cloud.run(*NODE, "--ttl", "4h", "--max-cost", "127", status=1)
    cloud.says("$32.00 an hour, $128.00 in 4.0 h", "more than --max-cost 127.00")
    assert cloud.last_number() == first, "requests were sent"
    cloud.run(*NODE, "--max-cost", "127", status=2)
    cloud.run(*NODE, "--ttl", "4h", "--max-cost", "129")
    cloud.run("tpu", "create", "b", "--type", "v6e-4", "--zones", "us-east1-d", "--spot", "--env", "e", "--owner", "bob")
    sums = {row["key"]: row["dollars_an_hour"] for row in cloud.json("cost", "--by", "owner")["sums"]}
    assert abs(sums["ada"] - 32) < 1e-9 and abs(sums["bob"] - 2.16) < 1e-9, sums
    cloud.run("cost", "--by", "env")
    cloud.says("tpu-a", "34.16", "not the bill")


def dry_runs(cloud):
    """The exact requests, and none of them sent; no token in any output."""
    cloud.reset(config())
    first = cloud.last_number()
    for create in (NODE, QUEUED, SLICES, GROUP):
        cloud.run(*create, "--dry-run", SLUICE_GOOGLE_TOKEN="ya29.secret")
        cloud.says("POST http://127.0.0.1", '"sluice-env": "tpu-a"' if create is not GROUP else "sluice-env")
        assert "ya29" not in cloud.output
    assert not mutations(cloud.log(first))
    cloud.run(*QUEUED)
    before = cloud.states()
    cloud.run(*DELETE, "--dry-run")
    cloud.says("DELETE http://127.0.0.1", "force=true")
    cloud.run(DELETE[0], DELETE[1], "a", status=2)
    cloud.says("say --yes")
    assert cloud.states() == before, cloud.states()


def keep_dry_runs(cloud):
    """What a keep would do with a TPU in each state, or without one: nothing is changed, there and here."""
    cloud.reset(config())
    first = cloud.last_number()
    with tempfile.TemporaryDirectory() as home:
        def keep(*flags, status=0, run=("run", "--lease", "9", "--", "./train", "--resume"), **more):
            cloud.run("keep", "a", *flags, "--dry-run", "--", *run, status=status, HOME=home, **more)
            assert not os.listdir(home), os.listdir(home)

        made = ["--type", "v3-32", "--zones", "us-central1-b,europe-west4-a", "--spot"]
        keep(*made, "--max-cost", "40", "--max-restarts", "7")
        cloud.says("a is not there; it is made:", "v3-32 (4 hosts)", "us-central1-b, europe-west4-a (in this order)",
                   "capacity  spot", "tpu-ubuntu2204-base", "end       none", "7 restarts", "$40",
                   "run --tpu a --zone ZONE --project p --end-with-parent --env 'SLUICE_RESTART=0' --lease 9 -- ./train --resume")
        hourly = {row["type"]: row for row in cloud.json("tpu", "types")}["v3-32"]["spot"]
        keep(*made, "--max-cost", str(hourly * 5))
        cloud.says(f"${hourly:.2f} an hour", "--max-cost is reached in 5.0 h")
        keep("--type", "v3-32", "--zones", "any", "--ttl", "2100-01-01T00:00:00Z")
        cloud.says("(in this order: all that have the type)", "us-central1-b", "end       2100-01-01T00:00:00Z", "capacity  on-demand")
        keep(status=1)
        cloud.says("there is no TPU slice a", "say with --type and --zones what to make")
        keep(*made, run=("run", "--dry-run", "--", "true"), status=2)
        cloud.says("--dry-run is not for a run that is kept: `sluice keep` decides it")
        keep("--type", "v3-32", "--zones", "moon", status=2)
        cloud.says("'moon' is not a zone")
        # Without anybody to ask as, or without a project, what the flags say.
        nobody = {"SLUICE_GOOGLE_ENDPOINT": ""}
        keep(*made, **nobody)
        cloud.says("Whether a is there was not asked: there are no credentials of Google's here", "else it is made:",
                   "v3-32 (4 hosts)", "us-central1-b, europe-west4-a (in this order)", f"${hourly:.2f} an hour", "--project p")
        keep("--zones", "any", **nobody)
        cloud.says("was not asked", "else keep ends with an error, as no --type says what to make", "./train --resume")
        keep("--type", "v3-32", "--zones", "any", **nobody, SLUICE_GOOGLE_PROJECT="", GOOGLE_CLOUD_PROJECT="", CLOUDSDK_CORE_PROJECT="")
        cloud.says("was not asked: no project: give --project", "all that have the type", "--project your-project")
        keep(*made, **nobody, GOOGLE_APPLICATION_CREDENTIALS="/nonexistent.json", status=1)
        cloud.says("cannot open /nonexistent.json")
        assert not mutations(cloud.log(first))
        cloud.run(*NODE)
        first = cloud.last_number()
        for state, fate in (("READY", "keep takes it as it is"), ("CREATING", "keep waits for it."),
                            ("REPAIRING", "keep waits for it, and re-creates it after 77 s"), ("PREEMPTED", "keep deletes and re-creates it")):
            cloud.call("POST", "edit", {"name": "nodes/a", "body": {"state": state}})
            keep("--patience", "77")
            cloud.says(f"a is there, in us-central1-b, {state}: {fate}", "zones     us-central1-b\n", "run --tpu a --zone us-central1-b")
        cloud.call("POST", "edit", {"name": "nodes/a", "body": {"labels": {}}})
        keep()
        cloud.says("keep ends when the TPU is lost, as it may not delete it", "was not made by Sluice")
        assert not mutations(cloud.log(first))


def bad_input(cloud):
    """What cannot be is said before anything is asked for, and what Google refuses with what to do."""
    cloud.reset(config())
    cloud.run("tpu", "create", "a", "--type", "v4-8", "--zones", "us-central1-b", status=1)
    cloud.says("Zones that have it: us-central2-b")
    cloud.run("tpu", "create", "A_b", "--type", "v3-8", "--zones", "z", status=2)
    cloud.says("a name has lower-case letters")
    cloud.run("tpu", "create", "a", "--type", "v3_8", "--zones", "z", status=2)
    cloud.says("did you mean v3-8?")
    cloud.run(*NODE, "--spot", "--on-demand", status=2)
    cloud.says("--spot and --on-demand: a slice is of one kind")
    for flag in ("--ttl", "--reservation", "--flex-start", "--idle", "--project"):
        cloud.run(*NODE, flag, "", status=2)
        cloud.says(f"{flag}: expected a text, found nothing; is a variable empty or unset?")
    for zones in ("A B", "moon", "us-central1-b,moon"):
        cloud.run("tpu", "create", "a", "--type", "v3-32", "--zones", zones, status=2)
        cloud.says("is not a zone: a zone is a region and a letter, us-central1-a")
    cloud.run(*NODE, "--project", "A B", status=2)
    cloud.says("'A B' is not a project")
    cloud.run(*NODE, "--flex-start", "8d", status=2)
    cloud.run(*NODE, "--ttl", "soon", status=2)
    cloud.run("tpu", "stop", "nothing", status=1)
    cloud.says("there is no TPU slice nothing")
    cloud.run(*DELETE)
    cloud.says("nothing to delete")
    cloud.set(services={"tpu.googleapis.com": False})
    cloud.run(*NODE, status=1)
    cloud.says("gcloud services enable tpu.googleapis.com --project=p")
    cloud.run("tpu", "list", SLUICE_GOOGLE_ENDPOINT="", status=1)
    cloud.says("gcloud auth application-default login")
    cloud.run("tpu", "list", SLUICE_GOOGLE_ENDPOINT="", GOOGLE_APPLICATION_CREDENTIALS="/nonexistent.json", status=1)
    cloud.says("cannot open /nonexistent.json", "gcloud auth application-default login")
    assert "No TPU slices" not in cloud.output, cloud.output
    cloud.run("tpu", "list", SLUICE_GOOGLE_ENDPOINT="http://example.com", status=1)
    cloud.says("tokens go to Google alone")
    cloud.run("tpu", "list", SLUICE_GOOGLE_PROJECT="", GOOGLE_CLOUD_PROJECT="", CLOUDSDK_CORE_PROJECT="", status=1)
    cloud.says("no project: give --project")
    cloud.reset(config(token="ya29.good"))
    cloud.run("tpu", "list", SLUICE_GOOGLE_TOKEN="ya29.expired", status=1)
    cloud.says("the credentials are not taken", "The request was made by the token of SLUICE_GOOGLE_TOKEN",
               "gcloud auth application-default login")
    assert "ya29" not in cloud.output, cloud.output
    cloud.run(*NODE, SLUICE_GOOGLE_TOKEN="ya29.good")


def quotas(cloud):
    """Limits by place, and what of them is in use."""
    cloud.reset(config(quotas=[{"generation": "v3", "region": "us-central1", "limit": 64, "capacity": "on-demand"},
                               {"generation": "v6e", "region": "us-east1", "limit": 32, "capacity": "spot"}]))
    cloud.run(*NODE)
    found = {(row["place"], row["limit"]): row["used"] for row in cloud.json("tpu", "quota")}
    assert found == {("us-central1", 64): 32, ("us-east1", 32): 0}, found
    cloud.run("tpu", "quota", "--region", "us-east1")
    cloud.says("us-east1", "32")


def one_host(cloud):
    """stop and start, of a slice with one host; several hosts are refused."""
    cloud.reset(config())
    cloud.run("tpu", "create", "a", "--type", "v3-8", "--zones", "us-central1-b", "--label", "team=x", "--internal-ips",
              "--tags", "t1,t2")
    body = next(iter(cloud.things("tpu.nodes").values()))["body"]
    assert body["labels"]["team"] == "x" and body["tags"] == ["t1", "t2"], body
    assert body["networkConfig"] == {"enableExternalIps": False}, body
    cloud.run("tpu", "stop", "a")
    cloud.says("a is STOPPED")
    cloud.run("tpu", "start", "a")
    cloud.says("a is READY")
    cloud.run("tpu", "show", "a")
    cloud.says("worker 0: 10.", "tpu-ubuntu2204-base")
    cloud.run(*DELETE)
    cloud.run(*NODE)
    cloud.run("tpu", "stop", "a", status=1)
    cloud.says("several hosts")
    cloud.run("tpu", "types", "v3-32")
    cloud.says("us-central1-b\n")
    types = {row["type"]: row for row in cloud.json("tpu", "types", "--zone", "us-central1-b")}
    assert types["v3-32"]["hosts"] == 4 and "v4-8" not in types, types


def start_up(cloud):
    """How long the verbs take until their first request."""
    cloud.reset(config())
    said = []
    for command in (["tpu", "list"], ["env", "list"]):
        times = []
        for _ in range(7):
            first = cloud.last_number()
            begin = time.time()
            cloud.run(*command)
            times.append(cloud.log(first)[0]["time"] - begin)
        said.append(f"{' '.join(command)} {min(times) * 1000:.1f} ms")
        if limits := [argument for argument in sys.argv[2:] if argument != "--all"]:
            assert min(times) <= float(limits[0]), f"{command}: seconds until the first request: {times}"
    return f"until the first request: {', '.join(said)}"


TESTS = [killed_at_requests, each_request_spoilt_once, group_killed_at_each_request, late_errors, hunting, waiting_until,
         lists, dead_slices, groups_that_lose_machines, time_to_live, costs, dry_runs, keep_dry_runs, bad_input, quotas, one_host]


def run(test):
    begin = time.time()
    with Cloud(config(), test_python()) as cloud:
        said = test(cloud)
        assert_all_valid(cloud.log())
    print(f"{test.__name__}: {said or 'ok'} ({time.time() - begin:.1f} s)", flush=True)


def main():
    if test_python() is None:
        print("skipped: google-api-python-client is not installed")
        sys.exit(77)
    run(start_up)
    with ThreadPoolExecutor(2) as pool:
        failed = [future.exception() for future in [pool.submit(run, test) for test in TESTS]]
    for problem in filter(None, failed):
        print(f"FAILED: {problem}", file=sys.stderr)
    sys.exit(any(failed))


if __name__ == "__main__":
    main()
