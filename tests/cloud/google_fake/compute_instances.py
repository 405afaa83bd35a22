"""Compute Engine: instances. A start-up script is recorded with the metadata; what it would do is configured by "scripts":
[{"name": expression, "after": seconds, "status": "TERMINATED" | "DELETE", "guest_attributes": {"namespace/key": value},
"serial": text}]."""

import copy
import re

from . import catalog, compute_base, compute_disks, compute_operations, tpu_nodes
from .calls import answers
from .compute_base import Collection, resolve
from .compute_operations import ROOT
from .operations import LateError
from .refusal import Refusal, not_found, precondition
from .world import seconds_of, stamp

instances = Collection("instances", "zones", "instance", state="RUNNING", begin_state="PROVISIONING",
                       end_state="STOPPING")
UP = ("PROVISIONING", "STAGING", "RUNNING", "STOPPING", "SUSPENDING", "REPAIRING")


def is_spot(body):
    scheduling = body.get("scheduling", {})
    return scheduling.get("provisioningModel") == "SPOT" or bool(scheduling.get("preemptible"))


def hourly(thing):
    if thing.body["status"] not in ("RUNNING", "STOPPING", "STAGING"):
        return 0.0
    return catalog.machine_hourly(thing.body["machineType"].rsplit("/", 1)[1], is_spot(thing.body))


def fill(call, thing):
    body = thing.body
    zone = thing.name.split("/")[3]
    machine = body.get("machineType", "").rsplit("/", 1)[-1]
    if catalog.machine(machine) is None:
        raise Refusal(400, f"Invalid value for field 'resource.machineType': '{body.get('machineType')}'. The referenced "
                      "machineType resource cannot be found.")
    body["machineType"] = f"{ROOT}projects/{call.get('project')}/zones/{zone}/machineTypes/{machine}"
    if not body.get("disks"):
        raise Refusal(400, "Invalid value for field 'resource.disks': ''. At least one boot disk is required.")
    tpu_nodes.check_labels(body.get("labels", {}))
    check_scheduling(body.get("scheduling", {}))
    check_metadata(body.setdefault("metadata", {}))
    body["metadata"]["fingerprint"] = compute_base.fingerprint(call.world)
    for index, network in enumerate(body.get("networkInterfaces") or [{}]):
        fill_interface(call, thing, index, network)
    if not body.get("networkInterfaces"):
        raise Refusal(400, "Invalid value for field 'resource.networkInterfaces': ''. At least one network interface is "
                      "required.")
    made = []
    try:
        for index, disk in enumerate(body["disks"]):
            fill_disk(call, thing, index, disk, made)
    except Refusal:
        for name in made:
            call.world.things.pop(name)
        raise
    for policy in body.get("resourcePolicies", []):
        resolve(call, policy, "resource.resourcePolicies")


def check_scheduling(scheduling):
    limited = "maxRunDuration" in scheduling or "terminationTime" in scheduling
    if limited and "instanceTerminationAction" not in scheduling:
        raise Refusal(400, "Invalid value for field 'resource.scheduling': instanceTerminationAction must be specified "
                      "with maxRunDuration or terminationTime.")
    spot = scheduling.get("provisioningModel") == "SPOT" or scheduling.get("preemptible")
    if spot and (scheduling.get("automaticRestart") or scheduling.get("onHostMaintenance") == "MIGRATE"):
        raise Refusal(400, "Invalid value for field 'resource.scheduling': a Spot VM has automaticRestart false and "
                      "onHostMaintenance TERMINATE.")
    if "maxRunDuration" in scheduling and not 30 <= int(scheduling["maxRunDuration"].get("seconds", 0)) <= 120 * 86400:
        raise Refusal(400, "Invalid value for field 'resource.scheduling.maxRunDuration': it is from 30 s to 120 days.")


def check_metadata(metadata):
    keys = [item.get("key", "") for item in metadata.get("items", [])]
    if len(keys) != len(set(keys)):
        raise Refusal(400, f"Invalid value for field 'metadata.items': duplicate keys in {keys}.")
    for item in metadata.get("items", []):
        if not re.fullmatch(r"[a-zA-Z0-9_-]{1,128}", item.get("key", "")) or len(item.get("value", "")) > 262144:
            raise Refusal(400, f"Invalid value for field 'metadata.items': '{item.get('key')}': a key matches "
                          "[a-zA-Z0-9_-]{1,128}, a value has at most 262144 bytes.")


