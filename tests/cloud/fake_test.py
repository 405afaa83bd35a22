"""The fake of Google's services, checked with google-api-python-client as an independent client: fake_test.py [CLASS…]."""

import http.client
import json
import re
import subprocess
import sys
import time
import unittest
import urllib.error

from google_fake_support import GoogleFake, assert_all_valid, mutations, test_python

try:
    import httplib2
    from googleapiclient import discovery, errors
    from googleapiclient.http import MediaInMemoryUpload
except ImportError:
    print("google-api-python-client is not installed (scripts/python-test.txt)")
    sys.exit(77)

ZONE, OTHER = "us-central1-b", "us-east5-b"
HERE = f"projects/p/locations/{ZONE}"
PLACE = {"project": "p", "zone": ZONE}
NODE = {"acceleratorType": "v6e-16", "runtimeVersion": "v2-alpha-tpuv6e"}
WORLD = {"projects": ["p", "p2"], "zones": {ZONE: {}, OTHER: {}}}


class Redirected(httplib2.Http):
    """Sends what is meant for Google's hosts to the fake."""

    def request(self, uri, *arguments, **options):  # pylint: disable=arguments-differ
        options.pop("connection_type", None)
        return super().request(re.sub(r"^https://[^/]+", FAKE.url, uri), *arguments, **options)


def api(name, version):
    if (name, version) not in APIS:
        APIS[name, version] = discovery.build(name, version, http=Redirected(), static_discovery=True)
    return APIS[name, version]


APIS = {}
FAKE = None


def setUpModule():  # noqa: N802
    global FAKE  # one process for all: it starts in a third of a second
    FAKE = GoogleFake(WORLD)


def tearDownModule():  # noqa: N802
    for service in APIS.values():
        service.close()
    FAKE.stop()


class FakeTest(unittest.TestCase):
    config = {}

    def setUp(self):
        FAKE.reset({**WORLD, **self.config})
        self.first = FAKE.last_number()

    def log(self):
        return FAKE.log(after=self.first)

    @property
    def nodes(self):
        return api("tpu", "v2").projects().locations().nodes()

    @property
    def queue(self):
        return api("tpu", "v2").projects().locations().queuedResources()

    @property
    def compute(self):
        return api("compute", "v1")

    def refused(self, request, code, text):
        with self.assertRaises(errors.HttpError) as caught:
            request.execute()
        self.assertEqual((caught.exception.status_code, True), (code, text in caught.exception.content.decode()),
                         caught.exception.content)
        return json.loads(caught.exception.content)["error"]

    def finish(self, operation):
        """A google.longrunning operation, polled to its end."""
        get = api("tpu", "v2").projects().locations().operations().get
        for _ in range(10):
            operation = get(name=operation["name"]).execute()
            if operation.get("done"):
                return operation
        raise AssertionError(f"no end of {operation}")

    def wait(self, operation):
        """An operation of Compute Engine, waited for."""
        call = {"project": "p", "operation": operation["name"]}
        if "zone" in operation:
            return self.compute.zoneOperations().wait(zone=operation["zone"].rsplit("/", 1)[1], **call).execute()
        if "region" in operation:
            return self.compute.regionOperations().wait(region=operation["region"].rsplit("/", 1)[1], **call).execute()
        return self.compute.globalOperations().wait(**call).execute()

    def insert(self, collection, body, **place):
        """The operation at its end."""
        return self.wait(getattr(self.compute, collection)().insert(body=body, **(place or {"project": "p"})).execute())

    def node(self, name="n", **fields):
        self.finish(self.nodes.create(parent=HERE, nodeId=name, body={**NODE, **fields}).execute())
        return self.nodes.get(name=f"{HERE}/nodes/{name}").execute()


def queued(name, **fields):
    return {"tpu": {"nodeSpec": [{"parent": HERE, "nodeId": name, "node": NODE}]}, **fields}


INSTANCE = {"name": "i", "machineType": f"zones/{ZONE}/machineTypes/e2-standard-8",
            "disks": [{"boot": True, "autoDelete": True,
                       "initializeParams": {"sourceImage": "projects/debian-cloud/global/images/family/debian-12"}}],
            "networkInterfaces": [{"network": "global/networks/default"}]}


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


