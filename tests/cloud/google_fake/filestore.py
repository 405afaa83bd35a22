"""Filestore: instances."""

import re

from . import catalog, operations, tpu_nodes
from .calls import answers, check_location, known_locations, split_location
from .filters import compile_filter
from .refusal import Refusal, already_exists, not_found, precondition
from .world import stamp

KIND = "file.instances"
SMALLEST_GB = {"BASIC_HDD": 1024, "STANDARD": 1024, "BASIC_SSD": 2560, "PREMIUM": 2560, "ZONAL": 1024, "REGIONAL": 1024,
               "ENTERPRISE": 1024, "HIGH_SCALE_SSD": 10240}
MASKS = ("description", "fileShares", "file_shares", "labels", "deletionProtectionEnabled", "performanceConfig")


def hourly(thing):
    month = catalog.FILESTORE_MONTH.get(thing.body["tier"], 0.3)
    return sum(int(share["capacityGb"]) for share in thing.body["fileShares"]) * month / catalog.HOURS_A_MONTH


@answers("file.projects.locations.instances.create")
def create(call):
    project, place = split_location(call.get("parent"))
    check_location(call, place, known_locations(call.world))
    identity = call.get("instanceId")
    if not identity or not re.fullmatch(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?", identity):
        raise Refusal(400, f"Invalid value for field \"instance_id\": '{identity}'")
    name = f"{call.get('parent')}/instances/{identity}"
    if name in call.world.things:
        raise already_exists("file", name)
    check_body(call, project, place)
    thing = call.world.add(KIND, name, {**call.body, "name": name, "state": "CREATING",
                                        "createTime": stamp(call.world.now()), "etag": call.world.number()})
    operation = operations.long_running(call.world, "file", call.get("parent"), name, "create", call.id, place)

    def ready():
        thing.body["state"] = "READY"
        number = call.world.unique()
        for network in thing.body["networks"]:
            network["ipAddresses"] = call.world.config.get("filestore_addresses") or [f"10.{200 + number % 50}.0.2"]
            network.setdefault("reservedIpRange", f"10.{200 + number % 50}.0.0/29")
        return {"@type": "type.googleapis.com/google.cloud.filestore.v1.Instance", **thing.body}
    operations.begin(call.world, operation, ready, lambda: call.world.remove(name, "create failed"))
    return operations.shown(operation, call.document)


def check_body(call, project, place):
    body = call.body
    tier = body.get("tier")
    if tier in (None, "TIER_UNSPECIFIED"):
        raise Refusal(400, "tier must be specified")
    regional = tier in ("REGIONAL", "ENTERPRISE")
    if regional == (place in call.world.zones):
        raise Refusal(400, f"{tier} instances are made in a {'region' if regional else 'zone'}, {place} is none")
    shares = body.get("fileShares", [])
    if len(shares) != 1:
        raise Refusal(400, f"exactly one file share is needed, there are {len(shares)}")
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,15}", shares[0]["name"]):
        raise Refusal(400, f"Invalid file share name '{shares[0]['name']}': 1-16 letters, digits and underscores")
    if int(shares[0].get("capacityGb", 0)) < SMALLEST_GB[tier]:
        raise Refusal(400, f"capacity of {shares[0].get('capacityGb')} GB is less than the {SMALLEST_GB[tier]} GB of {tier}")
    networks = body.get("networks", [])
    if len(networks) != 1:
        raise Refusal(400, f"exactly one network is needed, there are {len(networks)}")
    network = networks[0].get("network", "")
    full = network.split("v1/")[-1] if "/" in network else f"projects/{project}/global/networks/{network}"
    if full not in call.world.things:
        raise Refusal(400, f"network '{network}' does not exist.")
    tpu_nodes.check_labels(body.get("labels", {}))


def find(call):
    name = call.get("name")
    check_location(call, split_location(name)[1], known_locations(call.world))
    call.world.look(name)
    if name not in call.world.things:
        raise not_found("file", name)
    return call.world.things[name]


@answers("file.projects.locations.instances.get")
def get(call):
    return find(call).body


@answers("file.projects.locations.instances.list")
def list_all(call):
    project, place = split_location(call.get("parent"))
    world = call.world
    wanted = compile_filter(call.get("filter"))
    answer = {}
    if place == "-":
        under = f"projects/{project}/locations/"
        missing = [under + zone for zone in world.zones if not world.reachable(zone)]
        if missing:
            answer["unreachable"] = missing
    else:
        check_location(call, place, known_locations(world))
        under = call.get("parent") + "/"
    things = [thing for thing in world.of_kind(KIND, under) if world.reachable(split_location(thing.name)[1])]
    for thing in things:
        world.look(thing.name)
    page, token = call.page([thing.body for thing in things if thing.name in world.things and wanted(thing.body)])
    return {**({"instances": page} if page else {}), **answer, **token}


@answers("file.projects.locations.instances.delete")
def delete(call):
    thing = find(call)
    if thing.body["state"] == "DELETING":
        raise precondition(f"Instance {thing.name} is being deleted already.")
    if thing.body["state"] == "CREATING":
        raise precondition(f"Instance {thing.name} is being created: it cannot be deleted yet.")
    if thing.body.get("deletionProtectionEnabled"):
        raise precondition(f"Instance {thing.name} is protected from deletion.")
    before = thing.body["state"]
    thing.body["state"] = "DELETING"
    operation = operations.long_running(call.world, "file", thing.name.rsplit("/instances/", 1)[0], thing.name, "delete",
                                        call.id)
    operations.begin(call.world, operation, lambda: gone(call, thing), lambda: thing.body.update(state=before))
    return operations.shown(operation, call.document)


def gone(call, thing):
    call.world.remove(thing.name, "deleted")


@answers("file.projects.locations.instances.patch")
def patch(call):
    thing = find(call)
    mask = [field for field in call.get("updateMask", "").split(",") if field]
    if not mask or any(field not in MASKS for field in mask):
        raise Refusal(400, f"update_mask {mask}: {', '.join(MASKS)} can be updated")
    if thing.body["state"] != "READY":
        raise precondition(f"Instance {thing.name} is in state {thing.body['state']}, not READY.")
    new = call.body.get("fileShares", thing.body["fileShares"])
    if int(new[0]["capacityGb"]) < int(thing.body["fileShares"][0]["capacityGb"]) and thing.body["tier"].startswith("BASIC"):
        raise Refusal(400, "a basic instance cannot become smaller")
    operation = operations.long_running(call.world, "file", thing.name.rsplit("/instances/", 1)[0], thing.name, "update",
                                        call.id)

    def change():
        call.world.settle()
        for field in mask:
            field = "fileShares" if field == "file_shares" else field
            if field in call.body:
                thing.body[field] = call.body[field]
        return {"@type": "type.googleapis.com/google.cloud.filestore.v1.Instance", **thing.body}
    operations.begin(call.world, operation, change)
    return operations.shown(operation, call.document)


@answers("file.projects.locations.list")
def list_locations(call):
    page, token = call.page(sorted(known_locations(call.world)))
    return {"locations": [{"name": f"{call.get('name')}/locations/{place}", "locationId": place} for place in page], **token}