def fill_interface(call, thing, index, network):
    given = network.get("network") or ("" if network.get("subnetwork") else "global/networks/default")
    if network.get("subnetwork"):
        subnetwork = resolve(call, network["subnetwork"], "resource.networkInterfaces[0].subnetwork")
        network["subnetwork"] = ROOT + subnetwork.name
        given = given or compute_base.path_of(subnetwork.body["network"])
    network["network"] = ROOT + resolve(call, given, "resource.networkInterfaces[0].network").name
    host = host_of(call.world, thing)
    network["name"] = f"nic{index}"
    network.setdefault("networkIP", host["ip"])
    for access in network.get("accessConfigs", []):
        access.setdefault("natIP", host["external"])


def host_of(world, thing):
    """The configured host of this instance ("hosts_of"), else a made-up one."""
    short = thing.name.rsplit("/", 1)[1]
    for expression, hosts in world.config.get("hosts_of", {}).items():
        if re.fullmatch(expression, short):
            used = {other.private.get("host", {}).get("ip") for other in world.of_kind(instances.kind)}
            thing.private["host"] = next((host for host in hosts if host["ip"] not in used), hosts[0])
            return {"external": thing.private["host"]["ip"], **thing.private["host"]}
    number = world.unique()
    thing.private["host"] = {"ip": f"10.100.{number // 250 % 250}.{number % 250 + 2}",
                             "external": f"198.51.100.{number % 250 + 1}"}
    return thing.private["host"]


def fill_disk(call, thing, index, disk, made):
    """An attached disk: an existing one, or one that is made with the instance."""
    disk.setdefault("mode", "READ_WRITE")
    disk.setdefault("deviceName", f"persistent-disk-{index}")
    disk["index"] = index
    if disk.get("source"):
        found = resolve(call, disk["source"], f"resource.disks[{index}].source")
        machine = thing.body["machineType"].rsplit("/", 1)[1]
        if compute_disks.is_hyperdisk(found) and machine.startswith(("n1-", "e2-")):
            raise Refusal(400, f"[{found.body['type'].rsplit('/', 1)[1]}] features are not compatible for creating instance.")
        thing.body["disks"][index] = {**disk, "source": ""}
        problem = compute_disks.attach_problem(call.world, found, disk["mode"])
        thing.body["disks"][index] = disk
        disk["source"] = ROOT + found.name
        if problem:
            thing.private.setdefault("problems", []).append(("RESOURCE_IN_USE_BY_ANOTHER_RESOURCE", problem))
        return
    wanted = disk.pop("initializeParams", None)
    if wanted is None:
        raise Refusal(400, f"Invalid value for field 'resource.disks[{index}]': either source or initializeParams.")
    name = thing.name.rsplit("/instances/", 1)[0] + "/disks/" + wanted.get(
        "diskName", thing.name.rsplit("/", 1)[1] + (f"-{index}" if index else ""))
    if name in call.world.things:
        raise Refusal(409, f"The resource '{name}' already exists")
    body = {"name": name.rsplit("/", 1)[1], "type": wanted.get("diskType", "pd-standard")}
    for there, here in (("diskSizeGb", "sizeGb"), ("sourceImage", "sourceImage"), ("labels", "labels")):
        if there in wanted:
            body[here] = wanted[there]
    boot = compute_disks.disks.make(call, name, body)
    made.append(name)
    boot.body["status"] = "READY"
    boot.private["ready"] = True
    disk["source"] = ROOT + name
    disk["diskSizeGb"] = boot.body["sizeGb"]


