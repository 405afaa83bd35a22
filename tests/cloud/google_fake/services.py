"""A world made from a configuration, with all services and what was there to begin with ("resources": [{"name": path from
projects/ on, "body", "state", "created", "ours": true}]; they count as given unless "ours" says otherwise)."""

import copy

from . import (compute_base, compute_disks, compute_groups, compute_instances, compute_net, compute_project, discovery,
               filestore, projects, storage, tpu_nodes, tpu_offers, tpu_queue)
from .compute_operations import ROOT
from .world import World, seconds_of, stamp

ALL = (compute_net, compute_project, projects, tpu_offers)  # imported for their answers


def make_world(config):
    world = World(copy.deepcopy(config))
    world.rates = {tpu_nodes.KIND: tpu_nodes.hourly, compute_disks.disks.kind: compute_disks.hourly,
                   compute_instances.instances.kind: compute_instances.hourly, filestore.KIND: filestore.hourly,
                   storage.KIND: storage.hourly}
    world.idle_work = [tpu_queue.waiting, compute_groups.keep]
    if world.config.get("default_network", True):
        for project in world.projects:
            default_network(world, project)
    for entry in world.config.get("resources", []):
        add(world, entry)
    world.given_names = [name for name, thing in world.things.items() if thing.given]
    return world


def default_network(world, project):
    """As a new project has it: in automatic mode, with a subnetwork in each region."""
    add(world, {"name": f"projects/{project}/global/networks/default", "body": {"autoCreateSubnetworks": True}})
    for index, region in enumerate(world.regions()):
        add(world, {"name": f"projects/{project}/regions/{region}/subnetworks/default", "body": {
            "network": f"{ROOT}projects/{project}/global/networks/default", "ipCidrRange": f"10.{128 + index}.0.0/20"}})
        world.things[f"projects/{project}/regions/{region}/subnetworks/default"].private["automatic"] = True


def add(world, entry):
    name = entry["name"]
    pieces = name.split("/")
    collection = pieces[-2]
    body = copy.deepcopy(entry.get("body", {}))
    if collection == "nodes":
        thing = node(world, name, body)
    elif collection == "queuedResources":
        thing = queued(world, name, body)
    elif collection == "instances" and "locations" in pieces:
        thing = nfs(world, name, body)
    elif collection == "b":
        thing = bucket(world, name, body, entry)
    else:
        thing = compute(world, compute_base.COLLECTIONS[collection], name, body)
    thing.given = not entry.get("ours", False)
    if "state" in entry:
        if isinstance(thing.body.get("state"), dict):
            thing.body["state"] = {"state": entry["state"], "stateInitiator": "SERVICE"}
        else:
            thing.body["state" if "state" in thing.body else "status"] = entry["state"]
    if "created" in entry:
        thing.created = thing.settled = seconds_of(entry["created"])
        for field in ("createTime", "creationTimestamp", "timeCreated"):
            if field in thing.body:
                thing.body[field] = entry["created"]
    world.settle()
    return thing


def node(world, name, body):
    if "acceleratorConfig" not in body:
        body.setdefault("acceleratorType", "v6e-8")
    body.setdefault("runtimeVersion", "v2-alpha-tpuv6e")
    thing = tpu_nodes.add_node(world, name, body, discovery.document("tpu.v2"), body.get("queuedResource"))
    tpu_nodes.make_ready(world, thing)
    return thing


def queued(world, name, body):
    thing = world.add(tpu_queue.KIND, name, {**body, "name": name, "createTime": stamp(world.now())})
    parent = name.rsplit("/queuedResources/", 1)[0]
    thing.body.setdefault("tpu", {"nodeSpec": [{"parent": parent, "nodeId": name.rsplit("/", 1)[1], "node": {
        "acceleratorType": "v6e-8", "runtimeVersion": "v2-alpha-tpuv6e"}}]})
    thing.body.setdefault("state", {"state": "ACTIVE", "stateInitiator": "SERVICE"})
    thing.private.update(until=None, after=0, document=discovery.document("tpu.v2"))
    return thing


def nfs(world, name, body):
    return world.add(filestore.KIND, name, {
        "tier": "BASIC_HDD", "fileShares": [{"name": "share", "capacityGb": "1024"}],
        "networks": [{"network": "default", "ipAddresses": ["10.250.0.2"]}], "state": "READY",
        "createTime": stamp(world.now()), **body, "name": name})


def bucket(world, name, body, entry):
    thing = world.add(storage.KIND, name, storage.completed(world, {"name": name.split("/")[1], **body}))
    thing.private.update(objects={}, project=entry.get("project", world.projects[0]))
    for object_name, text in entry.get("objects", {}).items():
        thing.private["objects"][object_name] = (text.encode(), {
            "generation": world.number(), "metageneration": "1", "timeCreated": stamp(world.now())})
    return thing


DEFAULTS = {
    "disks": {"sizeGb": "100", "type": "pd-balanced"}, "subnetworks": {"ipCidrRange": "10.0.0.0/24"},
    "firewalls": {"direction": "INGRESS", "priority": 1000, "allowed": [{"IPProtocol": "tcp"}]},
    "instances": {"machineType": "e2-standard-2", "disks": [], "networkInterfaces": [], "metadata": {"fingerprint": "eA=="}},
    "instanceTemplates": {"properties": {"machineType": "e2-standard-2"}},
    "instanceGroupManagers": {"targetSize": 0, "baseInstanceName": "x"},
}


def compute(world, collection, name, body):
    """A finished resource of Compute Engine."""
    pieces = name.split("/")
    full = {**copy.deepcopy(DEFAULTS.get(collection.name, {})), **body, "kind": f"compute#{collection.title}",
            "name": pieces[-1], "id": world.number(), "selfLink": ROOT + name, "creationTimestamp": stamp(world.now())}
    if collection.scope != "global":
        full[compute_base.SCOPES[collection.scope]] = ROOT + "/".join(pieces[:4])
    if collection.state:
        full["status"] = collection.state
    thing = world.add(collection.kind, name, full)
    thing.private.update(ready=True, errors=[])
    return thing
