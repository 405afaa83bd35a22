"""Compute Engine in the fake: networks, disks, instances, groups."""

from fake_cases import FAKE, HERE, INSTANCE, NODE, OTHER, PLACE, ZONE, FakeTest


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
        reader = [{"sourceDisk": f"projects/p/zones/{ZONE}/disks/d", "mode": "READ_ONLY"}]
        self.refused(self.nodes.create(parent=HERE, nodeId="n", body={**NODE, "dataDisks": reader}), 400, "cannot be attached")
        self.node(acceleratorType="v3-8", runtimeVersion="tpu-ubuntu2204-base", dataDisks=reader)
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
        self.refused(self.nodes.create(parent=HERE, nodeId="n", body={**NODE, "dataDisks": [reader]}), 400,
                     "must have the access mode READ_ONLY_MANY")
        change = {"accessMode": "READ_ONLY_MANY", "name": "h"}
        self.wait(self.compute.disks().update(**PLACE, disk="h", paths="accessMode", body=change).execute())
        self.assertEqual(self.compute.disks().get(**PLACE, disk="h").execute()["accessMode"], "READ_ONLY_MANY")
        self.node(dataDisks=[reader])
        old = {**INSTANCE, "machineType": f"zones/{ZONE}/machineTypes/e2-small", "disks": INSTANCE["disks"] + [
            {"source": reader["sourceDisk"], "mode": "READ_ONLY"}]}
        self.refused(self.compute.instances().insert(**PLACE, body=old), 400, "not compatible")
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
        image = INSTANCE["disks"][0]["initializeParams"]
        properties = {"machineType": "tpu7x-standard-4t", "disks": [
                          {"boot": True, "autoDelete": True, "initializeParams": {**image, "diskType": "hyperdisk-balanced"}}],
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
