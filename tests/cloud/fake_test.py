"""The fake of Google's services, checked with google-api-python-client as an independent client: fake_test.py [CLASS…]."""

import http.client
import json
import re
import subprocess
import sys
import time
import unittest
import urllib.error

from fake_cases import FAKE, HERE, INSTANCE, NODE, PLACE, WORLD, ZONE, FakeTest, api, queued
from fake_compute_cases import Compute  # noqa: F401 (unittest runs what is named here)
from fake_tpu_cases import Operations, Tpu  # noqa: F401
from google_fake_support import assert_all_valid, mutations, test_python
from googleapiclient.http import MediaInMemoryUpload


class Schema(FakeTest):
    """What the discovery documents do not allow is refused as Google does, and is in the log."""

    def assert_fault(self, status, path, body, text, verb="POST"):
        code, answer = FAKE.google(verb, path, body)
        self.assertEqual(code, status, answer)
        entry = self.log()[-1]
        self.assertTrue(any(text in fault for fault in entry["faults"]), entry)
        with self.assertRaises(AssertionError):
            assert_all_valid([entry])
        return answer["error"]

    def test_bodies(self):
        path = f"/v2/{HERE}/nodes?nodeId=n"
        error = self.assert_fault(400, path, {**NODE, "acceleratorTyp": "x"}, 'Unknown name "acceleratorTyp"')
        self.assertEqual(error["status"], "INVALID_ARGUMENT")
        self.assertEqual(error["details"][0]["@type"], "type.googleapis.com/google.rpc.BadRequest")
        self.assert_fault(400, path, {**NODE, "networkConfig": {"enableExternalIp": True}}, "at 'networkConfig'")
        self.assert_fault(400, path, {**NODE, "state": "READY"}, "output only")
        self.assert_fault(400, path, {"acceleratorType": "v6e-16"}, "Required field 'runtimeVersion'")
        self.assert_fault(400, path, {**NODE, "tags": "x"}, "Invalid value at 'tags'")
        self.assert_fault(400, path, {**NODE, "labels": {"a": 1}}, "Invalid value at 'labels.a'")
        self.assert_fault(400, path, {**NODE, "dataDisks": [{"mode": "READ"}]}, "READ_WRITE")
        self.assert_fault(400, f"/v2/{HERE}/queuedResources?queuedResourceId=q",
                          queued("q", queueingPolicy={"validUntilDuration": "6h"}), "google-duration")
        self.assert_fault(400, f"/compute/v1/projects/p/zones/{ZONE}/disks", {"name": "d", "status": "READY"}, "output only")
        self.assert_fault(400, f"/compute/v1/projects/p/zones/{ZONE}/disks", {"sizeGb": "10"}, "Required field 'name'")
        self.assert_fault(400, f"/compute/v1/projects/p/zones/{ZONE}/disks", {"name": "D", "sizeGb": "ten"}, "int64")
        self.assertTrue(FAKE.is_empty(), FAKE.left())

    def test_paths_and_parameters(self):
        self.assert_fault(404, f"/v2/{HERE}/node", {}, "no method")
        self.assert_fault(404, f"/v2/{HERE}/nodes/n", {}, "no method", "PUT")
        self.assert_fault(404, f"/v2/{HERE}/nodes/n:begin", {}, "no method")
        self.assert_fault(400, f"/v2/{HERE}/nodes?filter=x", None, 'Unknown name "filter"', "GET")
        self.assert_fault(400, f"/v2/{HERE}/nodes?pageSize=many", None, "pageSize", "GET")
        self.assert_fault(400, f"/v2/{HERE}/queuedResources/q?force=maybe", None, "force", "DELETE")
        self.assert_fault(400, f"/v2/{HERE}/nodes/n", {"a": 1}, "takes no body", "DELETE")
        self.assert_fault(400, f"/compute/v1/projects/p/zones/{ZONE}/instanceGroupManagers/m/resize", None,
                          "Required parameter: size")
        self.assert_fault(400, "/compute/v1/projects/p/zones/Zone/disks", None, "regular expression", "GET")
        # gcloud writes booleans in Python's way, and Google takes them.
        self.assertEqual(FAKE.google("DELETE", f"/v2/{HERE}/queuedResources/q?force=True")[0], 404)
        self.assertEqual(FAKE.google("GET", "/compute/v1/projects/p/aggregated/disks?returnPartialSuccess=True")[0], 200)
        self.assertEqual([entry["faults"] for entry in self.log()[-2:]], [[], []])

    def test_what_no_schema_says(self):
        create = self.nodes.create
        self.refused(create(parent=HERE, nodeId="No", body=NODE), 400, "must match")
        self.refused(create(parent=HERE, body=NODE), 400, "node id")
        self.refused(create(parent=HERE, nodeId="n", body={**NODE, "acceleratorType": "v6e-17"}), 400, "AcceleratorType")
        self.refused(create(parent=HERE, nodeId="n", body={**NODE, "acceleratorType": "v4-8"}), 400, ZONE)
        self.refused(create(parent=HERE, nodeId="n", body={**NODE, "runtimeVersion": "v1"}), 404, "Runtime version")
        self.refused(create(parent=HERE, nodeId="n", body={**NODE, "labels": {"Owner": "x"}}), 400, "Invalid label")
        self.refused(create(parent="projects/p/locations/mars-1", nodeId="n", body=NODE), 403, "Location mars-1")
        self.refused(create(parent=f"projects/q/locations/{ZONE}", nodeId="n", body=NODE), 403, "Permission denied")
        self.refused(self.compute.disks().insert(**PLACE, body={"name": "Bad_name"}), 400, "regex")
        self.refused(self.queue.create(parent=HERE, queuedResourceId="q", body=queued("q", spot={}, guaranteed={})), 400,
                     "At most one tier")
        self.assertTrue(FAKE.is_empty())