def done(call, thing):
    """The end of insert: there may be no room, no quota, or a disk that another one has."""
    world = call.world
    zone = thing.name.split("/")[3]
    machine = thing.body["machineType"].rsplit("/", 1)[1]
    for code, message in thing.private.get("problems", []):
        raise LateError(code, message)
    if not has_capacity(world, zone, machine, thing):
        raise LateError("ZONE_RESOURCE_POOL_EXHAUSTED", f"The zone 'projects/{call.get('project')}/zones/{zone}' does not "
                        "have enough resources available to fulfill the request.  Try a different zone, or try again "
                        "later.")
    cpus = catalog.machine(machine)[0]
    region = compute_base.region_of(thing)
    used = sum(catalog.machine(other.body["machineType"].rsplit("/", 1)[1])[0] for other in world.of_kind(instances.kind)
               if other is not thing and compute_base.region_of(other) == region and other.body["status"] in UP)
    limit = compute_base.regional_quota(call, region, "CPUS", cpus, used)
    if limit is not None:
        raise LateError("QUOTA_EXCEEDED", f"Quota 'CPUS' exceeded.  Limit: {float(limit)} in region {region}.", [
            {"quotaInfo": {"metricName": "compute.googleapis.com/cpus", "limitName": "CPUS-per-project-region",
                           "limit": float(limit), "dimensions": {"region": region}}}])
    started(world, thing)


def has_capacity(world, zone, machine, asking):
    limit = world.zones[zone].get("capacity", {}).get(machine)
    running = [other for other in world.of_kind(instances.kind) if other is not asking
               and other.name.split("/")[3] == zone and other.body["machineType"].endswith("/" + machine)
               and other.body["status"] == "RUNNING"]
    return limit is None or len(running) < limit


def started(world, thing):
    """From RUNNING on: the server's deadline, the configured preemption, and what the start-up script would do."""
    thing.body["lastStartTimestamp"] = stamp(world.now())
    scheduling = thing.body.get("scheduling", {})
    when = None
    if "maxRunDuration" in scheduling:
        when = world.now() + int(scheduling["maxRunDuration"]["seconds"])
    if "terminationTime" in scheduling:
        when = seconds_of(scheduling["terminationTime"])
    if when is not None:
        thing.body["resourceStatus"] = {"scheduling": {"terminationTimestamp": stamp(when)}}
        world.later(thing.name, when - world.now(), lambda: terminate(
            world, thing, scheduling["instanceTerminationAction"] == "DELETE", "deleted at its deadline"))
    short = thing.name.rsplit("/", 1)[1]
    entry = world.pick("preemptions", "", short)
    if entry:
        world.later(thing.name, entry.get("after", 0), lambda: preempt(world, thing, entry.get("state", "TERMINATED")))
    script = world.pick("scripts", "", short)
    if script:
        world.later(thing.name, script.get("after", 0), lambda: script_ends(world, thing, script))


def terminate(world, thing, delete, why):
    if world.things.get(thing.name) is not thing:
        return
    if delete:
        disks_go(world, thing)
        world.remove(thing.name, why)
    else:
        thing.body["status"] = "TERMINATED"
        world.note("stopped", thing.name)


def preempt(world, thing, state):
    action = thing.body.get("scheduling", {}).get("instanceTerminationAction", "STOP")
    terminate(world, thing, state == "vanish" or action == "DELETE", "preempted")
    if thing.name in world.things:
        thing.body["status"] = state if state in ("STOPPING", "TERMINATED", "SUSPENDED") else "TERMINATED"


def script_ends(world, thing, script):
    thing.private["guest_attributes"] = script.get("guest_attributes", {})
    thing.private["serial"] = script.get("serial", "")
    if script.get("status"):
        terminate(world, thing, script["status"] == "DELETE", "deleted by its own script")


def disks_go(world, thing):
    """Disks with autoDelete go with the instance."""
    for disk in thing.body.get("disks", []):
        if disk.get("autoDelete"):
            world.remove(compute_base.path_of(disk["source"]), "deleted with its instance")


instances.fill, instances.done = fill, done
instances.gone = lambda call, thing: disks_go(call.world, thing)


def undo_insert(call, name):
    thing = call.world.things.get(name)
    if thing is not None:
        disks_go(call.world, thing)
        call.world.remove(name, "create failed")


@answers("compute.instances.insert")
def insert(call):
    def begin():
        name = f"{instances.parent(call)}/instances/{call.body['name']}"
        if name in call.world.things:
            raise Refusal(409, f"The resource '{name}' already exists")
        template = call.get("sourceInstanceTemplate")
        body = copy.deepcopy(call.body)
        if template:
            properties = resolve(call, template, "sourceInstanceTemplate").body["properties"]
            body = {**copy.deepcopy(properties), **body}
        thing = instances.make(call, name, body)
        return compute_operations.begin(call, name, "insert", lambda: instances.made(call, thing),
                                        lambda: undo_insert(call, name))
    return call.again(begin)


