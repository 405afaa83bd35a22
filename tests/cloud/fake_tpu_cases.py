"""Cloud TPU in the fake: nodes, the queue, limits, operations."""

import json

from fake_cases import FAKE, HERE, NODE, OTHER, PLACE, WORLD, ZONE, FakeTest, api, queued


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