class Others(FakeTest):
    def test_filestore(self):
        instances = api("file", "v1").projects().locations().instances()
        body = {"tier": "BASIC_HDD", "fileShares": [{"name": "vol", "capacityGb": "1024"}],
                "networks": [{"network": "default", "connectMode": "DIRECT_PEERING"}], "labels": {"env": "x"}}
        operation = instances.create(parent=HERE, instanceId="nfs", body=body).execute()
        self.refused(instances.create(parent=HERE, instanceId="nfs", body=body), 409, "already exists")
        self.refused(instances.delete(name=f"{HERE}/instances/nfs"), 400, "being created")
        get = api("file", "v1").projects().locations().operations().get
        self.assertTrue([get(name=operation["name"]).execute() for _ in range(2)][-1]["done"])
        found = instances.list(parent="projects/p/locations/-", filter="labels.env=x").execute()["instances"]
        self.assertEqual((found[0]["state"], len(found[0]["networks"][0]["ipAddresses"])), ("READY", 1))
        self.assertEqual(instances.list(parent="projects/p/locations/-", filter="labels.env=y").execute(), {})
        self.refused(instances.create(parent=HERE, instanceId="b", body={**body, "fileShares": [
            {"name": "vol", "capacityGb": "100"}]}), 400, "less than the 1024 GB")
        instances.delete(name=f"{HERE}/instances/nfs").execute()
        FAKE.advance(60)
        self.assertTrue(FAKE.is_empty())

    def test_buckets(self):
        storage = api("storage", "v1")
        FAKE.set(taken_buckets=["of-somebody"])
        self.refused(storage.buckets().insert(project="p", body={"name": "Upper"}), 400, "Invalid bucket name")
        self.refused(storage.buckets().insert(project="p", body={"name": "of-somebody"}), 409, "not available")
        self.refused(storage.buckets().insert(project="p", body={"name": "b-1", "location": "mars"}), 400, "location")
        bucket = storage.buckets().insert(project="p", body={"name": "b-1", "location": "us-central1"}).execute()
        self.assertEqual((bucket["location"], bucket["locationType"]), ("US-CENTRAL1", "region"))
        data = {"media": b"a", "multipart": b"bb\n", "resumable": b"ccc" * 100}
        for name, text in data.items():
            storage.objects().insert(bucket="b-1", name=f"logs/{name}", body=None if name == "media" else {
                "metadata": {"x": "y"}}, media_body=MediaInMemoryUpload(text, resumable=name == "resumable")).execute()
        listed = storage.objects().list(bucket="b-1", prefix="logs/").execute()["items"]
        self.assertEqual({entry["name"][5:]: int(entry["size"]) for entry in listed},
                         {name: len(text) for name, text in data.items()})
        self.assertEqual(storage.objects().list(bucket="b-1", delimiter="/").execute()["prefixes"], ["logs/"])
        self.assertEqual(storage.objects().get_media(bucket="b-1", object="logs/multipart").execute(), data["multipart"])
        storage.objects().rewrite(sourceBucket="b-1", sourceObject="logs/media", destinationBucket="b-1",
                                  destinationObject="logs/copy", body={}).execute()
        self.assertEqual(storage.objects().get(bucket="b-1", object="logs/copy").execute()["size"], "1")
        self.refused(storage.objects().rewrite(sourceBucket="b-1", sourceObject="no", destinationBucket="b-1",
                                               destinationObject="x", body={}), 404, "No such object")
        self.refused(storage.buckets().delete(bucket="b-1"), 409, "not empty")
        for name in [*data, "copy"]:
            storage.objects().delete(bucket="b-1", object=f"logs/{name}").execute()
        self.assertEqual([entry["name"] for entry in storage.buckets().list(project="p").execute()["items"]], ["b-1"])
        self.assertEqual(storage.buckets().list(project="p2").execute().get("items"), None)
        storage.buckets().delete(bucket="b-1").execute()
        self.refused(storage.buckets().get(bucket="b-1"), 404, "does not exist")

    def test_services_and_permissions(self):
        FAKE.set(services={"tpu.googleapis.com": False}, denied_permissions=["compute.disks.create"])
        error = self.refused(self.nodes.list(parent=HERE), 403, "has not been used in project p before or it is disabled")
        self.assertEqual((error["details"][0]["reason"], error["details"][0]["metadata"]["service"]),
                         ("SERVICE_DISABLED", "tpu.googleapis.com"))
        services = api("serviceusage", "v1").services()
        self.assertEqual(services.get(name="projects/p/services/tpu.googleapis.com").execute()["state"], "DISABLED")
        services.enable(name="projects/p/services/tpu.googleapis.com", body={}).execute()
        FAKE.advance(60)
        self.nodes.list(parent=HERE).execute()
        error = self.refused(self.compute.disks().insert(**PLACE, body={"name": "d"}), 403, "compute.disks.create")
        self.assertEqual(error["status"], "PERMISSION_DENIED")
        projects = api("cloudresourcemanager", "v3").projects()
        wanted = ["tpu.nodes.create", "compute.disks.create"]
        self.assertEqual(projects.testIamPermissions(resource="projects/p", body={"permissions": wanted}).execute(),
                         {"permissions": wanted[:1]})
        self.assertEqual(projects.get(name="projects/p").execute()["projectId"], "p")

    def test_quotas(self):
        FAKE.set(quotas=[{"generation": "v6e", "capacity": "spot", "region": "us-central1", "limit": 64},
                         {"metric": "CPUS", "region": "us-central1", "limit": 8}])
        metrics = api("serviceusage", "v1beta1").services().consumerQuotaMetrics().list(
            parent="projects/p/services/tpu.googleapis.com", view="FULL").execute()["metrics"]
        found = [(bucket["dimensions"], bucket["effectiveLimit"]) for metric in metrics
                 for limit in metric["consumerQuotaLimits"] for bucket in limit["quotaBuckets"]]
        self.assertEqual(found, [({}, "91"), ({"region": "us-central1"}, "64")])
        self.assertEqual(self.log()[-1]["faults"], [])

    def test_tokens(self):
        FAKE.set(token="right")
        self.refused(self.nodes.list(parent=HERE), 401, "invalid authentication credentials")
        connection = http.client.HTTPConnection("127.0.0.1", FAKE.port)
        connection.request("GET", f"/v2/{HERE}/nodes", headers={"Authorization": "Bearer right"})
        self.assertEqual(connection.getresponse().status, 200)
        connection.close()
        self.assertEqual([entry["had_authorization"] for entry in self.log()], [False, True])
        self.assertNotIn("right", json.dumps(self.log()))