class Tpu(FakeTest):
    def test_node(self):
        operation = self.nodes.create(parent=HERE, nodeId="n", body={**NODE, "labels": {"a": "b"}}).execute()
        self.assertNotIn("done", operation)
        self.assertEqual(self.nodes.get(name=f"{HERE}/nodes/n").execute()["state"], "CREATING")
        self.refused(self.nodes.create(parent=HERE, nodeId="n", body=NODE), 409, "already exists")
        self.assertEqual(self.finish(operation)["response"]["state"], "READY")
        node = self.nodes.get(name=f"{HERE}/nodes/n").execute()
        self.assertEqual((node["health"], len(node["networkEndpoints"]), node["labels"]), ("HEALTHY", 4, {"a": "b"}))
        keys = self.nodes.getGuestAttributes(name=node["name"], body={"queryPath": "hostkeys/", "workerIds": ["3"]}).execute()
        self.assertEqual(keys["guestAttributes"][0]["queryValue"]["items"][0]["key"], "ssh-ed25519")
        self.refused(self.nodes.patch(name=node["name"], body={"labels": {}, "metadata": {}}, updateMask="labels"), 400,
                     "not in updateMask")
        self.finish(self.nodes.patch(name=node["name"], body={"metadata": {"ssh-keys": "k"}}, updateMask="metadata").execute())
        self.assertEqual(self.nodes.get(name=node["name"]).execute()["metadata"], {"ssh-keys": "k"})
        self.refused(self.nodes.stop(name=node["name"], body={}), 400, "several hosts")
        self.assertEqual(FAKE.left(), [node["name"]])
        self.finish(self.nodes.delete(name=node["name"]).execute())
        self.refused(self.nodes.get(name=node["name"]), 404, "was not found")
        self.assertTrue(FAKE.is_empty())

    def test_stop_and_start(self):
        node = self.node(acceleratorType="v6e-8")
        self.finish(self.nodes.stop(name=node["name"], body={}).execute())
        self.assertEqual(FAKE.state()["dollars_per_hour"], 0)
        self.refused(self.nodes.stop(name=node["name"], body={}), 400, "STOPPED")
        self.finish(self.nodes.start(name=node["name"], body={}).execute())
        self.assertAlmostEqual(FAKE.state()["dollars_per_hour"], 8 * 2.70)

    def test_configured_hosts_and_keys(self):
        FAKE.set(hosts=[{"ip": f"127.0.1.{n}", "external": f"127.0.1.{n}", "port": 8000 + n} for n in range(1, 6)],
                 host_keys={"127.0.1.1": {"ssh-rsa": "AAAA"}})
        node = self.node(networkConfig={"enableExternalIps": True})
        self.assertEqual([(end["ipAddress"], end["port"]) for end in node["networkEndpoints"]],
                         [(f"127.0.1.{n}", 8000 + n) for n in range(1, 5)])
        keys = self.nodes.getGuestAttributes(name=node["name"], body={}).execute()["guestAttributes"]
        self.assertEqual(keys[0]["queryValue"]["items"], [{"namespace": "hostkeys", "key": "ssh-rsa", "value": "AAAA"}])
        second = self.node("m", networkConfig={"enableExternalIps": False})
        self.assertNotIn("127.0.1.5", json.dumps(second))  # one host is left, four are wanted
        self.assertNotIn("accessConfig", second["networkEndpoints"][0])

    def test_queue(self):
        name = f"{HERE}/queuedResources/q"
        self.finish(self.queue.create(parent=HERE, queuedResourceId="q", body=queued("n", spot={})).execute())
        seen = [self.queue.get(name=name).execute()["state"]["state"] for _ in range(4)]
        self.assertEqual(seen, ["ACCEPTED", "PROVISIONING", "PROVISIONING", "ACTIVE"][:1] + seen[1:])
        self.assertEqual(seen[-1], "ACTIVE")
        self.assertIn("PROVISIONING", seen)
        node = self.nodes.get(name=f"{HERE}/nodes/n").execute()
        self.assertEqual((node["state"], node["queuedResource"]), ("READY", name))
        self.assertAlmostEqual(FAKE.state()["dollars_per_hour"], 16 * 0.54)  # spot's price
        self.refused(self.queue.delete(name=name), 400, "use force")
        self.finish(self.nodes.delete(name=node["name"]).execute())
        state = self.queue.get(name=name).execute()["state"]
        self.assertEqual((state["state"], state["stateInitiator"]), ("SUSPENDED", "USER"))
        self.finish(self.queue.delete(name=name).execute())
        self.assertTrue(FAKE.is_empty())

    def test_queue_of_several_nodes_and_force(self):
        body = {"tpu": {"nodeSpec": [{"parent": HERE, "multisliceParams": {"nodeCount": 3, "nodeIdPrefix": "s"},
                                      "node": NODE}]}}
        self.finish(self.queue.create(parent=HERE, queuedResourceId="q", body=body).execute())
        FAKE.advance(100)
        found = self.nodes.list(parent=HERE).execute()["nodes"]
        self.assertEqual([(node["name"].rsplit("/", 1)[1], node["state"], node["multisliceNode"]) for node in found],
                         [(f"s-{index}", "READY", True) for index in range(3)])
        self.finish(self.queue.delete(name=f"{HERE}/queuedResources/q", force=True).execute())
        self.assertTrue(FAKE.is_empty())
        body["tpu"]["nodeSpec"][0]["multisliceParams"]["nodeCount"] = 1
        self.refused(self.queue.create(parent=HERE, queuedResourceId="q", body=body), 400, "greater than 1")

    def test_request_ids(self):
        identity = "2f1c9a36-3a5c-4ad1-8c0f-0123456789ab"
        request = self.queue.create(parent=HERE, queuedResourceId="q", requestId=identity, body=queued("n"))
        self.assertEqual(request.execute()["name"], request.execute()["name"])
        self.refused(self.queue.create(parent=HERE, queuedResourceId="r", requestId="7", body=queued("n")), 400, "UUID")

    def test_capacity(self):
        FAKE.set(zones={ZONE: {"capacity": {"v6e-16": 1}}, OTHER: {}})
        self.node()
        error = self.finish(self.nodes.create(parent=HERE, nodeId="m", body=NODE).execute())["error"]
        self.assertEqual(error["code"], 8)
        self.assertIn(f'There is no more capacity in the zone "{ZONE}"', error["message"])
        self.refused(self.nodes.get(name=f"{HERE}/nodes/m"), 404, "was not found")
        self.queue.create(parent=HERE, queuedResourceId="q", body=queued("m")).execute()
        FAKE.advance(1000)
        state = self.queue.get(name=f"{HERE}/queuedResources/q").execute()["state"]
        self.assertEqual(state["state"], "WAITING_FOR_RESOURCES")
        self.nodes.delete(name=f"{HERE}/nodes/n").execute()
        FAKE.advance(1000)
        state = self.queue.get(name=f"{HERE}/queuedResources/q").execute()["state"]
        self.assertEqual(state["state"], "ACTIVE")

    def test_a_request_that_is_valid_for_some_time_only(self):
        FAKE.set(zones={ZONE: {"capacity": {"v6e": 0}}, OTHER: {}})
        body = queued("m", queueingPolicy={"validUntilDuration": "600s"})
        self.queue.create(parent=HERE, queuedResourceId="q", body=body).execute()
        FAKE.advance(500)
        state = self.queue.get(name=f"{HERE}/queuedResources/q").execute()["state"]["state"]
        self.assertEqual(state, "WAITING_FOR_RESOURCES")
        FAKE.advance(500)
        state = self.queue.get(name=f"{HERE}/queuedResources/q").execute()["state"]
        self.assertEqual((state["state"], state["failedData"]["error"]["code"]), ("FAILED", 4))

    def test_quota(self):
        FAKE.set(quotas=[{"generation": "v6e", "capacity": "spot", "region": "us-central1", "limit": 16}])
        spot = {"schedulingConfig": {"spot": True}}
        self.node(**spot)
        error = self.refused(self.nodes.create(parent=HERE, nodeId="m", body={**NODE, **spot}), 429,
                             "Quota limit 'TPUV6EPreemptiblePerProjectPerRegionForTPUAPI' has been exceeded. Limit: 16 in "
                             "region us-central1.")
        self.assertEqual((error["status"], error["details"][0]["@type"]),
                         ("RESOURCE_EXHAUSTED", "type.googleapis.com/google.rpc.QuotaFailure"))
        FAKE.preempt("n")  # it holds its quota until it is deleted
        self.refused(self.nodes.create(parent=HERE, nodeId="m", body={**NODE, **spot}), 429, "Quota limit")
        self.finish(self.nodes.delete(name=f"{HERE}/nodes/n").execute())
        self.node("m", **spot)
        self.node("o")  # on demand has a quota of its own

    def test_preemption_and_maintenance(self):
        FAKE.set(preemptions=[{"name": "^n", "after": 60, "state": "TERMINATED"}],
                 maintenance=[{"name": "^m", "after": 10, "starts": 300, "status": "PENDING"}])
        node = self.node()
        FAKE.advance(59)
        self.assertEqual(self.nodes.get(name=node["name"]).execute()["state"], "READY")
        FAKE.advance(2)
        self.assertEqual(self.nodes.get(name=node["name"]).execute()["state"], "TERMINATED")
        other = self.node("m")
        self.assertNotIn("upcomingMaintenance", other)
        FAKE.advance(11)
        self.assertEqual(self.nodes.get(name=other["name"]).execute()["upcomingMaintenance"]["maintenanceStatus"], "PENDING")
        operation = self.nodes.patch(name=node["name"], body={"labels": {}}, updateMask="labels").execute()
        self.assertEqual(self.finish(operation)["error"]["code"], 3)
        FAKE.preempt("m", "vanish")
        self.refused(self.nodes.get(name=other["name"]), 404, "was not found")

    def test_lists(self):
        FAKE.reset({**WORLD, "unreachable": [OTHER], "page_size": 2, "resources": [
            {"name": f"{HERE}/nodes/n{index}", "state": "PREEMPTED"} for index in range(3)]})
        found, request = [], self.nodes.list(parent="projects/p/locations/-")
        while request is not None:
            answer = request.execute()
            self.assertEqual(answer["unreachable"], [f"projects/p/locations/{OTHER}"])
            found += [node["state"] for node in answer["nodes"]]
            request = self.nodes.list_next(request, answer)
        self.assertEqual(found, ["PREEMPTED"] * 3)
        self.refused(self.nodes.list(parent=f"projects/p/locations/{OTHER}"), 503, "unavailable")
        self.assertTrue(FAKE.is_empty())  # they were given
        FAKE.call("POST", "edit", {"name": "n1", "remove": True})
        self.assertEqual(FAKE.left(), [f"lost: {HERE}/nodes/n1"])
        places = api("tpu", "v2").projects().locations()
        self.assertEqual([place["locationId"] for place in places.list(name="projects/p", pageSize=9).execute()["locations"]],
                         [ZONE, OTHER])
        types = places.acceleratorTypes().list(parent=HERE, pageSize=99).execute()["acceleratorTypes"]
        self.assertIn({"name": f"{HERE}/acceleratorTypes/v6e-16", "type": "v6e-16",
                       "acceleratorConfigs": [{"type": "V6E", "topology": "4x4"}]}, types)
        self.assertTrue(places.runtimeVersions().list(parent=HERE).execute()["runtimeVersions"])

    def test_deadlines_of_the_server(self):
        alpha = api("tpu", "v2alpha1").projects().locations()
        body = queued("n", provisioningModel="FLEX_START", runDuration={"maxRunDuration": "3600s"})
        alpha.queuedResources().create(parent=HERE, queuedResourceId="q", body=body).execute()
        FAKE.advance(60)
        node = alpha.nodes().get(name=f"{HERE}/nodes/n").execute()
        self.assertIn("terminationTimestamp", node["schedulingConfig"])
        self.assertNotIn("terminationTimestamp",
                         self.nodes.get(name=node["name"]).execute().get("schedulingConfig", {}))  # v2 has no such field
        FAKE.advance(3600)
        self.refused(self.nodes.get(name=node["name"]), 404, "was not found")
        state = self.queue.get(name=f"{HERE}/queuedResources/q").execute()["state"]
        self.assertEqual((state["state"], state["stateInitiator"]), ("SUSPENDED", "SERVICE"))
        body["runDuration"]["maxRunDuration"] = f"{8 * 86400}s"
        self.refused(alpha.queuedResources().create(parent=HERE, queuedResourceId="r", body=body), 400, "7 days")