def by_path(call, key="instance"):
    compute_base.check_place(call, "zones", call.get("zone"))
    name = f"projects/{call.get('project')}/zones/{call.get('zone')}/instances/{call.get(key)}"
    call.world.look(name)
    if name not in call.world.things:
        raise not_found("compute", name)
    return call.world.things[name]


def change_status(call, verb, wanted, through, then, after=None):
    thing = by_path(call)
    if thing.body["status"] not in wanted:
        raise precondition(f"Instance {thing.name} cannot {verb} while its status is {thing.body['status']}.")
    before = thing.body["status"]
    thing.body["status"] = through

    def finish():
        thing.body["status"] = then
        if after:
            after(call.world, thing)
    return compute_operations.begin(call, thing.name, verb, finish, lambda: thing.body.update(status=before))


@answers("compute.instances.stop")
def stop(call):
    return call.again(lambda: change_status(call, "stop", ("RUNNING", "PROVISIONING", "STAGING", "STOPPING"), "STOPPING",
                                            "TERMINATED"))


@answers("compute.instances.start")
def start(call):
    return call.again(lambda: change_status(call, "start", ("TERMINATED",), "STAGING", "RUNNING", started))


@answers("compute.instances.setMetadata")
def set_metadata(call):
    thing = by_path(call)
    check_metadata(call.body)
    if call.body.get("fingerprint") != thing.body["metadata"]["fingerprint"]:
        raise Refusal(412, "Supplied fingerprint does not match current metadata fingerprint.")

    def change():
        thing.body["metadata"] = {**call.body, "fingerprint": compute_base.fingerprint(call.world)}
    return compute_operations.begin(call, thing.name, "setMetadata", change)


@answers("compute.instances.setLabels")
def set_labels(call):
    return compute_disks.change_labels(call, by_path(call))


@answers("compute.instances.attachDisk")
def attach(call):
    thing = by_path(call)
    disk = resolve(call, call.body.get("source", ""), "source")
    mode = call.body.get("mode", "READ_WRITE")
    problem = compute_disks.attach_problem(call.world, disk, mode)
    if problem:
        raise Refusal(400, problem, reason="resourceInUseByAnotherResource")
    index = len(thing.body["disks"])
    entry = {**call.body, "source": ROOT + disk.name, "index": index, "mode": mode}
    entry.setdefault("deviceName", f"persistent-disk-{index}")
    return compute_operations.begin(call, thing.name, "attachDisk", lambda: thing.body["disks"].append(entry))


@answers("compute.instances.detachDisk")
def detach(call):
    thing = by_path(call)
    left = [disk for disk in thing.body["disks"] if disk.get("deviceName") != call.get("deviceName")]
    if len(left) == len(thing.body["disks"]):
        raise Refusal(400, f"Invalid value for field 'disk': '{call.get('deviceName')}'. No attached disk found with "
                      "device name.")
    return compute_operations.begin(call, thing.name, "detachDisk", lambda: thing.body.update(disks=left))


@answers("compute.instances.getGuestAttributes")
def guest_attributes(call):
    """The host keys, as the guest agent writes them, and what a script wrote."""
    thing = by_path(call)
    path = (call.get("queryPath") or call.get("variableKey") or "").strip("/")
    values = {f"hostkeys/{kind}": key for kind, key in tpu_nodes.host_keys(
        call.world, thing.private.get("host", {"ip": thing.name})).items()} if thing.body["status"] == "RUNNING" else {}
    values.update(thing.private.get("guest_attributes", {}))
    items = [{"namespace": name.split("/")[0], "key": name.split("/")[1], "value": value}
             for name, value in sorted(values.items()) if not path or (name + "/").startswith(path + "/")]
    if not items:
        raise Refusal(404, f"The resource '{path}' of type 'Guest Attribute' was not found.")
    return {"kind": "compute#guestAttributes", "queryPath": call.get("queryPath", ""), "queryValue": {"items": items}}


@answers("compute.instances.getSerialPortOutput")
def serial(call):
    thing = by_path(call)
    text = thing.private.get("serial", "")
    start = int(call.get("start") or 0)
    return {"kind": "compute#serialPortOutput", "contents": text[start:], "start": str(start), "next": str(len(text))}