class Faults(FakeTest):
    PATH = f"/v2/{HERE}/nodes?nodeId="

    def post(self, name):
        return FAKE.google("POST", self.PATH + name, NODE)

    def test_each_kind(self):
        first = FAKE.faults({"method": "nodes.create", "kind": "status", "code": 503})
        FAKE.faults({"request": first + 1, "kind": "status", "code": 429, "retry_after": 7},
                    {"request": first + 2, "kind": "reset"}, {"request": first + 3, "kind": "lost"},
                    {"request": first + 4, "kind": "slow", "seconds": 0.3})
        self.assertEqual(self.post("a")[0], 503)
        connection = http.client.HTTPConnection("127.0.0.1", FAKE.port)
        connection.request("POST", self.PATH + "a", json.dumps(NODE))
        answer = connection.getresponse()
        self.assertEqual((answer.status, answer.headers["Retry-After"]), (429, "7"))
        connection.close()
        with self.assertRaises((ConnectionError, urllib.error.URLError)):
            self.post("a")
        self.assertTrue(FAKE.is_empty())  # nothing of that has been done
        with self.assertRaises((ConnectionError, urllib.error.URLError)):
            self.post("a")
        self.assertEqual(FAKE.left(), [f"{HERE}/nodes/a"])  # this has
        begin = time.monotonic()
        self.assertEqual(self.post("b")[0], 200)
        self.assertGreaterEqual(time.monotonic() - begin, 0.3)
        self.assertEqual([(entry["spoilt"], entry["status"]) for entry in self.log()],
                         [("status", 503), ("status", 429), ("reset", None), ("lost", 200), ("slow", 200)])
        self.assertEqual(len(mutations(self.log())), 5)
        assert_all_valid(self.log())

    def test_patterns(self):
        FAKE.faults({"each": True, "kind": "status", "code": 503})
        self.assertEqual([self.post("a")[0], self.post("a")[0]], [503, 200])
        self.assertEqual([FAKE.google("GET", f"/v2/{HERE}/nodes/a")[0] for _ in range(2)], [503, 200])
        FAKE.clear_faults()
        FAKE.faults({"path": "/nodes/a$", "http": "GET", "skip": 1, "times": 2, "kind": "status", "code": 429})
        self.assertEqual([FAKE.google("GET", f"/v2/{HERE}/nodes/a")[0] for _ in range(4)], [200, 429, 429, 200])
        with self.assertRaises(RuntimeError):
            FAKE.faults({"kind": "odd"})

    def test_a_client_is_killed_at_a_request(self):
        program = ("import sys, urllib.request as u\nfor name in 'ab': u.urlopen(u.Request(sys.argv[1] + name, method="
                   "'POST', data=sys.argv[2].encode()))")
        command = [sys.executable, "-c", program, FAKE.url + self.PATH, json.dumps(NODE)]
        self.assertIsNone(FAKE.run_killed_at(1, command, handled=False))
        self.assertTrue(FAKE.is_empty())
        self.assertIsNone(FAKE.run_killed_at(1, command))
        self.assertEqual(FAKE.left(), [f"{HERE}/nodes/a"])
        FAKE.reset(WORLD)
        self.assertEqual(FAKE.run_killed_at(3, command).returncode, 0)
        self.assertEqual(len(FAKE.left()), 2)