class Operations(FakeTest):
    def test_late_errors(self):
        FAKE.set(late_failures=[{"method": r"nodes\.create", "code": 9}, {"method": r"nodes\.create", "code": 13,
                                                                        "leaves": "resource"},
                                {"method": r"nodes\.delete", "code": 13}, {"method": r"disks\.insert", "code": 8}])
        error = self.finish(self.nodes.create(parent=HERE, nodeId="n", body=NODE).execute())["error"]
        self.assertEqual(error["code"], 9)
        self.assertTrue(FAKE.is_empty())
        error = self.finish(self.nodes.create(parent=HERE, nodeId="n", body=NODE).execute())["error"]
        self.assertEqual(error["code"], 13)
        self.assertEqual(self.nodes.get(name=f"{HERE}/nodes/n").execute()["state"], "READY")
        self.assertEqual(self.finish(self.nodes.delete(name=f"{HERE}/nodes/n").execute())["error"]["code"], 13)
        self.assertEqual(self.nodes.get(name=f"{HERE}/nodes/n").execute()["state"], "READY")
        done = self.insert("disks", {"name": "d"}, **PLACE)
        self.assertEqual((done["status"], done["error"]["errors"][0]["code"]), ("DONE", "ZONE_RESOURCE_POOL_EXHAUSTED"))
        self.assertEqual(FAKE.left(), [f"{HERE}/nodes/n"])

    def test_which_operations_fail(self):
        def codes(names):
            return [self.finish(self.nodes.create(parent=HERE, nodeId=name, body=NODE).execute()).get("error", {}).get("code")
                    for name in names]
        FAKE.set(late_failures=[{"method": r"nodes\.create", "skip": 1, "times": 2, "code": 14}])
        self.assertEqual(codes("abcd"), [None, 14, 14, None])
        FAKE.set(late_failures=[{"each": True, "code": 13}])
        self.assertEqual(codes("efef"), [13, 13, None, None])

    def test_a_delete_that_fails_leaves_all_as_it_was(self):
        FAKE.set(late_failures=[{"method": "delete", "code": 13, "times": 2}])
        body = queued("n", provisioningModel="FLEX_START", runDuration={"maxRunDuration": "3600s"})
        api("tpu", "v2alpha1").projects().locations().queuedResources().create(
            parent=HERE, queuedResourceId="q", body=body).execute()
        FAKE.advance(60)
        for request in (self.queue.delete(name=f"{HERE}/queuedResources/q", force=True),
                        self.nodes.delete(name=f"{HERE}/nodes/n")):
            operation = request.execute()
            self.assertEqual(self.nodes.get(name=f"{HERE}/nodes/n").execute()["state"], "DELETING")
            self.assertEqual(self.finish(operation)["error"]["code"], 13)
            self.assertEqual(self.nodes.get(name=f"{HERE}/nodes/n").execute()["state"], "READY")
        self.assertEqual(self.queue.get(name=f"{HERE}/queuedResources/q").execute()["state"]["state"], "ACTIVE")
        FAKE.advance(3600)  # the server's deadline still holds
        self.refused(self.nodes.get(name=f"{HERE}/nodes/n"), 404, "was not found")

    def test_an_operation_that_never_ends(self):
        FAKE.set(never_ending=[{"method": r"nodes\.create"}])
        operation = self.nodes.create(parent=HERE, nodeId="n", body=NODE).execute()
        with self.assertRaises(AssertionError):
            self.finish(operation)
        self.assertEqual(self.nodes.get(name=f"{HERE}/nodes/n").execute()["state"], "READY")

    def test_seconds_and_looks(self):
        FAKE.set(timing={r"nodes\.create": {"seconds": 30, "polls": 0}, "default": {"polls": 2}})
        operation = self.nodes.create(parent=HERE, nodeId="n", body=NODE).execute()
        with self.assertRaises(AssertionError):
            self.finish(operation)
        FAKE.advance(31)
        self.assertEqual(self.finish(operation)["response"]["state"], "READY")
        self.nodes.delete(name=f"{HERE}/nodes/n").execute()
        states = [FAKE.google("GET", f"/v2/{HERE}/nodes/n")[0] for _ in range(3)]
        self.assertEqual(states, [200, 200, 404])


class Compute(FakeTest):
    def test_network(self):
        self.refused(self.compute.networks().insert(project="p", body={"name": "net"}), 400, "autoCreateSubnetworks")
        self.insert("networks", {"name": "net", "autoCreateSubnetworks": False})
        link = "projects/p/global/networks/net"
        subnetwork = {"name": "sub", "network": link, "ipCidrRange": "10.0.0.0/20"}
        self.insert("subnetworks", subnetwork, project="p", region="us-central1")
        self.refused(self.compute.subnetworks().insert(project="p", region="us-central1", body={**subnetwork, "name": "b"}),
                     400, "conflicts")
        rule = {"name": "ssh", "network": link, "sourceRanges": ["35.235.240.0/20"],
                "allowed": [{"IPProtocol": "tcp", "ports": ["22"]}]}
        operation = self.compute.firewalls().insert(project="p", body=rule).execute()
        self.refused(self.compute.firewalls().delete(project="p", firewall="ssh"), 400, "not ready")
        self.wait(operation)
        error = self.refused(self.compute.networks().delete(project="p", network="net"), 400, "already being used by")
        self.assertEqual(error["errors"][0]["reason"], "resourceInUseByAnotherResource")
        self.wait(self.compute.firewalls().delete(project="p", firewall="ssh").execute())
        self.wait(self.compute.subnetworks().delete(project="p", region="us-central1", subnetwork="sub").execute())
        self.wait(self.compute.networks().delete(project="p", network="net").execute())
        self.assertTrue(FAKE.is_empty(), FAKE.left())
        error = self.refused(self.compute.networks().delete(project="p", network="net"), 404, "was not found")
        self.assertEqual(error["errors"][0]["reason"], "notFound")

    def test_disks(self):
        disk = {"name": "d", "sizeGb": "100", "type": f"zones/{ZONE}/diskTypes/pd-balanced", "labels": {"env": "x"}}
        self.assertEqual(self.insert("disks", disk, **PLACE)["status"], "DONE")
        self.refused(self.compute.disks().insert(**PLACE, body=disk), 409, "already exists")
        self.refused(self.compute.disks().resize(**PLACE, disk="d", body={"sizeGb": "100"}), 400, "must be larger")
        self.wait(self.compute.disks().resize(**PLACE, disk="d", body={"sizeGb": "200"}).execute())
        self.assertAlmostEqual(FAKE.state()["dollars_per_hour"], 200 * 0.10 / 730, places=6)
        self.insert("instances", {**INSTANCE, "disks": INSTANCE["disks"] + [
            {"source": f"projects/p/zones/{ZONE}/disks/d", "mode": "READ_ONLY", "deviceName": "data"}]}, **PLACE)
        self.assertIn("/instances/i", self.compute.disks().get(**PLACE, disk="d").execute()["users"][0])
        self.refused(self.compute.disks().delete(**PLACE, disk="d"), 400, "already being used")
        # A second reader may come, a writer may not; a TPU's worker counts like an instance.
        self.node(dataDisks=[{"sourceDisk": f"projects/p/zones/{ZONE}/disks/d", "mode": "READ_ONLY"}])
        done = self.insert("instances", {**INSTANCE, "name": "j", "disks": INSTANCE["disks"] + [
            {"source": f"projects/p/zones/{ZONE}/disks/d", "mode": "READ_WRITE"}]}, **PLACE)
        self.assertEqual(done["error"]["errors"][0]["code"], "RESOURCE_IN_USE_BY_ANOTHER_RESOURCE")
        self.wait(self.compute.instances().delete(**PLACE, instance="i").execute())
        self.refused(self.compute.disks().delete(**PLACE, disk="d"), 400, "/nodes/n")
        found = self.compute.disks().aggregatedList(project="p", filter="labels.env=x").execute()["items"]
        self.assertEqual([[disk["name"] for disk in items.get("disks", [])] for items in found.values()], [["d"], []])
        self.refused(self.compute.disks().list(**PLACE, filter="labels.env=="), 400, "filter")

    def test_hyperdisk_for_many_readers(self):
        self.insert("disks", {"name": "h", "sizeGb": "10", "type": f"zones/{ZONE}/diskTypes/hyperdisk-ml"}, **PLACE)
        reader = {"sourceDisk": f"projects/p/zones/{ZONE}/disks/h", "mode": "READ_ONLY"}
        change = {"accessMode": "READ_ONLY_MANY", "name": "h"}
        self.wait(self.compute.disks().update(**PLACE, disk="h", paths="accessMode", body=change).execute())
        self.assertEqual(self.compute.disks().get(**PLACE, disk="h").execute()["accessMode"], "READ_ONLY_MANY")
        self.node(dataDisks=[reader])
        self.refused(self.compute.disks().insert(**PLACE, body={"name": "b", "accessMode": "READ_ONLY_MANY"}), 400,
                     "no access modes")

    def test_instance(self):
        FAKE.set(scripts=[{"name": "^i$", "after": 120, "status": "TERMINATED", "serial": "done\n",
                           "guest_attributes": {"prepare/state": "ok"}}])
        metadata = {"items": [{"key": "startup-script", "value": "echo done"}]}
        self.insert("instances", {**INSTANCE, "metadata": metadata, "scheduling": {
            "maxRunDuration": {"seconds": "3600"}, "instanceTerminationAction": "DELETE"}}, **PLACE)
        instance = self.compute.instances().get(**PLACE, instance="i").execute()
        self.assertEqual((instance["status"], instance["metadata"]["items"]), ("RUNNING", metadata["items"]))
        self.assertIn("terminationTimestamp", instance["resourceStatus"]["scheduling"])
        FAKE.advance(121)
        self.assertEqual(self.compute.instances().get(**PLACE, instance="i").execute()["status"], "TERMINATED")
        values = self.compute.instances().getGuestAttributes(**PLACE, instance="i", queryPath="prepare/").execute()
        self.assertEqual(values["queryValue"]["items"], [{"namespace": "prepare", "key": "state", "value": "ok"}])
        self.assertEqual(self.compute.instances().getSerialPortOutput(**PLACE, instance="i", start="2").execute()["contents"],
                         "ne\n")
        self.refused(self.compute.instances().setMetadata(**PLACE, instance="i", body={"fingerprint": "AAAA"}), 412,
                     "fingerprint")
        FAKE.advance(3600)
        self.assertTrue(FAKE.is_empty(), FAKE.left())  # its boot disk has gone with it
        self.refused(self.compute.instances().insert(**PLACE, body={**INSTANCE, "scheduling": {
            "maxRunDuration": {"seconds": "3600"}}}), 400, "instanceTerminationAction")

    def test_quota_and_room(self):
        FAKE.set(quotas=[{"metric": "CPUS", "region": "us-central1", "limit": 12}],
                 zones={ZONE: {"capacity": {"e2-standard-4": 0}}, OTHER: {}})
        self.insert("instances", INSTANCE, **PLACE)
        error = self.insert("instances", {**INSTANCE, "name": "j"}, **PLACE)["error"]["errors"][0]
        self.assertEqual(error["code"], "QUOTA_EXCEEDED")
        self.assertEqual(error["errorDetails"][0]["quotaInfo"]["limit"], 12)
        small = {**INSTANCE, "name": "k", "machineType": f"zones/{ZONE}/machineTypes/e2-standard-4"}
        error = self.insert("instances", small, **PLACE)["error"]["errors"][0]
        self.assertEqual(error["code"], "ZONE_RESOURCE_POOL_EXHAUSTED")
        cpus = next(quota for quota in self.compute.regions().get(project="p", region="us-central1").execute()["quotas"]
                    if quota["metric"] == "CPUS")
        self.assertEqual((cpus["limit"], cpus["usage"]), (12, 8))

    def test_group_of_a_slice(self):
        FAKE.set(zones={ZONE: {"capacity": {"tpu7x-standard-4t": 15}}, OTHER: {}})
        self.insert("resourcePolicies", {"name": "w", "workloadPolicy": {"type": "HIGH_THROUGHPUT",
                                                                         "acceleratorTopology": "4x4x4"}},
                    project="p", region="us-central1")
        properties = {"machineType": "tpu7x-standard-4t", "disks": INSTANCE["disks"],
                      "networkInterfaces": INSTANCE["networkInterfaces"], "labels": {"sluice-env": "x"}}
        self.insert("instanceTemplates", {"name": "t", "properties": properties})
        group = {"name": "m", "instanceTemplate": "global/instanceTemplates/t", "baseInstanceName": "m", "targetSize": 16,
                 "resourcePolicies": {"workloadPolicy": "projects/p/regions/us-central1/resourcePolicies/w"}}
        self.refused(self.compute.instanceGroupManagers().insert(**PLACE, body={**group, "targetSize": 8}), 400,
                     "needs 16 instances")
        self.insert("instanceGroupManagers", group, **PLACE)
        listed = self.compute.instanceGroupManagers().listManagedInstances
        managed = listed(**PLACE, instanceGroupManager="m").execute()["managedInstances"]
        self.assertEqual((len(managed), managed[0]["lastAttempt"]["errors"]["errors"][0]["code"]),
                         (16, "ZONE_RESOURCE_POOL_EXHAUSTED"))
        wrong = self.compute.instanceGroupManagers().listErrors(**PLACE, instanceGroupManager="m").execute()["items"]
        self.assertEqual(wrong[0]["error"]["code"], "ZONE_RESOURCE_POOL_EXHAUSTED")
        FAKE.set(zones={ZONE: {}, OTHER: {}})
        FAKE.advance(60)
        managed = listed(**PLACE, instanceGroupManager="m").execute()["managedInstances"]
        self.assertEqual([entry["instanceStatus"] for entry in managed], ["RUNNING"] * 16)
        self.assertTrue(self.compute.instanceGroupManagers().get(
            **PLACE, instanceGroupManager="m").execute()["status"]["isStable"])
        self.refused(self.compute.instanceTemplates().delete(project="p", instanceTemplate="t"), 400, "being used")
        FAKE.preempt(managed[0]["name"])  # the group makes another one
        FAKE.advance(60)
        names = [entry["name"] for entry in listed(**PLACE, instanceGroupManager="m").execute()["managedInstances"]]
        self.assertEqual((len(names), managed[0]["name"] in names), (16, False))
        self.wait(self.compute.instanceGroupManagers().recreateInstances(**PLACE, instanceGroupManager="m", body={
            "instances": [f"projects/p/zones/{ZONE}/instances/{names[0]}"]}).execute())
        self.assertNotIn(names[0], FAKE.things("compute.instances"))
        self.wait(self.compute.instanceGroupManagers().resize(**PLACE, instanceGroupManager="m", size=0).execute())
        self.assertNotIn("managedInstances", listed(**PLACE, instanceGroupManager="m").execute())
        self.wait(self.compute.instanceGroupManagers().delete(**PLACE, instanceGroupManager="m").execute())
        self.wait(self.compute.instanceTemplates().delete(project="p", instanceTemplate="t").execute())
        self.wait(self.compute.resourcePolicies().delete(project="p", region="us-central1", resourcePolicy="w").execute())
        self.assertTrue(FAKE.is_empty(), FAKE.left())

    def test_scopes_that_cannot_be_reached(self):
        FAKE.set(unreachable=[OTHER])
        answer = self.compute.instances().aggregatedList(project="p").execute()
        self.assertEqual(answer["unreachables"], [f"zones/{OTHER}"])
        self.assertEqual(answer["items"][f"zones/{OTHER}"]["warning"]["code"], "UNREACHABLE")
        self.refused(self.compute.disks().list(project="p", zone=OTHER), 503, OTHER)
        self.assertEqual([zone["status"] for zone in self.compute.zones().list(project="p").execute()["items"]],
                         ["UP", "DOWN"])

    def test_project_metadata(self):
        before = self.compute.projects().get(project="p").execute()["commonInstanceMetadata"]
        new = {**before, "items": [{"key": "ssh-keys", "value": "me:ssh-ed25519 AAAA"}]}
        self.wait(self.compute.projects().setCommonInstanceMetadata(project="p", body=new).execute())
        self.refused(self.compute.projects().setCommonInstanceMetadata(project="p", body=new), 412, "fingerprint")
        after = self.compute.projects().get(project="p").execute()["commonInstanceMetadata"]
        self.assertEqual(after["items"], new["items"])

    def test_request_ids(self):
        identity = "2f1c9a36-3a5c-4ad1-8c0f-0123456789ab"
        request = self.compute.disks().insert(**PLACE, requestId=identity, body={"name": "d"})
        self.assertEqual(request.execute()["name"], request.execute()["name"])


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