class Clock(FakeTest):
    config = {"clock": {"speed": 1000, "start": 1.8e9}}

    def test_time_flies(self):
        self.insert("instances", {**INSTANCE, "scheduling": {
            "provisioningModel": "SPOT", "instanceTerminationAction": "DELETE", "maxRunDuration": {"seconds": "600"}}}, **PLACE)
        self.assertEqual(len(FAKE.left()), 2)
        end = time.monotonic() + 5
        while not FAKE.is_empty() and time.monotonic() < end:
            time.sleep(0.05)
        self.assertTrue(FAKE.is_empty(), FAKE.state())
        hours = 600 / 3600
        self.assertAlmostEqual(FAKE.state()["dollars"], hours * (8 * 0.0335 * 0.4 + 10 * 0.04 / 730), places=3)

    def test_cost_of_what_is_gone(self):
        FAKE.call("POST", "clock", {"speed": 0})
        node = self.node()
        FAKE.advance(3600)
        self.assertAlmostEqual(FAKE.state()["dollars"], 16 * 2.70, places=3)
        FAKE.preempt("n")
        FAKE.advance(3600)
        self.finish(self.nodes.delete(name=node["name"]).execute())
        state = FAKE.state()
        self.assertAlmostEqual(state["dollars"], 16 * 2.70, places=3)
        self.assertEqual([entry["what"] for entry in state["history"]], ["preempted: PREEMPTED", "deleted"])


class Program(unittest.TestCase):
    def test_configuration_in_the_argument(self):
        process = subprocess.Popen(
            [test_python(), "-B", str(__file__).replace("fake_test.py", "fake_google.py"), '{"projects": ["x"]}'],
            stdout=subprocess.PIPE, text=True)
        port = int(re.fullmatch(r"listening (\d+)\n", process.stdout.readline()).group(1))
        connection = http.client.HTTPConnection("127.0.0.1", port)
        connection.request("POST", "/_fake/stop")
        self.assertEqual(connection.getresponse().status, 200)
        connection.close()
        self.assertEqual(process.wait(10), 0)
        process.stdout.close()


if __name__ == "__main__":
    unittest.main()
